/* SPDX-License-Identifier: MIT
 *
 * `directp guard` as a user runs it: lines that fit a terminal, the same figures in every style and
 * in the file, options that do what was reported, refusals.
 */
#include <math.h>

#include "analysis/h5.h"
#include "scratch.h"

static const char *real_file(const char *name)
{
    static char path[512];
    char relative[128];
    (void)snprintf(relative, sizeof relative, "data/real/%s.h5", name);
    return dp_source_path(path, sizeof path, relative);
}

/* Cell of a CSV document: row 0 is the heading. */
static const char *cell(const char *csv, int row, const char *column, char text[64])
{
    int at = 0, index = 0;
    const size_t length = strlen(column);
    for (const char *p = csv; *p != '\r'; p += strcspn(p, ",\r"), p += *p == ',') {
        if (strncmp(p, column, length) == 0 && strchr(",\r", p[length]) != NULL) {
            at = index;
        }
        index++;
    }
    for (int i = 0; i < row; i++) {
        csv = strchr(csv, '\n') + 1;
    }
    for (int i = 0; i < at; i++) {
        csv = strchr(csv, ',') + 1;
    }
    (void)snprintf(text, 64, "%.*s", (int)strcspn(csv, ",\r"), csv);
    return text;
}

static double number(const char *csv, int row, const char *column)
{
    char text[64];
    return strtod(cell(csv, row, column, text), NULL);
}

START_TEST(text_fits_a_terminal)
{
    static dp_run run;
    char line[700];
    (void)snprintf(line, sizeof line, "guard %s --q-factor 10", real_file("minilm_layer0"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    for (const char *p = run.out; *p != '\0'; p = strchr(p, '\n') + 1) {
        ck_assert_msg(strchr(p, '\n') - p <= 100, "%.140s", p);
    }
    ck_assert_ptr_nonnull(strstr(run.out, "One launch for all heads: "));
    ck_assert_ptr_nonnull(strstr(run.out, "Head by head: 0-1 none; 2 "));
    ck_assert_ptr_nonnull(strstr(run.out, "launch the heads apart"));
    run_directp(&run, "guard --help");
    ck_assert(run.status == 0 && strstr(run.out, "exact-max") == NULL);
    for (const char *p = run.out; *p != '\0'; p = strchr(p, '\n') + 1) {
        ck_assert_msg(strchr(p, '\n') - p <= 100, "%.140s", p);
    }
}
END_TEST

static void read_list(const dp_h5 *file, const char *path, uint64_t count, double *values)
{
    dp_h5_shape shape;
    dp_error error = {""};
    void *data = NULL;
    int64_t *integers = NULL;
    dp_h5_type type;
    ck_assert_msg(dp_h5_describe(file, path, &type, &shape, &error), "%s", error.text);
    ck_assert_uint_eq(shape.count, count);
    if (type == DP_H5_F64) {
        ck_assert(dp_h5_read(file, path, DP_H5_F64, -1, &shape, &data, &error));
        memcpy(values, data, count * sizeof *values);
    } else {
        ck_assert(dp_h5_read_integers(file, path, -1, &shape, &integers, &error));
        for (uint64_t i = 0; i < count; i++) {
            values[i] = (double)integers[i];
        }
    }
    free(data);
    free(integers);
}

/* Two files in one call (the same twice): CSV, JSON and HDF5 agree on every head. */
START_TEST(styles_agree)
{
    static dp_run csv, json;
    static const char *const effects[] = {"",      "_smooth", "_anchor",
                                          "_both", "_exact",  "_exact_smooth"};
    enum { HEADS = 24, CHOICES = 6 };
    double advice[HEADS], margin[HEADS], shift[HEADS], rel[HEADS * CHOICES], zero[HEADS * CHOICES];
    double anchored[HEADS], smooth[HEADS], rows[HEADS * 4], logit[HEADS * 2], above[HEADS * 2];
    double head[HEADS], together[2], common[2];
    char line[2000], files[512], text[64], expected[128];
    (void)snprintf(files, sizeof files, "%s", real_file("minilm_layer0"));
    (void)snprintf(line, sizeof line, "guard %s %s --q-factor 10 --csv -o '%s'", files, files,
                   scratch("guard.h5"));
    run_directp(&csv, line);
    ck_assert_msg(csv.status == 0, "%s", csv.err);
    (void)snprintf(line, sizeof line, "guard %s %s --q-factor 10 --json", files, files);
    run_directp(&json, line);
    ck_assert_int_eq(json.status, 0);
    dp_h5 h5;
    dp_error error = {""};
    ck_assert_msg(dp_h5_open(&h5, scratch("guard.h5"), &error), "%s", error.text);
    ck_assert(dp_h5_check_root(&h5, "guard", NULL, &error));
    char *choices = NULL;
    ck_assert(dp_h5_text(&h5, "/", "choices", &choices, &error));
    read_list(&h5, "/head/head", HEADS, head);
    read_list(&h5, "/head/advice", HEADS, advice);
    read_list(&h5, "/head/smooth_k", HEADS, smooth);
    read_list(&h5, "/head/anchored", HEADS, anchored);
    read_list(&h5, "/head/margin", HEADS, margin);
    read_list(&h5, "/head/shift", HEADS, shift);
    read_list(&h5, "/head/rel_l2", HEADS * CHOICES, rel);
    read_list(&h5, "/head/zero_rows", HEADS * CHOICES, zero);
    read_list(&h5, "/head/row_maxima", HEADS * 4, rows);
    read_list(&h5, "/head/logit", HEADS * 2, logit);
    read_list(&h5, "/head/above_448", HEADS * 2, above);
    read_list(&h5, "/layer/together", 2, together);
    read_list(&h5, "/layer/margin", 2, common);
    const char *at = json.out;
    for (int h = 0; h < HEADS; h++) {
        ck_assert_int_eq((int)head[h], h % 12);
        ck_assert(number(csv.out, h + 1, "head") == head[h]);
        ck_assert(number(csv.out, h + 1, "logit_smooth") == logit[2 * h + 1]);
        ck_assert(number(csv.out, h + 1, "bottom") == rows[4 * h]);
        ck_assert(number(csv.out, h + 1, "top") == rows[4 * h + 1]);
        ck_assert(number(csv.out, h + 1, "top_smooth") == rows[4 * h + 3]);
        ck_assert(number(csv.out, h + 1, "above_448") == above[2 * h]);
        for (int c = 0; c < CHOICES; c++) {
            (void)snprintf(text, sizeof text, "rel_l2%s", effects[c]);
            ck_assert(number(csv.out, h + 1, text) == rel[CHOICES * h + c]);
            (void)snprintf(text, sizeof text, "zero%s", effects[c]);
            ck_assert(number(csv.out, h + 1, text) == zero[CHOICES * h + c]);
        }
        const char *name = choices;
        for (int c = 0; c < (int)advice[h]; c++) {
            name = strchr(name, ',') + 1;
        }
        (void)cell(csv.out, h + 1, "advice", text);
        ck_assert(strncmp(name, text, strlen(text)) == 0);
        ck_assert(strchr(",", name[strlen(text)]) != NULL); /* or its end */
        ck_assert((int)smooth[h] == (strncmp(text, "smooth-k", 8) == 0));
        ck_assert((int)anchored[h] == (strstr(text, "anchor") != NULL));
        ck_assert(anchored[h] > 0.0 || (margin[h] == 0.0 && shift[h] == 16.0));
        if (anchored[h] > 0.0) {
            ck_assert(number(csv.out, h + 1, smooth[h] > 0.0 ? "margin_smooth" : "margin") ==
                      margin[h]);
        }
        (void)snprintf(expected, sizeof expected, "\"advice\": \"%s\"", text);
        at = strstr(at, "\"advice\": ");
        ck_assert_msg(at != NULL && strncmp(at, expected, strlen(expected)) == 0, "%.60s", at);
        at++;
    }
    (void)snprintf(expected, sizeof expected, "reference=anchor,anchor=128,margin=%d,shift=16",
                   (int)common[1]);
    ck_assert(together[0] == together[1] && common[0] == common[1]);
    ck_assert_msg((together[1] == 2.0 || together[1] == 3.0) && strstr(json.out, expected) != NULL,
                  "%g, no %s", together[1], expected);
    ck_assert_ptr_nonnull(strstr(json.out, "\"apart\": true"));
    free(choices);
    dp_h5_close(&h5);
}
END_TEST

/* The command line that is printed gives the error that is printed. */
START_TEST(printed_options_work)
{
    static dp_run guard, attend;
    char line[1200], path[512], options[256], mean[64];
    (void)snprintf(path, sizeof path, "%s --q-factor 4", real_file("minilm_layer0"));
    (void)snprintf(line, sizeof line, "guard %s", path);
    run_directp(&guard, line);
    const char *at = strstr(guard.out, "--policy ");
    ck_assert_ptr_nonnull(at);
    (void)snprintf(options, sizeof options, "%.*s", (int)strcspn(at, "\n"), at);
    ck_assert_ptr_nonnull(strstr(options, "--smooth-k --set reference=anchor,anchor=128,margin="));
    at = strstr(guard.out, "\nsmooth-k+anchor ");
    ck_assert_ptr_nonnull(at);
    double lost = 0.0, error = 0.0;
    ck_assert_int_eq(sscanf(at, " smooth-k+anchor %*d %*d %lf %lf %63s", &lost, &error, mean), 3);
    (void)snprintf(line, sizeof line, "attend %s %s --per-head --csv", path, options);
    run_directp(&attend, line);
    ck_assert_msg(attend.status == 0, "%s", attend.err);
    double product = 1.0;
    for (int h = 0; h < 12; h++) {
        product *= number(attend.out, h + 1, "rel_l2");
        ck_assert(number(attend.out, h + 1, "nonfinite_rows") == 0.0);
    }
    ck_assert(lost == 0.0);
    /* attend measures against BF16 attention of the smoothed keys, guard of the given ones */
    ck_assert_double_eq_tol(pow(product, 1.0 / 12.0), error, 0.01 * error);
}
END_TEST

START_TEST(refusals)
{
    char line[1000];
    assert_refused("guard nowhere.h5", "nowhere.h5");
    (void)snprintf(line, sizeof line, "guard %s --policy accurate", real_file("minilm_layer0"));
    assert_refused(line, "row reference");
    (void)snprintf(line, sizeof line, "guard %s --policy none", real_file("minilm_layer0"));
    assert_refused(line, "no such policy");
    (void)snprintf(line, sizeof line, "guard %s --set warp=1", real_file("minilm_layer0"));
    assert_refused(line, "no such field");
    (void)snprintf(line, sizeof line, "guard %s --set ,", real_file("minilm_layer0"));
    assert_refused(line, "--set");
    (void)snprintf(line, sizeof line, "guard %s --json --csv", real_file("minilm_layer0"));
    assert_refused(line, "choose one");
    (void)snprintf(line, sizeof line, "guard %s -o %s", real_file("minilm_layer0"),
                   real_file("minilm_layer0"));
    assert_refused(line, "minilm_layer0.h5");
    scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guard command");
    TCase *tests = tcase_create("guard command");
    tcase_add_test(tests, text_fits_a_terminal);
    tcase_add_test(tests, styles_agree);
    tcase_add_test(tests, printed_options_work);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
