/* SPDX-License-Identifier: MIT
 *
 * NVFP4 Q and K with scales folded over K64: in a row of 128, block b (0..3) and block b + 4 share
 * one E4M3 scale, the candidate with the lowest squared error. Rules B14.. of FORMATS.md. Source:
 * MrHuff/fp4-fa4 edde9bcb, quantize_nvfp4_qk_folded_k64_scales, selection "mse".
 */
#ifndef DP_FORMATS_FOLD64_H
#define DP_FORMATS_FOLD64_H

#include "formats/base.h"

DP_BEGIN_C

enum { DP_FOLD64_DIM = 128, DP_FOLD64_PAYLOAD = 64, DP_FOLD64_SCALES = 8 };
enum { DP_FOLD64_CANDIDATES = 11 };

/* Order of the f32 sum of the 32 squared errors, block b first, then block b + 4. The source leaves
 * it to a library; only candidates whose errors nearly agree can depend on it [B16]. */
typedef enum {
    DP_SUM_TREE,      /* adjacent pairs, then pairs of those: a warp's shuffle reduction */
    DP_SUM_SEQUENTIAL /* one after the other                                             */
} dp_sum_order;

/* What was chosen for a pair of blocks, for tools that explain a byte. */
typedef struct {
    uint8_t winner[4]; /* candidate 0..10, or 255 where none beat the start (NaN errors) */
    float error[4];    /* its squared error; +Inf where winner is 255 */
} dp_fold64_choice;

/* One row. x: 128 f32 (the source rounds to bf16 before). g: global encode factor, 1 in the paper.
 * payload: 64 bytes, low nibble = even index. scale: 8 bytes, bytes b and b + 4 equal.
 * choice: NULL or where to tell. */
void dp_fold64_row(const float *x, float g, dp_sum_order order, uint8_t *payload, uint8_t *scale,
                   dp_fold64_choice *choice);

/* Rows x[i * row_stride .. + 128), payload and scale dense. threads <= 0: one per CPU; the result
 * does not depend on it. */
void dp_fold64_rows(const float *x, size_t rows, size_t row_stride, float g, dp_sum_order order,
                    int threads, uint8_t *payload, uint8_t *scale);

/* Candidate factors of the scale, in the order of the search. */
const float *dp_fold64_candidates(void);

DP_END_C

#endif
