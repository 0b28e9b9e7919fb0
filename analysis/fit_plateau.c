/* SPDX-License-Identifier: MIT
 *
 * Where on a line of one coefficient a finite sample changes its matches. Score i has its ideal
 * code while y = c_k x^k + rest stays inside one rounding interval, so while c_k stays inside one
 * interval: sorting the ends of all of them gives every value the count can take.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit.h"

/* Code k is that of values between MIDPOINT[k] and MIDPOINT[k + 1]. */
static const double MIDPOINT[9] = {-INFINITY, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, INFINITY};

typedef struct {
    double at;
    double step; /* +1: a score starts to match, -1: it stops */
} breakpoint;

static int by_place(const void *a, const void *b)
{
    const breakpoint *x = a;
    const breakpoint *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Ends of the interval of coefficient `index` in which score i matches. */
static void interval_of(const dp_fit_map *map, int index, double x, int ideal, double *low,
                        double *high)
{
    const double at = x > (double)map->floor ? x : (double)map->floor;
    double rest = 0.0;
    double power = 1.0;
    double own = 1.0;
    for (int i = 0; i <= map->degree; i++) {
        if (i == index) {
            own = power;
        } else {
            rest += (double)map->c[i] * power;
        }
        power *= at;
    }
    if (own == 0.0) { /* the coefficient does nothing here */
        const bool matches = dp_fit_code(rest) == ideal;
        *low = matches ? -INFINITY : INFINITY;
        *high = INFINITY;
        return;
    }
    const double a = (MIDPOINT[ideal] - rest) / own;
    const double b = (MIDPOINT[ideal + 1] - rest) / own;
    *low = own > 0.0 ? a : b;
    *high = own > 0.0 ? b : a;
}

bool dp_fit_plateau_find(const dp_fit_sample *sample, const uint32_t *weight, const dp_fit_map *map,
                         int index, bool around, dp_fit_plateau *plateau, dp_error *error)
{
    breakpoint *points = malloc((2 * sample->count + 1) * sizeof *points);
    if (points == NULL) {
        return dp_fail(error, "fit: not enough memory for %zu breakpoints: use fewer rows",
                       2 * sample->count);
    }
    size_t n = 0;
    double count = 0.0;
    for (size_t i = 0; i < sample->count; i++) {
        double low, high;
        const double w = weight != NULL ? (double)weight[sample->group[i]] : 1.0;
        if (w == 0.0) {
            continue;
        }
        interval_of(map, index, sample->x[i], sample->ideal[i], &low, &high);
        if (low == -INFINITY) {
            count += w;
        } else if (low < INFINITY) {
            points[n++] = (breakpoint){low, w};
        }
        if (high < INFINITY && low < INFINITY) {
            points[n++] = (breakpoint){high, -w};
        }
    }
    qsort(points, n, sizeof *points, by_place);
    *plateau = (dp_fit_plateau){.low = -INFINITY, .high = INFINITY, .breakpoints = n, .best = -1.0};
    const double own = (double)map->c[index];
    double before = count; /* matches in the interval before */
    double from = -INFINITY;
    bool open = false; /* the interval kept has no upper neighbour yet */
    for (size_t i = 0; i <= n;) {
        const double to = i < n ? points[i].at : INFINITY;
        const bool take = around ? own >= from && own < to : count > plateau->best;
        if (open) {
            plateau->above = count;
            open = false;
        }
        if (take) {
            plateau->low = from;
            plateau->high = to;
            plateau->matched = count;
            plateau->below = before;
            plateau->above = count;
            open = true;
        }
        plateau->best = count > plateau->best ? count : plateau->best;
        before = count;
        from = to;
        if (i == n) {
            break;
        }
        for (; i < n && points[i].at == from; i++) {
            count += points[i].step;
        }
    }
    free(points);
    return true;
}
