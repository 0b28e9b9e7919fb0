/* SPDX-License-Identifier: MIT
 *
 * UE4M3, E4M3 as a block scale of NVFP4: the same magnitudes, bit 7 ignored on reading and zero on
 * writing. 0x7F (and 0xFF) is NaN. Source: PTX ISA 9.1, block scaling of mma; MMA-Sim 2.1.1 for
 * bit 7.
 */
#ifndef DP_FORMATS_UE4M3_H
#define DP_FORMATS_UE4M3_H

#include "formats/minifloat.h"

typedef struct {
    uint8_t bits;
} dp_ue4m3;
DP_STATIC_ASSERT(sizeof(dp_ue4m3) == 1, "dp_ue4m3 is stored in 1 byte(s)");

DP_INLINE dp_minifloat dp_ue4m3_format(void)
{
    const dp_minifloat format = {"ue4m3", 0, 4, 3, 7, DP_TOP_NAN};
    return format;
}

/* Exact; every NaN becomes 0x7FFFFFFF. */
DP_INLINE float dp_ue4m3_to_f32(dp_ue4m3 code)
{
    return dp_f32_from_bits(dp_minifloat_decode(code.bits, dp_ue4m3_format()));
}

/* One rounding, from the f32 straight to the format. `how`: see dp_encode; DP_ENCODE_PTX is the
 * default of the hardware. */
DP_INLINE dp_ue4m3 dp_ue4m3_from_f32(float x, dp_encode how)
{
    const uint32_t code = dp_minifloat_encode(dp_f32_bits(x), dp_ue4m3_format(), how);
    const dp_ue4m3 result = {(uint8_t)code};
    return result;
}

#endif
