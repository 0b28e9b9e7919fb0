/* SPDX-License-Identifier: MIT
 *
 * The special function unit of an NVIDIA H200 as an integer formula: a table of segments, a linear
 * term and a truncated square. data/SFU.md says how it was found and what it was checked against.
 *
 *   x    the 23-bit mantissa field (for ex2: the fraction of the argument)
 *   t    the low bits of x; the bits above them choose a segment (c0, c1, c2)
 *   v  = c0 * 2^c0_shift + constant + c1 t + c2 square(t)
 * v has 38 fraction bits for ex2 and lg2, 39 for rcp, and is only ever truncated.
 *
 * The shape is that of Oberman and Siu, "A high-performance area-efficient multifunction
 * interpolator", ARITH-17 (2005), doi:10.1109/ARITH.2005.7.
 */
#ifndef DP_REF_ARITH_SFU_UNIT_H
#define DP_REF_ARITH_SFU_UNIT_H

#include "formats/base.h"

DP_BEGIN_C

typedef struct {
    int32_t c0;
    int32_t c1;
    int32_t c2;
} dp_sfu_segment;

typedef struct {
    const dp_sfu_segment *segments; /* 2^(23 - low_bits) of them, of [1, 2) */
    unsigned low_bits;              /* width of t */
    unsigned cut;                   /* columns of the square that are left out */
    unsigned c0_shift;
    int32_t constant;
} dp_sfu_interpolator;

typedef struct {
    const char *device;
    dp_sfu_interpolator ex2;
    dp_sfu_interpolator rcp;
    dp_sfu_interpolator lg2;
} dp_sfu_unit;

extern const dp_sfu_unit dp_sfu_h200_unit;

/* t^2 / 2^cut from its partial products t_i t_j, without those of columns below cut: a carry that
 * they would have made is lost, as in the hardware's squarer. t < 2^17. */
uint64_t dp_sfu_square(uint32_t t, unsigned cut);

/* The three interpolations for x < 2^23.
 * ex2: mantissa field of 2^(x/2^23). rcp: (1/(1+x/2^23) - 1/2) * 2^24, 2^23 for x = 0.
 * lg2: log2(1+x/2^23) * 2^36. */
uint32_t dp_sfu_unit_ex2(const dp_sfu_unit *unit, uint32_t x);
uint32_t dp_sfu_unit_rcp(const dp_sfu_unit *unit, uint32_t x);
uint64_t dp_sfu_unit_lg2(const dp_sfu_unit *unit, uint32_t x);

DP_END_C

#endif
