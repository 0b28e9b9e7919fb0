/* SPDX-License-Identifier: MIT
 *
 * The f32 operations of the block quantizers by name: one rounding each, FTZ when the recipe asks
 * for it. Private to formats/.
 */
#ifndef DP_FORMATS_BLOCK_ARITH_H
#define DP_FORMATS_BLOCK_ARITH_H

#include "formats/bf16.h"
#include "formats/block.h"
#include "formats/environment.h"
#include "formats/fp16.h"

static inline float dp_block_flush(const dp_block_recipe *r, float x)
{
    const uint32_t bits = dp_f32_bits(x);
    return r->ftz && (bits & DP_F32_ABS) < 0x800000u ? dp_f32_from_bits(bits & DP_F32_SIGN) : x;
}

static inline float dp_block_mul(const dp_block_recipe *r, float a, float b)
{
    return dp_block_flush(r, dp_block_flush(r, a) * dp_block_flush(r, b));
}

static inline float dp_block_div(const dp_block_recipe *r, float a, float b)
{
    return dp_block_flush(r, dp_block_flush(r, a) / dp_block_flush(r, b));
}

static inline float dp_block_rcp(const dp_block_recipe *r, float a)
{
    return r->rcp != NULL ? r->rcp(a) : dp_block_div(r, 1.0f, a);
}

static inline float dp_block_via(dp_via via, float x)
{
    switch (via) {
    case DP_VIA_BF16:
        return dp_bf16_to_f32(dp_bf16_from_f32(x, DP_ENCODE_NONSAT));
    case DP_VIA_FP16:
        return dp_fp16_to_f32(dp_fp16_from_f32(x, DP_ENCODE_NONSAT));
    default:
        return x;
    }
}

/* floor(log2 x) of a positive finite x, subnormals included. */
static inline int dp_block_exponent(float x)
{
    uint32_t bits = dp_f32_bits(x) & DP_F32_ABS;
    int exponent = (int)(bits >> 23) - 127;
    if (exponent == -127) {
        exponent = -126;
        for (; bits < 0x800000u; bits <<= 1) {
            exponent--;
        }
    }
    return exponent;
}

#endif
