/* SPDX-License-Identifier: MIT
 *
 * Stochastic rounding [F8]: given its random bits it is one function, so its bias is counted over
 * every pattern instead of being estimated from draws.
 */
#include "exact.h"
#include "formats/catalog.h"
#include "formats/e2m1.h"
#include "formats/e5m2.h"
#include "support.h"

enum { E2M1 = 0, E4M3 = 3, E5M2 = 5, FP16 = 9, BF16 = 10 };

/* Over all 2^n patterns exactly floor(2^n * fraction) draws go up, the rest go down. */
static void count_all_draws(size_t index, const dp_exact_list *list, uint32_t bits, unsigned n,
                            dp_tally *tally)
{
    const dp_minifloat f = dp_catalog_at(index);
    uint32_t low = 0;
    const uint64_t want = dp_exact_fraction(list, bits & DP_F32_ABS, n, &low);
    const dp_encode cut = {
        DP_RZ, DP_OVERFLOW_SATFINITE, DP_INF_LIKE_OVERFLOW, DP_NAN_PTX, false, false, 0, 0};
    const uint32_t down = dp_minifloat_encode(bits, f, cut);
    uint64_t ups = 0;
    for (uint32_t random = 0; random < 1u << n; random++) {
        const uint32_t code =
            dp_minifloat_encode(bits, f, dp_encode_stochastic(random, (uint8_t)n));
        ups += code == down + 1u ? 1u : 0u;
        if (code != down && code != down + 1u) {
            dp_tally_check(tally, false);
            dp_tally_note(tally, "%s of 0x%08x, random 0x%x: 0x%x", f.name, bits, random, code);
        }
    }
    if (!dp_tally_check(tally, ups == want)) {
        dp_tally_note(tally, "%s of 0x%08x: %" PRIu64 " of 2^%u up, not %" PRIu64, f.name, bits,
                      ups, n, want);
    }
}

START_TEST(all_256_draws)
{
    const size_t index = _i == 0 ? E2M1 : E4M3;
    dp_exact_list list = dp_exact_list_of(dp_exact_format_at(index));
    dp_rng rng = {0x57ACu + (uint64_t)_i};
    dp_tally tally = {0};
    /* Both signs; every gap between neighbours, the subnormal ones first, below the largest. */
    for (uint32_t code = 0; code + 1u < list.finite; code++) {
        const double low = list.value[code];
        const double gap = list.value[code + 1u] - low;
        for (unsigned k = 0; k < 64; k++) {
            const double part = k < 33 ? k / 33.0 : dp_rng_unit(&rng);
            const uint32_t bits = dp_f32_bits((float)(low + part * gap));
            count_all_draws(index, &list, bits, 8, &tally);
            count_all_draws(index, &list, bits | DP_F32_SIGN, 8, &tally);
        }
    }
    for (uint32_t bits = 1; bits < 0x38000000u; bits += 0x00B504F3u) { /* far below the grid */
        count_all_draws(index, &list, bits, 8, &tally);
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 6 * 64 * 2);
}
END_TEST

/* Any width, any input, specials included, against the exact definition. */
START_TEST(sampled_draws)
{
    static const struct {
        size_t index;
        uint8_t n;
    } forms[] = {{E2M1, 8},  {E4M3, 16}, {E5M2, 16}, {1, 16},   {2, 16},   {BF16, 16},
                 {FP16, 13}, {E4M3, 32}, {BF16, 32}, {E2M1, 1}, {FP16, 29}};
    const size_t index = forms[_i].index;
    const dp_minifloat f = dp_catalog_at(index);
    dp_exact_list list = dp_exact_list_of(dp_exact_format_at(index));
    dp_rng rng = {0xD4A5u + (uint64_t)_i};
    dp_tally tally = {0};
    for (int k = 0; k < 100000; k++) {
        dp_encode how = dp_encode_stochastic(dp_rng_u32(&rng), forms[_i].n);
        how.overflow = (dp_overflow)(1u + dp_rng_below(&rng, 3));
        how.random = k % 16 == 0 ? 0u : k % 16 == 1 ? UINT32_MAX : how.random;
        const uint32_t bits = dp_f32_bits(dp_rng_nasty_f32(&rng));
        const uint32_t got = dp_minifloat_encode(bits, f, how);
        const uint32_t want = dp_exact_encode(dp_exact_format_at(index), &list, bits, how);
        if (!dp_tally_check(&tally, got == want)) {
            dp_tally_note(&tally, "%s of 0x%08x, %u bits 0x%08x: 0x%x, not 0x%x", f.name, bits,
                          forms[_i].n, how.random, got, want);
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 100000);
}
END_TEST

/* https://github.com/uxlfoundation/oneDNN/pull/2903: random bits misaligned, always down. The
 * fraction of 1.125 * 2^-14 between 2^-14 and 1.25 * 2^-14 is one half. */
START_TEST(case_73_half_up_half_down)
{
    const float x = dp_f32_from_bits(0x38900000u);
    unsigned ups = 0;
    unsigned downs = 0;
    for (uint32_t random = 0; random < 0x10000u; random++) {
        const uint32_t code = dp_e5m2_from_f32(x, dp_encode_stochastic(random, 16)).bits;
        ups += code == 0x05 ? 1u : 0u;
        downs += code == 0x04 ? 1u : 0u;
    }
    ck_assert_uint_eq(ups, 0x8000);
    ck_assert_uint_eq(downs, 0x8000);
}
END_TEST

/* https://github.com/ROCm/rocm-systems/pull/6870 and graphcore-research/gfloat/pull/36: no
 * randomness below the normal range. 0.3 is 0.6 of the way from 0 to 0.5; cut to 8 bits that is
 * floor(153.6) = 153 of 256 draws. */
START_TEST(case_75_subnormals_take_part)
{
    unsigned ups = 0;
    for (uint32_t random = 0; random < 256; random++) {
        const uint32_t code = dp_e2m1_from_f32(0.3f, dp_encode_stochastic(random, 8)).bits;
        ck_assert(code <= 1);
        ups += code;
        ck_assert_uint_eq(dp_e2m1_from_f32(-0.3f, dp_encode_stochastic(random, 8)).bits, code | 8u);
    }
    ck_assert_uint_eq(ups, 153);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stochastic");
    TCase *tests = tcase_create("stochastic");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, all_256_draws, 0, 2);
    tcase_add_loop_test(tests, sampled_draws, 0, 11);
    tcase_add_test(tests, case_73_half_up_half_down);
    tcase_add_test(tests, case_75_subnormals_take_part);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
