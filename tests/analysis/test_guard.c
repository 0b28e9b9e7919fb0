/* SPDX-License-Identifier: MIT
 *
 * The guard adviser: bounds and constants against the oracle's own bytes, its advice from made-up
 * measures, and its advice followed through the oracle on real tensors and on tensors built to
 * fail. Argument "all": every file of data/real with Q times 1, 4 and 10.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/guard_report.h"
#include "formats/bf16.h"
#include "support.h"

static dp_forward_policy fast(void)
{
    dp_forward_policy policy;
    ck_assert(dp_forward_policy_find("fast", &policy, NULL));
    return policy;
}

static double value_of(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return (double)dp_bf16_to_f32(x);
}

static uint16_t bits_of(double x)
{
    return dp_bf16_from_f32((float)x, DP_ENCODE_PTX).bits;
}

/* ---- bounds and constants -------------------------------------------------------------------- */

static dp_direct_p anchored(int margin, int shift, double scale)
{
    const dp_switches switches = dp_switches_default();
    dp_forward_policy policy = fast();
    policy.reference = DP_REFERENCE_ANCHOR;
    policy.anchor_keys = 32;
    policy.margin = margin;
    policy.shift = shift;
    return dp_direct_p_make(&policy, DP_EPOCH_R, &switches, scale, NULL);
}

/* Octaves of a margin are what the oracle's row reference makes of it. */
START_TEST(margin_is_in_the_kernels_unit)
{
    static const double scales[] = {0.08838834764831845, 0.125, 0.17677669529663687};
    float raw[DP_TILE] = {0.0f};
    for (int i = 0; i < 3; i++) {
        const dp_direct_p launch = anchored(640, 16, scales[i]);
        const double octaves = (double)dp_row_reference(&launch, raw) * (double)launch.multiplier;
        const double unit = (double)launch.multiplier * log(2.0);
        ck_assert_double_eq_tol(octaves, 640.0 * unit, 1e-4);
        ck_assert_double_eq_tol(octaves, 640.0 * scales[i], 1e-3); /* M sqrt(1/D) octaves */
    }
}
END_TEST

/* A row with one key at exponent e and, at worst, all keys there: is it stored with a byte that
 * keeps it, and do its sums stay inside f32? Counted from the definition of each step. */
static bool kept(const dp_guard_frame *f, const dp_direct_p *launch, double exponent)
{
    const float raw = (float)(exponent / (double)launch->multiplier);
    const int u = dp_block_byte(launch, raw, 0.0f);
    const int stored = dp_stored_byte(launch, u);
    const double wanted = floor(exponent + 0.41503749927884376) + 127.0;
    const double sum = log2((double)f->keys) + stored - 127;
    const bool top =
        wanted <= 254.0 && sum < 126.0 - log2(36.0) && sum + log2(36.0 * f->v_largest) < 128.0;
    const bool bottom = stored >= 4 && stored - 127 + log2(24.0 * f->o_least) > -126.0;
    return top && bottom;
}

START_TEST(constants_hold_what_they_claim)
{
    dp_rng rng = {11};
    dp_tally inside = {0}, found = {0}, centred = {0};
    int beyond = 0, shifted = 0, checked = 0;
    for (int i = 0; i < 4000; i++) {
        const double scale = 1.0 / sqrt((double)(32u << dp_rng_below(&rng, 3)));
        const dp_direct_p unguarded = anchored(0, 0, scale);
        const dp_guard_frame f = {.keys = 1 + dp_rng_below(&rng, 40000),
                                  .v_largest = exp2(8.0 * dp_rng_normal(&rng)),
                                  .o_least = exp2(-3.0 + 4.0 * dp_rng_normal(&rng)),
                                  .unit = (double)unguarded.multiplier * log(2.0)};
        const double miss =
            dp_rng_below(&rng, 2) ? 40.0 * fabs(dp_rng_normal(&rng)) : 260.0 * dp_rng_unit(&rng);
        const double below = dp_rng_below(&rng, 2) ? 0.0 : -125.0 * dp_rng_unit(&rng);
        const int base = (int)dp_rng_below(&rng, 40);
        const dp_guard_pair pair = dp_guard_choose(&f, below, miss, base);
        ck_assert(pair.margin >= 0 && pair.margin <= DP_GUARD_MARGIN_MOST);
        ck_assert(pair.shift >= 0 && pair.shift <= base);
        ck_assert(pair.octaves == pair.margin * f.unit);
        /* Brute force: is there any pair? */
        double best = -INFINITY, same_shift = -INFINITY;
        for (int l = 0; l <= base; l++) {
            for (int m = 0; m <= DP_GUARD_MARGIN_MOST; m += l == pair.shift ? 1 : 7) {
                const double slack = dp_guard_slack(&f, below, miss, m, l);
                best = slack > best ? slack : best;
                same_shift = l == pair.shift && slack > same_shift ? slack : same_shift;
            }
        }
        if (!dp_tally_check(&found, best < 0.0 || pair.slack >= 0.0)) {
            dp_tally_note(&found, "miss %g below %g: slack %g, but %g exists", miss, below,
                          pair.slack, best);
        }
        beyond += pair.slack < 0.0;
        shifted += pair.shift < base;
        if (pair.slack < 0.0) {
            continue;
        }
        /* The middle of the range, unless the build check is kept by less. */
        const bool small = pair.margin + pair.shift <= 126;
        checked += small;
        const double want = small ? fmin(16.0, same_shift) : same_shift;
        if (!dp_tally_check(&centred, pair.slack >= want - f.unit)) {
            dp_tally_note(&centred, "M %d L %d: slack %g of %g", pair.margin, pair.shift,
                          pair.slack, same_shift);
        }
        const dp_direct_p launch = anchored(pair.margin, pair.shift, scale);
        for (int k = 0; k <= 8; k++) {
            const double e = below + (miss - below) * k / 8.0 - pair.octaves;
            if (!dp_tally_check(&inside, kept(&f, &launch, e))) {
                dp_tally_note(&inside, "exponent %g under M %d L %d, keys %zu v %g o %g", e,
                              pair.margin, pair.shift, f.keys, f.v_largest, f.o_least);
            }
        }
    }
    printf("seed 11: beyond %d, smaller shift %d, within the build check %d\n", beyond, shifted,
           checked);
    ck_assert(beyond > 100 && shifted > 50 && checked > 100);
    dp_assert_tally(found, 4000);
    dp_assert_tally(centred, 1000);
    dp_assert_tally(inside, 9000);
}
END_TEST

START_TEST(bounds_are_not_needlessly_narrow)
{
    const dp_guard_frame f = {.keys = 2048, .v_largest = 4.0, .o_least = 1.0 / 16, .unit = 0.0884};
    double low, high;
    dp_guard_range(&f, 16, &low, &high);
    const dp_switches switches = dp_switches_default();
    const dp_forward_policy policy = fast();
    const dp_direct_p launch =
        dp_direct_p_make(&policy, DP_EPOCH_R, &switches, 1.0 / sqrt(128.0), NULL);
    ck_assert(kept(&f, &launch, low) && kept(&f, &launch, high));
    ck_assert(!kept(&f, &launch, low - 12.0) && !kept(&f, &launch, high + 3.0));
    const dp_guard_frame plain = {
        .keys = 1, .v_largest = 1.0, .unit = 0.0884}; /* nothing asked of o */
    dp_guard_range(&plain, 16, &low, &high);
    ck_assert(low == -107.0 && high == 126.5);
    dp_guard_range(&plain, 0, &low, &high);
    ck_assert(low == -123.0 && high == 120.0);
    const dp_guard_pair least = dp_guard_least(&f, 150.0, 16);
    ck_assert(least.margin > 0 && least.slack >= 0.0 &&
              dp_guard_slack(&f, 0.0, 150.0, least.margin - 1, 16) < 0.0);
    ck_assert_int_eq(dp_guard_least(&f, 100.0, 16).margin, 0);
}
END_TEST

/* ---- advice from made-up measures ----------------------------------------------------------- */

static dp_guard_head quiet_head(void)
{
    dp_guard_head head = {0};
    for (int which = 0; which < 2; which++) {
        head.scores[which].safe = true;
        head.scores[which].pair.slack = 20.0;
        head.scores[which].rebase_slack = 20.0;
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        head.effect[c].rel_l2 = head.launch[c].rel_l2 = 0.2;
    }
    return head;
}

static dp_guard advise(dp_guard_head *heads, size_t count)
{
    dp_guard guard = {.count = count, .heads = heads};
    guard.pair[0].slack = guard.pair[1].slack = 20.0;
    for (size_t h = 0; h < count; h++) {
        memcpy(heads[h].launch, heads[h].effect, sizeof heads[h].launch);
    }
    dp_guard_advise(&guard);
    return guard;
}

START_TEST(advice_of_a_head)
{
    dp_guard_head h = quiet_head();
    h.effect[DP_GUARD_SMOOTH].rel_l2 = 0.1;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_NONE); /* it needs nothing, whatever else is better */
    h.effect[DP_GUARD_NONE].zero_rows = 1;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_SMOOTH);
    h.effect[DP_GUARD_NONE].zero_rows = 0;
    h.scores[0].safe = false;
    h.effect[DP_GUARD_ANCHOR].rel_l2 = 0.05;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_SMOOTH); /* free of error in exact attention: preferred */
    h.effect[DP_GUARD_SMOOTH].nonfinite_rows = 1;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_ANCHOR);
    h.effect[DP_GUARD_SMOOTH].nonfinite_rows = 0;
    h.scores[1].safe = false;
    h.effect[DP_GUARD_SMOOTH].rel_l2 = 0.01; /* best, but outside the range: luck */
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_ANCHOR);
    h.scores[0].pair.slack = -1.0;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_BOTH);
    h.scores[1].rebase_slack = -1.0; /* nothing holds: fewest lost rows, then the least error */
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_SMOOTH);
    for (int c = 0; c < DP_GUARD_EXACT; c++) {
        h.effect[c].zero_rows = c == DP_GUARD_ANCHOR ? 1 : 2;
    }
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_EXACT);
    h.effect[DP_GUARD_EXACT_SMOOTH].rel_l2 = 0.1;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_EXACT_SMOOTH);
    h.effect[DP_GUARD_EXACT].nonfinite_rows = h.effect[DP_GUARD_EXACT_SMOOTH].nonfinite_rows = 3;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_ANCHOR); /* the fewest lost of all */
    h = quiet_head();
    h.scores[0].safe = h.scores[1].safe = false;
    h.effect[DP_GUARD_ANCHOR].rel_l2 = h.effect[DP_GUARD_BOTH].rel_l2 = 0.9;
    h.effect[DP_GUARD_EXACT].rel_l2 = 0.5;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_EXACT_SMOOTH); /* 0.9 is too much against 0.2 */
    /* Rows come before the error: whatever the exact maximum gains, it may not lose more. */
    h.effect[DP_GUARD_EXACT].zero_rows = 1;
    h.effect[DP_GUARD_EXACT_SMOOTH].nonfinite_rows = 2;
    (void)advise(&h, 1);
    ck_assert(h.advice < DP_GUARD_EXACT);
    const dp_guard guard = advise(&h, 1);
    ck_assert(guard.together < DP_GUARD_EXACT);
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        h.effect[c].rel_l2 = NAN; /* as with an Inf in V */
    }
    (void)advise(&h, 1);
    ck_assert(h.advice < DP_GUARD_EXACT);
    h.effect[DP_GUARD_EXACT] = h.effect[DP_GUARD_NONE]; /* nothing can be told: nothing is paid */
    (void)advise(&h, 1);
    ck_assert(h.advice < DP_GUARD_EXACT);
    h.effect[DP_GUARD_EXACT].rel_l2 = 0.2;
    (void)advise(&h, 1);
    ck_assert_int_eq(h.advice, DP_GUARD_EXACT);
}
END_TEST

START_TEST(advice_of_a_launch)
{
    dp_guard_head h[3] = {quiet_head(), quiet_head(), quiet_head()};
    dp_guard g = advise(h, 3);
    ck_assert(g.together == DP_GUARD_NONE && !g.apart && g.uniform[0].worst == 1.0);
    h[1].scores[0].safe = false;
    h[1].effect[DP_GUARD_NONE].zero_rows = 4;
    g = advise(h, 3);
    ck_assert(g.together == DP_GUARD_SMOOTH && !g.apart && g.uniform[0].lost_rows == 4);
    h[2].effect[DP_GUARD_SMOOTH].rel_l2 = 0.21;
    h[1].effect[DP_GUARD_SMOOTH].rel_l2 = 0.9; /* needs something: not counted as harm */
    g = advise(h, 3);
    ck_assert(g.together == DP_GUARD_SMOOTH && g.apart);
    ck_assert_double_eq_tol(g.uniform[DP_GUARD_SMOOTH].worst, 1.05, 1e-12);
    ck_assert_uint_eq(g.uniform[DP_GUARD_SMOOTH].worst_head, 2);
    ck_assert_double_eq_tol(g.uniform[DP_GUARD_SMOOTH].error, cbrt(0.2 * 0.9 * 0.21), 1e-12);
    h[1].scores[1].safe = false;
    h[0].effect[DP_GUARD_ANCHOR].rel_l2 = 0.01;
    g = advise(h, 3);
    ck_assert_int_eq(g.together, DP_GUARD_ANCHOR);
    for (int c = 0; c < DP_GUARD_EXACT; c++) {
        h[1].effect[c].zero_rows = 1;
    }
    h[0].effect[DP_GUARD_EXACT_SMOOTH].rel_l2 = 0.1;
    g = advise(h, 3);
    ck_assert_int_eq(g.together, DP_GUARD_EXACT_SMOOTH);
}
END_TEST

START_TEST(advice_in_words)
{
    dp_guard_head h[4] = {quiet_head(), quiet_head(), quiet_head(), quiet_head()};
    const dp_guard g = {.count = 4, .heads = h};
    const dp_guard_pair pair = {.margin = 7, .shift = 9};
    char text[256];
    h[2].advice = DP_GUARD_BOTH;
    h[3].advice = DP_GUARD_EXACT;
    ck_assert_str_eq(dp_guard_heads_text(&g, text, sizeof text),
                     "0-1 none; 2 smooth-k+anchor; 3 exact-max");
    static const struct {
        dp_guard_choice choice;
        const char *settings, *options;
    } cases[] = {
        {DP_GUARD_NONE, "", "--policy fast --epoch R"},
        {DP_GUARD_SMOOTH, "a=1", "--policy fast --epoch R --smooth-k --set a=1"},
        {DP_GUARD_ANCHOR, "",
         "--policy fast --epoch R --set reference=anchor,anchor=32,margin=7,shift=9"},
        {DP_GUARD_BOTH, "a=1",
         "--policy fast --epoch R --smooth-k --set a=1,reference=anchor,anchor=32,margin=7,"
         "shift=9"},
        {DP_GUARD_EXACT, "", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_str_eq(dp_guard_options_text("fast", cases[i].settings, cases[i].choice, 32, pair,
                                               text, sizeof text),
                         cases[i].options);
    }
}
END_TEST

START_TEST(rows_are_lost_once)
{
    enum { D = 4 };
    const uint16_t one = bits_of(1.0), nan = 0x7FC0, inf = 0xFF80, minus = 0x8000;
    const uint16_t reference[5 * D] = {one, one, one, one, one, one, one, one, one, one,
                                       one, one, 0,   0,   0,   0,   one, one, one, one};
    const uint16_t o[5 * D] = {one, nan, one, one, 0, 0, minus, 0,   one, one,
                               inf, one, 0,   0,   0, 0, 0,     one, one, one};
    const dp_guard_effect e = dp_guard_effect_of(o, reference, 5, D);
    ck_assert_uint_eq(e.nonfinite_rows, 2);
    ck_assert_uint_eq(e.zero_rows, 1); /* row 3 is zero in the reference, row 4 not all zero */
    ck_assert_double_eq_tol(e.rel_l2, sqrt(5.0 / 8.0), 1e-12);
}
END_TEST

/* ---- advice followed through the oracle ----------------------------------------------------- */

static double error_of(const uint16_t *o, const uint16_t *reference, size_t rows, size_t dim,
                       uint64_t *nonfinite)
{
    double difference = 0.0, total = 0.0;
    *nonfinite = 0;
    for (size_t r = 0; r < rows; r++) {
        double d2 = 0.0, r2 = 0.0;
        for (size_t d = r * dim; d < (r + 1) * dim; d++) {
            d2 += pow(value_of(o[d]) - value_of(reference[d]), 2.0);
            r2 += pow(value_of(reference[d]), 2.0);
        }
        *nonfinite += isfinite(d2) ? 0 : 1;
        difference += isfinite(d2) ? d2 : 0.0;
        total += isfinite(d2) ? r2 : 0.0;
    }
    return sqrt(difference / total);
}

/* All heads of the inputs under one choice, as a user launches it: smoothing by the transform of
 * the inputs, constants as texts of --set. */
static void launch_all(const dp_attend_inputs *inputs, const dp_attend_inputs *smooth,
                       dp_guard_choice choice, dp_guard_pair pair, uint16_t *o)
{
    const dp_attend_inputs *x = dp_guard_is_smooth(choice) ? smooth : inputs;
    dp_error error = {""};
    if (choice >= DP_GUARD_EXACT) {
        dp_route route;
        ck_assert(dp_route_find("stabilised-nv-mx", &route, &error));
        ck_assert(dp_route_run(&x->in, &route, NULL, NULL, 0, o, NULL, NULL, &error));
        return;
    }
    dp_forward_policy policy = fast();
    if (choice == DP_GUARD_ANCHOR || choice == DP_GUARD_BOTH) {
        char margin[32], shift[32];
        (void)snprintf(margin, sizeof margin, "margin=%d", pair.margin);
        (void)snprintf(shift, sizeof shift, "shift=%d", pair.shift);
        ck_assert(dp_forward_policy_set(&policy, "reference=anchor", &error) &&
                  dp_forward_policy_set(&policy, "anchor=128", &error) &&
                  dp_forward_policy_set(&policy, margin, &error) &&
                  dp_forward_policy_set(&policy, shift, &error));
    }
    const dp_switches switches = dp_switches_default();
    const dp_direct_p launch =
        dp_direct_p_make(&policy, DP_EPOCH_R, &switches, dp_attention_scale(&x->in), NULL);
    float *lse = malloc(x->in.batch * x->in.q_heads * x->in.queries * sizeof *lse);
    const dp_attend_run_options options = {.inputs = x, .launch = &launch};
    ck_assert_msg(dp_attend_run(&options, o, lse, &error), "%s", error.text);
    free(lse);
}

typedef struct {
    dp_tally tally;
    int advised[DP_GUARD_CHOICES], heads, apart, together[DP_GUARD_CHOICES];
} followed;

static void check_head(const char *what, const dp_guard *guard, size_t h, const uint16_t *o,
                       const uint16_t *none, const uint16_t *reference, size_t rows, size_t dim,
                       followed *f)
{
    const dp_guard_head *head = &guard->heads[h];
    const dp_guard_effect *effect = &head->effect[head->advice];
    uint64_t nonfinite, plain_nonfinite;
    const double error = error_of(o, reference, rows, dim, &nonfinite);
    const double plain = error_of(none, reference, rows, dim, &plain_nonfinite);
    const uint64_t lost = dp_guard_effect_of(o, reference, rows, dim).zero_rows;
    const bool needed = !head->scores[0].safe || dp_guard_lost(&head->effect[0]) > 0;
    const bool reported = fabs(error - effect->rel_l2) <= 1e-9 * error + 1e-12 &&
                          nonfinite == effect->nonfinite_rows && lost == effect->zero_rows;
    const bool finite = nonfinite == 0 && lost == 0;
    const bool not_worse = needed || error <= plain;
    /* A head outside the bounds may fare well by luck; the advice may cost it a little. */
    const bool helps = error <= 1.1 * plain || dp_guard_lost(&head->effect[0]) > 0;
    if (!dp_tally_check(&f->tally, reported && finite && not_worse && helps)) {
        dp_tally_note(&f->tally,
                      "%s head %zu: %s, %d not finite, %d zero, error %g (reported %g), "
                      "unguarded %g",
                      what, h, dp_guard_choice_name(head->advice), (int)nonfinite, (int)lost, error,
                      effect->rel_l2, plain);
    }
}

static void check_launch(const char *what, const dp_guard *guard, const uint16_t *o,
                         const uint16_t *none, const uint16_t *reference, size_t rows, size_t dim,
                         followed *f)
{
    double worst = 0.0;
    uint64_t bad = 0;
    for (size_t h = 0; h < guard->count; h++) {
        const size_t at = h * rows * dim;
        uint64_t nonfinite, plain_nonfinite;
        const double error = error_of(o + at, reference + at, rows, dim, &nonfinite);
        const double plain = error_of(none + at, reference + at, rows, dim, &plain_nonfinite);
        const bool needed =
            !guard->heads[h].scores[0].safe || dp_guard_lost(&guard->heads[h].effect[0]) > 0;
        worst = !needed && error / plain > worst ? error / plain : worst;
        bad += nonfinite;
    }
    const dp_guard_uniform *u = &guard->uniform[guard->together];
    const bool reported = worst == 0.0 ? isnan(u->worst) : fabs(worst - u->worst) < 1e-9;
    if (!dp_tally_check(&f->tally, bad == 0 && reported && guard->apart == (worst > 1.0) &&
                                       u->lost_rows == 0)) {
        dp_tally_note(&f->tally, "%s: together %s: %d rows not finite, worst %g, reported %g", what,
                      dp_guard_choice_name(guard->together), (int)bad, worst, u->worst);
    }
}

/* Measure, then follow: each head's advice in a launch of all heads, and the common choice. */
static void follow(const char *what, const dp_attend_inputs *inputs, const dp_attend_inputs *smooth,
                   followed *f)
{
    const dp_attention *in = &inputs->in;
    const size_t size = in->queries * in->dim;
    const dp_forward_policy policy = fast();
    dp_error error = {""};
    dp_guard guard;
    ck_assert_msg(dp_guard_measure(inputs, &policy, 128, 0, &guard, &error), "%s: %s", what,
                  error.text);
    uint16_t *o = malloc(guard.count * size * sizeof *o);
    uint16_t *none = malloc(guard.count * size * sizeof *none);
    uint16_t *reference = malloc(guard.count * size * sizeof *reference);
    ck_assert(dp_reference_bf16(in, 0, reference, NULL, &error));
    launch_all(inputs, smooth, DP_GUARD_NONE, (dp_guard_pair){0}, none);
    dp_guard_pair held = {0};
    dp_guard_choice running = DP_GUARD_CHOICES;
    for (size_t h = 0; h < guard.count; h++) {
        const dp_guard_choice c = guard.heads[h].advice;
        const dp_guard_pair pair = guard.heads[h].scores[dp_guard_is_smooth(c) ? 1 : 0].pair;
        if (c != running || pair.margin != held.margin || pair.shift != held.shift) {
            launch_all(inputs, smooth, c, pair, o);
            running = c;
            held = pair;
        }
        check_head(what, &guard, h, o + h * size, none + h * size, reference + h * size,
                   in->queries, in->dim, f);
        f->advised[c]++;
        f->heads++;
    }
    launch_all(inputs, smooth, guard.together,
               guard.pair[dp_guard_is_smooth(guard.together) ? 1 : 0], o);
    check_launch(what, &guard, o, none, reference, in->queries, in->dim, f);
    f->together[guard.together]++;
    f->apart += guard.apart;
    dp_guard_free(&guard);
    free(o);
    free(none);
    free(reference);
}

static void follow_file(const char *file, double factor, followed *f)
{
    char path[512], name[64];
    const dp_attend_transform plain = {.q_factor = factor};
    const dp_attend_transform smoothing = {.q_factor = factor, .smooth_k = true};
    dp_tensors tensors;
    dp_error error = {""};
    dp_attend_inputs inputs, smooth;
    (void)snprintf(name, sizeof name, "data/real/%s.h5", file);
    ck_assert_msg(dp_tensors_load(dp_source_path(path, sizeof path, name), &tensors, &error), "%s",
                  error.text);
    ck_assert(dp_attend_from_tensors(&tensors, name, &plain, &inputs, &error));
    ck_assert(dp_attend_from_tensors(&tensors, name, &smoothing, &smooth, &error));
    dp_tensors_free(&tensors);
    (void)snprintf(name, sizeof name, "%s x%g", file, factor);
    follow(name, &inputs, &smooth, f);
    dp_attend_inputs_free(&inputs);
    dp_attend_inputs_free(&smooth);
}

static void print_followed(const followed *f)
{
    printf("%d heads:", f->heads);
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        printf(" %s %d (launches %d)", dp_guard_choice_name((dp_guard_choice)c), f->advised[c],
               f->together[c]);
    }
    printf("; apart %d\n", f->apart);
}

START_TEST(advice_holds_on_real_tensors)
{
    followed f = {0};
    follow_file("minilm_layer0", 1.0, &f);
    follow_file("minilm_layer0", 10.0, &f);
    follow_file("qwen15_layer00", 1.0, &f);
    print_followed(&f);
    ck_assert_int_gt(f.advised[DP_GUARD_NONE], 0);
    ck_assert_int_gt(f.advised[DP_GUARD_SMOOTH], 0);
    ck_assert_int_gt(f.advised[DP_GUARD_BOTH] + f.advised[DP_GUARD_ANCHOR], 0);
    dp_assert_tally(f.tally, 31);
}
END_TEST

START_TEST(advice_holds_on_all_real_tensors)
{
    static const char *const files[] = {"minilm_layer0", "qwen05_layer12", "qwen15_layer00",
                                        "whisper_layer0"};
    static const double factors[] = {1.0, 4.0, 10.0};
    followed f = {0};
    for (int i = 0; i < 12; i++) {
        follow_file(files[i / 3], factors[i % 3], &f);
    }
    print_followed(&f);
    ck_assert_int_eq(f.heads, 78);
    dp_assert_tally(f.tally, 90);
}
END_TEST

/* ---- tensors built to fail --------------------------------------------------------------------
 */

enum { MOST_KEYS = 384, HEADS = 6 };

typedef struct {
    const char *name;
    size_t queries, keys, dim, kv_heads;
    bool causal;
    void (*shape)(int head, size_t row, size_t d, double *q, double *k, double *v);
    double scale;
} adverse;

/* Each starts from N(0,1); head number h differs in strength. */
static void peaked(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)row, (void)d, (void)k, (void)v;
    *q *= exp2(head);
}
static void mean_key(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)row, (void)v;
    *k += d < 16 ? (head % 2 ? 3.0 : -3.0) * exp2(head) : 0.0;
    *q = d < 16 ? 4.0 : *q; /* every score moved by the same amount, up or down */
}
static void up_and_down(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)v;
    *k += d < 16 ? exp2(head) : 0.0;
    *q = d < 16 ? (row % 2 ? 4.0 : -4.0) : *q; /* rows far above and far below in one head */
}
static void sink(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)v;
    *q = d == 0 ? 8.0 * exp2(head) : *q;
    *k = d == 0 ? (row == 0 ? 8.0 : 0.0) : *k; /* key 0 takes nearly everything */
}
static void hidden_peak(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    *q = d == 0 ? 8.0 * exp2(5 - head) : *q;
    *k = d == 0 ? (row == 1 ? 8.0 : 0.0) : *k; /* a maximum that no anchor sees */
    *v *= exp2(4 * head);
}
static void second_quarter(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)v;
    *q = d == 0 ? 6.0 * exp2(head) : d < 16 ? 0.0 : *q; /* a block of its own: exact in NVFP4 */
    *k = d == 0 ? (row % 128 / 32 == 1 ? 1.0 : -4.0) : d < 16 ? 0.0 : *k; /* Q1 above Q0 */
}
static void large_values(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)row;
    *k += d < 16 ? 0.5 * head : 0.0;
    *q = d < 16 ? 4.0 : *q;
    *v *= exp2(4.0 * head);
}
static void small_values(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)row;
    *k -= d < 16 ? 0.75 * head : 0.0;
    *q = d < 16 ? 4.0 : *q;
    *v *= exp2(-5.0 * head);
}
static void flat(int head, size_t row, size_t d, double *q, double *k, double *v)
{
    (void)row, (void)v;
    *q = head < 3 ? 0.0 : 1.0 + 0.0 * *q; /* all scores 0, or keys all alike */
    *k = head < 3 ? *k : exp2(head) * (d % 2 ? 1.0 : 0.5);
}

static const adverse ADVERSE[] = {
    {"peaked", 256, 256, 64, 6, false, peaked, 0},
    {"peaked, causal, grouped", 256, 256, 128, 2, true, peaked, 0},
    {"mean key", 160, 160, 64, 6, false, mean_key, 0},
    {"mean key, causal, few queries", 48, 200, 64, 3, true, mean_key, 0},
    {"up and down", 256, 160, 64, 6, false, up_and_down, 0},
    {"up and down, scale 1", 128, 160, 64, 2, true, up_and_down, 1.0},
    {"sink", 256, 256, 64, 6, false, sink, 0},
    {"sink, causal", 200, 200, 32, 6, true, sink, 0},
    {"hidden peak", 130, 384, 64, 6, false, hidden_peak, 0},
    {"second quarter", 256, 256, 64, 6, false, second_quarter, 0},
    {"second quarter, causal", 256, 256, 64, 6, true, second_quarter, 0},
    {"large values", 128, 256, 64, 6, false, large_values, 0},
    {"small values", 128, 256, 64, 6, false, small_values, 0},
    {"flat", 128, 128, 64, 6, false, flat, 0},
    {"fewer keys than anchors", 140, 20, 64, 3, false, peaked, 0},
    {"one key", 3, 1, 64, 6, true, peaked, 0},
};
enum { ADVERSE_COUNT = sizeof ADVERSE / sizeof ADVERSE[0] };

static void draw(const adverse *a, dp_attend_inputs *inputs)
{
    dp_rng rng = {41};
    const size_t q = HEADS * a->queries * a->dim, kv = a->kv_heads * a->keys * a->dim;
    memset(inputs, 0, sizeof *inputs);
    inputs->q = malloc(q * sizeof(uint16_t));
    inputs->k = malloc(kv * sizeof(uint16_t));
    inputs->v = malloc(kv * sizeof(uint16_t));
    double unused = 0.0;
    for (size_t i = 0; i < q; i++) {
        double x = dp_rng_normal(&rng);
        a->shape((int)(i / (a->queries * a->dim)), i / a->dim % a->queries, i % a->dim, &x, &unused,
                 &unused);
        inputs->q[i] = bits_of(x);
    }
    for (size_t i = 0; i < kv; i++) {
        double k = dp_rng_normal(&rng), v = dp_rng_normal(&rng);
        const int head = (int)(i / (a->keys * a->dim) * HEADS / a->kv_heads);
        a->shape(head, i / a->dim % a->keys, i % a->dim, &unused, &k, &v);
        inputs->k[i] = bits_of(k);
        inputs->v[i] = bits_of(v);
    }
    inputs->in = (dp_attention){.batch = 1,
                                .q_heads = HEADS,
                                .kv_heads = a->kv_heads,
                                .queries = a->queries,
                                .keys = a->keys,
                                .dim = a->dim,
                                .q = inputs->q,
                                .k = inputs->k,
                                .v = inputs->v,
                                .softmax_scale = a->scale,
                                .causal = a->causal};
}

START_TEST(advice_holds_on_adverse_tensors)
{
    followed f = {0};
    for (int i = 0; i < ADVERSE_COUNT; i++) {
        dp_attend_inputs inputs, smooth;
        draw(&ADVERSE[i], &inputs);
        ck_assert(dp_guard_smoothed(&inputs, &smooth));
        follow(ADVERSE[i].name, &inputs, &smooth, &f);
        free(smooth.k);
        dp_attend_inputs_free(&inputs);
    }
    print_followed(&f);
    ck_assert(f.advised[DP_GUARD_NONE] > 0 && f.advised[DP_GUARD_SMOOTH] > 0);
    ck_assert_int_gt(f.advised[DP_GUARD_ANCHOR] + f.advised[DP_GUARD_BOTH], 0);
    ck_assert_int_gt(f.advised[DP_GUARD_EXACT] + f.advised[DP_GUARD_EXACT_SMOOTH], 0);
    dp_assert_tally(f.tally, 100);
}
END_TEST

/* ---- what is measured of the scores ---------------------------------------------------------- */

typedef struct {
    const dp_attention *in;
    double s, top, bottom, miss;
    int anchors;
    uint64_t blocks16, above16, blocks32, above32, rebased;
} expected;

static bool count_strip(void *context, const dp_strip *strip)
{
    expected *e = context;
    for (size_t r = 0; r < strip->rows; r++) {
        const float *raw = strip->raw + r * strip->keys;
        double top = -INFINITY, anchor = -INFINITY;
        bool spoiled = false;
        for (size_t j = 0; j < e->in->keys; j++) {
            top = fmax(top, (double)raw[j] * e->s);
        }
        for (int a = 0; a < e->anchors; a++) { /* evenly spaced, causal: the first */
            const size_t j =
                e->in->causal ? (size_t)a
                              : (size_t)nearbyint((double)(e->in->keys - 1) * a / (e->anchors - 1));
            anchor = fmax(anchor, (double)raw[j] * e->s);
        }
        for (size_t b = 0; b < e->in->keys; b += 16) {
            double z = -INFINITY;
            for (size_t j = b; j < b + 16; j++) {
                z = fmax(z, (double)raw[j] * e->s);
            }
            e->blocks16 += isfinite(z) ? 1 : 0;
            e->above16 += exp2(fmin(z, 200.0)) / 6.0 > 448.0;
        }
        for (size_t b = 0; b < e->in->keys; b += 32) {
            double z = -INFINITY;
            for (size_t j = b; j < b + 32; j++) {
                z = fmax(z, (double)raw[j] * e->s);
            }
            e->blocks32 += isfinite(z) ? 1 : 0;
            e->above32 += z >= 128.0 + log2(0.75); /* rounds to 2^128 or more */
            if (b % 128 == 0 && strip->row_first % 256 == 0) {
                double q1 = -INFINITY;
                for (size_t j = b + 32; j < b + 64; j++) {
                    q1 = fmax(q1, (double)raw[j] * e->s);
                }
                spoiled = spoiled || (q1 > top - 20.0 && z < 16 - 126 + log2(0.75));
            }
        }
        e->top = fmax(e->top, top);
        e->bottom = fmin(e->bottom, top);
        e->miss = fmax(e->miss, top - anchor);
        e->rebased += spoiled;
    }
    return true;
}

START_TEST(scores_are_counted)
{
    static const int which[] = {0, 1, 4, 9, 10};
    dp_tally tally = {0};
    uint64_t rebased = 0, above32 = 0, above16 = 0;
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        dp_attend_inputs inputs, view;
        draw(&ADVERSE[which[i]], &inputs);
        const dp_switches switches = dp_switches_default();
        const dp_forward_policy policy = fast();
        dp_error error = {""};
        for (size_t h = 0; h < HEADS; h++) {
            dp_guard_view(&inputs, h, &view);
            const dp_attention *in = &view.in;
            const dp_direct_p launch =
                dp_direct_p_make(&policy, DP_EPOCH_R, &switches, dp_attention_scale(in), NULL);
            dp_operands operands;
            ck_assert(dp_forward_quantize(in, &launch, 1, &operands, &error));
            expected e = {.in = in,
                          .s = (double)launch.multiplier,
                          .top = -INFINITY,
                          .bottom = INFINITY,
                          .anchors = in->keys < 128 ? 0 : 128};
            const dp_forward_job job = {.in = in,
                                        .operands = &operands,
                                        .launch = &launch,
                                        .threads = 1,
                                        .want_raw = true,
                                        .sink = count_strip,
                                        .context = &e};
            ck_assert(dp_forward_run(&job, &error));
            dp_operands_free(&operands);
            dp_guard_scores s;
            uint16_t *o = malloc(in->queries * in->dim * sizeof *o);
            ck_assert(dp_guard_survey(&view, &launch, 128, 2, &s, o, &error));
            free(o);
            const bool equal = s.top == e.top && s.bottom == e.bottom && s.miss == e.miss &&
                               s.blocks16 == e.blocks16 && s.above_e4m3 == e.above16 &&
                               s.blocks32 == e.blocks32 && s.above_e8m0 == e.above32 &&
                               s.rebased == e.rebased;
            if (!dp_tally_check(&tally, equal)) {
                dp_tally_note(&tally,
                              "%s head %zu: top %g/%g miss %g/%g >448 %d/%d >254 %d/%d rebased "
                              "%d/%d",
                              ADVERSE[which[i]].name, h, s.top, e.top, s.miss, e.miss,
                              (int)s.above_e4m3, (int)e.above16, (int)s.above_e8m0, (int)e.above32,
                              (int)s.rebased, (int)e.rebased);
            }
            rebased += e.rebased;
            above16 += e.above16;
            above32 += e.above32;
        }
        dp_attend_inputs_free(&inputs);
    }
    ck_assert(rebased > 100 && above16 > 1000 && above32 > 100);
    dp_assert_tally(tally, 30);
}
END_TEST

/* Constants of every head and of the launch, from bounds computed here. */
START_TEST(constants_come_from_the_tensors)
{
    static const int which_case[] = {1, 8, 11};
    dp_tally tally = {0};
    int margins = 0;
    for (size_t i = 0; i < sizeof which_case / sizeof which_case[0]; i++) {
        dp_attend_inputs inputs, view;
        const dp_forward_policy policy = fast();
        dp_error error = {""};
        dp_guard guard;
        draw(&ADVERSE[which_case[i]], &inputs);
        const dp_attention *in = &inputs.in;
        ck_assert(dp_guard_measure(&inputs, &policy, 128, 0, &guard, &error));
        uint16_t *o = malloc(HEADS * in->queries * in->dim * sizeof *o);
        ck_assert(dp_reference_bf16(in, 0, o, NULL, &error));
        dp_guard_frame all = {.keys = in->keys, .o_least = INFINITY};
        double below[2] = {0.0, 0.0}, miss[2] = {0.0, 0.0};
        for (size_t h = 0; h < HEADS; h++) {
            dp_guard_frame f = {.keys = in->keys, .o_least = INFINITY};
            f.unit = 1.0 / sqrt((double)in->dim); /* M / sqrt(D) octaves */
            dp_guard_view(&inputs, h, &view);
            for (size_t j = 0; j < in->keys * in->dim; j++) {
                f.v_largest = fmax(f.v_largest, fabs(value_of(view.in.v[j])));
            }
            for (size_t r = 0; r < in->queries; r++) {
                double largest = 0.0;
                for (size_t d = 0; d < in->dim; d++) {
                    largest = fmax(largest, fabs(value_of(o[(h * in->queries + r) * in->dim + d])));
                }
                f.o_least = fmin(f.o_least, largest);
            }
            all.unit = f.unit;
            all.v_largest = fmax(all.v_largest, f.v_largest);
            all.o_least = fmin(all.o_least, f.o_least);
            for (int which = 0; which < 2; which++) {
                const dp_guard_scores *s = &guard.heads[h].scores[which];
                const double b = fmin(0.0, s->rebase_below + 3.0);
                dp_guard_pair pair = dp_guard_choose(&f, b, s->miss, 16);
                pair = pair.slack < 0.0 && b < 0.0 ? dp_guard_least(&f, s->miss, 16) : pair;
                below[which] = fmin(below[which], s->pair.slack >= 0.0 ? b : 0.0);
                miss[which] = fmax(miss[which], s->pair.slack >= 0.0 ? s->miss : 0.0);
                margins += pair.margin > 0;
                if (!dp_tally_check(&tally, abs(pair.margin - s->pair.margin) <= 1 &&
                                                pair.shift == s->pair.shift &&
                                                fabs(pair.slack - s->pair.slack) < 0.5)) {
                    dp_tally_note(&tally, "%s head %zu: M %d L %d, expected %d %d",
                                  ADVERSE[which_case[i]].name, h, s->pair.margin, s->pair.shift,
                                  pair.margin, pair.shift);
                }
            }
        }
        for (int which = 0; which < 2; which++) {
            dp_guard_pair pair = dp_guard_choose(&all, below[which], miss[which], 16);
            pair = pair.slack < 0.0 && below[which] < 0.0 ? dp_guard_least(&all, miss[which], 16)
                                                          : pair;
            if (!dp_tally_check(&tally, abs(pair.margin - guard.pair[which].margin) <= 1 &&
                                            pair.shift == guard.pair[which].shift)) {
                dp_tally_note(&tally, "%s launch: M %d L %d, expected %d %d",
                              ADVERSE[which_case[i]].name, guard.pair[which].margin,
                              guard.pair[which].shift, pair.margin, pair.shift);
            }
        }
        dp_guard_free(&guard);
        dp_attend_inputs_free(&inputs);
        free(o);
    }
    ck_assert_int_gt(margins, 5);
    dp_assert_tally(tally, 42);
}
END_TEST

/* Where the rows of a rebased quarter are counted as spoiled, the oracle does lose them. */
START_TEST(rebased_quarters_lose_weight)
{
    dp_attend_inputs inputs;
    dp_guard on, off;
    dp_error error = {""};
    int spoiled = 0;
    draw(&ADVERSE[9], &inputs);
    dp_forward_policy policy = fast();
    ck_assert(dp_guard_measure(&inputs, &policy, 128, 0, &on, &error));
    policy.rebase_q1 = false;
    ck_assert(dp_guard_measure(&inputs, &policy, 128, 0, &off, &error));
    for (size_t h = 0; h < on.count; h++) {
        const double with = on.heads[h].effect[DP_GUARD_NONE].rel_l2;
        const double without = off.heads[h].effect[DP_GUARD_NONE].rel_l2;
        ck_assert_uint_eq(off.heads[h].scores[0].rebased, 0);
        if (on.heads[h].scores[0].rebased > 0 && off.heads[h].scores[0].safe) {
            printf("head %zu: %g with rebased quarters, %g without\n", h, with, without);
            spoiled++;
            ck_assert(!on.heads[h].scores[0].safe);
            ck_assert_double_gt(with, 1.1 * without);
        }
    }
    ck_assert_int_gt(spoiled, 0);
    dp_guard_free(&on);
    dp_guard_free(&off);
    policy.reference = DP_REFERENCE_ANCHOR;
    ck_assert(!dp_guard_measure(&inputs, &policy, 128, 0, &on, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "row reference"));
    dp_attend_inputs_free(&inputs);
}
END_TEST

/* Every score of a row is moved by the same number of octaves: near the edges that dp_guard_range
 * names the head loses nothing, well below it is lost. */
START_TEST(range_is_where_rows_are_lost)
{
    enum { S = 160, D = 64 };
    static uint16_t q[S * D], k[S * D], v[S * D];
    const dp_forward_policy policy = fast();
    static const struct {
        double octaves;
        bool safe, lost;
    } cases[] = {{0, true, false},    {-90, true, false},  {110, true, false},
                 {-125, false, true}, {-160, false, true}, {150, false, false}};
    double centre = 0.0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_rng rng = {5};
        for (size_t j = 0; j < S * D; j++) {
            const bool first = j % D < 16;
            const double noise = 0.3 * dp_rng_normal(&rng);
            q[j] = bits_of(first ? 4.0 : noise);
            k[j] = bits_of(first ? cases[i].octaves * log(2.0) / 8.0 : noise);
            v[j] = bits_of(dp_rng_normal(&rng));
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
        const dp_guard_effect *none = &h->effect[DP_GUARD_NONE];
        printf("%g: top %g bottom %g lost %d rel %g\n", cases[i].octaves, h->scores[0].top,
               h->scores[0].bottom, (int)dp_guard_lost(none), none->rel_l2);
        centre = i == 0 ? none->rel_l2 : centre;
        ck_assert_int_eq(h->scores[0].safe, cases[i].safe);
        ck_assert_int_eq(dp_guard_lost(none) > 0, cases[i].lost);
        if (cases[i].safe) {
            ck_assert_double_lt(none->rel_l2, 1.5 * centre);
        }
        ck_assert(h->scores[1].safe); /* the common shift is what smoothing takes away */
        ck_assert_int_eq(h->advice, cases[i].safe ? DP_GUARD_NONE : DP_GUARD_SMOOTH);
        ck_assert(dp_guard_lost(&h->effect[DP_GUARD_SMOOTH]) == 0 &&
                  dp_guard_lost(&h->effect[DP_GUARD_ANCHOR]) == 0);
        dp_guard_free(&guard);
    }
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("guard");
    TCase *tests = tcase_create("guard");
    TCase *through = tcase_create("guard followed"); /* CK_RUN_CASE tells them apart */
    if (argc > 1 && strcmp(argv[1], "all") == 0) {
        tcase_add_test(tests, advice_holds_on_all_real_tensors);
    } else {
        tcase_add_test(tests, margin_is_in_the_kernels_unit);
        tcase_add_test(tests, constants_hold_what_they_claim);
        tcase_add_test(tests, bounds_are_not_needlessly_narrow);
        tcase_add_test(tests, advice_of_a_head);
        tcase_add_test(tests, advice_of_a_launch);
        tcase_add_test(tests, advice_in_words);
        tcase_add_test(tests, rows_are_lost_once);
        tcase_add_test(tests, scores_are_counted);
        tcase_add_test(tests, constants_come_from_the_tensors);
        tcase_add_test(through, rebased_quarters_lose_weight);
        tcase_add_test(through, range_is_where_rows_are_lost);
        tcase_add_test(through, advice_holds_on_adverse_tensors);
        tcase_add_test(through, advice_holds_on_real_tensors);
    }
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, through);
    return dp_run_suite(suite);
}
