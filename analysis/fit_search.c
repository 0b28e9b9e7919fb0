/* SPDX-License-Identifier: MIT
 *
 * Global search: scrambled Sobol starts, the best of them refined by NLopt's SBPLX (Rowan's
 * subplex; nlopt.readthedocs.io) or, in a build without NLopt, by a shrinking pattern. Everything
 * visited is kept with the sums of its groups, so that bootstrap and cross-validation cost no
 * evaluation.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit.h"
#include "analysis/torch_rand.h"

#if defined(DP_HAVE_NLOPT)
#include <nlopt.h>
#endif

/* Joe and Kuo, SIAM J. Sci. Comput. 30 (2008): dimensions 2 to 4 of new-joe-kuo-6. */
static uint32_t direction(int dimension, int bit)
{
    static const struct {
        int s;
        uint32_t a, m[3];
    } rows[4] = {{0, 0, {0}}, {1, 0, {1}}, {2, 1, {1, 3}}, {3, 1, {1, 3, 1}}};
    if (dimension == 0) {
        return 1u << (31 - bit);
    }
    const int s = rows[dimension].s;
    uint32_t v[32];
    for (int i = 0; i <= bit; i++) {
        if (i < s) {
            v[i] = rows[dimension].m[i] << (31 - i);
            continue;
        }
        v[i] = v[i - s] ^ (v[i - s] >> s);
        for (int k = 1; k < s; k++) {
            v[i] ^= ((rows[dimension].a >> (s - 1 - k)) & 1u) * v[i - k];
        }
    }
    return v[bit];
}

void dp_fit_sobol(uint64_t seed, uint32_t index, int dimensions, double *point)
{
    uint32_t shift[4];
    dp_philox(seed, 0, 0, shift);
    for (int d = 0; d < dimensions && d < 4; d++) {
        uint32_t bits = shift[d];
        for (int bit = 0; bit < 32; bit++) {
            bits ^= ((index >> bit) & 1u) * direction(d, bit);
        }
        point[d] = ((double)bits + 0.5) * 0x1p-32;
    }
}

typedef struct {
    const dp_fit_sample *sample;
    const dp_fit_options *options;
    dp_fit_result *result;
    bool failed;
} search;

/* Evaluate and remember; the index of the visit. */
static double visit(search *s, const double *c)
{
    dp_fit_result *r = s->result;
    if (r->visit_count == r->room) {
        const size_t room = r->room > 0 ? 2 * r->room : 256;
        dp_fit_visit *more = realloc(r->visits, room * sizeof *more);
        if (more == NULL) {
            s->failed = true;
            return 1e30;
        }
        r->visits = more;
        r->room = room;
    }
    dp_fit_visit *v = &r->visits[r->visit_count];
    v->map = dp_fit_map_of(s->options->degree, c);
    v->sums = calloc((size_t)s->sample->groups, sizeof *v->sums);
    if (v->sums == NULL) {
        s->failed = true;
        return 1e30;
    }
    r->visit_count++;
    dp_fit_evaluate(s->sample, &v->map, s->options->weights.output > 0.0, v->sums);
    return dp_fit_loss(dp_fit_measure_of(v->sums, NULL, s->sample->groups), s->options->weights);
}

/* The visit of least loss under group weights (NULL: all alike), by number. */
static size_t least(const search *s, const uint32_t *weight, double *loss)
{
    size_t best = 0;
    *loss = INFINITY;
    for (size_t i = 0; i < s->result->visit_count; i++) {
        const double here =
            dp_fit_loss(dp_fit_measure_of(s->result->visits[i].sums, weight, s->sample->groups),
                        s->options->weights);
        if (here < *loss) {
            *loss = here;
            best = i;
        }
    }
    return best;
}

#if defined(DP_HAVE_NLOPT)
static double nlopt_visit(unsigned n, const double *c, double *gradient, void *context)
{
    (void)n;
    (void)gradient;
    return visit(context, c);
}

static void refine(search *s, double *c)
{
    const unsigned n = (unsigned)s->options->degree + 1;
    nlopt_opt opt = nlopt_create(NLOPT_LN_SBPLX, n);
    if (opt == NULL) {
        s->failed = true;
        return;
    }
    double step[DP_FIT_COEFFICIENTS];
    double loss;
    for (unsigned i = 0; i < n; i++) {
        step[i] = 0.08 * (s->options->high[i] - s->options->low[i]);
    }
    (void)nlopt_set_lower_bounds(opt, s->options->low);
    (void)nlopt_set_upper_bounds(opt, s->options->high);
    (void)nlopt_set_min_objective(opt, nlopt_visit, s);
    (void)nlopt_set_initial_step(opt, step);
    (void)nlopt_set_xtol_rel(opt, 1e-4);
    (void)nlopt_set_maxeval(opt, 60 * (int)n);
    (void)nlopt_optimize(opt, c, &loss);
    nlopt_destroy(opt);
}
#else
static void refine(search *s, double *c)
{
    const int n = s->options->degree + 1;
    double best = visit(s, c);
    for (double radius = 0.08; radius > 1e-4;) {
        const double before = best;
        for (int i = 0; i < 2 * n; i++) {
            const int k = i / 2;
            const double old = c[k];
            const double to =
                old + (i % 2 == 0 ? radius : -radius) * (s->options->high[k] - s->options->low[k]);
            c[k] = fmin(fmax(to, s->options->low[k]), s->options->high[k]);
            const double loss = visit(s, c);
            c[k] = loss < best ? c[k] : old;
            best = loss < best ? loss : best;
        }
        radius = best < before ? radius : radius / 2;
    }
}
#endif

static void coefficients(const dp_fit_map *map, double *c)
{
    for (int i = 0; i < DP_FIT_COEFFICIENTS; i++) {
        c[i] = (double)map->c[i];
    }
}

/* Codes alone: the loss is constant between breakpoints, so each coefficient in turn is moved to
 * the middle of the best interval of its line until none gains. */
static bool climb(search *s, double *c, dp_error *error)
{
    double best = visit(s, c);
    for (int round = 0; round < 20; round++) {
        const double before = best;
        for (int i = 0; i <= s->options->degree; i++) {
            dp_fit_plateau plateau;
            const dp_fit_map map = dp_fit_map_of(s->options->degree, c);
            if (!dp_fit_plateau_find(s->sample, &map, i, false, &plateau, error)) {
                return false;
            }
            const double old = c[i];
            const double middle = 0.5 * (plateau.low + plateau.high);
            c[i] = isfinite(middle) ? fmin(fmax(middle, s->options->low[i]), s->options->high[i])
                                    : old;
            const double loss = visit(s, c);
            c[i] = loss < best ? c[i] : old;
            best = loss < best ? loss : best;
        }
        if (best >= before) {
            break;
        }
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Percentiles of the best visit over resampled groups. */
static bool bootstrap(search *s, dp_error *error)
{
    const size_t n = s->options->bootstrap;
    const int groups = s->sample->groups;
    double *values = malloc((n + 1) * (DP_FIT_COEFFICIENTS + 1) * sizeof *values);
    if (values == NULL) {
        return dp_fail(error, "fit: not enough memory for %zu replicates: use fewer", n);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t weight[DP_FIT_GROUPS] = {0};
        for (int g = 0; g < groups; g++) {
            uint32_t word[4];
            dp_philox(s->options->seed ^ 0x5EEDu, i, (uint64_t)g, word);
            weight[word[0] % (uint32_t)groups]++;
        }
        double loss;
        const dp_fit_map *map = &s->result->visits[least(s, weight, &loss)].map;
        for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
            values[(size_t)k * n + i] = (double)map->c[k];
        }
        values[DP_FIT_COEFFICIENTS * n + i] = loss;
    }
    for (size_t k = 0; n > 0 && k <= DP_FIT_COEFFICIENTS; k++) {
        qsort(values + k * n, n, sizeof *values, by_value);
        const double low = values[k * n + (size_t)(0.025 * (double)(n - 1))];
        const double high = values[k * n + (size_t)ceil(0.975 * (double)(n - 1))];
        if (k < DP_FIT_COEFFICIENTS) {
            s->result->low[k] = low;
            s->result->high[k] = high;
        } else {
            s->result->loss_low = low;
            s->result->loss_high = high;
        }
    }
    free(values);
    return true;
}

/* Every unit left out once. */
static void cross_validate(search *s)
{
    const dp_fit_sample *sample = s->sample;
    dp_fit_result *r = s->result;
    r->folds = sample->units > 1 ? sample->units : 0;
    for (int u = 0; u < r->folds; u++) {
        uint32_t others[DP_FIT_GROUPS];
        uint32_t own[DP_FIT_GROUPS];
        for (int g = 0; g < sample->groups; g++) {
            own[g] = sample->unit[g] == u;
            others[g] = !own[g];
        }
        double loss;
        const dp_fit_visit *best = &r->visits[least(s, others, &loss)];
        r->held_in += loss / r->folds;
        r->held_out +=
            dp_fit_loss(dp_fit_measure_of(best->sums, own, sample->groups), s->options->weights) /
            r->folds;
    }
}

static bool by_codes_alone(const dp_fit_weights *w)
{
    return w->match > 0.0 && !(w->mass > 0.0) && !(w->output > 0.0);
}

/* Refine the best `locals` of the starts; a start near one already refined is passed over. */
static bool refine_best(search *s, size_t starts, dp_error *error)
{
    const dp_fit_options *o = s->options;
    double *loss = malloc(starts * sizeof *loss);
    bool good = loss != NULL || dp_fail(error, "fit: not enough memory");
    for (size_t i = 0; good && i < starts; i++) {
        loss[i] = dp_fit_loss(dp_fit_measure_of(s->result->visits[i].sums, NULL, s->sample->groups),
                              o->weights);
    }
    for (size_t l = 0; good && l < o->locals && l < starts; l++) {
        size_t best = 0;
        for (size_t i = 1; i < starts; i++) {
            best = loss[i] < loss[best] ? i : best;
        }
        loss[best] = INFINITY;
        double c[DP_FIT_COEFFICIENTS];
        coefficients(&s->result->visits[best].map, c);
        for (int k = 0; k <= o->degree; k++) {
            c[k] = fmin(fmax(c[k], o->low[k]), o->high[k]); /* rounding to f32 may leave the box */
        }
        refine(s, c);
        if (by_codes_alone(&o->weights)) {
            good = climb(s, c, error);
        }
    }
    free(loss);
    return good;
}

bool dp_fit_search(const dp_fit_sample *sample, const dp_fit_options *options,
                   dp_fit_result *result, dp_error *error)
{
    memset(result, 0, sizeof *result);
    search s = {.sample = sample, .options = options, .result = result};
    for (size_t i = 0; i < options->starts && !s.failed; i++) {
        double c[DP_FIT_COEFFICIENTS];
        dp_fit_sobol(options->seed, (uint32_t)i, options->degree + 1, c);
        for (int k = 0; k <= options->degree; k++) {
            c[k] = options->low[k] + c[k] * (options->high[k] - options->low[k]);
        }
        (void)visit(&s, c);
    }
    /* Published maps of this degree join the starts: the result is never worse than they are. */
    size_t starts = options->starts;
    for (size_t i = 0; i < dp_forward_policy_count() && !s.failed; i++) {
        const dp_forward_policy *policy = dp_forward_policy_at(i);
        if (policy->map != DP_MAP_EX2 && policy->degree == options->degree) {
            double c[DP_FIT_COEFFICIENTS];
            for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
                c[k] = (double)policy->coefficient[k];
            }
            (void)visit(&s, c);
            starts++;
        }
    }
    const bool good = !s.failed && refine_best(&s, starts, error);
    if (!good || s.failed) {
        dp_fit_result_free(result);
        return dp_fail(error, "fit: not enough memory for the search: use fewer starts");
    }
    const dp_fit_visit *best = &result->visits[least(&s, NULL, &result->loss)];
    result->best = best->map;
    result->measure = dp_fit_measure_of(best->sums, NULL, sample->groups);
    cross_validate(&s);
    return bootstrap(&s, error);
}

void dp_fit_result_free(dp_fit_result *result)
{
    for (size_t i = 0; i < result->visit_count; i++) {
        free(result->visits[i].sums);
    }
    free(result->visits);
    memset(result, 0, sizeof *result);
}
