// SPDX-License-Identifier: MIT
//
// The host paths of NVIDIA's cuda_fp8.h, cuda_fp6.h, cuda_fp4.h, cuda_bf16.h and cuda_fp16.h
// against this library. The headers are included from an installed CUDA toolkit, never copied.
// quick: every high half of an f32 with telling low halves. With "exhaustive": all 2^32 inputs.
//
// From f32 there is no difference in any conversion. From double there is one, held fast below: the
// header keeps a NaN's sign and, for E5M2, two payload bits (FORMATS.md F7).

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/e8m0.h"
#include "formats/fp16.h"

namespace
{

const dp_minifloat e2m3 = {"e2m3", 1, 2, 3, 1, DP_TOP_FINITE};
const dp_minifloat e3m2 = {"e3m2", 1, 3, 2, 3, DP_TOP_FINITE};

std::atomic<uint64_t> cases{0};
std::atomic<uint64_t> differences{0};

bool same(uint32_t got, uint32_t want, const char *what, uint32_t input)
{
    if (got != want && differences.fetch_add(1) < 10) {
        std::printf("%s of 0x%08" PRIx32 ": 0x%" PRIx32 ", NVIDIA 0x%" PRIx32 "\n", what, input,
                    got, want);
    }
    return got == want;
}

dp_encode toward_zero()
{
    dp_encode how = dp_encode_ptx();
    how.round = DP_RZ;
    return how;
}

void encodes(uint32_t bits)
{
    const float x = dp_f32_from_bits(bits);
    const dp_encode sat = DP_ENCODE_PTX;
    const dp_encode nosat = DP_ENCODE_NONSAT;
    same(dp_e4m3_from_f32(x, sat).bits, __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3),
         "e4m3 satfinite", bits);
    same(dp_e4m3_from_f32(x, nosat).bits, __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3),
         "e4m3 nosat", bits);
    same(dp_e5m2_from_f32(x, sat).bits, __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2),
         "e5m2 satfinite", bits);
    same(dp_e5m2_from_f32(x, nosat).bits, __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2),
         "e5m2 nosat", bits);
    same(dp_e2m1_from_f32(x, sat).bits, __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest),
         "e2m1 nearest", bits);
    same(dp_e2m1_from_f32(x, toward_zero()).bits,
         __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundZero), "e2m1 zero", bits);
    same(dp_minifloat_encode(bits, e2m3, sat),
         __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest), "e2m3", bits);
    same(dp_minifloat_encode(bits, e3m2, sat),
         __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest), "e3m2", bits);
    for (int m = 0; m < 4; m++) {
        const dp_e8m0_encode how = {m < 2 ? DP_E8M0_UP : DP_E8M0_DOWN, m % 2 == 0};
        same(dp_e8m0_from_f32(x, how).bits,
             __nv_cvt_float_to_e8m0(x, m % 2 == 0 ? __NV_SATFINITE : __NV_NOSAT,
                                    m < 2 ? cudaRoundPosInf : cudaRoundZero),
             "e8m0", bits);
    }
    same(dp_bf16_from_f32(x, nosat).bits, __nv_bfloat16_raw(__float2bfloat16_rn(x)).x, "bf16",
         bits);
    same(dp_fp16_from_f32(x, nosat).bits, __half_raw(__float2half_rn(x)).x, "fp16", bits);
    cases += 14;
}

void some_high_halves(uint32_t first, uint32_t last, bool all)
{
    for (uint32_t high = first; high < last; high++) {
        if (all) {
            for (uint32_t low = 0; low < 0x10000u; low++) {
                encodes(high << 16 | low);
            }
            continue;
        }
        for (const uint32_t low :
             {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, high * 40503u % 65536u}) {
            encodes(high << 16 | low);
        }
    }
}

uint32_t half_to_f32(__half_raw h)
{
    return dp_f32_bits(dp_fp16_to_f32(dp_fp16{h.x}));
}

void decodes()
{
    for (uint32_t code = 0; code < 256; code++) {
        const auto byte = static_cast<__nv_fp8_storage_t>(code);
        same(dp_f32_bits(dp_e4m3_to_f32(dp_e4m3{byte})),
             half_to_f32(__nv_cvt_fp8_to_halfraw(byte, __NV_E4M3)), "decode e4m3", code);
        same(dp_f32_bits(dp_e5m2_to_f32(dp_e5m2{byte})),
             half_to_f32(__nv_cvt_fp8_to_halfraw(byte, __NV_E5M2)), "decode e5m2", code);
        same(dp_f32_bits(dp_e8m0_to_f32(dp_e8m0{byte})) >> 16, __nv_cvt_e8m0_to_bf16raw(byte).x,
             "decode e8m0", code);
        cases += 3;
    }
    for (uint32_t code = 0; code < 64; code++) {
        const auto byte = static_cast<__nv_fp6_storage_t>(code);
        same(dp_minifloat_decode(code, e2m3), half_to_f32(__nv_cvt_fp6_to_halfraw(byte, __NV_E2M3)),
             "decode e2m3", code);
        same(dp_minifloat_decode(code, e3m2), half_to_f32(__nv_cvt_fp6_to_halfraw(byte, __NV_E3M2)),
             "decode e3m2", code);
        cases += 2;
    }
    for (uint32_t code = 0; code < 16; code++) {
        const auto byte = static_cast<__nv_fp4_storage_t>(code);
        same(dp_f32_bits(dp_e2m1_to_f32(dp_e2m1{byte})),
             half_to_f32(__nv_cvt_fp4_to_halfraw(byte, __NV_E2M1)), "decode e2m1", code);
        cases++;
    }
    for (uint32_t code = 0; code < 0x10000u; code++) {
        const auto bits = static_cast<unsigned short>(code);
        __half_raw h;
        h.x = bits;
        __nv_bfloat16_raw b;
        b.x = bits;
        const float half = __half2float(__half(h));
        const float brain = __bfloat162float(__nv_bfloat16(b));
        const uint32_t ours = dp_f32_bits(dp_fp16_to_f32(dp_fp16{bits}));
        /* The header's half decode keeps NaN payloads; F3 makes every NaN 0x7FFFFFFF. */
        if (!dp_f32_bits_is_nan(ours) || !dp_f32_bits_is_nan(dp_f32_bits(half))) {
            same(ours, dp_f32_bits(half), "decode fp16", code);
        }
        same(dp_f32_bits(dp_bf16_to_f32(dp_bf16{bits})), dp_f32_bits(brain), "decode bf16", code);
        cases += 2;
    }
}

void pairs()
{
    const float2 xy = {1.5f, -3.0f}; /* x goes low */
    const dp_e2m1x2 pair = dp_e2m1x2_pack(dp_e2m1_from_f32(xy.x, DP_ENCODE_PTX),
                                          dp_e2m1_from_f32(xy.y, DP_ENCODE_PTX));
    same(pair.bits, __nv_cvt_float2_to_fp4x2(xy, __NV_E2M1, cudaRoundNearest), "e2m1x2", 0);
    const dp_e4m3x2 wide = dp_e4m3x2_pack(dp_e4m3_from_f32(xy.x, DP_ENCODE_PTX),
                                          dp_e4m3_from_f32(xy.y, DP_ENCODE_PTX));
    same(wide.bits, __nv_cvt_float2_to_fp8x2(xy, __NV_SATFINITE, __NV_E4M3), "e4m3x2", 0);
    cases += 2;
}

/* The documented difference: a NaN that comes from a double keeps its sign and two payload bits. */
void nan_from_double()
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double negative = -nan;
    same(0x7F, __nv_cvt_double_to_fp8(nan, __NV_SATFINITE, __NV_E4M3), "double NaN, e4m3", 0);
    same(0xFF, __nv_cvt_double_to_fp8(negative, __NV_SATFINITE, __NV_E4M3), "double -NaN, e4m3", 0);
    same(0x7E, __nv_cvt_double_to_fp8(nan, __NV_SATFINITE, __NV_E5M2), "double NaN, e5m2", 0);
    same(0xFE, __nv_cvt_double_to_fp8(negative, __NV_SATFINITE, __NV_E5M2), "double -NaN, e5m2", 0);
    const float minus = dp_f32_from_bits(0xFFC00000u);
    same(0x7F, dp_e4m3_from_f32(minus, DP_ENCODE_PTX).bits, "float -NaN, e4m3", 0);
    same(0x7F, dp_e5m2_from_f32(minus, DP_ENCODE_PTX).bits, "float -NaN, e5m2", 0);
    cases += 6;
}

} // namespace

int main(int argc, char **argv)
{
    const bool all = argc > 1 && std::strcmp(argv[1], "exhaustive") == 0;
    std::atomic<uint32_t> next{0};
    std::vector<std::thread> threads;
    const unsigned count = std::thread::hardware_concurrency();
    for (unsigned t = 0; t < (count == 0 ? 1u : count); t++) {
        threads.emplace_back([&next, all] {
            for (uint32_t first = next.fetch_add(64); first < 0x10000u;
                 first = next.fetch_add(64)) {
                some_high_halves(first, first + 64u, all);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    decodes();
    pairs();
    nan_from_double();
    std::printf("%" PRIu64 " comparisons with NVIDIA's headers, %" PRIu64 " differences\n",
                cases.load(), differences.load());
    return differences.load() == 0 ? 0 : 1;
}
