/* SPDX-License-Identifier: MIT
 *
 * How far a fit can be trusted: it is repeated without each unit, and on resampled groups.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit_search.h"
#include "analysis/torch_rand.h"
#include "formats/parallel.h"

/* ---- Every unit left out once -------------------------------------------------------------- */

bool dp_fit_cross_validate(dp_fit_task *whole, dp_error *error)
{
    const dp_fit_sample *sample = whole->sample;
    dp_fit_result *r = whole->result;
    const int folds = sample->units > 1 ? sample->units : 0;
    r->fold = calloc((size_t)folds + 1, sizeof *r->fold);
    if (r->fold == NULL) {
        return dp_fail(error, "fit: not enough memory");
    }
    bool good = true;
    for (int u = 0; good && u < folds; u++) {
        uint32_t others[DP_FIT_GROUPS];
        uint32_t own[DP_FIT_GROUPS];
        for (int g = 0; g < sample->groups; g++) {
            own[g] = g / DP_FIT_UNIT_GROUPS == u;
            others[g] = !own[g];
        }
        dp_fit_task task = *whole;
        task.weight = others;
        task.owner = u;
        dp_fit_joint joint;
        good = dp_fit_refine_best(&task, 1, &joint, error);
        dp_fit_fold *fold = &r->fold[u];
        if (good) {
            const dp_fit_visit *best = &r->visits[dp_fit_least(&task, &fold->held_in)];
            if (r->joint_searched && joint.count == joint.bound) {
                best = &r->visits[r->visit_count - 1]; /* as for the whole sample */
            }
            fold->map = best->map;
            fold->held_out = dp_fit_loss(dp_fit_measure_of(best->sums, own, sample->groups),
                                         whole->options->weights);
            r->held_in += fold->held_in / folds;
            r->held_out += fold->held_out / folds;
        }
    }
    r->folds = good ? folds : 0;
    return good;
}

/* ---- Bootstrap ----------------------------------------------------------------------------- */

void dp_fit_resample(uint64_t seed, size_t index, const uint16_t *filled, int count, int groups,
                     uint32_t *weight)
{
    memset(weight, 0, (size_t)groups * sizeof *weight);
    for (int g = 0; g < count; g++) {
        uint32_t word[4];
        dp_philox(seed ^ 0x5EEDu, index, (uint64_t)g, word);
        weight[filled[word[0] % (uint32_t)count]]++;
    }
}

int dp_fit_filled(const dp_fit_sample *sample, uint16_t *filled)
{
    bool some[DP_FIT_GROUPS] = {false};
    int count = 0;
    for (size_t i = 0; i < sample->count; i++) {
        some[sample->group[i]] = true;
    }
    for (int g = 0; g < sample->groups; g++) {
        if (some[g]) {
            filled[count++] = (uint16_t)g;
        }
    }
    return count;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 2.5 and 97.5 per cent of n values, which are sorted: order statistics on the outer side. */
static void percentiles(double *values, size_t n, double *low, double *high)
{
    qsort(values, n, sizeof *values, by_value);
    *low = values[(size_t)(0.025 * (double)(n - 1))];
    *high = values[(size_t)ceil(0.975 * (double)(n - 1))];
}

typedef struct {
    const dp_fit_task *task;
    uint16_t filled[DP_FIT_GROUPS];
    int count;
    dp_fit_map *map; /* [replicates] */
    double *loss;
    dp_error *error; /* of the replicate that failed */
} replicates;

/* Every replicate is fitted again: to its best visit, and for affine maps and codes alone by the
 * search that proves. */
static void fit_replicates(void *context, size_t first, size_t last, int thread)
{
    replicates *r = context;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        uint32_t weight[DP_FIT_GROUPS];
        dp_fit_task task = *r->task;
        dp_fit_resample(task.options->seed, i, r->filled, r->count, task.sample->groups, weight);
        task.weight = weight;
        r->map[i] = task.result->visits[dp_fit_least(&task, &r->loss[i])].map;
        if (task.result->joint_searched) {
            dp_fit_joint joint;
            if (!dp_fit_joint_find(task.sample, weight, dp_fit_plane_low, dp_fit_plane_high,
                                   &r->map[i], &joint, &r->error[i])) {
                continue;
            }
            int64_t all = 0;
            for (size_t k = 0; k < task.sample->count; k++) {
                all += weight[task.sample->group[k]];
            }
            r->map[i] = joint.map;
            r->loss[i] = task.options->weights.match * (1.0 - (double)joint.count / (double)all);
        }
    }
}

/* More visits where the replicates ended: points of the smallest box around them and a quarter of
 * its sides more. */
static void look_closer(dp_fit_task *task, const dp_fit_map *map, size_t n, uint64_t seed)
{
    enum { POINTS = 128 };
    const dp_fit_options *o = task->options;
    double low[DP_FIT_COEFFICIENTS], high[DP_FIT_COEFFICIENTS];
    for (int k = 0; k <= o->degree; k++) {
        low[k] = high[k] = (double)map[0].c[k];
        for (size_t i = 1; i < n; i++) {
            low[k] = fmin(low[k], (double)map[i].c[k]);
            high[k] = fmax(high[k], (double)map[i].c[k]);
        }
        const double more = 0.25 * (high[k] - low[k]) + 0.005 * (o->high[k] - o->low[k]);
        low[k] = fmax(low[k] - more, o->low[k]);
        high[k] = fmin(high[k] + more, o->high[k]);
    }
    for (uint32_t i = 0; i < POINTS && !task->failed; i++) {
        double c[DP_FIT_COEFFICIENTS] = {0};
        dp_fit_sobol(seed, i, o->degree + 1, c);
        for (int k = 0; k <= o->degree; k++) {
            c[k] = low[k] + c[k] * (high[k] - low[k]);
        }
        (void)dp_fit_visit_map(task, c);
    }
}

static size_t count_distinct(const dp_fit_map *map, size_t n)
{
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) {
            seen = true;
            for (int c = 0; c < DP_FIT_COEFFICIENTS; c++) {
                seen = seen && map[i].c[c] == map[k].c[c];
            }
        }
        distinct += !seen;
    }
    return distinct;
}

static bool summarise(const replicates *r, size_t n, dp_fit_result *result, dp_error *error)
{
    double *values = malloc(n * sizeof *values);
    if (values == NULL) {
        return dp_fail(error, "fit: not enough memory for %zu replicates: use fewer", n);
    }
    for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
        for (size_t i = 0; i < n; i++) {
            values[i] = (double)r->map[i].c[k];
        }
        percentiles(values, n, &result->low[k], &result->high[k]);
    }
    memcpy(values, r->loss, n * sizeof *values);
    percentiles(values, n, &result->loss_low, &result->loss_high);
    result->replicates = n;
    result->distinct = count_distinct(r->map, n);
    free(values);
    return true;
}

bool dp_fit_bootstrap(dp_fit_task *task, dp_error *error)
{
    const size_t n = task->options->bootstrap;
    if (n == 0) {
        return true;
    }
    replicates r = {.task = task,
                    .map = calloc(n, sizeof *r.map),
                    .loss = calloc(n, sizeof *r.loss),
                    .error = calloc(n, sizeof *r.error)};
    bool good = (r.map != NULL && r.loss != NULL && r.error != NULL) ||
                dp_fail(error, "fit: not enough memory for %zu replicates: use fewer", n);
    if (good) {
        r.count = dp_fit_filled(task->sample, r.filled);
    }
    if (good && r.count >= DP_FIT_DRAWN) {
        const int rounds = task->result->joint_searched ? 0 : 2;
        for (int round = 0; round <= rounds; round++) {
            dp_parallel_for(task->sample->threads, n, 1, fit_replicates, &r);
            if (round < rounds) {
                look_closer(task, r.map, n, task->options->seed + 1 + (uint64_t)round);
            }
        }
        for (size_t i = 0; good && i < n; i++) {
            good = r.error[i].text[0] == '\0' || dp_fail(error, "%s", r.error[i].text);
        }
        good = good && summarise(&r, n, task->result, error);
    }
    free(r.map);
    free(r.loss);
    free(r.error);
    return good && (!task->failed || dp_fail(error, "fit: not enough memory: use fewer starts"));
}

bool dp_fit_spread_of(const dp_fit_sample *sample, const dp_fit_options *options,
                      const dp_fit_sums *sums, const dp_fit_sums *other, dp_fit_spread *spread,
                      dp_error *error)
{
    const size_t n = options->bootstrap;
    double *values = malloc((n + 1) * sizeof *values);
    uint16_t filled[DP_FIT_GROUPS];
    uint32_t weight[DP_FIT_GROUPS];
    *spread = (dp_fit_spread){NAN, NAN, NAN};
    if (values == NULL) {
        return dp_fail(error, "fit: not enough memory for %zu replicates: use fewer", n);
    }
    const int count = dp_fit_filled(sample, filled);
    double beaten = 0.0;
    for (size_t i = 0; i < n; i++) {
        dp_fit_resample(options->seed, i, filled, count, sample->groups, weight);
        values[i] = dp_fit_loss(dp_fit_measure_of(sums, weight, sample->groups), options->weights);
        beaten += other != NULL &&
                  values[i] > dp_fit_loss(dp_fit_measure_of(other, weight, sample->groups),
                                          options->weights);
    }
    if (n > 0 && count >= DP_FIT_DRAWN) {
        percentiles(values, n, &spread->low, &spread->high);
        spread->beaten = other != NULL ? beaten / (double)n : NAN;
    }
    free(values);
    return true;
}
