/* SPDX-License-Identifier: MIT
 *
 * The exact NVFP4 code [B13]: three derivations (integer comparison, MPFR division, the recipe),
 * and the promise of its labels: where an element is clear, every order of operations gives the
 * exact code.
 */
#include <math.h>
#include <mpfr.h>

#include "formats/nvfp4.h"
#include "formats/preset.h"
#include "nasty_blocks.h"
#include "support.h"

static const double middles[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};

/* |x| / (s * d) in 200 bits against the midpoints. */
static uint32_t by_division(float x, float s, float d, dp_round ties)
{
    mpfr_t quotient;
    mpfr_t scale;
    mpfr_init2(quotient, 200);
    mpfr_init2(scale, 200);
    mpfr_set_flt(scale, s, MPFR_RNDN);
    mpfr_mul_d(scale, scale, (double)d, MPFR_RNDN); /* exact: 28 bits */
    uint32_t code = 0;
    for (uint32_t i = 0; i < 7; i++) {
        mpfr_mul_d(quotient, scale, middles[i], MPFR_RNDN); /* exact */
        const int order = mpfr_cmp_d(quotient, fabs((double)x));
        const bool tie_up = ties == DP_RN_TIES_AWAY || (ties == DP_RNE && i % 2 == 1);
        code += order < 0 || (order == 0 && tie_up) ? 1u : 0u;
    }
    mpfr_clear(quotient);
    mpfr_clear(scale);
    return code | (signbit(x) ? 8u : 0u);
}

START_TEST(exact_code_equals_mpfr)
{
    static const dp_round ties[3] = {DP_RNE, DP_RN_TIES_ZERO, DP_RN_TIES_AWAY};
    dp_rng rng = {11};
    dp_tally tally = {0};
    uint64_t labels[3] = {0};
    for (int round = 0; round < 60000; round++) {
        const dp_ue4m3 s = {(uint8_t)(1 + dp_rng_below(&rng, 0x7E))};
        const float value = dp_ue4m3_to_f32(s);
        const float d = dp_rng_below(&rng, 3) == 0
                            ? 1.0f
                            : ldexpf((float)(1u + dp_rng_below(&rng, 1u << 24)),
                                     (int)dp_rng_below(&rng, 60) - 60);
        float x = dp_rng_nasty_f32(&rng);
        if (dp_rng_below(&rng, 2) != 0) {
            x = (float)(middles[dp_rng_below(&rng, 7)] * (double)value * (double)d);
            x = dp_f32_from_bits(dp_f32_bits(x) + dp_rng_below(&rng, 5) - 2u);
        }
        if (isnan(x) || isinf(x)) {
            continue;
        }
        for (int t = 0; t < 3; t++) {
            dp_nearness nearness = DP_CLEAR;
            const uint32_t got = dp_nvfp4_exact_code(x, s, d, ties[t], &nearness).bits;
            const uint32_t want = by_division(x, value, d, ties[t]);
            labels[nearness]++;
            if (!dp_tally_check(&tally, got == want)) {
                dp_tally_note(&tally, "%a / (%a * %a) ties %d: %x not %x", (double)x, (double)value,
                              (double)d, t, got, want);
            }
        }
    }
    dp_assert_tally(tally, 100000);
    ck_assert_uint_gt(labels[DP_NEAR], 1000);
    ck_assert_uint_gt(labels[DP_TIE], 1000);
    ck_assert_uint_gt(labels[DP_CLEAR], 1000);
}
END_TEST

/* NVFP4 presets that round to nearest, against the exact code under the scale they stored. */
START_TEST(clear_elements_have_one_code)
{
    dp_rng rng = {12};
    dp_tally tally = {0};
    uint64_t disputed = 0;
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        const dp_block_recipe *r = &row.recipe;
        if (r->scale != DP_SCALE_E4M3 || r->divisor != DP_DIVISOR_STORED || r->divisor_add > 0.0f ||
            r->ftz) {
            continue;
        }
        for (int round = 0; round < 4000; round++) {
            float x[32];
            uint8_t codes[32];
            uint8_t scale = 0;
            size_t bad = 0;
            dp_nasty_block(&rng, (dp_nasty)dp_rng_below(&rng, DP_NASTY_TINY), x, r->block);
            float amax = 0.0f;
            for (size_t i = 0; i < r->block; i++) {
                amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
            }
            if (amax < 0x1p-60f || amax > 0x1p60f) {
                continue; /* a subnormal d carries fewer bits than the label allows for */
            }
            const dp_global global = dp_preset_global(&row, amax * 3.0f);
            dp_block_plan plan;
            ck_assert(dp_block_plan_make(r, global, &plan, NULL));
            ck_assert(dp_block_quantize_one(&plan, x, r->block, codes, &scale, NULL, &bad));
            const dp_ue4m3 s = {scale};
            if (scale == 0 || scale == 0x7F) {
                continue;
            }
            for (size_t i = 0; i < r->block; i++) {
                dp_nearness nearness = DP_CLEAR;
                const uint32_t exact =
                    dp_nvfp4_exact_code(x[i], s, plan.d, r->payload.round, &nearness).bits;
                disputed += nearness != DP_CLEAR && exact != codes[i] ? 1u : 0u;
                if (nearness == DP_CLEAR && !dp_tally_check(&tally, exact == codes[i])) {
                    dp_tally_note(&tally, "%s:%s x %a scale %02x d %a: code %x, exact %x",
                                  row.preset, row.format, (double)x[i], scale, (double)plan.d,
                                  codes[i], exact);
                }
            }
        }
    }
    dp_assert_tally(tally, 200000);
    ck_assert_uint_gt(disputed, 100); /* else the label would be idle */
}
END_TEST

/* With d = 1 a correctly rounded quotient never crosses a midpoint, and meets it only in a tie: the
 * default recipe is exact [B13]. */
START_TEST(division_by_the_stored_scale_is_exact)
{
    dp_rng rng = {13};
    dp_tally tally = {0};
    for (unsigned code = 1; code < 0x7F; code++) {
        const dp_ue4m3 s = {(uint8_t)code};
        const float value = dp_ue4m3_to_f32(s);
        for (int round = 0; round < 400; round++) {
            const float middle = (float)(middles[dp_rng_below(&rng, 7)] * (double)value);
            const float x = dp_f32_from_bits(dp_f32_bits(middle) + dp_rng_below(&rng, 9) - 4u);
            const uint32_t got = dp_e2m1_from_f32(x / value, DP_ENCODE_PTX).bits;
            const uint32_t want = dp_nvfp4_exact_code(x, s, 1.0f, DP_RNE, NULL).bits;
            if (!dp_tally_check(&tally, got == want)) {
                dp_tally_note(&tally, "%a / %a: %x not %x", (double)x, (double)value, got, want);
            }
        }
    }
    dp_assert_tally(tally, 126 * 400);
}
END_TEST

/* Every bf16 probability under every scale: the quotient is exact, the product with a rounded
 * reciprocal is not, and errs only where the label says so. */
START_TEST(every_bf16_probability_under_every_scale)
{
    dp_tally tally = {0};
    uint64_t reciprocal_differs = 0;
    for (unsigned code = 1; code < 0x7F; code++) {
        const dp_ue4m3 s = {(uint8_t)code};
        const float value = dp_ue4m3_to_f32(s);
        const float inverse = 1.0f / value;
        for (uint32_t high = 0; high <= 0x3F80u; high++) {
            const float x = dp_f32_from_bits(high << 16);
            dp_nearness nearness = DP_CLEAR;
            const uint32_t want = dp_nvfp4_exact_code(x, s, 1.0f, DP_RNE, &nearness).bits;
            const uint32_t divided = dp_e2m1_from_f32(x / value, DP_ENCODE_PTX).bits;
            const uint32_t multiplied = dp_e2m1_from_f32(x * inverse, DP_ENCODE_PTX).bits;
            reciprocal_differs += multiplied != want ? 1u : 0u;
            if (!dp_tally_check(&tally,
                                divided == want && (multiplied == want || nearness != DP_CLEAR))) {
                dp_tally_note(&tally, "%a / %a: %x and %x, exact %x", (double)x, (double)value,
                              divided, multiplied, want);
            }
        }
    }
    dp_assert_tally(tally, 126 * 16257);
    ck_assert_uint_gt(reciprocal_differs, 0);
}
END_TEST

START_TEST(tails_of_the_exact_code)
{
    const dp_ue4m3 one = {0x38};
    const dp_ue4m3 zero = {0x00};
    const dp_ue4m3 nan = {0x7F};
    dp_nearness nearness = DP_TIE;
    ck_assert_uint_eq(dp_nvfp4_exact_code(-0.0f, one, 1.0f, DP_RNE, &nearness).bits, 8);
    ck_assert_int_eq((int)nearness, (int)DP_CLEAR);
    ck_assert_uint_eq(dp_nvfp4_exact_code(INFINITY, one, 1.0f, DP_RNE, NULL).bits, 7);
    ck_assert_uint_eq(dp_nvfp4_exact_code(-INFINITY, one, 1.0f, DP_RNE, NULL).bits, 15);
    ck_assert_uint_eq(dp_nvfp4_exact_code(-NAN, one, 1.0f, DP_RNE, NULL).bits, 7);
    ck_assert_uint_eq(dp_nvfp4_exact_code(-1.0f, nan, 1.0f, DP_RNE, NULL).bits, 7);
    ck_assert_uint_eq(dp_nvfp4_exact_code(0x1p-149f, zero, 1.0f, DP_RNE, NULL).bits, 7);
    ck_assert_uint_eq(dp_nvfp4_exact_code(-0.0f, zero, 1.0f, DP_RNE, NULL).bits, 8);
    ck_assert_uint_eq(dp_nvfp4_exact_code(0x1p-149f, one, 0x1p-149f, DP_RNE, NULL).bits, 2);
    ck_assert_uint_eq(dp_nvfp4_exact_code(0x1p127f, one, 0x1p-149f, DP_RNE, NULL).bits, 7);
    ck_assert_uint_eq(dp_nvfp4_exact_code(0x1p-149f, one, 0x1p127f, DP_RNE, NULL).bits, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nvfp4_exact");
    TCase *tests = tcase_create("nvfp4_exact");
    tcase_add_test(tests, exact_code_equals_mpfr);
    tcase_add_test(tests, clear_elements_have_one_code);
    tcase_add_test(tests, division_by_the_stored_scale_is_exact);
    tcase_add_test(tests, every_bf16_probability_under_every_scale);
    tcase_add_test(tests, tails_of_the_exact_code);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
