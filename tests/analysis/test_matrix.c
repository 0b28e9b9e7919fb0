/* SPDX-License-Identifier: MIT
 *
 * Formats side by side. Quick: the published matrix at 256 keys, what each input does, the file.
 * With the argument "slow": 1024 keys and 24 heads, and the sweep of G at 4096 keys.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/matrix.h"
#include "scratch.h"

static bool slow;

static dp_matrix run_sections(const char *sections, uint64_t seed, size_t seq, size_t heads)
{
    dp_matrix m = {.seed = seed, .sms = 152, .seq = seq, .heads = heads, .dim = 128};
    dp_error error = {""};
    ck_assert_msg(dp_matrix_run(&m, sections, 0, &error), "%s", error.text);
    return m;
}

static const dp_matrix_row *row_of(const dp_matrix *m, const char *input, const char *name,
                                   double parameter)
{
    for (size_t i = 0; i < m->count; i++) {
        const dp_matrix_row *r = &m->rows[i];
        if (strcmp(r->input, input) == 0 && strcmp(r->name, name) == 0 &&
            (isnan(parameter) ? isnan(r->parameter) : r->parameter == parameter)) {
            return r;
        }
    }
    ck_abort_msg("no row %s %s", input, name);
    return NULL;
}

/* Rows whose rules are known repeat their digits; the TK rows only come near (MATRIX.md). */
static void compare_matrix(const dp_matrix *m)
{
    dp_tally tally = {0};
    for (size_t i = 0; i < m->count; i++) {
        const dp_matrix_row *r = &m->rows[i];
        if (isnan(r->published_rel_l2)) {
            continue;
        }
        const bool reading = strncmp(r->name, "direct-", 7) == 0;
        const double bound = reading ? 0.12 * r->published_rel_l2 : 1e-5;
        const double off = fabs(r->metrics.rel_l2 - r->published_rel_l2);
        printf("%s %.6f published %.6f\n", r->name, r->metrics.rel_l2, r->published_rel_l2);
        if (!dp_tally_check(&tally, off <= bound && fabs(r->metrics.cosine - r->published_cosine) <=
                                                        (reading ? 0.02 : 1e-5))) {
            dp_tally_note(&tally, "%s: %.6f %.6f, published %.6f %.6f", r->name, r->metrics.cosine,
                          r->metrics.rel_l2, r->published_cosine, r->published_rel_l2);
        }
    }
    dp_assert_tally(tally, 8);
}

START_TEST(published_matrix)
{
    dp_matrix m = slow ? run_sections("formats", 20260814, 1024, 24)
                       : run_sections("formats", 20260814, 256, 16);
    compare_matrix(&m);
    /* MX loses to NV on each side, as published */
    const double nv_nv = row_of(&m, "normal", "direct-nv-nv", NAN)->metrics.cosine;
    const double mx_nv = row_of(&m, "normal", "direct-mx-nv", NAN)->metrics.cosine;
    const double nv_mx = row_of(&m, "normal", "direct-nv-mx", NAN)->metrics.cosine;
    const double mx_mx = row_of(&m, "normal", "direct-mx-mx", NAN)->metrics.cosine;
    ck_assert(nv_nv > mx_nv && mx_nv > nv_mx && nv_mx > mx_mx);
    dp_matrix_free(&m);
}
END_TEST

/* The published order: powers of two are alike, 320 and 448 are better in NV/NV, and worse in
 * MX/NV; 2688 does not saturate, because G multiplies amax / 6. */
START_TEST(sweep_of_g)
{
    dp_matrix m = slow ? run_sections("g", 0, 4096, 24) : run_sections("g", 0, 256, 4);
    dp_tally tally = {0};
    for (size_t i = 0; i < m.count; i++) {
        const dp_matrix_row *r = &m.rows[i];
        printf("%s G=%g %.6f published %.6f\n", r->name, r->parameter, r->metrics.rel_l2,
               r->published_rel_l2);
        ck_assert(r->overflowed < 0.01); /* 448 + 1 ulp */
        if (!isnan(r->published_rel_l2) &&
            !dp_tally_check(&tally, fabs(r->metrics.rel_l2 - r->published_rel_l2) < 2e-3)) {
            dp_tally_note(&tally, "%s G=%g: %.6f, published %.6f", r->name, r->parameter,
                          r->metrics.rel_l2, r->published_rel_l2);
        }
    }
    dp_assert_tally(tally, slow ? 16 : 0);
    const dp_matrix_row *a = row_of(&m, "normal", "stabilised", 16);
    const dp_matrix_row *b = row_of(&m, "normal", "stabilised", 256);
    ck_assert_msg(fabs(a->metrics.rel_l2 - b->metrics.rel_l2) < 1e-4, "powers of two differ");
    dp_matrix_free(&m);
}
END_TEST

START_TEST(inputs_tell_routes_apart)
{
    dp_matrix m = run_sections("inputs", 20260814, 1024, 1);
    /* peaked: scales above 448 without a row maximum; every row that holds one is lost when raw */
    const dp_matrix_row *raw = row_of(&m, "q-x10", "shiftless-nv-nv-raw", NAN);
    ck_assert(raw->overflowed > 0.9 && raw->metrics.nonfinite_rows == raw->metrics.rows);
    ck_assert(row_of(&m, "q-x10", "shiftless-nv-nv", NAN)->metrics.nonfinite_rows == 0);
    ck_assert(row_of(&m, "q-x4", "hao-nv-nv", NAN)->flushed >
              50 * row_of(&m, "q-x4", "sage3", NAN)->flushed);
    /* a stale maximum saturates */
    ck_assert(row_of(&m, "q-x4", "fa4-fp8-offset8-threshold8", NAN)->metrics.rel_l2 >
              4 * row_of(&m, "q-x4", "fa4-fp8", NAN)->metrics.rel_l2);
    /* 5 % in the tail: E4M3 without a block scale loses it, MXFP8 and Direct-P keep it */
    ck_assert(row_of(&m, "tail", "hao-nv-fp8", NAN)->lost_mass > 0.04);
    ck_assert(fabs(row_of(&m, "tail", "hao-nv-mxfp8", NAN)->lost_mass) < 0.005);
    ck_assert(fabs(row_of(&m, "tail", "fast", NAN)->lost_mass) < 0.005);
    ck_assert(fabs(row_of(&m, "ones", "accurate", NAN)->lost_mass) < 0.005);
    dp_error error = {""};
    dp_matrix again;
    ck_assert_msg(dp_matrix_save(&m, scratch("m.h5"), &error), "%s", error.text);
    ck_assert_msg(dp_matrix_load(&again, scratch("m.h5"), &error), "%s", error.text);
    ck_assert_uint_eq(again.count, m.count);
    for (size_t i = 0; i < m.count; i++) {
        ck_assert_str_eq(again.rows[i].name, m.rows[i].name);
        ck_assert(memcmp(&again.rows[i].metrics.rmse, &m.rows[i].metrics.rmse, 8) == 0);
    }
    dp_matrix_free(&again);
    dp_matrix_free(&m);
    scratch_remove();
}
END_TEST

int main(int argc, char **argv)
{
    slow = argc > 1 && strcmp(argv[1], "slow") == 0;
    Suite *suite = suite_create("matrix");
    TCase *tests = tcase_create("matrix");
    tcase_add_test(tests, published_matrix);
    tcase_add_test(tests, sweep_of_g);
    if (!slow) {
        tcase_add_test(tests, inputs_tell_routes_apart);
    }
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
