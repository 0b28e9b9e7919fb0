/* SPDX-License-Identifier: MIT
 *
 * `directp plot KIND FILES... -o DIR`: each kind writes plain data files and a gnuplot script into
 * DIR and runs the script there. A script that is already in DIR is the user's and is kept.
 */
#ifndef DP_ANALYSIS_PLOT_H
#define DP_ANALYSIS_PLOT_H

#include <stdio.h>

#include "analysis/output.h"

typedef struct {
    const char *dir;          /* exists */
    const char *const *files; /* what to plot */
    size_t count;
    bool reset; /* replace scripts that are already in dir */
    bool draw;  /* run gnuplot */
} dp_plot_request;

/* Draws and reports on standard output which files it made. */
typedef bool dp_plot_run(const dp_plot_request *request, dp_error *error);

typedef struct {
    const char *name;
    const char *summary;
    dp_plot_run *run;
} dp_plot;

/* Ends with a NULL name. */
extern const dp_plot dp_plots[];

dp_plot_run dp_plot_range;
dp_plot_run dp_plot_diff;
dp_plot_run dp_plot_codes;
dp_plot_run dp_plot_fit;
dp_plot_run dp_plot_matrix;
dp_plot_run dp_plot_history;

/* ---- What every kind uses ---- */

/* A gnuplot script built into the command (analysis/gnuplot/NAME); NULL when there is none. */
const unsigned char *dp_plot_script(const char *name, size_t *size);

/* Put the script into request->dir unless it is there already. */
bool dp_plot_install(const dp_plot_request *request, const char *name, dp_error *error);
/* Run the script in request->dir. */
bool dp_plot_draw(const dp_plot_request *request, const char *name, dp_error *error);

/* A data file in request->dir: whole or absent. close commits it when good is true. */
typedef struct {
    dp_output output;
    FILE *stream;
} dp_plot_file;
bool dp_plot_open(dp_plot_file *file, const dp_plot_request *request, const char *name,
                  dp_error *error);
bool dp_plot_close(dp_plot_file *file, bool good, dp_error *error);

/* What a logarithmic axis cannot show. A value is drawn as itself, at the labelled floor when it is
 * zero, negative or below the floor, or as a mark on the axis when it is NaN or infinite. */
typedef enum { DP_POINT_SHOWN = 0, DP_POINT_FLOOR = 1, DP_POINT_RUG = 2 } dp_point;
dp_point dp_plot_point(double value, double floor, double *drawn);

#endif
