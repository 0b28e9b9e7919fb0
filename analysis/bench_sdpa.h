/* SPDX-License-Identifier: MIT */
#ifndef DP_ANALYSIS_BENCH_SDPA_H
#define DP_ANALYSIS_BENCH_SDPA_H

#include <stdbool.h>
#include <stddef.h>

/* Milliseconds of torch's scaled_dot_product_attention in BF16 on CUDA device 0, median by events:
 * [1][heads][seq][dim], no mask. False where python3, torch or a device is missing. */
bool dp_bench_sdpa(size_t seq, size_t heads, size_t dim, double *ms);

#endif
