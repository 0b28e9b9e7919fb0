/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/tensors.h"
#include "formats/bf16.h"
#include "formats/fp16.h"

/* Bits in the file of an element: exact when the format holds it, NaN payloads of bf16 included. */
static uint16_t narrow(float x, bool bf16)
{
    const uint32_t bits = dp_f32_bits(x);
    if (!bf16) {
        return dp_fp16_from_f32(x, DP_ENCODE_NONSAT).bits;
    }
    return (bits & 0xFFFFu) == 0 ? (uint16_t)(bits >> 16)
                                 : dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
}

static bool put_operand(dp_h5_writer *writer, const char *path, const dp_tensors *t,
                        const float *values, size_t heads, size_t rows, dp_error *error)
{
    const uint64_t dims[] = {t->batch, heads, rows, t->dim};
    const size_t count = t->batch * heads * rows * t->dim;
    const dp_h5_labels labels = {.format = t->format, .axes = "batch,head,seq,dim"};
    if (strcmp(t->format, "f32") == 0) {
        return dp_h5_put(writer, path, DP_H5_F32, 4, dims, values, &labels, error);
    }
    const bool bf16 = strcmp(t->format, "bf16") == 0;
    uint16_t *bits = malloc(count * sizeof *bits);
    if (bits == NULL) {
        return dp_fail(error, "%s: no memory for %zu elements: free some", path, count);
    }
    for (size_t i = 0; i < count; i++) {
        bits[i] = narrow(values[i], bf16);
    }
    const bool good =
        dp_h5_put(writer, path, bf16 ? DP_H5_U16 : DP_H5_F16, 4, dims, bits, &labels, error);
    free(bits);
    return good;
}

static bool put_heads(dp_h5_writer *writer, const dp_tensors *t, dp_error *error)
{
    int64_t *heads = malloc(t->q_heads * sizeof *heads);
    if (heads == NULL) {
        return dp_fail(error, "kv_of_q: no memory: free some");
    }
    for (size_t h = 0; h < t->q_heads; h++) {
        heads[h] = (int64_t)t->kv_of_q[h];
    }
    const bool good = dp_h5_put_i64_list(writer, "/", "kv_of_q", heads, t->q_heads, error);
    free(heads);
    return good;
}

bool dp_tensors_put(dp_h5_writer *writer, const dp_tensors *t, dp_error *error)
{
    return put_operand(writer, "/inputs/q", t, t->q, t->q_heads, t->q_len, error) &&
           put_operand(writer, "/inputs/k", t, t->k, t->kv_heads, t->kv_len, error) &&
           put_operand(writer, "/inputs/v", t, t->v, t->kv_heads, t->kv_len, error) &&
           put_heads(writer, t, error) &&
           dp_h5_put_f64(writer, "/", "softmax_scale", t->softmax_scale, error) &&
           dp_h5_put_i64(writer, "/", "causal", t->causal ? 1 : 0, error) &&
           (t->model == NULL || dp_h5_put_text(writer, "/", "model", t->model, error)) &&
           (t->note == NULL || dp_h5_put_text(writer, "/", "note", t->note, error)) &&
           (t->layer < 0 || dp_h5_put_i64(writer, "/", "layer", t->layer, error));
}

bool dp_tensors_save(const char *path, const dp_tensors *tensors, dp_error *error)
{
    dp_h5_writer writer;
    const bool good = dp_h5_create(&writer, path, "tensors", NULL, 0, error) &&
                      dp_tensors_put(&writer, tensors, error) && dp_h5_commit(&writer, error);
    dp_h5_abandon(&writer);
    return good;
}
