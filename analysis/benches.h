/* SPDX-License-Identifier: MIT
 *
 * The entry points of the benchmarks, one line each; benches.c lists them.
 */
#ifndef DP_ANALYSIS_BENCHES_H
#define DP_ANALYSIS_BENCHES_H

#include "analysis/bench.h"

dp_bench_main dp_bench_arith;
dp_bench_main dp_bench_attend;
dp_bench_main dp_bench_device;
dp_bench_main dp_bench_diff;
dp_bench_main dp_bench_formats;
dp_bench_main dp_bench_memory;

#endif
