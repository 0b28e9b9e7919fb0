/* SPDX-License-Identifier: MIT
 *
 * Public failures that concern blocks and scales, each a test named after its number in
 * tests/CASES.md.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "formats/fp16.h"
#include "formats/nvfp4.h"
#include "formats/preset.h"
#include "support.h"

static const dp_global no_global = {DP_GLOBAL_NONE, 1.0f};

static dp_block_recipe preset(const char *name)
{
    dp_preset found;
    dp_error error = {{0}};
    ck_assert_msg(dp_preset_find(name, &found, &error), "%s", error.text);
    return found.recipe;
}

typedef struct {
    dp_block_plan plan;
    uint8_t codes[64];
    uint8_t scale;
    dp_block_stats stats;
} result;

static result quantize(dp_block_recipe recipe, dp_global global, const float *x, size_t n)
{
    result r;
    memset(&r, 0, sizeof r);
    dp_error error = {{0}};
    size_t bad = 0;
    ck_assert_msg(dp_block_plan_make(&recipe, global, &r.plan, &error), "%s", error.text);
    ck_assert(dp_block_quantize_one(&r.plan, x, n, r.codes, &r.scale, &r.stats, &bad));
    return r;
}

static float value(const result *r, size_t i)
{
    return dp_block_value_f32(&r->plan, r->codes[i], &r->scale);
}

/* Scale byte of a block whose largest magnitude is amax. */
static unsigned scale_byte(dp_block_recipe recipe, float amax)
{
    const float x[2] = {amax, 0.0f};
    return quantize(recipe, no_global, x, 2).scale;
}

START_TEST(case_01_ties_under_unit_scale)
{
    const float x[8] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f};
    static const uint8_t even[8] = {0, 2, 2, 4, 4, 6, 6, 7};
    static const uint8_t down[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    ck_assert_mem_eq(quantize(preset("PTX:nvfp4"), no_global, x, 8).codes, even, 8);
    ck_assert_mem_eq(quantize(preset("RANGE:nvfp4"), no_global, x, 8).codes, down, 8);
}
END_TEST

START_TEST(case_07_minus_zero_in_a_block)
{
    const float x[4] = {-0.0f, -0.2f, -0.25f, 6.0f};
    static const uint8_t kept[4] = {8, 8, 8, 7};
    static const uint8_t lost[4] = {0, 0, 0, 7};
    ck_assert_mem_eq(quantize(preset("PTX:nvfp4"), no_global, x, 4).codes, kept, 4);
    ck_assert_mem_eq(quantize(preset("GGML:mxfp4"), no_global, x, 4).codes, lost, 4);
}
END_TEST

/* 0.25 + 2^-20 is just above the tie; half and bf16 round it onto the tie. */
START_TEST(case_25_double_rounding_of_an_element)
{
    const float x[2] = {0.25f + 0x1p-20f, 6.0f};
    dp_block_recipe recipe = preset("PTX:nvfp4");
    ck_assert_uint_eq(quantize(recipe, no_global, x, 2).codes[0], 1);
    recipe.quotient_via = DP_VIA_FP16;
    ck_assert_uint_eq(quantize(recipe, no_global, x, 2).codes[0], 0);
    recipe.quotient_via = DP_VIA_BF16;
    ck_assert_uint_eq(quantize(recipe, no_global, x, 2).codes[0], 0);
    const float y[2] = {1.0625001f, 448.0f};
    dp_block_recipe fp8 = preset("PTX:mxfp8-e4m3");
    ck_assert_uint_eq(quantize(fp8, no_global, y, 2).codes[0], 0x39);
    fp8.quotient_via = DP_VIA_FP16;
    ck_assert_uint_eq(quantize(fp8, no_global, y, 2).codes[0], 0x38);
}
END_TEST

START_TEST(case_27_amax_cut_to_bf16)
{
    const float amax = dp_f32_from_bits(0x3FFF8000u); /* 1.99609375 */
    dp_block_recipe recipe = preset("OCP:mxfp4");
    ck_assert_uint_eq(scale_byte(recipe, amax), 127 - 2);
    recipe.amax_via = DP_VIA_BF16;
    ck_assert_uint_eq(scale_byte(recipe, amax), 128 - 2);
}
END_TEST

/* Adjacent bf16 inputs, both codes right: the nearness label says which differences are explained
 * by the input. */
START_TEST(case_29_one_bf16_ulp_upstream)
{
    const dp_ue4m3 one = {0x38};
    dp_nearness nearness = DP_CLEAR;
    ck_assert_uint_eq(dp_nvfp4_exact_code(0.75f, one, 1.0f, DP_RNE, &nearness).bits, 2);
    ck_assert_int_eq((int)nearness, (int)DP_TIE);
    ck_assert_uint_eq(dp_nvfp4_exact_code(0.74609375f, one, 1.0f, DP_RNE, &nearness).bits, 1);
    ck_assert_int_eq((int)nearness, (int)DP_CLEAR);
}
END_TEST

START_TEST(case_30_scale_code_0_is_not_zero)
{
    const uint8_t zero = 0;
    result r = quantize(preset("OCP:mxfp8-e4m3"), no_global, (float[1]){0.0f}, 1);
    ck_assert_uint_eq(r.scale, 0);
    ck_assert_uint_eq(dp_f32_bits(dp_block_value_f32(&r.plan, 0x38, &zero)), 0x00400000u);
    ck_assert_double_eq(dp_block_value(&r.plan, 0x38, &zero), 0x1p-127);
    ck_assert_uint_eq(r.stats.zero_scales, 0);
    /* in half it is gone */
    ck_assert_uint_eq(dp_fp16_from_f32(0x1p-127f, DP_ENCODE_PTX).bits, 0);
    ck_assert_uint_eq(dp_bf16_from_f32(0x1p-127f, DP_ENCODE_PTX).bits, 0x0040);
}
END_TEST

START_TEST(case_32_nearest_power_ties_to_the_even_code)
{
    static const struct {
        float t;
        unsigned code;
    } golden[] = {{3.0f, 0x80}, {0.75f, 0x7E}, {1.5f, 0x80}, {6.0f, 0x82}};
    dp_block_recipe recipe = preset("PTX:mxfp4");
    recipe.rule = DP_RULE_ROUND;
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(scale_byte(recipe, golden[i].t * 6.0f), golden[i].code);
    }
    int down = 0;
    const dp_e8m0_encode how = {DP_E8M0_NEAREST_EVEN, true};
    for (int k = 0; k < 254; k++) {
        const float middle = ldexpf(1.5f, k - 127);
        down += dp_e8m0_from_f32(middle, how).bits == k ? 1 : 0;
    }
    ck_assert_int_eq(down, 127);
}
END_TEST

START_TEST(case_34_inverse_of_the_largest_scale)
{
    const float x[4] = {INFINITY, 1.0f, -INFINITY, 0.0f};
    static const uint8_t codes[4] = {0x7E, 0x00, 0xFE, 0x00};
    const result r = quantize(preset("PTX:mxfp8-e4m3"), no_global, x, 4);
    ck_assert_uint_eq(r.scale, 0xFE);
    ck_assert_mem_eq(r.codes, codes, 4);
    ck_assert_uint_eq(r.stats.inf, 2);
    /* a stack that multiplies by the reciprocal must have a subnormal one */
    const result te = quantize(preset("TE:mxfp8-e4m3"), no_global, x, 4);
    ck_assert_uint_eq(te.scale, 0xFE);
    ck_assert_mem_eq(te.codes, codes, 4);
}
END_TEST

START_TEST(case_36_negative_scale_inputs)
{
    const dp_e8m0_encode down = {DP_E8M0_DOWN, true};
    const dp_e8m0_encode up = {DP_E8M0_UP, true};
    ck_assert_uint_eq(dp_e8m0_from_f32(-2.0f, down).bits, 0x80);
    ck_assert_uint_eq(dp_e8m0_from_f32(-3.0f, down).bits, 0x80);
    ck_assert_uint_eq(dp_e8m0_from_f32(-3.0f, up).bits, 0x81);
    /* a quantizer never hands one over */
    ck_assert_uint_eq(scale_byte(preset("PTX:mxfp4"), -12.0f), 0x80);
    dp_block_plan plan;
    dp_error error = {{0}};
    const dp_block_recipe recipe = preset("PTX:nvfp4");
    const dp_global negative = {DP_GLOBAL_MUL, -1.0f};
    ck_assert(!dp_block_plan_make(&recipe, negative, &plan, &error));
}
END_TEST

START_TEST(case_37_zero_and_inf_scales)
{
    dp_e8m0_encode how = {DP_E8M0_UP, true};
    ck_assert_uint_eq(dp_e8m0_from_f32(0.0f, how).bits, 0x00);
    ck_assert_uint_eq(dp_e8m0_from_f32(INFINITY, how).bits, 0xFE);
    ck_assert_uint_eq(dp_e8m0_from_f32(FLT_MAX, how).bits, 0xFE);
    ck_assert_uint_eq(dp_e8m0_from_f32(NAN, how).bits, 0xFF);
    how.satfinite = false;
    ck_assert_uint_eq(dp_e8m0_from_f32(INFINITY, how).bits, 0xFF);
    ck_assert_uint_eq(dp_e8m0_from_f32(FLT_MAX, how).bits, 0xFF);
    how.round = DP_E8M0_DOWN;
    ck_assert_uint_eq(dp_e8m0_from_f32(FLT_MAX, how).bits, 0xFE);
    /* every preset: a block of zeros decodes to zeros, whatever its scale byte */
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        const float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        const result r = quantize(row.recipe, no_global, x, 4);
        if (row.recipe.zero_amax == DP_ZERO_SCALE_NAN) {
            ck_assert_uint_eq(r.scale, 0xFF);
            continue;
        }
        const bool naive = row.recipe.byte0 == DP_BYTE0_VALUE && r.scale == 0 &&
                           row.recipe.scale != DP_SCALE_E8M0; /* 0/0 gives code 0x7 or 0x8 */
        if (!naive || row.recipe.divisor_add > 0.0f) {
            ck_assert_msg(r.codes[0] == 0, "%s:%s", row.preset, row.format);
        }
        ck_assert_msg(value(&r, 0) == 0.0f, "%s:%s", row.preset, row.format);
    }
}
END_TEST

START_TEST(case_39_scales_are_exponents)
{
    const uint8_t bytes[4] = {0x7F, 0x7C, 0x9F, 0xFE};
    static const double values[4] = {1.0, 0.125, 4294967296.0, 0x1p127};
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq((double)dp_block_scale_value(DP_SCALE_E8M0, &bytes[i]), values[i]);
    }
    /* the product of two scales leaves f32 and not double */
    ck_assert_double_eq((double)dp_block_scale_value(DP_SCALE_E8M0, &bytes[3]) *
                            (double)dp_block_scale_value(DP_SCALE_E8M0, &bytes[3]),
                        0x1p254);
}
END_TEST

START_TEST(case_40_floor_ceil_rceil)
{
    static const float amax[4] = {150.0f, 448.0f, 449.0f, 512.0f};
    static const unsigned floor_codes[4] = {126, 127, 127, 128};
    static const unsigned ceil_codes[4] = {127, 128, 128, 128};
    static const unsigned rceil_codes[4] = {126, 127, 128, 128};
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(scale_byte(preset("OCP:mxfp8-e4m3"), amax[i]), floor_codes[i]);
        ck_assert_uint_eq(scale_byte(preset("TORCHAO-CEIL:mxfp8-e4m3"), amax[i]), ceil_codes[i]);
        ck_assert_uint_eq(scale_byte(preset("PTX:mxfp8-e4m3"), amax[i]), rceil_codes[i]);
    }
}
END_TEST

START_TEST(case_41_exponent_of_the_ratio)
{
    static const float amax[5] = {2.7f, 5.5f, 1.2f, 4.0f, 7.9f};
    static const unsigned floor_codes[5] = {126, 127, 125, 127, 127};
    static const unsigned rceil_codes[5] = {126, 127, 125, 127, 128};
    static const unsigned bug_codes[5] = {125, 126, 124, 126, 127};
    dp_block_recipe bug = preset("OCP:mxfp4");
    bug.rule = DP_RULE_FLOOR_RATIO;
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(scale_byte(preset("OCP:mxfp4"), amax[i]), floor_codes[i]);
        ck_assert_uint_eq(scale_byte(preset("PTX:mxfp4"), amax[i]), rceil_codes[i]);
        ck_assert_uint_eq(scale_byte(bug, amax[i]), bug_codes[i]);
        const float x[1] = {amax[i]};
        ck_assert_uint_eq(quantize(bug, no_global, x, 1).stats.clipped_blocks, 1);
    }
    /* under floor clipping is conformant, and counted */
    const float x[1] = {7.9f};
    const result r = quantize(preset("OCP:mxfp4"), no_global, x, 1);
    ck_assert_uint_eq(r.stats.clipped_blocks, 1);
    ck_assert_float_eq(value(&r, 0), 6.0f);
}
END_TEST

START_TEST(case_44_nearest_scale_clips)
{
    const float x[1] = {632.0f};
    dp_block_recipe nearest = preset("PTX:mxfp8-e4m3");
    nearest.rule = DP_RULE_ROUND_LOG2;
    const result r = quantize(nearest, no_global, x, 1);
    ck_assert_uint_eq(r.scale, 127);
    ck_assert_float_eq(value(&r, 0), 448.0f);
    const result up = quantize(preset("PTX:mxfp8-e4m3"), no_global, x, 1);
    ck_assert_uint_eq(up.scale, 128);
    ck_assert_float_le(fabsf(value(&up, 0) - 632.0f) / 632.0f, 0.0625f);
    /* Log-uniform maxima under floor: E2M1 clips 1 - log2(1.5) of them. */
    uint64_t clipped = 0;
    const int n = 20000;
    for (int i = 0; i < n; i++) {
        const float y[1] = {exp2f((float)i / (float)n)};
        clipped += quantize(preset("OCP:mxfp4"), no_global, y, 1).stats.clipped_blocks;
    }
    ck_assert_double_eq_tol((double)clipped / n, 1.0 - log2(1.5), 1e-3);
    /* Nearest in log2 never loses more than 1 - 1/sqrt(2). */
    double worst = 0.0;
    for (int i = 0; i < n; i++) {
        const float y[1] = {exp2f((float)i / (float)n)};
        const result z = quantize(nearest, no_global, y, 1);
        worst = fmax(worst, 1.0 - (double)value(&z, 0) / (double)y[0]);
    }
    ck_assert_double_le(worst, 1.0 - sqrt(0.5) + 1e-6);
    ck_assert_double_ge(worst, 0.29);
}
END_TEST

START_TEST(case_45_divide_by_what_is_stored)
{
    const float x[1] = {3.1f};
    const result right = quantize(preset("PTX:mxfp4"), no_global, x, 1);
    ck_assert_uint_eq(right.scale, 127);
    ck_assert_uint_eq(right.codes[0], 5);
    dp_block_recipe bug = preset("PTX:mxfp4");
    bug.divisor = DP_DIVISOR_UNROUNDED;
    const result wrong = quantize(bug, no_global, x, 1);
    ck_assert_uint_eq(wrong.codes[0], 7);
    ck_assert_float_eq(value(&wrong, 0), 6.0f);
}
END_TEST

START_TEST(case_47_every_power_of_two)
{
    dp_tally tally = {0};
    static const char *const formats[] = {"mxfp4", "mxfp8-e4m3", "mxfp8-e5m2"};
    static const int emax[] = {2, 8, 15};
    for (int f = 0; f < 3; f++) {
        for (int k = -126; k <= 127; k++) {
            char floor_name[40];
            char ceil_name[40];
            char even_name[40];
            char up_name[40];
            (void)snprintf(floor_name, sizeof floor_name, "OCP:%s", formats[f]);
            (void)snprintf(ceil_name, sizeof ceil_name, "TORCHAO-CEIL:%s", formats[f]);
            (void)snprintf(even_name, sizeof even_name, "TORCHAO-EVEN:%s", formats[f]);
            (void)snprintf(up_name, sizeof up_name, "PTX:%s", formats[f]);
            const float amax = ldexpf(1.0f, k);
            const int want = k - emax[f] + 127 < 0 ? 0 : k - emax[f] + 127;
            const int got[4] = {
                (int)scale_byte(preset(floor_name), amax), (int)scale_byte(preset(ceil_name), amax),
                (int)scale_byte(preset(even_name), amax), (int)scale_byte(preset(up_name), amax)};
            /* 2^k / max lies in (2^(k-emax-1), 2^(k-emax)], so rounding up agrees too */
            for (int i = 0; i < 4; i++) {
                if (!dp_tally_check(&tally, got[i] == want)) {
                    dp_tally_note(&tally, "%s rule %d 2^%d: %d not %d", formats[f], i, k, got[i],
                                  want);
                }
            }
        }
    }
    dp_assert_tally(tally, 3 * 254 * 4);
}
END_TEST

/* floor(log2f(x)) is one too high just below most powers of two. */
START_TEST(case_47_log2_in_f32_is_not_exact)
{
    int wrong = 0;
    dp_block_recipe exact = preset("GGML:mxfp4");
    exact.log2_f32 = false;
    exact.low = DP_E8M0_LOW_CLIP;
    dp_block_recipe ggml = preset("GGML:mxfp4");
    ggml.low = DP_E8M0_LOW_CLIP;
    for (int k = -120; k <= 127; k++) {
        const float below = nextafterf(ldexpf(1.0f, k), 0.0f);
        wrong += scale_byte(ggml, below) != scale_byte(exact, below) ? 1 : 0;
        ck_assert_uint_eq(scale_byte(ggml, ldexpf(1.0f, k)), scale_byte(exact, ldexpf(1.0f, k)));
    }
    ck_assert_int_ge(wrong, 240);
    /* and tiny blocks wrap the byte */
    ck_assert_uint_eq(scale_byte(preset("GGML:mxfp4"), 0x1p-130f), 251);
}
END_TEST

START_TEST(case_48_blocks_do_not_straddle_rows)
{
    float x[2 * 48];
    float back[2 * 48];
    for (int i = 0; i < 48; i++) {
        x[i] = 1.0f;
        x[48 + i] = 1024.0f;
    }
    const dp_block_recipe recipe = preset("OCP:mxfp4");
    dp_block_plan plan;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    const size_t shape[2] = {2, 48};
    const dp_tensor tensor = dp_tensor_contiguous(2, shape);
    uint8_t payload[2 * 32];
    uint8_t scale[4];
    dp_block_stats stats;
    ck_assert(dp_block_quantize(&plan, x, &tensor, 1, 1, payload, scale, &stats, NULL));
    ck_assert_uint_eq(stats.padded, 2 * 16);
    ck_assert_uint_eq(stats.blocks, 4);
    ck_assert(dp_block_dequantize(&plan, payload, scale, &tensor, 1, 1, back, NULL));
    ck_assert_mem_eq(x, back, sizeof x);
    /* the fault: one run of 96 */
    const size_t flat[1] = {96};
    const dp_tensor wrong = dp_tensor_contiguous(1, flat);
    ck_assert(dp_block_quantize(&plan, x, &wrong, 0, 1, payload, scale, &stats, NULL));
    ck_assert(dp_block_dequantize(&plan, payload, scale, &wrong, 0, 1, back, NULL));
    ck_assert_float_eq(back[47], 0.0f);
}
END_TEST

START_TEST(case_49_zero_block_and_the_nan_byte)
{
    const float x[2] = {0.0f, 0.0f};
    const dp_global g = {DP_GLOBAL_DIV, dp_nvfp4_global_encode(1.0f)};
    ck_assert_float_eq(g.value, 2688.0f);
    dp_block_recipe recipe = preset("PTX:nvfp4");
    ck_assert_uint_eq(quantize(recipe, g, x, 2).scale, 0);
    recipe.zero_amax = DP_ZERO_AMAX_ONE;
    const result saturated = quantize(recipe, g, x, 2);
    ck_assert_uint_eq(saturated.scale, 0x7E);
    ck_assert_float_eq(value(&saturated, 0), 0.0f);
    recipe.scale_encode.overflow = DP_OVERFLOW_SPECIAL;
    const dp_global six = {DP_GLOBAL_DIV, 6.0f * 2688.0f}; /* 1 * 2688, before the cast */
    const result poisoned = quantize(recipe, six, x, 2);
    ck_assert_uint_eq(poisoned.scale, 0x7F);
    ck_assert_uint_eq(poisoned.stats.nan_scales, 1);
    recipe.zero_amax = DP_ZERO_SCALE_ONE;
    ck_assert_uint_eq(quantize(recipe, no_global, x, 2).scale, 0x38);
}
END_TEST

START_TEST(case_50_zero_tensor)
{
    ck_assert_float_eq(dp_nvfp4_global_encode(0.0f), 1.0f);
    ck_assert_float_eq(dp_nvfp4_global_decode(0.0f), 1.0f);
    ck_assert_float_eq(dp_nvfp4_global_encode(1e-40f), FLT_MAX);
    ck_assert_float_eq(dp_nvfp4_global_encode(8.0f), 336.0f);
    const float x[2] = {0.0f, 0.0f};
    dp_preset te;
    ck_assert(dp_preset_find("te:NVFP4", &te, NULL));
    const result whole = quantize(te.recipe, dp_preset_global(&te, 0.0f), x, 2);
    ck_assert_uint_eq(whole.scale, 0);
    ck_assert_uint_eq(whole.codes[0], 0);
    ck_assert_float_eq(value(&whole, 0), 0.0f);
    const result row = quantize(te.recipe, dp_preset_global(&te, 5.0f), x, 2);
    ck_assert_uint_eq(row.scale, 0);
    ck_assert_uint_eq(row.codes[1], 0);
}
END_TEST

START_TEST(case_52_no_global_scale_clips)
{
    const float x[1] = {3000.0f};
    const result flat = quantize(preset("PTX:nvfp4"), no_global, x, 1);
    ck_assert_uint_eq(flat.scale, 0x7E);
    ck_assert_uint_eq(flat.codes[0], 7);
    ck_assert_float_eq(value(&flat, 0), 2688.0f);
    ck_assert_uint_eq(flat.stats.saturated_scales, 1);
    ck_assert_uint_eq(flat.stats.saturated, 1);
    const dp_global g = {DP_GLOBAL_DIV, dp_nvfp4_global_encode(3000.0f)};
    const result scaled = quantize(preset("PTX:nvfp4"), g, x, 1);
    ck_assert_uint_eq(scaled.stats.saturated_scales, 0);
    ck_assert_float_eq_tol(value(&scaled, 0), 3000.0f, 3000.0f / 16.0f);
}
END_TEST

START_TEST(case_54_is_the_scale_rounded_first)
{
    const float x[2] = {6.375f, 5.2f};
    dp_block_recipe recipe = preset("PTX:nvfp4");
    const result nearest = quantize(recipe, no_global, x, 2);
    ck_assert_uint_eq(nearest.scale, 0x38);
    ck_assert_float_eq(value(&nearest, 0), 6.0f);
    ck_assert_float_eq(value(&nearest, 1), 6.0f);
    recipe.scale_encode.round = DP_RU;
    recipe.scale_encode.overflow = DP_OVERFLOW_SATFINITE;
    const result up = quantize(recipe, no_global, x, 2);
    ck_assert_uint_eq(up.scale, 0x39);
    ck_assert_uint_eq(up.codes[1], 6);
    ck_assert_float_eq(value(&up, 1), 4.5f);
    recipe = preset("PTX:nvfp4");
    recipe.divisor = DP_DIVISOR_UNROUNDED;
    const result exact = quantize(recipe, no_global, x, 2);
    ck_assert_uint_eq(exact.scale, 0x38);
    ck_assert_uint_eq(exact.codes[1], 6);
    ck_assert_float_eq(value(&exact, 1), 4.0f);
}
END_TEST

START_TEST(case_56_global_scale_kind)
{
    const float x[2] = {0.75f, 0.3f};
    const float stored = dp_nvfp4_global_encode(0.75f);
    ck_assert_float_eq(stored, 3584.0f);
    const dp_global as_divisor = {DP_GLOBAL_DIV, stored};
    const dp_global misread = {DP_GLOBAL_MUL, stored};
    const result r = quantize(preset("PTX:nvfp4"), as_divisor, x, 2);
    ck_assert_uint_eq(r.scale, 0x7E);
    ck_assert_double_eq(dp_block_value(&r.plan, r.codes[0], &r.scale), 0.75);
    dp_block_plan wrong;
    const dp_block_recipe recipe = preset("PTX:nvfp4");
    ck_assert(dp_block_plan_make(&recipe, misread, &wrong, NULL));
    ck_assert_double_eq(dp_block_value(&wrong, r.codes[0], &r.scale) / 0.75, 12845056.0);
    /* the two kinds agree when each is given its own value */
    const dp_global as_multiplier = {DP_GLOBAL_MUL, 1.0f / stored};
    const result m = quantize(preset("PTX:nvfp4"), as_multiplier, x, 2);
    ck_assert_uint_eq(m.scale, r.scale);
    ck_assert_mem_eq(m.codes, r.codes, 2);
}
END_TEST

START_TEST(case_57_bad_global_scales_are_refused)
{
    static const float bad[] = {0.0f, -0.0f, -2.0f, INFINITY, -INFINITY, NAN};
    const dp_block_recipe recipe = preset("PTX:nvfp4");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (int kind = DP_GLOBAL_MUL; kind <= DP_GLOBAL_DIV; kind++) {
            const dp_global global = {(dp_global_kind)kind, bad[i]};
            dp_block_plan plan;
            dp_error error = {{0}};
            ck_assert(!dp_block_plan_make(&recipe, global, &plan, &error));
            ck_assert_ptr_nonnull(strstr(error.text, "global scale"));
        }
    }
}
END_TEST

START_TEST(case_58_amax_takes_magnitudes)
{
    const float x[4] = {-8.0f, 1.0f, 0.0f, 0.5f};
    ck_assert_uint_eq(quantize(preset("OCP:mxfp4"), no_global, x, 4).scale, 127 + 1);
    const float negative[3] = {-6.0f, -3.0f, -1.0f};
    const result r = quantize(preset("PTX:nvfp4"), no_global, negative, 3);
    ck_assert_uint_eq(r.scale, 0x38);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_float_eq(value(&r, i), negative[i]);
    }
}
END_TEST

START_TEST(case_59_floor_under_the_scale)
{
    const float x[1] = {0.03f};
    dp_block_recipe recipe = preset("PTX:nvfp4");
    const result low = quantize(recipe, no_global, x, 1);
    ck_assert_uint_eq(low.scale, 0x03);
    ck_assert_float_eq(value(&low, 0), 0.03515625f);
    recipe.scale_min = 0x1p-6f;
    const result clamped = quantize(recipe, no_global, x, 1);
    ck_assert_uint_eq(clamped.scale, 0x08);
    ck_assert_float_eq(value(&clamped, 0), 0.03125f);
    ck_assert_uint_eq(quantize(preset("TORCHAO:nvfp4"), no_global, x, 1).scale, 0x08);
}
END_TEST

START_TEST(case_61_a_bare_nvfp4_is_refused)
{
    dp_preset found;
    dp_error error = {{0}};
    ck_assert(!dp_preset_find("nvfp4", &found, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "TE:nvfp4"));
    ck_assert_ptr_nonnull(strstr(error.text, "MODELOPT:nvfp4"));
    char text[4000];
    for (size_t i = 0; i < dp_preset_count(); i++) {
        const dp_preset row = dp_preset_at(i);
        const size_t length = dp_preset_explain(&row, text, sizeof text);
        ck_assert_uint_lt(length, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, row.source));
        char small[16];
        ck_assert_uint_eq(dp_preset_explain(&row, small, sizeof small), length);
        ck_assert_uint_eq(strlen(small), sizeof small - 1);
    }
}
END_TEST

START_TEST(case_62_nan_and_inf_in_a_block)
{
    const float x[4] = {1.0f, NAN, -3.0f, 0.0f};
    dp_block_recipe recipe = preset("PTX:mxfp4");
    result r = quantize(recipe, no_global, x, 4);
    ck_assert_uint_eq(r.scale, 0xFF);
    ck_assert_uint_eq(r.stats.nan, 1);
    ck_assert_uint_eq(r.stats.nan_scales, 1);
    for (size_t i = 0; i < 4; i++) {
        ck_assert(isnan(value(&r, i)));
    }
    recipe.nan = DP_NAN_IGNORE;
    r = quantize(recipe, no_global, x, 4);
    ck_assert_uint_eq(r.scale, 0x7E);
    ck_assert_uint_eq(r.codes[1], 0x7);
    ck_assert_float_eq(value(&r, 2), -3.0f);
    recipe.nan = DP_NAN_ERROR;
    dp_block_plan plan;
    size_t bad = 99;
    uint8_t codes[32];
    uint8_t scale = 0;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    ck_assert(!dp_block_quantize_one(&plan, x, 4, codes, &scale, NULL, &bad));
    ck_assert_uint_eq(bad, 1);

    const float y[3] = {2.0f, INFINITY, -1.0f};
    dp_block_recipe fp8 = preset("PTX:mxfp8-e4m3");
    ck_assert_uint_eq(quantize(fp8, no_global, y, 3).scale, 0xFE);
    fp8.inf = DP_INF_NAN;
    ck_assert_uint_eq(quantize(fp8, no_global, y, 3).scale, 0xFF);
    fp8.inf = DP_INF_ERROR;
    ck_assert(dp_block_plan_make(&fp8, no_global, &plan, NULL));
    ck_assert(!dp_block_quantize_one(&plan, y, 3, codes, &scale, NULL, &bad));
    ck_assert_uint_eq(bad, 1);
    dp_block_recipe nv = preset("PTX:nvfp4");
    ck_assert_uint_eq(quantize(nv, no_global, x, 4).scale, 0x7F);
    ck_assert_uint_eq(quantize(nv, no_global, y, 3).scale, 0x7E);
}
END_TEST

START_TEST(case_62_a_refused_tensor_names_the_first_element)
{
    enum { ROWS = 40, COLS = 70 };
    static float x[ROWS * COLS];
    static uint8_t payload[ROWS * 48];
    static uint8_t scale[ROWS * 3];
    memset(x, 0, sizeof x);
    x[31 * COLS + 3] = NAN;
    x[17 * COLS + 66] = NAN;
    x[17 * COLS + 65] = INFINITY;
    dp_block_recipe recipe = preset("PTX:mxfp4");
    recipe.nan = DP_NAN_ERROR;
    dp_block_plan plan;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    const size_t shape[2] = {ROWS, COLS};
    const dp_tensor tensor = dp_tensor_contiguous(2, shape);
    for (int threads = 1; threads <= 4; threads++) {
        dp_error error = {{0}};
        ck_assert(!dp_block_quantize(&plan, x, &tensor, 1, threads, payload, scale, NULL, &error));
        ck_assert_ptr_nonnull(strstr(error.text, "element 66 of run 17"));
    }
}
END_TEST

/* Rows that are never read cannot change the others: no state crosses a run. */
START_TEST(case_64_padding_rows_do_not_reach_live_rows)
{
    float x[3 * 32];
    for (int i = 0; i < 64; i++) {
        x[i] = (float)(i % 13) - 6.0f;
    }
    for (int i = 64; i < 96; i++) {
        x[i] = NAN;
    }
    const dp_block_recipe recipe = preset("PTX:nvfp4");
    dp_block_plan plan;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    uint8_t all[3 * 16];
    uint8_t all_scale[6];
    uint8_t live[2 * 16];
    uint8_t live_scale[4];
    const size_t three[2] = {3, 32};
    const size_t two[2] = {2, 32};
    const dp_tensor t3 = dp_tensor_contiguous(2, three);
    const dp_tensor t2 = dp_tensor_contiguous(2, two);
    dp_block_stats stats;
    ck_assert(dp_block_quantize(&plan, x, &t3, 1, 1, all, all_scale, &stats, NULL));
    ck_assert_uint_eq(stats.nan, 32);
    ck_assert_uint_eq(stats.nan_scales, 2);
    ck_assert(dp_block_quantize(&plan, x, &t2, 1, 1, live, live_scale, NULL, NULL));
    ck_assert_mem_eq(all, live, sizeof live);
    ck_assert_mem_eq(all_scale, live_scale, sizeof live_scale);
}
END_TEST

START_TEST(case_67_which_nibble_is_first)
{
    const float x[2] = {1.0f, 6.0f};
    const dp_block_recipe recipe = preset("PTX:nvfp4");
    dp_block_plan plan;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    uint8_t payload[8];
    uint8_t scale = 0;
    size_t bad = 0;
    ck_assert(dp_block_quantize_run(&plan, x, 1, 2, payload, &scale, NULL, &bad));
    ck_assert_uint_eq(payload[0], 0x72);
}
END_TEST

/* Half scale times the doubled table is the same number, code 0 included. */
START_TEST(case_69_doubled_table_with_half_scale)
{
    const dp_block_recipe recipe = preset("GGML:mxfp4");
    dp_block_plan plan;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    for (unsigned byte = 0; byte < 255; byte++) {
        for (uint8_t code = 0; code < 16; code++) {
            const uint8_t scale = (uint8_t)byte;
            const dp_e2m1 e = {code};
            const double doubled = ldexp(dp_e2m1_twice_magnitude(e), (int)byte - 128);
            ck_assert_double_eq(dp_block_value(&plan, code, &scale),
                                code >= 8 ? -doubled : doubled);
        }
    }
    const uint8_t one = 0x7F;
    ck_assert_double_eq(dp_block_value(&plan, 7, &one), 6.0);
}
END_TEST

START_TEST(case_71_ragged_lengths_are_kept)
{
    static const size_t lengths[] = {1, 15, 16, 17, 31, 32, 33, 48, 63, 65, 80, 96, 127, 129};
    const char *const names[] = {"PTX:nvfp4", "OCP:mxfp4", "OCP:mxfp8-e4m3", "GGML:mxfp4"};
    for (size_t p = 0; p < 4; p++) {
        const dp_block_recipe recipe = preset(names[p]);
        dp_block_plan plan;
        ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            float x[129];
            float back[129];
            uint8_t payload[160];
            uint8_t scale[9];
            double sum = 0.0;
            size_t bad = 0;
            for (size_t j = 0; j < lengths[i]; j++) {
                x[j] = 1.0f;
            }
            ck_assert(dp_block_quantize_run(&plan, x, 1, lengths[i], payload, scale, NULL, &bad));
            dp_block_dequantize_run(&plan, payload, scale, lengths[i], back, 1);
            for (size_t j = 0; j < lengths[i]; j++) {
                sum += (double)back[j];
            }
            const double tolerance = p == 0 ? 0.0313 : 0.0; /* E4M3(1/6) */
            ck_assert_double_eq_tol(sum, (double)lengths[i],
                                    tolerance * (double)lengths[i] + 1e-12);
        }
    }
}
END_TEST

/* A small number of rows must not take another path: 7 rows, 8 rows and one row alone agree. */
START_TEST(case_72_small_shapes_read_the_same_scales)
{
    enum { ROWS = 33, LENGTH = 40 };
    static float x[ROWS * LENGTH];
    static uint8_t payload[ROWS * 32];
    static uint8_t scale[ROWS * 2];
    static float back[ROWS * LENGTH];
    for (int i = 0; i < ROWS * LENGTH; i++) {
        x[i] = (float)(i % 7) - 3.0f;
    }
    const dp_block_recipe recipe = preset("OCP:mxfp4");
    dp_block_plan plan;
    ck_assert(dp_block_plan_make(&recipe, no_global, &plan, NULL));
    for (size_t rows = 1; rows <= ROWS; rows++) {
        const size_t shape[2] = {rows, LENGTH};
        const dp_tensor tensor = dp_tensor_contiguous(2, shape);
        ck_assert(dp_block_quantize(&plan, x, &tensor, 1, 2, payload, scale, NULL, NULL));
        ck_assert(dp_block_dequantize(&plan, payload, scale, &tensor, 1, 2, back, NULL));
        ck_assert_mem_eq(x, back, rows * LENGTH * sizeof *x); /* small integers are exact */
        ck_assert_uint_eq(scale[0], 126);
    }
}
END_TEST

START_TEST(case_107_underflow_counts_values)
{
    const float zeros[4] = {-0.0f, 1.0f, 2.0f, 4.0f};
    ck_assert_uint_eq(quantize(preset("OCP:mxfp8-e4m3"), no_global, zeros, 4).stats.flushed, 0);
    const float tiny[4] = {-1e-5f, 1e-5f, 1.0f, 0.0f};
    dp_block_recipe plain = preset("OCP:mxfp8-e4m3");
    plain.zero_amax = DP_ZERO_SCALE_ONE;
    plain.amax_zero = FLT_MAX; /* scale 1 */
    const result r = quantize(plain, no_global, tiny, 4);
    ck_assert_uint_eq(r.scale, 127);
    ck_assert_uint_eq(r.stats.flushed, 2);
    ck_assert_uint_eq(r.stats.elements, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block_cases");
    TCase *tests = tcase_create("block_cases");
    tcase_add_test(tests, case_01_ties_under_unit_scale);
    tcase_add_test(tests, case_07_minus_zero_in_a_block);
    tcase_add_test(tests, case_25_double_rounding_of_an_element);
    tcase_add_test(tests, case_27_amax_cut_to_bf16);
    tcase_add_test(tests, case_29_one_bf16_ulp_upstream);
    tcase_add_test(tests, case_30_scale_code_0_is_not_zero);
    tcase_add_test(tests, case_32_nearest_power_ties_to_the_even_code);
    tcase_add_test(tests, case_34_inverse_of_the_largest_scale);
    tcase_add_test(tests, case_36_negative_scale_inputs);
    tcase_add_test(tests, case_37_zero_and_inf_scales);
    tcase_add_test(tests, case_39_scales_are_exponents);
    tcase_add_test(tests, case_40_floor_ceil_rceil);
    tcase_add_test(tests, case_41_exponent_of_the_ratio);
    tcase_add_test(tests, case_44_nearest_scale_clips);
    tcase_add_test(tests, case_45_divide_by_what_is_stored);
    tcase_add_test(tests, case_47_every_power_of_two);
    tcase_add_test(tests, case_47_log2_in_f32_is_not_exact);
    tcase_add_test(tests, case_48_blocks_do_not_straddle_rows);
    tcase_add_test(tests, case_49_zero_block_and_the_nan_byte);
    tcase_add_test(tests, case_50_zero_tensor);
    tcase_add_test(tests, case_52_no_global_scale_clips);
    tcase_add_test(tests, case_54_is_the_scale_rounded_first);
    tcase_add_test(tests, case_56_global_scale_kind);
    tcase_add_test(tests, case_57_bad_global_scales_are_refused);
    tcase_add_test(tests, case_58_amax_takes_magnitudes);
    tcase_add_test(tests, case_59_floor_under_the_scale);
    tcase_add_test(tests, case_61_a_bare_nvfp4_is_refused);
    tcase_add_test(tests, case_62_nan_and_inf_in_a_block);
    tcase_add_test(tests, case_62_a_refused_tensor_names_the_first_element);
    tcase_add_test(tests, case_64_padding_rows_do_not_reach_live_rows);
    tcase_add_test(tests, case_67_which_nibble_is_first);
    tcase_add_test(tests, case_69_doubled_table_with_half_scale);
    tcase_add_test(tests, case_71_ragged_lengths_are_kept);
    tcase_add_test(tests, case_72_small_shapes_read_the_same_scales);
    tcase_add_test(tests, case_107_underflow_counts_values);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
