/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/h5_internal.h"
#include "analysis/numbers.h"
#include "formats/fp16.h"

enum { ATTRIBUTE_BYTES = 1 << 20, ATTRIBUTE_COUNT = 65536 };

typedef struct {
    hid_t id, type, space;
    size_t count;
    dp_h5_stored stored;
} attribute;

static void close_attribute(attribute *a)
{
    if (a->space >= 0) {
        (void)H5Sclose(a->space);
    }
    if (a->type >= 0) {
        (void)H5Tclose(a->type);
    }
    if (a->id >= 0) {
        (void)H5Aclose(a->id);
    }
}

static bool bad(const dp_h5 *file, const char *object, const char *name, const char *what,
                dp_error *error)
{
    return dp_fail(error, "%s:%s: attribute '%s' %s", file->path, object, name, what);
}

bool dp_h5_has_attribute(const dp_h5 *file, const char *object, const char *name)
{
    dp_error ignored = {""};
    return dp_h5_check_path(file, object, &ignored) &&
           H5Aexists_by_name(file->id, object, name, H5P_DEFAULT) > 0;
}

static bool open_attribute(const dp_h5 *file, const char *object, const char *name, attribute *a,
                           dp_error *error)
{
    *a = (attribute){.id = -1, .type = -1, .space = -1};
    if (!dp_h5_check_path(file, object, error)) {
        return false;
    }
    const htri_t found = H5Aexists_by_name(file->id, object, name, H5P_DEFAULT);
    if (found == 0) {
        return bad(file, object, name, "is missing: add it (analysis/FILES.md lists them)", error);
    }
    a->id = found > 0 ? H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, H5P_DEFAULT) : -1;
    a->type = a->id >= 0 ? H5Aget_type(a->id) : -1;
    a->space = a->id >= 0 ? H5Aget_space(a->id) : -1;
    const hssize_t count = a->space >= 0 ? H5Sget_simple_extent_npoints(a->space) : -1;
    if (a->type < 0 || count < 0) {
        return bad(file, object, name, "cannot be read: the file is damaged; write it again",
                   error);
    }
    if (count == 0 || count > ATTRIBUTE_COUNT ||
        H5Tget_size(a->type) > ATTRIBUTE_BYTES / (size_t)count) {
        return bad(file, object, name, "is empty or too large: write it again", error);
    }
    a->count = (size_t)count;
    a->stored = dp_h5_classify(a->type);
    return true;
}

/* The elements in native byte order, in memory the caller frees. */
static void *read_numbers(const dp_h5 *file, const char *object, const char *name,
                          const attribute *a, dp_error *error)
{
    if (!a->stored.integer && a->stored.type == DP_H5_OTHER) {
        char text[96];
        char what[160];
        dp_h5_describe_type(a->type, text, sizeof text);
        (void)snprintf(what, sizeof what, "is a %s: write a number", text);
        (void)bad(file, object, name, what, error);
        return NULL;
    }
    void *data = calloc(a->count, a->stored.size);
    if (data == NULL || H5Aread(a->id, a->type, data) < 0) {
        free(data);
        (void)bad(file, object, name, "cannot be read: the file is damaged; write it again", error);
        return NULL;
    }
    dp_h5_to_native(data, a->count, a->stored);
    return data;
}

bool dp_h5_i64_list(const dp_h5 *file, const char *object, const char *name, int64_t **values,
                    size_t *count, dp_error *error)
{
    attribute a;
    *values = NULL;
    void *raw = open_attribute(file, object, name, &a, error)
                    ? read_numbers(file, object, name, &a, error)
                    : NULL;
    bool good = raw != NULL;
    if (good && !a.stored.integer) {
        good = bad(file, object, name, "is not an integer: write integers", error);
    }
    if (good) {
        *count = a.count;
        *values = malloc(a.count * sizeof **values);
        good = *values != NULL || bad(file, object, name, "finds no memory: free some", error);
    }
    for (size_t i = 0; good && i < a.count; i++) {
        (*values)[i] = dp_h5_integer_at(raw, i, a.stored);
        good = dp_h5_integer_fits(raw, i, a.stored) ||
               bad(file, object, name, "is beyond 2^63: check how it was written", error);
    }
    if (!good) {
        free(*values);
        *values = NULL;
    }
    free(raw);
    close_attribute(&a);
    return good;
}

bool dp_h5_i64(const dp_h5 *file, const char *object, const char *name, int64_t *value,
               dp_error *error)
{
    int64_t *list;
    size_t count = 0;
    if (!dp_h5_i64_list(file, object, name, &list, &count, error)) {
        return false;
    }
    *value = list[0];
    free(list);
    return count == 1 || bad(file, object, name, "is a list: write a single integer", error);
}

static double real_of(const void *raw, const attribute *a)
{
    uint16_t half;
    float single;
    double real;
    switch (a->stored.type) {
    case DP_H5_F16:
        memcpy(&half, raw, sizeof half);
        return (double)dp_fp16_to_f32((dp_fp16){half});
    case DP_H5_F32:
        memcpy(&single, raw, sizeof single);
        return (double)single;
    case DP_H5_F64:
        memcpy(&real, raw, sizeof real);
        return real;
    default:
        return (double)dp_h5_integer_at(raw, 0, a->stored);
    }
}

bool dp_h5_f64(const dp_h5 *file, const char *object, const char *name, double *value,
               dp_error *error)
{
    attribute a;
    void *raw = open_attribute(file, object, name, &a, error)
                    ? read_numbers(file, object, name, &a, error)
                    : NULL;
    bool good = raw != NULL;
    if (good && a.count != 1) {
        good = bad(file, object, name, "is a list: write a single number", error);
    }
    if (good) {
        *value = real_of(raw, &a);
    }
    free(raw);
    close_attribute(&a);
    return good;
}

/* Variable-length text belongs to HDF5; copy it and give it back. */
static char *read_variable(const attribute *a)
{
    char *theirs = NULL;
    char *text = NULL;
    const hid_t memory = H5Tcopy(a->type);
    if (memory >= 0 && H5Aread(a->id, memory, &theirs) >= 0) {
        const size_t size = theirs != NULL ? strlen(theirs) + 1 : 1;
        text = size <= ATTRIBUTE_BYTES ? calloc(size, 1) : NULL;
        if (text != NULL && theirs != NULL) {
            memcpy(text, theirs, size);
        }
    }
    if (theirs != NULL) {
        (void)H5free_memory(theirs);
    }
    if (memory >= 0) {
        (void)H5Tclose(memory);
    }
    return text;
}

static char *read_fixed(const attribute *a)
{
    const size_t size = H5Tget_size(a->type);
    char *text = calloc(size + 1, 1);
    if (text != NULL && H5Aread(a->id, a->type, text) < 0) {
        free(text);
        return NULL;
    }
    if (text != NULL && H5Tget_strpad(a->type) == H5T_STR_SPACEPAD) {
        for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--) {
            text[end - 1] = '\0';
        }
    }
    return text;
}

bool dp_h5_text(const dp_h5 *file, const char *object, const char *name, char **text,
                dp_error *error)
{
    attribute a;
    *text = NULL;
    bool good = open_attribute(file, object, name, &a, error);
    if (good && (H5Tget_class(a.type) != H5T_STRING || a.count != 1)) {
        good = bad(file, object, name, "is not one text: write a string", error);
    }
    if (good) {
        *text = H5Tis_variable_str(a.type) > 0 ? read_variable(&a) : read_fixed(&a);
        good = *text != NULL || bad(file, object, name,
                                    "cannot be read: the file is damaged; write it again", error);
    }
    close_attribute(&a);
    return good;
}

bool dp_h5_check_root(const dp_h5 *file, const char *kinds, char **kind, dp_error *error)
{
    int64_t schema = 0;
    char *text = NULL;
    if (kind != NULL) {
        *kind = NULL;
    }
    if (!dp_h5_i64(file, "/", "schema", &schema, error)) {
        return false;
    }
    if (schema != 1) {
        return dp_fail(error,
                       "%s: its schema is %" PRId64 " and this program knows 1: use a newer "
                       "program",
                       file->path, schema);
    }
    if (!dp_h5_text(file, "/", "kind", &text, error)) {
        return false;
    }
    const bool good = dp_choice_index(kinds, text) >= 0 ||
                      dp_fail(error, "%s: its kind is '%.64s' and %s is needed: give another file",
                              file->path, text, kinds);
    if (good && kind != NULL) {
        *kind = text;
    } else {
        free(text);
    }
    return good;
}

bool dp_h5_check_format(const dp_h5 *file, const char *path, const char *formats, dp_error *error)
{
    char *text = NULL;
    if (!dp_h5_text(file, path, "format", &text, error)) {
        return false;
    }
    const bool good = dp_choice_index(formats, text) >= 0 ||
                      dp_fail(error, "%s:%s: its format is '%.64s' and %s is needed: convert it",
                              file->path, path, text, formats);
    free(text);
    return good;
}
