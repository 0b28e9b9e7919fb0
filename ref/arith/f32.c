/* SPDX-License-Identifier: MIT
 *
 * f32 arithmetic in integers. A finite nonzero number is sign, significand and exponent of the
 * significand's unit; sums are made in 64 bits with one sticky bit, which is enough because a bit
 * falls into the sticky position only when the two terms are so far apart that at most one leading
 * bit can cancel.
 */
#include "ref/arith/f32.h"

#include "ref/arith/bits64.h"

#define F32_ONE     0x3F800000u
#define F32_MAX     0x7F7FFFFFu
#define F32_MIN     0x00800000u
#define NORMAL_UNIT 61 /* position of the leading bit after normalisation */

typedef struct {
    uint32_t sign; /* 0 or 0x80000000 */
    uint64_t sig;  /* value = sig * 2^unit; 0 for a zero */
    int unit;
} term;

static bool is_inf(uint32_t x)
{
    return (x & DP_F32_ABS) == DP_F32_INF;
}

static uint32_t flush_if(uint32_t x, dp_f32_mode mode)
{
    return mode.subnormal == DP_F32_KEEP ? x : dp_f32_flush(x);
}

static term unpack(uint32_t x)
{
    const uint32_t field = (x >> 23) & 0xFFu;
    const uint32_t fraction = x & 0x7FFFFFu;
    const term t = {x & DP_F32_SIGN, field == 0 ? fraction : fraction | F32_MIN,
                    (field == 0 ? 1 : (int)field) - 150};
    return t;
}

/* Move the leading bit of a nonzero significand to NORMAL_UNIT. */
static term normalise(term t)
{
    const int shift = dp_clz64(t.sig) - (63 - NORMAL_UNIT);
    t.sig = shift >= 0 ? t.sig << shift : dp_shift_right_sticky(t.sig, -shift);
    t.unit -= shift;
    return t;
}

static uint32_t overflow(uint32_t sign, dp_f32_round round)
{
    const bool away = round == DP_F32_RN || (round == DP_F32_RP && sign == 0) ||
                      (round == DP_F32_RM && sign != 0);
    return sign | (away ? DP_F32_INF : F32_MAX);
}

/* Does a remainder of `rest` out of 2 * `half` round the magnitude up? */
static bool rounds_up(uint64_t rest, uint64_t half, bool odd, uint32_t sign, dp_f32_round round)
{
    switch (round) {
    case DP_F32_RN:
        return rest > half || (rest == half && odd);
    case DP_F32_RM:
        return rest != 0 && sign != 0;
    case DP_F32_RP:
        return rest != 0 && sign == 0;
    case DP_F32_RZ:
    default:
        return false;
    }
}

/* The f32 of a nonzero term. */
static uint32_t round_term(term t, dp_f32_mode mode)
{
    enum { DROP = NORMAL_UNIT - 23 };
    t = normalise(t);
    int field = t.unit + NORMAL_UNIT + 127; /* biased exponent of the leading bit */
    if (field > 254) {
        return overflow(t.sign, mode.round);
    }
    if (field < 1 && mode.subnormal == DP_F32_KEEP) {
        t.sig = dp_shift_right_sticky(t.sig, 1 - field);
        field = 1;
    }
    const uint64_t half = UINT64_C(1) << (DROP - 1);
    const uint64_t rest = t.sig & (2 * half - 1);
    uint32_t kept = (uint32_t)(t.sig >> DROP);
    kept += rounds_up(rest, half, (kept & 1) != 0, t.sign, mode.round) ? 1u : 0u;
    if (field < 1) { /* flushed, unless the judged value rounds up to 2^-126 */
        const bool reaches = mode.subnormal == DP_F32_FTZ && field == 0 && kept == 2 * F32_MIN;
        return reaches ? t.sign | F32_MIN : t.sign;
    }
    /* Adding the significand with its leading bit to field - 1 carries correctly in all cases. */
    const uint32_t magnitude = ((uint32_t)(field - 1) << 23) + kept;
    return magnitude >= DP_F32_INF ? overflow(t.sign, mode.round) : t.sign | magnitude;
}

/* x + y, both nonzero. */
static uint32_t add_terms(term x, term y, dp_f32_mode mode)
{
    x = normalise(x);
    y = normalise(y);
    if (x.unit < y.unit || (x.unit == y.unit && x.sig < y.sig)) {
        const term swap = x;
        x = y;
        y = swap;
    }
    const uint64_t small = dp_shift_right_sticky(y.sig, x.unit - y.unit);
    if (x.sign == y.sign) {
        x.sig += small;
    } else {
        x.sig -= small;
    }
    if (x.sig == 0) {
        return mode.round == DP_F32_RM ? DP_F32_SIGN : 0;
    }
    return round_term(x, mode);
}

static term multiply(uint32_t a, uint32_t b)
{
    const term x = unpack(a);
    const term y = unpack(b);
    const term product = {x.sign ^ y.sign, x.sig * y.sig, x.unit + y.unit};
    return product;
}

/* NaN or infinity as an operand of a * b + c; c is any finite number for a plain product. */
static uint32_t fma_special(uint32_t a, uint32_t b, uint32_t c)
{
    const bool product_inf = is_inf(a) || is_inf(b);
    const bool product_zero = (a & DP_F32_ABS) == 0 || (b & DP_F32_ABS) == 0;
    const uint32_t product_sign = (a ^ b) & DP_F32_SIGN;
    if (dp_f32_bits_is_nan(a) || dp_f32_bits_is_nan(b) || dp_f32_bits_is_nan(c) ||
        (product_inf && product_zero) ||
        (product_inf && is_inf(c) && product_sign != (c & DP_F32_SIGN))) {
        return DP_F32_NAN;
    }
    return product_inf ? product_sign | DP_F32_INF : c;
}

static bool is_special(uint32_t x)
{
    return (x & DP_F32_INF) == DP_F32_INF;
}

uint32_t dp_f32_fma(uint32_t a, uint32_t b, uint32_t c, dp_f32_mode mode)
{
    a = flush_if(a, mode);
    b = flush_if(b, mode);
    c = flush_if(c, mode);
    if (is_special(a) || is_special(b) || is_special(c)) {
        return fma_special(a, b, c);
    }
    const term product = multiply(a, b);
    const term addend = unpack(c);
    if (product.sig != 0 && addend.sig != 0) {
        return add_terms(product, addend, mode);
    }
    if (product.sig != 0) {
        return round_term(product, mode);
    }
    if (addend.sig != 0) {
        return c;
    }
    if (product.sign == addend.sign) {
        return product.sign;
    }
    return mode.round == DP_F32_RM ? DP_F32_SIGN : 0;
}

uint32_t dp_f32_add(uint32_t a, uint32_t b, dp_f32_mode mode)
{
    return dp_f32_fma(a, F32_ONE, b, mode); /* a * 1 is exact and keeps the sign of zero */
}

uint32_t dp_f32_sub(uint32_t a, uint32_t b, dp_f32_mode mode)
{
    return dp_f32_add(a, b ^ DP_F32_SIGN, mode);
}

uint32_t dp_f32_mul(uint32_t a, uint32_t b, dp_f32_mode mode)
{
    a = flush_if(a, mode);
    b = flush_if(b, mode);
    if (is_special(a) || is_special(b)) {
        return fma_special(a, b, 0);
    }
    const term product = multiply(a, b);
    return product.sig == 0 ? product.sign : round_term(product, mode);
}

dp_f32x2 dp_f32x2_add(dp_f32x2 a, dp_f32x2 b, dp_f32_mode mode)
{
    return dp_f32x2_pack(dp_f32_add(dp_f32x2_get(a, 0), dp_f32x2_get(b, 0), mode),
                         dp_f32_add(dp_f32x2_get(a, 1), dp_f32x2_get(b, 1), mode));
}

dp_f32x2 dp_f32x2_mul(dp_f32x2 a, dp_f32x2 b, dp_f32_mode mode)
{
    return dp_f32x2_pack(dp_f32_mul(dp_f32x2_get(a, 0), dp_f32x2_get(b, 0), mode),
                         dp_f32_mul(dp_f32x2_get(a, 1), dp_f32x2_get(b, 1), mode));
}

dp_f32x2 dp_f32x2_fma(dp_f32x2 a, dp_f32x2 b, dp_f32x2 c, dp_f32_mode mode)
{
    return dp_f32x2_pack(
        dp_f32_fma(dp_f32x2_get(a, 0), dp_f32x2_get(b, 0), dp_f32x2_get(c, 0), mode),
        dp_f32_fma(dp_f32x2_get(a, 1), dp_f32x2_get(b, 1), dp_f32x2_get(c, 1), mode));
}
