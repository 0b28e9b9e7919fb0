/* SPDX-License-Identifier: MIT
 *
 * The mismatches of a comparison: where (rows x columns) and how far.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/diff.h"
#include "analysis/plot.h"

/* One dataset of a report. */
typedef struct {
    int64_t elements, mismatches, rows, columns;
    uint32_t *map;
    int64_t *histogram;
} shown;

static bool load(const dp_h5 *file, dp_dump_id id, shown *s, dp_error *error)
{
    char group[64], path[80];
    dp_h5_shape map, histogram;
    void *data = NULL;
    (void)snprintf(group, sizeof group, "/diff/%s", dp_dump_datasets[id].name);
    (void)snprintf(path, sizeof path, "%s/map", group);
    if (!dp_h5_i64(file, group, "elements", &s->elements, error) ||
        !dp_h5_i64(file, group, "mismatches", &s->mismatches, error) ||
        !dp_h5_i64(file, group, "rows", &s->rows, error) ||
        !dp_h5_i64(file, group, "columns", &s->columns, error) ||
        !dp_h5_read(file, path, DP_H5_U32, 2, &map, &data, error)) {
        return false;
    }
    s->map = data;
    (void)snprintf(path, sizeof path, "%s/histogram", group);
    if (!dp_h5_read_integers(file, path, 1, &histogram, &s->histogram, error)) {
        return false;
    }
    return (map.dims[0] == DP_DIFF_MAP && map.dims[1] == DP_DIFF_MAP &&
            histogram.count == DP_DIFF_BUCKETS && s->rows > 0 && s->columns > 0) ||
           dp_fail(error, "%s:%s: maps of another size: write the report again", file->path, group);
}

static int64_t cells(int64_t extent)
{
    return extent < DP_DIFF_MAP ? extent : DP_DIFF_MAP;
}

static bool write_map(const dp_plot_request *request, const shown *s, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "diff_map.dat", error)) {
        return false;
    }
    (void)fputs("# column row mismatches (centre of a cell; 0 is written as NaN)\n", file.stream);
    const double dx = (double)s->columns / (double)cells(s->columns);
    const double dy = (double)s->rows / (double)cells(s->rows);
    for (int64_t y = 0; y < cells(s->rows); y++) {
        for (int64_t x = 0; x < cells(s->columns); x++) {
            const uint32_t n = s->map[y * DP_DIFF_MAP + x];
            (void)fprintf(file.stream, "%.9g %.9g ", ((double)x + 0.5) * dx,
                          ((double)y + 0.5) * dy);
            if (n > 0) {
                (void)fprintf(file.stream, "%" PRIu32 "\n", n);
            } else {
                (void)fputs("NaN\n", file.stream);
            }
        }
        (void)fputs("\n", file.stream);
    }
    return dp_plot_close(&file, true, error);
}

static bool write_histogram(const dp_plot_request *request, const shown *s, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "diff_histogram.dat", error)) {
        return false;
    }
    (void)fputs("# bucket count label\n", file.stream);
    for (int b = 1; b < DP_DIFF_BUCKETS; b++) {
        if (b == DP_DIFF_BUCKETS - 1) {
            (void)fprintf(file.stream, "%d %" PRId64 " \"NaN\"\n", b, s->histogram[b]);
        } else {
            (void)fprintf(file.stream, "%d %" PRId64 " \"2^%d\"\n", b, s->histogram[b], b - 1);
        }
    }
    return dp_plot_close(&file, true, error);
}

static void last_bucket(const shown *s, int *low, int *high)
{
    *low = DP_DIFF_BUCKETS;
    *high = 0;
    for (int b = 1; b < DP_DIFF_BUCKETS; b++) {
        if (s->histogram[b] > 0) {
            *low = b < *low ? b : *low;
            *high = b;
        }
    }
}

/* A text inside double quotes of gnuplot. */
static void put_quoted(FILE *stream, const char *name, const char *text)
{
    (void)fprintf(stream, "%s = \"", name);
    for (; *text != '\0'; text++) {
        (void)fputc(*text == '"' || *text == '\\' || (unsigned char)*text < 32 ? '_' : *text,
                    stream);
    }
    (void)fputs("\"\n", stream);
}

static bool write_settings(const dp_plot_request *request, const dp_h5 *report, dp_dump_id id,
                           const shown *s, dp_error *error)
{
    dp_plot_file file;
    char *source = NULL, *diagnosis = NULL;
    int low, high;
    last_bucket(s, &low, &high);
    bool good = dp_h5_text(report, "/", "source", &source, error) &&
                dp_h5_text(report, "/", "diagnosis", &diagnosis, error) &&
                dp_plot_open(&file, request, "diff_settings.gp", error);
    if (good) {
        const char *slash = strrchr(source, '/');
        (void)fputs("# Written by directp plot diff; diff.gp loads it.\n", file.stream);
        put_quoted(file.stream, "source", slash != NULL ? slash + 1 : source);
        put_quoted(file.stream, "diagnosis", diagnosis);
        put_quoted(file.stream, "dataset", dp_dump_datasets[id].name);
        put_quoted(file.stream, "stage", dp_dump_datasets[id].stage);
        const bool keys = id == DP_DUMP_RAW || id == DP_DUMP_P_PAYLOAD;
        const bool blocks = id == DP_DUMP_P_SCALE || id == DP_DUMP_CODE_SUM;
        put_quoted(file.stream, "across",
                   keys     ? "key"
                   : blocks ? "block of 32 keys"
                            : "column (feature)");
        (void)fprintf(file.stream,
                      "elements = %" PRId64 "\nmismatches = %" PRId64 "\nrows = %" PRId64
                      "\ncolumns = %" PRId64 "\nlow = %d\nhigh = %d\ntile = %d\n",
                      s->elements, s->mismatches, s->rows, s->columns, low, high,
                      keys     ? DP_TILE
                      : blocks ? DP_QUARTERS
                               : 0);
        good = dp_plot_close(&file, true, error);
    }
    free(source);
    free(diagnosis);
    return good;
}

/* The first wrong dataset of the report. */
static bool find_dataset(const dp_h5 *file, dp_dump_id *id, dp_error *error)
{
    char *name = NULL;
    if (!dp_h5_text(file, "/", "first_wrong", &name, error)) {
        return false;
    }
    int found = -1;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        found = strcmp(dp_dump_datasets[d].name, name) == 0 ? d : found;
    }
    free(name);
    *id = found < 0 ? DP_DUMP_O : (dp_dump_id)found;
    return found >= 0 ||
           dp_fail(error, "%s: nothing differs in this report: there is nothing to draw",
                   file->path);
}

bool dp_plot_diff(const dp_plot_request *request, dp_error *error)
{
    dp_h5 file;
    dp_dump_id id = DP_DUMP_O;
    shown s = {0};
    if (request->count != 1) {
        return dp_fail(error, "plot diff: %zu reports: give one, written by directp diff -o",
                       request->count);
    }
    if (!dp_h5_open(&file, request->files[0], error)) {
        return false;
    }
    const bool good = dp_h5_check_root(&file, "diff", NULL, error) &&
                      find_dataset(&file, &id, error) && load(&file, id, &s, error) &&
                      write_map(request, &s, error) && write_histogram(request, &s, error) &&
                      write_settings(request, &file, id, &s, error) &&
                      dp_plot_install(request, "diff.gp", error) &&
                      (!request->draw || dp_plot_draw(request, "diff.gp", error));
    dp_h5_close(&file);
    free(s.map);
    free(s.histogram);
    if (good && request->draw) {
        (void)printf("%s/diff_map.png\n%s/diff_histogram.png\n", request->dir, request->dir);
    }
    return good;
}
