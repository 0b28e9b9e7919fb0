/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/plot.h"
#include "analysis/range_study.h"
#include "analysis/verb.h"

enum { PANELS = 3 };

/* What a logarithmic axis left out of a panel. */
typedef struct {
    size_t floored, rugged;
} dropped;

static double panel_value(const dp_range_result *result, int panel)
{
    const double values[PANELS] = {result->zero_scale, result->lost_mass, result->pv_rel_l2};
    return values[panel];
}

/* Cases that differ in length only are drawn as curves over the length. */
static bool by_length(const dp_range_study *study)
{
    for (size_t i = 0; i < study->case_count; i++) {
        if (study->cases[i].sms == 0 || study->cases[i].head >= 0) {
            return false;
        }
    }
    return study->case_count > 1;
}

/* The floor of a panel: the power of ten below its smallest positive value, at most 0.1. */
static double floor_of(const dp_range_study *study, int panel)
{
    double least = 1.0;
    for (size_t i = 0; i < study->case_count * study->format_count; i++) {
        const double value = panel_value(&study->results[i], panel);
        if (isfinite(value) && value > 0.0 && value < least) {
            least = value;
        }
    }
    const double below = pow(10.0, floor(log10(least)) - 1.0);
    return below > 1e-9 ? below : 1e-9;
}

/* One block a format: x, then value and kind (dp_point) of each panel, then the label. A format
 * without a block scale has no point in the first panel (kind 3). */
static bool write_points(const dp_plot_request *request, const dp_range_study *study,
                         const double floors[PANELS], dropped drops[PANELS], dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "range_points.dat", error)) {
        return false;
    }
    (void)fputs("# x zero_scale kind lost_mass kind pv_rel_l2 kind label\n"
                "# kind: 0 as it is, 1 zero or below the floor, 2 not finite, 3 not defined\n",
                file.stream);
    for (size_t f = 0; f < study->format_count; f++) {
        (void)fprintf(file.stream, "%s\"%s\"\n", f == 0 ? "" : "\n\n", study->formats[f].name);
        for (size_t i = 0; i < study->case_count; i++) {
            const dp_range_result *result = &study->results[i * study->format_count + f];
            const dp_range_case *from = &study->cases[i];
            (void)fprintf(file.stream, "%zu", by_length(study) ? from->seq : i + 1);
            for (int panel = 0; panel < PANELS; panel++) {
                double drawn;
                const dp_point kind =
                    dp_plot_point(panel_value(result, panel), floors[panel], &drawn);
                const bool absent = panel == 0 && !dp_range_has_scale(&study->formats[f]);
                drops[panel].floored += !absent && kind == DP_POINT_FLOOR;
                drops[panel].rugged += !absent && kind == DP_POINT_RUG;
                (void)fprintf(file.stream, " %.9g %d", drawn, absent ? 3 : (int)kind);
            }
            if (from->head >= 0) {
                (void)fprintf(file.stream, " \"%s h%d\"\n", from->source, (int)from->head);
            } else {
                (void)fprintf(file.stream, " \"%s\"\n", from->source);
            }
        }
    }
    return dp_plot_close(&file, true, error);
}

/* Blocks of a case: those with a scale and those whose scale is 0. */
static double blocks_of(const dp_range_result *result)
{
    double nonzero = 0.0;
    for (int e = 0; e < DP_RANGE_SCALE_EXPONENTS; e++) {
        nonzero += (double)result->counts.exponents[e];
    }
    return result->zero_scale < 1.0 ? nonzero / (1.0 - result->zero_scale) : 0.0;
}

/* The smallest power of two among the scales of a format, and log2 of the least it can hold. */
static int least_exponent(const dp_range_study *study, size_t format, int *most)
{
    int least = 127;
    *most = -127;
    for (size_t i = 0; i < study->case_count; i++) {
        const dp_range_counts *counts = &study->results[i * study->format_count + format].counts;
        for (int e = 0; e < DP_RANGE_SCALE_EXPONENTS; e++) {
            if (counts->exponents[e] > 0) {
                least = e - 127 < least ? e - 127 : least;
                *most = e - 127 > *most ? e - 127 : *most;
            }
        }
    }
    return least;
}

/* Exponent of the smallest scale that the format can store. */
static int format_least(const dp_range_format *format)
{
    switch (format->kind) {
    case DP_RANGE_NVFP4:
        return (int)floor(log2(0x1p-9 / format->gain));
    case DP_RANGE_UE5M3:
        return (int)floor(log2(0x1p-17 / format->gain));
    default:
        return -127;
    }
}

/* The exponent that also collects everything below it, so that a few tiny scales do not stretch the
 * axis over all of E8M0. */
static int tail_cut(int least, int most)
{
    return least < most - 40 ? most - 40 : least;
}

/* One block a case and format with a scale: exponent, fraction of the blocks of that case. */
static bool write_scales(const dp_plot_request *request, const dp_range_study *study,
                         dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "range_scales.dat", error)) {
        return false;
    }
    (void)fputs("# log2(scale), rounded down; fraction of blocks\n", file.stream);
    for (size_t f = 0; f < study->format_count; f++) {
        for (size_t i = 0; i < study->case_count && dp_range_has_scale(&study->formats[f]); i++) {
            const dp_range_result *result = &study->results[i * study->format_count + f];
            const double blocks = blocks_of(result);
            int most;
            const int least = least_exponent(study, f, &most);
            const int cut = tail_cut(least, most);
            double tail = 0.0;
            (void)fprintf(file.stream, "# %s, %s, S = %zu\n", study->formats[f].name,
                          study->cases[i].source, study->cases[i].seq);
            for (int e = least; e <= most; e++) {
                tail += (double)result->counts.exponents[e + 127];
                if (e >= cut) {
                    (void)fprintf(file.stream, "%d %.9g\n", e, blocks > 0.0 ? tail / blocks : 0.0);
                    tail = 0.0;
                }
            }
            (void)fputs("\n\n", file.stream);
        }
    }
    return dp_plot_close(&file, true, error);
}

static void write_names(FILE *stream, const dp_range_study *study)
{
    (void)fputs("formats = \"", stream);
    for (size_t f = 0; f < study->format_count; f++) {
        (void)fprintf(stream, "%s%s", f == 0 ? "" : " ", study->formats[f].name);
    }
    (void)fputs("\"\nscaled = \"", stream);
    for (size_t f = 0; f < study->format_count; f++) {
        if (dp_range_has_scale(&study->formats[f])) {
            (void)fprintf(stream, "%s ", study->formats[f].name);
        }
    }
    (void)fputs("\"\n", stream);
}

/* For every format with a scale: the range of its axis and, for every case, the zero fraction. */
static void write_axes(FILE *stream, const dp_range_study *study)
{
    size_t n = 0;
    for (size_t f = 0; f < study->format_count; f++) {
        if (!dp_range_has_scale(&study->formats[f])) {
            continue;
        }
        int most;
        int least = least_exponent(study, f, &most);
        const int lowest = format_least(&study->formats[f]);
        if (least > most) { /* every block lost its scale */
            least = lowest;
            most = lowest + 1;
        }
        n++;
        (void)fprintf(stream, "tail_%zu = %d\n", n, tail_cut(least, most) > least ? 1 : 0);
        least = tail_cut(least, most);
        (void)fprintf(stream, "least_%zu = %d\nmost_%zu = %d\nlowest_%zu = %d\n", n, least, n, most,
                      n, lowest);
        for (size_t i = 0; i < study->case_count; i++) {
            (void)fprintf(stream, "zero_%zu_%zu = %.9g\n", n, i + 1,
                          study->results[i * study->format_count + f].zero_scale);
        }
    }
}

/* What the script needs to know beside the data. */
static bool write_settings(const dp_plot_request *request, const dp_range_study *study,
                           const double floors[PANELS], const dropped drops[PANELS],
                           dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "range_settings.gp", error)) {
        return false;
    }
    const dp_range_case *first = &study->cases[0];
    (void)fprintf(file.stream,
                  "# Written by directp plot range; range.gp loads it.\n"
                  "by_length = %d\ncases = %zu\nblock = %zu\nheads = %zu\nrows = %zu\ndim = %zu\n",
                  by_length(study) ? 1 : 0, study->case_count, study->block, first->heads,
                  first->rows, first->dim);
    for (int panel = 0; panel < PANELS; panel++) {
        (void)fprintf(file.stream, "floor_%d = %.9g\nfloored_%d = %zu\nrugged_%d = %zu\n",
                      panel + 1, floors[panel], panel + 1, drops[panel].floored, panel + 1,
                      drops[panel].rugged);
    }
    (void)fputs("lengths = \"", file.stream);
    for (size_t i = 0; i < study->case_count; i++) {
        (void)fprintf(file.stream, "%s%zu", i == 0 ? "" : " ", study->cases[i].seq);
    }
    (void)fputs("\"\n", file.stream);
    for (size_t i = 0; i < study->case_count; i++) {
        const dp_range_case *from = &study->cases[i];
        if (by_length(study)) {
            (void)fprintf(file.stream, "label_%zu = \"S = %zu\"\n", i + 1, from->seq);
        } else if (from->head >= 0) {
            (void)fprintf(file.stream, "label_%zu = \"%s head %d\"\n", i + 1, from->source,
                          (int)from->head);
        } else {
            (void)fprintf(file.stream, "label_%zu = \"%s\"\n", i + 1, from->source);
        }
    }
    write_names(file.stream, study);
    write_axes(file.stream, study);
    return dp_plot_close(&file, true, error);
}

static bool plot_study(const dp_plot_request *request, const dp_range_study *study, dp_error *error)
{
    double floors[PANELS];
    dropped drops[PANELS] = {{0}};
    for (int panel = 0; panel < PANELS; panel++) {
        floors[panel] = floor_of(study, panel);
    }
    return write_points(request, study, floors, drops, error) &&
           write_scales(request, study, error) &&
           write_settings(request, study, floors, drops, error) &&
           dp_plot_install(request, "range.gp", error) && dp_plot_draw(request, "range.gp", error);
}

/* Remove what gnuplot would read as markup or as the end of a string. */
static void clean_labels(dp_range_study *study)
{
    for (size_t i = 0; i < study->case_count; i++) {
        char *c = study->cases[i].source;
        const size_t length = strlen(c);
        if (length > 3 && strcmp(c + length - 3, ".h5") == 0) {
            c[length - 3] = '\0';
        }
        for (; *c != '\0'; c++) {
            if (*c == '"' || *c == '\\' || *c == '`' || *c == '%' || (unsigned char)*c < ' ') {
                *c = '?';
            }
        }
    }
}

bool dp_plot_range(const dp_plot_request *request, dp_error *error)
{
    dp_range_study study = {0};
    bool good = true;
    for (size_t i = 0; good && i < request->count; i++) {
        good = dp_range_study_load(&study, request->files[i], error);
    }
    if (good) {
        clean_labels(&study);
        good = plot_study(request, &study, error);
    }
    if (good && request->draw) {
        (void)printf("%s/range_loss.png\n%s/range_scales.png\n", request->dir, request->dir);
    }
    dp_range_study_free(&study);
    return good;
}
