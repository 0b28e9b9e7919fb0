/* SPDX-License-Identifier: MIT
 *
 * wgmma, m64n8, operands in shared memory in the K-major layout without swizzle: core matrices of
 * 8 rows by 16 bytes, two along k, eight along m (PTX ISA 9.1, asynchronous warpgroup matrix).
 */
#include "device/capture/mma.h"

#define DP_M 64

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define DP_HAVE_WGMMA 1
#endif

#ifdef DP_HAVE_WGMMA
static __device__ __forceinline__ uint64_t dp_descriptor(const void *shared, bool swapped)
{
    uint64_t address = (uint64_t)__cvta_generic_to_shared(shared);
    uint64_t along_k = 128, along_rows = 256; /* bytes to the next core matrix */
    uint64_t leading = swapped ? along_rows : along_k, stride = swapped ? along_k : along_rows;
    return ((address & 0x3FFFF) >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32;
}

/* Rows of 32 bytes into core matrices. */
static __device__ void dp_stage(uint8_t *shared, const uint8_t *rows, int count)
{
    for (int unit = (int)threadIdx.x; unit < count * 2; unit += (int)blockDim.x) {
        int row = unit / 2, half = unit % 2;
        *(uint4 *)(shared + (row / 8) * 256 + half * 128 + (row % 8) * 16) =
            *(const uint4 *)(rows + row * DP_ROW_BYTES + half * 16);
    }
}
#endif

#define DP_WGMMA_F32(NAME, SHAPE_AND_TYPES, TAIL)                                                  \
    struct NAME {                                                                                  \
        static constexpr bool half = false;                                                        \
        static __device__ void issue(float (&d)[4], uint64_t a, uint64_t b, int add)               \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"                                 \
                         "wgmma.mma_async.sync.aligned." SHAPE_AND_TYPES                           \
                         " {%0, %1, %2, %3}, %4, %5, p, 1, 1" TAIL "; }\n"                         \
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                          \
                         : "l"(a), "l"(b), "r"(add)                                                \
                         : "memory");                                                              \
        }                                                                                          \
    };

#define DP_WGMMA_F16(NAME, SHAPE_AND_TYPES, TAIL)                                                  \
    struct NAME {                                                                                  \
        static constexpr bool half = true;                                                         \
        static __device__ void issue(uint32_t (&d)[4], uint64_t a, uint64_t b, int add)            \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"                                 \
                         "wgmma.mma_async.sync.aligned." SHAPE_AND_TYPES                           \
                         " {%0, %1}, %2, %3, p, 1, 1" TAIL "; }\n"                                 \
                         : "+r"(d[0]), "+r"(d[1])                                                  \
                         : "l"(a), "l"(b), "r"(add)                                                \
                         : "memory");                                                              \
        }                                                                                          \
    };

DP_WGMMA_F32(dp_w_e4e4, "m64n8k32.f32.e4m3.e4m3", "")
DP_WGMMA_F32(dp_w_e4e5, "m64n8k32.f32.e4m3.e5m2", "")
DP_WGMMA_F32(dp_w_e5e4, "m64n8k32.f32.e5m2.e4m3", "")
DP_WGMMA_F32(dp_w_e5e5, "m64n8k32.f32.e5m2.e5m2", "")
DP_WGMMA_F16(dp_w_e4e4_h, "m64n8k32.f16.e4m3.e4m3", "")
DP_WGMMA_F16(dp_w_e4e5_h, "m64n8k32.f16.e4m3.e5m2", "")
DP_WGMMA_F16(dp_w_e5e4_h, "m64n8k32.f16.e5m2.e4m3", "")
DP_WGMMA_F16(dp_w_e5e5_h, "m64n8k32.f16.e5m2.e5m2", "")
DP_WGMMA_F32(dp_w_f16, "m64n8k16.f32.f16.f16", ", 0, 0")
DP_WGMMA_F32(dp_w_bf16, "m64n8k16.f32.bf16.bf16", ", 0, 0")
DP_WGMMA_F32(dp_w_tf32, "m64n8k8.f32.tf32.tf32", "")
DP_WGMMA_F16(dp_w_f16_h, "m64n8k16.f16.f16.f16", ", 0, 0")

/* Fragment of thread t: rows 16 * warp + lane / 4 (+ 8), columns 2 * (lane % 4) (+ 1). */
template <class Op, int steps>
__global__ void __launch_bounds__(128) dp_wgmma_kernel(dp_mma_io io, int add, bool swapped)
{
#ifdef DP_HAVE_WGMMA
    __shared__ __align__(128) uint8_t a[steps][DP_M * DP_ROW_BYTES];
    __shared__ __align__(128) uint8_t b[steps][DP_TILE_N * DP_ROW_BYTES];
    const size_t tile = blockIdx.x;
    for (int s = 0; s < steps; s++) {
        dp_stage(a[s], io.a + (tile * steps + s) * DP_M * DP_ROW_BYTES, DP_M);
        dp_stage(b[s], io.b + (tile * steps + s) * DP_TILE_N * DP_ROW_BYTES, DP_TILE_N);
    }
    const int lane = (int)threadIdx.x % 32;
    const size_t row = tile * DP_M + threadIdx.x / 32 * 16 + lane / 4;
    const size_t first = row * DP_TILE_N + lane % 4 * 2;
    const uint32_t c[4] = {io.c[first], io.c[first + 1], io.c[first + 8 * DP_TILE_N],
                           io.c[first + 8 * DP_TILE_N + 1]};
    uint32_t d[4];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if constexpr (Op::half) {
        uint32_t r[4] = {c[0] | c[1] << 16, c[2] | c[3] << 16, 0, 0};
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int s = 0; s < steps; s++) {
            Op::issue(r, dp_descriptor(a[s], swapped), dp_descriptor(b[s], swapped),
                      s == 0 ? add : 1);
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
                     : "+r"(r[0]), "+r"(r[1])::"memory");
        d[0] = r[0] & 0xFFFF, d[1] = r[0] >> 16, d[2] = r[1] & 0xFFFF, d[3] = r[1] >> 16;
    } else {
        float r[4] = {__uint_as_float(c[0]), __uint_as_float(c[1]), __uint_as_float(c[2]),
                      __uint_as_float(c[3])};
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int s = 0; s < steps; s++) {
            Op::issue(r, dp_descriptor(a[s], swapped), dp_descriptor(b[s], swapped),
                      s == 0 ? add : 1);
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
                     : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3])::"memory");
        for (int i = 0; i < 4; i++) {
            d[i] = __float_as_uint(r[i]);
        }
    }
    io.d[first] = d[0], io.d[first + 1] = d[1];
    io.d[first + 8 * DP_TILE_N] = d[2], io.d[first + 8 * DP_TILE_N + 1] = d[3];
#endif
}

/* The first operand from registers, as the second product of an attention kernel has it; the words
 * of a thread are those of mma.sync. */
__global__ void __launch_bounds__(128) dp_wgmma_registers(dp_mma_io io)
{
#ifdef DP_HAVE_WGMMA
    __shared__ __align__(128) uint8_t b[DP_TILE_N * DP_ROW_BYTES];
    const size_t tile = blockIdx.x;
    const int lane = (int)threadIdx.x % 32, t = lane % 4;
    const size_t row = tile * DP_M + threadIdx.x / 32 * 16 + lane / 4;
    const uint32_t *words = (const uint32_t *)io.a;
    const uint32_t a[4] = {words[row * 8 + t], words[(row + 8) * 8 + t], words[row * 8 + 4 + t],
                           words[(row + 8) * 8 + 4 + t]};
    const size_t first = row * DP_TILE_N + 2 * t, second = first + 8 * DP_TILE_N;
    float d[4] = {__uint_as_float(io.c[first]), __uint_as_float(io.c[first + 1]),
                  __uint_as_float(io.c[second]), __uint_as_float(io.c[second + 1])};
    dp_stage(b, io.b + tile * DP_TILE_N * DP_ROW_BYTES, DP_TILE_N);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1;\n"
                 "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(dp_descriptor(b, false))
                 : "memory");
    io.d[first] = __float_as_uint(d[0]), io.d[first + 1] = __float_as_uint(d[1]);
    io.d[second] = __float_as_uint(d[2]), io.d[second + 1] = __float_as_uint(d[3]);
#endif
}

static cudaError_t dp_launch_registers(const dp_mma_io *io, const dp_mma_experiment *what,
                                       bool swapped)
{
    (void)what, (void)swapped;
    dp_wgmma_registers<<<io->tiles, 128>>>(*io);
    return cudaGetLastError();
}

template <class Op, int steps>
static cudaError_t dp_launch(const dp_mma_io *io, const dp_mma_experiment *what, bool swapped)
{
    dp_wgmma_kernel<Op, steps><<<io->tiles, 128>>>(*io, what->ignore_c ? 0 : 1, swapped);
    return cudaGetLastError();
}

#define DP_ROW(group, a, b, d, steps, ignore, op)                                                  \
    {                                                                                              \
        group, "wgmma", {DP_OP_##a, DP_OP_##b, DP_OP_##d}, DP_M, steps, 0, false, ignore, 0,       \
            dp_launch<op, steps>                                                                   \
    }

static const dp_mma_experiment dp_list[] = {
    DP_ROW("wgmma_f32_e4m3_e4m3", E4M3, E4M3, F32, 1, false, dp_w_e4e4),
    DP_ROW("wgmma_f32_e4m3_e5m2", E4M3, E5M2, F32, 1, false, dp_w_e4e5),
    DP_ROW("wgmma_f32_e5m2_e4m3", E5M2, E4M3, F32, 1, false, dp_w_e5e4),
    DP_ROW("wgmma_f32_e5m2_e5m2", E5M2, E5M2, F32, 1, false, dp_w_e5e5),
    DP_ROW("wgmma_f16_e4m3_e4m3", E4M3, E4M3, F16, 1, false, dp_w_e4e4_h),
    DP_ROW("wgmma_f16_e4m3_e5m2", E4M3, E5M2, F16, 1, false, dp_w_e4e5_h),
    DP_ROW("wgmma_f16_e5m2_e4m3", E5M2, E4M3, F16, 1, false, dp_w_e5e4_h),
    DP_ROW("wgmma_f16_e5m2_e5m2", E5M2, E5M2, F16, 1, false, dp_w_e5e5_h),
    DP_ROW("wgmma_f32_f16_f16", F16, F16, F32, 1, false, dp_w_f16),
    DP_ROW("wgmma_f32_bf16_bf16", BF16, BF16, F32, 1, false, dp_w_bf16),
    DP_ROW("wgmma_f32_tf32_tf32", TF32, TF32, F32, 1, false, dp_w_tf32),
    DP_ROW("wgmma_f16_f16_f16", F16, F16, F16, 1, false, dp_w_f16_h),
    DP_ROW("wgmma_k64_f32_e4m3_e4m3", E4M3, E4M3, F32, 2, false, dp_w_e4e4),
    DP_ROW("wgmma_k64_f16_e4m3_e4m3", E4M3, E4M3, F16, 2, false, dp_w_e4e4_h),
    DP_ROW("wgmma_noc_f32_e4m3_e4m3", E4M3, E4M3, F32, 1, true, dp_w_e4e4),
    DP_ROW("wgmma_noc_f16_e4m3_e4m3", E4M3, E4M3, F16, 1, true, dp_w_e4e4_h),
    {"wgmma_registers_f32_e4m3_e4m3",
     "wgmma",
     {DP_OP_E4M3, DP_OP_E4M3, DP_OP_F32},
     DP_M,
     1,
     0,
     false,
     false,
     0,
     dp_launch_registers},
};

dp_mma_set dp_mma_wgmma(void)
{
    return {dp_list, (int)(sizeof dp_list / sizeof dp_list[0])};
}
