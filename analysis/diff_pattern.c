/* SPDX-License-Identifier: MIT */
#include "analysis/diff_pattern.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- where -------------------------------------------------------------------------------------
 */

void dp_diff_spread_add(dp_diff_spread *s, const dp_diff_place *p, bool first)
{
    if (first) {
        memset(s, 0, sizeof *s);
        s->row_first = s->row_last = p->row;
        s->column_first = s->column_last = p->column;
        s->head_first = s->head_last = p->head;
    }
    s->row_first = p->row < s->row_first ? p->row : s->row_first;
    s->row_last = p->row > s->row_last ? p->row : s->row_last;
    s->column_first = p->column < s->column_first ? p->column : s->column_first;
    s->column_last = p->column > s->column_last ? p->column : s->column_last;
    s->head_first = p->head < s->head_first ? p->head : s->head_first;
    s->head_last = p->head > s->head_last ? p->head : s->head_last;
    s->rows[p->row % 128 / 64] |= (uint64_t)1 << p->row % 64;
    s->columns[p->column % 128 / 64] |= (uint64_t)1 << p->column % 64;
    s->run = !first && p->row == s->last_row && p->column == s->last_column + 1 ? s->run + 1 : 1;
    s->longest_run = s->run > s->longest_run ? s->run : s->longest_run;
    s->last_row = p->row;
    s->last_column = p->column;
    const uint32_t bits = p->expected ^ p->found;
    s->one_bit += bits != 0 && (bits & (bits - 1)) == 0;
}

dp_diff_cluster dp_diff_cluster_of(const uint32_t *map, size_t map_columns, size_t rows,
                                   size_t covered, size_t columns, uint64_t mismatches)
{
    const size_t high = rows < map_columns ? rows : map_columns;
    const size_t wide = columns < map_columns ? columns : map_columns;
    dp_diff_cluster c = {.cells =
                             (uint64_t)(rows > 0 ? (high * covered + rows - 1) / rows : 0) * wide};
    for (size_t i = 0; i < high * wide; i++) {
        c.used += map[i / wide * map_columns + i % wide] > 0;
    }
    c.cells =
        c.used > c.cells ? c.used : c.cells; /* windows that share a cell with what is between */
    /* n balls into C cells fill C (1 - (1 - 1/C)^n) of them on average */
    const double cells = (double)c.cells;
    c.diffuse = cells > 1.0 ? -cells * expm1((double)mismatches * log1p(-1.0 / cells)) : 1.0;
    c.clustered = mismatches >= 8 && (double)c.used < 0.5 * c.diffuse;
    return c;
}

static bool bit_of(const uint64_t bits[2], size_t i)
{
    return (bits[i / 64] >> i % 64 & 1u) != 0;
}

/* The largest modulus up to 128 under which all indices have one residue; 1 when there is none. */
static size_t modulus_of(const uint64_t bits[2], size_t *residue)
{
    for (size_t m = 128; m > 1; m /= 2) {
        size_t seen = 0;
        for (size_t r = 0; r < m; r++) {
            bool any = false;
            for (size_t i = r; i < 128; i += m) {
                any = any || bit_of(bits, i);
            }
            seen += any;
            *residue = any ? r : *residue;
        }
        if (seen == 1) {
            return m;
        }
    }
    return 1;
}

const char *dp_diff_residue_text(const dp_diff_spread *s, size_t rows, size_t columns,
                                 char text[120])
{
    size_t row = 0, column = 0;
    const size_t row_modulus = s->row_first == s->row_last ? 1 : modulus_of(s->rows, &row);
    const size_t column_modulus =
        s->column_first == s->column_last ? 1 : modulus_of(s->columns, &column);
    int used = 0;
    text[0] = '\0';
    if (row_modulus > 1 && rows > row_modulus) {
        used = snprintf(text, 120, "all at rows %zu (mod %zu)", row, row_modulus);
    }
    if (column_modulus > 1 && columns > column_modulus) {
        (void)snprintf(text + used, 120 - (size_t)used, "%sall at columns %zu (mod %zu)",
                       used > 0 ? ", " : "", column, column_modulus);
    }
    return text;
}

/* ---- how far -----------------------------------------------------------------------------------
 */

static void add(dp_diff_sums *s, double x, double y)
{
    s->n += 1.0;
    s->sx += x;
    s->sy += y;
    s->sxx += x * x;
    s->sxy += x * y;
    s->syy += y * y;
}

/* Part of the energy of y that is left after y = factor x, or after y = x + constant. */
static double rest_of(const dp_diff_sums *s, bool offset)
{
    if (offset) {
        const double mean = (s->sy - s->sx) / s->n;
        const double squares = s->syy - 2.0 * s->sxy + s->sxx; /* of y - x */
        return fmax(0.0, squares - s->n * mean * mean) / fmax(s->sxx + s->syy, 1e-300);
    }
    return s->sxx > 0.0 && s->syy > 0.0 ? fmax(0.0, 1.0 - s->sxy / s->sxx * (s->sxy / s->syy))
                                        : 1.0;
}

static double value_of(const dp_diff_sums *s, bool offset)
{
    return offset ? (s->sy - s->sx) / s->n : s->sxy / s->sxx;
}

/* Two factors (constants) are the same within the roundings of the data. */
static bool same(double a, double b, bool offset, bool precise)
{
    const double scale = offset ? 1.0 : fmax(fabs(a), fabs(b));
    return fabs(a - b) <= scale * (precise ? 1e-5 : 4e-3);
}

static double most_rest(bool precise)
{
    return precise ? 1e-10 : 3e-5;
}

static void add_to(dp_diff_sums *to, const dp_diff_sums *more)
{
    to->n += more->n;
    to->sx += more->sx;
    to->sy += more->sy;
    to->sxx += more->sxx;
    to->sxy += more->sxy;
    to->syy += more->syy;
}

/* Sums of a run of columns; pairs that are not both finite are left out. */
static dp_diff_sums sums_of(const double *x, const double *y, size_t count, bool *broken)
{
    dp_diff_sums all = {0}, finite = {0};
    for (size_t i = 0; i < count; i++) {
        add(&all, x[i], y[i]);
    }
    if (isfinite(all.sxx) && isfinite(all.syy)) {
        return all;
    }
    for (size_t i = 0; i < count; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            add(&finite, x[i], y[i]);
        } else {
            *broken = *broken || isfinite(x[i]) || isfinite(y[i]);
        }
    }
    return finite;
}

dp_diff_sums dp_diff_groups_row(dp_diff_groups *g, const dp_diff_place *at, size_t column_tile,
                                size_t first, size_t columns, const double *x, const double *y,
                                bool precise)
{
    const size_t head = (size_t)at->head;
    const size_t tile = (size_t)at->row / DP_TILE;
    dp_diff_sums row = {0};
    g->too_many[DP_GROUP_HEAD] |= head >= DP_DIFF_GROUPS;
    g->too_many[DP_GROUP_QUERY_TILE] |= tile >= DP_DIFF_GROUPS;
    g->too_many[DP_GROUP_COLUMN_TILE] |= column_tile == 0;
    for (size_t i = 0; i < columns;) {
        const size_t group = column_tile > 0 ? (first + i) / column_tile : 0;
        const size_t end = column_tile > 0 ? (group + 1) * column_tile - first : columns;
        const size_t count = (end < columns ? end : columns) - i;
        const dp_diff_sums sums = sums_of(x + i, y + i, count, &g->broken);
        add_to(&row, &sums);
        g->too_many[DP_GROUP_COLUMN_TILE] |= group >= DP_DIFF_GROUPS;
        add_to(&g->sums[DP_GROUP_COLUMN_TILE][group % DP_DIFF_GROUPS], &sums);
        i += count;
    }
    add_to(&g->sums[DP_GROUP_HEAD][head % DP_DIFF_GROUPS], &row);
    add_to(&g->sums[DP_GROUP_QUERY_TILE][tile % DP_DIFF_GROUPS], &row);
    g->rows++;
    if (row.n > 1.0 && rest_of(&row, false) <= most_rest(precise)) {
        const double factor = value_of(&row, false);
        g->least = g->scaled_rows == 0 || factor < g->least ? factor : g->least;
        g->most = g->scaled_rows == 0 || factor > g->most ? factor : g->most;
        g->scaled_rows++;
    }
    return row;
}

/* Each group has a factor of its own that leaves nothing. */
static bool axis_explains(const dp_diff_groups *g, dp_group axis, bool offset, bool precise)
{
    bool any = false;
    for (size_t i = 0; i < DP_DIFF_GROUPS; i++) {
        const dp_diff_sums *s = &g->sums[axis][i];
        if (s->n > 0.0 && s->sxx + s->syy > 0.0) {
            any = true;
            if (rest_of(s, offset) > most_rest(precise)) {
                return false;
            }
        }
    }
    return any && !g->too_many[axis];
}

/* 1, r, r^2, ... from some group on: the factor is applied once more at every tile. */
static bool geometric(const double *values, size_t count)
{
    bool good = count >= 3 && fabs(values[1] / values[0] - 1.0) > 1e-3;
    for (size_t i = 2; good && i < count; i++) {
        good = fabs(values[i] * values[i - 2] - values[i - 1] * values[i - 1]) <=
               1e-3 * values[i - 1] * values[i - 1];
    }
    return good;
}

/* "head 2: x 0.5"; the number of different values, of groups, and the last value. */
static size_t list_groups(const dp_diff_groups *g, dp_group axis, bool offset, bool precise,
                          char detail[DP_DIFF_DETAIL], size_t *groups, double *value)
{
    static const char *const names[] = {"head", "query tile", "column tile"};
    double values[DP_DIFF_GROUPS];
    size_t different = 0, used = 0;
    *groups = 0;
    detail[0] = '\0';
    for (size_t i = 0; i < DP_DIFF_GROUPS; i++) {
        const dp_diff_sums *s = &g->sums[axis][i];
        if (s->n == 0.0 || s->sxx + s->syy == 0.0) {
            continue;
        }
        *value = value_of(s, offset);
        different += *groups == 0 || !same(*value, values[0], offset, precise);
        values[(*groups)++] = *value;
        if (!same(*value, offset ? 0.0 : 1.0, offset, precise) && used < DP_DIFF_DETAIL - 60) {
            const int n =
                snprintf(detail + used, DP_DIFF_DETAIL - used, "%s%s %zu: %s%.6g",
                         used > 0 ? ", " : "", names[axis], i, offset ? "+" : "x ", *value);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (!offset && geometric(values, *groups)) {
        (void)snprintf(detail + used, DP_DIFF_DETAIL - used, "; a geometric series");
    }
    return different;
}

const char *dp_diff_factor(const dp_diff_groups *g, const size_t totals[DP_GROUP_AXES], bool offset,
                           bool precise, char detail[DP_DIFF_DETAIL])
{
    static const char *const names[2][DP_GROUP_AXES] = {
        {"factor-by-head", "factor-by-query-tile", "factor-by-column-tile"},
        {"offset-by-head", "offset-by-query-tile", "offset-by-column-tile"}};
    static const dp_group order[] = {DP_GROUP_COLUMN_TILE, DP_GROUP_HEAD, DP_GROUP_QUERY_TILE};
    bool uniform = false;
    double value = 0.0;
    if (g->broken) {
        return NULL;
    }
    for (int i = 0; i < DP_GROUP_AXES; i++) {
        const dp_group axis = order[i];
        if (!axis_explains(g, axis, offset, precise)) {
            continue;
        }
        size_t groups = 0;
        const size_t values = list_groups(g, axis, offset, precise, detail, &groups, &value);
        if (detail[0] == '\0') { /* the same but for roundings */
            return NULL;
        }
        if (totals[axis] > 1 && (values > 1 || groups < totals[axis])) {
            return names[offset][axis];
        }
        uniform = uniform || values == 1;
    }
    if (uniform) {
        (void)snprintf(detail, DP_DIFF_DETAIL, "%s%.9g everywhere", offset ? "+" : "x ", value);
        return offset ? "offset" : "factor";
    }
    if (!offset && g->rows > 0 && g->scaled_rows == g->rows) {
        (void)snprintf(detail, DP_DIFF_DETAIL, "each row has a factor of its own, %.6g to %.6g",
                       g->least, g->most);
        return "factor-by-row";
    }
    return NULL;
}
