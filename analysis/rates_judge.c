/* SPDX-License-Identifier: MIT
 *
 * --fail-if of the verbs that have no history.
 */
#include <stdio.h>

#include "analysis/condition.h"
#include "analysis/rates.h"

/* Columns of a dump that a comparison by stages does not give. */
static bool want_rates(const dp_conditions *conditions)
{
    bool want = false;
    for (int c = DP_RUN_CODE_MATCH; c < DP_RUN_NUMBERS; c++) {
        want = want || dp_conditions_use(conditions, (dp_run_number)c);
    }
    return want;
}

bool dp_rates_check(const dp_texts *texts, dp_error *error)
{
    dp_run_row none = {{{0}}, {0}, {0}};
    bool failed = false;
    dp_conditions *conditions = dp_conditions_parse(texts->item, texts->count, error);
    const bool good =
        conditions != NULL && (!dp_conditions_use_history(conditions) ||
                               dp_conditions_judge(conditions, &none, 1, NULL, &failed, error));
    dp_conditions_free(conditions);
    return good;
}

bool dp_rates_judge_diff(const dp_texts *texts, const dp_diff_job *job,
                         const dp_diff_result *result, bool *failed, dp_error *error)
{
    dp_run_row row = {{{0}}, {0}, {0}};
    dp_conditions *conditions = dp_conditions_parse(texts->item, texts->count, error);
    bool good = conditions != NULL;
    dp_run_set_text(&row, DP_RUN_SERIES, job->dump->path);
    dp_rates_of_diff(&row, result);
    if (good && want_rates(conditions)) {
        good = job->against != NULL ? dp_rates_of_pair(&row, job->dump, job->against, error)
                                    : dp_rates_of_dump(&row, job->dump, job->threads, error);
    }
    good = good && dp_conditions_judge(conditions, &row, 1, NULL, failed, error);
    dp_conditions_free(conditions);
    return good;
}

bool dp_rates_judge_range(const dp_texts *texts, const dp_range_study *study, bool *failed,
                          dp_error *error)
{
    dp_rates rates = {0};
    dp_conditions *conditions = dp_conditions_parse(texts->item, texts->count, error);
    const bool good = conditions != NULL && dp_rates_of_range(&rates, "range", study, error) &&
                      dp_conditions_judge(conditions, rates.rows, rates.count, NULL, failed, error);
    dp_rates_free(&rates);
    dp_conditions_free(conditions);
    return good;
}
