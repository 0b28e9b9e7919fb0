/* SPDX-License-Identifier: MIT */
#include "analysis/benches.h"

const dp_bench dp_benches[] = {
    {"memory", "memory copy and read rates: the limits the others are held against",
     dp_bench_memory},
    {NULL, NULL, NULL},
};
