/* SPDX-License-Identifier: MIT
 *
 * Every format by name, with the tables of the field (values, midpoints, limits) generated from its
 * description.
 */
#ifndef DP_FORMATS_CATALOG_H
#define DP_FORMATS_CATALOG_H

#include "formats/minifloat.h"

DP_BEGIN_C

/* The descriptions: e2m1 e2m3 e3m2 e4m3 ue4m3 e5m2 ue5m3 e4m3fnuz e5m2fnuz fp16 bf16. E8M0 is not
 * among them: it has no mantissa, no zero and its own rules (e8m0.h). */
size_t dp_catalog_size(void);
/* index: 0 .. dp_catalog_size() - 1 */
dp_minifloat dp_catalog_at(size_t index);
/* Find by name; false when there is no such format. */
bool dp_catalog_find(const char *name, dp_minifloat *format);

/* Number of codes, sign included: 2^width. */
uint32_t dp_minifloat_codes(dp_minifloat f);
/* Value of a code as a double, exact; NaN and infinities as such. */
double dp_minifloat_value(uint32_t code, dp_minifloat f);
/* Value halfway between magnitude codes `code` and `code + 1` on the grid continued above the top
 * (for the largest finite code: the smallest magnitude that nearest rounding overflows). Exact. */
double dp_minifloat_midpoint(uint32_t code, dp_minifloat f);
/* Largest finite value, smallest normal and smallest subnormal value. */
double dp_minifloat_max(dp_minifloat f);
double dp_minifloat_min_normal(dp_minifloat f);
double dp_minifloat_min_subnormal(dp_minifloat f);

DP_END_C

#endif
