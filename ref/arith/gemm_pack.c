/* SPDX-License-Identifier: MIT
 *
 * The vector forms of a decoded operand: the same numbers, ordered for 16 lanes.
 */
#include "ref/arith/gemm_internal.h"

bool dp_gemm_has_vector(const dp_mma_desc *desc, const dp_mma_switches *switches)
{
    return (desc->family == DP_MMA_GROUPED || desc->family == DP_MMA_FUSED) &&
           desc->result != DP_MMA_F16_RNE && switches->zero_sign == DP_MMA_ZERO_SIGN_POSITIVE &&
           switches->fp8_c == DP_MMA_FP8_C_EARLY;
}

/* 2^exp for a normal f64. */
static double power_of_two(int exp)
{
    const uint64_t bits = (uint64_t)(exp + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void widen(dp_gemm_span *span, int exp)
{
    span->min = exp < span->min ? (int16_t)exp : span->min;
    span->max = exp > span->max ? (int16_t)exp : span->max;
}

/* The numbers of one group of one row; `at` with a stride of 1 (A) or 16 (B) is where they go. */
static void pack_group(const dp_mma_matrix *x, const uint8_t *codes, const dp_mma_scale_term *scale,
                       size_t at, dp_gemm_span *span)
{
    struct dp_mma_decoded *y = x->decoded;
    int32_t sum = 0;
    int32_t nonzero = 0;
    for (int i = 0; i < DP_GEMM_GROUP; i++) {
        sum += dp_mma_e2m1_doubled[codes[i]];
        nonzero |= (int32_t)((codes[i] & 7) != 0) << i;
    }
    const bool everything = x->switches.zero_group == DP_MMA_ZERO_GROUP_SCALE;
    const bool counts = everything || (nonzero != 0 && scale->m != 0);
    y->bias[at] = -DP_GEMM_BIAS * sum;
    y->factor[at] = (double)scale->m * power_of_two(scale->exp - 4); /* and half of the 1/4 of Q */
    y->m[at] = scale->m;
    y->exp[at] = scale->exp;
    y->nonzero[at] = everything ? 0xFFFF : counts ? nonzero : 0;
    span->special |= scale->kind == DP_TERM_NAN;
    if (counts) {
        widen(span, scale->exp);
    }
}

static void pack_grouped(dp_mma_matrix *x)
{
    struct dp_mma_decoded *y = x->decoded;
    const bool is_a = x->side == DP_MMA_SIDE_A;
    const size_t lanes = is_a ? 1 : DP_GEMM_LANES;
    const size_t k = x->desc->k;
    const size_t rows = dp_gemm_lines(x) * lanes;
    static const uint8_t zeros[DP_GEMM_GROUP];
    static const dp_mma_scale_term none;
    for (size_t row = 0; row < rows; row++) {
        const size_t line = row / lanes;
        const size_t lane = row % lanes;
        for (size_t s = 0; s < x->steps; s++) {
            const bool exists = row < x->rows;
            for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
                const size_t first = s * k + g * DP_GEMM_GROUP;
                const uint8_t *codes = exists ? y->codes + row * y->padded_k + first : zeros;
                const dp_mma_scale_term *scale =
                    exists ? &y->scale[row * y->scales + first / x->desc->block] : &none;
                const size_t group = (line * x->steps + s) * DP_GEMM_GROUPS + g;
                pack_group(x, codes, scale, group * lanes + lane, &y->span[line * x->steps + s]);
                for (size_t i = 0; i < DP_GEMM_GROUP; i++) {
                    const int doubled = dp_mma_e2m1_doubled[codes[i]];
                    if (is_a) {
                        y->bytes[row * y->padded_k + first + i] = (uint8_t)doubled;
                    } else {
                        const size_t quad = (line * x->steps + s) * (k / 4) + g * 4 + i / 4;
                        y->bytes[(quad * DP_GEMM_LANES + lane) * 4 + i % 4] =
                            (uint8_t)(doubled + DP_GEMM_BIAS);
                    }
                }
            }
        }
    }
}

static float term_value(const dp_mma_term *t, int fraction)
{
    return t->sig == 0 ? 0.0f : (float)((double)t->sig * power_of_two(t->exp - fraction));
}

/* One step of one row; element i goes to at + i of A, or to its places in the panel of B. */
static void pack_fused_step(const dp_mma_matrix *x, size_t row, size_t line, size_t lane, size_t s)
{
    struct dp_mma_decoded *y = x->decoded;
    const bool is_a = x->side == DP_MMA_SIDE_A;
    const size_t k = x->desc->k;
    const int fraction = dp_mma_fraction(is_a ? x->desc->a : x->desc->b);
    dp_gemm_span *span = &y->span[line * x->steps + s];
    for (size_t i = 0; i < k; i++) {
        static const dp_mma_term none;
        const size_t at = s * k + i;
        const dp_mma_term *t = row < x->rows ? &y->terms[row * y->padded_k + at] : &none;
        span->special |= t->kind != DP_TERM_FINITE;
        if (t->sig != 0) {
            widen(span, t->exp);
            span->special |= t->exp < -125; /* bf16 and tf32: value might be an f32 subnormal */
        }
        const size_t place =
            is_a ? row * y->padded_k + at : (line * y->padded_k + at) * DP_GEMM_LANES + lane;
        const size_t pair =
            is_a ? place : ((line * y->padded_k + at) / 2 * DP_GEMM_LANES + lane) * 2 + at % 2;
        y->value[place] = term_value(t, fraction);
        y->exponent[pair] = (int16_t)(t->sig == 0 ? DP_GEMM_ZERO_EXP : t->exp);
    }
    const bool scaled = y->scales != 0 && row < x->rows;
    const dp_mma_scale_term *scale = scaled ? &y->scale[row * y->scales + s] : NULL;
    const size_t place = is_a ? row * x->steps + s : (line * x->steps + s) * DP_GEMM_LANES + lane;
    y->scale_exp[place] = scaled ? scale->exp : 0;
    span->special |= scaled && scale->kind == DP_TERM_NAN;
}

void dp_gemm_pack(dp_mma_matrix *matrix)
{
    struct dp_mma_decoded *y = matrix->decoded;
    const size_t lines = dp_gemm_lines(matrix);
    for (size_t i = 0; i < lines * matrix->steps; i++) {
        y->span[i] = (dp_gemm_span){.min = INT16_MAX, .max = INT16_MIN};
    }
    if (matrix->desc->family == DP_MMA_GROUPED) {
        pack_grouped(matrix);
        return;
    }
    const size_t lanes = matrix->side == DP_MMA_SIDE_A ? 1 : DP_GEMM_LANES;
    for (size_t row = 0; row < lines * lanes; row++) {
        for (size_t s = 0; s < matrix->steps; s++) {
            pack_fused_step(matrix, row, row / lanes, row % lanes, s);
        }
    }
}
