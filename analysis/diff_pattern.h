/* SPDX-License-Identifier: MIT
 *
 * Where mismatches lie and how far off groups of them are: a wrong tile, head or lane shows as
 * clustered mismatches or as a factor of its own, a rounding rule as diffuse ones.
 */
#ifndef DP_ANALYSIS_DIFF_PATTERN_H
#define DP_ANALYSIS_DIFF_PATTERN_H

#include "analysis/diff_unit.h"

enum { DP_DIFF_DETAIL = DP_UNIT_NOTE, DP_DIFF_GROUPS = 256 };

typedef struct {
    uint64_t batch, head, row, column; /* of the operator; row: key or feature of key-side data */
    uint32_t expected, found;          /* bits */
    uint64_t distance;                 /* in codes or ulps; UINT64_MAX with a NaN */
} dp_diff_place;

typedef struct {
    uint64_t row_first, row_last, column_first, column_last; /* box around all mismatches */
    uint64_t head_first, head_last;
    uint64_t rows[2], columns[2]; /* bit i: a mismatch with index % 128 = i */
    uint64_t run, longest_run;    /* neighbours in a row */
    uint64_t last_row, last_column;
    uint64_t one_bit; /* mismatches that differ in a single bit */
} dp_diff_spread;

/* y = found, x = expected over the rows that differ. */
typedef struct {
    double n, sx, sy, sxx, sxy, syy;
} dp_diff_sums;

typedef enum { DP_GROUP_HEAD, DP_GROUP_QUERY_TILE, DP_GROUP_COLUMN_TILE, DP_GROUP_AXES } dp_group;

typedef struct {
    dp_diff_sums sums[DP_GROUP_AXES][DP_DIFF_GROUPS];
    bool too_many[DP_GROUP_AXES];
    bool broken;                /* a finite number against one that is not: no factor explains it */
    uint64_t rows, scaled_rows; /* rows that differ; those that are the oracle's times a factor */
    double least, most;         /* of these factors */
} dp_diff_groups;

void dp_diff_spread_add(dp_diff_spread *spread, const dp_diff_place *place, bool first);
/* Cells of the 128 x 128 map of rows x columns, of which `covered` rows were compared, with
 * mismatches, and how many `mismatches` of a diffuse kind would
 * fill. Clustered: fewer than half of these. */
typedef struct {
    uint64_t used, cells;
    double diffuse;
    bool clustered;
} dp_diff_cluster;
dp_diff_cluster dp_diff_cluster_of(const uint32_t *map, size_t map_columns, size_t rows,
                                   size_t covered, size_t columns, uint64_t mismatches);
/* "all at rows 5 (mod 16)", or empty. */
const char *dp_diff_residue_text(const dp_diff_spread *spread, size_t rows, size_t columns,
                                 char text[120]);

/* One row that differs: expected x, found y, as numbers. precise: f32, else bf16. Its sums. */
dp_diff_sums dp_diff_groups_row(dp_diff_groups *groups, const dp_diff_place *at, size_t column_tile,
                                size_t first, size_t columns, const double *x, const double *y,
                                bool precise);
/* A factor (offset: a constant that is added) that explains every row that differs: its name and
 * the groups, or NULL. totals: groups of the whole comparison along each axis. */
const char *dp_diff_factor(const dp_diff_groups *groups, const size_t totals[DP_GROUP_AXES],
                           bool offset, bool precise, char detail[DP_DIFF_DETAIL]);

#endif
