/* SPDX-License-Identifier: MIT
 *
 * Tiles of 128 queries, online softmax, one strip of query rows at a time [R1]..[R6].
 */
#include "ref/forward/route_strip.h"

#include <math.h>
#include <string.h>

#include "formats/bf16.h"
#include "ref/arith/f32_fast.h"

static const dp_route *route_of(const dp_route_run_state *run, size_t tile)
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
static void scale_channels(const dp_route_run_state *run, size_t kv, float *x)
{
    for (size_t i = 0; run->inputs.channel != NULL && i < run->tile * run->dim; i++) {
        const size_t d = i % run->dim;
        const float unit = d < run->in->dim ? run->inputs.channel[kv * run->in->dim + d] : 0.0f;
        x[i] = unit > 0.0f ? x[i] / unit : 0.0f;
    }
}

bool dp_route_prepare_tile(dp_route_run_state *run, size_t index, dp_route_space *space)
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
static void make_p(const dp_route_run_state *run, size_t row_first, size_t tile, bool first,
                   dp_route_space *space)
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

static bool add_values(const dp_route_run_state *run, size_t kv, size_t tile, bool first,
                       dp_route_space *space)
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

static float lse_of(const dp_route_run_state *run, size_t head, size_t row,
                    const dp_route_row *state)
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

static void finish_rows(const dp_route_run_state *run, size_t head, size_t row_first, bool nothing,
                        dp_route_space *space)
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
static bool prepare_queries(const dp_route_run_state *run, size_t head, size_t row_first,
                            dp_route_space *space)
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

static bool scores_of(const dp_route_run_state *run, size_t kv, size_t tile, dp_route_space *space)
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

bool dp_route_strip(const dp_route_run_state *run, size_t index, dp_route_space *space)
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
