/* SPDX-License-Identifier: MIT */
#include "analysis/commands.h"

const dp_verb dp_verbs[] = {
    {"table", "print a number format: codes, values, midpoints, ties, limits", dp_cmd_table},
    {"quantize", "quantize an array, write codes and scales, report the error", dp_cmd_quantize},
    {"swizzle", "bring scale bytes into a layout of a matrix unit, or back", dp_cmd_swizzle},
    {"attend", "run an attention operator and measure its error against BF16", dp_cmd_attend},
    {"device", "run the kernels on a GPU and compare every stage with the oracle", dp_cmd_device},
    {"diff", "find the first wrong stage of a kernel's dump, and the mistake", dp_cmd_diff},
    {"cases", "write the standard case set a kernel is verified on", dp_cmd_cases},
    {"verify", "judge the dumps of the standard case set", dp_cmd_verify},
    {"record", "append the rates of a run to a history and judge them", dp_cmd_record},
    {"range", "measure what formats keep of exact softmax probabilities", dp_cmd_range},
    {"fit", "fit the map from scores to E2M1 codes to a distribution or to tensors", dp_cmd_fit},
    {"matrix", "run formats and routes side by side, with the published rows", dp_cmd_matrix},
    {"guard", "tell which heads need a guard, with which constants", dp_cmd_guard},
    {"report", "write one HTML page about a tensor", dp_cmd_report},
    {"plot", "draw results with gnuplot", dp_cmd_plot},
    {"capture", "record what a GPU returns, or replay such a file", dp_cmd_capture},
    {"bench", "measure speeds of the library beside their limits", dp_cmd_bench},
    {NULL, NULL, NULL},
};
