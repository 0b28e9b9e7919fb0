/* SPDX-License-Identifier: MIT
 *
 * The rates of one input as rows of a history: a dump against the oracle, a pair of dumps, or a
 * file that diff, range or attend --codes wrote.
 */
#ifndef DP_ANALYSIS_RATES_H
#define DP_ANALYSIS_RATES_H

#include "analysis/diff.h"
#include "analysis/history.h"
#include "analysis/options.h"
#include "analysis/range_study.h"

/* Rows that grow. */
typedef struct {
    dp_run_row *rows;
    size_t count;
} dp_rates;
void dp_rates_free(dp_rates *rates);
/* One more row, all unknown; NULL when memory is short. */
dp_run_row *dp_rates_add(dp_rates *rates, dp_error *error);

/* Elements and mismatches of every stage, first wrong dataset, diagnosis. */
void dp_rates_of_diff(dp_run_row *row, const dp_diff_result *result);
/* What a dump says about itself: policy, epoch, device, producer. */
void dp_rates_of_attributes(dp_run_row *row, const dp_dump *dump);
/* Codes, scales and lost mass of P from the kernel's codes and bytes; the output against BF16
 * attention of the inputs, where the dump has both. What it does not hold stays unknown. */
bool dp_rates_of_dump(dp_run_row *row, const dp_dump *dump, int threads, dp_error *error);
/* The output of a dump against that of another. */
bool dp_rates_of_pair(dp_run_row *row, const dp_dump *dump, const dp_dump *other, dp_error *error);
/* One row a case and format; their series begin with `series`. */
bool dp_rates_of_range(dp_rates *rates, const char *series, const dp_range_study *study,
                       dp_error *error);

typedef struct {
    const char *series;  /* NULL: the file's name without folder and .h5 */
    const char *against; /* the other dump of a pair, or NULL            */
    dp_dump_overrides overrides;
    dp_diff_rules rules;
    int threads;
} dp_rates_options;
/* The rows of a file of any kind that has some. */
bool dp_rates_of_file(dp_rates *rates, const char *path, const dp_rates_options *options,
                      dp_error *error);

/* Before the work: are these conditions of a verb without a history? */
bool dp_rates_check(const dp_texts *conditions, dp_error *error);
/* --fail-if on one comparison: *failed when a condition holds. Rates beyond the counts of
 * mismatches are measured when a condition asks for them. */
bool dp_rates_judge_diff(const dp_texts *conditions, const dp_diff_job *job,
                         const dp_diff_result *result, bool *failed, dp_error *error);
/* The same on every case and format of a study. */
bool dp_rates_judge_range(const dp_texts *conditions, const dp_range_study *study, bool *failed,
                          dp_error *error);

#endif
