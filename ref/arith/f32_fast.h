/* SPDX-License-Identifier: MIT
 *
 * The f32 operations of f32.h on the host's FPU, for bulk work: add.rn.ftz, sub, mul, fma,
 * add.rm.ftz and the rest, named after the PTX instruction. NOT the definition: they equal f32.h on
 * every bit in the default floating-point environment (round to nearest, no FTZ, no DAZ) and
 * nowhere else. Straight-line code, so that a loop over them vectorises.
 */
#ifndef DP_REF_ARITH_F32_FAST_H
#define DP_REF_ARITH_F32_FAST_H

#include "ref/arith/f32.h"

/* A subnormal becomes the zero of its sign. */
static inline float dp_ftz(float x)
{
    return dp_f32_from_bits(dp_f32_flush(dp_f32_bits(x)));
}

/* A result as the hardware returns it: subnormals flushed, every NaN 0x7FFFFFFF. */
static inline float dp_ftz_result(float x)
{
    const uint32_t bits = dp_f32_bits(x);
    return dp_f32_from_bits(dp_f32_bits_is_nan(bits) ? DP_F32_NAN : dp_f32_flush(bits));
}

static inline float dp_add_rn_ftz(float a, float b)
{
    return dp_ftz_result(dp_ftz(a) + dp_ftz(b));
}

static inline float dp_sub_rn_ftz(float a, float b)
{
    return dp_ftz_result(dp_ftz(a) - dp_ftz(b));
}

/* The f32 of a double that is exact or rounded to odd, subnormals flushed, sign kept. Flushed is
 * what rounds to less than 2^-126 in 24 bits: below 2^-126 - 2^-151, the midpoint that goes to the
 * even 2^-126. A sum of two normal f32 needs no such care: it is a multiple of 2^-149. */
static inline float dp_flush_round(double exact)
{
    const double tiny = 0x1.ffffffp-127;
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 32) & DP_F32_SIGN;
    const uint32_t rounded = dp_f32_bits((float)exact);
    const uint32_t flushed = exact < tiny && exact > -tiny ? sign : rounded;
    return dp_f32_from_bits(dp_f32_bits_is_nan(rounded) ? DP_F32_NAN : flushed);
}

static inline float dp_mul_rn_ftz(float a, float b)
{
    return dp_flush_round((double)dp_ftz(a) * (double)dp_ftz(b)); /* 48 bits: exact */
}

/* a * b + c rounded to odd in a double, from any f32.
 *
 * The product of two f32 is exact in a double (48 bits, exponent in [-298, 255]). s is the sum
 * rounded to nearest and e its exact error (Knuth's two-sum; no overflow is possible). Where e is
 * not 0 the last bit of s is forced odd in the direction of e: that is the sum rounded to odd, and
 * a double rounded to odd has 53 >= 24 + 2 bits, so a conversion to f32 rounds as the exact sum
 * does (Boldo and Melquiond, IEEE TC 57(4), 2008), and it compares with an even double as the exact
 * sum does. s with e != 0 is never 0: a sum that cancels to 0 is exact. */
static inline double dp_fma_odd(float a, float b, float c)
{
    const double product = (double)a * (double)b;
    const double addend = (double)c;
    const double s = product + addend;
    const double back = s - product;
    const double e = (product - (s - back)) + (addend - back);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    /* e == e keeps the infinities and NaN as they are. */
    const bool inexact = e != 0.0 && e == e && (bits & 1) == 0;
    const bool grows = (e > 0.0) == (s > 0.0);
    bits = inexact ? (grows ? bits + 1 : bits - 1) : bits;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

/* a * b + c rounded once to f32, subnormals kept, NaN as the host makes it. */
static inline float dp_fma_by_doubles(float a, float b, float c)
{
    return (float)dp_fma_odd(a, b, c);
}

/* fma.rn.ftz. Where the compiler may use the hardware's fused multiply-add it decides all but the
 * results of magnitude 2^-126, which may have been rounded up from a value to be flushed. */
static inline float dp_fma_rn_ftz(float a, float b, float c)
{
    const float x = dp_ftz(a);
    const float y = dp_ftz(b);
    const float z = dp_ftz(c);
#if defined(__FMA__) || defined(__aarch64__)
    const float r = __builtin_fmaf(x, y, z);
    if ((dp_f32_bits(r) & DP_F32_ABS) != 0x00800000u) {
        return dp_ftz_result(r);
    }
#endif
    return dp_flush_round(dp_fma_odd(x, y, z));
}

/* add.rm.ftz: round to nearest, then one step down if the exact error (two-sum) is negative.
 * Operands of 2^126 and more, where the two-sum could overflow, and the zero sum, whose sign
 * depends on the mode, go to the definition. */
static inline float dp_add_rm_ftz(float a, float b)
{
    const float x = dp_ftz(a);
    const float y = dp_ftz(b);
    const float s = x + y;
    const uint32_t bits = dp_f32_bits(s);
    if ((dp_f32_bits(x) & DP_F32_ABS) >= 0x7E800000u ||
        (dp_f32_bits(y) & DP_F32_ABS) >= 0x7E800000u || (bits & DP_F32_ABS) == 0) {
        return dp_f32_from_bits(dp_f32_add(dp_f32_bits(a), dp_f32_bits(b), DP_F32_RM_FTZ));
    }
    const float back = s - x;
    const float e = (x - (s - back)) + (y - back);
    return dp_ftz_result(dp_f32_from_bits(e < 0.0f ? (s > 0.0f ? bits - 1 : bits + 1) : bits));
}

/* max.ftz.f32 and min.ftz.f32 without .NaN. */
static inline float dp_max_ftz(float a, float b)
{
    const float x = dp_ftz(a);
    const float y = dp_ftz(b);
    if (x > y || y != y) {
        return x == x ? x : dp_f32_from_bits(DP_F32_NAN);
    }
    /* Equal operands: the larger of two zeros is +0, which is the AND of the signs. */
    return x == y ? dp_f32_from_bits(dp_f32_bits(x) & dp_f32_bits(y)) : y;
}

static inline float dp_min_ftz(float a, float b)
{
    const float x = dp_ftz(a);
    const float y = dp_ftz(b);
    if (x < y || y != y) {
        return x == x ? x : dp_f32_from_bits(DP_F32_NAN);
    }
    return x == y ? dp_f32_from_bits(dp_f32_bits(x) | dp_f32_bits(y)) : y;
}

/* cvt.rmi.ftz.s32.f32: the floor, saturated; NaN is 0. */
static inline int32_t dp_floor_s32_ftz(float x)
{
    if (!(x < 2147483648.0f)) {
        return x != x ? 0 : INT32_MAX;
    }
    if (x < -2147483648.0f) {
        return INT32_MIN;
    }
    const float flushed = dp_ftz(x);
    const int32_t truncated = (int32_t)flushed;
    return truncated - ((float)truncated > flushed ? 1 : 0);
}

#endif
