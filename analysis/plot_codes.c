/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/codes.h"
#include "analysis/plot.h"
#include "analysis/verb.h"

/* One block a file: ideal code, produced code, share of the ideal code's lanes in %, lanes. */
static bool write_confusion(const dp_plot_request *request, const dp_codes_file *files,
                            dp_error *error)
{
    dp_plot_file out;
    if (!dp_plot_open(&out, request, "codes_confusion.dat", error)) {
        return false;
    }
    (void)fputs("# ideal code, code made, percent of the ideal code's lanes, lanes\n", out.stream);
    for (size_t f = 0; f < request->count; f++) {
        for (int i = 0; i < DP_CODE_COUNT; i++) {
            int64_t lanes = 0;
            for (int k = 0; k < DP_CODE_COUNT; k++) {
                lanes += files[f].match.confusion[i][k];
            }
            for (int k = 0; k < DP_CODE_COUNT; k++) {
                const int64_t n = files[f].match.confusion[i][k];
                (void)fprintf(out.stream, "%d %d %.6g %lld\n", i, k,
                              lanes > 0 ? 100.0 * (double)n / (double)lanes : 0.0, (long long)n);
            }
        }
        (void)fputs("\n\n", out.stream);
    }
    return dp_plot_close(&out, true, error);
}

static bool write_curves(const dp_plot_request *request, const dp_codes_file *files,
                         dp_error *error)
{
    dp_plot_file out;
    if (!dp_plot_open(&out, request, "codes_distance.dat", error)) {
        return false;
    }
    (void)fputs("# middle of the bin (octaves), lanes, equal codes\n", out.stream);
    for (size_t f = 0; f < request->count; f++) {
        for (int i = 0; i < DP_DISTANCE_BINS; i++) {
            (void)fprintf(out.stream, "%.6g %lld %lld\n", (i + 0.5) * DP_DISTANCE_STEP,
                          (long long)files[f].match.distance_lanes[i],
                          (long long)files[f].match.distance_match[i]);
        }
        (void)fputs("\n\n", out.stream);
    }
    if (!dp_plot_close(&out, true, error) ||
        !dp_plot_open(&out, request, "codes_byte.dat", error)) {
        return false;
    }
    (void)fputs("# raw byte u, lanes, equal codes\n", out.stream);
    for (size_t f = 0; f < request->count; f++) {
        for (int i = 0; i < DP_BYTES; i++) {
            (void)fprintf(out.stream, "%d %lld %lld\n", i, (long long)files[f].match.byte_lanes[i],
                          (long long)files[f].match.byte_match[i]);
        }
        (void)fputs("\n\n", out.stream);
    }
    return dp_plot_close(&out, true, error);
}

/* Text for a gnuplot string in double quotes. */
static void write_clean(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        const bool bad = *text == '"' || *text == '\\' || *text == '`' || *text == '%' ||
                         (unsigned char)*text < ' ';
        (void)fputc(bad ? '?' : *text, stream);
    }
}

static bool write_settings(const dp_plot_request *request, const dp_codes_file *files,
                           dp_error *error)
{
    dp_plot_file out;
    if (!dp_plot_open(&out, request, "codes_settings.gp", error)) {
        return false;
    }
    int least = DP_BYTES - 1;
    int most = 0;
    (void)fprintf(out.stream, "files = %zu\n", request->count);
    for (size_t f = 0; f < request->count; f++) {
        const dp_code_match *m = &files[f].match;
        const char *slash = strrchr(files[f].source, '/');
        for (int i = 0; i < DP_BYTES; i++) {
            least = m->byte_lanes[i] > 0 && i < least ? i : least;
            most = m->byte_lanes[i] > 0 && i > most ? i : most;
        }
        (void)fprintf(out.stream, "label_%zu = \"", f + 1);
        write_clean(out.stream, files[f].policy);
        (void)fputs(" ", out.stream);
        write_clean(out.stream, files[f].epoch);
        (void)fputs(", ", out.stream);
        write_clean(out.stream, slash != NULL ? slash + 1 : files[f].source);
        (void)fprintf(out.stream,
                      "\"\nnote_%zu = \"%.1f %s of %lld codes equal; mass kept, mean %.3f\"\n",
                      f + 1, 100.0 * (double)m->match / (double)m->lanes, "percent",
                      (long long)m->lanes, m->mass_mean);
    }
    (void)fprintf(out.stream, "least_byte = %d\nmost_byte = %d\n", least, most);
    return dp_plot_close(&out, true, error);
}

bool dp_plot_codes(const dp_plot_request *request, dp_error *error)
{
    dp_codes_file *files = calloc(request->count, sizeof *files);
    bool good = files != NULL || dp_fail(error, "plot: not enough memory");
    for (size_t i = 0; good && i < request->count; i++) {
        good = dp_codes_load(request->files[i], &files[i], error);
    }
    good = good && write_confusion(request, files, error) && write_curves(request, files, error) &&
           write_settings(request, files, error) && dp_plot_install(request, "codes.gp", error) &&
           dp_plot_draw(request, "codes.gp", error);
    if (good && request->draw) {
        (void)printf("%s/codes_confusion.png\n%s/codes_match.png\n", request->dir, request->dir);
    }
    free(files);
    return good;
}
