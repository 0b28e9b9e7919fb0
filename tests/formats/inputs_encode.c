/* SPDX-License-Identifier: MIT
 *
 * All 2^32 f32 inputs of every format under every policy of policies.h, against the exact lists
 * [F1..F7, F10]. The lists say where each code begins; between two beginnings all inputs must give
 * one code, so that the reference costs nothing and the library's own code is the whole run time.
 * An argument names one format; without it all are swept.
 */
#include <stdlib.h>

#include "exact.h"
#include "formats/bf16.h"
#include "formats/catalog.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/fp16.h"
#include "formats/parallel.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"
#include "policies.h"
#include "support.h"

#define CHUNK           65536u
#define FINITE_CHUNKS   (DP_F32_INF / CHUNK)
#define SWEEP_MAX_CORES 256

/* One bit pattern under every policy: nonzero when a code differs from what is wanted. */
static inline uint32_t differs(uint32_t bits, dp_minifloat f, const uint32_t *want)
{
    uint32_t difference = 0;
    unsigned i = 0;
#define ONE(round, overflow)                                                                       \
    difference |= dp_minifloat_encode(bits, f, dp_policy(round, overflow)) ^ want[i++];
    DP_POLICIES(ONE)
#undef ONE
    return difference;
}

typedef uint32_t scanner(uint32_t from, uint32_t to, const uint32_t *want);

/* The loop with format and policies folded in. Everything must be inlined, or it takes hours. */
#define SCANNER(name, ...)                                                                         \
    __attribute__((flatten)) static uint32_t scan_##name(uint32_t from, uint32_t to,               \
                                                         const uint32_t *wanted)                   \
    {                                                                                              \
        const dp_minifloat f = __VA_ARGS__;                                                        \
        uint32_t want[DP_POLICY_COUNT];                                                            \
        memcpy(want, wanted, sizeof want);                                                         \
        uint32_t difference = 0;                                                                   \
        for (uint32_t bits = from; bits != to; bits++) {                                           \
            difference |= differs(bits, f, want);                                                  \
        }                                                                                          \
        return difference;                                                                         \
    }

SCANNER(e2m1, dp_e2m1_format())
SCANNER(e2m3, {"e2m3", 1, 2, 3, 1, DP_TOP_FINITE})
SCANNER(e3m2, {"e3m2", 1, 3, 2, 3, DP_TOP_FINITE})
SCANNER(e4m3, dp_e4m3_format())
SCANNER(ue4m3, dp_ue4m3_format())
SCANNER(e5m2, dp_e5m2_format())
SCANNER(ue5m3, dp_ue5m3_format())
SCANNER(e4m3fnuz, {"e4m3fnuz", 1, 4, 3, 8, DP_TOP_FNUZ})
SCANNER(e5m2fnuz, {"e5m2fnuz", 1, 5, 2, 16, DP_TOP_FNUZ})
SCANNER(fp16, dp_fp16_format())
SCANNER(bf16, dp_bf16_format())

static scanner *const scanners[DP_EXACT_FORMATS] = {
    scan_e2m1,  scan_e2m3,     scan_e3m2,     scan_e4m3, scan_ue4m3, scan_e5m2,
    scan_ue5m3, scan_e4m3fnuz, scan_e5m2fnuz, scan_fp16, scan_bf16};

typedef struct {
    size_t index;
    const dp_exact_format *format;
    const dp_exact_list *list;
    dp_tally tally[SWEEP_MAX_CORES];
} sweep;

/* A segment came out wrong somewhere: count and describe. */
static void explain(const sweep *s, uint32_t from, uint32_t to, const uint32_t *want,
                    dp_tally *tally)
{
    const dp_minifloat f = dp_catalog_at(s->index);
    for (uint32_t bits = from; bits != to; bits++) {
        for (unsigned p = 0; p < DP_POLICY_COUNT; p++) {
            const uint32_t got = dp_minifloat_encode(bits, f, dp_policies[p]);
            if (got != want[p]) {
                tally->mismatches++;
                dp_tally_note(tally, "%s of 0x%08x, rounding %d overflow %d: 0x%x, not 0x%x",
                              f.name, bits, (int)dp_policies[p].round, (int)dp_policies[p].overflow,
                              got, want[p]);
            }
        }
    }
}

/* Magnitudes [from, to) of one sign, cut where any direction changes its code. */
static void check_range(const sweep *s, uint32_t from, uint32_t to, bool negative, dp_tally *tally)
{
    const uint32_t sign = negative ? DP_F32_SIGN : 0u;
    uint32_t place[DP_EXACT_DIRECTIONS];
    for (int d = 0; d < DP_EXACT_DIRECTIONS; d++) {
        place[d] = dp_exact_place(s->list, from, (dp_exact_direction)d);
    }
    while (from != to) {
        uint32_t end = to;
        for (int d = 0; d < DP_EXACT_DIRECTIONS; d++) {
            while (place[d] < s->list->finite && s->list->first[d][place[d] + 1u] <= from) {
                place[d]++;
            }
            if (place[d] < s->list->finite && s->list->first[d][place[d] + 1u] < end) {
                end = s->list->first[d][place[d] + 1u];
            }
        }
        uint32_t want[DP_POLICY_COUNT];
        for (unsigned p = 0; p < DP_POLICY_COUNT; p++) {
            const bool minus = negative && s->format->sign_bits != 0;
            const dp_exact_direction d = dp_exact_direction_of(dp_policies[p].round, minus);
            want[p] = dp_exact_finish(s->format, place[d], negative, false, dp_policies[p]);
        }
        if (scanners[s->index](from | sign, end | sign, want) != 0) {
            explain(s, from | sign, end | sign, want, tally);
        }
        tally->cases += (uint64_t)(end - from) * DP_POLICY_COUNT;
        from = end;
    }
}

static void sweep_chunks(void *context, size_t first, size_t last, int thread)
{
    sweep *s = context;
    for (size_t i = first; i < last; i++) {
        const uint32_t from = (uint32_t)(i % FINITE_CHUNKS) * CHUNK;
        check_range(s, from, from + CHUNK, i >= FINITE_CHUNKS, &s->tally[thread]);
    }
}

/* Both infinities and every NaN, all four NaN rules [F6, F7]. */
static void sweep_top(void *context, size_t first, size_t last, int thread)
{
    sweep *s = context;
    dp_tally *tally = &s->tally[thread];
    const dp_minifloat f = dp_catalog_at(s->index);
    for (size_t i = first; i < last; i++) {
        const bool negative = i > 0x7FFFFFu;
        const uint32_t bits =
            DP_F32_INF | (uint32_t)(i & 0x7FFFFFu) | (negative ? DP_F32_SIGN : 0u);
        for (unsigned n = 0; n < DP_POLICY_COUNT * DP_EXACT_NAN_RULES; n++) {
            dp_encode how = dp_policies[n / DP_EXACT_NAN_RULES];
            how.nan = (dp_nan_rule)(n % DP_EXACT_NAN_RULES);
            if ((bits & 0x7FFFFFu) != 0 && n >= DP_EXACT_NAN_RULES) {
                break; /* a NaN comes out before the rounding is looked at: one policy in full */
            }
            const uint32_t want = dp_exact_encode(s->format, s->list, bits, how);
            const uint32_t got = dp_minifloat_encode(bits, f, how);
            if (!dp_tally_check(tally, got == want)) {
                dp_tally_note(tally, "%s of 0x%08x, NaN rule %d: 0x%x, not 0x%x", f.name, bits,
                              (int)how.nan, got, want);
            }
        }
    }
}

static const char *only; /* the format named on the command line */

START_TEST(every_input_of_every_policy)
{
    const size_t index = (size_t)_i;
    const dp_exact_format *format = dp_exact_format_at(index);
    if (only != NULL && strcmp(only, format->name) != 0) {
        return;
    }
    dp_exact_list list = dp_exact_list_of(format);
    sweep *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    s->index = index;
    s->format = format;
    s->list = &list;
    dp_parallel_for(0, 2u * FINITE_CHUNKS, 16, sweep_chunks, s);
    dp_parallel_for(0, 0x1000000, CHUNK, sweep_top, s);
    dp_tally total = {0};
    for (size_t i = 0; i < SWEEP_MAX_CORES; i++) {
        dp_tally_merge(&total, &s->tally[i]);
    }
    printf("%s: %" PRIu64 " encodes\n", format->name, total.cases);
    (void)fflush(stdout);
    free(s);
    dp_exact_list_free(&list);
    dp_assert_tally(total, 2ull * DP_F32_INF * DP_POLICY_COUNT + 4ull * 0xFFFFFEu);
}
END_TEST

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    Suite *suite = suite_create("encode, all inputs");
    TCase *tests = tcase_create("sweep");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, every_input_of_every_policy, 0, DP_EXACT_FORMATS);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
