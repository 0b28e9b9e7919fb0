/* SPDX-License-Identifier: MIT
 *
 * The packed conversions of PTX ISA 9.1 (cvt), as wrappers over formats/: one rounding each,
 * integers only. Operand order is PTX's: `cvt.*x2.f32 d, a, b` puts a in the HIGH field of d and b
 * in the low one, so these functions take (a, b) in that order. A packed source keeps its fields.
 *
 * relu (the .relu modifier): a negative input, -0 included, gives +0; a NaN stays what it is
 * without relu (PTX: "canonical NaN"; +6 in E2M1).
 */
#ifndef DP_REF_ARITH_CVT_H
#define DP_REF_ARITH_CVT_H

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/e8m0.h"
#include "formats/fp16.h"

/* Packed pairs: element 0 in the low half. */
typedef struct {
    uint16_t bits;
} dp_e8m0x2;
typedef struct {
    uint32_t bits;
} dp_bf16x2;
typedef struct {
    uint32_t bits;
} dp_fp16x2;

DP_INLINE dp_e8m0x2 dp_e8m0x2_pack(dp_e8m0 element0, dp_e8m0 element1)
{
    const dp_e8m0x2 pair = {(uint16_t)(element0.bits | (uint32_t)element1.bits << 8)};
    return pair;
}
DP_INLINE dp_bf16x2 dp_bf16x2_pack(dp_bf16 element0, dp_bf16 element1)
{
    const dp_bf16x2 pair = {element0.bits | (uint32_t)element1.bits << 16};
    return pair;
}
DP_INLINE dp_fp16x2 dp_fp16x2_pack(dp_fp16 element0, dp_fp16 element1)
{
    const dp_fp16x2 pair = {element0.bits | (uint32_t)element1.bits << 16};
    return pair;
}
/* index: 0 or 1 */
DP_INLINE dp_e8m0 dp_e8m0x2_get(dp_e8m0x2 pair, unsigned index)
{
    const dp_e8m0 code = {(uint8_t)((uint32_t)pair.bits >> (8u * (index & 1u)))};
    return code;
}
DP_INLINE dp_bf16 dp_bf16x2_get(dp_bf16x2 pair, unsigned index)
{
    const dp_bf16 code = {(uint16_t)(pair.bits >> (16u * (index & 1u)))};
    return code;
}
DP_INLINE dp_fp16 dp_fp16x2_get(dp_fp16x2 pair, unsigned index)
{
    const dp_fp16 code = {(uint16_t)(pair.bits >> (16u * (index & 1u)))};
    return code;
}

/* x as .relu leaves it. */
DP_INLINE float dp_cvt_relu(float x, bool relu)
{
    const uint32_t bits = dp_f32_bits(x);
    return relu && (bits & DP_F32_SIGN) != 0 && !dp_f32_bits_is_nan(bits) ? 0.0f : x;
}

/* cvt.rn.satfinite{.relu}.e2m1x2.f32 d, a, b: ties to even, beyond 6 is 6, NaN of either sign is
 * +6. */
DP_INLINE dp_e2m1x2 dp_cvt_e2m1x2_f32(float a, float b, bool relu)
{
    return dp_e2m1x2_pack(dp_e2m1_from_f32(dp_cvt_relu(b, relu), DP_ENCODE_PTX),
                          dp_e2m1_from_f32(dp_cvt_relu(a, relu), DP_ENCODE_PTX));
}

/* cvt.rn.satfinite{.relu}.e4m3x2.f32 and .e5m2x2.f32: NaN is 0x7F, Inf the largest finite code. */
DP_INLINE dp_e4m3x2 dp_cvt_e4m3x2_f32(float a, float b, bool relu)
{
    return dp_e4m3x2_pack(dp_e4m3_from_f32(dp_cvt_relu(b, relu), DP_ENCODE_PTX),
                          dp_e4m3_from_f32(dp_cvt_relu(a, relu), DP_ENCODE_PTX));
}
DP_INLINE dp_e5m2x2 dp_cvt_e5m2x2_f32(float a, float b, bool relu)
{
    return dp_e5m2x2_pack(dp_e5m2_from_f32(dp_cvt_relu(b, relu), DP_ENCODE_PTX),
                          dp_e5m2_from_f32(dp_cvt_relu(a, relu), DP_ENCODE_PTX));
}

/* The same from .f16x2: f16 -> f32 is exact, so there is still one rounding. */
DP_INLINE dp_e4m3x2 dp_cvt_e4m3x2_f16x2(dp_fp16x2 a, bool relu)
{
    return dp_cvt_e4m3x2_f32(dp_fp16_to_f32(dp_fp16x2_get(a, 1)),
                             dp_fp16_to_f32(dp_fp16x2_get(a, 0)), relu);
}
DP_INLINE dp_e5m2x2 dp_cvt_e5m2x2_f16x2(dp_fp16x2 a, bool relu)
{
    return dp_cvt_e5m2x2_f32(dp_fp16_to_f32(dp_fp16x2_get(a, 1)),
                             dp_fp16_to_f32(dp_fp16x2_get(a, 0)), relu);
}
/* cvt.rn.satfinite{.relu}.e2m1x2.{f16x2,bf16x2} (PTX ISA 9.1; no CUDA 13.0 target accepts it). */
DP_INLINE dp_e2m1x2 dp_cvt_e2m1x2_f16x2(dp_fp16x2 a, bool relu)
{
    return dp_cvt_e2m1x2_f32(dp_fp16_to_f32(dp_fp16x2_get(a, 1)),
                             dp_fp16_to_f32(dp_fp16x2_get(a, 0)), relu);
}
DP_INLINE dp_e2m1x2 dp_cvt_e2m1x2_bf16x2(dp_bf16x2 a, bool relu)
{
    return dp_cvt_e2m1x2_f32(dp_bf16_to_f32(dp_bf16x2_get(a, 1)),
                             dp_bf16_to_f32(dp_bf16x2_get(a, 0)), relu);
}

/* cvt.{rp,rz}{.satfinite}.ue8m0x2.f32 d, a, b; how.round is DP_E8M0_UP (rp) or DP_E8M0_DOWN (rz).
 * The sign is ignored, zero is 0x00, NaN is 0xFF, as the CUDA 13.0 header computes it; PTX is
 * silent. */
DP_INLINE dp_e8m0x2 dp_cvt_ue8m0x2_f32(float a, float b, dp_e8m0_encode how)
{
    return dp_e8m0x2_pack(dp_e8m0_from_f32(b, how), dp_e8m0_from_f32(a, how));
}
DP_INLINE dp_e8m0x2 dp_cvt_ue8m0x2_bf16x2(dp_bf16x2 a, dp_e8m0_encode how)
{
    return dp_cvt_ue8m0x2_f32(dp_bf16_to_f32(dp_bf16x2_get(a, 1)),
                              dp_bf16_to_f32(dp_bf16x2_get(a, 0)), how);
}

/* How cvt to a 16-bit format rounds and overflows: .rn or .rz, .relu, .satfinite. Without
 * .satfinite a finite overflow is Inf under .rn and the largest finite number under .rz (IEEE
 * 754-2019 7.4). */
typedef struct {
    bool toward_zero;
    bool relu;
    bool satfinite;
} dp_cvt16;

DP_INLINE dp_encode dp_cvt16_encode(dp_cvt16 how)
{
    dp_encode encode = DP_ENCODE_PTX;
    encode.round = how.toward_zero ? DP_RZ : DP_RNE;
    encode.overflow = how.satfinite ? DP_OVERFLOW_SATFINITE : DP_OVERFLOW_IEEE754;
    return encode;
}

/* cvt.{rn,rz}{.satfinite}{.relu}.bf16x2.f32 d, a, b and .f16x2.f32; NaN is 0x7FFF. */
DP_INLINE dp_bf16x2 dp_cvt_bf16x2_f32(float a, float b, dp_cvt16 how)
{
    return dp_bf16x2_pack(dp_bf16_from_f32(dp_cvt_relu(b, how.relu), dp_cvt16_encode(how)),
                          dp_bf16_from_f32(dp_cvt_relu(a, how.relu), dp_cvt16_encode(how)));
}
DP_INLINE dp_fp16x2 dp_cvt_f16x2_f32(float a, float b, dp_cvt16 how)
{
    return dp_fp16x2_pack(dp_fp16_from_f32(dp_cvt_relu(b, how.relu), dp_cvt16_encode(how)),
                          dp_fp16_from_f32(dp_cvt_relu(a, how.relu), dp_cvt16_encode(how)));
}

/* cvt.rn{.relu}.f16x2.{e2m1x2,e4m3x2,e5m2x2}: exact; every NaN is 0x7FFF. */
DP_INLINE dp_fp16x2 dp_cvt_f16x2_e2m1x2(dp_e2m1x2 a, bool relu)
{
    const dp_cvt16 how = {false, relu, false};
    return dp_cvt_f16x2_f32(dp_e2m1_to_f32(dp_e2m1x2_get(a, 1)),
                            dp_e2m1_to_f32(dp_e2m1x2_get(a, 0)), how);
}
DP_INLINE dp_fp16x2 dp_cvt_f16x2_e4m3x2(dp_e4m3x2 a, bool relu)
{
    const dp_cvt16 how = {false, relu, false};
    return dp_cvt_f16x2_f32(dp_e4m3_to_f32(dp_e4m3x2_get(a, 1)),
                            dp_e4m3_to_f32(dp_e4m3x2_get(a, 0)), how);
}
DP_INLINE dp_fp16x2 dp_cvt_f16x2_e5m2x2(dp_e5m2x2 a, bool relu)
{
    const dp_cvt16 how = {false, relu, false};
    return dp_cvt_f16x2_f32(dp_e5m2_to_f32(dp_e5m2x2_get(a, 1)),
                            dp_e5m2_to_f32(dp_e5m2x2_get(a, 0)), how);
}

/* cvt.rn.bf16x2.ue8m0x2: exact; 0x00 is 2^-127 (bf16 0x0040), 0xFF is NaN 0x7FFF. */
DP_INLINE dp_bf16x2 dp_cvt_bf16x2_ue8m0x2(dp_e8m0x2 a)
{
    const dp_cvt16 how = {false, false, false};
    return dp_cvt_bf16x2_f32(dp_e8m0_to_f32(dp_e8m0x2_get(a, 1)),
                             dp_e8m0_to_f32(dp_e8m0x2_get(a, 0)), how);
}

#endif
