/* SPDX-License-Identifier: MIT */
#include "formats/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { DP_MAX_THREADS = 256 };

typedef struct {
    dp_parallel_body *body;
    void *context;
    size_t items;
    size_t grain;
    atomic_size_t next;
} shared_work;

typedef struct {
    shared_work *work;
    int index;
} worker;

int dp_parallel_threads(int threads)
{
    if (threads <= 0) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        threads = online > 0 ? (int)online : 1;
    }
    return threads < DP_MAX_THREADS ? threads : DP_MAX_THREADS;
}

static void *run_worker(void *argument)
{
    const worker *self = argument;
    shared_work *work = self->work;
    for (;;) {
        const size_t first = atomic_fetch_add(&work->next, work->grain);
        if (first >= work->items) {
            return NULL;
        }
        const size_t left = work->items - first;
        const size_t last = first + (left < work->grain ? left : work->grain);
        work->body(work->context, first, last, self->index);
    }
}

void dp_parallel_for(int threads, size_t items, size_t grain, dp_parallel_body *body, void *context)
{
    if (items == 0) {
        return;
    }
    if (grain == 0) {
        grain = 1;
    }
    threads = dp_parallel_threads(threads);
    const size_t chunks = (items - 1) / grain + 1;
    if ((size_t)threads > chunks) {
        threads = (int)chunks;
    }
    if (threads == 1) {
        body(context, 0, items, 0);
        return;
    }
    shared_work work = {.body = body, .context = context, .items = items, .grain = grain};
    atomic_init(&work.next, 0);
    worker workers[DP_MAX_THREADS];
    pthread_t handles[DP_MAX_THREADS];
    int created = 0;
    for (int i = 1; i < threads; i++) {
        workers[i] = (worker){.work = &work, .index = i};
        if (pthread_create(&handles[created], NULL, run_worker, &workers[i]) != 0) {
            break;
        }
        created++;
    }
    workers[0] = (worker){.work = &work, .index = 0};
    (void)run_worker(&workers[0]);
    for (int i = 0; i < created; i++) {
        (void)pthread_join(handles[i], NULL);
    }
}
