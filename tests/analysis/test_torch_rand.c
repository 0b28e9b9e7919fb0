/* SPDX-License-Identifier: MIT
 *
 * The CUDA generator: Philox against the known answers of Random123 (kat_vectors), the order of the
 * elements against a restatement of the recipe, values against an implementation in NumPy.
 */
#include <stdlib.h>

#include "analysis/torch_rand.h"
#include "support.h"

START_TEST(philox_known_answers)
{
    static const struct {
        uint64_t seed, iteration, thread;
        uint32_t words[4];
    } cases[] = {
        {0, 0, 0, {0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}},
        {0x299F31D0A4093822u,
         0x85A308D3243F6A88u,
         0x0370734413198A2Eu,
         {0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t words[4];
        dp_philox(cases[i].seed, cases[i].iteration, cases[i].thread, words);
        ck_assert_mem_eq(words, cases[i].words, sizeof words);
    }
}
END_TEST

START_TEST(values_of_an_independent_implementation)
{
    static const struct {
        uint64_t seed, offset;
        int sms;
        size_t n;
        uint64_t next;
        size_t index[7];
        uint32_t bits[7];
    } cases[] = {
        {20261838,
         0,
         152,
         32768,
         4,
         {0, 1, 2, 255, 256, 16384, 32767},
         {0xBE3EC6ADu, 0xBF51E4C1u, 0x3C182D86u, 0xBE881926u, 0xBF5B89F1u, 0x3F87B422u,
          0x3F8410B4u}},
        {20269006,
         0,
         152,
         1000,
         4,
         {0, 1, 2, 255, 256, 500, 999},
         {0xBF2D873Fu, 0x3D516A11u, 0x3FAA44FBu, 0x3F6A148Cu, 0x3FE386ACu, 0xBE72983Fu,
          0xBE5E1EA6u}},
        {1,
         8,
         1,
         9000,
         16,
         {0, 1, 2, 255, 256, 4500, 8999},
         {0xBF14B97Cu, 0xBF82C4AAu, 0x3F5548DBu, 0x3D9D031Du, 0x3F8935B6u, 0xBE59271Au,
          0x3F656E52u}},
    };
    for (size_t c = 0; c < 3; c++) {
        float *x = malloc(cases[c].n * sizeof *x);
        ck_assert_ptr_nonnull(x);
        ck_assert_uint_eq(
            dp_torch_randn(cases[c].seed, cases[c].offset, cases[c].sms, cases[c].n, x, 1),
            cases[c].next);
        for (size_t i = 0; i < 7; i++) {
            ck_assert_uint_eq(dp_f32_bits(x[cases[c].index[i]]), cases[c].bits[i]);
        }
        free(x);
    }
}
END_TEST

/* Element t + 4 i T + k T is normal k of iteration i of thread t. */
START_TEST(order_of_the_elements)
{
    static const size_t lengths[] = {1, 255, 256, 257, 2048, 2049, 8192, 8193, 20000};
    dp_tally tally = {0};
    for (size_t c = 0; c < sizeof lengths / sizeof lengths[0]; c++) {
        const size_t n = lengths[c];
        const size_t blocks = (n + 255) / 256;
        const size_t grid = (blocks < 8 ? blocks : 8) * 256;
        float *x = malloc(n * sizeof *x);
        ck_assert_ptr_nonnull(x);
        const uint64_t offset = dp_torch_randn(99, 40, 1, n, x, 3);
        ck_assert_uint_eq(offset, 40 + 4 * ((n + 4 * grid - 1) / (4 * grid)));
        for (size_t e = 0; e < n; e++) {
            const size_t i = e / (4 * grid), k = e / grid % 4, t = e % grid;
            uint32_t words[4];
            float z[2];
            dp_philox(99, 10 + i, t, words);
            dp_box_muller(words[k / 2 * 2], words[k / 2 * 2 + 1], z);
            if (!dp_tally_check(&tally, dp_f32_bits(z[k % 2]) == dp_f32_bits(x[e]))) {
                dp_tally_note(&tally, "n %zu element %zu: %a, want %a", n, e, (double)x[e],
                              (double)z[k % 2]);
            }
        }
        free(x);
    }
    dp_assert_tally(tally, 40000);
}
END_TEST

/* Extremes of both words: finite, and no value beyond sqrt(-2 ln 2^-33) = 6.77. */
START_TEST(extremes_stay_finite)
{
    static const uint32_t words[] = {0, 1, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFF7Fu, 0xFFFFFFFFu};
    for (size_t i = 0; i < 36; i++) {
        float z[2];
        dp_box_muller(words[i / 6], words[i % 6], z);
        for (int k = 0; k < 2; k++) {
            ck_assert(z[k] >= -6.77f && z[k] <= 6.77f);
        }
    }
}
END_TEST

START_TEST(threads_change_nothing)
{
    enum { N = 100000 };
    float *one = malloc(N * sizeof *one), *many = malloc(N * sizeof *many);
    ck_assert(one != NULL && many != NULL);
    (void)dp_torch_randn(7, 0, 152, N, one, 1);
    (void)dp_torch_randn(7, 0, 152, N, many, 5);
    ck_assert_mem_eq(one, many, N * sizeof *one);
    free(one);
    free(many);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torch_rand");
    TCase *tests = tcase_create("torch_rand");
    tcase_add_test(tests, philox_known_answers);
    tcase_add_test(tests, values_of_an_independent_implementation);
    tcase_add_test(tests, order_of_the_elements);
    tcase_add_test(tests, extremes_stay_finite);
    tcase_add_test(tests, threads_change_nothing);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
