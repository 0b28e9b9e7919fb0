/* SPDX-License-Identifier: MIT
 *
 * ref/arith/cvt.h and cvt_rs.h against a search over decoded values: fields, ties, tails, random
 * bits; and the double-rounding cases 25, 27 and 29.
 */
#include <math.h>

#include "ref/arith/cvt.h"
#include "ref/arith/cvt_rs.h"
#include "support.h"

/* A format written down again, apart from formats/: value of a magnitude code by definition. */
typedef struct {
    int exponent_bits, mantissa_bits, bias;
    uint32_t max_code;
    uint32_t nan_code;
} plain_format;

static const plain_format e2m1 = {2, 1, 1, 7, 7};
static const plain_format e4m3 = {4, 3, 7, 0x7E, 0x7F};
static const plain_format e5m2 = {5, 2, 15, 0x7B, 0x7F};

static double plain_value(uint32_t code, plain_format f)
{
    const int field = (int)(code >> f.mantissa_bits);
    const int mantissa = (int)(code & ((1u << f.mantissa_bits) - 1u));
    return field == 0 ? ldexp((double)mantissa, 1 - f.bias - f.mantissa_bits)
                      : ldexp((double)((1 << f.mantissa_bits) + mantissa),
                              field - f.bias - f.mantissa_bits);
}

/* Nearest code, ties to even, saturating; every comparison of doubles here is exact. */
static uint32_t plain_encode(float x, plain_format f, bool relu)
{
    if (x != x) {
        return f.nan_code;
    }
    const double magnitude = fabs((double)x);
    uint32_t code = 0;
    while (code < f.max_code) {
        const double middle = (plain_value(code, f) + plain_value(code + 1, f)) / 2;
        if (magnitude < middle || (magnitude == middle && code % 2 == 0)) {
            break;
        }
        code++;
    }
    const bool negative = signbit(x) != 0;
    const uint32_t sign = 1u << (f.exponent_bits + f.mantissa_bits);
    return relu && negative ? 0 : code | (negative ? sign : 0);
}

/* Midpoints and codes of a format, moved by up to 2 ulp; otherwise anything. */
static float draw(dp_rng *rng, plain_format f)
{
    if (dp_rng_below(rng, 3) == 0) {
        return dp_rng_nasty_f32(rng);
    }
    const uint32_t code = dp_rng_below(rng, f.max_code + 1);
    const double low = plain_value(code, f);
    const double high = plain_value(code + 1, f);
    const float x = (float)(dp_rng_below(rng, 2) == 0 ? low : (low + high) / 2);
    const uint32_t bits = dp_f32_bits(x) + dp_rng_below(rng, 5) - 2u;
    return dp_f32_from_bits((bits & DP_F32_ABS) | (dp_rng_u32(rng) & DP_F32_SIGN));
}

START_TEST(pairs_from_f32)
{
    dp_rng rng = {0xC7000001u};
    dp_tally tally = {0};
    for (int n = 0; n < 300000; n++) {
        const bool relu = n % 2 != 0;
        const float a4 = draw(&rng, e2m1), b4 = draw(&rng, e2m1);
        const float a8 = draw(&rng, e4m3), b8 = draw(&rng, e4m3);
        const float a5 = draw(&rng, e5m2), b5 = draw(&rng, e5m2);
        const uint32_t got4 = dp_cvt_e2m1x2_f32(a4, b4, relu).bits;
        const uint32_t got8 = dp_cvt_e4m3x2_f32(a8, b8, relu).bits;
        const uint32_t got5 = dp_cvt_e5m2x2_f32(a5, b5, relu).bits;
        const bool equal =
            got4 == (plain_encode(a4, e2m1, relu) << 4 | plain_encode(b4, e2m1, relu)) &&
            got8 == (plain_encode(a8, e4m3, relu) << 8 | plain_encode(b8, e4m3, relu)) &&
            got5 == (plain_encode(a5, e5m2, relu) << 8 | plain_encode(b5, e5m2, relu));
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally,
                          "relu %d e2m1 (%a, %a) %02x e4m3 (%a, %a) %04x e5m2 (%a, %a) %04x", relu,
                          (double)a4, (double)b4, got4, (double)a8, (double)b8, got8, (double)a5,
                          (double)b5, got5);
        }
    }
    dp_assert_tally(tally, 300000);
}
END_TEST

START_TEST(first_operand_is_high)
{
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(6.0f, 0.5f, false).bits, 0x71);
    ck_assert_uint_eq(dp_cvt_e4m3x2_f32(448.0f, 1.0f, false).bits, 0x7E38);
    ck_assert_uint_eq(dp_cvt_e5m2x2_f32(1.0f, -57344.0f, false).bits, 0x3CFB);
    ck_assert_uint_eq(dp_cvt_ue8m0x2_f32(2.0f, 1.0f, dp_e8m0_encode_up()).bits, 0x807F);
    const dp_cvt16 plain = {false, false, false};
    ck_assert_uint_eq(dp_cvt_bf16x2_f32(2.0f, 1.0f, plain).bits, 0x40003F80u);
    ck_assert_uint_eq(dp_cvt_f16x2_f32(2.0f, 1.0f, plain).bits, 0x40003C00u);
    const dp_e2m1x2 pair = {0x71};
    ck_assert_uint_eq(dp_cvt_f16x2_e2m1x2(pair, false).bits, 0x46003800u);
}
END_TEST

/* NaN of either sign, Inf, -0 and relu (PTX ISA 9.1, cvt). */
START_TEST(tails)
{
    const float nan = dp_f32_from_bits(0xFFC00001u);
    const float inf = dp_f32_from_bits(0x7F800000u);
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(nan, -inf, false).bits, 0x7F);
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(nan, -inf, true).bits, 0x70);
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(-0.0f, -0.2f, false).bits, 0x88);
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(-0.0f, -0.2f, true).bits, 0x00);
    ck_assert_uint_eq(dp_cvt_e4m3x2_f32(nan, inf, false).bits, 0x7F7E);
    ck_assert_uint_eq(dp_cvt_e5m2x2_f32(nan, -inf, false).bits, 0x7FFB);
    const dp_cvt16 rn = {false, false, false}, rz = {true, false, false};
    const dp_cvt16 sat = {false, false, true}, relu = {false, true, false};
    const float max = dp_f32_from_bits(0x7F7FFFFFu);
    ck_assert_uint_eq(dp_cvt_bf16x2_f32(nan, max, rn).bits, 0x7FFF7F80u);
    ck_assert_uint_eq(dp_cvt_bf16x2_f32(inf, max, rz).bits, 0x7F807F7Fu);
    ck_assert_uint_eq(dp_cvt_bf16x2_f32(-inf, max, sat).bits, 0xFF7F7F7Fu);
    ck_assert_uint_eq(dp_cvt_bf16x2_f32(-max, nan, relu).bits, 0x00007FFFu);
    ck_assert_uint_eq(dp_cvt_f16x2_f32(65520.0f, 65519.0f, rn).bits, 0x7C007BFFu);
    ck_assert_uint_eq(dp_cvt_f16x2_f32(-65520.0f, 1e9f, rz).bits, 0xFBFF7BFFu);
    const dp_e8m0_encode up = dp_e8m0_encode_up(), open = {DP_E8M0_UP, false};
    ck_assert_uint_eq(dp_cvt_ue8m0x2_f32(0.0f, nan, up).bits, 0x00FF);
    ck_assert_uint_eq(dp_cvt_ue8m0x2_f32(max, max, up).bits, 0xFEFE);
    ck_assert_uint_eq(dp_cvt_ue8m0x2_f32(max, inf, open).bits, 0xFFFF);
    ck_assert_uint_eq(dp_cvt_ue8m0x2_f32(max, -2.0f, dp_e8m0_encode_down()).bits, 0xFE80);
}
END_TEST

/* Every 16-bit source in both fields: the packed forms are the scalar ones applied to exact values.
 */
START_TEST(every_half_and_bf16)
{
    dp_tally tally = {0};
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const dp_fp16x2 h = {bits << 16 | (bits ^ 0x5A5Au)};
        const dp_bf16x2 b = {bits << 16 | (bits ^ 0x5A5Au)};
        float half[2];
        for (unsigned i = 0; i < 2; i++) {
            const uint32_t v = (h.bits >> (16 * i)) & 0xFFFFu;
            const int field = (int)(v >> 10 & 31u);
            const double m = ldexp((double)((v & 1023u) | (field != 0 ? 1024u : 0u)),
                                   (field == 0 ? 1 : field) - 25);
            half[i] = field == 31 ? dp_f32_from_bits((v & 1023u) != 0 ? 0x7FC00000u : 0x7F800000u)
                                  : (float)m;
            half[i] = (v >> 15) != 0 ? -half[i] : half[i];
        }
        const float high = dp_f32_from_bits(bits << 16);
        const float low = dp_f32_from_bits((bits ^ 0x5A5Au) << 16);
        const dp_e8m0_encode how = {bits % 2 == 0 ? DP_E8M0_UP : DP_E8M0_DOWN, bits % 3 == 0};
        const bool equal =
            dp_cvt_e4m3x2_f16x2(h, false).bits ==
                (plain_encode(half[1], e4m3, false) << 8 | plain_encode(half[0], e4m3, false)) &&
            dp_cvt_e5m2x2_f16x2(h, true).bits ==
                (plain_encode(half[1], e5m2, true) << 8 | plain_encode(half[0], e5m2, true)) &&
            dp_cvt_e2m1x2_f16x2(h, true).bits ==
                (plain_encode(half[1], e2m1, true) << 4 | plain_encode(half[0], e2m1, true)) &&
            dp_cvt_e2m1x2_bf16x2(b, false).bits ==
                (plain_encode(high, e2m1, false) << 4 | plain_encode(low, e2m1, false)) &&
            dp_cvt_ue8m0x2_bf16x2(b, how).bits == dp_cvt_ue8m0x2_f32(high, low, how).bits;
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally, "source %04x", bits);
        }
    }
    dp_assert_tally(tally, 65536);
}
END_TEST

/* cvt.rp and cvt.rz to UE8M0 by powers of two in doubles: zero to 2^-127, then up to the limit. */
START_TEST(ue8m0_by_powers)
{
    dp_rng rng = {0xC7000002u};
    dp_tally tally = {0};
    for (int n = 0; n < 300000; n++) {
        const float x = fabsf(dp_rng_nasty_f32(&rng));
        if (x != x || isinf(x)) {
            continue;
        }
        uint32_t down = 0, up = 0;
        while (down < 254 && ldexp(1.0, (int)down + 1 - 127) <= (double)x) {
            down++;
        }
        while (up < 254 && ldexp(1.0, (int)up - 127) < (double)x) {
            up++;
        }
        const uint32_t got = (uint32_t)dp_cvt_ue8m0x2_f32(x, x, dp_e8m0_encode_up()).bits << 16 |
                             dp_cvt_ue8m0x2_f32(x, x, dp_e8m0_encode_down()).bits;
        if (!dp_tally_check(&tally, got == (up * 0x0101u << 16 | down * 0x0101u))) {
            dp_tally_note(&tally, "%a: %08x, want %02x and %02x", (double)x, got, up, down);
        }
    }
    dp_assert_tally(tally, 200000);
}
END_TEST

START_TEST(exact_expansions)
{
    dp_tally tally = {0};
    for (uint32_t code = 0; code < 256; code++) {
        const dp_e2m1x2 p4 = {(uint8_t)code};
        const dp_e4m3x2 p8 = {(uint16_t)(code << 8 | (code ^ 0x55u))};
        const dp_e5m2x2 p5 = {(uint16_t)(code << 8 | (code ^ 0x55u))};
        const dp_e8m0x2 s = {(uint16_t)(code << 8 | (code ^ 0x55u))};
        for (unsigned i = 0; i < 2; i++) {
            const uint32_t c4 = code >> (4 * i) & 15u;
            const uint32_t c8 = i == 1 ? code : code ^ 0x55u;
            const float h4 = dp_fp16_to_f32(dp_fp16x2_get(dp_cvt_f16x2_e2m1x2(p4, false), i));
            const uint32_t h8 = dp_fp16x2_get(dp_cvt_f16x2_e4m3x2(p8, false), i).bits;
            const uint32_t h5 = dp_fp16x2_get(dp_cvt_f16x2_e5m2x2(p5, false), i).bits;
            const uint32_t b = dp_bf16x2_get(dp_cvt_bf16x2_ue8m0x2(s), i).bits;
            const double v4 = plain_value(c4 & 7u, e2m1);
            const double v8 = plain_value(c8 & 0x7Fu, e4m3);
            const dp_fp16 half8 = {(uint16_t)h8};
            const uint32_t want5 = (c8 & 0x7Fu) > 0x7Cu ? 0x7FFFu : c8 << 8; /* E5M2 is a cut f16 */
            const uint32_t want_b = c8 == 255 ? 0x7FFFu : c8 == 0 ? 0x0040u : c8 << 7;
            const bool equal4 = (double)h4 == (c4 > 7 ? -v4 : v4) && (signbit(h4) != 0) == (c4 > 7);
            const bool equal8 = (c8 & 0x7Fu) == 0x7Fu
                                    ? h8 == 0x7FFFu
                                    : (double)dp_fp16_to_f32(half8) == (c8 > 127 ? -v8 : v8) &&
                                          (h8 >> 15) == (c8 >> 7);
            if (!dp_tally_check(&tally, equal4 && equal8 && h5 == want5 && b == want_b)) {
                dp_tally_note(&tally, "code %02x field %u: %a %04x %04x %04x", code, i, (double)h4,
                              h8, h5, b);
            }
        }
    }
    dp_assert_tally(tally, 512);
}
END_TEST

/* A value 3/8 of the way up is rounded up by 3/8 of all random words, in every form. */
START_TEST(stochastic_is_unbiased)
{
    const dp_cvt_rs how = {false, false, DP_RS_HIGH_FIRST};
    uint32_t up[5] = {0, 0, 0, 0, 0};
    const float x4 = 1.0f + 0.5f * 0.375f, x8 = 1.0f + 0.125f * 0.375f, x5 = 1.0f + 0.25f * 0.375f;
    const float xb = 1.0f + 0x1p-7f * 0.375f, xh = 1.0f + 0x1p-10f * 0.375f;
    const float v4[4] = {x4, x4, x4, x4}, v8[4] = {x8, x8, x8, x8}, v5[4] = {x5, x5, x5, x5};
    for (uint32_t r = 0; r < 65536; r++) {
        const uint32_t rbits = r << 16 | r;
        up[0] += (dp_cvt_rs_e2m1x4_f32(v4, rbits, how) >> 12) - 2u;
        up[1] += (dp_cvt_rs_e4m3x4_f32(v8, rbits, how) >> 24) - 0x38u;
        up[2] += (dp_cvt_rs_e5m2x4_f32(v5, rbits, how) & 0xFFu) - 0x3Cu;
        up[3] += (dp_cvt_rs_bf16x2_f32(xb, xb, rbits, how).bits >> 16) - 0x3F80u;
        up[4] += (dp_cvt_rs_f16x2_f32(xh, xh, rbits, how).bits & 0xFFFFu) - 0x3C00u;
    }
    for (int k = 0; k < 5; k++) {
        ck_assert_uint_eq(up[k], 65536 / 8 * 3);
    }
}
END_TEST

/* Which byte of rbits moves which element: a value just above a code goes up only for 0xFF. */
START_TEST(stochastic_bit_assignment)
{
    const float x = 1.0f + 0.5f / 256, y = 1.0f + 0.125f / 256;
    const float v4[4] = {x, x, x, x}, v8[4] = {y, y, y, y};
    const dp_cvt_rs high = {false, false, DP_RS_HIGH_FIRST}, low = {false, false, DP_RS_LOW_FIRST};
    const dp_cvt_rs shared = {false, false, DP_RS_SHARED};
    ck_assert_uint_eq(dp_cvt_rs_e4m3x4_f32(v8, 0xFF000000u, high), 0x39383838u);
    ck_assert_uint_eq(dp_cvt_rs_e4m3x4_f32(v8, 0x00FF0000u, high), 0x38393838u);
    ck_assert_uint_eq(dp_cvt_rs_e4m3x4_f32(v8, 0x0000FF00u, low), 0x38383839u);
    ck_assert_uint_eq(dp_cvt_rs_e4m3x4_f32(v8, 0xFFFF0000u, shared), 0x39393838u);
    ck_assert_uint_eq(dp_cvt_rs_e2m1x4_f32(v4, 0xFF000000u, high), 0x3222);
    ck_assert_uint_eq(dp_cvt_rs_e2m1x4_f32(v4, 0x0000FF00u, high), 0x2322);
    ck_assert_uint_eq(dp_cvt_rs_e2m1x4_f32(v4, 0x00FF0000u, high), 0x2232);
    ck_assert_uint_eq(dp_cvt_rs_e2m1x4_f32(v4, 0x000000FFu, high), 0x2223);
    ck_assert_uint_eq(dp_cvt_rs_e2m1x4_f32(v4, 0xFF000000u, low), 0x2322);
    const float z = 1.0f + 0x1p-23f, w = 1.0f + 0x1p-23f;
    ck_assert_uint_eq(dp_cvt_rs_bf16x2_f32(z, w, 0xFFFF0000u, high).bits, 0x3F813F80u);
    ck_assert_uint_eq(dp_cvt_rs_f16x2_f32(z, w, 0x00001FFFu, high).bits, 0x3C003C01u);
}
END_TEST

/* Case 25: f32 -> FP8 or E2M1 must not pass through a half. */
START_TEST(case_25)
{
    const float x8 = dp_f32_from_bits(0x3F880001u); /* one ulp above the midpoint 1.0625 */
    ck_assert(dp_f32_bits(1.0625001f) == 0x3F880001u);
    const dp_cvt16 rn = {false, false, false};
    const dp_fp16x2 half8 = dp_cvt_f16x2_f32(x8, x8, rn);
    ck_assert_uint_eq(dp_cvt_e4m3x2_f32(x8, x8, false).bits, 0x3939);
    ck_assert_uint_eq(dp_cvt_e4m3x2_f16x2(half8, false).bits, 0x3838);
    const float x4 = 0.25f + 0x1p-20f;
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(x4, x4, false).bits, 0x11);
    ck_assert_uint_eq(dp_cvt_e2m1x2_f16x2(dp_cvt_f16x2_f32(x4, x4, rn), false).bits, 0x00);
    ck_assert_uint_eq(dp_cvt_e2m1x2_bf16x2(dp_cvt_bf16x2_f32(x4, x4, rn), false).bits, 0x00);
}
END_TEST

/* Case 27: the exponent of amax is that of the f32, not of its bf16. */
START_TEST(case_27)
{
    const float amax = dp_f32_from_bits(0x3FFF8000u);
    const dp_cvt16 rn = {false, false, false};
    const dp_e8m0_encode down = dp_e8m0_encode_down();
    ck_assert_uint_eq(dp_cvt_ue8m0x2_f32(amax, amax, down).bits, 0x7F7F);
    ck_assert_uint_eq(dp_cvt_ue8m0x2_bf16x2(dp_cvt_bf16x2_f32(amax, amax, rn), down).bits, 0x8080);
}
END_TEST

/* Case 29: adjacent bf16 inputs on both sides of a midpoint get different codes. */
START_TEST(case_29)
{
    ck_assert_uint_eq(dp_cvt_e2m1x2_f32(0.75f, 0.74609375f, false).bits, 0x21);
    const dp_bf16x2 pair = {0x3F403F3Fu};
    ck_assert_uint_eq(dp_cvt_e2m1x2_bf16x2(pair, false).bits, 0x21);
}
END_TEST

int main(void)
{
    printf("seeds 0xC7000001 .. 0xC7000002\n");
    Suite *suite = suite_create("cvt");
    TCase *tcase = tcase_create("cvt");
    tcase_add_test(tcase, pairs_from_f32);
    tcase_add_test(tcase, first_operand_is_high);
    tcase_add_test(tcase, tails);
    tcase_add_test(tcase, every_half_and_bf16);
    tcase_add_test(tcase, ue8m0_by_powers);
    tcase_add_test(tcase, exact_expansions);
    tcase_add_test(tcase, stochastic_is_unbiased);
    tcase_add_test(tcase, stochastic_bit_assignment);
    tcase_add_test(tcase, case_25);
    tcase_add_test(tcase, case_27);
    tcase_add_test(tcase, case_29);
    suite_add_tcase(suite, tcase);
    return dp_run_suite(suite);
}
