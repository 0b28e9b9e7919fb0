/* SPDX-License-Identifier: MIT
 *
 * Bulk encode and decode against the scalar definition: every upper half of an f32 with lower
 * halves around every tie, on every path, for every policy that runs on SIMD [F1].
 */
#include "bulk_support.h"

enum { LOWS = 8, DENSE = 65536 * LOWS };

/* Every upper half with 0, 1, half - 1, half, half + 1, largest, and two random lower halves. */
static float *dense_inputs(void)
{
    static const uint32_t lows[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    dp_rng rng = {.state = 20261129};
    float *x = bulk_allocate(DENSE * sizeof *x);
    for (uint32_t i = 0; i < DENSE; i++) {
        const uint32_t k = i % LOWS;
        const uint32_t low = k < 6 ? lows[k] : dp_rng_u32(&rng) & 0xFFFFu;
        x[i] = dp_f32_from_bits((i / LOWS << 16) | low);
    }
    return x;
}

static void compare_codes(dp_tally *tally, dp_bulk_format format, const float *x,
                          const uint32_t *want, const void *codes, const char *what)
{
    for (size_t i = 0; i < DENSE; i++) {
        const uint32_t got = bulk_code(format, codes, i);
        if (!dp_tally_check(tally, got == want[i])) {
            dp_tally_note(tally, "%s format %d, f32 %08x: %x, not %x", what, (int)format,
                          dp_f32_bits(x[i]), got, want[i]);
        }
    }
}

static void encode_dense(dp_tally *tally, const float *x, uint32_t *want, uint8_t *codes,
                         dp_bulk_format format, int policy)
{
    const dp_encode how = bulk_policy(policy);
    for (size_t i = 0; i < DENSE; i++) {
        want[i] = bulk_reference(format, x[i], how);
    }
    for (int p = 0; p < BULK_PATHS; p++) {
        const dp_bulk_options options = bulk_on(bulk_paths[p], 1);
        if (bulk_has(bulk_paths[p])) {
            char what[64];
            (void)snprintf(what, sizeof what, "%s policy %d", dp_path_name(bulk_paths[p]), policy);
            memset(codes, 0xA5, 2 * DENSE);
            dp_bulk_encode_f32(format, x, DENSE, how, &options, codes);
            compare_codes(tally, format, x, want, codes, what);
        }
    }
}

START_TEST(encode_equals_the_definition)
{
    dp_tally tally = {0};
    float *x = dense_inputs();
    uint32_t *want = bulk_allocate(DENSE * sizeof *want);
    uint8_t *codes = bulk_allocate(2 * DENSE);
    for (int format = 0; format < DP_BULK_FORMATS; format++) {
        /* 5 and 48 have no common factor: a tenth of the policies still has every rule. */
        const int step = format == DP_BULK_E4M3 ? 1 : 5;
        for (int policy = 0; format != DP_BULK_E8M0 && policy < BULK_POLICIES; policy += step) {
            encode_dense(&tally, x, want, codes, (dp_bulk_format)format, policy);
        }
    }
    free(x);
    free(want);
    free(codes);
    dp_assert_tally(tally, 100u * DENSE);
}
END_TEST

START_TEST(bf16_sources_are_their_f32_values)
{
    dp_tally tally = {0};
    dp_bf16 *x = bulk_allocate(65536 * sizeof *x);
    uint8_t *codes = bulk_allocate(2 * 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        x[i].bits = (uint16_t)i;
    }
    for (int run = 0; run < DP_BULK_FORMATS * BULK_POLICIES * BULK_PATHS; run++) {
        const dp_bulk_format format = (dp_bulk_format)(run % DP_BULK_FORMATS);
        const dp_encode how = bulk_policy(run / DP_BULK_FORMATS % BULK_POLICIES);
        const dp_path path = bulk_paths[run / (DP_BULK_FORMATS * BULK_POLICIES)];
        const dp_bulk_options options = bulk_on(path, 1);
        if (format == DP_BULK_E8M0 || !bulk_has(path)) {
            continue;
        }
        dp_bulk_encode_bf16(format, x, 65536, how, &options, codes);
        for (uint32_t i = 0; i < 65536; i++) {
            const uint32_t got = bulk_code(format, codes, i);
            const uint32_t want = bulk_reference(format, dp_bf16_to_f32(x[i]), how);
            if (!dp_tally_check(&tally, got == want)) {
                dp_tally_note(&tally, "%s format %d bf16 %04x: %x, not %x", dp_path_name(path),
                              (int)format, i, got, want);
            }
        }
    }
    free(x);
    free(codes);
    dp_assert_tally(tally, 8u * BULK_POLICIES * 65536);
}
END_TEST

START_TEST(e8m0_equals_the_definition)
{
    dp_tally tally = {0};
    float *x = dense_inputs();
    dp_e8m0 *codes = bulk_allocate(DENSE);
    for (int mode = 0; mode < 8 * BULK_PATHS; mode++) {
        const dp_e8m0_encode how = {(dp_e8m0_round)(mode % 4), mode / 4 % 2 != 0};
        const dp_path path = bulk_paths[mode / 8];
        const dp_bulk_options options = bulk_on(path, 1);
        if (!bulk_has(path)) {
            continue;
        }
        dp_bulk_encode_e8m0(x, DENSE, how, &options, codes);
        for (size_t i = 0; i < DENSE; i++) {
            const uint32_t want = dp_e8m0_from_f32(x[i], how).bits;
            if (!dp_tally_check(&tally, codes[i].bits == want)) {
                dp_tally_note(&tally, "%s mode %d f32 %08x: %x, not %x", dp_path_name(path), mode,
                              dp_f32_bits(x[i]), codes[i].bits, want);
            }
        }
    }
    free(x);
    free(codes);
    dp_assert_tally(tally, 8u * DENSE);
}
END_TEST

/* All codes of a format, in the order of a fixed permutation so that lanes cannot be mistaken. */
static size_t all_codes(dp_bulk_format format, uint8_t *codes)
{
    const bool words = format == DP_BULK_BF16 || format == DP_BULK_FP16;
    const size_t n = words ? 65536 : format == DP_BULK_E2M1X2 ? 512 : 256;
    for (size_t i = 0; i < n; i++) {
        const size_t code = i * 167 % n; /* 167 is odd: a permutation of a power of two */
        const uint16_t word = (uint16_t)code;
        if (words) {
            memcpy(codes + 2 * i, &word, sizeof word);
        } else if (format != DP_BULK_E2M1X2 || i < 256) {
            codes[i] = (uint8_t)code;
        }
    }
    return n;
}

START_TEST(decode_equals_the_definition)
{
    dp_tally tally = {0};
    uint8_t *codes = bulk_allocate(2 * 65536);
    float *x = bulk_allocate(65536 * sizeof *x);
    dp_bf16 *half = bulk_allocate(65536 * sizeof *half);
    for (int run = 0; run < DP_BULK_FORMATS * (BULK_PATHS + 1); run++) {
        const dp_bulk_format format = (dp_bulk_format)(run % DP_BULK_FORMATS);
        const int p = run / DP_BULK_FORMATS;
        const dp_path path = p < BULK_PATHS ? bulk_paths[p] : DP_PATH_SCALAR;
        const dp_bulk_options options = bulk_on(path, 1);
        const size_t n = all_codes(format, codes);
        if (!bulk_has(path)) {
            continue;
        }
        dp_bulk_decode_f32(format, codes, n, &options, x);
        dp_bulk_decode_bf16(format, codes, n, &options, half);
        for (size_t i = 0; i < n; i++) {
            const uint32_t want = bulk_reference_value(format, bulk_code(format, codes, i));
            const uint32_t want_half =
                dp_bf16_from_f32(dp_f32_from_bits(want), DP_ENCODE_NONSAT).bits;
            const uint32_t got = dp_f32_bits(x[i]);
            if (!dp_tally_check(&tally, got == want && half[i].bits == want_half)) {
                dp_tally_note(&tally, "%s format %d code %x: %08x %04x, not %08x %04x",
                              dp_path_name(path), (int)format, bulk_code(format, codes, i), got,
                              half[i].bits, want, want_half);
            }
        }
    }
    free(codes);
    free(x);
    free(half);
    dp_assert_tally(tally, 2u * (2 * 65536 + 6 * 256 + 512));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bulk_encode");
    TCase *tests = tcase_create("definition");
    tcase_add_test(tests, encode_equals_the_definition);
    tcase_add_test(tests, bf16_sources_are_their_f32_values);
    tcase_add_test(tests, e8m0_equals_the_definition);
    tcase_add_test(tests, decode_equals_the_definition);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
