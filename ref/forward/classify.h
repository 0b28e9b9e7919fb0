/* SPDX-License-Identifier: MIT
 *
 * From a row of raw scores to what PV consumes: the block bytes and the E2M1 codes of P, and their
 * represented sum. Stages scale, code and (per quarter) denominator of one query row and one key
 * tile. Rules [D6]..[D13] of FORWARD.md; source MrHuff/fp4-fa4 at edde9bcb. What works on one row
 * expects the default floating-point environment, as dp_forward_run() sets it for its own time.
 */
#ifndef DP_REF_FORWARD_CLASSIFY_H
#define DP_REF_FORWARD_CLASSIFY_H

#include "ref/arith/sfu.h"
#include "ref/forward/policy.h"

DP_BEGIN_C

/* What a whole launch fixes. */
typedef struct {
    dp_forward_policy policy;
    dp_epoch epoch;
    dp_switches switches;
    float multiplier;  /* s: raw score to log2 units, global scales and softmax scale inside [D5] */
    const dp_sfu *sfu; /* model of EX2, RCP and LG2                                              */
    /* Derived: a native lane's code is the number of these its x is not below. */
    float ex2_threshold[7];
} dp_direct_p;

/* Put a launch together; the multiplier is for global scales of 1. sfu: NULL is the exact model. */
dp_direct_p dp_direct_p_make(const dp_forward_policy *policy, dp_epoch epoch,
                             const dp_switches *switches, double softmax_scale, const dp_sfu *sfu);

/* s = fl(fl(S0 * q_global) * k_global); S0 from the softmax scale and the switch `multiplier`. */
float dp_score_multiplier(double softmax_scale, float q_global, float k_global,
                          const dp_switches *switches);

/* One row's part of a key tile. */
typedef struct {
    uint8_t payload[DP_TILE / 2];   /* codes, low nibble = even key                    */
    uint8_t stored[DP_QUARTERS];    /* u': the E8M0 byte PV and the denominator see    */
    uint8_t raw_byte[DP_QUARTERS];  /* u: from the block maximum alone                 */
    uint8_t working[DP_QUARTERS];   /* w: what the codes were built on                 */
    uint16_t code_sum[DP_QUARTERS]; /* twice the represented sum of the codes, 0..384  */
} dp_p_row;

/* m of a row: 0, or max(raw over the anchor keys) + margin, from the first key tile [D4].
 * raw: DP_TILE raw scores, masked ones -inf. */
float dp_row_reference(const dp_direct_p *launch, const float *raw);

/* u of a block: the exponent byte of its raw maximum, 0..254 [D6]. */
int dp_block_byte(const dp_direct_p *launch, float block_max, float row_ref);
/* w and u' of u [D7]. */
int dp_working_byte(const dp_direct_p *launch, int u);
int dp_stored_byte(const dp_direct_p *launch, int u);

/* The scalars of one block [D8], for worked examples and for diagnosis. */
typedef struct {
    float q;  /* offset of x = raw s + q                 */
    float as; /* AFFINE: slope on raw                    */
    float ab; /* AFFINE: offset                          */
} dp_block_scalars;
dp_block_scalars dp_block_offsets(const dp_direct_p *launch, float row_ref, int working);
/* The same for Q1 of stage 0 built on Q0's working byte [D11]. */
dp_block_scalars dp_rebased_offsets(const dp_direct_p *launch, float row_ref, int working0, int u0,
                                    int u1);

/* One element: the value handed to the converter, and its code 0..7. The definition, by the integer
 * operations of ref/arith. */
float dp_lane_value(const dp_direct_p *launch, dp_block_scalars block, bool native, float raw);
uint8_t dp_lane_code(float value);

/* Classify one row of one key tile. stage: (query tile) & 1. raw: DP_TILE scores, masked -inf.
 * Results are equal to the definition above on every bit. */
void dp_classify_row(const dp_direct_p *launch, int stage, float row_ref, const float *raw,
                     dp_p_row *out);
/* The definition, lane by lane. */
void dp_classify_row_scalar(const dp_direct_p *launch, int stage, float row_ref, const float *raw,
                            dp_p_row *out);

/* Twice the sum of the values of 32 packed codes (16 bytes). */
uint16_t dp_code_sum(const uint8_t *payload);

/* Add one key tile to the row's normaliser, and finish it after the last tile [D12]. */
float dp_row_sum_add(const dp_direct_p *launch, float row_sum, const uint8_t stored[DP_QUARTERS],
                     const uint16_t code_sum[DP_QUARTERS]);
float dp_row_sum_finish(const dp_direct_p *launch, float row_sum);

/* O (bf16 bits) and LSE of one row from its accumulator [D14]. acc, o: `dim` values. lse may be
 * NULL. */
void dp_output_row(const dp_direct_p *launch, float row_ref, float row_sum, const float *acc,
                   size_t dim, uint16_t *o, float *lse);

DP_END_C

#endif
