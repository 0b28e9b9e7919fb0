/* SPDX-License-Identifier: MIT
 *
 * The catalog, the second definition of tests/support/exact.c and the table of FORMATS.md F2 say
 * the same: the document is parsed, so that it cannot drift away from the code.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "exact.h"
#include "formats/catalog.h"
#include "support.h"

enum { COLUMNS = 10, CELL = 64 };

/* Cut "| a | b | ..." into trimmed cells; the number of cells. */
static int split_row(const char *line, char cells[COLUMNS][CELL])
{
    int count = 0;
    const char *p = strchr(line, '|');
    while (p != NULL && count < COLUMNS) {
        p++;
        const char *end = strchr(p, '|');
        if (end == NULL) {
            break;
        }
        const char *last = end;
        while (p < last && isspace((unsigned char)*p)) {
            p++;
        }
        while (last > p && isspace((unsigned char)last[-1])) {
            last--;
        }
        const size_t length = (size_t)(last - p) < CELL - 1u ? (size_t)(last - p) : CELL - 1u;
        memcpy(cells[count], p, length);
        cells[count++][length] = '\0';
        p = end;
    }
    return count;
}

/* "448", "2^-9", or a code such as "0x7F7F". */
static double value_of_cell(const char *cell, dp_minifloat f)
{
    if (strncmp(cell, "0x", 2) == 0) {
        return dp_minifloat_value((uint32_t)strtoul(cell, NULL, 16), f);
    }
    if (strncmp(cell, "2^", 2) == 0) {
        return ldexp(1.0, (int)strtol(cell + 2, NULL, 10));
    }
    return strtod(cell, NULL);
}

static dp_top top_of_cell(const char *cell)
{
    if (strncmp(cell, "all finite", 10) == 0) {
        return DP_TOP_FINITE;
    }
    if (strncmp(cell, "bare sign bit NaN", 17) == 0) {
        return DP_TOP_FNUZ;
    }
    return strncmp(cell, "Inf, NaN as 754", 15) == 0 ? DP_TOP_IEEE : DP_TOP_NAN;
}

static void check_row(char cells[COLUMNS][CELL], size_t row)
{
    const dp_minifloat f = dp_catalog_at(row);
    const dp_exact_format *e = dp_exact_format_at(row);
    ck_assert_msg(strcasecmp(cells[0], f.name) == 0, "row %zu is %s, not %s", row, cells[0],
                  f.name);
    ck_assert_str_eq(f.name, e->name);
    const long fields[4] = {cells[1][0] == '-' ? 0 : strtol(cells[1], NULL, 10),
                            strtol(cells[2], NULL, 10), strtol(cells[3], NULL, 10),
                            strtol(cells[4], NULL, 10)};
    const long code[4] = {f.has_sign, f.exponent_bits, f.mantissa_bits, f.bias};
    const long exact[4] = {(long)e->sign_bits, (long)e->exponent_bits, (long)e->mantissa_bits,
                           e->bias};
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(fields[i] == code[i] && fields[i] == exact[i], "%s, column %d: %ld %ld %ld",
                      f.name, i, fields[i], code[i], exact[i]);
    }
    ck_assert_msg(top_of_cell(cells[5]) == f.top, "%s: top codes", f.name);
    ck_assert_msg(value_of_cell(cells[6], f) == dp_minifloat_max(f) &&
                      dp_minifloat_max(f) == e->max,
                  "%s: largest", f.name);
    ck_assert_msg(value_of_cell(cells[7], f) == dp_minifloat_min_normal(f) &&
                      dp_minifloat_min_normal(f) == e->min_normal,
                  "%s: smallest normal", f.name);
    ck_assert_msg(value_of_cell(cells[8], f) == dp_minifloat_min_subnormal(f) &&
                      dp_minifloat_min_subnormal(f) == e->min_subnormal,
                  "%s: smallest subnormal", f.name);
}

START_TEST(document_and_code_agree)
{
    char path[512];
    FILE *file = fopen(dp_source_path(path, sizeof path, "formats/FORMATS.md"), "r");
    ck_assert_msg(file != NULL, "%s: cannot be opened", path);
    char line[1024];
    size_t rows = 0;
    bool inside = false;
    while (fgets(line, sizeof line, file) != NULL) {
        char cells[COLUMNS][CELL] = {{0}};
        const int count = split_row(line, cells);
        if (strncmp(line, "| format | sign | exponent |", 28) == 0) {
            inside = true;
        } else if (inside && count == COLUMNS && strncmp(cells[0], "---", 3) != 0) {
            check_row(cells, rows++);
        } else if (count == 0) {
            inside = false;
        }
    }
    (void)fclose(file);
    ck_assert_uint_eq(rows, dp_catalog_size());
    ck_assert_uint_eq(rows, DP_EXACT_FORMATS);
}
END_TEST

START_TEST(values_and_midpoints)
{
    const dp_minifloat f = dp_catalog_at((size_t)_i);
    const dp_exact_format *e = dp_exact_format_at((size_t)_i);
    dp_exact_list list = dp_exact_list_of(e);
    dp_tally tally = {0};
    ck_assert_uint_eq(list.finite, dp_minifloat_max_code(f) + 1u);
    ck_assert(list.value[list.finite - 1u] == e->max);
    for (uint32_t code = 0; code < dp_minifloat_codes(f); code++) {
        const double got = dp_minifloat_value(code, f);
        const double want = (double)dp_f32_from_bits(dp_exact_decode(e, &list, code));
        const bool equal = isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want);
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally, "%s 0x%x: %g, not %g", f.name, code, got, want);
        }
    }
    for (uint32_t code = 0; code < list.finite; code++) {
        const double want = (list.value[code] + list.value[code + 1u]) / 2.0;
        if (!dp_tally_check(&tally, dp_minifloat_midpoint(code, f) == want)) {
            dp_tally_note(&tally, "%s midpoint 0x%x", f.name, code);
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, dp_minifloat_codes(f));
}
END_TEST

/* The two thresholds that FORMATS.md F6 writes out. */
START_TEST(overflow_thresholds_of_the_document)
{
    dp_minifloat f;
    ck_assert(dp_catalog_find("e4m3", &f));
    ck_assert(dp_minifloat_midpoint(dp_minifloat_max_code(f), f) == 464.0);
    ck_assert(dp_catalog_find("e5m2", &f));
    ck_assert(dp_minifloat_midpoint(dp_minifloat_max_code(f), f) == 61440.0);
    ck_assert(dp_catalog_find("e2m1", &f));
    ck_assert(dp_minifloat_midpoint(dp_minifloat_max_code(f), f) == 7.0);
}
END_TEST

START_TEST(find_by_name)
{
    dp_minifloat f;
    for (size_t i = 0; i < dp_catalog_size(); i++) {
        ck_assert(dp_catalog_find(dp_catalog_at(i).name, &f));
        ck_assert_str_eq(f.name, dp_catalog_at(i).name);
    }
    ck_assert(!dp_catalog_find("e8m0", &f));
    ck_assert(!dp_catalog_find("", &f));
    ck_assert(!dp_catalog_find("E4M3", &f));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("catalog");
    TCase *tests = tcase_create("catalog");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, document_and_code_agree);
    tcase_add_loop_test(tests, values_and_midpoints, 0, DP_EXACT_FORMATS);
    tcase_add_test(tests, overflow_thresholds_of_the_document);
    tcase_add_test(tests, find_by_name);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
