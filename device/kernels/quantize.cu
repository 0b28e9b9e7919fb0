/* SPDX-License-Identifier: MIT
 *
 * Stage quantize [D1]: NVFP4 of Q and K, and MXFP4 of V along the keys. The folded NVFP4 is in
 * quantize_fold.cu.
 */
#include "device/kernels/instructions.cuh"
#include "device/kernels/kernels.cuh"
#include "device/kernels/quantize.cuh"
#include "formats/e8m0.h"

namespace
{

enum { DIM = DPD_DIM };

/* ---- plain NVFP4 ------------------------------------------------------------------------------
 */

enum { PLAIN_THREADS = 128, CHUNK = 8, CHUNKS = DIM / CHUNK, FLIGHT = 3 };
enum { PLAIN_ROWS = PLAIN_THREADS / CHUNKS * FLIGHT }; /* rows of a thread block */

/* Larger magnitudes of two pairs of bf16; a NaN loses. */
__device__ __forceinline__ uint32_t amax_pairs(uint32_t a, uint32_t word)
{
    uint32_t d;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(word & 0x7FFF7FFFu));
    return d;
}

/* Two neighbours share a block of 16: eight values a thread, so that loads and stores of a warp are
 * whole lines. FLIGHT such pieces are loaded before the first is used. */
template <bool ORDERED>
__global__ void __launch_bounds__(PLAIN_THREADS, 10)
    quantize_plain(const uint16_t *x, const int32_t *order, int rows, int padded_rows,
                   uint8_t *payload, uint8_t *scale)
{
    const size_t head = blockIdx.y;
    const int chunk = (int)threadIdx.x % CHUNKS;
    const int first = (int)blockIdx.x * PLAIN_ROWS + (int)threadIdx.x / CHUNKS;
    constexpr int STEP = PLAIN_THREADS / CHUNKS;
    const uint4 *from =
        reinterpret_cast<const uint4 *>(x + (head * rows + (ORDERED ? 0 : first)) * DIM) + chunk;
    uint4 words[FLIGHT];
#pragma unroll
    for (int i = 0; i < FLIGHT; i++) {
        words[i] = make_uint4(0, 0, 0, 0);
        if (first + i * STEP < rows) {
            const size_t row = ORDERED ? order[first + i * STEP] : i * STEP;
            words[i] = __ldcs(from + row * CHUNKS);
        }
    }
    const size_t out = head * padded_rows + first;
    uint32_t *to = reinterpret_cast<uint32_t *>(payload + out * (DIM / 2)) + chunk;
    scale += out * (DIM / 16) + chunk / 2;
#pragma unroll
    for (int i = 0; i < FLIGHT; i++) {
        const uint32_t word[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
        float value[CHUNK];
        uint32_t largest = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            value[2 * j] = __uint_as_float(word[j] << 16);
            value[2 * j + 1] = __uint_as_float(word[j] & 0xFFFF0000u);
            largest = amax_pairs(largest, word[j]);
        }
        float amax = dp_max(__uint_as_float(largest << 16), __uint_as_float(largest & 0xFFFF0000u));
        amax = dp_max(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, 1));
        const uint32_t byte = dp_cvt_e4m3(dp_mul(amax, dp_rcp(6.0f)));
        const float factor = amax == 0.0f ? 0.0f : dp_rcp(dp_decode_e4m3(byte));
        const uint32_t codes = dp_mul_cvt_e2m1x8(value, factor);
        if (first + i * STEP < padded_rows) {
            __stcs(to + i * STEP * (DIM / 8), codes);
            if (chunk % 2 == 0) {
                scale[i * STEP * (DIM / 16)] = (uint8_t)byte;
            }
        }
    }
}

/* ---- MXFP4 of V --------------------------------------------------------------------------------
 */

enum { V_BLOCK = 32, V_BLOCKS = 8, V_FEATURES = 64, V_THREADS = 32 * V_BLOCKS };

/* What one thread block writes: of 64 features the codes of 256 keys (128 bytes) and their scales.
 * Piece `block` of a feature lies at block ^ (feature / 2 % 8): the writers' banks differ. */
struct v_tile {
    uint4 codes[V_FEATURES][V_BLOCKS];
    uint8_t scale[V_FEATURES][V_BLOCKS];
};

/* Byte u of a block's largest magnitude. */
__device__ __forceinline__ uint32_t v_scale(float amax)
{
    const dp_e8m0_encode nearest = {DP_E8M0_NEAREST_EVEN, true};
    return amax > 1e-38f ? dp_e8m0_from_f32(amax, nearest).bits : 0u;
}

/* 32 keys of one feature, the high or low halves of `word`: codes of x * 6 * 2^(127 - u), of which
 * half is exact in FP16 or far below a code. */
__device__ __forceinline__ uint4 v_codes(const uint32_t word[V_BLOCK], bool high, uint32_t u,
                                         bool zero_nan)
{
    if (u == 0) {
        const uint32_t fill = zero_nan ? 0x77777777u : 0u;
        return make_uint4(fill, fill, fill, fill);
    }
    const float power = __uint_as_float(u < 254u ? (254u - u) << 23 : 1u << 22); /* 2^(127 - u) */
    const float step = __fmul_rn(power, 3.0f);
    uint32_t out[4];
#pragma unroll
    for (int w = 0; w < 4; w++) {
        float half[8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t bits = word[8 * w + j];
            half[j] = __fmul_rn(__uint_as_float(high ? bits & 0xFFFF0000u : bits << 16), step);
        }
        out[w] = dp_cvt_e2m1x8_clear(half);
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
}

/* A warp a block of 32 keys, a thread two neighbouring features; the transposed codes leave through
 * shared memory in whole lines. */
__global__ void __launch_bounds__(V_THREADS, 4)
    quantize_values(const uint16_t *v, const int32_t *order, int keys, int key_rows, bool zero_nan,
                    uint8_t *payload, uint8_t *scale)
{
    __shared__ v_tile tile;
    const uint32_t lane = threadIdx.x % 32;
    const int block = (int)threadIdx.x / 32;
    const size_t head = blockIdx.z;
    const int feature0 = (int)blockIdx.y * V_FEATURES;
    const int key0 = ((int)blockIdx.x * V_BLOCKS + block) * V_BLOCK;
    const bool real = key0 + (int)lane < keys;
    const uint32_t mine = real ? (uint32_t)order[key0 + lane] * (DIM / 2) : 0u; /* in words */
    const uint32_t *from =
        reinterpret_cast<const uint32_t *>(v + head * keys * DIM + feature0) + lane;
    uint32_t word[V_BLOCK];
    if (__all_sync(0xFFFFFFFFu, real)) {
#pragma unroll
        for (int j = 0; j < V_BLOCK; j++) {
            word[j] = __ldcs(from + __shfl_sync(0xFFFFFFFFu, mine, j));
        }
    } else {
#pragma unroll
        for (int j = 0; j < V_BLOCK; j++) {
            const uint32_t at = __shfl_sync(0xFFFFFFFFu, mine, j);
            word[j] = key0 + j < keys ? from[at] : 0u;
        }
    }
    uint32_t largest = 0;
#pragma unroll
    for (int j = 0; j < V_BLOCK; j++) {
        largest = amax_pairs(largest, word[j]);
    }
    const uint32_t u[2] = {v_scale(__uint_as_float(largest << 16)),
                           v_scale(__uint_as_float(largest & 0xFFFF0000u))};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        tile.codes[2 * lane + half][block ^ lane % 8] = v_codes(word, half != 0, u[half], zero_nan);
        tile.scale[2 * lane + half][block] = (uint8_t)u[half];
    }
    __syncthreads();
    const size_t row0 = head * DIM + feature0;
    const int first = (int)blockIdx.x * V_BLOCKS;
    const int blocks = min(V_BLOCKS, key_rows / V_BLOCK - first);
    for (int i = (int)threadIdx.x; i < V_FEATURES * V_BLOCKS; i += V_THREADS) {
        const int feature = i / V_BLOCKS;
        const int piece = i % V_BLOCKS;
        if (piece < blocks) {
            __stcs(reinterpret_cast<uint4 *>(payload + (row0 + feature) * (key_rows / 2)) + first +
                       piece,
                   tile.codes[feature][piece ^ feature / 2 % 8]);
        }
    }
    /* scales four at a time: key_rows is a multiple of 128 */
    const int feature = (int)threadIdx.x / 2;
    const int four = (int)threadIdx.x % 2 * 4;
    if (feature < V_FEATURES && four < blocks) {
        *reinterpret_cast<uint32_t *>(scale + (row0 + feature) * (key_rows / V_BLOCK) + first +
                                      four) =
            *reinterpret_cast<const uint32_t *>(&tile.scale[feature][four]);
    }
}

} // namespace

void dpd_quantize_qk(const uint16_t *x, const int32_t *order, int heads, int rows, int padded_rows,
                     bool fold, uint8_t *payload, uint8_t *scale, cudaStream_t stream)
{
    if (fold) {
        dpd_quantize_fold(x, order, heads, rows, padded_rows, payload, scale, stream);
        return;
    }
    const dim3 grid((padded_rows + PLAIN_ROWS - 1) / PLAIN_ROWS, heads);
    const auto kernel = order != nullptr ? quantize_plain<true> : quantize_plain<false>;
    kernel<<<grid, PLAIN_THREADS, 0, stream>>>(x, order, rows, padded_rows, payload, scale);
}

void dpd_quantize_v(const uint16_t *v, const int32_t *order, int heads, int keys, int key_rows,
                    bool zero_nan, uint8_t *payload, uint8_t *scale, cudaStream_t stream)
{
    const dim3 grid((key_rows + V_BLOCK * V_BLOCKS - 1) / (V_BLOCK * V_BLOCKS), DIM / V_FEATURES,
                    heads);
    quantize_values<<<grid, V_THREADS, 0, stream>>>(v, order, keys, key_rows, zero_nan, payload,
                                                    scale);
}
