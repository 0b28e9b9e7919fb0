/* SPDX-License-Identifier: MIT
 *
 * A standard path over whole tensors: tiles of 128 x 128, online softmax, one strip of query rows
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
#include "ref/forward/route_operands.h"

typedef struct {
    dp_mma_matrix q, p;
    float *x;     /* a tile of inputs, widened              */
    float *raw;   /* [DP_TILE][DP_TILE]                     */
    float *acc;   /* [DP_TILE][dim]                         */
    float *fresh; /* [DP_TILE][dim], of one tile            */
    uint8_t *payload, *scale;
    dp_route_row row[DP_TILE];
    float factor[DP_TILE];
    dp_route_stats stats;
    dp_error error;
} route_space;

typedef struct {
    const dp_attention *in;
    const dp_route *route;
    dp_mma_switches mma;
    const dp_sfu *sfu;
    size_t dim;   /* features, a multiple of 32 */
    size_t tiles; /* of keys */
    dp_mma_matrix *k, *v;
    route_space *spaces;
    uint16_t *smooth; /* K minus its mean [R8], or NULL           */
    float *channel;   /* [kv head][dim] amax / 448 of V, or NULL  */
    float c;
    uint16_t *o;
    float *lse;
    atomic_bool stopped;
} route_run;

/* `rows` rows of a head from `first`, widened to [DP_TILE][dim]; the rest is zero. */
static void load_tile(const uint16_t *head, size_t first, size_t rows, size_t total, size_t dim,
                      size_t padded, float *x)
{
    memset(x, 0, rows * padded * sizeof(float));
    for (size_t r = 0; r < rows && first + r < total; r++) {
        for (size_t d = 0; d < dim; d++) {
            const dp_bf16 bits = {head[(first + r) * dim + d]};
            x[r * padded + d] = dp_bf16_to_f32(bits);
        }
    }
}

/* V of a tile to a maximum of 448 a feature. */
static void scale_channels(const route_run *run, size_t head, float *x)
{
    for (size_t i = 0; run->channel != NULL && i < DP_TILE * run->dim; i++) {
        const size_t d = i % run->dim;
        const float unit = d < run->in->dim ? run->channel[head * run->in->dim + d] : 0.0f;
        x[i] = unit > 0.0f ? x[i] / unit : 0.0f;
    }
}

static float widen(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static float to_bf16(float x)
{
    return dp_bf16_to_f32(dp_bf16_from_f32(x, DP_ENCODE_PTX));
}

/* What [R8] subtracts from K, and the largest of each feature of V. */
static bool transform_inputs(route_run *run, dp_error *error)
{
    const dp_attention *in = run->in;
    const size_t heads = in->batch * in->kv_heads;
    run->smooth = run->route->direct.smooth ? malloc(heads * in->keys * in->dim * 2) : NULL;
    run->channel = run->route->direct.v_channel ? calloc(heads * in->dim, sizeof(float)) : NULL;
    if ((run->route->direct.smooth && run->smooth == NULL) ||
        (run->route->direct.v_channel && run->channel == NULL)) {
        return dp_fail(error, "route: not enough memory for %zu keys: use a shorter sequence",
                       in->keys);
    }
    for (size_t i = 0; i < heads * in->dim; i++) {
        const size_t from = i / in->dim * in->keys * in->dim + i % in->dim;
        float sum = 0.0f;
        for (size_t j = 0; run->channel != NULL && j < in->keys; j++) {
            const float magnitude = fabsf(widen(in->v[from + j * in->dim])) / 448.0f;
            run->channel[i] = magnitude > run->channel[i] ? magnitude : run->channel[i];
        }
        for (size_t j = 0; run->smooth != NULL && j < in->keys; j++) {
            sum += widen(in->k[from + j * in->dim]);
        }
        const float mean = to_bf16(sum / (float)in->keys);
        for (size_t j = 0; run->smooth != NULL && j < in->keys; j++) {
            const float k = widen(in->k[from + j * in->dim]) - mean;
            run->smooth[from + j * in->dim] = dp_bf16_from_f32(k, DP_ENCODE_PTX).bits;
        }
    }
    return true;
}

/* The mean query of a tile of 128, padding included, out of the tile and into mean [R8]. */
static void smooth_queries(const route_run *run, float *x, float *mean)
{
    for (size_t d = 0; d < run->dim; d++) {
        float sum = 0.0f;
        for (size_t r = 0; r < DP_TILE; r++) {
            sum += x[r * run->dim + d];
        }
        mean[d] = to_bf16(sum / (float)DP_TILE);
        for (size_t r = 0; r < DP_TILE; r++) {
            x[r * run->dim + d] = to_bf16(x[r * run->dim + d] - mean[d]);
        }
    }
}

/* delta_s of a key tile, 16 bits, into every row of the scores. */
static void start_scores(const route_run *run, size_t kv, size_t tile, const float *mean,
                         float *raw)
{
    const dp_attention *in = run->in;
    for (size_t j = 0; j < DP_TILE; j++) {
        const size_t key = tile * DP_TILE + j;
        const uint16_t *k = run->smooth + (kv * in->keys + key) * in->dim;
        float sum = 0.0f;
        for (size_t d = 0; key < in->keys && d < in->dim; d++) {
            sum += mean[d] * widen(k[d]);
        }
        for (size_t r = 0; r < DP_TILE; r++) {
            raw[r * DP_TILE + j] = to_bf16(sum);
        }
    }
}

static void prepare_tiles(void *context, size_t first, size_t last, int thread)
{
    route_run *run = context;
    const dp_attention *in = run->in;
    route_space *space = &run->spaces[thread];
    const ptrdiff_t dim = (ptrdiff_t)run->dim;
    for (size_t i = first; i < last; i++) {
        const size_t head = i / run->tiles * in->keys * in->dim;
        const size_t key = i % run->tiles * DP_TILE;
        load_tile((run->smooth != NULL ? run->smooth : in->k) + head, key, DP_TILE, in->keys,
                  in->dim, run->dim, space->x);
        bool good = dp_operand_prepare(run->route->qk, DP_MMA_SIDE_B, &run->mma, space->x, DP_TILE,
                                       run->dim, dim, 1, &run->k[i], &space->error);
        load_tile(in->v + head, key, DP_TILE, in->keys, in->dim, run->dim, space->x);
        scale_channels(run, i / run->tiles, space->x);
        good = good && dp_operand_prepare(run->route->v, DP_MMA_SIDE_B, &run->mma, space->x,
                                          run->dim, DP_TILE, 1, dim, &run->v[i], &space->error);
        if (!good) {
            atomic_store(&run->stopped, true);
            return;
        }
    }
}

static bool visible(const dp_attention *in, size_t row, size_t key)
{
    return key < in->keys && (!in->causal || key + in->queries <= row + in->keys);
}

/* P of every row of the tile, packed as the matrix unit takes it. */
static void make_p(const route_run *run, size_t row_first, size_t tile, bool first,
                   route_space *space)
{
    const dp_route *route = run->route;
    const size_t bytes = dp_operand_bytes(route->p, DP_TILE);
    const size_t scales = dp_operand_scales(route->p, DP_TILE);
    for (size_t r = 0; r < DP_TILE; r++) {
        float *raw = space->raw + r * DP_TILE;
        for (size_t j = 0; j < DP_TILE; j++) {
            raw[j] = visible(run->in, row_first + r, tile * DP_TILE + j) ? raw[j] : -INFINITY;
        }
        dp_route_p p;
        space->factor[r] = dp_route_tile(route, run->sfu, run->c, first, raw, &space->row[r], &p);
        uint8_t *payload = space->payload + r * bytes;
        for (size_t j = 0; j < DP_TILE; j++) {
            if (bytes == 2 * DP_TILE) {
                memcpy(payload + 2 * j, &p.code[j], 2);
            } else if (bytes == DP_TILE) {
                payload[j] = (uint8_t)p.code[j];
            } else {
                payload[j / 2] =
                    (uint8_t)(j % 2 == 0 ? p.code[j] : payload[j / 2] | p.code[j] << 4);
            }
        }
        memcpy(space->scale + r * scales, p.scale, scales);
        if (row_first + r < run->in->queries) {
            space->stats.blocks += scales;
            space->stats.codes += DP_TILE;
            space->stats.flushed += p.flushed;
            space->stats.saturated += p.saturated;
            space->stats.overflowed += p.overflowed;
        }
    }
}

static bool add_values(const route_run *run, size_t matrix, bool first, route_space *space)
{
    const dp_route *route = run->route;
    const size_t scales = dp_operand_scales(route->p, DP_TILE);
    const dp_mma_source source = {.payload = space->payload,
                                  .scale = scales > 0 ? space->scale : NULL};
    if (!dp_mma_prepare(&space->p, dp_operand_instruction(route->p), &run->mma, DP_MMA_SIDE_A,
                        DP_TILE, DP_TILE, &source, &space->error)) {
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
    if (!dp_mma_multiply(&space->p, &run->v[matrix], c, run->dim, into, run->dim, NULL,
                         &space->error)) {
        return false;
    }
    for (size_t i = 0; route->fresh && !first && i < DP_TILE * run->dim; i++) {
        space->acc[i] = dp_fma_rn_ftz(space->acc[i], space->factor[i / run->dim], space->fresh[i]);
    }
    return true;
}

static void finish_rows(const route_run *run, size_t head, size_t row_first, bool nothing,
                        route_space *space)
{
    const dp_attention *in = run->in;
    const dp_route *route = run->route;
    /* What P's and V's scales carry beyond their values: the lift, and 6 for each amplitude. */
    const float carried =
        (route->rule == DP_P_PLAIN || route->rule == DP_P_EX2_BLOCK ? 1.0f : route->lift) *
        (route->v == DP_OPERAND_MXFP4 ? 6.0f : 1.0f);
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
            if (run->channel != NULL) {
                const size_t kv = head / in->q_heads * in->kv_heads +
                                  dp_attention_kv_head(in, head % in->q_heads);
                x = dp_mul_rn_ftz(x, run->channel[kv * in->dim + d]);
            }
            finite = finite && isfinite(x);
            o[d] = dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
        }
        space->stats.nonfinite_rows += !finite;
        if (run->lse != NULL) {
            const float log2_sum = dp_lg2_approx_ftz(run->sfu, row->sum);
            const float lse = dp_sub_rn_ftz(dp_fma_rn_ftz(row->maximum, run->c, log2_sum),
                                            route->lse_offset_log2);
            run->lse[head * in->queries + row_first + r] =
                valid ? dp_mul_rn_ftz(lse, dp_f32_from_bits(0x3F317218u)) : -INFINITY;
        }
    }
}

static bool run_strip(const route_run *run, size_t index, route_space *space)
{
    const dp_attention *in = run->in;
    const size_t strips = (in->queries + DP_TILE - 1) / DP_TILE;
    const size_t head = index / strips;
    const size_t row_first = index % strips * DP_TILE;
    const size_t kv =
        head / in->q_heads * in->kv_heads + dp_attention_kv_head(in, head % in->q_heads);
    load_tile(in->q + head * in->queries * in->dim, row_first, DP_TILE, in->queries, in->dim,
              run->dim, space->x);
    float mean[DP_HEAD_DIM];
    if (run->smooth != NULL) {
        smooth_queries(run, space->x, mean);
    }
    if (!dp_operand_prepare(run->route->qk, DP_MMA_SIDE_A, &run->mma, space->x, DP_TILE, run->dim,
                            (ptrdiff_t)run->dim, 1, &space->q, &space->error)) {
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
        if (!visible(in, last_row, tile * DP_TILE)) {
            continue;
        }
        const size_t matrix = kv * run->tiles + tile;
        if (run->smooth != NULL) {
            start_scores(run, kv, tile, mean, space->raw);
        }
        if (!dp_mma_multiply(&space->q, &run->k[matrix], run->smooth != NULL ? space->raw : NULL,
                             DP_TILE, space->raw, DP_TILE, NULL, &space->error)) {
            return false;
        }
        make_p(run, row_first, tile, done == 0, space);
        if (!add_values(run, matrix, done == 0, space)) {
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
    run->k = calloc(matrices, sizeof *run->k);
    run->v = calloc(matrices, sizeof *run->v);
    run->spaces = calloc((size_t)threads, sizeof *run->spaces);
    bool good = run->k != NULL && run->v != NULL && run->spaces != NULL;
    for (int t = 0; good && t < threads; t++) {
        route_space *space = &run->spaces[t];
        space->x = malloc(DP_TILE * run->dim * sizeof(float));
        space->raw = malloc(DP_TILE * DP_TILE * sizeof(float));
        space->acc = malloc(DP_TILE * run->dim * sizeof(float));
        space->fresh = malloc(DP_TILE * run->dim * sizeof(float));
        space->payload = malloc(2 * DP_TILE * DP_TILE);
        space->scale = malloc(DP_TILE * DP_TILE / 16);
        good = space->x != NULL && space->raw != NULL && space->acc != NULL &&
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
        dp_mma_matrix_free(&space->p);
        free(space->x);
        free(space->raw);
        free(space->acc);
        free(space->fresh);
        free(space->payload);
        free(space->scale);
    }
    free(run->k);
    free(run->v);
    free(run->spaces);
}

static DP_NOINLINE bool run_all(const dp_attention *in, const dp_route *route,
                                const dp_mma_switches *mma, const dp_sfu *sfu, int threads,
                                uint16_t *o, float *lse, dp_route_stats *stats, dp_error *error)
{
    if (!dp_attention_check(in, error)) {
        return false;
    }
    route_run run = {.in = in, .route = route, .o = o, .lse = lse};
    run.mma = mma != NULL ? *mma : run.mma;
    run.sfu = sfu != NULL ? sfu : dp_sfu_exact();
    run.dim = (in->dim + 31) / 32 * 32;
    run.tiles = (in->keys + DP_TILE - 1) / DP_TILE;
    /* Amplitude scales of Q and K: each code stands for a sixth of its value. */
    const double sixths = route->qk == DP_OPERAND_MXFP4 ? 36.0 : 1.0;
    run.c = (float)(1.4426950408889634 * dp_attention_scale(in) / sixths);
    atomic_init(&run.stopped, false);
    threads = dp_parallel_threads(threads);
    const size_t matrices = in->batch * in->kv_heads * run.tiles;
    const size_t strips = (in->queries + DP_TILE - 1) / DP_TILE;
    bool good = allocate(&run, matrices, threads);
    if (good && !transform_inputs(&run, error)) {
        good = false;
    } else if (good) {
        dp_parallel_for(threads, matrices, 1, prepare_tiles, &run);
        dp_parallel_for(threads, in->batch * in->q_heads * strips, 1, run_strips, &run);
        good = !atomic_load(&run.stopped);
    } else {
        (void)dp_fail(error, "route: not enough memory for %zu keys: use a shorter sequence",
                      in->keys);
    }
    dp_route_stats sum = {0};
    for (int t = 0; run.spaces != NULL && t < threads; t++) {
        const route_space *space = &run.spaces[t];
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
    if (stats != NULL) {
        *stats = sum;
    }
    release(&run, matrices, threads);
    free(run.smooth);
    free(run.channel);
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
