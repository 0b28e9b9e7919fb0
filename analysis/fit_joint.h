/* SPDX-License-Identifier: MIT
 *
 * The most codes that any affine map y = A x + B keeps on a sample, with proof. A score keeps its
 * code while A x + B lies in the code's rounding interval, so while (A, B) lies between two
 * parallel lines: the count is the number of such strips over a point, and it changes only on the
 * lines. FIT.md has the argument.
 */
#ifndef DP_ANALYSIS_FIT_JOINT_H
#define DP_ANALYSIS_FIT_JOINT_H

#include "analysis/fit.h"

enum { DP_FIT_VERTICES = 32 };

/* The box that the search proves its result in, {B, A}: -1..3 and 1/16..4, beyond which nearly
 * every score has the same code. */
extern const double dp_fit_plane_low[2], dp_fit_plane_high[2];

/* The polygon of (A, B) around a point in which no code of the sample changes, within a box. */
typedef struct {
    int vertices; /* in order around it; at most DP_FIT_VERTICES, 0 when it has no inside */
    double a[DP_FIT_VERTICES], b[DP_FIT_VERTICES];
    double a_low, a_high, b_low, b_high; /* its bounding box */
    double area;
} dp_fit_cell;

typedef struct {
    dp_fit_map map;   /* pair of f32 numbers with the most codes that was found */
    int64_t count;    /* codes it keeps, counted one by one                     */
    int64_t bound;    /* no real (A, B) of the box keeps more: proved           */
    dp_fit_cell cell; /* around the map                                         */
    size_t cells;     /* polygons with `bound` codes (some of them, when more than 256) */
    size_t boxes;     /* examined by the proof                                  */
} dp_fit_joint;

/* Box: B from low[0] to high[0], A from low[1] to high[1], rounded outwards to multiples of 2^-10,
 * inside +-8, A above 0 (at A = 0 all lines of a midpoint meet; elsewhere at most seven do).
 * weight: multiplicity of each group, NULL for once each. start: a map to begin with. Count and
 * bound are of the weighted sample. Errors: memory, or a sample that holds more than 2^31 scores.
 */
bool dp_fit_joint_find(const dp_fit_sample *sample, const uint32_t *weight, const double *low,
                       const double *high, const dp_fit_map *start, dp_fit_joint *joint,
                       dp_error *error);

/* Codes that an affine map keeps, counted one by one: exact for f32 coefficients, because x has 28
 * bits and A 24 [FIT.md]. */
int64_t dp_fit_count(const dp_fit_sample *sample, const uint32_t *weight, const dp_fit_map *map);

/* The polygon around the map's own (A, B). */
void dp_fit_cell_around(const dp_fit_sample *sample, const double *low, const double *high,
                        const dp_fit_map *map, dp_fit_cell *cell);

/* ---- for the two files of this part -------------------------------------------------------- */

/* Scores of one x: the strip low <= A x + B <= high (in quarters; DP_FIT_OPEN: no limit). Closed
 * at both ends, whatever ties do: a strip too wide only raises the bound. */
typedef struct {
    int32_t x;      /* in 2^-22 */
    int32_t weight; /* scores   */
    int8_t low, high;
} dp_fit_strip;

enum { DP_FIT_OPEN = 100 }; /* and -100 */

/* Ends of the rounding interval of a code, in quarters. */
void dp_fit_interval(int code, int8_t *low, int8_t *high);

/* Where two lines of strips cross: A = p 2^20 / q, B = (m q - p x) / (4 q). */
typedef struct {
    int64_t p, q;
    int64_t m, x;
} dp_fit_crossing;

/* The crossing of A x1 + B = m1 and A x2 + B = m2, x1 != x2. */
dp_fit_crossing dp_fit_cross(int32_t x1, int m1, int32_t x2, int m2);
double dp_fit_crossing_a(dp_fit_crossing at);
double dp_fit_crossing_b(dp_fit_crossing at);
/* Whether a strip holds the crossing, exactly. */
bool dp_fit_strip_holds(const dp_fit_strip *strip, dp_fit_crossing at);

/* The polygon in which every strip that holds the crossing overlaps, within the box. */
void dp_fit_cell_at(const dp_fit_strip *strips, size_t count, const double *low, const double *high,
                    dp_fit_crossing at, dp_fit_cell *cell);

#endif
