/* SPDX-License-Identifier: MIT
 *
 * Encoding against the exact lists, sampled so that it runs always: every high half of an f32 with
 * telling low halves, and the neighbourhood of every boundary between two codes. The complete sweep
 * is inputs_encode.c.
 */
#include "exact.h"
#include "formats/bf16.h"
#include "formats/catalog.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/fp16.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"
#include "policies.h"
#include "support.h"

enum { LOW_HALVES = 7 };

/* The sanitizers look for bad shifts and reads, for which every 16th high half is plenty. */
#if defined(__SANITIZE_ADDRESS__)
enum { HIGH_STEP = 16 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { HIGH_STEP = 16 };
#else
enum { HIGH_STEP = 1 };
#endif
#else
enum { HIGH_STEP = 1 };
#endif

static void check_one(size_t index, const dp_exact_list *list, uint32_t bits, dp_encode how,
                      dp_tally *tally)
{
    const dp_minifloat f = dp_catalog_at(index);
    const uint32_t got = dp_minifloat_encode(bits, f, how);
    const uint32_t want = dp_exact_encode(dp_exact_format_at(index), list, bits, how);
    if (!dp_tally_check(tally, got == want)) {
        dp_tally_note(tally, "%s of 0x%08x (%.9g), rounding %d overflow %d: 0x%x, not 0x%x", f.name,
                      bits, (double)dp_f32_from_bits(bits), (int)how.round, (int)how.overflow, got,
                      want);
    }
}

START_TEST(every_high_half)
{
    const size_t index = (size_t)_i;
    dp_exact_list list = dp_exact_list_of(dp_exact_format_at(index));
    dp_rng rng = {0xD1CE0000u + (uint64_t)index};
    dp_tally tally = {0};
    for (uint32_t high = 0; high < 0x10000u; high += HIGH_STEP) {
        const uint32_t low[LOW_HALVES] = {
            0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, dp_rng_below(&rng, 0x10000)};
        for (unsigned i = 0; i < LOW_HALVES; i++) {
            const uint32_t bits = high << 16 | low[i];
            for (unsigned p = 0; p < DP_POLICY_COUNT; p++) {
                check_one(index, &list, bits, dp_policies[p], &tally);
            }
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 0x10000 / HIGH_STEP * LOW_HALVES * DP_POLICY_COUNT);
}
END_TEST

/* Two ulps to either side of where any direction changes its code, and of every value. */
START_TEST(boundary_neighbourhoods)
{
    const size_t index = (size_t)_i;
    dp_exact_list list = dp_exact_list_of(dp_exact_format_at(index));
    dp_tally tally = {0};
    for (uint32_t code = 0; code <= list.finite; code++) {
        for (int d = 0; d < DP_EXACT_DIRECTIONS; d++) {
            for (uint32_t step = 0; step < 5; step++) {
                const uint32_t bits = (list.first[d][code] + step - 2u) & DP_F32_ABS;
                for (unsigned p = 0; p < DP_POLICY_COUNT; p++) {
                    check_one(index, &list, bits, dp_policies[p], &tally);
                    check_one(index, &list, bits | DP_F32_SIGN, dp_policies[p], &tally);
                }
            }
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 8 * DP_EXACT_DIRECTIONS * 5 * DP_POLICY_COUNT * 2);
}
END_TEST

/* The fields that the policies above leave alone: Inf kept, NaN rules, dropped sign, FTZ. */
START_TEST(every_switch)
{
    const size_t index = (size_t)_i;
    dp_exact_list list = dp_exact_list_of(dp_exact_format_at(index));
    dp_rng rng = {0x5117C4u + (uint64_t)index};
    dp_tally tally = {0};
    for (int n = 0; n < 20000; n++) {
        const uint32_t bits = dp_f32_bits(dp_rng_nasty_f32(&rng));
        for (unsigned s = 0; s < 32; s++) {
            dp_encode how = dp_policies[dp_rng_below(&rng, DP_POLICY_COUNT)];
            how.inf = (s & 1u) != 0 ? DP_INF_KEPT : DP_INF_LIKE_OVERFLOW;
            how.drop_zero_sign = (s & 2u) != 0;
            how.flush_subnormals = (s & 4u) != 0;
            how.nan = (dp_nan_rule)(s >> 3);
            check_one(index, &list, bits, how, &tally);
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 20000 * 32);
}
END_TEST

START_TEST(unspecified_is_refused_where_it_is_unspecified)
{
    dp_encode how = dp_encode_ptx();
    ck_assert(dp_encode_valid(how));
    how.overflow = DP_OVERFLOW_UNSPECIFIED;
    const bool nearest[] = {true, false, false, false, false, true, true};
    for (unsigned r = 0; r < sizeof nearest / sizeof nearest[0]; r++) {
        how.round = (dp_round)r;
        how.random_bits = 8;
        ck_assert_msg(dp_encode_valid(how) == nearest[r], "rounding %u", r);
    }
    how = dp_encode_stochastic(0, 0);
    ck_assert(!dp_encode_valid(how));
    how.random_bits = 33;
    ck_assert(!dp_encode_valid(how));
    how.random_bits = 32;
    ck_assert(dp_encode_valid(how));
}
END_TEST

/* The typed functions are the generic one with the right description, width and unused bits. */
START_TEST(typed_functions)
{
    dp_rng rng = {0x7E57u};
    dp_tally tally = {0};
    dp_exact_list list[DP_EXACT_FORMATS];
    for (size_t i = 0; i < DP_EXACT_FORMATS; i++) {
        list[i] = dp_exact_list_of(dp_exact_format_at(i));
    }
    for (int n = 0; n < 200000; n++) {
        const float x = dp_rng_nasty_f32(&rng);
        const dp_encode how = dp_policies[dp_rng_below(&rng, DP_POLICY_COUNT)];
        const struct {
            size_t index;
            uint32_t got;
        } typed[] = {
            {0, dp_e2m1_from_f32(x, how).bits},  {3, dp_e4m3_from_f32(x, how).bits},
            {4, dp_ue4m3_from_f32(x, how).bits}, {5, dp_e5m2_from_f32(x, how).bits},
            {6, dp_ue5m3_from_f32(x, how).bits}, {9, dp_fp16_from_f32(x, how).bits},
            {10, dp_bf16_from_f32(x, how).bits},
        };
        for (size_t t = 0; t < sizeof typed / sizeof typed[0]; t++) {
            const size_t i = typed[t].index;
            const uint32_t want =
                dp_exact_encode(dp_exact_format_at(i), &list[i], dp_f32_bits(x), how);
            if (!dp_tally_check(&tally, typed[t].got == want)) {
                dp_tally_note(&tally, "%s of 0x%08x: 0x%x, not 0x%x", dp_exact_format_at(i)->name,
                              dp_f32_bits(x), typed[t].got, want);
            }
        }
    }
    for (size_t i = 0; i < DP_EXACT_FORMATS; i++) {
        dp_exact_list_free(&list[i]);
    }
    dp_assert_tally(tally, 200000 * 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("encode");
    TCase *tests = tcase_create("encode");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, every_high_half, 0, DP_EXACT_FORMATS);
    tcase_add_loop_test(tests, boundary_neighbourhoods, 0, DP_EXACT_FORMATS);
    tcase_add_loop_test(tests, every_switch, 0, DP_EXACT_FORMATS);
    tcase_add_test(tests, unspecified_is_refused_where_it_is_unspecified);
    tcase_add_test(tests, typed_functions);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
