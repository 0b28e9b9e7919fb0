/* SPDX-License-Identifier: MIT
 *
 * The guard adviser: its range against the oracle at the edge, and its advice followed on real
 * tensors and on tensors pushed out of the range.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/guard.h"
#include "formats/bf16.h"
#include "support.h"

static dp_forward_policy fast(void)
{
    dp_forward_policy policy;
    ck_assert(dp_forward_policy_find("fast", &policy, NULL));
    return policy;
}

static void follow(const char *what, const dp_guard *guard, dp_tally *tally)
{
    for (size_t h = 0; h < guard->count; h++) {
        const dp_guard_head *head = &guard->heads[h];
        const dp_guard_choice c = head->advice;
        if (c == DP_GUARD_BEYOND) {
            (void)dp_tally_check(tally, !head->safe[0] && !head->safe[1]);
            continue;
        }
        const bool keeps = head->lost_rows[c] == 0 && isfinite(head->rel_l2[c]);
        const bool never_worse = !head->safe[0] || head->rel_l2[c] <= head->rel_l2[DP_GUARD_NONE];
        const bool helps = head->safe[0] || head->rel_l2[c] <= 1.02 * head->rel_l2[DP_GUARD_NONE] ||
                           head->lost_rows[DP_GUARD_NONE] > 0;
        if (!dp_tally_check(tally, keeps && never_worse && helps)) {
            dp_tally_note(tally, "%s head %zu: %s, lost %d, %g against %g", what, h,
                          dp_guard_choice_name(c), (int)head->lost_rows[c], head->rel_l2[c],
                          head->rel_l2[DP_GUARD_NONE]);
        }
    }
}

START_TEST(advice_holds_on_real_tensors)
{
    static const char *const files[] = {"minilm_layer0", "qwen05_layer12", "qwen15_layer00",
                                        "whisper_layer0"};
    const dp_forward_policy policy = fast();
    dp_tally tally = {0};
    int advised[DP_GUARD_CHOICES + 1] = {0};
    for (int f = 0; f < 4; f++) {
        for (int factor = 1; factor <= 8; factor *= 8) {
            char path[512], name[64];
            (void)snprintf(name, sizeof name, "data/real/%s.h5", files[f]);
            dp_tensors tensors;
            dp_error error = {""};
            dp_attend_inputs inputs;
            const dp_attend_transform transform = {.q_factor = factor};
            ck_assert_msg(
                dp_tensors_load(dp_source_path(path, sizeof path, name), &tensors, &error), "%s",
                error.text);
            ck_assert(dp_attend_from_tensors(&tensors, name, &transform, &inputs, &error));
            dp_tensors_free(&tensors);
            dp_guard guard;
            ck_assert_msg(dp_guard_measure(&inputs, &policy, 128, 0, &guard, &error), "%s",
                          error.text);
            (void)snprintf(name, sizeof name, "%s x%d", files[f], factor);
            follow(name, &guard, &tally);
            for (size_t h = 0; h < guard.count; h++) {
                advised[guard.heads[h].advice]++;
            }
            dp_guard_free(&guard);
            dp_attend_inputs_free(&inputs);
        }
    }
    printf("none %d, smooth-k %d, anchor %d, both %d, beyond %d\n", advised[0], advised[1],
           advised[2], advised[3], advised[4]);
    ck_assert_int_le(advised[DP_GUARD_BEYOND], 8); /* of 52; all with Q times 8 */
    ck_assert_int_gt(advised[DP_GUARD_NONE], 0);
    ck_assert_int_gt(advised[DP_GUARD_SMOOTH] + advised[DP_GUARD_ANCHOR], 0);
    dp_assert_tally(tally, 40);
}
END_TEST

/* Every score of a row is moved by the same number of octaves: the head leaves the range at the
 * edge that dp_guard_range names, and is lost well outside it. */
START_TEST(range_is_where_rows_are_lost)
{
    enum { S = 160, D = 64 };
    const dp_forward_policy policy = fast();
    double low, high;
    dp_guard_range(policy.shift, &low, &high);
    ck_assert(low == -107.0 && high == 113.0);
    static const struct {
        double octaves;
        bool safe, lost;
    } cases[] = {{0, true, false},    {-95, true, false},  {100, true, false},
                 {-125, false, true}, {-160, false, true}, {150, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static uint16_t q[S * D], k[S * D], v[S * D];
        dp_rng rng = {5};
        /* feature 0 of Q is 8 and that of K the same for all keys: a shift of every score */
        const double shift = cases[i].octaves * 0.6931471805599453 * 8.0 / 8.0;
        for (size_t j = 0; j < S * D; j++) {
            const bool first = j % D < 16;
            const double noise = 0.3 * dp_rng_normal(&rng);
            q[j] = dp_bf16_from_f32(first ? 4.0f : (float)noise, DP_ENCODE_PTX).bits;
            k[j] =
                dp_bf16_from_f32(first ? (float)(shift / 8.0) : (float)noise, DP_ENCODE_PTX).bits;
            v[j] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
        }
        dp_attend_inputs inputs = {.q = q, .k = k, .v = v};
        inputs.in = (dp_attention){.batch = 1,
                                   .q_heads = 1,
                                   .kv_heads = 1,
                                   .queries = S,
                                   .keys = S,
                                   .dim = D,
                                   .q = q,
                                   .k = k,
                                   .v = v};
        dp_error error = {""};
        dp_guard guard;
        ck_assert_msg(dp_guard_measure(&inputs, &policy, 128, 2, &guard, &error), "%s", error.text);
        const dp_guard_head *h = &guard.heads[0];
        printf("%g: top %g bottom %g lost %d rel %g smooth %g anchor %g\n", cases[i].octaves,
               h->top[0], h->bottom[0], (int)h->lost_rows[0], h->rel_l2[0], h->rel_l2[1],
               h->rel_l2[2]);
        ck_assert_int_eq(h->safe[0], cases[i].safe);
        ck_assert_int_eq(h->lost_rows[DP_GUARD_NONE] > 0, cases[i].lost);
        ck_assert(h->safe[1]); /* the common shift is what smoothing takes away */
        ck_assert_int_eq(h->advice, cases[i].safe ? DP_GUARD_NONE : DP_GUARD_SMOOTH);
        ck_assert(h->lost_rows[DP_GUARD_SMOOTH] == 0 && h->lost_rows[DP_GUARD_ANCHOR] == 0);
        dp_guard_free(&guard);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guard");
    TCase *tests = tcase_create("guard");
    tcase_add_test(tests, range_is_where_rows_are_lost);
    tcase_add_test(tests, advice_holds_on_real_tensors);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
