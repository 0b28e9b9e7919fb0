/* SPDX-License-Identifier: MIT
 *
 * 2^x on the FMA units: the polynomial that FlashAttention-4 runs on part of a row to relieve the
 * special function unit. Source of the steps, the coefficients (its table POLY_EX2, made with
 * Sollya's fpminimax) and the lane rule: github.com/Dao-AILab/flash-attention at 0251105,
 * flash_attn/cute/utils.py (ex2_emulation_2) and softmax.py (apply_exp2_convert).
 */
#ifndef DP_REF_ARITH_EXP2_POLY_H
#define DP_REF_ARITH_EXP2_POLY_H

#include "ref/arith/f32_fast.h"

DP_BEGIN_C

#define DP_EXP2_MAX_DEGREE     5
#define DP_EXP2_DEFAULT_DEGREE 3

/* Coefficients c[0] .. c[degree] as f32 bits; degree 1..5. */
const uint32_t *dp_exp2_poly_coefficients(unsigned degree);

/* The definition, in the integer operations of f32.h; every step is one instruction:
 *   y = max.ftz(x, -127)            NaN becomes -127 here and the result +0
 *   t = add.rm.ftz(y, 2^23 + 2^22)  floor(y) in the low bits of t
 *   r = y - (t - (2^23 + 2^22))     two sub.rn.ftz
 *   p = c[d]; p = fma.rn.ftz(p, r, c[i]) for i = d-1 .. 0
 *   bits(p) + (bits(t) << 23), modulo 2^32
 * Meant for x <= 127. x <= -127 gives +0; -127 < x < -126 gives a subnormal pattern (not 2^x);
 * above 128 the exponent field has run over. x: f32 bits; degree 1..5. */
uint32_t dp_exp2_poly(uint32_t x, unsigned degree);

/* The same on the host's FPU: equal on every bit in the default floating-point environment. */
static inline float dp_exp2_poly_fast(float x, unsigned degree)
{
    const uint32_t *c = dp_exp2_poly_coefficients(degree);
    const float magic = 12582912.0f;
    const float y = dp_max_ftz(x, -127.0f);
    const float t = dp_add_rm_ftz(y, magic);
    const float r = dp_sub_rn_ftz(y, dp_sub_rn_ftz(t, magic));
    float p = dp_f32_from_bits(c[degree]);
    for (unsigned i = degree; i-- > 0;) {
        p = dp_fma_rn_ftz(p, r, dp_f32_from_bits(c[i]));
    }
    return dp_f32_from_bits(dp_f32_bits(p) + (dp_f32_bits(t) << 23));
}

/* Which of the 128 scores of a row (one thread's row, four fragments of 32) take the polynomial:
 * the pair (k, k+1), k even, of fragment j does iff k mod freq >= freq - res and start <= j < 3.
 * freq 0: none. */
typedef struct {
    const char *name;
    uint8_t freq;
    uint8_t res;
    uint8_t start;
} dp_exp2_lanes;

/* lane: column of the row modulo 128. */
static inline bool dp_exp2_lane_is_poly(const dp_exp2_lanes *lanes, unsigned lane)
{
    const unsigned fragment = lane / 32u % 4u;
    const unsigned k = lane % 32u & ~1u;
    return lanes->freq != 0 && k % lanes->freq >= (unsigned)(lanes->freq - lanes->res) &&
           fragment >= lanes->start && fragment < 3u;
}

/* The settings in use, terminated by a NULL name; "off" (B300, and every kernel without the
 * emulation) comes first. */
const dp_exp2_lanes *dp_exp2_lane_table(void);
/* The entry of that name, or NULL. */
const dp_exp2_lanes *dp_exp2_lanes_by_name(const char *name);

DP_END_C

#endif
