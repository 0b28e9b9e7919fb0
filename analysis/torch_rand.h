/* SPDX-License-Identifier: MIT
 *
 * torch.randn of a CUDA device, drawn on the CPU: the published tables were made with it, so their
 * inputs can be made again from a seed.
 *
 * PyTorch draws four normals at a time from Philox4x32-10 (Salmon et al., SC'11; Random123) with
 * the Box-Muller transform of curand_normal.h. The order depends on the size of the launch grid,
 * hence on the number of SMs of the device.
 */
#ifndef DP_ANALYSIS_TORCH_RAND_H
#define DP_ANALYSIS_TORCH_RAND_H

#include "formats/base.h"

/* SM counts of the published tables. */
enum { DP_SMS_GB200 = 152, DP_SMS_B300 = 148 };

/* One block of Philox4x32-10: key = seed, counter = (iteration low, high, thread low, high). */
void dp_philox(uint64_t seed, uint64_t iteration, uint64_t thread, uint32_t out[4]);

/* The pair that curand's Box-Muller makes of two random words: s*sin(v), s*cos(v) with
 * u = x 2^-32 + 2^-33, v = y 2pi 2^-32 + pi 2^-32 (one rounding each), s = sqrt(-2 ln u).
 * DEVICE model of sine and cosine: see torch_rand.c. */
void dp_box_muller(uint32_t x, uint32_t y, float pair[2]);

/* torch.randn(n, device="cuda") in binary32.
 *   seed    of torch.manual_seed
 *   offset  position of the generator in its stream, 0 after seeding
 *   sms     multiprocessors of the device, 1 .. 65535
 *   out     n values, n >= 1
 *   threads worker threads, 0 for one per CPU; the values do not depend on it
 * Returns the offset for the next tensor. */
uint64_t dp_torch_randn(uint64_t seed, uint64_t offset, int sms, size_t n, float *out, int threads);

#endif
