/* SPDX-License-Identifier: MIT */
#include "analysis/guard.h"

#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"

static double widen(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return (double)dp_bf16_to_f32(x);
}

void dp_guard_view(const dp_attend_inputs *inputs, size_t head, dp_attend_inputs *view)
{
    const dp_attention *in = &inputs->in;
    const size_t q_head = head % in->q_heads;
    const size_t kv = head / in->q_heads * in->kv_heads + dp_attention_kv_head(in, q_head);
    *view = *inputs;
    view->in.batch = view->in.q_heads = view->in.kv_heads = 1;
    view->in.kv_of_q = view->kv_of_q = NULL;
    view->in.softmax_scale = dp_attention_scale(in);
    view->q = inputs->q + head * in->queries * in->dim;
    view->k = inputs->k + kv * in->keys * in->dim;
    view->v = inputs->v + kv * in->keys * in->dim;
    view->in.q = view->q;
    view->in.k = view->k;
    view->in.v = view->v;
}

bool dp_guard_smoothed(const dp_attend_inputs *inputs, dp_attend_inputs *copy)
{
    const dp_attention *in = &inputs->in;
    const size_t heads = in->batch * in->kv_heads;
    *copy = *inputs;
    copy->k = malloc(heads * in->keys * in->dim * sizeof *copy->k);
    copy->in.k = copy->k;
    for (size_t i = 0; copy->k != NULL && i < heads * in->dim; i++) {
        const size_t from = i / in->dim * in->keys * in->dim + i % in->dim;
        double sum = 0.0;
        for (size_t j = 0; j < in->keys; j++) {
            sum += widen(inputs->k[from + j * in->dim]);
        }
        for (size_t j = 0; j < in->keys; j++) {
            const double k = widen(inputs->k[from + j * in->dim]) - sum / (double)in->keys;
            copy->k[from + j * in->dim] = dp_bf16_from_f32((float)k, DP_ENCODE_NONSAT).bits;
        }
    }
    copy->smooth_k = true;
    return copy->k != NULL;
}

dp_guard_effect dp_guard_effect_of(const uint16_t *o, const uint16_t *reference, size_t rows,
                                   size_t dim)
{
    const dp_attend_metrics m = dp_attend_compare(o, reference, rows, dim);
    dp_guard_effect effect = {
        .rel_l2 = m.rel_l2, .cosine = m.cosine, .nonfinite_rows = m.nonfinite_rows};
    for (size_t i = 0; i < rows * dim; i += dim) {
        bool zero = true;
        bool expected = false;
        for (size_t d = i; d < i + dim; d++) {
            zero = zero && (o[d] & 0x7FFF) == 0;
            expected = expected || (reference[d] & 0x7FFF) != 0;
        }
        effect.zero_rows += zero && expected;
    }
    return effect;
}

dp_forward_policy dp_guard_policy(const dp_forward_policy *base, int anchor, dp_guard_pair pair)
{
    dp_forward_policy policy = *base;
    policy.reference = DP_REFERENCE_ANCHOR;
    policy.anchor_keys = anchor;
    policy.margin = pair.margin;
    policy.shift = pair.shift;
    return policy;
}

bool dp_guard_run(const dp_attend_inputs *view, const dp_forward_policy *base,
                  dp_guard_choice choice, int anchor, dp_guard_pair pair, int threads, uint16_t *o,
                  dp_error *error)
{
    const dp_attention *in = &view->in;
    if (choice >= DP_GUARD_EXACT) {
        dp_route route;
        return dp_route_find(DP_GUARD_EXACT_ROUTE, &route, error) &&
               dp_route_run(in, &route, NULL, NULL, threads, o, NULL, NULL, error);
    }
    const dp_switches switches = dp_switches_default();
    const dp_forward_policy policy =
        dp_guard_is_anchored(choice) ? dp_guard_policy(base, anchor, pair) : *base;
    const dp_direct_p launch =
        dp_direct_p_make(&policy, DP_EPOCH_R, &switches, dp_attention_scale(in), NULL);
    float *lse = malloc(in->batch * in->q_heads * in->queries * sizeof *lse);
    const dp_attend_run_options options = {.inputs = view, .launch = &launch, .threads = threads};
    const bool good = (lse != NULL || dp_fail(error, "guard: not enough memory")) &&
                      dp_attend_run(&options, o, lse, error);
    free(lse);
    return good;
}

/* What dp_guard_measure holds while it works. */
typedef struct {
    const dp_attend_inputs *inputs[2]; /* as given, smoothed */
    const dp_forward_policy *policy;
    const uint16_t *reference;
    uint16_t *o; /* of one head */
    int threads;
    dp_guard *guard;
    dp_error *error;
} work;

static dp_guard_frame frame_of(const work *w, const dp_guard_head *head)
{
    const dp_switches switches = dp_switches_default();
    const dp_attention *in = &w->inputs[0]->in;
    const double s = (double)dp_score_multiplier(dp_attention_scale(in), 1.0f, 1.0f, &switches);
    return (dp_guard_frame){.keys = in->keys,
                            .v_largest = head->v_largest,
                            .o_least = head->o_least,
                            .unit = s * 0.6931471805599453};
}

static const uint16_t *reference_of(const work *w, size_t h)
{
    const dp_attention *in = &w->inputs[0]->in;
    return w->reference + h * in->queries * in->dim;
}

/* Largest |v|, and the least of the rows' largest |o|, rows of zeros aside. */
static void measure_values(const work *w, size_t h)
{
    dp_guard_head *head = &w->guard->heads[h];
    dp_attend_inputs view;
    dp_guard_view(w->inputs[0], h, &view);
    const dp_attention *in = &view.in;
    for (size_t i = 0; i < in->keys * in->dim; i++) {
        head->v_largest = fmax(head->v_largest, fabs(widen(in->v[i])));
    }
    double least = INFINITY;
    for (size_t r = 0; r < in->queries; r++) {
        double largest = 0.0;
        for (size_t d = 0; d < in->dim; d++) {
            largest = fmax(largest, fabs(widen(reference_of(w, h)[r * in->dim + d])));
        }
        least = largest > 0.0 ? fmin(least, largest) : least;
    }
    head->o_least = isfinite(least) ? least : 0.0;
}

static dp_guard_effect effect_now(const work *w, size_t h)
{
    const dp_attention *in = &w->inputs[0]->in;
    return dp_guard_effect_of(w->o, reference_of(w, h), in->queries, in->dim);
}

/* Share of rows that NVFP4 P without a row maximum loses, scales stored as computed. */
static bool run_shiftless(const work *w, const dp_attend_inputs *view, size_t h, int which)
{
    dp_route route;
    if (!dp_route_find("shiftless-nv-nv-raw", &route, w->error) ||
        !dp_route_run(&view->in, &route, NULL, NULL, w->threads, w->o, NULL, NULL, w->error)) {
        return false;
    }
    const dp_guard_effect effect = effect_now(w, h);
    w->guard->heads[h].scores[which].shiftless_lost =
        (double)dp_guard_lost(&effect) / (double)view->in.queries;
    return true;
}

/* Where each Q0 that a Q1 needs lies, as if it were a row maximum: those must be three octaves
 * higher [D7, D11]. At most 0: the rows themselves lie on their anchor or above. */
static double below_anchor(const dp_guard_scores *s)
{
    return fmin(0.0, s->rebase_below + 3.0);
}

/* Constants that hold rows and rebased quarters; where none do, the least margin that holds the
 * rows, since each octave more takes codes from rebased quarters. */
static dp_guard_pair pair_for(const dp_guard_frame *frame, double below, double miss, int shift)
{
    const dp_guard_pair both = dp_guard_choose(frame, below, miss, shift);
    return both.slack >= 0.0 || !(below < 0.0) ? both : dp_guard_least(frame, miss, shift);
}

/* Scores, the constants they need, and the unguarded path, as given and smoothed. */
static bool survey_head(const work *w, size_t h)
{
    dp_guard_head *head = &w->guard->heads[h];
    const dp_switches switches = dp_switches_default();
    const int shift = w->policy->shift;
    const dp_guard_frame frame = frame_of(w, head);
    const dp_direct_p launch = dp_direct_p_make(w->policy, DP_EPOCH_R, &switches,
                                                dp_attention_scale(&w->inputs[0]->in), NULL);
    for (int which = 0; which < 2; which++) {
        dp_guard_scores *s = &head->scores[which];
        dp_attend_inputs view;
        dp_guard_view(w->inputs[which], h, &view);
        if (!dp_guard_survey(&view, &launch, w->guard->anchor, w->threads, s, w->o, w->error)) {
            return false;
        }
        double low;
        double high;
        head->effect[which == 0 ? DP_GUARD_NONE : DP_GUARD_SMOOTH] = effect_now(w, h);
        dp_guard_range(&frame, shift, &low, &high);
        w->guard->low = fmax(w->guard->low, low);
        w->guard->high = fmin(w->guard->high, high);
        s->safe = s->bottom >= low && s->top <= high && s->rebased == 0;
        s->pair = pair_for(&frame, below_anchor(s), s->miss, shift);
        s->rebase_slack =
            dp_guard_slack(&frame, below_anchor(s), s->miss, s->pair.margin, s->pair.shift);
        if (!run_shiftless(w, &view, h, which)) {
            return false;
        }
    }
    return true;
}

/* Constants that serve every head of a launch that any constants serve; all heads when none. */
static dp_guard_pair launch_pair(const work *w, int which)
{
    const dp_guard *guard = w->guard;
    dp_guard_frame all = {0};
    double below = 0.0;
    double miss = 0.0;
    bool some = false;
    for (size_t h = 0; h < guard->count; h++) {
        some = some || guard->heads[h].scores[which].pair.slack >= 0.0;
    }
    for (size_t h = 0; h < guard->count; h++) {
        const dp_guard_head *head = &guard->heads[h];
        const dp_guard_scores *s = &head->scores[which];
        if (some && !(s->pair.slack >= 0.0)) {
            continue;
        }
        const dp_guard_frame frame = frame_of(w, head);
        below = fmin(below, below_anchor(s));
        miss = fmax(miss, s->miss);
        all.keys = frame.keys;
        all.unit = frame.unit;
        all.v_largest = fmax(all.v_largest, frame.v_largest);
        const bool least =
            frame.o_least > 0.0 && !(all.o_least <= frame.o_least && all.o_least > 0);
        all.o_least = least ? frame.o_least : all.o_least;
    }
    return pair_for(&all, below, miss, guard->shift);
}

/* The remaining choices of one head, with its own constants and with those of the launch. */
static bool try_head(const work *w, size_t h)
{
    dp_guard_head *head = &w->guard->heads[h];
    for (int c = DP_GUARD_ANCHOR; c < DP_GUARD_CHOICES; c++) {
        const dp_guard_choice choice = (dp_guard_choice)c;
        const int which = dp_guard_is_smooth(choice) ? 1 : 0;
        const dp_guard_pair own = head->scores[which].pair;
        const dp_guard_pair common = w->guard->pair[which];
        dp_attend_inputs view;
        dp_guard_view(w->inputs[which], h, &view);
        if (!dp_guard_run(&view, w->policy, choice, w->guard->anchor, own, w->threads, w->o,
                          w->error)) {
            return false;
        }
        head->effect[c] = head->launch[c] = effect_now(w, h);
        if (!dp_guard_is_anchored(choice) ||
            (own.margin == common.margin && own.shift == common.shift)) {
            continue;
        }
        if (!dp_guard_run(&view, w->policy, choice, w->guard->anchor, common, w->threads, w->o,
                          w->error)) {
            return false;
        }
        head->launch[c] = effect_now(w, h);
    }
    head->launch[DP_GUARD_NONE] = head->effect[DP_GUARD_NONE];
    head->launch[DP_GUARD_SMOOTH] = head->effect[DP_GUARD_SMOOTH];
    return true;
}

static bool measure_all(work *w)
{
    dp_guard *guard = w->guard;
    bool good = true;
    for (size_t h = 0; good && h < guard->count; h++) {
        guard->heads[h].batch = h / w->inputs[0]->in.q_heads;
        guard->heads[h].head = h % w->inputs[0]->in.q_heads;
        measure_values(w, h);
        good = survey_head(w, h);
    }
    guard->pair[0] = launch_pair(w, 0);
    guard->pair[1] = launch_pair(w, 1);
    for (size_t h = 0; good && h < guard->count; h++) {
        good = try_head(w, h);
    }
    return good;
}

bool dp_guard_measure(const dp_attend_inputs *inputs, const dp_forward_policy *policy, int anchor,
                      int threads, dp_guard *guard, dp_error *error)
{
    const dp_attention *in = &inputs->in;
    const size_t rows = in->queries * in->dim;
    dp_attend_inputs smooth = {0};
    *guard = (dp_guard){.count = in->batch * in->q_heads,
                        .anchor = anchor,
                        .shift = policy->shift,
                        .rebases = policy->rebase_q1,
                        .low = -INFINITY,
                        .high = INFINITY};
    if (policy->reference != DP_REFERENCE_NONE) {
        return dp_fail(error,
                       "guard: policy '%s' has a row reference already: use one without, such as "
                       "fast",
                       policy->name);
    }
    guard->heads = calloc(guard->count, sizeof *guard->heads);
    uint16_t *reference = malloc(guard->count * rows * sizeof *reference);
    uint16_t *o = malloc(rows * sizeof *o);
    bool good = guard->heads != NULL && reference != NULL && o != NULL &&
                dp_guard_smoothed(inputs, &smooth);
    good = good || dp_fail(error, "guard: not enough memory for %zu heads", guard->count);
    good = good && dp_reference_bf16(in, threads, reference, NULL, error);
    work w = {.inputs = {inputs, &smooth},
              .policy = policy,
              .reference = reference,
              .o = o,
              .threads = threads,
              .guard = guard,
              .error = error};
    good = good && measure_all(&w);
    if (good) {
        dp_guard_advise(guard);
    } else {
        dp_guard_free(guard);
    }
    free(smooth.k);
    free(reference);
    free(o);
    return good;
}

void dp_guard_free(dp_guard *guard)
{
    free(guard->heads);
    guard->heads = NULL;
    guard->count = 0;
}
