/* SPDX-License-Identifier: MIT
 *
 * Histories and the conditions on them: times, the grammar, appending that is whole or nothing, old
 * and foreign histories, two writers.
 */
#include <hdf5.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "analysis/condition.h"
#include "scratch.h"

static dp_run_row a_row(const char *series, const char *label, double mismatches, double rel_l2)
{
    dp_run_row row;
    memset(&row, 0, sizeof row);
    dp_run_set_text(&row, DP_RUN_TIME, "2026-11-29T21:30:00Z");
    dp_run_set_text(&row, DP_RUN_SERIES, series);
    dp_run_set_text(&row, DP_RUN_KIND, "dump");
    dp_run_set_text(&row, DP_RUN_LABEL, label);
    dp_run_set(&row, DP_RUN_MISMATCHES, mismatches);
    dp_run_set(&row, DP_RUN_REL_L2, rel_l2);
    return row;
}

static void append(const char *path, dp_run_row row)
{
    dp_error error = {""};
    ck_assert_msg(dp_history_append(path, &row, 1, NULL, 0, &error), "%s", error.text);
}

static dp_history load(const char *path)
{
    dp_history history;
    dp_error error = {""};
    ck_assert_msg(dp_history_load(&history, path, &error), "%s", error.text);
    return history;
}

START_TEST(times)
{
    static const struct {
        const char *given, *utc; /* NULL: refused */
    } cases[] = {
        {"2026-11-29", "2026-11-29T00:00:00Z"},
        {"2026-11-29T21:30", "2026-11-29T21:30:00Z"},
        {"2026-11-29T21:30:05", "2026-11-29T21:30:05Z"},
        {"2026-11-29 21:30:05Z", "2026-11-29T21:30:05Z"},
        {"2026-11-29T23:30:00-01:00", "2026-11-30T00:30:00Z"},
        {"2026-01-01T00:15+0130", "2025-12-31T22:45:00Z"},
        {"2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"},
        {"2000-02-29", "2000-02-29T00:00:00Z"},
        {"1999-12-31T23:59:59-00:01", "2000-01-01T00:00:59Z"},
        {"1969-07-20T20:17Z", "1969-07-20T20:17:00Z"},
        {"2023-02-29", NULL},
        {"1900-02-29", NULL},
        {"2026-13-01", NULL},
        {"2026-00-01", NULL},
        {"2026-11-31", NULL},
        {"2026-11-29T24:00", NULL},
        {"2026-11-29T23:60", NULL},
        {"2026-11-29T23:59:60", NULL},
        {"2026-11-29T21:30ZZ", NULL},
        {"2026-11-29T21:30+1", NULL},
        {"2026-11-29T21", NULL},
        {"29.11.2026", NULL},
        {"yesterday", NULL},
        {"", NULL},
        {"2026-11-29Z", NULL},
        {"20261129T213000Z", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char utc[DP_RUN_TEXT_SIZE] = "";
        dp_error error = {""};
        const bool good = dp_time_parse(cases[i].given, utc, &error);
        ck_assert_msg(good == (cases[i].utc != NULL), "%s: %s", cases[i].given, error.text);
        ck_assert_msg(!good || strcmp(utc, cases[i].utc) == 0, "%s: %s", cases[i].given, utc);
    }
}
END_TEST

START_TEST(bad_conditions)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "a number or a name is due"},
        {"code_match", "a comparison is due"},
        {"code_match <", "it ends where"},
        {"code_match = 1", "'==' is"},
        {"code_match < 1 < 2", "should end here"},
        {"code_match < 1,", "it ends where"},
        {",code_match < 1", "is due here"},
        {"code_match < (1", "')' is missing"},
        {"code_match < 1)", "should end here"},
        {"code_match < 0x10", "decimal"},
        {"code_match < 1.2.3", "should end here"},
        {"code_match < 5e", "no number"},
        {"code_match < 1e400x", "no number"},
        {"code_match & 1", "a comparison is due"},
        {"code_match < 1 and zero_scale > 1", "should end here"},
        {"code_matches < 1", "code_match "},
        {"Code_match < 1", "there is no 'Code_match'"},
        {"nan < 1", "there is no 'nan'"},
        {"1 < last", "last.NAME"},
        {"last. < 1", "there is no ''"},
        {"last.foo < 1", "there is no 'foo'"},
        {"best.elements > 1", "neither more nor less"},
        {"elements > best", "neither more nor less"},
        {"last.last > 1", "there is no 'last'"},
        {"rms < --", "it ends where"},
        {"rms < * 2", "is due here"},
        {"mismatches>0;rel_l2>1", "should end here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_error error = {""};
        dp_conditions *c = dp_conditions_parse(&cases[i].text, 1, &error);
        ck_assert_msg(c == NULL, "'%s' was taken", cases[i].text);
        ck_assert_msg(strstr(error.text, cases[i].says) != NULL, "'%s': %s", cases[i].text,
                      error.text);
    }
    /* Nested too deeply, too many, too long: an error, no overflow. */
    char deep[4096] = "rms < ";
    memset(deep + 6, '(', 1000);
    deep[1006] = '\0';
    const char *text = deep;
    dp_error error = {""};
    ck_assert_ptr_null(dp_conditions_parse(&text, 1, &error));
    memset(deep + 6, '-', 1000);
    ck_assert_ptr_null(dp_conditions_parse(&text, 1, &error));
    deep[6] = '\0';
    for (int i = 0; i < 80; i++) {
        (void)snprintf(deep + 6 + 2 * i, 8, "1+1");
    }
    ck_assert_ptr_null(dp_conditions_parse(&text, 1, &error));
    for (int i = 0; i < 40; i++) {
        (void)snprintf(deep + 6 * i, 8, i == 39 ? "rms<1" : "rms<1,");
    }
    ck_assert_ptr_null(dp_conditions_parse(&text, 1, &error));
}
END_TEST

/* The condition on a row with 10 mismatches and rel_l2 0.3, after three runs and others' runs. */
START_TEST(judgements)
{
    static const struct {
        const char *text;
        int holds; /* -1: refused */
    } cases[] = {
        {"mismatches>0", 1},
        {"mismatches>10", 0},
        {"mismatches>=10", 1},
        {"mismatches<10", 0},
        {"mismatches<=10", 1},
        {"mismatches==10", 1},
        {"mismatches!=10", 0},
        {"10 < mismatches", 0},
        {"rel_l2>30%", 0},
        {"rel_l2>29.9%", 1},
        {"mismatches > 2+2*4-1", 1},   /* 9 */
        {"mismatches > 2+2*(4-1)", 1}, /* 8 */
        {"mismatches > 20/2", 0},
        {"mismatches > 20/2/2+4.9", 1}, /* 9.9 */
        {"mismatches > 30-15-5", 0},    /* left to right: 10 */
        {"-mismatches < -9", 1},
        {"- -mismatches > 9", 1},
        {"mismatches > 1e1", 0},
        {"mismatches > .5e1", 1},
        {"rel_l2 > last", 1},     /* 0.25 */
        {"rel_l2 > last*1.2", 0}, /* 0.3: not more */
        {"rel_l2 > last.rel_l2", 1},
        {"rel_l2 > best", 1},          /* 0.2 */
        {"rel_l2 > best*1.4", 1},      /* 0.28 */
        {"rel_l2 > median + 0.04", 1}, /* 0.25 */
        {"rel_l2 > median + 0.06", 0},
        {"mismatches > last", 1}, /* 4: failed runs do not count */
        {"mismatches > last.mismatches + 6", 0},
        {"mismatches > median", 1}, /* of 0, 4, 4... */
        {"median < mismatches - 5.9", 1},
        {"last.rms > median.rms", 1}, /* 3 of 1 and 3, whose median is 2 */
        {"median.rms == 2, last.rms != 3", 1},
        {"cosine < 0.9", -1}, /* not measured here */
        {"mismatches>0, cosine < 0.9", -1},
        {"mismatches>10, rel_l2>0.1", 1},
        {"rmse > last", -1},
        {"mismatches > last.cosine", 0}, /* no earlier run knows it */
        {"mismatches / 0 > 1", 1},       /* infinity */
        {"0 * (mismatches / 0) > 1", 1}, /* NaN: the comparison holds */
    };
    dp_run_row earlier[] = {a_row("a", "1", 0, 0.2),   a_row("a", "2", 4, 0.3),
                            a_row("b", "2", 999, 9.0), a_row("a", "3", 99, 0.01),
                            a_row("a", "4", 4, 0.25),  a_row("a", "5", 7, 8.0)};
    dp_run_set_text(&earlier[3], DP_RUN_FAILED, "mismatches>50");
    dp_run_set_text(&earlier[5], DP_RUN_KIND, "diff");
    dp_run_set(&earlier[0], DP_RUN_RMS, 1.0);
    dp_run_set(&earlier[4], DP_RUN_RMS, 3.0);
    const dp_history history = {sizeof earlier / sizeof earlier[0], earlier};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_error error = {""};
        bool failed = false;
        dp_run_row row = a_row("a", "now", 10, 0.3);
        dp_conditions *c = dp_conditions_parse(&cases[i].text, 1, &error);
        ck_assert_msg(c != NULL, "%s", error.text);
        const bool good = dp_conditions_judge(c, &row, 1, &history, &failed, &error);
        ck_assert_msg(good == (cases[i].holds >= 0), "'%s': %s", cases[i].text, error.text);
        ck_assert_msg(!good || failed == (cases[i].holds > 0), "'%s'", cases[i].text);
        ck_assert_msg(!good || failed == (row.text[DP_RUN_FAILED][0] != '\0'), "'%s'",
                      cases[i].text);
        dp_conditions_free(c);
    }
}
END_TEST

/* NaN that was measured is not "not measured": the output was all NaN, and that fails. */
START_TEST(nan_holds)
{
    const char *text = "rel_l2 > 5";
    dp_error error = {""};
    bool failed = false;
    dp_run_row row = a_row("a", "", 0, (double)NAN);
    dp_conditions *c = dp_conditions_parse(&text, 1, &error);
    ck_assert(c != NULL && dp_conditions_judge(c, &row, 1, NULL, &failed, &error) && failed);
    ck_assert_str_eq(row.text[DP_RUN_FAILED], "rel_l2 > 5");
    dp_conditions_free(c);
}
END_TEST

START_TEST(round_trip)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch("trip.h5"));
    dp_run_row rows[3] = {a_row("ä", "first", 1, 0.125), a_row("b", "", 0, 1e-300),
                          a_row("c", "third", 1e15, -0.0)};
    dp_error error = {""};
    rows[1].known[DP_RUN_REL_L2] = false;
    for (int i = 0; i < 100; i++) { /* more than a chunk */
        ck_assert_msg(dp_history_append(path, rows, 3, NULL, 0, &error), "%s", error.text);
    }
    dp_history history = load(path);
    ck_assert_uint_eq(history.count, 300);
    for (size_t i = 0; i < 300; i++) {
        const dp_run_row *a = &rows[i % 3], *b = &history.rows[i];
        for (int c = 0; c < DP_RUN_TEXTS; c++) {
            ck_assert_str_eq(a->text[c], b->text[c]);
        }
        for (int c = 0; c < DP_RUN_NUMBERS; c++) {
            ck_assert(a->known[c] == b->known[c]);
            ck_assert(!a->known[c] || (a->number[c] == b->number[c] &&
                                       signbit(a->number[c]) == signbit(b->number[c])));
        }
    }
    dp_history_free(&history);
    char line[1024];
    (void)snprintf(line, sizeof line,
                   "h5dump -d /history/label '%s' | grep -c '\"first\"\\|\"third\"' > '%s'", path,
                   scratch("count"));
    if (system("command -v h5dump >/dev/null") == 0) {
        static char text[64];
        ck_assert_int_eq(system(line), 0);
        ck_assert(atoi(scratch_text(scratch("count"), text, sizeof text)) > 0);
    }
}
END_TEST

START_TEST(long_texts_are_cut_between_characters)
{
    char text[600] = "";
    for (size_t i = 0; i < 100; i++) {
        memcpy(text + 2 * i, "ä", 3); /* two bytes each */
    }
    dp_run_row row = a_row("a", "", 0, 0);
    dp_run_set_text(&row, DP_RUN_LABEL, text);
    ck_assert_uint_eq(strlen(row.text[DP_RUN_LABEL]), 128);
    (void)snprintf(text, sizeof text, "x%s", row.text[DP_RUN_LABEL]);
    dp_run_set_text(&row, DP_RUN_LABEL, text);
    ck_assert_uint_eq(strlen(row.text[DP_RUN_LABEL]), 127);
}
END_TEST

static hid_t open_rw(const char *path)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    ck_assert(file >= 0);
    return file;
}

/* A column of `count` entries, extendible or not. */
static void put_column(hid_t file, const char *path, hid_t type, hsize_t count, bool grows,
                       const void *data)
{
    const hsize_t limit = grows ? H5S_UNLIMITED : count, chunk = 16;
    const hid_t space = H5Screate_simple(1, &count, &limit);
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    if (grows) {
        (void)H5Pset_chunk(plan, 1, &chunk);
    }
    const hid_t set = H5Dcreate2(file, path, type, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    ck_assert(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    (void)H5Dclose(set);
    (void)H5Pclose(plan);
    (void)H5Sclose(space);
}

/* Columns of an older version are missing, others are the user's. */
START_TEST(old_and_foreign_histories)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch("old.h5"));
    append(path, a_row("a", "1", 3, 0.5));
    append(path, a_row("a", "2", 4, 0.5));
    hid_t file = open_rw(path);
    ck_assert(H5Ldelete(file, "/history/rel_l2", H5P_DEFAULT) >= 0);
    ck_assert(H5Ldelete(file, "/history/device", H5P_DEFAULT) >= 0);
    ck_assert(H5Ldelete(file, "/history/label", H5P_DEFAULT) >= 0);
    ck_assert(H5Ldelete(file, "/history/mismatches", H5P_DEFAULT) >= 0);
    const int64_t tokens[2] = {11, 22};
    const int32_t counts[2] = {3, 4};
    const char *const labels[2] = {"variable", NULL};
    const hid_t text = H5Tcopy(H5T_C_S1);
    (void)H5Tset_size(text, H5T_VARIABLE);
    put_column(file, "/history/tokens_per_second", H5T_STD_I64LE, 2, true, tokens);
    put_column(file, "/history/mismatches", H5T_STD_I32LE, 2, true, counts);
    put_column(file, "/history/label", text, 2, true, labels);
    put_column(file, "/notes", H5T_STD_I64LE, 2, false, tokens); /* not a column */
    (void)H5Tclose(text);
    (void)H5Fclose(file);
    append(path, a_row("a", "third", 5, 0.25));
    dp_history history = load(path);
    ck_assert_uint_eq(history.count, 3);
    ck_assert(!history.rows[0].known[DP_RUN_REL_L2] && !history.rows[1].known[DP_RUN_REL_L2]);
    ck_assert(history.rows[2].known[DP_RUN_REL_L2] &&
              history.rows[2].number[DP_RUN_REL_L2] == 0.25);
    ck_assert(history.rows[0].number[DP_RUN_MISMATCHES] == 3.0 &&
              history.rows[2].number[DP_RUN_MISMATCHES] == 5.0);
    ck_assert_str_eq(history.rows[0].text[DP_RUN_LABEL], "variable");
    ck_assert_str_eq(history.rows[1].text[DP_RUN_LABEL], "");
    ck_assert_str_eq(history.rows[2].text[DP_RUN_LABEL], "third");
    ck_assert_str_eq(history.rows[2].text[DP_RUN_SERIES], "a");
    dp_history_free(&history);
    file = open_rw(path);
    int64_t kept[3] = {-1, -1, -1};
    hid_t set = H5Dopen2(file, "/history/tokens_per_second", H5P_DEFAULT);
    ck_assert(H5Dread(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, kept) >= 0);
    ck_assert(kept[0] == 11 && kept[1] == 22 && kept[2] == 0);
    (void)H5Dclose(set);
    ck_assert(H5Lexists(file, "/notes", H5P_DEFAULT) > 0);
    /* One that cannot grow stops the append, and the history stays. */
    put_column(file, "/history/fixed", H5T_STD_I64LE, 3, false, kept);
    (void)H5Fclose(file);
    dp_error error = {""};
    const dp_run_row row = a_row("a", "4", 0, 0);
    ck_assert(!dp_history_append(path, &row, 1, NULL, 0, &error));
    ck_assert_msg(strstr(error.text, "/history/fixed") != NULL, "%s", error.text);
    history = load(path);
    ck_assert_uint_eq(history.count, 3);
    dp_history_free(&history);
    ck_assert_int_eq(scratch_count(".tmp"), 0);
}
END_TEST

START_TEST(other_files_are_refused)
{
    dp_history history;
    dp_error error = {""};
    char path[512];
    (void)snprintf(path, sizeof path, "%s", scratch("bad.h5"));
    ck_assert(!dp_history_load(&history, path, &error)); /* not there */
    error.text[0] = '\0';
    append(path, a_row("a", "1", 3, 0.5));
    hid_t file = open_rw(path);
    const double two[2] = {1, 2};
    ck_assert(H5Ldelete(file, "/history/rms", H5P_DEFAULT) >= 0);
    put_column(file, "/history/rms", H5T_IEEE_F64LE, 2, true, two);
    (void)H5Fclose(file);
    ck_assert(!dp_history_load(&history, path, &error));
    ck_assert_msg(strstr(error.text, "/history/rms") != NULL, "%s", error.text);
    const dp_run_row row = a_row("a", "2", 0, 0);
    ck_assert(!dp_history_append(path, &row, 1, NULL, 0, &error));
    FILE *text = fopen(path, "w");
    (void)fputs("no HDF5\n", text);
    (void)fclose(text);
    ck_assert(!dp_history_append(path, &row, 1, NULL, 0, &error));
    static char kept[64];
    ck_assert_str_eq(scratch_text(path, kept, sizeof kept), "no HDF5\n");
}
END_TEST

/* Another process holds the lock for 0.4 seconds. */
START_TEST(the_lock)
{
    char path[512];
    int ready[2];
    (void)snprintf(path, sizeof path, "%s", scratch("locked.h5"));
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t child = fork();
    ck_assert(child >= 0);
    dp_history_lock lock;
    dp_error error = {""};
    if (child == 0) {
        const bool got = dp_history_lock_take(&lock, path, 1.0, &error);
        (void)!write(ready[1], got ? "y" : "n", 1);
        const struct timespec held = {0, 400000000};
        (void)nanosleep(&held, NULL);
        dp_history_lock_release(&lock);
        _exit(0);
    }
    char answer = '?';
    ck_assert_int_eq((int)read(ready[0], &answer, 1), 1);
    ck_assert_int_eq(answer, 'y');
    ck_assert(!dp_history_lock_take(&lock, path, 0.1, &error));
    ck_assert_msg(strstr(error.text, "another process") != NULL, "%s", error.text);
    ck_assert_msg(dp_history_lock_take(&lock, path, 10.0, &error), "%s", error.text);
    dp_history_lock_release(&lock);
    (void)waitpid(child, NULL, 0);
    ck_assert_int_eq(scratch_count(".lock"), 0);
    ck_assert(!dp_history_lock_take(&lock, "/nonexistent/folder/h.h5", 0.1, &error));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("history");
    TCase *tests = tcase_create("history");
    tcase_add_checked_fixture(tests, NULL, scratch_remove);
    tcase_add_test(tests, times);
    tcase_add_test(tests, bad_conditions);
    tcase_add_test(tests, judgements);
    tcase_add_test(tests, nan_holds);
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, long_texts_are_cut_between_characters);
    tcase_add_test(tests, old_and_foreign_histories);
    tcase_add_test(tests, other_files_are_refused);
    tcase_add_test(tests, the_lock);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
