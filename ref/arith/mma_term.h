/* SPDX-License-Identifier: MIT
 *
 * Inside the matrix units: elements taken apart into field exponent and integer significand, the
 * fused sums over them, and the conversions at the end. ref/arith/mma.h is the public face.
 */
#ifndef DP_REF_ARITH_MMA_TERM_H
#define DP_REF_ARITH_MMA_TERM_H

#include "ref/arith/mma.h"

DP_BEGIN_C

typedef enum { DP_TERM_FINITE, DP_TERM_INF, DP_TERM_NAN } dp_term_class;

/* value = sig * 2^(exp - fraction), fraction = dp_mma_fraction(format); 1 <= |sig|/2^fraction < 2
 * for a normal number; a subnormal keeps exp = emin and its leading zeros (rule 11). */
typedef struct {
    int32_t sig;      /* signed; 0 for zero, infinity and NaN */
    int16_t exp;      /* field exponent; 0 for zero, infinity and NaN */
    uint8_t kind;     /* dp_term_class */
    uint8_t negative; /* sign bit, kept for zero and infinity */
} dp_mma_term;

/* A block scale: value = m/8 * 2^exp. m = 0 is a zero scale, kind NaN poisons its block. */
typedef struct {
    int16_t m;
    int16_t exp;
    uint8_t kind; /* DP_TERM_FINITE or DP_TERM_NAN */
} dp_mma_scale_term;

/* Take apart the code `bits` of a format. normalise: give a subnormal the exponent of its leading
 * one (switch narrow_subnormal; also the effect of a conversion to f16 first). */
dp_mma_term dp_mma_term_of(dp_mma_format format, uint32_t bits, bool normalise);
/* Whether subnormals of this operand format are normalised under these switches in this desc. */
bool dp_mma_normalises(const dp_mma_desc *desc, const dp_mma_switches *switches,
                       dp_mma_format format);
dp_mma_scale_term dp_mma_scale_of(dp_mma_scale scale, uint8_t byte);
/* Fraction bits of the significand of a format. */
int dp_mma_fraction(dp_mma_format format);
/* Bits in a code of the format: 4, 6, 8, 16 or 32 (tf32). */
int dp_mma_code_bits(dp_mma_format format);

/* An accumulator taken apart the same way: fraction 23 (f32) or 10 (f16). */
dp_mma_term dp_mma_term_of_c(bool is_f16, uint32_t bits);

/* tz(x * 2^shift): the magnitude is truncated, whatever the sign (rule 3). Any shift for x = 0; for
 * another x the result must fit. */
int64_t dp_mma_aligned(int64_t x, int shift);
/* Index of the highest set bit of x != 0. */
int dp_mma_top_bit(uint64_t x);
/* sign * magnitude * 2^exp2 truncated toward zero to `fraction` bits (13 or 23) as f32 bits;
 * subnormals on the grid 2^(-126-fraction); from 2^128 infinity (rule 15). */
uint32_t dp_mma_f32_rz(bool negative, uint64_t magnitude, int exp2, int fraction);
/* The same to f16, nearest even, overflow to infinity. */
uint32_t dp_mma_f16_rne(bool negative, uint64_t magnitude, int exp2);

/* One instruction of the fused family: desc->terms products and C (rules 10 to 16).
 *   a, b       desc->terms elements
 *   scale      sum of the two scale exponents (0 without scales)
 *   scale_nan  a scale is NaN */
uint32_t dp_mma_fused_sum(const dp_mma_desc *desc, const dp_mma_switches *switches,
                          const dp_mma_term *a, const dp_mma_term *b, int scale, bool scale_nan,
                          uint32_t c);

/* Twice the value of each E2M1 code. */
extern const int8_t dp_mma_e2m1_doubled[16];

/* One instruction of the grouped family: 64 E2M1 products, their scales and C (rules 20 to 26).
 *   a, b    64 E2M1 codes, one a byte (0 .. 15)
 *   sa, sb  64 / desc->block scales */
uint32_t dp_mma_grouped_sum(const dp_mma_desc *desc, const dp_mma_switches *switches,
                            const uint8_t *a, const uint8_t *b, const dp_mma_scale_term *sa,
                            const dp_mma_scale_term *sb, uint32_t c);

/* One instruction of the emulated family: 32 FP8 products and C (rules 30 to 33); a and b are
 * decoded as dp_mma_normalises says. */
uint32_t dp_mma_emulated_sum(const dp_mma_desc *desc, const dp_mma_switches *switches,
                             const dp_mma_term *a, const dp_mma_term *b, uint32_t c);

DP_END_C

#endif
