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
#define FA4 "Dao-AILab/flash-attention 0251105, flash_attn/cute: "

/* Fields in the order of dp_route after name and provenance:
 * qk, v, p, rule, offset, threshold, sf_bias, lift, floor, sum, fresh, ascending, polynomial, lse,
 * floor0 */
static const dp_route ROUTES[] = {
    {"fa4-bf16", FA4 "BF16, threshold 8", DP_OPERAND_BF16, DP_OPERAND_BF16, DP_OPERAND_BF16,
     DP_P_PLAIN, 0, 8, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "fa4-d128", 0, false},
    {"fa4-fp8", FA4 "FP8, offset 8, threshold 0 (pull 2731)", DP_OPERAND_E4M3, DP_OPERAND_E4M3,
     DP_OPERAND_E4M3, DP_P_PLAIN, 8, 0, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "off", 8, false},
    {"fa4-fp8-offset8-threshold4", FA4 "an earlier, faulty setting: 4096 > 448 (issue 2577)",
     DP_OPERAND_E4M3, DP_OPERAND_E4M3, DP_OPERAND_E4M3, DP_P_PLAIN, 8, 4, 0, 1, 0, DP_SUM_UNROUNDED,
     false, false, "off", 8, false},
    {"fa4-fp8-offset8-threshold8", FA4 "the first, faulty setting (issue 2131)", DP_OPERAND_E4M3,
     DP_OPERAND_E4M3, DP_OPERAND_E4M3, DP_P_PLAIN, 8, 8, 0, 1, 0, DP_SUM_UNROUNDED, false, false,
     "off", 8, false},
    {"fa4-fp8-offset4", FA4 "pull 2717: offset 4, threshold 4", DP_OPERAND_E4M3, DP_OPERAND_E4M3,
     DP_OPERAND_E4M3, DP_P_PLAIN, 4, 4, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "off", 4, false},
    {"hao-nv-bf16", HAO "BF16 PV", DP_OPERAND_NVFP4, DP_OPERAND_BF16, DP_OPERAND_BF16, DP_P_PLAIN,
     0, 8, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "off", 0, false},
    {"hao-nv-fp8", HAO "FP8 PV on SM100", DP_OPERAND_NVFP4, DP_OPERAND_E4M3, DP_OPERAND_E4M3,
     DP_P_PLAIN, 0, 8, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "hao-fp8-pv", 0, false},
    {"hao-nv-nv", HAO "NVFP4 PV, linear (SM100)", DP_OPERAND_NVFP4, DP_OPERAND_NVFP4,
     DP_OPERAND_NVFP4, DP_P_MAX_SIXTH, LOG2_6, 0, 0, 1, 1e-20f, DP_SUM_UNROUNDED, false, false,
     "fa4-d128", 0, false},
    {"hao-nv-nv-log2", HAO "NVFP4 PV, log2 (SM103)", DP_OPERAND_NVFP4, DP_OPERAND_NVFP4,
     DP_OPERAND_NVFP4, DP_P_LOG2, LOG2_6, 0, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "off", 0,
     false},
    {"hao-nv-mxfp8", HAO "MXFP8 PV", DP_OPERAND_NVFP4, DP_OPERAND_MXFP8, DP_OPERAND_MXFP8,
     DP_P_LOG2_CEIL, LOG2_448, 0, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "off", 0, false},
    {"hao-mxfp8", HAO "MXFP8 QK and PV", DP_OPERAND_MXFP8, DP_OPERAND_MXFP8, DP_OPERAND_MXFP8,
     DP_P_LOG2_CEIL, LOG2_448, 0, 0, 1, 0, DP_SUM_UNROUNDED, false, false, "off", 0, false},
    {"sage3",
     "thu-ml/SageAttention d1a57a5, sageattention3_blackwell: two-level P; smoothing is an "
     "input transform",
     DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_P_EX2_BLOCK, LOG2_2688, 0, LOG2_6, 1,
     0, DP_SUM_UNROUNDED, true, false, "off", LOG2_2688, true},
    {"fastvideo", "hao-ai-lab/FastVideo 2f3d407, attn_qat_infer: single level", DP_OPERAND_NVFP4,
     DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_P_EX2_BLOCK, 0, 0, LOG2_6, 1, 0, DP_SUM_UNROUNDED, true,
     false, "off", 0, false},
    {"duda", "DD-DuDa/nvfp4_attn_kernel 5e70e90: threshold 8, pages of 128", DP_OPERAND_NVFP4,
     DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_P_MAX_SIXTH, 0, 8, 0, 1, 1e-20f, DP_SUM_UNROUNDED,
     false, false, "off", 0, false},
    {"modelopt", "NVIDIA/Model-Optimizer a2fbac7, p_qdq NVFP4: payload by the rounded scale",
     DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_P_ROUNDED, 0, 0, 0, 2688, 0,
     DP_SUM_UNROUNDED, false, true, "off", 0, false},
    {"stabilised",
     "MrHuff/fp4-fa4: HAO-style maximum, log2 quantisation, G in the scale, represented "
     "denominator",
     DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_OPERAND_NVFP4, DP_P_LOG2, LOG2_6, 0, 0, 448, 0,
     DP_SUM_REPRESENTED, false, false, "off", 0, false},
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
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (strcmp(ROUTES[i].name, name) == 0) {
            *route = ROUTES[i];
            return true;
        }
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "", ROUTES[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return dp_fail(error, "route '%s': no such route: use one of: %s", name, names);
}
