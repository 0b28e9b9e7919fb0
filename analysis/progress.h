/* SPDX-License-Identifier: MIT
 *
 * A progress bar on standard error, drawn only when that is a terminal.
 */
#ifndef DP_ANALYSIS_PROGRESS_H
#define DP_ANALYSIS_PROGRESS_H

#include <stdatomic.h>

#include "formats/base.h"

typedef struct {
    const char *what;   /* "range S=8192" */
    size_t total;       /* units of work */
    atomic_size_t done; /* advanced by any thread */
    atomic_int drawn;   /* percent last drawn, -1 at first */
    bool terminal;
} dp_progress;

void dp_progress_start(dp_progress *progress, const char *what, size_t total);
/* Callable from any thread. */
void dp_progress_add(dp_progress *progress, size_t units);
/* Erase the bar. */
void dp_progress_end(dp_progress *progress);

#endif
