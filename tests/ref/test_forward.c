/* SPDX-License-Identifier: MIT
 *
 * The forward operator: stages agree with each other when recomputed one element at a time, results
 * do not depend on threads, and the degenerate rows of the rules come out as they say.
 */
#include <fenv.h>
#include <math.h>

#include "forward_fixture.h"

static uint16_t nibble(const uint8_t *payload, size_t i)
{
    return (uint16_t)(((uint32_t)payload[i / 2] >> (i % 2 * 4)) & 15u);
}

static uint32_t element(const char *instruction, const uint8_t *a, const uint8_t *sfa, size_t k,
                        const uint16_t *b, const uint8_t *sfb)
{
    uint16_t codes[2048];
    ck_assert_uint_le(k, 2048);
    for (size_t i = 0; i < k; i++) {
        codes[i] = nibble(a, i);
    }
    uint32_t d = 0;
    dp_error error = {""};
    const dp_mma_desc *desc = dp_mma_find(instruction, "e2m1", "e2m1", "f32", "sm_100a");
    ck_assert_msg(dp_mma_element(desc, NULL, k, codes, b, sfa, sfb, 0, &d, &error), "%s",
                  error.text);
    return d;
}

static bool strip_sees_nothing(const dp_attention *in, size_t row)
{
    const size_t last = row / DP_TILE * DP_TILE + DP_TILE - 1;
    return in->causal && (last < in->queries ? last : in->queries - 1) + in->keys < in->queries;
}

/* Each stage again from the dump of the one before, one element at a time, for sampled rows. */
static void check_stages(fixture *f, dp_tally *tally)
{
    const size_t keys = f->operands.key_rows;
    const size_t dim = f->operands.features;
    dp_rng rng = {99};
    for (int sample = 0; sample < 12; sample++) {
        const size_t head = dp_rng_below(&rng, (uint32_t)(f->in.batch * f->in.q_heads));
        const size_t local =
            sample == 0 ? f->in.queries - 1 : dp_rng_below(&rng, (uint32_t)f->in.queries);
        const size_t row = head * f->in.queries + local;
        const size_t kv = head / f->in.q_heads * f->in.kv_heads +
                          dp_attention_kv_head(&f->in, head % f->in.q_heads);
        /* score */
        for (int j = 0; j < 10; j++) {
            const size_t key = dp_rng_below(&rng, (uint32_t)keys);
            uint16_t b[DP_HEAD_DIM];
            for (size_t d = 0; d < dim; d++) {
                b[d] = nibble(f->operands.k_payload + (kv * keys + key) * dim / 2, d);
            }
            const size_t q_row = head * f->operands.query_rows + local;
            const uint32_t expected =
                dp_score_masked(&f->in, &f->operands, local, key)
                    ? 0xFF800000u
                    : element("tcgen05.mma.kind::mxf4nvf4.block16.ue4m3",
                              f->operands.q_payload + q_row * dim / 2,
                              f->operands.q_scale + q_row * dim / 16, dim, b,
                              f->operands.k_scale + (kv * keys + key) * dim / 16);
            if (!dp_tally_check(tally, dp_f32_bits(f->raw[row * keys + key]) == expected)) {
                dp_tally_note(tally, "raw row %zu key %zu", row, key);
            }
        }
        if (strip_sees_nothing(&f->in, local)) {
            dp_tally_check(tally, f->row_ref[row] == 0.0f && f->row_sum[row] == 0.0f &&
                                      f->lse[row] == -INFINITY && f->o[row * dim] == 0);
            continue;
        }
        /* reference, scale, code, denominator */
        const float m = dp_row_reference(&f->launch, f->raw + row * keys);
        dp_tally_check(tally, dp_f32_bits(m) == dp_f32_bits(f->row_ref[row]));
        float sum = 0.0f;
        for (size_t tile = 0; tile < keys / DP_TILE; tile++) {
            dp_p_row p;
            dp_classify_row_scalar(&f->launch, (int)(local / DP_TILE & 1u), m,
                                   f->raw + row * keys + tile * DP_TILE, &p);
            const size_t block = row * keys / 32 + tile * 4;
            const bool same =
                memcmp(p.stored, f->p_scale + block, 4) == 0 &&
                memcmp(p.code_sum, f->code_sum + block, 8) == 0 &&
                memcmp(p.payload, f->p_payload + (row * keys + tile * DP_TILE) / 2, 64) == 0;
            if (!dp_tally_check(tally, same)) {
                dp_tally_note(tally, "codes row %zu tile %zu", row, tile);
            }
            sum = dp_row_sum_add(&f->launch, sum, p.stored, p.code_sum);
        }
        sum = dp_row_sum_finish(&f->launch, sum);
        dp_tally_check(tally, dp_f32_bits(sum) == dp_f32_bits(f->row_sum[row]));
        /* accumulate, output */
        for (int j = 0; j < 6; j++) {
            const size_t d = dp_rng_below(&rng, (uint32_t)dim);
            uint16_t b[2048];
            for (size_t key = 0; key < keys; key++) {
                b[key] = nibble(f->operands.v_payload + (kv * dim + d) * keys / 2, key);
            }
            const uint32_t expected =
                element("tcgen05.mma.kind::mxf4nvf4.block32.ue8m0", f->p_payload + row * keys / 2,
                        f->p_scale + row * keys / 32, keys, b,
                        f->operands.v_scale + (kv * dim + d) * keys / 32);
            if (!dp_tally_check(tally, dp_f32_bits(f->acc[row * dim + d]) == expected)) {
                dp_tally_note(tally, "acc row %zu feature %zu: %08x, %08x expected", row, d,
                              dp_f32_bits(f->acc[row * dim + d]), expected);
            }
        }
        uint16_t o[DP_HEAD_DIM];
        float lse = 0.0f;
        dp_output_row(&f->launch, m, sum, f->acc + row * dim, dim, o, &lse);
        dp_tally_check(tally, memcmp(o, f->o + row * dim, dim * 2) == 0);
        dp_tally_check(tally, dp_f32_bits(lse) == dp_f32_bits(f->lse[row]));
    }
}

static const dp_attention SHAPES[] = {
    {.batch = 1, .q_heads = 1, .kv_heads = 1, .queries = 256, .keys = 256, .dim = 128},
    {.batch = 2, .q_heads = 4, .kv_heads = 2, .queries = 130, .keys = 257, .dim = 128},
    {.batch = 1, .q_heads = 3, .kv_heads = 1, .queries = 1, .keys = 33, .dim = 64},
    {.batch = 1,
     .q_heads = 2,
     .kv_heads = 2,
     .queries = 200,
     .keys = 200,
     .dim = 128,
     .causal = true},
    {.batch = 1,
     .q_heads = 2,
     .kv_heads = 1,
     .queries = 300,
     .keys = 140,
     .dim = 32,
     .causal = true},
};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

START_TEST(stages_follow_from_each_other)
{
    static const char *const policies[] = {"fast", "accurate", "guard-14b", "ideal", "cubic"};
    dp_tally tally = {0};
    for (int s = 0; s < SHAPE_COUNT; s++) {
        fixture f;
        build(&f, SHAPES[s], s == 1 ? 6.0 : 1.0, 1000 + (uint64_t)s);
        for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
            run(&f, policies[p], p % 2 == 0 ? DP_EPOCH_S : DP_EPOCH_R, NULL, 2);
            check_stages(&f, &tally);
        }
        if (f.in.dim <= 64) {
            run(&f, "accurate", DP_EPOCH_R, "native-d64=on", 2);
            check_stages(&f, &tally);
        }
        discard(&f);
    }
    dp_assert_tally(tally, 5000);
}
END_TEST

START_TEST(threads_change_nothing)
{
    fixture a, b;
    build(&a, SHAPES[1], 2.0, 5);
    build(&b, SHAPES[1], 2.0, 5);
    run(&a, "guard-1.3b", DP_EPOCH_R, NULL, 1);
    run(&b, "guard-1.3b", DP_EPOCH_R, NULL, 7);
    const size_t rows = a.in.batch * a.in.q_heads * a.in.queries;
    const size_t keys = a.operands.key_rows;
    ck_assert(memcmp(a.raw, b.raw, rows * keys * 4) == 0);
    ck_assert(memcmp(a.p_payload, b.p_payload, rows * keys / 2) == 0);
    ck_assert(memcmp(a.p_scale, b.p_scale, rows * keys / 32) == 0);
    ck_assert(memcmp(a.acc, b.acc, rows * 128 * 4) == 0);
    ck_assert(memcmp(a.o, b.o, rows * 128 * 2) == 0);
    ck_assert(memcmp(a.lse, b.lse, rows * 4) == 0);
    discard(&a);
    discard(&b);
}
END_TEST

/* Rounding up, and on x86-64 FTZ and DAZ as well. */
static void hostile_environment(bool on)
{
    (void)fesetround(on ? FE_UPWARD : FE_TONEAREST);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(on ? 0x1F80u | 0x8040u | 0x4000u : 0x1F80u);
#endif
}

/* The caller's rounding mode, FTZ and DAZ reach no stage, nor BF16 attention. */
START_TEST(environment_does_not_matter)
{
    static const char *policies[] = {"fast", "accurate", "guard-14b", "cubic"};
    for (int p = 0; p < 4; p++) {
        fixture a, b;
        build(&a, SHAPES[1], 3.0, 6);
        build(&b, SHAPES[1], 3.0, 6);
        const size_t rows = a.in.batch * a.in.q_heads * a.in.queries;
        const size_t values = rows * a.in.dim;
        uint16_t *bf16 = calloc(2 * values, sizeof *bf16);
        ck_assert_ptr_nonnull(bf16);
        dp_error error = {""};
        run(&a, policies[p], DP_EPOCH_S, NULL, 2);
        ck_assert(dp_reference_bf16(&a.in, 2, bf16, NULL, &error));
        hostile_environment(true);
        run(&b, policies[p], DP_EPOCH_S, NULL, 2);
        const bool good = dp_reference_bf16(&b.in, 2, bf16 + values, NULL, &error);
        const int mode = fegetround();
        hostile_environment(false);
        ck_assert(good);
        ck_assert_int_eq(mode, FE_UPWARD); /* and the caller gets his own back */
        const size_t keys = a.operands.key_rows;
        ck_assert(memcmp(&a.launch, &b.launch, sizeof a.launch) == 0);
        ck_assert(memcmp(a.raw, b.raw, rows * keys * 4) == 0);
        ck_assert(memcmp(a.row_ref, b.row_ref, rows * 4) == 0);
        ck_assert(memcmp(a.p_payload, b.p_payload, rows * keys / 2) == 0);
        ck_assert(memcmp(a.p_scale, b.p_scale, rows * keys / 32) == 0);
        ck_assert(memcmp(a.row_sum, b.row_sum, rows * 4) == 0);
        ck_assert(memcmp(a.acc, b.acc, rows * 128 * 4) == 0);
        ck_assert(memcmp(a.o, b.o, rows * 128 * 2) == 0);
        ck_assert(memcmp(a.lse, b.lse, rows * 4) == 0);
        ck_assert(memcmp(bf16, bf16 + values, values * sizeof *bf16) == 0);
        free(bf16);
        discard(&a);
        discard(&b);
    }
}
END_TEST

/* Errors of the operator against BF16 stay where the published ones are, for N(0,1) of any
 * generator. */
START_TEST(error_against_bf16)
{
    fixture f;
    build(&f, SHAPES[0], 1.0, 11);
    uint16_t *reference = malloc(256 * 128 * 2);
    dp_error error = {""};
    ck_assert(dp_reference_bf16(&f.in, 2, reference, NULL, &error));
    static const struct {
        const char *policy;
        double low, high;
    } cases[] = {{"fast", 0.29, 0.38}, {"accurate", 0.28, 0.37}, {"ideal", 0.2, 0.36}};
    for (int c = 0; c < 3; c++) {
        run(&f, cases[c].policy, DP_EPOCH_R, NULL, 2);
        double difference = 0.0, norm = 0.0;
        for (size_t i = 0; i < 256 * 128; i++) {
            const dp_bf16 x = {f.o[i]}, r = {reference[i]};
            const double d = (double)dp_bf16_to_f32(x) - (double)dp_bf16_to_f32(r);
            difference += d * d;
            norm += (double)dp_bf16_to_f32(r) * (double)dp_bf16_to_f32(r);
        }
        const double relative = sqrt(difference / norm);
        ck_assert_msg(relative > cases[c].low && relative < cases[c].high, "%s: %g",
                      cases[c].policy, relative);
    }
    free(reference);
    discard(&f);
}
END_TEST

/* V = 1: numerator and denominator are built of the same codes, so the output is 1 whatever P is,
 * up to V's own code (1 = 6/6 exactly) and the last rounding. */
START_TEST(case_76_ones_come_back_as_one)
{
    fixture f;
    build(&f, SHAPES[3], 3.0, 12);
    const dp_bf16 one = dp_bf16_from_f32(1.0f, DP_ENCODE_PTX);
    for (size_t i = 0; i < 2 * 200 * 128; i++) {
        f.v[i] = one.bits;
    }
    dp_tally tally = {0};
    static const char *const policies[] = {"fast", "accurate", "guard-14b", "wan"};
    for (int p = 0; p < 4; p++) {
        run(&f, policies[p], DP_EPOCH_R, NULL, 2);
        for (size_t row = 0; row < 400; row++) {
            const bool valid = f.row_sum[row] > 0.0f;
            const uint16_t expected = valid ? one.bits : 0;
            const int distance = abs((int)f.o[row * 128] - (int)expected);
            if (!dp_tally_check(&tally, distance <= (valid ? 1 : 0))) {
                dp_tally_note(&tally, "%s row %zu: %04x", policies[p], row, f.o[row * 128]);
            }
        }
    }
    dp_assert_tally(tally, 1600);
    discard(&f);
}
END_TEST

START_TEST(case_82_rows_with_no_visible_key)
{
    fixture f;
    build(&f, SHAPES[4], 1.0, 13); /* 300 queries, 140 keys: rows 0..159 see nothing */
    static const char *const policies[] = {"fast", "accurate", "guard-1.3b"};
    for (int p = 0; p < 3; p++) {
        for (int epoch = 0; epoch < 2; epoch++) {
            run(&f, policies[p], (dp_epoch)epoch, NULL, 2);
            dp_tally tally = {0};
            for (size_t row = 0; row < 300; row++) {
                const bool empty = row < 160;
                bool zero = true;
                for (size_t d = 0; d < 128; d++) {
                    zero = zero && f.o[row * 128 + d] == 0;
                }
                const bool right = empty ? zero && f.lse[row] == -INFINITY : isfinite(f.lse[row]);
                if (!dp_tally_check(&tally, right)) {
                    dp_tally_note(&tally, "%s row %zu lse %g", policies[p], row,
                                  (double)f.lse[row]);
                }
            }
            dp_assert_tally(tally, 300);
        }
    }
    discard(&f);
}
END_TEST

/* Padding: keys beyond the end never enter, whatever tile they would share. */
START_TEST(case_87_padding_is_not_a_key)
{
    dp_attention shape = {.batch = 1, .q_heads = 1, .kv_heads = 1, .queries = 3, .dim = 128};
    static const size_t lengths[] = {1, 15, 16, 17, 63, 65, 127, 129};
    dp_tally tally = {0};
    for (size_t i = 0; i < 8; i++) {
        shape.keys = lengths[i];
        fixture f;
        build(&f, shape, 0.0, 14); /* q = 0: all scores 0, every weight 1/keys */
        for (size_t j = 0; j < shape.keys * 128; j++) {
            f.v[j] = 0x3F80;
        }
        run(&f, "fast", DP_EPOCH_R, NULL, 1);
        for (size_t row = 0; row < 3; row++) {
            const double lse = (double)f.lse[row];
            /* each key's weight is code(x = log2 6 shifted to the block) / 6: affine and not exact
             */
            const double codes = exp(lse) / (double)shape.keys;
            if (!dp_tally_check(&tally, f.o[row * 128] == 0x3F80 && codes > 0.6 && codes < 1.4)) {
                dp_tally_note(&tally, "keys %zu: o %04x, weight %g", shape.keys, f.o[row * 128],
                              codes);
            }
        }
        discard(&f);
    }
    dp_assert_tally(tally, 24);
}
END_TEST

/* Logits far above 1000: fast saturates at byte 254, an anchored policy does not. */
START_TEST(extreme_logits)
{
    fixture f;
    dp_attention shape = SHAPES[0];
    build(&f, shape, 60.0, 15);
    run(&f, "fast", DP_EPOCH_R, NULL, 2);
    size_t saturated = 0;
    for (size_t i = 0; i < 256 * 256 / 32; i++) {
        saturated += f.p_scale[i] >= 238;
    }
    ck_assert_uint_gt(saturated, 0);
    for (size_t i = 0; i < 256 * 128; i++) {
        const dp_bf16 x = {f.o[i]};
        ck_assert(!isnan(dp_bf16_to_f32(x)));
    }
    discard(&f);
}
END_TEST

/* The layer-39 failure: a row whose blocks all land on stored byte 1 loses its sum in the old
 * product order and keeps it in the new one. */
START_TEST(scale_first_loses_low_blocks)
{
    fixture f;
    dp_attention shape = SHAPES[0];
    build(&f, shape, 1.0, 16);
    dp_forward_policy fast;
    ck_assert(dp_forward_policy_find("guard-14b", &fast, NULL));
    /* every block at u = L + 1, the bytes a far-off anchor gives */
    const uint8_t stored[DP_QUARTERS] = {1, 1, 1, 1};
    const uint16_t sums[DP_QUARTERS] = {80, 90, 100, 70};
    dp_switches switches = dp_switches_default();
    dp_direct_p good = dp_direct_p_make(&fast, DP_EPOCH_R, &switches, 128, NULL);
    ck_assert(dp_switches_set(&switches, "fault-scale-first=on", NULL));
    dp_direct_p bad = dp_direct_p_make(&fast, DP_EPOCH_R, &switches, 128, NULL);
    ck_assert(dp_row_sum_add(&good, 0, stored, sums) > 0.0f);
    ck_assert(dp_row_sum_add(&bad, 0, stored, sums) == 0.0f);
    discard(&f);
}
END_TEST

START_TEST(bad_shapes_are_refused)
{
    fixture f;
    dp_attention shape = SHAPES[2];
    build(&f, shape, 1.0, 17);
    static const int32_t map[3] = {0, 1, 0};
    dp_attention bad[10];
    for (int i = 0; i < 10; i++) {
        bad[i] = f.in;
    }
    bad[0].dim = 129;
    bad[1].keys = 0;
    bad[2].softmax_scale = NAN;
    bad[3].softmax_scale = -1.0;
    bad[4].kv_of_q = map;
    bad[5].q_heads = 0;
    bad[6].softmax_scale = INFINITY;
    bad[7].softmax_scale = 1e300; /* finite, but no f32 */
    bad[8].softmax_scale = 1e-38; /* an f32 that is flushed */
    bad[9].softmax_scale = 1e-300;
    for (int i = 0; i < 10; i++) {
        dp_error error = {""};
        ck_assert_msg(!dp_attention_check(&bad[i], &error), "%d", i);
        ck_assert_uint_gt(strlen(error.text), 20);
    }
    discard(&f);
}
END_TEST

START_TEST(anchor_orders)
{
    for (size_t keys = 1; keys < 700; keys += 13) {
        for (size_t n = 0; n <= 128; n = n == 0 ? 32 : n * 4) {
            int32_t order[700];
            bool seen[700] = {false};
            dp_anchor_order(keys, n, order);
            for (size_t i = 0; i < keys; i++) {
                ck_assert(order[i] >= 0 && (size_t)order[i] < keys && !seen[order[i]]);
                seen[order[i]] = true;
            }
            if (keys >= n && n > 0) {
                ck_assert_int_eq(order[0], 0);
                ck_assert_int_eq(order[n - 1], (int)keys - 1);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forward");
    TCase *tests = tcase_create("forward");
    tcase_add_test(tests, stages_follow_from_each_other);
    tcase_add_test(tests, threads_change_nothing);
    tcase_add_test(tests, environment_does_not_matter);
    tcase_add_test(tests, error_against_bf16);
    tcase_add_test(tests, case_76_ones_come_back_as_one);
    tcase_add_test(tests, case_82_rows_with_no_visible_key);
    tcase_add_test(tests, case_87_padding_is_not_a_key);
    tcase_add_test(tests, extreme_logits);
    tcase_add_test(tests, scale_first_loses_low_blocks);
    tcase_add_test(tests, bad_shapes_are_refused);
    tcase_add_test(tests, anchor_orders);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
