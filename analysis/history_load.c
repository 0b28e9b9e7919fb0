/* SPDX-License-Identifier: MIT
 *
 * Reading a history: any columns of the right length, of any number type, fixed or variable texts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/h5_internal.h"
#include "analysis/history.h"

enum { MOST_ROWS = 10000000 };

/* One dataset of texts, open for reading. */
typedef struct {
    hid_t id, type, space;
} texts;

static void close_texts(texts *t)
{
    if (t->space >= 0) {
        (void)H5Sclose(t->space);
    }
    if (t->type >= 0) {
        (void)H5Tclose(t->type);
    }
    if (t->id >= 0) {
        (void)H5Dclose(t->id);
    }
}

/* Open a column of texts and give its length. */
static bool open_texts(const dp_h5 *file, const char *path, texts *t, size_t *count,
                       dp_error *error)
{
    *t = (texts){.id = -1, .type = -1, .space = -1};
    if (!dp_h5_check_path(file, path, error)) {
        return false;
    }
    t->id = H5Dopen2(file->id, path, H5P_DEFAULT);
    t->type = t->id >= 0 ? H5Dget_type(t->id) : -1;
    t->space = t->id >= 0 ? H5Dget_space(t->id) : -1;
    hsize_t extent = 0;
    if (t->space < 0 || t->type < 0 || H5Tget_class(t->type) != H5T_STRING ||
        H5Sget_simple_extent_ndims(t->space) != 1 ||
        H5Sget_simple_extent_dims(t->space, &extent, NULL) < 0 || extent > MOST_ROWS) {
        return dp_fail(error, "%s:%s: it is no column of texts: write one string a run", file->path,
                       path);
    }
    *count = (size_t)extent;
    return true;
}

/* Strings of HDF5's own, given back after the copy. */
static bool read_variable(const texts *t, dp_run_row *rows, size_t count, dp_run_text column)
{
    char **theirs = calloc(count + 1, sizeof *theirs);
    const bool good =
        theirs != NULL && H5Dread(t->id, t->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, theirs) >= 0;
    for (size_t i = 0; good && i < count; i++) {
        dp_run_set_text(&rows[i], column, theirs[i] != NULL ? theirs[i] : "");
    }
    if (good) {
        (void)H5Dvlen_reclaim(t->type, t->space, H5P_DEFAULT, theirs);
    }
    free(theirs);
    return good;
}

static bool read_fixed(const texts *t, dp_run_row *rows, size_t count, dp_run_text column)
{
    const size_t size = H5Tget_size(t->type);
    const bool spaces = H5Tget_strpad(t->type) == H5T_STR_SPACEPAD;
    if (size == 0 || size > 1 << 16) {
        return false;
    }
    char *data = calloc(count * size + 1, 1);
    char *text = malloc(size + 1);
    const bool good = data != NULL && text != NULL &&
                      H5Dread(t->id, t->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    for (size_t i = 0; good && i < count; i++) {
        memcpy(text, data + i * size, size);
        text[size] = '\0';
        for (size_t end = strlen(text); spaces && end > 0 && text[end - 1] == ' '; end--) {
            text[end - 1] = '\0';
        }
        dp_run_set_text(&rows[i], column, text);
    }
    free(data);
    free(text);
    return good;
}

static bool wrong_length(const dp_h5 *file, const char *path, size_t given, size_t wanted,
                         dp_error *error)
{
    return dp_fail(error,
                   "%s:%s: %zu entries where /history/time has %zu: every column has one a run",
                   file->path, path, given, wanted);
}

static bool load_texts(const dp_h5 *file, dp_history *history, dp_run_text column, dp_error *error)
{
    char path[64];
    texts t;
    size_t count = 0;
    (void)snprintf(path, sizeof path, "/history/%s", dp_run_texts[column].name);
    if (!dp_h5_exists(file, path)) {
        return true;
    }
    bool good = open_texts(file, path, &t, &count, error) &&
                (count == history->count || wrong_length(file, path, count, history->count, error));
    if (good && count > 0) {
        good = (H5Tis_variable_str(t.type) > 0 ? read_variable : read_fixed)(&t, history->rows,
                                                                             count, column) ||
               dp_fail(error, "%s:%s: its texts cannot be read: the file is damaged", file->path,
                       path);
    }
    close_texts(&t);
    return good;
}

static double number_at(const void *data, dp_h5_type type, size_t i)
{
    return type == DP_H5_F64   ? ((const double *)data)[i]
           : type == DP_H5_F32 ? (double)((const float *)data)[i]
                               : (double)((const int64_t *)data)[i];
}

static bool load_numbers(const dp_h5 *file, dp_history *history, dp_run_number column,
                         dp_error *error)
{
    char path[64];
    dp_h5_type type;
    dp_h5_shape shape;
    void *data = NULL;
    (void)snprintf(path, sizeof path, "/history/%s", dp_run_columns[column].name);
    if (!dp_h5_exists(file, path)) {
        return true;
    }
    if (!dp_h5_describe(file, path, &type, &shape, error)) {
        return false;
    }
    if (shape.rank != 1 || shape.count != history->count) {
        return wrong_length(file, path, shape.count, history->count, error);
    }
    const bool real = type == DP_H5_F64 || type == DP_H5_F32;
    if (real ? !dp_h5_read(file, path, type, 1, &shape, &data, error)
             : !dp_h5_read_integers(file, path, 1, &shape, (int64_t **)&data, error)) {
        return false;
    }
    for (size_t i = 0; i < history->count; i++) {
        const double value = number_at(data, type, i);
        history->rows[i].number[column] = value;
        history->rows[i].known[column] = !isnan(value);
    }
    free(data);
    return true;
}

static bool load_all(const dp_h5 *file, dp_history *history, dp_error *error)
{
    texts t;
    bool good = dp_h5_check_root(file, "history", NULL, error) &&
                open_texts(file, "/history/time", &t, &history->count, error);
    if (!good) {
        return false;
    }
    close_texts(&t);
    history->rows = calloc(history->count + 1, sizeof *history->rows);
    good = history->rows != NULL ||
           dp_fail(error, "%s: not enough memory for %zu runs", file->path, history->count);
    for (int c = 0; good && c < DP_RUN_TEXTS; c++) {
        good = load_texts(file, history, (dp_run_text)c, error);
    }
    for (int c = 0; good && c < DP_RUN_NUMBERS; c++) {
        good = load_numbers(file, history, (dp_run_number)c, error);
    }
    return good;
}

static bool load_plain(dp_history *history, const char *path, dp_error *error)
{
    dp_h5 file;
    memset(history, 0, sizeof *history);
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    const bool good = load_all(&file, history, error);
    dp_h5_close(&file);
    if (!good) {
        dp_history_free(history);
    }
    return good;
}

/* Reading the columns can crash HDF5 where walking them does not: a child reads them first. */
static hid_t rehearse(void *context)
{
    dp_history history;
    dp_error ignored = {""};
    if (load_plain(&history, context, &ignored)) {
        dp_history_free(&history);
    }
    return H5I_INVALID_HID;
}

bool dp_history_load(dp_history *history, const char *path, dp_error *error)
{
    char name[DP_PATH_SIZE];
    memset(history, 0, sizeof *history);
    (void)snprintf(name, sizeof name, "%s", path);
    return dp_h5_probe(path, rehearse, name, error) && load_plain(history, path, error);
}
