/* SPDX-License-Identifier: MIT
 *
 * The block kernels in plain C.
 */
#include "formats/bulk_block_plan.h"

static uint32_t largest(const dp_bulk_block_plan *p, dp_bulk_source source, size_t first)
{
    uint32_t amax = 0;
    for (size_t i = 0; i < p->block; i++) {
        const uint32_t magnitude = dp_bulk_load(source, first + i) & DP_F32_ABS;
        const bool skipped = p->ignore_nan && magnitude > DP_F32_INF;
        amax = !skipped && magnitude > amax ? magnitude : amax;
    }
    return amax;
}

static float ratio(const dp_bulk_block_plan *p, uint32_t amax)
{
    const float x = dp_f32_from_bits(amax);
    const float t = p->first_divides ? x / p->first : x * p->first;
    const float u = p->second_divides ? t / p->second : t * p->second;
    return u < p->scale_min ? p->scale_min : u;
}

static uint8_t scale_byte(const dp_bulk_block_plan *p, uint32_t amax)
{
    if (amax > DP_F32_INF) {
        return (uint8_t)p->nan_byte;
    }
    amax = amax <= p->amax_zero ? p->amax_small : amax;
    if (amax == DP_F32_INF && p->inf_replaced) {
        return (uint8_t)p->inf_byte;
    }
    const uint32_t t = dp_f32_bits(ratio(p, amax));
    const uint32_t field = (amax + p->field_add) >> 23;
    switch (p->kind) {
    case DP_BULK_SCALE_CAST:
        return (uint8_t)dp_bulk_encode_one(&p->cast, t);
    case DP_BULK_SCALE_FIELD:
        return (uint8_t)(field > p->emax ? field - p->emax : 0u);
    case DP_BULK_SCALE_T:
        return (uint8_t)dp_bulk_e8m0_one(&p->power, t);
    default:
        return (uint8_t)dp_bulk_e8m0_one(&p->power, amax);
    }
}

static uint32_t code_of(const dp_bulk_block_plan *p, float x, uint8_t scale)
{
    const float first = x * p->before[scale];
    const float v = p->divides ? first / p->factor[scale] : first * p->factor[scale];
    const uint32_t code = dp_bulk_encode_one(&p->element, dp_f32_bits(v));
    return p->zero_codes && scale == 0 ? 0u : code;
}

static void quantize(const dp_bulk_block_plan *p, dp_bulk_source source, size_t blocks,
                     uint8_t *payload, uint8_t *scale, bool stream)
{
    (void)stream;
    for (size_t b = 0; b < blocks; b++) {
        const size_t first = b * p->block;
        const uint8_t byte = scale_byte(p, largest(p, source, first));
        scale[b] = byte;
        for (size_t i = first; i < first + p->block; i += 2) {
            const uint32_t low = code_of(p, dp_f32_from_bits(dp_bulk_load(source, i)), byte);
            const uint32_t high = code_of(p, dp_f32_from_bits(dp_bulk_load(source, i + 1)), byte);
            if (p->width == DP_BULK_NIBBLES) {
                payload[i / 2] = (uint8_t)(low | (high << 4));
            } else {
                payload[i] = (uint8_t)low;
                payload[i + 1] = (uint8_t)high;
            }
        }
    }
}

static void dequantize(const dp_bulk_block_values *values, size_t block, const uint8_t *payload,
                       const uint8_t *scale, size_t n, bool bf16, uint8_t *out, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        const uint32_t code = ((uint32_t)payload[i / 2] >> (4u * (i % 2))) & 0xFu;
        const uint32_t bits = values->value[scale[i / block]][code];
        const uint16_t half = (uint16_t)(bits >> 16);
        if (bf16) {
            memcpy(out + 2 * i, &half, sizeof half);
        } else {
            memcpy(out + 4 * i, &bits, sizeof bits);
        }
    }
}

static void gather(dp_bulk_source from, ptrdiff_t stride, size_t n, float *to)
{
    const ptrdiff_t step = stride * (from.bf16 ? 2 : 4);
    const uint8_t *row = from.data;
    for (size_t i = 0; i < n; i++, row += step) {
        const dp_bulk_source line = {row, from.bf16};
        for (size_t run = 0; run < 16; run++) {
            const uint32_t bits = dp_bulk_load(line, run);
            memcpy(to + run * DP_BULK_TILE + i, &bits, sizeof bits);
        }
    }
}

const dp_bulk_block_kernels dp_bulk_block_portable = {quantize, dequantize, gather};
