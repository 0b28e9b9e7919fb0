/* SPDX-License-Identifier: MIT
 *
 * The block kernels on AVX2: eight blocks a step share the arithmetic of their scales.
 */
#include "formats/bulk_block_plan.h"

#if defined(__x86_64__)

#include "formats/bulk_avx2_internal.h"

enum { BLOCKS = 8 };

typedef struct {
    constants element, cast;
    const dp_bulk_block_plan *p;
    bool bf16;
} block_constants;

INLINE __m256i set(uint32_t bits)
{
    return _mm256_set1_epi32((int)bits);
}

/* The largest magnitude of a block. */
INLINE uint32_t largest(const block_constants *c, const uint8_t *from)
{
    const size_t size = c->bf16 ? 16 : 32;
    __m256i most = _mm256_setzero_si256();
    for (size_t i = 0; i < c->p->block / 8; i++) {
        __m256i x = _mm256_and_si256(load_lanes(from + i * size, c->bf16), set(DP_F32_ABS));
        if (c->p->ignore_nan) {
            x = _mm256_andnot_si256(_mm256_cmpgt_epi32(x, set(DP_F32_INF)), x);
        }
        most = _mm256_max_epi32(most, x);
    }
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

INLINE __m256i e8m0_lanes(const dp_bulk_e8m0_plan *p, __m256i x)
{
    const __m256i magnitude = _mm256_and_si256(x, set(DP_F32_ABS));
    const __m256i field = _mm256_srli_epi32(magnitude, 23);
    const __m256i even = _mm256_and_si256(field, set(p->even));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(magnitude, set(p->add)), even);
    const __m256i small =
        _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, set(p->threshold)), set(1));
    const __m256i subnormal = _mm256_cmpeq_epi32(field, _mm256_setzero_si256());
    __m256i code = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 23), small, subnormal);
    code = _mm256_min_epi32(code, set(p->most));
    const __m256i nan = _mm256_cmpgt_epi32(magnitude, set(DP_F32_INF));
    return _mm256_blendv_epi8(code, set(DP_E8M0_NAN), nan);
}

INLINE __m256 ratio_lanes(const dp_bulk_block_plan *p, __m256i amax)
{
    const __m256 x = _mm256_castsi256_ps(amax);
    const __m256 first = _mm256_set1_ps(p->first);
    const __m256 second = _mm256_set1_ps(p->second);
    const __m256 t = p->first_divides ? _mm256_div_ps(x, first) : _mm256_mul_ps(x, first);
    const __m256 u = p->second_divides ? _mm256_div_ps(t, second) : _mm256_mul_ps(t, second);
    return _mm256_max_ps(_mm256_set1_ps(p->scale_min), u); /* a NaN in u stays */
}

INLINE __m256i scale_lanes(const block_constants *c, __m256i found)
{
    const dp_bulk_block_plan *p = c->p;
    const __m256i above = _mm256_cmpgt_epi32(found, set(p->amax_zero));
    const __m256i amax = _mm256_blendv_epi8(set(p->amax_small), found, above);
    __m256i byte;
    if (p->kind == DP_BULK_SCALE_FIELD) {
        byte = _mm256_srli_epi32(_mm256_add_epi32(amax, set(p->field_add)), 23);
        byte = _mm256_max_epi32(_mm256_sub_epi32(byte, set(p->emax)), _mm256_setzero_si256());
    } else if (p->kind == DP_BULK_SCALE_AMAX) {
        byte = e8m0_lanes(&p->power, amax);
    } else {
        const __m256i t = _mm256_castps_si256(ratio_lanes(p, amax));
        byte = p->kind == DP_BULK_SCALE_T ? e8m0_lanes(&p->power, t)
                                          : encode_lanes(&c->cast, t, p->cast.truncate, false);
    }
    if (p->inf_replaced) {
        byte =
            _mm256_blendv_epi8(byte, set(p->inf_byte), _mm256_cmpeq_epi32(amax, set(DP_F32_INF)));
    }
    return _mm256_blendv_epi8(byte, set(p->nan_byte), _mm256_cmpgt_epi32(found, set(DP_F32_INF)));
}

INLINE __m256i payload_lanes(const block_constants *c, const uint8_t *from, uint8_t scale)
{
    const dp_bulk_block_plan *p = c->p;
    const __m256 x = _mm256_castsi256_ps(load_lanes(from, c->bf16));
    const __m256 y = _mm256_mul_ps(x, _mm256_set1_ps(p->before[scale]));
    const __m256 f = _mm256_set1_ps(p->factor[scale]);
    const __m256 v = p->divides ? _mm256_div_ps(y, f) : _mm256_mul_ps(y, f);
    const __m256i codes =
        encode_lanes(&c->element, _mm256_castps_si256(v), p->element.truncate, false);
    return p->zero_codes && scale == 0 ? _mm256_setzero_si256() : codes;
}

INLINE void quantize_step(const block_constants *c, const uint8_t *from, uint8_t *payload,
                          uint8_t *scale)
{
    const dp_bulk_block_plan *p = c->p;
    const size_t vector = c->bf16 ? 16 : 32;
    const size_t per = p->block / 8;
    const size_t out = p->width == DP_BULK_NIBBLES ? 16 : 32;
    uint32_t found[BLOCKS];
    uint32_t bytes[BLOCKS];
    for (size_t b = 0; b < BLOCKS; b++) {
        found[b] = largest(c, from + b * per * vector);
    }
    const __m256i amax = _mm256_loadu_si256((const __m256i *)(const void *)found);
    _mm256_storeu_si256((__m256i *)(void *)bytes, scale_lanes(c, amax));
    for (size_t b = 0; b < BLOCKS; b++) {
        scale[b] = (uint8_t)bytes[b];
    }
    for (size_t q = 0; q < BLOCKS * per / 4; q++) { /* four vectors a store */
        __m256i lanes[4];
        for (size_t k = 0; k < 4; k++) {
            lanes[k] =
                payload_lanes(c, from + (4 * q + k) * vector, (uint8_t)bytes[(4 * q + k) / per]);
        }
        store_codes(lanes, p->width, payload + q * out);
    }
}

SIMD static void quantize(const dp_bulk_block_plan *p, dp_bulk_source source, size_t blocks,
                          uint8_t *payload, uint8_t *scale, bool stream)
{
    const block_constants c = {load_constants(&p->element), load_constants(&p->cast), p,
                               source.bf16};
    const uint8_t *from = source.data;
    const size_t size = p->block * (source.bf16 ? 2 : 4);
    const size_t out = p->block / (p->width == DP_BULK_NIBBLES ? 2 : 1);
    (void)stream;
    size_t b = 0;
    for (; b + BLOCKS <= blocks; b += BLOCKS) {
        quantize_step(&c, from + b * size, payload + b * out, scale + b);
    }
    if (b < blocks) {
        const dp_bulk_source rest = {from + b * size, source.bf16};
        dp_bulk_block_portable.quantize(p, rest, blocks - b, payload + b * out, scale + b, false);
    }
}

/* Two halves of eight values each; the code's top bit chooses between them. */
INLINE __m256i values_of(const uint32_t row[16], uint32_t codes)
{
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i index = _mm256_srlv_epi32(set(codes), shift);
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)row);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(row + 8));
    const __m256 a = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index));
    const __m256 b = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index));
    const __m256 top = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
    return _mm256_castps_si256(_mm256_blendv_ps(a, b, top));
}

SIMD static void dequantize(const dp_bulk_block_values *values, size_t block,
                            const uint8_t *payload, const uint8_t *scale, size_t n, bool bf16,
                            uint8_t *out, bool stream)
{
    (void)stream;
    for (size_t i = 0; i < n / 8; i++) {
        uint32_t codes;
        memcpy(&codes, payload + 4 * i, sizeof codes);
        const __m256i x = values_of(values->value[scale[8 * i / block]], codes);
        if (bf16) {
            const __m256i half = _mm256_srli_epi32(x, 16);
            const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(half, half), 0x08);
            _mm_storeu_si128((__m128i *)(void *)(out + 16 * i), _mm256_castsi256_si128(packed));
        } else {
            store_bytes(out + 32 * i, x);
        }
    }
}

static void gather(dp_bulk_source from, ptrdiff_t stride, size_t n, float *to)
{
    dp_bulk_block_portable.gather(from, stride, n, to);
}

const dp_bulk_block_kernels dp_bulk_block_avx2 = {quantize, dequantize, gather};

#endif
