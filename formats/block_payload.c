/* SPDX-License-Identifier: MIT
 *
 * One block: its largest magnitude, its scale, its codes [B2], [B6]-[B8].
 */
#include <float.h>
#include <math.h>

#include "formats/block_internal.h"
#include "formats/e8m0.h"

static dp_block_scaler multiply_by(float factor)
{
    const dp_block_scaler how = {DP_SCALER_MULTIPLY, 1.0f, factor};
    return how;
}

static dp_block_scaler byte_zero_scaler(dp_byte0 rule)
{
    dp_block_scaler how = multiply_by(0.0f);
    if (rule == DP_BYTE0_CODE_ZERO) {
        how.kind = DP_SCALER_ZERO;
    } else if (rule == DP_BYTE0_FACTOR_ONE) {
        how.factor = 1.0f;
    } else if (rule == DP_BYTE0_FACTOR_MAX) {
        how.factor = FLT_MAX;
    }
    return how;
}

/* s of [B6] */
static float divisor(const dp_block_plan *plan, const uint8_t *scale, float t)
{
    const dp_block_recipe *r = &plan->recipe;
    float s = r->divisor == DP_DIVISOR_UNROUNDED ? t : dp_block_scale_value(r->scale, scale);
    if (isnan(s) && r->nan_scale_as_inf) {
        s = INFINITY;
    }
    if (r->divisor_add != 0.0f) {
        s = dp_block_flush(r, s + r->divisor_add);
    }
    return s < r->divisor_min ? r->divisor_min : s;
}

static dp_block_scaler amplitude_scaler(const dp_block_plan *plan, const uint8_t *scale)
{
    dp_block_scaler how = multiply_by(plan->max);
    if (scale[0] == DP_E8M0_NAN) {
        how.before = dp_f32_from_bits(DP_F32_NAN_CUDA);
    } else {
        const dp_e8m0 inverse = {(uint8_t)(2u * DP_E8M0_ONE - scale[0])};
        how.before = dp_e8m0_to_f32(inverse);
    }
    return how;
}

dp_block_scaler dp_block_scaler_make(const dp_block_plan *plan, const uint8_t *scale, float t)
{
    const dp_block_recipe *r = &plan->recipe;
    const bool special = r->byte0 == DP_BYTE0_EMPTY_ONLY ? t == 0.0f : r->byte0 != DP_BYTE0_VALUE;
    if (special && dp_block_byte_is_zero(plan, scale)) {
        return byte_zero_scaler(r->byte0);
    }
    if (r->quotient == DP_QUOTIENT_AMPLITUDE) {
        return amplitude_scaler(plan, scale);
    }
    const float s = divisor(plan, scale, t);
    dp_block_scaler how = {DP_SCALER_DIVIDE, 1.0f, s};
    switch (r->quotient) {
    case DP_QUOTIENT_DIV_SD:
        how.factor = dp_block_mul(r, s, plan->d);
        return how;
    case DP_QUOTIENT_RCP:
        return multiply_by(dp_block_mul(r, plan->g, dp_block_rcp(r, s)));
    case DP_QUOTIENT_RCP_SD: {
        const float inverse = dp_block_rcp(r, dp_block_mul(r, s, plan->d));
        return multiply_by(inverse > FLT_MAX ? FLT_MAX : inverse);
    }
    case DP_QUOTIENT_G_OVER_S:
        return multiply_by(dp_block_div(r, plan->g, s));
    case DP_QUOTIENT_RCP_D_S:
        return multiply_by(dp_block_div(r, dp_block_rcp(r, plan->d), s));
    default:
        how.before = plan->g;
        return how;
    }
}

/* What a first pass over the block finds. */
typedef struct {
    uint32_t amax_bits; /* of the elements that are not NaN */
    size_t nans, infs;
    size_t first_nan, first_inf;
} survey;

static survey look(const dp_block_recipe *r, const float *x, size_t n)
{
    survey found = {0, 0, 0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = dp_f32_bits(x[i]) & DP_F32_ABS;
        if (magnitude > DP_F32_INF) {
            found.first_nan = found.nans++ == 0 ? i : found.first_nan;
            continue;
        }
        if (magnitude == DP_F32_INF) {
            found.first_inf = found.infs++ == 0 ? i : found.first_inf;
        }
        if (magnitude > found.amax_bits && !(r->ftz && magnitude < 0x800000u)) {
            found.amax_bits = magnitude;
        }
    }
    return found;
}

static bool refused(const dp_block_recipe *r, const survey *found, size_t *bad)
{
    if (r->nan == DP_NAN_ERROR && found->nans != 0) {
        *bad = found->first_nan;
        return true;
    }
    if (r->inf == DP_INF_ERROR && found->infs != 0) {
        *bad = found->first_inf;
        return true;
    }
    return false;
}

/* Codes of the block and their part of the statistics. */
static void encode(const dp_block_plan *plan, dp_block_scaler scaler, const float *x, size_t n,
                   bool zero_scale, uint8_t *codes, dp_block_stats *stats)
{
    const dp_block_recipe *r = &plan->recipe;
    const uint64_t saturated_before = stats->saturated;
    for (size_t i = 0; i < n; i++) {
        const float v = dp_block_scaled(plan, scaler, x[i]);
        const uint32_t code = dp_minifloat_encode(dp_f32_bits(v), r->element, r->payload);
        codes[i] = (uint8_t)code;
        const uint32_t source = dp_f32_bits(x[i]) & DP_F32_ABS;
        const bool to_zero = (dp_minifloat_decode(code, r->element) & DP_F32_ABS) == 0;
        stats->flushed += source != 0 && source <= DP_F32_INF && (to_zero || zero_scale) ? 1u : 0u;
        stats->saturated += source < DP_F32_INF && fabsf(v) > plan->max ? 1u : 0u;
    }
    memset(codes + n, 0, r->block - n);
    stats->clipped_blocks += stats->saturated > saturated_before ? 1u : 0u;
}

static void count_block(const dp_block_plan *plan, const survey *found, size_t n, float t,
                        float value, dp_block_stats *stats)
{
    stats->blocks++;
    stats->elements += n;
    stats->padded += plan->recipe.block - n;
    stats->nan += found->nans;
    stats->inf += found->infs;
    stats->zero_blocks += found->amax_bits == 0 && found->nans == 0 ? 1u : 0u;
    stats->zero_scales += value == 0.0f ? 1u : 0u;
    stats->nan_scales += isnan(value) ? 1u : 0u;
    const bool e4m3_like =
        plan->recipe.scale == DP_SCALE_E4M3 || plan->recipe.scale == DP_SCALE_UE5M3;
    const float top = plan->recipe.scale == DP_SCALE_E4M3 ? 448.0f : 114688.0f;
    stats->saturated_scales +=
        e4m3_like && found->infs == 0 && found->nans == 0 && t > top && value == top ? 1u : 0u;
}

bool dp_block_quantize_one(const dp_block_plan *plan, const float *x, size_t n, uint8_t *codes,
                           uint8_t *scale, dp_block_stats *stats, size_t *bad)
{
    const dp_block_recipe *r = &plan->recipe;
    dp_block_stats unwanted = {0};
    stats = stats != NULL ? stats : &unwanted;
    const survey found = look(r, x, n);
    if (refused(r, &found, bad)) {
        return false;
    }
    float t = dp_f32_from_bits(DP_F32_NAN_CUDA);
    if ((r->nan == DP_NAN_PROPAGATE && found.nans != 0) ||
        (r->inf == DP_INF_NAN && found.infs != 0)) {
        dp_block_scale_nan(plan, scale);
    } else {
        dp_block_scale_of(plan, dp_f32_from_bits(found.amax_bits), x, n, scale, &t);
    }
    const float value = dp_block_scale_value(r->scale, scale);
    count_block(plan, &found, n, t, value, stats);
    encode(plan, dp_block_scaler_make(plan, scale, t), x, n, value == 0.0f, codes, stats);
    return true;
}
