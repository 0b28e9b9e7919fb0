/* SPDX-License-Identifier: MIT
 *
 * A folder of its own for each test program, and the built command run as a user runs it.
 */
#ifndef DP_TESTS_ANALYSIS_SCRATCH_H
#define DP_TESTS_ANALYSIS_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static char scratch_folder[256];

/* Path of a file in the folder, made on first use. Four buffers take turns. */
static inline const char *scratch(const char *name)
{
    static char paths[4][512];
    static int turn;
    if (scratch_folder[0] == '\0') {
        const char *parent = getenv("TMPDIR");
        (void)snprintf(scratch_folder, sizeof scratch_folder, "%s/directp-test-XXXXXX",
                       parent != NULL ? parent : "/tmp");
        ck_assert_ptr_nonnull(mkdtemp(scratch_folder));
    }
    turn = (turn + 1) % 4;
    (void)snprintf(paths[turn], sizeof paths[turn], "%s/%s", scratch_folder, name);
    return paths[turn];
}

/* Number of files in the folder whose name contains text. */
static inline int scratch_count(const char *text)
{
    (void)scratch("");
    DIR *folder = opendir(scratch_folder);
    int found = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        found += strstr(entry->d_name, text) != NULL && strcmp(entry->d_name, ".") != 0 &&
                 strcmp(entry->d_name, "..") != 0;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return found;
}

/* Remove the folder and its files. */
static inline void scratch_remove(void)
{
    if (scratch_folder[0] == '\0') {
        return;
    }
    DIR *folder = opendir(scratch_folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlink(scratch(entry->d_name));
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    (void)rmdir(scratch_folder);
    scratch_folder[0] = '\0';
}

/* The whole of a file as text (cut at size - 1). */
static inline const char *scratch_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "rb");
    size_t got = 0;
    if (file != NULL) {
        got = fread(text, 1, size - 1, file);
        (void)fclose(file);
    }
    text[got] = '\0';
    return text;
}

/* What the command did. */
typedef struct {
    int status; /* exit status, or 128 + the signal that ended it */
    char out[65536];
    char err[8192];
} dp_run;

/* Run "directp ARGUMENTS" through the shell, standard output to `out`. */
static inline void run_directp_into(dp_run *run, const char *arguments, const char *out)
{
    char line[8192];
    const char *command = getenv("DIRECTP");
    ck_assert_msg(command != NULL, "DIRECTP is not set");
    const char *err = scratch("run.err");
    (void)snprintf(line, sizeof line, "'%s' %s > '%s' 2> '%s'", command, arguments, out, err);
    const int status = system(line);
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run->out[0] = '\0';
    (void)scratch_text(err, run->err, sizeof run->err);
}

/* The same with its output kept. */
static inline void run_directp(dp_run *run, const char *arguments)
{
    const char *out = scratch("run.out");
    run_directp_into(run, arguments, out);
    (void)scratch_text(out, run->out, sizeof run->out);
}

/* The command refused: exit status 2, nothing on standard output, one line on standard error that
 * begins "directp: " and contains text. */
static inline void assert_refused(const char *arguments, const char *text)
{
    static dp_run run;
    run_directp(&run, arguments);
    ck_assert_msg(run.status == 2, "'%s' ended with %d, error: %s", arguments, run.status, run.err);
    ck_assert_msg(run.out[0] == '\0', "'%s' printed: %s", arguments, run.out);
    ck_assert_msg(strncmp(run.err, "directp: ", 9) == 0, "'%s' said: %s", arguments, run.err);
    ck_assert_msg(strchr(run.err, '\n') == run.err + strlen(run.err) - 1, "'%s' said: %s",
                  arguments, run.err);
    ck_assert_msg(strstr(run.err, text) != NULL, "'%s' said: %s (wanted '%s')", arguments, run.err,
                  text);
}

#endif
