/* SPDX-License-Identifier: MIT
 *
 * The special functions of PTX ISA 9.1: ex2.approx.ftz.f32, rcp.approx.ftz.f32, lg2.approx.ftz.f32.
 *
 * PTX bounds their error and fixes their special values, not their bits. Three models:
 *   exact     the correctly rounded result (to nearest even), subnormals flushed;
 *   unit      a device's interpolator as an integer formula (sfu_unit.h): the H200's is known, and
 *             equal to the device on all 2^32 inputs of ex2 and rcp;
 *   captured  what a device returned, replayed from a table in a file (sfu_file.h), for devices
 *             whose formula is not known.
 * A dp_sfu says which model each function uses; stages of the oracle take one as an argument.
 * Integers only, so the caller's floating-point environment changes nothing.
 */
#ifndef DP_REF_ARITH_SFU_H
#define DP_REF_ARITH_SFU_H

#include "ref/arith/sfu_table.h"
#include "ref/arith/sfu_unit.h"

DP_BEGIN_C

/* A capture goes before the unit, the unit before the correctly rounded function. */
typedef struct {
    const char *name;        /* what a dump records, e.g. "exact" or "h200" */
    const dp_sfu_unit *unit; /* all three functions, or NULL */
    const dp_sfu_table *ex2; /* a capture of ex2, or NULL */
    const dp_sfu_table *rcp; /* a capture of rcp, or NULL */
} dp_sfu;

/* Every function correctly rounded. The default: it claims nothing about a device. */
const dp_sfu *dp_sfu_exact(void);

/* As an NVIDIA H200 computes them (data/SFU.md). */
const dp_sfu *dp_sfu_h200(void);

/* The model of that name ("exact", "h200"), or NULL. */
const dp_sfu *dp_sfu_by_name(const char *name);

/* 2^x. NaN -> 0x7FFFFFFF, -Inf -> +0, +Inf -> +Inf, zero and subnormal -> 1, result below 2^-126
 * -> +0, at or above 2^128 -> +Inf. Never more than 2 ulp from 2^x (PTX ISA 9.1, ex2). */
uint32_t dp_sfu_ex2(const dp_sfu *sfu, uint32_t x);

/* 1/x. NaN -> 0x7FFFFFFF, Inf -> 0, zero and subnormal -> Inf, result below 2^-126 -> 0, each with
 * the sign of x. Never more than 1 ulp from 1/x (PTX ISA 9.1, rcp). */
uint32_t dp_sfu_rcp(const dp_sfu *sfu, uint32_t x);

/* log2(x). NaN and negative numbers -> 0x7FFFFFFF, zero and subnormal of either sign -> -Inf,
 * +Inf -> +Inf (PTX ISA 9.1, lg2). */
uint32_t dp_sfu_lg2(const dp_sfu *sfu, uint32_t x);

/* The same on floats, named after the instruction. */
DP_INLINE float dp_ex2_approx_ftz(const dp_sfu *sfu, float x)
{
    return dp_f32_from_bits(dp_sfu_ex2(sfu, dp_f32_bits(x)));
}
DP_INLINE float dp_rcp_approx_ftz(const dp_sfu *sfu, float x)
{
    return dp_f32_from_bits(dp_sfu_rcp(sfu, dp_f32_bits(x)));
}
DP_INLINE float dp_lg2_approx_ftz(const dp_sfu *sfu, float x)
{
    return dp_f32_from_bits(dp_sfu_lg2(sfu, dp_f32_bits(x)));
}

/* The exact models by themselves. */
uint32_t dp_ex2_exact(uint32_t x);
uint32_t dp_rcp_exact(uint32_t x);
uint32_t dp_lg2_exact(uint32_t x);

/* The models of a unit by themselves. */
uint32_t dp_ex2_unit(const dp_sfu_unit *unit, uint32_t x);
uint32_t dp_rcp_unit(const dp_sfu_unit *unit, uint32_t x);
uint32_t dp_lg2_unit(const dp_sfu_unit *unit, uint32_t x);

/* The captured models by themselves, with the range reduction of the H200; table->function must be
 * the matching one. */
uint32_t dp_ex2_captured(const dp_sfu_table *table, uint32_t x);
uint32_t dp_rcp_captured(const dp_sfu_table *table, uint32_t x);

/* Correctly rounded result bits for the i-th number of the octave [1, 2), x = 1 + i / 2^23: what
 * the deltas of a capture are counted from. i < 2^23. */
uint32_t dp_ex2_octave(uint32_t i);
uint32_t dp_rcp_octave(uint32_t i);

DP_END_C

#endif
