/* SPDX-License-Identifier: MIT
 *
 * A 16-row strip of the block-scaled product, one warp: operands already decoded in shared memory.
 * Both the staged and the fused kernels are built on it.
 */
#ifndef DP_DEVICE_GEMM_CUH
#define DP_DEVICE_GEMM_CUH

#include "device/kernels/block_mma.cuh"

/* K of one staging step: two K = 64 instructions. */
#define DPD_STEP 128
/* Bytes from one row to the next in shared memory: 16 more, so that the 8 rows of a fragment fall
 * into different banks. */
#define DPD_ROW (DPD_STEP + 16)

/* Scale of one group as a word: significand in bits 0..3, NaN in bit 4, exponent + 512 above. */
__device__ __forceinline__ uint32_t dpd_pack_scale(dpd_scale s)
{
    return (uint32_t)s.significand | (s.nan ? 16u : 0u) | (uint32_t)(s.exponent + 512) << 5;
}
__device__ __forceinline__ dpd_scale dpd_unpack_scale(uint32_t word)
{
    dpd_scale s;
    s.significand = (int32_t)(word & 15u);
    s.nan = (word & 16u) != 0;
    s.exponent = (int32_t)(word >> 5) - 512;
    return s;
}

/* An operand of up to ROWS rows and 128 columns of K in shared memory. */
template <int ROWS> struct dpd_operand {
    int8_t twice[ROWS][DPD_ROW]; /* doubled values                 */
    uint32_t scale[ROWS][8];     /* packed scale of each group     */
    uint16_t nonzero[ROWS][8];   /* which elements are not zeros   */
};

/* Decode rows [0, ROWS) from memory: 64 payload bytes a row, `block` elements a scale. Rows beyond
 * `valid` become zeros with scale byte 0. */
template <int ROWS, bool UE8M0>
__device__ void dpd_load_operand(dpd_operand<ROWS> &to, const uint8_t *payload, size_t stride,
                                 const uint8_t *scale, size_t scale_stride, int valid, int thread,
                                 int threads)
{
    const int groups_a_scale = UE8M0 ? 2 : 1;
    for (int i = thread; i < ROWS * 8; i += threads) {
        const int row = i / 8;
        const int group = i % 8;
        uint2 words = make_uint2(0, 0);
        uint32_t byte = 0;
        if (row < valid) {
            words = *reinterpret_cast<const uint2 *>(payload + row * stride + group * 8);
            byte = scale[row * scale_stride + group / groups_a_scale];
        }
        uint32_t bytes[4];
        dpd_decode_word(words.x, bytes);
        dpd_decode_word(words.y, bytes + 2);
        *reinterpret_cast<uint4 *>(&to.twice[row][group * 16]) =
            make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
        to.scale[row][group] =
            dpd_pack_scale(UE8M0 ? dpd_scale_ue8m0(byte) : dpd_scale_ue4m3(byte));
        to.nonzero[row][group] = (uint16_t)dpd_nonzero_mask(words.x, words.y);
    }
}

/* d: accumulators (bits) of a warp's 16 rows (from row0 of a) times 8 * TILES columns (from col0 of
 * b), chained through the instructions of this step. Layout of mma.sync m16n8: d[tile][0..3] are
 * (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1) with g = lane / 4, t = lane % 4. */
template <int TILES, int A_ROWS, int B_ROWS>
__device__ __forceinline__ void dpd_step(const dpd_operand<A_ROWS> &a, int row0,
                                         const dpd_operand<B_ROWS> &b, int col0, int instructions,
                                         uint32_t d[TILES][4])
{
    const int lane = (int)(threadIdx.x % 32);
    const int g = lane / 4;
    const int t = lane % 4;
#pragma unroll 1 /* the body is long: twice would not fit the instruction cache */
    for (int instruction = 0; instruction < instructions; instruction++) {
        uint32_t a_word[4][2];
        uint32_t a_scale[2][4];
        uint32_t a_mask[2][4];
#pragma unroll
        for (int group = 0; group < 4; group++) {
            const int at = (instruction * 4 + group) * 16 + 4 * t;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = row0 + g + 8 * half;
                a_word[group][half] = *reinterpret_cast<const uint32_t *>(&a.twice[row][at]);
                a_scale[half][group] = a.scale[row][instruction * 4 + group];
                a_mask[half][group] = a.nonzero[row][instruction * 4 + group];
            }
        }
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            int32_t sum[4][4];
            const int col = col0 + tile * 8;
#pragma unroll
            for (int group = 0; group < 4; group++) {
                const int at = (instruction * 4 + group) * 16 + 4 * t;
                const uint32_t word = *reinterpret_cast<const uint32_t *>(&b.twice[col + g][at]);
                dpd_mma_s8(a_word[group], word, sum[group]);
            }
#pragma unroll
            for (int out = 0; out < 4; out++) {
                const int half = out / 2;
                const int column = col + 2 * t + out % 2;
                int32_t group_sum[4];
                bool nonzero[4];
                dpd_scale sa[4], sb[4];
#pragma unroll
                for (int group = 0; group < 4; group++) {
                    group_sum[group] = sum[group][out];
                    nonzero[group] =
                        (a_mask[half][group] & b.nonzero[column][instruction * 4 + group]) != 0;
                    sa[group] = dpd_unpack_scale(a_scale[half][group]);
                    sb[group] = dpd_unpack_scale(b.scale[column][instruction * 4 + group]);
                }
                d[tile][out] = dpd_block_mma_finish(group_sum, nonzero, sa, sb, d[tile][out]);
            }
        }
    }
}

/* Row and column, inside the block's tile of 16 rows a warp, of accumulator `out` of column tile
 * `tile` in the layout of dpd_step. */
__device__ __forceinline__ int dpd_fragment_row(int out)
{
    return (int)(threadIdx.x / 32) * 16 + (int)(threadIdx.x % 32) / 4 + 8 * (out / 2);
}
__device__ __forceinline__ int dpd_fragment_col(int tile, int out)
{
    return tile * 8 + 2 * ((int)threadIdx.x % 4) + out % 2;
}

#endif
