/* SPDX-License-Identifier: MIT
 *
 * FP16, IEEE 754-2019 binary16: 1 sign, 5 exponent, 10 mantissa bits, bias 15.
 */
#ifndef DP_FORMATS_FP16_H
#define DP_FORMATS_FP16_H

#include "formats/minifloat.h"

typedef struct {
    uint16_t bits;
} dp_fp16;
DP_STATIC_ASSERT(sizeof(dp_fp16) == 2, "dp_fp16 is stored in 2 byte(s)");

DP_INLINE dp_minifloat dp_fp16_format(void)
{
    const dp_minifloat format = {"fp16", 1, 5, 10, 15, DP_TOP_IEEE};
    return format;
}

/* Exact; every NaN becomes 0x7FFFFFFF. */
DP_INLINE float dp_fp16_to_f32(dp_fp16 code)
{
    return dp_f32_from_bits(dp_minifloat_decode(code.bits, dp_fp16_format()));
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_fp16 dp_fp16_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_fp16_format(), how);
    const dp_fp16 result = {(uint16_t)code};
    return result;
}

#endif
