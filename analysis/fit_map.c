/* SPDX-License-Identifier: MIT
 *
 * Maps, codes and the measures made of sums.
 */
#include <math.h>

#include "analysis/fit.h"

/* Where a parabola or a cubic stops falling as x goes down: the largest point below which it rises
 * again, -INFINITY for none. */
static double turning_point(int degree, const double *c)
{
    if (degree == 2 || (degree == 3 && c[3] == 0.0)) {
        return c[2] > 0.0 ? -c[1] / (2.0 * c[2]) : -INFINITY;
    }
    if (degree == 3) {
        const double inside = c[2] * c[2] - 3.0 * c[1] * c[3];
        if (inside <= 0.0) {
            return -INFINITY;
        }
        const double a = (-c[2] + sqrt(inside)) / (3.0 * c[3]);
        const double b = (-c[2] - sqrt(inside)) / (3.0 * c[3]);
        return c[3] > 0.0 ? a : (b < a ? b : a);
    }
    return -INFINITY;
}

dp_fit_map dp_fit_map_of(int degree, const double *c)
{
    dp_fit_map map = {.degree = degree, .c = {0}};
    double rounded[DP_FIT_COEFFICIENTS] = {0};
    for (int i = 0; i <= degree; i++) {
        map.c[i] = (float)c[i];
        rounded[i] = (double)map.c[i];
    }
    map.floor = (float)turning_point(degree, rounded);
    return map;
}

static double slope(const dp_fit_map *map, double x)
{
    return (double)map->c[1] + x * (2.0 * (double)map->c[2] + x * 3.0 * (double)map->c[3]);
}

bool dp_fit_monotone(const dp_fit_map *map)
{
    static const double top = 3.1699250014423126; /* log2 9: 6 max / 2^e is below 9 */
    if (map->degree == 0 || (double)map->floor >= top) {
        return true;
    }
    const double floor_at = (double)map->floor;
    const double from = floor_at > -64.0 ? floor_at : -64.0;
    /* The floor is a root of the slope rounded to f32. */
    const double least = -1e-5;
    const double c3 = (double)map->c[3];
    const double turn = c3 != 0.0 ? -(double)map->c[2] / (3.0 * c3) : from;
    const bool between = turn <= from || turn >= top || slope(map, turn) >= least;
    return slope(map, from) >= least && slope(map, top) >= least && between;
}

double dp_fit_value(const dp_fit_map *map, double x)
{
    if (map->degree == 0) {
        return exp2(x);
    }
    const double at = x > (double)map->floor ? x : (double)map->floor;
    double y = (double)map->c[map->degree];
    for (int i = map->degree - 1; i >= 0; i--) {
        y = y * at + (double)map->c[i];
    }
    return y;
}

int dp_fit_code(double y)
{
    return (y > 0.25) + (y >= 0.75) + (y > 1.25) + (y >= 1.75) + (y > 2.5) + (y >= 3.5) + (y > 5.0);
}

dp_direct_p dp_fit_launch(const dp_direct_p *launch, const dp_fit_map *map)
{
    dp_forward_policy policy = launch->policy;
    policy.map = map->degree == 0   ? DP_MAP_EX2
                 : map->degree == 1 ? DP_MAP_AFFINE
                                    : DP_MAP_POLYNOMIAL;
    policy.degree = map->degree;
    memcpy(policy.coefficient, map->c, sizeof policy.coefficient);
    policy.map_floor = map->floor;
    dp_direct_p changed = *launch;
    changed.policy = policy;
    return changed;
}

void dp_fit_boundaries(const dp_fit_map *map, double x[7])
{
    static const double midpoint[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
    for (int k = 0; k < 7; k++) {
        double low = map->floor > -64.0f ? (double)map->floor : -64.0;
        double high = 64.0;
        for (int i = 0; i < 64; i++) {
            const double middle = 0.5 * (low + high);
            if (dp_fit_value(map, middle) < midpoint[k]) {
                low = middle;
            } else {
                high = middle;
            }
        }
        x[k] = high;
    }
}

dp_fit_measure dp_fit_measure_of(const dp_fit_sums *sums, const uint32_t *weight, int groups)
{
    dp_fit_sums all = {0};
    for (int g = 0; g < groups; g++) {
        const double w = weight != NULL ? (double)weight[g] : 1.0;
        all.scores += w * sums[g].scores;
        all.matched += w * sums[g].matched;
        all.mass += w * sums[g].mass;
        all.ideal_mass += w * sums[g].ideal_mass;
        all.error2 += w * sums[g].error2;
        all.reference2 += w * sums[g].reference2;
    }
    const dp_fit_measure m = {.match = all.matched / all.scores,
                              .mass = all.mass / all.ideal_mass,
                              .output =
                                  all.reference2 > 0.0 ? sqrt(all.error2 / all.reference2) : NAN};
    return m;
}

double dp_fit_loss(dp_fit_measure m, dp_fit_weights w)
{
    double loss = 0.0;
    loss += w.match > 0.0 ? w.match * (1.0 - m.match) : 0.0;
    loss += w.mass > 0.0 ? w.mass * fabs(m.mass - 1.0) : 0.0;
    loss += w.output > 0.0 ? w.output * m.output : 0.0;
    return isfinite(loss) ? loss : 1e30;
}

int dp_fit_parts(dp_fit_weights w)
{
    return (w.match > 0.0 || w.mass > 0.0 ? DP_FIT_SCORES : 0) |
           (w.output > 0.0 ? DP_FIT_OUTPUTS : 0);
}
