/* SPDX-License-Identifier: MIT */
#include "ref/forward/route_operands.h"

#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/fold64.h"
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
    case DP_OPERAND_E4M3_SM89:
        return dp_mma_find("mma.sync", "e4m3", "e4m3", "f32", "sm_89");
    case DP_OPERAND_INT8:
        return NULL;
    case DP_OPERAND_MXFP8:
        return dp_mma_find("tcgen05.mma.kind::mxf8f6f4.block32.ue8m0", "e4m3", "e4m3", "f32",
                           "sm_100a");
    case DP_OPERAND_NVFP4:
    case DP_OPERAND_NVFP4_K64:
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
    case DP_OPERAND_E4M3_SM89:
    case DP_OPERAND_INT8:
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
    case DP_OPERAND_NVFP4_K64:
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
    case DP_OPERAND_NVFP4_K64:
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

/* Codes of one row with block scales. */
static bool block_row(const dp_block_plan *plan, dp_operand_format format, const float *x,
                      ptrdiff_t stride, size_t cols, uint8_t *payload, uint8_t *scale,
                      dp_error *error)
{
    size_t bad = 0;
    return dp_block_quantize_run(plan, x, stride, cols, payload, scale, NULL, &bad) ||
           dp_fail(error, "route: element %zu of an operand is NaN or Inf, which %s refuses", bad,
                   preset_of(format));
}

/* A row of block codes as the BF16 words of what they stand for; NVFP4 and MXFP8. */
static void decode_row(const dp_block_plan *plan, dp_operand_format format, const uint8_t *payload,
                       const uint8_t *scale, size_t cols, uint16_t *words)
{
    const size_t block = plan->recipe.block;
    for (size_t i = 0; i < cols; i++) {
        const dp_e2m1 e2m1 = {(uint8_t)((uint32_t)payload[i / 2] >> (4 * (i % 2)) & 15u)};
        const dp_e4m3 e4m3 = {payload[format == DP_OPERAND_NVFP4 ? 0 : i]};
        const float s = dp_block_scale_value(plan->recipe.scale, scale + i / block);
        const float x = format == DP_OPERAND_NVFP4 ? dp_e2m1_to_f32(e2m1) : dp_e4m3_to_f32(e4m3);
        words[i] = dp_bf16_from_f32(x * s, DP_ENCODE_NONSAT).bits;
    }
}

/* Every row of an operand to its codes; `fake`: to BF16 words. */
static bool quantize_rows(dp_operand_format format, bool fake, const float *x, size_t rows,
                          size_t cols, ptrdiff_t row_stride, ptrdiff_t col_stride, uint8_t *payload,
                          uint8_t *scale, dp_error *error)
{
    const size_t bytes = fake ? 2 * cols : dp_operand_bytes(format, cols);
    const size_t scales = dp_operand_scales(format, cols);
    uint8_t codes[DP_ROUTE_TILE]; /* cols at most: the head dimension, or a tile */
    dp_block_plan plan;
    bool good = scales == 0 || plan_of(format, &plan, error);
    for (size_t row = 0; good && row < rows; row++) {
        const float *from = x + (ptrdiff_t)row * row_stride;
        if (scales == 0) {
            plain_row(format, from, col_stride, cols, payload + row * bytes);
            continue;
        }
        if (format == DP_OPERAND_NVFP4_K64) {
            dp_fold64_row(from, 1.0f, DP_SUM_TREE, payload + row * bytes, scale + row * scales,
                          NULL);
            continue;
        }
        uint8_t *to = fake ? codes : payload + row * bytes;
        good = block_row(&plan, format, from, col_stride, cols, to, scale + row * scales, error);
        if (good && fake) {
            uint16_t words[DP_ROUTE_TILE];
            decode_row(&plan, format, codes, scale + row * scales, cols, words);
            memcpy(payload + row * bytes, words, bytes);
        }
    }
    return good;
}

bool dp_operand_prepare(dp_operand_format format, bool fake, dp_mma_side side,
                        const dp_mma_switches *mma, const float *x, size_t rows, size_t cols,
                        ptrdiff_t row_stride, ptrdiff_t col_stride, dp_mma_matrix *matrix,
                        dp_error *error)
{
    const size_t scales = dp_operand_scales(format, cols);
    fake = fake && scales > 0;
    const size_t bytes = fake ? 2 * cols : dp_operand_bytes(format, cols);
    uint8_t *payload = malloc(rows * bytes);
    uint8_t *scale = malloc(rows * scales + 1);
    bool good = payload != NULL && scale != NULL;
    if (!good) {
        (void)dp_fail(error, "route: not enough memory for an operand of %zu bytes", rows * bytes);
    }
    good = good && quantize_rows(format, fake, x, rows, cols, row_stride, col_stride, payload,
                                 scale, error);
    const dp_mma_source source = {.payload = payload, .scale = scales > 0 && !fake ? scale : NULL};
    good = good && dp_mma_prepare(matrix, dp_operand_instruction(fake ? DP_OPERAND_BF16 : format),
                                  mma, side, rows, cols, &source, error);
    free(payload);
    free(scale);
    return good;
}
