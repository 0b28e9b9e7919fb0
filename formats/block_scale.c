/* SPDX-License-Identifier: MIT
 *
 * From the largest magnitude of a block to its stored scale [B3]-[B5].
 */
#include <float.h>
#include <math.h>

#include "formats/block_internal.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"

/* Bits above sqrt(2) = 0x3FB504F3.33...: the first f32 mantissa beyond the midpoint in log2. */
#define SQRT2_MANTISSA 0x3504F4u

static dp_minifloat scale_format(dp_scale_format format)
{
    return format == DP_SCALE_UE5M3 ? dp_ue5m3_format() : dp_ue4m3_format();
}

float dp_block_scale_value(dp_scale_format format, const uint8_t *scale)
{
    if (format == DP_SCALE_F32) {
        return dp_f32_from_bits((uint32_t)scale[0] | (uint32_t)scale[1] << 8 |
                                (uint32_t)scale[2] << 16 | (uint32_t)scale[3] << 24);
    }
    if (format == DP_SCALE_E8M0) {
        const dp_e8m0 code = {scale[0]};
        return dp_e8m0_to_f32(code);
    }
    return dp_f32_from_bits(dp_minifloat_decode(scale[0], scale_format(format)));
}

static void store_f32(uint8_t *scale, float value)
{
    const uint32_t bits = dp_f32_bits(value);
    for (unsigned i = 0; i < 4; i++) {
        scale[i] = (uint8_t)(bits >> (8u * i));
    }
}

void dp_block_scale_nan(const dp_block_plan *plan, uint8_t *scale)
{
    switch (plan->recipe.scale) {
    case DP_SCALE_F32:
        store_f32(scale, dp_f32_from_bits(DP_F32_NAN_CUDA));
        break;
    case DP_SCALE_E4M3:
        scale[0] = 0x7F;
        break;
    default:
        scale[0] = 0xFF;
        break;
    }
}

static float ratio(const dp_block_plan *p, float amax)
{
    const dp_block_recipe *r = &p->recipe;
    switch (r->ratio) {
    case DP_RATIO_RCP:
        return dp_block_mul(r, dp_block_mul(r, amax, p->rcp_max), p->g);
    case DP_RATIO_G_OVER:
        return dp_block_mul(r, amax, dp_block_div(r, p->g, p->max));
    case DP_RATIO_G_RCP:
        return dp_block_mul(r, amax, dp_block_mul(r, p->g, p->rcp_max));
    case DP_RATIO_DIV_D:
        return dp_block_div(r, dp_block_div(r, amax, p->max), p->d);
    case DP_RATIO_OVER_MAX_D:
        return dp_block_div(r, amax, dp_block_mul(r, p->max, p->d));
    default:
        return dp_block_mul(r, dp_block_div(r, amax, p->max), p->g);
    }
}

/* Exponent of amax under the floor rule; Inf counts as 2^128. */
static int floor_exponent(const dp_block_recipe *r, float amax)
{
    if (isinf(amax)) {
        return 128;
    }
    return r->log2_f32 ? (int)floorf((float)log2((double)amax)) : dp_block_exponent(amax);
}

/* 1 when amax lies strictly above its power of two. */
static int above_power(float amax)
{
    return isinf(amax) || ldexpf(1.0f, dp_block_exponent(amax)) == amax ? 0 : 1;
}

/* amax rounded half up to the mantissa of the element, in its bits: a carry goes into the exponent
 * and from FLT_MAX into Inf's field, as the sources do it. */
static int even_exponent(const dp_block_plan *p, float amax)
{
    const uint32_t half = 1u << (22u - p->recipe.element.mantissa_bits);
    const uint32_t bits = dp_f32_bits(amax) + (isinf(amax) ? 0u : half);
    return bits >> 23 == 0 ? dp_block_exponent(amax) : (int)(bits >> 23) - 127;
}

static int round_log2_exponent(float t)
{
    if (isinf(t)) {
        return 128;
    }
    const int exponent = dp_block_exponent(t);
    const uint32_t mantissa = dp_f32_bits(ldexpf(t, -exponent)) & 0x7FFFFFu;
    return exponent + (mantissa >= SQRT2_MANTISSA ? 1 : 0);
}

static uint8_t e8m0_byte(const dp_block_recipe *r, int exponent)
{
    const int code = exponent + 127;
    if (code < 0) {
        return r->low == DP_E8M0_LOW_WRAP ? (uint8_t)(code & 0xFF) : 0u;
    }
    return code > (int)DP_E8M0_MAX ? DP_E8M0_MAX : (uint8_t)code;
}

static uint8_t e8m0_cast(float t, dp_e8m0_round round)
{
    const dp_e8m0_encode how = {round, true};
    return dp_e8m0_from_f32(t, how).bits;
}

/* Squared error of the block under a scale byte, in double, in element order. */
static double block_error(const dp_block_plan *p, uint8_t byte, const float *x, size_t n)
{
    const dp_block_scaler scaler = dp_block_scaler_make(p, &byte, 0.0f);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const float v = dp_block_scaled(p, scaler, x[i]);
        const uint32_t code =
            dp_minifloat_encode(dp_f32_bits(v), p->recipe.element, p->recipe.payload);
        const double difference = dp_block_value(p, code, &byte) - (double)x[i];
        sum += difference * difference;
    }
    return sum;
}

/* floor and ceil of log2(amax/max) compare mantissas: max = 2^emax * m. */
static uint8_t best_l2(const dp_block_plan *p, float amax, const float *x, size_t n)
{
    const int exponent = dp_block_exponent(amax);
    const float mantissa = ldexpf(amax, -exponent);
    const float max_mantissa = ldexpf(p->max, -p->emax);
    const int low = exponent - p->emax - (mantissa < max_mantissa ? 1 : 0);
    const uint8_t down = e8m0_byte(&p->recipe, low);
    if (mantissa == max_mantissa) {
        return down;
    }
    const uint8_t up = e8m0_byte(&p->recipe, low + 1);
    return block_error(p, down, x, n) < block_error(p, up, x, n) ? down : up;
}

static uint8_t e8m0_scale(const dp_block_plan *p, float amax, float t, const float *x, size_t n)
{
    const dp_block_recipe *r = &p->recipe;
    switch (r->rule) {
    case DP_RULE_RCEIL:
        return e8m0_cast(t, DP_E8M0_UP);
    case DP_RULE_ROUND:
        return e8m0_cast(t, DP_E8M0_NEAREST_EVEN);
    case DP_RULE_ROUND_UP:
        return e8m0_cast(t, DP_E8M0_NEAREST_UP);
    case DP_RULE_FLOOR_RATIO:
        return e8m0_cast(t, DP_E8M0_DOWN);
    case DP_RULE_AMPLITUDE:
        return e8m0_cast(amax, DP_E8M0_NEAREST_EVEN);
    case DP_RULE_ROUND_LOG2:
        return t == 0.0f ? 0u : e8m0_byte(r, round_log2_exponent(t));
    default:
        break;
    }
    if (amax == 0.0f) {
        return 0;
    }
    switch (r->rule) {
    case DP_RULE_CEIL:
        return e8m0_byte(r, floor_exponent(r, amax) + above_power(amax) - p->emax);
    case DP_RULE_EVEN:
        return e8m0_byte(r, even_exponent(p, amax) - p->emax);
    case DP_RULE_BEST_L2:
        return isinf(amax) ? DP_E8M0_MAX : best_l2(p, amax, x, n);
    default:
        return e8m0_byte(r, floor_exponent(r, amax) - p->emax);
    }
}

/* The cast of t. An infinite t from a finite amax is a finite overflow. */
static void store_scale(const dp_block_plan *p, float t, uint8_t *scale)
{
    if (p->recipe.scale == DP_SCALE_F32) {
        store_f32(scale, isinf(t) && p->recipe.inf == DP_INF_SATURATE ? FLT_MAX : t);
    } else {
        scale[0] = (uint8_t)dp_minifloat_encode(dp_f32_bits(t), scale_format(p->recipe.scale),
                                                p->recipe.scale_encode);
    }
}

static void store_largest(const dp_block_plan *p, uint8_t *scale)
{
    switch (p->recipe.scale) {
    case DP_SCALE_F32:
        store_f32(scale, FLT_MAX);
        break;
    case DP_SCALE_E4M3:
        scale[0] = 0x7E;
        break;
    default:
        scale[0] = 0xFE;
        break;
    }
}

void dp_block_scale_of(const dp_block_plan *plan, float amax, const float *x, size_t n,
                       uint8_t *scale, float *unrounded)
{
    const dp_block_recipe *r = &plan->recipe;
    amax = dp_block_via(r->amax_via, dp_block_flush(r, amax));
    if (amax <= r->amax_zero) {
        amax = r->zero_amax == DP_ZERO_AMAX_ONE ? 1.0f : 0.0f;
    }
    float t = ratio(plan, amax);
    if (amax == 0.0f && r->zero_amax == DP_ZERO_SCALE_ONE) {
        t = 1.0f;
        /* where the exponent rules give 2^0 */
        amax = r->rule == DP_RULE_AMPLITUDE ? 1.0f : ldexpf(1.0f, plan->emax);
    }
    t = t < r->scale_min ? r->scale_min : t;
    const bool poisoned = t == 0.0f && r->zero_amax == DP_ZERO_SCALE_NAN;
    t = poisoned ? dp_f32_from_bits(DP_F32_NAN_CUDA) : t;
    if (unrounded != NULL) {
        *unrounded = t;
    }
    if (poisoned) {
        dp_block_scale_nan(plan, scale);
    } else if (isinf(amax) && r->inf != DP_INF_BINADE) {
        store_largest(plan, scale);
    } else if (r->scale == DP_SCALE_E8M0) {
        scale[0] = e8m0_scale(plan, amax, t, x, n);
    } else {
        store_scale(plan, t, scale);
    }
}
