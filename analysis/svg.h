/* SPDX-License-Identifier: MIT
 *
 * Charts as SVG text inside an HTML page: legible at 360 pixels (a chart is 400 units wide with
 * letters of 11), told apart by shape as well as by colour (Okabe and Ito's palette), dark on
 * white.
 */
#ifndef DP_ANALYSIS_SVG_H
#define DP_ANALYSIS_SVG_H

#include <stdio.h>

#include "formats/base.h"

enum { DP_SVG_WIDTH = 400, DP_SVG_SERIES = 8 };

/* Text with the characters of markup replaced; control characters become blanks. */
void dp_svg_text(FILE *out, const char *text);
/* Colour of series 0..7. */
const char *dp_svg_color(size_t series);

/* An axis from low to high, linear or logarithmic (low > 0). */
typedef struct {
    double low, high;
    bool log;
    const char *label; /* with its unit */
} dp_svg_axis;

typedef struct {
    const char *name;
    const double *values; /* dots: [rows]; lines: [count] */
    const bool *marked;   /* dots: rows drawn with a cross over the mark, may be NULL */
} dp_svg_series;

/* Rows of marks on one axis, a row a line. What lies beyond the axis stands at its edge with an
 * arrow; NaN is left out. `mark` names the meaning of a cross, NULL when there are none. */
typedef struct {
    const char *title; /* for screen readers */
    dp_svg_axis x;
    const char *const *rows;
    size_t row_count;
    const dp_svg_series *series;
    size_t series_count;
    const char *mark;
} dp_svg_dots;
void dp_svg_dots_draw(FILE *out, const dp_svg_dots *chart);

/* Curves over x[count]. NaN breaks a curve. */
typedef struct {
    const char *title;
    dp_svg_axis x, y;
    const double *at;
    size_t count;
    const dp_svg_series *series;
    size_t series_count;
    bool steps; /* a histogram: horizontal pieces */
} dp_svg_lines;
void dp_svg_lines_draw(FILE *out, const dp_svg_lines *chart);

/* Points with names, which stand at the right in the order of y, joined to their points by a line.
 */
typedef struct {
    const char *title;
    dp_svg_axis x, y;
    const char *const *names;
    const double *px, *py;
    const size_t *group; /* series whose mark a point has; names in groups[] */
    size_t count;
    const char *const *groups;
    size_t group_count;
} dp_svg_plane;
void dp_svg_plane_draw(FILE *out, const dp_svg_plane *chart);

/* Bars from low to high, `bars` a row, over a band of the axis that is allowed. */
typedef struct {
    const char *title;
    dp_svg_axis x;
    double band_low, band_high;
    const char *band; /* what the band is */
    const char *const *rows;
    size_t row_count;
    const double *low, *high; /* [row][bar] */
    const char *const *bars;  /* names */
    size_t bar_count;
} dp_svg_ranges;
void dp_svg_ranges_draw(FILE *out, const dp_svg_ranges *chart);

/* Cells of a matrix, shaded from 0 to `most`; numbers as percent where `print` is set. */
typedef struct {
    const char *title;
    const double *cells; /* [rows][columns] */
    size_t rows, columns;
    const char *const *row_names, *const *column_names; /* NULL: the axes count */
    const char *x, *y;
    double most;
    bool print;
} dp_svg_cells;
void dp_svg_cells_draw(FILE *out, const dp_svg_cells *chart);

/* Rows cut into pieces at `edges`, piece k named names[k]. */
typedef struct {
    const char *title;
    dp_svg_axis x;
    const char *const *rows;
    size_t row_count;
    const double *edges; /* [rows][pieces - 1], ascending */
    const char *const *names;
    size_t pieces;
} dp_svg_strips;
void dp_svg_strips_draw(FILE *out, const dp_svg_strips *chart);

#endif
