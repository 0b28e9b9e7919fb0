/* SPDX-License-Identifier: MIT
 *
 * One run of a standard path: what all threads read, what each one owns, and its two units of work.
 */
#ifndef DP_REF_FORWARD_ROUTE_STRIP_H
#define DP_REF_FORWARD_ROUTE_STRIP_H

#include "ref/forward/route_inputs.h"
#include "ref/forward/route_operands.h"

/* What a thread owns. */
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
} dp_route_space;

/* What all threads read. */
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
    dp_route_space *spaces;
    dp_route_inputs inputs;
    float c;
    uint16_t *o;
    float *lse;
} dp_route_run_state;

/* K and V of tile `index` (of all heads) as the products take them. False with space->error. */
bool dp_route_prepare_tile(dp_route_run_state *run, size_t index, dp_route_space *space);
/* Strip `index`: DP_TILE query rows of a head against every key tile. False with space->error. */
bool dp_route_strip(const dp_route_run_state *run, size_t index, dp_route_space *space);

#endif
