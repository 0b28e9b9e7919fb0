/* SPDX-License-Identifier: MIT
 *
 * Stage quantize: Q and K to NVFP4, V to MXFP4 with amplitude scales along the keys [D1].
 */
#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "formats/environment.h"
#include "formats/fold64.h"
#include "formats/parallel.h"
#include "ref/arith/f32_fast.h"
#include "ref/forward/forward.h"

enum { QK_BLOCK = 16 };

static float from_bf16(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static float amax_of(const float *x, size_t n)
{
    float amax = 0.0f;
    for (size_t i = 0; i < n; i++) {
        const float magnitude = fabsf(x[i]);
        amax = magnitude > amax ? magnitude : amax;
    }
    return amax;
}

static void put_code(uint8_t *payload, size_t i, uint8_t code)
{
    uint8_t *byte = &payload[i / 2];
    *byte = (uint8_t)(i % 2 == 0 ? (*byte & 0xF0u) | code : (*byte & 0x0Fu) | (uint32_t)code << 4);
}

/* Ordinary NVFP4 of one row as the HAO tensor maker calls it: scale E4M3(amax * rcp(6)), elements
 * times rcp of the decoded scale. */
static void quantize_row_plain(const dp_sfu *sfu, const float *x, size_t features, uint8_t *payload,
                               uint8_t *scale)
{
    const float sixth = dp_rcp_approx_ftz(sfu, 6.0f);
    for (size_t b = 0; b < features / QK_BLOCK; b++) {
        const float *block = x + b * QK_BLOCK;
        const float amax = amax_of(block, QK_BLOCK);
        const dp_e4m3 byte = dp_e4m3_from_f32(dp_mul_rn_ftz(amax, sixth), DP_ENCODE_PTX);
        const float factor = amax == 0.0f ? 0.0f : dp_rcp_approx_ftz(sfu, dp_e4m3_to_f32(byte));
        scale[b] = byte.bits;
        for (size_t i = 0; i < QK_BLOCK; i++) {
            put_code(payload, b * QK_BLOCK + i,
                     dp_e2m1_from_f32(dp_mul_rn_ftz(block[i], factor), DP_ENCODE_PTX).bits);
        }
    }
}

/* MXFP4 of 32 keys of one feature: the byte is the amplitude's, the payload x * 6 * 2^(127-u). */
static void quantize_v_block(const float *x, const dp_switches *switches, uint8_t *payload,
                             uint8_t *scale)
{
    const float amax = amax_of(x, DP_BLOCK);
    const dp_e8m0_encode nearest = {DP_E8M0_NEAREST_EVEN, true};
    const dp_e8m0 u = {amax > 1e-38f ? dp_e8m0_from_f32(amax, nearest).bits : (uint8_t)0};
    *scale = u.bits;
    for (size_t i = 0; i < DP_BLOCK; i++) {
        uint8_t code;
        if (u.bits == 0) {
            code = switches->v_zero_nan ? 7 : 0;
        } else {
            const double scaled = (double)x[i] * ldexp(6.0, 127 - u.bits); /* exact */
            code = dp_e2m1_from_f32((float)scaled, DP_ENCODE_PTX).bits;
        }
        put_code(payload, i, code);
    }
}

typedef struct {
    const dp_attention *in;
    const dp_direct_p *launch;
    dp_operands *out;
} quantize_job;

static void load_row(const uint16_t *bits, size_t dim, size_t features, float *row)
{
    for (size_t d = 0; d < features; d++) {
        row[d] = d < dim ? from_bf16(bits[d]) : 0.0f;
    }
}

static void quantize_row(const quantize_job *job, const float *row, uint8_t *payload,
                         uint8_t *scale)
{
    if (job->launch->policy.fold_k64 && job->out->features == DP_HEAD_DIM) {
        dp_fold64_row(row, 1.0f, DP_SUM_TREE, payload, scale, NULL);
    } else {
        quantize_row_plain(job->launch->sfu, row, job->out->features, payload, scale);
    }
}

static void quantize_q_rows(void *context, size_t first, size_t last, int thread)
{
    const quantize_job *job = context;
    const dp_attention *in = job->in;
    dp_operands *out = job->out;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const size_t head = i / in->queries;
        const size_t row = head * out->query_rows + i % in->queries;
        float x[DP_HEAD_DIM];
        load_row(in->q + i * in->dim, in->dim, out->features, x);
        quantize_row(job, x, out->q_payload + row * out->features / 2,
                     out->q_scale + row * out->features / QK_BLOCK);
    }
}

static void quantize_k_rows(void *context, size_t first, size_t last, int thread)
{
    const quantize_job *job = context;
    const dp_attention *in = job->in;
    dp_operands *out = job->out;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const size_t head = i / in->keys;
        const size_t position = i % in->keys;
        const size_t row = head * out->key_rows + position;
        const size_t key = head * in->keys + (size_t)out->key_order[position];
        float x[DP_HEAD_DIM];
        load_row(in->k + key * in->dim, in->dim, out->features, x);
        quantize_row(job, x, out->k_payload + row * out->features / 2,
                     out->k_scale + row * out->features / QK_BLOCK);
    }
}

/* One item: 32 keys of one head, every feature. */
static void quantize_v_blocks(void *context, size_t first, size_t last, int thread)
{
    const quantize_job *job = context;
    const dp_attention *in = job->in;
    dp_operands *out = job->out;
    const size_t blocks = out->key_rows / DP_BLOCK;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const size_t head = i / blocks;
        const size_t block = i % blocks;
        for (size_t d = 0; d < out->features; d++) {
            float x[DP_BLOCK];
            for (size_t j = 0; j < DP_BLOCK; j++) {
                const size_t position = block * DP_BLOCK + j;
                const bool real = position < in->keys && d < in->dim;
                const size_t key = real ? head * in->keys + (size_t)out->key_order[position] : 0;
                x[j] = real ? from_bf16(in->v[key * in->dim + d]) : 0.0f;
            }
            const size_t row = head * out->features + d;
            quantize_v_block(x, &job->launch->switches,
                             out->v_payload + row * out->key_rows / 2 + block * DP_BLOCK / 2,
                             out->v_scale + row * blocks + block);
        }
    }
}

static size_t round_up(size_t n)
{
    return (n + DP_TILE - 1) / DP_TILE * DP_TILE;
}

static bool allocate_operands(const dp_attention *in, dp_operands *out)
{
    const size_t q_rows = in->batch * in->q_heads * out->query_rows;
    const size_t k_rows = in->batch * in->kv_heads * out->key_rows;
    out->q_payload = calloc(q_rows, out->features / 2);
    out->q_scale = calloc(q_rows, out->features / QK_BLOCK);
    out->k_payload = calloc(k_rows, out->features / 2);
    out->k_scale = calloc(k_rows, out->features / QK_BLOCK);
    out->v_payload = calloc(k_rows, out->features / 2);
    out->v_scale = calloc(k_rows, out->features / DP_BLOCK);
    out->key_order = calloc(in->keys, sizeof *out->key_order);
    return out->q_payload != NULL && out->q_scale != NULL && out->k_payload != NULL &&
           out->k_scale != NULL && out->v_payload != NULL && out->v_scale != NULL &&
           out->key_order != NULL;
}

bool dp_forward_quantize(const dp_attention *in, const dp_direct_p *launch, int threads,
                         dp_operands *out, dp_error *error)
{
    memset(out, 0, sizeof *out);
    if (!dp_attention_check(in, error)) {
        return false;
    }
    if (launch->switches.native_d64 && in->dim > DP_HEAD_DIM / 2) {
        return dp_fail(error, "native-d64: head dimension %zu: it holds at most 64 features",
                       in->dim);
    }
    out->features = launch->switches.native_d64 ? DP_HEAD_DIM / 2 : DP_HEAD_DIM;
    out->query_rows = round_up(in->queries);
    out->key_rows = round_up(in->keys);
    if (!allocate_operands(in, out)) {
        dp_operands_free(out);
        return dp_fail(error, "quantize: not enough memory for %zu keys: use a shorter sequence",
                       in->keys);
    }
    const bool natural = in->causal || launch->switches.natural_order ||
                         launch->policy.reference == DP_REFERENCE_NONE;
    fenv_t callers;
    dp_environment_enter(&callers);
    dp_anchor_order(in->keys, natural ? 0 : (size_t)launch->policy.anchor_keys, out->key_order);
    quantize_job job = {in, launch, out};
    dp_parallel_for(threads, in->batch * in->q_heads * in->queries, 64, quantize_q_rows, &job);
    dp_parallel_for(threads, in->batch * in->kv_heads * in->keys, 64, quantize_k_rows, &job);
    dp_parallel_for(threads, in->batch * in->kv_heads * (out->key_rows / DP_BLOCK), 4,
                    quantize_v_blocks, &job);
    dp_environment_leave(&callers);
    return true;
}

void dp_operands_free(dp_operands *operands)
{
    free(operands->q_payload);
    free(operands->q_scale);
    free(operands->k_payload);
    free(operands->k_scale);
    free(operands->v_payload);
    free(operands->v_scale);
    free(operands->key_order);
    memset(operands, 0, sizeof *operands);
}
