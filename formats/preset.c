/* SPDX-License-Identifier: MIT
 *
 * The table of presets. One row, one reading of one source.
 */
#include "formats/preset.h"

#include <ctype.h>
#include <stdio.h>

#include "formats/catalog.h"
#include "formats/nvfp4.h"

#define RNE_SAT                                                                                    \
    {                                                                                              \
        0                                                                                          \
    }
#define STRICT                                                                                     \
    {                                                                                              \
        .round = DP_RN_TIES_ZERO                                                                   \
    }
#define NONSAT                                                                                     \
    {                                                                                              \
        .overflow = DP_OVERFLOW_SPECIAL                                                            \
    }
#define SMALLEST_NORMAL 0x1p-126f

typedef struct {
    const char *preset, *format, *element, *source;
    dp_preset_global_rule global;
    bool fold64;
    dp_block_recipe recipe; /* element is filled in from the name */
} row;

#define PTX_TEXT                                                                                   \
    "PTX ISA 9.1 conversions; the composition (amax/max, division by the stored scale) is this "   \
    "project's default, PTX defines no block quantizer"
#define OCP_TEXT  "OCP Microscaling Formats v1.0, 6.3; NaN and Inf are left open there"
#define CUDA_TEXT "host path of cuda_fp4.hpp and cuda_fp8.hpp, CUDA 13.0, composed without guards"
#define ML_TEXT                                                                                    \
    "jax-ml/ml_dtypes 0.6.0 casts composed by f32 division; its E8M0 cast takes every t between "  \
    "2^-127 "                                                                                      \
    "and 2^-126 up, which the MX rows do not copy"
#define AO_TEXT                                                                                    \
    "pytorch/ao 0.18.0, prototype/mx_formats/mx_tensor.py; NaN codes of FP4 there are "            \
    "an accident of its bit trick, here 0x7"
#define TE_TEXT "NVIDIA/TransformerEngine d0067d0, common/cast; from its published formulas"

#define MX_CUDA(element_name, format_name)                                                         \
    {                                                                                              \
        "CUDA-HOST", format_name, element_name, CUDA_TEXT, 0, false,                               \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_RCEIL, .nan = DP_NAN_IGNORE       \
        }                                                                                          \
    }
#define MX_PTX(element_name, format_name)                                                          \
    {                                                                                              \
        "PTX", format_name, element_name, PTX_TEXT, 0, false,                                      \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_RCEIL                             \
        }                                                                                          \
    }
#define MX_OCP(element_name, format_name)                                                          \
    {                                                                                              \
        "OCP", format_name, element_name, OCP_TEXT, 0, false,                                      \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_FLOOR                             \
        }                                                                                          \
    }
#define MX_ML(element_name, format_name, payload_rule)                                             \
    {                                                                                              \
        "MLDTYPES", format_name, element_name, ML_TEXT, 0, false,                                  \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_ROUND_UP,                         \
            .payload = payload_rule, .inf = DP_INF_NAN, .zero_amax = DP_ZERO_SCALE_NAN             \
        }                                                                                          \
    }
#define MX_TE(element_name, format_name)                                                           \
    {                                                                                              \
        "TE", format_name, element_name, TE_TEXT, 0, false,                                        \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_RCEIL, .ratio = DP_RATIO_RCP,     \
            .quotient = DP_QUOTIENT_RCP, .byte0 = DP_BYTE0_FACTOR_ONE, .nan = DP_NAN_IGNORE        \
        }                                                                                          \
    }
#define MX_AO(preset_name, rule_name, element_name, format_name)                                   \
    {                                                                                              \
        preset_name, format_name, element_name, AO_TEXT, 0, false,                                 \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = rule_name,                                \
            .payload = {.nan = DP_NAN_SIGNED}, .divisor_min = SMALLEST_NORMAL,                     \
            .inf = DP_INF_BINADE, .nan_scale_as_inf = true                                         \
        }                                                                                          \
    }
#define MX_AO_RCEIL(element_name, format_name)                                                     \
    {                                                                                              \
        "TORCHAO-RCEIL", format_name, element_name,                                                \
            AO_TEXT ", eager mode takes ceil of a rounded "                                        \
                    "log2, which this row does not copy",                                          \
            0, false,                                                                              \
        {                                                                                          \
            .block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_RCEIL,                            \
            .payload = {.nan = DP_NAN_SIGNED}, .quotient = DP_QUOTIENT_RCP,                        \
            .byte0 = DP_BYTE0_FACTOR_ONE                                                           \
        }                                                                                          \
    }
#define NO_NAN                                                                                     \
    {                                                                                              \
        .nan = DP_NAN_MLDTYPES, .overflow = DP_OVERFLOW_SPECIAL                                    \
    }

static const row rows[] = {
    {"PTX",
     "nvfp4",
     "e2m1",
     PTX_TEXT,
     DP_PRESET_FLAT,
     false,
     {.block = 16, .byte0 = DP_BYTE0_CODE_ZERO}},
    MX_PTX("e2m1", "mxfp4"),
    MX_PTX("e4m3", "mxfp8-e4m3"),
    MX_PTX("e5m2", "mxfp8-e5m2"),
    MX_OCP("e2m1", "mxfp4"),
    MX_OCP("e2m3", "mxfp6-e2m3"),
    MX_OCP("e3m2", "mxfp6-e3m2"),
    MX_OCP("e4m3", "mxfp8-e4m3"),
    MX_OCP("e5m2", "mxfp8-e5m2"),
    {"CUDA-HOST",
     "nvfp4",
     "e2m1",
     CUDA_TEXT,
     DP_PRESET_FLAT,
     false,
     {.block = 16, .nan = DP_NAN_IGNORE}},
    MX_CUDA("e2m1", "mxfp4"),
    MX_CUDA("e4m3", "mxfp8-e4m3"),
    MX_CUDA("e5m2", "mxfp8-e5m2"),
    {"MLDTYPES",
     "nvfp4",
     "e2m1",
     ML_TEXT,
     DP_PRESET_FLAT,
     false,
     {.block = 16, .payload = NO_NAN, .scale_encode = NONSAT, .inf = DP_INF_NAN}},
    MX_ML("e2m1", "mxfp4", NO_NAN),
    MX_ML("e4m3", "mxfp8-e4m3", NO_NAN),
    MX_ML("e5m2", "mxfp8-e5m2", NO_NAN),
    {"TE",
     "nvfp4",
     "e2m1",
     TE_TEXT " (nvfp4/core_nvfp4.cuh)",
     DP_PRESET_ENCODE_AMAX,
     false,
     {.block = 16, .ratio = DP_RATIO_G_RCP, .quotient = DP_QUOTIENT_RCP_SD, .nan = DP_NAN_IGNORE}},
    MX_TE("e4m3", "mxfp8-e4m3"),
    MX_TE("e5m2", "mxfp8-e5m2"),
    {"TORCHAO",
     "nvfp4",
     "e2m1",
     "pytorch/ao 0.18.0, prototype/mx_formats/nvfp4_tensor.py",
     DP_PRESET_DECODE_AMAX,
     false,
     {.block = 16, .ratio = DP_RATIO_DIV_D, .quotient = DP_QUOTIENT_RCP_D_S, .scale_min = 0x1p-6f}},
    MX_AO("TORCHAO-FLOOR", DP_RULE_FLOOR, "e2m1", "mxfp4"),
    MX_AO("TORCHAO-FLOOR", DP_RULE_FLOOR, "e4m3", "mxfp8-e4m3"),
    MX_AO("TORCHAO-FLOOR", DP_RULE_FLOOR, "e5m2", "mxfp8-e5m2"),
    MX_AO("TORCHAO-CEIL", DP_RULE_CEIL, "e2m1", "mxfp4"),
    MX_AO("TORCHAO-CEIL", DP_RULE_CEIL, "e4m3", "mxfp8-e4m3"),
    MX_AO("TORCHAO-CEIL", DP_RULE_CEIL, "e5m2", "mxfp8-e5m2"),
    MX_AO("TORCHAO-EVEN", DP_RULE_EVEN, "e2m1", "mxfp4"),
    MX_AO("TORCHAO-EVEN", DP_RULE_EVEN, "e4m3", "mxfp8-e4m3"),
    MX_AO("TORCHAO-EVEN", DP_RULE_EVEN, "e5m2", "mxfp8-e5m2"),
    MX_AO_RCEIL("e2m1", "mxfp4"),
    MX_AO_RCEIL("e4m3", "mxfp8-e4m3"),
    MX_AO_RCEIL("e5m2", "mxfp8-e5m2"),
    {"GGML",
     "mxfp4",
     "e2m1",
     "ggml-org/ggml d99724f2, quantize_row_mxfp4_ref; gguf 0.19.0 for its bytes; Inf is undefined "
     "there and refused here",
     DP_PRESET_FLAT,
     false,
     {.block = 32,
      .scale = DP_SCALE_E8M0,
      .rule = DP_RULE_FLOOR,
      .log2_f32 = true,
      .low = DP_E8M0_LOW_WRAP,
      .nan = DP_NAN_IGNORE,
      .inf = DP_INF_ERROR,
      .payload = {.round = DP_RN_TIES_ZERO, .nan = DP_NAN_ZERO, .drop_zero_sign = true},
      .packing = DP_PACK_HALVES}},
    {"HAO",
     "nvfp4",
     "e2m1",
     "hao-ai-lab/flash-attention-fp4 through FlashInfer fb28d72 nvfp4_quantize; its rcp.approx is "
     "taken as fl(1/s)",
     DP_PRESET_FLAT,
     false,
     {.block = 16,
      .ratio = DP_RATIO_RCP,
      .quotient = DP_QUOTIENT_RCP,
      .byte0 = DP_BYTE0_EMPTY_ONLY,
      .nan = DP_NAN_IGNORE}},
    {"HAO-P",
     "nvfp4",
     "e2m1",
     "MrHuff/fp4-fa4 edde9bcb, flash_fwd_sm100_fp4.py, linear mode: probabilities, divided by the "
     "unrounded scale",
     DP_PRESET_FLAT,
     false,
     {.block = 16,
      .ratio = DP_RATIO_RCP,
      .quotient = DP_QUOTIENT_RCP,
      .divisor = DP_DIVISOR_UNROUNDED,
      .divisor_min = 1e-20f,
      .nan = DP_NAN_IGNORE}},
    {"SAGE3",
     "nvfp4",
     "e2m1",
     "thu-ml/SageAttention d1a57a5, fp4_quantization_4d.cu; its fast-math division is taken as "
     "exact, FTZ kept",
     DP_PRESET_FLAT,
     false,
     {.block = 16,
      .quotient = DP_QUOTIENT_RCP,
      .byte0 = DP_BYTE0_FACTOR_ZERO,
      .nan = DP_NAN_IGNORE,
      .ftz = true}},
    {"MODELOPT",
     "nvfp4",
     "e2m1",
     "NVIDIA/Model-Optimizer a2fbac7, bmm2_qdq.py",
     DP_PRESET_DECODE_AMAX,
     false,
     {.block = 16,
      .ratio = DP_RATIO_OVER_MAX_D,
      .quotient = DP_QUOTIENT_DIV_SD,
      .byte0 = DP_BYTE0_CODE_ZERO,
      .nan = DP_NAN_IGNORE}},
    {"DUDA",
     "nvfp4",
     "e2m1",
     "DD-DuDa/nvfp4_attn_kernel 5e70e90, page quantiser of K and V",
     DP_PRESET_FLAT,
     false,
     {.block = 16,
      .ratio = DP_RATIO_RCP,
      .quotient = DP_QUOTIENT_RCP,
      .divisor_add = 1e-30f,
      .nan = DP_NAN_IGNORE}},
    {"DIRECTP-QK-FOLD",
     "nvfp4",
     "e2m1",
     "MrHuff/fp4-fa4 edde9bcb, quantize_nvfp4_qk_folded_k64_scales; needs fold64.h",
     DP_PRESET_FLAT,
     true,
     {.block = 16,
      .ratio = DP_RATIO_G_OVER,
      .payload = STRICT,
      .scale_encode = NONSAT,
      .byte0 = DP_BYTE0_CODE_ZERO,
      .inf = DP_INF_NAN}},
    {"DIRECTP-V",
     "mxfp4",
     "e2m1",
     "MrHuff/fp4-fa4 edde9bcb, mxfp4_v3_quantize.cuh, mode RTE; codes of a byte-0 block are not "
     "pinned, 0 here",
     DP_PRESET_FLAT,
     false,
     {.block = 32,
      .scale = DP_SCALE_E8M0,
      .rule = DP_RULE_AMPLITUDE,
      .quotient = DP_QUOTIENT_AMPLITUDE,
      .byte0 = DP_BYTE0_CODE_ZERO,
      .amax_zero = 1e-38f,
      .decode = DP_DECODE_AMPLITUDE,
      .nan = DP_NAN_IGNORE}},
    {"RANGE",
     "nvfp4",
     "e2m1",
     "MrHuff/fp4-fa4 edde9bcb, p_format_range_diagnostic.py: blocks of 32, E4M3(G*amax/6)/G",
     DP_PRESET_FLAT,
     false,
     {.block = 32, .payload = STRICT, .byte0 = DP_BYTE0_CODE_ZERO}},
    {"RANGE",
     "mxfp4",
     "e2m1",
     "MrHuff/fp4-fa4 edde9bcb, p_format_range_diagnostic.py: best of two steps",
     DP_PRESET_FLAT,
     false,
     {.block = 32, .scale = DP_SCALE_E8M0, .rule = DP_RULE_BEST_L2, .payload = STRICT}},
};

size_t dp_preset_count(void)
{
    return sizeof rows / sizeof rows[0];
}

dp_preset dp_preset_at(size_t index)
{
    const row *r = &rows[index];
    dp_preset preset = {r->preset, r->format, r->source, r->global, r->fold64, r->recipe};
    (void)dp_catalog_find(r->element, &preset.recipe.element);
    return preset;
}

static bool same_name(const char *name, const row *r)
{
    char own[64];
    (void)snprintf(own, sizeof own, "%s:%s", r->preset, r->format);
    size_t i = 0;
    while (own[i] != '\0' && tolower((unsigned char)name[i]) == tolower((unsigned char)own[i])) {
        i++;
    }
    return own[i] == '\0' && name[i] == '\0';
}

bool dp_preset_find(const char *name, dp_preset *preset, dp_error *error)
{
    char known[900];
    size_t used = 0;
    for (size_t i = 0; i < dp_preset_count(); i++) {
        if (same_name(name, &rows[i])) {
            *preset = dp_preset_at(i);
            return true;
        }
        if (used < sizeof known) {
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s:%s",
                                     i == 0 ? "" : " ", rows[i].preset, rows[i].format);
        }
    }
    return dp_fail(error, "%.64s: no such recipe: name one of %s", name, known);
}

dp_global dp_preset_global(const dp_preset *preset, float amax)
{
    dp_global global = {DP_GLOBAL_NONE, 1.0f};
    if (preset->global == DP_PRESET_ENCODE_AMAX) {
        global.kind = DP_GLOBAL_DIV;
        global.value = dp_nvfp4_global_encode(amax);
    } else if (preset->global == DP_PRESET_DECODE_AMAX) {
        global.kind = DP_GLOBAL_MUL;
        global.value = dp_nvfp4_global_decode(amax);
    }
    return global;
}
