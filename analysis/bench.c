/* SPDX-License-Identifier: MIT */
#include "analysis/bench.h"

#include <stdlib.h>
#include <time.h>

enum { MOST_REPEATS = 10000 };

double dp_bench_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(dp_bench_item *item, double *times, int repeats)
{
    const size_t n = (size_t)repeats;
    qsort(times, n, sizeof *times, compare_doubles);
    item->median_s = n % 2 == 1 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
    item->least_s = times[0];
    item->most_s = times[n - 1];
    item->repeats = repeats;
}

bool dp_bench_measure(dp_bench_item *items, size_t count, const dp_bench_options *options,
                      dp_error *error)
{
    double *times = malloc(count * MOST_REPEATS * sizeof *times);
    if (times == NULL) {
        return dp_fail(error, "bench: memory ran short: free some and try again");
    }
    for (size_t i = 0; i < count; i++) {
        items[i].run(items[i].context);
    }
    /* Every item has the same number of repeats: rounds go on until the fastest has its time. */
    int rounds = 0;
    double spent = 0.0;
    while (rounds < MOST_REPEATS && (rounds < options->repeats || spent < options->seconds)) {
        double fastest = 0.0;
        for (size_t i = 0; i < count; i++) {
            const double start = dp_bench_now();
            items[i].run(items[i].context);
            const double took = dp_bench_now() - start;
            times[i * MOST_REPEATS + (size_t)rounds] = took;
            fastest = i == 0 || took < fastest ? took : fastest;
        }
        spent += fastest;
        rounds++;
    }
    for (size_t i = 0; i < count; i++) {
        summarise(&items[i], times + i * MOST_REPEATS, rounds);
    }
    free(times);
    return true;
}
