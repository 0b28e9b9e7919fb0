/* SPDX-License-Identifier: MIT
 *
 * Decoding, the properties that tie it to encoding, and packed pairs [F2, F3, F10].
 */
#include <math.h>

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

START_TEST(every_code_decodes_to_its_value)
{
    const dp_minifloat f = dp_catalog_at((size_t)_i);
    const dp_exact_format *format = dp_exact_format_at((size_t)_i);
    dp_exact_list list = dp_exact_list_of(format);
    dp_tally tally = {0};
    /* Codes beyond the width too: the bits above it are ignored. */
    for (uint32_t code = 0; code < 2u * dp_minifloat_codes(f); code++) {
        const uint32_t got = dp_minifloat_decode(code, f);
        const uint32_t want = dp_exact_decode(format, &list, code);
        if (!dp_tally_check(&tally, got == want)) {
            dp_tally_note(&tally, "%s 0x%x: 0x%08x, not 0x%08x", f.name, code, got, want);
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 2u * dp_minifloat_codes(f));
}
END_TEST

static void note(dp_tally *tally, bool equal, const char *what, uint32_t code, uint32_t got)
{
    if (!dp_tally_check(tally, equal)) {
        dp_tally_note(tally, "%s 0x%x: 0x%08x", what, code, got);
    }
}

START_TEST(typed_decoders)
{
    const size_t narrow[] = {0, 3, 4, 5, 6};
    dp_exact_list list[DP_EXACT_FORMATS];
    for (size_t i = 0; i < DP_EXACT_FORMATS; i++) {
        list[i] = dp_exact_list_of(dp_exact_format_at(i));
    }
    dp_tally tally = {0};
    for (uint32_t code = 0; code < 256; code++) {
        const uint8_t byte = (uint8_t)code;
        const uint32_t got[] = {dp_f32_bits(dp_e2m1_to_f32((dp_e2m1){byte})),
                                dp_f32_bits(dp_e4m3_to_f32((dp_e4m3){byte})),
                                dp_f32_bits(dp_ue4m3_to_f32((dp_ue4m3){byte})),
                                dp_f32_bits(dp_e5m2_to_f32((dp_e5m2){byte})),
                                dp_f32_bits(dp_ue5m3_to_f32((dp_ue5m3){byte}))};
        for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
            const dp_exact_format *format = dp_exact_format_at(narrow[i]);
            note(&tally, got[i] == dp_exact_decode(format, &list[narrow[i]], code), format->name,
                 code, got[i]);
        }
    }
    for (uint32_t code = 0; code < 0x10000u; code++) {
        const uint32_t half = dp_f32_bits(dp_fp16_to_f32((dp_fp16){(uint16_t)code}));
        note(&tally, half == dp_exact_decode(dp_exact_format_at(9), &list[9], code), "fp16", code,
             half);
        const uint32_t brain = dp_f32_bits(dp_bf16_to_f32((dp_bf16){(uint16_t)code}));
        note(&tally, brain == code * 0x10000u, "bf16", code, brain);
        const uint32_t exact = dp_exact_decode(dp_exact_format_at(10), &list[10], code);
        note(&tally, (brain & DP_F32_ABS) > DP_F32_INF || brain == exact, "bf16 value", code,
             brain);
    }
    for (size_t i = 0; i < DP_EXACT_FORMATS; i++) {
        dp_exact_list_free(&list[i]);
    }
    dp_assert_tally(tally, 5 * 256 + 3 * 0x10000);
}
END_TEST

/* encode(decode(c)) == c for every code that is not a NaN, whatever the rounding; a NaN gives the
 * NaN of its rule; and decoding that again changes nothing. */
START_TEST(round_trips)
{
    const dp_minifloat f = dp_catalog_at((size_t)_i);
    const dp_exact_format *format = dp_exact_format_at((size_t)_i);
    dp_tally tally = {0};
    for (uint32_t code = 0; code < dp_minifloat_codes(f); code++) {
        const uint32_t value = dp_minifloat_decode(code, f);
        for (unsigned p = 0; p < DP_POLICY_COUNT; p++) {
            dp_encode how = dp_policies[p];
            how.inf = DP_INF_KEPT;
            const uint32_t again = dp_minifloat_encode(value, f, how);
            const uint32_t want = dp_minifloat_is_nan(code, f) ? format->nan[DP_NAN_PTX][0] : code;
            note(&tally, again == want, "encode(decode(c))", code, again);
            note(&tally, dp_minifloat_decode(again, f) == value, "decode(encode(decode(c)))", code,
                 again);
        }
    }
    dp_assert_tally(tally, 2ull * dp_minifloat_codes(f) * DP_POLICY_COUNT);
}
END_TEST

/* An ordering of codes by value: -max .. -0, +0 .. max. */
static int rank_of(uint32_t code, dp_minifloat f)
{
    const int magnitude = (int)(code & dp_minifloat_magnitude_mask(f));
    return (code & dp_minifloat_sign_bit(f)) != 0 ? -magnitude : magnitude;
}

/* Adjacent inputs: codes never decrease, -x mirrors x, no finite input leaves the finite codes. */
START_TEST(monotone_symmetric_bounded)
{
    const dp_minifloat f = dp_catalog_at((size_t)_i);
    const int top = (int)dp_minifloat_max_code(f);
    dp_rng rng = {0x0BDE5u + (uint64_t)_i};
    dp_tally tally = {0};
    for (uint32_t n = 0; n < 200000; n++) {
        const uint32_t low = n < 0x7F80u ? n << 16 : dp_rng_below(&rng, DP_F32_INF - 1u);
        for (unsigned p = 0; p < DP_POLICY_COUNT; p += 3) { /* satfinite of every rounding */
            const dp_encode how = dp_policies[p];
            const int a = rank_of(dp_minifloat_encode(low, f, how), f);
            const int b = rank_of(dp_minifloat_encode(low + 1u, f, how), f);
            note(&tally, 0 <= a && a <= b && b <= top, "order of a positive pair", low,
                 (uint32_t)a);
            dp_encode mirrored = how;
            mirrored.round = how.round == DP_RU && f.has_sign != 0   ? DP_RD
                             : how.round == DP_RD && f.has_sign != 0 ? DP_RU
                                                                     : how.round;
            const int m = rank_of(dp_minifloat_encode(low | DP_F32_SIGN, f, mirrored), f);
            note(&tally, m == (f.has_sign != 0 ? -a : a), "mirror", low, (uint32_t)m);
        }
    }
    dp_assert_tally(tally, 200000 * 6 * 2);
}
END_TEST

START_TEST(packed_pairs)
{
    dp_tally tally = {0};
    for (uint32_t a = 0; a < 256; a++) {
        for (uint32_t b = 0; b < 256; b++) {
            const uint8_t x = (uint8_t)a;
            const uint8_t y = (uint8_t)b;
            const uint32_t pair = a | b << 8;
            const dp_e4m3x2 p = dp_e4m3x2_pack((dp_e4m3){x}, (dp_e4m3){y});
            note(&tally, p.bits == pair && dp_e4m3x2_get(p, 0).bits == x, "e4m3x2", pair, p.bits);
            note(&tally, dp_e4m3x2_get(p, 1).bits == y, "e4m3x2 1", pair, p.bits);
            const dp_e5m2x2 q = dp_e5m2x2_pack((dp_e5m2){x}, (dp_e5m2){y});
            note(&tally, q.bits == pair && dp_e5m2x2_get(q, 0).bits == x, "e5m2x2", pair, q.bits);
            note(&tally, dp_e5m2x2_get(q, 1).bits == y, "e5m2x2 1", pair, q.bits);
            /* The high nibble of an unpacked code is ignored, the even index is the low nibble. */
            const dp_e2m1x2 r = dp_e2m1x2_pack((dp_e2m1){x}, (dp_e2m1){y});
            note(&tally, r.bits == a % 16u + 16u * (b % 16u), "e2m1x2", pair, r.bits);
            note(&tally, dp_e2m1x2_get(r, 0).bits == a % 16u, "e2m1x2 0", pair, r.bits);
            note(&tally, dp_e2m1x2_get(r, 1).bits == b % 16u, "e2m1x2 1", pair, r.bits);
        }
    }
    dp_assert_tally(tally, 7 * 0x10000);
}
END_TEST

START_TEST(twice_the_magnitude_of_e2m1)
{
    for (uint32_t code = 0; code < 256; code++) {
        const dp_e2m1 c = {(uint8_t)code};
        const double twice = 2.0 * fabs((double)dp_e2m1_to_f32((dp_e2m1){(uint8_t)(code & 15u)}));
        ck_assert_msg((double)dp_e2m1_twice_magnitude(c) == twice, "code 0x%x", code);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decode");
    TCase *tests = tcase_create("decode");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, every_code_decodes_to_its_value, 0, DP_EXACT_FORMATS);
    tcase_add_test(tests, typed_decoders);
    tcase_add_loop_test(tests, round_trips, 0, DP_EXACT_FORMATS);
    tcase_add_loop_test(tests, monotone_symmetric_bounded, 0, DP_EXACT_FORMATS);
    tcase_add_test(tests, packed_pairs);
    tcase_add_test(tests, twice_the_magnitude_of_e2m1);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
