/* SPDX-License-Identifier: MIT
 *
 * The kernels' times beside copies on the same device, one of 1 GiB and one of as many bytes as the
 * kernel moves, and the fused forward beside the oracle and, where
 * python3 has torch, beside its BF16 attention.
 * --elements N sets the sequence length (4096), 24 heads of 128 features.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/bench_sdpa.h"
#include "analysis/benches.h"
#include "analysis/device_diff.h"
#include "analysis/verb.h"

enum { HEADS = 24, ORACLE_HEADS = 4 };

static const dp_column COLUMNS[] = {{"what", NULL, -1},
                                    {"median_ms", NULL, 4},
                                    {"bytes", NULL, -1},
                                    {"gbytes_per_s", "GB/s moved", 1},
                                    {"of_copy", "of 1 GiB copy", 3},
                                    {"copy_same_ms", "copy of as much, ms", 4},
                                    {"of_copy_same", "of copy of as much", 3},
                                    {"ratio", "x faster", 1},
                                    {"of_sdpa", "x time of torch SDPA", 1}};

/* A kernel that moves bytes: beside the rate of the large copy, bytes a millisecond. */
static void add_moved(dp_report *report, const char *what, dp_device_time t, double copy_rate)
{
    const double bytes = (double)t.bytes;
    dp_report_text(report, what);
    dp_report_f64(report, t.ms);
    dp_report_i64(report, (int64_t)t.bytes);
    dp_report_f64(report, 1e-6 * bytes / t.ms);
    dp_report_f64(report, bytes / t.ms / copy_rate);
    dp_report_f64(report, t.copy_ms);
    dp_report_f64(report, t.copy_ms / t.ms);
    dp_report_blank(report);
    dp_report_blank(report);
}

static void add_ratio(dp_report *report, double ratio)
{
    if (ratio > 0) {
        dp_report_f64(report, ratio);
    } else {
        dp_report_blank(report);
    }
}

/* One that computes: beside the oracle (0: not compared) and beside torch (0: not there). */
static void add_time(dp_report *report, const char *what, double ms, double oracle_ms,
                     double sdpa_ms)
{
    dp_report_text(report, what);
    dp_report_f64(report, ms);
    for (int i = 0; i < 5; i++) {
        dp_report_blank(report);
    }
    add_ratio(report, oracle_ms / ms);
    add_ratio(report, sdpa_ms > 0 ? ms / sdpa_ms : 0);
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

/* Milliseconds of the BF16 reference kernel, every head. */
static bool time_reference(const dp_device_problem *p, int repeats, double softmax_scale, float *ms,
                           dp_error *error)
{
    const size_t rows = p->batch * p->q_heads * p->queries;
    uint16_t *o = malloc(rows * DP_HEAD_DIM * sizeof *o);
    float *lse = malloc(rows * sizeof *lse);
    const bool good =
        ((o != NULL && lse != NULL) || dp_fail(error, "bench device: not enough memory")) &&
        dp_device_reference(0, p, (float)(1.4426950408889634 * softmax_scale), repeats, o, lse, ms,
                            error);
    free(o);
    free(lse);
    return good;
}

static bool report(const dp_bench_options *options, const dp_device_times *t, double reference_ms,
                   double oracle_ms, double sdpa_ms, dp_error *error)
{
    dp_report *table = dp_report_new("kernels of a GPU, 24 heads of 128 features", COLUMNS,
                                     sizeof COLUMNS / sizeof COLUMNS[0]);
    const double rate = (double)t->copy.bytes / t->copy.ms;
    char produce[48];
    if (table == NULL) {
        return dp_fail(error, "bench device: memory ran short: free some and try again");
    }
    dp_report_wrap(table, 1, 100);
    (void)snprintf(produce, sizeof produce, "produce P, %d heads", t->produce_heads);
    add_moved(table, "copy 1 GiB", t->copy, rate);
    add_moved(table, "quantize Q", t->plain, rate);
    add_moved(table, "quantize Q folded", t->folded, rate);
    add_moved(table, "quantize V", t->values, rate);
    add_moved(table, produce, t->produce, rate);
    add_time(table, "fused forward", t->fused, oracle_ms, sdpa_ms);
    add_time(table, "BF16 reference", reference_ms, 0, sdpa_ms);
    if (sdpa_ms > 0) {
        add_time(table, "torch SDPA in BF16", sdpa_ms, 0, 0);
    }
    add_time(table, "oracle, 2 threads", oracle_ms, 0, 0);
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
    float reference_ms = 0;
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
               time_reference(&problem, options->repeats, dp_attention_scale(&inputs.in),
                              &reference_ms, &error) &&
               time_oracle(&inputs, &launch, ORACLE_HEADS, &seconds, &error);
        double sdpa_ms = 0;
        if (good && !dp_bench_sdpa(seq, HEADS, DP_HEAD_DIM, &sdpa_ms)) {
            sdpa_ms = 0;
        }
        good = good && report(options, &times, reference_ms, 1e3 * seconds * HEADS / ORACLE_HEADS,
                              sdpa_ms, &error);
    }
    free(order);
    dp_attend_inputs_free(&inputs);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
