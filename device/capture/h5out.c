/* SPDX-License-Identifier: MIT */
#include "device/capture/h5out.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

struct dp_h5out {
    hid_t file, root, capture, group;
    int level;
    dp_error *error;
    char path[900], part[920];
};

static bool dp_bad(const dp_h5out *out)
{
    return out->error->text[0] != '\0';
}

static bool dp_fail_at(dp_h5out *out, const char *name)
{
    return dp_fail(out->error, "%s: cannot write '%s': is the disk full?", out->path, name);
}

dp_h5out *dp_h5out_open(const char *path, int level, dp_error *error)
{
    dp_h5out *out = calloc(1, sizeof *out);
    if (out == NULL || strlen(path) >= sizeof out->path) {
        free(out);
        (void)dp_fail(error, "%s: cannot be an output name: give a shorter path", path);
        return NULL;
    }
    out->level = level;
    out->error = error;
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    (void)snprintf(out->part, sizeof out->part, "%s.part", path);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    out->file = H5Fcreate(out->part, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (out->file < 0) {
        (void)dp_fail(error, "%s: cannot be created: choose a folder that can be written", path);
        free(out);
        return NULL;
    }
    out->root = H5Gopen2(out->file, "/", H5P_DEFAULT);
    out->capture = H5Gcreate2(out->file, "capture", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    out->group = out->root;
    return out;
}

bool dp_h5out_close(dp_h5out *out)
{
    if (out->group != out->root) {
        (void)H5Gclose(out->group);
    }
    (void)H5Gclose(out->capture);
    (void)H5Gclose(out->root);
    if (H5Fclose(out->file) < 0) {
        (void)dp_fail_at(out, "end of file");
    }
    if (!dp_bad(out) && rename(out->part, out->path) != 0) {
        (void)dp_fail(out->error, "%s: cannot be renamed from %s: check the folder", out->path,
                      out->part);
    }
    bool good = !dp_bad(out);
    if (!good) {
        (void)remove(out->part);
    }
    free(out);
    return good;
}

bool dp_h5out_group(dp_h5out *out, const char *name)
{
    if (dp_bad(out)) {
        return false;
    }
    if (out->group != out->root) {
        (void)H5Gclose(out->group);
    }
    out->group = out->root;
    if (name != NULL) {
        hid_t made = H5Gcreate2(out->capture, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (made < 0) {
            return dp_fail_at(out, name);
        }
        out->group = made;
    }
    return true;
}

static bool dp_text_on(dp_h5out *out, hid_t object, const char *name, const char *value)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    hid_t space = H5Screate(H5S_SCALAR);
    (void)H5Tset_size(type, strlen(value) > 0 ? strlen(value) : 1);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    (void)H5Aclose(attribute);
    (void)H5Sclose(space);
    (void)H5Tclose(type);
    return good || dp_fail_at(out, name);
}

bool dp_h5out_text(dp_h5out *out, const char *name, const char *value)
{
    return !dp_bad(out) && dp_text_on(out, out->group, name, value);
}

bool dp_h5out_dataset_text(dp_h5out *out, const char *dataset, const char *name, const char *value)
{
    if (dp_bad(out)) {
        return false;
    }
    hid_t set = H5Dopen2(out->group, dataset, H5P_DEFAULT);
    bool good = set >= 0 ? dp_text_on(out, set, name, value) : dp_fail_at(out, dataset);
    (void)H5Dclose(set);
    return good;
}

bool dp_h5out_int(dp_h5out *out, const char *name, int64_t value)
{
    if (dp_bad(out)) {
        return false;
    }
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(out->group, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0;
    (void)H5Aclose(attribute);
    (void)H5Sclose(space);
    return good || dp_fail_at(out, name);
}

bool dp_h5out_uint(dp_h5out *out, const char *name, const char *axes, int bytes, size_t rows,
                   size_t columns, const void *data)
{
    if (dp_bad(out)) {
        return false;
    }
    hid_t file_type = bytes == 1 ? H5T_STD_U8LE : bytes == 2 ? H5T_STD_U16LE : H5T_STD_U32LE;
    hid_t type = bytes == 1 ? H5T_NATIVE_UINT8 : bytes == 2 ? H5T_NATIVE_UINT16 : H5T_NATIVE_UINT32;
    hsize_t shape[2] = {rows, columns};
    size_t width = (columns == 0 ? 1 : columns) * (size_t)bytes;
    size_t chunk_rows = ((size_t)1 << 20) / width;
    hsize_t chunk[2] = {rows < chunk_rows ? rows : chunk_rows, columns};
    int rank = columns == 0 ? 1 : 2;
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    (void)H5Pset_chunk(how, rank, chunk);
    (void)H5Pset_shuffle(how);
    (void)H5Pset_deflate(how, (unsigned)out->level);
    hid_t set = H5Dcreate2(out->group, name, file_type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    bool good = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (good && axes != NULL) {
        good = dp_text_on(out, set, "axes", axes);
    }
    (void)H5Dclose(set);
    (void)H5Pclose(how);
    (void)H5Sclose(space);
    return good || dp_fail_at(out, name);
}
