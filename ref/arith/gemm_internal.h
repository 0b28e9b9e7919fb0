/* SPDX-License-Identifier: MIT
 *
 * What the implementations of the whole-matrix forms share: decoded operands, their vector forms,
 * and the kernel interface. ref/arith/gemm.h is the public face.
 *
 * Vector forms: an operand is divided into lines, rows of A or panels of 16 rows of B, and a line
 * into steps, one an instruction. Arrays of a panel hold 16 lanes side by side; the lanes past the
 * last row are zero.
 */
#ifndef DP_REF_ARITH_GEMM_INTERNAL_H
#define DP_REF_ARITH_GEMM_INTERNAL_H

#include "ref/arith/gemm.h"
#include "ref/arith/mma_term.h"

enum {
    DP_GEMM_LANES = 16,
    DP_GEMM_GROUPS = 4,       /* groups of one K=64 instruction */
    DP_GEMM_GROUP = 16,       /* products of a group */
    DP_GEMM_BIAS = 12,        /* added to the doubled codes of B to make them unsigned */
    DP_GEMM_ZERO_EXP = -16384 /* exponent of a zero element: below every sum of two others */
};

/* What a kernel must know about one step of one line to choose its path. Exponents of nonzero
 * elements (fused) or of groups that count (grouped); min > max when there are none. */
typedef struct {
    int16_t min, max;
    bool special; /* NaN, infinity, or an f32 subnormal: scalar definition only */
} dp_gemm_span;

/* A decoded operand. Kp = steps * desc->k; S = scales of a row after padding. */
struct dp_mma_decoded {
    size_t padded_k;          /* Kp */
    size_t scales;            /* S */
    dp_mma_term *terms;       /* fused, emulated: [rows][Kp] */
    uint8_t *codes;           /* grouped: [rows][Kp], one code a byte */
    dp_mma_scale_term *scale; /* [rows][S] */

    bool vector;        /* the arrays below are filled */
    dp_gemm_span *span; /* [line][step] */
    /* Grouped. Doubled codes: A signed [row][Kp]; B + DP_GEMM_BIAS, four k side by side,
     * [panel][step][16][lane][4]. */
    uint8_t *bytes;
    /* Grouped, A [row][step][group], B [panel][step][group][lane]: scale as a number, its
     * significand and exponent, the bits of the nonzero codes (all set under zero_group = scale).
     */
    double *factor;
    int32_t *m, *exp, *nonzero;
    int32_t *bias; /* A only: -DP_GEMM_BIAS * sum of the group's doubled codes */
    /* Fused. Values A [row][Kp], B [panel][k][lane]; exponents A [row][Kp], B, two k side by side,
     * [panel][Kp/2][lane][2]; exponents of the scales A [row][step], B [panel][step][lane]. */
    float *value;
    int16_t *exponent;
    int32_t *scale_exp;
};

/* Lines of an operand. */
static inline size_t dp_gemm_lines(const dp_mma_matrix *x)
{
    return x->side == DP_MMA_SIDE_A ? x->rows : (x->rows + DP_GEMM_LANES - 1) / DP_GEMM_LANES;
}

/* Whether the vector kernels know this instruction under these switches. */
bool dp_gemm_has_vector(const dp_mma_desc *desc, const dp_mma_switches *switches);
/* Fill the vector forms from the decoded ones. */
void dp_gemm_pack(dp_mma_matrix *matrix);

/* Compute D for rows [row, row_end) and columns [column, column_end); column is a multiple of
 * DP_GEMM_LANES. c may be NULL. */
typedef void dp_gemm_kernel(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row,
                            size_t row_end, size_t column, size_t column_end, const float *c,
                            size_t c_stride, float *d, size_t d_stride);

dp_gemm_kernel dp_gemm_portable;
#if defined(__x86_64__)
dp_gemm_kernel dp_gemm_grouped_avx512, dp_gemm_fused_avx512;
dp_gemm_kernel dp_gemm_grouped_avx2, dp_gemm_fused_avx2;
#endif

/* One instruction by the scalar definition: row m of a, row n of b, step s. */
uint32_t dp_gemm_one(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t n, size_t s,
                     uint32_t c);

/* The scalar definition for the lanes of `bad`: d[lane] from c[lane], lanes beyond the last row of
 * b left alone. */
void dp_gemm_repair(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t panel,
                    size_t s, uint32_t bad, const uint32_t *c, uint32_t *d);

#endif
