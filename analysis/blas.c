/* SPDX-License-Identifier: MIT */
#include "analysis/blas.h"

#include <dlfcn.h>
#include <stdlib.h>

dp_blas dp_blas_open(void)
{
    static const char *const libraries[] = {"libopenblas.so.0", "libopenblas.so",
                                            "libopenblas.dylib"};
    dp_blas blas = {NULL, NULL};
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
    for (size_t i = 0; blas.sgemm == NULL && i < sizeof libraries / sizeof libraries[0]; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        void *single = library != NULL ? dlsym(library, "cblas_sgemm") : NULL;
        void *twice = library != NULL ? dlsym(library, "cblas_dgemm") : NULL;
        if (single != NULL && twice != NULL) {
            memcpy(&blas.sgemm, &single, sizeof blas.sgemm);
            memcpy(&blas.dgemm, &twice, sizeof blas.dgemm);
        }
    }
    return blas;
}

void dp_blas_multiply(const dp_blas *blas, bool b_transposed, size_t m, size_t n, size_t k,
                      double alpha, const double *a, const double *b, double *c)
{
    if (blas->dgemm != NULL) {
        blas->dgemm(DP_BLAS_ROW_MAJOR, DP_BLAS_NO_TRANS,
                    b_transposed ? DP_BLAS_TRANS : DP_BLAS_NO_TRANS, (int)m, (int)n, (int)k, alpha,
                    a, (int)k, b, (int)(b_transposed ? k : n), 0.0, c, (int)n);
        return;
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (size_t l = 0; l < k; l++) {
                sum += a[i * k + l] * (b_transposed ? b[j * k + l] : b[l * n + j]);
            }
            c[i * n + j] = alpha * sum;
        }
    }
}
