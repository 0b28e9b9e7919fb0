/* SPDX-License-Identifier: MIT
 *
 * mma.sync with block scales and kind::f8f6f4, which only compute capability 12.x has. Fragments as
 * in mma_sync.cu, 4-bit elements packed two a byte. Scale words: of A from lanes with t = 0 (row g)
 * and t = 1 (row g + 8), of B from lanes with t = 0 (PTX ISA 9.1, block scaling).
 */
#include "device/capture/mma.h"

#define DP_M 16

#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define DP_HAVE_BLOCK_SCALE 1
#endif

#define DP_SCALED(NAME, SHAPE_KIND_TYPES)                                                          \
    struct NAME {                                                                                  \
        static __device__ void issue(float (&d)[4], const uint32_t (&a)[4],                        \
                                     const uint32_t (&b)[2], uint32_t sfa, uint32_t sfb)           \
        {                                                                                          \
            asm volatile("{ .reg .b16 zero; mov.b16 zero, 0;\n"                                    \
                         "mma.sync.aligned." SHAPE_KIND_TYPES                                      \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3},"        \
                         " %10, {zero, zero}, %11, {zero, zero}; }\n"                              \
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                          \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),       \
                           "r"(sfa), "r"(sfb));                                                    \
        }                                                                                          \
    };

DP_SCALED(dp_b_nvfp4, "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32"
                      ".ue4m3")
DP_SCALED(dp_b_nvf4_b32, "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1"
                         ".f32.ue8m0")
DP_SCALED(dp_b_mxf4,
          "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0")
DP_SCALED(dp_b_mx_e4e4, "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3"
                        ".f32.ue8m0")
DP_SCALED(dp_b_mx_e4e5, "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2"
                        ".f32.ue8m0")

template <class Op> __global__ void __launch_bounds__(32) dp_block_kernel(dp_mma_io io)
{
#ifdef DP_HAVE_BLOCK_SCALE
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    const size_t tile = blockIdx.x;
    const uint32_t *a_rows = (const uint32_t *)(io.a + tile * DP_M * DP_ROW_BYTES);
    const uint32_t *b_rows = (const uint32_t *)(io.b + tile * DP_TILE_N * DP_ROW_BYTES);
    const uint32_t a[4] = {a_rows[g * 8 + t], a_rows[(g + 8) * 8 + t], a_rows[g * 8 + 4 + t],
                           a_rows[(g + 8) * 8 + 4 + t]};
    const uint32_t b[2] = {b_rows[g * 8 + t], b_rows[g * 8 + 4 + t]};
    const size_t first = (tile * DP_M + g) * DP_TILE_N + 2 * t, second = first + 8 * DP_TILE_N;
    float r[4] = {__uint_as_float(io.c[first]), __uint_as_float(io.c[first + 1]),
                  __uint_as_float(io.c[second]), __uint_as_float(io.c[second + 1])};
    Op::issue(r, a, b, io.sfa[tile * DP_M + g + 8 * (t & 1)], io.sfb[tile * DP_TILE_N + g]);
    io.d[first] = __float_as_uint(r[0]), io.d[first + 1] = __float_as_uint(r[1]);
    io.d[second] = __float_as_uint(r[2]), io.d[second + 1] = __float_as_uint(r[3]);
#endif
}

template <class Op>
static cudaError_t dp_launch(const dp_mma_io *io, const dp_mma_experiment *what, bool swapped)
{
    (void)what, (void)swapped;
    dp_block_kernel<Op><<<io->tiles, 32>>>(*io);
    return cudaGetLastError();
}

#define DP_ROW(group, kind, a, b, block, ue4m3, op)                                                \
    {                                                                                              \
        group, "mma.sync.kind::" kind, {DP_OP_##a, DP_OP_##b, DP_OP_F32}, DP_M, 1, block, ue4m3,   \
            false, 0, dp_launch<op>                                                                \
    }

static const dp_mma_experiment dp_list[] = {
    DP_ROW("mma_sync_nvfp4", "mxf4nvf4.block16.ue4m3", E2M1, E2M1, 16, true, dp_b_nvfp4),
    DP_ROW("mma_sync_mxfp4_b32", "mxf4nvf4.block32.ue8m0", E2M1, E2M1, 32, false, dp_b_nvf4_b32),
    DP_ROW("mma_sync_mxf4", "mxf4.block32.ue8m0", E2M1, E2M1, 32, false, dp_b_mxf4),
    DP_ROW("mma_sync_mxfp8_e4m3_e4m3", "mxf8f6f4.block32.ue8m0", E4M3, E4M3, 32, false,
           dp_b_mx_e4e4),
    DP_ROW("mma_sync_mxfp8_e4m3_e5m2", "mxf8f6f4.block32.ue8m0", E4M3, E5M2, 32, false,
           dp_b_mx_e4e5),
};

dp_mma_set dp_mma_block(void)
{
    return {dp_list, (int)(sizeof dp_list / sizeof dp_list[0])};
}
