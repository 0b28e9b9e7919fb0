/* SPDX-License-Identifier: MIT
 *
 * `directp bench diff`: two dumps of scores (1 GiB together) compared by bits, against the time
 * that H5Dread alone needs for them in the same run, head by head into one buffer.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "analysis/benches.h"
#include "analysis/diff.h"
#include "analysis/verb.h"

enum { SEQ = 4096, ONE_IN = 10007 };
#define GOAL       1.4
#define GOAL_MIB   1024.0
#define HEAD_BYTES ((size_t)SEQ * SEQ * sizeof(float))

typedef struct {
    char folder[200], path[3][256]; /* the dump, its copy, one that differs here and there */
    size_t heads;
    float *head; /* one head of scores */
    uint64_t mismatches[2];
    dp_error error;
} work;

/* Scores of a head, from a recurrence; differ: one element in ONE_IN is an ulp off. */
static void fill_head(float *x, size_t head, bool differ)
{
    uint32_t state = 0x9E3779B9u * (uint32_t)(head + 1);
    for (size_t i = 0; i < (size_t)SEQ * SEQ; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-27f;
        if (differ && i % ONE_IN == 0) {
            x[i] = dp_f32_from_bits(dp_f32_bits(x[i]) ^ 1u);
        }
    }
}

static bool write_dump(work *w, const char *path, bool differ)
{
    static const dp_h5_labels labels = {"f32", "batch,head,query,key", NULL, 0};
    const uint64_t dims[4] = {1, w->heads, SEQ, SEQ};
    dp_h5_writer writer;
    if (!dp_h5_create(&writer, path, "dump", NULL, 0, &w->error)) {
        return false;
    }
    bool good = dp_h5_reserve(&writer, "/score/raw", DP_H5_F32, 4, dims, &labels, &w->error);
    for (size_t h = 0; good && h < w->heads; h++) {
        const uint64_t start[4] = {0, h, 0, 0};
        const uint64_t count[4] = {1, 1, SEQ, SEQ};
        fill_head(w->head, h, differ);
        good =
            dp_h5_put_part(&writer, "/score/raw", DP_H5_F32, 4, start, count, w->head, &w->error);
    }
    good = good && dp_h5_commit(&writer, &w->error);
    dp_h5_abandon(&writer);
    return good;
}

/* ---- what is measured -------------------------------------------------------------------------
 */

static bool read_heads(const work *w, const char *path)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, "/score/raw", H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    const hsize_t count[4] = {1, 1, SEQ, SEQ};
    const hid_t memory = H5Screate_simple(4, count, NULL);
    bool good = memory >= 0;
    for (size_t h = 0; good && h < w->heads; h++) {
        const hsize_t start[4] = {0, h, 0, 0};
        good = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
               H5Dread(set, H5T_IEEE_F32LE, memory, space, H5P_DEFAULT, w->head) >= 0;
    }
    (void)H5Sclose(memory);
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    (void)H5Fclose(file);
    return good;
}

static void run_read(void *context)
{
    work *w = context;
    if (!read_heads(w, w->path[0]) || !read_heads(w, w->path[1])) {
        (void)dp_fail(&w->error, "bench diff: H5Dread failed");
    }
}

static void compare(work *w, int other)
{
    const dp_dump_overrides data = {.data_only = true};
    dp_dump a, b;
    if (!dp_dump_open(&a, w->path[0], &data, &w->error)) {
        return;
    }
    if (dp_dump_open(&b, w->path[other], &data, &w->error)) {
        const dp_diff_job job = {.dump = &a, .against = &b, .threads = 1};
        dp_diff_result *result = dp_diff_run(&job, &w->error);
        if (result != NULL) {
            w->mismatches[other - 1] = result->set[DP_DUMP_RAW].mismatches;
        }
        free(result);
        dp_dump_close(&b);
    }
    dp_dump_close(&a);
}

static void run_same(void *context)
{
    compare(context, 1);
}

static void run_different(void *context)
{
    compare(context, 2);
}

/* ---- report ------------------------------------------------------------------------------------
 */

static const dp_column COLUMNS[] = {{"what", NULL, -1},
                                    {"mebibytes", "MiB", 0},
                                    {"median_s", NULL, 4},
                                    {"of_read", "of H5Dread", 2},
                                    {"goal", NULL, 1},
                                    {"mismatches", NULL, -1},
                                    {"peak_mebibytes", "peak MiB", 0}};

static double peak_mebibytes(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

static void add(dp_report *report, const work *w, const char *what, const dp_bench_item *item,
                const dp_bench_item *read, const uint64_t *mismatches)
{
    dp_report_text(report, what);
    dp_report_f64(report, 2.0 * (double)(w->heads * HEAD_BYTES) / 1048576.0);
    dp_report_f64(report, item->median_s);
    dp_report_f64(report, item->median_s / read->median_s);
    if (mismatches != NULL) {
        dp_report_f64(report, GOAL);
        dp_report_i64(report, (int64_t)*mismatches);
    } else {
        dp_report_blank(report);
        dp_report_blank(report);
    }
    dp_report_f64(report, peak_mebibytes());
}

static bool prepare(work *w, size_t elements)
{
    const char *parent = getenv("TMPDIR");
    static const char *const names[] = {"a.h5", "b.h5", "c.h5"};
    const size_t wanted = elements > 0 ? elements : (size_t)1 << 27;
    w->heads = (wanted + (size_t)SEQ * SEQ - 1) / ((size_t)SEQ * SEQ);
    w->head = malloc(HEAD_BYTES);
    char folder[200];
    (void)snprintf(folder, sizeof folder, "%.150s/directp-bench-XXXXXX",
                   parent != NULL ? parent : "/tmp");
    if (w->head == NULL) {
        return dp_fail(&w->error, "bench diff: memory ran short: free some");
    }
    if (mkdtemp(folder) == NULL) {
        return dp_fail(&w->error, "bench diff: no folder can be made: set TMPDIR");
    }
    memcpy(w->folder, folder, sizeof folder);
    bool good = true;
    for (int i = 0; i < 3; i++) {
        (void)snprintf(w->path[i], sizeof w->path[i], "%s/%s", folder, names[i]);
        good = good && write_dump(w, w->path[i], i == 2);
    }
    return good;
}

static void clean(work *w)
{
    for (int i = 0; w->folder[0] != '\0' && i < 3; i++) {
        (void)unlink(w->path[i]);
    }
    if (w->folder[0] != '\0') {
        (void)rmdir(w->folder);
    }
    free(w->head);
}

int dp_bench_diff(const dp_bench_options *options)
{
    work w = {.folder = ""};
    dp_bench_item items[] = {{.run = run_read, .context = &w},
                             {.run = run_same, .context = &w},
                             {.run = run_different, .context = &w}};
    dp_report *report = dp_report_new("Dumps compared by bits, one thread", COLUMNS,
                                      sizeof COLUMNS / sizeof COLUMNS[0]);
    bool good = (report != NULL || dp_fail(&w.error, "bench diff: memory ran short")) &&
                prepare(&w, options->elements) && dp_bench_measure(items, 3, options, &w.error) &&
                w.error.text[0] == '\0';
    clean(&w);
    if (good) {
        add(report, &w, "H5Dread alone", &items[0], &items[0], NULL);
        add(report, &w, "diff --against, equal", &items[1], &items[0], &w.mismatches[0]);
        add(report, &w, "diff --against, 1 in 10007 differs", &items[2], &items[0],
            &w.mismatches[1]);
        good = dp_report_print(report, options->style, stdout, &w.error);
    }
    dp_report_free(report);
    if (good && options->style == DP_STYLE_TEXT) {
        (void)printf("Goal: at most %.1f times H5Dread, below %.0f MiB of memory.\n", GOAL,
                     GOAL_MIB);
    }
    return good ? DP_EXIT_SAME : dp_report_error(&w.error);
}
