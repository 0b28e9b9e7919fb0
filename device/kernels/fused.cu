/* SPDX-License-Identifier: MIT
 *
 * The whole forward of 16 query rows a warp in one block: scores of a key tile in shared memory,
 * codes, represented sums, value product; nothing of size queries x keys leaves the multiprocessor.
 * Each warp owns its rows, so that after the operands are loaded warps need no barrier among them.
 */
#include "device/kernels/direct_p.cuh"
#include "device/kernels/exact_mma.cuh"
#include "device/kernels/gemm.cuh"
#include "device/kernels/kernels.cuh"

namespace
{

enum { WARPS = 8, ROWS = 16 * WARPS, THREADS = 32 * WARPS, KEYS = 128, DIM = 128 };

struct fused_shared {
    dpd_exact_operand<ROWS> q;
    dpd_exact_operand<ROWS> p;
    dpd_exact_operand<KEYS> kv; /* the K tile, then the V tile */
    /* 32 scores and 4 words of space a quarter: 2 rows x 4 quarters fall into different banks */
    float raw[ROWS][4 * 36];
    float row_ref[ROWS];
    float row_sum[ROWS];
    int32_t order[KEYS]; /* key at each position of the tile; padding beyond every row */
};

__device__ __forceinline__ float *raw_at(fused_shared &shared, int row, int col)
{
    return &shared.raw[row][col / 32 * 36 + col % 32];
}

/* Whether something of the tile is hidden from one of the block's rows; fills shared.order. */
__device__ bool load_order(fused_shared &shared, const dpd_problem &p, int row0, int key0)
{
    bool hides = false;
    for (int i = (int)threadIdx.x; i < KEYS; i += THREADS) {
        const int position = key0 + i;
        const int key = position >= p.keys ? INT32_MAX - p.queries
                        : p.causal         ? p.key_order[position]
                                           : -p.queries;
        shared.order[i] = key;
        hides = hides || key + p.queries > row0 + p.keys;
    }
    return __syncthreads_or(hides) != 0;
}

__device__ __forceinline__ void store_scores(fused_shared &shared, const dpd_problem &p, int row0,
                                             int col0, bool hides, const float d[4])
{
    const int col = col0 + 2 * ((int)threadIdx.x % 4);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = dpd_fragment_row(2 * half);
        float2 x = make_float2(d[2 * half], d[2 * half + 1]);
        if (hides) {
            const int last = row0 + row + p.keys - p.queries;
            x.x = shared.order[col] > last ? -INFINITY : x.x;
            x.y = shared.order[col + 1] > last ? -INFINITY : x.y;
        }
        *reinterpret_cast<float2 *>(raw_at(shared, row, col)) = x;
    }
}

__device__ void make_references(fused_shared &shared, const dp_device_policy &policy)
{
    const int row = (int)(threadIdx.x / 32) * 16 + (int)(threadIdx.x % 32) % 16;
    float m = 0.0f;
    if (policy.anchor_keys > 0) {
        float largest = -INFINITY;
        for (int j = 0; j < policy.anchor_keys; j++) {
            largest = dp_max(largest, *raw_at(shared, row, j));
        }
        m = dp_add(largest, policy.anchor_bias);
    }
    if (threadIdx.x % 32 < 16) {
        shared.row_ref[row] = m;
        shared.row_sum[row] = 0.0f;
    }
    __syncwarp();
}

/* A warp's 16 rows: two passes of 8 rows x 4 quarters. */
__device__ __forceinline__ void classify_rows(fused_shared &shared, const dp_device_policy &policy,
                                              int stage)
{
    const int lane = (int)(threadIdx.x % 32);
    const int quarter = lane % 4;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        const int row = (int)(threadIdx.x / 32) * 16 + pass * 8 + lane / 4;
        float s[32];
        const float4 *from = reinterpret_cast<const float4 *>(raw_at(shared, row, quarter * 32));
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float4 x = from[j];
            s[4 * j] = x.x;
            s[4 * j + 1] = x.y;
            s[4 * j + 2] = x.z;
            s[4 * j + 3] = x.w;
        }
        const float m = shared.row_ref[row];
        const int u = dpd_block_byte(policy, dpd_max32(s), m);
        const int u0 = __shfl_sync(0xFFFFFFFFu, u, lane / 4 * 4);
        const dpd_quarter out = dpd_classify(policy, stage, quarter, m, s, u, u0);
        uint32_t stored[4];
        uint32_t sums[4];
#pragma unroll
        for (int b = 0; b < 4; b++) {
            stored[b] = __shfl_sync(0xFFFFFFFFu, out.stored, lane / 4 * 4 + b);
            sums[b] = __shfl_sync(0xFFFFFFFFu, out.code_sum, lane / 4 * 4 + b);
        }
        if (quarter == 0) {
            shared.row_sum[row] = dpd_row_sum_add(policy, shared.row_sum[row], stored, sums);
        }
        dpd_put_ue8m0<true>(shared.p, row, quarter,
                            make_uint4(out.word[0], out.word[1], out.word[2], out.word[3]),
                            out.stored);
    }
    __syncwarp();
}

/* Scores of the warp's rows and the K tile, into shared memory. */
__device__ __forceinline__ void score_rows(fused_shared &shared, const dpd_problem &p, int row0,
                                           int warp_row, bool hides)
{
    const dpd_exact_a first = dpd_read_a(shared.q, warp_row, 0);
    const dpd_exact_a second = dpd_read_a(shared.q, warp_row, 1);
#pragma unroll 1
    for (int col0 = 0; col0 < KEYS; col0 += 32) { /* unrolled by four: independent chains */
#pragma unroll
        for (int tile = 0; tile < 4; tile++) {
            float d[4] = {};
            const int col = col0 + tile * 8;
            dpd_exact_tile<false, true>(shared.q, warp_row, first, shared.kv, col, 0, d);
            dpd_exact_tile<false, false>(shared.q, warp_row, second, shared.kv, col, 1, d);
            store_scores(shared, p, row0, col, hides, d);
        }
    }
    __syncwarp();
}

__device__ void write_rows(fused_shared &shared, const dpd_problem &p,
                           const dp_device_policy &policy, size_t head, int row0,
                           const float acc[16][4], bool nothing, uint16_t *o, float *lse)
{
    for (int half = 0; half < 2; half++) {
        const int row = dpd_fragment_row(2 * half);
        if (row0 + row >= p.queries) {
            continue;
        }
        const float m = nothing ? 0.0f : shared.row_ref[row];
        const float sum = nothing ? 0.0f : dpd_row_sum_finish(policy, shared.row_sum[row]);
        const float scale = dpd_output_scale(m, sum);
        const bool valid = dpd_row_valid(m, sum);
        const size_t out = (head * p.queries + row0 + row) * DIM;
        for (int tile = 0; tile < 16; tile++) {
            const int col = tile * 8 + 2 * ((int)threadIdx.x % 4);
            const float x = dp_mul(acc[tile][2 * half], scale);
            const float y = dp_mul(acc[tile][2 * half + 1], scale);
            const uint32_t pair =
                valid ? (uint32_t)dpd_to_bf16(x) | (uint32_t)dpd_to_bf16(y) << 16 : 0u;
            *reinterpret_cast<uint32_t *>(o + out + col) = pair;
        }
        if (lse != nullptr && threadIdx.x % 4 == 0) {
            lse[head * p.queries + row0 + row] = dpd_lse(policy, m, sum);
        }
    }
}

__global__ void __launch_bounds__(THREADS, 8 / WARPS)
    forward_kernel(const __grid_constant__ dpd_problem p,
                   const __grid_constant__ dp_device_policy policy, const int32_t *kv_of_q,
                   const uint8_t *q_payload, const uint8_t *q_scale, const uint8_t *k_payload,
                   const uint8_t *k_scale, const uint8_t *v_payload, const uint8_t *v_scale,
                   uint16_t *o, float *lse)
{
    extern __shared__ __align__(16) uint8_t memory[];
    fused_shared &shared = *reinterpret_cast<fused_shared *>(memory);
    const int thread = (int)threadIdx.x;
    const int row0 = (int)blockIdx.x * ROWS;
    const size_t head = blockIdx.y;
    const size_t kv = head / p.q_heads * p.kv_heads + kv_of_q[head % p.q_heads];
    const int stage = row0 / 128 & 1;
    const int warp_row = thread / 32 * 16;
    const size_t query = head * p.queries + row0;
    dpd_load_exact<ROWS, false>(shared.q, q_payload + query * 64, 64, q_scale + query * 8, 8,
                                min(ROWS, p.queries - row0), thread, THREADS);
    const int last_row = min(row0 / 128 * 128 + 127, p.queries - 1); /* of the query tile */
    const int last_key = p.causal ? last_row + p.keys - p.queries : p.keys - 1;
    const int tiles = last_key < 0 ? 0 : min(p.key_rows / KEYS, last_key / KEYS + 1);
    float acc[16][4] = {};
    for (int tile = 0; tile < tiles; tile++) {
        const size_t key = kv * p.key_rows + tile * KEYS;
        const bool hides = load_order(shared, p, row0, tile * KEYS); /* a barrier */
        dpd_load_exact<KEYS, false>(shared.kv, k_payload + key * 64, 64, k_scale + key * 8, 8, KEYS,
                                    thread, THREADS);
        __syncthreads();
        score_rows(shared, p, row0, warp_row, hides);
        if (tile == 0) {
            make_references(shared, policy);
        }
        classify_rows(shared, policy, stage);
        __syncthreads();
        const size_t feature = kv * DIM;
        dpd_load_exact<DIM, true>(
            shared.kv, v_payload + feature * (p.key_rows / 2) + (size_t)tile * 64, p.key_rows / 2,
            v_scale + feature * (p.key_rows / 32) + (size_t)tile * 4, p.key_rows / 32, DIM, thread,
            THREADS);
        __syncthreads();
#pragma unroll 1
        for (int instruction = 0; instruction < 2; instruction++) {
            const dpd_exact_a rows = dpd_read_a(shared.p, warp_row, instruction);
#pragma unroll
            for (int column = 0; column < 16; column++) {
                dpd_exact_tile<true, false>(shared.p, warp_row, rows, shared.kv, column * 8,
                                            instruction, acc[column]);
            }
        }
    }
    write_rows(shared, p, policy, head, row0, acc, tiles == 0, o, lse);
}

} // namespace

void dpd_forward(const dpd_problem &problem, const dp_device_policy &policy, const int32_t *kv_of_q,
                 const uint8_t *q_payload, const uint8_t *q_scale, const uint8_t *k_payload,
                 const uint8_t *k_scale, const uint8_t *v_payload, const uint8_t *v_scale,
                 uint16_t *o, float *lse, cudaStream_t stream)
{
    (void)cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)sizeof(fused_shared));
    const dim3 grid((problem.queries + ROWS - 1) / ROWS, problem.batch * problem.q_heads);
    forward_kernel<<<grid, THREADS, sizeof(fused_shared), stream>>>(
        problem, policy, kv_of_q, q_payload, q_scale, k_payload, k_scale, v_payload, v_scale, o,
        lse);
}
