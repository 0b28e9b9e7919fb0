/* SPDX-License-Identifier: MIT */
#include "ref/forward/forward.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "formats/environment.h"
#include "formats/parallel.h"
#include "ref/arith/gemm.h"

#define QK_INSTRUCTION "tcgen05.mma.kind::mxf4nvf4.block16.ue4m3"
#define PV_INSTRUCTION "tcgen05.mma.kind::mxf4nvf4.block32.ue8m0"

/* Operands decoded for the matrix unit: one matrix a tile, shared by every strip. */
typedef struct {
    dp_mma_matrix *k; /* [batch * kv_heads][key tiles] */
    dp_mma_matrix *v;
    size_t count;
} tile_set;

/* Scratch of one thread. */
typedef struct {
    float *raw; /* one tile, or the whole strip when the sink wants it */
    float row_ref[DP_TILE], row_sum[DP_TILE], lse[DP_TILE];
    uint8_t *p_scale, *p_payload;
    uint16_t *code_sum;
    float *acc;
    uint16_t *o;
    dp_mma_matrix q, p;
} workspace;

typedef struct {
    const dp_forward_job *job;
    const dp_mma_desc *qk, *pv;
    dp_mma_switches mma;
    tile_set tiles;
    workspace *spaces;
    size_t strips_a_head;
    atomic_bool stopped;
    dp_error *errors; /* one a thread */
} run_state;

static size_t key_tiles(const dp_operands *operands)
{
    return operands->key_rows / DP_TILE;
}

/* ---- operands ------------------------------------------------------------------------------ */

static bool prepare_k(run_state *run, size_t head, size_t tile, dp_error *error)
{
    const dp_operands *operands = run->job->operands;
    const size_t row = head * operands->key_rows + tile * DP_TILE;
    const dp_mma_source source = {.payload = operands->k_payload + row * operands->features / 2,
                                  .scale = operands->k_scale + row * operands->features / 16};
    return dp_mma_prepare(&run->tiles.k[head * key_tiles(operands) + tile], run->qk, &run->mma,
                          DP_MMA_SIDE_B, DP_TILE, operands->features, &source, error);
}

static bool prepare_v(run_state *run, size_t head, size_t tile, dp_error *error)
{
    const dp_operands *operands = run->job->operands;
    const size_t row = head * operands->features;
    const size_t blocks = operands->key_rows / DP_BLOCK;
    const dp_mma_source source = {.payload = operands->v_payload + row * operands->key_rows / 2 +
                                             tile * DP_TILE / 2,
                                  .stride = operands->key_rows / 2,
                                  .scale = operands->v_scale + row * blocks,
                                  .scale_block = tile * DP_QUARTERS,
                                  .scale_blocks = blocks};
    return dp_mma_prepare(&run->tiles.v[head * key_tiles(operands) + tile], run->pv, &run->mma,
                          DP_MMA_SIDE_B, operands->features, DP_TILE, &source, error);
}

static void prepare_tiles(void *context, size_t first, size_t last, int thread)
{
    run_state *run = context;
    const size_t tiles = key_tiles(run->job->operands);
    for (size_t i = first; i < last; i++) {
        if (!prepare_k(run, i / tiles, i % tiles, &run->errors[thread]) ||
            !prepare_v(run, i / tiles, i % tiles, &run->errors[thread])) {
            atomic_store(&run->stopped, true);
            return;
        }
    }
}

/* ---- one strip ------------------------------------------------------------------------------ */

typedef struct {
    size_t batch, head, row_first, rows, query_tile;
} strip_place;

static strip_place place_of(const run_state *run, size_t index)
{
    const dp_attention *in = run->job->in;
    strip_place place;
    place.query_tile = index % run->strips_a_head;
    place.head = index / run->strips_a_head % in->q_heads;
    place.batch = index / run->strips_a_head / in->q_heads;
    place.row_first = place.query_tile * DP_TILE;
    const size_t left = in->queries - place.row_first;
    place.rows = left < DP_TILE ? left : DP_TILE;
    return place;
}

/* The last key tile with a key that some row of the strip sees, plus one. A permuted order spreads
 * the keys, so there every tile is visited. */
static size_t visited_tiles(const run_state *run, strip_place place)
{
    const dp_attention *in = run->job->in;
    const size_t tiles = key_tiles(run->job->operands);
    if (!in->causal) {
        return tiles;
    }
    const ptrdiff_t last_key =
        (ptrdiff_t)(place.row_first + place.rows - 1 + in->keys) - (ptrdiff_t)in->queries;
    const size_t needed = last_key < 0 ? 0 : (size_t)last_key / DP_TILE + 1;
    return needed < tiles ? needed : tiles;
}

bool dp_score_masked(const dp_attention *in, const dp_operands *operands, size_t row,
                     size_t position)
{
    if (position >= in->keys) {
        return true;
    }
    return in->causal && (size_t)operands->key_order[position] + in->queries > row + in->keys;
}

static void mask_tile(const run_state *run, strip_place place, size_t tile, float *raw,
                      size_t stride)
{
    const dp_attention *in = run->job->in;
    const size_t first = tile * DP_TILE;
    const bool padded = first + DP_TILE > in->keys;
    const bool diagonal =
        in->causal && first + DP_TILE + in->queries > place.row_first + in->keys + 1;
    if (!padded && !diagonal) {
        return;
    }
    for (size_t row = 0; row < DP_TILE; row++) {
        for (size_t j = 0; j < DP_TILE; j++) {
            if (dp_score_masked(in, run->job->operands, place.row_first + row, first + j)) {
                raw[row * stride + j] = -INFINITY;
            }
        }
    }
}

static bool prepare_strip(const run_state *run, strip_place place, workspace *space,
                          dp_error *error)
{
    const dp_operands *operands = run->job->operands;
    const size_t row =
        (place.batch * run->job->in->q_heads + place.head) * operands->query_rows + place.row_first;
    const dp_mma_source source = {.payload = operands->q_payload + row * operands->features / 2,
                                  .scale = operands->q_scale + row * operands->features / 16};
    return dp_mma_prepare(&space->q, run->qk, &run->mma, DP_MMA_SIDE_A, DP_TILE, operands->features,
                          &source, error);
}

/* Scores to codes and represented sums for every row of one key tile. */
static void classify_tile(const run_state *run, strip_place place, size_t tile, const float *raw,
                          size_t stride, workspace *space)
{
    const dp_direct_p *launch = run->job->launch;
    const size_t keys = run->job->operands->key_rows;
    for (size_t row = 0; row < DP_TILE; row++) {
        if (tile == 0) {
            space->row_ref[row] = dp_row_reference(launch, raw + row * stride);
            space->row_sum[row] = 0.0f;
        }
        dp_p_row p;
        dp_classify_row(launch, (int)(place.query_tile & 1u), space->row_ref[row],
                        raw + row * stride, &p);
        memcpy(space->p_payload + (row * keys + tile * DP_TILE) / 2, p.payload, sizeof p.payload);
        const size_t block = row * (keys / DP_BLOCK) + tile * DP_QUARTERS;
        memcpy(space->p_scale + block, p.stored, sizeof p.stored);
        memcpy(space->code_sum + block, p.code_sum, sizeof p.code_sum);
        space->row_sum[row] = dp_row_sum_add(launch, space->row_sum[row], p.stored, p.code_sum);
    }
}

static bool accumulate_tile(const run_state *run, size_t tile, const dp_mma_matrix *v,
                            workspace *space, dp_error *error)
{
    const dp_operands *operands = run->job->operands;
    const size_t keys = operands->key_rows;
    const dp_mma_source source = {.payload = space->p_payload + tile * DP_TILE / 2,
                                  .stride = keys / 2,
                                  .scale = space->p_scale,
                                  .scale_block = tile * DP_QUARTERS,
                                  .scale_blocks = keys / DP_BLOCK};
    return dp_mma_prepare(&space->p, run->pv, &run->mma, DP_MMA_SIDE_A, DP_TILE, DP_TILE, &source,
                          error) &&
           dp_mma_multiply(&space->p, v, tile == 0 ? NULL : space->acc, operands->features,
                           space->acc, operands->features, NULL, error);
}

static void hide_unvisited(const run_state *run, size_t visited, workspace *space)
{
    const size_t keys = run->job->operands->key_rows;
    const uint8_t stored = (uint8_t)dp_stored_byte(run->job->launch, 0);
    for (size_t row = 0; row < DP_TILE; row++) {
        for (size_t j = visited * DP_TILE; run->job->want_raw && j < keys; j++) {
            space->raw[row * keys + j] = -INFINITY;
        }
        memset(space->p_payload + (row * keys + visited * DP_TILE) / 2, 0,
               (keys - visited * DP_TILE) / 2);
        for (size_t b = visited * DP_QUARTERS; b < keys / DP_BLOCK; b++) {
            space->p_scale[row * (keys / DP_BLOCK) + b] = stored;
            space->code_sum[row * (keys / DP_BLOCK) + b] = 0;
        }
        if (visited == 0) {
            space->row_ref[row] = 0.0f;
            space->row_sum[row] = 0.0f;
        }
    }
    if (visited == 0) {
        memset(space->acc, 0, DP_TILE * run->job->operands->features * sizeof(float));
    }
}

static bool run_strip(const run_state *run, strip_place place, workspace *space, dp_error *error)
{
    const dp_forward_job *job = run->job;
    const dp_operands *operands = job->operands;
    const size_t keys = operands->key_rows;
    const size_t stride = job->want_raw ? keys : DP_TILE;
    const size_t kv = place.batch * job->in->kv_heads + dp_attention_kv_head(job->in, place.head);
    const size_t visited = visited_tiles(run, place);
    if (!prepare_strip(run, place, space, error)) {
        return false;
    }
    for (size_t tile = 0; tile < visited; tile++) {
        float *raw = space->raw + (job->want_raw ? tile * DP_TILE : 0);
        const size_t matrix = kv * key_tiles(operands) + tile;
        if (!dp_mma_multiply(&space->q, &run->tiles.k[matrix], NULL, 0, raw, stride, NULL, error)) {
            return false;
        }
        mask_tile(run, place, tile, raw, stride);
        classify_tile(run, place, tile, raw, stride, space);
        if (!accumulate_tile(run, tile, &run->tiles.v[matrix], space, error)) {
            return false;
        }
    }
    hide_unvisited(run, visited, space);
    for (size_t row = 0; row < DP_TILE; row++) {
        space->row_sum[row] = dp_row_sum_finish(job->launch, space->row_sum[row]);
        dp_output_row(job->launch, space->row_ref[row], space->row_sum[row],
                      space->acc + row * operands->features, operands->features,
                      space->o + row * operands->features, &space->lse[row]);
    }
    const dp_strip strip = {.batch = place.batch,
                            .head = place.head,
                            .row_first = place.row_first,
                            .rows = place.rows,
                            .keys = keys,
                            .dim = operands->features,
                            .raw = job->want_raw ? space->raw : NULL,
                            .row_ref = space->row_ref,
                            .p_scale = space->p_scale,
                            .p_payload = space->p_payload,
                            .code_sum = space->code_sum,
                            .row_sum = space->row_sum,
                            .acc = space->acc,
                            .o = space->o,
                            .lse = space->lse};
    return job->sink(job->context, &strip) ||
           dp_fail(error, "forward: stopped by the receiver of its results");
}

static void run_strips(void *context, size_t first, size_t last, int thread)
{
    run_state *run = context;
    for (size_t i = first; i < last && !atomic_load(&run->stopped); i++) {
        if (!run_strip(run, place_of(run, i), &run->spaces[thread], &run->errors[thread])) {
            atomic_store(&run->stopped, true);
        }
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool allocate_space(const dp_forward_job *job, workspace *space)
{
    const size_t keys = job->operands->key_rows;
    const size_t features = job->operands->features;
    space->raw = malloc(DP_TILE * (job->want_raw ? keys : DP_TILE) * sizeof(float));
    space->p_payload = malloc(DP_TILE * keys / 2);
    space->p_scale = malloc(DP_TILE * keys / DP_BLOCK);
    space->code_sum = malloc(DP_TILE * keys / DP_BLOCK * sizeof(uint16_t));
    space->acc = malloc(DP_TILE * features * sizeof(float));
    space->o = malloc(DP_TILE * features * sizeof(uint16_t));
    return space->raw != NULL && space->p_payload != NULL && space->p_scale != NULL &&
           space->code_sum != NULL && space->acc != NULL && space->o != NULL;
}

static void free_space(workspace *space)
{
    free(space->raw);
    free(space->p_payload);
    free(space->p_scale);
    free(space->code_sum);
    free(space->acc);
    free(space->o);
    dp_mma_matrix_free(&space->q);
    dp_mma_matrix_free(&space->p);
}

static bool allocate_run(run_state *run, int threads)
{
    run->tiles.count = run->job->in->batch * run->job->in->kv_heads * key_tiles(run->job->operands);
    run->tiles.k = calloc(run->tiles.count, sizeof *run->tiles.k);
    run->tiles.v = calloc(run->tiles.count, sizeof *run->tiles.v);
    run->spaces = calloc((size_t)threads, sizeof *run->spaces);
    run->errors = calloc((size_t)threads, sizeof *run->errors);
    if (run->tiles.k == NULL || run->tiles.v == NULL || run->spaces == NULL ||
        run->errors == NULL) {
        return false;
    }
    for (int t = 0; t < threads; t++) {
        if (!allocate_space(run->job, &run->spaces[t])) {
            return false;
        }
    }
    return true;
}

static void free_run(run_state *run, int threads)
{
    for (size_t i = 0; i < run->tiles.count; i++) {
        if (run->tiles.k != NULL) {
            dp_mma_matrix_free(&run->tiles.k[i]);
        }
        if (run->tiles.v != NULL) {
            dp_mma_matrix_free(&run->tiles.v[i]);
        }
    }
    for (int t = 0; run->spaces != NULL && t < threads; t++) {
        free_space(&run->spaces[t]);
    }
    free(run->tiles.k);
    free(run->tiles.v);
    free(run->spaces);
    free(run->errors);
}

bool dp_forward_run(const dp_forward_job *job, dp_error *error)
{
    if (!dp_attention_check(job->in, error)) {
        return false;
    }
    run_state run = {.job = job};
    run.mma = job->mma != NULL ? *job->mma : run.mma;
    run.qk = dp_mma_find(QK_INSTRUCTION, "e2m1", "e2m1", "f32", "sm_100a");
    run.pv = dp_mma_find(PV_INSTRUCTION, "e2m1", "e2m1", "f32", "sm_100a");
    run.strips_a_head = job->operands->query_rows / DP_TILE;
    atomic_init(&run.stopped, false);
    const int threads = dp_parallel_threads(job->threads);
    bool good = run.qk != NULL && run.pv != NULL;
    if (!good) {
        (void)dp_fail(error, "forward: the block-scaled instructions are missing from the table");
    } else if (!allocate_run(&run, threads)) {
        good = dp_fail(error,
                       "forward: not enough memory for %zu keys: use a shorter sequence, "
                       "fewer threads, or no raw scores",
                       job->operands->key_rows);
    } else {
        fenv_t callers;
        dp_environment_enter(&callers);
        dp_parallel_for(threads, run.tiles.count, 1, prepare_tiles, &run);
        dp_parallel_for(threads, job->in->batch * job->in->q_heads * run.strips_a_head, 1,
                        run_strips, &run);
        dp_environment_leave(&callers);
        for (int t = 0; t < threads; t++) {
            if (run.errors[t].text[0] != '\0') {
                (void)dp_fail(error, "%s", run.errors[t].text);
            }
        }
        good = !atomic_load(&run.stopped);
    }
    free_run(&run, threads);
    return good;
}
