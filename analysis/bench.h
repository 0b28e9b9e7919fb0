/* SPDX-License-Identifier: MIT
 *
 * `directp bench NAME`: each benchmark lives in analysis/bench_NAME.c and has one line in
 * analysis/benches.c. Rivals are measured interleaved, so that a machine that slows down slows all
 * of them, and the median is reported.
 */
#ifndef DP_ANALYSIS_BENCH_H
#define DP_ANALYSIS_BENCH_H

#include "analysis/report.h"

typedef struct {
    int threads;     /* as --threads says: 0 is one per online CPU */
    dp_style style;  /* text, JSON or CSV */
    double seconds;  /* least time spent on each measured item, in seconds */
    int repeats;     /* least number of repeats of each item; the median is reported */
    size_t elements; /* of each array; 0 lets the benchmark choose */
} dp_bench_options;

/* Runs, prints its report, returns an exit status. */
typedef int dp_bench_main(const dp_bench_options *options);

typedef struct {
    const char *name;
    const char *summary;
    dp_bench_main *run;
} dp_bench;

/* Ends with a NULL name. */
extern const dp_bench dp_benches[];

/* One thing to time. */
typedef struct {
    void (*run)(void *context);
    void *context;
    double median_s; /* results, in seconds a call */
    double least_s;
    double most_s;
    int repeats;
} dp_bench_item;

/* Seconds on a monotonic clock. */
double dp_bench_now(void);
/* Call every item in turn (after one untimed round) until each has had options->repeats calls and
 * options->seconds. False when memory is short. */
bool dp_bench_measure(dp_bench_item *items, size_t count, const dp_bench_options *options,
                      dp_error *error);

#endif
