/* SPDX-License-Identifier: MIT
 *
 * Conversions between f32, f16, bf16 and the 8-bit (and, where the device has them, 4-bit and
 * scale) formats: all inputs against an integer rule written here, complete sweeps of short inputs,
 * and a list of f32 inputs with every special class.
 */
#include "device/capture/sweep.cuh"

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL) ||                  \
    defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define DP_HAVE_FP4 1
#endif

/* A pair conversion seen as a function of one input: x in one field, a value derived from x in the
 * other, so that a field that leaked into its neighbour would show in the sweep. */
static __device__ __forceinline__ uint32_t dp_partner(uint32_t x)
{
    return (x * 0x9E3779B1u) ^ (x >> 15);
}

#define DP_PAIR_F32(NAME, PTX, CONSTRAINT, TYPE)                                                   \
    struct NAME {                                                                                  \
        static __device__ uint32_t pair(uint32_t high, uint32_t low)                               \
        {                                                                                          \
            TYPE y;                                                                                \
            asm volatile(PTX " %0, %1, %2;"                                                        \
                         : CONSTRAINT(y)                                                           \
                         : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));                 \
            return (uint32_t)y;                                                                    \
        }                                                                                          \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            const uint32_t bits = 4 * sizeof(TYPE), mask = (1u << bits) - 1u;                      \
            const uint32_t as_low = pair(dp_partner(x), x) & mask;                                 \
            const uint32_t as_high = pair(x, dp_partner(x)) >> bits & mask;                        \
            return as_low == as_high ? as_low : 0xBAD00000u;                                       \
        }                                                                                          \
    };
DP_PAIR_F32(dp_e4m3, "cvt.rn.satfinite.e4m3x2.f32", "=h", uint16_t)
DP_PAIR_F32(dp_e5m2, "cvt.rn.satfinite.e5m2x2.f32", "=h", uint16_t)
DP_PAIR_F32(dp_e4m3_relu, "cvt.rn.satfinite.relu.e4m3x2.f32", "=h", uint16_t)
DP_PAIR_F32(dp_e5m2_relu, "cvt.rn.satfinite.relu.e5m2x2.f32", "=h", uint16_t)
DP_PAIR_F32(dp_bf16, "cvt.rn.bf16x2.f32", "=r", uint32_t)
DP_PAIR_F32(dp_f16, "cvt.rn.f16x2.f32", "=r", uint32_t)
DP_PAIR_F32(dp_bf16_rz, "cvt.rz.bf16x2.f32", "=r", uint32_t)
DP_PAIR_F32(dp_f16_rz, "cvt.rz.f16x2.f32", "=r", uint32_t)

/* Two 16-bit inputs in one register to two 8-bit ones, and back. */
#define DP_PAIR_F16(NAME, PTX)                                                                     \
    struct NAME {                                                                                  \
        static __device__ uint32_t pair(uint32_t x)                                                \
        {                                                                                          \
            uint16_t y;                                                                            \
            asm volatile(PTX " %0, %1;" : "=h"(y) : "r"(x));                                       \
            return y;                                                                              \
        }                                                                                          \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            const uint32_t other = dp_partner(x) & 0xFFFF;                                         \
            const uint32_t as_low = pair(other << 16 | x) & 0xFF,                                  \
                           as_high = pair(x << 16 | other) >> 8;                                   \
            return as_low == as_high ? as_low : 0xBADu;                                            \
        }                                                                                          \
    };
DP_PAIR_F16(dp_e4m3_f16, "cvt.rn.satfinite.e4m3x2.f16x2")
DP_PAIR_F16(dp_e5m2_f16, "cvt.rn.satfinite.e5m2x2.f16x2")

#define DP_PAIR_BACK(NAME, PTX)                                                                    \
    struct NAME {                                                                                  \
        static __device__ uint32_t pair(uint32_t x)                                                \
        {                                                                                          \
            uint32_t y;                                                                            \
            asm volatile(PTX " %0, %1;" : "=r"(y) : "h"((uint16_t)x));                             \
            return y;                                                                              \
        }                                                                                          \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            const uint32_t other = dp_partner(x) & 0xFF;                                           \
            const uint32_t as_low = pair(other << 8 | x) & 0xFFFF,                                 \
                           as_high = pair(x << 8 | other) >> 16;                                   \
            return as_low == as_high ? as_low : 0xBAD0u;                                           \
        }                                                                                          \
    };
DP_PAIR_BACK(dp_f16_e4m3, "cvt.rn.f16x2.e4m3x2")
DP_PAIR_BACK(dp_f16_e5m2, "cvt.rn.f16x2.e5m2x2")

/* Round to nearest even, finite results capped (or overflowing to Inf when cap = 0). */
template <int bits, int mantissa, int bias, uint32_t cap, uint32_t nan, bool zero, bool relu>
struct dp_rule_round {
    static __device__ uint32_t run(uint32_t x, const uint32_t *)
    {
        const uint32_t sign = x >> 31 << (bits - 1), magnitude = x & DP_F32_ABS;
        const uint32_t inf = ((1u << (bits - 1 - mantissa)) - 1u) << mantissa;
        if (magnitude > DP_F32_INF) {
            return nan;
        }
        if (relu && sign != 0) {
            return 0;
        }
        const int field = (int)(magnitude >> 23);
        int exponent = (field == 0 ? 1 : field) - 127 + bias; /* of the result */
        uint64_t significand = (magnitude & 0x7FFFFF) | (field == 0 ? 0u : 0x800000u);
        int drop = 23 - mantissa;
        if (exponent < 1) {
            drop += 1 - exponent;
            exponent = 1;
        }
        if (drop > 30) {
            significand = significand != 0 ? 1 : 0;
            drop = 30;
        }
        uint64_t kept = significand >> drop;
        const uint64_t tail = drop == 0 ? 0 : significand & (((uint64_t)1 << drop) - 1);
        const uint64_t half = drop == 0 ? 1 : (uint64_t)1 << (drop - 1);
        if (!zero && (tail > half || (tail == half && drop > 0 && (kept & 1) != 0))) {
            kept++;
        }
        const uint64_t code = ((uint64_t)(exponent - 1) << mantissa) + kept;
        const uint64_t top = cap != 0 ? cap : zero && magnitude != DP_F32_INF ? inf - 1 : inf;
        return sign | (uint32_t)(code > top || magnitude == DP_F32_INF ? top : code);
    }
};
typedef dp_rule_round<8, 3, 7, 0x7E, 0x7F, false, false> dp_rule_e4m3;
typedef dp_rule_round<8, 2, 15, 0x7B, 0x7F, false, false> dp_rule_e5m2;
typedef dp_rule_round<8, 3, 7, 0x7E, 0x7F, false, true> dp_rule_e4m3_relu;
typedef dp_rule_round<8, 2, 15, 0x7B, 0x7F, false, true> dp_rule_e5m2_relu;
typedef dp_rule_round<16, 7, 127, 0, 0x7FFF, false, false> dp_rule_bf16;
typedef dp_rule_round<16, 10, 15, 0, 0x7FFF, false, false> dp_rule_f16;
typedef dp_rule_round<16, 7, 127, 0, 0x7FFF, true, false> dp_rule_bf16_rz;
typedef dp_rule_round<16, 10, 15, 0, 0x7FFF, true, false> dp_rule_f16_rz;

/* Every exponent with the mantissas around the roundings of 1 to 10 kept bits, NaN classes, random.
 */
#define DP_LIST_MAX (256 * 2 * 12 + 24 + 8192)
static uint32_t dp_list_inputs(uint32_t *x, uint64_t seed)
{
    static const uint32_t low[] = {0,        1,        0x7FFFFF, 0x400000, 0x200000, 0x080000,
                                   0x0FFFFF, 0x180001, 0x100000, 0x300000, 0x500000, 0x700001};
    static const uint32_t nan[] = {0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000,
                                   0x7FC00001, 0x7FFFFFFF, 0x7FA00000, 0x7F900000};
    uint32_t count = 0;
    for (uint32_t field = 0; field < 255; field++) {
        for (uint32_t i = 0; i < 12; i++) {
            x[count++] = field << 23 | low[i];
            x[count++] = DP_F32_SIGN | field << 23 | low[i];
        }
    }
    for (uint32_t i = 0; i < 8; i++) {
        x[count++] = nan[i];
        x[count++] = DP_F32_SIGN | nan[i];
    }
    for (uint32_t i = 0; i < 8192; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(seed >> 32);
        x[count++] = (bits & 0x807FFFFF) | (96u + (bits >> 23) % 56u) << 23;
    }
    return count;
}

template <class Op, class Rule, class Y>
static void dp_from_f32(dp_recorder *r, const char *group, const char *instruction)
{
    static uint32_t x[DP_LIST_MAX];
    const uint32_t count = dp_list_inputs(x, r->seed);
    dp_record_group(r, group, instruction);
    dp_record_say(r, "%-32s %u cases\n", group, count);
    dp_record_list<Op, Y>(r, x, count);
    dp_record_check<Op, Rule>(r, "integer rounding rule, both fields", nullptr, 0,
                              (uint64_t)1 << 32);
}

template <class Op, class Y>
static void dp_short(dp_recorder *r, const char *group, const char *instruction, uint32_t count)
{
    dp_record_group(r, group, instruction);
    dp_record_say(r, "%-32s %u cases, complete\n", group, count);
    dp_record_range<Op, Y>(r, 0, count);
}

/* --- formats that only compute capability 10.x and 12.x convert --- */

#ifdef DP_HAVE_FP4
#define DP_FP4(...) __VA_ARGS__
#else
#define DP_FP4(...) (void)x
#endif
#define DP_E2M1_F32(NAME, PTX)                                                                     \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            uint32_t y = 0;                                                                        \
            DP_FP4(asm volatile("{ .reg .b8 d; " PTX " d, %1, %1; cvt.u32.u8 %0, d; }"             \
                                : "=r"(y)                                                          \
                                : "f"(__uint_as_float(x))));                                       \
            return (y & 0xF) == y >> 4 ? y & 0xF : 0xBAu;                                          \
        }                                                                                          \
    };
DP_E2M1_F32(dp_e2m1, "cvt.rn.satfinite.e2m1x2.f32")
DP_E2M1_F32(dp_e2m1_relu, "cvt.rn.satfinite.relu.e2m1x2.f32")

#define DP_E8M0_F32(NAME, PTX)                                                                     \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            uint16_t y = 0;                                                                        \
            DP_FP4(asm volatile(PTX " %0, %1, %1;" : "=h"(y) : "f"(__uint_as_float(x))));          \
            return y & 0xFF;                                                                       \
        }                                                                                          \
    };
DP_E8M0_F32(dp_e8m0_rp, "cvt.rp.satfinite.ue8m0x2.f32")
DP_E8M0_F32(dp_e8m0_rz, "cvt.rz.satfinite.ue8m0x2.f32")
DP_E8M0_F32(dp_e8m0_rp_inf, "cvt.rp.ue8m0x2.f32")
DP_E8M0_F32(dp_e8m0_rz_inf, "cvt.rz.ue8m0x2.f32")

struct dp_f16_e2m1 {
    static __device__ uint32_t run(uint32_t x)
    {
        uint32_t y = 0;
        DP_FP4(asm volatile("{ .reg .b8 s; cvt.u8.u32 s, %1; cvt.rn.f16x2.e2m1x2 %0, s; }"
                            : "=r"(y)
                            : "r"(x)));
        return y;
    }
};
struct dp_bf16_e8m0 {
    static __device__ uint32_t run(uint32_t x)
    {
        uint32_t y = 0;
        DP_FP4(asm volatile("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(y) : "h"((uint16_t)x)));
        return y & 0xFFFF;
    }
};

static void dp_fp4(dp_recorder *r)
{
    static uint32_t x[DP_LIST_MAX];
    const uint32_t count = dp_list_inputs(x, r->seed);
    dp_record_group(r, "cvt_e2m1_f32", "cvt.rn.satfinite.e2m1x2.f32");
    dp_record_list<dp_e2m1, uint8_t>(r, x, count);
    dp_record_group(r, "cvt_e2m1_f32_relu", "cvt.rn.satfinite.relu.e2m1x2.f32");
    dp_record_list<dp_e2m1_relu, uint8_t>(r, x, count);
    dp_record_group(r, "cvt_e8m0_f32_rp", "cvt.rp.satfinite.ue8m0x2.f32");
    dp_record_list<dp_e8m0_rp, uint8_t>(r, x, count);
    dp_record_group(r, "cvt_e8m0_f32_rz", "cvt.rz.satfinite.ue8m0x2.f32");
    dp_record_list<dp_e8m0_rz, uint8_t>(r, x, count);
    dp_record_group(r, "cvt_e8m0_f32_rp_inf", "cvt.rp.ue8m0x2.f32");
    dp_record_list<dp_e8m0_rp_inf, uint8_t>(r, x, count);
    dp_record_group(r, "cvt_e8m0_f32_rz_inf", "cvt.rz.ue8m0x2.f32");
    dp_record_list<dp_e8m0_rz_inf, uint8_t>(r, x, count);
    dp_short<dp_f16_e2m1, uint32_t>(r, "cvt_f16x2_e2m1x2", "cvt.rn.f16x2.e2m1x2", 256);
    dp_short<dp_bf16_e8m0, uint16_t>(r, "cvt_bf16_e8m0", "cvt.rn.bf16x2.ue8m0x2", 256);
}

void dp_record_convert(dp_recorder *r)
{
    dp_from_f32<dp_e4m3, dp_rule_e4m3, uint8_t>(r, "cvt_e4m3_f32", "cvt.rn.satfinite.e4m3x2.f32");
    dp_from_f32<dp_e5m2, dp_rule_e5m2, uint8_t>(r, "cvt_e5m2_f32", "cvt.rn.satfinite.e5m2x2.f32");
    dp_from_f32<dp_e4m3_relu, dp_rule_e4m3_relu, uint8_t>(r, "cvt_e4m3_f32_relu",
                                                          "cvt.rn.satfinite.relu.e4m3x2.f32");
    dp_from_f32<dp_e5m2_relu, dp_rule_e5m2_relu, uint8_t>(r, "cvt_e5m2_f32_relu",
                                                          "cvt.rn.satfinite.relu.e5m2x2.f32");
    dp_from_f32<dp_bf16, dp_rule_bf16, uint16_t>(r, "cvt_bf16_f32", "cvt.rn.bf16x2.f32");
    dp_from_f32<dp_f16, dp_rule_f16, uint16_t>(r, "cvt_f16_f32", "cvt.rn.f16x2.f32");
    dp_from_f32<dp_bf16_rz, dp_rule_bf16_rz, uint16_t>(r, "cvt_bf16_f32_rz", "cvt.rz.bf16x2.f32");
    dp_from_f32<dp_f16_rz, dp_rule_f16_rz, uint16_t>(r, "cvt_f16_f32_rz", "cvt.rz.f16x2.f32");
    dp_short<dp_e4m3_f16, uint16_t>(r, "cvt_e4m3_f16", "cvt.rn.satfinite.e4m3x2.f16x2", 65536);
    dp_short<dp_e5m2_f16, uint16_t>(r, "cvt_e5m2_f16", "cvt.rn.satfinite.e5m2x2.f16x2", 65536);
    dp_short<dp_f16_e4m3, uint16_t>(r, "cvt_f16_e4m3", "cvt.rn.f16x2.e4m3x2", 256);
    dp_short<dp_f16_e5m2, uint16_t>(r, "cvt_f16_e5m2", "cvt.rn.f16x2.e5m2x2", 256);
    if (r->capability >= 100) {
        dp_fp4(r);
    } else {
        dp_record_say(r, "cvt of e2m1, ue8m0: skipped, needs compute capability 10.0 and up\n");
    }
}
