/* SPDX-License-Identifier: MIT
 *
 * Every preset, and recipes drawn at random from all fields, against the second derivation of
 * tests/support/block_model.c on blocks drawn to hurt.
 */
#include <float.h>
#include <math.h>

#include "block_model.h"
#include "formats/catalog.h"
#include "formats/preset.h"
#include "nasty_blocks.h"
#include "support.h"

enum { LONGEST = 64, ROUNDS = 60 };

static void compare(dp_tally *tally, const char *name, const dp_block_recipe *recipe,
                    dp_global global, const float *x, size_t n)
{
    uint8_t codes[LONGEST] = {0};
    uint8_t want[LONGEST] = {0};
    uint8_t scale[4] = {0};
    uint8_t want_scale[4] = {0};
    dp_block_plan plan;
    dp_error error = {{0}};
    ck_assert_msg(dp_block_plan_make(recipe, global, &plan, &error), "%s: %s", name, error.text);
    size_t bad = 0;
    const bool got = dp_block_quantize_one(&plan, x, n, codes, scale, NULL, &bad);
    const bool expected = dp_model_quantize(recipe, global, x, n, want, want_scale);
    const bool same = got == expected &&
                      (!got || (memcmp(codes, want, n) == 0 && memcmp(scale, want_scale, 4) == 0));
    if (dp_tally_check(tally, same)) {
        return;
    }
    size_t i = 0;
    while (i + 1 < n && codes[i] == want[i]) {
        i++;
    }
    dp_tally_note(tally,
                  "%s n=%zu global %d %08" PRIx32 ": ok %d/%d scale %02x not %02x, element %zu = "
                  "%08" PRIx32 ": code %x not %x",
                  name, n, (int)global.kind, dp_f32_bits(global.value), got, expected, scale[0],
                  want_scale[0], i, dp_f32_bits(x[i]), codes[i], want[i]);
}

static dp_global draw_global(dp_rng *rng)
{
    static const float values[] = {1.0f, 448.0f, 2688.0f, 0x1p-10f, 3.3333333f, 1e-30f, 1e30f};
    dp_global global = {(dp_global_kind)dp_rng_below(rng, 3), 1.0f};
    if (global.kind != DP_GLOBAL_NONE) {
        global.value = dp_rng_below(rng, 2) != 0 ? values[dp_rng_below(rng, 7)]
                                                 : expf((float)dp_rng_normal(rng) * 4.0f);
    }
    return global;
}

START_TEST(presets_equal_the_second_derivation)
{
    dp_rng rng = {20261129};
    dp_tally tally = {0};
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset preset = dp_preset_at(p);
        char name[64];
        (void)snprintf(name, sizeof name, "%s:%s", preset.preset, preset.format);
        for (int kind = 0; kind < DP_NASTY_KINDS; kind++) {
            for (int round = 0; round < ROUNDS; round++) {
                float x[LONGEST];
                const size_t n = 1 + dp_rng_below(&rng, (uint32_t)preset.recipe.block);
                dp_nasty_block(&rng, (dp_nasty)kind, x, n);
                const dp_global none = {DP_GLOBAL_NONE, 1.0f};
                const dp_global own = dp_preset_global(&preset, 3.0f + (float)round);
                compare(&tally, name, &preset.recipe, none, x, n);
                compare(&tally, name, &preset.recipe, own, x, n);
            }
        }
    }
    dp_assert_tally(tally, 40 * DP_NASTY_KINDS * ROUNDS);
}
END_TEST

/* A recipe with every field drawn; only combinations that dp_block_plan_make refuses are left
 * out. */
static dp_block_recipe draw_recipe(dp_rng *rng)
{
    static const char *const elements[] = {"e2m1", "e2m1", "e2m3", "e3m2", "e4m3", "e5m2"};
    static const dp_round rounds[] = {DP_RNE, DP_RN_TIES_ZERO, DP_RN_TIES_AWAY};
    dp_block_recipe r = {.block = 1 + dp_rng_below(rng, LONGEST)};
    (void)dp_catalog_find(elements[dp_rng_below(rng, 6)], &r.element);
    r.payload.round = rounds[dp_rng_below(rng, 3)];
    r.payload.overflow = dp_rng_below(rng, 2) != 0 ? DP_OVERFLOW_SPECIAL : DP_OVERFLOW_SATFINITE;
    r.payload.nan = (dp_nan_rule)dp_rng_below(rng, 4);
    r.payload.drop_zero_sign = dp_rng_below(rng, 2) != 0;
    r.scale = (dp_scale_format)dp_rng_below(rng, 4);
    r.scale_encode.round = rounds[dp_rng_below(rng, 3)];
    r.rule = r.scale == DP_SCALE_E8M0 ? (dp_scale_rule)(1 + dp_rng_below(rng, 10)) : DP_RULE_AMAX;
    r.ratio = (dp_ratio)dp_rng_below(rng, 6);
    r.quotient = (dp_quotient)dp_rng_below(rng, 6);
    r.divisor = r.rule == DP_RULE_BEST_L2 ? DP_DIVISOR_STORED : (dp_divisor)dp_rng_below(rng, 2);
    if (r.rule == DP_RULE_AMPLITUDE) {
        r.quotient = DP_QUOTIENT_AMPLITUDE;
        r.decode = DP_DECODE_AMPLITUDE;
    }
    r.byte0 = (dp_byte0)dp_rng_below(rng, 6);
    r.scale_min = dp_rng_below(rng, 3) == 0 ? 0x1p-6f : 0.0f;
    r.divisor_add = dp_rng_below(rng, 4) == 0 ? 1e-30f : 0.0f;
    r.divisor_min = dp_rng_below(rng, 4) == 0 ? 1e-20f : 0.0f;
    r.amax_zero = dp_rng_below(rng, 4) == 0 ? 1e-38f : 0.0f;
    r.zero_amax = (dp_zero_amax)dp_rng_below(rng, 4);
    r.nan = (dp_block_nan)dp_rng_below(rng, 3);
    r.inf =
        (dp_block_inf)(r.scale == DP_SCALE_E8M0 ? dp_rng_below(rng, 4) : 2 * dp_rng_below(rng, 2));
    r.low = (dp_e8m0_low)dp_rng_below(rng, 2);
    r.amax_via = (dp_via)dp_rng_below(rng, 3);
    r.quotient_via = (dp_via)dp_rng_below(rng, 3);
    r.nan_scale_as_inf = dp_rng_below(rng, 2) != 0;
    r.ftz = dp_rng_below(rng, 4) == 0;
    return r;
}

START_TEST(random_recipes_equal_the_second_derivation)
{
    dp_rng rng = {31337};
    dp_tally tally = {0};
    for (int round = 0; round < 4000; round++) {
        const dp_block_recipe recipe = draw_recipe(&rng);
        char name[200];
        (void)snprintf(name, sizeof name,
                       "recipe %d %s scale %d rule %d ratio %d quotient %d/%d byte0 %d zero %d nan "
                       "%d inf %d via %d %d ftz %d",
                       round, recipe.element.name, (int)recipe.scale, (int)recipe.rule,
                       (int)recipe.ratio, (int)recipe.quotient, (int)recipe.divisor,
                       (int)recipe.byte0, (int)recipe.zero_amax, (int)recipe.nan, (int)recipe.inf,
                       (int)recipe.amax_via, (int)recipe.quotient_via, (int)recipe.ftz);
        for (int kind = 0; kind < DP_NASTY_KINDS; kind++) {
            float x[LONGEST];
            const size_t n = 1 + dp_rng_below(&rng, (uint32_t)recipe.block);
            dp_nasty_block(&rng, (dp_nasty)kind, x, n);
            const bool mx = recipe.rule == DP_RULE_FLOOR || recipe.rule == DP_RULE_CEIL ||
                            recipe.rule == DP_RULE_EVEN || recipe.rule == DP_RULE_AMPLITUDE ||
                            recipe.rule == DP_RULE_BEST_L2;
            const dp_global none = {DP_GLOBAL_NONE, 1.0f};
            compare(&tally, name, &recipe, mx ? none : draw_global(&rng), x, n);
        }
    }
    dp_assert_tally(tally, 4000 * DP_NASTY_KINDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block_model");
    TCase *tests = tcase_create("block_model");
    tcase_add_test(tests, presets_equal_the_second_derivation);
    tcase_add_test(tests, random_recipes_equal_the_second_derivation);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
