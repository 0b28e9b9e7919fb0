/* SPDX-License-Identifier: MIT
 *
 * One kernel a stage, of one head. Memory is as in a dump.
 */
#include "device/kernels/direct_p.cuh"
#include "device/kernels/gemm.cuh"
#include "device/kernels/kernels.cuh"

namespace
{

enum { TILE_ROWS = 64, TILE_COLS = 64, WARPS = 4, THREADS = 32 * WARPS, PRODUCERS = 128 };

struct gemm_shared {
    dpd_operand<TILE_ROWS> a;
    dpd_operand<TILE_COLS> b;
};

/* One 64 x 64 tile of D, K in steps of 128. */
template <bool UE8M0>
__device__ void gemm_tile(gemm_shared &shared, const uint8_t *a, size_t a_stride,
                          const uint8_t *a_scale, size_t a_scale_stride, int a_rows,
                          const uint8_t *b, size_t b_stride, const uint8_t *b_scale,
                          size_t b_scale_stride, int b_rows, int steps, uint32_t d[8][4])
{
    const int scales = DPD_STEP / (UE8M0 ? 32 : 16);
    for (int step = 0; step < steps; step++) {
        __syncthreads();
        dpd_load_operand<TILE_ROWS, UE8M0>(shared.a, a + (size_t)step * 64, a_stride,
                                           a_scale + (size_t)step * scales, a_scale_stride, a_rows,
                                           (int)threadIdx.x, THREADS);
        dpd_load_operand<TILE_COLS, UE8M0>(shared.b, b + (size_t)step * 64, b_stride,
                                           b_scale + (size_t)step * scales, b_scale_stride, b_rows,
                                           (int)threadIdx.x, THREADS);
        __syncthreads();
        dpd_step<8>(shared.a, (int)(threadIdx.x / 32) * 16, shared.b, 0, 2, d);
    }
}

__global__ void score_kernel(const __grid_constant__ dpd_problem p, const uint8_t *q_payload,
                             const uint8_t *q_scale, const uint8_t *k_payload,
                             const uint8_t *k_scale, float *raw)
{
    extern __shared__ __align__(16) uint8_t memory[];
    gemm_shared &shared = *reinterpret_cast<gemm_shared *>(memory);
    const int col0 = (int)blockIdx.x * TILE_COLS;
    const int row0 = (int)blockIdx.y * TILE_ROWS;
    uint32_t d[8][4] = {};
    gemm_tile<false>(shared, q_payload + (size_t)row0 * 64, 64, q_scale + (size_t)row0 * 8, 8,
                     min(TILE_ROWS, p.queries - row0), k_payload + (size_t)col0 * 64, 64,
                     k_scale + (size_t)col0 * 8, 8, TILE_COLS, 1, d);
    for (int tile = 0; tile < 8; tile++) {
        for (int out = 0; out < 4; out++) {
            const int row = row0 + dpd_fragment_row(out);
            const int col = col0 + dpd_fragment_col(tile, out);
            if (row < p.queries) {
                raw[(size_t)row * p.key_rows + col] =
                    dpd_hidden(p, row, col) ? -INFINITY : __uint_as_float(d[tile][out]);
            }
        }
    }
}

/* Key tiles that a row of this row's query tile sees: the others are not evaluated [D15]. */
__device__ __forceinline__ int visited_tiles(const dpd_problem &p, int row)
{
    const int last_row = min(row / 128 * 128 + 127, p.queries - 1);
    const int last_key = p.causal ? last_row + p.keys - p.queries : p.keys - 1;
    return last_key < 0 ? 0 : min(p.key_rows / 128, last_key / 128 + 1);
}

__global__ void reference_kernel(const __grid_constant__ dpd_problem p,
                                 const __grid_constant__ dp_device_policy policy, const float *raw,
                                 float *row_ref)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= p.queries) {
        return;
    }
    float m = 0.0f;
    if (policy.anchor_keys > 0 && visited_tiles(p, row) > 0) {
        float largest = -INFINITY;
        for (int j = 0; j < policy.anchor_keys; j++) {
            largest = dp_max(largest, raw[(size_t)row * p.key_rows + j]);
        }
        m = dp_add(largest, policy.anchor_bias);
    }
    row_ref[row] = m;
}

/* One thread a quarter, a warp 32 quarters of one row; Q0..Q3 of a tile are neighbours. Block y is
 * the head. */
__global__ void __launch_bounds__(PRODUCERS)
    produce_kernel(const __grid_constant__ dpd_problem p,
                   const __grid_constant__ dp_device_policy policy, const float *raw,
                   const float *row_ref, uint8_t *p_scale, uint8_t *p_payload, uint16_t *code_sum)
{
    __shared__ float4 scores[PRODUCERS][9]; /* 9: neighbouring rows in different banks */
    const int lane = (int)threadIdx.x % 32;
    const unsigned blocks = (unsigned)p.key_rows / 32u;
    const unsigned groups = (blocks + 31u) / 32u;
    const unsigned warp = blockIdx.x * (PRODUCERS / 32) + threadIdx.x / 32;
    const int row = (int)(warp / groups);
    if (row >= p.queries) {
        return;
    }
    const unsigned first = warp % groups * 32u; /* block of lane 0 */
    const size_t head_row = (size_t)blockIdx.y * p.queries + row;
    const float4 *from = reinterpret_cast<const float4 *>(raw + head_row * p.key_rows) + first * 8u;
    float4(*mine)[9] = scores + threadIdx.x / 32 * 32;
    const int words = (int)(min(blocks - first, 32u) * 8u);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (j * 32 + lane < words) {
            mine[(j * 32 + lane) / 8][lane % 8] = __ldcs(from + j * 32 + lane);
        }
    }
    __syncwarp();
    float s[32];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const float4 x = mine[lane][j];
        s[4 * j] = x.x;
        s[4 * j + 1] = x.y;
        s[4 * j + 2] = x.z;
        s[4 * j + 3] = x.w;
    }
    const float m = row_ref[head_row];
    const int u = dpd_block_byte(policy, dpd_max32(s), m);
    const int u0 = __shfl_sync(0xFFFFFFFFu, u, lane / 4 * 4);
    dpd_quarter out = dpd_classify(policy, row / 128 & 1, lane % 4, m, s, u, u0);
    const int block = (int)first + lane;
    if (block / 4 >= visited_tiles(p, row)) {
        out = {{0, 0, 0, 0}, 0, (uint32_t)dpd_stored_byte(policy, 0)};
    }
    if (block < (int)blocks) {
        const size_t at = head_row * blocks + block;
        __stcs(reinterpret_cast<uint4 *>(p_payload) + at,
               make_uint4(out.word[0], out.word[1], out.word[2], out.word[3]));
        p_scale[at] = (uint8_t)out.stored;
        code_sum[at] = (uint16_t)out.code_sum;
    }
}

/* One thread a row: the order of the additions is the kernel's. */
__global__ void denominate_kernel(const __grid_constant__ dpd_problem p,
                                  const __grid_constant__ dp_device_policy policy,
                                  const uint8_t *p_scale, const uint16_t *code_sum, float *row_sum)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= p.queries) {
        return;
    }
    const int tiles = p.key_rows / 128;
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; tile++) {
        uint32_t stored[4];
        uint32_t sums[4];
        for (int b = 0; b < 4; b++) {
            const size_t at = (size_t)row * (p.key_rows / 32) + tile * 4 + b;
            stored[b] = p_scale[at];
            sums[b] = code_sum[at];
        }
        sum = dpd_row_sum_add(policy, sum, stored, sums);
    }
    row_sum[row] = dpd_row_sum_finish(policy, sum);
}

__global__ void accumulate_kernel(const __grid_constant__ dpd_problem p, const uint8_t *p_payload,
                                  const uint8_t *p_scale, const uint8_t *v_payload,
                                  const uint8_t *v_scale, float *acc)
{
    extern __shared__ __align__(16) uint8_t memory[];
    gemm_shared &shared = *reinterpret_cast<gemm_shared *>(memory);
    const int col0 = (int)blockIdx.x * TILE_COLS;
    const int row0 = (int)blockIdx.y * TILE_ROWS;
    const size_t stride = (size_t)p.key_rows / 2;
    const size_t scale_stride = (size_t)p.key_rows / 32;
    uint32_t d[8][4] = {};
    gemm_tile<true>(shared, p_payload + row0 * stride, stride, p_scale + row0 * scale_stride,
                    scale_stride, min(TILE_ROWS, p.queries - row0), v_payload + col0 * stride,
                    stride, v_scale + col0 * scale_stride, scale_stride, TILE_COLS,
                    visited_tiles(p, row0), d);
    for (int tile = 0; tile < 8; tile++) {
        for (int out = 0; out < 4; out++) {
            const int row = row0 + dpd_fragment_row(out);
            if (row < p.queries) {
                acc[(size_t)row * 128 + col0 + dpd_fragment_col(tile, out)] =
                    __uint_as_float(d[tile][out]);
            }
        }
    }
}

/* One block a row, one thread a feature. */
__global__ void output_kernel(const __grid_constant__ dp_device_policy policy, const float *row_ref,
                              const float *row_sum, const float *acc, uint16_t *o, float *lse)
{
    const size_t row = blockIdx.x;
    const float m = row_ref[row];
    const float sum = row_sum[row];
    const bool valid = dpd_row_valid(m, sum);
    const size_t at = row * 128 + threadIdx.x;
    o[at] = dpd_to_bf16(valid ? dp_mul(acc[at], dpd_output_scale(m, sum)) : 0.0f);
    if (threadIdx.x == 0) {
        lse[row] = dpd_lse(policy, m, sum);
    }
}

template <typename Kernel> void allow_shared(Kernel kernel)
{
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)sizeof(gemm_shared));
}

} // namespace

void dpd_score(const dpd_problem &problem, const uint8_t *q_payload, const uint8_t *q_scale,
               const uint8_t *k_payload, const uint8_t *k_scale, float *raw, cudaStream_t stream)
{
    allow_shared(score_kernel);
    const dim3 grid(problem.key_rows / TILE_COLS, (problem.queries + TILE_ROWS - 1) / TILE_ROWS);
    score_kernel<<<grid, THREADS, sizeof(gemm_shared), stream>>>(problem, q_payload, q_scale,
                                                                 k_payload, k_scale, raw);
}

void dpd_reference(const dpd_problem &problem, const dp_device_policy &policy, const float *raw,
                   float *row_ref, cudaStream_t stream)
{
    reference_kernel<<<(problem.queries + 127) / 128, 128, 0, stream>>>(problem, policy, raw,
                                                                        row_ref);
}

void dpd_produce(const dpd_problem &problem, const dp_device_policy &policy, int heads,
                 const float *raw, const float *row_ref, uint8_t *p_scale, uint8_t *p_payload,
                 uint16_t *code_sum, cudaStream_t stream)
{
    const unsigned groups = ((unsigned)problem.key_rows / 32 + 31) / 32;
    const unsigned warps = (unsigned)problem.queries * groups;
    const dim3 grid((warps + PRODUCERS / 32 - 1) / (PRODUCERS / 32), (unsigned)heads);
    produce_kernel<<<grid, PRODUCERS, 0, stream>>>(problem, policy, raw, row_ref, p_scale,
                                                   p_payload, code_sum);
}

void dpd_denominate(const dpd_problem &problem, const dp_device_policy &policy,
                    const uint8_t *p_scale, const uint16_t *code_sum, float *row_sum,
                    cudaStream_t stream)
{
    denominate_kernel<<<(problem.queries + 63) / 64, 64, 0, stream>>>(problem, policy, p_scale,
                                                                      code_sum, row_sum);
}

void dpd_accumulate(const dpd_problem &problem, const uint8_t *p_payload, const uint8_t *p_scale,
                    const uint8_t *v_payload, const uint8_t *v_scale, float *acc,
                    cudaStream_t stream)
{
    allow_shared(accumulate_kernel);
    const dim3 grid(128 / TILE_COLS, (problem.queries + TILE_ROWS - 1) / TILE_ROWS);
    accumulate_kernel<<<grid, THREADS, sizeof(gemm_shared), stream>>>(problem, p_payload, p_scale,
                                                                      v_payload, v_scale, acc);
}

void dpd_output(const dpd_problem &problem, const dp_device_policy &policy, const float *row_ref,
                const float *row_sum, const float *acc, uint16_t *o, float *lse,
                cudaStream_t stream)
{
    output_kernel<<<problem.queries, 128, 0, stream>>>(policy, row_ref, row_sum, acc, o, lse);
}
