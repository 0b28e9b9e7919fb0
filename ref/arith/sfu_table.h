/* SPDX-License-Identifier: MIT
 *
 * A captured special function: for each of the 2^23 numbers of an octave the device's result minus
 * the correctly rounded one, in units of the result's last place.
 */
#ifndef DP_REF_ARITH_SFU_TABLE_H
#define DP_REF_ARITH_SFU_TABLE_H

#include "formats/base.h"
#include "formats/error.h"

DP_BEGIN_C

#define DP_SFU_ENTRIES (1u << 23)

typedef enum { DP_SFU_EX2, DP_SFU_RCP } dp_sfu_function;

typedef struct {
    dp_sfu_function function;
    char device[64];       /* e.g. "NVIDIA H200" */
    char driver[32];       /* e.g. "580" */
    char toolkit[32];      /* e.g. "CUDA 13.0" */
    unsigned bits;         /* width of one delta: 2, 4, 8 or 16, two's complement */
    uint32_t crc32;        /* CRC-32 of the 2^23 result words, each least significant byte first */
    const uint64_t *words; /* delta i is field i % (64/bits) of word i / (64/bits), lowest first */
} dp_sfu_table;

/* Delta of entry i, i < DP_SFU_ENTRIES. */
DP_INLINE int32_t dp_sfu_delta(const dp_sfu_table *table, uint32_t i)
{
    const unsigned per_word = 64u / table->bits;
    const uint64_t field = table->words[i / per_word] >> (table->bits * (i % per_word));
    const uint32_t sign = 1u << (table->bits - 1);
    const uint32_t value = (uint32_t)field & ((sign << 1) - 1u);
    return (int32_t)((value ^ sign) - sign);
}

DP_END_C

#endif
