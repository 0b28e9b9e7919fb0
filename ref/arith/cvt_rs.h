/* SPDX-License-Identifier: MIT
 *
 * Stochastic conversions, cvt.rs of PTX ISA 9.1 (sm_100a and sm_103a). The random bits are an
 * argument.
 *
 * The bits that rounding discards are added to the random bits, both aligned below the last kept
 * bit; a carry rounds away from zero, no carry toward zero. PTX names the part of rbits that serves
 * a pair of operands, not which bits of that part serve which operand: that is the switch below.
 */
#ifndef DP_REF_ARITH_CVT_RS_H
#define DP_REF_ARITH_CVT_RS_H

#include "ref/arith/cvt.h"

/* How the two operands of a pair share the pair's random bits. Unspecified by PTX ISA 9.1; no
 * public measurement. The x4 forms give 16 bits to (a, b) and 16 to (e, f). */
typedef enum {
    DP_RS_HIGH_FIRST, /* default: the first operand takes the upper 8 bits, the second the lower 8
                       */
    DP_RS_LOW_FIRST, /* the other way round                                                       */
    DP_RS_SHARED     /* both take all 16 bits                                                     */
} dp_rs_share;

/* .relu, and .satfinite for the 16-bit formats (the narrow ones always have it). */
typedef struct {
    bool relu;
    bool satfinite;
    dp_rs_share share; /* x4 forms only */
} dp_cvt_rs;

DP_INLINE dp_encode dp_cvt_rs_encode(uint32_t random, uint8_t bits, bool satfinite)
{
    dp_encode encode = dp_encode_stochastic(random, bits);
    encode.overflow = satfinite ? DP_OVERFLOW_SATFINITE : DP_OVERFLOW_SPECIAL;
    return encode;
}

/* cvt.rs{.relu}{.satfinite}.bf16x2.f32 d, a, b, rbits: rbits[31:16] serve a, rbits[15:0] serve b.
 */
DP_INLINE dp_bf16x2 dp_cvt_rs_bf16x2_f32(float a, float b, uint32_t rbits, dp_cvt_rs how)
{
    const dp_encode low = dp_cvt_rs_encode(rbits & 0xFFFFu, 16, how.satfinite);
    const dp_encode high = dp_cvt_rs_encode(rbits >> 16, 16, how.satfinite);
    return dp_bf16x2_pack(dp_bf16_from_f32(dp_cvt_relu(b, how.relu), low),
                          dp_bf16_from_f32(dp_cvt_relu(a, how.relu), high));
}

/* cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits: rbits[28:16] serve a, rbits[12:0] serve b. */
DP_INLINE dp_fp16x2 dp_cvt_rs_f16x2_f32(float a, float b, uint32_t rbits, dp_cvt_rs how)
{
    const dp_encode low = dp_cvt_rs_encode(rbits & 0x1FFFu, 13, how.satfinite);
    const dp_encode high = dp_cvt_rs_encode(rbits >> 16 & 0x1FFFu, 13, how.satfinite);
    return dp_fp16x2_pack(dp_fp16_from_f32(dp_cvt_relu(b, how.relu), low),
                          dp_fp16_from_f32(dp_cvt_relu(a, how.relu), high));
}

/* The encode of one operand of a pair; pair holds the pair's 16 random bits, first says which. */
DP_INLINE dp_encode dp_cvt_rs_x4_encode(uint32_t pair, bool first, dp_rs_share share)
{
    if (share == DP_RS_SHARED) {
        return dp_cvt_rs_encode(pair, 16, true);
    }
    const bool upper = first == (share == DP_RS_HIGH_FIRST);
    return dp_cvt_rs_encode(upper ? pair >> 8 : pair & 0xFFu, 8, true);
}

/* The 16 random bits of (a, b) and of (e, f). The 8-bit formats: the upper and the lower half of
 * rbits. E2M1: the upper byte of each half serves (a, b), the lower byte of each half serves (e,
 * f). */
DP_INLINE uint32_t dp_cvt_rs_pair8(uint32_t rbits, bool ab)
{
    return ab ? rbits >> 16 : rbits & 0xFFFFu;
}
DP_INLINE uint32_t dp_cvt_rs_pair4(uint32_t rbits, bool ab)
{
    const uint32_t moved = ab ? rbits >> 8 : rbits;
    return (moved >> 8 & 0xFF00u) | (moved & 0xFFu);
}

/* cvt.rs{.relu}.satfinite.e2m1x4.f32 d, {a, b, e, f}, rbits: a in bits 15..12, b 11..8, e 7..4,
 * f 3..0. */
DP_INLINE uint16_t dp_cvt_rs_e2m1x4_f32(const float abef[4], uint32_t rbits, dp_cvt_rs how)
{
    uint32_t packed = 0;
    for (int i = 0; i < 4; i++) {
        const dp_encode encode =
            dp_cvt_rs_x4_encode(dp_cvt_rs_pair4(rbits, i < 2), i % 2 == 0, how.share);
        packed = packed << 4 | dp_e2m1_from_f32(dp_cvt_relu(abef[i], how.relu), encode).bits;
    }
    return (uint16_t)packed;
}

/* cvt.rs{.relu}.satfinite.{e4m3x4,e5m2x4}.f32: a in bits 31..24, b, e, f below. */
DP_INLINE uint32_t dp_cvt_rs_e4m3x4_f32(const float abef[4], uint32_t rbits, dp_cvt_rs how)
{
    uint32_t packed = 0;
    for (int i = 0; i < 4; i++) {
        const dp_encode encode =
            dp_cvt_rs_x4_encode(dp_cvt_rs_pair8(rbits, i < 2), i % 2 == 0, how.share);
        packed = packed << 8 | dp_e4m3_from_f32(dp_cvt_relu(abef[i], how.relu), encode).bits;
    }
    return packed;
}
DP_INLINE uint32_t dp_cvt_rs_e5m2x4_f32(const float abef[4], uint32_t rbits, dp_cvt_rs how)
{
    uint32_t packed = 0;
    for (int i = 0; i < 4; i++) {
        const dp_encode encode =
            dp_cvt_rs_x4_encode(dp_cvt_rs_pair8(rbits, i < 2), i % 2 == 0, how.share);
        packed = packed << 8 | dp_e5m2_from_f32(dp_cvt_relu(abef[i], how.relu), encode).bits;
    }
    return packed;
}

#endif
