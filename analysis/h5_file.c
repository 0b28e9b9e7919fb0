/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analysis/h5_internal.h"

void dp_h5_quiet(void)
{
    /* Every file is closed by name. HDF5 1.10 would close at exit what it failed to close before,
     * on a full file system, and crash. Works before the library is first used. */
    (void)H5dont_atexit();
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t take_innermost(unsigned n, const H5E_error2_t *entry, void *context)
{
    char *text = context;
    if (n == 0 && entry->desc != NULL) {
        (void)snprintf(text, 160, "%s", entry->desc);
    }
    return 0;
}

const char *dp_h5_detail(char text[160])
{
    text[0] = '\0';
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, text);
    if (text[0] == '\0') {
        (void)snprintf(text, 160, "no detail from HDF5");
    }
    return text;
}

/* A file on disk, or its bytes in memory. */
typedef struct {
    const char *path;
    const void *image; /* NULL for a file on disk */
    size_t size;
    char detail[160]; /* why it could not be opened */
} source;

static hid_t open_source(void *context)
{
    source *from = context;
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    hid_t id = H5I_INVALID_HID;
    bool good = list >= 0 && H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) >= 0;
    if (good && from->image != NULL) {
        char *copy = malloc(from->size > 0 ? from->size : 1); /* HDF5 wants it writable */
        good = copy != NULL;
        if (good) {
            memcpy(copy, from->image, from->size);
            good = H5Pset_fapl_core(list, (size_t)1 << 16, false) >= 0 &&
                   H5Pset_file_image(list, copy, from->size) >= 0;
        }
        free(copy);
    }
    if (good) {
        id = H5Fopen(from->path, H5F_ACC_RDONLY, list);
        (void)dp_h5_detail(from->detail); /* the next call clears it */
    }
    if (list >= 0) {
        (void)H5Pclose(list);
    }
    return id;
}

static bool open_checked(dp_h5 *file, source *from, dp_error *error)
{
    file->bytes = from->size;
    file->limit = DP_H5_DEFAULT_LIMIT;
    if (!dp_h5_probe(file->path, open_source, from, error)) {
        return false;
    }
    file->id = open_source(from);
    return file->id >= 0 ||
           dp_fail(error,
                   "%s: HDF5 cannot open it (%s): it is cut short, damaged or not an HDF5 "
                   "file; write it again",
                   file->path, from->detail);
}

bool dp_h5_open(dp_h5 *file, const char *path, dp_error *error)
{
    struct stat status;
    file->id = H5I_INVALID_HID;
    dp_h5_quiet();
    if (strlen(path) >= sizeof file->path) {
        return dp_fail(error, "%.200s...: the path is too long: shorten it", path);
    }
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    if (stat(path, &status) != 0) {
        return dp_fail(error, "%s: cannot be opened (%s): check the name", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return dp_fail(error, "%s: it is %s: give the name of an HDF5 file", path,
                       S_ISDIR(status.st_mode) ? "a directory" : "not a regular file");
    }
    FILE *readable = fopen(path, "rb");
    if (readable == NULL) {
        return dp_fail(error, "%s: cannot be opened (%s): check its permissions", path,
                       strerror(errno));
    }
    (void)fclose(readable);
    source from = {file->path, NULL, (size_t)status.st_size, ""};
    return open_checked(file, &from, error);
}

bool dp_h5_open_image(dp_h5 *file, const char *name, const void *image, size_t size,
                      dp_error *error)
{
    source from = {name, image, size, ""};
    file->id = H5I_INVALID_HID;
    dp_h5_quiet();
    (void)snprintf(file->path, sizeof file->path, "%s", name);
    return open_checked(file, &from, error);
}

void dp_h5_close(dp_h5 *file)
{
    if (file->id >= 0) {
        (void)H5Fclose(file->id);
        file->id = H5I_INVALID_HID;
    }
}

/* Walk the links one by one: HDF5 would follow an external link into another file. */
bool dp_h5_check_path(const dp_h5 *file, const char *path, dp_error *error)
{
    char part[1024];
    if (strlen(path) >= sizeof part || path[0] != '/') {
        return dp_fail(error, "%s: '%.64s' is not a path in the file: give one such as /inputs/q",
                       file->path, path);
    }
    for (const char *end = path; *end != '\0';) {
        end += 1 + strcspn(end + 1, "/");
        const size_t length = (size_t)(end - path);
        memcpy(part, path, length);
        part[length] = '\0';
        if (strcmp(part, "/") == 0) {
            return true;
        }
        H5L_info_t link;
        const htri_t found = H5Lexists(file->id, part, H5P_DEFAULT);
        if (found <= 0 || H5Lget_info(file->id, part, &link, H5P_DEFAULT) < 0) {
            char detail[160];
            return found == 0 ? dp_fail(error, "%s: there is no %s: add it", file->path, part)
                              : dp_fail(error,
                                        "%s:%s: it cannot be looked up (%s): the file is "
                                        "damaged; write it again",
                                        file->path, part, dp_h5_detail(detail));
        }
        if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT) {
            return dp_fail(error,
                           "%s:%s: it is a link to another file: copy the data into this one",
                           file->path, part);
        }
    }
    return true;
}

bool dp_h5_exists(const dp_h5 *file, const char *path)
{
    dp_error ignored = {""};
    return dp_h5_check_path(file, path, &ignored) &&
           H5Oexists_by_name(file->id, path, H5P_DEFAULT) > 0;
}

bool dp_h5_leads(const dp_h5 *file, const char *path, dp_error *error)
{
    char part[1024];
    (void)snprintf(part, sizeof part, "%s", path);
    for (char *end = strchr(part + 1, '/');; end = strchr(end + 1, '/')) {
        if (end != NULL) {
            *end = '\0';
        }
        if (H5Lexists(file->id, part, H5P_DEFAULT) == 0) {
            return true;
        }
        dp_error why = {""};
        if (!dp_h5_check_path(file, part, &why)) {
            return dp_fail(error, "%s", why.text);
        }
        if (H5Oexists_by_name(file->id, part, H5P_DEFAULT) <= 0) {
            return dp_fail(error, "%s:%s: it is a link to nothing: store the data there",
                           file->path, part);
        }
        if (end == NULL) {
            return true;
        }
        *end = '/';
    }
}

const char *dp_h5_dims_text(int rank, const uint64_t *dims, char text[200])
{
    size_t used = (size_t)snprintf(text, 200, "[");
    for (int i = 0; i < rank && used < 170; i++) {
        used += (size_t)snprintf(text + used, 200 - used, "%s%llu", i > 0 ? ", " : "",
                                 (unsigned long long)dims[i]);
    }
    (void)snprintf(text + used, 200 - used, "]");
    return text;
}
