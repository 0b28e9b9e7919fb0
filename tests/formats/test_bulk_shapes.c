/* SPDX-License-Identifier: MIT
 *
 * Lengths, alignments, threads, random bits and hostile floating-point environments of the bulk
 * conversions: none of them may change a bit, nor touch a byte outside the result.
 */
#include <fenv.h>

#include "bulk_support.h"

enum { LONGEST = 400, GUARD = 64, LARGE = (1 << 22) + 12345 };

static void fill_nasty(float *x, size_t n, uint64_t seed)
{
    dp_rng rng = {.state = seed};
    for (size_t i = 0; i < n; i++) {
        x[i] = dp_rng_nasty_f32(&rng);
    }
}

/* The bytes of the result and GUARD bytes on either side, against the definition. */
static void check_bytes(dp_tally *tally, dp_bulk_format format, const float *x, size_t n,
                        dp_encode how, const uint8_t *codes, const char *what)
{
    const size_t bytes = dp_bulk_bytes(format, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t want = bulk_reference(format, x[i], how);
        const uint32_t got = bulk_code(format, codes + GUARD, i);
        if (!dp_tally_check(tally, got == want)) {
            dp_tally_note(tally, "%s format %d n %zu element %zu: %x, not %x", what, (int)format, n,
                          i, got, want);
        }
    }
    bool clean = format != DP_BULK_E2M1X2 || n % 2 == 0 || codes[GUARD + n / 2] >> 4 == 0;
    for (size_t i = 0; i < GUARD; i++) {
        clean = clean && codes[i] == 0xA5 && codes[GUARD + bytes + i] == 0xA5;
    }
    if (!dp_tally_check(tally, clean)) {
        dp_tally_note(tally, "%s format %d n %zu: wrote outside", what, (int)format, n);
    }
}

START_TEST(every_length_and_alignment)
{
    dp_tally tally = {0};
    uint8_t *from = bulk_allocate(4 * LONGEST + 64);
    uint8_t *to = bulk_allocate(2 * LONGEST + 2 * GUARD + 64);
    float x[LONGEST];
    fill_nasty(x, LONGEST, 11);
    for (size_t n = 0; n <= LONGEST; n += n < 200 ? 1 : 13) {
        for (int run = 0; run < 8 * BULK_PATHS; run++) {
            const dp_bulk_format formats[] = {DP_BULK_E2M1,  DP_BULK_E2M1X2, DP_BULK_E4M3,
                                              DP_BULK_UE4M3, DP_BULK_E5M2,   DP_BULK_UE5M3,
                                              DP_BULK_BF16,  DP_BULK_FP16};
            const dp_bulk_format format = formats[run % 8];
            const dp_path path = bulk_paths[run / 8];
            const dp_bulk_options options = bulk_on(path, 1);
            const dp_encode how = bulk_policy((int)(n + (size_t)run) % BULK_POLICIES);
            const size_t in_offset = (n * 5 + (size_t)run) % 64;
            const size_t out_offset = (n * 3 + (size_t)run * 7) % 64;
            if (!bulk_has(path)) {
                continue;
            }
            memcpy(from + in_offset, x, 4 * n);
            memset(to, 0xA5, 2 * LONGEST + 2 * GUARD + 64);
            /* a void pointer: a float pointer off its alignment is not C */
            const void *source = from + in_offset;
            dp_bulk_encode_f32(format, source, n, how, &options, to + out_offset + GUARD);
            check_bytes(&tally, format, x, n, how, to + out_offset, dp_path_name(path));
        }
    }
    free(from);
    free(to);
    dp_assert_tally(tally, 8 * 200 * 100);
}
END_TEST

START_TEST(every_length_decodes)
{
    dp_tally tally = {0};
    uint8_t codes[2 * LONGEST + 64];
    uint8_t *to = bulk_allocate(4 * LONGEST + 2 * GUARD + 64);
    dp_rng rng = {.state = 12};
    for (size_t i = 0; i < sizeof codes; i++) {
        codes[i] = (uint8_t)dp_rng_u32(&rng);
    }
    for (int run = 0; run < LONGEST * DP_BULK_FORMATS * BULK_PATHS; run++) {
        const size_t n = (size_t)(run % LONGEST);
        const dp_bulk_format format = (dp_bulk_format)(run / LONGEST % DP_BULK_FORMATS);
        const dp_path path = bulk_paths[run / (LONGEST * DP_BULK_FORMATS)];
        const dp_bulk_options options = bulk_on(path, 1);
        if (!bulk_has(path)) {
            continue;
        }
        const uint8_t *from = codes + n % 61;
        uint8_t *start = to + n * 7 % 64 + GUARD;
        void *result = start;
        bool good = true;
        memset(to, 0xA5, 4 * LONGEST + 2 * GUARD + 64);
        dp_bulk_decode_f32(format, from, n, &options, result);
        for (size_t i = 0; i < n; i++) {
            uint32_t got;
            memcpy(&got, start + 4 * i, sizeof got);
            good = good && got == bulk_reference_value(format, bulk_code(format, from, i));
        }
        for (size_t i = 0; i < GUARD; i++) {
            good = good && start[i - GUARD] == 0xA5 && start[4 * n + i] == 0xA5;
        }
        if (!dp_tally_check(&tally, good)) {
            dp_tally_note(&tally, "%s format %d n %zu", dp_path_name(path), (int)format, n);
        }
    }
    free(to);
    dp_assert_tally(tally, LONGEST * DP_BULK_FORMATS);
}
END_TEST

/* Large enough for stores around the cache and for several shares. */
START_TEST(threads_and_streams_do_not_matter)
{
    dp_tally tally = {0};
    const size_t n = LARGE;
    float *x = bulk_allocate(n * sizeof *x);
    uint8_t *want = bulk_allocate(2 * n);
    uint8_t *got = bulk_allocate(2 * n + 64);
    float *back = bulk_allocate((n + 16) * sizeof *back);
    fill_nasty(x, n, 13);
    for (int format = 0; format < DP_BULK_FORMATS; format++) {
        if (format == DP_BULK_E8M0) {
            continue;
        }
        const dp_bulk_format f = (dp_bulk_format)format;
        const size_t bytes = dp_bulk_bytes(f, n);
        const dp_bulk_options plain = bulk_on(DP_PATH_PORTABLE, 1);
        dp_bulk_encode_f32(f, x, n, DP_ENCODE_NONSAT, &plain, want);
        for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
            const dp_bulk_options options = bulk_on(DP_PATH_AUTO, threads);
            const size_t offset = (size_t)(threads * 11 + format) % 64;
            memset(got, 0xA5, 2 * n + 64);
            dp_bulk_encode_f32(f, x, n, DP_ENCODE_NONSAT, &options, got + offset);
            if (!dp_tally_check(&tally, memcmp(got + offset, want, bytes) == 0)) {
                dp_tally_note(&tally, "encode, format %d, %d threads", format, threads);
            }
            float *aside = back + threads % 3;
            dp_bulk_decode_f32(f, want, n, &options, aside);
            bool same = true;
            for (size_t i = 0; i < n; i++) {
                same =
                    same && dp_f32_bits(aside[i]) == bulk_reference_value(f, bulk_code(f, want, i));
            }
            if (!dp_tally_check(&tally, same)) {
                dp_tally_note(&tally, "decode, format %d, %d threads", format, threads);
            }
        }
    }
    free(x);
    free(want);
    free(got);
    free(back);
    dp_assert_tally(tally, 8 * 4 * 2);
}
END_TEST

static uint32_t counter_word(void *context, uint64_t index)
{
    const uint64_t *seed = context;
    return (uint32_t)((index * 0x9E3779B97F4A7C15u + *seed) >> 32);
}

START_TEST(other_policies_take_the_scalar_route)
{
    enum { N = 70000 };
    dp_tally tally = {0};
    static float x[N];
    static uint32_t words[N];
    static uint8_t codes[2 * N];
    uint64_t seed = 77;
    fill_nasty(x, N, 14);
    for (size_t i = 0; i < N; i++) {
        words[i] = counter_word(&seed, i);
    }
    for (int run = 0; run < 2 * 7 * DP_BULK_FORMATS; run++) {
        const dp_bulk_format format = (dp_bulk_format)(run % DP_BULK_FORMATS);
        dp_encode how = dp_encode_stochastic(0x1234, 16);
        how.round = (dp_round)(run / DP_BULK_FORMATS % 7);
        how.overflow = DP_OVERFLOW_IEEE754;
        how.drop_zero_sign = run % 3 == 0;
        how.flush_subnormals = run % 2 == 0;
        dp_bulk_options options = bulk_on(DP_PATH_AUTO, 1 + run % 3);
        const bool by_array = run / (7 * DP_BULK_FORMATS) != 0;
        options.random_words = by_array ? words : NULL;
        options.random = by_array ? NULL : counter_word;
        options.random_context = &seed;
        if (format == DP_BULK_E8M0) {
            continue;
        }
        dp_bulk_encode_f32(format, x, N, how, &options, codes);
        for (size_t i = 0; i < N; i++) {
            how.random = words[i];
            const uint32_t want = bulk_reference(format, x[i], how);
            const uint32_t got = bulk_code(format, codes, i);
            if (!dp_tally_check(&tally, got == want)) {
                dp_tally_note(&tally, "format %d run %d: %x, not %x", (int)format, run, got, want);
            }
        }
    }
    dp_assert_tally(tally, 100 * N);
}
END_TEST

/* Rounding up, and on x86-64 FTZ and DAZ as well. */
static void hostile_environment(bool on)
{
    fesetround(on ? FE_UPWARD : FE_TONEAREST);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(on ? 0x1F80u | 0x8040u | 0x4000u : 0x1F80u);
#endif
}

START_TEST(environment_does_not_matter)
{
    enum { N = 4096 };
    dp_tally tally = {0};
    static float x[N], back[N], back_want[N];
    static uint8_t codes[2 * N], want[2 * N];
    fill_nasty(x, N, 15);
    for (uint32_t i = 0; i < 1024; i++) { /* plenty of f32 subnormals, also as codes */
        x[i] = dp_f32_from_bits((i * 8191u & 0x7FFFFFu) | (i << 31));
    }
    for (int run = 0; run < DP_BULK_FORMATS * BULK_POLICIES * BULK_PATHS; run++) {
        const dp_bulk_format format = (dp_bulk_format)(run % DP_BULK_FORMATS);
        const dp_encode how = bulk_policy(run / DP_BULK_FORMATS % BULK_POLICIES);
        const dp_bulk_options options =
            bulk_on(bulk_paths[run / (DP_BULK_FORMATS * BULK_POLICIES)], 1);
        const dp_bulk_options scalar = bulk_on(DP_PATH_SCALAR, 1);
        memset(codes, 0x5A, sizeof codes);
        memset(want, 0x5A, sizeof want);
        dp_bulk_encode_f32(format, x, N, how, &scalar, want);
        dp_bulk_decode_f32(format, want, N, &scalar, back_want);
        hostile_environment(true);
        dp_bulk_encode_f32(format, x, N, how, &options, codes);
        dp_bulk_decode_f32(format, want, N, &options, back);
        hostile_environment(false);
        if (!dp_tally_check(&tally, memcmp(codes, want, sizeof codes) == 0 &&
                                        memcmp(back, back_want, sizeof back) == 0)) {
            dp_tally_note(&tally, "%s format %d run %d", dp_path_name(options.path), (int)format,
                          run);
        }
    }
    dp_assert_tally(tally, DP_BULK_FORMATS * BULK_POLICIES * BULK_PATHS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bulk_shapes");
    TCase *tests = tcase_create("shapes");
    tcase_add_test(tests, every_length_and_alignment);
    tcase_add_test(tests, every_length_decodes);
    tcase_add_test(tests, threads_and_streams_do_not_matter);
    tcase_add_test(tests, other_policies_take_the_scalar_route);
    tcase_add_test(tests, environment_does_not_matter);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
