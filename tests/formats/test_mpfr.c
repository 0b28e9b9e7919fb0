/* SPDX-License-Identifier: MIT
 *
 * Encoding against GNU MPFR, the third derivation: mpfr_set_flt at the format's precision, then
 * mpfr_subnormalize. MPFR knows neither a largest value nor codes, so those are added here from the
 * rounded value by frexp. Only finite inputs, and the four directions that MPFR has [F5].
 * quick: few low halves of every 16th high half. With the argument "slow": 64 of every one.
 */
#include <math.h>
#include <stdlib.h>

#include <mpfr.h>

#include "exact.h"
#include "formats/catalog.h"
#include "support.h"

static unsigned high_step = 16;
static unsigned low_count = 8;

/* Code of a value that lies on the grid, top not considered. */
static uint32_t code_of_value(double magnitude, const dp_exact_format *format)
{
    int exponent = 0;
    const int m = (int)format->mantissa_bits;
    const double fraction = frexp(magnitude, &exponent); /* magnitude = fraction * 2^exponent */
    const int field = exponent - 1 + format->bias;
    if (magnitude < format->min_normal) {
        return (uint32_t)(magnitude / format->min_subnormal);
    }
    return (uint32_t)(ldexp(2.0 * fraction - 1.0, m) + ldexp((double)field, m));
}

static uint32_t encode(mpfr_t x, uint32_t bits, const dp_exact_format *format, dp_encode how)
{
    const mpfr_rnd_t directions[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDU, MPFR_RNDD};
    const bool negative = (bits & DP_F32_SIGN) != 0;
    if (format->sign_bits == 0) {
        bits &= DP_F32_ABS;
    }
    const mpfr_rnd_t direction = directions[how.round];
    const int ternary = mpfr_set_flt(x, dp_f32_from_bits(bits), direction);
    (void)mpfr_subnormalize(x, ternary, direction);
    const double magnitude = fabs(mpfr_get_d(x, MPFR_RNDN));
    const dp_exact_format *f = format;
    const uint32_t place = magnitude > f->max
                               ? (1u << (f->mantissa_bits + f->exponent_bits)) - f->top_codes
                               : code_of_value(magnitude, f);
    return dp_exact_finish(format, place, negative, false, how);
}

START_TEST(agrees_with_mpfr)
{
    const dp_exact_format *format = dp_exact_format_at((size_t)_i);
    const dp_minifloat f = dp_catalog_at((size_t)_i);
    const int m = (int)format->mantissa_bits;
    mpfr_t x;
    mpfr_init2(x, m + 1);
    /* The smallest subnormal is 0.1b * 2^emin in MPFR's convention. */
    mpfr_set_emin(2 - format->bias - m);
    mpfr_set_emax(1000);
    dp_rng rng = {0x3F9u + (uint64_t)_i};
    dp_tally tally = {0};
    for (uint32_t high = dp_rng_below(&rng, high_step); high < 0x10000u; high += high_step) {
        for (uint32_t i = 0; i < low_count; i++) {
            const uint32_t special[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
            const uint32_t low = i < 6 ? special[i] : dp_rng_below(&rng, 0x10000);
            const uint32_t bits = high << 16 | low;
            if ((bits & DP_F32_ABS) >= DP_F32_INF) {
                continue;
            }
            for (unsigned r = 0; r < 4; r++) {
                dp_encode how = dp_encode_ptx();
                how.round = (dp_round)r;
                how.overflow = (dp_overflow)(1u + i % 3u);
                const uint32_t want = encode(x, bits, format, how);
                const uint32_t got = dp_minifloat_encode(bits, f, how);
                if (!dp_tally_check(&tally, got == want)) {
                    dp_tally_note(&tally, "%s of 0x%08x, rounding %u: 0x%x, not 0x%x", f.name, bits,
                                  r, got, want);
                }
            }
        }
    }
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_clear(x);
    mpfr_free_cache();
    dp_assert_tally(tally, 0xFF00ull / high_step * low_count * 4u);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "slow") == 0) {
        high_step = 1;
        low_count = 64;
    }
    Suite *suite = suite_create("mpfr");
    TCase *tests = tcase_create("mpfr");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, agrees_with_mpfr, 0, DP_EXACT_FORMATS);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
