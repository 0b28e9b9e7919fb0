/* SPDX-License-Identifier: MIT
 *
 * Sixteen lanes of the AVX-512 kernels: included by the files that hold them, and by nothing else.
 *
 * Rounding adds a power of two C whose unit in the last place is the target's quantum: the sum
 * m + C stays in [C, 2C], so its low bits are the rounded quotient. C brings the binade's part of
 * the code in its own low bits, an even number of units, so that ties still go to the even code.
 * The addition names its rounding and suppresses exceptions, and every target done this way has a
 * quantum far above the f32 subnormals, so that neither MXCSR nor DAZ can reach the result [F1].
 */
#ifndef DP_FORMATS_BULK_AVX512_INTERNAL_H
#define DP_FORMATS_BULK_AVX512_INTERNAL_H

#include <immintrin.h>

#include "formats/bulk_plan.h"

#define SIMD   __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))
#define INLINE static inline __attribute__((always_inline)) SIMD

enum { STEP = 64, RN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
enum { RZ = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC };

typedef struct {
    __m512i absolute, clamp, first, inf, magic, shift, inf_code, nan_code, nan_sign, magnitude;
    __m512i sign_shift, low_bit, half;
} constants;

INLINE constants load_constants(const dp_bulk_plan *plan)
{
    const int shift = 23 - (int)plan->mantissa_bits;
    const uint32_t sign_shift = plan->sign_bit != 0 ? plan->sign_shift : 32u; /* 32: no sign */
    return (constants){.absolute = _mm512_set1_epi32((int)DP_F32_ABS),
                       .clamp = _mm512_set1_epi32((int)plan->clamp),
                       .first = _mm512_set1_epi32((int)(plan->first_field << 23)),
                       .inf = _mm512_set1_epi32((int)DP_F32_INF),
                       .magic = _mm512_set1_epi32((shift << 23) - (int)plan->offset),
                       .shift = _mm512_set1_epi32(shift),
                       .inf_code = _mm512_set1_epi32((int)plan->inf_code),
                       .nan_code = _mm512_set1_epi32((int)plan->nan_code),
                       .nan_sign = _mm512_set1_epi32((int)plan->nan_sign),
                       .magnitude = _mm512_set1_epi32((int)((1u << (31u - plan->sign_shift)) - 1u)),
                       .sign_shift = _mm512_set1_epi32((int)sign_shift),
                       .low_bit = _mm512_set1_epi32(1),
                       .half = _mm512_set1_epi32(0x7FFF)};
}

/* Magnitude codes of clamped magnitudes, one a lane, below other bits. */
INLINE __m512i round_lanes(const constants *c, __m512i m, bool truncate)
{
    const __m512i e = _mm512_max_epi32(_mm512_and_epi32(m, c->inf), c->first);
    const __m512i binade = _mm512_add_epi32(_mm512_srlv_epi32(e, c->shift), c->magic);
    const __m512 a = _mm512_castsi512_ps(m);
    const __m512 b = _mm512_castsi512_ps(_mm512_add_epi32(e, binade));
    return _mm512_castps_si512(truncate ? _mm512_add_round_ps(a, b, RZ)
                                        : _mm512_add_round_ps(a, b, RN));
}

INLINE __m512i prefix_lanes(const constants *c, __m512i m, bool truncate)
{
    if (!truncate) {
        const __m512i low = _mm512_and_epi32(_mm512_srli_epi32(m, 16), c->low_bit);
        m = _mm512_add_epi32(_mm512_add_epi32(m, c->half), low);
    }
    return _mm512_srli_epi32(m, 16);
}

/* tails: whether the plan's Inf and NaN need more than the clamp and one code. */
INLINE __m512i encode_lanes(const constants *c, __m512i x, bool truncate, bool prefix, bool tails)
{
    const __m512i magnitude = _mm512_and_epi32(x, c->absolute);
    const __m512i m = _mm512_min_epi32(magnitude, c->clamp);
    __m512i code = prefix ? prefix_lanes(c, m, truncate) : round_lanes(c, m, truncate);
    if (tails) {
        const __mmask16 infinite = _mm512_cmpeq_epi32_mask(magnitude, c->inf);
        code = _mm512_mask_mov_epi32(code, infinite, c->inf_code);
    }
    const __m512i high = _mm512_srlv_epi32(x, c->sign_shift);
    /* magnitude bits from code, the sign bit from x, nothing above it in x */
    code = _mm512_ternarylogic_epi32(c->magnitude, code, high, 0xCA);
    const __m512i nan = /* nan_code ^ (sign & nan_sign) */
        tails ? _mm512_ternarylogic_epi32(c->nan_code, high, c->nan_sign, 0x78) : c->nan_code;
    return _mm512_mask_mov_epi32(code, _mm512_cmpgt_epi32_mask(magnitude, c->inf), nan);
}

INLINE __m512i load_lanes(const uint8_t *data, bool bf16)
{
    if (bf16) {
        const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)data);
        return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
    }
    return _mm512_loadu_si512(data);
}

INLINE void store_lanes(uint8_t *to, __m512i lanes, bool stream)
{
    if (stream) {
        _mm512_stream_si512((__m512i *)(void *)to, lanes);
    } else {
        _mm512_storeu_si512(to, lanes);
    }
}

/* Four vectors of codes to 64 bytes in order, or to 32 bytes of nibbles, or 128 bytes of words. */
INLINE void store_codes(const __m512i lanes[4], dp_bulk_width width, uint8_t *to, bool stream)
{
    const __m512i low = _mm512_packus_epi32(lanes[0], lanes[1]);
    const __m512i high = _mm512_packus_epi32(lanes[2], lanes[3]);
    if (width == DP_BULK_WORDS) {
        const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
        store_lanes(to, _mm512_permutexvar_epi64(order, low), stream);
        store_lanes(to + 64, _mm512_permutexvar_epi64(order, high), stream);
        return;
    }
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
    if (width == DP_BULK_BYTES) {
        store_lanes(to, bytes, stream);
        return;
    }
    const __m512i pairs = _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(0x1001));
    const __m256i nibbles = _mm512_cvtepi16_epi8(pairs);
    if (stream) {
        _mm256_stream_si256((__m256i *)(void *)to, nibbles);
    } else {
        _mm256_storeu_si256((__m256i *)(void *)to, nibbles);
    }
}

INLINE __m512i e8m0_lanes(const dp_bulk_e8m0_plan *p, __m512i x)
{
    const __m512i magnitude = _mm512_and_epi32(x, _mm512_set1_epi32((int)DP_F32_ABS));
    const __m512i field = _mm512_srli_epi32(magnitude, 23);
    const __m512i even = _mm512_and_epi32(field, _mm512_set1_epi32((int)p->even));
    const __m512i sum =
        _mm512_add_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32((int)p->add)), even);
    __m512i code = _mm512_srli_epi32(sum, 23);
    const __mmask16 above =
        _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32((int)p->threshold));
    const __mmask16 subnormal = _mm512_cmpeq_epi32_mask(field, _mm512_setzero_si512());
    const __m512i small = _mm512_maskz_mov_epi32(above, _mm512_set1_epi32(1));
    code = _mm512_mask_mov_epi32(code, subnormal, small);
    code = _mm512_min_epi32(code, _mm512_set1_epi32((int)p->most));
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32((int)DP_F32_INF));
    return _mm512_mask_mov_epi32(code, nan, _mm512_set1_epi32(DP_E8M0_NAN));
}

#endif
