/* SPDX-License-Identifier: MIT
 *
 * The bulk kernels on AVX-512 F, BW, VL, DQ and VBMI. 64 elements a step; the last step of an array
 * is padded on the stack.
 */
#include "formats/bulk_plan.h"

#if defined(__x86_64__)

#include "formats/bulk_avx512_internal.h"

static inline size_t step_bytes(dp_bulk_width width)
{
    return width == DP_BULK_NIBBLES ? STEP / 2 : width == DP_BULK_BYTES ? STEP : 2 * STEP;
}

INLINE void encode_step(const constants *c, const uint8_t *from, bool bf16, bool truncate,
                        bool prefix, bool tails, dp_bulk_width width, uint8_t *to, bool stream)
{
    __m512i lanes[4];
    const size_t size = bf16 ? 32 : 64;
    for (size_t i = 0; i < 4; i++) {
        lanes[i] = encode_lanes(c, load_lanes(from + i * size, bf16), truncate, prefix, tails);
    }
    store_codes(lanes, width, to, stream);
}

INLINE void encode_loop(const dp_bulk_plan *plan, dp_bulk_source source, size_t n, bool bf16,
                        bool truncate, bool prefix, bool tails, dp_bulk_width width, uint8_t *to,
                        bool stream)
{
    const constants c = load_constants(plan);
    const uint8_t *from = source.data;
    const size_t size = bf16 ? 2 : 4;
    const size_t out = step_bytes(width);
    size_t i = 0;
    if (stream && (uintptr_t)to % out == 0) {
        for (; i + STEP <= n; i += STEP, from += STEP * size, to += out) {
            encode_step(&c, from, bf16, truncate, prefix, tails, width, to, true);
        }
        _mm_sfence();
    }
    for (; i + STEP <= n; i += STEP, from += STEP * size, to += out) {
        encode_step(&c, from, bf16, truncate, prefix, tails, width, to, false);
    }
    if (i < n) {
        uint8_t last[4 * STEP] = {0};
        uint8_t codes[2 * STEP];
        memcpy(last, from, (n - i) * size);
        encode_step(&c, last, bf16, truncate, prefix, tails, width, codes, false);
        const size_t left = n - i;
        memcpy(to, codes,
               width == DP_BULK_NIBBLES ? (left + 1) / 2 : left * (width == DP_BULK_WORDS ? 2 : 1));
    }
}

#define ENCODE(bf16, truncate, prefix, tails, width)                                               \
    encode_loop(plan, source, n, bf16, truncate, prefix, tails, width, codes, stream)
#define ENCODE_WIDTHS(bf16, truncate, tails)                                                       \
    do {                                                                                           \
        if (plan->prefix) {                                                                        \
            ENCODE(bf16, truncate, true, tails, DP_BULK_WORDS);                                    \
        } else if (width == DP_BULK_NIBBLES) {                                                     \
            ENCODE(bf16, truncate, false, tails, DP_BULK_NIBBLES);                                 \
        } else if (width == DP_BULK_BYTES) {                                                       \
            ENCODE(bf16, truncate, false, tails, DP_BULK_BYTES);                                   \
        } else {                                                                                   \
            ENCODE(bf16, truncate, false, tails, DP_BULK_WORDS);                                   \
        }                                                                                          \
    } while (0)

SIMD static void encode_from(const dp_bulk_plan *plan, dp_bulk_width width, dp_bulk_source source,
                             size_t n, uint8_t *codes, bool stream)
{
    if (source.bf16) {
        if (plan->truncate) {
            ENCODE_WIDTHS(true, true, true);
        } else {
            ENCODE_WIDTHS(true, false, true);
        }
    } else if (plan->truncate) {
        ENCODE_WIDTHS(false, true, true);
    } else if (plan->tails) {
        ENCODE_WIDTHS(false, false, true);
    } else {
        ENCODE_WIDTHS(false, false, false);
    }
}

/* Elements up to the first destination byte from which whole aligned steps can be streamed. */
static size_t elements_to_alignment(const uint8_t *to, size_t alignment, size_t n,
                                    size_t half_bytes)
{
    const size_t bytes = (alignment - (uintptr_t)to % alignment) % alignment;
    const size_t elements = bytes * 2 / half_bytes;
    return elements * half_bytes == bytes * 2 && elements < n ? elements : 0;
}

SIMD static void encode(const dp_bulk_plan *plan, dp_bulk_width width, dp_bulk_source source,
                        size_t n, uint8_t *codes, bool stream)
{
    static const size_t half_bytes[] = {1, 2, 4};
    size_t head = 0;
    if (stream) {
        head = elements_to_alignment(codes, step_bytes(width), n, half_bytes[width]);
        encode_from(plan, width, source, head, codes, false);
    }
    encode_from(plan, width, dp_bulk_advance(source, head), n - head,
                codes + head * half_bytes[width] / 2, stream);
}

SIMD static void encode_e8m0(const dp_bulk_e8m0_plan *plan, const float *x, size_t n,
                             uint8_t *codes, bool stream)
{
    const dp_bulk_e8m0_plan p = *plan;
    const uint8_t *from = (const uint8_t *)x;
    (void)stream;
    for (size_t i = 0; i < n; i += STEP) {
        const size_t count = n - i < STEP ? n - i : STEP;
        uint8_t last[4 * STEP] = {0};
        const uint8_t *block = from + 4 * i;
        if (count < STEP) {
            memcpy(last, block, 4 * count);
            block = last;
        }
        __m512i lanes[4];
        for (size_t k = 0; k < 4; k++) {
            lanes[k] = e8m0_lanes(&p, load_lanes(block + 64 * k, false));
        }
        uint8_t out[STEP];
        store_codes(lanes, DP_BULK_BYTES, count < STEP ? out : codes + i, false);
        if (count < STEP) {
            memcpy(codes + i, out, count);
        }
    }
}

/* A table of 256 bytes in registers. */
typedef struct {
    __m512i part[4];
} byte_table;

INLINE __m512i look_up(const byte_table *table, __m512i index)
{
    const __m512i low = _mm512_permutex2var_epi8(table->part[0], index, table->part[1]);
    const __m512i high = _mm512_permutex2var_epi8(table->part[2], index, table->part[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
}

INLINE byte_table load_table(const uint8_t bytes[256])
{
    byte_table table;
    for (size_t i = 0; i < 4; i++) {
        table.part[i] = _mm512_loadu_si512(bytes + 64 * i);
    }
    return table;
}

typedef struct {
    byte_table high, middle, low; /* of an f32: bits 31-24, 23-16, and 15-8 = 7-0 */
} value_table;

INLINE value_table split_values(const dp_bulk_table *table, bool bf16)
{
    uint8_t bytes[3][256];
    for (size_t i = 0; i < 256; i++) {
        const uint32_t bits = bf16 ? (uint32_t)table->bf16[i] << 16 : table->f32[i];
        bytes[0][i] = (uint8_t)(bits >> 24);
        bytes[1][i] = (uint8_t)(bits >> 16);
        bytes[2][i] = (uint8_t)bits; /* 0 for numbers, 0xFF for the NaN 0x7FFFFFFF */
    }
    const value_table values = {load_table(bytes[0]), load_table(bytes[1]), load_table(bytes[2])};
    return values;
}

INLINE __m512i load_bytes(dp_bulk_width width, const uint8_t *codes)
{
    if (width == DP_BULK_BYTES) {
        return _mm512_loadu_si512(codes);
    }
    const __m256i pairs = _mm256_loadu_si256((const __m256i *)(const void *)codes);
    const __m512i words = _mm512_cvtepu8_epi16(pairs);
    const __m512i spread = _mm512_or_si512(words, _mm512_slli_epi16(words, 4));
    return _mm512_and_si512(spread, _mm512_set1_epi8(0xF));
}

/* 64 codes to 64 f32 or bf16. The codes are put in the order that in-lane unpacking undoes. */
INLINE void decode_step(const value_table *values, dp_bulk_width width, bool bf16,
                        const uint8_t *codes, uint8_t *to, bool stream)
{
    const __m512i raw = load_bytes(width, codes);
    if (bf16) {
        const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
        const __m512i index = _mm512_permutexvar_epi64(order, raw);
        const __m512i high = look_up(&values->high, index);
        const __m512i middle = look_up(&values->middle, index);
        store_lanes(to, _mm512_unpacklo_epi8(middle, high), stream);
        store_lanes(to + 64, _mm512_unpackhi_epi8(middle, high), stream);
        return;
    }
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i index = _mm512_permutexvar_epi32(order, raw);
    const __m512i high = look_up(&values->high, index);
    const __m512i middle = look_up(&values->middle, index);
    const __m512i low = look_up(&values->low, index);
    const __m512i top0 = _mm512_unpacklo_epi8(middle, high);
    const __m512i top1 = _mm512_unpackhi_epi8(middle, high);
    const __m512i bottom0 = _mm512_unpacklo_epi8(low, low);
    const __m512i bottom1 = _mm512_unpackhi_epi8(low, low);
    store_lanes(to, _mm512_unpacklo_epi16(bottom0, top0), stream);
    store_lanes(to + 64, _mm512_unpackhi_epi16(bottom0, top0), stream);
    store_lanes(to + 128, _mm512_unpacklo_epi16(bottom1, top1), stream);
    store_lanes(to + 192, _mm512_unpackhi_epi16(bottom1, top1), stream);
}

INLINE void decode_loop(const dp_bulk_table *table, dp_bulk_width width, bool bf16,
                        const uint8_t *codes, size_t n, uint8_t *to, bool stream)
{
    const value_table values = split_values(table, bf16);
    const size_t in = width == DP_BULK_NIBBLES ? STEP / 2 : STEP;
    const size_t out = bf16 ? 2 * STEP : 4 * STEP;
    size_t i = 0;
    if (stream && (uintptr_t)to % 64 == 0) {
        for (; i + STEP <= n; i += STEP, codes += in, to += out) {
            decode_step(&values, width, bf16, codes, to, true);
        }
        _mm_sfence();
    }
    for (; i + STEP <= n; i += STEP, codes += in, to += out) {
        decode_step(&values, width, bf16, codes, to, false);
    }
    if (i < n) {
        uint8_t last[STEP] = {0};
        uint8_t values_out[4 * STEP];
        const size_t left = n - i;
        memcpy(last, codes, width == DP_BULK_NIBBLES ? (left + 1) / 2 : left);
        decode_step(&values, width, bf16, last, values_out, false);
        memcpy(to, values_out, left * (bf16 ? 2 : 4));
    }
}

SIMD static void decode_f32(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                            size_t n, uint8_t *x, bool stream)
{
    size_t head = 0;
    if (stream) { /* an even number of elements, so that nibbles stay whole */
        head = elements_to_alignment(x, 64, n, 8) & ~(size_t)1;
        decode_loop(table, width, false, codes, head, x, false);
    }
    codes += width == DP_BULK_NIBBLES ? head / 2 : head;
    if (width == DP_BULK_NIBBLES) {
        decode_loop(table, DP_BULK_NIBBLES, false, codes, n - head, x + 4 * head, stream);
    } else {
        decode_loop(table, DP_BULK_BYTES, false, codes, n - head, x + 4 * head, stream);
    }
}

SIMD static void decode_bf16(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                             size_t n, uint8_t *x, bool stream)
{
    if (width == DP_BULK_NIBBLES) {
        decode_loop(table, DP_BULK_NIBBLES, true, codes, n, x, stream);
    } else {
        decode_loop(table, DP_BULK_BYTES, true, codes, n, x, stream);
    }
}

INLINE __m512i widen_fp16(__m256i half)
{
    const __m512i wide = _mm512_cvtepu16_epi32(half);
    const __m512i magnitude = _mm512_and_epi32(wide, _mm512_set1_epi32(0x7FFF));
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7C00));
    /* Denormal inputs of this instruction are exempt from DAZ. */
    const __m512i value = _mm512_castps_si512(_mm512_cvt_roundph_ps(half, _MM_FROUND_NO_EXC));
    return _mm512_mask_mov_epi32(value, nan, _mm512_set1_epi32((int)DP_F32_NAN_CUDA));
}

INLINE __m512i widen_lanes(bool bf16, const uint8_t *codes)
{
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)codes);
    return bf16 ? _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16) : widen_fp16(half);
}

INLINE void widen(bool bf16, const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    const size_t whole = n - n % 16;
    if (stream && (uintptr_t)x % 64 == 0) {
        for (size_t i = 0; i < whole; i += 16) {
            store_lanes(x + 4 * i, widen_lanes(bf16, codes + 2 * i), true);
        }
        _mm_sfence();
    } else {
        for (size_t i = 0; i < whole; i += 16) {
            store_lanes(x + 4 * i, widen_lanes(bf16, codes + 2 * i), false);
        }
    }
    if (whole < n) {
        uint8_t last[64] = {0};
        memcpy(last, codes + 2 * whole, 2 * (n - whole));
        store_lanes(last, widen_lanes(bf16, last), false);
        memcpy(x + 4 * whole, last, 4 * (n - whole));
    }
}

SIMD static void fp16_to_f32(const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    widen(false, codes, n, x, stream);
}

SIMD static void bf16_to_f32(const uint8_t *codes, size_t n, uint8_t *x, bool stream)
{
    widen(true, codes, n, x, stream);
}

const dp_bulk_kernels dp_bulk_avx512 = {encode,      encode_e8m0, decode_f32,
                                        decode_bf16, fp16_to_f32, bf16_to_f32};

#endif
