/* SPDX-License-Identifier: MIT
 *
 * BF16 attention in the order of FlashAttention-4, the yardstick of the published errors, equal bit
 * by bit to ref/forward/reference_bf16.c: key tiles from the last to the first, inside a tile the
 * products of a score in feature order and those of an output in key order, each product and sum
 * one rounding; an online maximum kept within 8 octaves, P in BF16 for the value product, its sum
 * not. 2^x and log2 are spelled out in binary64.
 */
#include "device/kernels/kernels.cuh"
#include "formats/bf16.h"

namespace
{

enum { DIM = 128, ROWS = 32, KEYS = 128, THREADS = 256, OWN = 4 }; /* OWN x OWN outputs a thread */

struct reference_shared {
    float q[DIM][ROWS + 1];
    float
        kv[DIM * (KEYS + 4)]; /* K as [feature][key], then V as [key][feature], rows of KEYS + 4 */
    float p[ROWS][KEYS + 1];  /* scores, then P */
    float largest[ROWS], sum[ROWS], rescale[ROWS];
};

__device__ __forceinline__ float widen(uint32_t bits)
{
    return __uint_as_float(bits << 16);
}

/* Nearest even; a NaN is 0x7FFF. */
__device__ __forceinline__ uint16_t narrow(float x)
{
    const uint32_t bits = __float_as_uint(x);
    return x != x ? (uint16_t)0x7FFFu : (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

__device__ __forceinline__ double power_of_two(long long biased)
{
    return __longlong_as_double(biased << 52);
}

/* 2^k times the polynomial of x - k with coefficients ln(2)^n / n!. */
__device__ float exp2_of(float x)
{
    const double c[10] = {1.0,
                          0x1.62e42fefa39efp-1,
                          0x1.ebfbdff82c58fp-3,
                          0x1.c6b08d704a0cp-5,
                          0x1.3b2ab6fba4e77p-7,
                          0x1.5d87fe78a6731p-10,
                          0x1.430912f86c787p-13,
                          0x1.ffcbfc588b0c7p-17,
                          0x1.62c0223a5c824p-20,
                          0x1.b5253d395e7c4p-24};
    if (x != x) {
        return x;
    }
    const double wide = fmin(fmax((double)x, -150.0), 128.0);
    const double k = rint(wide);
    const double r = __dsub_rn(wide, k);
    double y = c[9];
#pragma unroll
    for (int n = 8; n >= 0; n--) {
        y = __dadd_rn(__dmul_rn(y, r), c[n]);
    }
    return __double2float_rn(__dmul_rn(y, power_of_two((long long)k + 1023)));
}

/* Of a positive value. */
__device__ float log2_of(float sum)
{
    if (isinf(sum)) {
        return sum;
    }
    const double wide = sum;
    int e = ilogb(wide);
    double m = wide * power_of_two(1023 - e);
    if (m >= 0x1.6a09e667f3bcdp0) {
        e += 1;
        m *= 0.5;
    }
    const double f = __ddiv_rn(__dsub_rn(m, 1.0), __dadd_rn(m, 1.0));
    const double s = __dmul_rn(f, f);
    double y = 1.0 / 19.0;
#pragma unroll
    for (int n = 17; n >= 1; n -= 2) {
        y = __dadd_rn(__dmul_rn(y, s), 1.0 / n);
    }
    return __double2float_rn(__dadd_rn((double)e, __dmul_rn(__dmul_rn(0x1.71547652b82fep1, f), y)));
}

/* Rows of 128 bf16 to shared memory, zeros from `count` on; transposed for Q and K. */
template <int STRIDE, bool TRANSPOSED>
__device__ __forceinline__ void load_rows(float *to, const uint16_t *from, int rows, int count)
{
    for (int i = (int)threadIdx.x; i < rows * (DIM / 2); i += THREADS) {
        const int row = TRANSPOSED ? i % rows : i / (DIM / 2);
        const int pair = TRANSPOSED ? i / rows : i % (DIM / 2);
        const uint32_t word =
            row < count ? reinterpret_cast<const uint32_t *>(from + (size_t)row * DIM)[pair] : 0u;
        const float low = widen(word & 0xFFFFu);
        const float high = widen(word >> 16);
        if (TRANSPOSED) {
            to[2 * pair * STRIDE + row] = low;
            to[(2 * pair + 1) * STRIDE + row] = high;
        } else {
            to[row * STRIDE + 2 * pair] = low;
            to[row * STRIDE + 2 * pair + 1] = high;
        }
    }
}

/* Maximum, factor of what came before, P and its sum, of one row, by one warp. `count` keys are
 * seen; a row that sees none of the tile keeps its state. */
__device__ void soften(reference_shared &shared, int row, int count, float scale)
{
    const int lane = (int)threadIdx.x % 32;
    float *p = shared.p[row];
    const float before = shared.largest[row];
    if (count <= 0) {
        if (lane == 0) {
            shared.rescale[row] = 1.0f;
        }
        return;
    }
    float most = before;
    for (int j = lane; j < count; j += 32) {
        most = p[j] > most ? p[j] : most;
    }
    for (int width = 16; width > 0; width /= 2) {
        const float other = __shfl_xor_sync(0xFFFFFFFFu, most, width);
        most = other > most ? other : most;
    }
    if (before != -INFINITY && __fmul_rn(__fsub_rn(most, before), scale) <= 8.0f) {
        most = before;
    }
    for (int j = lane; j < KEYS; j += 32) {
        p[j] =
            j < count ? exp2_of(__fsub_rn(__fmul_rn(p[j], scale), __fmul_rn(most, scale))) : 0.0f;
    }
    __syncwarp();
    if (lane == 0) {
        const float rescale =
            before == -INFINITY ? 0.0f : exp2_of(__fmul_rn(__fsub_rn(before, most), scale));
        float sum = __fmul_rn(shared.sum[row], rescale);
        for (int j = 0; j < count; j++) {
            sum = __fadd_rn(sum, p[j]);
        }
        shared.sum[row] = sum;
        shared.largest[row] = most;
        shared.rescale[row] = rescale;
    }
    __syncwarp();
    for (int j = lane; j < count; j += 32) {
        p[j] = widen(narrow(p[j]));
    }
}

/* Keys that a row sees. */
__device__ __forceinline__ int visible(const dpd_problem &p, int row)
{
    return p.causal ? max(0, min(p.keys, row + 1 + p.keys - p.queries)) : p.keys;
}

/* 32 query rows of a head, by 8 warps; a thread 4 rows and 4 keys of the scores, then 4 features of
 * the outputs. */
__global__ void __launch_bounds__(THREADS)
    reference_forward(const __grid_constant__ dpd_problem p, const int32_t *kv_of_q, float scale,
                      uint16_t *o, float *lse)
{
    extern __shared__ __align__(16) uint8_t memory[];
    reference_shared &shared = *reinterpret_cast<reference_shared *>(memory);
    const int head = (int)blockIdx.y;
    const int kv_head = head / p.q_heads * p.kv_heads + kv_of_q[head % p.q_heads];
    const int row0 = (int)blockIdx.x * ROWS;
    const int col = (int)threadIdx.x % 32;
    const int top = (int)threadIdx.x / 32 * OWN;
    constexpr int STRIDE = KEYS + 4;
    load_rows<ROWS + 1, true>(&shared.q[0][0], p.q + ((size_t)head * p.queries + row0) * DIM, ROWS,
                              p.queries - row0);
    if (threadIdx.x < ROWS) {
        shared.largest[threadIdx.x] = -INFINITY;
        shared.sum[threadIdx.x] = 0.0f;
    }
    float acc[OWN][OWN] = {};
    const int reach = visible(p, min(row0 + ROWS, p.queries) - 1);
    for (int tile = (reach + KEYS - 1) / KEYS - 1; tile >= 0; tile--) {
        const size_t first = ((size_t)kv_head * p.keys + (size_t)tile * KEYS) * DIM;
        __syncthreads();
        load_rows<STRIDE, true>(shared.kv, p.k + first, KEYS, p.keys - tile * KEYS);
        __syncthreads();
        float raw[OWN][OWN] = {};
        for (int d = 0; d < DIM; d++) {
#pragma unroll
            for (int r = 0; r < OWN; r++) {
#pragma unroll
                for (int c = 0; c < OWN; c++) {
                    raw[r][c] =
                        __fadd_rn(raw[r][c], __fmul_rn(shared.q[d][top + r],
                                                       shared.kv[d * STRIDE + col + 32 * c]));
                }
            }
        }
#pragma unroll
        for (int r = 0; r < OWN; r++) {
#pragma unroll
            for (int c = 0; c < OWN; c++) {
                shared.p[top + r][col + 32 * c] = raw[r][c];
            }
        }
        __syncthreads();
        load_rows<STRIDE, false>(shared.kv, p.v + first, KEYS, p.keys - tile * KEYS);
        int seen[OWN];
        for (int r = 0; r < OWN; r++) { /* a warp owns the rows that its threads own */
            const int row = row0 + top + r;
            seen[r] = row < p.queries ? min(KEYS, visible(p, row) - tile * KEYS) : 0;
            soften(shared, top + r, seen[r], scale);
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < OWN; r++) {
#pragma unroll
            for (int c = 0; c < OWN; c++) {
                acc[r][c] = __fmul_rn(acc[r][c], shared.rescale[top + r]);
            }
        }
        for (int j = 0; j < KEYS; j++) {
#pragma unroll
            for (int r = 0; r < OWN; r++) {
                const float weight = shared.p[top + r][j];
#pragma unroll
                for (int c = 0; c < OWN; c++) {
                    const float product = __fmul_rn(weight, shared.kv[j * STRIDE + col + 32 * c]);
                    acc[r][c] = j < seen[r] ? __fadd_rn(acc[r][c], product) : acc[r][c];
                }
            }
        }
    }
    __syncthreads();
    for (int r = 0; r < OWN; r++) {
        const int row = row0 + top + r;
        if (row >= p.queries) {
            break;
        }
        const size_t at = (size_t)head * p.queries + row;
        const float sum = shared.sum[top + r];
        for (int c = 0; c < OWN; c++) {
            const float x = sum > 0.0f ? __fdiv_rn(acc[r][c], sum) : 0.0f;
            o[at * DIM + col + 32 * c] = narrow(x);
        }
        if (col == 0) {
            const float largest = __fmul_rn(shared.largest[top + r], scale);
            lse[at] =
                sum > 0.0f ? __fmul_rn(__fadd_rn(largest, log2_of(sum)), 0.693147181f) : -INFINITY;
        }
    }
}

} // namespace

void dpd_reference_forward(const dpd_problem &problem, const int32_t *kv_of_q, float scale,
                           uint16_t *o, float *lse, cudaStream_t stream)
{
    (void)cudaFuncSetAttribute(reference_forward, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)sizeof(reference_shared));
    const dim3 grid((problem.queries + ROWS - 1) / ROWS, problem.batch * problem.q_heads);
    reference_forward<<<grid, THREADS, sizeof(reference_shared), stream>>>(problem, kv_of_q, scale,
                                                                           o, lse);
}
