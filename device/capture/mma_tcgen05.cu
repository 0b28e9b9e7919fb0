/* SPDX-License-Identifier: MIT
 *
 * tcgen05.mma, one CTA, M = 128, N = 16 (columns 8 to 15 multiply zeros), 32 bytes of k, operands
 * in shared memory, K-major without swizzle; C, D and the scales in tensor memory. Row m of D sits
 * in lane m, scale word of row r in lane r % 32 of all four partitions, column r / 32 (PTX
 * ISA 9.1).
 */
#include "device/capture/mma.h"

#define DP_M 128
#define DP_N 16

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define DP_HAVE_TCGEN05 1
#endif

#ifdef DP_HAVE_TCGEN05
static __device__ __forceinline__ uint32_t dp_shared(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ uint64_t dp_descriptor(const void *shared)
{
    uint64_t address = dp_shared(shared);
    return ((address & 0x3FFFF) >> 4) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32 |
           (uint64_t)1 << 46;
}

static __device__ void dp_stage(uint8_t *shared, const uint8_t *rows, int count)
{
    for (int unit = (int)threadIdx.x; unit < count * 2; unit += (int)blockDim.x) {
        int row = unit / 2, half = unit % 2;
        *(uint4 *)(shared + (row / 8) * 256 + half * 128 + (row % 8) * 16) =
            *(const uint4 *)(rows + row * DP_ROW_BYTES + half * 16);
    }
}

static __device__ void dp_wait(uint64_t *barrier)
{
    asm volatile("{ .reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra again; }\n" ::"r"(dp_shared(barrier))
                 : "memory");
}

static __device__ void dp_store4(uint32_t address, const uint32_t (&v)[4])
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
                 "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
                 : "memory");
}
#endif

#define DP_SCALED(NAME, KIND)                                                                      \
    struct NAME {                                                                                  \
        static __device__ void issue(uint32_t d, uint64_t a, uint64_t b, uint32_t idesc,           \
                                     uint32_t sfa, uint32_t sfb, int add)                          \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"                                 \
                         "tcgen05.mma.cta_group::1." KIND                                          \
                         " [%0], %1, %2, %3, [%4], [%5], p; }\n" ::"r"(d),                         \
                         "l"(a), "l"(b), "r"(idesc), "r"(sfa), "r"(sfb), "r"(add)                  \
                         : "memory");                                                              \
        }                                                                                          \
    };

struct dp_t_f8f6f4 {
    static __device__ void issue(uint32_t d, uint64_t a, uint64_t b, uint32_t idesc, uint32_t,
                                 uint32_t, int add)
    {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
                     "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }\n" ::"r"(d),
                     "l"(a), "l"(b), "r"(idesc), "r"(add)
                     : "memory");
    }
};
DP_SCALED(dp_t_nvf4_b16, "kind::mxf4nvf4.block_scale.block16")
DP_SCALED(dp_t_nvf4_b32, "kind::mxf4nvf4.block_scale.block32")
DP_SCALED(dp_t_mxf4, "kind::mxf4.block_scale.block32")
DP_SCALED(dp_t_mxf8, "kind::mxf8f6f4.block_scale.block32")

template <class Op>
__global__ void __launch_bounds__(128) dp_tcgen05_kernel(dp_mma_io io, uint32_t idesc, int add)
{
#ifdef DP_HAVE_TCGEN05
    __shared__ __align__(128) uint8_t a[DP_M * DP_ROW_BYTES];
    __shared__ __align__(128) uint8_t b[DP_N * DP_ROW_BYTES];
    __shared__ __align__(8) uint64_t barrier;
    __shared__ uint32_t base;
    const size_t tile = blockIdx.x;
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t first = (tile * DP_M + threadIdx.x) * DP_TILE_N;

    if (warp == 0) {
        asm volatile(
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;\n"
            "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" ::"r"(dp_shared(&base))
            : "memory");
    }
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(dp_shared(&barrier))
                     : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    for (uint32_t i = threadIdx.x; i < sizeof b / 4; i += blockDim.x) {
        ((uint32_t *)b)[i] = 0;
    }
    __syncthreads();
    dp_stage(a, io.a + tile * DP_M * DP_ROW_BYTES, DP_M);
    dp_stage(b, io.b + tile * DP_TILE_N * DP_ROW_BYTES, DP_TILE_N);
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;\n" ::: "memory");

    /* Columns: D 0 to 15, scales of A 16 to 19, of B 20 to 23. */
    const uint32_t mine = base + (warp * 32 << 16);
    uint32_t v[4], w[4];
    for (int i = 0; i < 4; i++) {
        v[i] = io.c[first + i];
        w[i] = io.c[first + 4 + i];
    }
    dp_store4(mine, v);
    dp_store4(mine + 4, w);
    for (uint32_t i = 0; i < 4; i++) {
        v[i] = io.sfa != nullptr ? io.sfa[tile * DP_M + i * 32 + lane] : 0;
        w[i] =
            io.sfb != nullptr && i == 0 && lane < DP_TILE_N ? io.sfb[tile * DP_TILE_N + lane] : 0;
    }
    dp_store4(mine + 16, v);
    dp_store4(mine + 20, w);
    asm volatile("tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n" ::
                     : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("tcgen05.fence::after_thread_sync;\n" ::: "memory");
        Op::issue(base, dp_descriptor(a), dp_descriptor(b), idesc, base + 16, base + 20, add);
        asm volatile(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];\n" ::"r"(
                dp_shared(&barrier))
            : "memory");
    }
    dp_wait(&barrier);
    asm volatile("tcgen05.fence::after_thread_sync;\n" ::: "memory");
    uint32_t r[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
                 "tcgen05.wait::ld.sync.aligned;\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]),
                   "=r"(r[6]), "=r"(r[7])
                 : "r"(mine)
                 : "memory");
    for (int i = 0; i < 8; i++) {
        io.d[first + i] = r[i];
    }
    asm volatile("tcgen05.fence::before_thread_sync;\n" ::: "memory");
    __syncthreads();
    if (warp == 0) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;\n" ::"r"(base)
                     : "memory");
    }
#endif
}

template <class Op>
static cudaError_t dp_launch(const dp_mma_io *io, const dp_mma_experiment *what, bool swapped)
{
    (void)swapped;
    dp_tcgen05_kernel<Op><<<io->tiles, 128>>>(*io, what->idesc, what->ignore_c ? 0 : 1);
    return cudaGetLastError();
}

/* Instruction descriptor: types in bits 7 and 10, N / 8 in 17, M / 16 in 24; D type in 4 without
 * scales, scale type in 23 with scales. */
#define DP_SIZE           ((unsigned)(DP_N / 8) << 17 | (unsigned)(DP_M / 16) << 24)
#define DP_PLAIN(d, a, b) (DP_SIZE | (unsigned)(d) << 4 | (unsigned)(a) << 7 | (unsigned)(b) << 10)
#define DP_BLOCK(s, a, b) (DP_SIZE | (unsigned)(s) << 23 | (unsigned)(a) << 7 | (unsigned)(b) << 10)

#define DP_ROW(group, kind, a, b, d, block, ue4m3, ignore, idesc, op)                              \
    {                                                                                              \
        group, "tcgen05.mma.kind::" kind, {DP_OP_##a, DP_OP_##b, DP_OP_##d}, DP_M, 1, block,       \
            ue4m3, ignore, idesc, dp_launch<op>                                                    \
    }
#define DP_F8(group, a, b, d, idesc, ignore)                                                       \
    DP_ROW(group, "f8f6f4", a, b, d, 0, false, ignore, idesc, dp_t_f8f6f4)
#define DP_F4(group, kind, block, ue4m3, op)                                                       \
    DP_ROW(group, kind, E2M1, E2M1, F32, block, ue4m3, false, DP_BLOCK(!(ue4m3), 1, 1), op)
#define DP_MX8(group, a, b, idesc)                                                                 \
    DP_ROW(group, "mxf8f6f4.block32.ue8m0", a, b, F32, 32, false, false, idesc, dp_t_mxf8)

static const dp_mma_experiment dp_list[] = {
    DP_F8("tcgen05_f32_e4m3_e4m3", E4M3, E4M3, F32, DP_PLAIN(1, 0, 0), false),
    DP_F8("tcgen05_f32_e4m3_e5m2", E4M3, E5M2, F32, DP_PLAIN(1, 0, 1), false),
    DP_F8("tcgen05_f32_e5m2_e4m3", E5M2, E4M3, F32, DP_PLAIN(1, 1, 0), false),
    DP_F8("tcgen05_f32_e5m2_e5m2", E5M2, E5M2, F32, DP_PLAIN(1, 1, 1), false),
    DP_F8("tcgen05_f16_e4m3_e4m3", E4M3, E4M3, F16, DP_PLAIN(0, 0, 0), false),
    DP_F8("tcgen05_f16_e5m2_e5m2", E5M2, E5M2, F16, DP_PLAIN(0, 1, 1), false),
    DP_F8("tcgen05_noc_f32_e4m3_e4m3", E4M3, E4M3, F32, DP_PLAIN(1, 0, 0), true),
    DP_F4("tcgen05_nvfp4", "mxf4nvf4.block16.ue4m3", 16, true, dp_t_nvf4_b16),
    DP_F4("tcgen05_mxfp4_b16", "mxf4nvf4.block16.ue8m0", 16, false, dp_t_nvf4_b16),
    DP_F4("tcgen05_mxfp4_b32", "mxf4nvf4.block32.ue8m0", 32, false, dp_t_nvf4_b32),
    DP_F4("tcgen05_mxf4", "mxf4.block32.ue8m0", 32, false, dp_t_mxf4),
    DP_MX8("tcgen05_mxfp8_e4m3_e4m3", E4M3, E4M3, DP_BLOCK(1, 0, 0)),
    DP_MX8("tcgen05_mxfp8_e4m3_e5m2", E4M3, E5M2, DP_BLOCK(1, 0, 1)),
    DP_MX8("tcgen05_mxfp8_e5m2_e4m3", E5M2, E4M3, DP_BLOCK(1, 1, 0)),
};

dp_mma_set dp_mma_tcgen05(void)
{
    return {dp_list, (int)(sizeof dp_list / sizeof dp_list[0])};
}
