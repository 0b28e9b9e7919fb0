/* SPDX-License-Identifier: MIT
 *
 * The whole-matrix forms on AVX-512 with VNNI: 16 columns at a time. Every floating operation is
 * exact (or truncates by its own opcode), so MXCSR does not matter; what could make a subnormal, an
 * infinity or a NaN goes to the scalar definition.
 */
#include "ref/arith/gemm_internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

enum { TRUNCATE = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC, LOW_BITS_F32 = 29, LOW_BITS_E8M13 = 39 };

/* 16 doubles. */
typedef struct {
    __m512d low, high;
} wide;

TARGET static inline wide from_i32(__m512i x)
{
    return (wide){_mm512_cvtepi32_pd(_mm512_castsi512_si256(x)),
                  _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(x, 1))};
}

/* f32 bits that are normal or zero; not for subnormals (DAZ). */
TARGET static inline wide from_f32(__m512i bits)
{
    return (wide){_mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_castsi512_si256(bits))),
                  _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_extracti64x4_epi64(bits, 1)))};
}

/* Doubles that are f32 normals or zero, as f32 bits; every zero becomes +0 (rule 42). */
TARGET static inline __m512i to_f32(wide x)
{
    const __m512i bits =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(_mm512_cvtpd_ps(x.low))),
                           _mm256_castps_si256(_mm512_cvtpd_ps(x.high)), 1);
    return _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(bits, _mm512_set1_epi32(DP_F32_ABS)),
                                  bits);
}

/* Clear the low bits of the significand: truncation of the magnitude. */
TARGET static inline __m512d cut(__m512d x, int bits)
{
    const __m512i mask = _mm512_set1_epi64((long long)(~(uint64_t)0 << bits));
    return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), mask));
}

/* 2^e for 8 exponents of a normal double. */
TARGET static inline __m512d power(__m256i e)
{
    const __m512i biased = _mm512_add_epi64(_mm512_cvtepi32_epi64(e), _mm512_set1_epi64(1023));
    return _mm512_castsi512_pd(_mm512_slli_epi64(biased, 52));
}

TARGET static inline wide power16(__m512i e)
{
    return (wide){power(_mm512_castsi512_si256(e)), power(_mm512_extracti64x4_epi64(e, 1))};
}

/* Lanes whose c is a subnormal, an infinity or a NaN. */
TARGET static inline __mmask16 odd_c(__m512i c)
{
    const __m512i field = _mm512_and_si512(c, _mm512_set1_epi32(DP_F32_INF));
    const __mmask16 zero_field = _mm512_testn_epi32_mask(field, field);
    const __mmask16 nonzero = _mm512_test_epi32_mask(c, _mm512_set1_epi32(DP_F32_ABS));
    return (__mmask16)((zero_field & nonzero) |
                       _mm512_cmpeq_epi32_mask(field, _mm512_set1_epi32(DP_F32_INF)));
}

/* Field exponent of c, `zero` for a zero. */
TARGET static inline __m512i exponent_of_c(__m512i c, int zero)
{
    const __m512i field = _mm512_and_si512(_mm512_srli_epi32(c, 23), _mm512_set1_epi32(0xFF));
    return _mm512_mask_sub_epi32(_mm512_set1_epi32(zero),
                                 _mm512_test_epi32_mask(c, _mm512_set1_epi32(DP_F32_ABS)), field,
                                 _mm512_set1_epi32(127));
}

TARGET static inline __mmask16 lanes_of(size_t column, size_t column_end)
{
    const size_t left = column_end - column;
    return (__mmask16)(left >= DP_GEMM_LANES ? 0xFFFFu : (1u << left) - 1u);
}

TARGET static __m512i repair(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t panel,
                             size_t s, uint32_t bad, __m512i c, __m512i d)
{
    uint32_t before[DP_GEMM_LANES];
    uint32_t after[DP_GEMM_LANES];
    _mm512_storeu_si512(before, c);
    _mm512_storeu_si512(after, d);
    dp_gemm_repair(a, b, m, panel, s, bad, before, after);
    return _mm512_loadu_si512(after);
}

/* ---- groups of 16 (rules 20 to 26) ---- */

/* Q of the four groups: products of signed A and biased B, less the bias. */
TARGET static inline void group_sums(const struct dp_mma_decoded *a, size_t at_a, size_t row_k,
                                     const struct dp_mma_decoded *b, size_t at_b, __m512i *q)
{
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        q[g] = _mm512_set1_epi32(a->bias[at_a + g]);
        for (size_t j = 0; j < 4; j++) {
            int32_t four;
            memcpy(&four, a->bytes + row_k + g * DP_GEMM_GROUP + 4 * j, sizeof four);
            const __m512i y = _mm512_load_si512(b->bytes + (at_b * 4 + g * 4 + j) * 64);
            q[g] = _mm512_dpbusd_epi32(q[g], y, _mm512_set1_epi32(four));
        }
    }
}

/* Any finite scales and C: align, truncate, sum, convert. */
TARGET static __m512i grouped_general(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m,
                                      size_t panel, size_t s, const __m512i *q, __m512i c)
{
    const size_t at_a = (m * a->steps + s) * DP_GEMM_GROUPS;
    const size_t at_b = (panel * b->steps + s) * DP_GEMM_GROUPS;
    const struct dp_mma_decoded *x = a->decoded;
    const struct dp_mma_decoded *y = b->decoded;
    const int zero = a->desc->zero_exponent;
    __m512i e[DP_GEMM_GROUPS];
    __m512i largest = exponent_of_c(c, zero);
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        const __m512i nonzero = _mm512_load_si512(y->nonzero + (at_b + g) * DP_GEMM_LANES);
        const __m512i eb = _mm512_load_si512(y->exp + (at_b + g) * DP_GEMM_LANES);
        const __mmask16 counts =
            _mm512_test_epi32_mask(nonzero, _mm512_set1_epi32(x->nonzero[at_a + g]));
        e[g] = _mm512_mask_add_epi32(_mm512_set1_epi32(zero), counts, eb,
                                     _mm512_set1_epi32(x->exp[at_a + g]));
        largest = _mm512_max_epi32(largest, e[g]);
    }
    /* c * 2^(35-E) and T * 2^(27+e-E), each truncated */
    const wide unit = power16(_mm512_sub_epi32(_mm512_set1_epi32(35), largest));
    wide sum = from_f32(c);
    sum.low = _mm512_roundscale_pd(_mm512_mul_pd(sum.low, unit.low), TRUNCATE);
    sum.high = _mm512_roundscale_pd(_mm512_mul_pd(sum.high, unit.high), TRUNCATE);
    for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
        const __m512i mb = _mm512_load_si512(y->m + (at_b + g) * DP_GEMM_LANES);
        const __m512i mm = _mm512_mullo_epi32(mb, _mm512_set1_epi32(x->m[at_a + g]));
        const wide t = from_i32(_mm512_mullo_epi32(q[g], mm));
        const __m512i shift =
            _mm512_add_epi32(_mm512_sub_epi32(e[g], largest), _mm512_set1_epi32(27));
        const wide p = power16(_mm512_max_epi32(shift, _mm512_set1_epi32(-100)));
        sum.low =
            _mm512_add_pd(sum.low, _mm512_roundscale_pd(_mm512_mul_pd(t.low, p.low), TRUNCATE));
        sum.high =
            _mm512_add_pd(sum.high, _mm512_roundscale_pd(_mm512_mul_pd(t.high, p.high), TRUNCATE));
    }
    const wide back = power16(_mm512_sub_epi32(largest, _mm512_set1_epi32(35)));
    const wide r = {_mm512_mul_pd(cut(sum.low, LOW_BITS_F32), back.low),
                    _mm512_mul_pd(cut(sum.high, LOW_BITS_F32), back.high)};
    /* results outside the normal range of f32, but not zero */
    uint32_t bad = odd_c(c);
    const __m512d least = _mm512_set1_pd(0x1p-126);
    const __m512d limit = _mm512_set1_pd(0x1p128);
    for (int half = 0; half < 2; half++) {
        const __m512d v = _mm512_abs_pd(half == 0 ? r.low : r.high);
        const uint32_t out = (uint32_t)(_mm512_cmp_pd_mask(v, least, _CMP_LT_OQ) |
                                        _mm512_cmp_pd_mask(v, limit, _CMP_GE_OQ)) &
                             (uint32_t)_mm512_cmp_pd_mask(v, _mm512_setzero_pd(), _CMP_NEQ_OQ);
        bad |= out << (8 * half);
    }
    const __m512i d = to_f32(r);
    return bad == 0 ? d : repair(a, b, m, panel, s, bad, c, d);
}

/* Lanes of |x| outside [low, high) and not zero. */
TARGET static inline bool outside(__m512d x, __m512i low, __m512i length)
{
    const __m512i bits = _mm512_castpd_si512(_mm512_abs_pd(x));
    const __mmask8 out = _mm512_cmpge_epu64_mask(_mm512_sub_epi64(bits, low), length);
    return out != 0 && (out & _mm512_test_epi64_mask(bits, bits)) != 0;
}

static inline uint64_t double_bits(int exponent)
{
    return (uint64_t)(exponent + 1023) << 52;
}

TARGET static void grouped_row(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m,
                               size_t panel, const float *c, float *d, __mmask16 lanes)
{
    const struct dp_mma_decoded *x = a->decoded;
    const struct dp_mma_decoded *y = b->decoded;
    __m512i bits = c != NULL ? _mm512_maskz_loadu_epi32(lanes, c) : _mm512_setzero_si512();
    bool odd = odd_c(bits) != 0;
    bool in_bits = true; /* the accumulator is in bits; after a fast step in acc alone */
    wide acc = from_f32(bits);
    for (size_t s = 0; s < a->steps; s++) {
        const dp_gemm_span *sa = &x->span[m * a->steps + s];
        const dp_gemm_span *sb = &y->span[panel * b->steps + s];
        const size_t at_a = (m * a->steps + s) * DP_GEMM_GROUPS;
        const size_t at_b = (panel * b->steps + s) * DP_GEMM_GROUPS;
        const int top = sa->max + sb->max;
        const int bottom = sa->min + sb->min;
        const bool special = sa->special || sb->special;
        __m512i q[DP_GEMM_GROUPS];
        if (!special) {
            group_sums(x, at_a, m * x->padded_k + s * a->desc->k, y, at_b, q);
        }
        /* Rule 26 for all lanes at once: no bit is lost, so the sum is exact in double. The bounds
         * keep everything among normal numbers. */
        if (!special && !odd && top - bottom <= 27 && bottom >= -80 && top <= 80 && top >= bottom) {
            const __m512i low = _mm512_set1_epi64((long long)double_bits(top - 12));
            const __m512i length =
                _mm512_set1_epi64((long long)(double_bits(bottom + 28) - double_bits(top - 12)));
            if (!outside(acc.low, low, length) && !outside(acc.high, low, length)) {
                for (size_t g = 0; g < DP_GEMM_GROUPS; g++) {
                    const double *fb = y->factor + (at_b + g) * DP_GEMM_LANES;
                    const __m512d fa = _mm512_set1_pd(x->factor[at_a + g]);
                    const wide t = from_i32(q[g]);
                    acc.low =
                        _mm512_fmadd_pd(_mm512_mul_pd(t.low, _mm512_load_pd(fb)), fa, acc.low);
                    acc.high = _mm512_fmadd_pd(_mm512_mul_pd(t.high, _mm512_load_pd(fb + 8)), fa,
                                               acc.high);
                }
                acc.low = cut(acc.low, LOW_BITS_F32);
                acc.high = cut(acc.high, LOW_BITS_F32);
                in_bits = false;
                continue;
            }
        }
        if (!in_bits) {
            bits = to_f32(acc);
        }
        bits = special ? repair(a, b, m, panel, s, 0xFFFFu, bits, bits)
                       : grouped_general(a, b, m, panel, s, q, bits);
        odd = odd_c(bits) != 0;
        acc = from_f32(bits);
        in_bits = true;
    }
    _mm512_mask_storeu_epi32(d, lanes, in_bits ? bits : to_f32(acc));
}

TARGET void dp_gemm_grouped_avx512(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row,
                                   size_t row_end, size_t column, size_t column_end, const float *c,
                                   size_t c_stride, float *d, size_t d_stride)
{
    for (size_t n = column; n < column_end; n += DP_GEMM_LANES) {
        const __mmask16 lanes = lanes_of(n, column_end);
        for (size_t m = row; m < row_end; m++) {
            grouped_row(a, b, m, n / DP_GEMM_LANES, c != NULL ? c + m * c_stride + n : NULL,
                        d + m * d_stride + n, lanes);
        }
    }
}

/* ---- fused sums (rules 10 to 16) ---- */

/* The largest exponent of a product, lane by lane; far below any exponent when all are zero. */
TARGET static inline __m512i product_exponent(const int16_t *ea, const int16_t *eb, size_t k)
{
    __m512i most = _mm512_set1_epi16(INT16_MIN);
    for (size_t i = 0; i < k / 2; i++) {
        int32_t pair;
        memcpy(&pair, ea + 2 * i, sizeof pair);
        most = _mm512_max_epi16(
            most, _mm512_adds_epi16(_mm512_set1_epi32(pair), _mm512_load_si512(eb + 32 * i)));
    }
    /* the two halves of each lane */
    return _mm512_max_epi32(_mm512_srai_epi32(most, 16),
                            _mm512_srai_epi32(_mm512_slli_epi32(most, 16), 16));
}

/* Sum of truncated products, 16 at most so that 32 bits hold them (16 * 4 * 2^25 = 2^31 less the
 * last units of the significands). */
TARGET static inline __m512i product_sum(const float *va, const float *vb, size_t k, __m512 unit)
{
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < k; i++) {
        const __m512 p = _mm512_mul_ps(_mm512_set1_ps(va[i]), _mm512_load_ps(vb + 16 * i));
        sum = _mm512_add_epi32(sum, _mm512_cvttps_epi32(_mm512_mul_ps(p, unit)));
    }
    return sum;
}

TARGET static inline __m512 unit_ps(__m512i e)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(e, _mm512_set1_epi32(127)), 23));
}

TARGET static inline __m512i fused_step(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m,
                                        size_t panel, size_t s, __m512i c)
{
    const struct dp_mma_decoded *x = a->decoded;
    const struct dp_mma_decoded *y = b->decoded;
    const size_t k = a->desc->k;
    const size_t at_a = m * x->padded_k + s * k;
    const size_t at_b = (panel * y->padded_k + s * k) * DP_GEMM_LANES;
    const __m512i fraction = _mm512_set1_epi32(a->desc->fraction);
    const __m512i scale =
        _mm512_add_epi32(_mm512_load_si512(y->scale_exp + (panel * b->steps + s) * DP_GEMM_LANES),
                         _mm512_set1_epi32(x->scale_exp[m * a->steps + s]));
    const __m512i products = product_exponent(x->exponent + at_a, y->exponent + at_b, k);
    const __mmask16 empty =
        _mm512_cmplt_epi32_mask(products, _mm512_set1_epi32(DP_GEMM_ZERO_EXP / 2));
    const __mmask16 c_zero = _mm512_testn_epi32_mask(c, _mm512_set1_epi32(DP_F32_ABS));
    __m512i largest =
        _mm512_max_epi32(_mm512_add_epi32(products, scale), exponent_of_c(c, 2 * DP_GEMM_ZERO_EXP));
    /* nothing at all: any exponent will do */
    largest = _mm512_mask_mov_epi32(largest, empty & c_zero, _mm512_setzero_si512());
    const uint32_t bad = odd_c(c) |
                         (uint32_t)_mm512_cmplt_epi32_mask(largest, _mm512_set1_epi32(-100)) |
                         (uint32_t)_mm512_cmpgt_epi32_mask(largest, _mm512_set1_epi32(120));
    if (bad != 0) { /* keep the exponents below in range; the lanes are repaired at the end */
        largest = _mm512_max_epi32(_mm512_min_epi32(largest, _mm512_set1_epi32(120)),
                                   _mm512_set1_epi32(-100));
    }
    const __m512i shift = _mm512_sub_epi32(fraction, largest);
    const __m512i product_shift =
        _mm512_min_epi32(_mm512_max_epi32(_mm512_add_epi32(shift, scale), _mm512_set1_epi32(-126)),
                         _mm512_set1_epi32(126));
    const __m512 unit = unit_ps(product_shift);
    const size_t half = k > 16 ? 16 : k;
    const __m512i first = product_sum(x->value + at_a, y->value + at_b, half, unit);
    const __m512i second =
        product_sum(x->value + at_a + half, y->value + at_b + half * 16, k - half, unit);
    const __m512i third =
        _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(c), unit_ps(shift)));
    const wide u = from_i32(first);
    const wide v = from_i32(second);
    const wide w = from_i32(third);
    const wide back = power16(_mm512_sub_epi32(largest, fraction));
    const int low = a->desc->result == DP_MMA_E8M13_RZ ? LOW_BITS_E8M13 : LOW_BITS_F32;
    const wide r = {
        _mm512_mul_pd(cut(_mm512_add_pd(_mm512_add_pd(u.low, v.low), w.low), low), back.low),
        _mm512_mul_pd(cut(_mm512_add_pd(_mm512_add_pd(u.high, v.high), w.high), low), back.high)};
    const __m512i d = to_f32(r);
    return bad == 0 ? d : repair(a, b, m, panel, s, bad, c, d);
}

TARGET static void fused_row(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t panel,
                             const float *c, float *d, __mmask16 lanes)
{
    __m512i bits = c != NULL ? _mm512_maskz_loadu_epi32(lanes, c) : _mm512_setzero_si512();
    for (size_t s = 0; s < a->steps; s++) {
        const dp_gemm_span *sa = &a->decoded->span[m * a->steps + s];
        const dp_gemm_span *sb = &b->decoded->span[panel * b->steps + s];
        /* products must be normal f32 numbers */
        const bool fits =
            !sa->special && !sb->special && sa->min + sb->min >= -100 && sa->max + sb->max <= 120;
        bits = fits ? fused_step(a, b, m, panel, s, bits)
                    : repair(a, b, m, panel, s, 0xFFFFu, bits, bits);
    }
    _mm512_mask_storeu_epi32(d, lanes, bits);
}

TARGET void dp_gemm_fused_avx512(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row,
                                 size_t row_end, size_t column, size_t column_end, const float *c,
                                 size_t c_stride, float *d, size_t d_stride)
{
    for (size_t n = column; n < column_end; n += DP_GEMM_LANES) {
        const __mmask16 lanes = lanes_of(n, column_end);
        for (size_t m = row; m < row_end; m++) {
            fused_row(a, b, m, n / DP_GEMM_LANES, c != NULL ? c + m * c_stride + n : NULL,
                      d + m * d_stride + n, lanes);
        }
    }
}

#endif
