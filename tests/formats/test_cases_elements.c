/* SPDX-License-Identifier: MIT
 *
 * Public failures of element codecs, named by the numbers of tests/CASES.md, which gives the
 * address of each. Expected codes follow from the definitions: the comment beside a number says
 * how.
 */
#include <math.h>

#include "formats/bf16.h"
#include "formats/catalog.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/fp16.h"
#include "support.h"

static dp_encode saturating(void)
{
    return DP_ENCODE_PTX;
}

static dp_encode with_nan(dp_nan_rule rule)
{
    dp_encode how = DP_ENCODE_PTX;
    how.nan = rule;
    return how;
}

static uint32_t e2m1(float x)
{
    return dp_e2m1_from_f32(x, saturating()).bits;
}

static uint32_t e4m3(float x)
{
    return dp_e4m3_from_f32(x, saturating()).bits;
}

static uint32_t e5m2(float x)
{
    return dp_e5m2_from_f32(x, saturating()).bits;
}

static dp_minifloat named(const char *name)
{
    dp_minifloat f = {0};
    ck_assert(dp_catalog_find(name, &f));
    return f;
}

/* All midpoints, both signs, with both f32 neighbours: code k, even of k and k + 1, k + 1. */
static void check_midpoints(dp_minifloat f)
{
    dp_tally tally = {0};
    for (uint32_t code = 0; code < dp_minifloat_max_code(f); code++) {
        const float middle = (float)dp_minifloat_midpoint(code, f);
        const float inputs[3] = {nextafterf(middle, 0.0f), middle, nextafterf(middle, INFINITY)};
        const uint32_t want[3] = {code, code + (code & 1u), code + 1u};
        for (int i = 0; i < 3; i++) {
            const uint32_t got = dp_minifloat_encode(dp_f32_bits(inputs[i]), f, saturating());
            const uint32_t minus = dp_minifloat_encode(dp_f32_bits(-inputs[i]), f, saturating());
            dp_tally_check(&tally, minus == (want[i] | dp_minifloat_sign_bit(f)));
            if (!dp_tally_check(&tally, got == want[i])) {
                dp_tally_note(&tally, "%s of %.9g: 0x%x, not 0x%x", f.name, (double)inputs[i], got,
                              want[i]);
            }
        }
    }
    dp_assert_tally(tally, 6 * dp_minifloat_max_code(f));
}

START_TEST(case_01_ties_to_even)
{
    const float middles[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    const uint32_t want[7] = {0, 2, 2, 4, 4, 6, 6}; /* the even one of k and k + 1 */
    dp_encode away = saturating();
    away.round = DP_RN_TIES_AWAY;
    for (uint32_t i = 0; i < 7; i++) {
        ck_assert_uint_eq(e2m1(middles[i]), want[i]);
        ck_assert_uint_eq(e2m1(-middles[i]), want[i] | 8u);
        ck_assert_uint_eq(dp_e2m1_from_f32(middles[i], away).bits, i + 1u);
    }
    check_midpoints(dp_e2m1_format());
}
END_TEST

START_TEST(case_03_decode_all_codes)
{
    const float magnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    for (uint32_t code = 0; code < 16; code++) {
        const uint32_t want = dp_f32_bits(magnitudes[code & 7u]) | (code & 8u) << 28;
        const dp_e2m1 c = {(uint8_t)code};
        ck_assert_uint_eq(dp_f32_bits(dp_e2m1_to_f32(c)), want);
        ck_assert_uint_eq(e2m1(dp_e2m1_to_f32(c)), code);
    }
}
END_TEST

START_TEST(case_05_nan_into_e2m1)
{
    const float nan = dp_f32_from_bits(0x7FC00000u);
    const float minus_nan = dp_f32_from_bits(0xFFC00000u);
    ck_assert_uint_eq(e2m1(nan), 0x7);
    ck_assert_uint_eq(e2m1(minus_nan), 0x7);
    ck_assert_uint_eq(e2m1(INFINITY), 0x7);
    ck_assert_uint_eq(e2m1(-INFINITY), 0xF);
    ck_assert_uint_eq(dp_e2m1_from_f32(nan, with_nan(DP_NAN_MLDTYPES)).bits, 0x8);
    ck_assert_uint_eq(dp_e2m1_from_f32(minus_nan, with_nan(DP_NAN_MLDTYPES)).bits, 0x0);
    ck_assert_uint_eq(dp_e2m1_from_f32(minus_nan, with_nan(DP_NAN_SIGNED)).bits, 0xF);
    ck_assert_uint_eq(dp_e2m1_from_f32(minus_nan, with_nan(DP_NAN_ZERO)).bits, 0x0);
}
END_TEST

START_TEST(case_07_minus_zero)
{
    ck_assert_uint_eq(e2m1(-0.0f), 0x8);
    ck_assert_uint_eq(e2m1(-0.2f), 0x8);
    ck_assert_uint_eq(e2m1(-0.25f), 0x8);
    ck_assert_uint_eq(dp_f32_bits(dp_e2m1_to_f32((dp_e2m1){0x8})), 0x80000000u);
    dp_encode how = saturating();
    how.drop_zero_sign = true;
    ck_assert_uint_eq(dp_e2m1_from_f32(-0.25f, how).bits, 0x0);
    ck_assert_uint_eq(dp_e2m1_from_f32(-0.26f, how).bits, 0x9);
}
END_TEST

START_TEST(case_08_value_table)
{
    ck_assert(dp_minifloat_value(1, dp_e2m1_format()) == 0.5);
    ck_assert(dp_minifloat_min_subnormal(dp_e2m1_format()) == 0.5);
}
END_TEST

START_TEST(case_09_e4m3_threshold_is_464)
{
    const struct {
        float x;
        uint32_t saturated, special;
    } rows[] = {{448.0f, 0x7E, 0x7E},   {463.9999f, 0x7E, 0x7E},
                {464.0f, 0x7E, 0x7E},   {nextafterf(464.0f, 500.0f), 0x7E, 0x7F},
                {480.0f, 0x7E, 0x7F},   {1000.0f, 0x7E, 0x7F},
                {INFINITY, 0x7E, 0x7F}, {-INFINITY, 0xFE, 0xFF}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(e4m3(rows[i].x), rows[i].saturated);
        ck_assert_uint_eq(dp_e4m3_from_f32(rows[i].x, DP_ENCODE_NONSAT).bits, rows[i].special);
    }
}
END_TEST

START_TEST(case_11_e4m3_subnormals)
{
    for (uint32_t m = 0; m < 8; m++) {
        const float want = (float)m * 0x1p-9f;
        ck_assert(dp_e4m3_to_f32((dp_e4m3){(uint8_t)m}) == want);
        ck_assert_uint_eq(dp_f32_bits(dp_e4m3_to_f32((dp_e4m3){(uint8_t)(m | 0x80u)})),
                          dp_f32_bits(want) | DP_F32_SIGN);
    }
}
END_TEST

START_TEST(case_13_e5m2_infinity)
{
    const float beyond[] = {65504.0f, 65536.0f, 1e6f, INFINITY};
    ck_assert_uint_eq(e5m2(57344.0f), 0x7B);
    ck_assert_uint_eq(dp_e5m2_from_f32(57344.0f, DP_ENCODE_NONSAT).bits, 0x7B);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(e5m2(beyond[i]), 0x7B);
        ck_assert_uint_eq(dp_e5m2_from_f32(beyond[i], DP_ENCODE_NONSAT).bits, 0x7C);
        ck_assert_uint_eq(e5m2(-beyond[i]), 0xFB);
        ck_assert_uint_eq(dp_e5m2_from_f32(-beyond[i], DP_ENCODE_NONSAT).bits, 0xFC);
    }
    ck_assert(dp_minifloat_is_nan(e5m2(dp_f32_from_bits(0x7FC00000u)), dp_e5m2_format()));
}
END_TEST

/* Every half, by nearest value: no other E5M2 value is nearer, and a tie has an even code. */
static bool nearest_and_even(float x, uint32_t code, dp_minifloat f)
{
    const uint32_t sign = code & dp_minifloat_sign_bit(f);
    const uint32_t magnitude = code ^ sign;
    const double error = fabs((double)x - dp_minifloat_value(code, f));
    const double below =
        magnitude == 0 ? INFINITY : fabs((double)x - dp_minifloat_value(code - 1u, f));
    const double above = magnitude >= dp_minifloat_max_code(f)
                             ? INFINITY
                             : fabs((double)x - dp_minifloat_value(code + 1u, f));
    const bool tie = error == below || error == above;
    return error <= below && error <= above && (!tie || magnitude % 2u == 0) &&
           (sign != 0) == (dp_f32_bits(x) >> 31 != 0);
}

START_TEST(case_15_e5m2_ties)
{
    ck_assert_uint_eq(e5m2(9.0f), 0x48);   /* 8 or 10: 8 has the even code   */
    ck_assert_uint_eq(e5m2(11.0f), 0x4A);  /* 10 or 12                       */
    ck_assert_uint_eq(e5m2(1.125f), 0x3C); /* 1 or 1.25                      */
    dp_tally tally = {0};
    for (uint32_t half = 0; half < 0x10000u; half++) {
        const float x = dp_fp16_to_f32((dp_fp16){(uint16_t)half});
        if (isfinite(x) && fabsf(x) <= 57344.0f) {
            if (!dp_tally_check(&tally, nearest_and_even(x, e5m2(x), dp_e5m2_format()))) {
                dp_tally_note(&tally, "half 0x%04x = %.9g: 0x%x", half, (double)x, e5m2(x));
            }
        }
    }
    dp_assert_tally(tally, 60000);
    for (size_t i = 0; i < dp_catalog_size(); i++) {
        const dp_minifloat f = dp_catalog_at(i);
        if (f.has_sign != 0 && f.top != DP_TOP_FNUZ) { /* -0 and unsigned: test_encode.c */
            check_midpoints(f);
        }
    }
}
END_TEST

START_TEST(case_17_nearest_not_truncated)
{
    ck_assert_uint_eq(e4m3(232.03683698f), 0x77); /* 240; the midpoint with 224 is 232 */
    ck_assert(dp_e4m3_to_f32((dp_e4m3){0x77}) == 240.0f);
}
END_TEST

START_TEST(case_18_fn_and_fnuz)
{
    const dp_minifloat fn = named("e4m3");
    const dp_minifloat fnuz = named("e4m3fnuz");
    ck_assert(dp_minifloat_value(0x7E, fn) == 448.0);
    ck_assert(dp_minifloat_value(0x7E, fnuz) == 224.0);
    ck_assert_uint_eq(dp_minifloat_decode(0x80, fn), 0x80000000u);
    ck_assert(dp_minifloat_is_nan(0x80, fnuz));
    ck_assert_uint_eq(dp_minifloat_encode(dp_f32_bits(240.0f), fn, saturating()), 0x77);
    ck_assert_uint_eq(dp_minifloat_encode(dp_f32_bits(240.0f), fnuz, saturating()), 0x7F);
    for (uint32_t code = 0; code < 0x7F; code++) {
        ck_assert(dp_minifloat_value(code, fn) == 2.0 * dp_minifloat_value(code, fnuz));
    }
    /* -0 of FN has no code of its own in FNUZ: it must not become the NaN 0x80. */
    const uint32_t minus_zero = dp_minifloat_decode(0x80, fn);
    ck_assert_uint_eq(dp_minifloat_encode(minus_zero, fnuz, saturating()), 0x00);
}
END_TEST

START_TEST(case_20_fnuz_infinity)
{
    const dp_minifloat fnuz = named("e4m3fnuz");
    dp_encode how = saturating(); /* the newer text: the maximum */
    ck_assert_uint_eq(dp_minifloat_encode(DP_F32_INF, fnuz, how), 0x7F);
    ck_assert_uint_eq(dp_minifloat_encode(DP_F32_INF | DP_F32_SIGN, fnuz, how), 0xFF);
    how.inf = DP_INF_KEPT; /* the older text: NaN */
    ck_assert_uint_eq(dp_minifloat_encode(DP_F32_INF, fnuz, how), 0x80);
    ck_assert_uint_eq(dp_minifloat_encode(dp_f32_bits(1e9f), fnuz, how), 0x7F);
}
END_TEST

START_TEST(case_21_overflow_toward_zero)
{
    const float x = dp_bf16_to_f32((dp_bf16){0x5BF8});
    dp_encode how = saturating();
    how.round = DP_RZ;
    how.overflow = DP_OVERFLOW_UNSPECIFIED;
    ck_assert(!dp_encode_valid(how));
    how.overflow = DP_OVERFLOW_IEEE754;
    ck_assert(dp_encode_valid(how));
    ck_assert_uint_eq(dp_e4m3_from_f32(x, how).bits, 0x7E);
    how.overflow = DP_OVERFLOW_SATFINITE;
    ck_assert_uint_eq(dp_e4m3_from_f32(x, how).bits, 0x7E);
    how.overflow = DP_OVERFLOW_SPECIAL;
    ck_assert_uint_eq(dp_e4m3_from_f32(x, how).bits, 0x7F);
}
END_TEST

/* 2 * 1023 of the 65536 halves are NaN; the two rules give different bytes for all, NaN both. */
START_TEST(case_22_nan_bytes)
{
    unsigned different = 0;
    for (uint32_t half = 0; half < 0x10000u; half++) {
        const float x = dp_f32_from_bits((half & 0x8000u) << 16 |
                                         dp_minifloat_decode(half & 0x7FFFu, dp_fp16_format()));
        const uint32_t ptx = e5m2(x);
        const uint32_t mldtypes = dp_e5m2_from_f32(x, with_nan(DP_NAN_MLDTYPES)).bits;
        if (ptx != mldtypes) {
            different++;
            ck_assert(isnan(x) && ptx == 0x7F && (mldtypes == 0x7E || mldtypes == 0xFE));
            ck_assert(dp_minifloat_is_nan(mldtypes, dp_e5m2_format()));
        }
    }
    ck_assert_uint_eq(different, 2046);
}
END_TEST

START_TEST(case_23_saturation_is_a_mode)
{
    ck_assert_uint_eq(e4m3(465.0f), 0x7E);
    ck_assert_uint_eq(e4m3(1000.0f), 0x7E);
    ck_assert_uint_eq(dp_e4m3_from_f32(465.0f, DP_ENCODE_NONSAT).bits, 0x7F);
    ck_assert_uint_eq(dp_e4m3_from_f32(1000.0f, DP_ENCODE_NONSAT).bits, 0x7F);
}
END_TEST

START_TEST(case_25_one_rounding)
{
    const dp_encode how = DP_ENCODE_NONSAT;
    const float x = 1.0625001f; /* just above the midpoint of 1 and 1.125 */
    const float through_half = dp_fp16_to_f32(dp_fp16_from_f32(x, how));
    ck_assert_uint_eq(e4m3(x), 0x39);
    ck_assert_uint_eq(e4m3(through_half), 0x38);
    const float y = 0.25f + 0x1p-20f;
    ck_assert_uint_eq(e2m1(y), 0x1);
    ck_assert_uint_eq(e2m1(dp_fp16_to_f32(dp_fp16_from_f32(y, how))), 0x0);
    ck_assert_uint_eq(e2m1(dp_bf16_to_f32(dp_bf16_from_f32(y, how))), 0x0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cases of elements");
    TCase *tests = tcase_create("cases");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, case_01_ties_to_even);
    tcase_add_test(tests, case_03_decode_all_codes);
    tcase_add_test(tests, case_05_nan_into_e2m1);
    tcase_add_test(tests, case_07_minus_zero);
    tcase_add_test(tests, case_08_value_table);
    tcase_add_test(tests, case_09_e4m3_threshold_is_464);
    tcase_add_test(tests, case_11_e4m3_subnormals);
    tcase_add_test(tests, case_13_e5m2_infinity);
    tcase_add_test(tests, case_15_e5m2_ties);
    tcase_add_test(tests, case_17_nearest_not_truncated);
    tcase_add_test(tests, case_18_fn_and_fnuz);
    tcase_add_test(tests, case_20_fnuz_infinity);
    tcase_add_test(tests, case_21_overflow_toward_zero);
    tcase_add_test(tests, case_22_nan_bytes);
    tcase_add_test(tests, case_23_saturation_is_a_mode);
    tcase_add_test(tests, case_25_one_rounding);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
