/* SPDX-License-Identifier: MIT */
#include "analysis/attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/torch_rand.h"
#include "formats/bf16.h"

static uint16_t to_bf16(float x)
{
    return dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
}

static float from_bf16(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static bool allocate(dp_attend_inputs *inputs, dp_error *error)
{
    const dp_attention *in = &inputs->in;
    const size_t q = in->batch * in->q_heads * in->queries * in->dim;
    const size_t kv = in->batch * in->kv_heads * in->keys * in->dim;
    inputs->q = malloc(q * sizeof(uint16_t));
    inputs->k = malloc(kv * sizeof(uint16_t));
    inputs->v = malloc(kv * sizeof(uint16_t));
    if (inputs->q == NULL || inputs->k == NULL || inputs->v == NULL) {
        dp_attend_inputs_free(inputs);
        return dp_fail(error,
                       "inputs: not enough memory for %zu values: use a shorter sequence or "
                       "fewer heads",
                       q + 2 * kv);
    }
    inputs->in.q = inputs->q;
    inputs->in.k = inputs->k;
    inputs->in.v = inputs->v;
    return true;
}

/* K minus its mean over the sequence, per head and feature: every logit of a row moves by the same
 * amount, so exact attention does not change. */
static void smooth_keys(dp_attend_inputs *inputs)
{
    const dp_attention *in = &inputs->in;
    for (size_t head = 0; head < in->batch * in->kv_heads; head++) {
        uint16_t *k = inputs->k + head * in->keys * in->dim;
        for (size_t d = 0; d < in->dim; d++) {
            double sum = 0.0;
            for (size_t j = 0; j < in->keys; j++) {
                sum += (double)from_bf16(k[j * in->dim + d]);
            }
            const double mean = sum / (double)in->keys;
            for (size_t j = 0; j < in->keys; j++) {
                uint16_t *at = &k[j * in->dim + d];
                *at = to_bf16((float)((double)from_bf16(*at) - mean));
            }
        }
    }
}

static bool apply(const dp_attend_transform *transform, dp_attend_inputs *inputs)
{
    const size_t q = inputs->in.batch * inputs->in.q_heads * inputs->in.queries * inputs->in.dim;
    for (size_t i = 0; transform->q_factor != 1.0 && i < q; i++) {
        inputs->q[i] = to_bf16((float)((double)from_bf16(inputs->q[i]) * transform->q_factor));
    }
    inputs->smooth_k = transform->smooth_k;
    if (transform->smooth_k) {
        smooth_keys(inputs);
    }
    if (transform->causal || transform->no_causal) {
        inputs->in.causal = transform->causal;
    }
    if (transform->kv_block) {
        inputs->in.kv_of_q = NULL;
    }
    if (transform->kv_interleave && inputs->kv_of_q == NULL) {
        inputs->kv_of_q = malloc(inputs->in.q_heads * sizeof(int32_t));
        inputs->in.kv_of_q = inputs->kv_of_q;
    }
    for (size_t h = 0;
         transform->kv_interleave && inputs->kv_of_q != NULL && h < inputs->in.q_heads; h++) {
        inputs->kv_of_q[h] = (int32_t)(h % inputs->in.kv_heads);
    }
    return !transform->kv_interleave || inputs->kv_of_q != NULL;
}

bool dp_attend_from_tensors(const dp_tensors *tensors, const char *source,
                            const dp_attend_transform *transform, dp_attend_inputs *inputs,
                            dp_error *error)
{
    memset(inputs, 0, sizeof *inputs);
    (void)snprintf(inputs->source, sizeof inputs->source, "%s", source);
    inputs->in = (dp_attention){.batch = tensors->batch,
                                .q_heads = tensors->q_heads,
                                .kv_heads = tensors->kv_heads,
                                .queries = tensors->q_len,
                                .keys = tensors->kv_len,
                                .dim = tensors->dim,
                                .softmax_scale = tensors->softmax_scale,
                                .causal = tensors->causal};
    if (!dp_attention_check(&inputs->in, error) || !allocate(inputs, error)) {
        return false;
    }
    inputs->kv_of_q = malloc(tensors->q_heads * sizeof(int32_t));
    if (inputs->kv_of_q == NULL) {
        dp_attend_inputs_free(inputs);
        return dp_fail(error, "inputs: not enough memory");
    }
    for (size_t h = 0; h < tensors->q_heads; h++) {
        inputs->kv_of_q[h] = (int32_t)tensors->kv_of_q[h];
    }
    inputs->in.kv_of_q = inputs->kv_of_q;
    const size_t q = tensors->batch * tensors->q_heads * tensors->q_len * tensors->dim;
    const size_t kv = tensors->batch * tensors->kv_heads * tensors->kv_len * tensors->dim;
    for (size_t i = 0; i < q; i++) {
        inputs->q[i] = to_bf16(tensors->q[i]);
    }
    for (size_t i = 0; i < kv; i++) {
        inputs->k[i] = to_bf16(tensors->k[i]);
        inputs->v[i] = to_bf16(tensors->v[i]);
    }
    if (!apply(transform, inputs)) {
        dp_attend_inputs_free(inputs);
        return dp_fail(error, "inputs: not enough memory");
    }
    return true;
}

/* [batch][seq][head][dim] as drawn, to [batch][head][seq][dim]. */
static void reorder(const float *drawn, size_t batch, size_t seq, size_t heads, size_t dim,
                    uint16_t *out)
{
    for (size_t i = 0; i < batch * seq * heads; i++) {
        const size_t head = i % heads;
        const size_t row = i / heads % seq;
        const size_t b = i / heads / seq;
        for (size_t d = 0; d < dim; d++) {
            out[((b * heads + head) * seq + row) * dim + d] = to_bf16(drawn[i * dim + d]);
        }
    }
}

bool dp_attend_random(uint64_t seed, int sms, size_t batch, size_t seq, size_t heads,
                      size_t kv_heads, size_t dim, int threads,
                      const dp_attend_transform *transform, dp_attend_inputs *inputs,
                      dp_error *error)
{
    memset(inputs, 0, sizeof *inputs);
    (void)snprintf(inputs->source, sizeof inputs->source, "random seed %llu, %d SMs",
                   (unsigned long long)seed, sms);
    inputs->in = (dp_attention){.batch = batch,
                                .q_heads = heads,
                                .kv_heads = kv_heads,
                                .queries = seq,
                                .keys = seq,
                                .dim = dim};
    if (!dp_attention_check(&inputs->in, error) || !allocate(inputs, error)) {
        return false;
    }
    float *drawn = malloc(batch * seq * heads * dim * sizeof(float));
    if (drawn == NULL) {
        dp_attend_inputs_free(inputs);
        return dp_fail(error, "inputs: not enough memory to draw %zu values",
                       batch * seq * heads * dim);
    }
    uint64_t offset = dp_torch_randn(seed, 0, sms, batch * seq * heads * dim, drawn, threads);
    reorder(drawn, batch, seq, heads, dim, inputs->q);
    offset = dp_torch_randn(seed, offset, sms, batch * seq * kv_heads * dim, drawn, threads);
    reorder(drawn, batch, seq, kv_heads, dim, inputs->k);
    (void)dp_torch_randn(seed, offset, sms, batch * seq * kv_heads * dim, drawn, threads);
    reorder(drawn, batch, seq, kv_heads, dim, inputs->v);
    free(drawn);
    if (!apply(transform, inputs)) {
        dp_attend_inputs_free(inputs);
        return dp_fail(error, "inputs: not enough memory");
    }
    return true;
}

void dp_attend_inputs_free(dp_attend_inputs *inputs)
{
    free(inputs->q);
    free(inputs->k);
    free(inputs->v);
    free(inputs->kv_of_q);
    memset(inputs, 0, sizeof *inputs);
}

double dp_attend_largest_logit(const dp_attention *in, size_t batch, size_t head)
{
    const uint16_t *q = in->q + (batch * in->q_heads + head) * in->queries * in->dim;
    const uint16_t *k =
        in->k + (batch * in->kv_heads + dp_attention_kv_head(in, head)) * in->keys * in->dim;
    double largest = 0.0;
    for (size_t i = 0; i < in->queries; i++) {
        for (size_t j = 0; j < in->keys; j++) {
            if (in->causal && j + in->queries > i + in->keys) {
                break;
            }
            double dot = 0.0;
            for (size_t d = 0; d < in->dim; d++) {
                dot +=
                    (double)from_bf16(q[i * in->dim + d]) * (double)from_bf16(k[j * in->dim + d]);
            }
            largest = fabs(dot) > largest ? fabs(dot) : largest;
        }
    }
    return largest * dp_attention_scale(in);
}

dp_attend_metrics dp_attend_compare(const uint16_t *x, const uint16_t *reference, size_t rows,
                                    size_t dim)
{
    dp_attend_metrics m = {.rows = rows};
    double xx = 0.0;
    double rr = 0.0;
    double xr = 0.0;
    double difference = 0.0;
    for (size_t row = 0; row < rows; row++) {
        bool finite = true;
        for (size_t d = 0; d < dim; d++) {
            finite = finite && isfinite(from_bf16(x[row * dim + d]));
        }
        m.nonfinite_rows += !finite;
        for (size_t d = 0; finite && d < dim; d++) {
            const double a = (double)from_bf16(x[row * dim + d]);
            const double b = (double)from_bf16(reference[row * dim + d]);
            xx += a * a;
            rr += b * b;
            xr += a * b;
            difference += (a - b) * (a - b);
        }
    }
    const double values = (double)(rows - m.nonfinite_rows) * (double)dim;
    m.cosine = xr / sqrt(xx * rr);
    m.rel_l2 = sqrt(difference / rr);
    m.rmse = sqrt(difference / values);
    m.slope = xr / rr;
    return m;
}
