/* SPDX-License-Identifier: MIT
 *
 * directp quantize on arrays small enough to work out by hand. Numbered cases: 5, 9, 21, 25, 49,
 * 52, 61, 107.
 */
#include <check.h>
#include <math.h>

#include "analysis/errors.h"
#include "analysis/h5.h"
#include "scratch.h"

/* A file with one f32 array of `count` elements. */
static void make_file(const float *values, uint64_t count)
{
    dp_h5_writer w;
    dp_error error = {""};
    const uint64_t dims[] = {count};
    ck_assert(dp_h5_create(&w, scratch("in.h5"), "tensors", NULL, 0, &error));
    ck_assert(dp_h5_put(&w, "/x", DP_H5_F32, 1, dims, values, NULL, &error));
    ck_assert(dp_h5_commit(&w, &error));
}

static int quantize(dp_run *run, const char *options)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "quantize '%s:/x' %s --json -o '%s'", scratch("in.h5"),
                   options, scratch("out.h5"));
    run_directp(run, line);
    return run->status;
}

static double member(const dp_run *run, const char *key)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(run->out, quoted);
    ck_assert_msg(at != NULL, "%s is not in: %s %s", key, run->out, run->err);
    return strtod(at + strlen(quoted), NULL);
}

static void assert_bytes(const char *path, const uint8_t *expected, size_t count)
{
    dp_h5 file;
    dp_error error = {""};
    dp_h5_shape shape;
    void *data;
    ck_assert_msg(dp_h5_open(&file, scratch("out.h5"), &error), "%s", error.text);
    ck_assert_msg(dp_h5_read(&file, path, DP_H5_U8, -1, &shape, &data, &error), "%s", error.text);
    ck_assert_uint_eq(shape.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(((uint8_t *)data)[i] == expected[i], "%s[%zu] is 0x%02X, not 0x%02X", path, i,
                      ((uint8_t *)data)[i], expected[i]);
    }
    free(data);
    dp_h5_close(&file);
}

/* Underflow is counted by value, over named denominators; -0 is a zero of its own. */
START_TEST(case_107_underflow)
{
    static dp_run run;
    const float first[] = {-0.0f, 1.0f, 2.0f, 4.0f};
    make_file(first, 4);
    ck_assert_msg(quantize(&run, "--format e4m3") == 0, "%s", run.err);
    ck_assert(member(&run, "flushed") == 0.0);
    ck_assert(member(&run, "flushed_percent_of_all") == 0.0);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x80, 0x38, 0x40, 0x48}, 4);
    const float second[] = {-1e-5f, 1e-5f, 1.0f, 0.0f};
    make_file(second, 4);
    ck_assert_msg(quantize(&run, "--format e4m3") == 0, "%s", run.err);
    ck_assert(member(&run, "flushed") == 2.0);
    ck_assert(member(&run, "flushed_percent_of_all") == 50.0);
    ck_assert(fabs(member(&run, "flushed_percent_of_nonzero") - 200.0 / 3.0) < 1e-12);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x80, 0x00, 0x38, 0x00}, 4);
    const float third[] = {0.0f, 0.0f, -0.0f, -1e-5f, 1.0f}; /* zeros of the source are no loss */
    make_file(third, 5);
    ck_assert_msg(quantize(&run, "--format e4m3") == 0, "%s", run.err);
    ck_assert(member(&run, "flushed") == 1.0);
    ck_assert(member(&run, "flushed_percent_of_nonzero") == 50.0);
}
END_TEST

/* "nvfp4" alone means nothing; the recipes are listed and explained. */
START_TEST(case_61_nvfp4_needs_a_recipe)
{
    static dp_run run;
    assert_refused("quantize in.h5 --format nvfp4", "name a recipe with --recipe");
    assert_refused("quantize in.h5 --format nvfp4", "flat");
    assert_refused("quantize in.h5 --format nvfp4", "MODELOPT");
    assert_refused("quantize in.h5 --format nvfp4 --recipe nobody", "there is no 'nobody'");
    const char *const recipes[] = {"te", "modelopt", "flat"};
    const char *const formulas[] = {"g = min(448*max/amax", "d = amax/", "block     16"};
    for (int i = 0; i < 3; i++) {
        char line[96];
        (void)snprintf(line, sizeof line, "quantize --format nvfp4 --recipe %s --explain",
                       recipes[i]);
        run_directp(&run, line);
        ck_assert_msg(run.status == 0 && strstr(run.out, formulas[i]) != NULL, "%s%s", run.out,
                      run.err);
    }
    /* One level and two levels store different scales for the same block. */
    float x[16] = {6.0f, 3.0f, 1.0f};
    make_file(x, 16);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe flat"), 0);
    assert_bytes("/quantize/x_scale", (const uint8_t[]){0x38}, 1);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x57, 0x02, 0, 0, 0, 0, 0, 0}, 8);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe te"), 0);
    assert_bytes("/quantize/x_scale", (const uint8_t[]){0x7E}, 1);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x57, 0x02, 0, 0, 0, 0, 0, 0}, 8);
    ck_assert(fabs(member(&run, "global_decode_scale") - 6.0 / 2688.0) < 1e-9);
}
END_TEST

/* Without a global scale a block maximum of 3000 is cut to 2688, and the report says so. */
START_TEST(case_52_clipping_is_reported)
{
    static dp_run run;
    float x[32] = {3000.0f, 100.0f};
    x[16] = 1.0f;
    make_file(x, 32);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe flat"), 0);
    ck_assert(fabs(member(&run, "amax_percent_of_range") - 100.0 * 3000.0 / 2688.0) < 1e-9);
    ck_assert(member(&run, "saturated_scales") == 1.0);
    ck_assert(member(&run, "clipped_blocks") == 1.0);
    ck_assert(fabs(member(&run, "worst_clip_percent") - 10.4) < 1e-9);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe te"), 0);
    ck_assert(fabs(member(&run, "amax_percent_of_range") - 100.0) < 1e-4);
    ck_assert(member(&run, "worst_clip_percent") < 1.0);
}
END_TEST

/* A NaN scale poisons its block: exit status 1 and the place. */
START_TEST(case_49_nan_scales_are_forbidden)
{
    static dp_run run;
    float x[64] = {1.0f};
    x[40] = NAN;
    make_file(x, 64);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe flat"), 1);
    ck_assert(member(&run, "scale_bytes_nan") == 1.0);
    ck_assert(member(&run, "nan_in") == 1.0 && member(&run, "nan_out") == 16.0);
    ck_assert_msg(strstr(run.err, "first at block 2") != NULL, "%s", run.err);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe te"), 0); /* amax skips NaN there */
    ck_assert_int_eq(quantize(&run, "--format mxfp4"), 1);
    x[40] = 0.0f; /* blocks of zeros are no NaN */
    make_file(x, 64);
    ck_assert_int_eq(quantize(&run, "--format nvfp4 --recipe flat"), 0);
    ck_assert(member(&run, "scale_bytes_nan") == 0.0 && member(&run, "zero_blocks") == 3.0);
}
END_TEST

START_TEST(direct_conversions)
{
    static dp_run run;
    /* case 9: 464 is the last value that stays; case 25: one rounding, or two on request */
    const float x[] = {464.0f, 464.00003f, 1000.0f, INFINITY, -INFINITY, 1.0625001f};
    make_file(x, 6);
    ck_assert_int_eq(quantize(&run, "--format e4m3"), 0);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x39}, 6);
    ck_assert_int_eq(quantize(&run, "--format e4m3 --overflow nonsat"), 0);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x7E, 0x7F, 0x7F, 0x7F, 0xFF, 0x39}, 6);
    ck_assert_int_eq(quantize(&run, "--format e4m3 --via f16"), 0);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x38}, 6);
    /* case 21: directed rounding needs an overflow rule */
    assert_refused("quantize in.h5 --format e4m3 --rounding rz", "unspecified");
    ck_assert_int_eq(quantize(&run, "--format e4m3 --rounding rz --overflow ieee754"), 0);
    /* case 5: E2M1 has no NaN; packed low nibble first */
    const float nan[] = {NAN, -1.0f, 5.0f};
    make_file(nan, 3);
    ck_assert_int_eq(quantize(&run, "--format e2m1"), 0);
    assert_bytes("/quantize/x_payload", (const uint8_t[]){0xA7, 0x06}, 2);
    ck_assert(member(&run, "nan_in") == 1.0 && member(&run, "compared") == 2.0);
    ck_assert_int_eq(quantize(&run, "--format e2m1 --nan error"), 2);
    ck_assert(strstr(run.err, "element 0 is NaN") != NULL);
    ck_assert_int_eq(scratch_count(".tmp"), 0);
}
END_TEST

START_TEST(bad_usage)
{
    make_file((const float[]){1.0f, 2.0f}, 2);
    char line[600];
    const struct {
        const char *options, *said;
    } bad[] = {{"", "--format: it is missing"},
               {"--format fp5", "there is no 'fp5'"},
               {"--format e4m3 --recipe te", "has no scales"},
               {"--format mxfp4 --rule ceiling", "give one of"},
               {"--format nvfp4 --recipe flat --rule floor", "does not go with"},
               {"--format e4m3 --axis seq", "has no axis 'seq'"},
               {"--format e4m3 --axis 1", "has no axis '1'"},
               {"--format e4m3 --layout 128x4", "no scales to lay out"},
               {"--format nvfp4-k64", "rows of 128"},
               {"--format e4m3 -o /nonexistent/x.h5", "cannot be created"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(line, sizeof line, "quantize '%s:/x' %s", scratch("in.h5"), bad[i].options);
        assert_refused(line, bad[i].said);
    }
    (void)snprintf(line, sizeof line, "quantize '%s:/y' --format e4m3", scratch("in.h5"));
    assert_refused(line, "there is no /y");
    (void)snprintf(line, sizeof line, "quantize '%s' --format e4m3", scratch("in.h5"));
    assert_refused(line, "there is no /inputs");
    (void)snprintf(line, sizeof line, "quantize '%s:/x' --format e4m3 -o '%s'", scratch("in.h5"),
                   scratch("in.h5"));
    assert_refused(line, "also an input");
}
END_TEST

/* The figures of the report on numbers worked out by hand. */
START_TEST(error_figures)
{
    const float x[] = {3.0f, 4.0f, NAN, 1.0f};
    const float y[] = {4.0f, 4.0f, 6.0f, INFINITY};
    dp_errors e;
    dp_errors_of(x, y, 4, &e);
    ck_assert(e.compared == 2 && e.nan_in == 1 && e.nan_out == 0 && e.inf_out == 1);
    ck_assert(fabs(e.rel_l2 - 0.2) < 1e-15);
    ck_assert(fabs(e.rmse - sqrt(0.5)) < 1e-15);
    ck_assert(e.mean_error == 0.5 && e.worst_error == 1.0 && e.amax == 4.0);
    ck_assert(fabs(e.cosine - 28.0 / (5.0 * sqrt(32.0))) < 1e-15);
}
END_TEST

/* A real tensor: the dump holds the shapes of the file format, and h5dump reads it. */
START_TEST(whole_file)
{
    static dp_run run;
    char line[1024];
    char source[512];
    (void)dp_source_path(source, sizeof source, "data/real/minilm_layer0.h5");
    (void)snprintf(line, sizeof line,
                   "quantize '%s' --format mxfp4 --rule best-l2 --layout 128x4 -o '%s'", source,
                   scratch("out.h5"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    dp_h5 file;
    dp_error error = {""};
    dp_h5_shape shape;
    dp_h5_type type;
    ck_assert(dp_h5_open(&file, scratch("out.h5"), &error));
    ck_assert(dp_h5_check_root(&file, "dump", NULL, &error));
    ck_assert(dp_h5_describe(&file, "/quantize/v_payload", &type, &shape, &error));
    ck_assert(shape.rank == 4 && shape.dims[1] == 12 && shape.dims[2] == 32 &&
              shape.dims[3] == 256);
    ck_assert(dp_h5_describe(&file, "/quantize/v_scale", &type, &shape, &error));
    ck_assert(shape.rank == 3 && shape.dims[2] == 128 * 16); /* 32 rows and 16 columns, padded */
    ck_assert(dp_h5_check_format(&file, "/quantize/v_scale", "e8m0", &error));
    dp_h5_close(&file);
    (void)snprintf(line, sizeof line, "h5dump -H '%s' > '%s' 2>&1", scratch("out.h5"),
                   scratch("dump"));
    if (system("command -v h5dump > /dev/null 2>&1") == 0) {
        ck_assert_int_eq(system(line), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *cases = tcase_create("quantize");
    tcase_add_test(cases, case_107_underflow);
    tcase_add_test(cases, case_61_nvfp4_needs_a_recipe);
    tcase_add_test(cases, case_52_clipping_is_reported);
    tcase_add_test(cases, case_49_nan_scales_are_forbidden);
    tcase_add_test(cases, direct_conversions);
    tcase_add_test(cases, bad_usage);
    tcase_add_test(cases, error_figures);
    tcase_add_test(cases, whole_file);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
