/* SPDX-License-Identifier: MIT */
#include "ref/arith/mma.h"

#include "ref/arith/mma_term.h"

enum { MAX_K = 64 };

static const dp_mma_switches defaults;

uint32_t dp_mma_disabled_c(const dp_mma_desc *desc, const dp_mma_switches *switches)
{
    if (switches == NULL || switches->disabled_c == DP_MMA_DISABLED_C_POSITIVE) {
        return 0;
    }
    return desc->result == DP_MMA_F16_RNE ? 0x8000u : DP_F32_SIGN;
}

static uint32_t one_fused(const dp_mma_desc *desc, const dp_mma_switches *switches,
                          const uint32_t *a, const uint32_t *b, const uint8_t *sfa,
                          const uint8_t *sfb, uint32_t c)
{
    dp_mma_term ta[MAX_K];
    dp_mma_term tb[MAX_K];
    const bool normalise_a = dp_mma_normalises(desc, switches, desc->a);
    const bool normalise_b = dp_mma_normalises(desc, switches, desc->b);
    for (int i = 0; i < desc->k; i++) {
        ta[i] = dp_mma_term_of(desc->a, a[i], normalise_a);
        tb[i] = dp_mma_term_of(desc->b, b[i], normalise_b);
    }
    if (desc->family == DP_MMA_EMULATED) {
        return dp_mma_emulated_sum(desc, switches, ta, tb, c);
    }
    int scale = 0;
    bool scale_nan = false;
    if (desc->scale != DP_MMA_NO_SCALE) {
        const dp_mma_scale_term sa = dp_mma_scale_of(desc->scale, sfa[0]);
        const dp_mma_scale_term sb = dp_mma_scale_of(desc->scale, sfb[0]);
        scale = sa.exp + sb.exp;
        scale_nan = sa.kind == DP_TERM_NAN || sb.kind == DP_TERM_NAN;
    }
    return dp_mma_fused_sum(desc, switches, ta, tb, scale, scale_nan, c);
}

static uint32_t one_grouped(const dp_mma_desc *desc, const dp_mma_switches *switches,
                            const uint32_t *a, const uint32_t *b, const uint8_t *sfa,
                            const uint8_t *sfb, uint32_t c)
{
    uint8_t codes_a[MAX_K];
    uint8_t codes_b[MAX_K];
    dp_mma_scale_term sa[4];
    dp_mma_scale_term sb[4];
    for (int i = 0; i < desc->k; i++) {
        codes_a[i] = a[i] & 0xFu;
        codes_b[i] = b[i] & 0xFu;
    }
    for (int i = 0; i < desc->k / desc->block; i++) {
        sa[i] = dp_mma_scale_of(desc->scale, sfa[i]);
        sb[i] = dp_mma_scale_of(desc->scale, sfb[i]);
    }
    return dp_mma_grouped_sum(desc, switches, codes_a, codes_b, sa, sb, c);
}

static bool usable(const dp_mma_desc *desc, size_t k, const uint8_t *sfa, const uint8_t *sfb,
                   dp_error *error)
{
    if (desc->family == DP_MMA_UNKNOWN) {
        return dp_fail(error,
                       "%s (%s): nothing is known in public about the arithmetic of this "
                       "instruction: use a K=64 form",
                       desc->instruction, desc->arch);
    }
    if (k == 96 && desc->family == DP_MMA_GROUPED) {
        return dp_fail(error,
                       "%s: k = 96 is not a chain of K=64 instructions, and nothing is known about "
                       "the K=96 instruction of sm_103a: pad k to 128 with zero codes",
                       desc->instruction);
    }
    if (k == 0 || k % desc->k != 0) {
        return dp_fail(error, "%s: k = %zu is not a positive multiple of %d: pad with zero codes",
                       desc->instruction, k, desc->k);
    }
    if (desc->scale != DP_MMA_NO_SCALE && (sfa == NULL || sfb == NULL)) {
        return dp_fail(error, "%s: no block scales given: pass sfa and sfb", desc->instruction);
    }
    return true;
}

bool dp_mma_element32(const dp_mma_desc *desc, const dp_mma_switches *switches, size_t k,
                      const uint32_t *a, const uint32_t *b, const uint8_t *sfa, const uint8_t *sfb,
                      uint32_t c, uint32_t *d, dp_error *error)
{
    if (!usable(desc, k, sfa, sfb, error)) {
        return false;
    }
    const dp_mma_switches *how = switches != NULL ? switches : &defaults;
    const size_t scales = desc->block != 0 ? (size_t)desc->k / desc->block : 0;
    for (size_t at = 0, step = 0; at < k; at += desc->k, step++) {
        const uint8_t *sa = scales != 0 ? sfa + step * scales : NULL;
        const uint8_t *sb = scales != 0 ? sfb + step * scales : NULL;
        c = desc->family == DP_MMA_GROUPED ? one_grouped(desc, how, a + at, b + at, sa, sb, c)
                                           : one_fused(desc, how, a + at, b + at, sa, sb, c);
    }
    *d = c;
    return true;
}

bool dp_mma_element(const dp_mma_desc *desc, const dp_mma_switches *switches, size_t k,
                    const uint16_t *a, const uint16_t *b, const uint8_t *sfa, const uint8_t *sfb,
                    uint32_t c, uint32_t *d, dp_error *error)
{
    if (!usable(desc, k, sfa, sfb, error)) {
        return false;
    }
    if (desc->a == DP_MMA_TF32 || desc->b == DP_MMA_TF32) {
        return dp_fail(error, "%s: tf32 elements are 32 bits wide: use the 32-bit interface",
                       desc->instruction);
    }
    const size_t scales = desc->block != 0 ? (size_t)desc->k / desc->block : 0;
    for (size_t at = 0, step = 0; at < k; at += desc->k, step++) {
        uint32_t wide_a[MAX_K];
        uint32_t wide_b[MAX_K];
        for (size_t i = 0; i < desc->k; i++) {
            wide_a[i] = a[at + i];
            wide_b[i] = b[at + i];
        }
        if (!dp_mma_element32(desc, switches, desc->k, wide_a, wide_b,
                              scales != 0 ? sfa + step * scales : NULL,
                              scales != 0 ? sfb + step * scales : NULL, c, &c, error)) {
            return false;
        }
    }
    *d = c;
    return true;
}
