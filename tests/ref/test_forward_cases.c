/* SPDX-License-Identifier: MIT
 *
 * The forward on inputs made to break it: degenerate scores, the failing product order end to end,
 * numbered cases of other attention kernels, and one checksum of every stage.
 */
#include <math.h>

#include "forward_fixture.h"
#include "ref/forward/merge.h"

static const dp_attention SQUARE = {
    .batch = 1, .q_heads = 1, .kv_heads = 1, .queries = 256, .keys = 256, .dim = 128};

static const char *const POLICIES[] = {"fast",  "accurate", "guard-1.3b", "guard-14b",
                                       "ideal", "cubic",    "wan"};
enum { POLICY_COUNT = sizeof POLICIES / sizeof POLICIES[0] };

static uint16_t bf16(double x)
{
    return dp_bf16_from_f32((float)x, DP_ENCODE_NONSAT).bits;
}

static double value(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return (double)dp_bf16_to_f32(x);
}

static void fill(uint16_t *x, size_t n, uint16_t bits)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = bits;
    }
}

/* ---- one number for all stages --------------------------------------------------------------- */

static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ bytes[i]) * 0x100000001B3u; /* FNV-1a */
    }
    return h;
}

/* Stages as little-endian words, so that the number is the same on every machine that has them. */
static uint64_t checksum(const fixture *f)
{
    const size_t rows = f->in.batch * f->in.q_heads * f->in.queries;
    const size_t keys = f->operands.key_rows;
    const size_t dim = f->operands.features;
    const size_t q_rows = f->in.batch * f->in.q_heads * f->operands.query_rows;
    const size_t k_rows = f->in.batch * f->in.kv_heads * keys;
    uint64_t h = 0xCBF29CE484222325u;
    h = hash(h, f->operands.q_payload, q_rows * dim / 2);
    h = hash(h, f->operands.q_scale, q_rows * dim / 16);
    h = hash(h, f->operands.k_payload, k_rows * dim / 2);
    h = hash(h, f->operands.k_scale, k_rows * dim / 16);
    h = hash(h, f->operands.v_payload, k_rows * dim / 2);
    h = hash(h, f->operands.v_scale, k_rows * dim / 32);
    h = hash(h, f->raw, rows * keys * sizeof(float));
    h = hash(h, f->row_ref, rows * sizeof(float));
    h = hash(h, f->p_scale, rows * keys / 32);
    h = hash(h, f->p_payload, rows * keys / 2);
    h = hash(h, f->code_sum, rows * keys / 16);
    h = hash(h, f->row_sum, rows * sizeof(float));
    h = hash(h, f->acc, rows * dim * sizeof(float));
    h = hash(h, f->o, rows * dim * sizeof(uint16_t));
    return hash(h, f->lse, rows * sizeof(float));
}

/* Integers from the generator, so that the inputs do not depend on a libm. */
static void draw_integers(uint16_t *x, size_t n, uint64_t seed)
{
    dp_rng rng = {seed};
    for (size_t i = 0; i < n; i++) {
        x[i] = bf16(((double)dp_rng_below(&rng, 2001) - 1000.0) / 256.0);
    }
}

static const struct {
    const char *policy;
    dp_epoch epoch;
    const char *change;
    uint64_t sum;
} CHECKSUMS[] = {
    {"fast", DP_EPOCH_S, NULL, 0x8B286036D5AA155Bu},
    {"fast", DP_EPOCH_R, "fma-denominator=on", 0x9D0C76184DF69E09u},
    {"accurate", DP_EPOCH_S, NULL, 0x779D817C22DB5909u},
    {"guard-14b", DP_EPOCH_R, NULL, 0x67B9EADED923EBC6u},
    {"guard-1.3b", DP_EPOCH_R, "margin-units=log2", 0x1AE5E7BA30CC664Au},
    {"ideal", DP_EPOCH_S, "multiplier=exact", 0x022318D36813ED18u},
    {"cubic", DP_EPOCH_R, NULL, 0x7EB4F70D6649CC2Cu},
    {"quadratic", DP_EPOCH_S, NULL, 0x393574AA853AC4F3u},
};

START_TEST(checksums)
{
    static const int threads[] = {1, 2, 5};
    fixture f;
    const dp_attention shape = {
        .batch = 1, .q_heads = 2, .kv_heads = 1, .queries = 260, .keys = 301, .dim = 128};
    build(&f, shape, 1.0, 1);
    draw_integers(f.q, 2 * 260 * 128, 1);
    draw_integers(f.k, 301 * 128, 2);
    draw_integers(f.v, 301 * 128, 3);
    dp_tally tally = {0};
    for (size_t i = 0; i < sizeof CHECKSUMS / sizeof CHECKSUMS[0]; i++) {
        for (int t = 0; t < 3; t++) {
            run(&f, CHECKSUMS[i].policy, CHECKSUMS[i].epoch, CHECKSUMS[i].change, threads[t]);
            const uint64_t sum = checksum(&f);
            if (!dp_tally_check(&tally, sum == CHECKSUMS[i].sum)) {
                dp_tally_note(&tally, "%s, %d threads: 0x%016" PRIX64, CHECKSUMS[i].policy,
                              threads[t], sum);
            }
        }
    }
    dp_assert_tally(tally, 24);
    discard(&f);
}
END_TEST

/* ---- degenerate scores ------------------------------------------------------------------------
 */

/* Q = 0: every score is 0, so every key weighs the same, whatever the map: O is the mean of V as
 * quantized, equal in all rows of a stage. */
START_TEST(equal_scores)
{
    fixture f;
    build(&f, SQUARE, 0.0, 41);
    dp_tally tally = {0};
    for (int p = 0; p < POLICY_COUNT; p++) {
        for (int epoch = 0; epoch < 2; epoch++) {
            run(&f, POLICIES[p], (dp_epoch)epoch, NULL, 2);
            for (size_t row = 0; row < 256; row++) {
                const uint16_t *first = f.o + row / 128 * 128 * 128;
                const bool same = memcmp(f.o + row * 128, first, 256) == 0 &&
                                  isfinite(f.lse[row]) && f.row_sum[row] > 0.0f;
                if (!dp_tally_check(&tally, same)) {
                    dp_tally_note(&tally, "%s row %zu", POLICIES[p], row);
                }
            }
        }
    }
    dp_assert_tally(tally, 14 * 256);
    discard(&f);
}
END_TEST

/* One key far above the others takes the whole row, wherever it stands. Anchored policies meet it
 * as an anchor (key 0, 255) or not (key 100). */
START_TEST(one_huge_score)
{
    static const size_t places[] = {0, 100, 255};
    dp_tally tally = {0};
    for (int i = 0; i < 3; i++) {
        fixture f;
        build(&f, SQUARE, 1.0, 42);
        fill(f.q, 256 * 128, bf16(1.0));
        fill(f.k, 256 * 128, bf16(-1.0));
        fill(f.k + places[i] * 128, 128, bf16(4.0)); /* raw 512 against -128 */
        for (int p = 0; p < POLICY_COUNT; p++) {
            run(&f, POLICIES[p], DP_EPOCH_R, NULL, 2);
            for (size_t row = 0; row < 256; row += 17) {
                for (size_t d = 0; d < 128; d++) {
                    /* V of that key: amplitude scale of its block, so off by a code's half step */
                    const double v = value(f.v[places[i] * 128 + d]);
                    const double o = value(f.o[row * 128 + d]);
                    if (!dp_tally_check(&tally, fabs(o - v) <= 0.2 * fabs(v) + 0.35)) {
                        dp_tally_note(&tally, "%s key %zu row %zu: %g, v %g", POLICIES[p],
                                      places[i], row, o, v);
                    }
                }
            }
        }
        discard(&f);
    }
    dp_assert_tally(tally, 3 * POLICY_COUNT * 16 * 128);
}
END_TEST

/* NaN and -Inf as inputs: a defined result (the quantizers turn NaN into the largest code), the
 * same twice, and rows that do not meet them unchanged. */
START_TEST(not_a_number)
{
    static const uint16_t bad[] = {0x7FC0, 0xFF80, 0x7F80};
    fixture clean, f;
    build(&clean, SQUARE, 1.0, 43);
    dp_tally tally = {0};
    for (int p = 0; p < POLICY_COUNT; p++) {
        run(&clean, POLICIES[p], DP_EPOCH_R, NULL, 2);
        for (int i = 0; i < 3; i++) {
            build(&f, SQUARE, 1.0, 43);
            f.q[5 * 128 + 7] = bad[i]; /* row 5 alone */
            run(&f, POLICIES[p], DP_EPOCH_R, NULL, 2);
            for (size_t row = 0; row < 256; row++) {
                const bool same = memcmp(f.o + row * 128, clean.o + row * 128, 256) == 0 &&
                                  memcmp(&f.lse[row], &clean.lse[row], 4) == 0;
                if (!dp_tally_check(&tally, same || row == 5)) {
                    dp_tally_note(&tally, "%s: %04x in row 5 reached row %zu", POLICIES[p], bad[i],
                                  row);
                }
            }
            const uint64_t once = checksum(&f);
            run(&f, POLICIES[p], DP_EPOCH_R, NULL, 3);
            dp_tally_check(&tally, once == checksum(&f));
            discard(&f);
        }
    }
    dp_assert_tally(tally, POLICY_COUNT * 3 * 257);
    discard(&clean);
}
END_TEST

/* Raw scores handed to the row stages directly: NaN counts as code 7 and never as a maximum; a row
 * of -Inf has the bytes of u = 0. */
START_TEST(raw_scores_not_numbers)
{
    dp_tally tally = {0};
    for (int p = 0; p < POLICY_COUNT; p++) {
        for (int epoch = 0; epoch < 2; epoch++) {
            dp_forward_policy policy;
            const dp_switches switches = dp_switches_default();
            ck_assert(dp_forward_policy_find(POLICIES[p], &policy, NULL));
            const dp_direct_p launch =
                dp_direct_p_make(&policy, (dp_epoch)epoch, &switches, 1.0 / sqrt(128.0), NULL);
            float raw[DP_TILE];
            dp_p_row row;
            for (int j = 0; j < DP_TILE; j++) {
                raw[j] = -INFINITY;
            }
            dp_classify_row(&launch, 1, 0.0f, raw, &row);
            for (int b = 0; b < DP_QUARTERS; b++) {
                dp_tally_check(&tally, row.raw_byte[b] == 0 && row.code_sum[b] == 0 &&
                                           row.stored[b] == (epoch == 0 ? 0 : 1));
            }
            raw[3] = NAN;
            raw[40] = 8.0f;
            raw[41] = NAN;
            dp_classify_row(&launch, 1, 0.0f, raw, &row);
            const int seven = (row.payload[20] >> 4) & 7;
            dp_tally_check(&tally, seven == 7 && row.raw_byte[1] == 128);
            dp_tally_check(&tally, ((row.payload[1] >> 4) & 7) == (policy.clear_zero ? 0 : 7));
        }
    }
    dp_assert_tally(tally, POLICY_COUNT * 12);
}
END_TEST

/* Logits of 18102 and, for one key, twice that: with a reference that key wins and nothing is
 * infinite; without one the byte stops at 254 and all keys weigh the same. */
START_TEST(logits_above_a_thousand)
{
    fixture f;
    build(&f, SQUARE, 1.0, 44);
    fill(f.q, 256 * 128, bf16(16.0));
    fill(f.k, 255 * 128, bf16(100.0));
    fill(f.k + 255 * 128, 128, bf16(200.0));
    dp_tally tally = {0};
    run(&f, "guard-14b", DP_EPOCH_R, NULL, 2);
    for (size_t row = 0; row < 256; row++) {
        for (size_t d = 0; d < 128; d += 5) {
            const double v = value(f.v[255 * 128 + d]);
            const double o = value(f.o[row * 128 + d]);
            dp_tally_check(&tally, fabs(o - v) <= 0.2 * fabs(v) + 0.35);
        }
    }
    run(&f, "fast", DP_EPOCH_S, NULL, 2);
    for (size_t row = 0; row < 256; row++) {
        for (size_t b = 0; b < 8; b++) {
            dp_tally_check(&tally, f.p_scale[row * 8 + b] == 238 && f.code_sum[row * 8 + b] == 384);
        }
    }
    dp_assert_tally(tally, 256 * 34);
    discard(&f);
}
END_TEST

/* ---- the layer-39 failure ----------------------------------------------------------------------
 */

/* Margin in octaves, as the authors' note counts it: a row whose maximum is an anchor has u =
 * 127 - 112 = 15, stored 1. The old product order flushes every term of it: the row is lost, O = 0
 * and LSE = -Inf. The new order keeps it. */
START_TEST(layer_39_end_to_end)
{
    fixture f;
    build(&f, SQUARE, 1.0, 45);
    fill(f.k, 256 * 128, bf16(1.0)); /* all keys equal: every block is the winner */
    const char *good = "margin-units=log2";
    const char *fault = "margin-units=log2 fault-scale-first=on";
    run(&f, "guard-14b", DP_EPOCH_R, good, 2);
    dp_tally tally = {0};
    uint16_t *kept = malloc(256 * 128 * sizeof *kept);
    memcpy(kept, f.o, 256 * 128 * sizeof *kept);
    for (size_t row = 0; row < 256; row++) {
        dp_tally_check(&tally,
                       f.p_scale[row * 8] == 1 && f.row_sum[row] > 0.0f && isfinite(f.lse[row]));
    }
    run(&f, "guard-14b", DP_EPOCH_R, fault, 2);
    for (size_t row = 0; row < 256; row++) {
        bool zero = true;
        for (size_t d = 0; d < 128; d++) {
            zero = zero && f.o[row * 128 + d] == 0;
        }
        dp_tally_check(&tally, zero && f.row_sum[row] == 0.0f && f.lse[row] == -INFINITY);
        dp_tally_check(&tally, f.code_sum[row * 8] > 0); /* the codes are there */
    }
    /* In raw units, as the sources have it, both orders give the same bits. */
    run(&f, "guard-14b", DP_EPOCH_R, "fault-scale-first=on", 2);
    dp_tally_check(&tally, f.p_scale[0] == 103 && f.row_sum[0] > 0.0f);
    dp_assert_tally(tally, 3 * 256 + 1);
    free(kept);
    discard(&f);
}
END_TEST

/* ---- numbered cases ----------------------------------------------------------------------------
 */

/* Scales that cancel must not be tested at values that cancel: three unrelated factors. */
START_TEST(case_80_scales_are_used)
{
    const dp_switches switches = dp_switches_default();
    const double scale = 0.125;
    const float plain = dp_score_multiplier(scale, 1.0f, 1.0f, &switches);
    ck_assert(dp_score_multiplier(scale, 0.75f, 1.0f, &switches) == 0.75f * plain);
    ck_assert(dp_score_multiplier(scale, 1.0f, 1.25f, &switches) == 1.25f * plain);
    ck_assert(dp_score_multiplier(scale, 0.75f, 1.25f, &switches) == (0.75f * plain) * 1.25f);
    ck_assert(dp_score_multiplier(2.0 * scale, 0.75f, 1.25f, &switches) ==
              2.0f * ((0.75f * plain) * 1.25f));
    /* Q four times larger, softmax scale a quarter: the same probabilities, other raw scores. */
    fixture a, b;
    build(&a, SQUARE, 1.0, 46);
    build(&b, SQUARE, 1.0, 46);
    a.in.softmax_scale = 0.08;
    b.in.softmax_scale = 0.02;
    for (size_t i = 0; i < 256 * 128; i++) {
        b.q[i] = bf16(4.0 * value(b.q[i]));
    }
    run(&a, "fast", DP_EPOCH_R, NULL, 1);
    run(&b, "fast", DP_EPOCH_R, NULL, 1);
    dp_tally tally = {0};
    for (size_t i = 0; i < 256 * 256; i++) {
        dp_tally_check(&tally, b.raw[i] == 4.0f * a.raw[i]);
    }
    dp_assert_tally(tally, 65536);
    ck_assert(memcmp(a.o, b.o, 256 * 128 * 2) == 0 && memcmp(a.lse, b.lse, 1024) == 0);
    discard(&a);
    discard(&b);
}
END_TEST

START_TEST(case_83_merging_with_nothing)
{
    const float v[3] = {1.5f, -2.25f, 1e30f};
    const float nan3[3] = {NAN, NAN, NAN};
    float o[3];
    float lse = 0.0f;
    dp_merge(nan3, -INFINITY, nan3, -INFINITY, 3, o, &lse);
    ck_assert(o[0] == 0.0f && o[1] == 0.0f && o[2] == 0.0f && lse == -INFINITY);
    dp_merge(v, 1.0f, nan3, -INFINITY, 3, o, &lse);
    ck_assert(memcmp(o, v, sizeof v) == 0 && lse == 1.0f);
    dp_merge(nan3, -INFINITY, v, 1.0f, 3, o, &lse);
    ck_assert(memcmp(o, v, sizeof v) == 0 && lse == 1.0f);
    /* Both sides equal: the mean, and ln 2 more; no overflow far from 0. */
    dp_merge(v, 5000.0f, v, 5000.0f, 3, o, &lse);
    ck_assert(memcmp(o, v, sizeof v) == 0);
    ck_assert_float_eq_tol(lse, 5000.6931f, 1e-3f);
    /* In place. */
    memcpy(o, v, sizeof v);
    dp_merge(o, 0.0f, nan3, -INFINITY, 3, o, &lse);
    ck_assert(memcmp(o, v, sizeof v) == 0);
}
END_TEST

/* Halves of the keys, each run alone, joined: the LSE is a natural logarithm, or the weights come
 * out wrong. 3072 and 64 equal logits: the 64 weigh 64/3136 (in mixed bases 0.374 %). */
START_TEST(case_88_lse_is_natural)
{
    dp_tally tally = {0};
    for (int p = 0; p < 3; p++) {
        static const char *const policies[] = {"fast", "accurate", "guard-14b"};
        fixture many, few;
        dp_attention shape = SQUARE;
        shape.queries = 1;
        shape.keys = 3072;
        build(&many, shape, 1.0, 47);
        shape.keys = 64;
        build(&few, shape, 1.0, 47);
        fill(many.k, 3072 * 128, bf16(0.5));
        fill(few.k, 64 * 128, bf16(0.5));
        fill(many.q, 128, bf16(0.25));
        fill(few.q, 128, bf16(0.25)); /* logit 1.414 everywhere */
        fill(many.v, 3072 * 128, bf16(0.0));
        fill(few.v, 64 * 128, bf16(1.0));
        run(&many, policies[p], DP_EPOCH_R, NULL, 1);
        run(&few, policies[p], DP_EPOCH_R, NULL, 1);
        float a[128], b[128], o[128], lse = 0.0f;
        for (size_t d = 0; d < 128; d++) {
            a[d] = (float)value(many.o[d]);
            b[d] = (float)value(few.o[d]);
        }
        dp_merge(a, many.lse[0], b, few.lse[0], 128, o, &lse);
        dp_tally_check(&tally, fabs((double)o[5] - 64.0 / 3136.0) < 1e-4);
        dp_tally_check(&tally, fabs((double)(many.lse[0] - few.lse[0]) - log(48.0)) < 1e-4);
        if (!dp_tally_check(&tally, fabs((double)lse - (sqrt(2.0) + log(3136.0))) < 0.3)) {
            dp_tally_note(&tally, "%s: %g", policies[p], (double)lse); /* codes are coarse */
        }
        discard(&many);
        discard(&few);
    }
    dp_assert_tally(tally, 9);
}
END_TEST

/* What lies behind the last key is never read: NaN, infinity and 1e30 there change nothing. */
START_TEST(case_86_memory_behind_the_keys)
{
    static const uint16_t poison[] = {0x7FC0, 0x7F80, 0xFF80, 0x7149};
    dp_attention shape = SQUARE;
    shape.keys = 128;
    fixture whole;
    build(&whole, shape, 1.0, 48); /* 128 keys of memory, 32 in use */
    whole.in.keys = 32;
    for (int p = 0; p < POLICY_COUNT; p++) {
        uint64_t right = 0;
        for (int i = 0; i < 5; i++) {
            if (i > 0) {
                fill(whole.k + 32 * 128, 96 * 128, poison[i - 1]);
                fill(whole.v + 32 * 128, 96 * 128, poison[i - 1]);
            }
            run(&whole, POLICIES[p], DP_EPOCH_R, NULL, 2);
            const uint64_t sum = checksum(&whole);
            right = i == 0 ? sum : right;
            ck_assert_msg(sum == right, "%s, poison %d", POLICIES[p], i);
        }
    }
    discard(&whole);
}
END_TEST

START_TEST(case_90_which_key_head)
{
    static const int32_t tiled[4] = {0, 1, 0, 1};
    static const double block[4] = {1, 1, 2, 2}, interleaved[4] = {1, 2, 1, 2};
    dp_attention shape = SQUARE;
    shape.q_heads = 4;
    shape.kv_heads = 2;
    fixture f;
    build(&f, shape, 1.0, 49);
    fill(f.v, 256 * 128, bf16(1.0));
    fill(f.v + 256 * 128, 256 * 128, bf16(2.0));
    for (int map = 0; map < 2; map++) {
        f.in.kv_of_q = map == 0 ? NULL : tiled;
        run(&f, "fast", DP_EPOCH_R, NULL, 2);
        for (size_t h = 0; h < 4; h++) {
            const double o = value(f.o[h * 256 * 128]);
            const double right = map == 0 ? block[h] : interleaved[h];
            ck_assert_msg(fabs(o - right) < 0.01 * right, "map %d head %zu: %g", map, h, o);
        }
    }
    discard(&f);
}
END_TEST

/* Every key tile has the same scale: tiles of equal scores get equal bytes, codes and weights. */
START_TEST(case_94_the_scale_does_not_compound)
{
    dp_attention shape = SQUARE;
    shape.keys = 512;
    fixture f;
    build(&f, shape, 1.0, 50);
    for (size_t key = 128; key < 512; key++) {
        memcpy(f.k + key * 128, f.k + key % 128 * 128, 256);
    }
    run(&f, "fast", DP_EPOCH_S, NULL, 2);
    dp_tally tally = {0};
    for (size_t row = 0; row < 256; row++) {
        for (size_t tile = 1; tile < 4; tile++) {
            const bool same =
                memcmp(f.raw + row * 512 + tile * 128, f.raw + row * 512, 512) == 0 &&
                memcmp(f.p_scale + row * 16 + tile * 4, f.p_scale + row * 16, 4) == 0 &&
                memcmp(f.p_payload + row * 256 + tile * 64, f.p_payload + row * 256, 64) == 0;
            dp_tally_check(&tally, same);
        }
    }
    dp_assert_tally(tally, 768);
    discard(&f);
}
END_TEST

/* The PV accumulator is F32. Saturated keys of weight 2^111 add 36 * 2^111 * v each: the sum passes
 * F32 at |sum of v| = 3640.9 and is infinite there, finite below; the row sum never is. */
START_TEST(case_95_where_the_accumulator_overflows)
{
    dp_attention shape = SQUARE;
    shape.queries = 1;
    shape.keys = 4096;
    fixture f;
    build(&f, shape, 1.0, 51);
    fill(f.q, 128, bf16(64.0));
    fill(f.k, 4096 * 128, bf16(4.0)); /* every score 4178 octaves up */
    dp_tally tally = {0};
    for (int i = 0; i < 4; i++) {
        const size_t ones = i == 0 ? 1024 : (i == 1 ? 3584 : (i == 2 ? 3648 : 4096));
        for (size_t key = 0; key < 4096; key++) {
            fill(f.v + key * 128, 128, bf16(key < ones ? 1.0 : 0.0));
        }
        run(&f, "fast", DP_EPOCH_S, NULL, 1);
        dp_tally_check(&tally, f.p_scale[0] == 238 && isfinite(f.row_sum[0]));
        if (!dp_tally_check(&tally, isinf(f.acc[3]) == (ones > 3640))) {
            dp_tally_note(&tally, "%zu ones: %g", ones, (double)f.acc[3]);
        }
        /* The sum is past 2^126/36, so that the output is 0 * acc: zero, or NaN at the infinity. */
        const double o = value(f.o[3]);
        dp_tally_check(&tally, ones > 3640 ? isnan(o) : o == 0.0);
    }
    dp_assert_tally(tally, 12);
    discard(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forward cases");
    TCase *tests = tcase_create("forward cases");
    tcase_add_test(tests, checksums);
    tcase_add_test(tests, equal_scores);
    tcase_add_test(tests, one_huge_score);
    tcase_add_test(tests, not_a_number);
    tcase_add_test(tests, raw_scores_not_numbers);
    tcase_add_test(tests, logits_above_a_thousand);
    tcase_add_test(tests, layer_39_end_to_end);
    tcase_add_test(tests, case_80_scales_are_used);
    tcase_add_test(tests, case_83_merging_with_nothing);
    tcase_add_test(tests, case_86_memory_behind_the_keys);
    tcase_add_test(tests, case_88_lse_is_natural);
    tcase_add_test(tests, case_90_which_key_head);
    tcase_add_test(tests, case_94_the_scale_does_not_compound);
    tcase_add_test(tests, case_95_where_the_accumulator_overflows);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
