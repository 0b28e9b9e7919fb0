/* SPDX-License-Identifier: MIT */
#include "analysis/range_study.h"

#include <stdio.h>
#include <stdlib.h>

void dp_range_study_free(dp_range_study *study)
{
    free(study->cases);
    free(study->results);
    study->cases = NULL;
    study->results = NULL;
    study->case_count = 0;
}

/* Make room for `more` cases. */
static bool grow(dp_range_study *study, size_t more, dp_error *error)
{
    const size_t count = study->case_count + more;
    dp_range_case *cases = realloc(study->cases, count * sizeof *cases);
    if (cases != NULL) {
        study->cases = cases;
    }
    dp_range_result *results =
        realloc(study->results, count * study->format_count * sizeof *results);
    if (results != NULL) {
        study->results = results;
    }
    return (cases != NULL && results != NULL) ||
           dp_fail(error, "range: not enough memory for %zu cases: use fewer heads or files",
                   count);
}

bool dp_range_study_add(dp_range_study *study, const dp_tensors *tensors,
                        const dp_range_options *options, const dp_range_case *like, dp_error *error)
{
    const size_t more = dp_range_cases(tensors, options);
    if (!grow(study, more, error) ||
        !dp_range_run(tensors, study->formats, study->format_count, options,
                      study->results + study->case_count * study->format_count, error)) {
        return false;
    }
    for (size_t i = 0; i < more; i++) {
        dp_range_case *made = &study->cases[study->case_count + i];
        *made = *like;
        made->seq = tensors->kv_len;
        made->heads = tensors->batch * tensors->q_heads;
        made->head = options->per_head ? (int64_t)i : -1;
        made->rows = dp_range_rows(tensors, options);
        made->queries = tensors->q_len;
        made->dim = tensors->dim;
        made->softmax_scale = tensors->softmax_scale;
        made->causal = tensors->causal;
    }
    study->case_count += more;
    return true;
}
