/* SPDX-License-Identifier: MIT
 *
 * What every header of formats/ stands on: host/device qualifiers and the bits of a float.
 * Compiles unchanged as C11, as C++ and as CUDA device code.
 */
#ifndef DP_FORMATS_BASE_H
#define DP_FORMATS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define DP_HD __host__ __device__
#else
#define DP_HD
#endif

/* A function small enough to live in a header, callable from host and device code. */
#define DP_INLINE static inline DP_HD

#ifdef __cplusplus
#define DP_BEGIN_C                        extern "C" {
#define DP_END_C                          }
#define DP_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define DP_BEGIN_C
#define DP_END_C
#define DP_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

DP_STATIC_ASSERT(sizeof(float) == 4, "float must be IEEE binary32");

/* The 32 bits of x, NaN payload and sign of zero included. */
DP_INLINE uint32_t dp_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The float whose bits are given. Never used to move a signalling NaN through the FPU. */
DP_INLINE float dp_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define DP_F32_SIGN     0x80000000u
#define DP_F32_ABS      0x7FFFFFFFu
#define DP_F32_INF      0x7F800000u
#define DP_F32_NAN_CUDA 0x7FFFFFFFu /* the NaN NVIDIA's FP32 units return */

DP_INLINE bool dp_f32_bits_is_nan(uint32_t bits)
{
    return (bits & DP_F32_ABS) > DP_F32_INF;
}

#endif
