/* SPDX-License-Identifier: MIT
 *
 * directp diff as a user runs it: dumps of the command itself, of foreign writers, windows of rows,
 * scale pages, dumps that do not say what they are, and damaged ones.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/h5.h"
#include "dump_edit.h"
#include "formats/layout.h"

START_TEST(own_dumps_are_the_same)
{
    static dp_run run;
    static const char *const options[] = {"--policy fast --epoch S", "--policy accurate --epoch R",
                                          "--policy guard-14b --epoch R --causal",
                                          "--policy ideal --set shift=12",
                                          "--policy fast --dim 64 --set native-d64=on"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        make(options[i]);
        ck_assert_msg(diff(&run, "") == 0, "%s: %s %s", options[i], run.out, run.err);
    }
    ck_assert_int_eq(diff(&run, "--epoch S --set shift=11"), 1);
    ck_assert(strstr(run.out, "First wrong stage") != NULL);
    ck_assert_int_eq(diff(&run, "--epoch S --set shift=11 --json"), 1);
    ck_assert(strstr(run.out, "\"verdict\": \"different\"") != NULL);
    make("--policy accurate --epoch R --set key-order=natural"); /* anchors in their old places */
    ck_assert_int_eq(diff(&run, ""), 0);
    ck_assert_int_eq(diff(&run, "--set key-order=anchor"), 1);
    ck_assert(strstr(run.out, "anchor-not-permuted") != NULL);
}
END_TEST

START_TEST(undeclared_dumps_are_refused)
{
    static const char *const names[] = {"policy", "epoch", "switches"};
    static dp_run run;
    char line[1024];
    for (size_t i = 0; i < 3; i++) {
        make("--policy fast");
        drop_attribute(names[i]);
        (void)snprintf(line, sizeof line, "diff '%s'", dump);
        assert_refused(line, names[i]);
    }
    ck_assert_int_eq(diff(&run, "--set key-order=anchor"), 0); /* said by the user */
}
END_TEST

START_TEST(foreign_writers)
{
    static dp_run run;
    hsize_t dims[4];
    int rank;
    make("--policy fast --epoch R");
    const hid_t file = open_dump();
    void *raw = take(file, "/score/raw", H5T_NATIVE_FLOAT, dims, &rank);
    replace(file, "/score/raw", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, rank, dims, raw, 100, NULL);
    void *sum = take(file, "/denominator/row_sum", H5T_NATIVE_FLOAT, dims, &rank);
    replace(file, "/denominator/row_sum", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, rank, dims, sum, 0,
            NULL);
    void *count = take(file, "/denominator/code_sum", H5T_NATIVE_UINT16, dims, &rank);
    replace(file, "/denominator/code_sum", H5T_STD_U16BE, H5T_NATIVE_UINT16, rank, dims, count, 7,
            NULL);
    void *o = take(file, "/output/o", H5T_NATIVE_UINT16, dims, &rank);
    float *wide = malloc(2 * 256 * 128 * sizeof *wide);
    for (size_t i = 0; i < 2 * 256 * 128; i++) {
        wide[i] = dp_f32_from_bits((uint32_t)((uint16_t *)o)[i] << 16);
    }
    replace(file, "/output/o", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, rank, dims, wide, 0, NULL);
    void *code = take(file, "/code/p_payload", H5T_NATIVE_UINT8, dims, &rank);
    replace(file, "/code/p_payload", H5T_STD_I8LE, H5T_NATIVE_INT8, rank, dims, code, 33, NULL);
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    free(raw);
    free(sum);
    free(count);
    free(o);
    free(wide);
    free(code);
}
END_TEST

START_TEST(scale_layouts)
{
    static dp_run run;
    static const struct {
        const char *path, *name;
        dp_layout kind;
        size_t rows, cols;
    } cases[] = {{"/quantize/q_scale", "atom128x4", DP_LAYOUT_128X4, 256, 8},
                 {"/quantize/k_scale", "atom64x4", DP_LAYOUT_SM120, 256, 8},
                 {"/quantize/v_scale", "128x4", DP_LAYOUT_128X4, 128, 8}};
    make("--policy accurate --epoch R");
    const hid_t file = open_dump();
    for (size_t i = 0; i < 3; i++) {
        hsize_t dims[4];
        int rank;
        uint8_t *linear = take(file, cases[i].path, H5T_NATIVE_UINT8, dims, &rank);
        const dp_layout_map map = {cases[i].kind, cases[i].rows, cases[i].cols};
        const size_t bytes = dp_layout_bytes(map);
        uint8_t *stored = malloc(2 * bytes);
        for (size_t h = 0; h < 2; h++) {
            dp_layout_swizzle(map, linear + h * cases[i].rows * cases[i].cols, stored + h * bytes);
        }
        const hsize_t pages[3] = {1, 2, bytes};
        replace(file, cases[i].path, H5T_STD_U8LE, H5T_NATIVE_UINT8, 3, pages, stored, 0,
                cases[i].name);
        free(linear);
        free(stored);
    }
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
}
END_TEST

/* Rows 70 to 199 of head 1 alone. */
START_TEST(windows_and_heads)
{
    static dp_run run;
    static const char *const paths[] = {"/score/raw", "/reference/row_ref", "/scale/p_scale",
                                        "/code/p_payload"};
    make("--policy fast --epoch R");
    const hid_t file = open_dump();
    for (size_t i = 0; i < 4; i++) {
        hsize_t dims[4] = {1, 1, 1, 1};
        int rank;
        const hid_t type = i < 2 ? H5T_NATIVE_FLOAT : H5T_NATIVE_UINT8;
        char *all = take(file, paths[i], type, dims, &rank);
        const size_t row = (size_t)(rank > 3 ? dims[3] : 1) * H5Tget_size(type);
        dims[1] = 1;
        dims[2] = 130;
        replace(file, paths[i], type, type, rank, dims, all + (256 + 70) * row, 0, NULL);
        free(all);
    }
    static const char *const gone[] = {"/denominator", "/accumulate", "/output", "/quantize",
                                       "/inputs"};
    for (size_t i = 0; i < 5; i++) {
        ck_assert(H5Ldelete(file, gone[i], H5P_DEFAULT) >= 0);
    }
    put_integer(file, "row_first", 70);
    put_integer(file, "queries", 256);
    put_integer(file, "heads", 1);
    put_integer(file, "q_heads", 2);
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    ck_assert(strstr(run.out, "rows 70 to 199") != NULL);
    ck_assert(strstr(run.out, "bridged") != NULL);
}
END_TEST

START_TEST(contradictions_are_refused)
{
    char line[1024];
    hsize_t dims[4];
    int rank;
    make("--policy fast");
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    hid_t file = open_dump();
    void *code = take(file, "/code/p_payload", H5T_NATIVE_UINT8, dims, &rank);
    const hsize_t narrow[4] = {1, 2, 256, 64};
    replace(file, "/code/p_payload", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, narrow, code, 0, NULL);
    close_dump(file);
    assert_refused(line, "/code/p_payload");
    file = open_dump();
    const hsize_t flat[2] = {512, 64};
    replace(file, "/code/p_payload", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, flat, code, 0, NULL);
    close_dump(file);
    assert_refused(line, "dimensions");
    file = open_dump();
    replace(file, "/code/p_payload", H5T_IEEE_F32LE, H5T_NATIVE_UINT8, 4, narrow, code, 0, NULL);
    close_dump(file);
    assert_refused(line, "/code/p_payload");
    free(code);
    make("--policy fast");
    file = open_dump();
    void *scale = take(file, "/quantize/q_scale", H5T_NATIVE_UINT8, dims, &rank);
    replace(file, "/quantize/q_scale", H5T_STD_U8LE, H5T_NATIVE_UINT8, rank, dims, scale, 0,
            "spiral");
    close_dump(file);
    assert_refused(line, "layout");
    free(scale);
    assert_refused("diff /nonexistent.h5", "/nonexistent.h5");
}
END_TEST

/* Cut short at many places, and single bytes changed: an answer or one error, never a crash. */
/* What is behind a link that leads nowhere, in a circle or to another file is not "left out". */
START_TEST(broken_links_are_refused)
{
    static dp_run run;
    static const char *const paths[] = {
        "/inputs/q", "/inputs/key_order", "/quantize/k_global", "/score/raw",
        "/score",    "/code/p_payload",   "/output/lse"};
    for (size_t i = 0; i < 3 * (sizeof paths / sizeof paths[0]); i++) {
        const char *path = paths[i / 3];
        make("--policy fast --seq 128 --heads 1");
        const hid_t file = open_dump();
        ck_assert(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
        ck_assert((i % 3 == 2
                       ? H5Lcreate_external("other.h5", path, file, path, H5P_DEFAULT, H5P_DEFAULT)
                       : H5Lcreate_soft(i % 3 == 0 ? "/nowhere" : path, file, path, H5P_DEFAULT,
                                        H5P_DEFAULT)) >= 0);
        close_dump(file);
        ck_assert_msg(diff(&run, "--no-diagnosis") == 2, "%s, link %zu: status %d", path, i % 3,
                      run.status);
        ck_assert_msg(strstr(run.err, path) != NULL, "%s", run.err);
    }
}
END_TEST

START_TEST(damaged_dumps)
{
    static dp_run run;
    static unsigned char bytes[1 << 22];
    dp_tally tally = {0};
    dp_rng rng = {77};
    make("--policy fast --seq 128 --heads 1");
    FILE *in = fopen(dump, "rb");
    ck_assert_ptr_nonnull(in);
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    (void)fclose(in);
    for (int i = 0; i < 40; i++) {
        const bool cut = i % 4 == 0;
        const size_t at = dp_rng_below(&rng, (uint32_t)(i % 2 == 0 ? size : size / 20));
        const unsigned char old = bytes[at];
        bytes[at] = (unsigned char)(cut ? old : old ^ (1u << dp_rng_below(&rng, 8)));
        FILE *out = fopen(dump, "wb");
        ck_assert_ptr_nonnull(out);
        ck_assert(fwrite(bytes, 1, cut ? at : size, out) == (cut ? at : size));
        (void)fclose(out);
        bytes[at] = old;
        const int status = diff(&run, "--no-diagnosis");
        const bool refused = status == 2 && strncmp(run.err, "directp: ", 9) == 0;
        if (!dp_tally_check(&tally, refused || ((status == 0 || status == 1) && !cut))) {
            dp_tally_note(&tally, "byte %zu: status %d: %s", at, status, run.err);
        }
    }
    dp_assert_tally(tally, 40);
}
END_TEST

START_TEST(against_tolerance_reports)
{
    static dp_run run;
    char other[512], line[1600];
    make("--policy fast --epoch R");
    (void)snprintf(other, sizeof other, "%s", scratch("other.h5"));
    (void)snprintf(line, sizeof line, "cp '%s' '%s'", dump, other);
    ck_assert_int_eq(system(line), 0);
    (void)snprintf(line, sizeof line, "--against '%s'", other);
    ck_assert_msg(diff(&run, line) == 0, "%s%s", run.out, run.err);
    const hid_t file = open_dump();
    hsize_t dims[4];
    int rank;
    float *lse = take(file, "/output/lse", H5T_NATIVE_FLOAT, dims, &rank);
    lse[300] = dp_f32_from_bits(dp_f32_bits(lse[300]) + 3);
    replace(file, "/output/lse", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, lse, 0, NULL);
    close_dump(file);
    free(lse);
    ck_assert_int_eq(diff(&run, line), 1);
    ck_assert_int_eq(diff(&run, ""), 1);
    ck_assert(strstr(run.out, "none of the") != NULL); /* one ulp somewhere is no known mistake */
    ck_assert_int_eq(diff(&run, "--tolerance lse=ulps:2"), 1);
    ck_assert_int_eq(diff(&run, "--tolerance output=ulps:3"), 0);
    ck_assert_int_eq(diff(&run, "--tolerance p_scale=ulps:3"), 2);
    (void)snprintf(line, sizeof line, "-o '%s' --junit '%s'", scratch("report.h5"),
                   scratch("report.xml"));
    ck_assert_int_eq(diff(&run, line), 1);
    static char text[8192];
    ck_assert(strstr(scratch_text(scratch("report.xml"), text, sizeof text), "failures=\"1\"") !=
              NULL);
    (void)snprintf(line, sizeof line, "plot diff '%s' --data-only -o '%s'", scratch("report.h5"),
                   scratch("plots"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(line, sizeof line, "rm -rf '%s'", scratch("plots"));
    ck_assert_int_eq(system(line), 0);
}
END_TEST

START_TEST(standard_cases_verify)
{
    static dp_run run;
    char line[2048];
    const char *folder = scratch("cases");
    (void)snprintf(line, sizeof line, "cases -o '%s'", folder);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(
        line, sizeof line,
        "cd '%s' && for f in *.h5; do '%s' attend $f --policy fast --epoch R --threads 1 "
        "--stages all -o ${f%%.h5}.dump.h5 > attend.log || exit 1; done",
        scratch("cases"), getenv("DIRECTP"));
    ck_assert_int_eq(system(line), 0);
    (void)snprintf(line, sizeof line, "verify '%s'", scratch("no-such-folder"));
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 2);
    ck_assert_ptr_nonnull(strstr(run.err, "it is not a folder"));
    (void)snprintf(line, sizeof line, "verify '%s'", scratch("cases"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    ck_assert(strstr(run.out, "Verdict: verified") != NULL);
    (void)snprintf(line, sizeof line, "verify '%s' --json", scratch("cases"));
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 0);
    ck_assert(strstr(run.out, "\"verdict\": \"verified\"") != NULL);
    ck_assert(strstr(run.out, "p_on_midpoints") != NULL);
    (void)snprintf(line, sizeof line, "verify '%s' --epoch S", scratch("cases"));
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 1);
    (void)snprintf(line, sizeof line, "cp '%s/random.dump.h5' '%s/peaked.dump.h5'",
                   scratch("cases"), scratch("cases"));
    ck_assert_int_eq(system(line), 0);
    (void)snprintf(line, sizeof line, "verify '%s'", scratch("cases"));
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 2); /* other inputs prove nothing */
    (void)snprintf(line, sizeof line, "rm -rf '%s'", scratch("cases"));
    ck_assert_int_eq(system(line), 0);
}
END_TEST

/* Zeros of two signs and NaNs of different bits: both counts are told, whatever the options. */
START_TEST(zeros_and_nans)
{
    static dp_run run;
    make("--policy fast --epoch R");
    const hid_t file = open_dump();
    hsize_t dims[4];
    int rank;
    float *acc = take(file, "/accumulate/acc", H5T_NATIVE_FLOAT, dims, &rank);
    char other[512], line[1600];
    acc[5] = 0.0f;
    acc[9] = dp_f32_from_bits(0x7FC00000u);
    replace(file, "/accumulate/acc", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, acc, 0, NULL);
    close_dump(file);
    (void)snprintf(other, sizeof other, "%s", scratch("other.h5"));
    (void)snprintf(line, sizeof line, "cp '%s' '%s'", dump, other);
    ck_assert_int_eq(system(line), 0);
    const hid_t again = open_dump();
    acc[5] = -0.0f;
    acc[9] = dp_f32_from_bits(0xFFC00001u);
    replace(again, "/accumulate/acc", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, acc, 0, NULL);
    close_dump(again);
    free(acc);
    (void)snprintf(line, sizeof line, "--against '%s'", other);
    ck_assert_int_eq(diff(&run, line), 1);
    ck_assert(strstr(run.out, "1 of them are NaN against NaN") != NULL);
    (void)snprintf(line, sizeof line, "--against '%s' --zero-sign ignore --json", other);
    ck_assert_int_eq(diff(&run, line), 1);
    ck_assert(strstr(run.out, "\"passed_by_rule\": 1") != NULL);
    (void)snprintf(line, sizeof line, "--against '%s' --zero-sign ignore --nan equal", other);
    ck_assert_int_eq(diff(&run, line), 0);
    ck_assert(strstr(run.out, "acc: 2 differences pass") != NULL);
    run_directp(&run, "diff --mistakes");
    ck_assert_int_eq(run.status, 0);
    ck_assert(strstr(run.out, "mask-column-order") != NULL);
}
END_TEST

/* A tolerance wider than the signal: gains of 1.05 and 0.72, a flipped sign and zeros would pass.
 */
START_TEST(case_98_no_tolerance_passes_a_gain)
{
    static dp_run run;
    char line[1024];
    make("--policy fast --epoch R");
    (void)snprintf(line, sizeof line, "diff '%s' --tolerance o=ulps:7", dump);
    assert_refused(line, "1.05");
    (void)snprintf(line, sizeof line, "diff '%s' --tolerance lse=ulps:419431", dump);
    assert_refused(line, "1.05");
    ck_assert_int_eq(diff(&run, "--tolerance o=ulps:6,lse=ulps:419430"), 0);
    static const float gains[] = {1.05f, 0.72f, -1.0f, 0.0f};
    for (size_t g = 0; g < 4; g++) {
        make("--policy fast --epoch R");
        const hid_t file = open_dump();
        hsize_t dims[4];
        int rank;
        uint16_t *o = take(file, "/output/o", H5T_NATIVE_UINT16, dims, &rank);
        float *wide = malloc(2 * 256 * 128 * sizeof *wide);
        for (size_t i = 0; i < 2 * 256 * 128; i++) {
            const float x = dp_f32_from_bits((uint32_t)o[i] << 16) * gains[g];
            wide[i] = dp_f32_from_bits((dp_f32_bits(x) + 0x8000u) & 0xFFFF0000u);
        }
        replace(file, "/output/o", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, wide, 0, NULL);
        close_dump(file);
        free(o);
        free(wide);
        ck_assert_int_eq(diff(&run, "--tolerance o=ulps:6 --no-diagnosis"), 1);
    }
}
END_TEST

/* The scores of the case put values of P on midpoints: counted here from the policy's constants,
 * with the codes that ties to even asks for. Heads 0 and 1 are aimed at the policy fast. */
START_TEST(midpoints_of_p_are_met)
{
    static dp_run run;
    static const float middle[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    static const unsigned even[7] = {0, 2, 2, 4, 4, 6, 6};
    char line[2048];
    hsize_t dims[4];
    int rank;
    (void)snprintf(line, sizeof line, "cases -o '%s'", scratch("cases"));
    run_directp(&run, line);
    (void)snprintf(dump, sizeof dump, "%s", scratch("cases/p.h5"));
    (void)snprintf(line, sizeof line,
                   "attend '%s' --policy fast --epoch R --threads 1 --stages score,code -o '%s'",
                   scratch("cases/p-midpoints.h5"), dump);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    const hid_t file = open_dump();
    float *raw = take(file, "/score/raw", H5T_NATIVE_FLOAT, dims, &rank);
    uint8_t *p = take(file, "/code/p_payload", H5T_NATIVE_UINT8, dims, &rank);
    close_dump(file);
    const float s0 = dp_f32_from_bits(0x3E0293D5u), l6 = dp_f32_from_bits(0x40257007u);
    const float shift = dp_f32_from_bits(0x3ED47FCCu);
    unsigned on[7] = {0}, wrong = 0;
    for (size_t i = 0; i < 2 * 256 * 256; i++) {
        if (i / 256 / 128 % 2 == 0) {
            continue; /* in odd query tiles nothing is rebased */
        }
        float most = raw[i / 32 * 32];
        for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++) {
            most = fmaxf(most, raw[j]);
        }
        const float q = l6 - floorf(most * s0 + shift); /* bytes far above every floor */
        const float y = fmaf(raw[i], 1.5f * s0, fmaf(1.5f, q, 1.2f));
        for (int k = 0; k < 7; k++) {
            on[k] += y == middle[k];
            wrong += y == middle[k] && ((unsigned)p[i / 2] >> (i % 2 * 4) & 15u) != even[k];
        }
    }
    for (int k = 1; k < 7; k++) {
        ck_assert_msg(on[k] > 0, "no value is %g", (double)middle[k]);
    }
    ck_assert_uint_eq(wrong, 0);
    free(raw);
    free(p);
    (void)snprintf(line, sizeof line, "rm -rf '%s'", scratch("cases"));
    ck_assert_int_eq(system(line), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diff command");
    TCase *tests = tcase_create("command");
    tcase_add_checked_fixture(tests, NULL, scratch_remove);
    tcase_add_test(tests, own_dumps_are_the_same);
    tcase_add_test(tests, undeclared_dumps_are_refused);
    tcase_add_test(tests, foreign_writers);
    tcase_add_test(tests, scale_layouts);
    tcase_add_test(tests, windows_and_heads);
    tcase_add_test(tests, contradictions_are_refused);
    tcase_add_test(tests, broken_links_are_refused);
    tcase_add_test(tests, damaged_dumps);
    tcase_add_test(tests, against_tolerance_reports);
    tcase_add_test(tests, standard_cases_verify);
    tcase_add_test(tests, midpoints_of_p_are_met);
    tcase_add_test(tests, case_98_no_tolerance_passes_a_gain);
    tcase_add_test(tests, zeros_and_nans);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
