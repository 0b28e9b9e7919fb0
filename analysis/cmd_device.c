/* SPDX-License-Identifier: MIT
 *
 * directp device: what GPU is here, and whether the kernels on it equal the oracle on every bit.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/attend_choice.h"
#include "analysis/commands.h"
#include "analysis/device_diff.h"
#include "analysis/options.h"
#include "analysis/report.h"

typedef struct {
    int64_t seed, sms, seq, keys, heads, kv_heads, batch, dim, threads, device;
    double q_factor;
    bool random, smooth_k, causal, no_causal, json, csv, if_present;
    double cases;
    const char *policy, *epoch, *set, *sfu, *output, *stages;
    dp_style style;
} request;

static const dp_column COLUMNS[] = {
    {"mode", NULL, -1},  {"dataset", NULL, -1}, {"elements", NULL, -1}, {"mismatches", NULL, -1},
    {"first", NULL, -1}, {"oracle", NULL, -1},  {"device", NULL, -1}};

static const char *const MODES[] = {"injected", "chained", "fused", "reference"};

static bool have_device(const request *r, dp_device_info *info, int *status, dp_error *error)
{
    const bool built = dp_device_built();
    if (built && dp_device_probe((int)r->device, info, error)) {
        return true;
    }
    if (!built) {
        (void)dp_fail(error, "device: this build has no kernels: build where nvcc is installed");
    }
    if (r->if_present) {
        printf("no device: %s\n", error->text);
        *status = DP_EXIT_SAME;
    } else {
        *status = dp_report_error(error);
    }
    return false;
}

static int probe(const request *r)
{
    dp_error error = {""};
    dp_device_info info;
    int status = DP_EXIT_SAME;
    if (!have_device(r, &info, &status, &error)) {
        return status;
    }
    static const dp_column columns[] = {{"device", NULL, -1},          {"sm", NULL, -1},
                                        {"multiprocessors", NULL, -1}, {"bytes", NULL, -1},
                                        {"driver", NULL, -1},          {"runtime", NULL, -1}};
    char sm[16];
    (void)snprintf(sm, sizeof sm, "%d.%d", info.major, info.minor);
    dp_report *report = dp_report_new("Device", columns, sizeof columns / sizeof columns[0]);
    if (report != NULL) {
        dp_report_text(report, info.name);
        dp_report_text(report, sm);
        dp_report_i64(report, info.multiprocessors);
        dp_report_i64(report, (int64_t)info.memory);
        dp_report_i64(report, info.driver);
        dp_report_i64(report, info.runtime);
    }
    const bool good = report != NULL && dp_report_print(report, r->style, stdout, &error);
    dp_report_free(report);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}

static bool load(const request *r, const char *path, dp_attend_inputs *inputs, dp_error *error)
{
    const dp_attend_transform transform = {.smooth_k = r->smooth_k,
                                           .q_factor = r->q_factor,
                                           .causal = r->causal,
                                           .no_causal = r->no_causal};
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
    return dp_inputs_choice("device", &wanted, path, inputs, error);
}

/* One dump; engine NULL: the oracle. */
static bool write_dump(const request *r, const char *path, const char *target,
                       const dp_attend_inputs *inputs, const dp_direct_p *launch,
                       const dp_mma_switches *mma, const dp_attend_engine *engine, dp_error *error)
{
    const dp_attention *in = &inputs->in;
    const size_t rows = in->batch * in->q_heads * in->queries;
    const char *const files[] = {path};
    uint16_t *o = malloc(rows * in->dim * sizeof *o);
    float *lse = malloc(rows * sizeof *lse);
    dp_h5_writer writer;
    dp_attend_run_options options = {.inputs = inputs,
                                     .launch = launch,
                                     .mma = mma,
                                     .threads = (int)r->threads,
                                     .writer = &writer,
                                     .engine = engine};
    bool good = dp_stages_parse(r->stages, &options.stages, error) &&
                ((o != NULL && lse != NULL) || dp_fail(error, "device: not enough memory"));
    if (good) {
        good = dp_h5_create(&writer, target, "dump", files, path != NULL ? 1 : 0, error);
        writer.deflate = 6;
        good = good && dp_attend_run(&options, o, lse, error) && dp_h5_commit(&writer, error);
        dp_h5_abandon(&writer);
    }
    free(o);
    free(lse);
    return good;
}

static bool write_both(const request *r, const char *path, const dp_device_info *info,
                       const dp_attend_inputs *inputs, const dp_direct_p *launch,
                       const dp_mma_switches *mma, dp_error *error)
{
    char oracle[DP_PATH_SIZE];
    char device[DP_PATH_SIZE];
    dp_device_engine state = {.device = (int)r->device, .info = *info};
    const dp_attend_engine engine = dp_device_attend_engine(&state);
    if (mkdir(r->output, 0777) != 0 && errno != EEXIST) {
        return dp_fail(error,
                       "device diff: %s: folder cannot be made: check the path and its rights",
                       r->output);
    }
    (void)snprintf(oracle, sizeof oracle, "%s/oracle.h5", r->output);
    (void)snprintf(device, sizeof device, "%s/device.h5", r->output);
    return write_dump(r, path, oracle, inputs, launch, mma, NULL, error) &&
           write_dump(r, path, device, inputs, launch, mma, &engine, error);
}

static bool print_table(const request *r, const dp_diff_table *table, dp_error *error)
{
    dp_report *report =
        dp_report_new("Oracle against device", COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (size_t i = 0; report != NULL && i < table->count; i++) {
        const dp_diff_row *row = &table->rows[i];
        dp_report_text(report, MODES[row->mode]);
        dp_report_text(report, row->dataset);
        dp_report_i64(report, (int64_t)row->elements);
        dp_report_i64(report, (int64_t)row->mismatches);
        if (row->mismatches > 0) {
            char place[96];
            (void)snprintf(place, sizeof place,
                           "batch %" PRIu64 " head %" PRIu64 " row %" PRIu64 " column %" PRIu64,
                           row->first[0], row->first[1], row->first[2], row->first[3]);
            dp_report_text(report, place);
            dp_report_bits(report, row->oracle, 8);
            dp_report_bits(report, row->device, 8);
        } else {
            dp_report_blank(report);
            dp_report_blank(report);
            dp_report_blank(report);
        }
    }
    const bool good = report != NULL && dp_report_print(report, r->style, stdout, error);
    dp_report_free(report);
    return good;
}

static int run(const request *r, const char *path)
{
    dp_error error = {""};
    dp_device_engine state = {.device = (int)r->device};
    int status = DP_EXIT_SAME;
    if (r->output == NULL) {
        (void)dp_fail(&error, "device run: no output: name the dump with -o FILE.h5");
        return dp_report_error(&error);
    }
    if (!have_device(r, &state.info, &status, &error)) {
        return status;
    }
    dp_attend_inputs inputs;
    if (!load(r, path, &inputs, &error)) {
        return dp_report_error(&error);
    }
    dp_direct_p launch;
    dp_mma_switches mma = {0};
    const dp_attend_engine engine = dp_device_attend_engine(&state);
    const bool good = dp_launch_choice(r->policy, r->epoch, r->set, r->sfu,
                                       dp_attention_scale(&inputs.in), &launch, &mma, &error) &&
                      write_dump(r, path, r->output, &inputs, &launch, &mma, &engine, &error);
    dp_attend_inputs_free(&inputs);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}

static int selftest(const request *r)
{
    static const dp_column columns[] = {{"wrapper", NULL, -1},    {"cases", NULL, -1},
                                        {"mismatches", NULL, -1}, {"first", NULL, -1},
                                        {"oracle", NULL, -1},     {"device", NULL, -1}};
    dp_error error = {""};
    dp_device_info info;
    int status = DP_EXIT_SAME;
    dp_selftest_row rows[DP_SELFTEST_ROWS];
    if (!have_device(r, &info, &status, &error)) {
        return status;
    }
    if (!dp_device_selftest((int)r->device, (int)r->threads, (uint64_t)r->cases, rows, &error)) {
        return dp_report_error(&error);
    }
    dp_report *report =
        dp_report_new("Wrappers against the oracle", columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; report != NULL && i < DP_SELFTEST_ROWS; i++) {
        dp_report_text(report, rows[i].wrapper);
        dp_report_i64(report, (int64_t)rows[i].cases);
        dp_report_i64(report, (int64_t)rows[i].mismatches);
        if (rows[i].mismatches > 0) {
            status = DP_EXIT_DIFFERENT;
            dp_report_bits(report, rows[i].first, 16);
            dp_report_bits(report, rows[i].oracle, 8);
            dp_report_bits(report, rows[i].device, 8);
        } else {
            dp_report_blank(report);
            dp_report_blank(report);
            dp_report_blank(report);
        }
    }
    const bool good = report != NULL && dp_report_print(report, r->style, stdout, &error);
    dp_report_free(report);
    return good ? status : dp_report_error(&error);
}

static int diff(const request *r, const char *path)
{
    dp_error error = {""};
    dp_device_info info;
    int status = DP_EXIT_SAME;
    if (!have_device(r, &info, &status, &error)) {
        return status;
    }
    dp_attend_inputs inputs;
    if (!load(r, path, &inputs, &error)) {
        return dp_report_error(&error);
    }
    dp_direct_p launch;
    dp_mma_switches mma = {0};
    dp_diff_table table = {0};
    const bool good =
        dp_launch_choice(r->policy, r->epoch, r->set, r->sfu, dp_attention_scale(&inputs.in),
                         &launch, &mma, &error) &&
        dp_device_diff(&inputs, &launch, (int)r->device, (int)r->threads, &table, &error) &&
        (r->output == NULL || write_both(r, path, &info, &inputs, &launch, &mma, &error)) &&
        print_table(r, &table, &error);
    dp_attend_inputs_free(&inputs);
    if (!good) {
        return dp_report_error(&error);
    }
    for (size_t i = 0; i < table.count; i++) {
        status = table.rows[i].mismatches > 0 ? DP_EXIT_DIFFERENT : status;
    }
    return status;
}

static const char NOTES[] =
    "probe prints what device is here. diff runs the oracle and the kernels on the same inputs "
    "and\n"
    "compares every stage by its bits: injected (each kernel from the oracle's data before it),\n"
    "chained (kernel after kernel from the inputs), fused (one kernel for the whole forward), and\n"
    "reference (BF16 attention, the yardstick of the error figures).\n"
    "With -o DIR both sides' stages are written there, as oracle.h5 and device.h5.\n"
    "run writes the kernels' stages alone, as a dump. selftest proves each instruction wrapper of\n"
    "the kernels, and the block-scaled matrix unit, against the oracle.\n"
    "The oracle takes EX2, RCP and LG2 from the H200 capture unless --sfu exact is given.";

int dp_cmd_device(int argc, char **argv)
{
    request r = {.sms = 152,
                 .seq = 512,
                 .heads = 2,
                 .batch = 1,
                 .dim = 128,
                 .q_factor = 1.0,
                 .policy = "fast",
                 .epoch = "R",
                 .sfu = "h200",
                 .stages = "all",
                 .cases = 1073741824.0};
    const dp_option options[] = {
        {.name = "random",
         .type = DP_OPTION_INT,
         .value = &r.seed,
         .argument = "SEED",
         .low = 0,
         .high = 9007199254740991.0,
         .given = &r.random,
         .help = "draw Q, K, V from N(0,1) as torch draws them on a CUDA device"},
        DP_INT_RANDOM("sms", &r.sms, 1, 65535, &r.random, "multiprocessors of that device"),
        DP_INT_RANDOM("seq", &r.seq, 1, 1 << 20, &r.random, "queries and keys of --random"),
        DP_INT_RANDOM("heads", &r.heads, 1, 4096, &r.random, "query heads of --random"),
        DP_INT_RANDOM("kv-heads", &r.kv_heads, 0, 4096, &r.random,
                      "key heads of --random; 0: as many as --heads"),
        DP_INT_RANDOM("batch", &r.batch, 1, 4096, &r.random, "batch of --random"),
        DP_INT_RANDOM("dim", &r.dim, 1, 128, &r.random, "head dimension of --random"),
        DP_TEXT("policy", &r.policy, "NAME", "Direct-P policy"),
        DP_CHOICE("epoch", &r.epoch, "S|R", "sources modelled"),
        DP_TEXT("set", &r.set, "NAME=VALUE,...", "policy fields and switches"),
        DP_CHOICE("sfu", &r.sfu, "exact|h200", "the oracle's model of EX2, RCP and LG2"),
        DP_FLAG("smooth-k", &r.smooth_k, "subtract each head's mean key before quantization"),
        DP_REAL("q-factor", &r.q_factor, 1e-6, 1e6, "multiply Q by this (peaked inputs)"),
        DP_FLAG("causal", &r.causal, "mask keys behind the query, whatever the file says"),
        DP_FLAG("no-causal", &r.no_causal, "no mask, whatever the file says"),
        DP_INT("device", &r.device, 0, 255, "which device"),
        DP_FLAG("if-present", &r.if_present, "exit 0 when there is no device"),
        DP_OUTPUT(&r.output, "run: the dump to write; diff: the folder for both dumps"),
        DP_TEXT("stages", &r.stages, "LIST", "stages a dump holds: all, or names with commas"),
        DP_REAL("cases", &r.cases, 1, 1e12, "selftest: drawn cases of an instruction"),
        DP_THREADS(&r.threads),
        DP_JSON(&r.json),
        DP_CSV(&r.csv),
    };
    const dp_usage usage = {.verb = "device",
                            .operands = "probe|selftest|run|diff [IN.h5]",
                            .summary = "Run the CUDA kernels and compare them with the oracle.",
                            .notes = NOTES,
                            .example =
                                "directp device probe\n"
                                "directp device diff --random 1 --seq 1024 --policy accurate",
                            .least = 1,
                            .most = 2,
                            .options = options,
                            .count = sizeof options / sizeof options[0]};
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    if (!dp_style_of(r.json, r.csv, &r.style, &error)) {
        return dp_report_error(&error);
    }
    if (strcmp(argv[1], "probe") == 0 && argc == 2) {
        return probe(&r);
    }
    if (strcmp(argv[1], "selftest") == 0 && argc == 2) {
        return selftest(&r);
    }
    if (strcmp(argv[1], "run") == 0) {
        return run(&r, argc > 2 ? argv[2] : NULL);
    }
    if (strcmp(argv[1], "diff") == 0) {
        return diff(&r, argc > 2 ? argv[2] : NULL);
    }
    (void)dp_fail(&error, "device %s: not something to do: use probe, selftest, run or diff",
                  argv[1]);
    return dp_report_error(&error);
}
