/* SPDX-License-Identifier: MIT */
#include "ref/forward/classify.h"

#include <math.h>

#include "formats/bf16.h"
#include "formats/environment.h"
#include "ref/arith/f32_fast.h"
#include "ref/arith/sfu.h"

/* FP32 constants of the kernels, as bits. */
#define S0_D128                                                                                    \
    0x3E0293D5u /* what the kernels multiply raw scores by at D = 128: 25 ulp below                \
                   log2(e)/sqrt(128) */
#define LOG2_6 0x40257007u
#define SHIFT  0x3ED47FCCu /* 1 - log2(1.5): the byte switches at 0.75 * 2^k */
#define C6     0x3E2AAAABu /* 1/6 */
#define C36    0x3CE38E39u /* 1/36 */
#define C12    0x3DAAAAABu /* 1/12 */
#define LN2    0x3F317218u

/* fl() and fma() of the rules: one rounding to nearest, subnormals flushed, by integers. */
static float mul(float a, float b)
{
    return dp_f32_from_bits(dp_f32_mul(dp_f32_bits(a), dp_f32_bits(b), DP_F32_RN_FTZ));
}
static float add(float a, float b)
{
    return dp_f32_from_bits(dp_f32_add(dp_f32_bits(a), dp_f32_bits(b), DP_F32_RN_FTZ));
}
static float sub(float a, float b)
{
    return dp_f32_from_bits(dp_f32_sub(dp_f32_bits(a), dp_f32_bits(b), DP_F32_RN_FTZ));
}
static float fma_(float a, float b, float c)
{
    return dp_f32_from_bits(
        dp_f32_fma(dp_f32_bits(a), dp_f32_bits(b), dp_f32_bits(c), DP_F32_RN_FTZ));
}
static float constant(uint32_t bits)
{
    return dp_f32_from_bits(bits);
}

float dp_score_multiplier(double softmax_scale, float q_global, float k_global,
                          const dp_switches *switches)
{
    const double log2_e = 1.4426950408889634;
    float s0 = (float)(log2_e * softmax_scale);
    if (!switches->exact_multiplier && fabs(softmax_scale - 1.0 / sqrt(128.0)) < 1e-9) {
        s0 = constant(S0_D128);
    }
    return mul(mul(s0, q_global), k_global);
}

/* The smallest x whose exponential is at least `code`. The models are monotone, so that bisecting
 * over the ordered bit patterns of [-4, 4] finds it. */
static float ex2_threshold(const dp_sfu *sfu, int code)
{
    /* Patterns in the order of the numbers: negatives count down. */
    int64_t low = -(int64_t)dp_f32_bits(4.0f);
    int64_t high = (int64_t)dp_f32_bits(4.0f);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const uint32_t bits = middle < 0 ? (uint32_t)-middle | DP_F32_SIGN : (uint32_t)middle;
        if (dp_lane_code(dp_ex2_approx_ftz(sfu, constant(bits))) >= code) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return constant(low < 0 ? (uint32_t)-low | DP_F32_SIGN : (uint32_t)low);
}

static DP_NOINLINE void make(const dp_forward_policy *policy, dp_epoch epoch,
                             const dp_switches *switches, double softmax_scale, const dp_sfu *sfu,
                             dp_direct_p *made)
{
    dp_direct_p launch;
    memset(&launch, 0, sizeof launch);
    launch.policy = *policy;
    launch.epoch = epoch;
    launch.switches = *switches;
    launch.multiplier = dp_score_multiplier(softmax_scale, 1.0f, 1.0f, switches);
    launch.sfu = sfu != NULL ? sfu : dp_sfu_exact();
    for (int code = 1; code < 8; code++) {
        launch.ex2_threshold[code - 1] = ex2_threshold(launch.sfu, code);
    }
    *made = launch;
}

dp_direct_p dp_direct_p_make(const dp_forward_policy *policy, dp_epoch epoch,
                             const dp_switches *switches, double softmax_scale, const dp_sfu *sfu)
{
    dp_direct_p launch;
    fenv_t callers;
    dp_environment_enter(&callers);
    make(policy, epoch, switches, softmax_scale, sfu, &launch);
    dp_environment_leave(&callers);
    return launch;
}

float dp_row_reference(const dp_direct_p *launch, const float *raw)
{
    if (launch->policy.reference == DP_REFERENCE_NONE) {
        return 0.0f;
    }
    float largest = -INFINITY;
    for (int j = 0; j < launch->policy.anchor_keys; j++) {
        largest = raw[j] > largest ? raw[j] : largest;
    }
    const float margin = (float)launch->policy.margin;
    const float bias =
        launch->switches.margin_log2 ? margin / launch->multiplier : mul(margin, constant(LN2));
    return add(largest, bias);
}

int dp_block_byte(const dp_direct_p *launch, float block_max, float row_ref)
{
    const float d = sub(block_max, row_ref);
    const float g = fma_(d, launch->multiplier, 0.0f);
    const int32_t r = dp_f32_floor_s32(dp_f32_bits(add(g, constant(SHIFT))), true);
    /* The add wraps in 32 bits, so that a saturated r turns negative and ends at 0. */
    const int32_t u = (int32_t)((uint32_t)r + 127u);
    return u < 0 ? 0 : (u > 254 ? 254 : u);
}

int dp_working_byte(const dp_direct_p *launch, int u)
{
    const int floor_byte = launch->epoch == DP_EPOCH_S ? 1 : launch->policy.shift + 1;
    return u > floor_byte ? u : floor_byte;
}

int dp_stored_byte(const dp_direct_p *launch, int u)
{
    const int below = launch->epoch == DP_EPOCH_S ? 0 : 1;
    return u > launch->policy.shift ? u - launch->policy.shift : below;
}

/* Slope and folded offset of the affine lanes; other maps use q alone. */
static dp_block_scalars scalars_of(const dp_direct_p *launch, float q)
{
    const float a = launch->policy.coefficient[1];
    const dp_block_scalars block = {q, mul(a, launch->multiplier),
                                    fma_(a, q, launch->policy.coefficient[0])};
    return block;
}

static float base_of(const dp_direct_p *launch, float row_ref)
{
    return fma_(-row_ref, launch->multiplier, constant(LOG2_6));
}

dp_block_scalars dp_block_offsets(const dp_direct_p *launch, float row_ref, int working)
{
    return scalars_of(launch, sub(base_of(launch, row_ref), (float)(working - 127)));
}

dp_block_scalars dp_rebased_offsets(const dp_direct_p *launch, float row_ref, int working0, int u0,
                                    int u1)
{
    const float q0 = sub(base_of(launch, row_ref), (float)(working0 - 127));
    return scalars_of(launch, add(q0, (float)(u0 - u1)));
}

float dp_lane_value(const dp_direct_p *launch, dp_block_scalars block, bool native, float raw)
{
    const dp_forward_policy *policy = &launch->policy;
    if (!native && policy->map == DP_MAP_AFFINE) {
        return fma_(raw, block.as, block.ab);
    }
    float x = fma_(raw, launch->multiplier, block.q);
    if (native) {
        return dp_ex2_approx_ftz(launch->sfu, x);
    }
    x = x < policy->map_floor ? policy->map_floor : x;
    float y = policy->coefficient[policy->degree];
    for (int i = policy->degree - 1; i >= 0; i--) {
        y = fma_(y, x, policy->coefficient[i]);
    }
    return y;
}

uint8_t dp_lane_code(float value)
{
    if (value != value) {
        return 7;
    }
    /* Midpoints, ties to the even code: those below an odd code are compared strictly. */
    return (uint8_t)((value > 0.25f) + (value >= 0.75f) + (value > 1.25f) + (value >= 1.75f) +
                     (value > 2.5f) + (value >= 3.5f) + (value > 5.0f));
}

uint16_t dp_code_sum(const uint8_t *payload)
{
    static const uint8_t twice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    unsigned sum = 0;
    for (int i = 0; i < DP_BLOCK / 2; i++) {
        sum += (unsigned)twice[payload[i] & 7u] + twice[(payload[i] >> 4) & 7u];
    }
    return (uint16_t)sum;
}

/* Bytes of the four quarters, and which offsets each is coded with. */
static void plan_row(const dp_direct_p *launch, int stage, float row_ref,
                     const float block_max[DP_QUARTERS], dp_p_row *out,
                     dp_block_scalars blocks[DP_QUARTERS])
{
    for (int b = 0; b < DP_QUARTERS; b++) {
        const int u = dp_block_byte(launch, block_max[b], row_ref);
        out->raw_byte[b] = (uint8_t)u;
        out->working[b] = (uint8_t)dp_working_byte(launch, u);
        out->stored[b] = (uint8_t)dp_stored_byte(launch, u);
        blocks[b] = dp_block_offsets(launch, row_ref, out->working[b]);
    }
    if (launch->policy.rebase_q1 && stage == 0) {
        blocks[1] = dp_rebased_offsets(launch, row_ref, out->working[0], out->raw_byte[0],
                                       out->raw_byte[1]);
    }
}

static bool lane_is_native(const dp_direct_p *launch, int stage, int quarter, int pair)
{
    const bool rebased = launch->policy.rebase_q1 && stage == 0 && quarter == 1 &&
                         launch->policy.map == DP_MAP_AFFINE;
    return !rebased && dp_forward_policy_native_pair(&launch->policy, stage, quarter, pair);
}

static void clear_and_sum(const dp_direct_p *launch, dp_p_row *out)
{
    for (int b = 0; b < DP_QUARTERS; b++) {
        uint8_t *payload = out->payload + (size_t)b * (DP_BLOCK / 2);
        if (launch->policy.clear_zero && out->raw_byte[b] == 0) {
            memset(payload, 0, DP_BLOCK / 2);
        }
        out->code_sum[b] = dp_code_sum(payload);
    }
}

void dp_classify_row_scalar(const dp_direct_p *launch, int stage, float row_ref, const float *raw,
                            dp_p_row *out)
{
    float block_max[DP_QUARTERS];
    for (int b = 0; b < DP_QUARTERS; b++) {
        block_max[b] = -INFINITY;
        for (int j = 0; j < DP_BLOCK; j++) {
            const float x = raw[b * DP_BLOCK + j];
            block_max[b] = x > block_max[b] ? x : block_max[b];
        }
    }
    dp_block_scalars blocks[DP_QUARTERS];
    plan_row(launch, stage, row_ref, block_max, out, blocks);
    for (int j = 0; j < DP_TILE; j++) {
        const int quarter = j / DP_BLOCK;
        const bool native = lane_is_native(launch, stage, quarter, j % DP_BLOCK / 2);
        const uint8_t code = dp_lane_code(dp_lane_value(launch, blocks[quarter], native, raw[j]));
        uint8_t *byte = &out->payload[j / 2];
        *byte = (uint8_t)(j % 2 == 0 ? code : *byte | (code << 4));
    }
    clear_and_sum(launch, out);
}

/* ---- the same, 32 lanes at a time ---------------------------------------------------------- */

/* Smallest f32 that gets code k + 1: the midpoint, or the next float where a tie goes down. */
static const uint32_t VALUE_THRESHOLD[7] = {0x3E800001u, 0x3F400000u, 0x3FA00001u, 0x3FE00000u,
                                            0x40200001u, 0x40600000u, 0x40A00001u};

#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

/* code[j] = number of thresholds that fma(raw[j], slope, offset) is not below: 7 for a NaN. Neither
 * subnormal scores nor subnormal values are flushed here: no threshold is near zero, so that
 * flushing them cannot change a code. */
ALWAYS_INLINE void codes_of_block(const float *raw, float slope, float offset,
                                  const float threshold[7], bool fused, int32_t code[DP_BLOCK])
{
    for (int j = 0; j < DP_BLOCK; j++) {
        const float v = fused ? __builtin_fmaf(raw[j], slope, offset)
                              : dp_fma_by_doubles(raw[j], slope, offset);
        int32_t n = 0;
        for (int k = 0; k < 7; k++) {
            n += !(v < threshold[k]);
        }
        code[j] = n;
    }
}

ALWAYS_INLINE float max_of_block(const float *raw)
{
    float lane[16];
    for (int l = 0; l < 16; l++) {
        lane[l] = raw[l] > -INFINITY ? raw[l] : -INFINITY;
    }
    for (int l = 0; l < 16; l++) {
        lane[l] = raw[16 + l] > lane[l] ? raw[16 + l] : lane[l];
    }
    for (int width = 8; width > 0; width /= 2) {
        for (int l = 0; l < width; l++) {
            lane[l] = lane[l + width] > lane[l] ? lane[l + width] : lane[l];
        }
    }
    return lane[0];
}

ALWAYS_INLINE void classify_row(const dp_direct_p *launch, int stage, float row_ref,
                                const float *raw, dp_p_row *out, bool fused)
{
    float value_threshold[7];
    for (int k = 0; k < 7; k++) {
        value_threshold[k] = constant(VALUE_THRESHOLD[k]);
    }
    float block_max[DP_QUARTERS];
    for (int b = 0; b < DP_QUARTERS; b++) {
        block_max[b] = max_of_block(raw + (ptrdiff_t)b * DP_BLOCK);
    }
    dp_block_scalars blocks[DP_QUARTERS];
    plan_row(launch, stage, row_ref, block_max, out, blocks);
    const bool affine = launch->policy.map == DP_MAP_AFFINE;
    for (int b = 0; b < DP_QUARTERS; b++) {
        const float *scores = raw + (ptrdiff_t)b * DP_BLOCK;
        int32_t code[DP_BLOCK];
        int32_t native[DP_BLOCK];
        if (affine) {
            codes_of_block(scores, blocks[b].as, blocks[b].ab, value_threshold, fused, code);
        }
        if (!affine || launch->policy.density > 0) {
            codes_of_block(scores, launch->multiplier, blocks[b].q, launch->ex2_threshold, fused,
                           native);
            for (int j = 0; j < DP_BLOCK; j++) {
                code[j] = lane_is_native(launch, stage, b, j / 2) ? native[j] : code[j];
            }
        }
        for (int i = 0; i < DP_BLOCK / 2; i++) {
            out->payload[b * (DP_BLOCK / 2) + i] = (uint8_t)(code[2 * i] | code[2 * i + 1] << 4);
        }
    }
    clear_and_sum(launch, out);
}

static void classify_row_portable(const dp_direct_p *launch, int stage, float row_ref,
                                  const float *raw, dp_p_row *out)
{
    classify_row(launch, stage, row_ref, raw, out, false);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void classify_row_avx2(const dp_direct_p *launch,
                                                                  int stage, float row_ref,
                                                                  const float *raw, dp_p_row *out)
{
    classify_row(launch, stage, row_ref, raw, out, true);
}
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"))) static void
classify_row_avx512(const dp_direct_p *launch, int stage, float row_ref, const float *raw,
                    dp_p_row *out)
{
    classify_row(launch, stage, row_ref, raw, out, true);
}
#endif

void dp_classify_row(const dp_direct_p *launch, int stage, float row_ref, const float *raw,
                     dp_p_row *out)
{
    if (launch->policy.map == DP_MAP_POLYNOMIAL) { /* not monotone: no thresholds in x */
        dp_classify_row_scalar(launch, stage, row_ref, raw, out);
        return;
    }
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        classify_row_avx512(launch, stage, row_ref, raw, out);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        classify_row_avx2(launch, stage, row_ref, raw, out);
        return;
    }
#endif
    classify_row_portable(launch, stage, row_ref, raw, out);
}
