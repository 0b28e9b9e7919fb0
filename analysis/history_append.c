/* SPDX-License-Identifier: MIT
 *
 * Appending to a history: a copy of it is extended and takes its place, so that an append that is
 * interrupted or fails leaves the history as it was.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/h5_internal.h"
#include "analysis/history.h"

enum { CHUNK = 64 };

typedef struct {
    dp_h5_writer writer;
    const dp_run_row *rows;
    size_t old, count; /* runs before, and added */
    const char *path;
    dp_error *error;
} append;

static bool failed(const append *a, const char *column)
{
    char detail[160];
    return dp_fail(a->error, "%s:/history/%s: cannot be extended (%s): is the disk full?", a->path,
                   column, dp_h5_detail(detail));
}

static hid_t text_type(size_t size)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    (void)H5Tset_size(type, size + 1);
    (void)H5Tset_strpad(type, H5T_STR_NULLTERM);
    (void)H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

/* A new column of `old` entries: unknown, which is NaN, or empty texts. */
static hid_t create_column(const append *a, const char *name, hid_t type)
{
    const hsize_t extent = a->old, limit = H5S_UNLIMITED, chunk = CHUNK;
    const double unknown = (double)NAN;
    char path[96];
    (void)snprintf(path, sizeof path, "/history/%s", name);
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    const hid_t space = H5Screate_simple(1, &extent, &limit);
    (void)H5Pset_create_intermediate_group(links, 1);
    (void)H5Pset_chunk(plan, 1, &chunk);
    (void)H5Pset_alloc_time(plan, H5D_ALLOC_TIME_EARLY); /* filled, also where nothing is written */
    if (H5Tget_class(type) == H5T_FLOAT) {
        (void)H5Pset_fill_value(plan, H5T_NATIVE_DOUBLE, &unknown);
    }
    const hid_t set = H5Dcreate2(a->writer.id, path, type, space, links, plan, H5P_DEFAULT);
    (void)H5Sclose(space);
    (void)H5Pclose(links);
    (void)H5Pclose(plan);
    return set;
}

/* The new entries of an extended column. */
static bool write_new(const append *a, hid_t set, hid_t memory, const void *data)
{
    const hsize_t start = a->old, count = a->count;
    const hid_t whole = H5Dget_space(set);
    const hid_t part = H5Screate_simple(1, &count, NULL);
    const bool good = H5Sselect_hyperslab(whole, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
                      H5Dwrite(set, memory, part, whole, H5P_DEFAULT, data) >= 0;
    (void)H5Sclose(part);
    (void)H5Sclose(whole);
    return good;
}

static bool exists(const append *a, const char *name)
{
    char path[96];
    (void)snprintf(path, sizeof path, "/history/%s", name);
    return H5Lexists(a->writer.id, "/history", H5P_DEFAULT) > 0 &&
           H5Lexists(a->writer.id, path, H5P_DEFAULT) > 0;
}

/* Columns that are there grow together, also those this program does not know. */
static herr_t extend_one(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    const append *a = context;
    const hsize_t extent = a->old + a->count;
    hsize_t now = 0, most = 0;
    if (link->type != H5L_TYPE_HARD) {
        return 0;
    }
    const hid_t set = H5Oopen(group, name, H5P_DEFAULT);
    if (H5Iget_type(set) != H5I_DATASET) {
        return set >= 0 && H5Oclose(set) >= 0 ? 0 : -1;
    }
    const hid_t space = H5Dget_space(set);
    const bool column = H5Sget_simple_extent_ndims(space) == 1 &&
                        H5Sget_simple_extent_dims(space, &now, &most) == 1 && now == a->old;
    bool good = true;
    if (column && most != H5S_UNLIMITED && most < extent) {
        good = dp_fail(a->error,
                       "%s:/history/%s: this column cannot grow: make it with maxshape=(None,)",
                       a->path, name);
    } else if (column) {
        good = H5Dset_extent(set, &extent) >= 0 || failed(a, name);
    }
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    return good ? 0 : -1;
}

/* The column, made when it is missing; extended when it was made here. */
static hid_t open_column(const append *a, const char *name, hid_t type)
{
    const hsize_t extent = a->old + a->count;
    char path[96];
    (void)snprintf(path, sizeof path, "/history/%s", name);
    if (exists(a, name)) {
        return H5Dopen2(a->writer.id, path, H5P_DEFAULT);
    }
    const hid_t set = create_column(a, name, type);
    return set >= 0 && H5Dset_extent(set, &extent) < 0 ? -1 : set;
}

/* The texts of the new runs as the column holds them: pointers, or `size` bytes each of which
 * `room` may be text. */
static void *pack_texts(const append *a, dp_run_text column, bool variable, size_t size,
                        size_t room)
{
    const size_t each = variable ? sizeof(const char *) : size;
    char *packed = calloc(a->count, each);
    for (size_t i = 0; packed != NULL && i < a->count; i++) {
        const char *text = a->rows[i].text[column];
        const size_t length = strlen(text);
        if (variable) {
            ((const char **)(void *)packed)[i] = text;
        } else {
            memcpy(packed + i * size, text, length < room ? length : room);
        }
    }
    return packed;
}

static bool put_texts(const append *a, dp_run_text column)
{
    const char *name = dp_run_texts[column].name;
    const hid_t wanted = text_type(dp_run_texts[column].size);
    const hid_t set = open_column(a, name, wanted);
    const hid_t type = set >= 0 ? H5Dget_type(set) : -1;
    bool good = type >= 0 && H5Tget_class(type) == H5T_STRING;
    if (good) {
        const bool variable = H5Tis_variable_str(type) > 0;
        const bool ended = H5Tget_strpad(type) == H5T_STR_NULLTERM;
        const size_t size = variable ? 0 : H5Tget_size(type);
        void *data = pack_texts(a, column, variable, size, ended ? size - 1 : size);
        good = data != NULL && write_new(a, set, type, data);
        free(data);
    }
    if (type >= 0) {
        (void)H5Tclose(type);
    }
    (void)H5Tclose(wanted);
    good = set >= 0 && H5Dclose(set) >= 0 && good;
    return good || failed(a, name);
}

static bool put_numbers(const append *a, dp_run_number column)
{
    const char *name = dp_run_columns[column].name;
    double *data = calloc(a->count, sizeof *data);
    const hid_t set = open_column(a, name, H5T_IEEE_F64LE);
    for (size_t i = 0; data != NULL && i < a->count; i++) {
        data[i] = a->rows[i].known[column] ? a->rows[i].number[column] : (double)NAN;
    }
    bool good = data != NULL && set >= 0 && write_new(a, set, H5T_NATIVE_DOUBLE, data);
    good = set >= 0 && H5Dclose(set) >= 0 && good;
    free(data);
    return good || failed(a, name);
}

static bool put_rows(append *a)
{
    hsize_t at = 0;
    if (H5Lexists(a->writer.id, "/history", H5P_DEFAULT) > 0 &&
        H5Literate_by_name(a->writer.id, "/history", H5_INDEX_NAME, H5_ITER_INC, &at, extend_one, a,
                           H5P_DEFAULT) < 0) {
        return a->error->text[0] != '\0' ? false : failed(a, "");
    }
    bool good = true;
    for (int c = 0; good && c < DP_RUN_TEXTS; c++) {
        good = put_texts(a, (dp_run_text)c);
    }
    for (int c = 0; good && c < DP_RUN_NUMBERS; c++) {
        good = put_numbers(a, (dp_run_number)c);
    }
    return good;
}

/* The old file, byte by byte, into the temporary one. */
static bool copy_file(const char *from, const char *to, dp_error *error)
{
    char buffer[1 << 14];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    bool good = in != NULL && out != NULL;
    for (size_t got = 1; good && got > 0;) {
        got = fread(buffer, 1, sizeof buffer, in);
        good = fwrite(buffer, 1, got, out) == got && ferror(in) == 0;
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    good = out != NULL && fclose(out) == 0 && good;
    return good ||
           dp_fail(error, "%s: cannot be copied (%s): is the disk full?", from, strerror(errno));
}

/* The copy of the old file, open for writing. */
static bool open_copy(append *a)
{
    if (!copy_file(a->path, a->writer.output.temporary, a->error)) {
        return false;
    }
    a->writer.id = H5Fopen(a->writer.output.temporary, H5F_ACC_RDWR, H5P_DEFAULT);
    return a->writer.id >= 0 || failed(a, "");
}

/* Extending a damaged file can crash HDF5: a child does it first, on the same copy. */
static hid_t rehearse(void *context)
{
    append *a = context;
    if (open_copy(a) && put_rows(a)) {
        (void)H5Fclose(a->writer.id);
    }
    return H5I_INVALID_HID;
}

/* Start the new file: empty, or the old one again. */
static bool begin(append *a, const char *const *inputs, size_t input_count)
{
    if (access(a->path, F_OK) != 0) {
        return dp_h5_create(&a->writer, a->path, "history", inputs, input_count, a->error);
    }
    dp_history before;
    if (!dp_history_load(&before, a->path, a->error)) {
        return false;
    }
    a->old = before.count;
    dp_history_free(&before);
    return dp_output_begin(&a->writer.output, a->path, inputs, input_count, a->error) &&
           dp_h5_probe(a->path, rehearse, a, a->error) && open_copy(a);
}

bool dp_history_append(const char *path, const dp_run_row *rows, size_t count,
                       const char *const *inputs, size_t input_count, dp_error *error)
{
    append a = {.rows = rows, .count = count, .path = path, .error = error};
    a.writer.id = H5I_INVALID_HID;
    a.writer.output.slot = -1;
    const bool good =
        begin(&a, inputs, input_count) && put_rows(&a) && dp_h5_commit(&a.writer, error);
    dp_h5_abandon(&a.writer);
    return good;
}
