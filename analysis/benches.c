/* SPDX-License-Identifier: MIT */
#include "analysis/benches.h"

const dp_bench dp_benches[] = {
    {"arith", "matrix-unit models of 128x128x128 against OpenBLAS sgemm, one core", dp_bench_arith},
    {"attend", "the bit-exact forward against FP32 attention through OpenBLAS", dp_bench_attend},
    {"device", "kernels on a GPU against a device copy and against the oracle, two threads",
     dp_bench_device},
    {"diff", "1 GiB of dumps compared by bits against H5Dread alone", dp_bench_diff},
    {"formats", "bulk conversions and block quantizers against memcpy, one core and two",
     dp_bench_formats},
    {"memory", "memory copy and read rates: the limits the others are held against",
     dp_bench_memory},
    {NULL, NULL, NULL},
};
