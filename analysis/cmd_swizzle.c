/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/commands.h"
#include "analysis/h5.h"
#include "analysis/options.h"
#include "analysis/report.h"
#include "formats/layout.h"

typedef struct {
    const char *layout, *output;
    int64_t rows, columns;
    bool inverse, json, csv;
} swizzle_options;

/* The scales and where they go: `count` matrices. */
typedef struct {
    dp_layout_map map;
    size_t count;
    int rank; /* of the dimensions in front of the matrices */
    dp_h5_shape shape;
    uint8_t *from, *to;
    char *format;
    size_t dirty; /* padding bytes that are not 0 */
} swizzle_job;

/* "FILE:/dataset" */
static bool split(const char *operand, char path[DP_PATH_SIZE], const char **dataset,
                  dp_error *error)
{
    const char *colon = NULL;
    *dataset = NULL;
    for (const char *at = operand; (at = strstr(at, ":/")) != NULL; at++) {
        colon = at;
    }
    if (colon == NULL || (size_t)(colon - operand) >= DP_PATH_SIZE) {
        return dp_fail(error, "%.200s: it names no dataset: give FILE:/DATASET", operand);
    }
    (void)snprintf(path, DP_PATH_SIZE, "%.*s", (int)(colon - operand), operand);
    *dataset = colon + 1;
    return true;
}

/* Rows and columns of a stored buffer: the options, else what the dataset says. */
static bool stored_extents(const dp_h5 *file, const char *dataset, const swizzle_options *o,
                           dp_layout_map *map, dp_error *error)
{
    int64_t rows = o->rows;
    int64_t columns = o->columns;
    if (rows == 0 && !dp_h5_i64(file, dataset, "rows", &rows, error)) {
        return false;
    }
    if (columns == 0 && !dp_h5_i64(file, dataset, "columns", &columns, error)) {
        return false;
    }
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX) {
        return dp_fail(error,
                       "%s:%s: %lld rows and %lld columns make no matrix: give --rows and "
                       "--columns",
                       file->path, dataset, (long long)rows, (long long)columns);
    }
    map->rows = (size_t)rows;
    map->cols = (size_t)columns;
    return true;
}

static bool load(const dp_h5 *file, const char *dataset, const swizzle_options *o, swizzle_job *job,
                 dp_error *error)
{
    void *data;
    if (!dp_h5_read(file, dataset, DP_H5_U8, -1, &job->shape, &data, error)) {
        return false;
    }
    job->from = data;
    const int matrix_rank = o->inverse ? 1 : 2;
    job->rank = job->shape.rank - matrix_rank;
    if (job->rank < 0 || job->shape.count == 0) {
        return dp_fail(error, "%s:%s: it has too few dimensions or is empty: give %s", file->path,
                       dataset, o->inverse ? "[..., bytes]" : "[..., rows, columns]");
    }
    if (dp_h5_has_attribute(file, dataset, "format") &&
        !dp_h5_text(file, dataset, "format", &job->format, error)) {
        return false;
    }
    if (!o->inverse) {
        job->map.rows = (size_t)job->shape.dims[job->rank];
        job->map.cols = (size_t)job->shape.dims[job->rank + 1];
        job->count = job->shape.count / (job->map.rows * job->map.cols);
        return true;
    }
    if (!stored_extents(file, dataset, o, &job->map, error)) {
        return false;
    }
    const size_t bytes = (size_t)job->shape.dims[job->rank];
    if (bytes != dp_layout_bytes(job->map)) {
        return dp_fail(error,
                       "%s:%s: %zu bytes a matrix, and %zu rows by %zu columns take %zu in "
                       "layout %s: give the right --rows, --columns or --layout",
                       file->path, dataset, bytes, job->map.rows, job->map.cols,
                       dp_layout_bytes(job->map), o->layout);
    }
    job->count = job->shape.count / bytes;
    return true;
}

static bool convert(const swizzle_options *o, swizzle_job *job, dp_error *error)
{
    const size_t linear = job->map.rows * job->map.cols;
    const size_t stored = dp_layout_bytes(job->map);
    job->to = malloc(job->count * (o->inverse ? linear : stored));
    if (job->to == NULL) {
        return dp_fail(error, "swizzle: no memory for %zu matrices: free some", job->count);
    }
    for (size_t i = 0; i < job->count; i++) {
        if (o->inverse) {
            dp_layout_unswizzle(job->map, job->from + i * stored, job->to + i * linear);
            job->dirty += dp_layout_dirty_padding(job->map, job->from + i * stored);
        } else {
            dp_layout_swizzle(job->map, job->from + i * linear, job->to + i * stored);
        }
    }
    return true;
}

static bool write_output(const char *path, const char *dataset, const swizzle_options *o,
                         const swizzle_job *job, dp_error *error)
{
    const char *const inputs[] = {path};
    uint64_t dims[DP_H5_RANK];
    int rank = job->rank;
    memcpy(dims, job->shape.dims, sizeof dims);
    if (o->inverse && rank + 2 > DP_H5_RANK) {
        return dp_fail(error, "%s:%s: it has too many dimensions: reshape it", path, dataset);
    }
    if (o->inverse) {
        dims[rank++] = job->map.rows;
        dims[rank++] = job->map.cols;
    } else {
        dims[rank++] = dp_layout_bytes(job->map);
    }
    const char *stored = job->map.kind == DP_LAYOUT_128X4   ? "atom128x4"
                         : job->map.kind == DP_LAYOUT_SM120 ? "atom64x4"
                                                            : o->layout;
    const dp_h5_labels labels = {.format = job->format, .layout = o->inverse ? "linear" : stored};
    dp_h5_writer w;
    const bool good =
        dp_h5_create(&w, o->output, "dump", inputs, 1, error) &&
        dp_h5_put(&w, dataset, DP_H5_U8, rank, dims, job->to, &labels, error) &&
        (o->inverse || (dp_h5_put_i64(&w, dataset, "rows", (int64_t)job->map.rows, error) &&
                        dp_h5_put_i64(&w, dataset, "columns", (int64_t)job->map.cols, error))) &&
        dp_h5_commit(&w, error);
    dp_h5_abandon(&w);
    return good;
}

static bool print(const swizzle_options *o, const swizzle_job *job, dp_style style, dp_error *error)
{
    static const dp_column columns[] = {{"layout", NULL, -1},        {"inverse", NULL, -1},
                                        {"matrices", NULL, -1},      {"rows", NULL, -1},
                                        {"columns", NULL, -1},       {"stored_bytes", NULL, -1},
                                        {"padding_bytes", NULL, -1}, {"dirty_padding", NULL, -1}};
    dp_report *report = dp_report_new(NULL, columns, 8);
    if (report == NULL) {
        return dp_fail(error, "swizzle: memory ran short: free some and try again");
    }
    const size_t stored = dp_layout_bytes(job->map);
    dp_report_text(report, o->layout);
    dp_report_text(report, o->inverse ? "yes" : "no");
    dp_report_i64(report, (int64_t)job->count);
    dp_report_i64(report, (int64_t)job->map.rows);
    dp_report_i64(report, (int64_t)job->map.cols);
    dp_report_i64(report, (int64_t)stored);
    dp_report_i64(report, (int64_t)(stored - job->map.rows * job->map.cols));
    dp_report_i64(report, (int64_t)job->dirty);
    const bool good = dp_report_print(report, style, stdout, error);
    dp_report_free(report);
    return good;
}

static bool swizzle(const char *operand, const swizzle_options *o, dp_style style, swizzle_job *job,
                    dp_error *error)
{
    char path[DP_PATH_SIZE];
    const char *dataset = NULL;
    dp_h5 file;
    if (!dp_layout_find(o->layout, &job->map.kind) || !split(operand, path, &dataset, error) ||
        !dp_h5_open(&file, path, error)) {
        return false;
    }
    bool good = load(&file, dataset, o, job, error);
    dp_h5_close(&file);
    good = good && convert(o, job, error) && write_output(path, dataset, o, job, error) &&
           print(o, job, style, error);
    if (good && job->dirty > 0) {
        dp_report_warning("%s: %zu padding bytes are not 0: another layout may have written it",
                          operand, job->dirty);
    }
    return good;
}

int dp_cmd_swizzle(int argc, char **argv)
{
    swizzle_options o = {.layout = "128x4"};
    const dp_option options[] = {
        DP_CHOICE("layout", &o.layout, "128x4|sm120|128x4-swapped|linear",
                  "order of the scale bytes"),
        DP_FLAG("inverse", &o.inverse, "from this order back to [..., rows, columns]"),
        DP_INT("rows", &o.rows, 0, 2147483647,
               "rows of the matrix, for --inverse; 0: the dataset's"),
        DP_INT("columns", &o.columns, 0, 2147483647,
               "scales in a row, for --inverse; 0: the dataset's"),
        DP_OUTPUT(&o.output, "HDF5 file to write, the dataset under its own name"),
        DP_JSON(&o.json),
        DP_CSV(&o.csv)};
    const dp_usage usage = {
        .verb = "swizzle",
        .operands = "IN.h5:/DATASET",
        .summary =
            "Bring the scale bytes of a linear dataset [..., rows, columns] into the order a "
            "matrix unit reads, or back. Padding is written as 0; padding that is not 0 in "
            "an inverse is counted, and the exit status is then 1.",
        .example = "directp swizzle out.h5:/quantize/k_scale -o swizzled.h5\n"
                   "directp swizzle swizzled.h5:/quantize/k_scale --inverse -o linear.h5",
        .least = 1,
        .most = 1,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    dp_error error = {""};
    dp_style style;
    swizzle_job job;
    memset(&job, 0, sizeof job);
    const int status = dp_options_parse(&usage, &argc, argv);
    if (status != DP_CONTINUE) {
        return status;
    }
    bool good = dp_style_of(o.json, o.csv, &style, &error);
    if (good && o.output == NULL) {
        good = dp_fail(&error, "swizzle: --output is missing: name a file to write");
    }
    good = good && swizzle(argv[1], &o, style, &job, &error);
    free(job.from);
    free(job.to);
    free(job.format);
    if (!good) {
        return dp_report_error(&error);
    }
    return job.dirty > 0 ? DP_EXIT_DIFFERENT : DP_EXIT_SAME;
}
