/* SPDX-License-Identifier: MIT
 *
 * Public failures of the E8M0 scale byte, named by the numbers of tests/CASES.md [E1..E4].
 */
#include <float.h>
#include <math.h>

#include "formats/bf16.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "formats/fp16.h"
#include "support.h"

static uint32_t power(float x, dp_e8m0_round round, bool satfinite)
{
    const dp_e8m0_encode how = {round, satfinite};
    return dp_e8m0_from_f32(x, how).bits;
}

static float value(uint32_t code)
{
    return dp_e8m0_to_f32((dp_e8m0){(uint8_t)code});
}

START_TEST(case_30_code_zero_is_not_zero)
{
    ck_assert_uint_eq(dp_f32_bits(value(0)), 0x00400000u);
    ck_assert((double)value(0) == 0x1p-127);
    ck_assert_uint_eq(dp_bf16_from_f32(value(0), DP_ENCODE_PTX).bits, 0x0040);
    ck_assert_uint_eq(dp_fp16_from_f32(value(0), DP_ENCODE_PTX).bits, 0x0000);
    const double product = (double)dp_e4m3_to_f32((dp_e4m3){0x38}) * (double)value(0);
    ck_assert(product == 0x1p-127);
    volatile float one = 1.0f; /* the build must not flush subnormals */
    ck_assert_uint_eq(dp_f32_bits(value(0) * one), 0x00400000u);
}
END_TEST

/* Between code c and c + 1 lie 254 arithmetic midpoints; half of the c are even and keep the tie.
 */
START_TEST(case_32_even_code)
{
    ck_assert_uint_eq(power(3.0f, DP_E8M0_NEAREST_EVEN, true), 0x80);
    ck_assert_uint_eq(power(0.75f, DP_E8M0_NEAREST_EVEN, true), 0x7E);
    ck_assert_uint_eq(power(1.5f, DP_E8M0_NEAREST_EVEN, true), 0x80);
    ck_assert_uint_eq(power(6.0f, DP_E8M0_NEAREST_EVEN, true), 0x82);
    unsigned down = 0;
    for (uint32_t code = 0; code < 254; code++) {
        const float middle = (float)ldexp(1.5, (int)code - 127);
        const uint32_t got = power(middle, DP_E8M0_NEAREST_EVEN, true);
        ck_assert_uint_eq(got, code + (code & 1u));
        down += got == code ? 1u : 0u;
        ck_assert_uint_eq(power(middle, DP_E8M0_NEAREST_UP, true), code + 1u);
        ck_assert_uint_eq(power(nextafterf(middle, 0.0f), DP_E8M0_NEAREST_UP, true), code);
    }
    ck_assert_uint_eq(down, 127);
}
END_TEST

/* Division by the decoded scale in double: no reciprocal that could be 0, no Inf * 0. */
START_TEST(case_34_largest_scale)
{
    const uint32_t scale = power(INFINITY, DP_E8M0_UP, true);
    ck_assert_uint_eq(scale, 0xFE);
    ck_assert((double)value(scale) == 0x1p127);
    ck_assert_uint_eq(dp_f32_bits((float)(1.0 / (double)value(scale))), 0x00400000u);
    const float block[3] = {INFINITY, 1.0f, -INFINITY};
    const uint32_t want[3] = {0x7E, 0x00, 0xFE};
    for (int i = 0; i < 3; i++) {
        const float scaled = (float)((double)block[i] / (double)value(scale));
        ck_assert_uint_eq(dp_e4m3_from_f32(scaled, DP_ENCODE_PTX).bits, want[i]);
    }
}
END_TEST

START_TEST(case_36_negative_scale)
{
    ck_assert_uint_eq(power(-2.0f, DP_E8M0_UP, true), 0x80);
    ck_assert_uint_eq(power(-2.0f, DP_E8M0_DOWN, true), 0x80);
    ck_assert_uint_eq(power(-3.0f, DP_E8M0_DOWN, true), 0x80);
    ck_assert_uint_eq(power(-3.0f, DP_E8M0_UP, true), 0x81);
}
END_TEST

START_TEST(case_37_zero_infinity_nan)
{
    for (unsigned r = 0; r < 4; r++) {
        const dp_e8m0_round round = (dp_e8m0_round)r;
        for (unsigned sat = 0; sat < 2; sat++) {
            ck_assert_uint_eq(power(0.0f, round, sat != 0), 0x00);
            ck_assert_uint_eq(power(-0.0f, round, sat != 0), 0x00);
            ck_assert_uint_eq(power(dp_f32_from_bits(0x7FC00000u), round, sat != 0), 0xFF);
            ck_assert_uint_eq(power(INFINITY, round, sat != 0), sat != 0 ? 0xFE : 0xFF);
        }
    }
    ck_assert_uint_eq(power(FLT_MAX, DP_E8M0_DOWN, false), 0xFE);
    ck_assert_uint_eq(power(FLT_MAX, DP_E8M0_DOWN, true), 0xFE);
    ck_assert_uint_eq(power(FLT_MAX, DP_E8M0_UP, false), 0xFF);
    ck_assert_uint_eq(power(FLT_MAX, DP_E8M0_UP, true), 0xFE);
}
END_TEST

START_TEST(case_39_a_byte_is_an_exponent)
{
    ck_assert(value(0x7F) == 1.0f);
    ck_assert(value(0x7C) == 0.125f);
    ck_assert(value(0x9F) == 4294967296.0f);
    ck_assert((double)value(0xFE) * (double)value(0xFE) == 0x1p254);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cases of e8m0");
    TCase *tests = tcase_create("cases");
    tcase_add_test(tests, case_30_code_zero_is_not_zero);
    tcase_add_test(tests, case_32_even_code);
    tcase_add_test(tests, case_34_largest_scale);
    tcase_add_test(tests, case_36_negative_scale);
    tcase_add_test(tests, case_37_zero_infinity_nan);
    tcase_add_test(tests, case_39_a_byte_is_an_exponent);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
