/* SPDX-License-Identifier: MIT */
#include "analysis/torch_rand.h"

#include <Random123/philox.h>
#include <math.h>

#include "formats/parallel.h"

enum { DP_RAND_BLOCK = 256, DP_RAND_BLOCKS_PER_SM = 8, DP_RAND_UNROLL = 4 };

void dp_philox(uint64_t seed, uint64_t iteration, uint64_t thread, uint32_t out[4])
{
    const philox4x32_ctr_t counter = {{(uint32_t)iteration, (uint32_t)(iteration >> 32),
                                       (uint32_t)thread, (uint32_t)(thread >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const philox4x32_ctr_t words = philox4x32_R(10, counter, key);
    for (int i = 0; i < 4; i++) {
        out[i] = words.v[i];
    }
}

/* curand calls __sincosf on the device, the special function unit: v times 1/2pi (in binary32) is
 * rounded to 2^-24 of a turn, sine and cosine are cut toward zero at 2^-23. This model is inferred:
 * it is the one under which all published figures come out. It is not the unit bit for bit: of
 * 786,432 angles drawn on an H200 it gives 17 % of the sines exactly and the rest within 4 * 2^-23;
 * the unit's sines are on average 0.44 * 2^-23 short of the true ones, the model's 0.22. Sine and
 * cosine rounded to nearest would make every normal larger by 8e-8 of itself and all logits
 * by 1.5e-7, which moves the sixth decimal of three published figures. */
static float cut_to_23_bits(double x)
{
    return (float)(trunc(x * 0x1p23) * 0x1p-23);
}

/* Evaluated in binary64 and rounded, so that a value depends on the libm only where the true result
 * lies within 1e-16 of a rounding boundary (about one in 10^8). */
void dp_box_muller(uint32_t x, uint32_t y, float pair[2])
{
    const double two_pi = 6.283185307179586;
    const float step = 6.2831855f * 0x1p-32f;
    const float u = (float)((double)(float)x * 0x1p-32 + 0x1p-33);
    const float v = (float)((double)(float)y * (double)step + (double)(step * 0.5f));
    const float log_u = (float)log((double)u);
    const float s = (float)sqrt((double)(-2.0f * log_u));
    const double turn = (double)v * (double)0.15915494309189535f; /* exact */
    const double angle = two_pi * (rint(turn * 0x1p24) * 0x1p-24);
    pair[0] = s * cut_to_23_bits(sin(angle));
    pair[1] = s * cut_to_23_bits(cos(angle));
}

typedef struct {
    uint64_t seed;
    uint64_t first_iteration;
    size_t n;
    size_t stride; /* threads of the grid */
    float *out;
} draw;

/* Item i is thread i % stride in iteration i / stride: four normals, `stride` elements apart. */
static void draw_items(void *context, size_t first, size_t last, int thread)
{
    const draw *self = context;
    (void)thread;
    for (size_t item = first; item < last; item++) {
        const size_t iteration = item / self->stride;
        const size_t lane = item % self->stride;
        size_t element = iteration * DP_RAND_UNROLL * self->stride + lane;
        uint32_t words[4];
        dp_philox(self->seed, self->first_iteration + iteration, lane, words);
        for (int pair = 0; pair < 2; pair++) {
            float z[2];
            dp_box_muller(words[2 * pair], words[2 * pair + 1], z);
            for (int k = 0; k < 2; k++) {
                if (element < self->n) {
                    self->out[element] = z[k];
                }
                element += self->stride;
            }
        }
    }
}

uint64_t dp_torch_randn(uint64_t seed, uint64_t offset, int sms, size_t n, float *out, int threads)
{
    if (n == 0) {
        return offset;
    }
    const size_t wanted = (n - 1) / DP_RAND_BLOCK + 1;
    const size_t most = (size_t)sms * DP_RAND_BLOCKS_PER_SM;
    const size_t stride = (wanted < most ? wanted : most) * DP_RAND_BLOCK;
    const size_t iterations = (n - 1) / (DP_RAND_UNROLL * stride) + 1;
    draw self = {.seed = seed,
                 .first_iteration = offset / DP_RAND_UNROLL,
                 .n = n,
                 .stride = stride,
                 .out = out};
    dp_parallel_for(threads, iterations * stride, 4096, draw_items, &self);
    return offset + DP_RAND_UNROLL * iterations;
}
