/* SPDX-License-Identifier: MIT
 *
 * Scalar instructions of two and three operands: x [case, operands], in PTX operand order.
 */
#include "device/capture/sweep.cuh"

#define DP_CASES 8192

struct dp_args {
    uint32_t a, b, c;
};

#define DP_FLOATS_2(NAME, PTX)                                                                     \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(dp_args v)                                                  \
        {                                                                                          \
            float y;                                                                               \
            asm volatile(PTX " %0, %1, %2;"                                                        \
                         : "=f"(y)                                                                 \
                         : "f"(__uint_as_float(v.a)), "f"(__uint_as_float(v.b)));                  \
            return __float_as_uint(y);                                                             \
        }                                                                                          \
    };
#define DP_FLOATS_3(NAME, PTX)                                                                     \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(dp_args v)                                                  \
        {                                                                                          \
            float y;                                                                               \
            asm volatile(PTX " %0, %1, %2, %3;"                                                    \
                         : "=f"(y)                                                                 \
                         : "f"(__uint_as_float(v.a)), "f"(__uint_as_float(v.b)),                   \
                           "f"(__uint_as_float(v.c)));                                             \
            return __float_as_uint(y);                                                             \
        }                                                                                          \
    };
#define DP_INTS_3(NAME, PTX)                                                                       \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(dp_args v)                                                  \
        {                                                                                          \
            uint32_t y;                                                                            \
            asm volatile(PTX " %0, %1, %2, %3;" : "=r"(y) : "r"(v.a), "r"(v.b), "r"(v.c));         \
            return y;                                                                              \
        }                                                                                          \
    };
#define DP_TO_INT(NAME, PTX)                                                                       \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(dp_args v)                                                  \
        {                                                                                          \
            uint32_t y;                                                                            \
            asm volatile(PTX " %0, %1;" : "=r"(y) : "f"(__uint_as_float(v.a)));                    \
            return y;                                                                              \
        }                                                                                          \
    };
DP_FLOATS_2(dp_add_rn, "add.rn.ftz.f32")
DP_FLOATS_2(dp_add_rm, "add.rm.ftz.f32")
DP_FLOATS_2(dp_add_rz, "add.rz.ftz.f32")
DP_FLOATS_2(dp_add_plain, "add.rn.f32")
DP_FLOATS_2(dp_mul_rn, "mul.rn.ftz.f32")
DP_FLOATS_2(dp_mul_plain, "mul.rn.f32")
DP_FLOATS_2(dp_min, "min.ftz.f32")
DP_FLOATS_2(dp_max, "max.ftz.f32")
DP_FLOATS_2(dp_min_plain, "min.f32")
DP_FLOATS_2(dp_max_plain, "max.f32")
DP_FLOATS_2(dp_max_nan, "max.NaN.f32")
DP_FLOATS_2(dp_min_nan, "min.NaN.f32")
DP_FLOATS_3(dp_fma_rn, "fma.rn.ftz.f32")
DP_FLOATS_3(dp_fma_plain, "fma.rn.f32")
DP_FLOATS_3(dp_fma_rm, "fma.rm.ftz.f32")
DP_INTS_3(dp_prmt, "prmt.b32")
DP_INTS_3(dp_dp4a_ss, "dp4a.s32.s32")
DP_INTS_3(dp_dp4a_uu, "dp4a.u32.u32")
DP_INTS_3(dp_dp4a_su, "dp4a.s32.u32")
DP_INTS_3(dp_dp4a_us, "dp4a.u32.s32")
DP_TO_INT(dp_cvt_rmi, "cvt.rmi.s32.f32")
DP_TO_INT(dp_cvt_rni, "cvt.rni.s32.f32")
DP_TO_INT(dp_cvt_rzi, "cvt.rzi.s32.f32")
DP_TO_INT(dp_cvt_rmi_ftz, "cvt.rmi.ftz.s32.f32")

/* Stochastic conversions: one value in every lane, and the random word. */
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define DP_STOCHASTIC(...) __VA_ARGS__
#else
#define DP_STOCHASTIC(...) (void)v
#endif
#define DP_RANDOM(NAME, PTX)                                                                       \
    struct NAME {                                                                                  \
        static __device__ uint32_t run(dp_args v)                                                  \
        {                                                                                          \
            uint32_t y = 0;                                                                        \
            DP_STOCHASTIC(asm volatile(PTX : "=r"(y) : "f"(__uint_as_float(v.a)), "r"(v.b)));      \
            return y;                                                                              \
        }                                                                                          \
    };
DP_RANDOM(dp_rs_e4m3, "cvt.rs.satfinite.e4m3x4.f32 %0, {%1, %1, %1, %1}, %2;")
DP_RANDOM(dp_rs_e5m2, "cvt.rs.satfinite.e5m2x4.f32 %0, {%1, %1, %1, %1}, %2;")
DP_RANDOM(dp_rs_e2m1, "{ .reg .b16 d; cvt.rs.satfinite.e2m1x4.f32 d, {%1, %1, %1, %1}, %2;"
                      " cvt.u32.u16 %0, d; }")
DP_RANDOM(dp_rs_bf16, "cvt.rs.bf16x2.f32 %0, %1, %1, %2;")
DP_RANDOM(dp_rs_f16, "cvt.rs.f16x2.f32 %0, %1, %1, %2;")

typedef enum { DP_ARGS_FLOATS, DP_ARGS_INTEGERS, DP_ARGS_RANDOM } dp_args_kind;

template <class Op> static __global__ void dp_args_kernel(uint32_t *y, const dp_args *x, int count)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < count;
         i += (int)(gridDim.x * blockDim.x)) {
        y[i] = Op::run(x[i]);
    }
}

static uint32_t dp_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static const uint32_t dp_specials[] = {
    0x00000000, 0x00000001, 0x00000002, 0x003FFFFF, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001,
    0x00FFFFFF, 0x01000000, 0x33800000, 0x34000000, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
    0x3FFFFFFF, 0x40000000, 0x4B000000, 0x4B7FFFFF, 0x4F000000, 0x4EFFFFFF, 0x4F7FFFFF, 0x7E800000,
    0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF};

/* Specials of both signs in all pairs first (64 x 64), then operands near each other in exponent,
 * then products whose exact value lies within a few units of 2^-126. */
static void dp_floats(int i, uint32_t v[3], uint64_t *state)
{
    const bool tiny = i / 16 % 4 == 0;
    for (int o = 0; o < 3; o++) {
        const uint32_t random = dp_next(state);
        const int place = o == 0 ? i / 64 : o == 1 ? i % 64 : (int)(random >> 26);
        const uint32_t field = !tiny ? 110u : o < 2 && i / 64 % 2 == 0 ? 48u : 1u;
        v[o] = i < 4096 ? dp_specials[place % 32] | (place >= 32 ? DP_F32_SIGN : 0)
                        : (random & 0x807FFFFF) | (field + dp_next(state) % 34u) << 23;
    }
    if (i >= 6144) {
        const uint32_t a = (v[0] & 0x007FFFFF) | (67u + dp_next(state) % 60u) << 23;
        const double twice = i % 2 == 0 ? 1.0 : 2.0; /* odd cases: minus 2^-126 by the addend */
        const double quotient = twice * 0x1p-126 / (double)dp_f32_from_bits(a);
        const uint32_t b = dp_f32_bits((float)quotient) + dp_next(state) % 5u - 2u;
        v[0] = a | (v[0] & DP_F32_SIGN);
        v[1] = b | (v[1] & DP_F32_SIGN);
        v[2] = i % 2 == 0 ? v[2] & DP_F32_SIGN
                          : ((v[0] ^ v[1]) & DP_F32_SIGN ^ DP_F32_SIGN) | 0x00800000;
    }
}

static uint32_t dp_integer(int i, int operand, uint64_t *state)
{
    static const uint32_t edges[] = {0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x01010101, 0x80000000};
    const uint32_t random = dp_next(state);
    return i < 216 ? edges[operand == 0 ? i % 6 : operand == 1 ? i / 6 % 6 : i / 36] : random;
}

template <class Op>
static void dp_scalar(dp_recorder *r, const char *group, const char *instruction, int operands,
                      dp_args_kind kind)
{
    dp_args *x = (dp_args *)malloc(DP_CASES * sizeof *x), *device_x = nullptr;
    uint32_t *flat = (uint32_t *)malloc(DP_CASES * 3 * sizeof *flat), *y = nullptr;
    uint32_t *host_y = (uint32_t *)malloc(DP_CASES * sizeof *host_y);
    uint64_t state = r->seed;
    for (int i = 0; i < DP_CASES; i++) {
        uint32_t v[3] = {};
        if (kind == DP_ARGS_RANDOM) { /* a value within the narrow formats, all 32 random bits */
            v[0] = (dp_next(&state) & 0x807FFFFF) | (110u + dp_next(&state) % 26u) << 23;
            v[1] = dp_next(&state);
        } else if (kind == DP_ARGS_INTEGERS) {
            for (int o = 0; o < 3; o++) {
                v[o] = dp_integer(i, o, &state);
            }
        } else {
            dp_floats(i, v, &state);
        }
        x[i] = {v[0], v[1], v[2]};
        memcpy(flat + i * operands, v, (size_t)operands * sizeof *v);
    }
    (void)cudaMalloc(&device_x, DP_CASES * sizeof *x);
    (void)cudaMalloc(&y, DP_CASES * sizeof *y);
    (void)cudaMemcpy(device_x, x, DP_CASES * sizeof *x, cudaMemcpyHostToDevice);
    dp_args_kernel<Op><<<32, 256>>>(y, device_x, DP_CASES);
    dp_record_group(r, group, instruction);
    if (dp_record_cuda(r, group,
                       cudaMemcpy(host_y, y, DP_CASES * sizeof *y, cudaMemcpyDeviceToHost))) {
        (void)dp_h5out_uint(r->out, "x", operands == 1 ? "case" : "case,operand", 4, DP_CASES,
                            operands == 1 ? 0 : (size_t)operands, flat);
        (void)dp_h5out_uint(r->out, "y", "case", 4, DP_CASES, 0, host_y);
        dp_record_say(r, "%-32s %d cases\n", group, DP_CASES);
    }
    (void)cudaFree(device_x);
    (void)cudaFree(y);
    free(x);
    free(flat);
    free(host_y);
}

void dp_record_scalar(dp_recorder *r)
{
    dp_scalar<dp_add_rn>(r, "add_rn_ftz", "add.rn.ftz.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_add_rm>(r, "add_rm_ftz", "add.rm.ftz.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_add_rz>(r, "add_rz_ftz", "add.rz.ftz.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_add_plain>(r, "add_rn", "add.rn.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_mul_rn>(r, "mul_rn_ftz", "mul.rn.ftz.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_mul_plain>(r, "mul_rn", "mul.rn.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_fma_rn>(r, "fma_rn_ftz", "fma.rn.ftz.f32", 3, DP_ARGS_FLOATS);
    dp_scalar<dp_fma_plain>(r, "fma_rn", "fma.rn.f32", 3, DP_ARGS_FLOATS);
    dp_scalar<dp_fma_rm>(r, "fma_rm_ftz", "fma.rm.ftz.f32", 3, DP_ARGS_FLOATS);
    dp_scalar<dp_min>(r, "min_ftz", "min.ftz.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_max>(r, "max_ftz", "max.ftz.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_min_plain>(r, "min", "min.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_max_plain>(r, "max", "max.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_min_nan>(r, "min_nan", "min.NaN.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_max_nan>(r, "max_nan", "max.NaN.f32", 2, DP_ARGS_FLOATS);
    dp_scalar<dp_cvt_rmi>(r, "cvt_rmi_s32", "cvt.rmi.s32.f32", 1, DP_ARGS_FLOATS);
    dp_scalar<dp_cvt_rni>(r, "cvt_rni_s32", "cvt.rni.s32.f32", 1, DP_ARGS_FLOATS);
    dp_scalar<dp_cvt_rzi>(r, "cvt_rzi_s32", "cvt.rzi.s32.f32", 1, DP_ARGS_FLOATS);
    dp_scalar<dp_cvt_rmi_ftz>(r, "cvt_rmi_ftz_s32", "cvt.rmi.ftz.s32.f32", 1, DP_ARGS_FLOATS);
    dp_scalar<dp_prmt>(r, "prmt", "prmt.b32", 3, DP_ARGS_INTEGERS);
    dp_scalar<dp_dp4a_ss>(r, "dp4a_s32_s32", "dp4a.s32.s32", 3, DP_ARGS_INTEGERS);
    dp_scalar<dp_dp4a_uu>(r, "dp4a_u32_u32", "dp4a.u32.u32", 3, DP_ARGS_INTEGERS);
    dp_scalar<dp_dp4a_su>(r, "dp4a_s32_u32", "dp4a.s32.u32", 3, DP_ARGS_INTEGERS);
    dp_scalar<dp_dp4a_us>(r, "dp4a_u32_s32", "dp4a.u32.s32", 3, DP_ARGS_INTEGERS);
    if (r->capability == 100 || r->capability == 103) {
        dp_scalar<dp_rs_e4m3>(r, "cvt_rs_e4m3x4", "cvt.rs.satfinite.e4m3x4.f32", 2, DP_ARGS_RANDOM);
        dp_scalar<dp_rs_e5m2>(r, "cvt_rs_e5m2x4", "cvt.rs.satfinite.e5m2x4.f32", 2, DP_ARGS_RANDOM);
        dp_scalar<dp_rs_e2m1>(r, "cvt_rs_e2m1x4", "cvt.rs.satfinite.e2m1x4.f32", 2, DP_ARGS_RANDOM);
        dp_scalar<dp_rs_bf16>(r, "cvt_rs_bf16x2", "cvt.rs.bf16x2.f32", 2, DP_ARGS_RANDOM);
        dp_scalar<dp_rs_f16>(r, "cvt_rs_f16x2", "cvt.rs.f16x2.f32", 2, DP_ARGS_RANDOM);
    } else {
        dp_record_say(r, "cvt.rs: skipped, needs compute capability 10.0 or 10.3\n");
    }
}
