/* SPDX-License-Identifier: MIT
 *
 * The conditions of --fail-if, on the rates of a run and of the runs before it:
 *
 *   conditions  = condition { "," condition }
 *   condition   = sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum
 *   sum         = product { ("+" | "-") product }
 *   product     = factor { ("*" | "/") factor }
 *   factor      = ["-"] (NUMBER ["%"] | NAME | REFERENCE ["." NAME] | "(" sum ")")
 *   REFERENCE   = "last" | "best" | "median"
 *
 * NAME is a column of history.h. A reference is over the earlier runs of the same series and kind
 * that did not fail; without a name it is that of the first NAME of its condition.
 */
#ifndef DP_ANALYSIS_CONDITION_H
#define DP_ANALYSIS_CONDITION_H

#include "analysis/history.h"

typedef struct dp_conditions dp_conditions;

/* Parse texts (each holds one or more conditions). NULL with an error that says where, and for an
 * unknown name which there are. */
dp_conditions *dp_conditions_parse(const char *const *texts, size_t count, dp_error *error);
void dp_conditions_free(dp_conditions *conditions);
/* Does a condition read this column of the run itself? Or earlier runs? NULL reads nothing. */
bool dp_conditions_use(const dp_conditions *conditions, dp_run_number column);
bool dp_conditions_use_history(const dp_conditions *conditions);

/* Judge rows against the earlier runs (NULL: none) and print a line on standard error for each
 * condition that holds; the row's DP_RUN_FAILED receives them. A comparison with NaN holds. One
 * that lacks an earlier run does not, and a line says so; one whose columns no row knows is an
 * error. *failed: some condition holds. */
bool dp_conditions_judge(const dp_conditions *conditions, dp_run_row *rows, size_t count,
                         const dp_history *history, bool *failed, dp_error *error);

/* For the help of a verb: the columns, one a line. The caller frees it; NULL when memory is short.
 */
char *dp_conditions_help(const char *before);

#endif
