/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "analysis/h5_internal.h"
#include "ref/version.h"

/* Types in the file are little-endian, those in memory native. Both are to be closed. */
static hid_t half_type(hid_t single)
{
    const hid_t type = H5Tcopy(single);
    if (type >= 0 && (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_size(type, 2) < 0 ||
                      H5Tset_ebias(type, 15) < 0)) {
        (void)H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

static hid_t file_type(dp_h5_type type)
{
    switch (type) {
    case DP_H5_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case DP_H5_U16:
        return H5Tcopy(H5T_STD_U16LE);
    case DP_H5_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case DP_H5_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case DP_H5_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case DP_H5_F16:
        return half_type(H5T_IEEE_F32LE);
    case DP_H5_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case DP_H5_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case DP_H5_OTHER:
        break;
    }
    return H5I_INVALID_HID;
}

static hid_t memory_type(dp_h5_type type)
{
    switch (type) {
    case DP_H5_U8:
        return H5Tcopy(H5T_NATIVE_UINT8);
    case DP_H5_U16:
        return H5Tcopy(H5T_NATIVE_UINT16);
    case DP_H5_U32:
        return H5Tcopy(H5T_NATIVE_UINT32);
    case DP_H5_I32:
        return H5Tcopy(H5T_NATIVE_INT32);
    case DP_H5_I64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case DP_H5_F16:
        return half_type(H5T_NATIVE_FLOAT);
    case DP_H5_F32:
        return H5Tcopy(H5T_NATIVE_FLOAT);
    case DP_H5_F64:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case DP_H5_OTHER:
        break;
    }
    return H5I_INVALID_HID;
}

static bool failed(const dp_h5_writer *writer, const char *object, dp_error *error)
{
    char detail[160];
    return dp_fail(error, "%s:%s: cannot be written (%s): free some space or choose another output",
                   writer->output.path, object, dp_h5_detail(detail));
}

bool dp_h5_create(dp_h5_writer *writer, const char *path, const char *kind,
                  const char *const *inputs, size_t input_count, dp_error *error)
{
    char producer[64];
    writer->id = H5I_INVALID_HID;
    writer->deflate = 0;
    dp_h5_quiet();
    if (!dp_output_begin(&writer->output, path, inputs, input_count, error)) {
        return false;
    }
    writer->id = H5Fcreate(writer->output.temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (writer->id < 0) {
        return failed(writer, "/", error);
    }
    (void)snprintf(producer, sizeof producer, "directp %s", dp_version());
    return dp_h5_put_i64(writer, "/", "schema", 1, error) &&
           dp_h5_put_text(writer, "/", "kind", kind, error) &&
           dp_h5_put_text(writer, "/", "producer", producer, error);
}

/* Whole trailing dimensions, up to about a mebibyte, make a chunk. */
static void choose_chunk(int rank, const uint64_t *dims, size_t element, hsize_t *chunk)
{
    const uint64_t room = ((uint64_t)1 << 20) / element;
    uint64_t held = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const uint64_t fits = room / held > 0 ? room / held : 1;
        chunk[i] = dims[i] < fits ? dims[i] : fits;
        held *= chunk[i];
    }
}

static hid_t creation_list(const dp_h5_writer *writer, dp_h5_type type, int rank,
                           const uint64_t *dims)
{
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    bool empty = rank == 0;
    for (int i = 0; i < rank; i++) {
        empty = empty || dims[i] == 0;
    }
    if (list >= 0 && writer->deflate > 0 && !empty) {
        hsize_t chunk[DP_H5_RANK];
        choose_chunk(rank, dims, dp_h5_size(type), chunk);
        (void)H5Pset_chunk(list, rank, chunk);
        (void)H5Pset_shuffle(list);
        (void)H5Pset_deflate(list, (unsigned)writer->deflate);
    }
    return list;
}

static bool put_labels(dp_h5_writer *writer, const char *path, const dp_h5_labels *labels,
                       dp_error *error)
{
    return (labels->format == NULL ||
            dp_h5_put_text(writer, path, "format", labels->format, error)) &&
           (labels->axes == NULL || dp_h5_put_text(writer, path, "axes", labels->axes, error)) &&
           (labels->layout == NULL ||
            dp_h5_put_text(writer, path, "layout", labels->layout, error)) &&
           (labels->block == 0 || dp_h5_put_i64(writer, path, "block", labels->block, error));
}

/* Create a dataset; the caller closes it. */
static hid_t create_dataset(const dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
                            const uint64_t *dims)
{
    hsize_t extents[DP_H5_RANK] = {0};
    for (int i = 0; i < rank && i < DP_H5_RANK; i++) {
        extents[i] = dims[i];
    }
    const hid_t stored = file_type(type);
    const hid_t space = rank > 0 ? H5Screate_simple(rank, extents, NULL) : H5Screate(H5S_SCALAR);
    const hid_t list = creation_list(writer, type, rank, dims);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    (void)H5Pset_create_intermediate_group(links, 1);
    const hid_t set = H5Dcreate2(writer->id, path, stored, space, links, list, H5P_DEFAULT);
    (void)H5Pclose(links);
    (void)H5Pclose(list);
    (void)H5Sclose(space);
    (void)H5Tclose(stored);
    return set;
}

bool dp_h5_put(dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
               const uint64_t *dims, const void *data, const dp_h5_labels *labels, dp_error *error)
{
    const hid_t memory = memory_type(type);
    const hid_t set = create_dataset(writer, path, type, rank, dims);
    bool good = set >= 0 && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    good = (set < 0 || H5Dclose(set) >= 0) && good;
    (void)H5Tclose(memory);
    if (!good) {
        return failed(writer, path, error);
    }
    return labels == NULL || put_labels(writer, path, labels, error);
}

bool dp_h5_reserve(dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
                   const uint64_t *dims, const dp_h5_labels *labels, dp_error *error)
{
    const hid_t set = create_dataset(writer, path, type, rank, dims);
    if (set < 0 || H5Dclose(set) < 0) {
        return failed(writer, path, error);
    }
    return labels == NULL || put_labels(writer, path, labels, error);
}

bool dp_h5_put_part(dp_h5_writer *writer, const char *path, dp_h5_type type, int rank,
                    const uint64_t *start, const uint64_t *count, const void *data, dp_error *error)
{
    hsize_t first[DP_H5_RANK] = {0};
    hsize_t extents[DP_H5_RANK] = {0};
    for (int i = 0; i < rank && i < DP_H5_RANK; i++) {
        first[i] = start[i];
        extents[i] = count[i];
    }
    const hid_t set = H5Dopen2(writer->id, path, H5P_DEFAULT);
    const hid_t memory = memory_type(type);
    const hid_t part = H5Screate_simple(rank, extents, NULL);
    const hid_t whole = set >= 0 ? H5Dget_space(set) : H5I_INVALID_HID;
    bool good = whole >= 0 &&
                H5Sselect_hyperslab(whole, H5S_SELECT_SET, first, NULL, extents, NULL) >= 0 &&
                H5Dwrite(set, memory, part, whole, H5P_DEFAULT, data) >= 0;
    if (whole >= 0) {
        (void)H5Sclose(whole);
    }
    (void)H5Sclose(part);
    (void)H5Tclose(memory);
    good = (set < 0 || H5Dclose(set) >= 0) && good;
    return good || failed(writer, path, error);
}

static bool put_attribute(dp_h5_writer *writer, const char *object, const char *name, hid_t stored,
                          hid_t memory, hid_t space, const void *data, dp_error *error)
{
    const hid_t id = H5Acreate_by_name(writer->id, object, name, stored, space, H5P_DEFAULT,
                                       H5P_DEFAULT, H5P_DEFAULT);
    bool good = id >= 0 && H5Awrite(id, memory, data) >= 0;
    good = (id < 0 || H5Aclose(id) >= 0) && good;
    (void)H5Sclose(space);
    return good || failed(writer, object, error);
}

/* Variable-length UTF-8, which h5py returns as str. */
bool dp_h5_put_text(dp_h5_writer *writer, const char *object, const char *name, const char *text,
                    dp_error *error)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    (void)H5Tset_size(type, H5T_VARIABLE);
    (void)H5Tset_cset(type, H5T_CSET_UTF8);
    const bool good =
        put_attribute(writer, object, name, type, type, H5Screate(H5S_SCALAR), &text, error);
    (void)H5Tclose(type);
    return good;
}

bool dp_h5_put_i64(dp_h5_writer *writer, const char *object, const char *name, int64_t value,
                   dp_error *error)
{
    return put_attribute(writer, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64,
                         H5Screate(H5S_SCALAR), &value, error);
}

bool dp_h5_put_f64(dp_h5_writer *writer, const char *object, const char *name, double value,
                   dp_error *error)
{
    return put_attribute(writer, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                         H5Screate(H5S_SCALAR), &value, error);
}

bool dp_h5_put_i64_list(dp_h5_writer *writer, const char *object, const char *name,
                        const int64_t *values, size_t count, dp_error *error)
{
    const hsize_t extent = count;
    return put_attribute(writer, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64,
                         H5Screate_simple(1, &extent, NULL), values, error);
}

bool dp_h5_commit(dp_h5_writer *writer, dp_error *error)
{
    const bool flushed = H5Fflush(writer->id, H5F_SCOPE_GLOBAL) >= 0;
    if (!flushed) {
        (void)failed(writer, "/", error);
        dp_h5_abandon(writer);
        return false;
    }
    const bool closed = H5Fclose(writer->id) >= 0;
    writer->id = H5I_INVALID_HID;
    if (!closed) {
        (void)failed(writer, "/", error);
        dp_output_abandon(&writer->output);
        return false;
    }
    return dp_output_commit(&writer->output, error);
}

void dp_h5_abandon(dp_h5_writer *writer)
{
    if (writer->id >= 0) {
        (void)H5Fclose(writer->id);
        writer->id = H5I_INVALID_HID;
    }
    dp_output_abandon(&writer->output);
}
