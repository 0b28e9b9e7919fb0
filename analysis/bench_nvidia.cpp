// SPDX-License-Identifier: MIT
//
// The headers are included from an installed CUDA toolkit, never copied.

#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include "analysis/bench_nvidia.h"

void dp_bench_nvidia_encode(dp_bulk_format format, const float *x, size_t n, uint8_t *codes)
{
    if (format == DP_BULK_E2M1X2) {
        for (size_t i = 0; i < n / 2; i++) {
            const float2 pair = {x[2 * i], x[2 * i + 1]};
            codes[i] = __nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest);
        }
        return;
    }
    const __nv_fp8_interpretation_t kind = format == DP_BULK_E4M3 ? __NV_E4M3 : __NV_E5M2;
    for (size_t i = 0; i < n; i++) {
        codes[i] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, kind);
    }
}

void dp_bench_nvidia_decode(dp_bulk_format format, const uint8_t *codes, size_t n, float *x)
{
    if (format == DP_BULK_E2M1X2) {
        for (size_t i = 0; i < n / 2; i++) {
            const __half2_raw pair = __nv_cvt_fp4x2_to_halfraw2(codes[i], __NV_E2M1);
            const __half_raw low = {pair.x};
            const __half_raw high = {pair.y};
            x[2 * i] = __half2float(__half(low));
            x[2 * i + 1] = __half2float(__half(high));
        }
        return;
    }
    const __nv_fp8_interpretation_t kind = format == DP_BULK_E4M3 ? __NV_E4M3 : __NV_E5M2;
    for (size_t i = 0; i < n; i++) {
        x[i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(codes[i], kind)));
    }
}
