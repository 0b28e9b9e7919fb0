/* SPDX-License-Identifier: MIT
 *
 * The routes, as data. Provenance names the repository and commit whose source was read.
 */
#include <stdio.h>

#include "ref/forward/route.h"

#define LOG2_6    2.584962500721156f
#define LOG2_448  8.807354922057604f
#define LOG2_2688 11.392317422778762f
#define HAO                                                                                        \
    "hao-ai-lab/flash-attention-fp4, flash_fwd_sm100_fp4.py as pinned by MrHuff/fp4-fa4 "          \
    "edde9bcb: "
#define FA4    "Dao-AILab/flash-attention 0251105, flash_attn/cute: "
#define SAGE   "thu-ml/SageAttention d1a57a5, "
#define TRAIN  "hao-ai-lab/FastVideo 2f3d407, attn_qat_train: "
#define REPORT "MrHuff/fp4-fa4, technical report v2: "

/* Formats of Q and K / of P and V. */
#define FORMATS(left, right) .qk = left, .v = right, .p = right
#define NV_NV                FORMATS(DP_OPERAND_NVFP4, DP_OPERAND_NVFP4)
#define MX_NV                FORMATS(DP_OPERAND_MXFP4, DP_OPERAND_NVFP4)
#define NV_MX                FORMATS(DP_OPERAND_NVFP4, DP_OPERAND_MXFP4)
#define MX_MX                FORMATS(DP_OPERAND_MXFP4, DP_OPERAND_MXFP4)
#define FP8_FP8              FORMATS(DP_OPERAND_E4M3, DP_OPERAND_E4M3)

/* FA4's FP8: what is added to the log2 scores is taken out of the LSE. */
#define FA4_FP8(offset, threshold)                                                                 \
    FP8_FP8, .offset_log2 = offset, .threshold_log2 = threshold, .lse_offset_log2 = offset

/* SageAttention3's two levels: P to 2688, its block maxima to 448. */
#define TWO_LEVEL                                                                                  \
    NV_NV, .rule = DP_P_EX2_BLOCK, .offset_log2 = LOG2_2688, .sf_bias = LOG2_6, .fresh = true,     \
           .lse_offset_log2 = LOG2_2688

#define SAGE2                                                                                      \
    .qk = DP_OPERAND_INT8, .offset_log2 = 8.807f, .lse_offset_log2 = 8.807f, .fresh = true,        \
    .ascending = true, .smooth = DP_SMOOTH_K, .int8 = DP_INT8_WARP, .v_channel = 448

#define TRAINING                                                                                   \
    NV_NV, .rule = DP_P_ROUNDED, .p_bf16 = true, .sum = DP_SUM_BF16, .fake = true, .ascending = true

#define MODELOPT NV_NV, .rule = DP_P_ROUNDED, .lift = 2688, .p_bf16 = true, .ascending = true

/* An exact maximum, scales in log2 with a factor G inside, a represented denominator. */
#define STABILISED    .rule = DP_P_LOG2, .offset_log2 = LOG2_6, .lift = 448, .sum = DP_SUM_REPRESENTED
#define STABILISED_MX .rule = DP_P_LOG2_NEAR, .offset_log2 = LOG2_6, .sum = DP_SUM_REPRESENTED

#define SHIFTLESS(block_rule, ...)                                                                 \
    .rule = block_rule, .sum = DP_SUM_REPRESENTED, .ascending = true,                              \
    .direct = {.shiftless = true, __VA_ARGS__}
/* The historical map of the report, and the one its search with exact denominators ended at. */
#define AFFINE_OLD .degree = 1, .map = {0.92083546f, 1.62330034f}
#define AFFINE     .degree = 1, .map = {1.22f, 1.5f}
#define QUADRATIC                                                                                  \
    .degree = 2, .map = {0.879341148f, 0.926581374f, 0.335717889f}, .map_floor = -1.38f
#define CUBIC .degree = 3, .map = {0.99202336f, 0.63145205f, 0.28625049f, 0.07839806f}

static const dp_route ROUTES[] = {
    {.name = "fa4-bf16",
     .provenance = FA4 "BF16, threshold 8",
     .threshold_log2 = 8,
     .polynomial = "fa4-d128"},
    {.name = "fa4-fp8", .provenance = FA4 "FP8, offset 8, threshold 0 (pull 2731)", FA4_FP8(8, 0)},
    {.name = "fa4-fp8-offset8-threshold4",
     .provenance = FA4 "an earlier, faulty setting: 4096 > 448 (issue 2577)",
     FA4_FP8(8, 4)},
    {.name = "fa4-fp8-offset8-threshold8",
     .provenance = FA4 "the first, faulty setting (issue 2131)",
     FA4_FP8(8, 8)},
    {.name = "fa4-fp8-offset4",
     .provenance = FA4 "pull 2717: offset 4, threshold 4",
     FA4_FP8(4, 4)},
    {.name = "fa3-fp8",
     .provenance =
         "Dao-AILab/flash-attention 0251105, hopper/: offset 8, exact maximum, wgmma (its "
         "accumulator is narrower); its tiles vary: --set tile=N",
     FORMATS(DP_OPERAND_E4M3_SM90, DP_OPERAND_E4M3_SM90),
     .offset_log2 = 8,
     .lse_offset_log2 = 8},
    {.name = "hao-nv-bf16",
     .provenance = HAO "BF16 PV",
     FORMATS(DP_OPERAND_NVFP4, DP_OPERAND_BF16),
     .threshold_log2 = 8},
    {.name = "hao-nv-fp8",
     .provenance = HAO "FP8 PV on SM100",
     FORMATS(DP_OPERAND_NVFP4, DP_OPERAND_E4M3),
     .threshold_log2 = 8,
     .polynomial = "hao-fp8-pv"},
    {.name = "hao-nv-nv",
     .provenance = HAO "NVFP4 PV, linear (SM100)",
     NV_NV,
     .rule = DP_P_MAX_SIXTH,
     .offset_log2 = LOG2_6,
     .divisor_floor = 1e-20f,
     .polynomial = "fa4-d128"},
    {.name = "hao-nv-nv-log2",
     .provenance = HAO "NVFP4 PV, log2 (SM103)",
     NV_NV,
     .rule = DP_P_LOG2,
     .offset_log2 = LOG2_6},
    {.name = "hao-nv-mxfp8",
     .provenance = HAO "MXFP8 PV",
     FORMATS(DP_OPERAND_NVFP4, DP_OPERAND_MXFP8),
     .rule = DP_P_LOG2_CEIL,
     .offset_log2 = LOG2_448},
    {.name = "hao-mxfp8",
     .provenance = HAO "MXFP8 QK and PV",
     FORMATS(DP_OPERAND_MXFP8, DP_OPERAND_MXFP8),
     .rule = DP_P_LOG2_CEIL,
     .offset_log2 = LOG2_448},
    {.name = "hao-mxfp8-fp8",
     .provenance = HAO "MXFP8 QK, FP8 PV",
     FORMATS(DP_OPERAND_MXFP8, DP_OPERAND_E4M3),
     .threshold_log2 = 8,
     .polynomial = "hao-fp8-pv-mxfp8-qk"},
    {.name = "sage3",
     .provenance = SAGE "sageattention3_blackwell: two-level P, without smoothing",
     TWO_LEVEL,
     .divide = DP_DIVIDE_EXACT,
     .floor0 = true},
    {.name = "sage3-smooth",
     .provenance = "the same with K smoothing, Q smoothing by tile and the 16-bit delta_s",
     TWO_LEVEL,
     .divide = DP_DIVIDE_EXACT,
     .floor0 = true,
     .smooth = DP_SMOOTH_K_QTILE},
    {.name = "flashinfer-sm120",
     .provenance =
         "flashinfer-ai/flashinfer fb28d72, nvfp4_attention_sm120: the same from a maximum "
         "of -Inf, times the reciprocal, delta_s in F32",
     TWO_LEVEL,
     .divisor_floor = 1e-8f,
     .smooth = DP_SMOOTH_K_QTILE,
     .delta_f32 = true},
    {.name = "sage2-fp8",
     .provenance = SAGE "csrc/qattn on sm_89: INT8 QK, K smoothed, FP8 P and V, tiles of 64",
     SAGE2,
     .v = DP_OPERAND_E4M3_SM89,
     .p = DP_OPERAND_E4M3_SM89,
     .tile = 64},
    {.name = "sage2-fp8-sm90",
     .provenance = SAGE "csrc/qattn on sm_90: the same through wgmma, tiles of 128",
     SAGE2,
     .v = DP_OPERAND_E4M3_SM90,
     .p = DP_OPERAND_E4M3_SM90},
    {.name = "fastvideo",
     .provenance = "hao-ai-lab/FastVideo 2f3d407, attn_qat_infer: single level",
     NV_NV,
     .rule = DP_P_EX2_BLOCK,
     .sf_bias = LOG2_6,
     .divide = DP_DIVIDE_EXACT,
     .fresh = true},
    {.name = "fastvideo-train",
     .provenance = TRAIN "single level; operands decoded to BF16, the sum of P in BF16",
     TRAINING},
    {.name = "fastvideo-train-global",
     .provenance = TRAIN "a given global scale, 2688",
     TRAINING,
     .lift = 2688},
    {.name = "fastvideo-train-two-level",
     .provenance = TRAIN "two levels: 2688 over the maximum of each row of a tile",
     TRAINING,
     .lift = 2688,
     .lift_row = true},
    {.name = "duda",
     .provenance =
         "DD-DuDa/nvfp4_attn_kernel 5e70e90: threshold 8, pages of 128, what fills none in "
         "BF16",
     NV_NV,
     .rule = DP_P_MAX_SIXTH,
     .threshold_log2 = 8,
     .divide = DP_DIVIDE_RCP,
     .divisor_floor = 1e-20f,
     .residual = true},
    {.name = "modelopt",
     .provenance = "NVIDIA/Model-Optimizer a2fbac7, bmm2_qdq NVFP4: payload by the rounded scale, "
                   "tiles of 32",
     MODELOPT,
     .tile = 32},
    {.name = "modelopt-128",
     .provenance = "the same in tiles of 128, its measurement mode",
     MODELOPT},
    {.name = "modelopt-fp8",
     .provenance = "NVIDIA/Model-Optimizer a2fbac7, bmm2_qdq FP8: P in steps of E4M3 over 448, in "
                   "BF16; Q, K, V in BF16",
     .rule = DP_P_SCALED,
     .lift = 448,
     .p_bf16 = true,
     .ascending = true,
     .tile = 32},
    {.name = "stabilised",
     .provenance =
         REPORT "exact maximum, log2 quantisation, G in the scale, represented denominator",
     NV_NV,
     STABILISED},
    {.name = "stabilised-mx-nv", .provenance = "stabilised with MXFP4 Q and K", MX_NV, STABILISED},
    {.name = "g-nv-nv",
     .provenance = REPORT "sweep of G: exact maximum, G times amax/6 of P in (0, 1], unrounded "
                          "denominator",
     NV_NV,
     .rule = DP_P_LOG2},
    {.name = "g-mx-nv", .provenance = "the same with MXFP4 Q and K", MX_NV, .rule = DP_P_LOG2},
    {.name = "stabilised-nv-mx",
     .provenance = "stabilised with MXFP4 P and V",
     NV_MX,
     STABILISED_MX},
    {.name = "stabilised-mx-mx",
     .provenance = "stabilised with MXFP4 throughout",
     MX_MX,
     STABILISED_MX},
    {.name = "sampled-1",
     .provenance = "stabilised; the denominator from 1 word of 8 keys of each 32",
     NV_NV,
     STABILISED,
     .direct = {.sampled_words = 1}},
    {.name = "sampled-2",
     .provenance = "the same from 2 words",
     NV_NV,
     STABILISED,
     .direct = {.sampled_words = 2}},
    {.name = "sampled-3",
     .provenance = "the same from 3 words",
     NV_NV,
     STABILISED,
     .direct = {.sampled_words = 3}},
    {.name = "shiftless-nv-nv",
     .provenance = REPORT "NV/NV without a row maximum, 2^x, scale saturating",
     NV_NV,
     SHIFTLESS(DP_P_LOG2, .degree = 0)},
    {.name = "shiftless-nv-nv-raw",
     .provenance = "the same with the scale as computed: above 448 it is NaN",
     NV_NV,
     SHIFTLESS(DP_P_LOG2, .overflow = true)},
    {.name = "shiftless-nv-nv-cubic",
     .provenance = REPORT "the historical cubic map for 2^x",
     NV_NV,
     SHIFTLESS(DP_P_LOG2, CUBIC)},
    {.name = "shiftless-nv-nv-quadratic",
     .provenance = "the parabola of policy quadratic for 2^x",
     NV_NV,
     SHIFTLESS(DP_P_LOG2, QUADRATIC)},
    {.name = "shiftless-nv-nv-affine",
     .provenance = REPORT "the historical affine map for 2^x",
     NV_NV,
     SHIFTLESS(DP_P_LOG2, AFFINE_OLD)},
    {.name = "direct-nv-nv",
     .provenance =
         "a reading of TK NV/NV: shiftless, NVFP4 P, affine map, the denominator from 8 of "
         "32 keys",
     NV_NV,
     SHIFTLESS(DP_P_LOG2, AFFINE, .sampled_words = 1)},
    {.name = "direct-mx-nv",
     .provenance = "the same with MXFP4 Q and K",
     MX_NV,
     SHIFTLESS(DP_P_LOG2, AFFINE, .sampled_words = 1)},
    {.name = "direct-nv-mx",
     .provenance = "the same with MXFP4 P and V",
     NV_MX,
     SHIFTLESS(DP_P_LOG2_NEAR, AFFINE, .sampled_words = 1)},
    {.name = "direct-nv-fp8",
     .provenance = "the same with MXFP8 P and V, the scale of P as for MXFP4",
     FORMATS(DP_OPERAND_NVFP4, DP_OPERAND_MXFP8),
     SHIFTLESS(DP_P_LOG2_NEAR, AFFINE, .sampled_words = 1)},
    {.name = "direct-mx-mx",
     .provenance = "the same with MXFP4 throughout",
     MX_MX,
     SHIFTLESS(DP_P_LOG2_NEAR, AFFINE, .sampled_words = 1)},
};

#define ROUTE_COUNT (sizeof ROUTES / sizeof ROUTES[0])

size_t dp_route_count(void)
{
    return ROUTE_COUNT;
}

const dp_route *dp_route_at(size_t index)
{
    return &ROUTES[index < ROUTE_COUNT ? index : 0];
}

bool dp_route_find(const char *name, dp_route *route, dp_error *error)
{
    char names[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (strcmp(ROUTES[i].name, name) == 0) {
            *route = ROUTES[i];
            return true;
        }
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "", ROUTES[i].name);
        used += n > 0 ? (size_t)n : 0;
        used = used < sizeof names ? used : sizeof names - 1;
    }
    return dp_fail(error, "route '%s': no such route: use one of: %s", name, names);
}
