/* SPDX-License-Identifier: MIT
 *
 * The range diagnostic: which part of exact softmax probabilities a format can represent at all.
 * No kernel is involved. P = softmax(Q K^T scale) is stored block by block along the keys; a row's
 * represented probabilities are divided by their own sum and multiplied with the unquantised V.
 */
#ifndef DP_ANALYSIS_RANGE_H
#define DP_ANALYSIS_RANGE_H

#include "analysis/range_format.h"
#include "analysis/tensors.h"

/* What one format does to the rows of one case. */
typedef struct {
    dp_range_counts counts;
    double zero_scale;   /* fraction of blocks whose scale is 0; NaN for a format without scale */
    double zero_payload; /* fraction of visible entries that decode to 0 */
    double underflow;    /* fraction of the entries that were not 0 and decode to 0 */
    double lost_mass;    /* probability on the entries that decode to 0, over all probability */
    double p_rel_l2;     /* |represented, renormalised P - P| / |P| */
    double pv_cosine;    /* of the output with represented P and with exact P */
    double pv_rel_l2;    /* |difference of those outputs| / |output with exact P| */
    double min_scale;    /* smallest nonzero scale; NaN when there is none */
    uint64_t lost_rows;  /* rows whose represented sum is 0: their output counts as 0 */
} dp_range_result;

/* How P itself is computed. */
typedef enum {
    DP_RANGE_EXACT, /* binary64 throughout */
    DP_RANGE_DEVICE /* binary32 as torch computes it on a CUDA device (device_softmax.h) */
} dp_range_arithmetic;

typedef struct {
    dp_range_arithmetic arithmetic;
    size_t block;      /* 8, 16, 32 or 64 keys a scale */
    size_t rows;       /* query rows used of each head, evenly spaced; 0 for all */
    bool per_head;     /* one case a head in place of one case for all */
    int threads;       /* 0: one per CPU; the results do not depend on it */
    const char *title; /* of the progress bar */
} dp_range_options;

/* Cases that dp_range_run makes: 1, or batch * q_heads with per_head. */
size_t dp_range_cases(const dp_tensors *tensors, const dp_range_options *options);

/* Rows used of each head. */
size_t dp_range_rows(const dp_tensors *tensors, const dp_range_options *options);

/* results: [case][format]. Errors: elements that are not finite, causal with different numbers of
 * queries and keys (which key a query sees is then a convention), memory. */
bool dp_range_run(const dp_tensors *tensors, const dp_range_format *formats, size_t format_count,
                  const dp_range_options *options, dp_range_result *results, dp_error *error);

/* Q [rows][heads][dim], K and V [seq][heads][dim], i.i.d. N(0,1), drawn in this order as
 * torch.randn draws them on a CUDA device (torch_rand.h). dp_tensors_free it. */
bool dp_range_random(uint64_t seed, int sms, size_t seq, size_t heads, size_t rows, size_t dim,
                     int threads, dp_tensors *tensors, dp_error *error);

#endif
