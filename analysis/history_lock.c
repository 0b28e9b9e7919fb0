/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* fcntl locks, nanosleep */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/history.h"

/* The lock file of a history, in the folder of the file that a link leads to. */
static bool name_of(const char *path, char name[DP_PATH_SIZE], dp_error *error)
{
    char real[DP_PATH_SIZE], folder[DP_PATH_SIZE], file[DP_PATH_SIZE];
    char *resolved = strlen(path) < DP_PATH_SIZE - 64 ? realpath(path, NULL) : NULL;
    (void)snprintf(real, sizeof real, "%s", resolved != NULL ? resolved : path);
    free(resolved);
    (void)snprintf(folder, sizeof folder, "%s", real);
    (void)snprintf(file, sizeof file, "%s", real);
    return snprintf(name, DP_PATH_SIZE, "%s/.%s.lock", dirname(folder), basename(file)) <
               DP_PATH_SIZE ||
           dp_fail(error, "%.200s...: the path is too long: shorten it", path);
}

/* Is the open file still the one of this name? Another process may have removed it. */
static bool still_there(int descriptor, const char *name)
{
    struct stat open_file, named;
    return fstat(descriptor, &open_file) == 0 && stat(name, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

/* One attempt. 1: taken, 0: somebody has it, -1: an error. */
static int attempt(dp_history_lock *lock)
{
    const int descriptor = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (descriptor < 0) {
        return -1;
    }
    if (fcntl(descriptor, F_SETLK, &whole) != 0) {
        const int why = errno;
        (void)close(descriptor);
        errno = why;
        return why == EACCES || why == EAGAIN ? 0 : -1;
    }
    if (!still_there(descriptor, lock->path)) {
        (void)close(descriptor);
        return 0;
    }
    lock->descriptor = descriptor;
    return 1;
}

bool dp_history_lock_take(dp_history_lock *lock, const char *path, double seconds, dp_error *error)
{
    const struct timespec pause = {0, 20000000};
    lock->descriptor = -1;
    if (!name_of(path, lock->path, error)) {
        return false;
    }
    for (double waited = 0.0;; waited += 0.02) {
        const int got = attempt(lock);
        if (got > 0) {
            return true;
        }
        if (got < 0) {
            return dp_fail(error,
                           "%s: its lock %s cannot be taken (%s): check that the folder exists "
                           "and is writable",
                           path, lock->path, strerror(errno));
        }
        if (waited >= seconds) {
            return dp_fail(error,
                           "%s: another process has been writing it for %.0f seconds: nothing was "
                           "recorded; try again",
                           path, seconds);
        }
        (void)nanosleep(&pause, NULL);
    }
}

void dp_history_lock_release(dp_history_lock *lock)
{
    if (lock->descriptor >= 0) {
        (void)unlink(lock->path); /* while it is held: who waits for it opens a new one */
        (void)close(lock->descriptor);
        lock->descriptor = -1;
    }
}
