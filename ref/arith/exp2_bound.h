/* SPDX-License-Identifier: MIT
 *
 * What can be said about a device's ex2.approx.ftz.f32 without knowing its table: an interval of
 * results from the published error bound, and whether a code made of the result is the same all
 * over it.
 */
#ifndef DP_REF_ARITH_EXP2_BOUND_H
#define DP_REF_ARITH_EXP2_BOUND_H

#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "ref/arith/sfu.h"

DP_BEGIN_C

/* f32 bits of two non-negative numbers, low <= high; a NaN stands in both. */
typedef struct {
    uint32_t low;
    uint32_t high;
} dp_f32_interval;

#define DP_EX2_CONTRACT_ULP                                                                        \
    2u /* PTX ISA 9.1: ex2.approx.ftz.f32, maximum ulp error over the range */

/* Every f32 that ex2.approx.ftz.f32 may return for x (f32 bits) under a bound of `ulp` units in the
 * last place of the exact value: the correctly rounded result and `ulp` neighbours on each side,
 * the smallest interval of whole neighbours that cannot exclude a legal result. The values that PTX
 * lists (NaN, the infinities, zero and subnormal) and the flushed and saturated ranges have one
 * result. */
dp_f32_interval dp_ex2_interval(uint32_t x, unsigned ulp);

/* Is the result (f32 bits) inside? */
bool dp_f32_interval_holds(dp_f32_interval interval, uint32_t result);

/* The code of every result in the interval if there is one (true), else the codes of both ends:
 * then the interval crosses a rounding boundary and a kernel's code is undecidable, not wrong.
 * Conversion is monotone, so the ends decide. */
bool dp_interval_e2m1(dp_f32_interval interval, dp_encode how, dp_e2m1 *low, dp_e2m1 *high);
bool dp_interval_e4m3(dp_f32_interval interval, dp_encode how, dp_e4m3 *low, dp_e4m3 *high);

DP_END_C

#endif
