/* SPDX-License-Identifier: MIT
 *
 * directp cases: write the standard case set. directp verify: judge the dumps that came back.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/attend_choice.h"
#include "analysis/commands.h"
#include "analysis/diff_report.h"
#include "analysis/options.h"
#include "analysis/standard_cases.h"

static const char *file_of(const char *dir, const char *name, const char *ending, char *path)
{
    (void)snprintf(path, DP_PATH_SIZE, "%s/%s%s", dir, name, ending);
    return path;
}

static bool write_cases(const char *dir, const dp_direct_p *aimed, dp_error *error)
{
    char path[DP_PATH_SIZE];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        return dp_fail(error, "%s: cannot make this folder: %s", dir, strerror(errno));
    }
    for (size_t i = 0; dp_standard_case_at(i) != NULL; i++) {
        const dp_standard_case *which = dp_standard_case_at(i);
        dp_tensors tensors;
        if (!dp_standard_case_make(which, aimed, &tensors, error)) {
            return false;
        }
        const bool good = dp_tensors_save(file_of(dir, which->name, ".h5", path), &tensors, error);
        dp_tensors_free(&tensors);
        if (!good) {
            return false;
        }
        (void)printf("%-18s %zu x %zu, heads %zu/%zu: %s\n", which->name, which->queries,
                     which->keys, which->q_heads, which->kv_heads, which->purpose);
    }
    return true;
}

int dp_cmd_cases(int argc, char **argv)
{
    const char *dir = "cases";
    const char *policy = "fast";
    const char *epoch = "R";
    const char *set = NULL;
    const dp_option options[] = {
        {.name = "output",
         .type = DP_OPTION_TEXT,
         .value = &dir,
         .help = "folder for the cases; made when missing",
         .argument = "DIR",
         .letter = 'o'},
        DP_TEXT("policy", &policy, "NAME", "aim one head of the midpoints at this policy too"),
        DP_CHOICE("epoch", &epoch, "S|R", "sources of that policy"),
        DP_TEXT("set", &set, "NAME=VALUE,...", "fields of that policy")};
    const dp_usage usage = {
        .verb = "cases",
        .operands = "",
        .summary =
            "Write the standard case set: the inputs on which a kernel must agree with the "
            "oracle before it is called verified. Put the kernel's dump of NAME.h5 beside it "
            "as NAME.dump.h5 and run `directp verify DIR`.",
        .notes = "The case p-midpoints is aimed at the policies fast, wan, accurate, guard-1.3b,\n"
                 "guard-14b and ideal-accurate; a kernel with other constants takes --policy and\n"
                 "--set, so that its values too lie on the midpoints.",
        .example = "directp cases -o cases\n"
                   "directp attend cases/random.h5 --policy fast --stages all -o "
                   "cases/random.dump.h5\n"
                   "directp verify cases",
        .least = 0,
        .most = 0,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    dp_direct_p aimed;
    dp_mma_switches mma = {0};
    const bool good =
        dp_launch_choice(policy, epoch, set, "exact", 1.0 / sqrt(128.0), &aimed, &mma, &error) &&
        write_cases(dir, &aimed, &error);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}

/* ---- verify -------------------------------------------------------------------------------------
 */

enum { MIDPOINT_ULPS = 16 };

/* What the dumps exercised, over all cases. */
typedef struct {
    uint64_t q_code[16], k_code[16], v_code[16], p_code[8];
    uint64_t q_scale[256], v_scale[256], p_scale[256];
    uint64_t count[385];
    uint64_t zero_rows;
    uint64_t midpoints[7][3]; /* values just below, on, and just above each midpoint */
    uint64_t floors;          /* blocks at the stored floor */
} coverage;

/* The floats just below a midpoint, it, and those above. */
static void count_value(coverage *c, float y)
{
    static const float middle[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    for (int k = 0; k < 7; k++) {
        const int64_t at = (int64_t)dp_f32_bits(y) - (int64_t)dp_f32_bits(middle[k]);
        if (y > 0.0f && at >= -MIDPOINT_ULPS && at <= MIDPOINT_ULPS) {
            c->midpoints[k][at < 0 ? 0 : at == 0 ? 1 : 2]++;
        }
    }
}

static void cover_midpoints(const dp_unit *unit, coverage *c)
{
    const dp_forward_policy *policy = &unit->launch.policy;
    const size_t keys = unit->dump->key_rows;
    const int stage = (int)(unit->query_tile & 1u);
    for (size_t i = 0; i < unit->rows * keys; i += DP_BLOCK) {
        const int quarter = (int)(i / DP_BLOCK % DP_QUARTERS);
        const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + i;
        const float m = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[i / keys];
        float largest = -INFINITY;
        for (size_t j = 0; j < DP_BLOCK; j++) {
            largest = raw[j] > largest ? raw[j] : largest;
        }
        if (policy->rebase_q1 && stage == 0 && quarter == 1) {
            continue; /* another path, whose values are not looked at */
        }
        const int u = dp_block_byte(&unit->launch, largest, m);
        const dp_block_scalars s =
            dp_block_offsets(&unit->launch, m, dp_working_byte(&unit->launch, u));
        for (size_t j = 0; j < DP_BLOCK; j++) {
            const bool native = dp_forward_policy_native_pair(policy, stage, quarter, (int)j / 2);
            count_value(c, dp_lane_value(&unit->launch, s, native, raw[j]));
        }
    }
}

static void cover_codes(const dp_unit *unit, dp_dump_id id, uint64_t *counts, unsigned mask)
{
    const bool query = dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS;
    const size_t rows = query ? unit->rows : dp_dump_head_rows(unit->dump, id);
    for (size_t i = 0; unit->in.valid[id] && i < rows * dp_dump_width(unit->dump, id); i++) {
        const uint8_t byte = dp_strip_u8(&unit->in, id)[i];
        if (mask == 255u) {
            counts[byte]++;
        } else {
            counts[byte & mask]++;
            counts[byte >> 4 & mask]++;
        }
    }
}

static bool cover(const dp_dump *dump, coverage *c, dp_error *error)
{
    dp_unit unit;
    dp_operands operands;
    memset(&operands, 0, sizeof operands);
    bool good = dp_unit_allocate(&unit, dump, 0, error) &&
                (!dump->has_inputs || dp_diff_operands(dump, &dump->launch, 0, &operands, error));
    unit.operands = dump->has_inputs ? &operands : NULL;
    for (size_t i = 0; good && i < dp_unit_count(dump); i++) {
        good = dp_unit_load(&unit, i, error);
        if (!good) {
            break;
        }
        cover_codes(&unit, DP_DUMP_Q_PAYLOAD, c->q_code, 15);
        cover_codes(&unit, DP_DUMP_K_PAYLOAD, c->k_code, 15);
        cover_codes(&unit, DP_DUMP_V_PAYLOAD, c->v_code, 15);
        cover_codes(&unit, DP_DUMP_P_PAYLOAD, c->p_code, 7);
        cover_codes(&unit, DP_DUMP_Q_SCALE, c->q_scale, 255);
        cover_codes(&unit, DP_DUMP_V_SCALE, c->v_scale, 255);
        cover_codes(&unit, DP_DUMP_P_SCALE, c->p_scale, 255);
        const size_t blocks = unit.rows * (dump->key_rows / DP_BLOCK);
        for (size_t b = 0; unit.in.valid[DP_DUMP_CODE_SUM] && b < blocks; b++) {
            const uint16_t sum = dp_strip_u16(&unit.in, DP_DUMP_CODE_SUM)[b];
            c->count[sum > 384 ? 384 : sum]++;
        }
        for (size_t r = 0; unit.in.valid[DP_DUMP_ROW_SUM] && r < unit.rows; r++) {
            c->zero_rows += dp_strip_f32(&unit.in, DP_DUMP_ROW_SUM)[r] == 0.0f;
        }
        if (unit.in.valid[DP_DUMP_RAW] && unit.in.valid[DP_DUMP_ROW_REF]) {
            cover_midpoints(&unit, c);
        }
    }
    dp_unit_free(&unit);
    dp_operands_free(&operands);
    return good;
}

static bool equal_inputs(const dp_dump *dump, const dp_tensors *t)
{
    bool same = dump->batch == 1 && dump->q_heads == t->q_heads && dump->kv_heads == t->kv_heads &&
                dump->queries == t->q_len && dump->keys == t->kv_len && dump->dim == t->dim;
    const size_t q = t->q_heads * t->q_len * t->dim;
    const size_t kv = t->kv_heads * t->kv_len * t->dim;
    for (size_t i = 0; same && i < q; i++) {
        same = dump->q[i] == dp_f32_bits(t->q[i]) >> 16;
    }
    for (size_t i = 0; same && i < kv; i++) {
        same = dump->k[i] == dp_f32_bits(t->k[i]) >> 16 && dump->v[i] == dp_f32_bits(t->v[i]) >> 16;
    }
    return same;
}

/* The dump's own inputs must be the case's, aimed at no policy or at its own: other data prove
 * nothing about this case. */
static bool same_inputs(const dp_standard_case *which, const dp_dump *dump, dp_error *error)
{
    bool same = false;
    if (!dump->has_inputs) {
        return dp_fail(error, "%s: it has no /inputs: dump Q, K and V of %s.h5 with the stages",
                       dump->path, which->name);
    }
    const dp_direct_p *const aims[] = {NULL, &dump->launch};
    for (int i = 0; i < 2 && !same; i++) {
        dp_tensors t;
        if (!dp_standard_case_make(which, aims[i], &t, error)) {
            return false;
        }
        same = equal_inputs(dump, &t);
        dp_tensors_free(&t);
    }
    return same ||
           dp_fail(error, "%s: its inputs are not those of %s.h5: run the kernel on the case",
                   dump->path, which->name);
}

typedef struct {
    int missing, different, partial;
    coverage seen;
} verdict;

static const dp_column COLUMNS[] = {{"case", NULL, -1},       {"verdict", NULL, -1},
                                    {"stages", NULL, -1},     {"elements", NULL, -1},
                                    {"mismatches", NULL, -1}, {"first_wrong", NULL, -1},
                                    {"diagnosis", NULL, -1}};

static void add_row(dp_report *report, const dp_standard_case *which, const dp_diff_result *result,
                    verdict *v)
{
    int64_t stages = 0;
    uint64_t elements = 0, mismatches = 0;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        stages += result->set[d].compared;
        elements += result->set[d].elements;
        mismatches += result->set[d].mismatches;
    }
    const bool wrong = result->first_wrong >= 0 || result->order_differs;
    v->different += wrong;
    v->partial += stages < DP_DUMP_DATASETS;
    dp_report_text(report, which->name);
    dp_report_text(report, wrong                       ? "DIFFERS"
                           : stages < DP_DUMP_DATASETS ? "same, in part"
                                                       : "same");
    dp_report_i64(report, stages);
    dp_report_i64(report, (int64_t)elements);
    dp_report_i64(report, (int64_t)mismatches);
    dp_report_text(report, result->first_wrong >= 0 ? dp_dump_datasets[result->first_wrong].name
                           : result->order_differs  ? "key_order"
                                                    : "");
    dp_report_text(report, result->finding_count > 0 ? result->findings[0].name
                           : wrong                   ? "no known mistake"
                                                     : "");
}

static bool verify_case(const dp_standard_case *which, const char *dir,
                        const dp_dump_overrides *overrides, dp_report *report, verdict *v,
                        dp_error *error)
{
    char path[DP_PATH_SIZE];
    struct stat status;
    dp_dump dump;
    if (stat(file_of(dir, which->name, ".dump.h5", path), &status) != 0) {
        v->missing++;
        dp_report_text(report, which->name);
        dp_report_text(report, "MISSING");
        for (int i = 0; i < 3; i++) {
            dp_report_i64(report, 0);
        }
        dp_report_text(report, "");
        dp_report_text(report, "");
        return true;
    }
    if (!dp_dump_open(&dump, path, overrides, error)) {
        return false;
    }
    const dp_diff_job job = {.dump = &dump};
    dp_diff_result *result = same_inputs(which, &dump, error) ? dp_diff_run(&job, error) : NULL;
    const bool good = result != NULL && cover(&dump, &v->seen, error);
    if (good) {
        add_row(report, which, result, v);
    }
    free(result);
    dp_dump_close(&dump);
    return good;
}

static int seen(const uint64_t *counts, int n)
{
    int used = 0;
    for (int i = 0; i < n; i++) {
        used += counts[i] > 0;
    }
    return used;
}

static void range_of(const uint64_t *counts, int n, int *low, int *high)
{
    *low = -1;
    *high = -1;
    for (int i = 0; i < n; i++) {
        if (counts[i] > 0) {
            *low = *low < 0 ? i : *low;
            *high = i;
        }
    }
}

static void print_midpoints(const coverage *c, FILE *stream)
{
    static const char *const side[] = {"1-16 ulps below", "on it", "1-16 ulps above"};
    (void)fputs("  values of P around the midpoints\n                   "
                "     0.25    0.75    1.25    1.75     2.5     3.5       5\n",
                stream);
    for (int i = 0; i < 3; i++) {
        (void)fprintf(stream, "    %-16s", side[i]);
        for (int k = 0; k < 7; k++) {
            (void)fprintf(stream, " %7llu", (unsigned long long)c->midpoints[k][i]);
        }
        (void)fputs("\n", stream);
    }
}

static void print_scales(const char *name, const uint64_t counts[256], FILE *stream)
{
    int low, high;
    range_of(counts, 256, &low, &high);
    (void)fprintf(stream, "  scales of %s    %d bytes", name, seen(counts, 256));
    if (low >= 0) {
        (void)fprintf(stream, ", 0x%02X to 0x%02X", (unsigned)low, (unsigned)high);
    }
    (void)fputs("\n", stream);
}

static void print_coverage(const coverage *c, FILE *stream)
{
    int low, high;
    (void)fprintf(stream,
                  "\nCoverage of the dumps\n"
                  "  codes          Q %d of 16, K %d of 16, V %d of 16, P %d of 8\n",
                  seen(c->q_code, 16), seen(c->k_code, 16), seen(c->v_code, 16),
                  seen(c->p_code, 8));
    print_scales("Q", c->q_scale, stream);
    print_scales("V", c->v_scale, stream);
    print_scales("P", c->p_scale, stream);
    range_of(c->count, 385, &low, &high);
    (void)fprintf(stream, "  sums of codes  %d values", seen(c->count, 385));
    if (low >= 0) {
        (void)fprintf(stream, ", %d to %d", low, high);
    }
    (void)fputs("\n", stream);
    (void)fprintf(stream, "  rows of sum 0  %llu\n", (unsigned long long)c->zero_rows);
    print_midpoints(c, stream);
}

/* Every midpoint was met exactly, or both sides of it as closely as 16 ulps. */
static bool midpoints_met(const coverage *c)
{
    bool good = true;
    for (int k = 0; k < 7; k++) {
        const uint64_t *m = c->midpoints[k];
        good = good && (m[1] > 0 || (m[0] > 0 && m[2] > 0));
    }
    return good;
}

static bool complete(const coverage *c)
{
    return seen(c->q_code, 16) >= 15 && seen(c->k_code, 16) >= 15 && seen(c->v_code, 16) >= 15 &&
           seen(c->p_code, 8) == 8 && seen(c->p_scale, 256) >= 64 && midpoints_met(c);
}

static void json_counts(dp_json *json, const char *name, const uint64_t *counts, int n)
{
    int low, high;
    range_of(counts, n, &low, &high);
    dp_json_key(json, name);
    dp_json_object_line(json);
    dp_json_member_u64(json, "different", (uint64_t)seen(counts, n));
    dp_json_key(json, "least");
    dp_json_i64(json, low);
    dp_json_key(json, "largest");
    dp_json_i64(json, high);
    dp_json_close(json);
}

static bool print_verify_json(const dp_report *report, const verdict *v, bool verified,
                              dp_error *error)
{
    const coverage *c = &v->seen;
    dp_json json;
    dp_json_start(&json, stdout);
    dp_json_object(&json);
    dp_json_member_text(&json, "verdict", verified ? "verified" : "not verified");
    dp_json_member_u64(&json, "missing", (uint64_t)v->missing);
    dp_json_member_u64(&json, "different", (uint64_t)v->different);
    dp_json_member_u64(&json, "without_some_stages", (uint64_t)v->partial);
    dp_json_member_bool(&json, "coverage_complete", complete(c));
    dp_json_key(&json, "rows");
    const bool good = dp_report_json(report, &json, error);
    dp_json_key(&json, "coverage");
    dp_json_object(&json);
    json_counts(&json, "q_codes", c->q_code, 16);
    json_counts(&json, "k_codes", c->k_code, 16);
    json_counts(&json, "v_codes", c->v_code, 16);
    json_counts(&json, "p_codes", c->p_code, 8);
    json_counts(&json, "q_scales", c->q_scale, 256);
    json_counts(&json, "v_scales", c->v_scale, 256);
    json_counts(&json, "p_scales", c->p_scale, 256);
    json_counts(&json, "code_sums", c->count, 385);
    dp_json_member_u64(&json, "rows_of_sum_0", c->zero_rows);
    static const char *const sides[] = {"p_below_midpoints", "p_on_midpoints", "p_above_midpoints"};
    for (int i = 0; i < 3; i++) {
        dp_json_key(&json, sides[i]);
        dp_json_array_line(&json);
        for (int k = 0; k < 7; k++) {
            dp_json_u64(&json, c->midpoints[k][i]);
        }
        dp_json_close(&json);
    }
    dp_json_close(&json);
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

static bool verify(const char *dir, const dp_dump_overrides *overrides, dp_style style,
                   bool *verified, dp_error *error)
{
    verdict *v = calloc(1, sizeof *v);
    dp_report *report =
        dp_report_new("Standard cases", COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    bool good = v != NULL && report != NULL;
    for (size_t i = 0; good && dp_standard_case_at(i) != NULL; i++) {
        good = verify_case(dp_standard_case_at(i), dir, overrides, report, v, error);
    }
    const bool covered = good && complete(&v->seen);
    *verified = covered && v->missing == 0 && v->different == 0 && v->partial == 0;
    good = good && (style == DP_STYLE_JSON ? print_verify_json(report, v, *verified, error)
                                           : dp_report_print(report, style, stdout, error));
    if (good) {
        if (style == DP_STYLE_TEXT) {
            print_coverage(&v->seen, stdout);
            (void)printf("\nVerdict: %s (%d missing, %d different, %d without some stages%s)\n",
                         *verified ? "verified" : "NOT verified", v->missing, v->different,
                         v->partial, covered ? "" : ", coverage incomplete");
        }
    }
    dp_report_free(report);
    free(v);
    return good || dp_fail(error, "verify: not enough memory");
}

int dp_cmd_verify(int argc, char **argv)
{
    dp_dump_overrides overrides = {0};
    bool json = false, csv = false, verified = false;
    const dp_option options[] = {
        DP_TEXT("policy", &overrides.policy, "NAME", "policy, instead of the files'"),
        DP_CHOICE("epoch", &overrides.epoch, "S|R", "sources modelled, instead of the files'"),
        DP_TEXT("set", &overrides.set, "NAME=VALUE,...", "policy fields and switches on top"),
        DP_JSON(&json),
        DP_CSV(&csv),
    };
    const dp_usage usage = {
        .verb = "verify",
        .operands = "DIR",
        .summary = "Judge the dumps NAME.dump.h5 of the standard cases in a folder: every stage of "
                   "every case by bits, and what codes, bytes and boundaries they exercised. Exit "
                   "status 0: verified; 1: something differs or is missing.",
        .example = "directp verify cases",
        .least = 1,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    dp_style style;
    struct stat folder;
    if (stat(argv[1], &folder) != 0 || !S_ISDIR(folder.st_mode)) {
        dp_fail(&error, "%s: it is not a folder: write the cases with directp cases -o %s", argv[1],
                argv[1]);
        return dp_report_error(&error);
    }
    if (!dp_style_of(json, csv, &style, &error) ||
        !verify(argv[1], &overrides, style, &verified, &error)) {
        return dp_report_error(&error);
    }
    return verified ? DP_EXIT_SAME : DP_EXIT_DIFFERENT;
}
