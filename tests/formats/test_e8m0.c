/* SPDX-License-Identifier: MIT
 *
 * E8M0 against exact comparison with powers of two [E1..E4].
 * quick: sampled inputs. With the argument "exhaustive": all 2^32 inputs.
 */
#include <math.h>
#include <stdlib.h>

#include "exact.h"
#include "formats/parallel.h"
#include "support.h"

enum { MODES = 8, MAX_CORES = 256 };

static dp_e8m0_encode mode(unsigned m)
{
    const dp_e8m0_encode how = {(dp_e8m0_round)(m / 2u), m % 2u == 1u};
    return how;
}

static void check_one(const dp_exact_list *list, uint32_t bits, dp_tally *tally)
{
    for (unsigned m = 0; m < MODES; m++) {
        const uint32_t got = dp_e8m0_from_f32(dp_f32_from_bits(bits), mode(m)).bits;
        const uint32_t want = dp_exact_encode_e8m0(list, bits, mode(m));
        if (!dp_tally_check(tally, got == want)) {
            dp_tally_note(tally, "0x%08x, rounding %u satfinite %u: 0x%x, not 0x%x", bits, m / 2u,
                          m % 2u, got, want);
        }
    }
}

START_TEST(sampled_inputs)
{
    dp_exact_list list = dp_exact_list_of_e8m0();
    dp_rng rng = {0xE8D0u};
    dp_tally tally = {0};
    for (uint32_t high = 0; high < 0x10000u; high++) {
        const uint32_t low[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, dp_rng_below(&rng, 0x10000)};
        for (unsigned i = 0; i < sizeof low / sizeof low[0]; i++) {
            check_one(&list, high << 16 | low[i], &tally);
        }
    }
    for (uint32_t code = 0; code < 256; code++) {
        for (int d = 0; d < DP_EXACT_DIRECTIONS; d++) {
            for (uint32_t step = 0; step < 5; step++) {
                check_one(&list, (list.first[d][code] + step - 2u) & DP_F32_ABS, &tally);
            }
        }
    }
    dp_exact_list_free(&list);
    dp_assert_tally(tally, 7 * 0x10000 * MODES);
}
END_TEST

START_TEST(every_code)
{
    dp_tally tally = {0};
    for (uint32_t code = 0; code < 256; code++) {
        const dp_e8m0 c = {(uint8_t)code};
        const uint32_t got = dp_f32_bits(dp_e8m0_to_f32(c));
        const uint32_t want =
            code == 255 ? 0x7FFFFFFFu : dp_f32_bits((float)ldexp(1.0, (int)code - 127));
        dp_tally_check(&tally, got == want);
        for (unsigned m = 0; m < MODES; m++) { /* NaN gives NaN, a power of two itself */
            const uint32_t again = dp_e8m0_from_f32(dp_e8m0_to_f32(c), mode(m)).bits;
            if (!dp_tally_check(&tally, again == code)) {
                dp_tally_note(&tally, "code 0x%x in mode %u: 0x%x", code, m, again);
            }
        }
    }
    dp_assert_tally(tally, 256 * (MODES + 1));
}
END_TEST

typedef struct {
    dp_exact_list list;
    dp_tally tally[MAX_CORES];
} sweep;

/* Inputs between two places where some direction changes share their codes. */
static void sweep_chunk(void *context, size_t first, size_t last, int thread)
{
    sweep *s = context;
    dp_tally *tally = &s->tally[thread];
    for (size_t i = first; i < last; i++) {
        uint32_t bits = (uint32_t)i << 16;
        for (unsigned part = 0; part < 0x10000u;) {
            uint32_t want[MODES];
            uint32_t end = 0x10000u;
            const uint32_t magnitude = bits & DP_F32_ABS;
            for (unsigned m = 0; m < MODES; m++) {
                want[m] = dp_exact_encode_e8m0(&s->list, bits, mode(m));
            }
            for (int d = 0; d < DP_EXACT_DIRECTIONS && magnitude < DP_F32_INF; d++) {
                const uint32_t place = dp_exact_place(&s->list, magnitude, (dp_exact_direction)d);
                if (place < 255 && s->list.first[d][place + 1u] - magnitude < end - part) {
                    end = part + s->list.first[d][place + 1u] - magnitude;
                }
            }
            end = magnitude == DP_F32_INF ? part + 1u : end;
            for (; part < end; part++, bits++) {
                for (unsigned m = 0; m < MODES; m++) {
                    const uint32_t got = dp_e8m0_from_f32(dp_f32_from_bits(bits), mode(m)).bits;
                    if (!dp_tally_check(tally, got == want[m])) {
                        dp_tally_note(tally, "0x%08x mode %u: 0x%x, not 0x%x", bits, m, got,
                                      want[m]);
                    }
                }
            }
        }
    }
}

START_TEST(all_inputs)
{
    sweep *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->list = dp_exact_list_of_e8m0();
    dp_parallel_for(0, 0x10000, 16, sweep_chunk, s);
    dp_tally total = {0};
    for (size_t i = 0; i < MAX_CORES; i++) {
        dp_tally_merge(&total, &s->tally[i]);
    }
    dp_exact_list_free(&s->list);
    free(s);
    dp_assert_tally(total, 0x100000000ull * MODES);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("e8m0");
    TCase *tests = tcase_create("e8m0");
    tcase_set_timeout(tests, 0);
    if (argc > 1 && strcmp(argv[1], "exhaustive") == 0) {
        tcase_add_test(tests, all_inputs);
    } else {
        tcase_add_test(tests, sampled_inputs);
        tcase_add_test(tests, every_code);
    }
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
