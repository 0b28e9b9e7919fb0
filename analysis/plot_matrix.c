/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/matrix.h"
#include "analysis/plot.h"

enum { MOST = 2 }; /* relative L2 drawn: what is worse stands at the edge */

/* Family of an operator: its colour. */
static int family(const char *name)
{
    static const char *const starts[] = {"direct", "stabilised", "hao",       "sage",
                                         "fa",     "shiftless",  "fastvideo", "sampled"};
    for (int i = 0; i < 8; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return strcmp(name, "fastvideo") == 0 ? 7 : i + 1;
        }
    }
    return strcmp(name, "duda") == 0 || strcmp(name, "modelopt") == 0 ? 9 : 10;
}

/* 1 - cosine, relL2, family, finite, name; one block an input. Points without a finite row are
 * listed beside the plane. */
static bool write_plane(const dp_plot_request *request, const dp_matrix *m, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_plane.dat", error)) {
        return false;
    }
    (void)fputs("# 1-cosine rel_l2 slope family number name published_1-cosine "
                "published_rel_l2\n",
                file.stream);
    for (size_t k = 0; k < dp_matrix_input_count(); k++) {
        char name[64];
        dp_plot_file list;
        int number = 0;
        (void)snprintf(name, sizeof name, "matrix_list_%zu.gp", k + 1);
        if (!dp_plot_open(&list, request, name, error)) {
            return dp_plot_close(&file, false, error);
        }
        (void)fprintf(file.stream, "%s\"%s\"\n", k > 0 ? "\n\n" : "", dp_matrix_input_name(k));
        for (size_t i = 0; i < m->count; i++) {
            const dp_matrix_row *row = &m->rows[i];
            if (strcmp(row->input, dp_matrix_input_name(k)) != 0 || !isnan(row->parameter) ||
                !isnan(row->lost_mass)) {
                continue;
            }
            double x;
            double y = 0.0;
            const bool bad = dp_plot_point(1.0 - row->metrics.cosine, 1e-3, &x) == DP_POINT_RUG ||
                             dp_plot_point(row->metrics.rel_l2, 0.04, &y) == DP_POINT_RUG;
            y = y < MOST ? y : MOST;
            if (!bad) {
                number++;
                (void)fprintf(file.stream, "%.9g %.9g %.6g %d %d \"%s\" %.9g %.9g\n", x, y,
                              row->metrics.slope, family(row->name), number, row->name,
                              1.0 - row->published_cosine, row->published_rel_l2);
                (void)fprintf(list.stream,
                              "set label %d \"%d  %s  %.4g%s\" at graph 1.02, graph %.4f font "
                              "\",8\"\n",
                              number, number, row->name, row->metrics.rel_l2,
                              row->metrics.nonfinite_rows > 0 ? "  (rows not finite)" : "",
                              1.0 - 0.044 * (number - 1));
            }
        }
        if (!dp_plot_close(&list, true, error)) {
            return dp_plot_close(&file, false, error);
        }
    }
    return dp_plot_close(&file, true, error);
}

static bool write_sweep(const dp_plot_request *request, const dp_matrix *m, dp_error *error)
{
    static const char *const names[3] = {"stabilised", "stabilised-mx-nv", "accurate"};
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_sweep.dat", error)) {
        return false;
    }
    (void)fputs("# parameter rel_l2 published_rel_l2\n", file.stream);
    for (int n = 0; n < 3; n++) {
        (void)fprintf(file.stream, "%s\"%s\"\n", n > 0 ? "\n\n" : "", names[n]);
        for (size_t i = 0; i < m->count; i++) {
            const dp_matrix_row *row = &m->rows[i];
            if (!isnan(row->parameter) && strcmp(row->name, names[n]) == 0) {
                (void)fprintf(file.stream, "%g %.9g %.9g\n", row->parameter, row->metrics.rel_l2,
                              row->published_rel_l2);
            }
        }
    }
    return dp_plot_close(&file, true, error);
}

/* Where V is 1: name, 1 - mean output on each input. */
static bool write_mass(const dp_plot_request *request, const dp_matrix *m, size_t *count,
                       dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_mass.dat", error)) {
        return false;
    }
    *count = 0;
    (void)fputs("# name lost_mass; a block an input\n", file.stream);
    for (size_t k = 0; k < dp_matrix_input_count(); k++) {
        size_t here = 0;
        for (size_t i = 0; i < m->count; i++) {
            const dp_matrix_row *row = &m->rows[i];
            if (strcmp(row->input, dp_matrix_input_name(k)) == 0 && !isnan(row->lost_mass)) {
                (void)fprintf(file.stream, "%s\"%s\" %.9g\n", here == 0 && *count > 0 ? "\n\n" : "",
                              row->name, row->lost_mass);
                here++;
            }
        }
        *count += here > 0;
    }
    return dp_plot_close(&file, true, error);
}

static bool has_input(const dp_matrix *m, const char *input)
{
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->rows[i].input, input) == 0 && isnan(m->rows[i].parameter) &&
            isnan(m->rows[i].lost_mass)) {
            return true;
        }
    }
    return false;
}

static bool write_settings(const dp_plot_request *request, const dp_matrix *m, size_t mass,
                           dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_settings.gp", error)) {
        return false;
    }
    int sweeps[2] = {0, 0};
    for (size_t i = 0; i < m->count; i++) {
        sweeps[0] += strcmp(m->rows[i].section, "g") == 0;
        sweeps[1] += strcmp(m->rows[i].section, "density") == 0;
    }
    (void)fprintf(file.stream,
                  "# Written by directp plot matrix; matrix.gp loads it.\n"
                  "title_text = \"S = %zu, %zu heads, D = %zu, seed %llu\"\n"
                  "sweep_g = %d\nsweep_density = %d\nmass = %zu\ninputs = \"",
                  m->seq, m->heads, m->dim, (unsigned long long)m->seed, sweeps[0], sweeps[1],
                  mass);
    for (size_t k = 0; k < dp_matrix_input_count(); k++) {
        (void)fprintf(file.stream, "%s%s", k > 0 ? " " : "",
                      has_input(m, dp_matrix_input_name(k)) ? dp_matrix_input_name(k) : "-");
    }
    (void)fputs("\"\n", file.stream);
    return dp_plot_close(&file, true, error);
}

/* Name the pictures that matrix.gp made: it leaves out those without data. */
static void list_pictures(const char *folder, const dp_matrix *m, size_t mass)
{
    bool plane = false;
    bool sweep = false;
    for (size_t k = 0; k < dp_matrix_input_count(); k++) {
        plane = plane || has_input(m, dp_matrix_input_name(k));
    }
    for (size_t i = 0; i < m->count; i++) {
        sweep = sweep || strcmp(m->rows[i].section, "g") == 0 ||
                strcmp(m->rows[i].section, "density") == 0;
    }
    const bool made[] = {plane, sweep, mass > 0};
    const char *const names[] = {"plane", "sweep", "mass"};
    for (int i = 0; i < 3; i++) {
        if (made[i]) {
            (void)printf("%s/matrix_%s.png\n", folder, names[i]);
        }
    }
}

bool dp_plot_matrix(const dp_plot_request *request, dp_error *error)
{
    if (request->count != 1) {
        return dp_fail(error, "plot matrix: %zu files: one matrix is drawn at a time",
                       request->count);
    }
    dp_matrix matrix;
    if (!dp_matrix_load(&matrix, request->files[0], error)) {
        return false;
    }
    size_t mass = 0;
    const bool good =
        write_plane(request, &matrix, error) && write_sweep(request, &matrix, error) &&
        write_mass(request, &matrix, &mass, error) &&
        write_settings(request, &matrix, mass, error) &&
        dp_plot_install(request, "matrix.gp", error) && dp_plot_draw(request, "matrix.gp", error);
    if (good && request->draw) {
        list_pictures(request->dir, &matrix, mass);
    }
    dp_matrix_free(&matrix);
    return good;
}
