/* SPDX-License-Identifier: MIT
 *
 * Code match: the codes a policy produces against the codes that rounding 2^x would give under the
 * same working byte.
 */
#ifndef DP_ANALYSIS_CODES_H
#define DP_ANALYSIS_CODES_H

#include "analysis/attend.h"

enum {
    DP_CODE_COUNT = 8,
    DP_DISTANCE_BINS = 65, /* 64 of 1/32 octave, and the rest */
    DP_BYTES = 256
};
#define DP_DISTANCE_STEP (1.0 / 32.0)

/* Counts over every visible lane. */
typedef struct {
    int64_t confusion[DP_CODE_COUNT][DP_CODE_COUNT]; /* [ideal][produced]                       */
    int64_t byte_lanes[DP_BYTES], byte_match[DP_BYTES]; /* by the raw byte u of the block        */
    int64_t distance_lanes[DP_DISTANCE_BINS]; /* by |x - nearest midpoint|, x the log2 of the    */
    int64_t distance_match[DP_DISTANCE_BINS]; /* value to be rounded, 64 bins of 1/32, then more */
    int64_t lanes, match;
    int64_t code_sum, ideal_code_sum; /* twice the sums of the code values */
    /* Represented mass of a row over the mass its ideal codes represent: rows with any mass. */
    double mass_mean, mass_least, mass_most;
    uint64_t mass_rows;
} dp_code_match;

bool dp_codes_run(const dp_attention *in, const dp_direct_p *launch, const dp_mma_switches *mma,
                  int threads, dp_code_match *match, dp_error *error);

/* The file of kind "codes": /codes/... with the launch as attributes. */
bool dp_codes_save(const char *path, const dp_attend_inputs *inputs, const dp_direct_p *launch,
                   const dp_mma_switches *mma, const dp_code_match *match, dp_error *error);

/* What a plot needs of such a file. */
typedef struct {
    char policy[64], epoch[8], source[256];
    dp_code_match match;
} dp_codes_file;
bool dp_codes_load(const char *path, dp_codes_file *file, dp_error *error);

#endif
