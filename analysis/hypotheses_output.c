/* SPDX-License-Identifier: MIT
 *
 * Known mistakes of the stage output.
 */
#include <math.h>

#include "analysis/hypothesis.h"
#include "formats/bf16.h"
#include "formats/fp16.h"
#include "ref/arith/f32_fast.h"

#define C6  0x3E2AAAABu
#define C36 0x3CE38E39u
#define LN2 0x3F317218u

typedef enum {
    O_TRUNCATED,
    O_AWAY,
    O_EXACT_RECIPROCAL,
    O_DIVISION,
    O_PRODUCT_ORDER,
    O_THROUGH_F16,
    O_FACTOR_36,
    O_FACTOR_6,
    O_NOT_NORMALISED,
    O_OTHER_SFU,
    O_SHIFTED_UP,
    O_SHIFTED_DOWN,
    O_INVALID_NAN,
    O_INVALID_KEPT,
    O_FACTOR_2,
    O_FACTOR_HALF,
    O_BF16_SCALE,
    O_NO_C36,
    O_BF16_ACC,
    O_FACTOR_36_DOWN,
    O_UP,
    O_NORMALISED_TWICE
} output_rule;

static uint16_t truncated(float x)
{
    return (uint16_t)(dp_f32_bits(x) >> 16);
}

static uint16_t to_bf16(float x)
{
    return dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
}

static float through_bf16(float x)
{
    return dp_bf16_to_f32((dp_bf16){to_bf16(x)});
}

static const dp_sfu *other_sfu(const dp_sfu *sfu)
{
    return sfu == dp_sfu_exact() ? dp_sfu_h200() : dp_sfu_exact();
}

/* The factor of a row. */
static float row_scale(const dp_unit *unit, output_rule rule, float sum)
{
    const dp_sfu *sfu = rule == O_OTHER_SFU ? other_sfu(unit->launch.sfu) : unit->launch.sfu;
    const float c36 = dp_f32_from_bits(C36);
    const float c6 = dp_f32_from_bits(C6);
    const float inverse = rule == O_EXACT_RECIPROCAL ? 1.0f / sum : dp_rcp_approx_ftz(sfu, sum);
    const int shift = unit->launch.policy.shift;
    switch (rule) {
    case O_FACTOR_36:
        return inverse;
    case O_FACTOR_6:
        return dp_mul_rn_ftz(inverse, c6);
    case O_NOT_NORMALISED:
        return c36;
    case O_SHIFTED_UP:
        return ldexpf(dp_mul_rn_ftz(inverse, c36), shift);
    case O_SHIFTED_DOWN:
        return ldexpf(dp_mul_rn_ftz(inverse, c36), -shift);
    case O_FACTOR_2:
        return 2.0f * dp_mul_rn_ftz(inverse, c36);
    case O_FACTOR_HALF:
        return 0.5f * dp_mul_rn_ftz(inverse, c36);
    case O_FACTOR_36_DOWN:
        return dp_mul_rn_ftz(dp_mul_rn_ftz(inverse, c36), c36);
    case O_NORMALISED_TWICE:
        return dp_mul_rn_ftz(dp_mul_rn_ftz(inverse, inverse), c36);
    case O_BF16_SCALE:
        return through_bf16(dp_mul_rn_ftz(inverse, c36));
    default:
        return dp_mul_rn_ftz(inverse, c36);
    }
}

static uint16_t output_of(const dp_unit *unit, output_rule rule, float acc, float scale, float sum)
{
    const float c36 = dp_f32_from_bits(C36);
    float x = dp_mul_rn_ftz(acc, scale);
    switch (rule) {
    case O_TRUNCATED:
        return truncated(x);
    case O_AWAY:
        return truncated(dp_f32_from_bits(dp_f32_bits(x) + 0x8000u));
    case O_UP: /* away from zero, whatever is cut */
        return truncated(dp_f32_from_bits(dp_f32_bits(x) + 0xFFFFu));
    case O_DIVISION:
        x = acc / sum * c36;
        break;
    case O_PRODUCT_ORDER:
        x = dp_mul_rn_ftz(dp_mul_rn_ftz(acc, dp_rcp_approx_ftz(unit->launch.sfu, sum)), c36);
        break;
    case O_THROUGH_F16:
        x = dp_fp16_to_f32(dp_fp16_from_f32(x, DP_ENCODE_NONSAT));
        break;
    case O_BF16_ACC:
        x = dp_mul_rn_ftz(through_bf16(acc), scale);
        break;
    default:
        break;
    }
    return to_bf16(x);
}

static bool outputs_by(const dp_unit *unit, double argument, void *out)
{
    const output_rule rule = (output_rule)argument;
    const size_t features = unit->dump->features;
    for (size_t r = 0; r < unit->rows; r++) {
        const float sum = dp_ftz(dp_strip_f32(&unit->in, DP_DUMP_ROW_SUM)[r]);
        const float m = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
        const bool valid = sum > 0.0f && isfinite(sum) && isfinite(m);
        const float scale = valid || rule == O_INVALID_KEPT ? row_scale(unit, rule, sum) : 0.0f;
        for (size_t d = 0; d < features; d++) {
            uint16_t *o = (uint16_t *)out + r * features + d;
            const float acc = dp_strip_f32(&unit->in, DP_DUMP_ACC)[r * features + d];
            if (valid || rule == O_INVALID_KEPT) {
                *o = output_of(unit, rule, acc, scale, sum);
            } else if (rule == O_INVALID_NAN) {
                *o = 0x7FC0u;
            }
        }
    }
    return true;
}

/* ---- LSE ----------------------------------------------------------------------------------------
 */

typedef enum {
    LSE_ADD, /* argument: added, natural units, times `by` */
    LSE_BASE_2,
    LSE_NO_REFERENCE,
    LSE_RAW_REFERENCE, /* m without the multiplier */
    LSE_NEGATED,
    LSE_SUM_NATURAL, /* ln of the sum in software */
    LSE_INFINITE,    /* +inf for rows without keys */
    LSE_NAN,
    LSE_UNFUSED,
    LSE_OTHER_SFU,
    LSE_NATURAL_SCALED /* multiplied by ln 2 twice */
} lse_rule;

static float lse_of(const dp_unit *unit, lse_rule rule, float m, float sum)
{
    const dp_direct_p *launch = &unit->launch;
    const dp_sfu *sfu = rule == LSE_OTHER_SFU ? other_sfu(launch->sfu) : launch->sfu;
    const float ln2 = dp_f32_from_bits(LN2);
    const float log2_sum = dp_lg2_approx_ftz(sfu, sum);
    const float lift = launch->epoch == DP_EPOCH_R ? (float)launch->policy.shift : 0.0f;
    float x = dp_fma_rn_ftz(m, launch->multiplier, log2_sum);
    x = rule == LSE_NO_REFERENCE ? log2_sum : x;
    x = rule == LSE_RAW_REFERENCE ? dp_add_rn_ftz(m, log2_sum) : x;
    x = rule == LSE_NEGATED ? dp_fma_rn_ftz(-m, launch->multiplier, log2_sum) : x;
    x = rule == LSE_UNFUSED ? dp_add_rn_ftz(dp_mul_rn_ftz(m, launch->multiplier), log2_sum) : x;
    x = lift != 0.0f ? dp_add_rn_ftz(x, lift) : x;
    if (rule == LSE_BASE_2) {
        return x;
    }
    if (rule == LSE_SUM_NATURAL) {
        return (float)(((double)m * (double)launch->multiplier + (double)lift) *
                           0.6931471805599453 +
                       log((double)sum));
    }
    x = dp_mul_rn_ftz(x, ln2);
    return rule == LSE_NATURAL_SCALED ? dp_mul_rn_ftz(x, ln2) : x;
}

static bool lse_by(const dp_unit *unit, lse_rule rule, double add, double near, void *out)
{
    for (size_t r = 0; r < unit->rows; r++) {
        const float sum = dp_ftz(dp_strip_f32(&unit->in, DP_DUMP_ROW_SUM)[r]);
        const float m = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
        float *lse = (float *)out + r;
        if (sum > 0.0f && isfinite(sum) && isfinite(m)) {
            *lse = (float)((double)lse_of(unit, rule, m, sum) + add);
        } else if (rule == LSE_INFINITE || rule == LSE_NAN) {
            *lse = rule == LSE_NAN ? NAN : INFINITY;
        }
    }
    if (near > 0.0) {
        dp_hypothesis_near(unit, DP_DUMP_LSE, out, 2, near);
    }
    return true;
}

static bool lse_rules(const dp_unit *unit, double argument, void *out)
{
    return lse_by(unit, (lse_rule)argument, 0.0, 0.0, out);
}
static bool lse_added(const dp_unit *unit, double argument, void *out)
{
    return lse_by(unit, LSE_ADD, argument, 1e-6, out);
}
/* L ln 2 lost (-1) or added (1). */
static bool lse_shift(const dp_unit *unit, double argument, void *out)
{
    return lse_by(unit, LSE_ADD, argument * unit->launch.policy.shift * 0.6931471805599453, 1e-6,
                  out);
}
/* The row maximum's margin is lost. */
static bool lse_margin(const dp_unit *unit, double argument, void *out)
{
    const double by = (double)unit->launch.policy.margin * 0.6931471805599453 *
                      (double)unit->launch.multiplier * 0.6931471805599453;
    return unit->launch.policy.margin != 0 && lse_by(unit, LSE_ADD, argument * by, 1e-6, out);
}

#define O(name_, rule_, meaning_)                                                                  \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_O, .run = outputs_by, .argument = (rule_),                  \
        .meaning = (meaning_)                                                                      \
    }
#define LSE(name_, function_, argument_, meaning_)                                                 \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_LSE, .run = (function_), .argument = (argument_),           \
        .meaning = (meaning_)                                                                      \
    }

const dp_hypothesis dp_hypotheses_output[] = {
    O("o-truncated", O_TRUNCATED, "O is cut to bf16, not rounded"),
    O("o-ties-away", O_AWAY, "midpoints of bf16 go away from zero"),
    O("o-rounded-up", O_UP, "O is rounded away from zero"),
    O("exact-reciprocal", O_EXACT_RECIPROCAL, "1/sum is correctly rounded, not rcp.approx"),
    O("division", O_DIVISION, "O is divided by the sum, not multiplied by its reciprocal"),
    O("product-order", O_PRODUCT_ORDER, "(acc * rcp) / 36 instead of acc * (rcp / 36)"),
    O("f16-double-rounding", O_THROUGH_F16, "O went through f16"),
    O("bf16-double-rounding", O_BF16_ACC, "the accumulator went through bf16"),
    O("bf16-scale", O_BF16_SCALE, "the row's factor went through bf16"),
    O("factor-36", O_FACTOR_36, "1/36 is missing"),
    O("factor-6", O_FACTOR_6, "one of the two 1/6 is missing"),
    O("factor-1/36", O_FACTOR_36_DOWN, "1/36 is applied twice"),
    O("factor-2", O_FACTOR_2, "O is twice as large"),
    O("factor-1/2", O_FACTOR_HALF, "O is half as large: the sum counts double"),
    O("factor-2^L", O_SHIFTED_UP, "O is 2^L times too large (256 for L = 8)"),
    O("factor-2^-L", O_SHIFTED_DOWN, "O is 2^L times too small (256 for L = 8)"),
    O("not-normalised", O_NOT_NORMALISED, "O is not divided by the row sum"),
    O("normalised-twice", O_NORMALISED_TWICE, "O is divided by the row sum twice"),
    O("other-sfu", O_OTHER_SFU, "rcp is the other model's: exact or captured"),
    O("invalid-rows-nan", O_INVALID_NAN, "rows without a valid sum are NaN, not 0"),
    O("invalid-rows-kept", O_INVALID_KEPT, "rows without a valid sum are not zeroed"),
    LSE("lse-shift-lost", lse_shift, -1, "low by L ln 2: the shift is not restored (epoch S)"),
    LSE("lse-shift-added", lse_shift, 1, "high by L ln 2: the shift is restored (epoch R)"),
    LSE("lse-off-ln-6", lse_added, 1.791759469228055, "off by ln 6"),
    LSE("lse-off-ln-6", lse_added, -1.791759469228055, "off by -ln 6"),
    LSE("lse-off-ln-36", lse_added, 3.58351893845611, "off by ln 36"),
    LSE("lse-off-ln-36", lse_added, -3.58351893845611, "off by -ln 36"),
    LSE("lse-off-ln-12", lse_added, 2.4849066497880004, "off by ln 12"),
    LSE("lse-off-ln-12", lse_added, -2.4849066497880004, "off by -ln 12"),
    LSE("lse-off-ln-2", lse_added, 0.6931471805599453, "off by ln 2"),
    LSE("lse-off-ln-2", lse_added, -0.6931471805599453, "off by -ln 2"),
    LSE("lse-off-ln-448", lse_added, 6.104793232414985, "off by ln 448"),
    LSE("lse-off-ln-448", lse_added, -6.104793232414985, "off by -ln 448"),
    LSE("lse-off-ln-256", lse_added, 5.545177444479562, "off by ln 256"),
    LSE("lse-off-ln-256", lse_added, -5.545177444479562, "off by -ln 256"),
    LSE("lse-margin-lost", lse_margin, -1, "low by the margin of m"),
    LSE("lse-margin-lost", lse_margin, 1, "high by the margin of m"),
    LSE("lse-base-2", lse_rules, LSE_BASE_2, "in base 2, not base e"),
    LSE("lse-ln2-twice", lse_rules, LSE_NATURAL_SCALED, "ln 2 is applied twice"),
    LSE("lse-without-reference", lse_rules, LSE_NO_REFERENCE, "m is missing"),
    LSE("lse-reference-raw", lse_rules, LSE_RAW_REFERENCE, "m is added in raw units"),
    LSE("lse-reference-negated", lse_rules, LSE_NEGATED, "m is subtracted, not added"),
    LSE("lse-unfused", lse_rules, LSE_UNFUSED, "m * s is rounded before the sum"),
    LSE("lse-software-log", lse_rules, LSE_SUM_NATURAL, "a correctly rounded logarithm"),
    LSE("lse-other-sfu", lse_rules, LSE_OTHER_SFU, "lg2 is the other model's"),
    LSE("lse-plus-infinity", lse_rules, LSE_INFINITE, "rows without keys are +Inf, not -Inf"),
    LSE("lse-nan", lse_rules, LSE_NAN, "rows without keys are NaN, not -Inf"),
    {.name = NULL},
};
