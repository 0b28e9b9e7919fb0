/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/diff.h"

bool dp_hypothesis_run(const dp_hypothesis *hypothesis, const dp_unit *unit, void *out)
{
    memcpy(out, unit->out.data[hypothesis->id], dp_unit_bytes(unit, hypothesis->id));
    if (hypothesis->change == NULL) {
        return hypothesis->run(unit, hypothesis->argument, out);
    }
    dp_direct_p launch = unit->launch;
    hypothesis->change(&launch, hypothesis->argument);
    return dp_stage_run(unit, &launch, &unit->mma, hypothesis->id, out, NULL);
}

/* Keep the best few, the fewest mismatches left first. */
static void keep(dp_diff_result *result, dp_diff_finding finding)
{
    for (size_t i = 0; i < result->finding_count; i++) { /* one name once, by its best variant */
        if (strcmp(result->findings[i].name, finding.name) == 0 &&
            result->findings[i].left <= finding.left) {
            return;
        }
    }
    size_t at = result->finding_count;
    while (at > 0 && result->findings[at - 1].left > finding.left) {
        at--;
    }
    if (at == DP_DIFF_FINDINGS) {
        return;
    }
    const size_t last =
        result->finding_count < DP_DIFF_FINDINGS ? result->finding_count : DP_DIFF_FINDINGS - 1;
    memmove(&result->findings[at + 1], &result->findings[at],
            (last - at) * sizeof result->findings[0]);
    result->findings[at] = finding;
    result->finding_count = last + 1;
}

bool dp_diff_diagnose(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result,
                      dp_error *error)
{
    const dp_dump_id id = (dp_dump_id)result->first_wrong;
    const dp_diff_dataset *set = &result->set[id];
    size_t count = 0;
    size_t total = 0;
    for (; dp_hypothesis_at(total) != NULL; total++) {
        count += dp_hypothesis_at(total)->id == id;
    }
    result->tried = count;
    uint64_t *left = calloc(count + 1, sizeof *left); /* one more: the oracle */
    bool *applies = calloc(count + 1, sizeof *applies);
    void *out = malloc(dp_unit_bytes(unit, id));
    bool good = left != NULL && applies != NULL && out != NULL;
    if (!good) {
        (void)dp_fail(error, "diagnosis: not enough memory");
    }
    for (size_t i = 0; good && i < set->kept_count; i++) {
        good = dp_unit_load(unit, set->kept[i], error);
        left[count] += good ? dp_diff_count(unit, &job->rules, id, unit->out.data[id]) : 0;
        size_t at = 0;
        for (size_t n = 0; good && n < total; n++) {
            const dp_hypothesis *h = dp_hypothesis_at(n);
            if (h->id != id) {
                continue;
            }
            const bool fits = (i == 0 || applies[at]) && dp_hypothesis_run(h, unit, out);
            applies[at] = fits;
            left[at] += fits ? dp_diff_count(unit, &job->rules, id, out) : 0;
            at++;
        }
    }
    size_t at = 0;
    for (size_t n = 0; good && n < total; n++) {
        const dp_hypothesis *h = dp_hypothesis_at(n);
        if (h->id == id) {
            /* all, or all but a fiftieth */
            if (applies[at] && left[at] * 50 <= left[count]) {
                keep(result, (dp_diff_finding){h->name, h->meaning, left[count], left[at]});
            }
            at++;
        }
    }
    free(left);
    free(applies);
    free(out);
    return good;
}
