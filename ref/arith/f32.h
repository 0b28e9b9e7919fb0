/* SPDX-License-Identifier: MIT
 *
 * The f32 instructions of PTX ISA 9.1 (add, sub, mul, fma, min, max, cvt to s32), bit for bit.
 *
 * This is the definition: integers only, so neither the caller's rounding mode nor his FTZ/DAZ bits
 * can change a result. Every argument and result is the 32-bit pattern of a binary32 number and
 * every pattern has a defined result. f32_fast.h holds the same operations on the host's FPU.
 */
#ifndef DP_REF_ARITH_F32_H
#define DP_REF_ARITH_F32_H

#include "formats/base.h"

DP_BEGIN_C

/* The rounding modifiers .rn .rz .rm .rp of PTX. */
typedef enum {
    DP_F32_RN, /* to nearest, ties to even */
    DP_F32_RZ, /* toward zero */
    DP_F32_RM, /* toward minus infinity */
    DP_F32_RP  /* toward plus infinity */
} dp_f32_round;

/* What happens to subnormal numbers. PTX ISA 9.1 says of .ftz only that subnormal inputs and
 * results become sign-preserving zeros, not whether a result is judged before or after rounding
 * (IEEE 754-2019 7.5 allows both). The readings differ only for exact results within half an ulp
 * below 2^-126. */
typedef enum {
    DP_F32_KEEP, /* no .ftz: gradual underflow */
    DP_F32_FTZ,  /* .ftz, flushed if below 2^-126 after rounding to 24 bits with unbounded exponent:
                    measured on an H200 (driver 580.159, CUDA 13.0); the default */
    DP_F32_FTZ_EXACT /* .ftz, flushed if the exact value is below 2^-126 */
} dp_f32_subnormal;

typedef struct {
    dp_f32_round round;
    dp_f32_subnormal subnormal;
} dp_f32_mode;

#define DP_F32_RN_FTZ  ((dp_f32_mode){DP_F32_RN, DP_F32_FTZ})
#define DP_F32_RM_FTZ  ((dp_f32_mode){DP_F32_RM, DP_F32_FTZ})
#define DP_F32_RN_KEEP ((dp_f32_mode){DP_F32_RN, DP_F32_KEEP})

/* Any NaN result of the four operations is 0x7FFFFFFF (PTX ISA 9.1, floating point: canonical NaN).
 */
#define DP_F32_NAN DP_F32_NAN_CUDA

/* x with a subnormal replaced by the zero of its sign; NaN patterns pass unchanged. */
DP_INLINE uint32_t dp_f32_flush(uint32_t x)
{
    return (x & DP_F32_INF) == 0 ? x & DP_F32_SIGN : x;
}

/* a + b, a - b, a * b, a * b + c: one rounding of the exact value (add.f32, sub.f32, mul.f32,
 * fma.f32). An exact zero sum of opposite signs is +0, and -0 under DP_F32_RM (IEEE 754-2019 6.3).
 * Inf - Inf and 0 * Inf are NaN. Overflow is Inf or the largest finite number as IEEE 754-2019 7.4.
 */
uint32_t dp_f32_add(uint32_t a, uint32_t b, dp_f32_mode mode);
uint32_t dp_f32_sub(uint32_t a, uint32_t b, dp_f32_mode mode);
uint32_t dp_f32_mul(uint32_t a, uint32_t b, dp_f32_mode mode);
uint32_t dp_f32_fma(uint32_t a, uint32_t b, uint32_t c, dp_f32_mode mode);

/* Two f32 in one 64-bit register: element 0 in the low half (add.f32x2, mul.f32x2, fma.f32x2). */
typedef struct {
    uint64_t bits;
} dp_f32x2;

DP_INLINE dp_f32x2 dp_f32x2_pack(uint32_t element0, uint32_t element1)
{
    const dp_f32x2 pair = {(uint64_t)element1 << 32 | element0};
    return pair;
}
DP_INLINE uint32_t dp_f32x2_get(dp_f32x2 pair, int element)
{
    return (uint32_t)(pair.bits >> (element == 0 ? 0 : 32));
}
dp_f32x2 dp_f32x2_add(dp_f32x2 a, dp_f32x2 b, dp_f32_mode mode);
dp_f32x2 dp_f32x2_mul(dp_f32x2 a, dp_f32x2 b, dp_f32_mode mode);
dp_f32x2 dp_f32x2_fma(dp_f32x2 a, dp_f32x2 b, dp_f32x2 c, dp_f32_mode mode);

/* min.f32 and max.f32: -0 is less than +0; with one NaN the other operand is the result, and with
 * nan (the .NaN modifier) any NaN operand makes the result 0x7FFFFFFF. ftz flushes the operands. */
uint32_t dp_f32_min(uint32_t a, uint32_t b, bool ftz, bool nan);
uint32_t dp_f32_max(uint32_t a, uint32_t b, bool ftz, bool nan);

/* cvt.{rni,rzi,rmi,rpi}{.ftz}.s32.f32: x rounded to an integer; outside the range of s32 the
 * nearest end of it, NaN is 0 (PTX ISA 9.1, cvt: integer conversions saturate by default). */
int32_t dp_f32_to_s32(uint32_t x, dp_f32_round round, bool ftz);
/* cvt.rmi{.ftz}.s32.f32: the floor. */
int32_t dp_f32_floor_s32(uint32_t x, bool ftz);

/* cvt.rn.f32.s32: the nearest f32 to an integer, ties to even. */
uint32_t dp_f32_from_s32(int32_t x);

DP_END_C

#endif
