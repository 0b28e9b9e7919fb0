/* SPDX-License-Identifier: MIT
 *
 * mma.sync m16n8 with 32 bytes of k a row. In bytes the fragments of all element types coincide:
 * lane (g = lane / 4, t = lane % 4) holds of A rows g and g + 8, bytes 4t.. and 16 + 4t..; of B
 * column g, the same bytes; of C and D rows g and g + 8, columns 2t and 2t + 1 (PTX ISA 9.1).
 */
#include "device/capture/mma.h"

#define DP_M 16

#define DP_SYNC_F32(NAME, SHAPE, TYPES)                                                            \
    struct NAME {                                                                                  \
        static constexpr bool half = false;                                                        \
        static __device__ void issue(float (&d)[4], const uint32_t (&a)[4],                        \
                                     const uint32_t (&b)[2])                                       \
        {                                                                                          \
            asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES                               \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"      \
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                          \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));      \
        }                                                                                          \
    };

#define DP_SYNC_F16(NAME, SHAPE, TYPES)                                                            \
    struct NAME {                                                                                  \
        static constexpr bool half = true;                                                         \
        static __device__ void issue(uint32_t (&d)[2], const uint32_t (&a)[4],                     \
                                     const uint32_t (&b)[2])                                       \
        {                                                                                          \
            asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES                               \
                         " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};\n"                      \
                         : "+r"(d[0]), "+r"(d[1])                                                  \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));      \
        }                                                                                          \
    };

DP_SYNC_F32(dp_s_e4e4, "m16n8k32", "f32.e4m3.e4m3.f32")
DP_SYNC_F32(dp_s_e4e5, "m16n8k32", "f32.e4m3.e5m2.f32")
DP_SYNC_F32(dp_s_e5e4, "m16n8k32", "f32.e5m2.e4m3.f32")
DP_SYNC_F32(dp_s_e5e5, "m16n8k32", "f32.e5m2.e5m2.f32")
DP_SYNC_F16(dp_s_e4e4_h, "m16n8k32", "f16.e4m3.e4m3.f16")
DP_SYNC_F16(dp_s_e4e5_h, "m16n8k32", "f16.e4m3.e5m2.f16")
DP_SYNC_F16(dp_s_e5e4_h, "m16n8k32", "f16.e5m2.e4m3.f16")
DP_SYNC_F16(dp_s_e5e5_h, "m16n8k32", "f16.e5m2.e5m2.f16")
DP_SYNC_F32(dp_s_f16, "m16n8k16", "f32.f16.f16.f32")
DP_SYNC_F32(dp_s_bf16, "m16n8k16", "f32.bf16.bf16.f32")
DP_SYNC_F32(dp_s_tf32, "m16n8k8", "f32.tf32.tf32.f32")
DP_SYNC_F16(dp_s_f16_h, "m16n8k16", "f16.f16.f16.f16")

template <class Op> __global__ void __launch_bounds__(32) dp_sync_kernel(dp_mma_io io)
{
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    const size_t tile = blockIdx.x;
    const uint32_t *a_rows = (const uint32_t *)(io.a + tile * DP_M * DP_ROW_BYTES);
    const uint32_t *b_rows = (const uint32_t *)(io.b + tile * DP_TILE_N * DP_ROW_BYTES);
    const uint32_t a[4] = {a_rows[g * 8 + t], a_rows[(g + 8) * 8 + t], a_rows[g * 8 + 4 + t],
                           a_rows[(g + 8) * 8 + 4 + t]};
    const uint32_t b[2] = {b_rows[g * 8 + t], b_rows[g * 8 + 4 + t]};
    const size_t first = (tile * DP_M + g) * DP_TILE_N + 2 * t, second = first + 8 * DP_TILE_N;
    if constexpr (Op::half) {
        uint32_t r[2] = {io.c[first] | io.c[first + 1] << 16,
                         io.c[second] | io.c[second + 1] << 16};
        Op::issue(r, a, b);
        io.d[first] = r[0] & 0xFFFF, io.d[first + 1] = r[0] >> 16;
        io.d[second] = r[1] & 0xFFFF, io.d[second + 1] = r[1] >> 16;
    } else {
        float r[4] = {__uint_as_float(io.c[first]), __uint_as_float(io.c[first + 1]),
                      __uint_as_float(io.c[second]), __uint_as_float(io.c[second + 1])};
        Op::issue(r, a, b);
        io.d[first] = __float_as_uint(r[0]), io.d[first + 1] = __float_as_uint(r[1]);
        io.d[second] = __float_as_uint(r[2]), io.d[second + 1] = __float_as_uint(r[3]);
    }
}

template <class Op>
static cudaError_t dp_launch(const dp_mma_io *io, const dp_mma_experiment *what, bool swapped)
{
    (void)what, (void)swapped;
    dp_sync_kernel<Op><<<io->tiles, 32>>>(*io);
    return cudaGetLastError();
}

#define DP_ROW(group, a, b, d, op)                                                                 \
    {                                                                                              \
        group, "mma.sync", {DP_OP_##a, DP_OP_##b, DP_OP_##d}, DP_M, 1, 0, false, false, 0,         \
            dp_launch<op>                                                                          \
    }

static const dp_mma_experiment dp_list[] = {
    DP_ROW("mma_sync_f32_e4m3_e4m3", E4M3, E4M3, F32, dp_s_e4e4),
    DP_ROW("mma_sync_f32_e4m3_e5m2", E4M3, E5M2, F32, dp_s_e4e5),
    DP_ROW("mma_sync_f32_e5m2_e4m3", E5M2, E4M3, F32, dp_s_e5e4),
    DP_ROW("mma_sync_f32_e5m2_e5m2", E5M2, E5M2, F32, dp_s_e5e5),
    DP_ROW("mma_sync_f16_e4m3_e4m3", E4M3, E4M3, F16, dp_s_e4e4_h),
    DP_ROW("mma_sync_f16_e4m3_e5m2", E4M3, E5M2, F16, dp_s_e4e5_h),
    DP_ROW("mma_sync_f16_e5m2_e4m3", E5M2, E4M3, F16, dp_s_e5e4_h),
    DP_ROW("mma_sync_f16_e5m2_e5m2", E5M2, E5M2, F16, dp_s_e5e5_h),
    DP_ROW("mma_sync_f32_f16_f16", F16, F16, F32, dp_s_f16),
    DP_ROW("mma_sync_f32_bf16_bf16", BF16, BF16, F32, dp_s_bf16),
    DP_ROW("mma_sync_f32_tf32_tf32", TF32, TF32, F32, dp_s_tf32),
    DP_ROW("mma_sync_f16_f16_f16", F16, F16, F16, dp_s_f16_h),
};

dp_mma_set dp_mma_sync(void)
{
    return {dp_list, (int)(sizeof dp_list / sizeof dp_list[0])};
}
