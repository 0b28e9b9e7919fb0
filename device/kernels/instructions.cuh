/* SPDX-License-Identifier: MIT
 *
 * One instruction a function: the PTX where the target has it, a bit-exact emulation where not.
 * Kernels are written over these, so that what is compiled for sm_100a and sm_103a is line for line
 * what runs on sm_90a. Inline PTX carries its own .ftz and rounding, so compiler flags change
 * nothing. Source: PTX ISA 9.1.
 */
#ifndef DP_DEVICE_INSTRUCTIONS_CUH
#define DP_DEVICE_INSTRUCTIONS_CUH

#include <cuda_fp16.h>
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
/* The result cut to [0, 1]; NaN to +0. */
__device__ __forceinline__ float dp_add_sat(float a, float b)
{
    float d;
    asm("add.rn.ftz.sat.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
}
__device__ __forceinline__ float dp_fma_sat(float a, float b, float c)
{
    float d;
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
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

#if !DP_NATIVE_FP4_CVT
/* E2M1 code of a magnitude v as a float 2^23 + code, from h = v / 2 cut to [0, 1] three times: the
 * parts of v below 2, from 2 to 4 and from 4 to 6, where the grid's step is 1/2, 1 and 2. Each sum
 * rounds its part to whole steps, ties to even, and the codes 4 and 6 at the seams are even. */
__device__ __forceinline__ float dp_e2m1_code_emulated(float low, float middle, float high,
                                                       float origin)
{
    return dp_add(dp_fma(middle, 2.0f, dp_fma(low, 4.0f, origin)), high);
}

/* Floats 2^23 + code as eight nibbles: their words are 0x4B00000c, and what the exponents of codes
 * 0 and 1 leave above bit 23 cancels when code 1 counts from this origin. */
__device__ __forceinline__ float dp_e2m1_origin(int i)
{
    return i == 1 ? 13631488.0f : 8388608.0f;
}
__device__ __forceinline__ uint32_t dp_e2m1_pack_emulated(const float code[8])
{
    uint32_t word = __float_as_uint(code[7]);
#pragma unroll
    for (int i = 6; i >= 0; i--) {
        word = word * 16u + __float_as_uint(code[i]);
    }
    return word;
}

/* NaN is code 7 without sign. */
__device__ __forceinline__ uint32_t dp_e2m1_nan_emulated(const float x[8], uint32_t word)
{
    bool nan = false;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        nan |= !(x[i] >= x[i + 1]) && !(x[i] < x[i + 1]);
    }
    if (nan) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            word = x[i] != x[i] ? (word & ~(0xFu << 4 * i)) | 0x7u << 4 * i : word;
        }
    }
    return word;
}

/* Signs of eight floats at bit 3 of each nibble. */
__device__ __forceinline__ uint32_t dp_e2m1_signs_emulated(const float x[8])
{
    uint32_t byte[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        asm("prmt.b32 %0, %1, %2, 0x0073;"
            : "=r"(byte[i])
            : "r"(__float_as_uint(x[i % 2 + 4 * (i / 2)])),
              "r"(__float_as_uint(x[i % 2 + 4 * (i / 2) + 2])));
    }
    const uint32_t even = __byte_perm(byte[0], byte[2], 0x5410);
    const uint32_t odd = __byte_perm(byte[1], byte[3], 0x5410);
    return (even >> 4 & 0x08080808u) | (odd & 0x80808080u);
}
#endif

/* cvt.rn.satfinite.relu.e2m1x2.f32 of eight values, value 0 in the low nibble; negative and -0 to
 * 0, NaN to 7. */
__device__ __forceinline__ uint32_t dp_cvt_e2m1x8_relu(const float x[8])
{
    uint32_t d;
#if DP_NATIVE_FP4_CVT
    asm("{ .reg .b8 a, b, c, d; cvt.rn.satfinite.relu.e2m1x2.f32 a, %2, %1;"
        "cvt.rn.satfinite.relu.e2m1x2.f32 b, %4, %3; cvt.rn.satfinite.relu.e2m1x2.f32 c, %6, %5;"
        "cvt.rn.satfinite.relu.e2m1x2.f32 d, %8, %7; mov.b32 %0, {a, b, c, d}; }"
        : "=r"(d)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
#else
    float code[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        code[i] = dp_e2m1_code_emulated(dp_fma_sat(x[i], 0.5f, 0.0f), dp_fma_sat(x[i], 0.5f, -1.0f),
                                        dp_fma_sat(x[i], 0.5f, -2.0f), dp_e2m1_origin(i));
    }
    d = dp_e2m1_nan_emulated(x, dp_e2m1_pack_emulated(code));
#endif
    return d;
}

/* cvt.rn.satfinite.e2m1x2.f32 of x * factor, product rounded by mul.rn.ftz: the same with signs; -0
 * keeps its own, NaN is +6. */
__device__ __forceinline__ uint32_t dp_mul_cvt_e2m1x8(const float x[8], float factor)
{
    float product[8];
    uint32_t d;
#if DP_NATIVE_FP4_CVT
#pragma unroll
    for (int i = 0; i < 8; i++) {
        product[i] = dp_mul(x[i], factor);
    }
    asm("{ .reg .b8 a, b, c, d; cvt.rn.satfinite.e2m1x2.f32 a, %2, %1;"
        "cvt.rn.satfinite.e2m1x2.f32 b, %4, %3; cvt.rn.satfinite.e2m1x2.f32 c, %6, %5;"
        "cvt.rn.satfinite.e2m1x2.f32 d, %8, %7; mov.b32 %0, {a, b, c, d}; }"
        : "=r"(d)
        : "f"(product[0]), "f"(product[1]), "f"(product[2]), "f"(product[3]), "f"(product[4]),
          "f"(product[5]), "f"(product[6]), "f"(product[7]));
#else
    /* half the product: what differs below the normal range rounds to code 0 all the same */
    float code[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        product[i] = dp_mul(x[i], 0.5f * factor);
        const float half = fabsf(product[i]);
        code[i] = dp_e2m1_code_emulated(dp_add_sat(half, 0.0f), dp_add_sat(half, -1.0f),
                                        dp_add_sat(half, -2.0f), dp_e2m1_origin(i));
    }
    d = dp_e2m1_nan_emulated(product,
                             dp_e2m1_pack_emulated(code) | dp_e2m1_signs_emulated(product));
#endif
    return d;
}

__device__ __forceinline__ uint32_t dp_cvt_e2m1x8(const float x[8])
{
    return dp_mul_cvt_e2m1x8(x, 1.0f);
}

/* cvt.rn.satfinite.e2m1x2.f32 of eight values given as their halves, of which none comes to lie on
 * another side of half a midpoint of two codes, or on it, when it is rounded to FP16: such as have
 * eleven significant bits, and such as keep a distance of 2^-11 of themselves. The emulation works
 * as dp_e2m1_code_emulated, on two values at once: pair i holds values i and i + 4, and four words
 * of 0x6400 above each code become eight nibbles. */
__device__ __forceinline__ uint32_t dp_cvt_e2m1x8_clear(const float half[8])
{
#if DP_NATIVE_FP4_CVT
    return dp_mul_cvt_e2m1x8(half, 2.0f);
#else
    uint32_t bits[4];
    uint32_t word = 0;
#pragma unroll
    for (int i = 3; i >= 0; i--) {
        const __half2 h = __floats2half2_rn(half[i], half[i + 4]);
        const __half2 low = __hadd2_sat(__habs2(h), __float2half2_rn(0.0f));
        const __half2 middle = __hadd2_sat(__habs2(h), __float2half2_rn(-1.0f));
        const __half2 high = __hadd2_sat(__habs2(h), __float2half2_rn(-2.0f));
        const __half2 code =
            __hadd2_rn(__hfma2(middle, __float2half2_rn(2.0f),
                               __hfma2(low, __float2half2_rn(4.0f), __float2half2_rn(1024.0f))),
                       high);
        word = word * 16u + reinterpret_cast<const uint32_t &>(code);
        bits[i] = reinterpret_cast<const uint32_t &>(h);
    }
    word -= 0x64006400u * 0x1111u;
    const uint32_t signs = (bits[0] >> 12 & 0x00080008u) | (bits[1] >> 8 & 0x00800080u) |
                           (bits[2] >> 4 & 0x08000800u) | (bits[3] & 0x80008000u);
    return dp_e2m1_nan_emulated(half, word | signs);
#endif
}

/* cvt.rn.satfinite.e4m3x2.f32 of one value: on every target from sm_89. */
__device__ __forceinline__ uint32_t dp_cvt_e4m3(float value)
{
    uint16_t d;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(0.0f), "f"(value));
    return d & 0xFFu;
}

/* cvt.rn.f16x2.e4m3x2 of one byte: exact; on every target from sm_89. */
__device__ __forceinline__ float dp_decode_e4m3(uint32_t byte)
{
    uint32_t d;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"((uint16_t)byte));
    return __low2float(reinterpret_cast<const __half2 &>(d));
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
