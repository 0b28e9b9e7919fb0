// SPDX-License-Identifier: MIT
// Every element header in device code. Compiled, never run.
#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/e8m0.h"
#include "formats/fp16.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"

__global__ void convert(const float *x, float *y, uint32_t random)
{
    const float v = x[threadIdx.x];
    float sum = dp_e2m1_to_f32(dp_e2m1_from_f32(v, DP_ENCODE_PTX));
    sum += dp_e2m1_to_f32(dp_e2m1_from_f32(v, dp_encode_stochastic(random, 8)));
    sum += dp_e4m3_to_f32(dp_e4m3_from_f32(v, DP_ENCODE_NONSAT));
    sum += dp_ue4m3_to_f32(dp_ue4m3_from_f32(v, DP_ENCODE_PTX));
    sum += dp_e5m2_to_f32(dp_e5m2_from_f32(v, DP_ENCODE_PTX));
    sum += dp_ue5m3_to_f32(dp_ue5m3_from_f32(v, DP_ENCODE_PTX));
    sum += dp_e8m0_to_f32(dp_e8m0_from_f32(v, dp_e8m0_encode_up()));
    sum += dp_fp16_to_f32(dp_fp16_from_f32(v, DP_ENCODE_NONSAT));
    sum += dp_bf16_to_f32(dp_bf16_from_f32(v, DP_ENCODE_NONSAT));
    y[threadIdx.x] = sum;
}
