/* SPDX-License-Identifier: MIT
 *
 * A dump of the command itself, and changes to it as a foreign writer would have made it.
 */
#ifndef DP_TESTS_ANALYSIS_DUMP_EDIT_H
#define DP_TESTS_ANALYSIS_DUMP_EDIT_H

#include <hdf5.h>

#include "scratch.h"

static char dump[512];

static inline void make(const char *options)
{
    static dp_run run;
    char line[1024];
    (void)snprintf(dump, sizeof dump, "%s", scratch("dump.h5"));
    (void)snprintf(line, sizeof line,
                   "attend --random 11 --seq 256 --heads 2 --threads 1 --stages all %s -o '%s'",
                   options, dump);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
}

static inline int diff(dp_run *run, const char *arguments)
{
    char line[4096];
    (void)snprintf(line, sizeof line, "diff '%s' --threads 1 %s", dump, arguments);
    run_directp(run, line);
    return run->status;
}

/* Open the dump for changing it. */
static inline hid_t open_dump(void)
{
    const hid_t file = H5Fopen(dump, H5F_ACC_RDWR, H5P_DEFAULT);
    ck_assert(file >= 0);
    return file;
}

static inline void close_dump(hid_t file)
{
    ck_assert(H5Fclose(file) >= 0);
}

/* Data of a dataset as it is stored. */
static inline void *take(hid_t file, const char *path, hid_t type, hsize_t dims[4], int *rank)
{
    const hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    ck_assert(set >= 0);
    const hid_t space = H5Dget_space(set);
    *rank = H5Sget_simple_extent_ndims(space);
    ck_assert_int_ge(H5Sget_simple_extent_dims(space, dims, NULL), 0);
    void *data = malloc((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type));
    ck_assert(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    return data;
}

static inline void put_text(hid_t object, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    (void)H5Tset_size(type, strlen(text) + 1);
    const hid_t scalar = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(object, name, type, scalar, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Awrite(attribute, type, text) >= 0);
    (void)H5Aclose(attribute);
    (void)H5Sclose(scalar);
    (void)H5Tclose(type);
}

/* Replace a dataset; chunk: 0 plain, else rows of a chunk with gzip. */
static inline void replace(hid_t file, const char *path, hid_t stored, hid_t memory, int rank,
                           const hsize_t *dims, const void *data, hsize_t chunk, const char *layout)
{
    ck_assert(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk > 0) {
        hsize_t box[4] = {1, 1, chunk, rank > 3 ? dims[3] : 1};
        ck_assert(H5Pset_chunk(plan, rank, box) >= 0 && H5Pset_deflate(plan, 6) >= 0);
    }
    const hid_t space = H5Screate_simple(rank, dims, NULL);
    const hid_t set = H5Dcreate2(file, path, stored, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    ck_assert(set >= 0 && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    if (layout != NULL) {
        put_text(set, "layout", layout);
    }
    (void)H5Dclose(set);
    (void)H5Sclose(space);
    (void)H5Pclose(plan);
}

static inline void drop_attribute(const char *name)
{
    const hid_t file = open_dump();
    ck_assert(H5Adelete(file, name) >= 0);
    close_dump(file);
}

static inline void put_integer(hid_t file, const char *name, int64_t value)
{
    const hid_t scalar = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file, name, H5T_STD_I64LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0);
    (void)H5Aclose(attribute);
    (void)H5Sclose(scalar);
}

/* Attributes of a dataset. */
static inline void label(hid_t file, const char *path, const char *name, const char *text)
{
    const hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    ck_assert(set >= 0);
    if (H5Aexists(set, name) > 0) {
        (void)H5Adelete(set, name);
    }
    put_text(set, name, text);
    (void)H5Dclose(set);
}
static inline void label_list(hid_t file, const char *path, const char *name, hsize_t count,
                              const int64_t *values)
{
    const hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(1, &count, NULL);
    if (H5Aexists(object, name) > 0) {
        (void)H5Adelete(object, name);
    }
    const hid_t attribute =
        H5Acreate2(object, name, H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Awrite(attribute, H5T_NATIVE_INT64, values) >= 0);
    (void)H5Aclose(attribute);
    (void)H5Sclose(space);
    (void)H5Oclose(object);
}

#endif
