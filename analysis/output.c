/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* realpath */
#include "analysis/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A signal handler can reach nothing but static data: the names it must remove. */
enum { SLOTS = 8 };
static char open_files[SLOTS][DP_PATH_SIZE];
static volatile sig_atomic_t slot_used[SLOTS];

void dp_output_abandon_all(void)
{
    for (int i = 0; i < SLOTS; i++) {
        if (slot_used[i] != 0) {
            (void)unlink(open_files[i]);
            slot_used[i] = 0;
        }
    }
}

static void on_signal(int number)
{
    const int saved = errno;
    dp_output_abandon_all();
    errno = saved;
    (void)raise(number); /* SA_RESETHAND: now with its default effect */
}

/* Signals the caller ignores (nohup) stay ignored. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
            memset(&action, 0, sizeof action);
            action.sa_handler = on_signal;
            action.sa_flags = (int)SA_RESETHAND;
            (void)sigemptyset(&action.sa_mask);
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit: write() says so */
}

static int take_slot(const char *temporary)
{
    for (int i = 0; i < SLOTS; i++) {
        if (slot_used[i] == 0) {
            (void)snprintf(open_files[i], DP_PATH_SIZE, "%s", temporary);
            slot_used[i] = 1;
            return i;
        }
    }
    return -1;
}

/* Check the target and resolve links, so that rename replaces the file and not a link to it. */
static bool resolve(dp_output *output, const char *path, const char *const *inputs, size_t count,
                    dp_error *error)
{
    struct stat target;
    if (strlen(path) >= DP_PATH_SIZE - 64) {
        return dp_fail(error, "%.200s...: the output path is too long: shorten it", path);
    }
    (void)snprintf(output->path, sizeof output->path, "%s", path);
    if (stat(path, &target) != 0) {
        if (errno == ENOENT) {
            return true;
        }
        return dp_fail(error, "%s: cannot be written (%s): choose another output", path,
                       strerror(errno));
    }
    if (!S_ISREG(target.st_mode)) {
        return dp_fail(error, "%s: it is %s: give the name of an output file", path,
                       S_ISDIR(target.st_mode) ? "a directory" : "not a regular file");
    }
    for (size_t i = 0; i < count; i++) {
        struct stat input;
        if (stat(inputs[i], &input) == 0 && input.st_dev == target.st_dev &&
            input.st_ino == target.st_ino) {
            return dp_fail(error, "%s: it is also an input: choose another output", path);
        }
    }
    char *real = realpath(path, NULL);
    if (real != NULL && strlen(real) < DP_PATH_SIZE - 64) {
        (void)snprintf(output->path, sizeof output->path, "%s", real);
    }
    free(real);
    return true;
}

/* "FOLDER/.NAME.directp-PID-N.tmp" */
static void name_temporary(dp_output *output, int attempt)
{
    char folder[DP_PATH_SIZE];
    char file[DP_PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", output->path);
    (void)snprintf(file, sizeof file, "%s", output->path);
    const int written =
        snprintf(output->temporary, sizeof output->temporary, "%s/.%s.directp-%ld-%d.tmp",
                 dirname(folder), basename(file), (long)getpid(), attempt);
    if (written >= DP_PATH_SIZE) {
        output->temporary[0] = '\0'; /* open() will then fail with ENOENT */
    }
}

bool dp_output_begin(dp_output *output, const char *path, const char *const *inputs, size_t count,
                     dp_error *error)
{
    output->slot = -1;
    output->temporary[0] = '\0';
    if (!resolve(output, path, inputs, count, error)) {
        return false;
    }
    catch_signals();
    int descriptor = -1;
    for (int attempt = 0; attempt < 100 && descriptor < 0; attempt++) {
        name_temporary(output, attempt);
        descriptor = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST) {
            break;
        }
    }
    if (descriptor < 0) {
        return dp_fail(error,
                       "%s: cannot be created (%s): check that its folder exists and is "
                       "writable",
                       path, strerror(errno));
    }
    (void)close(descriptor);
    output->slot = take_slot(output->temporary);
    if (output->slot < 0) {
        (void)unlink(output->temporary);
        return dp_fail(error, "%s: more than %d outputs are open: please report this bug", path,
                       SLOTS);
    }
    return true;
}

static bool sync_path(const char *path, int flags)
{
    const int descriptor = open(path, flags | O_CLOEXEC);
    if (descriptor < 0) {
        return false;
    }
    const bool good = fsync(descriptor) == 0;
    return close(descriptor) == 0 && good;
}

bool dp_output_commit(dp_output *output, dp_error *error)
{
    if (output->slot < 0) {
        return dp_fail(error, "%s: it is not open: please report this bug", output->path);
    }
    if (!sync_path(output->temporary, O_RDONLY) || rename(output->temporary, output->path) != 0) {
        (void)dp_fail(error, "%s: cannot be written (%s): free some space or choose another output",
                      output->path, strerror(errno));
        dp_output_abandon(output);
        return false;
    }
    slot_used[output->slot] = 0;
    output->slot = -1;
    char folder[DP_PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", output->path);
    (void)sync_path(dirname(folder), O_RDONLY); /* some file systems cannot sync a folder */
    return true;
}

void dp_output_abandon(dp_output *output)
{
    if (output->slot >= 0) {
        (void)unlink(output->temporary);
        slot_used[output->slot] = 0;
        output->slot = -1;
    }
}
