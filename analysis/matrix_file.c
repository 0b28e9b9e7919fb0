/* SPDX-License-Identifier: MIT
 *
 * A matrix as a file: one table of numbers, the names beside it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/h5.h"
#include "analysis/matrix.h"
#include "analysis/numbers.h"

enum { COLUMNS = 11, SETTINGS = 5 };

static void to_numbers(const dp_matrix_row *row, double *n)
{
    const double all[COLUMNS] = {row->parameter,
                                 row->metrics.cosine,
                                 row->metrics.rel_l2,
                                 row->metrics.rmse,
                                 row->metrics.slope,
                                 (double)row->metrics.nonfinite_rows,
                                 (double)row->metrics.rows,
                                 row->lost_mass,
                                 row->flushed,
                                 row->overflowed,
                                 row->published_cosine};
    memcpy(n, all, sizeof all);
    n[COLUMNS] = row->published_rel_l2;
}

static void from_numbers(const double *n, dp_matrix_row *row)
{
    row->parameter = n[0];
    row->metrics = (dp_attend_metrics){.cosine = n[1],
                                       .rel_l2 = n[2],
                                       .rmse = n[3],
                                       .slope = n[4],
                                       .nonfinite_rows = n[5] > 0.0 ? (uint64_t)n[5] : 0,
                                       .rows = n[6] > 0.0 ? (uint64_t)n[6] : 0};
    row->lost_mass = n[7];
    row->flushed = n[8];
    row->overflowed = n[9];
    row->published_cosine = n[10];
    row->published_rel_l2 = n[COLUMNS];
}

bool dp_matrix_save(const dp_matrix *matrix, const char *path, dp_error *error)
{
    const size_t width = COLUMNS + 1;
    double *numbers = calloc(matrix->count * width + 1, sizeof *numbers);
    char *names = calloc(matrix->count + 1, 16 + 16 + DP_MATRIX_NAME + 3);
    dp_h5_writer writer;
    const uint64_t dims[2] = {matrix->count, width};
    const dp_h5_labels labels = {.axes =
                                     "row,parameter cosine rel_l2 rmse slope nonfinite_rows rows "
                                     "lost_mass flushed overflowed published_cosine "
                                     "published_rel_l2"};
    size_t used = 0;
    for (size_t i = 0; numbers != NULL && names != NULL && i < matrix->count; i++) {
        const dp_matrix_row *row = &matrix->rows[i];
        to_numbers(row, numbers + i * width);
        used += (size_t)sprintf(names + used, "%s%s,%s,%s", i > 0 ? "," : "", row->section,
                                row->input, row->name);
    }
    bool good = (numbers != NULL && names != NULL && matrix->count > 0) ||
                dp_fail(error, "matrix: nothing to write, or not enough memory");
    if (good) {
        good = dp_h5_create(&writer, path, "matrix", matrix->files, matrix->file_count, error) &&
               dp_h5_put(&writer, "/matrix", DP_H5_F64, 2, dims, numbers, &labels, error) &&
               dp_h5_put_text(&writer, "/matrix", "names", names, error) &&
               dp_h5_put_i64(&writer, "/matrix", "seed", (int64_t)matrix->seed, error) &&
               dp_h5_put_i64(&writer, "/matrix", "sms", matrix->sms, error) &&
               dp_h5_put_i64(&writer, "/matrix", "seq", (int64_t)matrix->seq, error) &&
               dp_h5_put_i64(&writer, "/matrix", "heads", (int64_t)matrix->heads, error) &&
               dp_h5_put_i64(&writer, "/matrix", "dim", (int64_t)matrix->dim, error) &&
               dp_h5_commit(&writer, error);
        dp_h5_abandon(&writer);
    }
    free(numbers);
    free(names);
    return good;
}

static bool get_settings(const dp_h5 *file, dp_matrix *matrix, dp_error *error)
{
    static const char *const names[SETTINGS] = {"seed", "sms", "seq", "heads", "dim"};
    int64_t value[SETTINGS];
    for (int i = 0; i < SETTINGS; i++) {
        if (!dp_h5_i64(file, "/matrix", names[i], &value[i], error)) {
            return false;
        }
    }
    matrix->seed = (uint64_t)value[0];
    matrix->sms = (int)value[1];
    matrix->seq = (size_t)value[2];
    matrix->heads = (size_t)value[3];
    matrix->dim = (size_t)value[4];
    return true;
}

static bool get_rows(const dp_h5 *file, dp_matrix *matrix, dp_error *error)
{
    dp_h5_shape shape;
    void *data = NULL;
    char *names = NULL;
    if (!dp_h5_read(file, "/matrix", DP_H5_F64, 2, &shape, &data, error)) {
        return false;
    }
    bool good = shape.dims[1] == COLUMNS + 1 ||
                dp_fail(error, "%s: /matrix has another width: write it again with directp matrix",
                        file->path);
    good = good && dp_h5_text(file, "/matrix", "names", &names, error);
    matrix->rows = good ? calloc(shape.dims[0] + 1, sizeof *matrix->rows) : NULL;
    good = good && (matrix->rows != NULL || dp_fail(error, "matrix: not enough memory"));
    for (size_t i = 0; good && i < shape.dims[0]; i++) {
        dp_matrix_row *row = &matrix->rows[i];
        bool last = false;
        from_numbers((const double *)data + i * (COLUMNS + 1), row);
        good = (dp_list_item(names, 3 * i, row->section, sizeof row->section, &last) &&
                dp_list_item(names, 3 * i + 1, row->input, sizeof row->input, &last) &&
                dp_list_item(names, 3 * i + 2, row->name, sizeof row->name, &last)) ||
               dp_fail(error, "%s: row %zu has no name: write it again", file->path, i);
    }
    matrix->count = good ? shape.dims[0] : 0;
    free(data);
    free(names);
    return good;
}

bool dp_matrix_load(dp_matrix *matrix, const char *path, dp_error *error)
{
    memset(matrix, 0, sizeof *matrix);
    dp_h5 file;
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    const bool good = dp_h5_check_root(&file, "matrix", NULL, error) &&
                      get_settings(&file, matrix, error) && get_rows(&file, matrix, error);
    dp_h5_close(&file);
    if (!good) {
        dp_matrix_free(matrix);
    }
    return good;
}
