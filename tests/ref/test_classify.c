/* SPDX-License-Identifier: MIT
 *
 * Direct-P classification against the worked example and edge cases of the operator's description
 * (computed there by another program), and the fast path against the definition.
 */
#include <math.h>
#include <stdlib.h>

#include "ref/forward/classify.h"
#include "support.h"

static dp_direct_p make(const char *policy, dp_epoch epoch)
{
    dp_forward_policy found;
    dp_error error = {""};
    ck_assert_msg(dp_forward_policy_find(policy, &found, &error), "%s", error.text);
    const dp_switches switches = dp_switches_default();
    return dp_direct_p_make(&found, epoch, &switches, 1.0 / sqrt(128.0), NULL);
}

/* raw_j = 2 ((29 j + 7) mod 32) - 38, shifted: the block of the worked example. */
static void example(float *raw, float shift)
{
    for (int j = 0; j < DP_TILE; j++) {
        raw[j] = (float)(2 * ((29 * (j % 32) + 7) % 32) - 38) + shift;
    }
}

typedef struct {
    const char *name;
    const char *policy;
    dp_epoch epoch;
    int stage, quarter;
    float shift;  /* added to every score of the block          */
    float anchor; /* the anchor maximum, NAN: policy without one */
    int u, w, stored;
    uint32_t q, as, ab; /* 0: not given */
    uint32_t words[4];
    int code_sum;
} golden;

static const golden GOLDEN[] = {
    {"fast",
     "fast",
     DP_EPOCH_S,
     0,
     0,
     0,
     NAN,
     130,
     130,
     114,
     0xBED47FC8,
     0x3E43DDC0,
     0x3F13D35E,
     {0x03466000, 0x56000000, 0x00000024, 0x00013567},
     73},
    {"fast in R",
     "fast",
     DP_EPOCH_R,
     1,
     2,
     0,
     NAN,
     130,
     130,
     114,
     0xBED47FC8,
     0x3E43DDC0,
     0x3F13D35E,
     {0x03466000, 0x56000000, 0x00000024, 0x00013567},
     73},
    {"ideal",
     "ideal",
     DP_EPOCH_S,
     0,
     0,
     0,
     NAN,
     130,
     130,
     114,
     0xBED47FC8,
     0,
     0,
     {0x12457000, 0x56000001, 0x00001123, 0x01123467},
     78},
    {"Wan fast",
     "wan",
     DP_EPOCH_S,
     0,
     3,
     0,
     NAN,
     130,
     130,
     114,
     0xBED47FC8,
     0x3E50EC88,
     0x3E9266BF,
     {0x02466000, 0x56000000, 0x00000014, 0x00013567},
     71},
    {"accurate Q0",
     "accurate",
     DP_EPOCH_R,
     0,
     0,
     0,
     24,
     121,
     121,
     113,
     0xBE0775A0,
     0x3E5773EC,
     0x3F14EC48,
     {0x03567000, 0x66000011, 0x00000024, 0x00014567},
     84},
    {"guard 14B stage 0",
     "guard-14b",
     DP_EPOCH_R,
     0,
     0,
     0,
     24,
     117,
     117,
     103,
     0xBEBFF4A0,
     0x3E5773EC,
     0x3E39BF25,
     {0x02466000, 0x56000000, 0x00000014, 0x00003567},
     70},
    {"guard 14B stage 1",
     "guard-14b",
     DP_EPOCH_R,
     1,
     0,
     0,
     24,
     117,
     117,
     103,
     0xBEBFF4A0,
     0x3E5773EC,
     0x3E39BF25,
     {0x02466000, 0x56000001, 0x00000023, 0x00003567},
     71},
    {"-944 in S",
     "fast",
     DP_EPOCH_S,
     1,
     0,
     -944,
     NAN,
     10,
     10,
     0,
     0,
     0,
     0,
     {0x02456000, 0x56000000, 0x00000013, 0x00002456},
     58},
    {"-944 in R", "fast", DP_EPOCH_R, 1, 0, -944, NAN, 10, 17, 1, 0, 0, 0, {0, 0, 0, 0}, 0},
    {"-883",
     "fast",
     DP_EPOCH_S,
     1,
     0,
     -883,
     NAN,
     17,
     17,
     1,
     0,
     0,
     0,
     {0x24567000, 0x67000000, 0x00000135, 0x00024567},
     94},
    {"+1100",
     "fast",
     DP_EPOCH_S,
     1,
     0,
     1100,
     NAN,
     254,
     254,
     238,
     0,
     0,
     0,
     {0x77777777, 0x77777777, 0x77777777, 0x77777777},
     384},
};

static uint32_t word_of(const dp_p_row *row, int quarter, int word)
{
    uint32_t value = 0;
    for (int i = 3; i >= 0; i--) {
        value = value << 8 | row->payload[quarter * 16 + word * 4 + i];
    }
    return value;
}

START_TEST(worked_example)
{
    dp_tally tally = {0};
    for (size_t i = 0; i < sizeof GOLDEN / sizeof GOLDEN[0]; i++) {
        const golden *g = &GOLDEN[i];
        const dp_direct_p launch = make(g->policy, g->epoch);
        float raw[DP_TILE];
        float anchor[DP_TILE];
        example(raw, g->shift);
        for (int j = 0; j < DP_TILE; j++) {
            anchor[j] = j == 5 ? g->anchor : -1000.0f;
        }
        const float m = isnan(g->anchor) ? 0.0f : dp_row_reference(&launch, anchor);
        for (int scalar = 0; scalar < 2; scalar++) {
            dp_p_row row;
            (scalar ? dp_classify_row_scalar : dp_classify_row)(&launch, g->stage, m, raw, &row);
            const int b = g->quarter;
            bool equal = row.raw_byte[b] == g->u && row.working[b] == g->w &&
                         row.stored[b] == g->stored && row.code_sum[b] == g->code_sum;
            for (int w = 0; w < 4; w++) {
                equal = equal && word_of(&row, b, w) == g->words[w];
            }
            const dp_block_scalars s = dp_block_offsets(&launch, m, row.working[b]);
            equal = equal && (g->q == 0 || dp_f32_bits(s.q) == g->q) &&
                    (g->as == 0 || (dp_f32_bits(s.as) == g->as && dp_f32_bits(s.ab) == g->ab));
            if (!dp_tally_check(&tally, equal)) {
                dp_tally_note(&tally,
                              "%s: u %d w %d u' %d sum %d q %08x as %08x ab %08x %08x %08x "
                              "%08x %08x",
                              g->name, row.raw_byte[b], row.working[b], row.stored[b],
                              row.code_sum[b], dp_f32_bits(s.q), dp_f32_bits(s.as),
                              dp_f32_bits(s.ab), word_of(&row, b, 0), word_of(&row, b, 1),
                              word_of(&row, b, 2), word_of(&row, b, 3));
            }
        }
    }
    dp_assert_tally(tally, 22);
}
END_TEST

START_TEST(references_of_the_worked_example)
{
    float raw[DP_TILE];
    for (int j = 0; j < DP_TILE; j++) {
        raw[j] = j == 3 ? 24.0f : (j == 40 ? 100.0f : -5.0f);
    }
    dp_direct_p launch = make("accurate", DP_EPOCH_S);
    ck_assert_uint_eq(dp_f32_bits(dp_row_reference(&launch, raw)), 0x4288B90C);
    launch = make("guard-14b", DP_EPOCH_R); /* 128 keys: the 100 counts */
    ck_assert(dp_row_reference(&launch, raw) > 170.0f);
    launch = make("fast", DP_EPOCH_S);
    ck_assert_uint_eq(dp_f32_bits(dp_row_reference(&launch, raw)), 0);
}
END_TEST

/* Q1 of stage 0 built on Q0's byte: 8 ulp in q, the same codes, and a missing floor. */
START_TEST(rebased_quarter)
{
    dp_direct_p launch = make("fast", DP_EPOCH_S);
    const dp_block_scalars s = dp_rebased_offsets(&launch, 0.0f, 140, 140, 130);
    ck_assert_uint_eq(dp_f32_bits(s.q), 0xBED47FC0);
    ck_assert_uint_eq(dp_f32_bits(s.ab), 0x3F13D364);
    float raw[DP_TILE];
    example(raw, 0.0f);
    for (int j = 0; j < DP_BLOCK; j++) {
        raw[j] = j == 0 ? 102.0f : -200.0f; /* u0 = 140 */
    }
    dp_p_row row;
    dp_classify_row(&launch, 0, 0.0f, raw, &row);
    ck_assert_int_eq(row.raw_byte[0], 140);
    ck_assert_int_eq(row.raw_byte[1], 130);
    ck_assert_uint_eq(word_of(&row, 1, 0), 0x03466000);
    ck_assert_uint_eq(word_of(&row, 1, 3), 0x00013567);
    /* In R a dead Q0 (u0 = 0, w0 = 17) builds Q1 17 binades too small, but Q1's byte is its own. */
    launch = make("fast", DP_EPOCH_R);
    for (int j = 0; j < DP_BLOCK; j++) {
        raw[j] = -2000.0f;
    }
    dp_classify_row(&launch, 0, 0.0f, raw, &row);
    ck_assert_int_eq(row.raw_byte[0], 0);
    ck_assert_int_eq(row.working[0], 17);
    ck_assert_int_eq(row.stored[1], 114);
    ck_assert_int_eq(row.code_sum[1], 0);
}
END_TEST

typedef struct {
    const char *name, *policy;
    dp_epoch epoch;
    int stored, code_sum;
    uint32_t term;
} denominator;

/* d of one quarter, as the worked example and its edge cases give it. */
START_TEST(denominators)
{
    static const denominator cases[] = {
        {"fast", "fast", DP_EPOCH_S, 114, 73, 0x3A42AAAB},
        {"ideal", "ideal", DP_EPOCH_S, 114, 78, 0x3A500000},
        {"wan", "wan", DP_EPOCH_S, 114, 71, 0x3A3D5556},
        {"guard 0", "guard-14b", DP_EPOCH_R, 103, 70, 0x34BAAAAB},
        {"guard 1", "guard-14b", DP_EPOCH_R, 103, 71, 0x34BD5556},
        {"S flushes at byte 1", "fast", DP_EPOCH_S, 1, 94, 0},
        {"S flushes at byte 2", "fast", DP_EPOCH_S, 2, 384, 0},
        {"S flushes at byte 3", "fast", DP_EPOCH_S, 3, 384, 0},
        {"R keeps byte 1", "fast", DP_EPOCH_R, 1, 94, 0x01FAAAAB},
        {"R flushes a single 4 at byte 1", "fast", DP_EPOCH_R, 1, 8, 0},
        {"R keeps sum 6 at byte 1", "fast", DP_EPOCH_R, 1, 12, 0x00800000},
        {"R flushes below 3 at byte 2", "fast", DP_EPOCH_R, 2, 5, 0},
        {"R flushes below 1.5 at byte 3", "fast", DP_EPOCH_R, 3, 2, 0},
        {"byte 0 counts as nothing", "fast", DP_EPOCH_S, 0, 58, 0},
        {"top", "fast", DP_EPOCH_S, 238, 384, 0x79800000},
    };
    dp_tally tally = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dp_direct_p launch = make(cases[i].policy, cases[i].epoch);
        for (int quarter = 0; quarter < DP_QUARTERS; quarter++) {
            uint8_t stored[DP_QUARTERS] = {0};
            uint16_t sums[DP_QUARTERS] = {0};
            stored[quarter] = (uint8_t)cases[i].stored;
            sums[quarter] = (uint16_t)cases[i].code_sum;
            const float sum = dp_row_sum_finish(&launch, dp_row_sum_add(&launch, 0, stored, sums));
            if (!dp_tally_check(&tally, dp_f32_bits(sum) == cases[i].term)) {
                dp_tally_note(&tally, "%s: %08x", cases[i].name, dp_f32_bits(sum));
            }
        }
    }
    const dp_direct_p accurate = make("accurate", DP_EPOCH_S);
    const uint8_t stored[DP_QUARTERS] = {113, 0, 0, 0};
    const uint16_t sums[DP_QUARTERS] = {84, 0, 0, 0};
    const float sum = dp_row_sum_finish(&accurate, dp_row_sum_add(&accurate, 0, stored, sums));
    dp_tally_check(&tally, dp_f32_bits(sum) == 0x39E00000);
    dp_assert_tally(tally, 61);
}
END_TEST

/* The order of the four terms shows when a small one meets a large one first. */
START_TEST(order_of_the_quarters)
{
    const dp_direct_p fast = make("fast", DP_EPOCH_R);
    const dp_direct_p accurate = make("accurate", DP_EPOCH_R);
    dp_rng rng = {7};
    int differ = 0;
    for (int i = 0; i < 1000; i++) {
        uint8_t stored[DP_QUARTERS];
        uint16_t sums[DP_QUARTERS];
        double exact = 0.0;
        for (int b = 0; b < DP_QUARTERS; b++) {
            stored[b] = (uint8_t)(100 + dp_rng_below(&rng, 12));
            sums[b] = (uint16_t)dp_rng_below(&rng, 385);
            exact += ldexp((double)sums[b], stored[b] - 127);
        }
        const float f = dp_row_sum_add(&fast, 0, stored, sums);
        const float a = dp_row_sum_finish(&accurate, dp_row_sum_add(&accurate, 0, stored, sums));
        differ += f != a;
        ck_assert(fabs(f - exact / 12.0) <= exact * 0x1p-22);
        ck_assert(fabs(a - exact / 12.0) <= exact * 0x1p-22);
    }
    ck_assert_int_gt(differ, 10);
}
END_TEST

static void draw_row(dp_rng *rng, float *raw)
{
    const int kind = (int)dp_rng_below(rng, 6);
    const double sigma = ldexp(1.0, (int)dp_rng_below(rng, 12) - 2);
    const double centre = kind == 3 ? 900.0 - 1800.0 * dp_rng_unit(rng) : 0.0;
    for (int j = 0; j < DP_TILE; j++) {
        switch (kind) {
        case 0: /* the grid of NVFP4 products: many exact midpoints */
            raw[j] = (float)((int)dp_rng_below(rng, 400) - 200) * 0.25f;
            break;
        case 1:
            raw[j] = dp_rng_nasty_f32(rng);
            break;
        case 2: /* masked keys */
            raw[j] = dp_rng_below(rng, 3) == 0 ? -INFINITY : (float)dp_rng_normal(rng);
            break;
        default:
            raw[j] = (float)(centre + sigma * dp_rng_normal(rng));
        }
    }
}

START_TEST(fast_path_equals_the_definition)
{
    dp_rng rng = {20260904};
    dp_tally tally = {0};
    const int rounds = 400;
    for (size_t p = 0; p < dp_forward_policy_count(); p++) {
        for (int epoch = 0; epoch < 2; epoch++) {
            for (int variant = 0; variant < 3; variant++) {
                dp_forward_policy policy = *dp_forward_policy_at(p);
                policy.density = variant == 1 ? (policy.density + 2) % 5 : policy.density;
                policy.reference = variant == 2 ? DP_REFERENCE_ANCHOR : policy.reference;
                policy.anchor_keys = variant == 2 ? 128 : policy.anchor_keys;
                const dp_switches switches = dp_switches_default();
                const dp_direct_p launch =
                    dp_direct_p_make(&policy, (dp_epoch)epoch, &switches, 1.0 / sqrt(128.0), NULL);
                for (int i = 0; i < rounds; i++) {
                    float raw[DP_TILE];
                    draw_row(&rng, raw);
                    const float m = dp_row_reference(&launch, raw);
                    dp_p_row a, b;
                    memset(&a, 0, sizeof a);
                    memset(&b, 0, sizeof b);
                    dp_classify_row(&launch, i & 1, m, raw, &a);
                    dp_classify_row_scalar(&launch, i & 1, m, raw, &b);
                    if (!dp_tally_check(&tally, memcmp(&a, &b, sizeof a) == 0)) {
                        dp_tally_note(&tally, "%s epoch %d variant %d round %d", policy.name, epoch,
                                      variant, i);
                    }
                }
            }
        }
    }
    dp_assert_tally(tally, 10 * 2 * 3 * rounds);
}
END_TEST

START_TEST(native_pairs)
{
    const dp_forward_policy *accurate = NULL;
    dp_forward_policy found;
    ck_assert(dp_forward_policy_find("accurate", &found, NULL));
    accurate = &found;
    static const int pairs[4][4] = {{0, 8, 4, 12}, {1, 9, 4, 12}, {2, 10, 4, 12}, {3, 11, 4, 12}};
    for (int q = 0; q < 4; q++) {
        int count = 0;
        for (int p = 0; p < DP_PAIRS; p++) {
            count += dp_forward_policy_native_pair(accurate, 0, q, p);
        }
        ck_assert_int_eq(count, 4);
        for (int i = 0; i < 4; i++) {
            ck_assert(dp_forward_policy_native_pair(accurate, 0, q, pairs[q][i]));
        }
    }
    /* Density 2, from the published figures (FORWARD.md, "Published figures"). */
    static const int half[4][4] = {{0, 2, 4, 6}, {1, 3, 4, 6}, {2, 0, 4, 6}, {3, 1, 4, 6}};
    found.density = 2;
    for (int q = 0; q < 4; q++) {
        for (int i = 0; i < 8; i++) {
            ck_assert(dp_forward_policy_native_pair(&found, 1, q, half[q][i % 4] + i / 4 * 8));
        }
    }
    for (int density = 0; density <= 4; density++) {
        found.density = density;
        for (int q = 0; q < 4; q++) {
            int count = 0;
            for (int p = 0; p < DP_PAIRS; p++) {
                count += dp_forward_policy_native_pair(&found, 1, q, p);
            }
            ck_assert_int_eq(count, 4 * density);
        }
    }
}
END_TEST

START_TEST(text_of_fields_round_trips)
{
    char text[2048];
    for (size_t p = 0; p < dp_forward_policy_count(); p++) {
        dp_forward_policy policy = *dp_forward_policy_at(p);
        dp_forward_policy_text(&policy, text, sizeof text);
        dp_forward_policy copy = *dp_forward_policy_at(0);
        copy.name = policy.name;
        copy.provenance = policy.provenance;
        dp_error error = {""};
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            if (strcmp(line, "floor=-inf") != 0) {
                ck_assert_msg(dp_forward_policy_set(&copy, line, &error), "%s", error.text);
            }
        }
        char again[2048];
        dp_forward_policy_text(&policy, text, sizeof text);
        if (policy.map != DP_MAP_POLYNOMIAL) {
            copy.map_floor = policy.map_floor;
        }
        dp_forward_policy_text(&copy, again, sizeof again);
        ck_assert_str_eq(text, again);
    }
    dp_forward_policy policy = *dp_forward_policy_at(0);
    static const char *bad[] = {"a", "a=", "a=x", "nope=1", "shift=127", "shift=1.5", "fold=maybe"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_error error = {""};
        ck_assert(!dp_forward_policy_set(&policy, bad[i], &error));
        ck_assert_uint_gt(strlen(error.text), 10);
    }
    dp_error error = {""};
    ck_assert(!dp_forward_policy_find("fastest", &policy, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "accurate"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("classify");
    TCase *tests = tcase_create("classify");
    tcase_add_test(tests, worked_example);
    tcase_add_test(tests, references_of_the_worked_example);
    tcase_add_test(tests, rebased_quarter);
    tcase_add_test(tests, denominators);
    tcase_add_test(tests, order_of_the_quarters);
    tcase_add_test(tests, fast_path_equals_the_definition);
    tcase_add_test(tests, native_pairs);
    tcase_add_test(tests, text_of_fields_round_trips);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
