/* SPDX-License-Identifier: MIT
 *
 * How far a decoded array is from its source. Sums are double, compensated, in index order, so they
 * do not depend on threads.
 */
#ifndef DP_ANALYSIS_ERRORS_H
#define DP_ANALYSIS_ERRORS_H

#include "formats/base.h"

typedef struct {
    uint64_t elements;
    uint64_t compared;  /* both finite; the error figures are over these */
    uint64_t nonzero;   /* source is not 0 (NaN counts) */
    uint64_t underflow; /* decoded value is 0, source is not: by value, never by byte */
    uint64_t nan_in, inf_in, nan_out, inf_out;
    double amax;   /* largest finite source magnitude */
    double cosine; /* NaN when either side is all 0 */
    double rel_l2; /* |y - x| / |x|; NaN when the source is all 0 */
    double rmse;
    double mean_error;  /* of y - x, signed */
    double worst_error; /* largest |y - x| */
} dp_errors;

/* x: source, y: decoded, `count` elements each. */
void dp_errors_of(const float *x, const float *y, size_t count, dp_errors *errors);

/* Underflow in percent of all elements and of the nonzero ones; 0 of 0 is 0. */
double dp_underflow_of_all(const dp_errors *errors);
double dp_underflow_of_nonzero(const dp_errors *errors);

#endif
