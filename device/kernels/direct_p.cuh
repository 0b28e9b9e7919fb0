/* SPDX-License-Identifier: MIT
 *
 * Direct-P on the device: 32 raw scores of one row (a quarter of a key tile) to four packed words,
 * a scale byte and a represented sum. One thread a quarter; Q1 of stage 0 takes its neighbour's
 * bytes. Rules D6 to D12 of ref/forward/FORWARD.md.
 */
#ifndef DP_DEVICE_DIRECT_P_CUH
#define DP_DEVICE_DIRECT_P_CUH

#include "device/directp_device.h"
#include "device/kernels/instructions.cuh"

#define DPD_LOG2_6 __uint_as_float(0x40257007u)
#define DPD_SHIFT  __uint_as_float(0x3ED47FCCu)
#define DPD_C6     __uint_as_float(0x3E2AAAABu)
#define DPD_C12    __uint_as_float(0x3DAAAAABu)
#define DPD_C36    __uint_as_float(0x3CE38E39u)
#define DPD_LN2    __uint_as_float(0x3F317218u)

/* What a quarter publishes. */
struct dpd_quarter {
    uint32_t word[4];  /* 32 codes, even key in the low nibble */
    uint32_t code_sum; /* twice their sum                      */
    uint32_t stored;   /* u' */
};

/* u of a block [D6]. The add wraps in 32 bits. */
__device__ __forceinline__ int dpd_block_byte(const dp_device_policy &p, float block_max,
                                              float row_ref)
{
    const float g = dp_fma(dp_sub(block_max, row_ref), p.multiplier, 0.0f);
    const int r = dp_floor_s32(dp_add(g, DPD_SHIFT));
    const int u = (int)((uint32_t)r + 127u);
    return min(max(u, 0), 254);
}

__device__ __forceinline__ int dpd_working_byte(const dp_device_policy &p, int u)
{
    return max(u, p.epoch_r ? p.shift + 1 : 1);
}

__device__ __forceinline__ int dpd_stored_byte(const dp_device_policy &p, int u)
{
    return u > p.shift ? u - p.shift : (p.epoch_r ? 1 : 0);
}

__device__ __forceinline__ float dpd_max32(const float *s)
{
    float m[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        m[i] = dp_max(dp_max(s[i], s[i + 8]), dp_max(s[i + 16], s[i + 24]));
    }
    const float low = dp_max(dp_max(m[0], m[1]), dp_max(m[2], m[3]));
    const float high = dp_max(dp_max(m[4], m[5]), dp_max(m[6], m[7]));
    const float both = dp_max(low, high);
    return both == both ? both : -INFINITY; /* nothing but NaN */
}

/* A pair that takes the exponential or a polynomial. */
__device__ __forceinline__ float2 dpd_from_x(const dp_device_policy &p, bool native, float2 x)
{
    if (native) {
        return make_float2(dp_ex2(x.x), dp_ex2(x.y));
    }
    x.x = x.x < p.map_floor ? p.map_floor : x.x;
    x.y = x.y < p.map_floor ? p.map_floor : x.y;
    float2 y = make_float2(p.coefficient[p.degree], p.coefficient[p.degree]);
    for (int i = p.degree - 1; i >= 0; i--) {
        y = dp_fma_x2(y, x, make_float2(p.coefficient[i], p.coefficient[i]));
    }
    return y;
}

/* Twice the sum of 32 codes: PRMT as a table of doubled values, byte adds, one DP4A [D12]. */
__device__ __forceinline__ uint32_t dpd_code_sum(const uint32_t word[4])
{
    uint32_t bytes = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bytes += dp_prmt(0x03020100u, 0x0C080604u, word[i]);
        bytes += dp_prmt(0x03020100u, 0x0C080604u, word[i] >> 16);
    }
    return dp_dp4a_u32(bytes, 0x01010101u, 0);
}

/* Classify the quarter `quarter` of a row. u0: Q0's raw byte (any value for other quarters). */
__device__ __forceinline__ dpd_quarter dpd_classify(const dp_device_policy &p, int stage,
                                                    int quarter, float row_ref, const float *s,
                                                    int u, int u0)
{
    const bool rebased = p.rebase_q1 && stage == 0 && quarter == 1;
    const float base = dp_fma(-row_ref, p.multiplier, DPD_LOG2_6);
    const int working = dpd_working_byte(p, rebased ? u0 : u);
    float q = dp_sub(base, (float)(working - 127));
    if (rebased) {
        q = dp_add(q, (float)(u0 - u));
    }
    const float as = dp_mul(p.coefficient[1], p.multiplier);
    const float ab = dp_fma(p.coefficient[1], q, p.coefficient[0]);
    const uint32_t native =
        p.map == 2 ? 0xFFFFu : (rebased && p.map == 0 ? 0u : p.native[stage][quarter]);
    dpd_quarter out;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        float codes[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int pair = 4 * w + i;
            const float2 raw = make_float2(s[2 * pair], s[2 * pair + 1]);
            const bool ex2 = (native >> pair & 1u) != 0;
            float2 y;
            if (p.map == 0 && !ex2) {
                y = dp_fma_x2(raw, make_float2(as, as), make_float2(ab, ab));
            } else {
                const float2 x =
                    dp_fma_x2(raw, make_float2(p.multiplier, p.multiplier), make_float2(q, q));
                y = dpd_from_x(p, ex2, x);
            }
            codes[2 * i] = y.x;
            codes[2 * i + 1] = y.y;
        }
        const uint32_t word = dp_cvt_e2m1x8_relu(codes);
        out.word[w] = p.clear_zero && u == 0 ? 0u : word;
    }
    out.code_sum = dpd_code_sum(out.word);
    out.stored = (uint32_t)dpd_stored_byte(p, u);
    return out;
}

/* ---- represented denominator [D12] --------------------------------------------------------------
 */

__device__ __forceinline__ float dpd_power(uint32_t stored)
{
    return __uint_as_float(stored << 23);
}

__device__ __forceinline__ float dpd_term(const dp_device_policy &p, uint32_t stored,
                                          uint32_t code_sum)
{
    const float half_sum = 0.5f * (float)code_sum;
    return !p.epoch_r || p.scale_first ? dp_mul(dp_mul(dpd_power(stored), DPD_C6), half_sum)
                                       : dp_mul(dpd_power(stored), dp_mul(half_sum, DPD_C6));
}

__device__ __forceinline__ float dpd_term_add(const dp_device_policy &p, float tile,
                                              uint32_t stored, uint32_t code_sum)
{
    if (!p.epoch_r && p.fma_denominator) {
        return dp_fma(dp_mul(dpd_power(stored), DPD_C6), 0.5f * (float)code_sum, tile);
    }
    return dp_add(tile, dpd_term(p, stored, code_sum));
}

/* Add one key tile (four quarters) to the row. */
__device__ __forceinline__ float dpd_row_sum_add(const dp_device_policy &p, float row_sum,
                                                 const uint32_t stored[4],
                                                 const uint32_t code_sum[4])
{
    if (!p.correction_denominator) {
        float tile = dpd_term(p, stored[2], code_sum[2]);
        tile = dpd_term_add(p, tile, stored[0], code_sum[0]);
        tile = dpd_term_add(p, tile, stored[1], code_sum[1]);
        tile = dpd_term_add(p, tile, stored[3], code_sum[3]);
        return dp_add(row_sum, tile);
    }
    for (int half = 0; half < 4; half += 2) {
        const float t0 = dp_mul(dpd_power(stored[half]), (float)code_sum[half]);
        const float t1 = dp_mul(dpd_power(stored[half + 1]), (float)code_sum[half + 1]);
        row_sum = dp_add(row_sum, dp_add(t0, t1));
    }
    return row_sum;
}

__device__ __forceinline__ float dpd_row_sum_finish(const dp_device_policy &p, float row_sum)
{
    return p.correction_denominator ? dp_mul(row_sum, DPD_C12) : row_sum;
}

/* ---- output [D14] -------------------------------------------------------------------------------
 */

__device__ __forceinline__ bool dpd_row_valid(float row_ref, float row_sum)
{
    return row_sum >= __uint_as_float(0x00800000u) && row_sum <= __uint_as_float(0x7F7FFFFFu) &&
           fabsf(row_ref) <= __uint_as_float(0x7F7FFFFFu);
}

__device__ __forceinline__ float dpd_output_scale(float row_ref, float row_sum)
{
    return dpd_row_valid(row_ref, row_sum) ? dp_mul(dp_rcp(row_sum), DPD_C36) : 0.0f;
}

__device__ __forceinline__ float dpd_lse(const dp_device_policy &p, float row_ref, float row_sum)
{
    if (!dpd_row_valid(row_ref, row_sum)) {
        return -INFINITY;
    }
    float lse = dp_fma(row_ref, p.multiplier, dp_lg2(row_sum));
    if (p.epoch_r) {
        lse = dp_add(lse, (float)p.shift);
    }
    return dp_mul(lse, DPD_LN2);
}

/* cvt.rn.bf16.f32: nearest even; every NaN is 0x7FFF. */
__device__ __forceinline__ uint16_t dpd_to_bf16(float x)
{
    const uint32_t bits = __float_as_uint(x);
    return x != x ? (uint16_t)0x7FFFu : (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

#endif
