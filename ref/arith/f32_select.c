/* SPDX-License-Identifier: MIT
 *
 * min, max and the conversions between f32 and s32: no rounding of a sum, only of a position.
 */
#include "ref/arith/bits64.h"
#include "ref/arith/f32.h"

/* Patterns of numbers in increasing order, -0 just below +0. */
static uint32_t order_key(uint32_t x)
{
    return (x & DP_F32_SIGN) != 0 ? ~x : x | DP_F32_SIGN;
}

static uint32_t select(uint32_t a, uint32_t b, bool ftz, bool nan, bool want_larger)
{
    const bool a_nan = dp_f32_bits_is_nan(a);
    const bool b_nan = dp_f32_bits_is_nan(b);
    if ((a_nan && b_nan) || (nan && (a_nan || b_nan))) {
        return DP_F32_NAN;
    }
    if (ftz) {
        a = dp_f32_flush(a);
        b = dp_f32_flush(b);
    }
    if (a_nan) {
        return b;
    }
    if (b_nan) {
        return a;
    }
    return (order_key(a) > order_key(b)) == want_larger ? a : b;
}

uint32_t dp_f32_min(uint32_t a, uint32_t b, bool ftz, bool nan)
{
    return select(a, b, ftz, nan, false);
}

uint32_t dp_f32_max(uint32_t a, uint32_t b, bool ftz, bool nan)
{
    return select(a, b, ftz, nan, true);
}

/* Does dropping `rest` out of 2 * `half` move the integer `whole` one away from zero? */
static bool away(uint64_t whole, uint64_t rest, uint64_t half, bool negative, dp_f32_round round)
{
    switch (round) {
    case DP_F32_RN:
        return rest > half || (rest == half && (whole & 1) != 0);
    case DP_F32_RM:
        return rest != 0 && negative;
    case DP_F32_RP:
        return rest != 0 && !negative;
    case DP_F32_RZ:
    default:
        return false;
    }
}

int32_t dp_f32_to_s32(uint32_t x, dp_f32_round round, bool ftz)
{
    if (dp_f32_bits_is_nan(x)) {
        return 0;
    }
    if (ftz) {
        x = dp_f32_flush(x);
    }
    const bool negative = (x & DP_F32_SIGN) != 0;
    const int field = (int)((x >> 23) & 0xFFu);
    if (field >= 127 + 31) {
        return negative ? INT32_MIN : INT32_MAX;
    }
    /* Fixed point with 31 fraction bits; whatever lies below them is sticky. */
    const uint64_t sig = (x & 0x7FFFFFu) | (field == 0 ? 0u : 0x800000u);
    const int shift = (field == 0 ? 1 : field) - 150 + 31;
    const uint64_t fixed = shift >= 0 ? sig << shift : dp_shift_right_sticky(sig, -shift);
    const uint64_t half = UINT64_C(1) << 30;
    uint64_t whole = fixed >> 31;
    whole += away(whole, fixed & (2 * half - 1), half, negative, round) ? 1 : 0;
    if (negative) {
        return (int32_t) - (int64_t)whole; /* at most 2^31 */
    }
    return whole > INT32_MAX ? INT32_MAX : (int32_t)whole;
}

int32_t dp_f32_floor_s32(uint32_t x, bool ftz)
{
    return dp_f32_to_s32(x, DP_F32_RM, ftz);
}

uint32_t dp_f32_from_s32(int32_t x)
{
    if (x == 0) {
        return 0;
    }
    const uint32_t sign = x < 0 ? DP_F32_SIGN : 0;
    const uint64_t magnitude = x < 0 ? (uint64_t) - (int64_t)x : (uint64_t)x;
    const int lead = 63 - dp_clz64(magnitude);
    const uint64_t normal = magnitude << (62 - lead); /* leading bit at 62, 39 bits to drop */
    const uint64_t half = UINT64_C(1) << 38;
    const uint64_t rest = normal & (2 * half - 1);
    const uint64_t kept = normal >> 39;
    const uint32_t up = rest > half || (rest == half && (kept & 1) != 0) ? 1u : 0u;
    return sign | (((uint32_t)(lead + 126) << 23) + (uint32_t)kept + up);
}
