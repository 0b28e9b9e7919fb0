/* SPDX-License-Identifier: MIT
 *
 * The kernels' times beside a copy on the same device, and the fused forward beside the oracle.
 * --elements N sets the sequence length (4096), 24 heads of 128 features.
 */
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/benches.h"
#include "analysis/device_diff.h"
#include "analysis/verb.h"

enum { HEADS = 24, ORACLE_HEADS = 4 };

static const dp_column COLUMNS[] = {{"what", NULL, -1},        {"median_ms", NULL, 4},
                                    {"bytes", NULL, -1},       {"gbytes_per_s", "GB/s moved", 1},
                                    {"of_copy", "of copy", 3}, {"ratio", "x faster", 1}};

static void add(dp_report *report, const char *what, double ms, double bytes, double copy_rate,
                double ratio)
{
    dp_report_text(report, what);
    dp_report_f64(report, ms);
    if (bytes > 0) {
        dp_report_i64(report, (int64_t)bytes);
        dp_report_f64(report, 1e-6 * bytes / ms);
        dp_report_f64(report, bytes / ms / copy_rate);
    } else {
        dp_report_blank(report);
        dp_report_blank(report);
        dp_report_blank(report);
    }
    if (ratio > 0) {
        dp_report_f64(report, ratio);
    } else {
        dp_report_blank(report);
    }
}

/* Seconds of the oracle's forward on `heads` heads, two threads. */
static bool time_oracle(const dp_attend_inputs *inputs, const dp_direct_p *launch, size_t heads,
                        double *seconds, dp_error *error)
{
    dp_attend_inputs few = *inputs;
    few.in.q_heads = few.in.kv_heads = heads;
    few.in.kv_of_q = NULL;
    const size_t rows = heads * few.in.queries;
    uint16_t *o = malloc(rows * few.in.dim * sizeof *o);
    float *lse = malloc(rows * sizeof *lse);
    const dp_attend_run_options options = {.inputs = &few, .launch = launch, .threads = 2};
    const double start = dp_bench_now();
    const bool good = o != NULL && lse != NULL && dp_attend_run(&options, o, lse, error);
    *seconds = dp_bench_now() - start;
    free(o);
    free(lse);
    return good;
}

static bool report(const dp_bench_options *options, const dp_device_times *t, double seq,
                   double oracle_ms, dp_error *error)
{
    dp_report *table = dp_report_new("kernels of a GPU, 24 heads of 128 features", COLUMNS,
                                     sizeof COLUMNS / sizeof COLUMNS[0]);
    const double copy_bytes = 2.0 * (double)t->copy_bytes;
    const double rate = copy_bytes / t->copy;
    const double rows = seq * HEADS;
    if (table == NULL) {
        return dp_fail(error, "bench device: memory ran short: free some and try again");
    }
    add(table, "copy", t->copy, copy_bytes, rate, 0);
    add(table, "quantize Q", t->plain, rows * (256 + 64 + 8), rate, 0);
    add(table, "quantize Q folded", t->folded, rows * (256 + 64 + 8), rate, 0);
    add(table, "quantize V", t->values, rows * (256 + 64 + 4), rate, 0);
    add(table, "produce P, one head", t->produce, seq * seq * (4 + 0.5 + 3.0 / 32), rate, 0);
    add(table, "fused forward", t->fused, 0, rate, oracle_ms / t->fused);
    add(table, "oracle, 2 threads", oracle_ms, 0, rate, 0);
    const bool good = dp_report_print(table, options->style, stdout, error);
    dp_report_free(table);
    return good;
}

int dp_bench_device(const dp_bench_options *options)
{
    dp_error error = {""};
    dp_device_info info;
    if (!dp_device_built()) {
        (void)dp_fail(&error, "device: this build has no kernels: build where nvcc is installed");
        return dp_report_error(&error);
    }
    if (!dp_device_probe(0, &info, &error)) {
        return dp_report_error(&error);
    }
    const size_t seq = options->elements > 0 ? options->elements : 4096;
    const dp_attend_transform transform = {.q_factor = 1.0};
    dp_attend_inputs inputs;
    if (!dp_attend_random(1, 152, 1, seq, HEADS, HEADS, DP_HEAD_DIM, 0, &transform, &inputs,
                          &error)) {
        return dp_report_error(&error);
    }
    dp_direct_p launch;
    dp_mma_switches mma = {0};
    dp_device_times times;
    double seconds = 0;
    int32_t map[HEADS];
    int32_t *order = malloc(seq * sizeof *order);
    for (int h = 0; h < HEADS; h++) {
        map[h] = h;
    }
    for (size_t i = 0; order != NULL && i < seq; i++) {
        order[i] = (int32_t)i;
    }
    const dp_device_problem problem = {.batch = 1,
                                       .q_heads = HEADS,
                                       .kv_heads = HEADS,
                                       .queries = seq,
                                       .keys = seq,
                                       .kv_of_q = map,
                                       .key_order = order,
                                       .q = inputs.q,
                                       .k = inputs.k,
                                       .v = inputs.v};
    bool good =
        order != NULL && dp_launch_choice("fast", "R", NULL, "h200", dp_attention_scale(&inputs.in),
                                          &launch, &mma, &error);
    if (good) {
        const dp_device_policy policy = dp_device_policy_of(&launch);
        good = dp_device_bench(0, &problem, &policy, options->repeats * 4, &times, &error) &&
               time_oracle(&inputs, &launch, ORACLE_HEADS, &seconds, &error) &&
               report(options, &times, (double)seq, 1e3 * seconds * HEADS / ORACLE_HEADS, &error);
    }
    free(order);
    dp_attend_inputs_free(&inputs);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
