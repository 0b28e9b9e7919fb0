/* SPDX-License-Identifier: MIT */
#include "formats/nvfp4.h"

#include <float.h>

float dp_nvfp4_global_encode(float amax)
{
    if (amax == 0.0f) {
        return 1.0f;
    }
    const float g = 2688.0f / amax;
    return g > FLT_MAX ? FLT_MAX : g;
}

float dp_nvfp4_global_decode(float amax)
{
    return amax == 0.0f ? 1.0f : amax / 2688.0f;
}

/* significand * 2^exponent, exact */
typedef struct {
    uint64_t significand;
    int exponent;
} exact;

static exact from_f32(uint32_t abs_bits)
{
    const uint32_t field = abs_bits >> 23;
    const exact value = {(abs_bits & 0x7FFFFFu) | (field == 0 ? 0u : 0x800000u),
                         (field == 0 ? 1 : (int)field) - 150};
    return value;
}

static exact times(exact a, uint64_t factor)
{
    a.significand *= factor;
    return a;
}

static exact normalised(exact a)
{
    while (a.significand != 0 && a.significand >> 63 == 0) {
        a.significand <<= 1;
        a.exponent--;
    }
    return a;
}

/* -1, 0, 1 as a <, =, > b */
static int compare(exact a, exact b)
{
    if (a.significand == 0 || b.significand == 0) {
        return (a.significand != 0) - (b.significand != 0);
    }
    a = normalised(a);
    b = normalised(b);
    if (a.exponent != b.exponent) {
        return a.exponent < b.exponent ? -1 : 1;
    }
    return (a.significand > b.significand) - (a.significand < b.significand);
}

/* Does |x| lie above midpoint `low` (between codes low and low + 1), ties by rule? */
static bool above(exact x, exact midpoint, uint32_t low, dp_round ties, dp_nearness *nearness)
{
    const uint64_t unit = (uint64_t)1 << 21;
    const int order = compare(x, midpoint);
    if (order == 0) {
        *nearness = DP_TIE;
        return ties == DP_RN_TIES_AWAY || (ties == DP_RNE && low % 2 != 0);
    }
    if (*nearness == DP_CLEAR && compare(times(x, unit), times(midpoint, unit - 1)) >= 0 &&
        compare(times(x, unit), times(midpoint, unit + 1)) <= 0) {
        *nearness = DP_NEAR;
    }
    return order > 0;
}

dp_e2m1 dp_nvfp4_exact_code(float x, dp_ue4m3 s, float d, dp_round ties, dp_nearness *nearness)
{
    dp_nearness found = DP_CLEAR;
    const uint32_t bits = dp_f32_bits(x);
    const uint32_t magnitude = bits & DP_F32_ABS;
    const uint32_t scale = dp_f32_bits(dp_ue4m3_to_f32(s));
    uint32_t code = 0;
    if (magnitude > DP_F32_INF || dp_f32_bits_is_nan(scale)) {
        code = 7;
    } else if (magnitude == DP_F32_INF || (scale == 0 && magnitude != 0)) {
        code = 7u | bits >> 31 << 3;
    } else if (magnitude == 0) {
        code = bits >> 31 << 3;
    } else {
        /* s has 4 significant bits: as an integer it leaves room for d and the midpoint. */
        const exact scale_exact = {from_f32(scale).significand >> 20,
                                   from_f32(scale).exponent + 20};
        exact step = times(from_f32(dp_f32_bits(d)), scale_exact.significand);
        step.exponent += scale_exact.exponent - 2; /* midpoints below are in quarters */
        for (uint32_t low = 0; low < 7; low++) {
            const dp_e2m1 a = {(uint8_t)low};
            const dp_e2m1 b = {(uint8_t)(low + 1)};
            const exact midpoint =
                times(step, dp_e2m1_twice_magnitude(a) + dp_e2m1_twice_magnitude(b));
            code += above(from_f32(magnitude), midpoint, low, ties, &found) ? 1u : 0u;
        }
        code |= bits >> 31 << 3;
    }
    if (nearness != NULL) {
        *nearness = found;
    }
    const dp_e2m1 result = {(uint8_t)code};
    return result;
}
