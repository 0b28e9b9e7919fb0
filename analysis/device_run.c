/* SPDX-License-Identifier: MIT
 *
 * The kernels as the engine of dp_attend_run: stages of one head at a time, handed over in strips.
 */
#include <stdlib.h>

#include "analysis/device_diff.h"

uint16_t *dp_device_padded(const uint16_t *x, size_t rows, size_t dim)
{
    uint16_t *out = calloc(rows * DP_HEAD_DIM, sizeof *out);
    for (size_t r = 0; out != NULL && r < rows; r++) {
        memcpy(out + r * DP_HEAD_DIM, x + r * dim, dim * sizeof *x);
    }
    return out;
}

/* One (batch, head) of a problem, 128 features a row. */
typedef struct {
    uint16_t *q, *k, *v;
    int32_t map[1];
    dp_device_problem problem;
} head_problem;

static void release_head(head_problem *h)
{
    free(h->q);
    free(h->k);
    free(h->v);
}

static bool take_head(const dp_attention *in, size_t batch, size_t head, const int32_t *key_order,
                      head_problem *h, dp_error *error)
{
    const size_t kv = batch * in->kv_heads + dp_attention_kv_head(in, head);
    const size_t q = batch * in->q_heads + head;
    h->q = dp_device_padded(in->q + q * in->queries * in->dim, in->queries, in->dim);
    h->k = dp_device_padded(in->k + kv * in->keys * in->dim, in->keys, in->dim);
    h->v = dp_device_padded(in->v + kv * in->keys * in->dim, in->keys, in->dim);
    h->map[0] = 0;
    h->problem = (dp_device_problem){.batch = 1,
                                     .q_heads = 1,
                                     .kv_heads = 1,
                                     .queries = in->queries,
                                     .keys = in->keys,
                                     .causal = in->causal,
                                     .kv_of_q = h->map,
                                     .key_order = key_order,
                                     .q = h->q,
                                     .k = h->k,
                                     .v = h->v};
    return (h->q != NULL && h->k != NULL && h->v != NULL) ||
           dp_fail(error, "device run: not enough memory for one head: use a shorter sequence");
}

/* The oracle makes the arrays and the key order; every code and scale is the device's. */
static bool quantize(void *context, const dp_attention *in, const dp_direct_p *launch, int threads,
                     dp_operands *out, dp_error *error)
{
    const dp_device_engine *engine = context;
    const dp_device_policy policy = dp_device_policy_of(launch);
    if (launch->switches.native_d64) {
        return dp_fail(error, "native-d64: the kernels are built for 128 features: leave it off");
    }
    if (!dp_forward_quantize(in, launch, threads, out, error)) {
        return false;
    }
    bool good = true;
    for (size_t h = 0; good && h < in->batch * in->q_heads; h++) {
        const size_t batch = h / in->q_heads;
        const size_t kv = batch * in->kv_heads + dp_attention_kv_head(in, h % in->q_heads);
        head_problem head = {0};
        dp_device_stages stages = {.q_payload = out->q_payload + h * out->query_rows * 64,
                                   .q_scale = out->q_scale + h * out->query_rows * 8,
                                   .k_payload = out->k_payload + kv * out->key_rows * 64,
                                   .k_scale = out->k_scale + kv * out->key_rows * 8,
                                   .v_payload = out->v_payload + kv * out->key_rows * 64,
                                   .v_scale = out->v_scale + kv * out->key_rows * 4};
        good = take_head(in, batch, h % in->q_heads, out->key_order, &head, error) &&
               dp_device_run(engine->device, &head.problem, &policy, DP_DEVICE_QUANTIZE,
                             DP_DEVICE_QUANTIZE, &stages, error);
        release_head(&head);
    }
    if (!good) {
        dp_operands_free(out);
    }
    return good;
}

static bool allocate(dp_device_stages *s, size_t rows, size_t keys)
{
    s->raw = malloc(rows * keys * sizeof *s->raw);
    s->row_ref = malloc(rows * sizeof *s->row_ref);
    s->p_scale = malloc(rows * keys / 32);
    s->p_payload = malloc(rows * keys / 2);
    s->code_sum = malloc(rows * keys / 32 * sizeof *s->code_sum);
    s->row_sum = malloc(rows * sizeof *s->row_sum);
    s->acc = malloc(rows * DP_HEAD_DIM * sizeof *s->acc);
    s->o = malloc(rows * DP_HEAD_DIM * sizeof *s->o);
    s->lse = malloc(rows * sizeof *s->lse);
    return s->raw != NULL && s->row_ref != NULL && s->p_scale != NULL && s->p_payload != NULL &&
           s->code_sum != NULL && s->row_sum != NULL && s->acc != NULL && s->o != NULL &&
           s->lse != NULL;
}

static void release(dp_device_stages *s)
{
    free(s->raw);
    free(s->row_ref);
    free(s->p_scale);
    free(s->p_payload);
    free(s->code_sum);
    free(s->row_sum);
    free(s->acc);
    free(s->o);
    free(s->lse);
}

/* Hand a head's rows over as the oracle does, a tile of queries at a time. */
static bool hand_over(const dp_forward_job *job, const dp_device_stages *s, size_t batch,
                      size_t head)
{
    const size_t keys = job->operands->key_rows;
    const size_t rows = job->in->queries;
    bool good = true;
    for (size_t r = 0; good && r < rows; r += DP_TILE) {
        const dp_strip strip = {.batch = batch,
                                .head = head,
                                .row_first = r,
                                .rows = rows - r < DP_TILE ? rows - r : DP_TILE,
                                .keys = keys,
                                .dim = DP_HEAD_DIM,
                                .raw = s->raw + r * keys,
                                .row_ref = s->row_ref + r,
                                .p_scale = s->p_scale + r * keys / 32,
                                .p_payload = s->p_payload + r * keys / 2,
                                .code_sum = s->code_sum + r * keys / 32,
                                .row_sum = s->row_sum + r,
                                .acc = s->acc + r * DP_HEAD_DIM,
                                .o = s->o + r * DP_HEAD_DIM,
                                .lse = s->lse + r};
        good = job->sink(job->context, &strip);
    }
    return good;
}

static bool run(void *context, const dp_forward_job *job, dp_error *error)
{
    const dp_device_engine *engine = context;
    const dp_device_policy policy = dp_device_policy_of(job->launch);
    const dp_attention *in = job->in;
    dp_device_stages stages = {0};
    bool good = allocate(&stages, in->queries, job->operands->key_rows) ||
                dp_fail(error, "device run: not enough memory for one head's stages: use a "
                               "shorter sequence");
    for (size_t h = 0; good && h < in->batch * in->q_heads; h++) {
        head_problem head = {0};
        good = take_head(in, h / in->q_heads, h % in->q_heads, job->operands->key_order, &head,
                         error) &&
               dp_device_run(engine->device, &head.problem, &policy, DP_DEVICE_QUANTIZE,
                             DP_DEVICE_OUTPUT, &stages, error) &&
               hand_over(job, &stages, h / in->q_heads, h % in->q_heads);
        release_head(&head);
    }
    release(&stages);
    return good;
}

dp_attend_engine dp_device_attend_engine(dp_device_engine *device)
{
    const dp_attend_engine engine = {
        .device = device->info.name, .quantize = quantize, .run = run, .context = device};
    return engine;
}
