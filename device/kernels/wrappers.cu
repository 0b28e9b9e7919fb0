/* SPDX-License-Identifier: MIT
 *
 * Every wrapper alone, for the proof that what runs here is what the oracle says the instruction
 * is.
 */
#include "device/host.cuh"
#include "device/kernels/exact_mma.cuh"
#include "device/kernels/gemm.cuh"

namespace
{

using namespace dpd;

__device__ uint32_t wrapper_case(dp_device_wrapper w, uint64_t i)
{
    uint32_t x[6];
#pragma unroll
    for (int k = 0; k < 6; k++) {
        x[k] = dp_device_operand(w, i, k);
    }
    switch (w) {
    case DP_WRAPPER_E2M1X8:
    case DP_WRAPPER_E2M1X8_RELU: {
        const float a = __uint_as_float(x[0]);
        const float b = __uint_as_float(x[1]);
        const float v[8] = {a, b, b, a, b, a, a, b};
        return w == DP_WRAPPER_E2M1X8 ? dp_cvt_e2m1x8(v) : dp_cvt_e2m1x8_relu(v);
    }
    case DP_WRAPPER_E4M3:
        return dp_cvt_e4m3(__uint_as_float(x[0]));
    case DP_WRAPPER_UE8M0:
        return dp_cvt_ue8m0_up(__uint_as_float(x[0]));
    case DP_WRAPPER_FLOOR:
        return (uint32_t)dp_floor_s32(__uint_as_float(x[0]));
    case DP_WRAPPER_FMA_X2: {
        const float2 d = dp_fma_x2(make_float2(__uint_as_float(x[0]), __uint_as_float(x[1])),
                                   make_float2(__uint_as_float(x[2]), __uint_as_float(x[3])),
                                   make_float2(__uint_as_float(x[4]), __uint_as_float(x[5])));
        const uint32_t high = __float_as_uint(d.y);
        return __float_as_uint(d.x) ^ (high << 16 | high >> 16);
    }
    case DP_WRAPPER_PRMT:
        return dp_prmt(x[0], x[1], x[2]);
    default:
        return dp_dp4a_u32(x[0], x[1], x[2]);
    }
}

__global__ void wrapper_kernel(dp_device_wrapper w, uint64_t first, size_t count, uint32_t *results)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        results[i] = wrapper_case(w, first + i);
    }
}

/* Decode ROWS rows of one instruction: 32 payload bytes and 4 groups a row. */
template <int ROWS, bool UE8M0>
__device__ void dpd_load_half(dpd_operand<ROWS> &to, const uint8_t *payload, const uint8_t *scale)
{
    for (int i = (int)threadIdx.x; i < ROWS * 4; i += 32) {
        const int row = i / 4;
        const int group = i % 4;
        const uint2 words = *reinterpret_cast<const uint2 *>(payload + row * 32 + group * 8);
        const uint32_t byte = scale[UE8M0 ? row * 2 + group / 2 : row * 4 + group];
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

/* One warp, 16 rows and 64 columns of one instruction. */
template <bool UE8M0>
__global__ void block_kernel(int n, const uint8_t *a, const uint8_t *a_scale, const uint8_t *b,
                             const uint8_t *b_scale, const uint32_t *c, uint32_t *d)
{
    __shared__ __align__(16) dpd_operand<16> sa;
    __shared__ __align__(16) dpd_operand<64> sb;
    const size_t row0 = (size_t)blockIdx.y * 16;
    const size_t col0 = (size_t)blockIdx.x * 64;
    const int scales = UE8M0 ? 2 : 4;
    dpd_load_half<16, UE8M0>(sa, a + row0 * 32, a_scale + row0 * scales);
    dpd_load_half<64, UE8M0>(sb, b + col0 * 32, b_scale + col0 * scales);
    __syncwarp();
    const int lane = (int)threadIdx.x;
    uint32_t acc[8][4];
    for (int tile = 0; tile < 8; tile++) {
        for (int out = 0; out < 4; out++) {
            const size_t row = row0 + lane / 4 + 8 * (out / 2);
            acc[tile][out] = c[row * n + col0 + tile * 8 + 2 * (lane % 4) + out % 2];
        }
    }
    dpd_step<8>(sa, 0, sb, 0, 1, acc);
    for (int tile = 0; tile < 8; tile++) {
        for (int out = 0; out < 4; out++) {
            const size_t row = row0 + lane / 4 + 8 * (out / 2);
            d[row * n + col0 + tile * 8 + 2 * (lane % 4) + out % 2] = acc[tile][out];
        }
    }
}

/* The same by the fused kernel's product. The second instruction of the operands is left alone. */
template <bool UE8M0>
__global__ void exact_kernel(int n, const uint8_t *a, const uint8_t *a_scale, const uint8_t *b,
                             const uint8_t *b_scale, const uint32_t *c, uint32_t *d)
{
    __shared__ __align__(16) dpd_exact_operand<16> sa;
    __shared__ __align__(16) dpd_exact_operand<64> sb;
    const size_t row0 = (size_t)blockIdx.y * 16;
    const size_t col0 = (size_t)blockIdx.x * 64;
    const int lane = (int)threadIdx.x;
    for (int i = lane; i < 64 * 2; i += 32) {
        const int row = i / 2;
        const int unit = i % 2;
        const uint4 a_codes =
            *reinterpret_cast<const uint4 *>(a + (row0 + row % 16) * 32 + unit * 16);
        const uint4 b_codes = *reinterpret_cast<const uint4 *>(b + (col0 + row) * 32 + unit * 16);
        if (UE8M0) {
            dpd_put_ue8m0<false>(sb, row, unit, b_codes, b_scale[(col0 + row) * 2 + unit]);
            dpd_put_ue8m0<true>(sa, row % 16, unit, a_codes, a_scale[(row0 + row % 16) * 2 + unit]);
        } else {
            const uint16_t *a_pairs = reinterpret_cast<const uint16_t *>(a_scale);
            const uint16_t *b_pairs = reinterpret_cast<const uint16_t *>(b_scale);
            dpd_put_ue4m3(sb, row, unit, b_codes, b_pairs[(col0 + row) * 2 + unit]);
            dpd_put_ue4m3(sa, row % 16, unit, a_codes, a_pairs[(row0 + row % 16) * 2 + unit]);
        }
    }
    __syncwarp();
    const dpd_exact_a rows = dpd_read_a(sa, 0, 0);
    for (int tile = 0; tile < 8; tile++) {
        float acc[4];
        size_t at[4];
        for (int out = 0; out < 4; out++) {
            at[out] =
                (row0 + lane / 4 + 8 * (out / 2)) * n + col0 + tile * 8 + 2 * (lane % 4) + out % 2;
            acc[out] = __uint_as_float(c[at[out]]);
        }
        const bool zero = acc[0] == 0.0f && acc[1] == 0.0f && acc[2] == 0.0f && acc[3] == 0.0f;
        if (__all_sync(0xFFFFFFFFu, zero)) {
            dpd_exact_tile<UE8M0, true>(sa, 0, rows, sb, tile * 8, 0, acc);
        } else {
            dpd_exact_tile<UE8M0, false>(sa, 0, rows, sb, tile * 8, 0, acc);
        }
        for (int out = 0; out < 4; out++) {
            d[at[out]] = __float_as_uint(acc[out]);
        }
    }
}

} // namespace

bool dp_device_wrapper_run(int device, dp_device_wrapper wrapper, uint64_t first, size_t count,
                           uint32_t *results, dp_error *error)
{
    buffer<uint32_t> out;
    if (cudaSetDevice(device) != cudaSuccess || !out.allocate(count)) {
        return cuda_failed("taking memory", error);
    }
    wrapper_kernel<<<(unsigned)((count + 255) / 256), 256>>>(wrapper, first, count, out.data());
    return finished("a wrapper", error) &&
           (out.get(results, 0, count) || cuda_failed("copying results back", error));
}

bool dp_device_block_mma(int device, dp_device_mma mma, size_t m, size_t n, bool ue8m0,
                         const uint8_t *a, const uint8_t *a_scale, const uint8_t *b,
                         const uint8_t *b_scale, const uint32_t *c, uint32_t *d, dp_error *error)
{
    buffer<uint8_t> da, db, dsa, dsb;
    buffer<uint32_t> dc;
    const size_t scales = ue8m0 ? 2 : 4;
    if (m % 64 != 0 || n % 64 != 0) {
        return dp_fail(error, "device: %zu x %zu: the product takes multiples of 64", m, n);
    }
    if (cudaSetDevice(device) != cudaSuccess || !da.allocate(m * 32) || !db.allocate(n * 32) ||
        !dsa.allocate(m * scales) || !dsb.allocate(n * scales) || !dc.allocate(m * n) ||
        !da.upload(a) || !db.upload(b) || !dsa.upload(a_scale) || !dsb.upload(b_scale) ||
        !dc.upload(c)) {
        return cuda_failed("copying a product", error);
    }
    const dim3 grid((unsigned)(n / 64), (unsigned)(m / 16));
    const auto kernel = mma == DP_DEVICE_MMA_FUSED
                            ? (ue8m0 ? exact_kernel<true> : exact_kernel<false>)
                            : (ue8m0 ? block_kernel<true> : block_kernel<false>);
    kernel<<<grid, 32>>>((int)n, da.data(), dsa.data(), db.data(), dsb.data(), dc.data(),
                         dc.data());
    return finished("a product", error) &&
           (dc.get(d, 0, m * n) || cuda_failed("copying results back", error));
}
