/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/attend_choice.h"
#include "analysis/attend_reports.h"

/* The launches of the table. A route has no policy. */
typedef struct {
    const char *policy, *epoch, *route;
} launch_row;

static const launch_row LAUNCHES[] = {
    {"fast", "S", NULL},       {"fast", "R", NULL},      {"accurate", "S", NULL},
    {"guard-1.3b", "R", NULL}, {"guard-14b", "R", NULL}, {"ideal", "S", NULL},
    {NULL, NULL, "hao-nv-nv"},
};
enum { LAUNCH_COUNT = sizeof LAUNCHES / sizeof LAUNCHES[0] };

static const dp_column COLUMNS[] = {
    {"file", NULL, -1},     {"head", NULL, -1},  {"largest_logit", NULL, 1},  {"smooth", NULL, -1},
    {"operator", NULL, -1}, {"epoch", NULL, -1}, {"cosine", NULL, 6},         {"rel_l2", NULL, 6},
    {"slope", NULL, 4},     {"rows", NULL, -1},  {"nonfinite_rows", NULL, -1}};

/* Outputs of one file under one transform. */
typedef struct {
    dp_attend_inputs inputs;
    uint16_t *o, *reference;
    float *lse;
    double *logit; /* one a head, of the untransformed tensors */
} work;

static void free_work(work *w)
{
    dp_attend_inputs_free(&w->inputs);
    free(w->o);
    free(w->reference);
    free(w->lse);
}

static bool run_launch(work *w, const launch_row *row, int threads, dp_error *error)
{
    const dp_attention *in = &w->inputs.in;
    dp_mma_switches mma = {0};
    if (row->route != NULL) {
        dp_route route;
        return dp_route_find(row->route, &route, error) &&
               dp_route_run(in, &route, &mma, dp_sfu_exact(), threads, w->o, w->lse, NULL, error);
    }
    dp_direct_p launch;
    if (!dp_launch_choice(row->policy, row->epoch, NULL, "exact", dp_attention_scale(in), &launch,
                          &mma, error)) {
        return false;
    }
    const dp_attend_run_options options = {
        .inputs = &w->inputs, .launch = &launch, .mma = &mma, .threads = threads};
    return dp_attend_run(&options, w->o, w->lse, error);
}

static void add_rows(dp_report *report, const char *file, const work *w, const launch_row *row)
{
    const dp_attention *in = &w->inputs.in;
    for (size_t h = 0; h < in->batch * in->q_heads; h++) {
        const size_t at = h * in->queries * in->dim;
        const dp_attend_metrics m =
            dp_attend_compare(w->o + at, w->reference + at, in->queries, in->dim);
        dp_report_text(report, file);
        dp_report_i64(report, (int64_t)h);
        dp_report_f64(report, w->logit[h]);
        dp_report_text(report, w->inputs.smooth_k ? "yes" : "no");
        dp_report_text(report, row->route != NULL ? row->route : row->policy);
        dp_report_text(report, row->route != NULL ? "-" : row->epoch);
        dp_report_f64(report, m.cosine);
        dp_report_f64(report, m.rel_l2);
        dp_report_f64(report, m.slope);
        dp_report_i64(report, (int64_t)m.rows);
        dp_report_i64(report, (int64_t)m.nonfinite_rows);
    }
}

/* The last part of a path without ".h5". */
static void name_of(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(name, size, "%s", slash != NULL ? slash + 1 : path);
    char *end = strstr(name, ".h5");
    if (end != NULL) {
        *end = '\0';
    }
}

/* Every launch on one transform of one file. logit is filled when the tensors are untransformed. */
static bool run_file(const dp_tensors *tensors, const char *path, bool smooth, double *logit,
                     int threads, dp_report *report, dp_error *error)
{
    const dp_attend_transform transform = {.smooth_k = smooth, .q_factor = 1.0};
    work w = {.logit = logit};
    if (!dp_attend_from_tensors(tensors, path, &transform, &w.inputs, error)) {
        return false;
    }
    const dp_attention *in = &w.inputs.in;
    const size_t rows = in->batch * in->q_heads * in->queries;
    w.o = malloc(rows * in->dim * sizeof *w.o);
    w.reference = malloc(rows * in->dim * sizeof *w.reference);
    w.lse = malloc(rows * sizeof *w.lse);
    bool good = (w.o != NULL && w.reference != NULL && w.lse != NULL) ||
                dp_fail(error, "%s: not enough memory for %zu rows", path, rows);
    for (size_t h = 0; good && !smooth && h < in->batch * in->q_heads; h++) {
        logit[h] = dp_attend_largest_logit(in, h / in->q_heads, h % in->q_heads);
    }
    good = good && dp_reference_bf16(in, threads, w.reference, NULL, error);
    char name[128];
    name_of(path, name, sizeof name);
    for (size_t i = 0; good && i < LAUNCH_COUNT; i++) {
        good = run_launch(&w, &LAUNCHES[i], threads, error);
        if (good) {
            add_rows(report, name, &w, &LAUNCHES[i]);
        }
    }
    free_work(&w);
    return good;
}

bool dp_report_table(const char *const *files, size_t count, int threads, dp_style style,
                     dp_error *error)
{
    dp_report *report = dp_report_new("Error against BF16 attention of the same inputs", COLUMNS,
                                      sizeof COLUMNS / sizeof COLUMNS[0]);
    bool good = report != NULL || dp_fail(error, "attend: not enough memory for the report");
    for (size_t i = 0; good && i < count; i++) {
        dp_tensors tensors;
        if (!dp_tensors_load(files[i], &tensors, error)) {
            good = false;
            break;
        }
        double *logit = calloc(tensors.batch * tensors.q_heads, sizeof *logit);
        good = logit != NULL || dp_fail(error, "%s: not enough memory", files[i]);
        for (int smooth = 0; good && smooth < 2; smooth++) {
            good = run_file(&tensors, files[i], smooth != 0, logit, threads, report, error);
        }
        free(logit);
        dp_tensors_free(&tensors);
    }
    good = good && dp_report_print(report, style, stdout, error);
    dp_report_free(report);
    return good;
}
