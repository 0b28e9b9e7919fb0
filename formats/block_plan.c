/* SPDX-License-Identifier: MIT
 *
 * From a recipe to a plan: is it complete, and which constants follow from it.
 */
#include <math.h>

#include "formats/block_internal.h"
#include "formats/catalog.h"

static bool is_e8m0_rule(dp_scale_rule rule)
{
    return rule != DP_RULE_AMAX;
}

/* Rules that never look at t, where a global factor would enter. */
static bool is_exponent_rule(dp_scale_rule rule)
{
    return rule == DP_RULE_FLOOR || rule == DP_RULE_CEIL || rule == DP_RULE_EVEN ||
           rule == DP_RULE_AMPLITUDE || rule == DP_RULE_BEST_L2;
}

static bool check_fields(const dp_block_recipe *r, dp_error *error)
{
    const unsigned bits = r->element.has_sign + (unsigned)r->element.exponent_bits +
                          (unsigned)r->element.mantissa_bits;
    if (r->block < 1 || r->block > DP_BLOCK_MAX) {
        return dp_fail(error, "recipe: block length %zu: use 1 to %u", r->block, DP_BLOCK_MAX);
    }
    if (bits < 2 || bits > 8) {
        return dp_fail(error, "recipe: element of %u bits: use a format of at most 8 bits", bits);
    }
    if (!dp_encode_valid(r->payload) || !dp_encode_valid(r->scale_encode)) {
        return dp_fail(error, "recipe: rounding without an overflow rule: no specification defines "
                              "it: name the overflow rule");
    }
    if ((r->scale == DP_SCALE_E8M0) != is_e8m0_rule(r->rule)) {
        return dp_fail(error, "recipe: scale rule and scale format do not fit: use AMAX with E4M3, "
                              "UE5M3 or F32 scales and the other rules with E8M0");
    }
    if ((r->quotient == DP_QUOTIENT_AMPLITUDE) != (r->rule == DP_RULE_AMPLITUDE) ||
        (r->decode == DP_DECODE_AMPLITUDE) != (r->rule == DP_RULE_AMPLITUDE)) {
        return dp_fail(error, "recipe: the amplitude convention needs its rule, quotient and "
                              "decoder together: set all three or none");
    }
    if (r->rule == DP_RULE_BEST_L2 && r->divisor != DP_DIVISOR_STORED) {
        return dp_fail(error, "recipe: BEST_L2 compares stored scales: divide by the stored scale");
    }
    if (r->packing == DP_PACK_HALVES && (r->block % 2 != 0 || bits != 4)) {
        return dp_fail(error,
                       "recipe: split-half packing of %u-bit codes in blocks of %zu: use "
                       "4-bit codes and an even block",
                       bits, r->block);
    }
    if (!(r->scale_min >= 0.0f) || !(r->divisor_add >= 0.0f) || !(r->divisor_min >= 0.0f) ||
        !(r->amax_zero >= 0.0f)) {
        return dp_fail(error, "recipe: negative or NaN threshold: use 0 or more");
    }
    return true;
}

static void set_constants(dp_block_plan *plan)
{
    const dp_minifloat f = plan->recipe.element;
    const float given = plan->global.value;
    plan->max = (float)dp_minifloat_max(f);
    plan->rcp_max = 1.0f / plan->max;
    plan->emax = dp_block_exponent(plan->max);
    plan->g = plan->global.kind == DP_GLOBAL_DIV   ? given
              : plan->global.kind == DP_GLOBAL_MUL ? 1.0f / given
                                                   : 1.0f;
    plan->d = plan->global.kind == DP_GLOBAL_MUL   ? given
              : plan->global.kind == DP_GLOBAL_DIV ? 1.0f / given
                                                   : 1.0f;
    plan->element_bits = f.has_sign + f.exponent_bits + f.mantissa_bits <= 4 ? 4 : 8;
    plan->scale_size = plan->recipe.scale == DP_SCALE_F32 ? 4 : 1;
}

bool dp_block_plan_make(const dp_block_recipe *recipe, dp_global global, dp_block_plan *plan,
                        dp_error *error)
{
    if (!check_fields(recipe, error)) {
        return false;
    }
    if (global.kind != DP_GLOBAL_NONE && !(global.value > 0.0f && isfinite(global.value))) {
        return dp_fail(error,
                       "global scale %.9g: not a positive finite number: compute it from "
                       "the largest magnitude, or give 1",
                       (double)global.value);
    }
    if (global.kind != DP_GLOBAL_NONE && is_exponent_rule(recipe->rule)) {
        return dp_fail(error, "recipe: global scale with a scale rule that reads the exponent of "
                              "amax: MX formats have none: leave it out");
    }
    memset(plan, 0, sizeof *plan);
    plan->recipe = *recipe;
    plan->global = global;
    fenv_t callers;
    dp_environment_enter(&callers);
    set_constants(plan);
    dp_environment_leave(&callers);
    return true;
}

void dp_block_stats_add(dp_block_stats *sum, const dp_block_stats *more)
{
    sum->elements += more->elements;
    sum->padded += more->padded;
    sum->nan += more->nan;
    sum->inf += more->inf;
    sum->saturated += more->saturated;
    sum->flushed += more->flushed;
    sum->blocks += more->blocks;
    sum->zero_blocks += more->zero_blocks;
    sum->zero_scales += more->zero_scales;
    sum->saturated_scales += more->saturated_scales;
    sum->nan_scales += more->nan_scales;
    sum->clipped_blocks += more->clipped_blocks;
}
