/* SPDX-License-Identifier: MIT
 *
 * directp record as a CI job runs it, --fail-if of diff and range, and the plot of a history.
 */
#include <hdf5.h>
#include <math.h>
#include <signal.h>

#include "analysis/history.h"
#include "scratch.h"

static char dump[512], wrong[512], history[512];

/* Change one byte in a hundred of a dataset of bytes. */
static void spoil(const char *path, const char *name)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    ck_assert(file >= 0 && set >= 0);
    const hid_t space = H5Dget_space(set);
    const size_t count = (size_t)H5Sget_simple_extent_npoints(space);
    ck_assert(H5Dget_storage_size(set) > 0 && count > 0);
    unsigned char *data = malloc(count);
    ck_assert(H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    for (size_t i = 0; i < count; i += 100) {
        data[i] ^= 1;
    }
    ck_assert(H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    free(data);
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    (void)H5Fclose(file);
}

static void make(void)
{
    static dp_run run;
    char line[2048];
    (void)snprintf(dump, sizeof dump, "%s", scratch("case.h5"));
    (void)snprintf(wrong, sizeof wrong, "%s", scratch("wrong.h5"));
    (void)snprintf(history, sizeof history, "%s", scratch("history.h5"));
    (void)snprintf(line, sizeof line,
                   "attend --random 5 --seq 128 --heads 2 --threads 1 --stages all -o '%s'", dump);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)snprintf(line, sizeof line, "cp '%s' '%s'", dump, wrong);
    ck_assert_int_eq(system(line), 0);
    spoil(wrong, "/code/p_payload");
}

static int record(dp_run *run, const char *input, const char *arguments)
{
    char line[2048];
    (void)snprintf(line, sizeof line, "record '%s' -o '%s' --threads 1 %s", input, history,
                   arguments);
    run_directp(run, line);
    return run->status;
}

static size_t runs(void)
{
    dp_history all;
    dp_error error = {""};
    ck_assert_msg(dp_history_load(&all, history, &error), "%s", error.text);
    const size_t count = all.count;
    dp_history_free(&all);
    return count;
}

/* The number after "NAME": in JSON. */
static double member(const char *json, const char *name)
{
    char key[80];
    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(json, key);
    ck_assert_msg(at != NULL, "no %s in %s", name, json);
    return strtod(at + strlen(key), NULL);
}

START_TEST(rates_are_those_of_the_other_verbs)
{
    static dp_run run, other;
    char line[2048];
    make();
    ck_assert_msg(record(&run, dump, "--json --label x --time 2026-11-29T21:30Z") == 0, "%s",
                  run.err);
    ck_assert(strstr(run.out, "\"time\": \"2026-11-29T21:30:00Z\"") != NULL);
    ck_assert(strstr(run.out, "\"series\": \"case\"") != NULL);
    ck_assert(strstr(run.out, "\"policy\": \"fast\"") != NULL);
    ck_assert(member(run.out, "mismatches") == 0.0 && member(run.out, "score_mismatches") == 0.0);
    ck_assert(member(run.out, "score_elements") == 2.0 * 128.0 * 128.0);
    (void)snprintf(line, sizeof line, "attend --random 5 --seq 128 --heads 2 --threads 1 --json");
    run_directp(&other, line);
    ck_assert(member(run.out, "rel_l2") == member(other.out, "rel_l2"));
    ck_assert(member(run.out, "cosine") == member(other.out, "cosine"));
    ck_assert(member(run.out, "rmse") == member(other.out, "rmse"));
    (void)snprintf(line, sizeof line,
                   "attend --random 5 --seq 128 --heads 2 --threads 1 --codes '%s' --json",
                   scratch("codes.h5"));
    run_directp(&other, line);
    ck_assert_msg(other.status == 0, "%s", other.err);
    const double match = member(run.out, "code_match");
    const double lost = member(run.out, "lost_mass");
    ck_assert(member(other.out, "match") == match);
    ck_assert_int_eq(record(&run, scratch("codes.h5"), "--json"), 0);
    ck_assert(member(run.out, "code_match") == match);
    ck_assert_uint_eq(runs(), 2);
    /* A wrong kernel: its mismatches, and its own rates. */
    ck_assert_int_eq(record(&run, wrong, "--json"), 0);
    const double mismatches = member(run.out, "code_mismatches");
    ck_assert(mismatches == 164.0); /* 2 * 128 * 64 bytes, every hundredth */
    ck_assert(member(run.out, "lost_mass") != lost);
    ck_assert(strstr(run.out, "\"first_wrong\": \"p_payload\"") != NULL);
    (void)snprintf(line, sizeof line, "diff '%s' --threads 1 -o '%s'", wrong, scratch("report.h5"));
    run_directp(&other, line);
    ck_assert_int_eq(other.status, 1);
    ck_assert_int_eq(record(&run, scratch("report.h5"), "--json"), 0);
    ck_assert(member(run.out, "code_mismatches") == mismatches);
    ck_assert(strstr(run.out, "\"code_match\": null") != NULL);
    (void)snprintf(line, sizeof line, "--against '%s' --json", dump);
    ck_assert_int_eq(record(&run, wrong, line), 0);
    ck_assert(member(run.out, "mismatches") == mismatches);
    ck_assert(strstr(run.out, "\"kind\": \"pair\"") != NULL);
    ck_assert(member(run.out, "rel_l2") == 0.0);
}
END_TEST

/* A dataset of the dump in one type. */
static void *take(const char *path, hid_t type)
{
    const hid_t file = H5Fopen(dump, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    void *data = malloc((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type));
    ck_assert(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    (void)H5Fclose(file);
    return data;
}

/* Zero scales, zero codes and lost mass out of the datasets alone, with the exact softmax. */
START_TEST(rates_of_p_from_the_definition)
{
    static dp_run run;
    enum { HEADS = 2, ROWS = 128, KEYS = 128 };
    make();
    double *raw = take("/score/raw", H5T_NATIVE_DOUBLE);
    double *q_global = take("/quantize/q_global", H5T_NATIVE_DOUBLE);
    double *k_global = take("/quantize/k_global", H5T_NATIVE_DOUBLE);
    uint8_t *code = take("/code/p_payload", H5T_NATIVE_UINT8);
    uint8_t *byte = take("/scale/p_scale", H5T_NATIVE_UINT8);
    for (size_t i = 5; i < HEADS * ROWS * KEYS / 32; i += 9) {
        byte[i] = 0; /* blocks that count as lost whole */
    }
    const hid_t file = H5Fopen(dump, H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, "/scale/p_scale", H5P_DEFAULT);
    ck_assert(H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, byte) >= 0);
    (void)H5Dclose(set);
    (void)H5Fclose(file);
    double zero_scale = 0, zero = 0, lost = 0;
    for (size_t row = 0; row < HEADS * ROWS; row++) {
        const double scale = q_global[row / ROWS] * k_global[row / ROWS] / sqrt(128.0);
        double sum = 0, gone = 0;
        for (size_t k = 0; k < KEYS; k++) {
            const size_t i = row * KEYS + k;
            const double p = exp(scale * (raw[i] - raw[row * KEYS]));
            const unsigned c = (unsigned)code[i / 2] >> (i % 2 * 4) & 7u;
            zero += c == 0;
            zero_scale += k % 32 == 0 && byte[i / 32] == 0;
            sum += p;
            gone += c == 0 || byte[i / 32] == 0 ? p : 0;
        }
        lost += gone / sum; /* a row has a probability of 1 */
    }
    ck_assert_int_eq(record(&run, dump, "--json"), 0);
    ck_assert(member(run.out, "zero_scale") == 32.0 * zero_scale / (HEADS * ROWS * KEYS));
    ck_assert(member(run.out, "zero_payload") == zero / (HEADS * ROWS * KEYS));
    const double given = member(run.out, "lost_mass");
    ck_assert_msg(fabs(given - lost / (HEADS * ROWS)) < 1e-5, "%.9g %.9g", given,
                  lost / (HEADS * ROWS));
    free(raw);
    free(q_global);
    free(k_global);
    free(code);
    free(byte);
}
END_TEST

/* Masked, grouped, batched and peaked problems: the figures of attend, digit for digit. */
START_TEST(rates_of_other_problems)
{
    static const char *const problems[] = {
        "--seq 200 --heads 4 --kv-heads 2 --causal --dim 64 --policy accurate --epoch R",
        "--seq 150 --heads 3 --batch 2 --policy guard-14b --epoch S",
        "--seq 130 --heads 2 --policy fast --epoch R --q-factor 10 --causal"};
    static const char *const figures[] = {"rel_l2", "cosine", "rmse", "nonfinite_rows"};
    static dp_run run, other;
    char line[2048], options[64];
    make();
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(line, sizeof line, "attend --random 3 %s --stages all -o '%s' --json",
                       problems[i], dump);
        run_directp(&other, line);
        ck_assert_msg(other.status == 0, "%s", other.err);
        (void)snprintf(options, sizeof options, "--label %zu --json", i);
        ck_assert_msg(record(&run, dump, options) == 0, "%s", run.err);
        for (size_t k = 0; k < 4; k++) {
            ck_assert(member(run.out, figures[k]) == member(other.out, figures[k]));
        }
        (void)snprintf(line, sizeof line, "attend --random 3 %s --codes '%s' --json", problems[i],
                       scratch("codes.h5"));
        run_directp(&other, line);
        ck_assert(member(run.out, "code_match") == member(other.out, "match"));
    }
}
END_TEST

START_TEST(conditions_decide_the_exit_status)
{
    static dp_run run;
    make();
    ck_assert_int_eq(record(&run, dump, "--fail-if 'mismatches>0, lost_mass>last*1.1'"), 0);
    ck_assert(strstr(run.err, "no earlier run") != NULL);
    ck_assert_int_eq(record(&run, wrong,
                            "--series case --fail-if 'mismatches>0' "
                            "--fail-if 'code_mismatches>=164,rel_l2>9'"),
                     1);
    ck_assert(strstr(run.err, "failed: case: mismatches>0 (") != NULL);
    ck_assert(strstr(run.err, "failed: case: code_mismatches>=164 (164, 164)") != NULL);
    ck_assert(strstr(run.err, "rel_l2>9") == NULL);
    ck_assert(strstr(run.out, "mismatches>0, code_mismatches>=164") != NULL);
    ck_assert_uint_eq(runs(), 2); /* a failed run is recorded */
    /* and is no yardstick: the last run that passed had no mismatch */
    ck_assert_int_eq(record(&run, wrong, "--series case --fail-if 'mismatches>last'"), 1);
    ck_assert_int_eq(record(&run, wrong, "--series other --fail-if 'mismatches>last'"), 0);
    ck_assert_int_eq(record(&run, wrong, "--series other --fail-if 'mismatches>last'"), 0);
    ck_assert_int_eq(record(&run, wrong, "--series other --fail-if 'code_match<best'"), 0);
    ck_assert_uint_eq(runs(), 6);
    char line[2048];
    (void)snprintf(line, sizeof line, "record '%s' -o '%s' --fail-if 'mismatch>0'", dump, history);
    assert_refused(line, "mismatch_rate quantize_elements");
    (void)snprintf(line, sizeof line, "record '%s' -o '%s' --fail-if 'p_rel_l2>0'", dump, history);
    assert_refused(line, "was not measured");
    (void)snprintf(line, sizeof line, "record '%s' '%s' -o '%s' --series x", dump, wrong, history);
    assert_refused(line, "--series");
    (void)snprintf(line, sizeof line, "record '%s' '%s' -o '%s'", dump, dump, history);
    assert_refused(line, "two inputs");
    (void)snprintf(line, sizeof line, "record '%s'", dump);
    assert_refused(line, "-o");
    (void)snprintf(line, sizeof line, "record '%s' -o '%s'", dump, dump);
    assert_refused(line, "kind");
    (void)snprintf(line, sizeof line, "record '%s' -o '%s' --time today", dump, history);
    assert_refused(line, "ISO 8601");
    (void)snprintf(line, sizeof line, "record '%s' -o '%s'", history, history);
    assert_refused(line, "kind");
    (void)snprintf(line, sizeof line, "record -o '%s' --fail-if 'rms>1'", history);
    assert_refused(line, "no input");
    ck_assert_uint_eq(runs(), 6);
}
END_TEST

/* Keys in another order than the policy's: every stage agrees, and still it is a difference. */
START_TEST(key_order_counts)
{
    static dp_run run;
    char line[2048];
    make();
    (void)snprintf(line, sizeof line,
                   "attend --random 5 --seq 256 --heads 1 --policy accurate --epoch R --set "
                   "key-order=natural --stages all -o '%s'",
                   dump);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    ck_assert_int_eq(record(&run, dump, "--fail-if 'mismatches>0'"), 0);
    ck_assert_int_eq(record(&run, dump, "--set key-order=anchor --json --fail-if 'mismatches>0'"),
                     1);
    ck_assert(member(run.out, "mismatches") == 1.0 && member(run.out, "code_mismatches") == 0.0);
    ck_assert(strstr(run.out, "\"first_wrong\": \"key_order\"") != NULL);
}
END_TEST

START_TEST(conditions_of_diff_and_range)
{
    static dp_run run;
    char line[2048];
    static const struct {
        const char *format;
        int status;
    } cases[] = {
        {"diff '%s' --threads 1", 1},
        {"diff '%s' --threads 1 --fail-if 'code_mismatches>164'", 0},
        {"diff '%s' --threads 1 --fail-if 'code_mismatches>163'", 1},
        {"diff '%s' --threads 1 --fail-if 'code_match<0.2'", 0},
        {"diff '%s' --threads 1 --fail-if 'rel_l2>0.2' --json", 1},
        {"diff '%s' --threads 1 --fail-if 'rel_l2>last'", 2},
        {"diff '%s' --threads 1 --fail-if 'rel_l2>'", 2},
        {"range '%s' --threads 1", 0},
        {"range '%s' --threads 1 --formats nvfp4-g1 --fail-if 'lost_mass>0.9'", 0},
        {"range '%s' --threads 1 --formats nvfp4-g1 --fail-if 'lost_mass>0' --csv", 1},
        {"range '%s' --threads 1 --formats nvfp4-g1,e4m3-g1 --fail-if 'zero_scale>2'", 0},
        {"range '%s' --threads 1 --formats e4m3-g1 --fail-if 'zero_scale>2'", 2},
        {"range '%s' --threads 1 --fail-if 'code_match<1'", 2},
        {"range '%s' --threads 1 --fail-if 'zero<1'", 2},
        {"range '%s' --heads 2", 2}, /* would be ignored */
        {"range '%s' --seq 128", 2},
        {"range '%s' --seed-plus-seq", 2},
        {"attend '%s' --seq 128", 2},
        {"attend '%s' --kv-heads=1", 2},
        {"attend '%s' --sms 148", 2},
    };
    make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(line, sizeof line, cases[i].format, wrong);
        run_directp(&run, line);
        ck_assert_msg(run.status == cases[i].status, "%s: %d %s", line, run.status, run.err);
    }
}
END_TEST

START_TEST(the_history_is_printed)
{
    static dp_run run;
    char line[2048];
    make();
    ck_assert_int_eq(record(&run, dump, "--label 'one, \"two\"'"), 0);
    (void)snprintf(line, sizeof line, "record -o '%s' --csv", history);
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 0);
    ck_assert(strncmp(run.out, "time,label,series,kind,", 23) == 0);
    ck_assert(strstr(run.out, "\"one, \"\"two\"\"\"") != NULL);
    (void)snprintf(line, sizeof line, "record -o '%s' --json", history);
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 0);
    ck_assert(strstr(run.out, "\"label\": \"one, \\\"two\\\"\"") != NULL);
    assert_refused("record -o /nonexistent.h5", "/nonexistent.h5");
}
END_TEST

/* Eight writers at once: every run is there. */
START_TEST(concurrent_appends)
{
    char line[2048];
    make();
    (void)snprintf(line, sizeof line,
                   "for i in 1 2 3 4 5 6 7 8; do '%s' record '%s' -o '%s' --threads 1 --label $i "
                   ">'%s'.$i 2>&1 & done; wait",
                   getenv("DIRECTP"), dump, history, scratch("log"));
    ck_assert_int_eq(system(line), 0);
    dp_history all;
    dp_error error = {""};
    ck_assert_msg(dp_history_load(&all, history, &error), "%s", error.text);
    ck_assert_uint_eq(all.count, 8);
    unsigned seen = 0;
    for (size_t i = 0; i < all.count; i++) {
        seen |= 1u << atoi(all.rows[i].text[DP_RUN_LABEL]);
    }
    ck_assert_uint_eq(seen, 0x1FEu);
    dp_history_free(&all);
    ck_assert_int_eq(scratch_count(".lock"), 0);
    ck_assert_int_eq(scratch_count(".tmp"), 0);
}
END_TEST

/* Killed at many moments, and on a full disk: the old history or the new one, never half of it. */
START_TEST(interrupted_appends)
{
    static dp_run run;
    char line[2048];
    make();
    ck_assert_int_eq(record(&run, dump, ""), 0);
    size_t before = 1;
    for (int i = 0; i < 14; i++) {
        (void)snprintf(line, sizeof line,
                       "'%s' record '%s' -o '%s' --threads 1 >'%s' 2>&1 & p=$!; sleep 0.%03d; "
                       "kill -%s $p 2>/dev/null; wait $p; true",
                       getenv("DIRECTP"), dump, history, scratch("log"), i * 9,
                       i % 2 == 0 ? "KILL" : "TERM");
        ck_assert_int_eq(system(line), 0);
        const size_t now = runs();
        ck_assert(now == before || now == before + 1);
        before = now;
    }
    ck_assert_int_eq(record(&run, dump, ""), 0); /* a lock file left behind stops nobody */
    ck_assert_uint_eq(runs(), before + 1);
    (void)snprintf(line, sizeof line, "ulimit -f 20; '%s' record '%s' -o '%s' --threads 1 2>'%s'",
                   getenv("DIRECTP"), dump, history, scratch("log"));
    const int status = system(line);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    ck_assert_uint_eq(runs(), before + 1);
}
END_TEST

/* `directp VERB -o FILE | head`: the closed pipe ends the verb, the file is there. */
START_TEST(files_survive_a_closed_pipe)
{
    static const char *const verbs[] = {"matrix --seq 64 --heads 1",
                                        "range --random 1 --seq 16,32,48,64",
                                        "fit --sigma 1 --blocks 64", "attend --random 1 --seq 64"};
    char line[2048];
    make();
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        /* The reader is gone before anything is written; JSON is more than a buffer holds. */
        (void)snprintf(line, sizeof line, "{ sleep 0.2; '%s' %s --json -o '%s'; } 2>'%s' | true",
                       getenv("DIRECTP"), verbs[i], scratch("kept.h5"), scratch("log"));
        ck_assert_int_eq(system(line), 0);
        ck_assert_msg(access(scratch("kept.h5"), R_OK) == 0, "%s", verbs[i]);
        (void)unlink(scratch("kept.h5"));
    }
    (void)snprintf(line, sizeof line, "{ sleep 0.2; '%s' diff '%s' --json -o '%s'; } 2>'%s' | true",
                   getenv("DIRECTP"), wrong, scratch("kept.h5"), scratch("log"));
    ck_assert_int_eq(system(line), 0);
    ck_assert(access(scratch("kept.h5"), R_OK) == 0);
}
END_TEST

/* Cut short and with bits turned over: refused and left alone, or taken; never a crash. */
START_TEST(damaged_histories)
{
    static dp_run run;
    static unsigned char bytes[1 << 20], after[1 << 20];
    char report[512], line[2048];
    dp_tally tally = {0};
    dp_rng rng = {41};
    make();
    (void)snprintf(report, sizeof report, "%s", scratch("report.h5"));
    (void)snprintf(line, sizeof line, "diff '%s' --threads 1 -o '%s'", dump, report);
    run_directp(&run, line);
    ck_assert_int_eq(run.status, 0);
    ck_assert_int_eq(record(&run, report, ""), 0);
    FILE *file = fopen(history, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    for (int i = 0; i < 30; i++) {
        const bool cut = i % 10 == 0;
        const size_t at = dp_rng_below(&rng, (uint32_t)(i % 2 == 0 ? size : 6000));
        const size_t length = cut ? at : size;
        bytes[at] ^= (unsigned char)(1u << i % 8);
        file = fopen(history, "wb");
        ck_assert(file != NULL && fwrite(bytes, 1, length, file) == length);
        (void)fclose(file);
        const int status = record(&run, report, "");
        file = fopen(history, "rb");
        const size_t now = fread(after, 1, sizeof after, file);
        (void)fclose(file);
        const bool kept = now == length && memcmp(bytes, after, length) == 0;
        const bool refused = status == 2 && kept && strncmp(run.err, "directp: ", 9) == 0;
        if (!dp_tally_check(&tally, refused || (status == 0 && !cut))) {
            dp_tally_note(&tally, "byte %zu: status %d: %s", at, status, run.err);
        }
        bytes[at] ^= (unsigned char)(1u << i % 8);
    }
    dp_assert_tally(tally, 30);
}
END_TEST

START_TEST(plots)
{
    static dp_run run;
    char line[2048];
    make();
    ck_assert_int_eq(record(&run, dump, "--label 'a \"b\" $c `d`'"), 0);
    (void)snprintf(line, sizeof line, "plot history '%s' --data-only -o '%s'", history,
                   scratch("plots"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    static char text[8192];
    (void)scratch_text(scratch("plots/history_settings.gp"), text, sizeof text);
    ck_assert(strstr(text, "runs = 1\n") != NULL && strstr(text, "series = 1\n") != NULL);
    ck_assert(strstr(text, "tick_1 = \"a _b_ _c _d_\"\n") != NULL);
    ck_assert_int_eq(record(&run, wrong, "--fail-if 'mismatches>0'"), 1);
    run_directp(&run, line);
    (void)scratch_text(scratch("plots/history_settings.gp"), text, sizeof text);
    ck_assert(strstr(text, "runs = 2\n") != NULL && strstr(text, "series = 2\n") != NULL);
    ck_assert(strstr(text, "failures = 1\n") != NULL);
    /* Calls of one job are one run, the same series again is the next. */
    ck_assert_int_eq(record(&run, dump, "--label job"), 0);
    ck_assert_int_eq(record(&run, wrong, "--label job --time 2026-01-01"), 0);
    run_directp(&run, line);
    (void)scratch_text(scratch("plots/history_settings.gp"), text, sizeof text);
    ck_assert(strstr(text, "runs = 3\n") != NULL);
    ck_assert_int_eq(record(&run, dump, "--label job"), 0);
    run_directp(&run, line);
    (void)scratch_text(scratch("plots/history_settings.gp"), text, sizeof text);
    ck_assert(strstr(text, "runs = 4\n") != NULL);
    if (system("command -v gnuplot >/dev/null") == 0) {
        (void)snprintf(line, sizeof line, "plot history '%s' -o '%s'", history, scratch("plots"));
        run_directp(&run, line);
        ck_assert_msg(run.status == 0 && run.err[0] == '\0', "%s", run.err);
        ck_assert(access(scratch("plots/history.png"), R_OK) == 0);
    }
    (void)snprintf(line, sizeof line, "rm -rf '%s'", scratch("plots"));
    ck_assert_int_eq(system(line), 0);
    (void)snprintf(line, sizeof line, "plot history '%s' -o '%s'", dump, scratch("plots"));
    assert_refused(line, "kind");
    (void)rmdir(scratch("plots"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *tests = tcase_create("record");
    tcase_add_checked_fixture(tests, NULL, scratch_remove);
    tcase_add_test(tests, rates_are_those_of_the_other_verbs);
    tcase_add_test(tests, rates_of_p_from_the_definition);
    tcase_add_test(tests, rates_of_other_problems);
    tcase_add_test(tests, conditions_decide_the_exit_status);
    tcase_add_test(tests, key_order_counts);
    tcase_add_test(tests, conditions_of_diff_and_range);
    tcase_add_test(tests, the_history_is_printed);
    tcase_add_test(tests, concurrent_appends);
    tcase_add_test(tests, interrupted_appends);
    tcase_add_test(tests, files_survive_a_closed_pipe);
    tcase_add_test(tests, damaged_histories);
    tcase_add_test(tests, plots);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
