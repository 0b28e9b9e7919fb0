/* SPDX-License-Identifier: MIT
 *
 * A standard path over whole tensors: tiles of 128 queries, online softmax, one strip of query rows
 * at a time [R1]..[R6].
 */
#include "ref/forward/route.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/environment.h"
#include "formats/parallel.h"
#include "ref/arith/f32_fast.h"
#include "ref/forward/route_inputs.h"
#include "ref/forward/route_operands.h"

typedef struct {
    dp_mma_matrix q, q_tail, p; /* q_tail: the same queries in BF16, for the tail [R10] */
    int16_t *q8;                /* [DP_TILE][dim] and */
    float q8_scale[DP_TILE];    /* its scales, of INT8 queries */
    float *x;                   /* a tile of inputs, widened              */
    float *raw;                 /* [DP_TILE][tile]                        */
    float *acc;                 /* [DP_TILE][dim]                         */
    float *fresh;               /* [DP_TILE][dim], of one tile            */
    uint8_t *payload, *scale;
    dp_route_row row[DP_TILE];
    float factor[DP_TILE];
    float mean[DP_HEAD_DIM]; /* what smoothing took from the queries; valid when smoothed */
    bool smoothed;
    dp_route_stats stats;
    dp_error error;
} route_space;

typedef struct {
    const dp_attention *in;
    const dp_route *route;
    dp_route tail; /* the BF16 path of the keys past the last whole tile [R10] */
    bool has_tail;
    dp_mma_switches mma;
    const dp_sfu *sfu;
    size_t dim;         /* features, a multiple of 32 */
    size_t tile, tiles; /* keys of a tile, tiles of a head */
    dp_mma_matrix *k, *v;
    int16_t *k8; /* [kv head][tiles][tile][dim] and */
    float *k8_scale;
    route_space *spaces;
    dp_route_inputs inputs;
    float c;
    uint16_t *o;
    float *lse;
    atomic_bool stopped;
} route_run;

static const dp_route *route_of(const route_run *run, size_t tile)
{
    return run->has_tail && tile + 1 == run->tiles ? &run->tail : run->route;
}

/* P as the matrix unit takes it. */
static dp_operand_format p_operand(const dp_route *route)
{
    return route->fake ? DP_OPERAND_BF16 : route->p;
}

static size_t kv_of(const dp_attention *in, size_t head)
{
    return head / in->q_heads * in->kv_heads + dp_attention_kv_head(in, head % in->q_heads);
}

/* V of a tile, each feature to its own maximum. */
static void scale_channels(const route_run *run, size_t kv, float *x)
{
    for (size_t i = 0; run->inputs.channel != NULL && i < run->tile * run->dim; i++) {
        const size_t d = i % run->dim;
        const float unit = d < run->in->dim ? run->inputs.channel[kv * run->in->dim + d] : 0.0f;
        x[i] = unit > 0.0f ? x[i] / unit : 0.0f;
    }
}

static bool prepare_tile(route_run *run, size_t index, route_space *space)
{
    const dp_attention *in = run->in;
    const dp_route *route = route_of(run, index % run->tiles);
    const ptrdiff_t dim = (ptrdiff_t)run->dim;
    const size_t kv = index / run->tiles;
    const size_t head = kv * in->keys * in->dim;
    const size_t key = index % run->tiles * run->tile;
    dp_route_load((run->inputs.k != NULL ? run->inputs.k : in->k) + head, key, run->tile, in->keys,
                  in->dim, run->dim, space->x);
    bool good = true;
    if (route->qk == DP_OPERAND_INT8) {
        dp_int8_rows(route->int8, true, space->x, run->tile, run->dim,
                     run->k8 + index * run->tile * run->dim, run->k8_scale + index * run->tile);
    } else {
        good = dp_operand_prepare(route->qk, route->fake, DP_MMA_SIDE_B, &run->mma, space->x,
                                  run->tile, run->dim, dim, 1, &run->k[index], &space->error);
    }
    dp_route_load(in->v + head, key, run->tile, in->keys, in->dim, run->dim, space->x);
    scale_channels(run, kv, space->x);
    return good && dp_operand_prepare(route->v, route->fake, DP_MMA_SIDE_B, &run->mma, space->x,
                                      run->dim, run->tile, 1, dim, &run->v[index], &space->error);
}

static void prepare_tiles(void *context, size_t first, size_t last, int thread)
{
    route_run *run = context;
    for (size_t i = first; i < last && !atomic_load(&run->stopped); i++) {
        if (!prepare_tile(run, i, &run->spaces[thread])) {
            atomic_store(&run->stopped, true);
        }
    }
}

static bool visible(const dp_attention *in, size_t row, size_t key)
{
    return key < in->keys && (!in->causal || key + in->queries <= row + in->keys);
}

/* The codes of a row as they lie in memory. */
static void pack_codes(const uint16_t *code, size_t keys, size_t bytes, uint8_t *payload)
{
    for (size_t j = 0; j < keys; j++) {
        if (bytes == 2 * keys) {
            memcpy(payload + 2 * j, &code[j], 2);
        } else if (bytes == keys) {
            payload[j] = (uint8_t)code[j];
        } else {
            payload[j / 2] = (uint8_t)(j % 2 == 0 ? code[j] : payload[j / 2] | code[j] << 4);
        }
    }
}

/* P of every row of the tile, packed as the matrix unit takes it. */
static void make_p(const route_run *run, size_t row_first, size_t tile, bool first,
                   route_space *space)
{
    const dp_route *route = route_of(run, tile);
    const size_t bytes = dp_operand_bytes(p_operand(route), run->tile);
    const size_t scales = dp_operand_scales(p_operand(route), run->tile);
    for (size_t r = 0; r < DP_TILE; r++) {
        float *raw = space->raw + r * run->tile;
        for (size_t j = 0; j < run->tile; j++) {
            raw[j] = visible(run->in, row_first + r, tile * run->tile + j) ? raw[j] : -INFINITY;
        }
        dp_route_p p;
        space->factor[r] = dp_route_tile(route, run->sfu, run->c, first, raw, &space->row[r], &p);
        pack_codes(p.code, run->tile, bytes, space->payload + r * bytes);
        memcpy(space->scale + r * scales, p.scale, scales);
        if (row_first + r < run->in->queries) {
            space->stats.blocks += dp_operand_scales(route->p, run->tile);
            space->stats.codes += run->tile;
            space->stats.flushed += p.flushed;
            space->stats.saturated += p.saturated;
            space->stats.overflowed += p.overflowed;
        }
    }
}

static bool add_values(const route_run *run, size_t kv, size_t tile, bool first, route_space *space)
{
    const dp_route *route = route_of(run, tile);
    const dp_operand_format format = p_operand(route);
    const dp_mma_source source = {.payload = space->payload,
                                  .scale = dp_operand_scales(format, run->tile) > 0 ? space->scale
                                                                                    : NULL};
    if (!dp_mma_prepare(&space->p, dp_operand_instruction(format), &run->mma, DP_MMA_SIDE_A,
                        DP_TILE, run->tile, &source, &space->error)) {
        return false;
    }
    for (size_t i = 0; !first && i < DP_TILE * run->dim; i++) {
        const float factor = space->factor[i / run->dim];
        if (factor != 1.0f && !route->fresh) {
            space->acc[i] = dp_mul_rn_ftz(space->acc[i], factor);
        }
    }
    float *into = route->fresh && !first ? space->fresh : space->acc;
    const float *c = route->fresh || first ? NULL : space->acc;
    if (!dp_mma_multiply(&space->p, &run->v[kv * run->tiles + tile], c, run->dim, into, run->dim,
                         NULL, &space->error)) {
        return false;
    }
    for (size_t i = 0; route->fresh && !first && i < DP_TILE * run->dim; i++) {
        space->acc[i] = dp_fma_rn_ftz(space->acc[i], space->factor[i / run->dim], space->fresh[i]);
    }
    return true;
}

/* What P's and V's scales carry beyond their values: the lift, and 6 for each amplitude. */
static float carried_factor(const dp_route *route)
{
    const bool lifted = !route->fake && (route->rule == DP_P_MAX_SIXTH ||
                                         route->rule == DP_P_LOG2 || route->rule == DP_P_ROUNDED);
    return (lifted ? dp_route_lift(route) : 1.0f) * (route->v == DP_OPERAND_MXFP4 ? 6.0f : 1.0f);
}

static float lse_of(const route_run *run, size_t head, size_t row, const dp_route_row *state)
{
    const float log2_sum = dp_lg2_approx_ftz(run->sfu, state->sum);
    float lse =
        dp_sub_rn_ftz(dp_fma_rn_ftz(state->maximum, run->c, log2_sum), run->route->lse_offset_log2);
    if (run->inputs.k_mean != NULL) {
        const float lost =
            dp_route_lost_score(run->in, &run->inputs, head, kv_of(run->in, head), row);
        lse = dp_fma_rn_ftz(lost, run->c, lse);
    }
    return dp_mul_rn_ftz(lse, dp_f32_from_bits(0x3F317218u));
}

static void finish_rows(const route_run *run, size_t head, size_t row_first, bool nothing,
                        route_space *space)
{
    const dp_attention *in = run->in;
    const float carried = carried_factor(run->route);
    for (size_t r = 0; r < DP_TILE && row_first + r < in->queries; r++) {
        const dp_route_row *row = &space->row[r];
        /* A sum of NaN is kept: it is what an overflowing path returns. */
        const bool valid = !nothing && !(row->sum <= 0.0f);
        float inverse = valid ? dp_rcp_approx_ftz(run->sfu, row->sum) : 0.0f;
        inverse = carried != 1.0f ? dp_mul_rn_ftz(inverse, 1.0f / carried) : inverse;
        uint16_t *o = run->o + (head * in->queries + row_first + r) * in->dim;
        bool finite = true;
        for (size_t d = 0; d < in->dim; d++) {
            float x = valid ? dp_mul_rn_ftz(space->acc[r * run->dim + d], inverse) : 0.0f;
            if (run->inputs.channel != NULL) {
                x = dp_mul_rn_ftz(x, run->inputs.channel[kv_of(in, head) * in->dim + d]);
            }
            finite = finite && isfinite(x);
            o[d] = dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
        }
        space->stats.nonfinite_rows += !finite;
        if (run->lse != NULL) {
            run->lse[head * in->queries + row_first + r] =
                valid ? lse_of(run, head, row_first + r, row) : -INFINITY;
        }
    }
}

/* The queries of a strip as the products take them. */
static bool prepare_queries(const route_run *run, size_t head, size_t row_first, route_space *space)
{
    const dp_attention *in = run->in;
    const dp_route *route = run->route;
    const ptrdiff_t dim = (ptrdiff_t)run->dim;
    dp_route_load(in->q + head * in->queries * in->dim, row_first, DP_TILE, in->queries, in->dim,
                  run->dim, space->x);
    if (run->has_tail &&
        !dp_operand_prepare(run->tail.qk, false, DP_MMA_SIDE_A, &run->mma, space->x, DP_TILE,
                            run->dim, dim, 1, &space->q_tail, &space->error)) {
        return false;
    }
    space->smoothed = dp_route_smooth_queries(route, &run->inputs, head, in->dim, run->dim,
                                              space->x, space->mean);
    if (route->qk == DP_OPERAND_INT8) {
        dp_int8_rows(route->int8, false, space->x, DP_TILE, run->dim, space->q8, space->q8_scale);
        return true;
    }
    return dp_operand_prepare(route->qk, route->fake, DP_MMA_SIDE_A, &run->mma, space->x, DP_TILE,
                              run->dim, dim, 1, &space->q, &space->error);
}

static bool scores_of(const route_run *run, size_t kv, size_t tile, route_space *space)
{
    const dp_route *route = route_of(run, tile);
    const size_t matrix = kv * run->tiles + tile;
    if (space->smoothed) {
        dp_route_start_scores(run->in, route, &run->inputs, kv, tile, space->mean, space->raw);
    }
    if (route->qk == DP_OPERAND_INT8) {
        dp_int8_scores(space->q8, space->q8_scale, run->k8 + matrix * run->tile * run->dim,
                       run->k8_scale + matrix * run->tile, run->tile, run->dim, space->smoothed,
                       space->raw);
        return true;
    }
    return dp_mma_multiply(route == &run->tail ? &space->q_tail : &space->q, &run->k[matrix],
                           space->smoothed ? space->raw : NULL, run->tile, space->raw, run->tile,
                           NULL, &space->error);
}

static bool run_strip(const route_run *run, size_t index, route_space *space)
{
    const dp_attention *in = run->in;
    const size_t strips = (in->queries + DP_TILE - 1) / DP_TILE;
    const size_t head = index / strips;
    const size_t row_first = index % strips * DP_TILE;
    const size_t kv = kv_of(in, head);
    if (!prepare_queries(run, head, row_first, space)) {
        return false;
    }
    for (size_t r = 0; r < DP_TILE; r++) {
        space->row[r] = (dp_route_row){-INFINITY, 0.0f};
    }
    size_t last_row = row_first + DP_TILE - 1;
    last_row = last_row < in->queries ? last_row : in->queries - 1;
    size_t done = 0;
    for (size_t t = 0; t < run->tiles; t++) {
        const size_t tile = run->route->ascending ? t : run->tiles - 1 - t;
        if (!visible(in, last_row, tile * run->tile)) {
            continue;
        }
        if (!scores_of(run, kv, tile, space)) {
            return false;
        }
        make_p(run, row_first, tile, done == 0, space);
        if (!add_values(run, kv, tile, done == 0, space)) {
            return false;
        }
        done++;
    }
    finish_rows(run, head, row_first, done == 0, space);
    return true;
}

static void run_strips(void *context, size_t first, size_t last, int thread)
{
    route_run *run = context;
    for (size_t i = first; i < last && !atomic_load(&run->stopped); i++) {
        if (!run_strip(run, i, &run->spaces[thread])) {
            atomic_store(&run->stopped, true);
        }
    }
}

static bool allocate(route_run *run, size_t matrices, int threads)
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
        route_space *space = &run->spaces[t];
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

static void release(route_run *run, size_t matrices, int threads)
{
    for (size_t i = 0; i < matrices && run->k != NULL && run->v != NULL; i++) {
        dp_mma_matrix_free(&run->k[i]);
        dp_mma_matrix_free(&run->v[i]);
    }
    for (int t = 0; run->spaces != NULL && t < threads; t++) {
        route_space *space = &run->spaces[t];
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
static dp_route_stats collect(const route_run *run, int threads, bool good, dp_error *error)
{
    dp_route_stats sum = {0};
    for (int t = 0; run->spaces != NULL && t < threads; t++) {
        const route_space *space = &run->spaces[t];
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

static void describe(route_run *run, const dp_attention *in, const dp_route *route)
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
    atomic_init(&run->stopped, false);
}

static DP_NOINLINE bool run_all(const dp_attention *in, const dp_route *route,
                                const dp_mma_switches *mma, const dp_sfu *sfu, int threads,
                                uint16_t *o, float *lse, dp_route_stats *stats, dp_error *error)
{
    if (!dp_attention_check(in, error) || !dp_route_check(route, error)) {
        return false;
    }
    route_run run = {.in = in, .route = route, .o = o, .lse = lse};
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
        dp_parallel_for(threads, matrices, 1, prepare_tiles, &run);
        dp_parallel_for(threads, in->batch * in->q_heads * strips, 1, run_strips, &run);
        good = !atomic_load(&run.stopped);
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
