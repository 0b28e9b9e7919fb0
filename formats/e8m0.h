/* SPDX-License-Identifier: MIT
 *
 * E8M0, the block scale of the MX formats: a power of two, value 2^(code - 127), no sign, no zero,
 * no Inf; 0xFF is NaN. Code 0 is 2^-127, not zero [E1]. Source: OCP Microscaling Formats
 * v1.0, 5.4.1; PTX ISA 9.1, cvt ue8m0x2.
 */
#ifndef DP_FORMATS_E8M0_H
#define DP_FORMATS_E8M0_H

#include "formats/minifloat.h"

typedef struct {
    uint8_t bits;
} dp_e8m0;
DP_STATIC_ASSERT(sizeof(dp_e8m0) == 1, "dp_e8m0 is stored in 1 byte(s)");

#define DP_E8M0_NAN 0xFFu
#define DP_E8M0_MAX 0xFEu /* 2^127 */
#define DP_E8M0_ONE 0x7Fu /* 2^0   */

/* Which power of two a magnitude goes to [E2]. */
typedef enum {
    DP_E8M0_UP,           /* the next power of two not below it (cvt.rp)                    */
    DP_E8M0_DOWN,         /* the last power of two not above it (cvt.rz); below 2^-127: 0x00 */
    DP_E8M0_NEAREST_EVEN, /* arithmetic midpoint 1.5 * 2^k, ties to the even code           */
    DP_E8M0_NEAREST_UP    /* arithmetic midpoint, ties up: the carry of a half ulp          */
} dp_e8m0_round;

typedef struct {
    dp_e8m0_round round;
    bool satfinite; /* above 2^127 and Inf: 0xFE instead of 0xFF [E3] */
} dp_e8m0_encode;

/* cvt.rp.satfinite.ue8m0x2.f32, and cvt.rz with saturation. */
DP_INLINE dp_e8m0_encode dp_e8m0_encode_up(void)
{
    const dp_e8m0_encode how = {DP_E8M0_UP, true};
    return how;
}
DP_INLINE dp_e8m0_encode dp_e8m0_encode_down(void)
{
    const dp_e8m0_encode how = {DP_E8M0_DOWN, true};
    return how;
}

/* 2^(code-127), exact (code 0 is a subnormal f32); 0xFF becomes 0x7FFFFFFF. */
DP_INLINE float dp_e8m0_to_f32(dp_e8m0 code)
{
    const uint32_t bits = code.bits;
    if (bits == DP_E8M0_NAN) {
        return dp_f32_from_bits(DP_F32_NAN_CUDA);
    }
    return dp_f32_from_bits(bits == 0 ? 0x00400000u : bits << 23);
}

/* The code of |x|: the sign is ignored as NVIDIA's converter does; a caller for whom a negative
 * scale is an error checks for it [E4]. Zero gives 0x00, NaN 0xFF, in every mode. */
DP_INLINE dp_e8m0 dp_e8m0_from_f32(float x, dp_e8m0_encode how)
{
    const uint32_t magnitude = dp_f32_bits(x) & DP_F32_ABS;
    uint32_t code = magnitude >> 23;
    if (magnitude > DP_F32_INF) {
        const dp_e8m0 nan = {DP_E8M0_NAN};
        return nan;
    }
    /* In a subnormal f32 the power 2^-127 is bit 22; from there down to zero code 0 is nearest. */
    const uint32_t rest = code == 0 ? (magnitude > 0x400000u ? (magnitude - 0x400000u) << 1 : 0u)
                                    : magnitude & 0x7FFFFFu;
    const uint32_t tie = 0x400000u;
    bool away = false;
    switch (how.round) {
    case DP_E8M0_UP:
        away = rest != 0;
        break;
    case DP_E8M0_DOWN:
        break;
    case DP_E8M0_NEAREST_EVEN:
        away = rest > tie || (rest == tie && (code & 1u) != 0);
        break;
    case DP_E8M0_NEAREST_UP:
        away = rest >= tie;
        break;
    }
    code += away ? 1u : 0u;
    if (code == DP_E8M0_NAN && how.satfinite) {
        code = DP_E8M0_MAX;
    }
    const dp_e8m0 result = {(uint8_t)code};
    return result;
}

#endif
