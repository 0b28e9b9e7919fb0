/* SPDX-License-Identifier: MIT
 *
 * Every rounding with every overflow rule that FORMATS.md F5 and F6 define for it.
 */
#ifndef DP_TESTS_POLICIES_H
#define DP_TESTS_POLICIES_H

#include "formats/minifloat.h"

#define DP_OVERFLOWS(X, round)                                                                     \
    X(round, DP_OVERFLOW_SATFINITE)                                                                \
    X(round, DP_OVERFLOW_SPECIAL) X(round, DP_OVERFLOW_IEEE754)

#define DP_POLICIES(X)                                                                             \
    DP_OVERFLOWS(X, DP_RNE)                                                                        \
    DP_OVERFLOWS(X, DP_RZ)                                                                         \
    DP_OVERFLOWS(X, DP_RU)                                                                         \
    DP_OVERFLOWS(X, DP_RD) DP_OVERFLOWS(X, DP_RN_TIES_ZERO) DP_OVERFLOWS(X, DP_RN_TIES_AWAY)

enum { DP_POLICY_COUNT = 18 };

/* A dp_encode written as constants, so that a compiler folds it into the code around it. */
static inline dp_encode dp_policy(dp_round round, dp_overflow overflow)
{
    const dp_encode how = {round, overflow, DP_INF_LIKE_OVERFLOW, DP_NAN_PTX, false, false, 0, 0};
    return how;
}

#define DP_POLICY_ENTRY(round, overflow)                                                           \
    {round, overflow, DP_INF_LIKE_OVERFLOW, DP_NAN_PTX, false, false, 0, 0},

static const dp_encode dp_policies[DP_POLICY_COUNT] = {DP_POLICIES(DP_POLICY_ENTRY)};

#endif
