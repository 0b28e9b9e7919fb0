/* SPDX-License-Identifier: MIT */
#include "analysis/standard_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/splitmix.h"
#include "formats/bf16.h"

static const dp_standard_case CASES[] = {
    {"random", "N(0,1) Q, K and V", 256, 512, 2, 2},
    {"peaked", "Q and K three times as wide: few keys carry each row", 256, 512, 2, 2},
    {"midpoint-heavy", "multiples of 1/4 with 6 in every block: elements on midpoints of E2M1", 256,
     512, 2, 2},
    {"exponent-boundary", "block maxima one bf16 step around 6 * 2^k, 1.5 * 2^k and 2^k", 256, 512,
     2, 2},
    {"flush", "rows from visible down to below every byte", 256, 512, 1, 1},
    {"saturation", "rows up to above every byte", 256, 512, 1, 1},
    {"extreme-logit", "rows whose keys lie at both ends of the range", 256, 512, 1, 1},
    {"permuted-anchor", "keys that grow along the sequence: the anchor's place decides m", 256, 512,
     2, 2},
    {"ragged", "200 queries, 300 keys: tiles that are not full", 200, 300, 2, 1},
    {"grouped-heads", "four query heads on two key heads of different size", 128, 256, 4, 2},
    {"zero-blocks", "blocks, rows and a head of zeros among others", 128, 256, 2, 2},
    {"flat", "scores that hardly differ: the largest sums of codes", 128, 256, 1, 1},
    {"p-midpoints", "values of P on the midpoints of E2M1 and one ulp beside, a policy a head", 256,
     256, DP_STANDARD_AIMS, DP_STANDARD_AIMS},
};

const dp_standard_case *dp_standard_case_at(size_t index)
{
    return index < sizeof CASES / sizeof CASES[0] ? &CASES[index] : NULL;
}

/* A normal variate (Box-Muller), the same numbers everywhere. */
static double unit(uint64_t *state)
{
    return ((double)(dp_splitmix(state) >> 11) + 0.5) * 0x1p-53;
}
static double normal(uint64_t *state)
{
    const double radius = sqrt(-2.0 * log(unit(state)));
    return radius * cos(6.283185307179586 * unit(state));
}

enum { SIDE_Q, SIDE_K, SIDE_V };

/* A value one bf16 step below, at, or above 6 * 2^k, 1.5 * 2^k or 2^k. */
static double boundary(uint64_t *state)
{
    static const float base[3] = {6.0f, 1.5f, 1.0f};
    const float x = ldexpf(base[dp_splitmix(state) % 3], (int)(dp_splitmix(state) % 7) - 3);
    const uint32_t bits = dp_f32_bits(x) + (uint32_t)((dp_splitmix(state) % 3) - 1) * 0x10000u;
    return (double)dp_f32_from_bits(bits);
}

typedef struct {
    const char *name;
    int side;
    size_t head, row, d, rows;
} place;

static double value_at(const place *at, uint64_t *state)
{
    const double x = normal(state);
    const char *name = at->name;
    const double along = (double)at->row / (double)at->rows;
    if (strcmp(name, "peaked") == 0) {
        return at->side == SIDE_V ? x : 3.0 * x;
    }
    if (strcmp(name, "midpoint-heavy") == 0) {
        const double grid = 0.25 * (double)((int)(dp_splitmix(state) % 49) - 24);
        const size_t lane = at->side == SIDE_V ? at->row : at->d;
        return lane % 16 == 5 ? (at->d % 2 == 0 ? 6.0 : -6.0) : grid;
    }
    if (strcmp(name, "exponent-boundary") == 0) {
        const size_t lane = at->side == SIDE_V ? at->row : at->d;
        return lane % 16 == 3 ? boundary(state) : 0.2 * x;
    }
    if (strcmp(name, "flush") == 0 && at->side != SIDE_V) {
        return at->side == SIDE_K ? x + 1.5 : x - 8.0 * along;
    }
    if (strcmp(name, "saturation") == 0 && at->side != SIDE_V) {
        return at->side == SIDE_K ? x + 1.5 : x + 9.0 * along;
    }
    if (strcmp(name, "extreme-logit") == 0 && at->side != SIDE_V) {
        return at->side == SIDE_K ? x + (at->row % 5 < 2 ? 1.5 : -1.5) : x + 9.0 * (along - 0.5);
    }
    if (strcmp(name, "permuted-anchor") == 0 && at->side == SIDE_K) {
        return x * (0.05 + 2.0 * along);
    }
    if (strcmp(name, "grouped-heads") == 0) {
        return x * (1.0 + 0.5 * (double)at->head);
    }
    if (strcmp(name, "zero-blocks") == 0) {
        const bool zero = (at->d / 16 + at->row / 32) % 3 == 0 || at->row % 37 == 0;
        return zero ? 0.0 : x;
    }
    if (strcmp(name, "flat") == 0) {
        return at->side == SIDE_V ? x : 0.02 * x;
    }
    return x;
}

static float *tensor(const dp_standard_case *which, int side, uint64_t *state)
{
    const size_t heads = side == SIDE_Q ? which->q_heads : which->kv_heads;
    const size_t rows = side == SIDE_Q ? which->queries : which->keys;
    float *x = malloc(heads * rows * 128 * sizeof *x);
    for (size_t i = 0; x != NULL && i < heads * rows * 128; i++) {
        const place at = {which->name, side, i / 128 / rows, i / 128 % rows, i % 128, rows};
        const float value = (float)value_at(&at, state);
        x[i] = dp_bf16_to_f32(dp_bf16_from_f32(value, DP_ENCODE_NONSAT));
    }
    return x;
}

static char *copied(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    if (copy != NULL) {
        memcpy(copy, text, strlen(text) + 1);
    }
    return copy;
}

bool dp_standard_case_make(const dp_standard_case *which, const dp_direct_p *aimed, dp_tensors *t,
                           dp_error *error)
{
    uint64_t state = 20260814;
    for (const char *c = which->name; *c != '\0'; c++) {
        state = state * 31 + (uint64_t)(unsigned char)*c;
    }
    memset(t, 0, sizeof *t);
    t->batch = 1;
    t->q_heads = which->q_heads;
    t->kv_heads = which->kv_heads;
    t->q_len = which->queries;
    t->kv_len = which->keys;
    t->dim = 128;
    t->softmax_scale = 1.0 / sqrt(128.0);
    t->layer = -1;
    memcpy(t->format, "bf16", 5);
    t->q = tensor(which, SIDE_Q, &state);
    t->k = tensor(which, SIDE_K, &state);
    t->v = tensor(which, SIDE_V, &state);
    t->kv_of_q = malloc(t->q_heads * sizeof *t->kv_of_q);
    t->note = copied(which->purpose);
    if (t->q == NULL || t->k == NULL || t->v == NULL || t->kv_of_q == NULL || t->note == NULL) {
        dp_tensors_free(t);
        return dp_fail(error, "cases: not enough memory");
    }
    for (size_t h = 0; h < t->q_heads; h++) {
        t->kv_of_q[h] = h * t->kv_heads / t->q_heads;
    }
    if (strcmp(which->name, "p-midpoints") == 0 &&
        !dp_standard_midpoints(aimed, t->q_len, t->kv_len, t->q, t->k, error)) {
        dp_tensors_free(t);
        return false;
    }
    return true;
}
