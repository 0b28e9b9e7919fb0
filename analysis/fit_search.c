/* SPDX-License-Identifier: MIT
 *
 * Global search: scrambled Sobol starts and the published maps, the best of them refined. All
 * visits are kept with the sums of their groups, so that a start is judged once for the whole
 * sample, every fold and every replicate.
 */
#include "analysis/fit_search.h"

#include <math.h>
#include <stdlib.h>

double dp_fit_visit_map(dp_fit_task *task, const double *c)
{
    dp_fit_result *r = task->result;
    if (r->visit_count == r->room) {
        const size_t room = r->room > 0 ? 2 * r->room : 256;
        dp_fit_visit *more = realloc(r->visits, room * sizeof *more);
        if (more == NULL) {
            task->failed = true;
            return 1e30;
        }
        r->visits = more;
        r->room = room;
    }
    dp_fit_visit *v = &r->visits[r->visit_count];
    v->map = dp_fit_map_of(task->options->degree, c);
    v->owner = task->owner;
    v->sums = calloc((size_t)task->sample->groups, sizeof *v->sums);
    if (v->sums == NULL) {
        task->failed = true;
        return 1e30;
    }
    r->visit_count++;
    dp_fit_evaluate(task->sample, &v->map, dp_fit_parts(task->options->weights), v->sums);
    return dp_fit_loss(dp_fit_measure_of(v->sums, task->weight, task->sample->groups),
                       task->options->weights);
}

size_t dp_fit_least(const dp_fit_task *task, double *loss)
{
    size_t best = 0;
    *loss = INFINITY;
    for (size_t i = 0; i < task->result->visit_count; i++) {
        const dp_fit_visit *v = &task->result->visits[i];
        if (v->owner != -1 && v->owner != task->owner) {
            continue; /* looked for with other groups: it would know what is left out */
        }
        const double here = dp_fit_loss(
            dp_fit_measure_of(v->sums, task->weight, task->sample->groups), task->options->weights);
        if (here < *loss) {
            *loss = here;
            best = i;
        }
    }
    return best;
}

bool dp_fit_codes_alone(dp_fit_weights w)
{
    return w.match > 0.0 && !(w.mass > 0.0) && !(w.output > 0.0);
}

static double visit_of(void *context, const double *c)
{
    return dp_fit_visit_map(context, c);
}

/* Codes alone, a parabola or cubic: each coefficient in turn is moved to the middle of the best
 * interval of its line until none gains. */
static bool climb(dp_fit_task *task, double *c, dp_error *error)
{
    const dp_fit_options *o = task->options;
    double best = dp_fit_visit_map(task, c);
    for (int round = 0; round < 20; round++) {
        const double before = best;
        for (int i = 0; i <= o->degree; i++) {
            dp_fit_plateau plateau;
            const dp_fit_map map = dp_fit_map_of(o->degree, c);
            if (!dp_fit_plateau_find(task->sample, task->weight, &map, i, false, &plateau, error)) {
                return false;
            }
            const double old = c[i];
            const double middle = 0.5 * (plateau.low + plateau.high);
            c[i] = isfinite(middle) ? fmin(fmax(middle, o->low[i]), o->high[i]) : old;
            const double loss = dp_fit_visit_map(task, c);
            c[i] = loss < best ? c[i] : old;
            best = loss < best ? loss : best;
        }
        if (best >= before) {
            break;
        }
    }
    return true;
}

static void coefficients(const dp_fit_map *map, double *c)
{
    for (int i = 0; i < DP_FIT_COEFFICIENTS; i++) {
        c[i] = (double)map->c[i];
    }
}

static bool refine_start(dp_fit_task *task, const dp_fit_map *map, dp_error *error)
{
    const dp_fit_options *o = task->options;
    double c[DP_FIT_COEFFICIENTS];
    coefficients(map, c);
    for (int k = 0; k <= o->degree; k++) {
        c[k] = fmin(fmax(c[k], o->low[k]), o->high[k]); /* rounding to f32 may leave the box */
    }
    if (!dp_fit_refine(o->degree + 1, o->low, o->high, c, visit_of, task)) {
        return dp_fail(error, "fit: not enough memory for the optimiser");
    }
    return o->degree == 1 || !dp_fit_codes_alone(o->weights) || climb(task, c, error);
}

bool dp_fit_refine_best(dp_fit_task *task, size_t locals, dp_fit_joint *joint, dp_error *error)
{
    const dp_fit_options *o = task->options;
    const size_t seen = task->result->visit_count;
    double *loss = calloc(seen + 1, sizeof *loss);
    if (loss == NULL) {
        return dp_fail(error, "fit: not enough memory: use fewer starts");
    }
    bool good = true;
    for (size_t i = 0; i < seen; i++) {
        const dp_fit_visit *v = &task->result->visits[i];
        loss[i] = v->owner == -1
                      ? dp_fit_loss(dp_fit_measure_of(v->sums, task->weight, task->sample->groups),
                                    o->weights)
                      : INFINITY;
    }
    for (size_t l = 0; good && l < locals && seen > 0; l++) {
        size_t best = 0;
        for (size_t i = 1; i < seen; i++) {
            best = loss[i] < loss[best] ? i : best;
        }
        if (!(loss[best] < INFINITY)) {
            break;
        }
        loss[best] = INFINITY;
        const dp_fit_map map = task->result->visits[best].map;
        good = refine_start(task, &map, error);
    }
    free(loss);
    if (good && o->degree == 1 && dp_fit_codes_alone(o->weights)) {
        double least;
        const dp_fit_map start = task->result->visits[dp_fit_least(task, &least)].map;
        good = dp_fit_joint_find(task->sample, task->weight, dp_fit_plane_low, dp_fit_plane_high,
                                 &start, joint, error);
        double c[DP_FIT_COEFFICIENTS];
        coefficients(&joint->map, c);
        (void)dp_fit_visit_map(task, c);
    }
    return good && (!task->failed || dp_fail(error, "fit: not enough memory: use fewer starts"));
}

static void visit_starts(dp_fit_task *task)
{
    const dp_fit_options *o = task->options;
    double c[DP_FIT_COEFFICIENTS] = {0};
    for (size_t i = 0; i < o->starts && !task->failed; i++) {
        dp_fit_sobol(o->seed, (uint32_t)i, o->degree + 1, c);
        for (int k = 0; k <= o->degree; k++) {
            c[k] = o->low[k] + c[k] * (o->high[k] - o->low[k]);
        }
        (void)dp_fit_visit_map(task, c);
    }
    /* Published maps of this degree join the starts: the result is never worse than they are. */
    for (size_t i = 0; i < dp_forward_policy_count() && !task->failed; i++) {
        const dp_forward_policy *policy = dp_forward_policy_at(i);
        if (policy->map != DP_MAP_EX2 && policy->degree == o->degree) {
            for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
                c[k] = (double)policy->coefficient[k];
            }
            (void)dp_fit_visit_map(task, c);
        }
    }
}

/* All measures of the result, those too that its objective does not ask for. */
static bool measure_best(dp_fit_task *task, const dp_fit_visit *best, dp_error *error)
{
    const dp_fit_sample *sample = task->sample;
    dp_fit_sums *sums = calloc((size_t)sample->groups + 1, sizeof *sums);
    if (sums == NULL) {
        return dp_fail(error, "fit: not enough memory");
    }
    task->result->best = best->map;
    dp_fit_evaluate(sample, &best->map, DP_FIT_ALL, sums);
    task->result->measure = dp_fit_measure_of(sums, NULL, sample->groups);
    free(sums);
    return true;
}

bool dp_fit_search(const dp_fit_sample *sample, const dp_fit_options *options,
                   dp_fit_result *result, dp_error *error)
{
    memset(result, 0, sizeof *result);
    dp_fit_task task = {.sample = sample, .options = options, .result = result, .owner = -1};
    visit_starts(&task);
    task.owner = -2;
    result->joint_searched = options->degree == 1 && dp_fit_codes_alone(options->weights);
    bool good = !task.failed || dp_fail(error, "fit: not enough memory: use fewer starts");
    good = good && dp_fit_refine_best(&task, options->locals, &result->joint, error);
    if (good) {
        const dp_fit_visit *best = &result->visits[dp_fit_least(&task, &result->loss)];
        if (result->joint_searched && result->joint.count == result->joint.bound) {
            best = &result->visits[result->visit_count - 1]; /* of several optima the widest */
        }
        good = measure_best(&task, best, error) && dp_fit_cross_validate(&task, error) &&
               dp_fit_bootstrap(&task, error);
    }
    if (!good) {
        dp_fit_result_free(result);
    }
    return good;
}

void dp_fit_result_free(dp_fit_result *result)
{
    for (size_t i = 0; i < result->visit_count; i++) {
        free(result->visits[i].sums);
    }
    free(result->visits);
    free(result->fold);
    memset(result, 0, sizeof *result);
}
