/* SPDX-License-Identifier: MIT
 *
 * Joining attention over two disjoint sets of keys from what each returned.
 */
#ifndef DP_REF_FORWARD_MERGE_H
#define DP_REF_FORWARD_MERGE_H

#include "formats/base.h"

DP_BEGIN_C

/* The state (O, LSE) of the keys of a and b together: LSE = ln(e^LSE_a + e^LSE_b), O the mean of
 * O_a and O_b with the weights e^(LSE_a - LSE), e^(LSE_b - LSE). o_a, o_b, o  dim values each; o
 * may be either of the others lse_a, lse_b natural logarithms (dp_output_row in epoch R; epoch S
 * omits the shift, which cancels only between states of one policy). -Inf is the state of no keys:
 * the neutral element, whose O is not read, so that NaN there does not spread. Two of them give
 *                zeros and -Inf. +Inf or NaN gives NaN.
 * In binary64, one rounding to f32 at the end; a state joined with no keys comes back bit for bit.
 */
void dp_merge(const float *o_a, float lse_a, const float *o_b, float lse_b, size_t dim, float *o,
              float *lse);

DP_END_C

#endif
