/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/fit_study.h"
#include "analysis/plot.h"

/* The landscape, one line a B, a blank line between lines: a b loss match mass. */
static bool write_landscape(const dp_plot_request *request, const dp_fit_study *study,
                            dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "fit_landscape.dat", error)) {
        return false;
    }
    (void)fputs("# A B objective match mass\n", file.stream);
    const size_t n = study->grid;
    for (size_t i = 0; i < n * n; i++) {
        double a, b;
        dp_fit_study_point(study, i, &a, &b);
        (void)fprintf(file.stream, "%.6g %.6g %.9g %.9g %.9g\n%s", a, b, study->loss[i],
                      study->match[i], study->mass[i], i % n == n - 1 ? "\n" : "");
    }
    return dp_plot_close(&file, true, error);
}

/* A block a map: boundaries; another file: staircase and shares. */
static bool write_maps(const dp_plot_request *request, const dp_fit_study *study, dp_error *error)
{
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "fit_boundaries.dat", error)) {
        return false;
    }
    (void)fputs("# map number, x of the boundary above codes 0..6\n", file.stream);
    for (size_t m = 0; m < study->maps; m++) {
        double x[7];
        dp_fit_boundaries(&study->map[m], x);
        for (int k = 0; k < 7; k++) {
            (void)fprintf(file.stream, "%zu %.9g %d\n", m + 1, x[k], k);
        }
        (void)fputs("\n\n", file.stream);
    }
    if (!dp_plot_close(&file, true, error) ||
        !dp_plot_open(&file, request, "fit_curves.dat", error)) {
        return false;
    }
    (void)fputs("# x, then the decoded value of each map, then 1 where its code is that of 2^x\n",
                file.stream);
    for (int i = -500; i <= 320; i++) {
        const double x = i / 100.0;
        (void)fprintf(file.stream, "%.2f", x);
        const int ideal = dp_fit_code(exp2(x));
        for (size_t m = 0; m < study->maps; m++) {
            (void)fprintf(file.stream, " %g", value[dp_fit_code(dp_fit_value(&study->map[m], x))]);
        }
        for (size_t m = 0; m < study->maps; m++) {
            (void)fprintf(file.stream, " %d",
                          dp_fit_code(dp_fit_value(&study->map[m], x)) == ideal);
        }
        (void)fputc('\n', file.stream);
    }
    return dp_plot_close(&file, true, error);
}

static bool write_shares(const dp_plot_request *request, const dp_fit_study *study, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "fit_shares.dat", error)) {
        return false;
    }
    (void)fputs("# ideal code, share of scores, share that each map keeps\n", file.stream);
    for (int k = 0; k < 8; k++) {
        (void)fprintf(file.stream, "%d %.6g", k, study->share[k]);
        for (size_t m = 0; m < study->maps; m++) {
            (void)fprintf(file.stream, " %.6g", study->kept[m][k]);
        }
        (void)fputc('\n', file.stream);
    }
    if (!dp_plot_close(&file, true, error) ||
        !dp_plot_open(&file, request, "fit_density.dat", error)) {
        return false;
    }
    (void)fputs(
        "# x, share of the scores in a bin of 1/8, those of each map that have another code\n",
        file.stream);
    for (int i = 0; i < DP_FIT_BINS; i++) {
        (void)fprintf(file.stream, "%.4f %.6g", -8.0 + (i + 0.5) / 8.0, study->density[i]);
        for (size_t m = 0; m < study->maps; m++) {
            const double equal = study->density[i] > 0.0 ? study->equal[m][i] : 1.0;
            (void)fprintf(file.stream, " %.6g", study->density[i] * (1.0 - equal));
        }
        (void)fputc('\n', file.stream);
    }
    return dp_plot_close(&file, true, error);
}

static void clean(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        *c =
            *c == '"' || *c == '\\' || *c == '`' || *c == '%' || (unsigned char)*c < ' ' ? '?' : *c;
    }
}

static bool write_settings(const dp_plot_request *request, dp_fit_study *study, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "fit_settings.gp", error)) {
        return false;
    }
    clean(study->source);
    clean(study->objective);
    double least = INFINITY;
    for (size_t i = 0; i < study->grid * study->grid; i++) {
        least = study->loss[i] < least ? study->loss[i] : least;
    }
    (void)fprintf(file.stream,
                  "# Written by directp plot fit; fit.gp loads it.\n"
                  "source = \"%s\"\nobjective = \"%s\"\nmaps = %zu\ngrid = %zu\nleast = %.9g\n"
                  "a_low = %.9g\na_high = %.9g\nb_low = %.9g\nb_high = %.9g\n",
                  study->source, study->objective, study->maps, study->grid,
                  study->grid > 0 ? least : 0.0, study->a_low, study->a_high, study->b_low,
                  study->b_high);
    for (size_t m = 0; m < study->maps; m++) {
        clean(study->name[m]);
        (void)fprintf(file.stream,
                      "name_%zu = \"%s\"\ndegree_%zu = %d\na_%zu = %.9g\nb_%zu = %.9g\n", m + 1,
                      study->name[m], m + 1, study->map[m].degree, m + 1,
                      (double)study->map[m].c[1], m + 1, (double)study->map[m].c[0]);
    }
    return dp_plot_close(&file, true, error);
}

bool dp_plot_fit(const dp_plot_request *request, dp_error *error)
{
    if (request->count != 1) {
        return dp_fail(error, "plot fit: %zu files: one fit is drawn at a time", request->count);
    }
    dp_fit_study study;
    if (!dp_fit_study_load(&study, request->files[0], error)) {
        return false;
    }
    const bool good = (study.grid == 0 || write_landscape(request, &study, error)) &&
                      write_maps(request, &study, error) && write_shares(request, &study, error) &&
                      write_settings(request, &study, error) &&
                      dp_plot_install(request, "fit.gp", error) &&
                      dp_plot_draw(request, "fit.gp", error);
    if (good && request->draw) {
        (void)printf("%s%s%s/fit_boundaries.png\n%s/fit_codes.png\n",
                     study.grid > 0 ? request->dir : "",
                     study.grid > 0 ? "/fit_landscape.png\n" : "", request->dir, request->dir);
    }
    dp_fit_study_free(&study);
    return good;
}
