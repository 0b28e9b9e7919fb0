/* SPDX-License-Identifier: MIT */
#include "formats/catalog.h"

#include <math.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/fp16.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"

enum { CATALOG_SIZE = 11 };

size_t dp_catalog_size(void)
{
    return CATALOG_SIZE;
}

dp_minifloat dp_catalog_at(size_t index)
{
    const dp_minifloat formats[CATALOG_SIZE] = {
        dp_e2m1_format(),
        {"e2m3", 1, 2, 3, 1, DP_TOP_FINITE},
        {"e3m2", 1, 3, 2, 3, DP_TOP_FINITE},
        dp_e4m3_format(),
        dp_ue4m3_format(),
        dp_e5m2_format(),
        dp_ue5m3_format(),
        {"e4m3fnuz", 1, 4, 3, 8, DP_TOP_FNUZ},
        {"e5m2fnuz", 1, 5, 2, 16, DP_TOP_FNUZ},
        dp_fp16_format(),
        dp_bf16_format(),
    };
    return formats[index < CATALOG_SIZE ? index : 0];
}

bool dp_catalog_find(const char *name, dp_minifloat *format)
{
    for (size_t i = 0; i < CATALOG_SIZE; i++) {
        const dp_minifloat candidate = dp_catalog_at(i);
        if (strcmp(candidate.name, name) == 0) {
            *format = candidate;
            return true;
        }
    }
    return false;
}

uint32_t dp_minifloat_codes(dp_minifloat f)
{
    return 1u << (f.has_sign + f.exponent_bits + f.mantissa_bits);
}

/* The value of a magnitude code as if every exponent, the topmost too, were an ordinary one. */
static double grid_value(uint32_t magnitude, dp_minifloat f)
{
    const uint32_t field = magnitude >> f.mantissa_bits;
    const uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1u);
    const uint32_t significand = field == 0 ? mantissa : mantissa | (1u << f.mantissa_bits);
    const int exponent = (field == 0 ? 1 : (int)field) - f.bias - f.mantissa_bits;
    return ldexp((double)significand, exponent);
}

double dp_minifloat_value(uint32_t code, dp_minifloat f)
{
    if (dp_minifloat_is_nan(code, f)) {
        return (double)NAN;
    }
    const bool negative = (code & dp_minifloat_sign_bit(f)) != 0;
    const double magnitude = dp_minifloat_is_inf(code, f)
                                 ? (double)INFINITY
                                 : grid_value(code & dp_minifloat_magnitude_mask(f), f);
    return negative ? -magnitude : magnitude;
}

double dp_minifloat_midpoint(uint32_t code, dp_minifloat f)
{
    return 0.5 * (grid_value(code, f) + grid_value(code + 1u, f));
}

double dp_minifloat_max(dp_minifloat f)
{
    return grid_value(dp_minifloat_max_code(f), f);
}

double dp_minifloat_min_normal(dp_minifloat f)
{
    return grid_value(1u << f.mantissa_bits, f);
}

double dp_minifloat_min_subnormal(dp_minifloat f)
{
    return grid_value(1u, f);
}
