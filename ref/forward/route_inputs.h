/* SPDX-License-Identifier: MIT
 *
 * What a standard path does to Q, K and V before its matrix products: smoothing [R8], a scale for
 * each feature of V, INT8 codes [R9].
 */
#ifndef DP_REF_FORWARD_ROUTE_INPUTS_H
#define DP_REF_FORWARD_ROUTE_INPUTS_H

#include "ref/forward/route.h"

/* Whole tensors; NULL where the route leaves the input alone. Release with dp_route_inputs_free. */
typedef struct {
    uint16_t *k;    /* [kv head][keys][dim] bf16 bits: K minus its mean */
    float *k_mean;  /* [kv head][dim] */
    float *q_mean;  /* [q head][dim], of SMOOTH_K_QALL */
    float *channel; /* [kv head][dim]: what a feature of V is divided by */
} dp_route_inputs;

bool dp_route_inputs_make(const dp_attention *in, const dp_route *route, dp_route_inputs *inputs,
                          dp_error *error);
void dp_route_inputs_free(dp_route_inputs *inputs);

/* `rows` rows of a head of bf16 bits from `first`, widened to [rows][padded]; what lies past
 * `total` rows or `dim` features is zero. */
void dp_route_load(const uint16_t *head, size_t first, size_t rows, size_t total, size_t dim,
                   size_t padded, float *x);

/* Subtract from the DP_TILE rows x [DP_TILE][padded] of query head `head` what [R8] subtracts; mean
 * [padded] gets it. False, and nothing done, when the route leaves Q alone. */
bool dp_route_smooth_queries(const dp_route *route, const dp_route_inputs *inputs, size_t head,
                             size_t dim, size_t padded, float *x, float *mean);

/* What the scores of a tile of keys start from: mean times each key, in every row of raw [DP_TILE]
 * [tile keys]. */
void dp_route_start_scores(const dp_attention *in, const dp_route *route,
                           const dp_route_inputs *inputs, size_t kv, size_t tile, const float *mean,
                           float *raw);

/* q . (mean key): what smoothing K takes from the logits of a row, in units of the raw score. */
float dp_route_lost_score(const dp_attention *in, const dp_route_inputs *inputs, size_t head,
                          size_t kv, size_t row);

/* INT8 codes of `rows` rows (the first has index `first` in its head) of `dim` features, and the
 * scale of every row [R9]. keys: rows of K, otherwise of Q. */
void dp_int8_rows(dp_int8_group group, bool keys, const float *x, size_t rows, size_t dim,
                  int16_t *code, float *scale);
/* raw [DP_TILE][keys] = codes of Q times codes of K times both scales; added to what raw holds when
 * `add`. */
void dp_int8_scores(const int16_t *q, const float *q_scale, const int16_t *k, const float *k_scale,
                    size_t keys, size_t dim, bool add, float *raw);

#endif
