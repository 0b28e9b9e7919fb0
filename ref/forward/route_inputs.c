/* SPDX-License-Identifier: MIT */
#include "ref/forward/route_inputs.h"

#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "ref/arith/f32_fast.h"

static float widen(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static float to_bf16(float x)
{
    return dp_bf16_to_f32(dp_bf16_from_f32(x, DP_ENCODE_PTX));
}

/* Mean of each feature over the rows of a head, in f32 and row order, rounded to BF16. */
static void mean_of(const uint16_t *head, size_t rows, size_t dim, float *mean)
{
    for (size_t d = 0; d < dim; d++) {
        float sum = 0.0f;
        for (size_t j = 0; j < rows; j++) {
            sum += widen(head[j * dim + d]);
        }
        mean[d] = to_bf16(sum / (float)rows);
    }
}

static void smooth_keys(const dp_attention *in, dp_route_inputs *inputs)
{
    for (size_t h = 0; h < in->batch * in->kv_heads; h++) {
        const uint16_t *from = in->k + h * in->keys * in->dim;
        const float *mean = inputs->k_mean + h * in->dim;
        mean_of(from, in->keys, in->dim, inputs->k_mean + h * in->dim);
        for (size_t i = 0; i < in->keys * in->dim; i++) {
            inputs->k[h * in->keys * in->dim + i] =
                dp_bf16_from_f32(widen(from[i]) - mean[i % in->dim], DP_ENCODE_PTX).bits;
        }
    }
}

/* The largest magnitude of each feature of V over `top`. */
static void measure_channels(const dp_attention *in, float top, float *channel)
{
    const size_t per_head = in->keys * in->dim;
    for (size_t i = 0; i < in->batch * in->kv_heads * per_head; i++) {
        float *largest = &channel[i / per_head * in->dim + i % in->dim];
        const float unit = fabsf(widen(in->v[i])) / top;
        *largest = unit > *largest ? unit : *largest;
    }
}

bool dp_route_inputs_make(const dp_attention *in, const dp_route *route, dp_route_inputs *inputs,
                          dp_error *error)
{
    memset(inputs, 0, sizeof *inputs);
    const size_t kv = in->batch * in->kv_heads;
    const size_t q = in->batch * in->q_heads;
    const bool keys = route->smooth != DP_SMOOTH_NONE;
    const bool queries = route->smooth == DP_SMOOTH_K_QALL;
    const bool channels = route->v_channel > 0.0f;
    inputs->k = keys ? malloc(kv * in->keys * in->dim * sizeof *inputs->k) : NULL;
    inputs->k_mean = keys ? malloc(kv * in->dim * sizeof *inputs->k_mean) : NULL;
    inputs->q_mean = queries ? malloc(q * in->dim * sizeof *inputs->q_mean) : NULL;
    inputs->channel = channels ? calloc(kv * in->dim, sizeof *inputs->channel) : NULL;
    if ((keys && (inputs->k == NULL || inputs->k_mean == NULL)) ||
        (queries && inputs->q_mean == NULL) || (channels && inputs->channel == NULL)) {
        dp_route_inputs_free(inputs);
        return dp_fail(error, "route: not enough memory for %zu keys: use a shorter sequence",
                       in->keys);
    }
    if (keys) {
        smooth_keys(in, inputs);
    }
    for (size_t h = 0; queries && h < q; h++) {
        mean_of(in->q + h * in->queries * in->dim, in->queries, in->dim,
                inputs->q_mean + h * in->dim);
    }
    if (channels) {
        measure_channels(in, route->v_channel, inputs->channel);
    }
    return true;
}

void dp_route_inputs_free(dp_route_inputs *inputs)
{
    free(inputs->k);
    free(inputs->k_mean);
    free(inputs->q_mean);
    free(inputs->channel);
    memset(inputs, 0, sizeof *inputs);
}

void dp_route_load(const uint16_t *head, size_t first, size_t rows, size_t total, size_t dim,
                   size_t padded, float *x)
{
    memset(x, 0, rows * padded * sizeof(float));
    for (size_t r = 0; r < rows && first + r < total; r++) {
        for (size_t d = 0; d < dim; d++) {
            x[r * padded + d] = widen(head[(first + r) * dim + d]);
        }
    }
}

bool dp_route_smooth_queries(const dp_route *route, const dp_route_inputs *inputs, size_t head,
                             size_t dim, size_t padded, float *x, float *mean)
{
    if (route->smooth != DP_SMOOTH_K_QTILE && route->smooth != DP_SMOOTH_K_QALL) {
        return false;
    }
    for (size_t d = 0; d < padded; d++) {
        float sum = 0.0f;
        for (size_t r = 0; r < DP_TILE; r++) { /* padding counts */
            sum += x[r * padded + d];
        }
        mean[d] = to_bf16(sum / (float)DP_TILE);
        if (route->smooth == DP_SMOOTH_K_QALL) {
            mean[d] = d < dim ? inputs->q_mean[head * dim + d] : 0.0f;
        }
        for (size_t r = 0; r < DP_TILE; r++) {
            x[r * padded + d] = to_bf16(x[r * padded + d] - mean[d]);
        }
    }
    return true;
}

void dp_route_start_scores(const dp_attention *in, const dp_route *route,
                           const dp_route_inputs *inputs, size_t kv, size_t tile, const float *mean,
                           float *raw)
{
    const size_t width = dp_route_tile_keys(route);
    for (size_t j = 0; j < width; j++) {
        const size_t key = tile * width + j;
        const uint16_t *k = inputs->k + (kv * in->keys + key) * in->dim;
        float sum = 0.0f;
        for (size_t d = 0; key < in->keys && d < in->dim; d++) {
            sum += mean[d] * widen(k[d]);
        }
        for (size_t r = 0; r < DP_TILE; r++) {
            raw[r * width + j] = route->delta_f32 ? sum : to_bf16(sum);
        }
    }
}

float dp_route_lost_score(const dp_attention *in, const dp_route_inputs *inputs, size_t head,
                          size_t kv, size_t row)
{
    const uint16_t *q = in->q + (head * in->queries + row) * in->dim;
    float sum = 0.0f;
    for (size_t d = 0; d < in->dim; d++) {
        sum += widen(q[d]) * inputs->k_mean[kv * in->dim + d];
    }
    return sum;
}

/* Which rows share a scale: the number of a row's group among the groups of a tile. */
static size_t group_of(dp_int8_group group, bool keys, size_t row)
{
    switch (group) {
    case DP_INT8_BLOCK:
        return keys ? row / 64 : row / 128;
    case DP_INT8_WARP:
        return keys ? row / 64 : row / 32;
    default:
        return keys ? row / 64 * 4 + row % 8 / 2 : row / 32 * 8 + row % 8;
    }
}

void dp_int8_rows(dp_int8_group group, bool keys, const float *x, size_t rows, size_t dim,
                  int16_t *code, float *scale)
{
    float amax[DP_ROUTE_TILE] = {0}; /* never more groups than rows */
    for (size_t i = 0; i < rows * dim; i++) {
        float *a = &amax[group_of(group, keys, i / dim)];
        *a = fabsf(x[i]) > *a ? fabsf(x[i]) : *a;
    }
    for (size_t r = 0; r < rows; r++) {
        scale[r] = amax[group_of(group, keys, r)] / 127.0f;
        for (size_t d = 0; d < dim; d++) {
            const float t = scale[r] > 0.0f ? x[r * dim + d] / scale[r] : 0.0f;
            /* Ties away from 0; NaN, and Inf over Inf, to 0 as cvt makes it. */
            code[r * dim + d] = isnan(t) ? 0 : (int16_t)(t + (t >= 0.0f ? 0.5f : -0.5f));
        }
    }
}

void dp_int8_scores(const int16_t *q, const float *q_scale, const int16_t *k, const float *k_scale,
                    size_t keys, size_t dim, bool add, float *raw)
{
    for (size_t r = 0; r < DP_TILE; r++) {
        for (size_t j = 0; j < keys; j++) {
            int32_t sum = 0;
            for (size_t d = 0; d < dim; d++) {
                sum += q[r * dim + d] * k[j * dim + d];
            }
            /* At most 128 * 127^2 < 2^24: exact in f32. */
            const float score = dp_mul_rn_ftz((float)sum, dp_mul_rn_ftz(q_scale[r], k_scale[j]));
            raw[r * keys + j] = add ? dp_add_rn_ftz(raw[r * keys + j], score) : score;
        }
    }
}
