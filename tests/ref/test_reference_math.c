/* SPDX-License-Identifier: MIT
 *
 * The exponential and logarithm of the BF16 yardstick against MPFR.
 */
#include <mpfr.h>

#include "ref/forward/reference_math.h"
#include "support.h"

typedef int mpfr_function(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

/* Distance of y from function(x) in ulps of the result. */
static double ulps(float y, float x, mpfr_function *function)
{
    mpfr_t exact;
    mpfr_init2(exact, 200);
    mpfr_set_flt(exact, x, MPFR_RNDN);
    function(exact, exact, MPFR_RNDN);
    const long exponent =
        mpfr_zero_p(exact) ? -126 : (long)mpfr_get_exp(exact) - 1; /* of the exact result */
    mpfr_sub_d(exact, exact, (double)y, MPFR_RNDN);
    mpfr_mul_2si(exact, exact, 23 - (exponent > -126 ? exponent : -126), MPFR_RNDN);
    const double distance = fabs(mpfr_get_d(exact, MPFR_RNDU));
    mpfr_clear(exact);
    return distance;
}

static void check(dp_tally *tally, const char *name, float x, float y, mpfr_function *function)
{
    const double distance = ulps(y, x, function);
    if (!dp_tally_check(tally, distance <= 0.5002)) {
        dp_tally_note(tally, "%s(%a): %a, %.6f ulp off", name, (double)x, (double)y, distance);
    }
}

START_TEST(exp2_is_within_its_bound)
{
    dp_rng rng = {20261129};
    dp_tally tally = {0};
    for (int i = 0; i < 400000; i++) {
        const int kind = i % 4;
        const double u = dp_rng_unit(&rng);
        const double whole = (double)dp_rng_below(&rng, 277) - 149.0;
        /* the range of P; the whole range; integers and their halves, and a little beside them */
        const float x = (float)(kind == 0   ? 8.0 - 40.0 * u
                                : kind == 1 ? -149.5 + 277.0 * u
                                : kind == 2 ? whole + ldexp(u - 0.5, -(int)(i / 4 % 30))
                                            : whole + 0.5 - ldexp(u - 0.5, -(int)(i / 4 % 30)));
        if (x < 127.99f) {
            check(&tally, "exp2", x, dp_reference_exp2(x), mpfr_exp2);
        }
    }
    dp_assert_tally(tally, 390000);
}
END_TEST

START_TEST(log2_is_within_its_bound)
{
    dp_rng rng = {20261130};
    dp_tally tally = {0};
    for (int i = 0; i < 300000; i++) {
        const uint32_t word = dp_rng_u32(&rng) & 0x7FFFFFFFu;
        /* any positive pattern; sums of a row; around 1, sqrt(1/2) and sqrt(2) */
        const uint32_t near[] = {0x3F800000u, 0x3F3504F3u, 0x3FB504F3u};
        const uint32_t bits = i % 3 == 0   ? word
                              : i % 3 == 1 ? 0x3F800000u + word % 0x08000000u
                                           : near[i / 3 % 3] + word % 4096u - 2048u;
        if (bits > 0 && bits < 0x7F800000u && bits != 0x3F800000u) {
            const float x = dp_f32_from_bits(bits);
            check(&tally, "log2", x, dp_reference_log2(x), mpfr_log2);
        }
    }
    dp_assert_tally(tally, 290000);
}
END_TEST

START_TEST(ends_of_the_range_are_exact)
{
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(0.0f)), 0x3F800000u);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(-0.0f)), 0x3F800000u);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(-INFINITY)), 0);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(-150.0f)), 0);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(-149.0f)), 1);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(127.0f)), 0x7F000000u);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(128.0f)), 0x7F800000u);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_exp2(INFINITY)), 0x7F800000u);
    ck_assert(isnan(dp_reference_exp2(NAN)));
    ck_assert_uint_eq(dp_f32_bits(dp_reference_log2(1.0f)), 0);
    ck_assert_uint_eq(dp_f32_bits(dp_reference_log2(INFINITY)), 0x7F800000u);
    for (int e = -149; e < 128; e++) {
        ck_assert(dp_reference_log2(ldexpf(1.0f, e)) == (float)e);
        ck_assert(dp_reference_exp2((float)e) == ldexpf(1.0f, e));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reference_math");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, exp2_is_within_its_bound);
    tcase_add_test(tests, log2_is_within_its_bound);
    tcase_add_test(tests, ends_of_the_range_are_exact);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
