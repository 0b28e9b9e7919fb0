/* SPDX-License-Identifier: MIT */
#include "analysis/commands.h"

const dp_verb dp_verbs[] = {
    {"table", "print a number format: codes, values, midpoints, ties, limits", dp_cmd_table},
    {"bench", "measure speeds of the library beside their limits", dp_cmd_bench},
    {NULL, NULL, NULL},
};
