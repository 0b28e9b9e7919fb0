/* SPDX-License-Identifier: MIT */
#include "ref/forward/route_operands.h"

#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e4m3.h"
#include "formats/preset.h"

const dp_mma_desc *dp_operand_instruction(dp_operand_format format)
{
    switch (format) {
    case DP_OPERAND_BF16:
        return dp_mma_find("tcgen05.mma.kind::f16", "bf16", "bf16", "f32", "sm_100a");
    case DP_OPERAND_E4M3:
        return dp_mma_find("tcgen05.mma.kind::f8f6f4", "e4m3", "e4m3", "f32", "sm_100a");
    case DP_OPERAND_E4M3_SM90:
        return dp_mma_find("wgmma", "e4m3", "e4m3", "f32", "sm_90a");
    case DP_OPERAND_MXFP8:
        return dp_mma_find("tcgen05.mma.kind::mxf8f6f4.block32.ue8m0", "e4m3", "e4m3", "f32",
                           "sm_100a");
    case DP_OPERAND_NVFP4:
        return dp_mma_find("tcgen05.mma.kind::mxf4nvf4.block16.ue4m3", "e2m1", "e2m1", "f32",
                           "sm_100a");
    default:
        return dp_mma_find("tcgen05.mma.kind::mxf4nvf4.block32.ue8m0", "e2m1", "e2m1", "f32",
                           "sm_100a");
    }
}

size_t dp_operand_bytes(dp_operand_format format, size_t count)
{
    switch (format) {
    case DP_OPERAND_BF16:
        return 2 * count;
    case DP_OPERAND_E4M3:
    case DP_OPERAND_E4M3_SM90:
    case DP_OPERAND_MXFP8:
        return count;
    default:
        return count / 2;
    }
}

size_t dp_operand_scales(dp_operand_format format, size_t count)
{
    switch (format) {
    case DP_OPERAND_NVFP4:
        return count / 16;
    case DP_OPERAND_MXFP8:
    case DP_OPERAND_MXFP4:
        return count / 32;
    default:
        return 0;
    }
}

static const char *preset_of(dp_operand_format format)
{
    switch (format) {
    case DP_OPERAND_NVFP4:
        return "HAO:nvfp4";
    case DP_OPERAND_MXFP8:
        return "PTX:mxfp8-e4m3";
    default:
        return "DIRECTP-V:mxfp4";
    }
}

static bool plan_of(dp_operand_format format, dp_block_plan *plan, dp_error *error)
{
    dp_preset preset;
    const dp_global none = {DP_GLOBAL_NONE, 1.0f};
    return dp_preset_find(preset_of(format), &preset, error) &&
           dp_block_plan_make(&preset.recipe, none, plan, error);
}

/* One row to codes without block scales. */
static void plain_row(dp_operand_format format, const float *x, ptrdiff_t stride, size_t cols,
                      uint8_t *payload)
{
    for (size_t i = 0; i < cols; i++) {
        const float value = x[(ptrdiff_t)i * stride];
        if (format == DP_OPERAND_BF16) {
            const uint16_t bits = dp_bf16_from_f32(value, DP_ENCODE_NONSAT).bits;
            memcpy(payload + 2 * i, &bits, sizeof bits);
        } else {
            payload[i] = dp_e4m3_from_f32(value, DP_ENCODE_PTX).bits;
        }
    }
}

bool dp_operand_prepare(dp_operand_format format, dp_mma_side side, const dp_mma_switches *mma,
                        const float *x, size_t rows, size_t cols, ptrdiff_t row_stride,
                        ptrdiff_t col_stride, dp_mma_matrix *matrix, dp_error *error)
{
    const size_t bytes = dp_operand_bytes(format, cols);
    const size_t scales = dp_operand_scales(format, cols);
    uint8_t *payload = malloc(rows * bytes);
    uint8_t *scale = malloc(rows * scales + 1);
    dp_block_plan plan;
    bool good = payload != NULL && scale != NULL;
    if (!good) {
        (void)dp_fail(error, "route: not enough memory for an operand of %zu bytes", rows * bytes);
    }
    good = good && (scales == 0 || plan_of(format, &plan, error));
    for (size_t row = 0; good && row < rows; row++) {
        const float *from = x + (ptrdiff_t)row * row_stride;
        size_t bad = 0;
        if (scales == 0) {
            plain_row(format, from, col_stride, cols, payload + row * bytes);
        } else if (!dp_block_quantize_run(&plan, from, col_stride, cols, payload + row * bytes,
                                          scale + row * scales, NULL, &bad)) {
            good =
                dp_fail(error, "route: element %zu of an operand is NaN or Inf, which %s refuses",
                        bad, preset_of(format));
        }
    }
    const dp_mma_source source = {.payload = payload, .scale = scales > 0 ? scale : NULL};
    good = good && dp_mma_prepare(matrix, dp_operand_instruction(format), mma, side, rows, cols,
                                  &source, error);
    free(payload);
    free(scale);
    return good;
}
