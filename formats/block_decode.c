/* SPDX-License-Identifier: MIT
 *
 * From codes and scales back to values [B9], [B10].
 */
#include <math.h>

#include "formats/block_internal.h"

double dp_block_value(const dp_block_plan *plan, uint32_t code, const uint8_t *scale)
{
    const double element =
        (double)dp_f32_from_bits(dp_minifloat_decode(code, plan->recipe.element));
    const double product = element * (double)dp_block_scale_value(plan->recipe.scale, scale);
    if (plan->recipe.decode == DP_DECODE_AMPLITUDE) {
        return product / (double)plan->max;
    }
    switch (plan->global.kind) {
    case DP_GLOBAL_MUL:
        return product * (double)plan->d;
    case DP_GLOBAL_DIV:
        return product / (double)plan->g;
    default:
        return product;
    }
}

float dp_block_value_f32(const dp_block_plan *plan, uint32_t code, const uint8_t *scale)
{
    const double value = dp_block_value(plan, code, scale);
    return isnan(value) ? dp_f32_from_bits(DP_F32_NAN_CUDA) : (float)value;
}

uint32_t dp_block_get_code(const dp_block_plan *plan, const uint8_t *payload, size_t i)
{
    if (plan->element_bits == 8) {
        return payload[i];
    }
    if (plan->recipe.packing == DP_PACK_HALVES) {
        const size_t half = plan->recipe.block / 2;
        const size_t inside = i % plan->recipe.block;
        const size_t byte = i / plan->recipe.block * half + inside % half;
        return (payload[byte] >> (inside < half ? 0u : 4u)) & 0xFu;
    }
    return ((unsigned)payload[i / 2] >> (4u * (i % 2u))) & 0xFu;
}

static void run_f32(const dp_block_plan *plan, const uint8_t *payload, const uint8_t *scale,
                    size_t length, float *out, ptrdiff_t stride)
{
    for (size_t i = 0; i < length; i++) {
        out[(ptrdiff_t)i * stride] =
            dp_block_value_f32(plan, dp_block_get_code(plan, payload, i),
                               scale + i / plan->recipe.block * plan->scale_size);
    }
}

static void run_f64(const dp_block_plan *plan, const uint8_t *payload, const uint8_t *scale,
                    size_t length, double *out, ptrdiff_t stride)
{
    for (size_t i = 0; i < length; i++) {
        out[(ptrdiff_t)i * stride] =
            dp_block_value(plan, dp_block_get_code(plan, payload, i),
                           scale + i / plan->recipe.block * plan->scale_size);
    }
}

void dp_block_dequantize_run(const dp_block_plan *plan, const uint8_t *payload,
                             const uint8_t *scale, size_t length, float *out, ptrdiff_t stride)
{
    fenv_t callers;
    dp_environment_enter(&callers);
    run_f32(plan, payload, scale, length, out, stride);
    dp_environment_leave(&callers);
}

void dp_block_dequantize_run_f64(const dp_block_plan *plan, const uint8_t *payload,
                                 const uint8_t *scale, size_t length, double *out, ptrdiff_t stride)
{
    fenv_t callers;
    dp_environment_enter(&callers);
    run_f64(plan, payload, scale, length, out, stride);
    dp_environment_leave(&callers);
}
