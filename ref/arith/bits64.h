/* SPDX-License-Identifier: MIT
 *
 * 64-bit integer steps that C lacks a portable name for. Used by the arithmetic of this folder
 * only.
 */
#ifndef DP_REF_ARITH_BITS64_H
#define DP_REF_ARITH_BITS64_H

#include "formats/base.h"

/* Number of zero bits above the leading one; x is not 0. */
static inline int dp_clz64(uint64_t x)
{
#if defined(__GNUC__)
    return __builtin_clzll(x);
#else
    int n = 0;
    for (; (x >> 63) == 0; x <<= 1) {
        n++;
    }
    return n;
#endif
}

/* x / 2^n, with the lowest bit of the result set if any bit fell out; n >= 0. */
static inline uint64_t dp_shift_right_sticky(uint64_t x, int n)
{
    if (n == 0) {
        return x;
    }
    if (n > 63) {
        return x != 0 ? 1 : 0;
    }
    return x >> n | (uint64_t)((x & ((UINT64_C(1) << n) - 1)) != 0);
}

/* The 128-bit product of two 64-bit numbers, high half; *low gets the other half. */
static inline uint64_t dp_mul_64x64(uint64_t a, uint64_t b, uint64_t *low)
{
    const uint64_t a1 = a >> 32, a0 = a & 0xFFFFFFFFu;
    const uint64_t b1 = b >> 32, b0 = b & 0xFFFFFFFFu;
    const uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
    const uint64_t middle = (p00 >> 32) + (p01 & 0xFFFFFFFFu) + (p10 & 0xFFFFFFFFu);
    *low = middle << 32 | (p00 & 0xFFFFFFFFu);
    return p11 + (p01 >> 32) + (p10 >> 32) + (middle >> 32);
}

/* floor(a * b / 2^64). */
static inline uint64_t dp_mul_high(uint64_t a, uint64_t b)
{
    uint64_t low;
    return dp_mul_64x64(a, b, &low);
}

#endif
