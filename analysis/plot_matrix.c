/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/matrix.h"
#include "analysis/plot.h"

enum { MOST = 2 }; /* relative L2 drawn: what is worse stands at the edge */

/* Family of an operator: its colour. */
static int family(const char *name)
{
    static const char *const starts[] = {"direct", "stabilised", "hao",       "sage",
                                         "fa4",    "shiftless",  "fastvideo", "sampled"};
    for (int i = 0; i < 8; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return i + 1;
        }
    }
    if (strncmp(name, "fa3", 3) == 0) {
        return 5;
    }
    return strcmp(name, "duda") == 0 || strncmp(name, "modelopt", 8) == 0 ? 9 : 10;
}

/* The k-th input, in the order of the rows; NULL after the last. */
static const char *input_at(const dp_matrix *m, size_t k)
{
    size_t seen = 0;
    for (size_t i = 0; i < m->count; i++) {
        bool before = false;
        for (size_t j = 0; j < i; j++) {
            before = before || strcmp(m->rows[j].input, m->rows[i].input) == 0;
        }
        if (!before && seen++ == k) {
            return m->rows[i].input;
        }
    }
    return NULL;
}

/* A point of the plane: no sweep, no lost mass, and not what another section measured already. */
static bool in_plane(const dp_matrix *m, size_t i, const char *input)
{
    const dp_matrix_row *row = &m->rows[i];
    if (strcmp(row->input, input) != 0 || !isnan(row->parameter) || !isnan(row->lost_mass)) {
        return false;
    }
    for (size_t j = 0; j < i; j++) {
        if (strcmp(m->rows[j].input, input) == 0 && isnan(m->rows[j].parameter) &&
            strcmp(m->rows[j].name, row->name) == 0) {
            return false;
        }
    }
    return true;
}

/* ---- the labels of a panel ------------------------------------------------------------------ */

enum { POINTS = 128, WIDE = 500, HIGH = 430 }; /* a panel in pixels, nearly */

/* The axes of all panels: their points, with room for numbers around them. */
typedef struct {
    double x_low, x_high, y_low, y_high;
} plane_range;

typedef struct {
    const dp_matrix_row *row;
    double x, y;           /* data */
    double px, py, lx, ly; /* pixels: the point, the middle of its label */
} plane_point;

static double fraction(double v, double low, double high)
{
    return (log10(v) - log10(low)) / (log10(high) - log10(low));
}

static double value_at(double pixels, double size, double low, double high)
{
    return low * pow(high / low, pixels / size);
}

/* Is a label at (x, y) clear of the points, of the labels of the first `n`, and inside? */
static bool is_clear(const plane_point *points, int count, int n, double x, double y)
{
    bool clear = x > 8 && x < WIDE - 8 && y > 8 && y < HIGH - 8;
    for (int i = 0; clear && i < count; i++) {
        clear = fabs(points[i].px - x) > 11 || fabs(points[i].py - y) > 9;
        clear = clear && (i >= n || fabs(points[i].lx - x) > 15 || fabs(points[i].ly - y) > 12);
    }
    return clear;
}

/* Every label beside its point, as near as the others leave room. */
static void place_labels(plane_point *points, int count)
{
    for (int n = 0; n < count; n++) {
        plane_point *p = &points[n];
        p->lx = p->px + 14;
        p->ly = p->py;
        bool found = false;
        for (double radius = 15; !found && radius < 160; radius += 9) {
            for (int turn = 0; !found && turn < 24; turn++) {
                /* first across the diagonal on which the points lie */
                const double angle = -0.7854 + (turn % 2 == 0 ? 0.0 : 3.1416) +
                                     (turn / 2 % 2 == 0 ? 1 : -1) * (turn / 4) * 0.2618;
                const double x = p->px + radius * cos(angle);
                const double y = p->py + radius * sin(angle);
                found = is_clear(points, count, n, x, y);
                p->lx = found ? x : p->lx;
                p->ly = found ? y : p->ly;
            }
        }
    }
}

/* Where a row stands; false when it has no finite figures. */
static bool place_of(const dp_matrix_row *row, double *x, double *y)
{
    if (dp_plot_point(1.0 - row->metrics.cosine, 1e-3, x) == DP_POINT_RUG ||
        dp_plot_point(row->metrics.rel_l2, 0.04, y) == DP_POINT_RUG) {
        return false;
    }
    *y = *y < MOST ? *y : MOST;
    return true;
}

static plane_range range_of(const dp_matrix *m)
{
    plane_range r = {1.0, 1e-3, MOST, 0.04};
    const char *input;
    for (size_t k = 0; (input = input_at(m, k)) != NULL; k++) {
        for (size_t i = 0; i < m->count; i++) {
            double x, y;
            if (in_plane(m, i, input) && place_of(&m->rows[i], &x, &y)) {
                r.x_low = x < r.x_low ? x : r.x_low;
                r.x_high = x > r.x_high ? x : r.x_high;
                r.y_low = y < r.y_low ? y : r.y_low;
                r.y_high = y > r.y_high ? y : r.y_high;
            }
        }
    }
    return (plane_range){r.x_low / 1.5, r.x_high * 1.5, r.y_low / 1.25, r.y_high * 1.3};
}

static int collect(const dp_matrix *m, const char *input, const plane_range *range,
                   plane_point *points)
{
    int count = 0;
    for (size_t i = 0; i < m->count && count < POINTS; i++) {
        plane_point p = {.row = &m->rows[i], .y = 0.0};
        if (!in_plane(m, i, input) || !place_of(p.row, &p.x, &p.y)) {
            continue;
        }
        p.px = WIDE * fraction(p.x, range->x_low, range->x_high);
        p.py = HIGH * fraction(p.y, range->y_low, range->y_high);
        int at = count++;
        for (; at > 0 && points[at - 1].row->metrics.rel_l2 > p.row->metrics.rel_l2; at--) {
            points[at] = points[at - 1];
        }
        points[at] = p;
    }
    place_labels(points, count);
    return count;
}

/* The list beside a panel, best first. */
static bool write_list(const dp_plot_request *request, size_t panel, const plane_point *points,
                       int count, dp_error *error)
{
    char name[64];
    dp_plot_file list;
    (void)snprintf(name, sizeof name, "matrix_list_%zu.gp", panel);
    if (!dp_plot_open(&list, request, name, error)) {
        return false;
    }
    const double step = count > 24 ? 1.02 / count : 0.0425;
    for (int i = 0; i < count; i++) {
        const dp_matrix_row *row = points[i].row;
        (void)fprintf(list.stream,
                      "set label %d \"%d  %s  %.4g%s\" at graph 1.02, graph %.4f font \",8\" "
                      "tc rgb color[%d]\n",
                      i + 1, i + 1, row->name, row->metrics.rel_l2,
                      row->metrics.nonfinite_rows > 0 ? "  (rows not finite)" : "", 1.0 - step * i,
                      family(row->name));
    }
    return dp_plot_close(&list, true, error);
}

/* One block an input: 1 - cosine, relative L2, slope, family, number, name, the same as published,
 * where the number stands. Points without a finite row are left out. */
static bool write_plane(const dp_plot_request *request, const dp_matrix *m, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_plane.dat", error)) {
        return false;
    }
    (void)fputs("# 1-cosine rel_l2 slope family number name published_1-cosine "
                "published_rel_l2 label_x label_y\n",
                file.stream);
    const plane_range range = range_of(m);
    const char *input;
    for (size_t k = 0; (input = input_at(m, k)) != NULL; k++) {
        plane_point points[POINTS];
        const int count = collect(m, input, &range, points);
        (void)fprintf(file.stream, "%s\"%s\"\n", k > 0 ? "\n\n" : "", input);
        for (int i = 0; i < count; i++) {
            const plane_point *p = &points[i];
            (void)fprintf(file.stream, "%.9g %.9g %.6g %d %d \"%s\" %.9g %.9g %.6g %.6g\n", p->x,
                          p->y, p->row->metrics.slope, family(p->row->name), i + 1, p->row->name,
                          1.0 - p->row->published_cosine, p->row->published_rel_l2,
                          value_at(p->lx, WIDE, range.x_low, range.x_high),
                          value_at(p->ly, HIGH, range.y_low, range.y_high));
        }
        if (!write_list(request, k + 1, points, count, error)) {
            return dp_plot_close(&file, false, error);
        }
    }
    return dp_plot_close(&file, true, error);
}

static bool is_sweep(const dp_matrix_row *row, const char *name)
{
    return !isnan(row->parameter) && strcmp(row->name, name) == 0;
}

static bool write_sweep(const dp_plot_request *request, const dp_matrix *m, dp_error *error)
{
    static const char *const names[3] = {"g-nv-nv", "g-mx-nv", "fast"};
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_sweep.dat", error)) {
        return false;
    }
    (void)fputs("# parameter rel_l2 published_rel_l2\n", file.stream);
    for (int n = 0; n < 3; n++) {
        (void)fprintf(file.stream, "%s\"%s\"\n", n > 0 ? "\n\n" : "", names[n]);
        for (size_t i = 0; i < m->count; i++) {
            const dp_matrix_row *row = &m->rows[i];
            if (is_sweep(row, names[n])) {
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
    const char *input;
    for (size_t k = 0; (input = input_at(m, k)) != NULL; k++) {
        size_t here = 0;
        for (size_t i = 0; i < m->count; i++) {
            const dp_matrix_row *row = &m->rows[i];
            if (strcmp(row->input, input) == 0 && !isnan(row->lost_mass)) {
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
    bool found = false;
    for (size_t i = 0; i < m->count; i++) {
        found = found || in_plane(m, i, input);
    }
    return found;
}

static bool write_settings(const dp_plot_request *request, const dp_matrix *m, size_t mass,
                           dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "matrix_settings.gp", error)) {
        return false;
    }
    const plane_range range = range_of(m);
    (void)fprintf(file.stream, "x_low = %.6g\nx_high = %.6g\ny_low = %.6g\ny_high = %.6g\n",
                  range.x_low, range.x_high, range.y_low, range.y_high);
    int sweeps[2] = {0, 0};
    for (size_t i = 0; i < m->count; i++) {
        sweeps[0] += is_sweep(&m->rows[i], "g-nv-nv");
        sweeps[1] += is_sweep(&m->rows[i], "fast");
    }
    (void)fprintf(file.stream,
                  "# Written by directp plot matrix; matrix.gp loads it.\n"
                  "title_text = \"S = %zu, %zu heads, D = %zu, seed %llu\"\n"
                  "sweep_g = %d\nsweep_density = %d\nmass = %zu\ninputs = \"",
                  m->seq, m->heads, m->dim, (unsigned long long)m->seed, sweeps[0], sweeps[1],
                  mass);
    const char *input;
    for (size_t k = 0; (input = input_at(m, k)) != NULL; k++) {
        char word[DP_MATRIX_NAME];
        (void)snprintf(word, sizeof word, "%s", has_input(m, input) ? input : "-");
        for (char *c = word; *c != '\0'; c++) {
            *c = *c == ' ' || *c == '"' ? '_' : *c;
        }
        (void)fprintf(file.stream, "%s%s", k > 0 ? " " : "", word);
    }
    (void)fputs("\"\n", file.stream);
    return dp_plot_close(&file, true, error);
}

/* Name the pictures that matrix.gp made: it leaves out those without data. */
static void list_pictures(const char *folder, const dp_matrix *m, size_t mass)
{
    bool plane = false;
    bool sweep = false;
    const char *input;
    for (size_t k = 0; (input = input_at(m, k)) != NULL; k++) {
        plane = plane || has_input(m, input);
    }
    for (size_t i = 0; i < m->count; i++) {
        sweep = sweep || is_sweep(&m->rows[i], "g-nv-nv") || is_sweep(&m->rows[i], "fast");
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
