/* SPDX-License-Identifier: MIT
 *
 * 2^x and log2 of the BF16 yardstick, spelled out in binary64 so that every machine and every GPU
 * gets the same bits. Round to nearest, no contraction of products and sums.
 */
#ifndef DP_REF_FORWARD_REFERENCE_MATH_H
#define DP_REF_FORWARD_REFERENCE_MATH_H

#include <math.h>
#include <string.h>

#include "formats/base.h"

/* 2^(biased - 1023), biased 1 to 2046. */
DP_INLINE double dp_reference_power(uint64_t biased)
{
    const uint64_t bits = biased << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* 2^x for every x: 0 below -150, infinity from 128 on, NaN for NaN; wrong by at most 0.5002 ulp:
 * 2^k times a polynomial of degree 9 in r = x - k, k nearest to x, in binary64; every product and
 * sum is one rounding. The coefficients are ln(2)^n / n!. */
DP_INLINE float dp_reference_exp2(float x)
{
    static const double c[10] = {1.0,
                                 0x1.62e42fefa39efp-1,
                                 0x1.ebfbdff82c58fp-3,
                                 0x1.c6b08d704a0cp-5,
                                 0x1.3b2ab6fba4e77p-7,
                                 0x1.5d87fe78a6731p-10,
                                 0x1.430912f86c787p-13,
                                 0x1.ffcbfc588b0c7p-17,
                                 0x1.62c0223a5c824p-20,
                                 0x1.b5253d395e7c4p-24};
    const double round = 0x1.8p52; /* its sum with k holds k in the low bits */
    const double wide = x < -150.0f ? -150.0 : (x > 128.0f ? 128.0 : (double)x);
    const double shifted = wide + round;
    const double r = wide - (shifted - round);
    double y = c[9];
    for (int n = 8; n >= 0; n--) {
        y = y * r + c[n];
    }
    uint64_t k;
    memcpy(&k, &shifted, sizeof k);
    return (float)(y * dp_reference_power((k + 1023u) & 0x7FFu));
}

/* log2 of a positive value, infinity too: 2 atanh(f) of m = (1 + f) / (1 - f) by its series, m
 * within a factor sqrt(2) of 1, in binary64; wrong by at most 0.5001 ulp. */
DP_INLINE float dp_reference_log2(float sum)
{
    if (sum == INFINITY) {
        return sum;
    }
    const double wide = sum;
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    const int64_t e = (int64_t)((bits - 0x3FE6A09E667F3BCDu) >> 52 ^ 0x800u) - 0x800;
    const double m = wide * dp_reference_power((uint64_t)(1023 - e));
    const double f = (m - 1.0) / (m + 1.0);
    const double s = f * f;
    double y = 1.0 / 19.0;
    for (int n = 17; n >= 1; n -= 2) {
        y = y * s + 1.0 / n;
    }
    return (float)((double)e + 0x1.71547652b82fep1 * f * y);
}

#endif
