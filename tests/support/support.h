/* SPDX-License-Identifier: MIT
 *
 * What every suite uses: a runner, a portable generator, and a mismatch counter, so that a loop
 * over millions of cases asserts once and still says which case came out wrong first.
 */
#ifndef DP_TESTS_SUPPORT_H
#define DP_TESTS_SUPPORT_H

#include <check.h>
#include <inttypes.h>
#include <stdio.h>

#include "formats/base.h"

/* Run one suite in this process and return main's exit status. */
int dp_run_suite(Suite *suite);

/* splitmix64: the same numbers on every machine. Seed it with a constant and print the constant. */
typedef struct {
    uint64_t state;
} dp_rng;

uint64_t dp_rng_u64(dp_rng *rng);
uint32_t dp_rng_u32(dp_rng *rng);
/* Uniform in [0, bound). */
uint32_t dp_rng_below(dp_rng *rng, uint32_t bound);
/* Uniform in [0, 1) with 53 bits, and a standard normal (Box-Muller over it). */
double dp_rng_unit(dp_rng *rng);
double dp_rng_normal(dp_rng *rng);
/* A float drawn to hurt: uniform bit patterns, normals, powers of two +-ulps, tiny, huge, special.
 */
float dp_rng_nasty_f32(dp_rng *rng);

/* Counts comparisons; keeps the text of the first mismatch. Not shared between threads. */
typedef struct {
    uint64_t cases;
    uint64_t mismatches;
    char first[512];
} dp_tally;

/* Count one comparison. Call dp_tally_note only when it returned false. */
static inline bool dp_tally_check(dp_tally *tally, bool equal)
{
    tally->cases++;
    if (!equal) {
        tally->mismatches++;
    }
    return equal;
}
/* Describe the mismatch just counted; only the first description is kept. */
void dp_tally_note(dp_tally *tally, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Add b to a (for per-thread tallies). */
void dp_tally_merge(dp_tally *a, const dp_tally *b);

/* Assert that every comparison matched and that there were at least `least` of them. */
#define dp_assert_tally(tally, least)                                                              \
    do {                                                                                           \
        ck_assert_msg((tally).mismatches == 0, "%" PRIu64 " of %" PRIu64 " differ, first: %s",     \
                      (tally).mismatches, (tally).cases, (tally).first);                           \
        ck_assert_msg((tally).cases >= (uint64_t)(least), "only %" PRIu64 " cases ran",            \
                      (tally).cases);                                                              \
    } while (0)

/* Path of a file of the source tree, e.g. dp_source_path(buffer, size, "data/x.h5"). */
const char *dp_source_path(char *buffer, size_t size, const char *relative);

#endif
