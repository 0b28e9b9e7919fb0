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

/* The numbers of one group of one row go to place `at`. */
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
    y->factor[at] = (double)scale->m * power_of_two(scale->exp - 4); /* with half of the 1/4 of Q */
    y->m[at] = scale->m;
    y->exp[at] = scale->exp;
    y->nonzero[at] = everything ? 0xFFFF : counts ? nonzero : 0;
    span->special |= scale->kind == DP_TERM_NAN;
    if (counts) {
        widen(span, scale->exp);
    }
}

/* The doubled codes of one group: 16 bytes in a row (A), or 4 words a panel apart (B). */
static void pack_bytes(const dp_mma_matrix *x, const uint8_t *codes, size_t group, size_t lane)
{
    uint8_t bytes[DP_GEMM_GROUP];
    const bool is_a = x->side == DP_MMA_SIDE_A;
    const int bias = is_a ? 0 : DP_GEMM_BIAS;
    for (int i = 0; i < DP_GEMM_GROUP; i++) {
        bytes[i] = (uint8_t)(dp_mma_e2m1_doubled[codes[i]] + bias);
    }
    uint8_t *out = x->decoded->bytes;
    if (is_a) {
        memcpy(out + group * DP_GEMM_GROUP, bytes, sizeof bytes);
        return;
    }
    for (size_t j = 0; j < 4; j++) {
        memcpy(out + ((group * 4 + j) * DP_GEMM_LANES + lane) * 4, bytes + 4 * j, 4);
    }
}

static void pack_grouped(dp_mma_matrix *x)
{
    struct dp_mma_decoded *y = x->decoded;
    const size_t lanes = x->side == DP_MMA_SIDE_A ? 1 : DP_GEMM_LANES;
    const size_t rows = dp_gemm_lines(x) * lanes;
    const size_t groups = x->steps * DP_GEMM_GROUPS;
    const size_t per_scale = x->desc->block / DP_GEMM_GROUP;
    static const uint8_t zeros[DP_GEMM_GROUP];
    static const dp_mma_scale_term none;
    for (size_t row = 0; row < rows; row++) {
        const size_t line = row / lanes;
        const size_t lane = row % lanes;
        const bool exists = row < x->rows;
        for (size_t g = 0; g < groups; g++) {
            const uint8_t *codes =
                exists ? y->codes + row * y->padded_k + g * DP_GEMM_GROUP : zeros;
            const dp_mma_scale_term *scale =
                exists ? &y->scale[row * y->scales + g / per_scale] : &none;
            const size_t group = line * groups + g;
            pack_group(x, codes, scale, group * lanes + lane, &y->span[group / DP_GEMM_GROUPS]);
            pack_bytes(x, codes, group, lane);
        }
    }
}

static float term_value(const dp_mma_term *t, int fraction)
{
    return t->sig == 0 ? 0.0f : (float)((double)t->sig * power_of_two(t->exp - fraction));
}

/* One step of one row: elements go `stride` apart, pairs of exponents pair_stride apart. */
static void pack_fused_step(const dp_mma_matrix *x, size_t row, size_t line, size_t lane, size_t s)
{
    struct dp_mma_decoded *y = x->decoded;
    const bool is_a = x->side == DP_MMA_SIDE_A;
    const size_t k = x->desc->k;
    const int fraction = dp_mma_fraction(is_a ? x->desc->a : x->desc->b);
    const size_t stride = is_a ? 1 : DP_GEMM_LANES;
    const size_t first = (line * y->padded_k + s * k) * stride;
    float *value = y->value + first + lane;
    int16_t *exponent = y->exponent + first + 2 * lane;
    dp_gemm_span span = y->span[line * x->steps + s];
    for (size_t i = 0; i < k; i++) {
        static const dp_mma_term none;
        const dp_mma_term *t = row < x->rows ? &y->terms[row * y->padded_k + s * k + i] : &none;
        span.special |= t->kind != DP_TERM_FINITE;
        if (t->sig != 0) {
            widen(&span, t->exp);
        }
        value[i * stride] = term_value(t, fraction);
        exponent[i / 2 * 2 * stride + i % 2] = (int16_t)(t->sig == 0 ? DP_GEMM_ZERO_EXP : t->exp);
    }
    /* bf16 and tf32: a value might be an f32 subnormal */
    span.special |= span.min < -125;
    const bool scaled = y->scales != 0 && row < x->rows;
    const dp_mma_scale_term *scale = scaled ? &y->scale[row * y->scales + s] : NULL;
    y->scale_exp[(line * x->steps + s) * stride + lane] = scaled ? scale->exp : 0;
    span.special |= scaled && scale->kind == DP_TERM_NAN;
    y->span[line * x->steps + s] = span;
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
