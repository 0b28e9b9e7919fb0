/* SPDX-License-Identifier: MIT
 *
 * NVFP4 beyond its recipes: the global scale of a tensor [B11], and the code of an element in
 * exact arithmetic [B13], which says whether two stacks may disagree about it.
 */
#ifndef DP_FORMATS_NVFP4_H
#define DP_FORMATS_NVFP4_H

#include "formats/e2m1.h"
#include "formats/ue4m3.h"

DP_BEGIN_C

/* Encode factor of a tensor whose largest magnitude is amax (finite, >= 0): min(2688/amax,
 * FLT_MAX), 1 when amax is 0; and the decode factor amax/2688, 1 when amax is 0. */
float dp_nvfp4_global_encode(float amax);
float dp_nvfp4_global_decode(float amax);

/* How far an element is from the nearest decision boundary. */
typedef enum {
    DP_CLEAR, /* every order of operations gives the same code                            */
    DP_NEAR,  /* within 2^-21 of a midpoint: four f32 roundings can move it across        */
    DP_TIE    /* on a midpoint: the tie rule decides                                      */
} dp_nearness;

/* Code of x under scale s * d by exact integer comparison of |x| with s * d * midpoint.
 * ties: DP_RNE, DP_RN_TIES_ZERO or DP_RN_TIES_AWAY. d: positive and finite. nearness may be NULL.
 * s = 0 gives a zero of x's sign for x = 0 and the largest code otherwise; NaN of x or s gives
 * 0x7 and DP_CLEAR. Integers only. */
dp_e2m1 dp_nvfp4_exact_code(float x, dp_ue4m3 s, float d, dp_round ties, dp_nearness *nearness);

DP_END_C

#endif
