/* SPDX-License-Identifier: MIT */
#include "analysis/bench.h"
#include "analysis/commands.h"
#include "analysis/options.h"

/* "NAMES:\n  formats  what it measures" for the help text. */
static void list_benches(char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "Benchmarks:");
    for (const dp_bench *bench = dp_benches; bench->name != NULL && used < size; bench++) {
        const int added =
            snprintf(text + used, size - used, "\n  %-10s %s", bench->name, bench->summary);
        used += added > 0 ? (size_t)added : 0;
    }
}

int dp_cmd_bench(int argc, char **argv)
{
    int64_t threads = 1;
    int64_t repeats = 5;
    int64_t elements = 0;
    double seconds = 0.5;
    bool json = false;
    bool csv = false;
    char notes[2048];
    const dp_option options[] = {
        DP_THREADS(&threads),
        DP_INT("repeats", &repeats, 1, 10000, "least number of repeats; the median is reported"),
        DP_REAL("seconds", &seconds, 0, 3600, "least time for each measurement, in seconds"),
        DP_INT("elements", &elements, 0, 4294967296.0,
               "elements of each array; 0 lets the benchmark choose"),
        DP_JSON(&json),
        DP_CSV(&csv)};
    const dp_usage usage = {
        .verb = "bench",
        .operands = "NAME",
        .summary = "Measure speeds in one run, rivals interleaved, and print them beside the limit "
                   "of the machine.",
        .notes = notes,
        .example = "directp bench memory --threads 2",
        .least = 1,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    list_benches(notes, sizeof notes);
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    dp_error error = {""};
    dp_bench_options chosen = {.threads = (int)threads,
                               .seconds = seconds,
                               .repeats = (int)repeats,
                               .elements = (size_t)elements};
    if (!dp_style_of(json, csv, &chosen.style, &error)) {
        return dp_report_error(&error);
    }
    for (const dp_bench *bench = dp_benches; bench->name != NULL; bench++) {
        if (strcmp(argv[1], bench->name) == 0) {
            return bench->run(&chosen);
        }
    }
    (void)dp_fail(&error, "bench: there is no benchmark '%.64s': see directp bench --help",
                  argv[1]);
    return dp_report_error(&error);
}
