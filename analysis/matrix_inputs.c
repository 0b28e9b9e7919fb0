/* SPDX-License-Identifier: MIT
 *
 * Inputs on which attention routes differ: N(0,1) hides lifts, stale maxima and lost tails.
 */
#include "analysis/matrix.h"
#include "formats/bf16.h"

static const char *const NAMES[] = {"normal", "q-x4", "q-x10", "sink", "tail", "ones"};

size_t dp_matrix_input_count(void)
{
    return sizeof NAMES / sizeof NAMES[0];
}

const char *dp_matrix_input_name(size_t index)
{
    return NAMES[index < dp_matrix_input_count() ? index : 0];
}

static uint16_t to_bf16(float x)
{
    return dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
}

static float from_bf16(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static void fill(uint16_t *x, size_t n, float value)
{
    const uint16_t bits = to_bf16(value);
    for (size_t i = 0; i < n; i++) {
        x[i] = bits;
    }
}

/* Every query leans towards key 0, which takes about half of the probability and carries no value:
 * what is left of the output comes from small probabilities. */
static void make_sink(dp_attend_inputs *inputs)
{
    const dp_attention *in = &inputs->in;
    const size_t q = in->batch * in->q_heads * in->queries * in->dim;
    for (size_t i = 0; i < q; i++) {
        inputs->q[i] = to_bf16(from_bf16(inputs->q[i]) + 0.7f);
    }
    for (size_t h = 0; h < in->batch * in->kv_heads; h++) {
        fill(inputs->k + h * in->keys * in->dim, in->dim, 1.0f);
        fill(inputs->v + h * in->keys * in->dim, in->dim, 0.0f);
    }
}

/* One key at logit 0, all the others near -9.9: 5 % of the mass of a row of 1024 lies in blocks
 * 2^-14 below the maximum. V is 1, so the output is 1 (FlashAttention's test of tail mass). */
static void make_tail(dp_attend_inputs *inputs)
{
    const dp_attention *in = &inputs->in;
    fill(inputs->q, in->batch * in->q_heads * in->queries * in->dim, 0.0f);
    for (size_t i = 0; i < in->batch * in->q_heads * in->queries; i++) {
        inputs->q[i * in->dim] = to_bf16(16.0f);
    }
    const size_t rows = in->batch * in->kv_heads * in->keys;
    fill(inputs->k, rows * in->dim, 0.0f);
    for (size_t i = 0; i < rows; i++) {
        inputs->k[i * in->dim] = to_bf16(i % in->keys == in->keys - 1 ? 0.0f : -7.0f);
    }
    fill(inputs->v, rows * in->dim, 1.0f);
}

bool dp_matrix_shape(const char *input, dp_attend_inputs *inputs)
{
    const dp_attention *in = &inputs->in;
    const size_t q = in->batch * in->q_heads * in->queries * in->dim;
    if (strcmp(input, "q-x4") == 0 || strcmp(input, "q-x10") == 0) {
        const float factor = input[3] == '4' ? 4.0f : 10.0f;
        for (size_t i = 0; i < q; i++) {
            inputs->q[i] = to_bf16(from_bf16(inputs->q[i]) * factor);
        }
    } else if (strcmp(input, "sink") == 0) {
        make_sink(inputs);
    } else if (strcmp(input, "tail") == 0) {
        make_tail(inputs);
    } else if (strcmp(input, "ones") == 0) {
        fill(inputs->v, in->batch * in->kv_heads * in->keys * in->dim, 1.0f);
    } else {
        return strcmp(input, "normal") == 0;
    }
    return true;
}
