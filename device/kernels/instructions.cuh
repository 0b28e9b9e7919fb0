/* SPDX-License-Identifier: MIT
 *
 * One instruction a function: the PTX where the target has it, a bit-exact emulation where not.
 * Kernels are written over these, so that what is compiled for sm_100a and sm_103a is line for line
 * what runs on sm_90a. Inline PTX carries its own .ftz and rounding, so compiler flags change
 * nothing. Source: PTX ISA 9.1.
 */
#ifndef DP_DEVICE_INSTRUCTIONS_CUH
#define DP_DEVICE_INSTRUCTIONS_CUH

#include <stdint.h>

#include "formats/e2m1.h"
#include "formats/e8m0.h"

/* cvt to FP4 and E8M0 exists on the architecture-specific targets of compute capability 10 and 12.
 */
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL) ||                  \
    defined(__CUDA_ARCH_FEAT_SM120_ALL) || defined(__CUDA_ARCH_FEAT_SM121_ALL)
#define DP_NATIVE_FP4_CVT 1
#else
#define DP_NATIVE_FP4_CVT 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define DP_NATIVE_F32X2 1
#else
#define DP_NATIVE_F32X2 0
#endif

/* ---- scalar FP32, flush-to-zero ----------------------------------------------------------------
 */

__device__ __forceinline__ float dp_add(float a, float b)
{
    float d;
    asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
__device__ __forceinline__ float dp_sub(float a, float b)
{
    float d;
    asm("sub.rn.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
__device__ __forceinline__ float dp_mul(float a, float b)
{
    float d;
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
__device__ __forceinline__ float dp_fma(float a, float b, float c)
{
    float d;
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}
/* max.f32 without .ftz: a NaN operand gives the other one. */
__device__ __forceinline__ float dp_max(float a, float b)
{
    float d;
    asm("max.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
__device__ __forceinline__ int32_t dp_floor_s32(float a)
{
    int32_t d;
    asm("cvt.rmi.ftz.s32.f32 %0, %1;" : "=r"(d) : "f"(a));
    return d;
}
__device__ __forceinline__ float dp_ex2(float a)
{
    float d;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}
__device__ __forceinline__ float dp_rcp(float a)
{
    float d;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}
__device__ __forceinline__ float dp_lg2(float a)
{
    float d;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
    return d;
}

/* ---- packed FP32 -------------------------------------------------------------------------------
 */

/* fma.rn.ftz.f32x2: element-wise a * b + c. */
__device__ __forceinline__ float2 dp_fma_x2(float2 a, float2 b, float2 c)
{
#if DP_NATIVE_F32X2
    uint64_t d;
    const uint64_t pa = reinterpret_cast<const uint64_t &>(a);
    const uint64_t pb = reinterpret_cast<const uint64_t &>(b);
    const uint64_t pc = reinterpret_cast<const uint64_t &>(c);
    asm("fma.rn.ftz.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(pa), "l"(pb), "l"(pc));
    return reinterpret_cast<const float2 &>(d);
#else
    return make_float2(dp_fma(a.x, b.x, c.x), dp_fma(a.y, b.y, c.y));
#endif
}

/* ---- conversions -------------------------------------------------------------------------------
 */

/* E2M1 code of a value from 0 to 6 as the converter rounds. With e the exponent, at least 0, the
 * grid's step is 2^(e-1): adding 2^(22+e) leaves the value as n steps in the low bits of the sum,
 * ties to even, and the code is n + 2 e. The field of the sum is e + 149, which adds 2 e + 298; six
 * steps more make that 2 e modulo 16 and keep every tie's parity. */
__device__ __forceinline__ uint32_t dp_e2m1_code_emulated(float clamped)
{
    const uint32_t field = max(__float_as_uint(clamped) & 0x7F800000u, 0x3F800000u);
    const uint32_t sum = __float_as_uint(__fadd_rn(clamped, __uint_as_float(field + 0x0B000006u)));
    return (sum + (sum >> 22)) & 15u;
}

/* cvt.rn.satfinite.relu.e2m1x2.f32: element 0 in the low nibble; negative and -0 to 0, NaN to 7. */
__device__ __forceinline__ uint32_t dp_cvt_e2m1x2_relu(float element0, float element1)
{
#if DP_NATIVE_FP4_CVT
    uint32_t d;
    asm("{ .reg .b8 t; cvt.rn.satfinite.relu.e2m1x2.f32 t, %1, %2; cvt.u32.u8 %0, t; }"
        : "=r"(d)
        : "f"(element1), "f"(element0));
    return d;
#else
    /* the smaller of NaN and 6 is 6 */
    return dp_e2m1_code_emulated(fmaxf(fminf(element0, 6.0f), 0.0f)) |
           dp_e2m1_code_emulated(fmaxf(fminf(element1, 6.0f), 0.0f)) << 4;
#endif
}

/* cvt.rn.satfinite.e2m1x2.f32: the same with signs; -0 keeps its own, NaN is +6. */
__device__ __forceinline__ uint32_t dp_cvt_e2m1x2(float element0, float element1)
{
#if DP_NATIVE_FP4_CVT
    uint32_t d;
    asm("{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %2; cvt.u32.u8 %0, t; }"
        : "=r"(d)
        : "f"(element1), "f"(element0));
    return d;
#else
    const uint32_t sign0 = element0 != element0 ? 0u : __float_as_uint(element0) >> 28 & 8u;
    const uint32_t sign1 = element1 != element1 ? 0u : __float_as_uint(element1) >> 28 & 8u;
    return dp_e2m1_code_emulated(fminf(fabsf(element0), 6.0f)) | sign0 |
           (dp_e2m1_code_emulated(fminf(fabsf(element1), 6.0f)) | sign1) << 4;
#endif
}

/* cvt.rn.satfinite.e4m3x2.f32 of one value: on every target from sm_89. */
__device__ __forceinline__ uint32_t dp_cvt_e4m3(float value)
{
    uint16_t d;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(0.0f), "f"(value));
    return d & 0xFFu;
}

/* cvt.rp.satfinite.ue8m0x2.f32 of one value. */
__device__ __forceinline__ uint32_t dp_cvt_ue8m0_up(float value)
{
#if DP_NATIVE_FP4_CVT
    uint16_t d;
    asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(d) : "f"(0.0f), "f"(value));
    return d & 0xFFu;
#else
    return dp_e8m0_from_f32(value, dp_e8m0_encode_up()).bits;
#endif
}

/* ---- bytes -------------------------------------------------------------------------------------
 */

__device__ __forceinline__ uint32_t dp_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
    uint32_t d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
    return d;
}
__device__ __forceinline__ uint32_t dp_dp4a_u32(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

#endif
