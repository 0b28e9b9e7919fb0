/* SPDX-License-Identifier: MIT
 *
 * Local refinement inside a box: NLopt's SBPLX (Rowan's subplex; nlopt.readthedocs.io) or, in a
 * build without NLopt, a shrinking pattern.
 */
#include <math.h>

#include "analysis/fit_search.h"

#if defined(DP_HAVE_NLOPT)
#include <nlopt.h>

typedef struct {
    dp_fit_loss_function *loss;
    void *context;
} bridge;

static double call(unsigned n, const double *c, double *gradient, void *context)
{
    const bridge *b = context;
    (void)n;
    (void)gradient;
    return b->loss(b->context, c);
}

bool dp_fit_refine(int n, const double *low, const double *high, double *c,
                   dp_fit_loss_function *loss, void *context)
{
    nlopt_opt opt = nlopt_create(NLOPT_LN_SBPLX, (unsigned)n);
    if (opt == NULL) {
        return false;
    }
    bridge b = {loss, context};
    double step[DP_FIT_COEFFICIENTS];
    double least;
    for (int i = 0; i < n; i++) {
        step[i] = 0.08 * (high[i] - low[i]);
    }
    (void)nlopt_set_lower_bounds(opt, low);
    (void)nlopt_set_upper_bounds(opt, high);
    (void)nlopt_set_min_objective(opt, call, &b);
    (void)nlopt_set_initial_step(opt, step);
    (void)nlopt_set_xtol_rel(opt, 1e-4);
    (void)nlopt_set_maxeval(opt, 60 * n);
    (void)nlopt_optimize(opt, c, &least);
    nlopt_destroy(opt);
    return true;
}

const char *dp_fit_refiner(void)
{
    return "NLopt SBPLX";
}
#else
bool dp_fit_refine(int n, const double *low, const double *high, double *c,
                   dp_fit_loss_function *loss, void *context)
{
    double best = loss(context, c);
    for (double radius = 0.08; radius > 1e-4;) {
        const double before = best;
        for (int i = 0; i < 2 * n; i++) {
            const int k = i / 2;
            const double old = c[k];
            const double to = old + (i % 2 == 0 ? radius : -radius) * (high[k] - low[k]);
            c[k] = fmin(fmax(to, low[k]), high[k]);
            const double here = loss(context, c);
            c[k] = here < best ? c[k] : old;
            best = here < best ? here : best;
        }
        radius = best < before ? radius : radius / 2;
    }
    return true;
}

const char *dp_fit_refiner(void)
{
    return "pattern search";
}
#endif
