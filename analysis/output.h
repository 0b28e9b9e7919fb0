/* SPDX-License-Identifier: MIT
 *
 * Output files that are whole or absent. The data goes to a temporary name in the folder of the
 * target; commit brings it to disk and renames it. Abandon, SIGINT, SIGTERM, SIGHUP and SIGPIPE
 * remove the temporary file. (SIGKILL cannot; the leftover is called .NAME.directp-PID-N.tmp.)
 */
#ifndef DP_ANALYSIS_OUTPUT_H
#define DP_ANALYSIS_OUTPUT_H

#include "formats/error.h"

enum { DP_PATH_SIZE = 4096 };

typedef struct {
    char path[DP_PATH_SIZE];      /* the target, links resolved */
    char temporary[DP_PATH_SIZE]; /* write here */
    int slot;                     /* place in the list the signal handlers clean, -1 when closed */
} dp_output;

/* Create the temporary file for `path`. Refuses a target that is one of the `count` input files,
 * a directory or anything else that is not a regular file. Call from the main thread. */
bool dp_output_begin(dp_output *output, const char *path, const char *const *inputs, size_t count,
                     dp_error *error);
/* Flush the temporary file to disk and rename it onto the target. The file must be closed. On
 * failure the temporary file is removed. */
bool dp_output_commit(dp_output *output, dp_error *error);
/* Remove the temporary file; does nothing after commit. */
void dp_output_abandon(dp_output *output);

/* Remove every temporary file that is open, from a signal handler. */
void dp_output_abandon_all(void);

#endif
