/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "analysis/quantize.h"
#include "formats/bf16.h"
#include "formats/fold64.h"
#include "formats/fp16.h"

static dp_tensor tensor_of(const dp_quantize_subject *s)
{
    size_t shape[DP_RANK_MAX];
    for (int i = 0; i < s->shape.rank; i++) {
        shape[i] = (size_t)s->shape.dims[i];
    }
    return dp_tensor_contiguous((size_t)s->shape.rank, shape);
}

static bool take_memory(dp_quantize_result *r, size_t payload, size_t scale, size_t count,
                        dp_error *error)
{
    r->payload = calloc(payload, 1);
    r->scale = calloc(scale > 0 ? scale : 1, 1);
    r->decoded = malloc(count * sizeof(float));
    return (r->payload != NULL && r->scale != NULL && r->decoded != NULL) ||
           dp_fail(error, "quantize: no memory for %zu elements: free some", count);
}

/* ---- Direct conversions ---- */

static float through(float x, dp_via via)
{
    return via == DP_VIA_FP16   ? dp_fp16_to_f32(dp_fp16_from_f32(x, DP_ENCODE_NONSAT))
           : via == DP_VIA_BF16 ? dp_bf16_to_f32(dp_bf16_from_f32(x, DP_ENCODE_NONSAT))
                                : x;
}

/* Offset of element j of run i: the runs of block.h, row-major over the other axes. */
static size_t run_start(const dp_quantize_subject *s, size_t run, size_t *stride)
{
    size_t inner = 1;
    for (int i = (int)s->axis + 1; i < s->shape.rank; i++) {
        inner *= (size_t)s->shape.dims[i];
    }
    *stride = inner;
    return run / inner * inner * (size_t)s->shape.dims[s->axis] + run % inner;
}

static bool convert_run(const dp_quantize_method *m, const dp_quantize_subject *s, size_t run,
                        dp_quantize_result *r, dp_error *error)
{
    size_t stride;
    const size_t start = run_start(s, run, &stride);
    const bool nibbles =
        m->element.has_sign + m->element.exponent_bits + m->element.mantissa_bits <= 4;
    uint8_t *to = r->payload + run * r->shape.run_payload_bytes;
    const float max =
        dp_f32_from_bits(dp_minifloat_decode(dp_minifloat_max_code(m->element), m->element));
    for (size_t j = 0; j < r->shape.length; j++) {
        const size_t at = start + j * stride;
        const float x = s->values[at];
        if (isnan(x) && m->refuse_nan) {
            return dp_fail(error,
                           "%s: element %zu is NaN, which --nan error refuses: remove it or "
                           "choose another policy",
                           s->name, at);
        }
        const uint32_t code =
            dp_minifloat_encode(dp_f32_bits(through(x, m->via)), m->element, m->encode);
        const uint16_t wide = (uint16_t)code;
        if (nibbles) {
            to[j / 2] = (uint8_t)(to[j / 2] | code << (4u * (j % 2u)));
        } else if (r->code_bytes == 2) {
            memcpy(to + 2 * j, &wide, 2);
        } else {
            to[j] = (uint8_t)code;
        }
        r->decoded[at] = dp_f32_from_bits(dp_minifloat_decode(code, m->element));
        r->stats.saturated += isfinite(x) && fabsf(x) > max ? 1 : 0;
    }
    return true;
}

static bool run_direct(const dp_quantize_method *m, const dp_quantize_subject *s,
                       dp_quantize_result *r, dp_error *error)
{
    const size_t length = (size_t)s->shape.dims[s->axis];
    const int width = m->element.has_sign + m->element.exponent_bits + m->element.mantissa_bits;
    r->code_bytes = width > 8 ? 2 : 1;
    r->shape = (dp_block_shape){.runs = s->shape.count / length, .length = length};
    r->shape.run_payload_bytes = width <= 4 ? (length + 1) / 2 : length * r->code_bytes;
    r->shape.payload_bytes = r->shape.runs * r->shape.run_payload_bytes;
    bool good = take_memory(r, r->shape.payload_bytes, 0, s->shape.count, error);
    for (size_t run = 0; good && run < r->shape.runs; run++) {
        good = convert_run(m, s, run, r, error);
    }
    return good;
}

/* ---- Block recipes ---- */

/* Largest finite magnitude; what a global scale is made of. */
static float largest(const dp_quantize_subject *s)
{
    float amax = 0.0f;
    for (size_t i = 0; i < s->shape.count; i++) {
        const float magnitude = fabsf(s->values[i]);
        amax = isfinite(magnitude) && magnitude > amax ? magnitude : amax;
    }
    return amax;
}

static bool fold(const dp_quantize_subject *s, int threads, dp_quantize_result *r, dp_error *error)
{
    if (s->axis + 1 != (size_t)s->shape.rank || s->shape.dims[s->axis] != DP_FOLD64_DIM) {
        return dp_fail(error,
                       "%s: nvfp4-k64 folds rows of 128 along the last axis: choose an array "
                       "with a head dim of 128",
                       s->name);
    }
    dp_fold64_rows(s->values, r->shape.runs, DP_FOLD64_DIM, 1.0f, DP_SUM_TREE, threads, r->payload,
                   r->scale);
    return true;
}

/* Count stored scale bytes, and what the clipped elements lost. */
static void inspect(const dp_block_plan *plan, const dp_quantize_subject *s, dp_quantize_result *r)
{
    const dp_scale_format format = plan->recipe.scale;
    for (size_t i = 0; plan->scale_size == 1 && i < r->shape.scale_bytes; i++) {
        const uint8_t byte = r->scale[i];
        const bool nan = byte == 0xFFu || (format == DP_SCALE_E4M3 && byte == 0x7Fu);
        if (nan && r->scale_byte_nan < 3) {
            r->first_nan[r->scale_byte_nan] = i;
        }
        r->scale_byte_nan += nan ? 1 : 0;
        r->scale_byte_zero += byte == 0 ? 1 : 0;
    }
    const uint32_t sign = dp_minifloat_sign_bit(plan->recipe.element);
    const uint32_t max_code = dp_minifloat_max_code(plan->recipe.element);
    for (size_t run = 0; run < r->shape.runs; run++) {
        size_t stride;
        const size_t start = run_start(s, run, &stride);
        const uint8_t *payload = r->payload + run * r->shape.run_payload_bytes;
        for (size_t j = 0; j < r->shape.length; j++) {
            const float x = fabsf(s->values[start + j * stride]);
            const float y = fabsf(r->decoded[start + j * stride]);
            if (isfinite(x) && y < x && (dp_block_get_code(plan, payload, j) & ~sign) == max_code) {
                r->worst_clip = fmax(r->worst_clip, 1.0 - (double)y / (double)x);
            }
        }
    }
}

static bool run_blocks(const dp_quantize_method *m, const dp_quantize_subject *s, int threads,
                       dp_quantize_result *r, dp_error *error)
{
    const dp_tensor tensor = tensor_of(s);
    dp_block_plan plan;
    const float amax = largest(s);
    r->code_bytes = 1;
    r->global = dp_preset_global(&m->preset, amax);
    if (!dp_block_plan_make(&m->preset.recipe, r->global, &plan, error) ||
        !dp_block_shape_of(&plan, &tensor, s->axis, &r->shape, error) ||
        !take_memory(r, r->shape.payload_bytes, r->shape.scale_bytes, s->shape.count, error)) {
        return false;
    }
    if (m->preset.fold64) {
        if (!fold(s, threads, r, error)) {
            return false;
        }
        r->stats.blocks = r->shape.runs * r->shape.blocks;
    } else if (!dp_block_quantize(&plan, s->values, &tensor, s->axis, threads, r->payload, r->scale,
                                  &r->stats, error)) {
        return false;
    }
    if (!dp_block_dequantize(&plan, r->payload, r->scale, &tensor, s->axis, threads, r->decoded,
                             error)) {
        return false;
    }
    inspect(&plan, s, r);
    if (m->preset.recipe.scale == DP_SCALE_E4M3) {
        r->range_percent = 100.0 * (double)amax / ((double)plan.max * 448.0 * (double)plan.d);
    }
    return true;
}

bool dp_quantize_run(const dp_quantize_method *m, const dp_quantize_subject *s, int threads,
                     dp_quantize_result *r, dp_error *error)
{
    memset(r, 0, sizeof *r);
    r->range_percent = (double)NAN;
    if (!(m->direct ? run_direct(m, s, r, error) : run_blocks(m, s, threads, r, error))) {
        return false;
    }
    dp_errors_of(s->values, r->decoded, s->shape.count, &r->errors);
    return true;
}

void dp_quantize_result_free(dp_quantize_result *r)
{
    free(r->payload);
    free(r->scale);
    free(r->decoded);
    memset(r, 0, sizeof *r);
}
