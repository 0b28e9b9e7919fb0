/* SPDX-License-Identifier: MIT
 *
 * Captured special functions as files. data/SFU.md is the format.
 */
#ifndef DP_REF_ARITH_SFU_FILE_H
#define DP_REF_ARITH_SFU_FILE_H

#include <stdio.h>

#include "ref/arith/sfu_table.h"

DP_BEGIN_C

/* The name of a function as PTX spells it, e.g. "ex2.approx.ftz.f32". */
const char *dp_sfu_function_name(dp_sfu_function function);

/* Result bits of entry i, i < DP_SFU_ENTRIES: the reference of the function plus the delta. */
uint32_t dp_sfu_entry(const dp_sfu_table *table, uint32_t i);

/* Read one capture. where names the file in messages. On success table->words was allocated:
 * release it with dp_sfu_release. Refused: another format, an unknown function, a short file, a
 * wrong CRC. false and *error set on failure; table is then all zero. */
bool dp_sfu_read(dp_sfu_table *table, FILE *file, const char *where, dp_error *error);
void dp_sfu_release(dp_sfu_table *table);

/* Write one capture; false and *error set if the file could not be written. */
bool dp_sfu_write(const dp_sfu_table *table, FILE *file, const char *where, dp_error *error);

/* Make a table of measured results: results[i] is what the device returned for entry i. Sets bits,
 * crc32 and words (allocated: dp_sfu_release) and leaves the other fields as the caller set them,
 * function among them. Fails if a delta does not fit 16 bits or memory is short. */
bool dp_sfu_from_results(dp_sfu_table *table, const uint32_t *results, dp_error *error);

/* CRC-32 (polynomial 0x04C11DB7 reflected, as zlib's crc32) over all results of the table. */
uint32_t dp_sfu_crc32(const dp_sfu_table *table);

DP_END_C

#endif
