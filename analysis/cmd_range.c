/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/range_study.h"
#include "analysis/rates.h"
#include "analysis/report.h"
#include "analysis/torch_rand.h"

enum { MAX_LENGTHS = 64 };

/* What the command line asks for. */
typedef struct {
    int64_t seed, sms, heads, rows, dim, threads;
    bool random, rows_given, plus_seq, causal, no_causal, per_head, json, csv;
    const char *seq, *block, *formats, *arithmetic, *output;
    dp_style style;
    dp_texts fail_if;
} request;

static const dp_column columns[] = {
    {"source", NULL, -1},   {"seq", NULL, -1},       {"head", NULL, -1},
    {"format", NULL, -1},   {"zero_scale", NULL, 6}, {"zero_payload", NULL, 6},
    {"underflow", NULL, 6}, {"lost_mass", NULL, 6},  {"p_rel_l2", NULL, 6},
    {"pv_cosine", NULL, 6}, {"pv_rel_l2", NULL, 6},  {"min_scale", NULL, -1},
    {"lost_rows", NULL, -1}};

static const char notes[] =
    "Columns (entries and blocks that a causal query cannot see are never counted):\n"
    "  zero_scale    fraction of blocks whose scale is 0 (none for FP8, which has no block scale)\n"
    "  zero_payload  fraction of the entries of P that decode to 0\n"
    "  underflow     the same among the entries that were not 0 already in binary64\n"
    "  lost_mass     probability on the entries that decode to 0, over all probability\n"
    "  p_rel_l2      |P' - P| / |P|, P' = decoded rows divided by their own sum\n"
    "  pv_cosine, pv_rel_l2   of the output P'V against PV, V as given\n"
    "  min_scale     smallest nonzero block scale\n"
    "  lost_rows     rows that decode to 0 altogether; their output counts as 0\n"
    "Formats: nvfp4-gG (scale E4M3(G amax/6)/G), ue5m3-gG (scale UE5M3), mxfp4 (power-of-two step\n"
    "of least squared error), mxfp4-kernel (nearest power-of-two amplitude, switch at 0.75),\n"
    "e4m3-gG and e5m2-gG (no block scale); \"all\" and \"published\" name sets.\n"
    "A last block that is not full is padded with zeros, which are not counted.";

static dp_report *make_report(const dp_range_study *study)
{
    dp_report *report = dp_report_new("What a format keeps of exact softmax probabilities", columns,
                                      sizeof columns / sizeof columns[0]);
    for (size_t i = 0; report != NULL && i < study->case_count * study->format_count; i++) {
        const dp_range_case *from = &study->cases[i / study->format_count];
        const dp_range_format *format = &study->formats[i % study->format_count];
        const dp_range_result *result = &study->results[i];
        dp_report_text(report, from->source);
        dp_report_i64(report, (int64_t)from->seq);
        if (from->head < 0) {
            dp_report_text(report, "all");
        } else {
            dp_report_i64(report, from->head);
        }
        dp_report_text(report, format->name);
        if (dp_range_has_scale(format)) {
            dp_report_f64(report, result->zero_scale);
        } else {
            dp_report_blank(report);
        }
        dp_report_f64(report, result->zero_payload);
        dp_report_f64(report, result->underflow);
        dp_report_f64(report, result->lost_mass);
        dp_report_f64(report, result->p_rel_l2);
        dp_report_f64(report, result->pv_cosine);
        dp_report_f64(report, result->pv_rel_l2);
        if (result->counts.min_scale > 0.0) {
            dp_report_f32(report, (float)result->min_scale);
        } else {
            dp_report_blank(report);
        }
        dp_report_i64(report, (int64_t)result->lost_rows);
    }
    return report;
}

/* Entries that fill the last block of a row of `seq` keys. */
static size_t padding(size_t seq, size_t block)
{
    return (block - seq % block) % block;
}

static void json_case(dp_json *json, const dp_range_case *from, size_t block)
{
    dp_json_object_line(json);
    dp_json_member_text(json, "source", from->source);
    if (from->sms > 0) {
        dp_json_member_u64(json, "seed", from->seed);
        dp_json_member_i64(json, "sms", from->sms);
    }
    dp_json_member_u64(json, "seq", from->seq);
    dp_json_member_u64(json, "heads", from->heads);
    dp_json_member_i64(json, "head", from->head);
    dp_json_member_u64(json, "rows", from->rows);
    dp_json_member_u64(json, "queries", from->queries);
    dp_json_member_u64(json, "dim", from->dim);
    dp_json_member_f64(json, "softmax_scale", from->softmax_scale);
    dp_json_member_bool(json, "causal", from->causal);
    dp_json_member_u64(json, "padded_keys", padding(from->seq, block));
    dp_json_close(json);
}

static bool print_json(const dp_range_study *study, const dp_report *report, dp_error *error)
{
    dp_json json;
    dp_json_start(&json, stdout);
    dp_json_object(&json);
    dp_json_member_text(&json, "title", "range");
    dp_json_member_u64(&json, "block", study->block);
    dp_json_key(&json, "cases");
    dp_json_array(&json);
    for (size_t i = 0; i < study->case_count; i++) {
        json_case(&json, &study->cases[i], study->block);
    }
    dp_json_close(&json);
    dp_json_key(&json, "rows");
    const bool good = dp_report_json(report, &json, error);
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

static void print_notes(const dp_range_study *study)
{
    for (size_t i = 0; i < study->case_count; i++) {
        const dp_range_case *from = &study->cases[i];
        const size_t pad = padding(from->seq, study->block);
        const bool first = i == 0 || strcmp(from->source, study->cases[i - 1].source) != 0;
        if (first && pad > 0) {
            (void)printf("%s: %zu keys, the last block of %zu is padded with %zu zeros\n",
                         from->source, from->seq, study->block, pad);
        }
        if (first && from->rows < from->queries) {
            (void)printf("%s: %zu of %zu query rows of each head, evenly spaced\n", from->source,
                         from->rows, from->queries);
        }
    }
}

static bool print_study(const dp_range_study *study, dp_style style, dp_error *error)
{
    dp_report *report = make_report(study);
    if (report == NULL) {
        return dp_fail(error, "range: not enough memory for the table: use fewer cases");
    }
    bool good;
    if (style == DP_STYLE_JSON) {
        good = print_json(study, report, error);
    } else {
        good = dp_report_print(report, style, stdout, error);
        if (good && style == DP_STYLE_TEXT) {
            print_notes(study);
        }
    }
    dp_report_free(report);
    return good;
}

static bool run_random(const request *ask, dp_range_options *options, dp_range_study *study,
                       dp_error *error)
{
    int64_t lengths[MAX_LENGTHS];
    size_t count = 0;
    if (!dp_parse_i64_list("--seq", ask->seq, 1, 1 << 24, lengths, MAX_LENGTHS, &count, error)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        dp_tensors tensors;
        char title[64];
        const uint64_t add = ask->plus_seq ? (uint64_t)lengths[i] : 0;
        const dp_range_case like = {
            .source = "random", .seed = (uint64_t)ask->seed + add, .sms = (int)ask->sms};
        if (!dp_range_random(like.seed, like.sms, (size_t)lengths[i], (size_t)ask->heads,
                             (size_t)ask->rows, (size_t)ask->dim, (int)ask->threads, &tensors,
                             error)) {
            return false;
        }
        (void)snprintf(title, sizeof title, "range S=%zu", (size_t)lengths[i]);
        options->title = title;
        const bool good = dp_range_study_add(study, &tensors, options, &like, error);
        dp_tensors_free(&tensors);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool run_files(const request *ask, dp_range_options *options, char **files, size_t count,
                      dp_range_study *study, dp_error *error)
{
    for (size_t i = 0; i < count; i++) {
        dp_tensors tensors;
        dp_range_case like = {.sms = 0};
        char title[64];
        const char *slash = strrchr(files[i], '/');
        const char *name = slash != NULL ? slash + 1 : files[i];
        (void)snprintf(like.source, sizeof like.source, "%.255s", name);
        (void)snprintf(title, sizeof title, "range %.48s", name);
        options->title = title;
        options->rows = ask->rows_given ? (size_t)ask->rows : 0;
        if (!dp_tensors_load(files[i], &tensors, error)) {
            return false;
        }
        tensors.causal = ask->causal || (tensors.causal && !ask->no_causal);
        const bool good = dp_range_study_add(study, &tensors, options, &like, error);
        dp_tensors_free(&tensors);
        if (!good) {
            const dp_error inner = *error;
            error->text[0] = '\0';
            return dp_fail(error, "%s: %s", files[i], inner.text);
        }
    }
    return true;
}

static bool check_request(request *ask, size_t files, dp_error *error)
{
    if (!dp_style_of(ask->json, ask->csv, &ask->style, error)) {
        return false;
    }
    if (ask->random == (files > 0)) {
        return dp_fail(error, "range: give either --random SEED or HDF5 files: see "
                              "directp range --help");
    }
    if (ask->random && (ask->causal || ask->no_causal)) {
        return dp_fail(error, "--causal: random inputs are not causal: leave it out");
    }
    if (ask->causal && ask->no_causal) {
        return dp_fail(error, "--causal: contradicts --no-causal: give one of them");
    }
    return true;
}

static int run_request(request *ask, char **files, size_t count)
{
    dp_error error = {""};
    dp_range_study study = {.block = (size_t)strtoul(ask->block, NULL, 10)};
    dp_range_options options = {
        .block = study.block, .rows = 0, .per_head = ask->per_head, .threads = (int)ask->threads};
    bool good = check_request(ask, count, &error) && dp_rates_check(&ask->fail_if, &error) &&
                dp_range_formats_parse(ask->formats, study.formats, &study.format_count, &error);
    const bool device =
        ask->arithmetic == NULL ? ask->random : strcmp(ask->arithmetic, "device") == 0;
    options.arithmetic = device ? DP_RANGE_DEVICE : DP_RANGE_EXACT;
    if (good && ask->random) {
        good = run_random(ask, &options, &study, &error);
    } else if (good) {
        good = run_files(ask, &options, files, count, &study, &error);
    }
    if (good && ask->output != NULL) {
        good = dp_range_study_save(&study, ask->output, (const char *const *)files, count, &error);
    }
    bool failed = false;
    good = good && print_study(&study, ask->style, &error) &&
           dp_rates_judge_range(&ask->fail_if, &study, &failed, &error);
    dp_range_study_free(&study);
    return !good ? dp_report_error(&error) : failed ? DP_EXIT_DIFFERENT : DP_EXIT_SAME;
}

int dp_cmd_range(int argc, char **argv)
{
    request ask = {.seed = 0,
                   .sms = DP_SMS_GB200,
                   .heads = 4,
                   .rows = 64,
                   .dim = 128,
                   .seq = "1024",
                   .block = "32",
                   .formats = "all"};
    const dp_option options[] = {
        {.name = "random",
         .type = DP_OPTION_INT,
         .value = &ask.seed,
         .help = "draw Q, K, V as torch.randn on a CUDA device does after manual_seed(SEED)",
         .argument = "SEED",
         .low = 0,
         .high = 9007199254740992.0,
         .given = &ask.random},
        DP_INT_RANDOM("sms", &ask.sms, 1, 65535, &ask.random,
                      "multiprocessors of that device: 152 for GB200, 148 for B300"),
        {.name = "seq",
         .type = DP_OPTION_TEXT,
         .value = &ask.seq,
         .help = "numbers of keys of random inputs, separated by commas",
         .argument = "LIST",
         .random = &ask.random},
        {.name = "seed-plus-seq",
         .type = DP_OPTION_FLAG,
         .value = &ask.plus_seq,
         .help = "use SEED + S for S keys, as published tables do",
         .random = &ask.random},
        DP_INT_RANDOM("heads", &ask.heads, 1, 1024, &ask.random, "heads of random inputs"),
        {.name = "rows",
         .type = DP_OPTION_INT,
         .value = &ask.rows,
         .help = "query rows of each head; of a file all rows are used unless this is given, else "
                 "evenly spaced ones",
         .argument = "N",
         .low = 1,
         .high = 1 << 24,
         .given = &ask.rows_given},
        DP_INT_RANDOM("dim", &ask.dim, 1, 4096, &ask.random, "features of a head of random inputs"),
        DP_CHOICE("block", &ask.block, "8|16|32|64", "keys that share a scale"),
        DP_TEXT("formats", &ask.formats, "LIST", "formats, separated by commas"),
        DP_CHOICE("arithmetic", &ask.arithmetic, "exact|device",
                  "P in binary64, or in binary32 as torch computes it on a CUDA device; exact for "
                  "files, device for random inputs unless given"),
        DP_FLAG("causal", &ask.causal, "query i sees keys 0..i, whatever the file says"),
        DP_FLAG("no-causal", &ask.no_causal, "every query sees every key, whatever the file says"),
        DP_FLAG("per-head", &ask.per_head, "one row of results a head"),
        DP_OUTPUT(&ask.output, "write the results as HDF5, for directp plot range"),
        DP_TEXTS("fail-if", &ask.fail_if, "CONDITIONS",
                 "exit 1 when one holds for a row, such as zero_scale>5% (directp record --help)"),
        DP_THREADS(&ask.threads),
        DP_JSON(&ask.json),
        DP_CSV(&ask.csv)};
    const dp_usage usage = {
        .verb = "range",
        .operands = "[IN.h5...]",
        .summary = "Measure what a format can represent of exact softmax probabilities, without "
                   "any kernel: P = softmax(Q K^T scale) is stored in blocks along the keys and "
                   "compared with itself. Inputs are the Q, K, V of HDF5 files or random numbers.",
        .notes = notes,
        .example = "directp range --random 20261838 --seq 1024 --formats published\n"
                   "directp range data/real/qwen15_layer00.h5 --per-head -o out/range.h5",
        .least = 0,
        .most = 1024,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    return run_request(&ask, argv + 1, (size_t)argc - 1);
}
