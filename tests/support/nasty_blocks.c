/* SPDX-License-Identifier: MIT */
#include "nasty_blocks.h"

#include <math.h>

static const float grid[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

static float nudge(dp_rng *rng, float x)
{
    const uint32_t bits = dp_f32_bits(x);
    return (bits & DP_F32_ABS) == 0 ? x : dp_f32_from_bits(bits + dp_rng_below(rng, 3) - 1u);
}

static float sign(dp_rng *rng, float x)
{
    return dp_rng_below(rng, 2) != 0 ? -x : x;
}

static float power(dp_rng *rng, int low, int high)
{
    return ldexpf(1.0f, low + (int)dp_rng_below(rng, (uint32_t)(high - low + 1)));
}

static float midpoint(dp_rng *rng)
{
    const uint32_t i = dp_rng_below(rng, 7);
    return (grid[i] + grid[i + 1]) / 2.0f;
}

static float e4m3_scale(dp_rng *rng)
{
    const uint32_t code = 1 + dp_rng_below(rng, 0x7E);
    const uint32_t mantissa = code & 7u;
    return code < 8 ? ldexpf((float)mantissa, -9)
                    : ldexpf((float)(8u + mantissa), (int)(code >> 3) - 10);
}

/* The largest magnitude goes to a random place, the others stay below it. */
static void with_amax(dp_rng *rng, float amax, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = sign(rng, amax * (float)dp_rng_unit(rng));
    }
    x[dp_rng_below(rng, (uint32_t)n)] = sign(rng, amax);
}

static float element(dp_rng *rng, dp_nasty kind, float scale)
{
    const float normal = (float)dp_rng_normal(rng);
    switch (kind) {
    case DP_NASTY_BF16:
        return dp_f32_from_bits(dp_f32_bits(normal) & 0xFFFF0000u);
    case DP_NASTY_MIDPOINTS:
    case DP_NASTY_SCALED_MIDPOINTS:
        return sign(rng, nudge(rng, midpoint(rng) * scale));
    case DP_NASTY_REQUANTISED:
        return sign(rng, grid[dp_rng_below(rng, 8)] * scale);
    case DP_NASTY_TINY:
        return dp_f32_from_bits((dp_rng_u32(rng) & 0x81FFFFFFu));
    case DP_NASTY_HUGE:
        return dp_f32_from_bits((dp_rng_u32(rng) & 0x80FFFFFFu) | 0x7E000000u);
    case DP_NASTY_WIDE: {
        const uint32_t bits = dp_rng_u32(rng);
        return dp_f32_from_bits((bits & DP_F32_INF) == DP_F32_INF ? bits ^ 0x40000000u : bits);
    }
    case DP_NASTY_ZEROS:
        return sign(rng, 0.0f);
    case DP_NASTY_MINUS_ZERO:
        return -0.0f;
    case DP_NASTY_NEGATIVE:
        return -fabsf(normal) - 0x1p-20f;
    default:
        return normal;
    }
}

void dp_nasty_block(dp_rng *rng, dp_nasty kind, float *x, size_t n)
{
    const bool e4m3 = kind == DP_NASTY_SCALED_MIDPOINTS ||
                      (kind == DP_NASTY_REQUANTISED && dp_rng_below(rng, 2) != 0);
    const float scale = e4m3 ? e4m3_scale(rng) : power(rng, -40, 40);
    for (size_t i = 0; i < n; i++) {
        x[i] = element(rng, kind, scale);
    }
    const size_t place = dp_rng_below(rng, (uint32_t)n);
    switch (kind) {
    case DP_NASTY_MIDPOINTS:
    case DP_NASTY_SCALED_MIDPOINTS:
    case DP_NASTY_REQUANTISED:
        x[place] = sign(rng, 6.0f * scale); /* so that the scale itself is hit */
        break;
    case DP_NASTY_EDGE_POW2:
        with_amax(rng, nudge(rng, power(rng, -140, 127)), x, n);
        break;
    case DP_NASTY_EDGE_SIX:
        with_amax(rng, nudge(rng, 6.0f * power(rng, -140, 124)), x, n);
        break;
    case DP_NASTY_UNDERFLOW:
        with_amax(rng, nudge(rng, 6.0f * ldexpf((float)(1 + dp_rng_below(rng, 40)), -12)), x, n);
        break;
    case DP_NASTY_OVERFLOW:
        with_amax(rng, nudge(rng, (float)(2400 + 8 * dp_rng_below(rng, 80))), x, n);
        break;
    case DP_NASTY_ONE_NAN:
        x[place] = dp_f32_from_bits(0x7F800001u | (dp_rng_u32(rng) & 0x807FFFFFu));
        break;
    case DP_NASTY_ONE_INF:
        x[place] = sign(rng, INFINITY);
        break;
    default:
        break;
    }
}
