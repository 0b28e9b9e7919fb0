/* SPDX-License-Identifier: MIT
 *
 * What attention is given: Q, K and V with what is known about them (kind "tensors" or "dump").
 */
#ifndef DP_ANALYSIS_TENSORS_H
#define DP_ANALYSIS_TENSORS_H

#include "analysis/h5.h"

typedef struct {
    size_t batch, q_heads, kv_heads;
    size_t q_len, kv_len; /* rows of q; rows of k and v */
    size_t dim;           /* of q, k and v */
    float *q;             /* [batch][q_head][q_len][dim], whatever `axes` says in the file */
    float *k, *v;         /* [batch][kv_head][kv_len][dim] */
    double softmax_scale; /* file's, else dim^-0.5; positive */
    bool causal;          /* file's, else false */
    size_t *kv_of_q;      /* [q_heads]: file's, else h * kv_heads / q_heads */
    char format[8];       /* of the three in the file: "bf16", "f16", "f32" */
    char *model;          /* texts; NULL when the file does not say */
    char *note;
    char *producer;
    int64_t layer; /* -1 when the file does not say */
} dp_tensors;

/* Read /inputs/q, k, v. Values are exact: all three formats fit in f32. Refused: disagreeing shapes
 * or formats, a softmax scale that is not finite and positive, head maps out of range, empty
 * arrays. Not checked: NaN and infinite elements. */
bool dp_tensors_load(const char *path, dp_tensors *tensors, dp_error *error);
bool dp_tensors_read(const dp_h5 *file, dp_tensors *tensors, dp_error *error);
void dp_tensors_free(dp_tensors *tensors);

/* Element [batch][head][row][0] of q, and the same of k or v for a query head. */
const float *dp_tensors_q(const dp_tensors *tensors, size_t batch, size_t head, size_t row);
const float *dp_tensors_k(const dp_tensors *tensors, size_t batch, size_t q_head, size_t row);
const float *dp_tensors_v(const dp_tensors *tensors, size_t batch, size_t q_head, size_t row);

/* Write a file of kind "tensors" in tensors->format. Elements that the format cannot hold exactly
 * are rounded to nearest even. */
bool dp_tensors_save(const char *path, const dp_tensors *tensors, dp_error *error);
/* The same three datasets and root attributes, into a file that is being written (a dump). */
bool dp_tensors_put(dp_h5_writer *writer, const dp_tensors *tensors, dp_error *error);

#endif
