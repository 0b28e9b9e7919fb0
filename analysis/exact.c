/* SPDX-License-Identifier: MIT */
#include "analysis/exact.h"

#include <math.h>

/* Scores to probabilities of one row, in place. */
static void softmax_row(const dp_exact_head *head, size_t row, double *p)
{
    double largest = -INFINITY;
    for (size_t j = 0; j < head->keys; j++) {
        const size_t key = head->key_order != NULL ? (size_t)head->key_order[j] : j;
        if (head->causal && key + head->queries > row + head->keys) {
            p[j] = -INFINITY;
        }
        largest = p[j] > largest ? p[j] : largest;
    }
    double sum = 0.0;
    for (size_t j = 0; j < head->keys; j++) {
        p[j] = largest > -INFINITY ? exp(p[j] - largest) : 0.0;
        sum += p[j];
    }
    for (size_t j = 0; sum > 0.0 && j < head->keys; j++) {
        p[j] /= sum;
    }
}

void dp_exact_rows(const dp_blas *blas, const dp_exact_head *head, size_t first, size_t count,
                   double *p, double *o)
{
    dp_blas_multiply(blas, true, count, head->keys, head->dim, head->scale,
                     head->q + first * head->dim, head->k, p);
    for (size_t i = 0; i < count; i++) {
        softmax_row(head, first + i, p + i * head->keys);
    }
    dp_blas_multiply(blas, false, count, head->dim, head->keys, 1.0, p, head->v, o);
}
