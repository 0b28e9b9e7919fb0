/* SPDX-License-Identifier: MIT
 *
 * Stage quantize [D1]: NVFP4 of Q and K, plain or folded over K64, and MXFP4 of V along the keys.
 */
#include "device/kernels/kernels.cuh"

#include "device/kernels/instructions.cuh"
#include "formats/bf16.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"

namespace
{

enum { DIM = 128, BLOCK = 16 };

/* 16 bf16 values from 32 aligned bytes. */
__device__ __forceinline__ void load16(const uint16_t *from, float x[BLOCK])
{
    const uint4 *words = reinterpret_cast<const uint4 *>(from);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 w = words[i];
        const uint32_t part[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            x[8 * i + 2 * j] = __uint_as_float(part[j] << 16);
            x[8 * i + 2 * j + 1] = __uint_as_float(part[j] & 0xFFFF0000u);
        }
    }
}

__device__ __forceinline__ float amax16(const float *x)
{
    float m = 0.0f;
#pragma unroll
    for (int i = 0; i < BLOCK; i++) {
        m = dp_max(m, fabsf(x[i]));
    }
    return m;
}

/* One thread a block of 16. */
__global__ void quantize_plain(const uint16_t *x, const int32_t *order, int rows, int padded_rows,
                               int total, uint8_t *payload, uint8_t *scale)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= total) {
        return;
    }
    const int block = i % (DIM / BLOCK);
    const int row = i / (DIM / BLOCK) % padded_rows;
    const size_t head = (size_t)(i / (DIM / BLOCK) / padded_rows);
    const size_t out = head * padded_rows + row;
    float value[BLOCK] = {0};
    if (row < rows) {
        const size_t from = head * rows + (order != nullptr ? order[row] : row);
        load16(x + from * DIM + block * BLOCK, value);
    }
    const float amax = amax16(value);
    const uint32_t byte = dp_cvt_e4m3(dp_mul(amax, dp_rcp(6.0f)));
    const dp_e4m3 code = {(uint8_t)byte};
    const float factor = amax == 0.0f ? 0.0f : dp_rcp(dp_e4m3_to_f32(code));
    uint32_t word[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < BLOCK; j += 2) {
        const uint32_t pair = dp_cvt_e2m1x2(dp_mul(value[j], factor), dp_mul(value[j + 1], factor));
        word[j / 8] |= pair << (4 * (j % 8));
    }
    *reinterpret_cast<uint2 *>(payload + out * (DIM / 2) + block * 8) =
        make_uint2(word[0], word[1]);
    scale[out * (DIM / BLOCK) + block] = (uint8_t)byte;
}

/* Squared error of the 32 values under scale s, adjacent pairs first. x / s exceeds a midpoint m
 * exactly when x exceeds s * m: both products are exact, and a correctly rounded quotient cannot
 * fall onto m from above. */
__device__ __forceinline__ float fold_error(const float *x, float s)
{
    float e[32];
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const float a = fabsf(x[i]);
        float grid = 0.0f;
        grid = a > 0.25f * s ? 0.5f : grid;
        grid = a > 0.75f * s ? 1.0f : grid;
        grid = a > 1.25f * s ? 1.5f : grid;
        grid = a > 1.75f * s ? 2.0f : grid;
        grid = a > 2.5f * s ? 3.0f : grid;
        grid = a > 3.5f * s ? 4.0f : grid;
        grid = a > 5.0f * s ? 6.0f : grid;
        const float d = __fsub_rn(s > 0.0f ? __fmul_rn(grid, s) : 0.0f, a);
        e[i] = __fmul_rn(d, d);
    }
#pragma unroll
    for (int width = 1; width < 32; width *= 2) {
#pragma unroll
        for (int i = 0; i < 32; i += 2 * width) {
            e[i] = __fadd_rn(e[i], e[i + width]);
        }
    }
    return s == s ? e[0] : __uint_as_float(0x7FFFFFFFu);
}

/* One thread a pair of blocks (b, b + 4) of a row. */
__global__ void quantize_folded(const uint16_t *x, const int32_t *order, int rows, int padded_rows,
                                int total, uint8_t *payload, uint8_t *scale)
{
    const float candidates[11] = {0.25f, 0.3125f, 0.375f, 0.4375f, 0.5f, 0.625f,
                                  0.75f, 0.875f,  1.0f,   1.125f,  1.25f};
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= total) {
        return;
    }
    const int b = i % 4;
    const int row = i / 4 % padded_rows;
    const size_t head = (size_t)(i / 4 / padded_rows);
    const size_t out = head * padded_rows + row;
    float value[32] = {0};
    if (row < rows) {
        const size_t from = head * rows + (order != nullptr ? order[row] : row);
        load16(x + from * DIM + b * BLOCK, value);
        load16(x + from * DIM + (b + 4) * BLOCK, value + BLOCK);
    }
    const float amax = dp_max(amax16(value), amax16(value + BLOCK));
    const float base = __fmul_rn(amax, __uint_as_float(0x3E2AAAABu));
    uint8_t best = dp_e4m3_from_f32(base, DP_ENCODE_NONSAT).bits;
    float best_error = INFINITY;
    for (int c = 0; c < 11; c++) {
        const dp_e4m3 code = dp_e4m3_from_f32(__fmul_rn(base, candidates[c]), DP_ENCODE_NONSAT);
        const float error = fold_error(value, dp_e4m3_to_f32(code));
        if (error < best_error) {
            best_error = error;
            best = code.bits;
        }
    }
    const dp_e4m3 winner = {best};
    const float s = dp_e4m3_to_f32(winner);
    uint32_t word[4] = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < 32; j++) {
        const float v = s > 0.0f ? __fdiv_rn(value[j], s) : 0.0f;
        const float a = fabsf(v);
        const uint32_t code = (a > 0.25f) + (a > 0.75f) + (a > 1.25f) + (a > 1.75f) + (a > 2.5f) +
                              (a > 3.5f) + (a > 5.0f) + (v < 0.0f ? 8u : 0u);
        word[j / 8] |= code << (4 * (j % 8));
    }
    uint2 *to = reinterpret_cast<uint2 *>(payload + out * (DIM / 2));
    to[b] = make_uint2(word[0], word[1]);
    to[b + 4] = make_uint2(word[2], word[3]);
    scale[out * 8 + b] = best;
    scale[out * 8 + b + 4] = best;
}

/* One thread a feature, 32 keys. */
__global__ void quantize_values(const uint16_t *v, const int32_t *order, int keys, int key_rows,
                                bool zero_nan, uint8_t *payload, uint8_t *scale)
{
    const int d = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const size_t head = blockIdx.y;
    float x[32];
    float amax = 0.0f;
#pragma unroll
    for (int j = 0; j < 32; j++) {
        const int position = block * 32 + j;
        x[j] = 0.0f;
        if (position < keys) {
            const size_t key = head * keys + order[position];
            x[j] = __uint_as_float((uint32_t)v[key * DIM + d] << 16);
        }
        amax = dp_max(amax, fabsf(x[j]));
    }
    const dp_e8m0_encode nearest = {DP_E8M0_NEAREST_EVEN, true};
    const uint32_t u = amax > 1e-38f ? dp_e8m0_from_f32(amax, nearest).bits : 0u;
    uint32_t word[4] = {0, 0, 0, 0};
    /* 6 * 2^(127 - u), exact in a double for every u */
    const double step = 6.0 * __hiloint2double((int)(1023u + 127u - u) << 20, 0);
#pragma unroll
    for (int j = 0; j < 32; j += 2) {
        uint32_t pair = zero_nan ? 0x77u : 0u;
        if (u != 0) {
            const float low = (float)((double)x[j] * step);
            const float high = (float)((double)x[j + 1] * step);
            pair = dp_cvt_e2m1x2(low, high);
        }
        word[j / 8] |= pair << (4 * (j % 8));
    }
    const size_t row = head * DIM + d;
    *reinterpret_cast<uint4 *>(payload + row * (key_rows / 2) + block * 16) =
        make_uint4(word[0], word[1], word[2], word[3]);
    scale[row * (key_rows / 32) + block] = (uint8_t)u;
}

} // namespace

void dpd_quantize_qk(const uint16_t *x, const int32_t *order, int heads, int rows, int padded_rows,
                     bool fold, uint8_t *payload, uint8_t *scale, cudaStream_t stream)
{
    const int total = heads * padded_rows * (fold ? 4 : DIM / BLOCK);
    const int threads = 128;
    const int blocks = (total + threads - 1) / threads;
    if (fold) {
        quantize_folded<<<blocks, threads, 0, stream>>>(x, order, rows, padded_rows, total, payload,
                                                        scale);
    } else {
        quantize_plain<<<blocks, threads, 0, stream>>>(x, order, rows, padded_rows, total, payload,
                                                       scale);
    }
}

void dpd_quantize_v(const uint16_t *v, const int32_t *order, int heads, int keys, int key_rows,
                    bool zero_nan, uint8_t *payload, uint8_t *scale, cudaStream_t stream)
{
    const dim3 grid(key_rows / 32, heads);
    quantize_values<<<grid, DIM, 0, stream>>>(v, order, keys, key_rows, zero_nan, payload, scale);
}
