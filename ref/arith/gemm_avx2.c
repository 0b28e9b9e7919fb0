/* SPDX-License-Identifier: MIT
 *
 * The whole-matrix forms on AVX2 and FMA: 8 columns at a time, half a panel. The same steps as
 * gemm_avx512.c, with byte products by maddubs in place of VNNI.
 */
#include "ref/arith/gemm_internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))

enum {
    TRUNCATE = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC,
    LOW_BITS_F32 = 29,
    LOW_BITS_E8M13 = 39,
    HALF = 8
};

/* 8 doubles. */
typedef struct {
    __m256d low, high;
} wide;

/* What a step works on: half a panel. */
typedef struct {
    const dp_mma_matrix *a, *b;
    size_t m, panel, half, s;
} place;

TARGET static inline wide from_i32(__m256i x)
{
    return (wide){_mm256_cvtepi32_pd(_mm256_castsi256_si128(x)),
                  _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1))};
}

/* f32 bits that are normal or zero; not for subnormals (DAZ). */
TARGET static inline wide from_f32(__m256i bits)
{
    const __m256 x = _mm256_castsi256_ps(bits);
    return (wide){_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                  _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

/* Doubles that are f32 normals or zero, as f32 bits; every zero becomes +0 (rule 42). */
TARGET static inline __m256i to_f32(wide x)
{
    const __m256i bits = _mm256_castps_si256(_mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm256_cvtpd_ps(x.low)), _mm256_cvtpd_ps(x.high), 1));
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(DP_F32_ABS));
    return _mm256_andnot_si256(_mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()), bits);
}

/* Clear the low bits of the significand: truncation of the magnitude. */
TARGET static inline __m256d cut(__m256d x, int bits)
{
    const __m256i mask = _mm256_set1_epi64x((long long)(~(uint64_t)0 << bits));
    return _mm256_and_pd(x, _mm256_castsi256_pd(mask));
}

TARGET static inline __m256d power(__m128i e)
{
    const __m256i biased = _mm256_add_epi64(_mm256_cvtepi32_epi64(e), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(biased, 52));
}

/* 2^e for 8 exponents of a normal double. */
TARGET static inline wide power8(__m256i e)
{
    return (wide){power(_mm256_castsi256_si128(e)), power(_mm256_extracti128_si256(e, 1))};
}

/* One bit a lane from a lane mask. */
TARGET static inline uint32_t lanes(__m256i mask)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(mask));
}

TARGET static inline __m256i is_zero(__m256i c)
{
    return _mm256_cmpeq_epi32(_mm256_and_si256(c, _mm256_set1_epi32(DP_F32_ABS)),
                              _mm256_setzero_si256());
}

/* Lanes whose c is a subnormal, an infinity or a NaN. */
TARGET static inline uint32_t odd_c(__m256i c)
{
    const __m256i top = _mm256_set1_epi32(DP_F32_INF);
    const __m256i field = _mm256_and_si256(c, top);
    const uint32_t zero_field = lanes(_mm256_cmpeq_epi32(field, _mm256_setzero_si256()));
    return (zero_field & ~lanes(is_zero(c))) | lanes(_mm256_cmpeq_epi32(field, top));
}

/* Field exponent of c, `zero` for a zero. */
TARGET static inline __m256i exponent_of_c(__m256i c, int zero)
{
    const __m256i field = _mm256_and_si256(_mm256_srli_epi32(c, 23), _mm256_set1_epi32(0xFF));
    return _mm256_blendv_epi8(_mm256_sub_epi32(field, _mm256_set1_epi32(127)),
                              _mm256_set1_epi32(zero), is_zero(c));
}

TARGET static __m256i load_c(const float *c, size_t count)
{
    uint32_t bits[HALF] = {0};
    if (c != NULL) {
        memcpy(bits, c, count * sizeof bits[0]);
    }
    return _mm256_loadu_si256((const __m256i *)bits);
}

TARGET static void store_d(float *d, size_t count, __m256i bits)
{
    if (count == HALF) {
        _mm256_storeu_si256((__m256i *)d, bits);
        return;
    }
    uint32_t words[HALF];
    _mm256_storeu_si256((__m256i *)words, bits);
    memcpy(d, words, count * sizeof words[0]);
}

TARGET static __m256i repair(const place *p, uint32_t bad, __m256i c, __m256i d)
{
    uint32_t before[DP_GEMM_LANES] = {0};
    uint32_t after[DP_GEMM_LANES] = {0};
    const size_t at = p->half * HALF;
    _mm256_storeu_si256((__m256i *)(before + at), c);
    _mm256_storeu_si256((__m256i *)(after + at), d);
    dp_gemm_repair(p->a, p->b, p->m, p->panel, p->s, bad << at, before, after);
    return _mm256_loadu_si256((const __m256i *)(after + at));
}

TARGET static inline __m256i load_i32(const int32_t *x)
{
    return _mm256_load_si256((const __m256i *)x);
}

/* ---- groups of 16 (rules 20 to 26) ---- */

TARGET static inline void group_sums(const place *p, __m256i *q)
{
    const struct dp_mma_decoded *x = p->a->decoded;
    const struct dp_mma_decoded *y = p->b->decoded;
    const size_t at_a = (p->m * p->a->steps + p->s) * DP_GEMM_GROUPS;
    const size_t at_b = (p->panel * p->b->steps + p->s) * DP_GEMM_GROUPS;
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        __m256i pairs = _mm256_setzero_si256(); /* at most 8 * 24 * 12 = 2304 */
        for (size_t j = 0; j < 4; j++) {
            int32_t four;
            memcpy(&four, x->bytes + (at_a + g) * DP_GEMM_GROUP + 4 * j, sizeof four);
            const uint8_t *from = y->bytes + (at_b * 4 + g * 4 + j) * 64 + p->half * 32;
            const __m256i b = _mm256_load_si256((const __m256i *)from);
            pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(b, _mm256_set1_epi32(four)));
        }
        q[g] = _mm256_add_epi32(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)),
                                _mm256_set1_epi32(x->bias[at_a + g]));
    }
}

TARGET static inline __m256d truncated(__m256d x, __m256d unit)
{
    return _mm256_round_pd(_mm256_mul_pd(x, unit), TRUNCATE);
}

/* Lanes of a result that is not zero and not a normal f32. */
TARGET static inline uint32_t out_of_range(__m256d r)
{
    const __m256d v = _mm256_andnot_pd(_mm256_set1_pd(-0.0), r);
    const __m256d out = _mm256_or_pd(_mm256_cmp_pd(v, _mm256_set1_pd(0x1p-126), _CMP_LT_OQ),
                                     _mm256_cmp_pd(v, _mm256_set1_pd(0x1p128), _CMP_GE_OQ));
    const __m256d nonzero = _mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_NEQ_OQ);
    return (uint32_t)_mm256_movemask_pd(_mm256_and_pd(out, nonzero));
}

/* Any finite scales and C: align, truncate, sum, convert. */
TARGET static __m256i grouped_general(const place *p, const __m256i *q, __m256i c)
{
    const struct dp_mma_decoded *x = p->a->decoded;
    const struct dp_mma_decoded *y = p->b->decoded;
    const size_t at_a = (p->m * p->a->steps + p->s) * DP_GEMM_GROUPS;
    const size_t at_b = (p->panel * p->b->steps + p->s) * DP_GEMM_GROUPS;
    const int zero = p->a->desc->zero_exponent;
    __m256i e[DP_GEMM_GROUPS];
    __m256i largest = exponent_of_c(c, zero);
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        const size_t lane = (at_b + g) * DP_GEMM_LANES + p->half * HALF;
        const __m256i common =
            _mm256_and_si256(load_i32(y->nonzero + lane), _mm256_set1_epi32(x->nonzero[at_a + g]));
        const __m256i sum =
            _mm256_add_epi32(load_i32(y->exp + lane), _mm256_set1_epi32(x->exp[at_a + g]));
        e[g] = _mm256_blendv_epi8(sum, _mm256_set1_epi32(zero),
                                  _mm256_cmpeq_epi32(common, _mm256_setzero_si256()));
        largest = _mm256_max_epi32(largest, e[g]);
    }
    const wide unit = power8(_mm256_sub_epi32(_mm256_set1_epi32(35), largest));
    wide sum = from_f32(c);
    sum.low = truncated(sum.low, unit.low);
    sum.high = truncated(sum.high, unit.high);
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        const size_t lane = (at_b + g) * DP_GEMM_LANES + p->half * HALF;
        const __m256i mm =
            _mm256_mullo_epi32(load_i32(y->m + lane), _mm256_set1_epi32(x->m[at_a + g]));
        const wide t = from_i32(_mm256_mullo_epi32(q[g], mm));
        const __m256i shift =
            _mm256_add_epi32(_mm256_sub_epi32(e[g], largest), _mm256_set1_epi32(27));
        const wide u = power8(_mm256_max_epi32(shift, _mm256_set1_epi32(-100)));
        sum.low = _mm256_add_pd(sum.low, truncated(t.low, u.low));
        sum.high = _mm256_add_pd(sum.high, truncated(t.high, u.high));
    }
    const wide back = power8(_mm256_sub_epi32(largest, _mm256_set1_epi32(35)));
    const wide r = {_mm256_mul_pd(cut(sum.low, LOW_BITS_F32), back.low),
                    _mm256_mul_pd(cut(sum.high, LOW_BITS_F32), back.high)};
    const uint32_t bad = odd_c(c) | out_of_range(r.low) | (out_of_range(r.high) << 4);
    const __m256i d = to_f32(r);
    return bad == 0 ? d : repair(p, bad, c, d);
}

/* Whether some |x| is outside [low, high) and not zero. */
TARGET static inline bool outside(__m256d x, double low, double high)
{
    const __m256d v = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    const __m256d out = _mm256_or_pd(_mm256_cmp_pd(v, _mm256_set1_pd(low), _CMP_LT_OQ),
                                     _mm256_cmp_pd(v, _mm256_set1_pd(high), _CMP_GE_OQ));
    if (_mm256_movemask_pd(out) == 0) {
        return false;
    }
    const __m256d nonzero = _mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_NEQ_OQ);
    return _mm256_movemask_pd(_mm256_and_pd(out, nonzero)) != 0;
}

static inline double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The exact sum added to acc and truncated; see rule 26. */
TARGET static inline void grouped_exact(const place *p, const __m256i *q, wide *acc)
{
    const size_t at_a = (p->m * p->a->steps + p->s) * DP_GEMM_GROUPS;
    const size_t at_b = (p->panel * p->b->steps + p->s) * DP_GEMM_GROUPS;
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        const double *fb = p->b->decoded->factor + (at_b + g) * DP_GEMM_LANES + p->half * HALF;
        const __m256d fa = _mm256_set1_pd(p->a->decoded->factor[at_a + g]);
        const wide t = from_i32(q[g]);
        acc->low = _mm256_fmadd_pd(_mm256_mul_pd(t.low, _mm256_load_pd(fb)), fa, acc->low);
        acc->high = _mm256_fmadd_pd(_mm256_mul_pd(t.high, _mm256_load_pd(fb + 4)), fa, acc->high);
    }
    acc->low = cut(acc->low, LOW_BITS_F32);
    acc->high = cut(acc->high, LOW_BITS_F32);
}

TARGET static void grouped_row(place p, const float *c, float *d, size_t count)
{
    __m256i bits = load_c(c, count);
    bool odd = odd_c(bits) != 0;
    bool in_bits = true; /* the accumulator is in bits; after a fast step in acc alone */
    wide acc = from_f32(bits);
    for (p.s = 0; p.s < p.a->steps; p.s++) {
        const dp_gemm_span *sa = &p.a->decoded->span[p.m * p.a->steps + p.s];
        const dp_gemm_span *sb = &p.b->decoded->span[p.panel * p.b->steps + p.s];
        const int top = sa->max + sb->max;
        const int bottom = sa->min + sb->min;
        const bool special = sa->special || sb->special;
        __m256i q[DP_GEMM_GROUPS];
        if (!special) {
            group_sums(&p, q);
        }
        if (!special && !odd && top - bottom <= 27 && bottom >= -80 && top <= 80 && top >= bottom) {
            const double low = power_of_two(top - 12);
            const double high = power_of_two(bottom + 28);
            if (!outside(acc.low, low, high) && !outside(acc.high, low, high)) {
                grouped_exact(&p, q, &acc);
                in_bits = false;
                continue;
            }
        }
        if (!in_bits) {
            bits = to_f32(acc);
        }
        bits = special ? repair(&p, 0xFFu, bits, bits) : grouped_general(&p, q, bits);
        odd = odd_c(bits) != 0;
        acc = from_f32(bits);
        in_bits = true;
    }
    store_d(d, count, in_bits ? bits : to_f32(acc));
}

/* ---- fused sums (rules 10 to 16) ---- */

TARGET static inline __m256i product_exponent(const int16_t *ea, const int16_t *eb, size_t k)
{
    __m256i most = _mm256_set1_epi16(INT16_MIN);
    for (size_t i = 0; i < k / 2; i++) {
        int32_t pair;
        memcpy(&pair, ea + 2 * i, sizeof pair);
        const __m256i b = _mm256_load_si256((const __m256i *)(eb + 32 * i));
        most = _mm256_max_epi16(most, _mm256_adds_epi16(_mm256_set1_epi32(pair), b));
    }
    return _mm256_max_epi32(_mm256_srai_epi32(most, 16),
                            _mm256_srai_epi32(_mm256_slli_epi32(most, 16), 16));
}

/* Sum of truncated products, 16 at most so that 32 bits hold them. */
TARGET static inline __m256i product_sum(const float *va, const float *vb, size_t k, __m256 unit)
{
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < k; i++) {
        const __m256 p = _mm256_mul_ps(_mm256_set1_ps(va[i]), _mm256_load_ps(vb + 16 * i));
        sum = _mm256_add_epi32(sum, _mm256_cvttps_epi32(_mm256_mul_ps(p, unit)));
    }
    return sum;
}

TARGET static inline __m256 unit_ps(__m256i e)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
}

TARGET static inline __m256i clamp(__m256i x, int low, int high)
{
    return _mm256_min_epi32(_mm256_max_epi32(x, _mm256_set1_epi32(low)), _mm256_set1_epi32(high));
}

TARGET static inline __m256i fused_step(const place *p, __m256i c)
{
    const dp_mma_desc *desc = p->a->desc;
    const struct dp_mma_decoded *x = p->a->decoded;
    const struct dp_mma_decoded *y = p->b->decoded;
    const size_t k = desc->k;
    const size_t at_a = p->m * x->padded_k + p->s * k;
    const size_t at_b = (p->panel * y->padded_k + p->s * k) * DP_GEMM_LANES;
    const size_t lane = p->half * HALF;
    const __m256i scale = _mm256_add_epi32(
        load_i32(y->scale_exp + (p->panel * p->b->steps + p->s) * DP_GEMM_LANES + lane),
        _mm256_set1_epi32(x->scale_exp[p->m * p->a->steps + p->s]));
    const __m256i products = product_exponent(x->exponent + at_a, y->exponent + at_b + 2 * lane, k);
    const __m256i empty = _mm256_cmpgt_epi32(_mm256_set1_epi32(DP_GEMM_ZERO_EXP / 2), products);
    __m256i largest =
        _mm256_max_epi32(_mm256_add_epi32(products, scale), exponent_of_c(c, 2 * DP_GEMM_ZERO_EXP));
    largest = _mm256_andnot_si256(_mm256_and_si256(empty, is_zero(c)), largest);
    const uint32_t bad = odd_c(c) | lanes(_mm256_cmpgt_epi32(_mm256_set1_epi32(-100), largest)) |
                         lanes(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(120)));
    largest = clamp(largest, -100, 120);
    const __m256i shift = _mm256_sub_epi32(_mm256_set1_epi32(desc->fraction), largest);
    const __m256 unit = unit_ps(clamp(_mm256_add_epi32(shift, scale), -126, 126));
    const size_t half = k > 16 ? 16 : k;
    const wide u = from_i32(product_sum(x->value + at_a, y->value + at_b + lane, half, unit));
    const wide v = from_i32(
        product_sum(x->value + at_a + half, y->value + at_b + half * 16 + lane, k - half, unit));
    const wide w =
        from_i32(_mm256_cvttps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(c), unit_ps(shift))));
    const wide back = power8(_mm256_sub_epi32(largest, _mm256_set1_epi32(desc->fraction)));
    const int low = desc->result == DP_MMA_E8M13_RZ ? LOW_BITS_E8M13 : LOW_BITS_F32;
    const wide r = {
        _mm256_mul_pd(cut(_mm256_add_pd(_mm256_add_pd(u.low, v.low), w.low), low), back.low),
        _mm256_mul_pd(cut(_mm256_add_pd(_mm256_add_pd(u.high, v.high), w.high), low), back.high)};
    const __m256i d = to_f32(r);
    return bad == 0 ? d : repair(p, bad, c, d);
}

TARGET static void fused_row(place p, const float *c, float *d, size_t count)
{
    __m256i bits = load_c(c, count);
    for (p.s = 0; p.s < p.a->steps; p.s++) {
        const dp_gemm_span *sa = &p.a->decoded->span[p.m * p.a->steps + p.s];
        const dp_gemm_span *sb = &p.b->decoded->span[p.panel * p.b->steps + p.s];
        const bool fits =
            !sa->special && !sb->special && sa->min + sb->min >= -100 && sa->max + sb->max <= 120;
        bits = fits ? fused_step(&p, bits) : repair(&p, 0xFFu, bits, bits);
    }
    store_d(d, count, bits);
}

/* ---- the tile, half a panel at a time ---- */

typedef void row_kernel(place p, const float *c, float *d, size_t count);

TARGET static void tile(row_kernel *kernel, const dp_mma_matrix *a, const dp_mma_matrix *b,
                        size_t row, size_t row_end, size_t column, size_t column_end,
                        const float *c, size_t c_stride, float *d, size_t d_stride)
{
    for (size_t n = column; n < column_end; n += HALF) {
        const size_t count = column_end - n < HALF ? column_end - n : HALF;
        for (size_t m = row; m < row_end; m++) {
            const place p = {a, b, m, n / DP_GEMM_LANES, n % DP_GEMM_LANES / HALF, 0};
            kernel(p, c != NULL ? c + m * c_stride + n : NULL, d + m * d_stride + n, count);
        }
    }
}

TARGET void dp_gemm_grouped_avx2(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row,
                                 size_t row_end, size_t column, size_t column_end, const float *c,
                                 size_t c_stride, float *d, size_t d_stride)
{
    tile(grouped_row, a, b, row, row_end, column, column_end, c, c_stride, d, d_stride);
}

TARGET void dp_gemm_fused_avx2(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row,
                               size_t row_end, size_t column, size_t column_end, const float *c,
                               size_t c_stride, float *d, size_t d_stride)
{
    tile(fused_row, a, b, row, row_end, column, column_end, c, c_stride, d, d_stride);
}

#endif
