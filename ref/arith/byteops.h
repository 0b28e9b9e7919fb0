/* SPDX-License-Identifier: MIT
 *
 * Byte instructions of PTX ISA 9.1 (prmt, dp4a) and the represented sum that kernels build on them.
 * Integers only; every pattern has a defined result.
 */
#ifndef DP_REF_ARITH_BYTEOPS_H
#define DP_REF_ARITH_BYTEOPS_H

#include "formats/base.h"

DP_BEGIN_C

/* The modes of prmt.b32 (PTX ISA 9.1, prmt). */
typedef enum {
    DP_PRMT_INDEX, /* no modifier: four selector nibbles, bit 3 of each replicates the byte's sign
                    */
    DP_PRMT_F4E,   /* forward 4 extract */
    DP_PRMT_B4E,   /* backward 4 extract */
    DP_PRMT_RC8,   /* replicate 8 */
    DP_PRMT_ECL,   /* edge clamp left */
    DP_PRMT_ECR,   /* edge clamp right */
    DP_PRMT_RC16   /* replicate 16 */
} dp_prmt_mode;

/* Bytes 0..3 of the source are those of a, bytes 4..7 those of b. The index mode reads c[15:0],
 * the others c[1:0]. */
uint32_t dp_prmt(uint32_t a, uint32_t b, uint32_t c, dp_prmt_mode mode);

/* dp4a.{u32,s32}.{u32,s32}: c + the sum of the four byte products, modulo 2^32. The bytes of a (b)
 * are sign-extended if a_signed (b_signed), zero-extended otherwise (PTX ISA 9.1, dp4a). */
uint32_t dp_dp4a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed);

/* Four byte lanes added by one 32-bit add: exact while no lane exceeds 255, which is the caller's
 * business (the represented sum stays at 96 or less). */
DP_INLINE uint32_t dp_add_bytes(uint32_t a, uint32_t b)
{
    return a + b;
}

#define DP_SUM_CODES 32 /* E2M1 codes in one probability block */

/* Twice the sum of the 32 E2M1 values of a block, as a kernel does it: prmt maps each nibble to its
 * doubled value {0,1,2,3,4,6,8,12}, eight registers of four are added bytewise and one dp4a folds
 * the bytes. word[k] holds codes 8k .. 8k+7, the first in its low nibble. Result 0..384. A code
 * with the sign bit set counts as 0: prmt then replicates the sign of a byte below 128. */
uint32_t dp_represented_sum_x2(const uint32_t word[DP_SUM_CODES / 8]);

/* The same number by its plain definition, for any count of codes: the sum of 2*value over the
 * codes below 8. packed holds two codes a byte, element 0 in the low nibble. */
uint32_t dp_represented_sum_x2_plain(const uint8_t *packed, size_t codes);

/* The float whose exponent field is the byte: 2^(byte-127), but 0.0 for byte 0 and +Inf for 255.
 * This is how a kernel turns a stored scale byte into a factor of its denominator; an E8M0 decode
 * of byte 0 is 2^-127 instead. */
DP_INLINE float dp_exponent_byte_to_f32(uint8_t byte)
{
    return dp_f32_from_bits((uint32_t)byte << 23);
}

DP_END_C

#endif
