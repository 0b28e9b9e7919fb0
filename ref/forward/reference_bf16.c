/* SPDX-License-Identifier: MIT
 *
 * BF16 attention, the yardstick of the published errors, as FlashAttention-4 computes it
 * (Dao-AILab/flash-attention at 0251105, flash_attn/cute): key tiles from the last to the first, an
 * online maximum that is kept while the new one exceeds it by at most 8 octaves, P rounded to BF16
 * for the value product, an unrounded row sum, F32 accumulators. Inside a tile sums run in key
 * order, vectors over independent outputs, so that no width of SIMD changes a bit. The exponential
 * and the logarithm are spelled out (reference_math.h), because those of the C library differ
 * between machines in the last place.
 */
#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/environment.h"
#include "formats/parallel.h"
#include "ref/forward/forward.h"
#include "ref/forward/reference_math.h"

struct row_state;
typedef void add_tile_function(struct row_state *row, const float *q, const float *k,
                               const float *v, size_t dim, size_t keys, size_t count);

typedef struct {
    const dp_attention *in;
    float *k_transposed; /* [batch * kv_heads][dim][keys] */
    float *v;            /* [batch * kv_heads][keys][dim] */
    uint16_t *o;
    float *lse;
    add_tile_function *add_tile;
} reference;

static float from_bf16(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static void widen(reference *r)
{
    const dp_attention *in = r->in;
    for (size_t h = 0; h < in->batch * in->kv_heads; h++) {
        for (size_t j = 0; j < in->keys; j++) {
            for (size_t d = 0; d < in->dim; d++) {
                const size_t from = (h * in->keys + j) * in->dim + d;
                r->k_transposed[(h * in->dim + d) * in->keys + j] = from_bf16(in->k[from]);
                r->v[from] = from_bf16(in->v[from]);
            }
        }
    }
}

/* Running state of one row. */
typedef struct row_state {
    float largest, sum, scale;
    float acc[DP_HEAD_DIM];
} row_state;

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

/* One tile of `count` keys: k points at its first key in [dim][keys], v at [key][dim]. */
ALWAYS_INLINE void add_tile(row_state *row, const float *q, const float *k, const float *v,
                            size_t dim, size_t keys, size_t count)
{
    float raw[DP_TILE] = {0};
    for (size_t d = 0; d < dim; d++) {
        for (size_t j = 0; j < count; j++) {
            raw[j] += q[d] * k[d * keys + j];
        }
    }
    float tile_max = row->largest;
    for (size_t j = 0; j < count; j++) {
        tile_max = raw[j] > tile_max ? raw[j] : tile_max;
    }
    const float threshold = 8.0f; /* octaves */
    if (row->largest != -INFINITY && (tile_max - row->largest) * row->scale <= threshold) {
        tile_max = row->largest;
    }
    const float rescale = row->largest == -INFINITY
                              ? 0.0f
                              : dp_reference_exp2((row->largest - tile_max) * row->scale);
    row->sum *= rescale;
    for (size_t d = 0; d < dim; d++) {
        row->acc[d] *= rescale;
    }
    row->largest = tile_max;
    float p[DP_TILE];
    for (size_t j = 0; j < count; j++) {
        p[j] = dp_reference_exp2(raw[j] * row->scale - row->largest * row->scale);
    }
    for (size_t j = 0; j < count; j++) {
        const float rounded = dp_bf16_to_f32(dp_bf16_from_f32(p[j], DP_ENCODE_NONSAT));
        row->sum += p[j];
        for (size_t d = 0; d < dim; d++) {
            row->acc[d] += rounded * v[j * dim + d];
        }
    }
}

static void add_tile_portable(row_state *row, const float *q, const float *k, const float *v,
                              size_t dim, size_t keys, size_t count)
{
    add_tile(row, q, k, v, dim, keys, count);
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Wider vectors of the same operations: products and sums stay separate, so the bits stay. */
__attribute__((target("avx2"))) static void add_tile_avx2(row_state *row, const float *q,
                                                          const float *k, const float *v,
                                                          size_t dim, size_t keys, size_t count)
{
    add_tile(row, q, k, v, dim, keys, count);
}
#endif

static void reference_row(const reference *r, size_t head, size_t kv, size_t row)
{
    const dp_attention *in = r->in;
    row_state state = {.largest = -INFINITY,
                       .scale = (float)(1.4426950408889634 * dp_attention_scale(in))};
    float q[DP_HEAD_DIM];
    for (size_t d = 0; d < in->dim; d++) {
        q[d] = from_bf16(in->q[(head * in->queries + row) * in->dim + d]);
    }
    const size_t reach = row + 1 + in->keys; /* visible keys + queries, when causal */
    const size_t visible = !in->causal ? in->keys : (reach > in->queries ? reach - in->queries : 0);
    const size_t last = visible < in->keys ? visible : in->keys;
    for (size_t tile = (last + DP_TILE - 1) / DP_TILE; tile-- > 0;) {
        const size_t first = tile * DP_TILE;
        const size_t count = last - first < DP_TILE ? last - first : DP_TILE;
        r->add_tile(&state, q, r->k_transposed + kv * in->dim * in->keys + first,
                    r->v + (kv * in->keys + first) * in->dim, in->dim, in->keys, count);
    }
    uint16_t *o = r->o + (head * in->queries + row) * in->dim;
    for (size_t d = 0; d < in->dim; d++) {
        const float x = state.sum > 0.0f ? state.acc[d] / state.sum : 0.0f;
        o[d] = dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
    }
    if (r->lse != NULL) {
        r->lse[head * in->queries + row] =
            state.sum > 0.0f
                ? (state.largest * state.scale + dp_reference_log2(state.sum)) * 0.693147181f
                : -INFINITY;
    }
}

static void reference_rows(void *context, size_t first, size_t last, int thread)
{
    const reference *r = context;
    const dp_attention *in = r->in;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const size_t head = i / in->queries;
        const size_t kv =
            head / in->q_heads * in->kv_heads + dp_attention_kv_head(in, head % in->q_heads);
        reference_row(r, head, kv, i % in->queries);
    }
}

bool dp_reference_bf16(const dp_attention *in, int threads, uint16_t *o, float *lse,
                       dp_error *error)
{
    if (!dp_attention_check(in, error)) {
        return false;
    }
    const size_t values = in->batch * in->kv_heads * in->keys * in->dim;
    reference r = {.in = in, .o = o, .lse = lse};
    r.add_tile = add_tile_portable;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) {
        r.add_tile = add_tile_avx2;
    }
#endif
    r.k_transposed = malloc(values * sizeof(float));
    r.v = malloc(values * sizeof(float));
    const bool good = r.k_transposed != NULL && r.v != NULL;
    if (good) {
        widen(&r);
        fenv_t callers;
        dp_environment_enter(&callers);
        dp_parallel_for(threads, in->batch * in->q_heads * in->queries, 16, reference_rows, &r);
        dp_environment_leave(&callers);
    } else {
        (void)dp_fail(error, "reference: not enough memory for %zu keys: use a shorter sequence",
                      in->keys);
    }
    free(r.k_transposed);
    free(r.v);
    return good;
}
