/* SPDX-License-Identifier: MIT
 *
 * The whole forward of 64 query rows in one block: scores of a key tile in shared memory, codes,
 * represented sums, value product; nothing of size queries x keys leaves the multiprocessor. Each
 * warp owns 16 rows, so that after the operands are loaded warps need no barrier among them.
 */
#include "device/kernels/direct_p.cuh"
#include "device/kernels/gemm.cuh"
#include "device/kernels/kernels.cuh"

namespace
{

enum { ROWS = 64, WARPS = 4, THREADS = 32 * WARPS, KEYS = 128, DIM = 128 };

struct fused_shared {
    dpd_operand<ROWS> q;
    dpd_operand<ROWS> p;
    dpd_operand<KEYS> kv; /* the K tile, then the V tile */
    float raw[ROWS][KEYS + 4];
    float row_ref[ROWS];
    float row_sum[ROWS];
};

__device__ void store_scores(fused_shared &shared, const dpd_problem &p, int row0, int key0,
                             int col0, const uint32_t d[4][4])
{
    for (int tile = 0; tile < 4; tile++) {
        for (int out = 0; out < 4; out++) {
            const int row = dpd_fragment_row(out);
            const int col = col0 + tile * 8 + 2 * ((int)threadIdx.x % 4) + out % 2;
            shared.raw[row][col] =
                dpd_hidden(p, row0 + row, key0 + col) ? -INFINITY : __uint_as_float(d[tile][out]);
        }
    }
}

__device__ void make_references(fused_shared &shared, const dp_device_policy &policy)
{
    const int row = (int)(threadIdx.x / 32) * 16 + (int)(threadIdx.x % 32) % 16;
    float m = 0.0f;
    if (policy.anchor_keys > 0) {
        float largest = -INFINITY;
        for (int j = 0; j < policy.anchor_keys; j++) {
            largest = dp_max(largest, shared.raw[row][j]);
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
__device__ void classify_rows(fused_shared &shared, const dp_device_policy &policy, int stage)
{
    const int lane = (int)(threadIdx.x % 32);
    const int quarter = lane % 4;
    for (int pass = 0; pass < 2; pass++) {
        const int row = (int)(threadIdx.x / 32) * 16 + pass * 8 + lane / 4;
        float s[32];
        const float4 *from = reinterpret_cast<const float4 *>(&shared.raw[row][quarter * 32]);
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
        const uint32_t scale = dpd_pack_scale(dpd_scale_ue8m0(out.stored));
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t bytes[4];
            dpd_decode_word(out.word[2 * half], bytes);
            dpd_decode_word(out.word[2 * half + 1], bytes + 2);
            *reinterpret_cast<uint4 *>(&shared.p.twice[row][quarter * 32 + half * 16]) =
                make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
            shared.p.scale[row][quarter * 2 + half] = scale;
            shared.p.nonzero[row][quarter * 2 + half] =
                (uint16_t)dpd_nonzero_mask(out.word[2 * half], out.word[2 * half + 1]);
        }
    }
    __syncwarp();
}

__device__ void write_rows(fused_shared &shared, const dpd_problem &p,
                           const dp_device_policy &policy, size_t head, int row0,
                           const uint32_t acc[16][4], bool nothing, uint16_t *o, float *lse)
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
            const float x = dp_mul(__uint_as_float(acc[tile][2 * half]), scale);
            const float y = dp_mul(__uint_as_float(acc[tile][2 * half + 1]), scale);
            const uint32_t pair =
                valid ? (uint32_t)dpd_to_bf16(x) | (uint32_t)dpd_to_bf16(y) << 16 : 0u;
            *reinterpret_cast<uint32_t *>(o + out + col) = pair;
        }
        if (lse != nullptr && threadIdx.x % 4 == 0) {
            lse[head * p.queries + row0 + row] = dpd_lse(policy, m, sum);
        }
    }
}

__global__ void __launch_bounds__(THREADS, 1)
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
    dpd_load_operand<ROWS, false>(shared.q, q_payload + query * 64, 64, q_scale + query * 8, 8,
                                  min(ROWS, p.queries - row0), thread, THREADS);
    const int last_row = min(row0 / 128 * 128 + 127, p.queries - 1); /* of the query tile */
    const int last_key = p.causal ? last_row + p.keys - p.queries : p.keys - 1;
    const int tiles = last_key < 0 ? 0 : min(p.key_rows / KEYS, last_key / KEYS + 1);
    uint32_t acc[16][4] = {};
    for (int tile = 0; tile < tiles; tile++) {
        const size_t key = kv * p.key_rows + tile * KEYS;
        __syncthreads();
        dpd_load_operand<KEYS, false>(shared.kv, k_payload + key * 64, 64, k_scale + key * 8, 8,
                                      KEYS, thread, THREADS);
        __syncthreads();
#pragma unroll 1
        for (int col0 = 0; col0 < KEYS;
             col0 += 32) { /* 32 keys at a time: less code, fewer registers */
            uint32_t d[4][4] = {};
            dpd_step<4>(shared.q, warp_row, shared.kv, col0, 2, d);
            store_scores(shared, p, row0, tile * KEYS, col0, d);
        }
        __syncwarp();
        if (tile == 0) {
            make_references(shared, policy);
        }
        classify_rows(shared, policy, stage);
        __syncthreads();
        const size_t feature = kv * DIM;
        dpd_load_operand<DIM, true>(
            shared.kv, v_payload + feature * (p.key_rows / 2) + (size_t)tile * 64, p.key_rows / 2,
            v_scale + feature * (p.key_rows / 32) + (size_t)tile * 4, p.key_rows / 32, DIM, thread,
            THREADS);
        __syncthreads();
        dpd_step<16>(shared.p, warp_row, shared.kv, 0, 2, acc);
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
