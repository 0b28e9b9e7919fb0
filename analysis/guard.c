/* SPDX-License-Identifier: MIT */
#include "analysis/guard.h"

#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"

const char *dp_guard_choice_name(dp_guard_choice choice)
{
    static const char *const names[] = {"none", "smooth-k", "anchor", "smooth-k+anchor",
                                        "exact-maximum"};
    return names[choice <= DP_GUARD_BEYOND ? choice : 0];
}

void dp_guard_range(int shift, double *low, double *high)
{
    /* A stored byte of 4 or more keeps P2/6 above the smallest normal number [D12]; 240 leaves
     * 2^14 for codes, V and the number of keys before F32 ends. */
    *low = (double)(4 + shift - 127);
    *high = 240.0 - 127.0;
}

typedef struct {
    dp_guard *guard;
    const dp_attention *in;
    int which; /* 0 plain, 1 smoothed */
    double multiplier;
    double *top, *miss; /* [head][query], each row written by its own strip */
    int anchor;
} survey;

static bool survey_strip(void *context, const dp_strip *strip)
{
    const survey *s = context;
    const size_t head = strip->batch * s->in->q_heads + strip->head;
    for (size_t r = 0; r < strip->rows; r++) {
        const float *raw = strip->raw + r * strip->keys;
        float top = -INFINITY;
        float anchor = -INFINITY;
        for (size_t j = 0; j < strip->keys; j++) {
            top = raw[j] > top ? raw[j] : top;
            anchor = j < (size_t)s->anchor && raw[j] > anchor ? raw[j] : anchor;
        }
        const size_t at = head * s->in->queries + strip->row_first + r;
        s->top[at] = (double)top * s->multiplier;
        s->miss[at] = ((double)top - (double)anchor) * s->multiplier;
    }
    return true;
}

/* Row maxima and anchor misses of every head. */
static bool look(const dp_attention *in, const dp_direct_p *launch, int which, int threads,
                 dp_guard *guard, dp_error *error)
{
    const size_t rows = in->batch * in->q_heads * in->queries;
    dp_operands operands;
    survey s = {.guard = guard,
                .in = in,
                .which = which,
                .multiplier = (double)launch->multiplier,
                .anchor = launch->policy.anchor_keys};
    s.top = malloc(2 * rows * sizeof(double));
    if (s.top == NULL || !dp_forward_quantize(in, launch, threads, &operands, error)) {
        free(s.top);
        return false;
    }
    s.miss = s.top + rows;
    const dp_forward_job job = {.in = in,
                                .operands = &operands,
                                .launch = launch,
                                .threads = threads,
                                .want_raw = true,
                                .sink = survey_strip,
                                .context = &s};
    const bool good = dp_forward_run(&job, error);
    for (size_t i = 0; good && i < rows; i++) {
        dp_guard_head *head = &guard->heads[i / in->queries];
        head->top[which] = s.top[i] > head->top[which] ? s.top[i] : head->top[which];
        head->bottom[which] = s.top[i] < head->bottom[which] ? s.top[i] : head->bottom[which];
        head->miss[which] = s.miss[i] > head->miss[which] ? s.miss[i] : head->miss[which];
    }
    dp_operands_free(&operands);
    free(s.top);
    return good;
}

static bool is_lost(const uint16_t *o, const uint16_t *reference, size_t dim)
{
    bool finite = true;
    bool zero = true;
    bool expected = false;
    for (size_t d = 0; d < dim; d++) {
        const dp_bf16 bits = {o[d]};
        finite = finite && isfinite(dp_bf16_to_f32(bits));
        zero = zero && (o[d] & 0x7FFF) == 0;
        expected = expected || (reference[d] & 0x7FFF) != 0;
    }
    return !finite || (zero && expected);
}

/* Run one choice and file its errors by head. */
static bool try_choice(const dp_attend_inputs *inputs, const dp_direct_p *launch,
                       const uint16_t *reference, dp_guard_choice choice, int threads,
                       dp_guard *guard, dp_error *error)
{
    const dp_attention *in = &inputs->in;
    const size_t rows = in->batch * in->q_heads * in->queries;
    uint16_t *o = malloc(rows * in->dim * sizeof *o);
    float *lse = malloc(rows * sizeof *lse);
    const dp_attend_run_options options = {.inputs = inputs, .launch = launch, .threads = threads};
    const bool good = o != NULL && lse != NULL && dp_attend_run(&options, o, lse, error);
    for (size_t h = 0; good && h < guard->count; h++) {
        const size_t at = h * in->queries * in->dim;
        guard->heads[h].rel_l2[choice] =
            dp_attend_compare(o + at, reference + at, in->queries, in->dim).rel_l2;
        for (size_t r = 0; r < in->queries; r++) {
            const size_t row = at + r * in->dim;
            guard->heads[h].lost_rows[choice] += is_lost(o + row, reference + row, in->dim);
        }
    }
    free(o);
    free(lse);
    return good ||
           dp_fail(error, "guard: %s", error->text[0] != '\0' ? error->text : "not enough memory");
}

/* K minus its mean, in a copy. */
static bool smoothed_copy(const dp_attend_inputs *inputs, dp_attend_inputs *copy)
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
            const dp_bf16 bits = {inputs->k[from + j * in->dim]};
            sum += (double)dp_bf16_to_f32(bits);
        }
        for (size_t j = 0; j < in->keys; j++) {
            const dp_bf16 bits = {inputs->k[from + j * in->dim]};
            const double k = (double)dp_bf16_to_f32(bits) - sum / (double)in->keys;
            copy->k[from + j * in->dim] = dp_bf16_from_f32((float)k, DP_ENCODE_NONSAT).bits;
        }
    }
    copy->smooth_k = true;
    return copy->k != NULL;
}

/* Most octaves between an anchor and the row maximum that some margin and shift hold: the top of
 * the range, and the way down to the lowest byte at shift 0. */
static double reach(void)
{
    double low;
    double high;
    dp_guard_range(0, &low, &high);
    return high - low;
}

/* Needed margin: the largest anchor miss must stay below the top of the range; the rest of the
 * range is left to rows far below their anchor. margin in raw units covers margin_octaves. */
static void choose_constants(dp_guard *guard, const dp_direct_p *launch, int shift)
{
    double low;
    double high;
    double miss = 0.0;
    for (size_t h = 0; h < guard->count; h++) {
        const double here = guard->heads[h].miss[0];
        miss =
            here > miss && here <= reach() ? here : miss; /* what lies beyond it cannot be held */
    }
    dp_guard_range(shift, &low, &high);
    const double octaves = miss > high ? miss - high : 0.0;
    guard->margin = (int)ceil(octaves / (double)launch->multiplier);
    guard->margin_octaves = (double)guard->margin * (double)launch->multiplier;
    guard->shift = shift;
    while (guard->shift > 0 && (double)(4 + guard->shift - 127) > -guard->margin_octaves) {
        guard->shift--; /* a row on its anchor has exponent -margin */
    }
}

static void advise(dp_guard *guard, int shift)
{
    double low;
    double high;
    dp_guard_range(shift, &low, &high);
    for (size_t h = 0; h < guard->count; h++) {
        dp_guard_head *head = &guard->heads[h];
        for (int which = 0; which < 2; which++) {
            head->safe[which] = head->bottom[which] >= low && head->top[which] <= high;
        }
        head->advice = head->safe[0]   ? DP_GUARD_NONE
                       : head->safe[1] ? DP_GUARD_SMOOTH
                                       : DP_GUARD_ANCHOR;
    }
}

/* Where neither the plain nor the smoothed head is inside the range, what was measured decides:
 * fewest lost rows, then the least error. A head whose anchors miss by more than can be held needs
 * another reference. */
static void decide(dp_guard *guard)
{
    for (size_t h = 0; h < guard->count; h++) {
        dp_guard_head *head = &guard->heads[h];
        if (head->safe[0] || head->safe[1]) {
            continue;
        }
        dp_guard_choice best = DP_GUARD_NONE;
        for (int c = 1; c < DP_GUARD_CHOICES; c++) {
            const bool fewer = head->lost_rows[c] < head->lost_rows[best];
            const bool same = head->lost_rows[c] == head->lost_rows[best];
            if (fewer || (same && head->rel_l2[c] < head->rel_l2[best])) {
                best = (dp_guard_choice)c;
            }
        }
        const bool beyond = head->miss[0] > reach() && head->miss[1] > reach();
        head->advice = beyond || head->lost_rows[best] > 0 ? DP_GUARD_BEYOND : best;
    }
}

static bool measure_all(const dp_attend_inputs *inputs, const dp_attend_inputs *smooth,
                        const dp_forward_policy *policy, int threads, dp_guard *guard,
                        dp_error *error)
{
    const dp_attention *in = &inputs->in;
    const dp_switches switches = dp_switches_default();
    const double scale = dp_attention_scale(in);
    const size_t values = in->batch * in->q_heads * in->queries * in->dim;
    dp_forward_policy anchored = *policy;
    anchored.reference = DP_REFERENCE_ANCHOR;
    anchored.anchor_keys = guard->anchor;
    anchored.margin = 0;
    dp_direct_p launch = dp_direct_p_make(&anchored, DP_EPOCH_R, &switches, scale, NULL);
    uint16_t *reference = malloc(values * sizeof *reference);
    bool good = reference != NULL && dp_reference_bf16(in, threads, reference, NULL, error) &&
                look(in, &launch, 0, threads, guard, error) &&
                look(&smooth->in, &launch, 1, threads, guard, error);
    if (good) {
        advise(guard, policy->shift);
        choose_constants(guard, &launch, policy->shift);
        anchored.margin = guard->margin;
        anchored.shift = guard->shift;
        const dp_direct_p plain = dp_direct_p_make(policy, DP_EPOCH_R, &switches, scale, NULL);
        launch = dp_direct_p_make(&anchored, DP_EPOCH_R, &switches, scale, NULL);
        good = try_choice(inputs, &plain, reference, DP_GUARD_NONE, threads, guard, error) &&
               try_choice(smooth, &plain, reference, DP_GUARD_SMOOTH, threads, guard, error) &&
               try_choice(inputs, &launch, reference, DP_GUARD_ANCHOR, threads, guard, error) &&
               try_choice(smooth, &launch, reference, DP_GUARD_BOTH, threads, guard, error);
        decide(guard);
    }
    free(reference);
    return good;
}

bool dp_guard_measure(const dp_attend_inputs *inputs, const dp_forward_policy *policy, int anchor,
                      int threads, dp_guard *guard, dp_error *error)
{
    const dp_attention *in = &inputs->in;
    dp_attend_inputs smooth;
    memset(guard, 0, sizeof *guard);
    guard->anchor = anchor;
    guard->count = in->batch * in->q_heads;
    guard->heads = calloc(guard->count, sizeof *guard->heads);
    const bool copied = smoothed_copy(inputs, &smooth);
    bool good = (guard->heads != NULL && copied) || dp_fail(error, "guard: not enough memory");
    for (size_t h = 0; good && h < guard->count; h++) {
        dp_guard_head *head = &guard->heads[h];
        head->batch = h / in->q_heads;
        head->head = h % in->q_heads;
        for (int which = 0; which < 2; which++) {
            head->largest_logit[which] =
                dp_attend_largest_logit(which == 0 ? in : &smooth.in, head->batch, head->head);
            head->top[which] = -INFINITY;
            head->bottom[which] = INFINITY;
        }
    }
    good = good && measure_all(inputs, &smooth, policy, threads, guard, error);
    free(smooth.k);
    if (!good) {
        dp_guard_free(guard);
    }
    return good;
}

void dp_guard_free(dp_guard *guard)
{
    free(guard->heads);
    guard->heads = NULL;
    guard->count = 0;
}
