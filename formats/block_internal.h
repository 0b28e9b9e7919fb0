/* SPDX-License-Identifier: MIT
 *
 * What the files of the block quantizer share: the scaling of an element under a known scale.
 * Private to formats/.
 */
#ifndef DP_FORMATS_BLOCK_INTERNAL_H
#define DP_FORMATS_BLOCK_INTERNAL_H

#include "formats/block_arith.h"

/* How one block scales its elements; made once a block. */
typedef struct {
    enum {
        DP_SCALER_ZERO,     /* +0                          */
        DP_SCALER_DIVIDE,   /* fl(fl(x * before) / factor) */
        DP_SCALER_MULTIPLY, /* fl(fl(x * before) * factor) */
    } kind;
    float before;
    float factor;
} dp_block_scaler;

/* scale: the stored bytes; t: the ratio before its cast, for DP_DIVISOR_UNROUNDED. */
dp_block_scaler dp_block_scaler_make(const dp_block_plan *plan, const uint8_t *scale, float t);

/* The scaled element that goes into the payload cast. */
static inline float dp_block_scaled(const dp_block_plan *plan, dp_block_scaler how, float x)
{
    const dp_block_recipe *r = &plan->recipe;
    if (how.kind == DP_SCALER_ZERO) {
        return 0.0f;
    }
    const float first = how.before == 1.0f ? dp_block_flush(r, x) : dp_block_mul(r, x, how.before);
    const float v = how.kind == DP_SCALER_DIVIDE ? dp_block_div(r, first, how.factor)
                                                 : dp_block_mul(r, first, how.factor);
    if (v != v) {
        /* The sign of a NaN that arithmetic makes is the processor's; here it is +, and a NaN
         * element keeps its own. */
        return dp_f32_from_bits(DP_F32_INF | 0x400000u |
                                (x != x ? dp_f32_bits(x) & DP_F32_SIGN : 0u));
    }
    return dp_block_via(r->quotient_via, v);
}

/* Store the NaN of the scale format. */
void dp_block_scale_nan(const dp_block_plan *plan, uint8_t *scale);

/* True for an E4M3/E8M0/UE5M3 byte 0. A 4-byte scale has its value alone. */
static inline bool dp_block_byte_is_zero(const dp_block_plan *plan, const uint8_t *scale)
{
    return plan->scale_size == 1 ? scale[0] == 0
                                 : dp_block_scale_value(plan->recipe.scale, scale) == 0.0f;
}

#endif
