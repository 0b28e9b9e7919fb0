/* SPDX-License-Identifier: MIT
 *
 * The rates of a history over its runs.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/history.h"
#include "analysis/plot.h"

enum { SERIES_MOST = 12, TICKS_MOST = 24, LABEL_MOST = 22 };

/* What is drawn: a panel a column, if any run knows it. */
static const dp_run_number PANELS[] = {DP_RUN_MISMATCH_RATE, DP_RUN_CODE_MATCH, DP_RUN_ZERO_SCALE,
                                       DP_RUN_LOST_MASS,     DP_RUN_REL_L2,     DP_RUN_COSINE};
enum { PANEL_COUNT = sizeof PANELS / sizeof PANELS[0] };

typedef struct {
    dp_history history;
    size_t *run;    /* of a row: neighbours of one label (or time) are one run */
    size_t *series; /* of a row, in order of first appearance           */
    size_t runs, all_series;
    size_t *first_of_run, *first_of_series; /* a row each */
} drawn;

static bool same(const dp_run_row *a, const dp_run_row *b, dp_run_text column)
{
    return strcmp(a->text[column], b->text[column]) == 0;
}

/* Rows follow their run in the file, so that only the last run has to be looked at. */
static void number_rows(drawn *d)
{
    const dp_run_row *rows = d->history.rows;
    for (size_t i = 0; i < d->history.count; i++) {
        const bool next =
            i == 0 || !same(&rows[i], &rows[i - 1], DP_RUN_LABEL) ||
            (rows[i].text[DP_RUN_LABEL][0] == '\0' && !same(&rows[i], &rows[i - 1], DP_RUN_TIME));
        bool again = false; /* a series twice makes two runs of one label */
        for (size_t k = i; !next && k-- > 0 && d->run[k] == d->runs - 1;) {
            again = again || (same(&rows[i], &rows[k], DP_RUN_SERIES) &&
                              same(&rows[i], &rows[k], DP_RUN_KIND));
        }
        if (next || again) {
            d->first_of_run[d->runs++] = i;
        }
        d->run[i] = d->runs - 1;
        size_t s = 0;
        while (s < d->all_series && !(same(&rows[i], &rows[d->first_of_series[s]], DP_RUN_SERIES) &&
                                      same(&rows[i], &rows[d->first_of_series[s]], DP_RUN_KIND))) {
            s++;
        }
        if (s == d->all_series) {
            d->first_of_series[d->all_series++] = i;
        }
        d->series[i] = s;
    }
}

static bool load(drawn *d, const char *path, dp_error *error)
{
    memset(d, 0, sizeof *d);
    if (!dp_history_load(&d->history, path, error)) {
        return false;
    }
    const size_t count = d->history.count;
    if (count == 0) {
        return dp_fail(error, "%s: it has no runs: record some", path);
    }
    d->run = calloc(count, sizeof *d->run);
    d->series = calloc(count, sizeof *d->series);
    d->first_of_run = calloc(count, sizeof *d->first_of_run);
    d->first_of_series = calloc(count, sizeof *d->first_of_series);
    if (d->run == NULL || d->series == NULL || d->first_of_run == NULL ||
        d->first_of_series == NULL) {
        return dp_fail(error, "%s: not enough memory", path);
    }
    number_rows(d);
    return true;
}

static void unload(drawn *d)
{
    dp_history_free(&d->history);
    free(d->run);
    free(d->series);
    free(d->first_of_run);
    free(d->first_of_series);
}

/* A value that gnuplot leaves out when it is not known. */
static void put_number(FILE *stream, const dp_run_row *row, dp_run_number column)
{
    if (row->known[column] && isfinite(row->number[column])) {
        (void)fprintf(stream, " %.9g", row->number[column]);
    } else {
        (void)fputs(" NaN", stream);
    }
}

/* One block a series: run, the panels' values, whether the run failed. */
static bool write_points(const dp_plot_request *request, const drawn *d, dp_error *error)
{
    dp_plot_file file;
    if (!dp_plot_open(&file, request, "history.dat", error)) {
        return false;
    }
    (void)fputs("# run", file.stream);
    for (int p = 0; p < PANEL_COUNT; p++) {
        (void)fprintf(file.stream, " %s", dp_run_columns[PANELS[p]].name);
    }
    (void)fputs(" failed; a block a series\n", file.stream);
    for (size_t s = 0; s < d->all_series && s < SERIES_MOST; s++) {
        (void)fprintf(file.stream, "%s# %s\n", s > 0 ? "\n\n" : "",
                      d->history.rows[d->first_of_series[s]].text[DP_RUN_SERIES]);
        for (size_t i = 0; i < d->history.count; i++) {
            const dp_run_row *row = &d->history.rows[i];
            if (d->series[i] != s) {
                continue;
            }
            (void)fprintf(file.stream, "%zu", d->run[i] + 1);
            for (int p = 0; p < PANEL_COUNT; p++) {
                put_number(file.stream, row, PANELS[p]);
            }
            (void)fprintf(file.stream, " %d\n", row->text[DP_RUN_FAILED][0] != '\0');
        }
    }
    return dp_plot_close(&file, true, error);
}

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xC0u) != 0x80u; /* of UTF-8 */
}

/* A text inside double quotes of gnuplot. Of more than `most` characters (0: any number) the middle
 * is left out: labels often differ at their end. */
static void put_quoted(FILE *stream, const char *name, const char *text, size_t most)
{
    size_t all = 0, at = 0;
    for (const char *c = text; *c != '\0'; c++) {
        all += starts_character(*c);
    }
    const size_t head = most > 0 && all > most ? most / 2 : all;
    const size_t tail =
        head < all ? all - (most - head - 1) : all; /* first character shown again */
    (void)fprintf(stream, "%s = \"", name);
    for (; *text != '\0'; text++) {
        at += starts_character(*text);
        if (at == head + 1 && starts_character(*text) && head < all) {
            (void)fputs("…", stream);
        }
        if (at <= head || at > tail) {
            (void)fputc(strchr("\"\\`$", *text) != NULL || (unsigned char)*text < 32 ? '_' : *text,
                        stream);
        }
    }
    (void)fputs("\"\n", stream);
}

/* Tick labels: the user's label, else the date. At most TICKS_MOST, evenly spaced. */
static void put_ticks(FILE *stream, const drawn *d)
{
    const size_t step = (d->runs + TICKS_MOST - 1) / TICKS_MOST;
    size_t ticks = 0;
    for (size_t run = 0; run < d->runs; run += step) {
        const dp_run_row *row = &d->history.rows[d->first_of_run[run]];
        const char *label = row->text[DP_RUN_LABEL];
        char name[48];
        (void)snprintf(name, sizeof name, "tick_at_%zu = %zu\ntick_%zu", ticks + 1, run + 1,
                       ticks + 1);
        if (label[0] != '\0') {
            put_quoted(stream, name, label, LABEL_MOST);
        } else {
            char minute[20]; /* "2026-11-29 21:30" */
            (void)snprintf(minute, sizeof minute, "%.16s", row->text[DP_RUN_TIME]);
            minute[strcspn(minute, "T")] = minute[strcspn(minute, "T")] == 'T' ? ' ' : '\0';
            put_quoted(stream, name, minute, 0);
        }
        ticks++;
    }
    (void)fprintf(stream, "ticks = %zu\n", ticks);
}

/* What a panel shows: is a value known, the least and the most, and the least above 0. */
static void put_panel(FILE *stream, const drawn *d, int panel)
{
    const dp_run_number column = PANELS[panel];
    size_t known = 0, zeros = 0;
    double least = INFINITY, most = -INFINITY, positive = INFINITY;
    for (size_t i = 0; i < d->history.count; i++) {
        const double value = d->history.rows[i].number[column];
        if (!d->history.rows[i].known[column] || !isfinite(value) || d->series[i] >= SERIES_MOST) {
            continue;
        }
        known++;
        zeros += value <= 0.0;
        least = value < least ? value : least;
        most = value > most ? value : most;
        positive = value > 0.0 && value < positive ? value : positive;
    }
    if (known == 0) {
        least = most = 0.0;
    }
    /* Mismatches span decades or are all 0: log axis, with 0 on the line below. */
    const bool log_axis = column == DP_RUN_MISMATCH_RATE && most > 0.0;
    const double floor_at = log_axis ? pow(10.0, floor(log10(positive)) - 1.0) : 0.0;
    (void)fprintf(stream,
                  "known_%d = %zu\nzeros_%d = %zu\nleast_%d = %.9g\nmost_%d = %.9g\nlog_%d = %d\n"
                  "floor_%d = %.9g\n",
                  panel + 1, known, panel + 1, zeros, panel + 1, least, panel + 1, most, panel + 1,
                  log_axis, panel + 1, floor_at);
    char name[24];
    (void)snprintf(name, sizeof name, "column_%d", panel + 1);
    put_quoted(stream, name, dp_run_columns[column].name, 0);
    (void)snprintf(name, sizeof name, "meaning_%d", panel + 1);
    put_quoted(stream, name, dp_run_columns[column].meaning, 0);
}

static bool write_settings(const dp_plot_request *request, const drawn *d, dp_error *error)
{
    dp_plot_file file;
    const size_t shown = d->all_series < SERIES_MOST ? d->all_series : SERIES_MOST;
    if (!dp_plot_open(&file, request, "history_settings.gp", error)) {
        return false;
    }
    size_t failures = 0;
    for (size_t i = 0; i < d->history.count; i++) {
        failures += d->series[i] < shown && d->history.rows[i].text[DP_RUN_FAILED][0] != '\0';
    }
    const char *slash = strrchr(request->files[0], '/');
    (void)fputs("# Written by directp plot history; history.gp loads it.\n", file.stream);
    put_quoted(file.stream, "source", slash != NULL ? slash + 1 : request->files[0], 60);
    (void)fprintf(file.stream,
                  "runs = %zu\nseries = %zu\nall_series = %zu\npanels = %d\nfailures = %zu\n",
                  d->runs, shown, d->all_series, PANEL_COUNT, failures);
    for (size_t s = 0; s < shown; s++) {
        char name[24];
        (void)snprintf(name, sizeof name, "name_%zu", s + 1);
        put_quoted(file.stream, name, d->history.rows[d->first_of_series[s]].text[DP_RUN_SERIES],
                   34);
    }
    put_ticks(file.stream, d);
    for (int p = 0; p < PANEL_COUNT; p++) {
        put_panel(file.stream, d, p);
    }
    return dp_plot_close(&file, true, error);
}

bool dp_plot_history(const dp_plot_request *request, dp_error *error)
{
    drawn d;
    if (request->count != 1) {
        return dp_fail(error, "plot history: %zu files: give one, written by directp record",
                       request->count);
    }
    const bool good = load(&d, request->files[0], error) && write_points(request, &d, error) &&
                      write_settings(request, &d, error) &&
                      dp_plot_install(request, "history.gp", error) &&
                      dp_plot_draw(request, "history.gp", error);
    unload(&d);
    if (good && request->draw) {
        (void)printf("%s/history.png\n", request->dir);
    }
    return good;
}
