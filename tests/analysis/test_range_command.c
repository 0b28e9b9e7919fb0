/* SPDX-License-Identifier: MIT
 *
 * `directp range` and `directp plot range` as a user runs them: output, files, errors. Numbered
 * cases: 62, 110, 112.
 */
#include <math.h>
#include <sys/stat.h>

#include "analysis/plot.h"
#include "analysis/range_study.h"
#include "scratch.h"

static dp_run run;

/* The number after "key": in text, from `from` on. */
static double json_number(const char *from, const char *key)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(from, quoted);
    ck_assert_msg(found != NULL, "no %s in: %s", key, from);
    return strtod(found + strlen(quoted), NULL);
}

static void write_tensors(const char *path, size_t length, bool causal, float spoil)
{
    enum { HEADS = 4, KV = 2, DIM = 16 };
    dp_rng rng = {77};
    dp_tensors t = {.batch = 1,
                    .q_heads = HEADS,
                    .kv_heads = KV,
                    .q_len = length,
                    .kv_len = length,
                    .dim = DIM,
                    .softmax_scale = 0.25,
                    .causal = causal,
                    .format = "bf16",
                    .layer = -1};
    size_t kv_of_q[HEADS] = {0, 1, 1, 0};
    const size_t n = HEADS * length * DIM;
    float *values = malloc(3 * n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < 3 * n; i++) {
        values[i] = (float)(2.5 * dp_rng_normal(&rng));
    }
    t.q = values;
    t.k = values + n;
    t.v = values + 2 * n;
    t.kv_of_q = kv_of_q;
    t.v[3] = isnan(spoil) || isinf(spoil) ? spoil : t.v[3];
    dp_error error = {""};
    ck_assert_msg(dp_tensors_save(path, &t, &error), "%s", error.text);
    free(values);
}

START_TEST(case_110_json_keeps_digits)
{
    run_directp(&run, "range --random 20261838 --sms 152 --seq 1024 --heads 4 --rows 64 --dim 128 "
                      "--json");
    ck_assert_int_eq(run.status, 0);
    const char *row = strstr(run.out, "\"nvfp4-g1\"");
    ck_assert_ptr_nonnull(row);
    ck_assert(json_number(row, "zero_scale") == 23144.0 / 32768.0); /* every bit */
    ck_assert_double_eq_tol(json_number(row, "pv_rel_l2"), 1.685442, 5e-7);
    ck_assert(json_number(row, "min_scale") == 0x1p-9);
    row = strstr(run.out, "\"mxfp4\"");
    ck_assert_double_eq_tol(json_number(row, "p_rel_l2"), 0.146380, 5e-7);
    row = strstr(run.out, "\"e4m3-g1\"");
    ck_assert_ptr_nonnull(strstr(row, "\"zero_scale\": null"));
    ck_assert(json_number(run.out, "seed") == 20261838.0);
}
END_TEST

START_TEST(seeds_and_lengths)
{
    static char once[sizeof run.out];
    char *cut;
    run_directp(&run, "range --random 20261838 --seq 1024 --formats nvfp4-g448 --csv");
    ck_assert_int_eq(run.status, 0);
    (void)snprintf(once, sizeof once, "%s", run.out);
    run_directp(&run, "range --random 20260814 --seed-plus-seq --seq 64,1024 "
                      "--formats nvfp4-g448 --csv");
    ck_assert_int_eq(run.status, 0);
    cut = strstr(run.out, "random,1024,");
    ck_assert_ptr_nonnull(cut);
    ck_assert_str_eq(cut, strstr(once, "random,1024,"));
}
END_TEST

/* Threads, file round trip, padding said, both arithmetics close. */
START_TEST(file_in_file_out)
{
    char line[2048], in[512], out[512];
    static dp_run other;
    (void)snprintf(in, sizeof in, "%s", scratch("in.h5"));
    (void)snprintf(out, sizeof out, "%s", scratch("out.h5"));
    write_tensors(in, 45, true, 0.0f);
    (void)snprintf(line, sizeof line, "range '%s' --per-head --threads 1 -o '%s'", in, out);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    ck_assert_ptr_nonnull(strstr(run.out, "45 keys, the last block of 32 is padded with 19 zeros"));
    (void)snprintf(line, sizeof line, "range '%s' --per-head --threads 7", in);
    run_directp(&other, line);
    ck_assert_str_eq(run.out, other.out);
    dp_range_study study = {0};
    dp_error error = {""};
    ck_assert_msg(dp_range_study_load(&study, out, &error), "%s", error.text);
    ck_assert_uint_eq(study.case_count, 4);
    ck_assert_uint_eq(study.format_count, 9);
    ck_assert_uint_eq(study.block, 32);
    ck_assert_str_eq(study.cases[2].source, "in.h5");
    ck_assert_int_eq(study.cases[2].head, 2);
    ck_assert(study.cases[2].causal && study.cases[2].sms == 0);

    dp_tensors tensors;
    dp_range_result fresh[4 * 9];
    ck_assert(dp_tensors_load(in, &tensors, &error));
    const dp_range_options options = {.block = 32, .per_head = true, .title = "test"};
    ck_assert(dp_range_run(&tensors, study.formats, 9, &options, fresh, &error));
    dp_tally tally = {0};
    for (size_t i = 0; i < 36; i++) {
        const dp_range_result *a = &study.results[i], *b = &fresh[i];
        const double pairs[][2] = {{a->zero_scale, b->zero_scale}, {a->underflow, b->underflow},
                                   {a->lost_mass, b->lost_mass},   {a->p_rel_l2, b->p_rel_l2},
                                   {a->pv_cosine, b->pv_cosine},   {a->pv_rel_l2, b->pv_rel_l2},
                                   {a->min_scale, b->min_scale}};
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
            (void)dp_tally_check(&tally, memcmp(&pairs[k][0], &pairs[k][1], 8) == 0 ||
                                             (isnan(pairs[k][0]) && isnan(pairs[k][1])));
        }
        (void)dp_tally_check(&tally, memcmp(a->counts.exponents, b->counts.exponents,
                                            sizeof a->counts.exponents) == 0);
        (void)dp_tally_check(&tally, a->lost_rows == b->lost_rows);
    }
    dp_assert_tally(tally, 300);
    dp_tensors_free(&tensors);
    dp_range_study_free(&study);
}
END_TEST

START_TEST(refusals)
{
    char line[2048], in[512];
    (void)snprintf(in, sizeof in, "%s", scratch("bad.h5"));
    assert_refused("range", "either --random SEED or HDF5 files");
    assert_refused("range --random 1 x.h5", "either --random SEED or HDF5 files");
    assert_refused("range --random 1 --seq 0", "--seq");
    assert_refused("range --random 1 --seq 5,,6", "--seq");
    assert_refused("range --random 1 --causal", "--causal");
    assert_refused("range --random 1 --formats fp4", "'fp4' is not a format");
    assert_refused("range --random 1 --block 12", "--block");
    assert_refused("range --random 1 --json --csv", "csv");
    assert_refused("range /nonexistent/x.h5", "/nonexistent/x.h5");
    write_tensors(in, 8, false, NAN); /* case 62: a NaN is found, not spread */
    (void)snprintf(line, sizeof line, "range '%s'", in);
    assert_refused(line, "bad.h5: /inputs/v: 1 of ");
    (void)snprintf(line, sizeof line, "range '%s' -o '%s'", in, in);
    assert_refused(line, "bad.h5");
    (void)snprintf(line, sizeof line, "plot range '%s' -o '%s'", in, scratch("p"));
    assert_refused(line, "bad.h5");
    assert_refused("plot nothing x.h5", "there is no kind 'nothing'");
}
END_TEST

START_TEST(case_112_points_of_a_log_axis)
{
    static const struct {
        double value, drawn;
        dp_point kind;
    } cases[] = {{10, 10, DP_POINT_SHOWN},
                 {0, 1e-3, DP_POINT_FLOOR},
                 {-1, 1e-3, DP_POINT_FLOOR},
                 {(double)NAN, 1e-3, DP_POINT_RUG},
                 {1e-45, 1e-3, DP_POINT_FLOOR},
                 {(double)INFINITY, 1e-3, DP_POINT_RUG},
                 {100, 100, DP_POINT_SHOWN},
                 {1e-3, 1e-3, DP_POINT_SHOWN},
                 {-(double)INFINITY, 1e-3, DP_POINT_RUG}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double drawn;
        ck_assert_int_eq(dp_plot_point(cases[i].value, 1e-3, &drawn), cases[i].kind);
        ck_assert(drawn == cases[i].drawn);
    }
}
END_TEST

/* Dropped points are counted in the settings, the user's script is kept, pictures are made. */
START_TEST(plot_range_files)
{
    char line[2048], dir[256], text[16384];
    (void)snprintf(dir, sizeof dir, "%s", scratch("plots"));
    (void)snprintf(line, sizeof line, "range --random 3 --seq 64,128 --heads 1 --rows 8 -o '%s'",
                   scratch("r.h5"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(line, sizeof line, "plot range '%s' -o '%s' --data-only", scratch("r.h5"), dir);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(line, sizeof line, "%s/range_settings.gp", dir);
    (void)scratch_text(line, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "floored_1 = 10")); /* five formats, two lengths, no zero */
    ck_assert_ptr_nonnull(strstr(text, "rugged_3 = 0"));
    ck_assert_ptr_nonnull(strstr(text, "lengths = \"64 128\""));
    char script[512];
    (void)snprintf(script, sizeof script, "%s/range.gp", dir);
    FILE *file = fopen(script, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("# mine\n", file);
    (void)fclose(file);
    (void)snprintf(line, sizeof line, "plot range '%s' -o '%s' --data-only", scratch("r.h5"), dir);
    run_directp(&run, line);
    ck_assert_str_eq(scratch_text(script, text, sizeof text), "# mine\n");
    if (system("gnuplot --version > /dev/null 2>&1") == 0) {
        struct stat status;
        (void)snprintf(line, sizeof line, "plot range '%s' -o '%s' --reset", scratch("r.h5"), dir);
        run_directp(&run, line);
        ck_assert_msg(run.status == 0 && run.err[0] == '\0', "%s", run.err);
        (void)snprintf(line, sizeof line, "%s/range_loss.png", dir);
        ck_assert(stat(line, &status) == 0 && status.st_size > 1000);
        (void)snprintf(line, sizeof line, "%s/range_scales.png", dir);
        ck_assert(stat(line, &status) == 0 && status.st_size > 1000);
    }
    (void)snprintf(line, sizeof line, "rm -r '%s'", dir);
    ck_assert_int_eq(system(line), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range_command");
    TCase *tests = tcase_create("range_command");
    tcase_add_test(tests, case_110_json_keeps_digits);
    tcase_add_test(tests, seeds_and_lengths);
    tcase_add_test(tests, file_in_file_out);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, case_112_points_of_a_log_axis);
    tcase_add_test(tests, plot_range_files);
    suite_add_tcase(suite, tests);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
