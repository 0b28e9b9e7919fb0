/* SPDX-License-Identifier: MIT
 *
 * Query rows with their scores, so that a map is judged by the output without QK being multiplied
 * again: the oracle's own classification, then P times the decoded V in f32.
 */
#ifndef DP_ANALYSIS_FIT_ROWS_H
#define DP_ANALYSIS_FIT_ROWS_H

#include "analysis/fit.h"

typedef struct {
    float *raw;      /* [keys], masked -INFINITY */
    float reference; /* m                        */
    float *expected; /* [dim], BF16 attention    */
    size_t head;     /* of v                     */
    int stage, group, unit;
} dp_fit_row;

struct dp_fit_rows {
    dp_fit_rows *next; /* of another file */
    size_t count, keys, dim, heads;
    int units; /* query heads, at most 16 */
    dp_fit_row *row;
    float *store; /* raw and expected of all rows       */
    float *v;     /* [head][keys][dim], decoded         */
    dp_direct_p launch;
};

/* `rows` rows of each query head, evenly spaced. first_group: units that came before. */
bool dp_fit_rows_take(const dp_attend_inputs *inputs, const dp_direct_p *launch, size_t rows,
                      int threads, int first_group, dp_fit_rows **taken, dp_error *error);

/* acc[d] += weight[i] v[i][d], i in order, every product and sum rounded to f32. */
void dp_fit_accumulate(float *acc, size_t dim, const float *const *v, const float *weight,
                       size_t count);
/* Its definition. */
void dp_fit_accumulate_scalar(float *acc, size_t dim, const float *const *v, const float *weight,
                              size_t count);

#endif
