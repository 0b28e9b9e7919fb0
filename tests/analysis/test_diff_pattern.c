/* SPDX-License-Identifier: MIT
 *
 * Where mismatches lie and how far off groups of them are, on data made for it.
 */
#include <math.h>
#include <stdio.h>

#include "analysis/diff_pattern.h"
#include "support.h"

enum { MAP = 128 };

static dp_diff_cluster cluster(size_t rows, size_t columns, size_t (*at)[2], size_t count,
                               dp_diff_spread *spread)
{
    static uint32_t map[MAP * MAP];
    memset(map, 0, sizeof map);
    for (size_t i = 0; i < count; i++) {
        const dp_diff_place place = {.row = at[i][0], .column = at[i][1], .expected = 1};
        dp_diff_spread_add(spread, &place, i == 0);
        const size_t y = rows > MAP ? at[i][0] * MAP / rows : at[i][0];
        const size_t x = columns > MAP ? at[i][1] * MAP / columns : at[i][1];
        map[y * MAP + x]++;
    }
    return dp_diff_cluster_of(map, MAP, rows, rows, columns, count);
}

/* One 16 x 16 tile of 1024 x 1024 is 0.024 % of it, and a fault all the same. */
START_TEST(case_106_a_rare_tile_is_clustered)
{
    static size_t tile[256][2], loose[256][2];
    dp_rng rng = {106};
    dp_diff_spread spread;
    for (size_t i = 0; i < 256; i++) {
        tile[i][0] = 512 + i / 16;
        tile[i][1] = 256 + i % 16;
        loose[i][0] = dp_rng_below(&rng, 1024);
        loose[i][1] = dp_rng_below(&rng, 1024);
    }
    dp_diff_cluster c = cluster(1024, 1024, tile, 256, &spread);
    ck_assert(c.clustered);
    ck_assert_uint_eq(c.used, 4);
    ck_assert_double_gt(c.diffuse, 250.0);
    ck_assert_uint_eq(spread.row_first, 512);
    ck_assert_uint_eq(spread.row_last, 527);
    ck_assert_uint_eq(spread.column_first, 256);
    ck_assert_uint_eq(spread.column_last, 271);
    ck_assert_uint_eq(spread.longest_run, 16);
    c = cluster(1024, 1024, loose, 256, &spread);
    ck_assert(!c.clustered);
    ck_assert_uint_gt(c.used, 240);
    c = cluster(1024, 1024, tile, 7, &spread); /* too few to tell */
    ck_assert(!c.clustered);
}
END_TEST

/* Everything that a dump holds is wrong, and it holds half of the rows: not half diffuse. */
START_TEST(rows_that_are_not_dumped_are_no_cells)
{
    static uint32_t map[MAP * MAP];
    for (size_t i = MAP * MAP / 2; i < MAP * MAP; i++) {
        map[i] = 4;
    }
    const dp_diff_cluster c = dp_diff_cluster_of(map, MAP, 256, 128, 256, 4 * MAP * MAP / 2);
    ck_assert_uint_eq(c.cells, MAP * MAP / 2);
    ck_assert_uint_eq(c.used, c.cells);
    ck_assert(!c.clustered);
    ck_assert_double_le(c.diffuse, (double)c.cells);
    ck_assert_uint_eq(dp_diff_cluster_of(map, MAP, 256, 1, 256, 9).cells, MAP * MAP / 2);
}
END_TEST

START_TEST(residues_name_a_lane)
{
    static size_t at[64][2];
    dp_rng rng = {5};
    dp_diff_spread spread;
    char text[120];
    for (size_t i = 0; i < 64; i++) {
        at[i][0] = dp_rng_below(&rng, 512);
        at[i][1] = 16 * dp_rng_below(&rng, 32) + 5;
    }
    (void)cluster(512, 512, at, 64, &spread);
    ck_assert_str_eq(dp_diff_residue_text(&spread, 512, 512, text), "all at columns 5 (mod 16)");
    for (size_t i = 0; i < 64; i++) {
        at[i][0] = 128 * (i % 4);
        at[i][1] = i;
    }
    (void)cluster(512, 512, at, 64, &spread);
    ck_assert_str_eq(dp_diff_residue_text(&spread, 512, 512, text), "all at rows 0 (mod 128)");
    ck_assert_str_eq(dp_diff_residue_text(&spread, 512, 512, text), text);
}
END_TEST

/* Heads x rows x columns of x, each element times factor(head, row, column), compared. */
typedef double factor_at(size_t head, size_t row, size_t column);

static const char *factor(size_t heads, size_t rows, factor_at *by, bool only_wrong,
                          char detail[DP_DIFF_DETAIL])
{
    static dp_diff_groups groups;
    enum { COLUMNS = 512 };
    static double x[COLUMNS], y[COLUMNS];
    dp_rng rng = {102};
    memset(&groups, 0, sizeof groups);
    for (size_t i = 0; i < heads * rows; i++) {
        bool wrong = false;
        for (size_t c = 0; c < COLUMNS; c++) {
            const float value = (float)dp_rng_normal(&rng);
            const double f = by(i / rows, i % rows, c);
            x[c] = (double)value;
            y[c] = (double)(float)(f * x[c]);
            wrong = wrong || f != 1.0;
        }
        const dp_diff_place at = {.head = i / rows, .row = i % rows};
        if (wrong || !only_wrong) {
            dp_diff_groups_row(&groups, &at, 128, 0, COLUMNS, x, y, true);
        }
    }
    const size_t totals[DP_GROUP_AXES] = {heads, (rows + 127) / 128, COLUMNS / 128};
    return dp_diff_factor(&groups, totals, false, true, detail);
}

static double constant_of_group_0(size_t head, size_t row, size_t column)
{
    static const double by[] = {1.0, 0.5, 0.2};
    (void)row;
    (void)column;
    return by[head];
}
static double compounding(size_t head, size_t row, size_t column)
{
    (void)head;
    (void)row;
    return pow(1.4426950408889634, (double)(column / 128));
}
static double one_tile(size_t head, size_t row, size_t column)
{
    (void)head;
    (void)column;
    return row / 128 == 1 ? 3.0 : 1.0;
}
static double two_percent_noise(size_t head, size_t row, size_t column)
{
    return 1.0 + 0.02 * (double)((head * 7 + row * 13 + column * 29) % 11);
}

/* Every group was encoded with the constant of group 0: 1, 2, 5. */
START_TEST(case_102_the_constant_of_one_group)
{
    char detail[DP_DIFF_DETAIL];
    const char *name = factor(3, 64, constant_of_group_0, true, detail);
    ck_assert_ptr_nonnull(name);
    ck_assert_str_eq(name, "factor-by-head");
    ck_assert_str_eq(detail, "head 1: x 0.5, head 2: x 0.2");
}
END_TEST

/* The softmax scale is multiplied in at every key tile. */
START_TEST(case_94_a_scale_that_compounds)
{
    char detail[DP_DIFF_DETAIL];
    const char *name = factor(2, 64, compounding, true, detail);
    ck_assert_ptr_nonnull(name);
    ck_assert_str_eq(name, "factor-by-column-tile");
    ck_assert_msg(strstr(detail, "column tile 2: x 2.08137") != NULL, "%s", detail);
    ck_assert_msg(strstr(detail, "a geometric series") != NULL, "%s", detail);
}
END_TEST

/* A row scale that is applied twice from the second wave on: row 128 is the first bad one. */
START_TEST(case_104_a_later_tile)
{
    char detail[DP_DIFF_DETAIL];
    const char *name = factor(2, 256, one_tile, true, detail);
    ck_assert_ptr_nonnull(name);
    ck_assert_str_eq(name, "factor-by-query-tile");
    ck_assert_str_eq(detail, "query tile 1: x 3");
}
END_TEST

START_TEST(noise_is_no_factor)
{
    char detail[DP_DIFF_DETAIL];
    ck_assert_ptr_null(factor(2, 64, two_percent_noise, true, detail));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diff pattern");
    TCase *tests = tcase_create("pattern");
    tcase_add_test(tests, case_106_a_rare_tile_is_clustered);
    tcase_add_test(tests, rows_that_are_not_dumped_are_no_cells);
    tcase_add_test(tests, residues_name_a_lane);
    tcase_add_test(tests, case_102_the_constant_of_one_group);
    tcase_add_test(tests, case_94_a_scale_that_compounds);
    tcase_add_test(tests, case_104_a_later_tile);
    tcase_add_test(tests, noise_is_no_factor);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
