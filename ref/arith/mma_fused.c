/* SPDX-License-Identifier: MIT */
#include "ref/arith/mma_term.h"

static uint32_t convert(const dp_mma_desc *desc, bool negative, uint64_t magnitude, int exp2)
{
    if (desc->result == DP_MMA_F16_RNE) {
        return dp_mma_f16_rne(negative, magnitude, exp2);
    }
    return dp_mma_f32_rz(negative, magnitude, exp2, desc->result == DP_MMA_E8M13_RZ ? 13 : 23);
}

/* Rule 42: the sign of a result that came out zero. */
static uint32_t with_zero_sign(const dp_mma_desc *desc, const dp_mma_switches *switches,
                               uint32_t bits, bool minus)
{
    const uint32_t sign = desc->result == DP_MMA_F16_RNE ? 0x8000u : DP_F32_SIGN;
    if ((bits & ~sign) != 0) {
        return bits;
    }
    return minus && switches->zero_sign == DP_MMA_ZERO_SIGN_KEEP ? sign : 0u;
}

/* What special values and signs the terms hold (rules 40 and 42). */
typedef struct {
    bool nan, plus_inf, minus_inf, all_minus;
} survey;

static void survey_term(survey *s, dp_term_class kind, bool negative)
{
    s->nan |= kind == DP_TERM_NAN;
    s->plus_inf |= kind == DP_TERM_INF && !negative;
    s->minus_inf |= kind == DP_TERM_INF && negative;
    s->all_minus &= negative;
}

static dp_term_class product_class(const dp_mma_term *a, const dp_mma_term *b)
{
    if (a->kind == DP_TERM_NAN || b->kind == DP_TERM_NAN) {
        return DP_TERM_NAN;
    }
    if (a->kind == DP_TERM_FINITE && b->kind == DP_TERM_FINITE) {
        return DP_TERM_FINITE;
    }
    const dp_mma_term *finite = a->kind == DP_TERM_FINITE   ? a
                                : b->kind == DP_TERM_FINITE ? b
                                                            : NULL;
    return finite != NULL && finite->sig == 0 ? DP_TERM_NAN : DP_TERM_INF;
}

static uint32_t special(const dp_mma_desc *desc, const survey *s)
{
    const bool is_f16 = desc->result == DP_MMA_F16_RNE;
    if (s->nan || (s->plus_inf && s->minus_inf)) {
        return is_f16 ? DP_MMA_NAN_F16 : DP_MMA_NAN_F32;
    }
    return (is_f16 ? 0x7C00u : DP_F32_INF) | (s->minus_inf ? (is_f16 ? 0x8000u : DP_F32_SIGN) : 0u);
}

/* One aligned sum over finite products and C. */
static uint32_t sum(const dp_mma_desc *desc, const dp_mma_switches *switches, const dp_mma_term *a,
                    const dp_mma_term *b, int scale, const dp_mma_term *c, bool all_minus)
{
    const int c_fraction = desc->result == DP_MMA_F16_RNE ? 10 : 23;
    int largest = c->sig == 0 ? desc->zero_exponent : c->exp;
    for (int i = 0; i < desc->terms; i++) {
        const int zero = a[i].sig == 0 || b[i].sig == 0;
        const int exponent = zero ? desc->zero_exponent : a[i].exp + b[i].exp + scale;
        largest = exponent > largest ? exponent : largest;
    }
    const int products = desc->fraction - dp_mma_fraction(desc->a) - dp_mma_fraction(desc->b);
    int64_t total = dp_mma_aligned(c->sig, c->exp - largest + desc->fraction - c_fraction);
    for (int i = 0; i < desc->terms; i++) {
        const int32_t product = a[i].sig * b[i].sig;
        if (product != 0) {
            total += dp_mma_aligned(product, a[i].exp + b[i].exp + scale - largest + products);
        }
    }
    const bool negative = total < 0;
    const uint64_t magnitude = (uint64_t)(negative ? -total : total);
    const uint32_t bits = convert(desc, negative, magnitude, largest - desc->fraction);
    return with_zero_sign(desc, switches, bits, negative || (total == 0 && all_minus));
}

/* Two-term sum of the same unit, for the switch fp8_c = late: D = rho(p + c). */
static uint32_t add_late(const dp_mma_desc *desc, const dp_mma_switches *switches, uint32_t p,
                         const dp_mma_term *c)
{
    const bool is_f16 = desc->result == DP_MMA_F16_RNE;
    const int fraction = is_f16 ? 10 : 23;
    const dp_mma_term q = dp_mma_term_of_c(is_f16, p);
    if (q.kind != DP_TERM_FINITE) {
        return p; /* the products overflowed: infinity whatever the finite C */
    }
    const int eq = q.sig == 0 ? desc->zero_exponent : q.exp;
    const int ec = c->sig == 0 ? desc->zero_exponent : c->exp;
    const int largest = eq > ec ? eq : ec;
    const int shift = desc->fraction - fraction - largest;
    const int64_t total =
        dp_mma_aligned(q.sig, q.exp + shift) + dp_mma_aligned(c->sig, c->exp + shift);
    const bool negative = total < 0;
    const uint32_t bits =
        convert(desc, negative, (uint64_t)(negative ? -total : total), largest - desc->fraction);
    return with_zero_sign(desc, switches, bits,
                          negative || (total == 0 && q.negative && c->negative));
}

uint32_t dp_mma_fused_sum(const dp_mma_desc *desc, const dp_mma_switches *switches,
                          const dp_mma_term *a, const dp_mma_term *b, int scale, bool scale_nan,
                          uint32_t c)
{
    const dp_mma_term term_c = dp_mma_term_of_c(desc->result == DP_MMA_F16_RNE, c);
    survey products = {.nan = scale_nan, .all_minus = true};
    for (int i = 0; i < desc->terms; i++) {
        survey_term(&products, product_class(&a[i], &b[i]), a[i].negative != b[i].negative);
    }
    survey all = products;
    survey_term(&all, term_c.kind, term_c.negative != 0);
    if (all.nan || all.plus_inf || all.minus_inf) {
        return special(desc, &all);
    }
    const bool fp8 = dp_mma_code_bits(desc->a) == 8 && dp_mma_code_bits(desc->b) == 8;
    if (switches->fp8_c == DP_MMA_FP8_C_LATE && fp8 && desc->fraction == 13) {
        const dp_mma_term none = {.negative = 1}; /* leaves the sign to the products */
        return add_late(desc, switches, sum(desc, switches, a, b, scale, &none, products.all_minus),
                        &term_c);
    }
    return sum(desc, switches, a, b, scale, &term_c, all.all_minus);
}
