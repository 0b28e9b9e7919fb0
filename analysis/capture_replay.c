/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/capture.h"
#include "formats/parallel.h"

enum { GRAIN = 4096 };

/* --- counting --- */

typedef struct {
    dp_capture_compare *compare;
    const void *context;
    size_t count;
    uint64_t *bad; /* a chunk of GRAIN cases each */
    size_t *first;
} counting;

static void count_chunks(void *context, size_t first, size_t last, int thread)
{
    counting *c = context;
    (void)thread;
    for (size_t chunk = first; chunk < last; chunk++) {
        const size_t end = (chunk + 1) * GRAIN < c->count ? (chunk + 1) * GRAIN : c->count;
        for (size_t i = end; i > chunk * GRAIN; i--) {
            if (c->compare(c->context, i - 1)) {
                c->bad[chunk]++;
                c->first[chunk] = i - 1;
            }
        }
    }
}

uint64_t dp_capture_count(int threads, size_t count, dp_capture_compare *compare,
                          const void *context, size_t *first)
{
    const size_t chunks = (count + GRAIN - 1) / GRAIN;
    counting c = {.compare = compare, .context = context, .count = count};
    uint64_t total = 0;
    *first = count;
    c.bad = calloc(chunks + 1, sizeof *c.bad);
    c.first = calloc(chunks + 1, sizeof *c.first);
    if (c.bad == NULL || c.first == NULL) { /* slower, never wrong */
        for (size_t i = count; i > 0; i--) {
            const bool bad = compare(context, i - 1);
            total += bad ? 1 : 0;
            *first = bad ? i - 1 : *first;
        }
    } else {
        dp_parallel_for(threads, chunks, 1, count_chunks, &c);
        for (size_t chunk = chunks; chunk > 0; chunk--) {
            total += c.bad[chunk - 1];
            *first = c.bad[chunk - 1] > 0 ? c.first[chunk - 1] : *first;
        }
    }
    free(c.bad);
    free(c.first);
    return total;
}

/* --- reading --- */

bool dp_capture_text(const dp_capture_group *group, const char *name, char *text, size_t size,
                     dp_error *error)
{
    char *whole = NULL;
    if (!dp_h5_text(group->file, group->path, name, &whole, error)) {
        return false;
    }
    const bool fits = strlen(whole) < size;
    (void)snprintf(text, size, "%s", whole);
    free(whole);
    return fits || dp_fail(error, "%s:%s: its %s is longer than %zu letters: write a PTX name",
                           group->file->path, group->path, name, size - 1);
}

static void widen(uint32_t *words, const void *data, size_t count, int width)
{
    for (size_t i = 0; i < count; i++) {
        words[i] = width == 1   ? ((const uint8_t *)data)[i]
                   : width == 2 ? ((const uint16_t *)data)[i]
                                : ((const uint32_t *)data)[i];
    }
}

bool dp_capture_words(const dp_capture_group *group, const char *name, int least, int most,
                      dp_h5_shape *shape, int *width, uint32_t **words, dp_error *error)
{
    char path[200];
    dp_h5_type type;
    void *data;
    *words = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", group->path, name);
    if (!dp_h5_describe(group->file, path, &type, shape, error)) {
        return false;
    }
    if (shape->rank < least || shape->rank > most) {
        return dp_fail(error, "%s:%s: it has %d dimensions: give it %d", group->file->path, path,
                       shape->rank, least);
    }
    if (type == DP_H5_I32) {
        type = DP_H5_U32;
    }
    if (type != DP_H5_U8 && type != DP_H5_U16 && type != DP_H5_U32) {
        return dp_fail(error, "%s:%s: bits of 8, 16 or 32 are needed: store unsigned integers",
                       group->file->path, path);
    }
    *width = (int)dp_h5_size(type);
    if (!dp_h5_read(group->file, path, type, -1, shape, &data, error)) {
        return false;
    }
    *words = calloc(shape->count + 1, sizeof **words);
    if (*words != NULL) {
        widen(*words, data, shape->count, *width);
    }
    free(data);
    return *words != NULL ||
           dp_fail(error, "%s:%s: memory is short: free some", group->file->path, path);
}

/* --- the file --- */

typedef struct {
    char (*names)[128];
    size_t count;
    bool long_name, no_memory;
} name_list;

static herr_t take_name(hid_t parent, const char *name, const H5L_info_t *info, void *context)
{
    name_list *list = context;
    (void)parent;
    (void)info;
    char(*more)[128] = realloc(list->names, (list->count + 1) * sizeof *more);
    list->no_memory = more == NULL;
    list->names = more != NULL ? more : list->names;
    list->long_name = strlen(name) >= sizeof *more;
    if (list->no_memory || list->long_name) {
        return -1;
    }
    (void)snprintf(list->names[list->count++], sizeof *more, "%s", name);
    return 0;
}

static bool list_groups(const dp_h5 *file, name_list *list, dp_error *error)
{
    if (!dp_h5_exists(file, "/capture")) {
        return dp_fail(error, "%s: there is no group /capture: record the file again", file->path);
    }
    const hid_t parent = H5Gopen2(file->id, "/capture", H5P_DEFAULT);
    const bool good =
        parent >= 0 && H5Literate(parent, H5_INDEX_NAME, H5_ITER_INC, NULL, take_name, list) >= 0;
    if (parent >= 0) {
        (void)H5Gclose(parent);
    }
    if (good && list->count == 0) {
        return dp_fail(error, "%s: /capture is empty: record the file again", file->path);
    }
    return good || dp_fail(error, "%s: /capture cannot be listed%s: record the file again",
                           file->path, list->long_name ? " (a name is longer than 127)" : "");
}

/* Names from a file reach a terminal: no control characters. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F) {
            *text = '?';
        }
    }
}

/* The special functions of the device that the file names. */
static const dp_sfu *sfu_of_file(const dp_h5 *file)
{
    char *device = NULL;
    const dp_sfu *sfu = dp_sfu_exact();
    if (dp_h5_has_attribute(file, "/", "device") &&
        dp_h5_text(file, "/", "device", &device, NULL)) {
        sfu = strstr(device, "H200") != NULL ? dp_sfu_h200() : sfu;
        free(device);
    }
    return sfu;
}

static bool replay_group(const dp_capture_group *group, dp_error *error)
{
    char path[200];
    dp_capture_result *result = group->result;
    (void)snprintf(path, sizeof path, "%s/a", group->path);
    if (!dp_h5_exists(group->file, group->path)) {
        return dp_fail(error, "%s:%s: it lies in another file: copy it into this one",
                       group->file->path, group->path);
    }
    if (!dp_capture_text(group, "instruction", result->instruction, sizeof result->instruction,
                         error)) {
        return false;
    }
    return dp_h5_exists(group->file, path) ? dp_capture_matrix(group, error)
                                           : dp_capture_function(group, error);
}

static bool replay_file(const dp_h5 *file, const dp_capture_options *options,
                        dp_capture_result **results, size_t *count, dp_error *error)
{
    name_list list = {0};
    bool good = dp_h5_check_root(file, "capture", NULL, error) && list_groups(file, &list, error);
    *results = good ? calloc(list.count + 1, sizeof **results) : NULL;
    good =
        good && (*results != NULL || dp_fail(error, "%s: memory is short: free some", file->path));
    for (size_t i = 0; good && i < list.count; i++) {
        if (options->only != NULL && strcmp(options->only, list.names[i]) != 0) {
            continue;
        }
        dp_capture_group group = {.file = file, .options = options, .sfu = options->sfu};
        group.result = &(*results)[(*count)++];
        group.sfu = group.sfu != NULL ? group.sfu : sfu_of_file(file);
        (void)snprintf(group.path, sizeof group.path, "/capture/%s", list.names[i]);
        (void)snprintf(group.result->group, sizeof group.result->group, "%s", list.names[i]);
        good = replay_group(&group, error);
        make_printable(group.result->group);
        make_printable(group.result->instruction);
    }
    if (good && *count == 0) {
        good = dp_fail(error, "%s: there is no group /capture/%.64s: see its names with h5ls",
                       file->path, options->only);
    }
    free(list.names);
    return good;
}

bool dp_capture_replay(const char *path, const dp_capture_options *options,
                       dp_capture_result **results, size_t *count, dp_error *error)
{
    dp_h5 file;
    *results = NULL;
    *count = 0;
    bool good = dp_h5_open(&file, path, error);
    if (good) {
        good = replay_file(&file, options, results, count, error);
        dp_h5_close(&file);
    }
    if (!good) {
        free(*results);
        *results = NULL;
        *count = 0;
    }
    return good;
}
