/* SPDX-License-Identifier: MIT */
#include "ref/arith/exp2_bound.h"

dp_f32_interval dp_ex2_interval(uint32_t x, unsigned ulp)
{
    const uint32_t best = dp_ex2_exact(x);
    dp_f32_interval interval = {best, best};
    const bool listed = (x & DP_F32_INF) == 0 || (x & DP_F32_INF) == DP_F32_INF;
    if (listed || best == 0 || best >= DP_F32_INF) {
        return interval;
    }
    interval.low = best - ulp < 0x00800000u ? 0u : best - ulp; /* what lies below is flushed */
    interval.high = best + ulp > DP_F32_INF ? DP_F32_INF : best + ulp;
    return interval;
}

bool dp_f32_interval_holds(dp_f32_interval interval, uint32_t result)
{
    if (dp_f32_bits_is_nan(interval.low)) {
        return dp_f32_bits_is_nan(result);
    }
    return result >= interval.low && result <= interval.high;
}

bool dp_interval_e2m1(dp_f32_interval interval, dp_encode how, dp_e2m1 *low, dp_e2m1 *high)
{
    *low = dp_e2m1_from_f32(dp_f32_from_bits(interval.low), how);
    *high = dp_e2m1_from_f32(dp_f32_from_bits(interval.high), how);
    return low->bits == high->bits;
}

bool dp_interval_e4m3(dp_f32_interval interval, dp_encode how, dp_e4m3 *low, dp_e4m3 *high)
{
    *low = dp_e4m3_from_f32(dp_f32_from_bits(interval.low), how);
    *high = dp_e4m3_from_f32(dp_f32_from_bits(interval.high), how);
    return low->bits == high->bits;
}
