/* SPDX-License-Identifier: MIT
 *
 * `directp attend` and `directp plot codes` as a user runs them: reports, files, refusals; and what
 * happens on real tensors, stage by stage (ref/forward/REAL.md).
 */
#include <math.h>
#include <sys/stat.h>

#include "analysis/codes.h"
#include "analysis/h5.h"
#include "scratch.h"

static dp_run run;

/* The number after "key": in text. */
static double json_number(const char *from, const char *key)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(from, quoted);
    ck_assert_msg(found != NULL, "no %s in: %s", key, from);
    return strtod(found + strlen(quoted), NULL);
}

static void attend(const char *arguments)
{
    char line[2048];
    (void)snprintf(line, sizeof line, "attend %s", arguments);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "attend %s: %s", arguments, run.err);
}

/* Column `field` (from 0) of the last line of CSV. */
static double last_cell(int field)
{
    const char *end = run.out + strlen(run.out);
    while (end > run.out && (end[-1] == '\n' || end[-1] == '\r')) {
        end--;
    }
    const char *at = end;
    while (at > run.out && at[-1] != '\n') {
        at--;
    }
    while (field-- > 0) {
        at = strchr(at, ',');
        ck_assert_ptr_nonnull(at);
        at++;
    }
    return strtod(at, NULL);
}

#define SMALL "--random 7 --seq 256 --heads 2 "

START_TEST(reports_agree)
{
    static char once[65536];
    attend(SMALL "--policy accurate --per-head --csv --threads 1");
    (void)snprintf(once, sizeof once, "%s", run.out);
    attend(SMALL "--policy accurate --per-head --csv --threads 3");
    ck_assert_str_eq(run.out, once);
    const double total = last_cell(3);
    attend(SMALL "--policy accurate --json");
    ck_assert(json_number(run.out, "rel_l2") == total);
    ck_assert_ptr_nonnull(strstr(run.out, "\"rows\": 512"));
    /* Against exact attention it is the same error but for what BF16 itself loses. */
    attend(SMALL "--policy accurate --decompose --json");
    ck_assert_double_eq_tol(json_number(run.out, "total"), total, 0.002);
    ck_assert(json_number(run.out, "bf16") < 0.004);
    /* A switch that changes nothing, and one that does. */
    attend(SMALL "--policy accurate --csv --set a=1.65,b=0.8");
    ck_assert(last_cell(3) == total);
    attend(SMALL "--policy accurate --csv --set b=0.7");
    ck_assert(fabs(last_cell(3) - total) > 1e-4);
    attend(SMALL "--route hao-nv-fp8 --csv");
    ck_assert(last_cell(3) < 0.2);
}
END_TEST

START_TEST(dump_says_how_it_was_made)
{
    char line[1024], path[512];
    (void)snprintf(path, sizeof path, "%s", scratch("dump.h5"));
    (void)snprintf(line, sizeof line,
                   SMALL "--policy guard-14b --epoch R --set shift=15,margin-units=log2 "
                         "--stages code,output -o '%s'",
                   path);
    attend(line);
    dp_h5 file;
    dp_error error = {""};
    char *text = NULL;
    ck_assert_msg(dp_h5_open(&file, path, &error), "%s", error.text);
    ck_assert(dp_h5_check_root(&file, "dump", NULL, &error));
    static const struct {
        const char *name, *part;
    } attributes[] = {{"policy", "guard-14b"},
                      {"policy_fields", "shift=15\n"},
                      {"epoch", "R"},
                      {"switches", "margin-units=log2\n"},
                      {"switches", "mma.zero_group="},
                      {"sfu", "exact"},
                      {"source", "random seed 7, 152 SMs"}};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        ck_assert_msg(dp_h5_text(&file, "/", attributes[i].name, &text, &error), "%s", error.text);
        ck_assert_msg(strstr(text, attributes[i].part) != NULL, "%s", text);
        free(text);
    }
    ck_assert(dp_h5_exists(&file, "/code/p_payload") && dp_h5_exists(&file, "/output/o"));
    ck_assert(!dp_h5_exists(&file, "/score/raw"));
    dp_h5_close(&file);
}
END_TEST

START_TEST(codes_file_and_pictures)
{
    char line[2048], a[512], b[512], text[8192];
    (void)snprintf(a, sizeof a, "%s", scratch("fast.h5"));
    (void)snprintf(b, sizeof b, "%s", scratch("ideal.h5"));
    (void)snprintf(line, sizeof line, SMALL "--policy ideal --codes '%s' --json", b);
    attend(line);
    const double lanes = json_number(run.out, "lanes");
    ck_assert(lanes == 2.0 * 256 * 256);
    ck_assert(json_number(run.out, "match") > 0.99999);
    (void)snprintf(line, sizeof line, SMALL "--policy fast --codes '%s'", a);
    attend(line);
    ck_assert_ptr_nonnull(strstr(run.out, "share that got"));
    dp_codes_file file;
    dp_error error = {""};
    ck_assert_msg(dp_codes_load(a, &file, &error), "%s", error.text);
    ck_assert_str_eq(file.policy, "fast");
    int64_t sum = 0;
    for (int i = 0; i < DP_CODE_COUNT; i++) {
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            sum += file.match.confusion[i][k];
        }
    }
    ck_assert(sum == (int64_t)lanes && file.match.lanes == sum);
    /* The affine map gives about 0.41 of the codes of 2^x on N(0,1) scores. */
    const double share = (double)file.match.match / lanes;
    ck_assert_msg(share > 0.38 && share < 0.45, "%g", share);

    (void)snprintf(line, sizeof line, "plot codes '%s' '%s' --data-only -o '%s'", a, b,
                   scratch_folder);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    (void)scratch_text(scratch("codes_settings.gp"), text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "files = 2"));
    ck_assert_ptr_nonnull(strstr(text, "label_1 = \"fast S, random seed 7, 152 SMs\""));
    /* Not a codes file: said so. */
    (void)snprintf(line, sizeof line, "attend " SMALL "-o '%s'", scratch("other.h5"));
    run_directp(&run, line);
    (void)snprintf(line, sizeof line, "plot codes '%s' -o '%s'", scratch("other.h5"),
                   scratch_folder);
    assert_refused(line, "other.h5");
}
END_TEST

START_TEST(key_heads)
{
    attend("--random 7 --seq 128 --heads 4 --kv-heads 2 --csv");
    const double block = last_cell(2);
    attend("--random 7 --seq 128 --heads 4 --kv-heads 2 --csv --kv-map block");
    ck_assert(last_cell(2) == block);
    attend("--random 7 --seq 128 --heads 4 --kv-heads 2 --csv --kv-map interleave");
    ck_assert(last_cell(2) != block);
    /* One query head for each key head: both maps are the same. */
    attend("--random 7 --seq 128 --heads 2 --csv");
    const double plain = last_cell(2);
    attend("--random 7 --seq 128 --heads 2 --csv --kv-map interleave");
    ck_assert(last_cell(2) == plain);
}
END_TEST

/* Layer 0: infinities are born in the accumulator, in rows of saturated bytes, and smoothing the
 * keys removes them. */
START_TEST(real_tensors_stage_by_stage)
{
    enum { HEADS = 4, ROWS = 2048, D = 128, BLOCKS = 64 };
    char line[2048], file[512], dump[512];
    (void)dp_source_path(file, sizeof file, "data/real/qwen15_layer00.h5");
    (void)snprintf(dump, sizeof dump, "%s", scratch("real.h5"));
    (void)snprintf(line, sizeof line,
                   "'%s' --policy fast --epoch S --stages scale,denominator,accumulate,output "
                   "-o '%s'",
                   file, dump);
    attend(line);
    dp_h5 h5;
    dp_h5_shape shape;
    dp_error error = {""};
    void *scale = NULL, *sum = NULL, *acc = NULL, *o = NULL;
    ck_assert(dp_h5_open(&h5, dump, &error));
    ck_assert(dp_h5_read(&h5, "/scale/p_scale", DP_H5_U8, 4, &shape, &scale, &error));
    ck_assert_uint_eq(shape.count, HEADS * ROWS * BLOCKS);
    ck_assert(dp_h5_read(&h5, "/denominator/row_sum", DP_H5_F32, 3, &shape, &sum, &error));
    ck_assert(dp_h5_read(&h5, "/accumulate/acc", DP_H5_F32, 4, &shape, &acc, &error));
    ck_assert(dp_h5_read(&h5, "/output/o", DP_H5_U16, 4, &shape, &o, &error));
    dp_h5_close(&h5);
    static const int bad_rows[HEADS] = {207, 214, 0, 0}, zero_rows[HEADS] = {952, 924, 1231, 58};
    dp_tally tally = {0};
    for (size_t h = 0; h < HEADS; h++) {
        int bad = 0, zeros = 0;
        for (size_t row = h * ROWS; row < (h + 1) * ROWS; row++) {
            const float row_sum = ((const float *)sum)[row];
            bool infinite = false, nan = false, zero = true, saturated = false;
            for (size_t d = row * D; d < (row + 1) * D; d++) {
                const uint16_t bits = ((const uint16_t *)o)[d];
                infinite = infinite || isinf(((const float *)acc)[d]);
                nan = nan || (bits & 0x7FFFu) > 0x7F80u;
                zero = zero && (bits & 0x7FFFu) == 0;
            }
            for (size_t b = row * BLOCKS; b < (row + 1) * BLOCKS; b++) {
                saturated = saturated || ((const uint8_t *)scale)[b] == 238;
            }
            bad += nan;
            zeros += zero;
            dp_tally_check(&tally, isfinite(row_sum) && nan == infinite);
            dp_tally_check(&tally, !nan || (saturated && row_sum > 0x1p126f / 36.0f));
            dp_tally_check(&tally, !zero || row_sum == 0.0f || row_sum > 0x1p126f / 36.0f);
        }
        dp_tally_check(&tally, bad == bad_rows[h] && zeros == zero_rows[h]);
    }
    dp_assert_tally(tally, HEADS * ROWS * 3);
    free(scale);
    free(sum);
    free(acc);
    free(o);
    (void)snprintf(line, sizeof line, "'%s' --policy fast --smooth-k --csv", file);
    attend(line);
    ck_assert(last_cell(6) == 0.0 && last_cell(2) > 0.98);
}
END_TEST

START_TEST(refusals)
{
    char line[1024];
    assert_refused("attend", "--random");
    assert_refused("attend --random 1 x.h5", "give one of them");
    assert_refused("attend --random 1 --policy fats", "fats");
    assert_refused("attend --random 1 --policy fast --route sage3", "give one of them");
    assert_refused("attend --random 1 --epoch R --route sage3", "give one of them");
    assert_refused("attend --random 1 --stages score", "give -o FILE");
    assert_refused("device diff --random 1 --heads 3 --kv-heads 2", "");
    assert_refused("attend --random 1 --set density=8", "sixteen pairs");
    assert_refused("attend --random 1 --set reference=anchor", "1 to 128");
    assert_refused("attend --random 1 --policy accurate --set anchor=0", "1 to 128");
    assert_refused("attend --random 1 --set colour=red", "no such");
    assert_refused("attend --random 1 --set mma.zero_group=maybe", "maybe");
    assert_refused("attend --random 1 --seq 128 --heads 3 --kv-heads 2", "divisor");
    assert_refused("attend --random 1 --causal --no-causal", "exclude");
    assert_refused("attend --random 1 --route nope", "nope");
    assert_refused("attend --random 1 --route sage3 --decompose", "--route");
    assert_refused("attend --random 1 --table", "--table");
    assert_refused("attend --random 1 --decompose --codes x.h5", "give one");
    assert_refused("attend a.h5 b.h5", "2 files");
    assert_refused("attend --random 1 --kv-map diagonal", "diagonal");
    (void)snprintf(line, sizeof line, "attend '%s'", scratch("absent.h5"));
    assert_refused(line, "absent.h5");
    (void)snprintf(line, sizeof line, "attend --random 1 --seq 128 --stages scale,smell -o '%s'",
                   scratch("never.h5"));
    assert_refused(line, "smell");
    ck_assert_int_eq(scratch_count("never"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attend command");
    TCase *tests = tcase_create("attend command");
    tcase_add_test(tests, reports_agree);
    tcase_add_test(tests, dump_says_how_it_was_made);
    tcase_add_test(tests, codes_file_and_pictures);
    tcase_add_test(tests, key_heads);
    tcase_add_test(tests, real_tensors_stage_by_stage);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
