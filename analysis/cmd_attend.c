/* SPDX-License-Identifier: MIT
 *
 * directp attend: run an attention operator on Q, K and V and measure its error against BF16.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/attend_reports.h"
#include "analysis/commands.h"
#include "analysis/options.h"
#include "analysis/report.h"

typedef struct {
    int64_t seed, sms, seq, heads, kv_heads, batch, dim, threads;
    double q_factor;
    bool random, smooth_k, causal, no_causal, json, csv, per_head, decompose, table;
    bool policy_given, epoch_given, stages_given;
    const char *policy, *route, *epoch, *set, *sfu, *stages, *output, *codes, *kv_map;
    dp_style style;
} request;

static const dp_column COLUMNS[] = {
    {"operator", NULL, -1}, {"head", NULL, -1}, {"cosine", NULL, 10},         {"rel_l2", NULL, 10},
    {"rmse", NULL, 10},     {"slope", NULL, 6}, {"nonfinite_rows", NULL, -1}, {"rows", NULL, -1}};

static const char NOTES[] =
    "Columns, against BF16 attention of the same inputs (tiles from the last to the first, P in "
    "BF16):\n"
    "  cosine, rel_l2, rmse   of the BF16 outputs, in binary64; rows with NaN or Inf are left out\n"
    "  slope                  least-squares factor: an output that is k times the reference has k\n"
    "--decompose, against attention in binary64, relative L2 of what each step adds:\n"
    "  qk, p, v, rest         rounding Q and K; the codes of P; rounding V; matrix unit and "
    "output\n"
    "  total, bf16            their sum; the error of BF16 attention itself\n"
    "--codes: match is the share of codes equal to those of 2^x, mass_* the represented mass of a "
    "row\n"
    "over that of its ideal codes.\n"
    "Policies: fast accurate guard-1.3b guard-14b wan ideal ideal-accurate cubic quadratic\n"
    "affine-nvnv. --set changes fields of the policy and switches: NAME=VALUE, separated by "
    "commas,\n"
    "for example --set a=1.6,b=0.95,shift=14 or --set multiplier=exact,mma.zero_group=scale. With\n"
    "--route, of its switches (ref/forward/ROUTES.md): --route fa3-fp8 --set tile=224.\n"
    "Causal runs are an extension: hidden scores are -inf before the block maxima, and the keys\n"
    "keep their order. Head dimensions below 128 are padded with zeros.\n"
    "Stages of a dump: inputs quantize score reference scale code denominator accumulate output.\n"
    "Scores take queries x keys x 4 bytes a head.";

static bool parse(int *argc, char **argv, request *r, int *status)
{
    const dp_option options[] = {
        {.name = "random",
         .type = DP_OPTION_INT,
         .value = &r->seed,
         .argument = "SEED",
         .low = 0,
         .high = 9007199254740991.0,
         .given = &r->random,
         .help =
             "draw Q, K, V from N(0,1) as torch draws them on a CUDA device, instead of a file"},
        DP_INT_RANDOM("sms", &r->sms, 1, 65535, &r->random,
                      "multiprocessors of that device (GB200 152, B300 148)"),
        DP_INT_RANDOM("seq", &r->seq, 1, 1 << 20, &r->random, "queries and keys of --random"),
        DP_INT_RANDOM("heads", &r->heads, 1, 4096, &r->random, "query heads of --random"),
        DP_INT_RANDOM("kv-heads", &r->kv_heads, 0, 4096, &r->random,
                      "key heads of --random; 0: as many as --heads"),
        DP_INT_RANDOM("batch", &r->batch, 1, 4096, &r->random, "batch of --random"),
        DP_INT_RANDOM("dim", &r->dim, 1, 128, &r->random, "head dimension of --random"),
        {.name = "policy",
         .type = DP_OPTION_TEXT,
         .value = &r->policy,
         .argument = "NAME",
         .given = &r->policy_given,
         .help = "Direct-P policy"},
        DP_TEXT("route", &r->route, "NAME", "a standard path instead, e.g. hao-nv-nv, sage3"),
        {.name = "epoch",
         .type = DP_OPTION_CHOICE,
         .value = &r->epoch,
         .choices = "S|R",
         .given = &r->epoch_given,
         .help = "sources modelled: S timings, R guard fix"},
        DP_TEXT("set", &r->set, "NAME=VALUE,...",
                "policy fields and switches, or those of a route"),
        DP_CHOICE("sfu", &r->sfu, "exact|h200", "model of EX2, RCP and LG2"),
        DP_FLAG("smooth-k", &r->smooth_k, "subtract each head's mean key before quantization"),
        DP_REAL("q-factor", &r->q_factor, 1e-6, 1e6, "multiply Q by this (peaked inputs)"),
        DP_FLAG("causal", &r->causal, "mask keys behind the query, whatever the file says"),
        DP_FLAG("no-causal", &r->no_causal, "no mask, whatever the file says"),
        DP_CHOICE("kv-map", &r->kv_map, "file|block|interleave",
                  "key head of a query head: as the file says (else block), or h mod key heads"),
        DP_FLAG("per-head", &r->per_head, "one row a head, then all"),
        DP_FLAG("decompose", &r->decompose,
                "split the error by its cause: Q and K, P, V, the rest; against exact attention"),
        DP_TEXT("codes", &r->codes, "OUT.h5",
                "compare the codes of P with those of 2^x; write the counts to this file"),
        DP_FLAG("table", &r->table,
                "a table of policies on every file, per head, with and without --smooth-k"),
        {.name = "stages",
         .type = DP_OPTION_TEXT,
         .value = &r->stages,
         .argument = "LIST",
         .given = &r->stages_given,
         .help = "stages written to the output file, or all"},
        DP_OUTPUT(&r->output, "write a dump (HDF5) of the stages"),
        DP_THREADS(&r->threads),
        DP_JSON(&r->json),
        DP_CSV(&r->csv),
    };
    const dp_usage usage = {
        .verb = "attend",
        .operands = "[IN.h5...]",
        .summary = "Run the Direct-P forward oracle, or a standard path, on Q, K and V, and print "
                   "its error against BF16 attention.",
        .notes = NOTES,
        .example =
            "directp attend --random 20260814 --seq 1024 --heads 16 --policy fast\n"
            "directp attend data/real/qwen15_layer00.h5 --policy accurate --smooth-k --per-head\n"
            "directp attend IN.h5 --policy guard-14b --epoch R --stages all -o dump.h5\n"
            "directp attend IN.h5 --policy fast --decompose --per-head\n"
            "directp attend data/real/*.h5 --table",
        .least = 0,
        .most = 1024,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    *status = dp_options_parse(&usage, argc, argv);
    return *status == DP_CONTINUE;
}

static bool load(const request *r, int argc, char **argv, dp_attend_inputs *inputs, dp_error *error)
{
    const dp_attend_transform transform = {.smooth_k = r->smooth_k,
                                           .q_factor = r->q_factor,
                                           .causal = r->causal,
                                           .no_causal = r->no_causal,
                                           .kv_interleave = strcmp(r->kv_map, "interleave") == 0,
                                           .kv_block = strcmp(r->kv_map, "block") == 0};
    const dp_inputs_request wanted = {.random = r->random,
                                      .seed = r->seed,
                                      .sms = r->sms,
                                      .batch = r->batch,
                                      .seq = r->seq,
                                      .heads = r->heads,
                                      .kv_heads = r->kv_heads,
                                      .dim = r->dim,
                                      .threads = (int)r->threads,
                                      .transform = transform};
    if (argc > 2) {
        return dp_fail(error, "attend: %d files: give one, or ask for --table", argc - 1);
    }
    return dp_inputs_choice("attend", &wanted, argc > 1 ? argv[1] : NULL, inputs, error);
}

static void add_row(dp_report *report, const char *name, int64_t head, dp_attend_metrics m)
{
    dp_report_text(report, name);
    if (head < 0) {
        dp_report_text(report, "all");
    } else {
        dp_report_i64(report, head);
    }
    dp_report_f64(report, m.cosine);
    dp_report_f64(report, m.rel_l2);
    dp_report_f64(report, m.rmse);
    dp_report_f64(report, m.slope);
    dp_report_i64(report, (int64_t)m.nonfinite_rows);
    dp_report_i64(report, (int64_t)m.rows);
}

static bool print_metrics(const request *r, const dp_attention *in, const char *name,
                          const uint16_t *o, const uint16_t *reference, dp_error *error)
{
    dp_report *report =
        dp_report_new("Error against BF16 attention", COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    const size_t heads = in->batch * in->q_heads;
    for (size_t h = 0; report != NULL && r->per_head && h < heads; h++) {
        const size_t at = h * in->queries * in->dim;
        add_row(report, name, (int64_t)h,
                dp_attend_compare(o + at, reference + at, in->queries, in->dim));
    }
    if (report != NULL) {
        add_row(report, name, -1, dp_attend_compare(o, reference, heads * in->queries, in->dim));
    }
    const bool good = report != NULL && dp_report_print(report, r->style, stdout, error);
    dp_report_free(report);
    return good || dp_fail(error, "attend: not enough memory for the report");
}

typedef struct {
    dp_direct_p launch;
    dp_mma_switches mma;
    dp_route route;
    bool is_route;
    const dp_sfu *sfu;
} operator_choice;

/* Options that would be ignored are refused. */
static bool check_options(const request *r, dp_error *error)
{
    if (r->route != NULL && (r->policy_given || r->epoch_given)) {
        return dp_fail(error,
                       "--route and %s: a standard path has no Direct-P policy: give one of them",
                       r->policy_given ? "--policy" : "--epoch");
    }
    if (r->route != NULL && r->output != NULL) {
        return dp_fail(error,
                       "--route and -o: stages are dumped for Direct-P policies: leave -o out");
    }
    if (r->stages_given && r->output == NULL) {
        return dp_fail(error, "--stages: there is no file to write them to: give -o FILE");
    }
    return true;
}

static bool choose(const request *r, double softmax_scale, operator_choice *choice, dp_error *error)
{
    memset(choice, 0, sizeof *choice);
    choice->sfu = dp_sfu_choice(r->sfu);
    choice->is_route = r->route != NULL;
    if (choice->is_route) {
        return dp_route_choice(r->route, r->set, &choice->route, &choice->mma, error);
    }
    return dp_launch_choice(r->policy, r->epoch, r->set, r->sfu, softmax_scale, &choice->launch,
                            &choice->mma, error);
}

static bool run_operator(const request *r, const operator_choice *choice,
                         const dp_attend_inputs *inputs, uint16_t *o, float *lse, dp_error *error)
{
    if (choice->is_route) {
        return dp_route_run(&inputs->in, &choice->route, &choice->mma, choice->sfu, (int)r->threads,
                            o, lse, NULL, error);
    }
    dp_progress progress;
    dp_progress_start(&progress, "attend", dp_attend_strips(&inputs->in));
    dp_attend_run_options options = {.inputs = inputs,
                                     .launch = &choice->launch,
                                     .mma = &choice->mma,
                                     .threads = (int)r->threads,
                                     .progress = &progress};
    bool good = true;
    if (r->output == NULL) {
        good = dp_attend_run(&options, o, lse, error);
    } else {
        const char *const files[] = {inputs->source};
        dp_h5_writer writer;
        options.writer = &writer;
        good = dp_stages_parse(r->stages, &options.stages, error);
        if (good) {
            good = dp_h5_create(&writer, r->output, "dump", files, r->random ? 0 : 1, error);
            writer.deflate = 1;
            good = good && dp_attend_run(&options, o, lse, error) && dp_h5_commit(&writer, error);
            dp_h5_abandon(&writer);
        }
    }
    dp_progress_end(&progress);
    return good;
}

/* What stands in the way of --decompose, --codes and --table together with each other or -o. */
static bool check_reports(const request *r, int argc, dp_error *error)
{
    const int reports = r->decompose + (r->codes != NULL) + r->table;
    if (reports > 1 || (reports == 1 && r->output != NULL)) {
        return dp_fail(error, "--decompose, --codes, --table, -o: give one of them");
    }
    if (reports == 1 && r->route != NULL) {
        return dp_fail(error, "--route with --decompose, --codes or --table: stages are known for "
                              "Direct-P policies: leave --route out");
    }
    return !r->table || (argc > 1 && !r->random) ||
           dp_fail(error, "--table: no files: give some with tensors");
}

/* The reports of one launch other than the error against BF16. */
static bool other_report(const request *r, const dp_attend_inputs *inputs, dp_error *error)
{
    operator_choice choice;
    if (!choose(r, dp_attention_scale(&inputs->in), &choice, error)) {
        return false;
    }
    return r->decompose ? dp_report_decompose(&inputs->in, &choice.launch, &choice.mma,
                                              (int)r->threads, r->per_head, r->style, error)
                        : dp_report_codes(inputs, &choice.launch, &choice.mma, (int)r->threads,
                                          r->codes, r->style, error);
}

static bool attend(const request *r, int argc, char **argv, dp_error *error)
{
    dp_attend_inputs inputs;
    operator_choice choice;
    /* Names are checked before anything large is drawn or read. */
    if (!check_reports(r, argc, error) || !check_options(r, error) ||
        !choose(r, 1.0, &choice, error)) {
        return false;
    }
    if (r->table) {
        return dp_report_table((const char *const *)argv + 1, (size_t)argc - 1, (int)r->threads,
                               r->style, error);
    }
    if (!load(r, argc, argv, &inputs, error)) {
        return false;
    }
    if (r->decompose || r->codes != NULL) {
        const bool done = other_report(r, &inputs, error);
        dp_attend_inputs_free(&inputs);
        return done;
    }
    const dp_attention *in = &inputs.in;
    const size_t rows = in->batch * in->q_heads * in->queries;
    uint16_t *o = malloc(rows * in->dim * sizeof *o);
    uint16_t *reference = malloc(rows * in->dim * sizeof *reference);
    float *lse = malloc(rows * sizeof *lse);
    bool good = o != NULL && reference != NULL && lse != NULL;
    if (!good) {
        (void)dp_fail(error, "attend: not enough memory for %zu rows: use a shorter sequence",
                      rows);
    }
    good = good && choose(r, dp_attention_scale(in), &choice, error) &&
           run_operator(r, &choice, &inputs, o, lse, error) &&
           dp_reference_bf16(in, (int)r->threads, reference, NULL, error) &&
           print_metrics(r, in, choice.is_route ? choice.route.name : choice.launch.policy.name, o,
                         reference, error);
    free(o);
    free(reference);
    free(lse);
    dp_attend_inputs_free(&inputs);
    return good;
}

int dp_cmd_attend(int argc, char **argv)
{
    request r = {.sms = 152,
                 .seq = 1024,
                 .heads = 16,
                 .batch = 1,
                 .dim = 128,
                 .q_factor = 1.0,
                 .policy = "fast",
                 .epoch = "S",
                 .sfu = "exact",
                 .kv_map = "file",
                 .stages = "all"};
    int status = 0;
    if (!parse(&argc, argv, &r, &status)) {
        return status;
    }
    dp_error error = {""};
    if (!dp_style_of(r.json, r.csv, &r.style, &error) || !attend(&r, argc, argv, &error)) {
        return dp_report_error(&error);
    }
    return DP_EXIT_SAME;
}
