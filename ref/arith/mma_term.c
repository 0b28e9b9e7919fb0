/* SPDX-License-Identifier: MIT */
#include "ref/arith/mma_term.h"

/* What the top exponent field means. */
typedef enum {
    TOP_FINITE,  /* numbers like any other */
    TOP_ONE_NAN, /* only all-ones is NaN, no infinity (E4M3) */
    TOP_IEEE     /* infinity and NaN */
} top_rule;

typedef struct {
    uint8_t exponent_bits, fraction_bits;
    top_rule top;
} layout;

/* Bias 2^(exponent_bits-1) - 1 in each of them. tf32: its upper 19 bits. */
static const layout layouts[DP_MMA_FORMATS] = {
    [DP_MMA_E4M3] = {4, 3, TOP_ONE_NAN}, [DP_MMA_E5M2] = {5, 2, TOP_IEEE},
    [DP_MMA_E2M3] = {2, 3, TOP_FINITE},  [DP_MMA_E3M2] = {3, 2, TOP_FINITE},
    [DP_MMA_E2M1] = {2, 1, TOP_FINITE},  [DP_MMA_F16] = {5, 10, TOP_IEEE},
    [DP_MMA_BF16] = {8, 7, TOP_IEEE},    [DP_MMA_TF32] = {8, 10, TOP_IEEE},
};
static const layout f32_layout = {8, 23, TOP_IEEE};

enum { TF32_DROPPED = 13 };

static dp_mma_term take_apart(const layout *l, uint32_t bits, bool normalise)
{
    const uint32_t fraction = bits & ((1u << l->fraction_bits) - 1u);
    const uint32_t top = (1u << l->exponent_bits) - 1u;
    const uint32_t field = (bits >> l->fraction_bits) & top;
    const int bias = (1 << (l->exponent_bits - 1)) - 1;
    dp_mma_term term = {.negative =
                            (uint8_t)((bits >> (l->fraction_bits + l->exponent_bits)) & 1u)};
    if (field == top && l->top != TOP_FINITE) {
        if (l->top == TOP_IEEE) {
            term.kind = fraction == 0 ? DP_TERM_INF : DP_TERM_NAN;
            return term;
        }
        if (fraction == (1u << l->fraction_bits) - 1u) {
            term.kind = DP_TERM_NAN;
            return term;
        }
    }
    int32_t sig = (int32_t)(field == 0 ? fraction : fraction | (1u << l->fraction_bits));
    int exponent = (field == 0 ? 1 : (int)field) - bias;
    if (sig == 0) {
        return term;
    }
    while (normalise && sig < (1 << l->fraction_bits)) {
        sig *= 2;
        exponent--;
    }
    term.sig = term.negative ? -sig : sig;
    term.exp = (int16_t)exponent;
    return term;
}

dp_mma_term dp_mma_term_of(dp_mma_format format, uint32_t bits, bool normalise)
{
    return take_apart(&layouts[format], format == DP_MMA_TF32 ? bits >> TF32_DROPPED : bits,
                      normalise);
}

dp_mma_term dp_mma_term_of_c(bool is_f16, uint32_t bits)
{
    return take_apart(is_f16 ? &layouts[DP_MMA_F16] : &f32_layout, bits, false);
}

bool dp_mma_normalises(const dp_mma_desc *desc, const dp_mma_switches *switches,
                       dp_mma_format format)
{
    if (desc->family == DP_MMA_EMULATED) {
        /* Converted to f16, where a subnormal E4M3 is normal and a subnormal E5M2 is subnormal
         * again, at the same emin of -14 (rule 32). */
        return format == DP_MMA_E4M3;
    }
    return switches->narrow_subnormal == DP_MMA_SUBNORMAL_NORMALISED &&
           dp_mma_code_bits(format) < 8;
}

dp_mma_scale_term dp_mma_scale_of(dp_mma_scale scale, uint8_t byte)
{
    dp_mma_scale_term term = {.m = 8, .exp = 0, .kind = DP_TERM_FINITE};
    if (scale == DP_MMA_UE8M0) {
        term.exp = (int16_t)(byte - 127);
        term.kind = byte == 0xFF ? DP_TERM_NAN : DP_TERM_FINITE;
    } else if (scale == DP_MMA_UE4M3) {
        const int code = byte & 0x7F; /* hardware ignores bit 7, PTX asks for 0 (rule 22) */
        const int field = code >> 3;
        term.m = (int16_t)((code & 7) + (field == 0 ? 0 : 8));
        term.exp = (int16_t)((field == 0 ? 1 : field) - 7);
        term.kind = code == 0x7F ? DP_TERM_NAN : DP_TERM_FINITE;
    }
    return term;
}

int dp_mma_fraction(dp_mma_format format)
{
    return layouts[format].fraction_bits;
}

int dp_mma_code_bits(dp_mma_format format)
{
    return format == DP_MMA_TF32
               ? 32
               : 1 + layouts[format].exponent_bits + layouts[format].fraction_bits;
}

int64_t dp_mma_aligned(int64_t x, int shift)
{
    const uint64_t magnitude = (uint64_t)(x < 0 ? -x : x);
    uint64_t moved = 0;
    if (shift >= 0 && x != 0) {
        moved = magnitude << shift;
    } else if (shift < 0 && shift > -64) {
        moved = magnitude >> -shift;
    }
    return x < 0 ? -(int64_t)moved : (int64_t)moved;
}

int dp_mma_top_bit(uint64_t x)
{
    int top = 0;
    for (int step = 32; step != 0; step /= 2) {
        if ((x >> step) != 0) {
            x >>= step;
            top += step;
        }
    }
    return top;
}

uint32_t dp_mma_f32_rz(bool negative, uint64_t magnitude, int exp2, int fraction)
{
    const uint32_t sign = negative ? DP_F32_SIGN : 0u;
    if (magnitude == 0) {
        return sign;
    }
    int exponent = dp_mma_top_bit(magnitude) + exp2;
    if (exponent >= 128) {
        return sign | DP_F32_INF;
    }
    if (exponent < -126) {
        exponent = -126;
    }
    const int drop = exponent - fraction - exp2; /* bits below the last one kept */
    uint64_t kept = 0;
    if (drop < 64) {
        kept = drop > 0 ? magnitude >> drop : magnitude << -drop;
    }
    /* The leading one of a normal number adds the last unit of its exponent field. */
    return sign | (((uint32_t)(exponent + 126) << 23) + (uint32_t)(kept << (23 - fraction)));
}

uint32_t dp_mma_f16_rne(bool negative, uint64_t magnitude, int exp2)
{
    const uint32_t sign = negative ? 0x8000u : 0u;
    if (magnitude == 0) {
        return sign;
    }
    int exponent = dp_mma_top_bit(magnitude) + exp2;
    if (exponent >= 16) {
        return sign | 0x7C00u;
    }
    if (exponent < -14) {
        exponent = -14;
    }
    const int drop = exponent - 10 - exp2;
    uint64_t kept = 0;
    if (drop <= 0) {
        kept = magnitude << -drop;
    } else if (drop < 64) {
        const uint64_t half = (uint64_t)1 << (drop - 1);
        const uint64_t rest = magnitude & (half * 2u - 1u);
        kept = magnitude >> drop;
        kept += (rest > half || (rest == half && (kept & 1u) != 0)) ? 1u : 0u;
    }
    return sign | (((uint32_t)(exponent + 14) << 10) + (uint32_t)kept);
}
