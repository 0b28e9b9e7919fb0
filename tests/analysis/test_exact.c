/* SPDX-License-Identifier: MIT
 *
 * The binary64 yardstick against sums written out, the split of an error on inputs where parts
 * vanish, and the code match against codes made lane by lane.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/codes.h"
#include "analysis/exact.h"
#include "formats/bf16.h"
#include "support.h"

enum { ROWS = 150, KEYS = 170, DIM = 24 };

/* One entry of softmax(scale q k^T) v in long double, keys taken in the order given. */
static long double written_out(const dp_exact_head *h, size_t row, size_t d)
{
    long double sum = 0.0L;
    long double weighted = 0.0L;
    for (size_t j = 0; j < h->keys; j++) {
        const size_t key = h->key_order != NULL ? (size_t)h->key_order[j] : j;
        long double dot = 0.0L;
        for (size_t i = 0; i < h->dim; i++) {
            dot += (long double)h->q[row * h->dim + i] * (long double)h->k[j * h->dim + i];
        }
        if (!h->causal || key + h->queries <= row + h->keys) {
            const long double e = expl(dot * (long double)h->scale);
            sum += e;
            weighted += e * (long double)h->v[j * h->dim + d];
        }
    }
    return sum > 0.0L ? weighted / sum : 0.0L;
}

START_TEST(yardstick)
{
    static double q[ROWS * DIM], k[KEYS * DIM], v[KEYS * DIM], p[ROWS * KEYS], o[ROWS * DIM];
    static int32_t order[KEYS];
    dp_rng rng = {31};
    for (size_t i = 0; i < ROWS * DIM; i++) {
        q[i] = dp_rng_normal(&rng);
    }
    for (size_t i = 0; i < KEYS * DIM; i++) {
        k[i] = dp_rng_normal(&rng);
        v[i] = dp_rng_normal(&rng);
    }
    for (int32_t j = 0; j < KEYS; j++) {
        order[j] = (j * 7 + 3) % KEYS;
    }
    dp_tally tally = {0};
    for (int kind = 0; kind < 8; kind++) {
        const dp_blas blas = (kind & 1) != 0 ? dp_blas_open() : (dp_blas){NULL, NULL};
        const dp_exact_head head = {.queries = ROWS,
                                    .keys = (kind & 2) != 0 ? KEYS : KEYS / 2,
                                    .dim = DIM,
                                    .q = q,
                                    .k = k,
                                    .v = v,
                                    .scale = 0.3,
                                    .causal = kind >= 4,
                                    .key_order = kind == 3 || kind == 7 ? order : NULL};
        dp_exact_rows(&blas, &head, 10, ROWS - 10, p, o);
        for (size_t row = 10; row < ROWS; row += 9) {
            for (size_t d = 0; d < DIM; d++) {
                const long double right = written_out(&head, row, d);
                const double got = o[(row - 10) * DIM + d];
                if (!dp_tally_check(&tally, fabsl((long double)got - right) <= 1e-13L)) {
                    dp_tally_note(&tally, "kind %d row %zu: %.17g, %.17Lg", kind, row, got, right);
                }
            }
        }
    }
    dp_assert_tally(tally, 8 * 15 * DIM);
}
END_TEST

static uint16_t bf16(double x)
{
    return dp_bf16_from_f32((float)x, DP_ENCODE_PTX).bits;
}

enum { S = 256, D = 128 };

typedef struct {
    uint16_t q[S * D], k[S * D], v[S * D];
    dp_attention in;
} problem;

static problem *make(double sigma, bool ones)
{
    problem *x = calloc(1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    dp_rng rng = {7};
    for (size_t i = 0; i < S * D; i++) {
        x->q[i] = bf16(sigma * dp_rng_normal(&rng));
        x->k[i] = bf16(dp_rng_normal(&rng));
        x->v[i] = bf16(ones ? 1.0 : dp_rng_normal(&rng));
    }
    x->in = (dp_attention){.batch = 1,
                           .q_heads = 1,
                           .kv_heads = 1,
                           .queries = S,
                           .keys = S,
                           .dim = D,
                           .q = x->q,
                           .k = x->k,
                           .v = x->v};
    return x;
}

static dp_direct_p launch_of(const char *policy, const dp_attention *in)
{
    dp_forward_policy found;
    const dp_switches switches = dp_switches_default();
    ck_assert(dp_forward_policy_find(policy, &found, NULL));
    return dp_direct_p_make(&found, DP_EPOCH_R, &switches, dp_attention_scale(in), NULL);
}

static dp_error_parts split(const dp_attention *in, const char *policy)
{
    dp_error_parts parts[2];
    dp_error error = {""};
    const dp_direct_p launch = launch_of(policy, in);
    ck_assert_msg(dp_decompose(in, &launch, NULL, 2, parts, &error), "%s", error.text);
    ck_assert(parts[0].total == parts[1].total); /* one head: it is all */
    ck_assert_uint_eq(parts[1].rows, S);
    ck_assert_uint_eq(parts[1].nonfinite_rows, 0);
    return parts[1];
}

START_TEST(parts_vanish_where_they_must)
{
    /* V = 1: whatever P is, every output but the last rounding is 1. */
    problem *x = make(1.0, true);
    dp_error_parts parts = split(&x->in, "fast");
    ck_assert_msg(parts.qk < 1e-14 && parts.v == 0.0 && parts.p < 1e-6, "%g %g %g", parts.qk,
                  parts.v, parts.p);
    ck_assert(parts.total < 0.0079);
    free(x);
    /* Q = 0: nothing to lose in Q and K; uniform probabilities are one code. */
    x = make(0.0, false);
    parts = split(&x->in, "ideal");
    ck_assert_msg(parts.qk < 1e-14 && parts.p < 1e-6, "%g %g", parts.qk, parts.p);
    ck_assert_msg(parts.v > 0.05 && fabs(parts.v - parts.total) < 0.01, "%g %g", parts.v,
                  parts.total);
    free(x);
    /* N(0,1): known levels; the parts are nearly orthogonal; BF16 itself is far better. */
    x = make(1.0, false);
    parts = split(&x->in, "fast");
    const double root = sqrt(parts.qk * parts.qk + parts.p * parts.p + parts.v * parts.v);
    ck_assert_msg(parts.qk > 0.12 && parts.qk < 0.16 && parts.v > 0.12 && parts.v < 0.16 &&
                      parts.p > 0.25 && parts.p < 0.33,
                  "%g %g %g", parts.qk, parts.v, parts.p);
    ck_assert_msg(fabs(parts.total / root - 1.0) < 0.1, "%g %g", parts.total, root);
    ck_assert_msg(parts.rest < 0.003 && parts.bf16 < 0.004, "%g %g", parts.rest, parts.bf16);
    free(x);
}
END_TEST

/* ---- code match ------------------------------------------------------------------------------ */

typedef struct {
    dp_direct_p launch;
    int64_t confusion[8][8];
} by_lane;

/* Nearest E2M1 code of 2^x for the working byte, by comparing values: the definition. */
static bool count_lanes(void *context, const dp_strip *s)
{
    by_lane *count = context;
    for (size_t r = 0; r < s->rows; r++) {
        for (size_t key = 0; key < s->keys; key++) {
            const size_t block = key / DP_BLOCK * DP_BLOCK;
            float largest = -INFINITY;
            for (size_t j = block; j < block + DP_BLOCK; j++) {
                largest = fmaxf(largest, s->raw[r * s->keys + j]);
            }
            const int w = dp_working_byte(&count->launch,
                                          dp_block_byte(&count->launch, largest, s->row_ref[r]));
            const dp_block_scalars scalars = dp_block_offsets(&count->launch, s->row_ref[r], w);
            const float y = dp_lane_value(&count->launch, scalars, true, s->raw[r * s->keys + key]);
            const uint8_t byte = s->p_payload[(r * s->keys + key) / 2];
            count->confusion[dp_lane_code(y)][((uint32_t)byte >> (key % 2 * 4)) & 7u]++;
        }
    }
    return true;
}

START_TEST(code_match)
{
    problem *x = make(2.0, false);
    static const char *const policies[] = {"fast", "accurate", "guard-14b", "ideal"};
    for (int p = 0; p < 4; p++) {
        static dp_code_match match, again;
        dp_error error = {""};
        by_lane count = {.launch = launch_of(policies[p], &x->in)};
        ck_assert(dp_codes_run(&x->in, &count.launch, NULL, 1, &match, &error));
        ck_assert(dp_codes_run(&x->in, &count.launch, NULL, 3, &again, &error));
        ck_assert(memcmp(&match, &again, sizeof match) == 0);
        dp_operands operands;
        ck_assert(dp_forward_quantize(&x->in, &count.launch, 1, &operands, &error));
        const dp_forward_job job = {&x->in, &operands, &count.launch, NULL,
                                    1,      true,      count_lanes,   &count};
        ck_assert(dp_forward_run(&job, &error));
        dp_operands_free(&operands);
        ck_assert(memcmp(match.confusion, count.confusion, sizeof match.confusion) == 0);
        ck_assert_int_eq(match.lanes, S * S);
        int64_t by_byte = 0, by_distance = 0, equal = 0;
        for (int i = 0; i < DP_BYTES; i++) {
            by_byte += match.byte_lanes[i];
            equal += match.byte_match[i];
        }
        for (int i = 0; i < DP_DISTANCE_BINS; i++) {
            by_distance += match.distance_lanes[i];
        }
        ck_assert(by_byte == S * S && by_distance == S * S && equal == match.match);
        if (p == 3) { /* the ideal itself, but for the rounding of Q1's offset */
            ck_assert_msg(match.lanes - match.match < 8, "%lld differ",
                          (long long)(match.lanes - match.match));
            ck_assert_double_eq_tol(match.mass_mean, 1.0, 1e-5);
        } else {
            ck_assert(match.match < match.lanes && match.mass_mean > 0.5 && match.mass_mean < 1.5);
        }
    }
    free(x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exact");
    TCase *tests = tcase_create("exact");
    tcase_add_test(tests, yardstick);
    tcase_add_test(tests, parts_vanish_where_they_must);
    tcase_add_test(tests, code_match);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
