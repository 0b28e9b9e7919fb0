/* SPDX-License-Identifier: MIT
 *
 * From a recipe to the constants of a kernel, or to the answer that no kernel does it.
 */
#include "formats/bulk_block_plan.h"

#include <math.h>

#include "formats/block_internal.h"

static bool plain_recipe(const dp_block_recipe *r)
{
    return (r->block == 16 || r->block == 32) && r->packing == DP_PACK_PAIRS &&
           r->divisor == DP_DIVISOR_STORED && r->scale != DP_SCALE_F32 &&
           r->amax_via == DP_VIA_NONE && r->quotient_via == DP_VIA_NONE && !r->ftz &&
           !r->log2_f32 && r->low == DP_E8M0_LOW_CLIP && r->nan != DP_NAN_ERROR &&
           r->inf != DP_INF_ERROR && r->zero_amax != DP_ZERO_SCALE_ONE;
}

static void plan_ratio(const dp_block_plan *plan, dp_bulk_block_plan *fast)
{
    const dp_block_recipe *r = &plan->recipe;
    fast->first_divides =
        r->ratio == DP_RATIO_DIV || r->ratio == DP_RATIO_DIV_D || r->ratio == DP_RATIO_OVER_MAX_D;
    fast->second_divides = r->ratio == DP_RATIO_DIV_D;
    fast->first = plan->max;
    fast->second = 1.0f;
    switch (r->ratio) {
    case DP_RATIO_RCP:
        fast->first = plan->rcp_max;
        fast->second = plan->g;
        break;
    case DP_RATIO_G_OVER:
        fast->first = dp_block_div(r, plan->g, plan->max);
        break;
    case DP_RATIO_G_RCP:
        fast->first = dp_block_mul(r, plan->g, plan->rcp_max);
        break;
    case DP_RATIO_DIV_D:
        fast->second = plan->d;
        break;
    case DP_RATIO_OVER_MAX_D:
        fast->first = dp_block_mul(r, plan->max, plan->d);
        break;
    default:
        fast->second = plan->g;
        break;
    }
    fast->scale_min = r->scale_min;
}

static bool plan_power(const dp_block_plan *plan, dp_bulk_block_plan *fast)
{
    const dp_block_recipe *r = &plan->recipe;
    dp_e8m0_encode how = {DP_E8M0_NEAREST_EVEN, true};
    fast->kind = DP_BULK_SCALE_T;
    switch (r->rule) {
    case DP_RULE_FLOOR:
        fast->kind = DP_BULK_SCALE_FIELD;
        break;
    case DP_RULE_CEIL:
        fast->kind = DP_BULK_SCALE_FIELD;
        fast->field_add = 0x7FFFFFu;
        break;
    case DP_RULE_EVEN:
        fast->kind = DP_BULK_SCALE_FIELD;
        fast->field_add = 1u << (22u - r->element.mantissa_bits);
        break;
    case DP_RULE_AMPLITUDE:
        fast->kind = DP_BULK_SCALE_AMAX;
        break;
    case DP_RULE_RCEIL:
        how.round = DP_E8M0_UP;
        break;
    case DP_RULE_FLOOR_RATIO:
        how.round = DP_E8M0_DOWN;
        break;
    case DP_RULE_ROUND:
        break;
    default:
        return false;
    }
    fast->power = dp_bulk_plan_e8m0(how);
    fast->emax = (uint32_t)plan->emax;
    /* Exponents of subnormal amax end at or below byte 0 only when emax takes one off. */
    return fast->kind != DP_BULK_SCALE_FIELD || plan->emax >= 1;
}

static bool plan_scale(const dp_block_plan *plan, dp_bulk_block_plan *fast)
{
    const dp_block_recipe *r = &plan->recipe;
    fast->ignore_nan = r->nan == DP_NAN_IGNORE;
    fast->amax_zero = dp_f32_bits(r->amax_zero) & DP_F32_ABS;
    fast->amax_small = r->zero_amax == DP_ZERO_AMAX_ONE ? dp_f32_bits(1.0f) : 0u;
    fast->inf_replaced = r->inf != DP_INF_BINADE;
    fast->nan_byte = r->scale == DP_SCALE_E4M3 ? 0x7Fu : 0xFFu;
    fast->inf_byte = r->inf == DP_INF_NAN ? fast->nan_byte : fast->nan_byte - 1u;
    if (r->inf == DP_INF_NAN && isinf(r->amax_zero)) {
        return false; /* an Inf counted as zero and refused at once */
    }
    if (r->scale == DP_SCALE_E8M0) {
        return plan_power(plan, fast);
    }
    fast->kind = DP_BULK_SCALE_CAST;
    fast->cast = dp_bulk_plan_minifloat(
        r->scale == DP_SCALE_E4M3 ? dp_ue4m3_format() : dp_ue5m3_format(), r->scale_encode);
    return fast->cast.vector;
}

/* The scaler of every stored byte. One block may multiply where the others divide only if the
 * product has a quotient that is the same: by 0 as by Inf, by 1. */
static bool plan_quotient(const dp_block_plan *plan, dp_bulk_block_plan *fast)
{
    const uint8_t one = 1;
    fast->divides = dp_block_scaler_make(plan, &one, 0.0f).kind == DP_SCALER_DIVIDE;
    for (uint32_t code = 0; code < 256; code++) {
        const uint8_t byte = (uint8_t)code;
        const dp_block_scaler how = dp_block_scaler_make(plan, &byte, 0.0f);
        fast->before[code] = how.before;
        fast->factor[code] = how.factor;
        fast->scales = fast->scales || how.before != 1.0f;
        if (how.kind == DP_SCALER_ZERO) {
            fast->zero_codes = true; /* byte 0 alone */
            fast->before[code] = 1.0f;
            fast->factor[code] = 1.0f;
        } else if ((how.kind == DP_SCALER_DIVIDE) != fast->divides) {
            if (how.kind == DP_SCALER_DIVIDE || (how.factor != 0.0f && how.factor != 1.0f)) {
                return false;
            }
            fast->factor[code] = how.factor == 0.0f ? INFINITY : 1.0f;
        }
    }
    return true;
}

/* 1 / x where that is exact for the sake of products: powers of two, Inf, NaN. */
static bool exact_inverse(float x, float *inverse)
{
    *inverse = isnan(x) ? x : 1.0f / x;
    int exponent;
    return isnan(x) || isinf(x) || (frexpf(x, &exponent) == 0.5f && isfinite(*inverse));
}

/* Divisions by powers of two become products: both are the same real number rounded once. And
 * whether a scaled element that is subnormal, as an intermediate or as a result, ends as code 0
 * anyway: the payload's grid begins above 2^-80. */
static void finish_quotient(dp_bulk_block_plan *fast)
{
    float inverse[256];
    bool exact = fast->divides;
    for (size_t i = 0; i < 256; i++) {
        exact = exact_inverse(fast->factor[i], &inverse[i]) && exact;
    }
    if (exact) {
        memcpy(fast->factor, inverse, sizeof inverse);
        fast->divides = false;
    }
    fast->flush_safe = true;
    for (size_t i = 0; fast->scales && i < 256; i++) {
        const float f = fast->factor[i];
        const bool tame = fast->divides ? f >= 0x1p-20f : f <= 0x1p20f;
        fast->flush_safe = fast->flush_safe && (tame || isnan(f));
    }
}

/* Under this byte a subnormal element ends as code 0, and no constant is subnormal itself. */
static bool tame_byte(const dp_bulk_block_plan *fast, size_t byte)
{
    const float f = fast->factor[byte];
    const float before = fast->before[byte];
    const bool factor =
        fast->divides ? f >= 0x1p-20f && isfinite(f) : f >= 0x1p-126f && f <= 0x1p20f;
    return factor && before >= 0x1p-126f && before <= 0x1p20f;
}

/* The longest run of tame bytes. */
static void find_tame(dp_bulk_block_plan *fast)
{
    uint32_t run = 0;
    for (uint32_t byte = 0; fast->flush_safe && byte < 256; byte++) {
        run = tame_byte(fast, byte) ? run + 1u : 0u;
        if (run > fast->tame_count) {
            fast->tame_count = run;
            fast->tame_first = byte + 1u - run;
        }
    }
}

bool dp_bulk_block_plan_make(const dp_block_plan *plan, dp_bulk_block_plan *fast)
{
    const dp_block_recipe *r = &plan->recipe;
    memset(fast, 0, sizeof *fast);
    if (!plain_recipe(r)) {
        return false;
    }
    fast->block = r->block;
    fast->element = dp_bulk_plan_minifloat(r->element, r->payload);
    fast->width = plan->element_bits == 4 ? DP_BULK_NIBBLES : DP_BULK_BYTES;
    plan_ratio(plan, fast);
    const bool fits = fast->element.vector && fast->element.nan_sign == 0 &&
                      plan_scale(plan, fast) && plan_quotient(plan, fast);
    finish_quotient(fast);
    find_tame(fast);
    return fits;
}

bool dp_bulk_block_is_fast(const dp_block_plan *plan)
{
    dp_bulk_block_plan fast;
    fenv_t callers;
    dp_environment_enter(&callers);
    const bool answer = dp_bulk_block_plan_make(plan, &fast);
    dp_environment_leave(&callers);
    return answer;
}
