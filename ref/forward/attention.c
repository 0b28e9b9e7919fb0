/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "ref/forward/forward.h"

double dp_attention_scale(const dp_attention *in)
{
    return in->softmax_scale != 0.0 ? in->softmax_scale : 1.0 / sqrt((double)in->dim);
}

size_t dp_attention_kv_head(const dp_attention *in, size_t q_head)
{
    return in->kv_of_q != NULL ? (size_t)in->kv_of_q[q_head] : q_head * in->kv_heads / in->q_heads;
}

bool dp_attention_check(const dp_attention *in, dp_error *error)
{
    if (in->batch == 0 || in->q_heads == 0 || in->kv_heads == 0 || in->queries == 0 ||
        in->keys == 0) {
        return dp_fail(error,
                       "attention: an empty shape (batch %zu, heads %zu/%zu, queries %zu, "
                       "keys %zu): give every extent at least 1",
                       in->batch, in->q_heads, in->kv_heads, in->queries, in->keys);
    }
    if (in->dim == 0 || in->dim > DP_HEAD_DIM) {
        return dp_fail(error, "attention: head dimension %zu: the operator is defined for 1 to %d",
                       in->dim, DP_HEAD_DIM);
    }
    /* Beyond f32 the multiplier of the scores is Inf; below its normals it is 0, and 0 times the
     * -Inf of a hidden score is NaN, which gets the largest code. */
    if (in->softmax_scale != 0.0 && !(in->softmax_scale >= 1e-37 && in->softmax_scale <= 1e38)) {
        return dp_fail(error, "attention: softmax scale %g: give a number from 1e-37 to 1e38",
                       in->softmax_scale);
    }
    for (size_t h = 0; h < in->q_heads; h++) {
        if (in->kv_of_q != NULL && (in->kv_of_q[h] < 0 || (size_t)in->kv_of_q[h] >= in->kv_heads)) {
            return dp_fail(error,
                           "attention: kv_of_q[%zu] = %d: there are %zu key heads, count "
                           "from 0",
                           h, (int)in->kv_of_q[h], in->kv_heads);
        }
    }
    return true;
}

/* n points from 0 to keys - 1 as torch.linspace gives them in f32 (from both ends to the middle),
 * rounded half to even. */
static int32_t anchor_at(size_t keys, size_t n, size_t i)
{
    const float end = (float)(keys - 1);
    const float step = n > 1 ? end / (float)(n - 1) : 0.0f;
    const float x = i < n / 2 ? step * (float)i : end - step * (float)(n - 1 - i);
    return (int32_t)nearbyintf(x);
}

void dp_anchor_order(size_t keys, size_t n, int32_t *order)
{
    const size_t anchors = keys < n ? 0 : n;
    size_t used = 0;
    for (size_t i = 0; i < anchors; i++) {
        order[used++] = anchor_at(keys, anchors, i);
    }
    size_t next = 0; /* the anchors ascend, so one pass skips them */
    for (size_t key = 0; key < keys; key++) {
        if (next < anchors && order[next] == (int32_t)key) {
            next++;
        } else {
            order[used++] = (int32_t)key;
        }
    }
}
