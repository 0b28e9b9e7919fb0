/* SPDX-License-Identifier: MIT
 *
 * One description and one integer algorithm for every small float: sign, exponent field, mantissa
 * field, bias, and what the top codes mean. Each format's own header (e2m1.h, e4m3.h, ...) binds it
 * to a type. Rules are numbered in FORMATS.md; the numbers stand in brackets below.
 *
 * Arithmetic is total and uses integers only: every bit pattern has a result, and neither FTZ/DAZ
 * nor a rounding mode set by the caller can change it [F1].
 */
#ifndef DP_FORMATS_MINIFLOAT_H
#define DP_FORMATS_MINIFLOAT_H

#include "formats/base.h"

/* What the codes at the top of the magnitude range mean [F4]. */
typedef enum {
    DP_TOP_FINITE, /* every code is finite (E2M1, E2M3, E3M2)                     */
    DP_TOP_NAN,    /* the all-ones magnitude is NaN, no Inf (E4M3 "fn", UE5M3)    */
    DP_TOP_IEEE,   /* all-ones exponent: mantissa 0 is Inf, else NaN (E5M2, FP16) */
    DP_TOP_FNUZ    /* every magnitude finite, no -0: sign bit alone is NaN        */
} dp_top;

/* A format. code = sign << magnitude bits | exponent << mantissa_bits | mantissa [F2]. */
typedef struct {
    const char *name;
    uint8_t has_sign; /* 0 or 1 */
    uint8_t exponent_bits;
    uint8_t mantissa_bits;
    int16_t bias; /* value = 2^(exponent - bias) * 1.mantissa, subnormal when exponent = 0 */
    dp_top top;
} dp_minifloat;

/* Which neighbour an inexact value goes to [F5]. */
typedef enum {
    DP_RNE,          /* nearest, ties to the even code                                   */
    DP_RZ,           /* toward zero                                                      */
    DP_RU,           /* toward +infinity                                                 */
    DP_RD,           /* toward -infinity                                                 */
    DP_RS,           /* stochastic: discarded bits plus random bits, carry goes away [F8] */
    DP_RN_TIES_ZERO, /* nearest, ties toward zero: the strict ">" thresholds             */
    DP_RN_TIES_AWAY  /* nearest, ties away from zero                                     */
} dp_round;

/* What a finite value beyond the largest finite code becomes [F6]. */
typedef enum {
    DP_OVERFLOW_UNSPECIFIED, /* refused by dp_encode_valid unless rounding is to nearest; acts as
                                SATFINITE */
    DP_OVERFLOW_SATFINITE,   /* the largest finite code                                      */
    DP_OVERFLOW_SPECIAL,     /* Inf, else NaN; the largest finite code where neither exists  */
    DP_OVERFLOW_IEEE754      /* 754 section 7.4: the largest finite code when the rounding
                                direction points back at it, else as SPECIAL                 */
} dp_overflow;

/* What an infinity becomes. */
typedef enum {
    DP_INF_LIKE_OVERFLOW, /* as a finite overflow (IEEE754 counts it as SPECIAL)       */
    DP_INF_KEPT           /* Inf (else NaN) even when finite values saturate           */
} dp_inf_rule;

/* What a NaN becomes [F7]. */
typedef enum {
    DP_NAN_PTX,      /* 0x7F for FP8, 0x7FFF for 16 bits, the largest magnitude for FP4/FP6; sign
                        dropped                                                              */
    DP_NAN_SIGNED,   /* the same magnitude, sign kept                                        */
    DP_NAN_MLDTYPES, /* quiet NaN with sign; where there is no NaN a zero of the opposite sign */
    DP_NAN_ZERO      /* +0: what a search over thresholds yields                             */
} dp_nan_rule;

/* The policy of one encode. Zero-initialised it rounds to nearest even and saturates. */
typedef struct {
    dp_round round;
    dp_overflow overflow;
    dp_inf_rule inf;
    dp_nan_rule nan;
    bool drop_zero_sign;   /* every zero result is +0                                      */
    bool flush_subnormals; /* a subnormal f32 input counts as a zero of its sign (FTZ)     */
    uint8_t random_bits;   /* DP_RS: how many bits of `random` count, 1..32                */
    uint32_t random;       /* DP_RS: the random bits, right-aligned                        */
} dp_encode;

/* RNE, finite saturation, PTX NaN: cvt.rn.satfinite of PTX ISA 9.1. */
DP_INLINE dp_encode dp_encode_ptx(void)
{
    const dp_encode how = {
        DP_RNE, DP_OVERFLOW_SATFINITE, DP_INF_LIKE_OVERFLOW, DP_NAN_PTX, false, false, 0, 0};
    return how;
}

/* RNE, overflow to Inf or NaN: OCP OFP8 rev 1.0 non-saturating mode. */
DP_INLINE dp_encode dp_encode_nonsat(void)
{
    dp_encode how = dp_encode_ptx();
    how.overflow = DP_OVERFLOW_SPECIAL;
    return how;
}

#define DP_ENCODE_PTX    (dp_encode_ptx())
#define DP_ENCODE_NONSAT (dp_encode_nonsat())

/* Stochastic rounding with `bits` random bits (1..32, right-aligned in `random`), otherwise as PTX.
 */
DP_INLINE dp_encode dp_encode_stochastic(uint32_t random, uint8_t bits)
{
    dp_encode how = dp_encode_ptx();
    how.round = DP_RS;
    how.random_bits = bits;
    how.random = random;
    return how;
}

/* True when `how` leaves nothing unspecified: directed and stochastic rounding need an overflow
 * rule, DP_RS needs 1..32 random bits. */
DP_INLINE bool dp_encode_valid(dp_encode how)
{
    const bool nearest =
        how.round == DP_RNE || how.round == DP_RN_TIES_ZERO || how.round == DP_RN_TIES_AWAY;
    if (how.round == DP_RS && (how.random_bits == 0 || how.random_bits > 32)) {
        return false;
    }
    return nearest || how.overflow != DP_OVERFLOW_UNSPECIFIED;
}

/* Mask of the magnitude bits, and the bit of the sign (0 where the format has none). */
DP_INLINE uint32_t dp_minifloat_magnitude_mask(dp_minifloat f)
{
    return (1u << (f.exponent_bits + f.mantissa_bits)) - 1u;
}
DP_INLINE uint32_t dp_minifloat_sign_bit(dp_minifloat f)
{
    return (uint32_t)f.has_sign << (f.exponent_bits + f.mantissa_bits);
}

/* Largest finite magnitude code. */
DP_INLINE uint32_t dp_minifloat_max_code(dp_minifloat f)
{
    const uint32_t ones = dp_minifloat_magnitude_mask(f);
    switch (f.top) {
    case DP_TOP_NAN:
        return ones - 1u;
    case DP_TOP_IEEE:
        return (((1u << f.exponent_bits) - 1u) << f.mantissa_bits) - 1u;
    default:
        return ones;
    }
}

/* Magnitude code that a non-saturating overflow gives: Inf, else NaN, else the largest finite. */
DP_INLINE uint32_t dp_minifloat_overflow_code(dp_minifloat f)
{
    switch (f.top) {
    case DP_TOP_IEEE:
    case DP_TOP_NAN:
        return dp_minifloat_max_code(f) + 1u;
    case DP_TOP_FNUZ:
        return 0; /* the NaN is the bare sign bit: dp_minifloat_finish sets it */
    default:
        return dp_minifloat_max_code(f);
    }
}

/* True when the code (sign included, unused high bits ignored) is a NaN of the format. */
DP_INLINE bool dp_minifloat_is_nan(uint32_t code, dp_minifloat f)
{
    const uint32_t magnitude = code & dp_minifloat_magnitude_mask(f);
    switch (f.top) {
    case DP_TOP_NAN:
        return magnitude == dp_minifloat_magnitude_mask(f);
    case DP_TOP_IEEE:
        return magnitude > dp_minifloat_max_code(f) + 1u;
    case DP_TOP_FNUZ:
        return magnitude == 0 && (code & dp_minifloat_sign_bit(f)) != 0;
    default:
        return false;
    }
}

DP_INLINE bool dp_minifloat_is_inf(uint32_t code, dp_minifloat f)
{
    return f.top == DP_TOP_IEEE &&
           (code & dp_minifloat_magnitude_mask(f)) == dp_minifloat_max_code(f) + 1u;
}

/* Does the discarded part move the quotient away from zero?
 * quotient: bits kept; rest: bits discarded, out of 2^shift, shift 1..60. */
DP_INLINE bool dp_minifloat_rounds_away(uint64_t quotient, uint64_t rest, unsigned shift,
                                        bool negative, dp_encode how)
{
    const uint64_t tie = (uint64_t)1 << (shift - 1u);
    switch (how.round) {
    case DP_RZ:
        return false;
    case DP_RU:
        return rest != 0 && !negative;
    case DP_RD:
        return rest != 0 && negative;
    case DP_RN_TIES_ZERO:
        return rest > tie;
    case DP_RN_TIES_AWAY:
        return rest >= tie;
    case DP_RS: {
        /* Discarded bits below the random ones are cut off, as the hardware's adder does [F8]. */
        const unsigned n = how.random_bits;
        const uint64_t mask = ((uint64_t)1 << n) - 1u;
        const uint64_t fraction = shift >= n ? rest >> (shift - n) : rest << (n - shift);
        return ((fraction + (how.random & mask)) >> n) != 0;
    }
    default:
        return rest > tie || (rest == tie && (quotient & 1u) != 0);
    }
}

/* Magnitude code of a finite f32 magnitude, on the format's grid continued without end above the
 * top: a result beyond dp_minifloat_max_code is an overflow, still to be decided. */
DP_INLINE uint32_t dp_minifloat_round_magnitude(uint32_t abs_bits, bool negative, dp_minifloat f,
                                                dp_encode how)
{
    const uint32_t field = abs_bits >> 23;
    const int exponent = field == 0 ? 1 : (int)field;
    const uint64_t significand =
        (abs_bits & 0x7FFFFFu) |
        (field == 0 ? 0u : 0x800000u);          /* value = this * 2^(exponent-150) */
    const int target = exponent - 127 + f.bias; /* exponent field wanted */
    unsigned shift = 23u - f.mantissa_bits;
    if (target < 1) {
        const int extra = 1 - target;
        shift = shift + (unsigned)extra > 60u ? 60u : shift + (unsigned)extra;
    }
    uint64_t quotient = significand >> shift;
    if (shift != 0) {
        const uint64_t rest = significand & (((uint64_t)1 << shift) - 1u);
        quotient += dp_minifloat_rounds_away(quotient, rest, shift, negative, how) ? 1u : 0u;
    }
    const uint32_t binade = target > 1 ? (uint32_t)(target - 1) : 0u;
    return (uint32_t)quotient + (binade << f.mantissa_bits);
}

DP_INLINE uint32_t dp_minifloat_nan_code(bool negative, dp_minifloat f, dp_nan_rule rule)
{
    const uint32_t sign = dp_minifloat_sign_bit(f);
    const uint32_t ones = dp_minifloat_magnitude_mask(f);
    if (rule == DP_NAN_ZERO) {
        return 0;
    }
    if (f.top == DP_TOP_FNUZ) {
        return sign;
    }
    if (rule == DP_NAN_MLDTYPES) {
        if (f.top == DP_TOP_FINITE) {
            return negative ? 0u : sign;
        }
        const uint32_t quiet =
            f.top == DP_TOP_IEEE ? (dp_minifloat_max_code(f) + 1u) | (1u << (f.mantissa_bits - 1u))
                                 : ones;
        return quiet | (negative ? sign : 0u);
    }
    return ones | (rule == DP_NAN_SIGNED && negative ? sign : 0u);
}

/* Encode the f32 whose bits are given. Result: the code, sign included. Unsigned formats take the
 * magnitude [F9]. */
DP_INLINE uint32_t dp_minifloat_encode(uint32_t bits, dp_minifloat f, dp_encode how)
{
    const bool negative = (bits & DP_F32_SIGN) != 0;
    uint32_t magnitude = bits & DP_F32_ABS;
    if (magnitude > DP_F32_INF) {
        return dp_minifloat_nan_code(negative, f, how.nan);
    }
    if (how.flush_subnormals && magnitude < 0x800000u) {
        magnitude = 0;
    }
    const bool infinite = magnitude == DP_F32_INF;
    const uint32_t max_code = dp_minifloat_max_code(f);
    /* Unsigned formats convert the magnitude: directions and overflow see a positive number. */
    const bool downward = negative && f.has_sign != 0;
    uint32_t code =
        infinite ? max_code + 1u : dp_minifloat_round_magnitude(magnitude, downward, f, how);
    if (code > max_code) {
        bool special = how.overflow == DP_OVERFLOW_SPECIAL;
        if (how.overflow == DP_OVERFLOW_IEEE754) {
            const bool inward = how.round == DP_RZ || (how.round == DP_RU && downward) ||
                                (how.round == DP_RD && !downward);
            special = infinite || !inward;
        }
        special = special || (infinite && how.inf == DP_INF_KEPT);
        if (special && f.top == DP_TOP_FNUZ) {
            return dp_minifloat_sign_bit(f);
        }
        code = special ? dp_minifloat_overflow_code(f) : max_code;
    }
    if (negative && !(code == 0 && (how.drop_zero_sign || f.top == DP_TOP_FNUZ))) {
        code |= dp_minifloat_sign_bit(f);
    }
    return code;
}

/* Bits of the f32 that a code stands for: exact, and 0x7FFFFFFF for every NaN [F3]. Bits above the
 * format's width are ignored. */
DP_INLINE uint32_t dp_minifloat_decode(uint32_t code, dp_minifloat f)
{
    if (dp_minifloat_is_nan(code, f)) {
        return DP_F32_NAN_CUDA;
    }
    const uint32_t sign = (code & dp_minifloat_sign_bit(f)) != 0 ? DP_F32_SIGN : 0u;
    if (dp_minifloat_is_inf(code, f)) {
        return sign | DP_F32_INF;
    }
    const uint32_t magnitude = code & dp_minifloat_magnitude_mask(f);
    const uint32_t field = magnitude >> f.mantissa_bits;
    uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1u);
    int exponent = (field == 0 ? 1 : (int)field) - f.bias + 127; /* f32 exponent field */
    if (field == 0) {
        if (mantissa == 0) {
            return sign;
        }
        while ((mantissa >> f.mantissa_bits) == 0 && exponent > 0) {
            mantissa <<= 1;
            exponent--;
        }
        if (exponent <= 0) { /* subnormal in f32 too: its last bit weighs 2^-149 */
            return sign | (mantissa << (22u - f.mantissa_bits));
        }
        mantissa &= (1u << f.mantissa_bits) - 1u;
    }
    return sign | ((uint32_t)exponent << 23) | (mantissa << (23u - f.mantissa_bits));
}

#endif
