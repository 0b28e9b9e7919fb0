/* SPDX-License-Identifier: MIT */
#include "ref/arith/gemm_internal.h"

uint32_t dp_gemm_one(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t n, size_t s,
                     uint32_t c)
{
    const dp_mma_desc *desc = a->desc;
    const struct dp_mma_decoded *x = a->decoded;
    const struct dp_mma_decoded *y = b->decoded;
    const size_t at_a = m * x->padded_k + s * desc->k;
    const size_t at_b = n * y->padded_k + s * desc->k;
    if (desc->family == DP_MMA_EMULATED) {
        return dp_mma_emulated_sum(desc, &a->switches, x->terms + at_a, y->terms + at_b, c);
    }
    if (desc->family == DP_MMA_GROUPED) {
        const size_t scales = desc->k / desc->block;
        return dp_mma_grouped_sum(desc, &a->switches, x->codes + at_a, y->codes + at_b,
                                  x->scale + m * x->scales + s * scales,
                                  y->scale + n * y->scales + s * scales, c);
    }
    int scale = 0;
    bool scale_nan = false;
    if (desc->scale != DP_MMA_NO_SCALE) {
        const dp_mma_scale_term *sa = &x->scale[m * x->scales + s];
        const dp_mma_scale_term *sb = &y->scale[n * y->scales + s];
        scale = sa->exp + sb->exp;
        scale_nan = sa->kind == DP_TERM_NAN || sb->kind == DP_TERM_NAN;
    }
    return dp_mma_fused_sum(desc, &a->switches, x->terms + at_a, y->terms + at_b, scale, scale_nan,
                            c);
}

void dp_gemm_repair(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t panel,
                    size_t s, uint32_t bad, const uint32_t *c, uint32_t *d)
{
    for (size_t lane = 0; lane < DP_GEMM_LANES; lane++) {
        const size_t n = panel * DP_GEMM_LANES + lane;
        if (((bad >> lane) & 1u) != 0 && n < b->rows) {
            d[lane] = dp_gemm_one(a, b, m, n, s, c[lane]);
        }
    }
}

void dp_gemm_portable(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row, size_t row_end,
                      size_t column, size_t column_end, const float *c, size_t c_stride, float *d,
                      size_t d_stride)
{
    const uint32_t none = dp_mma_disabled_c(a->desc, &a->switches);
    for (size_t m = row; m < row_end; m++) {
        for (size_t n = column; n < column_end; n++) {
            uint32_t bits = none;
            if (c != NULL) {
                memcpy(&bits, &c[m * c_stride + n], sizeof bits);
            }
            for (size_t s = 0; s < a->steps; s++) {
                bits = dp_gemm_one(a, b, m, n, s, bits);
            }
            memcpy(&d[m * d_stride + n], &bits, sizeof bits);
        }
    }
}
