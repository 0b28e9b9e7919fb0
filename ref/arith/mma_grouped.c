/* SPDX-License-Identifier: MIT */
#include "ref/arith/mma_term.h"

enum {
    GROUPS = 4,
    GROUP = 16,
    GROUP_SHIFT = 27, /* F = 35 less the 8 fraction bits of Q*m*m: 2 of Q, 3 of each m */
    C_SHIFT = 12,     /* F = 35 less the 23 fraction bits of C */
    FRACTION = 35
};

const int8_t dp_mma_e2m1_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* A group after scaling: value = t * 2^(exp - 8). */
typedef struct {
    int32_t t;
    int exp;
} group;

static group scaled_group(const dp_mma_switches *switches, int zero_exponent, const uint8_t *a,
                          const uint8_t *b, const dp_mma_scale_term *sa,
                          const dp_mma_scale_term *sb)
{
    int32_t q = 0;
    bool zero = true;
    for (int i = 0; i < GROUP; i++) {
        const int32_t product = dp_mma_e2m1_doubled[a[i]] * dp_mma_e2m1_doubled[b[i]];
        q += product;
        zero &= product == 0;
    }
    const int32_t m = sa->m * sb->m;
    const bool excluded = (zero || m == 0) && switches->zero_group == DP_MMA_ZERO_GROUP_EXCLUDED;
    return (group){.t = q * m, .exp = excluded ? zero_exponent : sa->exp + sb->exp};
}

/* E2M1 has no NaN and no infinity: scales and C alone can be special. */
static bool special(const dp_mma_scale_term *sa, const dp_mma_scale_term *sb, int scales,
                    const dp_mma_term *c, uint32_t *bits)
{
    bool nan = c->kind == DP_TERM_NAN;
    for (int i = 0; i < scales; i++) {
        nan |= sa[i].kind == DP_TERM_NAN || sb[i].kind == DP_TERM_NAN;
    }
    *bits = nan ? DP_MMA_NAN_F32 : DP_F32_INF | (c->negative ? DP_F32_SIGN : 0u);
    return nan || c->kind == DP_TERM_INF;
}

/* Whether every product and C carry a minus sign, zeros included. */
static bool all_minus(const uint8_t *a, const uint8_t *b, const dp_mma_term *c)
{
    bool minus = c->negative != 0;
    for (int i = 0; i < GROUPS * GROUP; i++) {
        minus &= ((a[i] ^ b[i]) & 8) != 0;
    }
    return minus;
}

uint32_t dp_mma_grouped_sum(const dp_mma_desc *desc, const dp_mma_switches *switches,
                            const uint8_t *a, const uint8_t *b, const dp_mma_scale_term *sa,
                            const dp_mma_scale_term *sb, uint32_t c)
{
    const dp_mma_term term_c = dp_mma_term_of_c(false, c);
    uint32_t bits;
    if (special(sa, sb, GROUPS * GROUP / desc->block, &term_c, &bits)) {
        return bits;
    }
    group g[GROUPS];
    int largest = term_c.sig == 0 ? desc->zero_exponent : term_c.exp;
    for (int i = 0; i < GROUPS; i++) {
        const int s = i * GROUP / desc->block; /* two groups share a scale when block = 32 */
        g[i] = scaled_group(switches, desc->zero_exponent, a + i * GROUP, b + i * GROUP, sa + s,
                            sb + s);
        largest = g[i].exp > largest ? g[i].exp : largest;
    }
    int64_t total = dp_mma_aligned(term_c.sig, C_SHIFT + term_c.exp - largest);
    for (int i = 0; i < GROUPS; i++) {
        total += dp_mma_aligned(g[i].t, GROUP_SHIFT + g[i].exp - largest);
    }
    const bool negative = total < 0;
    bits = dp_mma_f32_rz(negative, (uint64_t)(negative ? -total : total), largest - FRACTION, 23);
    if ((bits & DP_F32_ABS) != 0) {
        return bits;
    }
    const bool minus = negative || (total == 0 && all_minus(a, b, &term_c));
    return minus && switches->zero_sign == DP_MMA_ZERO_SIGN_KEEP ? DP_F32_SIGN : 0u;
}
