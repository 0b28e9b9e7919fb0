/* SPDX-License-Identifier: MIT
 *
 * Element codes drawn to hurt a matrix unit.
 */
#ifndef DP_TESTS_MMA_DRAW_H
#define DP_TESTS_MMA_DRAW_H

#include "mma_reference.h"
#include "support.h"

/* A finite code whose exponent field lies in [low, low + width]. */
static inline uint32_t code_in_window(dp_rng *rng, ref_format f, uint32_t low, uint32_t width)
{
    const uint32_t top = (1u << f.exponent_bits) - 1u;
    uint32_t field = low + dp_rng_below(rng, width + 1);
    const bool reserved = f.infinities && field >= top;
    field = reserved ? top - 1 : field > top ? top : field;
    uint32_t mantissa = dp_rng_u32(rng) & ((1u << f.mantissa_bits) - 1u);
    if (f.one_nan && field == top && mantissa == (1u << f.mantissa_bits) - 1u) {
        mantissa--;
    }
    const uint32_t sign = dp_rng_below(rng, 2) << (f.exponent_bits + f.mantissa_bits);
    return sign | (field << f.mantissa_bits) | mantissa;
}

static inline uint32_t all_bits(dp_rng *rng, ref_format f)
{
    return dp_rng_u32(rng) >> (31 - f.exponent_bits - f.mantissa_bits);
}

static inline uint32_t draw_code(dp_rng *rng, ref_format f, int style, uint32_t low, uint32_t width)
{
    const uint32_t top = (1u << f.exponent_bits) - 1u;
    const uint32_t sign = dp_rng_below(rng, 2) << (f.exponent_bits + f.mantissa_bits);
    switch (style) {
    case 0: /* any finite code */
        return code_in_window(rng, f, 0, top);
    case 1: /* sparse */
        return dp_rng_below(rng, 4) == 0 ? code_in_window(rng, f, low, width) : sign;
    case 2: /* powers of two */
        return code_in_window(rng, f, low, width) & ~((1u << f.mantissa_bits) - 1u);
    case 3: /* extremes, and others to be cut beside them */
        switch (dp_rng_below(rng, 7)) {
        case 0:
            return sign | 1u;
        case 1:
            return sign | ((1u << f.mantissa_bits) - 1u);
        case 2:
            return sign | (1u << f.mantissa_bits);
        case 3:
            return code_in_window(rng, f, top, 0);
        case 4:
            return sign;
        default:
            return code_in_window(rng, f, low, width);
        }
    case 4: /* now and then a special value or anything else */
        switch (dp_rng_below(rng, 100)) {
        case 0:
            return all_bits(rng, f);
        case 1: /* infinity, where there is one */
            return f.infinities ? sign | (top << f.mantissa_bits) : sign;
        case 2:
        case 3:
            return sign;
        default:
            return code_in_window(rng, f, low, width);
        }
    default: /* a window of exponents */
        return code_in_window(rng, f, low, width);
    }
}

#endif
