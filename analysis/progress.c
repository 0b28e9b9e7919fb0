/* SPDX-License-Identifier: MIT */
#include "analysis/progress.h"

#include <stdio.h>
#include <unistd.h>

void dp_progress_start(dp_progress *progress, const char *what, size_t total)
{
    progress->what = what;
    progress->total = total > 0 ? total : 1;
    atomic_init(&progress->done, 0);
    atomic_init(&progress->drawn, -1);
    progress->terminal = isatty(STDERR_FILENO) == 1;
}

void dp_progress_add(dp_progress *progress, size_t units)
{
    const size_t done = atomic_fetch_add(&progress->done, units) + units;
    if (!progress->terminal) {
        return;
    }
    const int percent = (int)(100 * done / progress->total);
    int drawn = atomic_load(&progress->drawn);
    if (percent > drawn && atomic_compare_exchange_strong(&progress->drawn, &drawn, percent)) {
        char bar[41];
        for (int i = 0; i < 40; i++) {
            bar[i] = i < percent * 40 / 100 ? '#' : '.';
        }
        bar[40] = '\0';
        (void)fprintf(stderr, "\r%s [%s] %3d%%", progress->what, bar, percent);
    }
}

void dp_progress_end(dp_progress *progress)
{
    if (progress->terminal) {
        (void)fputs("\r\033[K", stderr);
    }
}
