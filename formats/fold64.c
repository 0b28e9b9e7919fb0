/* SPDX-License-Identifier: MIT */
#include "formats/fold64.h"

#include <math.h>

#include "formats/block_arith.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/parallel.h"

enum { BLOCK = 16, PAIR = 2 * BLOCK, PAIRS = 4 };

static const float candidates[DP_FOLD64_CANDIDATES] = {
    0.25f, 0.3125f, 0.375f, 0.4375f, 0.5f, 0.625f, 0.75f, 0.875f, 1.0f, 1.125f, 1.25f};

const float *dp_fold64_candidates(void)
{
    return candidates;
}

/* Strict thresholds, so a tie goes down; as a sum of steps so that it vectorises. NaN gives 0. */
static inline float grid_value(float magnitude)
{
    return (magnitude > 0.25f ? 0.5f : 0.0f) + (magnitude > 0.75f ? 0.5f : 0.0f) +
           (magnitude > 1.25f ? 0.5f : 0.0f) + (magnitude > 1.75f ? 0.5f : 0.0f) +
           (magnitude > 2.5f ? 1.0f : 0.0f) + (magnitude > 3.5f ? 1.0f : 0.0f) +
           (magnitude > 5.0f ? 2.0f : 0.0f);
}

static float sum_of(float *terms, dp_sum_order order)
{
    if (order == DP_SUM_SEQUENTIAL) {
        float sum = terms[0];
        for (int i = 1; i < PAIR; i++) {
            sum += terms[i];
        }
        return sum;
    }
    for (int n = PAIR / 2; n >= 1; n /= 2) {
        for (int i = 0; i < n; i++) {
            terms[i] = terms[2 * i] + terms[2 * i + 1];
        }
    }
    return terms[0];
}

/* Squared error of the 32 values under scale s. */
static float pair_error(const float *x, float g, float s, dp_sum_order order)
{
    float terms[PAIR];
    for (int i = 0; i < PAIR; i++) {
        const float v = s > 0.0f ? (x[i] * g) / s : 0.0f;
        const float value = copysignf(grid_value(fabsf(v)), v) * s / g;
        const float difference = value - x[i];
        terms[i] = difference * difference;
    }
    return sum_of(terms, order);
}

/* PyTorch's cast: nearest even, NaN beyond 464. */
static dp_e4m3 cast(float t)
{
    return dp_e4m3_from_f32(t, DP_ENCODE_NONSAT);
}

static dp_e4m3 best_scale(const float *x, float g, dp_sum_order order, uint8_t *winner,
                          float *best_error)
{
    float amax = 0.0f;
    for (int i = 0; i < PAIR; i++) {
        const float magnitude = fabsf(x[i]);
        amax = magnitude > amax || isnan(magnitude) ? magnitude : amax;
    }
    const float base = amax * (g / 6.0f);
    dp_e4m3 best = cast(base);
    *best_error = INFINITY;
    *winner = 255;
    for (uint8_t i = 0; i < DP_FOLD64_CANDIDATES; i++) {
        const dp_e4m3 scale = cast(base * candidates[i]);
        const float error = pair_error(x, g, dp_e4m3_to_f32(scale), order);
        if (error < *best_error) {
            *best_error = error;
            *winner = i;
            best = scale;
        }
    }
    return best;
}

static uint8_t code_of(float x, float g, float s)
{
    const float v = s > 0.0f ? (x * g) / s : 0.0f;
    const float magnitude = fabsf(v);
    const int index = (magnitude > 0.25f) + (magnitude > 0.75f) + (magnitude > 1.25f) +
                      (magnitude > 1.75f) + (magnitude > 2.5f) + (magnitude > 3.5f) +
                      (magnitude > 5.0f);
    return (uint8_t)(index | (v < 0.0f ? 8 : 0));
}

/* Kept apart from its caller, which sets the floating-point environment around it. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static void
row(const float *x, float g, dp_sum_order order, uint8_t *payload, uint8_t *scale,
    dp_fold64_choice *choice)
{
    for (int b = 0; b < PAIRS; b++) {
        float pair[PAIR];
        memcpy(pair, x + b * BLOCK, BLOCK * sizeof *x);
        memcpy(pair + BLOCK, x + (b + PAIRS) * BLOCK, BLOCK * sizeof *x);
        const dp_e4m3 best = best_scale(pair, g, order, &choice->winner[b], &choice->error[b]);
        scale[b] = best.bits;
        scale[b + PAIRS] = best.bits;
        const float s = dp_e4m3_to_f32(best);
        for (int i = 0; i < PAIR; i += 2) {
            const int half = i / BLOCK;
            uint8_t *out = payload + (b + half * PAIRS) * (BLOCK / 2) + i % BLOCK / 2;
            const dp_e2m1 even = {code_of(pair[i], g, s)};
            const dp_e2m1 odd = {code_of(pair[i + 1], g, s)};
            *out = dp_e2m1x2_pack(even, odd).bits;
        }
    }
}

void dp_fold64_row(const float *x, float g, dp_sum_order order, uint8_t *payload, uint8_t *scale,
                   dp_fold64_choice *choice)
{
    dp_fold64_choice unwanted;
    fenv_t callers;
    dp_environment_enter(&callers);
    row(x, g, order, payload, scale, choice != NULL ? choice : &unwanted);
    dp_environment_leave(&callers);
}

typedef struct {
    const float *x;
    size_t row_stride;
    float g;
    dp_sum_order order;
    uint8_t *payload, *scale;
} job;

static void some_rows(void *context, size_t first, size_t last, int thread)
{
    const job *j = context;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        dp_fold64_row(j->x + i * j->row_stride, j->g, j->order, j->payload + i * DP_FOLD64_PAYLOAD,
                      j->scale + i * DP_FOLD64_SCALES, NULL);
    }
}

void dp_fold64_rows(const float *x, size_t rows, size_t row_stride, float g, dp_sum_order order,
                    int threads, uint8_t *payload, uint8_t *scale)
{
    job j = {x, row_stride, g, order, payload, scale};
    dp_parallel_for(threads, rows, 16, some_rows, &j);
}
