/* SPDX-License-Identifier: MIT
 *
 * `directp capture`: every capture in the tree replays without a mismatch; a planted wrong bit is
 * found and decoded; files that are damaged or contradict themselves get one error.
 */
#include <dirent.h>

#include "analysis/capture.h"
#include "scratch.h"

/* --- small files, one thing wrong with each --- */

typedef struct {
    const char *kind, *group, *instruction, *atype, *dtype;
    uint64_t cases, k, c_cases;
    bool without_d, float_a, wild_code, wild_c;
    uint32_t d_xor;
} matrix_file;

static const matrix_file plain = {.kind = "capture",
                                  .group = "/capture/g",
                                  .instruction = "wgmma",
                                  .atype = "e4m3",
                                  .dtype = "f32",
                                  .cases = 3,
                                  .k = 32,
                                  .c_cases = 3};

static void put(dp_h5_writer *w, const char *group, const char *name, dp_h5_type type, int rank,
                const uint64_t *dims, const void *data)
{
    char path[128];
    dp_error error = {""};
    (void)snprintf(path, sizeof path, "%s/%s", group, name);
    ck_assert_msg(dp_h5_put(w, path, type, rank, dims, data, NULL, &error), "%s", error.text);
}

static void put_text(dp_h5_writer *w, const char *group, const char *name, const char *text)
{
    dp_error error = {""};
    if (text != NULL) {
        ck_assert_msg(dp_h5_put_text(w, group, name, text, &error), "%s", error.text);
    }
}

/* Case i: 32 products of 1 * 1, c = i; d = 32 + i. */
static const char *write_matrix(matrix_file how)
{
    const char *path = scratch("matrix.h5");
    dp_h5_writer w;
    dp_error error = {""};
    static float real[4 * 96];
    static uint8_t a[4 * 96];
    uint32_t c[4];
    uint32_t d[4];
    ck_assert_msg(dp_h5_create(&w, path, how.kind, NULL, 0, &error), "%s", error.text);
    memset(a, 0x38, sizeof a);
    a[40] = how.wild_code ? 0xF8 : 0x38;
    for (int i = 0; i < 4; i++) {
        c[i] = dp_f32_bits((float)i);
        d[i] = dp_f32_bits(32.0f + (float)i) ^ (i == 1 ? how.d_xor : 0);
    }
    const uint64_t rows[2] = {how.cases, how.k};
    put(&w, how.group, "a", how.float_a ? DP_H5_F32 : DP_H5_U8, 2, rows,
        how.float_a ? (void *)real : (void *)a);
    memset(a, 0x38, sizeof a);
    put(&w, how.group, "b", DP_H5_U8, 2, rows, a);
    put(&w, how.group, "c", DP_H5_U32, 1, &how.c_cases, c);
    if (!how.without_d) {
        put(&w, how.group, "d", DP_H5_U32, 1, &how.cases, d);
    }
    put_text(&w, how.group, "instruction", how.instruction);
    put_text(&w, how.group, "atype", how.atype);
    put_text(&w, how.group, "btype", "e4m3");
    put_text(&w, how.group, "dtype", how.dtype);
    put_text(&w, how.group, "arch", "sm_90a");
    ck_assert_msg(dp_h5_commit(&w, &error), "%s", error.text);
    return path;
}

/* Replay; the results are summed. False with an error as dp_capture_replay. */
static bool replay(const char *path, const dp_capture_options *options, uint64_t *cases,
                   uint64_t *mismatches, int *without_model, char first[640], dp_error *error)
{
    dp_capture_result *results;
    size_t count;
    *cases = *mismatches = 0;
    *without_model = 0;
    first[0] = '\0';
    if (!dp_capture_replay(path, options, &results, &count, error)) {
        ck_assert_ptr_null(results);
        ck_assert_msg(error->text[0] != '\0', "%s: refused without a word", path);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        *cases += results[i].cases;
        *mismatches += results[i].mismatches;
        *without_model += strcmp(results[i].model, "none") == 0 ? 1 : 0;
        if (first[0] == '\0' && results[i].first[0] != '\0') {
            (void)snprintf(first, 640, "%s", results[i].first);
        }
    }
    free(results);
    return true;
}

static void assert_replays(const char *path, uint64_t cases, uint64_t mismatches, int without_model,
                           const char *says)
{
    const dp_capture_options options = {.threads = 2};
    uint64_t got_cases;
    uint64_t got_mismatches;
    int got_without;
    char first[640];
    dp_error error = {""};
    ck_assert_msg(replay(path, &options, &got_cases, &got_mismatches, &got_without, first, &error),
                  "%s", error.text);
    ck_assert_msg(got_mismatches == mismatches, "%s: %d mismatches, first: %s", path,
                  (int)got_mismatches, first);
    ck_assert_uint_ge(got_cases, cases);
    ck_assert_int_eq(got_without, without_model);
    ck_assert_msg(strstr(first, says) != NULL, "'%s' lacks '%s'", first, says);
}

static void assert_refuses(const char *path, const char *says)
{
    const dp_capture_options options = {.threads = 1};
    uint64_t cases;
    uint64_t mismatches;
    int without;
    char first[640];
    dp_error error = {""};
    ck_assert_msg(!replay(path, &options, &cases, &mismatches, &without, first, &error),
                  "accepted; wanted '%s'", says);
    ck_assert_msg(strstr(error.text, says) != NULL, "'%s' lacks '%s'", error.text, says);
}

START_TEST(a_wrong_bit_is_found_and_decoded)
{
    matrix_file how = plain;
    assert_replays(write_matrix(how), 3, 0, 0, "");
    how.d_xor = 0x400;
    assert_replays(write_matrix(how), 3, 1, 0,
                   "case 1: c 0x3F800000 (1), file 0x42040400 (33.0039062), model 0x42040000 (33)");
    dp_run run;
    char line[700];
    (void)snprintf(line, sizeof line, "capture check '%s'", scratch("matrix.h5"));
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.out, "0x38 (1) * 0x38 (1)") != NULL, "%s", run.out);
    (void)snprintf(line, sizeof line, "capture check --json '%s'", scratch("matrix.h5"));
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.out, "\"mismatches\": 1") != NULL, "%s", run.out);
    how.instruction = "no.such.instruction"; /* shown, not counted */
    assert_replays(write_matrix(how), 3, 0, 1, "");
}
END_TEST

START_TEST(contradictions_in_matrix_groups)
{
    matrix_file how = plain;
    how.kind = "dump";
    assert_refuses(write_matrix(how), "capture");
    how = plain, how.group = "/inputs";
    assert_refuses(write_matrix(how), "/capture");
    how = plain, how.instruction = NULL;
    assert_refuses(write_matrix(how), "instruction");
    how = plain, how.atype = NULL;
    assert_refuses(write_matrix(how), "atype");
    how = plain, how.c_cases = 2;
    assert_refuses(write_matrix(how), "2 cases and a has 3");
    how = plain, how.without_d = true;
    assert_refuses(write_matrix(how), "/capture/g/d");
    how = plain, how.float_a = true;
    assert_refuses(write_matrix(how), "unsigned integers");
    how = plain, how.atype = "e2m1", how.instruction = "tcgen05.mma.kind::f8f6f4";
    assert_refuses(write_matrix(how), "no code of e2m1");
    how = plain, how.dtype = "f16";
    assert_refuses(write_matrix(how), "no code of f16");
    how = plain, how.k = 31;
    assert_refuses(write_matrix(how), "k = 31");
    how = plain, how.k = 96;
    how.d_xor = 1; /* 96 = 3 * 32 chains: replayed, and these d are wrong */
    assert_replays(write_matrix(how), 3, 3, 0, "case 0");
}
END_TEST

START_TEST(files_that_are_none)
{
    assert_refuses(scratch("missing.h5"), "cannot be opened");
    assert_refuses(scratch(""), "directory");
    const char *path = write_matrix(plain);
    static char image[1 << 20];
    FILE *file = fopen(path, "rb");
    const size_t size = fread(image, 1, sizeof image, file);
    (void)fclose(file);
    for (size_t cut = 1; cut < size; cut += size / 13) {
        const char *part = scratch("cut.h5");
        file = fopen(part, "wb");
        ck_assert_uint_eq(fwrite(image, 1, cut, file), cut);
        (void)fclose(file);
        assert_refuses(part, "cut.h5");
    }
    char line[700];
    (void)snprintf(line, sizeof line, "capture check '%s'", scratch("cut.h5"));
    assert_refused(line, "cut.h5");
    (void)snprintf(line, sizeof line, "capture check --group nobody '%s'", scratch("matrix.h5"));
    assert_refused(line, "nobody");
    (void)snprintf(line, sizeof line, "capture check --switches zero_sign=maybe '%s'", path);
    assert_refused(line, "maybe");
    assert_refused("capture", "neither record nor check");
    (void)snprintf(line, sizeof line, "capture record --only nonsense -o '%s'", scratch("r.h5"));
    assert_refused(line, "");
    ck_assert_int_eq(scratch_count("r.h5"), 0);
}
END_TEST

/* --- functions --- */

typedef struct {
    const char *instruction;
    int columns;
    uint64_t x_cases, y_cases;
    dp_h5_type y_type;
    int64_t first, step; /* step 0: none */
    bool no_x;
    const char *y_name;
} function_file;

static const char *write_function(function_file how, const void *x, const void *y)
{
    const char *path = scratch("function.h5");
    dp_h5_writer w;
    dp_error error = {""};
    ck_assert_msg(dp_h5_create(&w, path, "capture", NULL, 0, &error), "%s", error.text);
    const uint64_t dims[2] = {how.x_cases, (uint64_t)how.columns};
    put(&w, "/capture/f", how.y_name != NULL ? how.y_name : "y", how.y_type, 1, &how.y_cases, y);
    if (!how.no_x) {
        put(&w, "/capture/f", "x", DP_H5_U32, how.columns > 1 ? 2 : 1, dims, x);
    }
    put_text(&w, "/capture/f", "instruction", how.instruction);
    if (how.step != 0) {
        ck_assert(dp_h5_put_i64(&w, "/capture/f", "first", how.first, &error));
        ck_assert(dp_h5_put_i64(&w, "/capture/f", "step", how.step, &error));
    }
    ck_assert_msg(dp_h5_commit(&w, &error), "%s", error.text);
    return path;
}

START_TEST(functions_in_every_form)
{
    const uint32_t floats[4] = {0x3F800000, 0xC0000000, 0x7FC00000, 0x00000001};
    const uint8_t e4m3[4] = {0x38, 0xC0, 0x7F, 0x00};
    const uint16_t pairs[2] = {0x38C0, 0x7F00}; /* the first operand is the high field */
    const uint32_t sums[2] = {0xBF800000, 0x7FFFFFFF};
    function_file how = {"cvt.rn.satfinite.e4m3x2.f32", 1, 4, 4, DP_H5_U8, 0, 0, false, NULL};
    assert_replays(write_function(how, floats, e4m3), 4, 0, 0, "");
    how = (function_file){"cvt.rn.satfinite.e4m3x2.f32", 2, 2, 2, DP_H5_U16, 0, 0, false, NULL};
    assert_replays(write_function(how, floats, pairs), 2, 0, 0, "");
    how = (function_file){"add.rn.f32", 2, 2, 2, DP_H5_U32, 0, 0, false, NULL};
    assert_replays(write_function(how, floats, sums), 2, 0, 0, "");
    how.instruction = "mul.rn.f32";
    assert_replays(write_function(how, floats, sums), 2, 1, 0,
                   "case 0: x0 0x3F800000 (1), x1 0xC0000000 (-2): file 0xBF800000 (-1), model "
                   "0xC0000000 (-2)");
    const uint32_t rise[3] = {0x3F800000, 0xFFFFFFFE, 0xFFFFFFFE}; /* 1/x from 1 on */
    how = (function_file){"rcp.approx.ftz.f32", 1, 0, 3, DP_H5_U32, 0x3F800000, 1, true, "dy"};
    assert_replays(write_function(how, NULL, rise), 3, 0, 0, "");
    const uint16_t halves[3] = {0x2000, 0x2080, 0x2100}; /* E4M3 codes 8 to 10 */
    how = (function_file){"cvt.rn.f16x2.e4m3x2", 1, 0, 3, DP_H5_U16, 8, 1, true, NULL};
    (void)halves;
    const uint16_t right[3] = {0x2400, 0x2480, 0x2500}; /* 2^-6, 1.125 2^-6, 1.25 2^-6 */
    assert_replays(write_function(how, NULL, halves), 3, 3, 0, "case 0: x0 0x00000008");
    assert_replays(write_function(how, NULL, right), 3, 0, 0, "");
}
END_TEST

START_TEST(contradictions_in_function_groups)
{
    const uint32_t x[6] = {0};
    function_file how = {"add.rn.f32", 2, 3, 2, DP_H5_U32, 0, 0, false, NULL};
    assert_refuses(write_function(how, x, x), "x has 3 cases and y has 2");
    how = (function_file){"add.rn.f32", 1, 2, 2, DP_H5_U32, 0, 0, false, NULL};
    assert_refuses(write_function(how, x, x), "takes 2 operands and x has 1");
    how = (function_file){"add.rn.f32", 2, 2, 2, DP_H5_U16, 0, 0, false, NULL};
    assert_refuses(write_function(how, x, x), "y holds 16 bits");
    how = (function_file){"ex2.approx.ftz.f32", 1, 2, 2, DP_H5_U32, 0, 1, false, NULL};
    assert_refuses(write_function(how, x, x), "both x and first");
    how = (function_file){"ex2.approx.ftz.f32", 1, 2, 2, DP_H5_U32, 0, 0, true, NULL};
    assert_refuses(write_function(how, x, x), "/capture/f/x");
    how = (function_file){"ex2.approx.ftz.f32", 1, 2, 2, DP_H5_U32, -1, 1, true, NULL};
    assert_refuses(write_function(how, x, x), "no 32-bit inputs");
    how = (function_file){"ex2.approx.ftz.f32", 1, 2, 2, DP_H5_U32, 0, 0, false, "z"};
    assert_refuses(write_function(how, x, x), "/capture/f/y");
}
END_TEST

/* --- the captures of this tree --- */

START_TEST(captures_of_the_tree_match)
{
    char path[4096];
    char folder[4096];
    int files = 0;
    assert_replays(dp_source_path(path, sizeof path, "data/mma_vectors.h5"), 36000, 0, 0, "");
    (void)dp_source_path(folder, sizeof folder, "data/captures");
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 3 && strcmp(entry->d_name + length - 3, ".h5") == 0) {
            char file[8192];
            (void)snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
            assert_replays(file, 1000, 0, strstr(file, "sfu") != NULL ? 4 : 0, "");
            files++;
        }
    }
    (void)closedir(directory);
    ck_assert_int_ge(files, 5);
}
END_TEST

START_TEST(captures_tell_wrong_rules_apart)
{
    char path[4096];
    dp_capture_options options = {.threads = 2, .only = "wgmma_f32_e4m3_e4m3"};
    const char *const wrong[][2] = {{"zero_sign", "keep"}, {"fp8_c", "late"}};
    (void)dp_source_path(path, sizeof path, "data/captures/h200_mma.h5");
    for (int i = 0; i < 2; i++) {
        dp_mma_switches switches = {0};
        uint64_t cases;
        uint64_t mismatches;
        int without;
        char first[640];
        dp_error error = {""};
        ck_assert(dp_mma_switch_set(&switches, wrong[i][0], wrong[i][1], &error));
        options.switches = &switches;
        ck_assert_msg(replay(path, &options, &cases, &mismatches, &without, first, &error), "%s",
                      error.text);
        ck_assert_msg(mismatches > 0, "%s=%s is not refuted", wrong[i][0], wrong[i][1]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capture");
    TCase *tests = tcase_create("capture");
    tcase_add_unchecked_fixture(tests, NULL, scratch_remove);
    tcase_add_test(tests, a_wrong_bit_is_found_and_decoded);
    tcase_add_test(tests, contradictions_in_matrix_groups);
    tcase_add_test(tests, files_that_are_none);
    tcase_add_test(tests, functions_in_every_form);
    tcase_add_test(tests, contradictions_in_function_groups);
    tcase_add_test(tests, captures_of_the_tree_match);
    tcase_add_test(tests, captures_tell_wrong_rules_apart);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
