/* SPDX-License-Identifier: MIT
 *
 * The Direct-P producer with its policy known to the compiler, as a fused kernel would hold it: one
 * thread a row of a 128 x 128 score tile, quarter after quarter, each published as soon as it is
 * classified. The arithmetic is device/kernels/direct_p.cuh, the source that runs on other devices
 * with emulated wrappers. Beside the maps stand the two ways to codes that need no converter: a
 * threshold tree and a table.
 */
#include "device/kernels/direct_p.cuh"

namespace
{

enum variant { AFFINE, AFFINE_NATIVE, CUBIC, EX2, TREE, LUT };

/* The numbers of the policies fast, accurate, cubic and ideal (ref/forward/policy.c); the schedule
 * is that of fast everywhere but for the native lanes of `accurate`. Multiplier: log2(e) /
 * sqrt(128). */
template <variant V> __device__ __forceinline__ dp_device_policy policy_of()
{
    dp_device_policy p = {};
    p.multiplier = 0.12751743f;
    p.map = V == CUBIC ? 1 : (V == EX2 || V == TREE || V == LUT ? 2 : 0);
    p.degree = V == CUBIC ? 3 : 1;
    p.coefficient[0] = V == CUBIC ? 0.99202336f : (V == AFFINE_NATIVE ? 0.8f : 1.2f);
    p.coefficient[1] = V == CUBIC ? 0.63145205f : (V == AFFINE_NATIVE ? 1.65f : 1.5f);
    p.coefficient[2] = 0.28625049f;
    p.coefficient[3] = 0.07839806f;
    p.map_floor = -INFINITY;
    p.shift = V == AFFINE_NATIVE ? 8 : 16;
    p.epoch_r = 1;
    for (int quarter = 0; quarter < 4; quarter++) {
        p.native[0][quarter] = p.native[1][quarter] =
            V == AFFINE_NATIVE ? (uint16_t)(0x1010u | 0x101u << quarter) : (uint16_t)0;
    }
    return p;
}

/* Code of 2^x by three comparisons: the logarithms of the converter's midpoints, ties as it breaks
 * them. */
__device__ __forceinline__ uint32_t tree_code(float x)
{
    const bool high = x >= 0.80735492f;
    const bool middle = x >= (high ? 1.80735492f : -0.41503750f);
    const float upper = middle ? 2.32192809f : 1.32192809f;
    const float lower = middle ? 0.32192809f : -2.0f;
    const bool low = x > (high ? upper : lower);
    return (high ? 4u : 0u) | (middle ? 2u : 0u) | (low ? 1u : 0u);
}

/* Code of 2^x from a table of 64 steps of 1/8 from -4: a step whose midpoint lies inside rounds as
 * its start. */
__device__ __forceinline__ uint32_t table_code(const uint8_t *table, float scaled)
{
    float magic;
    const float clamped = fminf(fmaxf(scaled, 0.0f), 63.0f);
    asm("add.rm.ftz.f32 %0, %1, %2;" : "=f"(magic) : "f"(clamped), "f"(8388608.0f));
    return table[__float_as_uint(magic) & 63u];
}

template <variant V>
__device__ __forceinline__ dpd_quarter classify(const dp_device_policy &p, int stage, int quarter,
                                                float m, const float *s, int u, int u0,
                                                const uint8_t *table)
{
    if (V != TREE && V != LUT) {
        return dpd_classify(p, stage, quarter, m, s, u, u0);
    }
    const float base = dp_fma(-m, p.multiplier, DPD_LOG2_6);
    const float q = dp_sub(base, (float)(dpd_working_byte(p, u) - 127));
    const float a = V == LUT ? 8.0f * p.multiplier : p.multiplier;
    const float b = V == LUT ? dp_fma(q, 8.0f, 32.0f) : q;
    dpd_quarter out;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        uint32_t word = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int pair = 4 * w + i;
            const float2 x = dp_fma_x2(make_float2(s[2 * pair], s[2 * pair + 1]), make_float2(a, a),
                                       make_float2(b, b));
            const uint32_t low = V == TREE ? tree_code(x.x) : table_code(table, x.x);
            const uint32_t high = V == TREE ? tree_code(x.y) : table_code(table, x.y);
            word |= (low | high << 4) << (8 * i);
        }
        out.word[w] = word;
    }
    out.code_sum = dpd_code_sum(out.word);
    out.stored = (uint32_t)dpd_stored_byte(p, u);
    return out;
}

/* The order of the stores is the order of the source. */
__device__ __forceinline__ void publish(uint4 *payload, uint8_t *scale, const dpd_quarter &out)
{
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(payload), "r"(out.word[0]),
                 "r"(out.word[1]), "r"(out.word[2]), "r"(out.word[3])
                 : "memory");
    asm volatile("st.global.u8 [%0], %1;" ::"l"(scale), "r"(out.stored) : "memory");
}

template <variant V>
__device__ __forceinline__ void produce(const float *scores, const float *row_ref, uint4 *payload,
                                        uint8_t *scale, float *row_sum, const uint8_t *codes)
{
    __shared__ uint8_t table[64];
    if (V == LUT) {
        if (threadIdx.x < 64) {
            table[threadIdx.x] = codes[threadIdx.x];
        }
        __syncthreads();
    }
    const dp_device_policy p = policy_of<V>();
    const int row = (int)(blockIdx.x * 128 + threadIdx.x);
    const float m = row_ref[row];
    uint32_t stored[4];
    uint32_t sums[4];
    int u0 = 0;
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) {
        const float4 *from = reinterpret_cast<const float4 *>(scores + row * 128 + quarter * 32);
        float s[32];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float4 x = from[j];
            s[4 * j] = x.x;
            s[4 * j + 1] = x.y;
            s[4 * j + 2] = x.z;
            s[4 * j + 3] = x.w;
        }
        const int u = dpd_block_byte(p, dpd_max32(s), m);
        u0 = quarter == 0 ? u : u0;
        const dpd_quarter out = classify<V>(p, 1, quarter, m, s, u, u0, table);
        publish(payload + row * 4 + quarter, scale + row * 4 + quarter, out);
        stored[quarter] = out.stored;
        sums[quarter] = out.code_sum;
    }
    row_sum[row] = dpd_row_sum_add(p, row_sum[row], stored, sums);
}

} // namespace

#define PRODUCER(name, variant)                                                                    \
    extern "C" __global__ void __launch_bounds__(128)                                              \
        name(const float *scores, const float *row_ref, uint4 *payload, uint8_t *scale,            \
             float *row_sum, const uint8_t *codes)                                                 \
    {                                                                                              \
        produce<variant>(scores, row_ref, payload, scale, row_sum, codes);                         \
    }

PRODUCER(producer_affine, AFFINE)
PRODUCER(producer_affine_native, AFFINE_NATIVE)
PRODUCER(producer_cubic, CUBIC)
PRODUCER(producer_ex2, EX2)
PRODUCER(producer_tree, TREE)
PRODUCER(producer_table, LUT)
