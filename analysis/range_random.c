/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "analysis/range.h"
#include "analysis/torch_rand.h"

/* [row][head][dim] -> [head][row][dim] */
static void to_head_major(const float *from, size_t rows, size_t heads, size_t dim, float *to)
{
    for (size_t h = 0; h < heads; h++) {
        for (size_t r = 0; r < rows; r++) {
            memcpy(to + (h * rows + r) * dim, from + (r * heads + h) * dim, dim * sizeof *to);
        }
    }
}

bool dp_range_random(uint64_t seed, int sms, size_t seq, size_t heads, size_t rows, size_t dim,
                     int threads, dp_tensors *tensors, dp_error *error)
{
    const size_t longest = rows > seq ? rows : seq;
    *tensors = (dp_tensors){.batch = 1,
                            .q_heads = heads,
                            .kv_heads = heads,
                            .q_len = rows,
                            .kv_len = seq,
                            .dim = dim,
                            .softmax_scale = 1.0 / sqrt((double)dim),
                            .format = "f32",
                            .layer = -1};
    float *draw = malloc(longest * heads * dim * sizeof *draw);
    tensors->q = malloc(rows * heads * dim * sizeof *draw);
    tensors->k = malloc(seq * heads * dim * sizeof *draw);
    tensors->v = malloc(seq * heads * dim * sizeof *draw);
    tensors->kv_of_q = malloc(heads * sizeof *tensors->kv_of_q);
    if (!draw || !tensors->q || !tensors->k || !tensors->v || !tensors->kv_of_q) {
        free(draw);
        dp_tensors_free(tensors);
        return dp_fail(error, "range: not enough memory for %zu keys of %zu heads", seq, heads);
    }
    for (size_t h = 0; h < heads; h++) {
        tensors->kv_of_q[h] = h;
    }
    float *target[] = {tensors->q, tensors->k, tensors->v};
    uint64_t offset = 0;
    for (int i = 0; i < 3; i++) {
        const size_t length = i == 0 ? rows : seq;
        offset = dp_torch_randn(seed, offset, sms, length * heads * dim, draw, threads);
        to_head_major(draw, length, heads, dim, target[i]);
    }
    free(draw);
    return true;
}
