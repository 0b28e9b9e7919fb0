/* SPDX-License-Identifier: MIT
 *
 * mma.sync with FP8 operands on sm_90a, sm_100a and sm_103a: the compiler emits conversions to f16,
 * two f16 matrix instructions and an ordinary addition (MMA.md rules 30 to 33).
 */
#include "ref/arith/mma_term.h"

enum { HALF = 16 };

/* The sum of two finite numbers of one format, magnitude * 2^exp2: exact while their exponents are
 * at most GUARD apart. Farther apart the smaller one is below 2^-30 of the larger, a fraction of
 * the half step (2^-25) that decides the rounding, so that cutting it changes nothing. */
typedef struct {
    bool negative;
    uint64_t magnitude;
    int exp2;
} exact_sum;

enum { GUARD = 30 };

static exact_sum add_exact(const dp_mma_term *x, const dp_mma_term *y, int fraction)
{
    const bool swap = x->sig == 0 || (y->sig != 0 && y->exp > x->exp);
    const dp_mma_term *big = swap ? y : x;
    const dp_mma_term *small = swap ? x : y;
    const int distance = small->sig == 0 ? 0 : big->exp - small->exp;
    const int64_t high = (int64_t)big->sig * ((int64_t)1 << GUARD);
    const uint64_t wide = (uint64_t)(small->sig < 0 ? -(int64_t)small->sig : small->sig) << GUARD;
    const uint64_t low = distance < 64 ? wide >> distance : 0;
    const int64_t total = high + (small->sig < 0 ? -(int64_t)low : (int64_t)low);
    return (exact_sum){.negative = total < 0,
                       .magnitude = (uint64_t)(total < 0 ? -total : total),
                       .exp2 = big->exp - fraction - GUARD};
}

/* magnitude * 2^exp2 rounded to nearest even in f32. */
static uint32_t f32_rne(bool negative, uint64_t magnitude, int exp2)
{
    const uint32_t down = dp_mma_f32_rz(negative, magnitude, exp2, 23);
    if ((down & DP_F32_ABS) >= DP_F32_INF || magnitude == 0) {
        return down;
    }
    int exponent = dp_mma_top_bit(magnitude) + exp2;
    exponent = exponent < -126 ? -126 : exponent;
    const int drop = exponent - 23 - exp2;
    if (drop <= 0) {
        return down;
    }
    /* drop > 63 cannot happen: C and u are f32, so the sum has no bit below 2^-149. */
    const uint64_t half = (uint64_t)1 << (drop - 1);
    const uint64_t rest = magnitude & (half * 2u - 1u);
    const bool up = rest > half || (rest == half && (down & 1u) != 0);
    return down + (up ? 1u : 0u); /* a carry past the largest finite number makes infinity */
}

/* D = u + C, IEEE round to nearest even, NaN as the matrix units write it (rule 33). */
static uint32_t add_rne(bool is_f16, uint32_t u, uint32_t c)
{
    const dp_mma_term x = dp_mma_term_of_c(is_f16, u);
    const dp_mma_term y = dp_mma_term_of_c(is_f16, c);
    const uint32_t sign = is_f16 ? 0x8000u : DP_F32_SIGN;
    if (x.kind == DP_TERM_NAN || y.kind == DP_TERM_NAN ||
        (x.kind == DP_TERM_INF && y.kind == DP_TERM_INF && x.negative != y.negative)) {
        return is_f16 ? DP_MMA_NAN_F16 : DP_MMA_NAN_F32;
    }
    if (x.kind == DP_TERM_INF || y.kind == DP_TERM_INF) {
        return x.kind == DP_TERM_INF ? u : c;
    }
    const exact_sum s = add_exact(&x, &y, is_f16 ? 10 : 23);
    if (s.magnitude == 0) {
        return x.negative && y.negative && x.sig == 0 ? sign : 0u;
    }
    return is_f16 ? dp_mma_f16_rne(s.negative, s.magnitude, s.exp2)
                  : f32_rne(s.negative, s.magnitude, s.exp2);
}

uint32_t dp_mma_emulated_sum(const dp_mma_desc *desc, const dp_mma_switches *switches,
                             const dp_mma_term *a, const dp_mma_term *b, uint32_t c)
{
    /* Set 0 holds the k with k/2 even, set 1 the others (rule 31). */
    dp_mma_term half_a[2][HALF];
    dp_mma_term half_b[2][HALF];
    for (int k = 0; k < 2 * HALF; k++) {
        const int set = (k / 2) % 2;
        const int at = k / 4 * 2 + k % 2;
        half_a[set][at] = a[k];
        half_b[set][at] = b[k];
    }
    uint32_t u = dp_mma_fused_sum(desc, switches, half_a[0], half_b[0], 0, false, 0);
    u = dp_mma_fused_sum(desc, switches, half_a[1], half_b[1], 0, false, u);
    return add_rne(desc->result == DP_MMA_F16_RNE, u, c);
}
