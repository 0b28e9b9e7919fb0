/* SPDX-License-Identifier: MIT
 *
 * Eight lanes of the AVX2 kernels: included by the files that hold them, and by nothing else.
 * Integers only, so that no floating-point environment can reach them [F1].
 */
#ifndef DP_FORMATS_BULK_AVX2_INTERNAL_H
#define DP_FORMATS_BULK_AVX2_INTERNAL_H

#include <immintrin.h>

#include "formats/bulk_plan.h"

#define SIMD   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline)) SIMD

enum { STEP = 32 };

typedef struct {
    __m256i absolute, clamp, first, base, most_shift, fraction, hidden, one, offset;
    __m256i inf, inf_code, nan_code, nan_sign, sign_bit, mantissa_bits, sign_shift;
} constants;

INLINE constants load_constants(const dp_bulk_plan *plan)
{
    return (constants){
        .absolute = _mm256_set1_epi32((int)DP_F32_ABS),
        .clamp = _mm256_set1_epi32((int)plan->clamp),
        .first = _mm256_set1_epi32((int)plan->first_field),
        .base = _mm256_set1_epi32(23 - (int)plan->mantissa_bits),
        .most_shift = _mm256_set1_epi32(30),
        .fraction = _mm256_set1_epi32(0x7FFFFF),
        .hidden = _mm256_set1_epi32(0x800000),
        .one = _mm256_set1_epi32(1),
        .offset = _mm256_set1_epi32((int)plan->offset),
        .inf = _mm256_set1_epi32((int)DP_F32_INF),
        .inf_code = _mm256_set1_epi32((int)plan->inf_code),
        .nan_code = _mm256_set1_epi32((int)plan->nan_code),
        .nan_sign = _mm256_set1_epi32((int)plan->nan_sign),
        .sign_bit = _mm256_set1_epi32((int)plan->sign_bit),
        .mantissa_bits = _mm256_set1_epi32((int)plan->mantissa_bits),
        .sign_shift = _mm256_set1_epi32((int)plan->sign_shift),
    };
}

/* Magnitude codes of clamped magnitudes, as encode_one of the portable kernels. */
INLINE __m256i round_lanes(const constants *c, __m256i m, bool truncate)
{
    const __m256i field = _mm256_srli_epi32(m, 23);
    const __m256i e = _mm256_max_epi32(field, c->first);
    const __m256i wanted = _mm256_add_epi32(c->base, _mm256_sub_epi32(e, field));
    const __m256i shift = _mm256_min_epi32(wanted, c->most_shift);
    __m256i significand = _mm256_or_si256(_mm256_and_si256(m, c->fraction), c->hidden);
    if (!truncate) {
        const __m256i low = _mm256_and_si256(_mm256_srlv_epi32(significand, shift), c->one);
        const __m256i half = _mm256_srli_epi32(_mm256_sllv_epi32(c->one, shift), 1);
        const __m256i below = _mm256_sub_epi32(half, c->one);
        significand = _mm256_add_epi32(_mm256_add_epi32(significand, below), low);
    }
    const __m256i quotient = _mm256_srlv_epi32(significand, shift);
    const __m256i binade = _mm256_sub_epi32(_mm256_sllv_epi32(e, c->mantissa_bits), c->offset);
    return _mm256_add_epi32(quotient, binade);
}

INLINE __m256i prefix_lanes(const constants *c, __m256i m, bool truncate)
{
    if (!truncate) {
        const __m256i low = _mm256_and_si256(_mm256_srli_epi32(m, 16), c->one);
        m = _mm256_add_epi32(_mm256_add_epi32(m, _mm256_set1_epi32(0x7FFF)), low);
    }
    return _mm256_srli_epi32(m, 16);
}

INLINE __m256i encode_lanes(const constants *c, __m256i x, bool truncate, bool prefix)
{
    const __m256i magnitude = _mm256_and_si256(x, c->absolute);
    const __m256i m = _mm256_min_epi32(magnitude, c->clamp);
    __m256i code = prefix ? prefix_lanes(c, m, truncate) : round_lanes(c, m, truncate);
    code = _mm256_blendv_epi8(code, c->inf_code, _mm256_cmpeq_epi32(magnitude, c->inf));
    const __m256i sign = _mm256_and_si256(_mm256_srlv_epi32(x, c->sign_shift), c->sign_bit);
    code = _mm256_or_si256(code, sign);
    const __m256i nan = _mm256_xor_si256(c->nan_code, _mm256_and_si256(sign, c->nan_sign));
    return _mm256_blendv_epi8(code, nan, _mm256_cmpgt_epi32(magnitude, c->inf));
}

INLINE __m256i load_lanes(const uint8_t *data, bool bf16)
{
    if (bf16) {
        const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)data);
        return _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
    }
    return _mm256_loadu_si256((const __m256i *)(const void *)data);
}

INLINE void store_bytes(uint8_t *to, __m256i value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, value);
}

/* Four vectors of codes to 32 bytes in order, or to 16 bytes of nibbles, or to 64 bytes of words.
 */
INLINE void store_codes(const __m256i lanes[4], dp_bulk_width width, uint8_t *to)
{
    const __m256i low = _mm256_packus_epi32(lanes[0], lanes[1]);
    const __m256i high = _mm256_packus_epi32(lanes[2], lanes[3]);
    if (width == DP_BULK_WORDS) {
        store_bytes(to, _mm256_permute4x64_epi64(low, 0xD8));
        store_bytes(to + 32, _mm256_permute4x64_epi64(high, 0xD8));
        return;
    }
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
    if (width == DP_BULK_BYTES) {
        store_bytes(to, bytes);
        return;
    }
    const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x1001));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(packed));
}

#endif
