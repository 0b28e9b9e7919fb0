/* SPDX-License-Identifier: MIT
 *
 * UE5M3, an unsigned 8-bit block scale proposed for later hardware: 5 exponent, 3 mantissa bits,
 * bias 15, subnormals, 0xFF is NaN, no Inf, largest 114688. The meaning of the top code is not
 * published by a vendor; here it follows E4M3 [F4].
 */
#ifndef DP_FORMATS_UE5M3_H
#define DP_FORMATS_UE5M3_H

#include "formats/minifloat.h"

typedef struct {
    uint8_t bits;
} dp_ue5m3;
DP_STATIC_ASSERT(sizeof(dp_ue5m3) == 1, "dp_ue5m3 is stored in 1 byte(s)");

DP_INLINE dp_minifloat dp_ue5m3_format(void)
{
    const dp_minifloat format = {"ue5m3", 0, 5, 3, 15, DP_TOP_NAN};
    return format;
}

/* Exact; every NaN becomes 0x7FFFFFFF. */
DP_INLINE float dp_ue5m3_to_f32(dp_ue5m3 code)
{
    return dp_f32_from_bits(dp_minifloat_decode(code.bits, dp_ue5m3_format()));
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_ue5m3 dp_ue5m3_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_ue5m3_format(), how);
    const dp_ue5m3 result = {(uint8_t)code};
    return result;
}

#endif
