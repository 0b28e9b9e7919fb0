/* SPDX-License-Identifier: MIT */
#include "ref/forward/merge.h"

#include <math.h>
#include <string.h>

/* One side has no keys: the other comes back, zeros where it has none either. */
static void merge_empty(const float *other, float lse_other, size_t dim, float *o, float *lse)
{
    *lse = lse_other;
    if (lse_other == -INFINITY) {
        for (size_t d = 0; d < dim; d++) {
            o[d] = 0.0f;
        }
    } else if (o != other) {
        memcpy(o, other, dim * sizeof *o);
    }
}

void dp_merge(const float *o_a, float lse_a, const float *o_b, float lse_b, size_t dim, float *o,
              float *lse)
{
    if (lse_a == -INFINITY) {
        merge_empty(o_b, lse_b, dim, o, lse);
        return;
    }
    if (lse_b == -INFINITY) {
        merge_empty(o_a, lse_a, dim, o, lse);
        return;
    }
    const double a = (double)lse_a;
    const double b = (double)lse_b;
    const double larger = a > b ? a : b;
    const double weight_a = exp(a - larger);
    const double weight_b = exp(b - larger);
    const double sum = weight_a + weight_b;
    *lse = (float)(larger + log(sum));
    for (size_t d = 0; d < dim; d++) {
        o[d] = (float)((weight_a * (double)o_a[d] + weight_b * (double)o_b[d]) / sum);
    }
}
