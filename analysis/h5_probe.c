/* SPDX-License-Identifier: MIT
 *
 * HDF5 1.10 can crash or spin on damaged metadata (found by tests/fuzz: a global heap object of
 * size 0 is an endless loop, a cut object header a read outside its buffer). A child process
 * therefore walks the whole file first, links, types, extents, chunk indices and attributes; only
 * when it comes back in good order does this process touch the file.
 */
#define _XOPEN_SOURCE 700 /* setrlimit */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/h5_internal.h"

enum { PROBE_SECONDS = 2, PROBE_ATTRIBUTE_BYTES = 1 << 24 };

#if defined(__SANITIZE_ADDRESS__)
#define PROBE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PROBE_SANITIZED 1
#endif
#endif

static herr_t touch_attribute(hid_t object, const char *name, const H5A_info_t *info, void *unused)
{
    (void)info;
    (void)unused;
    const hid_t id = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t type = id >= 0 ? H5Aget_type(id) : -1;
    const hid_t space = id >= 0 ? H5Aget_space(id) : -1;
    const hssize_t count = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    const size_t size = type >= 0 ? H5Tget_size(type) : 0;
    if (count > 0 && size > 0 && (size_t)count <= PROBE_ATTRIBUTE_BYTES / size) {
        void *data = calloc((size_t)count, size);
        if (data != NULL && H5Aread(id, type, data) >= 0) {
            (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, data);
        }
        free(data);
    }
    (void)H5Sclose(space);
    (void)H5Tclose(type);
    (void)H5Aclose(id);
    return 0;
}

/* All attributes, and those a reader looks for by name: HDF5 finds them in another way. */
static void touch_attributes(hid_t object)
{
    static const char *const names[] = {"schema", "kind",   "producer", "softmax_scale", "causal",
                                        "model",  "layer",  "note",     "kv_of_q",       "format",
                                        "axes",   "layout", "block",    "rows",          "columns"};
    hsize_t at = 0;
    (void)H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, touch_attribute, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (H5Aexists_by_name(object, ".", names[i], H5P_DEFAULT) > 0) {
            (void)touch_attribute(object, names[i], NULL, NULL);
        }
    }
}

static void touch_dataset(hid_t set)
{
    const hid_t type = H5Dget_type(set);
    const hid_t space = H5Dget_space(set);
    const hid_t plan = H5Dget_create_plist(set);
    if (type >= 0 && space >= 0 && plan >= 0) {
        char text[96];
        hsize_t chunks = 0;
        dp_h5_describe_type(type, text, sizeof text);
        (void)H5Dget_storage_size(set);
        (void)H5Dget_offset(set);
        if (H5Pget_layout(plan) == H5D_CHUNKED) {
            (void)H5Dget_num_chunks(set, space, &chunks);
        }
    }
    (void)H5Pclose(plan);
    (void)H5Sclose(space);
    (void)H5Tclose(type);
}

static herr_t touch_link(hid_t group, const char *name, const H5L_info_t *info, void *unused)
{
    (void)unused;
    if (info->type != H5L_TYPE_HARD) {
        return 0;
    }
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object >= 0) {
        if (H5Iget_type(object) == H5I_DATASET) {
            touch_dataset(object);
        }
        touch_attributes(object);
        (void)H5Oclose(object);
    }
    return 0;
}

/* A damaged size field must not take the machine's memory with it. */
static void limit_child(void)
{
    const struct rlimit no_core = {0, 0};
    const struct rlimit seconds = {PROBE_SECONDS, PROBE_SECONDS + 1};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_CPU, &seconds);
#if !defined(PROBE_SANITIZED)
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    const bool known = statm != NULL && fscanf(statm, "%lu", &pages) == 1;
    if (statm != NULL) {
        (void)fclose(statm);
    }
    if (known) {
        const rlim_t bytes = (rlim_t)pages * 4096u + ((rlim_t)2 << 30);
        const struct rlimit memory = {bytes, bytes};
        (void)setrlimit(RLIMIT_AS, &memory);
    }
#endif
}

/* What the C library says when it aborts is not for the user. */
static void silence_child(void)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDERR_FILENO);
        (void)dup2(null, STDOUT_FILENO);
    }
}

static void walk(hid_t (*open_file)(void *), void *context)
{
    const hid_t file = open_file(context);
    if (file >= 0) {
        touch_attributes(file);
        (void)H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, touch_link, NULL);
        (void)H5Fclose(file);
    }
}

bool dp_h5_probe(const char *path, hid_t (*open_file)(void *), void *context, dp_error *error)
{
    const pid_t child = fork();
    if (child == 0) {
        limit_child();
        silence_child();
        walk(open_file, context);
        _exit(0);
    }
    int status = 0;
    pid_t waited = -1;
    while (child > 0 && (waited = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    if (waited != child || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        return true; /* without a child there is no verdict */
    }
    return dp_fail(error,
                   "%s: the HDF5 library %s while reading it: the file is damaged; write it "
                   "again",
                   path,
                   WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? "ran for ever" : "crashed");
}
