/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/h5_internal.h"

/* An open dataset with what is known about it. */
typedef struct {
    hid_t id, type, space, plan; /* plan: creation properties */
    dp_h5_stored stored;
    dp_h5_shape shape;
    char type_text[96];
} dataset;

static void close_dataset(dataset *d)
{
    if (d->plan >= 0) {
        (void)H5Pclose(d->plan);
    }
    if (d->space >= 0) {
        (void)H5Sclose(d->space);
    }
    if (d->type >= 0) {
        (void)H5Tclose(d->type);
    }
    if (d->id >= 0) {
        (void)H5Dclose(d->id);
    }
}

static bool damaged(const dp_h5 *file, const char *path, const char *what, dp_error *error)
{
    char detail[160];
    return dp_fail(error,
                   "%s:%s: %s (%s): the file is damaged or this is no dataset; write it "
                   "again",
                   file->path, path, what, dp_h5_detail(detail));
}

static bool take_shape(const dp_h5 *file, const char *path, dataset *d, dp_error *error)
{
    const H5S_class_t class = H5Sget_simple_extent_type(d->space);
    if (class != H5S_SCALAR && class != H5S_SIMPLE) {
        return dp_fail(error, "%s:%s: it holds nothing: write its data", file->path, path);
    }
    const int rank = H5Sget_simple_extent_ndims(d->space);
    if (rank < 0 || rank > DP_H5_RANK) {
        return dp_fail(error, "%s:%s: it has %d dimensions: at most %d are understood", file->path,
                       path, rank, DP_H5_RANK);
    }
    hsize_t dims[DP_H5_RANK] = {0};
    if (rank > 0 && H5Sget_simple_extent_dims(d->space, dims, NULL) < 0) {
        return damaged(file, path, "its extents cannot be read", error);
    }
    d->shape.rank = rank;
    d->shape.count = 1;
    bool overflow = false;
    for (int i = 0; i < rank; i++) {
        d->shape.dims[i] = dims[i];
        overflow = overflow || (dims[i] != 0 && d->shape.count > SIZE_MAX / 16 / dims[i]);
        d->shape.count = overflow ? 0 : d->shape.count * (size_t)dims[i];
    }
    if (overflow) {
        char text[200];
        return dp_fail(error, "%s:%s: its extents %s are too large: write smaller arrays",
                       file->path, path, dp_h5_dims_text(rank, d->shape.dims, text));
    }
    return true;
}

static bool open_dataset(const dp_h5 *file, const char *path, dataset *d, dp_error *error)
{
    *d = (dataset){.id = -1, .type = -1, .space = -1, .plan = -1};
    if (!dp_h5_check_path(file, path, error)) {
        return false;
    }
    d->id = H5Dopen2(file->id, path, H5P_DEFAULT);
    if (d->id < 0) {
        return damaged(file, path, "it cannot be opened as a dataset", error);
    }
    d->type = H5Dget_type(d->id);
    d->space = H5Dget_space(d->id);
    d->plan = H5Dget_create_plist(d->id);
    if (d->type < 0 || d->space < 0 || d->plan < 0) {
        return damaged(file, path, "its header cannot be read", error);
    }
    d->stored = dp_h5_classify(d->type);
    dp_h5_describe_type(d->type, d->type_text, sizeof d->type_text);
    return take_shape(file, path, d, error);
}

/* Chunks that the extents need, 0 when the chunk shape makes no sense. */
static uint64_t chunks_needed(const dp_h5 *file, const dataset *d)
{
    hsize_t chunk[DP_H5_RANK] = {0};
    if (H5Pget_chunk(d->plan, DP_H5_RANK, chunk) != d->shape.rank) {
        return 0;
    }
    uint64_t needed = 1;
    uint64_t chunk_bytes = d->stored.size;
    for (int i = 0; i < d->shape.rank; i++) {
        if (chunk[i] == 0 || chunk_bytes > file->limit / chunk[i]) {
            return 0;
        }
        chunk_bytes *= chunk[i];
        needed *= (d->shape.dims[i] + chunk[i] - 1) / chunk[i]; /* at most shape.count */
    }
    return needed;
}

static bool check_chunks(const dp_h5 *file, const char *path, const dataset *d, dp_error *error)
{
    const uint64_t needed = chunks_needed(file, d);
    hsize_t present = 0;
    if (needed == 0) {
        return dp_fail(error,
                       "%s:%s: its chunk shape is impossible or larger than %" PRIu64
                       " bytes: write it again",
                       file->path, path, file->limit);
    }
    if (H5Dget_num_chunks(d->id, d->space, &present) < 0) {
        return damaged(file, path, "its chunks cannot be counted", error);
    }
    if (present < needed) {
        return dp_fail(error,
                       "%s:%s: %" PRIu64 " of its %" PRIu64
                       " chunks were never written: write all of it",
                       file->path, path, needed - (uint64_t)present, needed);
    }
    return true;
}

/* A filter that this HDF5 does not have, such as h5py's lzf. */
static bool check_filters(const dp_h5 *file, const char *path, const dataset *d, dp_error *error)
{
    const int count = H5Pget_nfilters(d->plan);
    for (int i = 0; i < count; i++) {
        unsigned flags = 0;
        char name[64] = "";
        const H5Z_filter_t filter =
            H5Pget_filter2(d->plan, (unsigned)i, &flags, NULL, NULL, sizeof name, name, NULL);
        if (filter < 0 || H5Zfilter_avail(filter) <= 0) {
            return dp_fail(error,
                           "%s:%s: its filter %d (%.40s) is not in this HDF5 library: "
                           "compress with gzip",
                           file->path, path, (int)filter, name);
        }
    }
    return true;
}

/* All of the data must be in the file: an extent alone costs its writer nothing. */
static bool check_storage(const dp_h5 *file, const char *path, const dataset *d, dp_error *error)
{
    char text[200];
    const uint64_t bytes = (uint64_t)d->shape.count * d->stored.size;
    if (bytes > file->limit) {
        return dp_fail(error,
                       "%s:%s: extents %s take %" PRIu64 " bytes, more than the limit of "
                       "%" PRIu64 ": cut it into smaller files",
                       file->path, path, dp_h5_dims_text(d->shape.rank, d->shape.dims, text), bytes,
                       file->limit);
    }
    if (bytes == 0) {
        return true;
    }
    if (!check_filters(file, path, d, error)) {
        return false;
    }
    const H5D_layout_t layout = H5Pget_layout(d->plan);
    if (H5Pget_external_count(d->plan) != 0 || layout == H5D_VIRTUAL || layout < 0) {
        return dp_fail(error, "%s:%s: its data lie in another file: copy them into this one",
                       file->path, path);
    }
    if (layout == H5D_CHUNKED) {
        return check_chunks(file, path, d, error);
    }
    const hsize_t stored = H5Dget_storage_size(d->id);
    bool whole = stored >= bytes && bytes <= file->bytes;
    if (layout == H5D_CONTIGUOUS) {
        const haddr_t offset = H5Dget_offset(d->id);
        whole = whole && offset != HADDR_UNDEF && offset <= file->bytes - bytes;
    }
    if (!whole) {
        return dp_fail(error,
                       "%s:%s: extents %s need %" PRIu64 " bytes that are not in the file: "
                       "it is cut short or was never written",
                       file->path, path, dp_h5_dims_text(d->shape.rank, d->shape.dims, text),
                       bytes);
    }
    return true;
}

/* Read the dataset in its own stored type, so that HDF5 converts nothing. */
static void *read_raw(const dp_h5 *file, const char *path, const dataset *d, dp_error *error)
{
    if (!check_storage(file, path, d, error)) {
        return NULL;
    }
    const size_t bytes = d->shape.count * d->stored.size;
    void *data = calloc(bytes > 0 ? bytes : 1, 1);
    if (data == NULL) {
        (void)dp_fail(error, "%s:%s: no memory for its %zu bytes: free some or cut it up",
                      file->path, path, bytes);
        return NULL;
    }
    if (bytes > 0 && H5Dread(d->id, d->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
        (void)damaged(file, path, "its data cannot be read", error);
        free(data);
        return NULL;
    }
    dp_h5_to_native(data, d->shape.count, d->stored);
    return data;
}

/* Codes are bits: an integer of the same size serves whatever its sign. Numbers must match. */
static bool type_matches(dp_h5_stored stored, dp_h5_type wanted)
{
    const bool bits = wanted == DP_H5_U8 || wanted == DP_H5_U16 || wanted == DP_H5_U32;
    if (stored.type == DP_H5_OTHER) {
        return false;
    }
    return bits ? stored.integer && stored.size == dp_h5_size(wanted) : stored.type == wanted;
}

static bool check_rank(const dp_h5 *file, const char *path, const dataset *d, int rank,
                       dp_error *error)
{
    char text[200];
    if (rank < 0 || d->shape.rank == rank) {
        return true;
    }
    return dp_fail(error, "%s:%s: its shape %s has %d dimensions and %d are needed: reshape it",
                   file->path, path, dp_h5_dims_text(d->shape.rank, d->shape.dims, text),
                   d->shape.rank, rank);
}

bool dp_h5_describe(const dp_h5 *file, const char *path, dp_h5_type *type, dp_h5_shape *shape,
                    dp_error *error)
{
    dataset d;
    const bool good = open_dataset(file, path, &d, error);
    *type = d.stored.type;
    *shape = d.shape;
    close_dataset(&d);
    return good;
}

bool dp_h5_read(const dp_h5 *file, const char *path, dp_h5_type type, int rank, dp_h5_shape *shape,
                void **data, dp_error *error)
{
    dataset d;
    *data = NULL;
    bool good = open_dataset(file, path, &d, error);
    if (good && !type_matches(d.stored, type)) {
        good = dp_fail(error,
                       "%s:%s: its type is %s and %s is needed: store codes as plain "
                       "unsigned integers",
                       file->path, path, d.type_text, dp_h5_name(type));
    }
    if (good && check_rank(file, path, &d, rank, error)) {
        *data = read_raw(file, path, &d, error);
    }
    *shape = d.shape;
    close_dataset(&d);
    return *data != NULL;
}

bool dp_h5_read_integers(const dp_h5 *file, const char *path, int rank, dp_h5_shape *shape,
                         int64_t **data, dp_error *error)
{
    dataset d;
    *data = NULL;
    bool good = open_dataset(file, path, &d, error);
    if (good && !d.stored.integer) {
        good =
            dp_fail(error, "%s:%s: its type is %s: store integers", file->path, path, d.type_text);
    }
    void *raw =
        good && check_rank(file, path, &d, rank, error) ? read_raw(file, path, &d, error) : NULL;
    if (raw != NULL) {
        *data = malloc((d.shape.count > 0 ? d.shape.count : 1) * sizeof **data);
        if (*data == NULL) {
            (void)dp_fail(error, "%s:%s: no memory for it: free some", file->path, path);
        }
    }
    for (size_t i = 0; *data != NULL && i < d.shape.count; i++) {
        if (!dp_h5_integer_fits(raw, i, d.stored)) {
            (void)dp_fail(error, "%s:%s: element %zu is beyond 2^63: check how it was written",
                          file->path, path, i);
            free(*data);
            *data = NULL;
            break;
        }
        (*data)[i] = dp_h5_integer_at(raw, i, d.stored);
    }
    free(raw);
    *shape = d.shape;
    close_dataset(&d);
    return *data != NULL;
}

bool dp_h5_read_scales(const dp_h5 *file, const char *path, int rank, dp_h5_shape *shape,
                       float **data, size_t *zeros, dp_error *error)
{
    void *raw;
    *data = NULL;
    *zeros = 0;
    if (!dp_h5_read(file, path, DP_H5_F32, rank, shape, &raw, error)) {
        return false;
    }
    const float *scales = raw;
    for (size_t i = 0; i < shape->count; i++) {
        if (!isfinite(scales[i]) || scales[i] < 0.0f) {
            (void)dp_fail(error, "%s:%s: scale %zu is %.9g: scales are finite and not negative",
                          file->path, path, i, (double)scales[i]);
            free(raw);
            return false;
        }
        *zeros += scales[i] == 0.0f ? 1 : 0;
    }
    *data = raw;
    return true;
}

bool dp_h5_view_open(dp_h5_view *view, const dp_h5 *file, const char *path, dp_h5_type type,
                     dp_error *error)
{
    dataset d;
    *view = (dp_h5_view){.id = -1, .type = -1, .file = file, .path = path};
    bool good = open_dataset(file, path, &d, error);
    if (good && !type_matches(d.stored, type)) {
        good = dp_fail(error,
                       "%s:%s: its type is %s and %s is needed: store codes as plain "
                       "unsigned integers",
                       file->path, path, d.type_text, dp_h5_name(type));
    }
    good = good && check_storage(file, path, &d, error);
    if (good) {
        view->id = d.id;
        view->type = d.type;
        view->shape = d.shape;
        view->size = d.stored.size;
        view->big_endian = d.stored.big_endian;
        d.id = -1; /* now the view's */
        d.type = -1;
    }
    close_dataset(&d);
    return good;
}

bool dp_h5_view_read(const dp_h5_view *view, const uint64_t *start, const uint64_t *count,
                     void *data, dp_error *error)
{
    hsize_t from[DP_H5_RANK], extent[DP_H5_RANK];
    size_t elements = 1;
    for (int i = 0; i < view->shape.rank; i++) {
        from[i] = start[i];
        extent[i] = count[i];
        elements *= (size_t)count[i];
        if (count[i] > view->shape.dims[i] || start[i] > view->shape.dims[i] - count[i]) {
            return dp_fail(error, "%s:%s: axis %d ends at %" PRIu64 ": its data are incomplete",
                           view->file->path, view->path, i, view->shape.dims[i]);
        }
    }
    const hid_t space = H5Dget_space(view->id);
    const hid_t memory = H5Screate_simple(view->shape.rank, extent, NULL);
    const bool good = space >= 0 && memory >= 0 &&
                      H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, extent, NULL) >= 0 &&
                      H5Dread(view->id, view->type, memory, space, H5P_DEFAULT, data) >= 0;
    if (space >= 0) {
        (void)H5Sclose(space);
    }
    if (memory >= 0) {
        (void)H5Sclose(memory);
    }
    if (!good) {
        return damaged(view->file, view->path, "its data cannot be read", error);
    }
    const dp_h5_stored stored = {.size = view->size, .big_endian = view->big_endian};
    dp_h5_to_native(data, elements, stored);
    return true;
}

void dp_h5_view_close(dp_h5_view *view)
{
    if (view->type >= 0) {
        (void)H5Tclose(view->type);
    }
    if (view->id >= 0) {
        (void)H5Dclose(view->id);
    }
    view->id = -1;
    view->type = -1;
}
