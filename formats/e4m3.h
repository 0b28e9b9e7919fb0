/* SPDX-License-Identifier: MIT
 *
 * E4M3 in the OCP "fn" variant: 1 sign, 4 exponent, 3 mantissa bits, bias 7, no Inf, S.1111.111 is
 * NaN, largest 448. Source: OCP 8-bit Floating Point Specification (OFP8) rev 1.0, table 1.
 */
#ifndef DP_FORMATS_E4M3_H
#define DP_FORMATS_E4M3_H

#include "formats/minifloat.h"

typedef struct {
    uint8_t bits;
} dp_e4m3;
DP_STATIC_ASSERT(sizeof(dp_e4m3) == 1, "dp_e4m3 is stored in 1 byte(s)");

DP_INLINE dp_minifloat dp_e4m3_format(void)
{
    const dp_minifloat format = {"e4m3", 1, 4, 3, 7, DP_TOP_NAN};
    return format;
}

/* Exact; every NaN becomes 0x7FFFFFFF. */
DP_INLINE float dp_e4m3_to_f32(dp_e4m3 code)
{
    return dp_f32_from_bits(dp_minifloat_decode(code.bits, dp_e4m3_format()));
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_e4m3 dp_e4m3_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_e4m3_format(), how);
    const dp_e4m3 result = {(uint8_t)code};
    return result;
}

/* Two codes as one register half holds them: element 0 in the low 8 bits. */
typedef struct {
    uint16_t bits;
} dp_e4m3x2;

DP_INLINE dp_e4m3x2 dp_e4m3x2_pack(dp_e4m3 element0, dp_e4m3 element1)
{
    const dp_e4m3x2 pair = {(uint16_t)((element0.bits & 0xFFu) | ((uint32_t)element1.bits << 8))};
    return pair;
}

/* index: 0 or 1 */
DP_INLINE dp_e4m3 dp_e4m3x2_get(dp_e4m3x2 pair, unsigned index)
{
    const dp_e4m3 code = {(uint8_t)(((uint32_t)pair.bits >> (8u * (index & 1u))) & 0xFFu)};
    return code;
}

#endif
