/* SPDX-License-Identifier: MIT
 *
 * The bulk kernels in plain C, branch-free and integer only. The SIMD paths follow the same steps
 * and hand their tails to no one: each pads its last block.
 */
#include "formats/bulk_plan.h"

static void encode(const dp_bulk_plan *plan_in, dp_bulk_width width, dp_bulk_source source,
                   size_t n, uint8_t *codes, bool stream)
{
    const dp_bulk_plan plan = *plan_in; /* not aliased by the bytes written */
    (void)stream;
    if (width == DP_BULK_BYTES) {
        for (size_t i = 0; i < n; i++) {
            codes[i] = (uint8_t)dp_bulk_encode_one(&plan, dp_bulk_load(source, i));
        }
    } else if (width == DP_BULK_WORDS) {
        for (size_t i = 0; i < n; i++) {
            const uint16_t code = (uint16_t)dp_bulk_encode_one(&plan, dp_bulk_load(source, i));
            memcpy(codes + 2 * i, &code, sizeof code);
        }
    } else {
        for (size_t i = 0; i + 1 < n; i += 2) {
            const uint32_t low = dp_bulk_encode_one(&plan, dp_bulk_load(source, i));
            const uint32_t high = dp_bulk_encode_one(&plan, dp_bulk_load(source, i + 1));
            codes[i / 2] = (uint8_t)(low | (high << 4));
        }
        if (n % 2 != 0) {
            codes[n / 2] = (uint8_t)dp_bulk_encode_one(&plan, dp_bulk_load(source, n - 1));
        }
    }
}

static void encode_e8m0(const dp_bulk_e8m0_plan *plan, const float *x, size_t n, uint8_t *codes,
                        bool stream)
{
    const dp_bulk_source source = {x, false};
    const dp_bulk_e8m0_plan p = *plan;
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        codes[i] = (uint8_t)dp_bulk_e8m0_one(&p, dp_bulk_load(source, i));
    }
}

static inline uint32_t byte_or_nibble(dp_bulk_width width, const uint8_t *codes, size_t i)
{
    return width == DP_BULK_NIBBLES ? ((uint32_t)codes[i / 2] >> (4u * (i % 2))) & 0xFu : codes[i];
}

static void decode_f32(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                       size_t n, uint8_t *x, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + 4 * i, &table->f32[byte_or_nibble(width, codes, i)], 4);
    }
}

static void decode_bf16(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                        size_t n, uint8_t *x, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + 2 * i, &table->bf16[byte_or_nibble(width, codes, i)], 2);
    }
}

static void fp16_to_f32(const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        uint16_t code;
        memcpy(&code, codes + 2 * i, sizeof code);
        const uint32_t bits = dp_minifloat_decode(code, dp_fp16_format());
        memcpy(x + 4 * i, &bits, sizeof bits);
    }
}

static void bf16_to_f32(const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        uint16_t code;
        memcpy(&code, codes + 2 * i, sizeof code);
        const uint32_t bits = (uint32_t)code << 16;
        memcpy(x + 4 * i, &bits, sizeof bits);
    }
}

const dp_bulk_kernels dp_bulk_portable = {encode,      encode_e8m0, decode_f32,
                                          decode_bf16, fp16_to_f32, bf16_to_f32};
