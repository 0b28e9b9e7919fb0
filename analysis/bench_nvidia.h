/* SPDX-License-Identifier: MIT
 *
 * The host path of NVIDIA's cuda_fp8.h and cuda_fp4.h as a rival of `directp bench formats`. Its
 * file is compiled where an installed CUDA toolkit has the headers (DP_HAVE_NVIDIA_HEADERS).
 */
#ifndef DP_ANALYSIS_BENCH_NVIDIA_H
#define DP_ANALYSIS_BENCH_NVIDIA_H

#include "formats/bulk.h"

DP_BEGIN_C

/* format: DP_BULK_E2M1X2 (n even), DP_BULK_E4M3 or DP_BULK_E5M2; saturating, nearest even. */
void dp_bench_nvidia_encode(dp_bulk_format format, const float *x, size_t n, uint8_t *codes);
void dp_bench_nvidia_decode(dp_bulk_format format, const uint8_t *codes, size_t n, float *x);

DP_END_C

#endif
