/* SPDX-License-Identifier: MIT
 *
 * A standard path over whole tensors: memory, threads, counts.
 */
#include "ref/forward/route.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "formats/environment.h"
#include "formats/parallel.h"
#include "ref/forward/route_strip.h"

/* The threads' share of a run. */
typedef struct {
    dp_route_run_state *run;
    atomic_bool stopped; /* one of them failed */
} crew;

static void prepare_tiles(void *context, size_t first, size_t last, int thread)
{
    crew *all = context;
    dp_route_run_state *run = all->run;
    for (size_t i = first; i < last && !atomic_load(&all->stopped); i++) {
        if (!dp_route_prepare_tile(run, i, &run->spaces[thread])) {
            atomic_store(&all->stopped, true);
        }
    }
}

static void run_strips(void *context, size_t first, size_t last, int thread)
{
    crew *all = context;
    dp_route_run_state *run = all->run;
    for (size_t i = first; i < last && !atomic_load(&all->stopped); i++) {
        if (!dp_route_strip(run, i, &run->spaces[thread])) {
            atomic_store(&all->stopped, true);
        }
    }
}

static bool allocate(dp_route_run_state *run, size_t matrices, int threads)
{
    const bool int8 = run->route->qk == DP_OPERAND_INT8;
    const size_t most = run->tile > DP_TILE ? run->tile : DP_TILE;
    run->k = calloc(matrices, sizeof *run->k);
    run->v = calloc(matrices, sizeof *run->v);
    run->k8 = calloc(int8 ? matrices * run->tile * run->dim : 1, sizeof *run->k8);
    run->k8_scale = calloc(int8 ? matrices * run->tile : 1, sizeof *run->k8_scale);
    run->spaces = calloc((size_t)threads, sizeof *run->spaces);
    bool good = run->k != NULL && run->v != NULL && run->k8 != NULL && run->k8_scale != NULL &&
                run->spaces != NULL;
    for (int t = 0; good && t < threads; t++) {
        dp_route_space *space = &run->spaces[t];
        space->x = malloc(most * run->dim * sizeof(float));
        space->q8 = malloc(DP_TILE * run->dim * sizeof *space->q8);
        space->raw = malloc(DP_TILE * run->tile * sizeof(float));
        space->acc = malloc(DP_TILE * run->dim * sizeof(float));
        space->fresh = malloc(DP_TILE * run->dim * sizeof(float));
        space->payload = malloc(2 * DP_TILE * run->tile);
        space->scale = malloc(DP_TILE * run->tile / 16);
        good = space->x != NULL && space->q8 != NULL && space->raw != NULL && space->acc != NULL &&
               space->fresh != NULL && space->payload != NULL && space->scale != NULL;
    }
    return good;
}

static void release(dp_route_run_state *run, size_t matrices, int threads)
{
    for (size_t i = 0; i < matrices && run->k != NULL && run->v != NULL; i++) {
        dp_mma_matrix_free(&run->k[i]);
        dp_mma_matrix_free(&run->v[i]);
    }
    for (int t = 0; run->spaces != NULL && t < threads; t++) {
        dp_route_space *space = &run->spaces[t];
        dp_mma_matrix_free(&space->q);
        dp_mma_matrix_free(&space->q_tail);
        dp_mma_matrix_free(&space->p);
        free(space->x);
        free(space->q8);
        free(space->raw);
        free(space->acc);
        free(space->fresh);
        free(space->payload);
        free(space->scale);
    }
    free(run->k);
    free(run->v);
    free(run->k8);
    free(run->k8_scale);
    free(run->spaces);
    dp_route_inputs_free(&run->inputs);
}

/* The counts of every thread; the text of one that failed. */
static dp_route_stats collect(const dp_route_run_state *run, int threads, bool good,
                              dp_error *error)
{
    dp_route_stats sum = {0};
    for (int t = 0; run->spaces != NULL && t < threads; t++) {
        const dp_route_space *space = &run->spaces[t];
        sum.blocks += space->stats.blocks;
        sum.flushed += space->stats.flushed;
        sum.codes += space->stats.codes;
        sum.saturated += space->stats.saturated;
        sum.overflowed += space->stats.overflowed;
        sum.nonfinite_rows += space->stats.nonfinite_rows;
        if (!good && space->error.text[0] != '\0') {
            (void)dp_fail(error, "%s", space->error.text);
        }
    }
    return sum;
}

static void describe(dp_route_run_state *run, const dp_attention *in, const dp_route *route)
{
    const bool fold = route->qk == DP_OPERAND_NVFP4_K64;
    run->dim = fold ? DP_HEAD_DIM : (in->dim + 31) / 32 * 32;
    run->tile = dp_route_tile_keys(route);
    run->tiles = (in->keys + run->tile - 1) / run->tile;
    run->has_tail = route->residual && in->keys % run->tile != 0;
    run->tail = *route;
    run->tail.qk = run->tail.v = run->tail.p = DP_OPERAND_BF16;
    run->tail.rule = DP_P_PLAIN;
    /* Amplitude scales of Q and K: each code stands for a sixth of its value. */
    const double sixths = route->qk == DP_OPERAND_MXFP4 ? 36.0 : 1.0;
    run->c = (float)(1.4426950408889634 * dp_attention_scale(in) / sixths);
}

static DP_NOINLINE bool run_all(const dp_attention *in, const dp_route *route,
                                const dp_mma_switches *mma, const dp_sfu *sfu, int threads,
                                uint16_t *o, float *lse, dp_route_stats *stats, dp_error *error)
{
    if (!dp_attention_check(in, error) || !dp_route_check(route, error)) {
        return false;
    }
    dp_route_run_state run = {.in = in, .route = route, .o = o, .lse = lse};
    run.mma = mma != NULL ? *mma : run.mma;
    run.sfu = sfu != NULL ? sfu : dp_sfu_exact();
    describe(&run, in, route);
    threads = dp_parallel_threads(threads);
    const size_t matrices = in->batch * in->kv_heads * run.tiles;
    const size_t strips = (in->queries + DP_TILE - 1) / DP_TILE;
    bool good =
        allocate(&run, matrices, threads) ||
        dp_fail(error, "route: not enough memory for %zu keys: use a shorter sequence", in->keys);
    if (good && (good = dp_route_inputs_make(in, route, &run.inputs, error))) {
        crew all = {.run = &run};
        atomic_init(&all.stopped, false);
        dp_parallel_for(threads, matrices, 1, prepare_tiles, &all);
        dp_parallel_for(threads, in->batch * in->q_heads * strips, 1, run_strips, &all);
        good = !atomic_load(&all.stopped);
    }
    const dp_route_stats sum = collect(&run, threads, good, error);
    if (stats != NULL) {
        *stats = sum;
    }
    release(&run, matrices, threads);
    return good;
}

bool dp_route_run(const dp_attention *in, const dp_route *route, const dp_mma_switches *mma,
                  const dp_sfu *sfu, int threads, uint16_t *o, float *lse, dp_route_stats *stats,
                  dp_error *error)
{
    fenv_t callers;
    dp_environment_enter(&callers);
    const bool good = run_all(in, route, mma, sfu, threads, o, lse, stats, error);
    dp_environment_leave(&callers);
    return good;
}
