/* SPDX-License-Identifier: MIT
 *
 * The block kernels on AVX-512: sixteen blocks a step. Their maxima meet in one vector, so that the
 * scales of all sixteen cost as much as one.
 */
#include "formats/bulk_block_plan.h"

#if defined(__x86_64__)

#include "formats/bulk_avx512_internal.h"

#define NOINLINE __attribute__((noinline))

enum { PIECE = 64, FTZ = 0x8000, DAZ = 0x0040 };

typedef struct {
    constants cast;
    __m512i amax_zero, amax_small, inf, inf_byte, nan_byte, field_add, emax;
    __m512 first, second, scale_min;
} block_constants;

INLINE block_constants load_block_constants(const dp_bulk_block_plan *p)
{
    return (block_constants){.cast = load_constants(&p->cast),
                             .amax_zero = _mm512_set1_epi32((int)p->amax_zero),
                             .amax_small = _mm512_set1_epi32((int)p->amax_small),
                             .inf = _mm512_set1_epi32((int)DP_F32_INF),
                             .inf_byte = _mm512_set1_epi32((int)p->inf_byte),
                             .nan_byte = _mm512_set1_epi32((int)p->nan_byte),
                             .field_add = _mm512_set1_epi32((int)p->field_add),
                             .emax = _mm512_set1_epi32((int)p->emax),
                             .first = _mm512_set1_ps(p->first),
                             .second = _mm512_set1_ps(p->second),
                             .scale_min = _mm512_set1_ps(p->scale_min)};
}

/* Magnitudes of sixteen elements, or their elementwise maximum over the two halves of a block. */
INLINE __m512i magnitudes(const uint8_t *from, bool bf16, bool ignore_nan)
{
    const __m512i x = _mm512_and_epi32(load_lanes(from, bf16), _mm512_set1_epi32((int)DP_F32_ABS));
    if (!ignore_nan) {
        return x;
    }
    const __mmask16 number = _mm512_cmple_epi32_mask(x, _mm512_set1_epi32((int)DP_F32_INF));
    return _mm512_maskz_mov_epi32(number, x);
}

INLINE __m512i block_lanes(const uint8_t *from, bool bf16, bool ignore_nan, size_t block)
{
    const __m512i low = magnitudes(from, bf16, ignore_nan);
    if (block == 16) {
        return low;
    }
    return _mm512_max_epi32(low, magnitudes(from + (bf16 ? 32 : 64), bf16, ignore_nan));
}

/* Halves the lanes of each of two vectors and puts the halves side by side, three ways. */
INLINE __m512i merge_halves(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xEE));
}
INLINE __m512i merge_quarters(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}
INLINE __m512i merge_pairs(__m512i a, __m512i b)
{
    return _mm512_max_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
INLINE __m512i merge_singles(__m512i a, __m512i b)
{
    const __m512 x = _mm512_castsi512_ps(a);
    const __m512 y = _mm512_castsi512_ps(b);
    return _mm512_max_epi32(_mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xDD)));
}

/* Lane b: the largest magnitude of block b. Group g = blocks g, g + 4, g + 8, g + 12 ends in lanes
 * g of the four 128-bit parts. */
INLINE __m512i maxima(const uint8_t *from, size_t stride, bool bf16, bool ignore_nan, size_t block)
{
    __m512i group[4];
    for (size_t g = 0; g < 4; g++) {
        const uint8_t *at = from + g * stride;
        const __m512i a = block_lanes(at, bf16, ignore_nan, block);
        const __m512i b = block_lanes(at + 4 * stride, bf16, ignore_nan, block);
        const __m512i c = block_lanes(at + 8 * stride, bf16, ignore_nan, block);
        const __m512i d = block_lanes(at + 12 * stride, bf16, ignore_nan, block);
        group[g] = merge_quarters(merge_halves(a, b), merge_halves(c, d));
    }
    return merge_singles(merge_pairs(group[0], group[1]), merge_pairs(group[2], group[3]));
}

INLINE __m512 ratio_lanes(const dp_bulk_block_plan *p, const block_constants *c, __m512i amax)
{
    const __m512 x = _mm512_castsi512_ps(amax);
    const __m512 t = p->first_divides ? _mm512_div_ps(x, c->first) : _mm512_mul_ps(x, c->first);
    const __m512 u = p->second_divides ? _mm512_div_ps(t, c->second) : _mm512_mul_ps(t, c->second);
    return _mm512_max_ps(c->scale_min, u); /* a NaN in u stays */
}

INLINE __m512i scale_lanes(const dp_bulk_block_plan *p, const block_constants *c, __m512i found)
{
    const __m512i zero = _mm512_setzero_si512();
    const __mmask16 small = _mm512_cmple_epi32_mask(found, c->amax_zero);
    const __m512i amax = _mm512_mask_mov_epi32(found, small, c->amax_small);
    __m512i byte;
    if (p->kind == DP_BULK_SCALE_FIELD) {
        byte = _mm512_srli_epi32(_mm512_add_epi32(amax, c->field_add), 23);
        byte = _mm512_max_epi32(_mm512_sub_epi32(byte, c->emax), zero);
    } else if (p->kind == DP_BULK_SCALE_AMAX) {
        byte = e8m0_lanes(&p->power, amax);
    } else {
        const __m512i t = _mm512_castps_si512(ratio_lanes(p, c, amax));
        byte = p->kind == DP_BULK_SCALE_T ? e8m0_lanes(&p->power, t)
               : p->cast.truncate         ? encode_lanes(&c->cast, t, true, false, true)
                                          : encode_lanes(&c->cast, t, false, false, true);
    }
    if (p->inf_replaced) {
        byte = _mm512_mask_mov_epi32(byte, _mm512_cmpeq_epi32_mask(amax, c->inf), c->inf_byte);
    }
    return _mm512_mask_mov_epi32(byte, _mm512_cmpgt_epi32_mask(found, c->inf), c->nan_byte);
}

/* The bytes of `blocks` blocks, a multiple of sixteen. */
SIMD NOINLINE static void scale_pass(const dp_bulk_block_plan *p, dp_bulk_source source,
                                     size_t blocks, uint8_t *scale)
{
    const block_constants c = load_block_constants(p);
    const size_t stride = p->block * (source.bf16 ? 2 : 4);
    const uint8_t *from = source.data;
    const bool common = !source.bf16 && !p->ignore_nan;
    for (size_t b = 0; b < blocks; b += DP_BULK_BLOCKS, from += DP_BULK_BLOCKS * stride) {
        const __m512i found = common && p->block == 16 ? maxima(from, 64, false, false, 16)
                              : common && p->block == 32
                                  ? maxima(from, 128, false, false, 32)
                                  : maxima(from, stride, source.bf16, p->ignore_nan, p->block);
        const __m512i bytes = scale_lanes(p, &c, found);
        _mm_storeu_si128((__m128i *)(void *)(scale + b), _mm512_cvtepi32_epi8(bytes));
    }
}

/* Kinds of the inner loop, constants for the compiler. */
typedef struct {
    bool bf16, truncate, tails, divides, scales;
    dp_bulk_width width;
    size_t block;
} shape;

INLINE __m512i payload_lanes(const constants *c, shape s, const uint8_t *from, float before,
                             float factor)
{
    __m512 x = _mm512_castsi512_ps(load_lanes(from, s.bf16));
    if (s.scales) {
        x = _mm512_mul_ps(x, _mm512_set1_ps(before));
    }
    const __m512 f = _mm512_set1_ps(factor);
    const __m512 v = s.divides ? _mm512_div_ps(x, f) : _mm512_mul_ps(x, f);
    return encode_lanes(c, _mm512_castps_si512(v), s.truncate, false, s.tails);
}

/* Sixteen blocks. */
INLINE void payload_step(const dp_bulk_block_plan *p, const constants *c, shape s,
                         const uint8_t *from, const uint8_t *scale, uint8_t *payload, bool stream)
{
    const size_t vector = s.bf16 ? 32 : 64;
    const size_t out = s.width == DP_BULK_NIBBLES ? 32 : 64;
    const size_t stride = s.block / 16 * vector;
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)scale);
    const __mmask16 zeros = _mm_cmpeq_epi8_mask(bytes, _mm_setzero_si128());
    const uint32_t cleared = p->zero_codes ? zeros : 0u;
    for (size_t q = 0; q < s.block / 4; q++) { /* four vectors a store */
        __m512i lanes[4];
        for (size_t k = 0; k < 4; k++) {
            /* the next piece, whose maxima come first and wait for every line */
            _mm_prefetch((const char *)from + PIECE * stride + (4 * q + k) * vector, _MM_HINT_T0);
            const size_t b = (4 * q + k) / (s.block / 16);
            lanes[k] = payload_lanes(c, s, from + (4 * q + k) * vector,
                                     s.scales ? p->before[scale[b]] : 1.0f, p->factor[scale[b]]);
            if (cleared != 0) {
                lanes[k] = (cleared >> b & 1u) != 0 ? _mm512_setzero_si512() : lanes[k];
            }
        }
        store_codes(lanes, s.width, payload + q * out, stream);
    }
}

INLINE void payload_loop(const dp_bulk_block_plan *p, shape s, dp_bulk_source source, size_t blocks,
                         const uint8_t *scale, uint8_t *payload, bool stream)
{
    const constants c = load_constants(&p->element);
    const size_t size = s.block * (s.bf16 ? 2 : 4);
    const size_t out = s.block / (s.width == DP_BULK_NIBBLES ? 2 : 1);
    const uint8_t *from = source.data;
    for (size_t b = 0; b < blocks; b += DP_BULK_BLOCKS) {
        if (stream) {
            payload_step(p, &c, s, from + b * size, scale + b, payload + b * out, true);
        } else {
            payload_step(p, &c, s, from + b * size, scale + b, payload + b * out, false);
        }
    }
}

#define PAYLOAD(divides, scales, block)                                                            \
    payload_loop(p, (shape){false, false, false, divides, scales, DP_BULK_NIBBLES, block}, source, \
                 blocks, scale, payload, stream)

/* The codes under the scales already stored. The common kinds each have a loop of their own; all
 * others share the last two. `scales` is a constant of each: read at run time, a compiler may make
 * "scaled or not" a product with 1, and under FTZ that product loses a subnormal element. */
SIMD NOINLINE static void payload_pass(const dp_bulk_block_plan *p, dp_bulk_source source,
                                       size_t blocks, const uint8_t *scale, uint8_t *payload,
                                       bool stream)
{
    const bool common =
        !p->element.truncate && !p->element.tails && !source.bf16 && p->width == DP_BULK_NIBBLES;
    if (common && p->block == 16 && p->divides && !p->scales) {
        PAYLOAD(true, false, 16);
    } else if (common && p->block == 16 && p->divides) {
        PAYLOAD(true, true, 16);
    } else if (common && p->block == 16 && !p->scales) {
        PAYLOAD(false, false, 16);
    } else if (common && p->block == 32 && !p->divides && !p->scales) {
        PAYLOAD(false, false, 32);
    } else if (common && p->block == 32 && !p->divides) {
        PAYLOAD(false, true, 32);
    } else if (p->scales) {
        const shape s = {source.bf16, p->element.truncate, true, p->divides, true, p->width,
                         p->block};
        payload_loop(p, s, source, blocks, scale, payload, stream);
    } else {
        const shape s = {source.bf16, p->element.truncate, true, p->divides, false, p->width,
                         p->block};
        payload_loop(p, s, source, blocks, scale, payload, stream);
    }
}

/* The mode for the quotients of a piece: what ends as code 0 is flushed, results and, where every
 * byte of the piece allows it, elements. Subnormals cost many cycles on some cores. */
SIMD static unsigned quotient_mode(const dp_bulk_block_plan *p, const uint8_t *scale, size_t blocks,
                                   unsigned mode)
{
    const __m128i first = _mm_set1_epi8((char)p->tame_first);
    const __m128i count = _mm_set1_epi8((char)(p->tame_count - 1u));
    const __m128i nan = _mm_set1_epi8((char)p->nan_byte);
    unsigned wild = p->tame_count == 0;
    for (size_t b = 0; b < blocks; b += DP_BULK_BLOCKS) {
        const __m128i byte = _mm_loadu_si128((const __m128i *)(const void *)(scale + b));
        const __mmask16 out = _mm_cmpgt_epu8_mask(_mm_sub_epi8(byte, first), count);
        wild |= _mm_mask_cmpneq_epi8_mask(out, byte, nan);
    }
    return mode | (p->flush_safe ? FTZ : 0u) | (wild == 0 ? DAZ : 0u);
}

/* Both passes over a piece that stays in the first cache. They are functions of their own, so that
 * no operation moves across the change of mode. */
SIMD static void quantize(const dp_bulk_block_plan *p, dp_bulk_source source, size_t blocks,
                          uint8_t *payload, uint8_t *scale, bool stream)
{
    const unsigned mode = _mm_getcsr();
    const size_t size = p->block * (source.bf16 ? 2 : 4);
    const size_t out = p->block / (p->width == DP_BULK_NIBBLES ? 2 : 1);
    const size_t whole = blocks - blocks % DP_BULK_BLOCKS;
    for (size_t b = 0; b < whole; b += PIECE) {
        const size_t n = whole - b < PIECE ? whole - b : PIECE;
        const dp_bulk_source part = dp_bulk_advance(source, b * p->block);
        scale_pass(p, part, n, scale + b);
        _mm_setcsr(quotient_mode(p, scale + b, n, mode));
        payload_pass(p, part, n, scale + b, payload + b * out,
                     stream && (uintptr_t)payload % 64 == 0);
        _mm_setcsr(mode);
    }
    _mm_sfence();
    if (whole < blocks) {
        uint8_t last[DP_BULK_BLOCKS * 32 * 4] = {0};
        uint8_t codes[DP_BULK_BLOCKS * 32];
        uint8_t bytes[DP_BULK_BLOCKS];
        const size_t left = blocks - whole;
        const dp_bulk_source part = {last, source.bf16};
        memcpy(last, dp_bulk_advance(source, whole * p->block).data, left * size);
        scale_pass(p, part, DP_BULK_BLOCKS, bytes);
        payload_pass(p, part, DP_BULK_BLOCKS, bytes, codes, false);
        memcpy(payload + whole * out, codes, left * out);
        memcpy(scale + whole, bytes, left);
    }
}

/* Sixteen codes of four bits select from the sixteen values of their block's scale. */
INLINE __m512i values_of(const uint32_t row[16], const uint8_t *payload)
{
    const __m512i half = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i shift =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    long long codes;
    memcpy(&codes, payload, sizeof codes);
    const __m512i words = _mm512_permutexvar_epi32(half, _mm512_set1_epi64(codes));
    return _mm512_permutexvar_epi32(_mm512_srlv_epi32(words, shift), _mm512_loadu_si512(row));
}

INLINE void dequantize_loop(const dp_bulk_block_values *values, size_t block,
                            const uint8_t *payload, const uint8_t *scale, size_t n, bool bf16,
                            uint8_t *out, bool stream)
{
    const size_t per = block / 16;
    for (size_t i = 0; i < n / 16; i++) {
        const __m512i x = values_of(values->value[scale[i / per]], payload + 8 * i);
        if (bf16) {
            const __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16));
            _mm256_storeu_si256((__m256i *)(void *)(out + 32 * i), half);
        } else {
            store_lanes(out + 64 * i, x, stream);
        }
    }
    _mm_sfence();
}

SIMD static void dequantize(const dp_bulk_block_values *values, size_t block,
                            const uint8_t *payload, const uint8_t *scale, size_t n, bool bf16,
                            uint8_t *out, bool stream)
{
    if (bf16) {
        dequantize_loop(values, block, payload, scale, n, true, out, false);
    } else if (stream && (uintptr_t)out % 64 == 0) {
        dequantize_loop(values, block, payload, scale, n, false, out, true);
    } else {
        dequantize_loop(values, block, payload, scale, n, false, out, false);
    }
}

/* The 16 x 16 transpose in four rounds of exchanging halves. */
INLINE void transpose(__m512i r[16])
{
    __m512i t[16];
    for (size_t i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (size_t k = 0; k < 4; k++) { /* column k of each 4 x 4, over the four groups of rows */
        const __m512i a = _mm512_shuffle_i32x4(r[k], r[k + 4], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(r[k], r[k + 4], 0xDD);
        const __m512i c = _mm512_shuffle_i32x4(r[k + 8], r[k + 12], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(r[k + 8], r[k + 12], 0xDD);
        t[k] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[k + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[k + 8] = _mm512_shuffle_i32x4(a, c, 0xDD);
        t[k + 12] = _mm512_shuffle_i32x4(b, d, 0xDD);
    }
    for (size_t i = 0; i < 16; i++) {
        r[i] = t[i];
    }
}

SIMD static void gather(dp_bulk_source from, ptrdiff_t stride, size_t n, float *to)
{
    const ptrdiff_t step = stride * (from.bf16 ? 2 : 4);
    const uint8_t *row = from.data;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i lines[16];
        for (size_t k = 0; k < 16; k++, row += step) {
            lines[k] = load_lanes(row, from.bf16);
        }
        transpose(lines);
        for (size_t run = 0; run < 16; run++) {
            _mm512_storeu_si512(to + run * DP_BULK_TILE + i, lines[run]);
        }
    }
    const dp_bulk_source rest = {row, from.bf16};
    dp_bulk_block_portable.gather(rest, stride, n - i, to + i);
}

const dp_bulk_block_kernels dp_bulk_block_avx512 = {quantize, dequantize, gather};

#endif
