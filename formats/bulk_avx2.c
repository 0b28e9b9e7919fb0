/* SPDX-License-Identifier: MIT
 *
 * The bulk kernels on AVX2: the integer steps of the portable kernels, eight lanes wide. Integers
 * only, so that no floating-point environment can reach them [F1].
 */
#include "formats/bulk_plan.h"

#if defined(__x86_64__)

#include "formats/bulk_avx2_internal.h"

INLINE void encode_step(const constants *c, const uint8_t *from, bool bf16, bool truncate,
                        bool prefix, dp_bulk_width width, uint8_t *to)
{
    __m256i lanes[4];
    const size_t size = bf16 ? 16 : 32;
    for (size_t i = 0; i < 4; i++) {
        lanes[i] = encode_lanes(c, load_lanes(from + i * size, bf16), truncate, prefix);
    }
    store_codes(lanes, width, to);
}

INLINE void encode_loop(const dp_bulk_plan *plan, dp_bulk_source source, size_t n, bool bf16,
                        bool truncate, bool prefix, dp_bulk_width width, uint8_t *to)
{
    const constants c = load_constants(plan);
    const uint8_t *from = source.data;
    const size_t size = bf16 ? 2 : 4;
    const size_t out = width == DP_BULK_NIBBLES ? STEP / 2
                       : width == DP_BULK_BYTES ? STEP
                                                : 2 * STEP;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP, from += STEP * size, to += out) {
        encode_step(&c, from, bf16, truncate, prefix, width, to);
    }
    if (i < n) {
        uint8_t last[4 * STEP] = {0};
        uint8_t codes[2 * STEP];
        const size_t left = n - i;
        memcpy(last, from, left * size);
        encode_step(&c, last, bf16, truncate, prefix, width, codes);
        memcpy(to, codes,
               width == DP_BULK_NIBBLES ? (left + 1) / 2 : left * (width == DP_BULK_WORDS ? 2 : 1));
    }
}

#define ENCODE(bf16, truncate, prefix, width)                                                      \
    encode_loop(plan, source, n, bf16, truncate, prefix, width, codes)
#define ENCODE_WIDTHS(bf16, truncate)                                                              \
    do {                                                                                           \
        if (plan->prefix) {                                                                        \
            ENCODE(bf16, truncate, true, DP_BULK_WORDS);                                           \
        } else if (width == DP_BULK_NIBBLES) {                                                     \
            ENCODE(bf16, truncate, false, DP_BULK_NIBBLES);                                        \
        } else if (width == DP_BULK_BYTES) {                                                       \
            ENCODE(bf16, truncate, false, DP_BULK_BYTES);                                          \
        } else {                                                                                   \
            ENCODE(bf16, truncate, false, DP_BULK_WORDS);                                          \
        }                                                                                          \
    } while (0)

SIMD static void encode(const dp_bulk_plan *plan, dp_bulk_width width, dp_bulk_source source,
                        size_t n, uint8_t *codes, bool stream)
{
    (void)stream;
    if (source.bf16) {
        if (plan->truncate) {
            ENCODE_WIDTHS(true, true);
        } else {
            ENCODE_WIDTHS(true, false);
        }
    } else if (plan->truncate) {
        ENCODE_WIDTHS(false, true);
    } else {
        ENCODE_WIDTHS(false, false);
    }
}

static void encode_e8m0(const dp_bulk_e8m0_plan *plan, const float *x, size_t n, uint8_t *codes,
                        bool stream)
{
    dp_bulk_portable.encode_e8m0(plan, x, n, codes, stream);
}

/* Decoding is one table load an element on every path without byte permutes of 256 entries: the
 * plain C loop already stores one element a cycle. */
static void decode_f32(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                       size_t n, uint8_t *x, bool stream)
{
    dp_bulk_portable.decode_f32(table, width, codes, n, x, stream);
}

static void decode_bf16(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                        size_t n, uint8_t *x, bool stream)
{
    dp_bulk_portable.decode_bf16(table, width, codes, n, x, stream);
}

/* The subnormal magnitudes are integers of at most ten bits: their conversion to f32 is exact and
 * yields no subnormal, so that no environment matters; an exponent subtraction scales them. */
INLINE __m256i widen_fp16(__m128i half)
{
    const __m256i wide = _mm256_cvtepu16_epi32(half);
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7FFF));
    const __m256i count = _mm256_castps_si256(_mm256_cvtepi32_ps(magnitude));
    const __m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
    const __m256i small =
        _mm256_andnot_si256(zero, _mm256_sub_epi32(count, _mm256_set1_epi32(24 << 23)));
    const __m256i top = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7BFF));
    const __m256i bias = _mm256_add_epi32(_mm256_set1_epi32(112 << 23),
                                          _mm256_and_si256(top, _mm256_set1_epi32(112 << 23)));
    const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 13), bias);
    const __m256i is_normal = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x3FF));
    const __m256i sign = _mm256_slli_epi32(_mm256_sub_epi32(wide, magnitude), 16);
    const __m256i value = _mm256_or_si256(_mm256_blendv_epi8(small, normal, is_normal), sign);
    const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7C00));
    return _mm256_blendv_epi8(value, _mm256_set1_epi32((int)DP_F32_NAN_CUDA), nan);
}

INLINE __m256i widen_lanes(bool bf16, const uint8_t *codes)
{
    const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)codes);
    return bf16 ? _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16) : widen_fp16(half);
}

INLINE void widen(bool bf16, const uint8_t *codes, size_t n, uint8_t *x)
{
    const size_t whole = n - n % 8;
    for (size_t i = 0; i < whole; i += 8) {
        store_bytes(x + 4 * i, widen_lanes(bf16, codes + 2 * i));
    }
    if (whole < n) {
        uint8_t last[32] = {0};
        memcpy(last, codes + 2 * whole, 2 * (n - whole));
        store_bytes(last, widen_lanes(bf16, last));
        memcpy(x + 4 * whole, last, 4 * (n - whole));
    }
}

SIMD static void fp16_to_f32(const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    (void)stream;
    widen(false, codes, n, x);
}

SIMD static void bf16_to_f32(const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    (void)stream;
    widen(true, codes, n, x);
}

const dp_bulk_kernels dp_bulk_avx2 = {encode,      encode_e8m0, decode_f32,
                                      decode_bf16, fp16_to_f32, bf16_to_f32};

#endif
