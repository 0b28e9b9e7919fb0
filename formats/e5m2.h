/* SPDX-License-Identifier: MIT
 *
 * E5M2: 1 sign, 5 exponent, 2 mantissa bits, bias 15, IEEE-like Inf and NaN, largest 57344.
 * Source: OCP 8-bit Floating Point Specification (OFP8) rev 1.0, table 1.
 */
#ifndef DP_FORMATS_E5M2_H
#define DP_FORMATS_E5M2_H

#include "formats/minifloat.h"

typedef struct {
    uint8_t bits;
} dp_e5m2;
DP_STATIC_ASSERT(sizeof(dp_e5m2) == 1, "dp_e5m2 is stored in 1 byte(s)");

DP_INLINE dp_minifloat dp_e5m2_format(void)
{
    const dp_minifloat format = {"e5m2", 1, 5, 2, 15, DP_TOP_IEEE};
    return format;
}

/* Exact; every NaN becomes 0x7FFFFFFF. */
DP_INLINE float dp_e5m2_to_f32(dp_e5m2 code)
{
    return dp_f32_from_bits(dp_minifloat_decode(code.bits, dp_e5m2_format()));
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_e5m2 dp_e5m2_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_e5m2_format(), how);
    const dp_e5m2 result = {(uint8_t)code};
    return result;
}

/* Two codes as one register half holds them: element 0 in the low 8 bits. */
typedef struct {
    uint16_t bits;
} dp_e5m2x2;

DP_INLINE dp_e5m2x2 dp_e5m2x2_pack(dp_e5m2 element0, dp_e5m2 element1)
{
    const dp_e5m2x2 pair = {(uint16_t)((element0.bits & 0xFFu) | ((uint32_t)element1.bits << 8))};
    return pair;
}

/* index: 0 or 1 */
DP_INLINE dp_e5m2 dp_e5m2x2_get(dp_e5m2x2 pair, unsigned index)
{
    const dp_e5m2 code = {(uint8_t)(((uint32_t)pair.bits >> (8u * (index & 1u))) & 0xFFu)};
    return code;
}

#endif
