/* SPDX-License-Identifier: MIT
 *
 * Attention in binary64: a yardstick that shares no code with the operators it judges.
 */
#ifndef DP_ANALYSIS_EXACT_H
#define DP_ANALYSIS_EXACT_H

#include "analysis/blas.h"
#include "ref/forward/forward.h"

/* Rows of one head. All arrays binary64. */
typedef struct {
    size_t queries, keys, dim; /* of the whole head                        */
    const double *q;           /* [queries][dim]                           */
    const double *k;           /* [keys][dim]                              */
    const double *v;           /* [keys][dim]                              */
    double scale;              /* of the logits                            */
    bool causal;               /* as dp_attention                          */
    const int32_t *key_order;  /* row j of k and v is this key; NULL: j    */
} dp_exact_head;

/* O = softmax(scale Q K^T) V of rows [first, first + count). p: count * keys values of scratch,
 * receives the probabilities. o: [count][dim]. A row that sees no key gives zeros. */
void dp_exact_rows(const dp_blas *blas, const dp_exact_head *head, size_t first, size_t count,
                   double *p, double *o);

/* Where the error of a Direct-P output comes from. Each part is the change that one step makes,
 * measured against exact attention E = softmax(s Q K^T) V of the bf16 inputs, so that the parts add
 * up (as vectors) to the total:
 *   qk    softmax(s Q' K'^T) V - E      Q', K' as quantized
 *   p     P' V - softmax(s Q' K'^T) V   P' what the codes and bytes represent, over their row sum
 *   v     P' V' - P' V                  V' as quantized
 *   rest  O - P' V'                     the matrix unit, reciprocal and the rounding to bf16
 * all relative L2, as is bf16, the error of BF16 attention itself. Rows of O with NaN or Inf are
 * left out of everything. */
typedef struct {
    double qk, p, v, rest, total, bf16;
    uint64_t nonfinite_rows, rows;
} dp_error_parts;

/* Run the operator and split its error. parts: batch * q_heads entries, then one for all. */
bool dp_decompose(const dp_attention *in, const dp_direct_p *launch, const dp_mma_switches *mma,
                  int threads, dp_error_parts *parts, dp_error *error);

#endif
