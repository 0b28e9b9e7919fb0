/* SPDX-License-Identifier: MIT
 *
 * The Direct-P forward operator, whole: operands, strips of query rows, outputs. Every stage is a
 * function of the stage before it; a strip hands all of them to a sink, so that nothing of size
 * queries x keys has to be kept. Rules [D..] of FORWARD.md.
 */
#ifndef DP_REF_FORWARD_FORWARD_H
#define DP_REF_FORWARD_FORWARD_H

#include "ref/arith/mma.h"
#include "ref/forward/classify.h"

DP_BEGIN_C

/* What attention is given. Rows are contiguous: [batch][head][row][dim], bf16 bits. */
typedef struct {
    size_t batch, q_heads, kv_heads;
    size_t queries, keys;
    size_t dim;        /* 1..128; smaller ones are padded with zeros to 128 (or 64, native-d64) */
    const uint16_t *q; /* batch * q_heads * queries * dim   */
    const uint16_t *k; /* batch * kv_heads * keys * dim     */
    const uint16_t *v;
    const int32_t *kv_of_q; /* q_heads entries; NULL: h * kv_heads / q_heads */
    double softmax_scale;   /* 0: dim^-0.5   */
    bool causal; /* key j is visible to query i when j <= i + keys - queries              */
} dp_attention;

double dp_attention_scale(const dp_attention *in);
size_t dp_attention_kv_head(const dp_attention *in, size_t q_head);
/* Refuse shapes no stage is defined for. */
bool dp_attention_check(const dp_attention *in, dp_error *error);

/* The operands as the matrix units see them, rows padded with zeros to whole tiles. */
typedef struct {
    size_t features;    /* 128, or 64 with native-d64                        */
    size_t query_rows;  /* queries rounded up to DP_TILE                     */
    size_t key_rows;    /* keys rounded up to DP_TILE                        */
    uint8_t *q_payload; /* [batch][q_head][query_rows][features/2]           */
    uint8_t *q_scale;   /* [batch][q_head][query_rows][features/16], UE4M3   */
    uint8_t *k_payload; /* [batch][kv_head][key_rows][features/2]            */
    uint8_t *k_scale;
    uint8_t *v_payload; /* [batch][kv_head][features][key_rows/2], even key low  */
    uint8_t *v_scale;   /* [batch][kv_head][features][key_rows/32], E8M0 amplitude */
    int32_t *key_order; /* [keys]: physical position -> key                  */
} dp_operands;

/* Stage quantize. Frees nothing on failure that it did not allocate; release with dp_operands_free.
 */
bool dp_forward_quantize(const dp_attention *in, const dp_direct_p *launch, int threads,
                         dp_operands *out, dp_error *error);
void dp_operands_free(dp_operands *operands);

/* Physical order of the keys: n anchors evenly spaced over 0..keys-1 first, then the rest ascending
 * [D1]. order: keys entries. Natural order when keys < n or n = 0. */
void dp_anchor_order(size_t keys, size_t n, int32_t *order);

/* One strip: up to DP_TILE query rows of one head, every stage. Arrays have `rows` valid rows. */
typedef struct {
    size_t batch, head, row_first, rows;
    size_t keys;              /* key_rows of the operands: row stride of raw, in scores */
    size_t dim;               /* features: row stride of acc and of o                   */
    const float *raw;         /* [rows][keys]; NULL unless the sink asked for it        */
    const float *row_ref;     /* [rows]                                                 */
    const uint8_t *p_scale;   /* [rows][keys/32] stored bytes                           */
    const uint8_t *p_payload; /* [rows][keys/2]                                         */
    const uint16_t *code_sum; /* [rows][keys/32]                                        */
    const float *row_sum;     /* [rows]                                                 */
    const float *acc;         /* [rows][dim]                                            */
    const uint16_t *o;        /* [rows][dim] bf16 bits                                  */
    const float *lse;         /* [rows]                                                 */
} dp_strip;

/* Called once a strip, from any thread; must lock what it shares. False stops the run. */
typedef bool dp_strip_sink(void *context, const dp_strip *strip);

typedef struct {
    const dp_attention *in;
    const dp_operands *operands;
    const dp_direct_p *launch;
    const dp_mma_switches *mma; /* NULL: defaults              */
    int threads;                /* <= 0: one per CPU           */
    bool want_raw;              /* strips carry the raw scores */
    dp_strip_sink *sink;
    void *context;
} dp_forward_job;

/* Run every strip. False with an error when memory runs out or the sink stopped it. */
bool dp_forward_run(const dp_forward_job *job, dp_error *error);

/* ---- single stages, for re-injection ------------------------------------------------------- */

/* Mask of stage score: true when the key at physical position `position` is hidden from query `row`
 * (padding, or causal). */
bool dp_score_masked(const dp_attention *in, const dp_operands *operands, size_t row,
                     size_t position);

/* BF16 attention on the same inputs, as the published errors are measured against: tiles of 128
 * keys, online maximum, P rounded to BF16, unrounded row sum, F32 accumulation in key order. o:
 * [batch][q_head][queries][dim] bf16 bits. lse (natural log) may be NULL. */
bool dp_reference_bf16(const dp_attention *in, int threads, uint16_t *o, float *lse,
                       dp_error *error);

DP_END_C

#endif
