/* SPDX-License-Identifier: MIT
 *
 * Work split over threads so that the result cannot depend on how many there are: items are
 * independent, numbered, and each is done by exactly one thread.
 */
#ifndef DP_FORMATS_PARALLEL_H
#define DP_FORMATS_PARALLEL_H

#include "formats/base.h"

DP_BEGIN_C

/* Do items [first, last). thread is 0 .. threads-1, for scratch memory a caller keeps per thread.
 */
typedef void dp_parallel_body(void *context, size_t first, size_t last, int thread);

/* Run body over [0, items) in chunks of at least `grain` items (0 counts as 1).
 * threads <= 0 means one per online CPU. The calling thread works too. If a thread cannot be
 * created the remaining ones do its share. */
void dp_parallel_for(int threads, size_t items, size_t grain, dp_parallel_body *body,
                     void *context);

/* The number of threads that `threads` means: itself when positive, else the online CPUs. */
int dp_parallel_threads(int threads);

DP_END_C

#endif
