/* SPDX-License-Identifier: MIT
 *
 * Weighted sums of value rows: the inner loop of the output objective.
 */
#include "analysis/fit_rows.h"

void dp_fit_accumulate_scalar(float *acc, size_t dim, const float *const *v, const float *weight,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < dim; d++) {
            acc[d] += weight[i] * v[i][d];
        }
    }
}

/* Four rows at a time, each feature in the same order: the same roundings, fewer loads of acc. */
static inline __attribute__((always_inline)) void
four_rows(float *restrict acc, size_t dim, const float *const *v, const float *weight, size_t count)
{
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *restrict a = v[i];
        const float *restrict b = v[i + 1];
        const float *restrict c = v[i + 2];
        const float *restrict e = v[i + 3];
        const float wa = weight[i];
        const float wb = weight[i + 1];
        const float wc = weight[i + 2];
        const float we = weight[i + 3];
        for (size_t d = 0; d < dim; d++) {
            float sum = acc[d] + wa * a[d];
            sum += wb * b[d];
            sum += wc * c[d];
            acc[d] = sum + we * e[d];
        }
    }
    dp_fit_accumulate_scalar(acc, dim, v + i, weight + i, count - i);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static void
four_rows_avx2(float *acc, size_t dim, const float *const *v, const float *weight, size_t count)
{
    four_rows(acc, dim, v, weight, count);
}
#endif

void dp_fit_accumulate(float *acc, size_t dim, const float *const *v, const float *weight,
                       size_t count)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) {
        four_rows_avx2(acc, dim, v, weight, count);
        return;
    }
#endif
    four_rows(acc, dim, v, weight, count);
}
