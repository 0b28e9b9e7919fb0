// SPDX-License-Identifier: MIT
// cuda_host.csv: conversions by the host path of NVIDIA's headers, composed by f32 division.
// g++ -O1 -ffp-contract=off -I/usr/local/cuda/include make_cuda_host.cpp && ./a.out < mldtypes.csv
// The inputs are those of mldtypes.csv.
#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

static float scaled(float x, float s)
{
    const float v = x / s; // a NaN of division carries the processor's sign; the headers drop it
    return v;
}

int main()
{
    std::printf("# made by cuda_fp4.hpp and cuda_fp8.hpp of CUDA %d.%d, host path: "
                "make_cuda_host.cpp\n",
                CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    std::printf("# recipe,elements as f32 bits,scale,codes\n");
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        const std::string recipe = line.substr(0, line.find(','));
        const std::string format = recipe.substr(recipe.find(':') + 1);
        std::string hex = line.substr(line.find(',') + 1);
        hex = hex.substr(0, hex.find(','));
        std::vector<float> x(hex.size() / 8);
        float amax = 0.0f;
        for (std::size_t i = 0; i < x.size(); i++) {
            const std::uint32_t bits = (std::uint32_t)std::stoul(hex.substr(8 * i, 8), nullptr, 16);
            std::memcpy(&x[i], &bits, 4);
            amax = std::fmax(amax, std::fabs(x[i])); // ignores NaN, as the hardware's max does
        }
        unsigned scale = 0;
        float s = 0.0f;
        const bool fp4 = format == "nvfp4" || format == "mxfp4";
        const float largest = fp4 ? 6.0f : format == "mxfp8-e4m3" ? 448.0f : 57344.0f;
        if (format == "nvfp4") {
            scale = __nv_cvt_float_to_fp8(amax / largest, __NV_SATFINITE, __NV_E4M3);
            s = __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)scale, __NV_E4M3)));
        } else {
            scale = __nv_cvt_float_to_e8m0(amax / largest, __NV_SATFINITE, cudaRoundPosInf);
            s = std::ldexp(1.0f, (int)scale - 127);
        }
        std::printf("CUDA-HOST:%s,%s,%02x,", format.c_str(), hex.c_str(), scale);
        for (const float e : x) {
            const float v = scaled(e, s);
            const unsigned code =
                fp4 ? __nv_cvt_float_to_fp4(v, __NV_E2M1, cudaRoundNearest)
                    : __nv_cvt_float_to_fp8(v, __NV_SATFINITE,
                                            format == "mxfp8-e4m3" ? __NV_E4M3 : __NV_E5M2);
            std::printf("%02x", code);
        }
        std::printf("\n");
    }
}
