/* SPDX-License-Identifier: MIT
 *
 * Scores and softmax in the binary32 arithmetic of a CUDA device, operation by operation, for
 * repeating published figures in which a probability that lies within an ulp of a threshold counts.
 */
#ifndef DP_ANALYSIS_DEVICE_SOFTMAX_H
#define DP_ANALYSIS_DEVICE_SOFTMAX_H

#include "formats/base.h"

/* expf as nvcc 13.0 compiles it: x log2(e) is split into an integer and a fraction, the fraction
 * goes through ex2.approx.ftz.f32 (the H200 capture of ref/arith). For x <= 0. */
float dp_device_expf(float x);

/* As dp_range_scores, each score a chain of fused multiply-adds over the features. */
void dp_device_scores(const float *const *q, const float *packed, size_t dim, size_t visible,
                      size_t padded, double *scores);

/* As dp_range_softmax: scaled scores, differences, exponentials and quotients rounded to binary32;
 * the sum is rounded once (the order in which a device adds is not specified). */
double dp_device_softmax(double *row, size_t visible, size_t padded, double scale);

#endif
