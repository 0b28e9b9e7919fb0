/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/benches.h"
#include "analysis/verb.h"
#include "formats/parallel.h"

typedef struct {
    float *from, *to;
    size_t count;
    int threads;
    uint32_t sums[1024]; /* one a thread */
} memory_job;

static void copy_part(void *context, size_t first, size_t last, int thread)
{
    memory_job *job = context;
    (void)thread;
    memcpy(job->to + first, job->from + first, (last - first) * sizeof(float));
}

static void read_part(void *context, size_t first, size_t last, int thread)
{
    memory_job *job = context;
    uint32_t sum = 0;
    for (size_t i = first; i < last; i++) {
        sum += dp_f32_bits(job->from[i]);
    }
    job->sums[thread] += sum;
}

static void run_copy(void *context)
{
    memory_job *job = context;
    dp_parallel_for(job->threads, job->count, 1u << 16, copy_part, job);
}

static void run_read(void *context)
{
    memory_job *job = context;
    dp_parallel_for(job->threads, job->count, 1u << 16, read_part, job);
}

static bool report(const dp_bench_options *options, const dp_bench_item *items, size_t count,
                   dp_error *error)
{
    static const dp_column columns[] = {{"what", NULL, -1},
                                        {"threads", NULL, -1},
                                        {"elements", NULL, -1},
                                        {"median_s", NULL, 6},
                                        {"gelements_per_s", "Gelements/s", 3},
                                        {"gbytes_per_s", "GB/s moved", 2}};
    static const char *const names[] = {"copy f32", "read f32"};
    static const double bytes[] = {8.0, 4.0};
    dp_report *table = dp_report_new("memory rates", columns, 6);
    if (table == NULL) {
        return dp_fail(error, "bench memory: memory ran short: free some and try again");
    }
    for (size_t i = 0; i < 2; i++) {
        const double rate = (double)count / items[i].median_s;
        dp_report_text(table, names[i]);
        dp_report_i64(table, dp_parallel_threads(options->threads));
        dp_report_i64(table, (int64_t)count);
        dp_report_f64(table, items[i].median_s);
        dp_report_f64(table, 1e-9 * rate);
        dp_report_f64(table, 1e-9 * rate * bytes[i]);
    }
    const bool good = dp_report_print(table, options->style, stdout, error);
    dp_report_free(table);
    return good;
}

int dp_bench_memory(const dp_bench_options *options)
{
    dp_error error = {""};
    const size_t count = options->elements > 0 ? options->elements : (size_t)1 << 24;
    memory_job job = {.count = count, .threads = options->threads};
    job.from = calloc(count, sizeof(float));
    job.to = calloc(count, sizeof(float));
    dp_bench_item items[] = {{.run = run_copy, .context = &job},
                             {.run = run_read, .context = &job}};
    bool good = job.from != NULL && job.to != NULL;
    if (good) {
        for (size_t i = 0; i < count; i++) {
            job.from[i] = (float)(i & 0xFFFFu); /* real pages, not the shared zero page */
        }
        good = dp_bench_measure(items, 2, options, &error) && report(options, items, count, &error);
    } else {
        (void)dp_fail(&error, "bench memory: memory ran short: give a smaller --elements");
    }
    free(job.from);
    free(job.to);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
