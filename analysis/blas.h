/* SPDX-License-Identifier: MIT
 *
 * OpenBLAS, opened when it is installed and never required: linking it would start its threads in
 * every run of the command. The rival of the benchmarks and the engine of the exact yardstick.
 */
#ifndef DP_ANALYSIS_BLAS_H
#define DP_ANALYSIS_BLAS_H

#include "formats/base.h"

/* CBLAS constants. */
enum { DP_BLAS_ROW_MAJOR = 101, DP_BLAS_NO_TRANS = 111, DP_BLAS_TRANS = 112 };

typedef void dp_sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k,
                               float alpha, const float *a, int lda, const float *b, int ldb,
                               float beta, float *c, int ldc);
typedef void dp_dgemm_function(int order, int trans_a, int trans_b, int m, int n, int k,
                               double alpha, const double *a, int lda, const double *b, int ldb,
                               double beta, double *c, int ldc);

/* NULL members where the library or the function is missing. */
typedef struct {
    dp_sgemm_function *sgemm;
    dp_dgemm_function *dgemm;
} dp_blas;

/* Open it for calls that each use one thread (callers divide the work themselves, and may call from
 * several threads at once). */
dp_blas dp_blas_open(void);

/* C = alpha A B, or alpha A B^T with b_transposed: A [m][k], B [k][n] or [n][k], C [m][n], all
 * tight, binary64. Through blas->dgemm, or by plain loops without it. */
void dp_blas_multiply(const dp_blas *blas, bool b_transposed, size_t m, size_t n, size_t k,
                      double alpha, const double *a, const double *b, double *c);

#endif
