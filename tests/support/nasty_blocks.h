/* SPDX-License-Identifier: MIT
 *
 * Blocks drawn to hurt a quantizer. Random normals hide most faults: ties, exponents next to a
 * power of two, scales that underflow and specials are drawn on purpose.
 */
#ifndef DP_TESTS_NASTY_BLOCKS_H
#define DP_TESTS_NASTY_BLOCKS_H

#include "support.h"

typedef enum {
    DP_NASTY_NORMAL,           /* N(0,1) f32, the only kind most suites have             */
    DP_NASTY_BF16,             /* N(0,1) cut to bf16: many exact ties                    */
    DP_NASTY_MIDPOINTS,        /* midpoint * 2^k and its neighbours, both signs          */
    DP_NASTY_EDGE_POW2,        /* amax one ulp around 2^k                                */
    DP_NASTY_EDGE_SIX,         /* amax one ulp around 6 * 2^k                            */
    DP_NASTY_REQUANTISED,      /* code * scale: every element on the grid                */
    DP_NASTY_SCALED_MIDPOINTS, /* midpoint * E4M3 scale, +-1 ulp                    */
    DP_NASTY_UNDERFLOW,        /* amax around the smallest E4M3 scales * 6               */
    DP_NASTY_OVERFLOW,         /* amax around 2688, 6 * 464 and far above                */
    DP_NASTY_TINY,             /* f32 subnormals and the lowest binades                  */
    DP_NASTY_HUGE,             /* the highest binades                                    */
    DP_NASTY_WIDE,             /* uniform finite bit patterns                            */
    DP_NASTY_ZEROS,            /* +0 and -0                                              */
    DP_NASTY_MINUS_ZERO,       /* all -0                                                 */
    DP_NASTY_NEGATIVE,         /* all negative, largest magnitude negative               */
    DP_NASTY_ONE_NAN,          /* normals and one NaN                                    */
    DP_NASTY_ONE_INF,          /* normals and one Inf of either sign                     */
    DP_NASTY_KINDS
} dp_nasty;

/* Fill x[0..n) with a block of the kind. */
void dp_nasty_block(dp_rng *rng, dp_nasty kind, float *x, size_t n);

#endif
