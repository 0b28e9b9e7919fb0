/* SPDX-License-Identifier: MIT
 *
 * One run of the unguarded operator over a head: where its row maxima lie, what an anchor would
 * leave of them, how many block scales a format could not store, and the output.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/guard.h"

/* A Q1 this many octaves below its row's maximum carries no weight: 2^-20 of it, times all keys. */
#define WEIGHT 20.0
/* Where the byte and the scale end: the block exponent floor(z + log2(4/3)) is above 127; the scale
 * 2^z / 6 is above 448. */
#define E8M0_TOP 128.0
#define E4M3_TOP 11.392317422778762

typedef struct {
    double top, anchor, rebase;
    double rebase_anchored; /* the same in the anchors' key order */
    uint32_t blocks32, above_e8m0, blocks16, above_e4m3;
} row_survey;

typedef struct {
    const dp_attention *in;
    double multiplier;
    int anchor;
    const int32_t *order; /* key at a physical position of an anchored run */
    bool rebases;
    row_survey *rows;
    uint16_t *o;
} survey;

/* Largest score of 32 positions; order NULL: natural. */
static float largest_of(const survey *s, const float *raw, size_t first, const int32_t *order)
{
    float largest = -INFINITY;
    for (size_t p = first; p < first + DP_BLOCK && p < s->in->keys; p++) {
        const float x = raw[order != NULL ? (size_t)order[p] : p];
        largest = x > largest ? x : largest;
    }
    return largest;
}

/* Least exponent of a Q0 whose Q1 matters in this row. */
static double rebase_of(const survey *s, const float *raw, double top, const int32_t *order)
{
    double least = INFINITY;
    for (size_t first = 0; first < s->in->keys; first += DP_TILE) {
        const double q1 = (double)largest_of(s, raw, first + DP_BLOCK, order) * s->multiplier;
        if (q1 > top - WEIGHT) {
            const double q0 = (double)largest_of(s, raw, first, order) * s->multiplier;
            least = q0 < least ? q0 : least;
        }
    }
    return least;
}

static void count_blocks(const survey *s, const float *raw, row_survey *row)
{
    for (size_t first = 0; first < s->in->keys; first += 16) {
        float largest = -INFINITY;
        for (size_t j = first; j < first + 16 && j < s->in->keys; j++) {
            largest = raw[j] > largest ? raw[j] : largest;
        }
        const double z = (double)largest * s->multiplier;
        row->blocks16 += largest > -INFINITY;
        row->above_e4m3 += z > E4M3_TOP;
    }
    for (size_t first = 0; first < s->in->keys; first += DP_BLOCK) {
        const float largest = largest_of(s, raw, first, NULL);
        row->blocks32 += largest > -INFINITY;
        row->above_e8m0 += (double)largest * s->multiplier + 0.41503749927884376 >= E8M0_TOP;
    }
}

static bool take_strip(void *context, const dp_strip *strip)
{
    const survey *s = context;
    const bool stage0 = strip->row_first / DP_TILE % 2 == 0;
    for (size_t r = 0; r < strip->rows; r++) {
        const float *raw = strip->raw + r * strip->keys;
        float top = -INFINITY;
        float anchor = -INFINITY;
        for (size_t j = 0; j < s->in->keys; j++) {
            top = raw[j] > top ? raw[j] : top;
        }
        for (size_t j = 0; j < (size_t)s->anchor && j < s->in->keys; j++) {
            const float x = raw[s->order[j]];
            anchor = x > anchor ? x : anchor;
        }
        row_survey *row = &s->rows[strip->row_first + r];
        *row = (row_survey){.top = (double)top * s->multiplier,
                            .anchor = (double)anchor * s->multiplier,
                            .rebase = INFINITY,
                            .rebase_anchored = INFINITY};
        if (s->rebases && stage0) {
            row->rebase = rebase_of(s, raw, row->top, NULL);
            row->rebase_anchored = rebase_of(s, raw, row->top, s->order);
        }
        count_blocks(s, raw, row);
        memcpy(s->o + (strip->row_first + r) * s->in->dim, strip->o + r * strip->dim,
               s->in->dim * sizeof *s->o);
    }
    return true;
}

static void summarise(const survey *s, int shift, dp_guard_scores *scores)
{
    *scores = (dp_guard_scores){
        .top = -INFINITY, .bottom = INFINITY, .rebase = INFINITY, .rebase_below = INFINITY};
    for (size_t i = 0; i < s->in->queries; i++) {
        const row_survey *row = &s->rows[i];
        if (!(row->top > -INFINITY)) {
            continue; /* the row sees no key */
        }
        scores->top = fmax(scores->top, row->top);
        scores->bottom = fmin(scores->bottom, row->top);
        scores->miss = fmax(scores->miss, row->top - row->anchor);
        scores->rebase = fmin(scores->rebase, row->rebase);
        scores->rebase_below = fmin(scores->rebase_below, row->rebase_anchored - row->anchor);
        /* Raw byte of Q0 at or below the shift: its working byte was raised [D7]. */
        scores->rebased += floor(row->rebase + 0.41503749927884376) + 127.0 <= (double)shift;
        scores->blocks32 += row->blocks32;
        scores->above_e8m0 += row->above_e8m0;
        scores->blocks16 += row->blocks16;
        scores->above_e4m3 += row->above_e4m3;
    }
}

bool dp_guard_survey(const dp_attend_inputs *view, const dp_direct_p *launch, int anchor,
                     int threads, dp_guard_scores *scores, uint16_t *o, dp_error *error)
{
    const dp_attention *in = &view->in;
    dp_operands operands;
    if (!dp_forward_quantize(in, launch, threads, &operands, error)) {
        return false;
    }
    int32_t *order = malloc(in->keys * sizeof *order);
    survey s = {.in = in,
                .multiplier = (double)launch->multiplier,
                .anchor = anchor,
                .order = order,
                .rebases = launch->policy.rebase_q1,
                .rows = malloc(in->queries * sizeof *s.rows),
                .o = o};
    bool good = (order != NULL && s.rows != NULL) || dp_fail(error, "guard: not enough memory");
    if (good) {
        const bool natural = in->causal || launch->switches.natural_order;
        dp_anchor_order(in->keys, natural ? 0 : (size_t)anchor, order);
        const dp_forward_job job = {.in = in,
                                    .operands = &operands,
                                    .launch = launch,
                                    .threads = threads,
                                    .want_raw = true,
                                    .sink = take_strip,
                                    .context = &s};
        good = dp_forward_run(&job, error);
    }
    if (good) {
        summarise(&s, launch->policy.shift, scores);
        scores->largest_logit = dp_attend_largest_logit(in, 0, 0);
    }
    dp_operands_free(&operands);
    free(order);
    free(s.rows);
    return good;
}
