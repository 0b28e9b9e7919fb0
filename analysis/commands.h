/* SPDX-License-Identifier: MIT
 *
 * The entry points of the verbs, one line each; verbs.c lists them.
 */
#ifndef DP_ANALYSIS_COMMANDS_H
#define DP_ANALYSIS_COMMANDS_H

#include "analysis/verb.h"

dp_verb_main dp_cmd_attend;
dp_verb_main dp_cmd_bench;
dp_verb_main dp_cmd_device;
dp_verb_main dp_cmd_diff;
dp_verb_main dp_cmd_fit;
dp_verb_main dp_cmd_guard;
dp_verb_main dp_cmd_record;
dp_verb_main dp_cmd_report;
dp_verb_main dp_cmd_matrix;
dp_verb_main dp_cmd_quantize;
dp_verb_main dp_cmd_swizzle;
dp_verb_main dp_cmd_table;
dp_verb_main dp_cmd_verify;
dp_verb_main dp_cmd_plot;
dp_verb_main dp_cmd_range;
dp_verb_main dp_cmd_capture;
dp_verb_main dp_cmd_cases;

#endif
