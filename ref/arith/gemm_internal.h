/* SPDX-License-Identifier: MIT
 *
 * What the implementations of the whole-matrix forms share: decoded operands and the kernel
 * interface. ref/arith/gemm.h is the public face.
 */
#ifndef DP_REF_ARITH_GEMM_INTERNAL_H
#define DP_REF_ARITH_GEMM_INTERNAL_H

#include "ref/arith/gemm.h"
#include "ref/arith/mma_term.h"

/* A decoded operand. Kp = steps * desc->k; S = scales of a row after padding. */
struct dp_mma_decoded {
    size_t padded_k;          /* Kp */
    size_t scales;            /* S */
    dp_mma_term *terms;       /* fused, emulated: [rows][Kp] */
    uint8_t *codes;           /* grouped: [rows][Kp], one code a byte */
    dp_mma_scale_term *scale; /* [rows][S] */
};

/* Compute D for rows [row, row_end) and columns [column, column_end). c may be NULL. */
typedef void dp_gemm_kernel(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t row,
                            size_t row_end, size_t column, size_t column_end, const float *c,
                            size_t c_stride, float *d, size_t d_stride);

dp_gemm_kernel dp_gemm_portable;

/* One instruction by the scalar definition: row m of a, row n of b, step s. */
uint32_t dp_gemm_one(const dp_mma_matrix *a, const dp_mma_matrix *b, size_t m, size_t n, size_t s,
                     uint32_t c);

#endif
