/* SPDX-License-Identifier: MIT
 *
 * Strips of the (A, B) plane, where their lines cross, and the polygon around a map.
 */
#include <math.h>

#include "analysis/fit_joint.h"

void dp_fit_interval(int code, int8_t *low, int8_t *high)
{
    /* The midpoints .25 .75 1.25 1.75 2.5 3.5 5, times 4. */
    static const int8_t quarters[9] = {-DP_FIT_OPEN, 1, 3, 5, 7, 10, 14, 20, DP_FIT_OPEN};
    *low = quarters[code];
    *high = quarters[code + 1];
}

dp_fit_crossing dp_fit_cross(int32_t x1, int m1, int32_t x2, int m2)
{
    const int64_t sign = x1 > x2 ? 1 : -1;
    const dp_fit_crossing at = {sign * (m1 - m2), sign * ((int64_t)x1 - x2), m1, x1};
    return at;
}

double dp_fit_crossing_a(dp_fit_crossing at)
{
    return 0x1p20 * (double)at.p / (double)at.q;
}

double dp_fit_crossing_b(dp_fit_crossing at)
{
    return (double)(at.m * at.q - at.p * at.x) / (4.0 * (double)at.q);
}

/* 4 q (A x + B) = m q + p (x - x1) against 4 q times a midpoint: |q| and |x - x1| are below 2^30,
 * |m| and |p| below 2^5. */
bool dp_fit_strip_holds(const dp_fit_strip *strip, dp_fit_crossing at)
{
    const int64_t y = at.m * at.q + at.p * (strip->x - at.x);
    return (strip->low == -DP_FIT_OPEN || y >= strip->low * at.q) &&
           (strip->high == DP_FIT_OPEN || y <= strip->high * at.q);
}

int64_t dp_fit_count(const dp_fit_sample *sample, const uint32_t *weight, const dp_fit_map *map)
{
    int64_t count = 0;
    for (size_t i = 0; i < sample->count; i++) {
        if (dp_fit_code(dp_fit_value(map, sample->x[i])) == sample->ideal[i]) {
            count += weight != NULL ? (int64_t)weight[sample->group[i]] : 1;
        }
    }
    return count;
}

typedef struct {
    double a[DP_FIT_VERTICES + 1], b[DP_FIT_VERTICES + 1];
    int n;
} polygon;

/* Cut off what lies on the other side of A x + B = m. side: +1 keeps A x + B >= m. */
static void clip(polygon *p, double x, double m, double side)
{
    polygon kept = {.n = 0};
    double before = side * (p->a[p->n - 1] * x + p->b[p->n - 1] - m);
    for (int i = 0; i < p->n; i++) {
        const int last = i > 0 ? i - 1 : p->n - 1;
        const double here = side * (p->a[i] * x + p->b[i] - m);
        if ((here < 0.0) != (before < 0.0) && kept.n < DP_FIT_VERTICES) {
            const double t = before / (before - here);
            kept.a[kept.n] = p->a[last] + t * (p->a[i] - p->a[last]);
            kept.b[kept.n++] = p->b[last] + t * (p->b[i] - p->b[last]);
        }
        if (!(here < 0.0) && kept.n < DP_FIT_VERTICES) {
            kept.a[kept.n] = p->a[i];
            kept.b[kept.n++] = p->b[i];
        }
        before = here;
    }
    *p = kept;
}

/* Whether the line leaves the whole polygon on one side: most lines are far away. */
static bool passes_by(const polygon *p, double x, double m, double side)
{
    for (int i = 0; i < p->n; i++) {
        if (side * (p->a[i] * x + p->b[i] - m) < 0.0) {
            return false;
        }
    }
    return true;
}

static void measure(const polygon *p, dp_fit_cell *cell)
{
    memset(cell, 0, sizeof *cell);
    double twice = 0.0;
    for (int i = 0; i < p->n; i++) {
        const int next = (i + 1) % p->n;
        cell->a[i] = p->a[i];
        cell->b[i] = p->b[i];
        /* Relative to the first vertex: the polygon is small and far from 0. */
        twice += (p->a[i] - p->a[0]) * (p->b[next] - p->b[0]) -
                 (p->a[next] - p->a[0]) * (p->b[i] - p->b[0]);
        cell->a_low = i == 0 || p->a[i] < cell->a_low ? p->a[i] : cell->a_low;
        cell->a_high = i == 0 || p->a[i] > cell->a_high ? p->a[i] : cell->a_high;
        cell->b_low = i == 0 || p->b[i] < cell->b_low ? p->b[i] : cell->b_low;
        cell->b_high = i == 0 || p->b[i] > cell->b_high ? p->b[i] : cell->b_high;
    }
    cell->vertices = p->n;
    cell->area = 0.5 * fabs(twice);
}

void dp_fit_cell_around(const dp_fit_sample *sample, const double *low, const double *high,
                        const dp_fit_map *map, dp_fit_cell *cell)
{
    polygon p = {
        .a = {low[1], high[1], high[1], low[1]}, .b = {low[0], low[0], high[0], high[0]}, .n = 4};
    for (size_t i = 0; i < sample->count && p.n > 0; i++) {
        /* The interval that the value lies in now, be it the ideal one or not. */
        const double x = sample->x[i];
        int8_t from, to;
        dp_fit_interval(sample->ideal[i], &from, &to);
        const int now = dp_fit_code(dp_fit_value(map, x));
        for (int end = 0; end < 2 && p.n > 0; end++) {
            const int8_t quarter = end == 0 ? from : to;
            if (quarter == DP_FIT_OPEN || quarter == -DP_FIT_OPEN) {
                continue;
            }
            const bool above = end == 0 ? now >= sample->ideal[i] : now > sample->ideal[i];
            const double side = above ? 1.0 : -1.0;
            if (!passes_by(&p, x, 0.25 * quarter, side)) {
                clip(&p, x, 0.25 * quarter, side);
            }
        }
    }
    measure(&p, cell);
}

void dp_fit_cell_at(const dp_fit_strip *strips, size_t count, const double *low, const double *high,
                    dp_fit_crossing at, dp_fit_cell *cell)
{
    polygon p = {
        .a = {low[1], high[1], high[1], low[1]}, .b = {low[0], low[0], high[0], high[0]}, .n = 4};
    for (size_t i = 0; i < count && p.n > 0; i++) {
        if (!dp_fit_strip_holds(&strips[i], at)) {
            continue;
        }
        const double x = 0x1p-22 * strips[i].x;
        if (strips[i].low != -DP_FIT_OPEN && !passes_by(&p, x, 0.25 * strips[i].low, 1.0)) {
            clip(&p, x, 0.25 * strips[i].low, 1.0);
        }
        if (strips[i].high != DP_FIT_OPEN && !passes_by(&p, x, 0.25 * strips[i].high, -1.0)) {
            clip(&p, x, 0.25 * strips[i].high, -1.0);
        }
    }
    measure(&p, cell);
}
