/* SPDX-License-Identifier: MIT
 *
 * 1/x for rcp.approx.ftz.f32: an integer division decides the rounding.
 */
#include "ref/arith/sfu.h"

/* 2^47 / (2^23 + i) rounded to nearest: in (2^23, 2^24]. A tie would need a divisor of 2^48 that is
 * not a power of two. */
static uint32_t quotient(uint32_t i)
{
    const uint64_t divisor = 0x800000u + i;
    return (uint32_t)(((UINT64_C(1) << 48) / divisor + 1) >> 1);
}

uint32_t dp_rcp_octave(uint32_t i)
{
    return (125u << 23) + quotient(i);
}

/* Results that no arithmetic is needed for; true if x is one of these. */
static bool special(uint32_t x, uint32_t *result)
{
    const uint32_t magnitude = x & DP_F32_ABS;
    const uint32_t sign = x & DP_F32_SIGN;
    if (magnitude > DP_F32_INF) {
        *result = DP_F32_NAN_CUDA;
    } else if (magnitude < 0x00800000u) {
        *result = sign | DP_F32_INF;
    } else if (magnitude > 0x7E800000u) { /* above 2^126 the result is subnormal, or x is Inf */
        *result = sign;
    } else {
        return false;
    }
    return true;
}

/* The result for |x| = 2^(e-127) * (1 + i/2^23), from that for 1 + i/2^23. */
static uint32_t move(uint32_t octave, uint32_t x)
{
    const uint32_t magnitude = octave - ((x & DP_F32_INF) - 0x3F800000u);
    const uint32_t sign = x & DP_F32_SIGN;
    return magnitude < 0x00800000u || magnitude >= DP_F32_SIGN ? sign : sign | magnitude;
}

uint32_t dp_rcp_exact(uint32_t x)
{
    uint32_t result;
    return special(x, &result) ? result : move(dp_rcp_octave(x & 0x7FFFFFu), x);
}

uint32_t dp_rcp_captured(const dp_sfu_table *table, uint32_t x)
{
    uint32_t result;
    if (special(x, &result)) {
        return result;
    }
    const uint32_t i = x & 0x7FFFFFu;
    return move(dp_rcp_octave(i) + (uint32_t)dp_sfu_delta(table, i), x);
}

uint32_t dp_rcp_unit(const dp_sfu_unit *unit, uint32_t x)
{
    uint32_t result;
    return special(x, &result) ? result
                               : move(0x3F000000u + dp_sfu_unit_rcp(unit, x & 0x7FFFFFu), x);
}
