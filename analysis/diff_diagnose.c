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

void dp_diff_keep(dp_diff_result *result, const dp_diff_finding *finding)
{
    for (size_t i = 0; i < result->finding_count; i++) { /* one name once, by its best variant */
        if (strcmp(result->findings[i].name, finding->name) == 0 &&
            result->findings[i].left <= finding->left) {
            return;
        }
    }
    size_t at = result->finding_count;
    while (at > 0 && result->findings[at - 1].left > finding->left) {
        at--;
    }
    if (at == DP_DIFF_FINDINGS) {
        return;
    }
    const size_t last =
        result->finding_count < DP_DIFF_FINDINGS ? result->finding_count : DP_DIFF_FINDINGS - 1;
    memmove(&result->findings[at + 1], &result->findings[at],
            (last - at) * sizeof result->findings[0]);
    result->findings[at] = *finding;
    result->finding_count = last + 1;
}

typedef struct {
    uint64_t *left; /* one a hypothesis, and one more: the oracle */
    bool *applies;
    char (*note)[DP_UNIT_NOTE];
    void *out;
    size_t total, count;
} trial;

static bool make_trial(trial *t, const dp_unit *unit, dp_dump_id id, dp_error *error)
{
    memset(t, 0, sizeof *t);
    for (; dp_hypothesis_at(t->total) != NULL; t->total++) {
        t->count += dp_hypothesis_at(t->total)->id == id;
    }
    t->left = calloc(t->count + 1, sizeof *t->left);
    t->applies = calloc(t->count + 1, sizeof *t->applies);
    t->note = calloc(t->count + 1, sizeof *t->note);
    t->out = malloc(dp_unit_bytes(unit, id));
    return (t->left != NULL && t->applies != NULL && t->note != NULL && t->out != NULL) ||
           dp_fail(error, "diagnosis: not enough memory");
}

static void free_trial(trial *t)
{
    free(t->left);
    free(t->applies);
    free(t->note);
    free(t->out);
}

/* Every hypothesis of the dataset on the strip that is loaded. */
static void try_strip(const dp_diff_job *job, dp_unit *unit, dp_dump_id id, uint64_t mismatches,
                      bool first, trial *t)
{
    size_t at = 0;
    t->left[t->count] += dp_diff_count(unit, &job->rules, id, unit->out.data[id]);
    for (size_t n = 0; n < t->total; n++) {
        const dp_hypothesis *h = dp_hypothesis_at(n);
        if (h->id != id) {
            continue;
        }
        unit->note = t->note[at];
        const bool fits = (first || t->applies[at]) && dp_hypothesis_run(h, unit, t->out);
        t->left[at] += fits ? dp_diff_count(unit, &job->rules, id, t->out) : 0;
        /* what leaves a fiftieth of all mismatches already explains nothing: not tried again */
        t->applies[at] = fits && t->left[at] * 50 <= mismatches;
        at++;
    }
    unit->note = NULL;
}

/* What no single recomputation shows: a factor of a head or tile, or single bits. */
static void look_at_pattern(const dp_dump *dump, dp_diff_result *result)
{
    const dp_dump_id id = (dp_dump_id)result->first_wrong;
    const dp_diff_dataset *set = &result->set[id];
    const bool precise = dp_dump_datasets[id].kind == DP_DUMP_F32;
    const size_t tile = id == DP_DUMP_RAW ? DP_TILE : DP_BLOCK;
    const size_t totals[DP_GROUP_AXES] = {dump->head_count, (dump->queries + DP_TILE - 1) / DP_TILE,
                                          (dp_diff_columns(dump, id) + tile - 1) / tile};
    dp_diff_finding f = {.before = set->mismatches};
    for (int offset = 0; offset < 2 && f.name == NULL; offset++) {
        const bool shifts = id == DP_DUMP_LSE || id == DP_DUMP_ROW_REF;
        if ((precise || id == DP_DUMP_O) && (offset == 0 || shifts)) {
            f.name = dp_diff_factor(&set->groups, totals, offset != 0, precise, f.detail);
        }
    }
    f.meaning = "the data are the oracle's times a factor, or plus a constant";
    const bool plain = f.name != NULL && strchr(f.name, '-') == NULL; /* the same everywhere */
    if (f.name == NULL && set->mismatches <= 4 && set->spread.one_bit == set->mismatches) {
        f.name = "single-bit";
        f.meaning = "a few elements differ in one bit each: too few to tell a rounding from a race "
                    "or a memory fault";
    }
    if (f.name != NULL && (result->finding_count == 0 || (!plain && f.detail[0] != '\0'))) {
        dp_diff_keep(result, &f);
    }
}

bool dp_diff_diagnose(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result,
                      dp_error *error)
{
    const dp_dump_id id = (dp_dump_id)result->first_wrong;
    const dp_diff_dataset *set = &result->set[id];
    trial t;
    bool good = make_trial(&t, unit, id, error);
    unit->last = id; /* later stages explain nothing */
    result->tried = t.count;
    for (size_t i = 0; good && i < set->kept_count; i++) {
        good = dp_unit_load(unit, set->kept[i], error);
        if (good && i == 0 && id == DP_DUMP_P_PAYLOAD) {
            dp_diff_values(unit, result);
        }
        if (good) {
            try_strip(job, unit, id, set->mismatches, i == 0, &t);
        }
    }
    size_t at = 0;
    for (size_t n = 0; good && n < t.total; n++) {
        const dp_hypothesis *h = dp_hypothesis_at(n);
        if (h->id != id) {
            continue;
        }
        if (t.applies[at] && t.left[at] * 50 <= t.left[t.count]) { /* all, or all but a fiftieth */
            dp_diff_finding f = {h->name, h->meaning, t.left[t.count], t.left[at], ""};
            memcpy(f.detail, t.note[at], sizeof f.detail);
            dp_diff_keep(result, &f);
        }
        at++;
    }
    free_trial(&t);
    if (good && id <= DP_DUMP_V_SCALE) {
        good = dp_diff_presets(job, unit, result, error);
    }
    if (good && result->finding_count == 0) {
        good = dp_diff_upstream(job, unit, result, error);
    }
    if (good) {
        look_at_pattern(job->dump, result);
    }
    return good;
}
