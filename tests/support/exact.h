/* SPDX-License-Identifier: MIT
 *
 * A second definition of the element formats, for tests only. Nothing here reads a field of a code
 * or shifts a significand: the finite values are listed by counting up in steps (a step doubles
 * every 2^mantissa codes), thresholds between neighbours are exact doubles, and an input's code is
 * the place where it falls in that list. What happens outside the finite values is read from a
 * table typed in from FORMATS.md F4, F6, F7 and E3. Every f32, every value and every midpoint of
 * the formats is a double, so that no comparison rounds.
 */
#ifndef DP_TESTS_EXACT_H
#define DP_TESTS_EXACT_H

#include "formats/e8m0.h"
#include "formats/minifloat.h"

enum { DP_EXACT_FORMATS = 11, DP_EXACT_NAN_RULES = 4 };

/* A format as FORMATS.md F2 and F7 describe it. */
typedef struct {
    const char *name;
    unsigned sign_bits, exponent_bits, mantissa_bits;
    int bias;
    uint32_t top_codes; /* magnitude codes at the top that are not finite            */
    bool has_inf;       /* the lowest of them is Inf                                 */
    bool fnuz;          /* no -0: its code is the one NaN                            */
    double max, min_normal, min_subnormal;
    uint16_t nan[DP_EXACT_NAN_RULES][2]; /* [rule of dp_nan_rule][input negative]        */
} dp_exact_format;

/* The same order as the catalog. */
const dp_exact_format *dp_exact_format_at(size_t index);

/* Where a magnitude between two neighbours goes. */
typedef enum {
    DP_EXACT_EVEN,
    DP_EXACT_TOWARD_ZERO,
    DP_EXACT_AWAY,
    DP_EXACT_TIES_ZERO,
    DP_EXACT_TIES_AWAY,
    DP_EXACT_DIRECTIONS
} dp_exact_direction;

/* A list of values with, for every direction, the first f32 magnitude of every code. */
typedef struct {
    uint32_t finite; /* number of finite magnitude codes                                  */
    double *value;   /* finite + 1: the last one continues the grid beyond the top        */
    uint32_t *first[DP_EXACT_DIRECTIONS]; /* [direction][code], finite + 1: the smallest f32
                                             magnitude bits that give at least `code`; the last one
                                             begins the overflow (0x7F800000: none is finite) */
} dp_exact_list;

/* Build and release. The lists take some milliseconds (BF16: 32640 codes). */
dp_exact_list dp_exact_list_of(const dp_exact_format *format);
dp_exact_list dp_exact_list_of_e8m0(void);
void dp_exact_list_free(dp_exact_list *list);

/* Place of a finite magnitude in the list: 0 .. finite, where `finite` means overflow. */
uint32_t dp_exact_place(const dp_exact_list *list, uint32_t magnitude_bits,
                        dp_exact_direction direction);
/* The direction in which a rounding moves magnitudes of one sign. Not for DP_RS. */
dp_exact_direction dp_exact_direction_of(dp_round round, bool negative);

/* The code of a place of the list, or of an infinity. */
uint32_t dp_exact_finish(const dp_exact_format *format, uint32_t place, bool negative,
                         bool infinite, dp_encode how);
/* The code of any f32: what dp_minifloat_encode must return. */
uint32_t dp_exact_encode(const dp_exact_format *format, const dp_exact_list *list, uint32_t bits,
                         dp_encode how);
/* Part of the way from one code to the next, cut to n bits: floor(2^n * fraction). *place: the
 * lower code. Finite inputs only. */
uint64_t dp_exact_fraction(const dp_exact_list *list, uint32_t magnitude_bits, unsigned n,
                           uint32_t *place);

/* What dp_e8m0_from_f32 must return. */
uint32_t dp_exact_encode_e8m0(const dp_exact_list *list, uint32_t bits, dp_e8m0_encode how);

/* Bits of the f32 that dp_minifloat_decode must return. */
uint32_t dp_exact_decode(const dp_exact_format *format, const dp_exact_list *list, uint32_t code);

#endif
