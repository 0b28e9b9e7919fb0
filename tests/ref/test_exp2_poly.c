/* SPDX-License-Identifier: MIT
 *
 * The polynomial exp2, its lane rule, and the interval of the hardware exp2; cases 91 and 92.
 */
#include <math.h>
#include <mpfr.h>

#include "formats/bf16.h"
#include "ref/arith/exp2_bound.h"
#include "ref/arith/exp2_poly.h"
#include "support.h"

/* FlashAttention-4's decimal constants, as published. */
static const double published[5][6] = {
    {1.0, 0.922497093677520751953125},
    {1.0, 0.6657850742340087890625, 0.330107033252716064453125},
    {1.0, 0.695146143436431884765625, 0.227564394474029541015625, 0.077119089663028717041015625},
    {1.0, 0.693042695522308349609375, 0.2412912547588348388671875, 5.2225358784198760986328125e-2,
     1.3434938155114650726318359375e-2},
    {1.0, 0.693151414394378662109375, 0.24016360938549041748046875, 5.5802188813686370849609375e-2,
     9.01452265679836273193359375e-3, 1.86810153536498546600341796875e-3}};

/* The polynomial at r with the published coefficients in doubles: no f32 rounding. */
static double plain_poly(double r, unsigned degree)
{
    double p = 0;
    for (unsigned i = degree + 1; i-- > 0;) {
        p = p * r + published[degree - 1][i];
    }
    return p;
}

START_TEST(coefficients)
{
    for (unsigned degree = 1; degree <= 5; degree++) {
        for (unsigned i = 0; i <= degree; i++) {
            const float c = dp_f32_from_bits(dp_exp2_poly_coefficients(degree)[i]);
            ck_assert((double)c == published[degree - 1][i]);
        }
    }
}
END_TEST

/* One step a time with MPFR: floor, exact differences rounded once, fused Horner. */
static uint32_t by_mpfr(float x, unsigned degree)
{
    static mpfr_t r, p, c;
    static bool ready = false;
    if (!ready) {
        mpfr_inits2(24, r, p, c, (mpfr_ptr)NULL);
        ready = true;
    }
    const double floored = floor((double)x);
    mpfr_set_flt(r, x, MPFR_RNDN);
    mpfr_sub_d(r, r, floored, MPFR_RNDN);
    mpfr_set_d(p, published[degree - 1][degree], MPFR_RNDN);
    for (unsigned i = degree; i-- > 0;) {
        mpfr_set_d(c, published[degree - 1][i], MPFR_RNDN);
        mpfr_fma(p, p, r, c, MPFR_RNDN);
    }
    mpfr_mul_2si(p, p, (long)floored, MPFR_RNDN);
    return dp_f32_bits(mpfr_get_flt(p, MPFR_RNDN));
}

START_TEST(definition_equals_mpfr)
{
    dp_rng rng = {0xE2000001u};
    dp_tally tally = {0};
    for (int n = 0; n < 300000; n++) {
        const unsigned degree = 1 + dp_rng_below(&rng, 5);
        float x = (float)(dp_rng_unit(&rng) * 253.0 - 126.0);
        if (n % 4 == 0) { /* small, or next to an integer */
            x = (float)ldexp(dp_rng_unit(&rng) - 0.5, -(int)dp_rng_below(&rng, 40));
            x += n % 8 == 0 ? (float)((int)dp_rng_below(&rng, 200) - 100) : 0.0f;
        }
        const uint32_t got = dp_exp2_poly(dp_f32_bits(x), degree);
        if (!dp_tally_check(&tally, got == by_mpfr(x, degree))) {
            dp_tally_note(&tally, "degree %u x %a: %08x, MPFR %08x", degree, (double)x, got,
                          by_mpfr(x, degree));
        }
    }
    dp_assert_tally(tally, 300000);
}
END_TEST

START_TEST(fast_equals_definition)
{
    dp_rng rng = {0xE2000002u};
    dp_tally tally = {0};
    for (int n = 0; n < 1500000; n++) {
        const unsigned degree = 1 + dp_rng_below(&rng, 5);
        const float x = n % 2 == 0 ? dp_rng_nasty_f32(&rng) : (float)(20.0 * dp_rng_normal(&rng));
        const uint32_t got = dp_f32_bits(dp_exp2_poly_fast(x, degree));
        const uint32_t want = dp_exp2_poly(dp_f32_bits(x), degree);
        if (!dp_tally_check(&tally, got == want)) {
            dp_tally_note(&tally, "degree %u x %a: fast %08x, definition %08x", degree, (double)x,
                          got, want);
        }
    }
    dp_assert_tally(tally, 1500000);
}
END_TEST

START_TEST(clamp)
{
    for (unsigned degree = 1; degree <= 5; degree++) {
        ck_assert_uint_eq(dp_exp2_poly(0xC2FE0000u, degree), 0); /* -127 */
        ck_assert_uint_eq(dp_exp2_poly(0xC3800000u, degree), 0); /* -256 */
        ck_assert_uint_eq(dp_exp2_poly(0xFF800000u, degree), 0); /* -Inf */
        ck_assert_uint_eq(dp_exp2_poly(0x7FC00000u, degree), 0); /* NaN is lost: max drops it */
        ck_assert_uint_eq(dp_exp2_poly(0x80000000u, degree), 0x3F800000u);
        ck_assert_uint_eq(dp_exp2_poly(0xC2FC0000u, degree), 0x00800000u); /* -126 */
        ck_assert_uint_eq(dp_exp2_poly(0x42FE0000u, degree), 0x7F000000u); /* 127 */
    }
}
END_TEST

/* Largest relative errors of the real polynomials on [0, 1], and where. */
static void extremes(unsigned degree, double out[4])
{
    out[0] = out[1] = out[2] = out[3] = 0;
    for (int i = 0; i <= 1000000; i++) {
        const double r = (double)i * 1e-6;
        const double e = (double)((long double)plain_poly(r, degree) / exp2l((long double)r) - 1);
        if (e > out[0]) {
            out[0] = e;
            out[1] = r;
        }
        if (e < out[2]) {
            out[2] = e;
            out[3] = r;
        }
    }
}

/* Case 91: how good the polynomial is, and where narrow formats see it. */
START_TEST(case_91_errors)
{
    double e[4];
    extremes(3, e);
    ck_assert(fabs(e[0] - 8.76e-5) < 1e-7 && fabs(e[1] - 0.1008) < 1e-4);
    ck_assert(fabs(e[2] + 8.52e-5) < 1e-7 && e[3] > 0.9999);
    extremes(4, e);
    ck_assert(fabs(e[2] + 2.99e-6) < 1e-8);
    extremes(5, e);
    ck_assert(fabs(e[0] - 8.5e-8) < 1e-9);
    extremes(2, e);
    ck_assert(fabs(e[0] - 2.03e-3) < 1e-5 && fabs(e[2] + 2.08e-3) < 1e-5);
    extremes(1, e);
    ck_assert(fabs(e[0] - 3.79e-2) < 1e-4 && fabs(e[2] + 3.88e-2) < 1e-4);

    uint32_t bf16 = 0, e4m3 = 0;
    for (int i = 1; i < 4096; i++) {
        const float x = (float)i / 4096.0f;
        const float poly = dp_exp2_poly_fast(x, 3);
        const float exact = dp_ex2_approx_ftz(dp_sfu_exact(), x);
        bf16 += dp_bf16_from_f32(poly, DP_ENCODE_PTX).bits !=
                dp_bf16_from_f32(exact, DP_ENCODE_PTX).bits;
        e4m3 += dp_e4m3_from_f32(poly, DP_ENCODE_PTX).bits !=
                dp_e4m3_from_f32(exact, DP_ENCODE_PTX).bits;
    }
    ck_assert_uint_eq(bf16, 33);
    ck_assert_uint_eq(e4m3, 4);
    const float x = 0.005615234375f, y = 0.08740234375f;
    ck_assert_uint_eq(dp_bf16_from_f32(dp_exp2_poly_fast(x, 3), DP_ENCODE_PTX).bits, 0x3F81);
    ck_assert_uint_eq(dp_bf16_from_f32(dp_ex2_approx_ftz(dp_sfu_exact(), x), DP_ENCODE_PTX).bits,
                      0x3F80);
    ck_assert_uint_eq(dp_e4m3_from_f32(dp_exp2_poly_fast(y, 3), DP_ENCODE_PTX).bits, 0x39);
    ck_assert_uint_eq(dp_e4m3_from_f32(dp_ex2_approx_ftz(dp_sfu_exact(), y), DP_ENCODE_PTX).bits,
                      0x38);
}
END_TEST

/* Case 91: under the bound a code is decided or undecidable; the H200 never leaves the interval. */
START_TEST(case_91_interval)
{
    dp_rng rng = {0xE2000003u};
    dp_tally tally = {0};
    uint32_t undecided = 0;
    for (int n = 0; n < 1000000; n++) {
        const uint32_t x = n % 2 == 0 ? dp_f32_bits((float)(dp_rng_unit(&rng) * 16.0 - 12.0))
                                      : dp_f32_bits(dp_rng_nasty_f32(&rng));
        const dp_f32_interval interval = dp_ex2_interval(x, DP_EX2_CONTRACT_ULP);
        dp_e2m1 low, high;
        const bool decided = dp_interval_e2m1(interval, DP_ENCODE_PTX, &low, &high);
        const uint32_t h200 = dp_sfu_ex2(dp_sfu_h200(), x);
        const dp_e2m1 code = dp_e2m1_from_f32(dp_f32_from_bits(h200), DP_ENCODE_PTX);
        undecided += decided ? 0 : 1;
        const bool good =
            dp_f32_interval_holds(interval, h200) &&
            (decided ? code.bits == low.bits : code.bits == low.bits || code.bits == high.bits);
        if (!dp_tally_check(&tally, good)) {
            dp_tally_note(&tally, "%08x: H200 %08x outside %08x .. %08x", x, h200, interval.low,
                          interval.high);
        }
    }
    dp_assert_tally(tally, 1000000);
    ck_assert_uint_lt(undecided, 1000);
    /* 2^x next to the midpoint 2.5 of the codes of 2 and 3: undecidable within 2 ulp, not at 4 */
    const uint32_t edge = dp_f32_bits(log2f(2.5f));
    dp_e2m1 low, high;
    ck_assert(!dp_interval_e2m1(dp_ex2_interval(edge, 2), DP_ENCODE_PTX, &low, &high));
    ck_assert_uint_eq(low.bits, 4);
    ck_assert_uint_eq(high.bits, 5);
    ck_assert(dp_interval_e2m1(dp_ex2_interval(edge + 8, 2), DP_ENCODE_PTX, &low, &high));
    ck_assert_uint_eq(low.bits, 5);
    dp_e4m3 low8, high8;
    ck_assert(dp_interval_e4m3(dp_ex2_interval(0, 2), DP_ENCODE_PTX, &low8, &high8));
    ck_assert_uint_eq(low8.bits, 0x38);
    /* the points of the contract */
    ck_assert_uint_eq(dp_ex2_interval(0x7FC00000u, 2).low, 0x7FFFFFFFu);
    ck_assert(dp_f32_interval_holds(dp_ex2_interval(0xFFC00000u, 2), 0x7FC00000u));
    ck_assert_uint_eq(dp_ex2_interval(0xFF800000u, 2).high, 0);
    ck_assert_uint_eq(dp_ex2_interval(0xC2FC0000u, 2).low, 0);
    ck_assert_uint_eq(dp_ex2_interval(0xC2FC0000u, 2).high, 0x00800002u);
    ck_assert_uint_eq(dp_ex2_interval(0x3F800000u, 2).low, 0x3FFFFFFEu);
}
END_TEST

static unsigned poly_lanes(const char *name, char *pairs)
{
    const dp_exp2_lanes *lanes = dp_exp2_lanes_by_name(name);
    ck_assert_ptr_nonnull(lanes);
    unsigned count = 0;
    for (unsigned lane = 0; lane < 128; lane++) {
        count += dp_exp2_lane_is_poly(lanes, lane) ? 1 : 0;
    }
    pairs[0] = '\0';
    for (unsigned k = 0; k < 32; k += 2) { /* fragment 1 is always in */
        if (dp_exp2_lane_is_poly(lanes, 32 + k)) {
            ck_assert(dp_exp2_lane_is_poly(lanes, 33 + k));
            (void)snprintf(pairs + strlen(pairs), 8, " %u", k);
        }
    }
    return count;
}

START_TEST(lane_rule)
{
    static const struct {
        const char *name, *pairs;
        unsigned lanes;
    } want[] = {{"off", "", 0},
                {"fa4-2cta-d128", " 6 8 16 18 26 28", 24},
                {"fa4-d128", " 12 14 28 30", 16},
                {"fa4-d192", " 12 14 28 30", 24},
                {"fa4-varlen", " 28 30", 8},
                {"fa4-fp8-causal", " 4 6 12 14 20 22 28 30", 32},
                {"hao-fp8-pv", " 6 8 14 16 24 26", 36},
                {"hao-fp8-pv-mxfp8-qk", " 6 8 16 18 26 28", 36},
                {"fa4-d256", " 8 10 12 22 24 26", 36}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char pairs[64];
        ck_assert_uint_eq(poly_lanes(want[i].name, pairs), want[i].lanes);
        ck_assert_str_eq(pairs, want[i].pairs);
    }
    ck_assert_ptr_null(dp_exp2_lanes_by_name("fa5"));
}
END_TEST

/* Case 92: the same row of 512 in a kernel with the polynomial and in one without. They differ bit
 * for bit, only in the lanes of the rule, and both lie inside their own bound around the exact
 * value. */
START_TEST(case_92)
{
    dp_rng rng = {0xE2000004u};
    const dp_exp2_lanes *prefill = dp_exp2_lanes_by_name("fa4-d128");
    unsigned differ = 0, outside = 0, worse = 0;
    for (unsigned column = 0; column < 512; column++) {
        const float x = -(float)fabs(4.0 * dp_rng_normal(&rng));
        const float decode = dp_ex2_approx_ftz(dp_sfu_h200(), x);
        const bool poly = dp_exp2_lane_is_poly(prefill, column % 128);
        const float result = poly ? dp_exp2_poly_fast(x, DP_EXP2_DEFAULT_DEGREE) : decode;
        const long double exact = exp2l((long double)x);
        const bool same = dp_f32_bits(result) == dp_f32_bits(decode);
        differ += same ? 0 : 1;
        outside += !same && !poly ? 1 : 0;
        worse += fabsl((long double)result / exact - 1) > 8.8e-5L ? 1 : 0;
        worse +=
            dp_f32_interval_holds(dp_ex2_interval(dp_f32_bits(x), 2), dp_f32_bits(decode)) ? 0 : 1;
    }
    ck_assert_uint_gt(differ, 32);
    ck_assert_uint_le(differ, 64);
    ck_assert_uint_eq(outside, 0);
    ck_assert_uint_eq(worse, 0);
}
END_TEST

int main(void)
{
    printf("seeds 0xE2000001 .. 0xE2000004\n");
    Suite *suite = suite_create("exp2 polynomial");
    TCase *tcase = tcase_create("exp2 polynomial");
    tcase_add_test(tcase, coefficients);
    tcase_add_test(tcase, definition_equals_mpfr);
    tcase_add_test(tcase, fast_equals_definition);
    tcase_add_test(tcase, clamp);
    tcase_add_test(tcase, case_91_errors);
    tcase_add_test(tcase, case_91_interval);
    tcase_add_test(tcase, lane_rule);
    tcase_add_test(tcase, case_92);
    suite_add_tcase(suite, tcase);
    return dp_run_suite(suite);
}
