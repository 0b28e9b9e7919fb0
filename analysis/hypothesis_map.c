/* SPDX-License-Identifier: MIT
 *
 * The constants of an affine map from the codes it made. Each code bounds A x + B from below and
 * above, so the pairs (A, B) that explain all codes are a convex polygon, mostly empty; for one A
 * the room left for B is concave in A and its largest value found by ternary search.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"

enum { MOST_LANES = 1 << 16, STEPS = 80 };
#define LEAST_A 0.05
#define MOST_A  8.0

typedef struct {
    double *x, *low, *high; /* low <= A x + B <= high */
    size_t count, room;
} bounds;

static void add_block(const dp_unit *unit, size_t r, size_t block, bounds *b)
{
    static const double middle[9] = {-INFINITY, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, INFINITY};
    const dp_direct_p *launch = &unit->launch;
    const size_t keys = unit->dump->key_rows;
    const int stage = (int)(unit->query_tile & 1u);
    const int quarter = (int)(block % DP_QUARTERS);
    const float m = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
    const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys + block * DP_BLOCK;
    float largest = -INFINITY;
    for (size_t j = 0; j < DP_BLOCK; j++) {
        largest = raw[j] > largest ? raw[j] : largest;
    }
    const int u = dp_block_byte(launch, largest, m);
    const dp_block_scalars s = dp_block_offsets(launch, m, dp_working_byte(launch, u));
    if ((launch->policy.rebase_q1 && stage == 0 && quarter == 1) || u == 0) {
        return;
    }
    for (size_t j = 0; j < DP_BLOCK && b->count < b->room; j++) {
        const size_t at = r * keys + block * DP_BLOCK + j;
        const unsigned code =
            (unsigned)dp_strip_u8(&unit->dumped, DP_DUMP_P_PAYLOAD)[at / 2] >> (at % 2 * 4) & 7u;
        if (isfinite(raw[j]) &&
            !dp_forward_policy_native_pair(&launch->policy, stage, quarter, (int)j / 2)) {
            b->x[b->count] = (double)raw[j] * (double)launch->multiplier + (double)s.q;
            b->low[b->count] = middle[code];
            b->high[b->count++] = middle[code + 1];
        }
    }
}

/* Room for B at this A; negative when there is none. */
static double room(const bounds *b, double a, double *least, double *most)
{
    *least = -INFINITY;
    *most = INFINITY;
    for (size_t i = 0; i < b->count; i++) {
        *least = fmax(*least, b->low[i] - a * b->x[i]);
        *most = fmin(*most, b->high[i] - a * b->x[i]);
    }
    return *most - *least;
}

/* The shortest decimal between two numbers. */
static double plain(double low, double high)
{
    for (double step = 1.0; step > 1e-8; step /= 10.0) {
        const double x = ceil(low / step) * step;
        if (x <= high) {
            return x;
        }
    }
    return 0.5 * (low + high);
}

/* The end of the A with room, from one with room towards one without. */
static double edge(const bounds *b, double inside, double outside)
{
    double least, most;
    for (int i = 0; i < STEPS / 2; i++) {
        const double a = 0.5 * (inside + outside);
        *(room(b, a, &least, &most) >= 0.0 ? &inside : &outside) = a;
    }
    return inside;
}

static bool solve(const bounds *b, double *a, double *c, double *low, double *high)
{
    double from = LEAST_A, to = MOST_A, least, most;
    for (int i = 0; i < STEPS && room(b, 0.5 * (from + to), &least, &most) < 0.0; i++) {
        const double left = from + (to - from) / 3.0;
        const double right = to - (to - from) / 3.0;
        if (room(b, left, &least, &most) < room(b, right, &least, &most)) {
            from = left;
        } else {
            to = right;
        }
    }
    const double inside = 0.5 * (from + to);
    if (!(room(b, inside, &least, &most) >= 0.0)) {
        return false;
    }
    *low = edge(b, inside, LEAST_A);
    *high = edge(b, inside, MOST_A);
    *a = plain(*low, *high);
    if (!(room(b, *a, &least, &most) >= 0.0)) {
        *a = inside;
        (void)room(b, *a, &least, &most);
    }
    *c = plain(least, most);
    return isfinite(least) && isfinite(most);
}

bool dp_hypothesis_fitted_map(const dp_unit *unit, double argument, void *out)
{
    const size_t lanes = unit->rows * unit->dump->key_rows;
    const size_t most = lanes < MOST_LANES ? lanes : MOST_LANES;
    double *memory =
        unit->launch.policy.map == DP_MAP_AFFINE && unit->dumped.valid[DP_DUMP_P_PAYLOAD]
            ? malloc(3 * (most + 1) * sizeof *memory)
            : NULL;
    double a = 0.0, c = 0.0, low = 0.0, high = 0.0;
    (void)argument;
    if (memory == NULL) {
        return false;
    }
    bounds b = {memory, memory + most, memory + 2 * most, 0, most};
    for (size_t r = 0; r < unit->rows && b.count < most; r++) {
        for (size_t block = 0; block < unit->visited * DP_QUARTERS; block++) {
            add_block(unit, r, block, &b);
        }
    }
    const bool good = b.count >= 256 && solve(&b, &a, &c, &low, &high);
    free(memory);
    if (!good) {
        return false;
    }
    dp_direct_p launch = unit->launch;
    launch.policy.coefficient[1] = (float)a;
    launch.policy.coefficient[0] = (float)c;
    if (unit->note != NULL) {
        (void)snprintf(unit->note, DP_UNIT_NOTE, "A = %.7g (%.6g to %.6g), B = %.7g", a, low, high,
                       c);
    }
    return dp_stage_run(unit, &launch, &unit->mma, DP_DUMP_P_PAYLOAD, out, NULL);
}
