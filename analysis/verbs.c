/* SPDX-License-Identifier: MIT */
#include "analysis/commands.h"

const dp_verb dp_verbs[] = {
    {"table", "print a number format: codes, values, midpoints, ties, limits", dp_cmd_table},
    {"attend", "run an attention operator and measure its error against BF16", dp_cmd_attend},
    {"bench", "measure speeds of the library beside their limits", dp_cmd_bench},
    {"plot", "draw results with gnuplot", dp_cmd_plot},
    {"range", "measure what formats keep of exact softmax probabilities", dp_cmd_range},
    {"capture", "record what a GPU returns, or replay such a file", dp_cmd_capture},
    {NULL, NULL, NULL},
};
