/* SPDX-License-Identifier: MIT
 *
 * Scalar instructions by their PTX names, as functions of 32-bit words in PTX operand order.
 */
#include "analysis/capture.h"
#include "ref/arith/byteops.h"
#include "ref/arith/cvt.h"
#include "ref/arith/cvt_rs.h"
#include "ref/arith/f32.h"

static float real(uint32_t bits)
{
    return dp_f32_from_bits(bits);
}

#define MODE(round, keep) ((dp_f32_mode){DP_F32_##round, DP_F32_##keep})

#define F32_2(name, operation, round, keep)                                                        \
    static uint32_t name(const dp_sfu *sfu, const uint32_t *x)                                     \
    {                                                                                              \
        (void)sfu;                                                                                 \
        return dp_f32_##operation(x[0], x[1], MODE(round, keep));                                  \
    }
#define F32_3(name, round, keep)                                                                   \
    static uint32_t name(const dp_sfu *sfu, const uint32_t *x)                                     \
    {                                                                                              \
        (void)sfu;                                                                                 \
        return dp_f32_fma(x[0], x[1], x[2], MODE(round, keep));                                    \
    }
#define EXPRESSION(name, expression)                                                               \
    static uint32_t name(const dp_sfu *sfu, const uint32_t *x)                                     \
    {                                                                                              \
        (void)sfu;                                                                                 \
        return (uint32_t)(expression);                                                             \
    }
#define SPECIAL(name, expression)                                                                  \
    static uint32_t name(const dp_sfu *sfu, const uint32_t *x)                                     \
    {                                                                                              \
        return expression;                                                                         \
    }

F32_2(add_rn_ftz, add, RN, FTZ)
F32_2(add_rm_ftz, add, RM, FTZ)
F32_2(add_rz_ftz, add, RZ, FTZ)
F32_2(add_rn, add, RN, KEEP)
F32_2(mul_rn_ftz, mul, RN, FTZ)
F32_2(mul_rn, mul, RN, KEEP)
F32_3(fma_rn_ftz, RN, FTZ)
F32_3(fma_rm_ftz, RM, FTZ)
F32_3(fma_rn, RN, KEEP)
EXPRESSION(min_ftz, dp_f32_min(x[0], x[1], true, false))
EXPRESSION(max_ftz, dp_f32_max(x[0], x[1], true, false))
EXPRESSION(min_keep, dp_f32_min(x[0], x[1], false, false))
EXPRESSION(max_keep, dp_f32_max(x[0], x[1], false, false))
EXPRESSION(min_nan, dp_f32_min(x[0], x[1], false, true))
EXPRESSION(max_nan, dp_f32_max(x[0], x[1], false, true))
EXPRESSION(to_s32_rmi, dp_f32_to_s32(x[0], DP_F32_RM, false))
EXPRESSION(to_s32_rni, dp_f32_to_s32(x[0], DP_F32_RN, false))
EXPRESSION(to_s32_rzi, dp_f32_to_s32(x[0], DP_F32_RZ, false))
EXPRESSION(to_s32_rmi_ftz, dp_f32_to_s32(x[0], DP_F32_RM, true))
EXPRESSION(prmt, dp_prmt(x[0], x[1], x[2], DP_PRMT_INDEX))
EXPRESSION(dp4a_ss, dp_dp4a(x[0], x[1], x[2], true, true))
EXPRESSION(dp4a_uu, dp_dp4a(x[0], x[1], x[2], false, false))
EXPRESSION(dp4a_su, dp_dp4a(x[0], x[1], x[2], true, false))
EXPRESSION(dp4a_us, dp_dp4a(x[0], x[1], x[2], false, true))

#define E8M0(rounding, saturating) ((dp_e8m0_encode){rounding, saturating})
EXPRESSION(e4m3, dp_cvt_e4m3x2_f32(real(x[0]), real(x[1]), false).bits)
EXPRESSION(e5m2, dp_cvt_e5m2x2_f32(real(x[0]), real(x[1]), false).bits)
EXPRESSION(e2m1, dp_cvt_e2m1x2_f32(real(x[0]), real(x[1]), false).bits)
EXPRESSION(e4m3_relu, dp_cvt_e4m3x2_f32(real(x[0]), real(x[1]), true).bits)
EXPRESSION(e5m2_relu, dp_cvt_e5m2x2_f32(real(x[0]), real(x[1]), true).bits)
EXPRESSION(e2m1_relu, dp_cvt_e2m1x2_f32(real(x[0]), real(x[1]), true).bits)
EXPRESSION(bf16_rn, dp_cvt_bf16x2_f32(real(x[0]), real(x[1]), (dp_cvt16){false, false, false}).bits)
EXPRESSION(bf16_rz, dp_cvt_bf16x2_f32(real(x[0]), real(x[1]), (dp_cvt16){true, false, false}).bits)
EXPRESSION(f16_rn, dp_cvt_f16x2_f32(real(x[0]), real(x[1]), (dp_cvt16){false, false, false}).bits)
EXPRESSION(f16_rz, dp_cvt_f16x2_f32(real(x[0]), real(x[1]), (dp_cvt16){true, false, false}).bits)
EXPRESSION(e4m3_f16, dp_cvt_e4m3x2_f16x2((dp_fp16x2){x[0]}, false).bits)
EXPRESSION(e5m2_f16, dp_cvt_e5m2x2_f16x2((dp_fp16x2){x[0]}, false).bits)
EXPRESSION(f16_e4m3, dp_cvt_f16x2_e4m3x2((dp_e4m3x2){(uint16_t)x[0]}, false).bits)
EXPRESSION(f16_e5m2, dp_cvt_f16x2_e5m2x2((dp_e5m2x2){(uint16_t)x[0]}, false).bits)
EXPRESSION(f16_e2m1, dp_cvt_f16x2_e2m1x2((dp_e2m1x2){(uint8_t)x[0]}, false).bits)
EXPRESSION(e8m0_rp, dp_cvt_ue8m0x2_f32(real(x[0]), real(x[1]), E8M0(DP_E8M0_UP, true)).bits)
EXPRESSION(e8m0_rz, dp_cvt_ue8m0x2_f32(real(x[0]), real(x[1]), E8M0(DP_E8M0_DOWN, true)).bits)
EXPRESSION(e8m0_rp_inf, dp_cvt_ue8m0x2_f32(real(x[0]), real(x[1]), E8M0(DP_E8M0_UP, false)).bits)
EXPRESSION(e8m0_rz_inf, dp_cvt_ue8m0x2_f32(real(x[0]), real(x[1]), E8M0(DP_E8M0_DOWN, false)).bits)
EXPRESSION(bf16_e8m0, dp_cvt_bf16x2_ue8m0x2((dp_e8m0x2){(uint16_t)x[0]}).bits)

/* Stochastic conversions recorded with one value in every lane: x is the value and the random word.
 */
#define RS(random)                                                                                 \
    x[1], (dp_cvt_rs)                                                                              \
    {                                                                                              \
        false, (random), DP_RS_HIGH_FIRST                                                          \
    }
static uint32_t rs_x4(const uint32_t *x, int format)
{
    const float lanes[4] = {real(x[0]), real(x[0]), real(x[0]), real(x[0])};
    return format == 0   ? dp_cvt_rs_e4m3x4_f32(lanes, RS(true))
           : format == 1 ? dp_cvt_rs_e5m2x4_f32(lanes, RS(true))
                         : dp_cvt_rs_e2m1x4_f32(lanes, RS(true));
}
EXPRESSION(rs_e4m3, rs_x4(x, 0))
EXPRESSION(rs_e5m2, rs_x4(x, 1))
EXPRESSION(rs_e2m1, rs_x4(x, 2))
EXPRESSION(rs_bf16, dp_cvt_rs_bf16x2_f32(real(x[0]), real(x[0]), RS(false)).bits)
EXPRESSION(rs_f16, dp_cvt_rs_f16x2_f32(real(x[0]), real(x[0]), RS(false)).bits)

SPECIAL(ex2_ftz, dp_sfu_ex2(sfu, x[0]))
SPECIAL(rcp_ftz, dp_sfu_rcp(sfu, x[0]))
SPECIAL(lg2_ftz, dp_sfu_lg2(sfu, x[0]))

/* Without .ftz: scalings around the .ftz form, as observed on an H200 (ref/arith/HARDWARE.md). */
static uint32_t ex2_keep(const dp_sfu *sfu, const uint32_t *x)
{
    const bool low = real(x[0]) < -126.0f;
    const uint32_t in = low ? dp_f32_mul(x[0], 0x3F000000, MODE(RN, KEEP)) : x[0];
    const uint32_t y = dp_sfu_ex2(sfu, in);
    return low ? dp_f32_mul(y, y, MODE(RN, KEEP)) : y;
}

/* A subnormal input is scaled up, an input whose reciprocal is subnormal down. */
static uint32_t rcp_keep(const dp_sfu *sfu, const uint32_t *x)
{
    const uint32_t magnitude = x[0] & DP_F32_ABS;
    uint32_t scale = 0x3F800000; /* 1 */
    if (magnitude < 0x00800000) {
        scale = 0x4B800000; /* 2^24 */
    } else if (magnitude >= 0x7E800000 && magnitude < DP_F32_INF) {
        scale = 0x33800000; /* 2^-24 */
    }
    const uint32_t y = dp_sfu_rcp(sfu, dp_f32_mul(x[0], scale, MODE(RN, KEEP)));
    return dp_f32_mul(y, scale, MODE(RN, KEEP));
}

static uint32_t lg2_keep(const dp_sfu *sfu, const uint32_t *x)
{
    const bool low = (x[0] & DP_F32_ABS) < 0x00800000;
    const uint32_t in = low ? dp_f32_mul(x[0], 0x4B800000, MODE(RN, KEEP)) : x[0];
    const uint32_t y = dp_sfu_lg2(sfu, in);
    return low ? dp_f32_add(y, 0xC1C00000, MODE(RN, KEEP)) : y;
}

static const dp_capture_function_desc functions[] = {
    {"ex2.approx.ftz.f32", 1, 32, 1, 0, true, ex2_ftz},
    {"rcp.approx.ftz.f32", 1, 32, 1, 0, true, rcp_ftz},
    {"lg2.approx.ftz.f32", 1, 32, 1, 0, true, lg2_ftz},
    {"ex2.approx.f32", 1, 32, 1, 0, true, ex2_keep},
    {"rcp.approx.f32", 1, 32, 1, 0, true, rcp_keep},
    {"lg2.approx.f32", 1, 32, 1, 0, true, lg2_keep},
    {"add.rn.ftz.f32", 2, 32, 1, 0, false, add_rn_ftz},
    {"add.rm.ftz.f32", 2, 32, 1, 0, false, add_rm_ftz},
    {"add.rz.ftz.f32", 2, 32, 1, 0, false, add_rz_ftz},
    {"add.rn.f32", 2, 32, 1, 0, false, add_rn},
    {"mul.rn.ftz.f32", 2, 32, 1, 0, false, mul_rn_ftz},
    {"mul.rn.f32", 2, 32, 1, 0, false, mul_rn},
    {"fma.rn.ftz.f32", 3, 32, 1, 0, false, fma_rn_ftz},
    {"fma.rm.ftz.f32", 3, 32, 1, 0, false, fma_rm_ftz},
    {"fma.rn.f32", 3, 32, 1, 0, false, fma_rn},
    {"min.ftz.f32", 2, 32, 1, 0, false, min_ftz},
    {"max.ftz.f32", 2, 32, 1, 0, false, max_ftz},
    {"min.f32", 2, 32, 1, 0, false, min_keep},
    {"max.f32", 2, 32, 1, 0, false, max_keep},
    {"min.NaN.f32", 2, 32, 1, 0, false, min_nan},
    {"max.NaN.f32", 2, 32, 1, 0, false, max_nan},
    {"cvt.rmi.s32.f32", 1, 32, 1, 0, false, to_s32_rmi},
    {"cvt.rni.s32.f32", 1, 32, 1, 0, false, to_s32_rni},
    {"cvt.rzi.s32.f32", 1, 32, 1, 0, false, to_s32_rzi},
    {"cvt.rmi.ftz.s32.f32", 1, 32, 1, 0, false, to_s32_rmi_ftz},
    {"prmt.b32", 3, 32, 1, 0, false, prmt},
    {"dp4a.s32.s32", 3, 32, 1, 0, false, dp4a_ss},
    {"dp4a.u32.u32", 3, 32, 1, 0, false, dp4a_uu},
    {"dp4a.s32.u32", 3, 32, 1, 0, false, dp4a_su},
    {"dp4a.u32.s32", 3, 32, 1, 0, false, dp4a_us},
    {"cvt.rn.satfinite.e4m3x2.f32", 2, 8, 2, 0, false, e4m3},
    {"cvt.rn.satfinite.e5m2x2.f32", 2, 8, 2, 0, false, e5m2},
    {"cvt.rn.satfinite.e2m1x2.f32", 2, 4, 2, 0, false, e2m1},
    {"cvt.rn.satfinite.relu.e4m3x2.f32", 2, 8, 2, 0, false, e4m3_relu},
    {"cvt.rn.satfinite.relu.e5m2x2.f32", 2, 8, 2, 0, false, e5m2_relu},
    {"cvt.rn.satfinite.relu.e2m1x2.f32", 2, 4, 2, 0, false, e2m1_relu},
    {"cvt.rn.bf16x2.f32", 2, 16, 2, 0, false, bf16_rn},
    {"cvt.rz.bf16x2.f32", 2, 16, 2, 0, false, bf16_rz},
    {"cvt.rn.f16x2.f32", 2, 16, 2, 0, false, f16_rn},
    {"cvt.rz.f16x2.f32", 2, 16, 2, 0, false, f16_rz},
    {"cvt.rp.satfinite.ue8m0x2.f32", 2, 8, 2, 0, false, e8m0_rp},
    {"cvt.rz.satfinite.ue8m0x2.f32", 2, 8, 2, 0, false, e8m0_rz},
    {"cvt.rp.ue8m0x2.f32", 2, 8, 2, 0, false, e8m0_rp_inf},
    {"cvt.rz.ue8m0x2.f32", 2, 8, 2, 0, false, e8m0_rz_inf},
    {"cvt.rs.satfinite.e4m3x4.f32", 2, 32, 1, 0, false, rs_e4m3},
    {"cvt.rs.satfinite.e5m2x4.f32", 2, 32, 1, 0, false, rs_e5m2},
    {"cvt.rs.satfinite.e2m1x4.f32", 2, 16, 1, 0, false, rs_e2m1},
    {"cvt.rs.bf16x2.f32", 2, 32, 1, 0, false, rs_bf16},
    {"cvt.rs.f16x2.f32", 2, 32, 1, 0, false, rs_f16},
    {"cvt.rn.satfinite.e4m3x2.f16x2", 1, 8, 2, 16, false, e4m3_f16},
    {"cvt.rn.satfinite.e5m2x2.f16x2", 1, 8, 2, 16, false, e5m2_f16},
    {"cvt.rn.f16x2.e4m3x2", 1, 16, 2, 8, false, f16_e4m3},
    {"cvt.rn.f16x2.e5m2x2", 1, 16, 2, 8, false, f16_e5m2},
    {"cvt.rn.f16x2.e2m1x2", 1, 16, 2, 4, false, f16_e2m1},
    {"cvt.rn.bf16x2.ue8m0x2", 1, 16, 2, 8, false, bf16_e8m0},
};

const dp_capture_function_desc *dp_capture_function_find(const char *instruction)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].instruction, instruction) == 0) {
            return &functions[i];
        }
    }
    return NULL;
}
