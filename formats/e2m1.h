/* SPDX-License-Identifier: MIT
 *
 * E2M1, the payload of NVFP4 and MXFP4: 1 sign, 2 exponent, 1 mantissa bit, bias 1, every code
 * finite. Source: OCP Microscaling Formats v1.0, 5.3.3. Stored in the low nibble of a byte; the
 * high nibble is ignored on reading and zero on writing.
 */
#ifndef DP_FORMATS_E2M1_H
#define DP_FORMATS_E2M1_H

#include "formats/minifloat.h"

typedef struct {
    uint8_t bits;
} dp_e2m1;
DP_STATIC_ASSERT(sizeof(dp_e2m1) == 1, "dp_e2m1 is stored in 1 byte(s)");

DP_INLINE dp_minifloat dp_e2m1_format(void)
{
    const dp_minifloat format = {"e2m1", 1, 2, 1, 1, DP_TOP_FINITE};
    return format;
}

/* Exact; every NaN becomes 0x7FFFFFFF. */
DP_INLINE float dp_e2m1_to_f32(dp_e2m1 code)
{
    return dp_f32_from_bits(dp_minifloat_decode(code.bits, dp_e2m1_format()));
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_e2m1 dp_e2m1_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_e2m1_format(), how);
    const dp_e2m1 result = {(uint8_t)code};
    return result;
}

/* Two codes as one register half holds them: element 0 in the low 4 bits. */
typedef struct {
    uint8_t bits;
} dp_e2m1x2;

DP_INLINE dp_e2m1x2 dp_e2m1x2_pack(dp_e2m1 element0, dp_e2m1 element1)
{
    const dp_e2m1x2 pair = {(uint8_t)((element0.bits & 0xFu) | ((uint32_t)element1.bits << 4))};
    return pair;
}

/* index: 0 or 1 */
DP_INLINE dp_e2m1 dp_e2m1x2_get(dp_e2m1x2 pair, unsigned index)
{
    const dp_e2m1 code = {(uint8_t)(((uint32_t)pair.bits >> (4u * (index & 1u))) & 0xFu)};
    return code;
}

/* Twice the magnitude as an integer, 0 1 2 3 4 6 8 12: what integer accumulators add up. */
DP_INLINE uint32_t dp_e2m1_twice_magnitude(dp_e2m1 code)
{
    const uint32_t field = (code.bits >> 1) & 3u;
    const uint32_t mantissa = code.bits & 1u;
    return field == 0 ? mantissa : (2u + mantissa) << (field - 1u);
}

#endif
