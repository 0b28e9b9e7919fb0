/* SPDX-License-Identifier: MIT
 *
 * ex2, rcp and lg2 of the special function unit: complete octaves as first differences
 * (y[i] = dy[0] + .. + dy[i] modulo 2^32), rules over the whole input range, and a list of special
 * and random inputs.
 */
#include "device/capture/sweep.cuh"

#define DP_OCTAVE (1u << 23)

#define DP_UNARY(NAME, PTX)                                                                        \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            float y;                                                                               \
            asm volatile(PTX " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x)));                      \
            return __float_as_uint(y);                                                             \
        }                                                                                          \
    };
DP_UNARY(dp_ex2_ftz, "ex2.approx.ftz.f32")
DP_UNARY(dp_ex2, "ex2.approx.f32")
DP_UNARY(dp_rcp_ftz, "rcp.approx.ftz.f32")
DP_UNARY(dp_rcp, "rcp.approx.f32")
DP_UNARY(dp_lg2_ftz, "lg2.approx.ftz.f32")
DP_UNARY(dp_lg2, "lg2.approx.f32")
DP_UNARY(dp_rsqrt_ftz, "rsqrt.approx.ftz.f32")
DP_UNARY(dp_tanh, "tanh.approx.f32")

#define DP_UNARY_16(NAME, PTX)                                                                     \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(uint32_t x)                                                 \
        {                                                                                          \
            uint16_t y;                                                                            \
            asm volatile(PTX " %0, %1;" : "=h"(y) : "h"((uint16_t)x));                             \
            return y;                                                                              \
        }                                                                                          \
    };
DP_UNARY_16(dp_ex2_f16, "ex2.approx.f16")
DP_UNARY_16(dp_ex2_bf16, "ex2.approx.ftz.bf16")

/* Table of 1 + i / 2^23 for i = 0 .. 2^23 - 1, argument cut to 2^-23, negative ones by one's
 * complement of the fraction. */
struct dp_rule_ex2 {
    static __device__ uint32_t run(uint32_t x, const uint32_t *table)
    {
        const uint32_t exponent = x >> 23 & 255, negative = x >> 31;
        if (exponent == 255) {
            return (x << 9) != 0 ? DP_F32_NAN_CUDA : negative != 0 ? 0 : DP_F32_INF;
        }
        if (exponent == 0) {
            return 0x3F800000;
        }
        if (exponent >= 127 + 8) {
            return negative != 0 ? 0 : DP_F32_INF;
        }
        const int64_t mantissa = (x & 0x7FFFFF) | 0x800000;
        const int64_t a = exponent >= 127   ? mantissa << (exponent - 127)
                          : exponent >= 103 ? mantissa >> (127 - exponent)
                                            : 0;
        const int64_t k = negative == 0 ? a : (a & 0x7FFFFF) == 0 ? -a : -a - 1;
        const int64_t result = 127 + (k >> 23);
        if (result < 1 || result > 254) {
            return result < 1 ? 0 : DP_F32_INF;
        }
        return ((uint32_t)result << 23) + (table[k & 0x7FFFFF] - 0x40000000);
    }
};

struct dp_rule_rcp {
    static __device__ uint32_t run(uint32_t x, const uint32_t *table)
    {
        const uint32_t exponent = x >> 23 & 255, sign = x & DP_F32_SIGN;
        if (exponent == 255) {
            return (x << 9) != 0 ? DP_F32_NAN_CUDA : sign;
        }
        if (exponent == 0) {
            return sign | DP_F32_INF;
        }
        const int64_t y = (int64_t)table[x & 0x7FFFFF] - ((int64_t)exponent - 127) * DP_OCTAVE;
        return y < DP_OCTAVE ? sign : sign | (uint32_t)y;
    }
};

/* The forms without .ftz, as scalings around the .ftz form. */
struct dp_rule_ex2_wide {
    static __device__ uint32_t run(uint32_t x, const uint32_t *)
    {
        const float v = __uint_as_float(x);
        const bool low = v < -126.0f;
        const float y =
            __uint_as_float(dp_ex2_ftz::run(__float_as_uint(low ? __fmul_rn(v, 0.5f) : v)));
        return __float_as_uint(low ? __fmul_rn(y, y) : y);
    }
};
struct dp_rule_lg2_wide {
    static __device__ uint32_t run(uint32_t x, const uint32_t *)
    {
        const float v = __uint_as_float(x);
        const bool low = fabsf(v) < 0x1p-126f;
        const float y =
            __uint_as_float(dp_lg2_ftz::run(__float_as_uint(low ? __fmul_rn(v, 0x1p24f) : v)));
        return __float_as_uint(low ? __fadd_rn(y, -24.0f) : y);
    }
};

/* The unit adds e to a logarithm of the mantissa with 36 fraction bits, takes the one's complement
 * of a negative sum and cuts it to 24 bits. `table` holds the logarithms as 64-bit words. */
struct dp_rule_lg2 {
    static __device__ uint32_t run(uint32_t x, const uint32_t *table)
    {
        const uint32_t field = x >> 23 & 255;
        if (field == 255 && (x << 9) != 0) {
            return DP_F32_NAN_CUDA;
        }
        if (field == 0) {
            return DP_F32_SIGN | DP_F32_INF;
        }
        if ((x & DP_F32_SIGN) != 0) {
            return DP_F32_NAN_CUDA;
        }
        if (field == 255 || x == 0x3F800000) {
            return field == 255 ? DP_F32_INF : 0;
        }
        const int64_t log = (int64_t)((const uint64_t *)table)[x & 0x7FFFFF];
        const int64_t sum = ((int64_t)field - 127) * ((int64_t)1 << 36) + log;
        const uint64_t magnitude = (uint64_t)(sum < 0 ? ~sum : sum);
        if (magnitude == 0) {
            return 0;
        }
        const int top = 63 - __clzll((long long)magnitude);
        const uint64_t kept = top >= 23 ? magnitude >> (top - 23) : magnitude << (23 - top);
        return (sum < 0 ? DP_F32_SIGN : 0) | (uint32_t)(((uint64_t)(top - 36 + 126) << 23) + kept);
    }
};

/* The logarithms from the octaves e = 0 (known to 36 bits near 0) and e = -1 (near 1). */
static __global__ void dp_lg2_join(uint64_t *log, const uint32_t *zero, const uint32_t *below)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < DP_OCTAVE;
         i += gridDim.x * blockDim.x) {
        const int field = (int)(zero[i] >> 23), low = (int)(below[i] >> 23 & 255);
        const uint64_t m = (zero[i] & 0x7FFFFF) | 0x800000, n = (below[i] & 0x7FFFFF) | 0x800000;
        if (field < 126 && i > 0) {
            log[i] = field >= 114 ? m << (field - 114) : m >> (114 - field);
        } else {
            const uint64_t one = low > 114 ? (uint64_t)1 << (low - 114) : 1;
            const uint64_t magnitude = low >= 114 ? n << (low - 114) : n >> (114 - low);
            log[i] = ((uint64_t)1 << 36) - magnitude - one;
        }
    }
}

/* One octave into device memory (kept for checks) and into the file. */
template <class Op> static void dp_octave(dp_recorder *r, uint32_t *table, uint32_t first)
{
    uint32_t *y = (uint32_t *)malloc(DP_OCTAVE * sizeof *y);
    dp_sweep_table<Op, uint32_t><<<1024, 256>>>(table, first, DP_OCTAVE);
    if (dp_record_cuda(r, "octave",
                       cudaMemcpy(y, table, DP_OCTAVE * sizeof *y, cudaMemcpyDeviceToHost))) {
        for (uint32_t i = DP_OCTAVE - 1; i > 0; i--) {
            y[i] -= y[i - 1];
        }
        (void)dp_h5out_int(r->out, "first", first);
        (void)dp_h5out_int(r->out, "step", 1);
        (void)dp_h5out_uint(r->out, "dy", "case", 4, DP_OCTAVE, 0, y);
    }
    free(y);
}

/* Every special value, exponent ends, and random bits, both signs. */
static uint32_t dp_list_inputs(uint32_t *x, uint64_t seed)
{
    static const uint32_t low[] = {0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF};
    uint32_t count = 0;
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        for (uint32_t i = 0; i < 7; i++) {
            x[count++] = exponent << 23 | low[i];
            x[count++] = DP_F32_SIGN | exponent << 23 | low[i];
        }
    }
    for (uint32_t i = 0; i < 12288; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(seed >> 32);
        x[count++] = i % 2 == 0 ? bits : (bits & 0x807FFFFF) | (96u + (bits >> 23) % 40u) << 23;
    }
    return count;
}

template <class Op> static void dp_list(dp_recorder *r, const char *group, const char *instruction)
{
    uint32_t x[256 * 14 + 12288];
    const uint32_t count = dp_list_inputs(x, r->seed);
    dp_record_group(r, group, instruction);
    dp_record_list<Op, uint32_t>(r, x, count);
    dp_record_say(r, "%-32s %u cases\n", group, count);
}

template <class Op>
static void dp_table(dp_recorder *r, uint32_t *table, const char *group, const char *instruction,
                     int exponent)
{
    dp_record_group(r, group, instruction);
    dp_octave<Op>(r, table, (uint32_t)(127 + exponent) << 23);
    dp_record_say(r, "%-32s %u cases, exponent %d\n", group, DP_OCTAVE, exponent);
}

void dp_record_sfu(dp_recorder *r)
{
    const uint64_t all = (uint64_t)1 << 32;
    uint32_t *table = nullptr;
    if (!dp_record_cuda(r, "table", cudaMalloc(&table, DP_OCTAVE * sizeof *table))) {
        return;
    }
    dp_table<dp_ex2_ftz>(r, table, "ex2_ftz_octave", "ex2.approx.ftz.f32", 0);
    dp_record_check<dp_ex2_ftz, dp_rule_ex2>(r, "table of [1, 2), one's complement below zero",
                                             table, 0, all);
    dp_table<dp_rcp_ftz>(r, table, "rcp_ftz_octave", "rcp.approx.ftz.f32", 0);
    dp_record_check<dp_rcp_ftz, dp_rule_rcp>(r, "table of [1, 2), exponent shifted", table, 0, all);
    dp_list<dp_ex2_ftz>(r, "ex2_ftz_list", "ex2.approx.ftz.f32");
    dp_list<dp_ex2>(r, "ex2_list", "ex2.approx.f32");
    dp_record_check<dp_ex2, dp_rule_ex2_wide>(r, "below -126 the square of ex2.ftz of half",
                                              nullptr, 0, all);
    dp_list<dp_rcp_ftz>(r, "rcp_ftz_list", "rcp.approx.ftz.f32");
    dp_list<dp_rcp>(r, "rcp_list", "rcp.approx.f32");
    dp_list<dp_rsqrt_ftz>(r, "rsqrt_ftz_list", "rsqrt.approx.ftz.f32");
    dp_list<dp_tanh>(r, "tanh_list", "tanh.approx.f32");
    dp_record_group(r, "ex2_f16", "ex2.approx.f16");
    dp_record_range<dp_ex2_f16, uint16_t>(r, 0, 65536);
    dp_record_group(r, "ex2_ftz_bf16", "ex2.approx.ftz.bf16");
    dp_record_range<dp_ex2_bf16, uint16_t>(r, 0, 65536);
    (void)cudaFree(table);
}

void dp_record_lg2(dp_recorder *r)
{
    uint32_t *zero = nullptr, *below = nullptr;
    uint64_t *log = nullptr;
    (void)cudaMalloc(&zero, DP_OCTAVE * sizeof *zero);
    (void)cudaMalloc(&below, DP_OCTAVE * sizeof *below);
    (void)cudaMalloc(&log, DP_OCTAVE * sizeof *log);
    dp_table<dp_lg2_ftz>(r, below, "lg2_ftz_octave_-1", "lg2.approx.ftz.f32", -1);
    dp_table<dp_lg2_ftz>(r, zero, "lg2_ftz_octave_0", "lg2.approx.ftz.f32", 0);
    dp_lg2_join<<<1024, 256>>>(log, zero, below);
    dp_record_check<dp_lg2_ftz, dp_rule_lg2>(
        r, "sum with 36 fraction bits, one's complement below zero", (const uint32_t *)log, 0,
        (uint64_t)1 << 32);
    dp_list<dp_lg2_ftz>(r, "lg2_ftz_list", "lg2.approx.ftz.f32");
    dp_list<dp_lg2>(r, "lg2_list", "lg2.approx.f32");
    dp_record_check<dp_lg2, dp_rule_lg2_wide>(r, "subnormals times 2^24, then minus 24", nullptr, 0,
                                              (uint64_t)1 << 32);
    (void)cudaFree(zero);
    (void)cudaFree(below);
    (void)cudaFree(log);
}
