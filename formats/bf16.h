/* SPDX-License-Identifier: MIT
 *
 * BF16, the upper half of a binary32: 1 sign, 8 exponent, 7 mantissa bits, bias 127. Decoding is a
 * shift, so that NaN payloads survive; encoding follows dp_encode like every other format.
 */
#ifndef DP_FORMATS_BF16_H
#define DP_FORMATS_BF16_H

#include "formats/minifloat.h"

typedef struct {
    uint16_t bits;
} dp_bf16;
DP_STATIC_ASSERT(sizeof(dp_bf16) == 2, "dp_bf16 is stored in 2 byte(s)");

DP_INLINE dp_minifloat dp_bf16_format(void)
{
    const dp_minifloat format = {"bf16", 1, 8, 7, 127, DP_TOP_IEEE};
    return format;
}

/* Exact: the bits are the upper half of the f32, NaN payload included. */
DP_INLINE float dp_bf16_to_f32(dp_bf16 code)
{
    return dp_f32_from_bits((uint32_t)code.bits << 16);
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_bf16 dp_bf16_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_bf16_format(), how);
    const dp_bf16 result = {(uint16_t)code};
    return result;
}

#endif
