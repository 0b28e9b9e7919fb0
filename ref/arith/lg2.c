/* SPDX-License-Identifier: MIT
 *
 * log2(x) for lg2.approx.ftz.f32, in 64-bit fixed point.
 *
 * x = 2^e * y with y in [sqrt(1/2), sqrt(2)), s = (y - 1)/(y + 1),
 * log2(x) = e + (2/ln 2) s (1 + s^2/3 + s^4/5 + ...). s is kept as a 64-bit quotient scaled up by
 * 2^shift, so that the result keeps its relative precision (below 2^-58) next to x = 1.
 */
#include "ref/arith/bits64.h"
#include "ref/arith/sfu.h"

#define TWO_OVER_LN2 UINT64_C(0xB8AA3B295C17F0BC) /* 2/ln 2 * 2^62 */
#define SQRT2        0xB504F3u                    /* sqrt(2) * 2^23, rounded down */

/* sign * sig * 2^unit rounded to nearest; sig is not 0 and no tie and no subnormal result occurs.
 */
static uint32_t round_to_f32(uint32_t sign, uint64_t sig, int unit)
{
    const int lead = 63 - dp_clz64(sig);
    const uint64_t normal = sig << (62 - lead);
    const uint32_t kept = (uint32_t)((normal >> 39) + ((normal >> 38) & 1));
    return sign | (((uint32_t)(lead + unit + 126) << 23) + kept);
}

/* (2/ln 2) atanh(s) for s = n/d scaled up by 2^shift: returns log2 * 2^(61 + shift). n << shift
 * must be in [2^22, 2^23) and 2^24 <= d < 2^26. */
static uint64_t scaled_log2(uint32_t n, uint32_t d, int shift)
{
    const uint64_t numerator = (uint64_t)n << (shift + 40);
    const uint64_t high = numerator / d;
    const uint64_t s_scaled = high << 24 | ((numerator % d) << 24) / d; /* s * 2^(64 + shift) */
    const uint64_t s = s_scaled >> shift;
    const uint64_t s2 = dp_mul_high(s, s); /* below 0.0295: 12 terms leave less than 2^-65 */
    uint64_t h = UINT64_MAX / 25;
    for (unsigned k = 11; k >= 1; k--) {
        h = UINT64_MAX / (2 * k + 1) + dp_mul_high(s2, h);
    }
    h = (UINT64_C(1) << 63) + (dp_mul_high(s2, h) >> 1);
    return dp_mul_high(s_scaled, dp_mul_high(TWO_OVER_LN2, h));
}

static uint32_t log2_normal(uint32_t x)
{
    int e = (int)(x >> 23) - 127;
    const uint32_t sig = (x & 0x7FFFFFu) | 0x800000u;
    uint32_t one = 0x800000u;
    if (sig > SQRT2) { /* y = sig/2^24, below 1 */
        one <<= 1;
        e++;
    }
    const uint32_t n = sig > one ? sig - one : one - sig;
    const uint32_t negative_y = sig < one ? DP_F32_SIGN : 0;
    if (n == 0) { /* e is not 0: log2(1) is special */
        return round_to_f32(e < 0 ? DP_F32_SIGN : 0, (uint64_t)(e < 0 ? -e : e), 0);
    }
    const int shift = dp_clz64(n) - 41;
    const uint64_t fraction = scaled_log2(n, sig + one, shift);
    if (e == 0) {
        return round_to_f32(negative_y, fraction, -61 - shift);
    }
    /* |e| with 56 fraction bits; the logarithm of y, at most 1/2, adds to or takes from it. */
    const uint32_t sign = e < 0 ? DP_F32_SIGN : 0;
    const uint64_t whole = (uint64_t)(e < 0 ? -e : e) << 56;
    const uint64_t part = fraction >> (5 + shift);
    return round_to_f32(sign, sign == negative_y ? whole + part : whole - part, -56);
}

/* Results that no arithmetic is needed for; true if x is one of these. */
static bool special(uint32_t x, uint32_t *result)
{
    if ((x & DP_F32_ABS) < 0x00800000u) {
        *result = DP_F32_SIGN | DP_F32_INF;
    } else if (x > DP_F32_INF) { /* NaN of either sign, or negative */
        *result = DP_F32_NAN_CUDA;
    } else if (x == DP_F32_INF || x == 0x3F800000u) {
        *result = x == DP_F32_INF ? x : 0;
    } else {
        return false;
    }
    return true;
}

uint32_t dp_lg2_exact(uint32_t x)
{
    uint32_t result;
    return special(x, &result) ? result : log2_normal(x);
}

uint32_t dp_lg2_unit(const dp_sfu_unit *unit, uint32_t x)
{
    uint32_t result;
    if (special(x, &result)) {
        return result;
    }
    /* e + log2 of the mantissa with 36 fraction bits, a negative sum complemented by ones,
     * truncated to 24 significant bits. The sum for x = 1 would not be 0: that result is special.
     */
    const int64_t e = (int64_t)(x >> 23) - 127;
    const int64_t sum = e * (INT64_C(1) << 36) + (int64_t)dp_sfu_unit_lg2(unit, x & 0x7FFFFFu);
    const uint64_t magnitude = (uint64_t)(sum < 0 ? ~sum : sum);
    if (magnitude == 0) {
        return 0;
    }
    const int lead = 63 - dp_clz64(magnitude);
    const uint32_t kept = (uint32_t)(magnitude << (63 - lead) >> 40);
    return (sum < 0 ? DP_F32_SIGN : 0) | (((uint32_t)(lead - 36 + 126) << 23) + kept);
}
