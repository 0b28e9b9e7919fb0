/* SPDX-License-Identifier: MIT
 *
 * Does a head need a guard? Direct-P without a row reference holds row maxima inside a fixed range
 * of octaves; a guard moves each row by an anchor. What each head needs, with which constants, and
 * what each choice does to its output. GUARD.md derives the bounds.
 */
#ifndef DP_ANALYSIS_GUARD_H
#define DP_ANALYSIS_GUARD_H

#include "analysis/attend.h"

typedef enum {
    DP_GUARD_NONE,         /* base policy, no reference                           */
    DP_GUARD_SMOOTH,       /* the same, K minus its mean                          */
    DP_GUARD_ANCHOR,       /* base policy with a margin and a shift               */
    DP_GUARD_BOTH,         /* smoothing and anchor                                */
    DP_GUARD_EXACT,        /* no Direct-P: online row maximum, the same formats    */
    DP_GUARD_EXACT_SMOOTH, /* the same, K minus its mean                          */
    DP_GUARD_CHOICES
} dp_guard_choice;

/* "none", "smooth-k", "anchor", "smooth-k+anchor", "exact-max", "smooth-k+exact-max". */
const char *dp_guard_choice_name(dp_guard_choice choice);
/* Does the choice smooth K; does it take constants? */
bool dp_guard_is_smooth(dp_guard_choice choice);
bool dp_guard_is_anchored(dp_guard_choice choice);
/* The route that stands for the exact maximum. */
#define DP_GUARD_EXACT_ROUTE "stabilised-nv-mx"

/* The largest margin that `--set margin=` takes. */
enum { DP_GUARD_MARGIN_MOST = 1000 };

/* ---- bounds and constants, without any tensor ---------------------------------------------- */

/* What the bounds depend on. */
typedef struct {
    size_t keys;      /* that a row may see                                              */
    double v_largest; /* largest |v|                                                     */
    double o_least;   /* least over the rows of their largest |o|; 0: nothing is asked   */
    double unit;      /* octaves of one unit of the margin: ln 2 times the multiplier    */
} dp_guard_frame;

/* Exponents (log2 of exp(logit), octaves) of a row maximum that shift L stores so that neither the
 * byte clamps, nor a sum overflows, nor what it divides is flushed. */
void dp_guard_range(const dp_guard_frame *frame, int shift, double *low, double *high);

typedef struct {
    int margin, shift;
    double octaves; /* of the margin                                                          */
    double slack;   /* octaves left before a row leaves the range; negative: some row does     */
} dp_guard_pair;

/* Margin and shift for rows whose maxima lie `below` (<= 0) to `miss` (>= 0) octaves from their
 * anchor. The shift is `shift` unless only a smaller one holds them. */
dp_guard_pair dp_guard_choose(const dp_guard_frame *frame, double below, double miss, int shift);
/* The least margin that keeps the top inside, under this shift. */
dp_guard_pair dp_guard_least(const dp_guard_frame *frame, double miss, int shift);
/* Octaves left under constants that were chosen for other rows. */
double dp_guard_slack(const dp_guard_frame *frame, double below, double miss, int margin,
                      int shift);

/* ---- what was measured ----------------------------------------------------------------------- */

/* Scores of one head. Exponents are in octaves of the scaled score. */
typedef struct {
    double largest_logit; /* |q.k| times the softmax scale, natural units */
    double top, bottom; /* largest and least row maximum                                         */
    double miss;        /* most that a row maximum exceeds its anchor by                         */
    double rebase;      /* least exponent of a Q0 whose Q1 carries weight: Q1 of even query tiles is
                           built on Q0's byte (D11); +Inf when there is none      */
    double rebase_below; /* the same from the row's anchor */
    uint64_t rebased; /* rows whose Q1 loses its codes by that without a reference              */
    uint64_t blocks32, above_e8m0; /* blocks of P; those beyond byte 254, the largest of E8M0 */
    uint64_t blocks16, above_e4m3; /* the same for NVFP4 P without a maximum: scale above 448 */
    double shiftless_lost; /* share of rows lost by that NVFP4 path, scale as computed     */
    bool safe;             /* every row is inside the range of the unguarded path          */
    dp_guard_pair pair; /* what an anchor needs                                                   */
    double rebase_slack; /* octaves left to the Q0 that a Q1 needs under it; negative: codes lost */
} dp_guard_scores;

/* Output of one head under one choice, against BF16 attention of the inputs as given. */
typedef struct {
    double rel_l2, cosine;   /* over the finite rows */
    uint64_t nonfinite_rows; /* with a NaN or an infinity                */
    uint64_t zero_rows;      /* all zero where BF16 attention is not     */
} dp_guard_effect;

typedef struct {
    size_t batch, head;
    double v_largest, o_least;
    dp_guard_scores scores[2];                /* K as given, K minus its mean                   */
    dp_guard_effect effect[DP_GUARD_CHOICES]; /* anchored: with the head's own constants        */
    dp_guard_effect launch[DP_GUARD_CHOICES]; /* anchored: with the constants of the launch     */
    dp_guard_choice advice;
} dp_guard_head;

/* One choice for every head of a launch. */
typedef struct {
    uint64_t lost_rows;
    double error; /* geometric mean of the heads' relative L2 */
    double
        worst; /* largest error over the unguarded one, among heads that need nothing; NaN: none */
    size_t worst_head;
} dp_guard_uniform;

typedef struct {
    size_t count;
    dp_guard_head *heads;
    int anchor, shift;     /* keys of the anchor; shift of the base policy    */
    bool rebases;          /* the base policy rebases Q1                      */
    double low, high;      /* of the unguarded path, the narrowest of the heads'  */
    dp_guard_pair pair[2]; /* of a launch of all heads: as given, smoothed     */
    dp_guard_uniform uniform[DP_GUARD_CHOICES];
    dp_guard_choice together; /* the best single choice for a launch of all heads            */
    bool apart; /* that choice would make a head worse that needs nothing: launch them apart */
} dp_guard;

static inline uint64_t dp_guard_lost(const dp_guard_effect *effect)
{
    return effect->nonfinite_rows + effect->zero_rows;
}

/* inputs: not smoothed. policy: base, e.g. fast, without a reference. anchor: 1..128 keys.
 * Everything is run with the oracle, epoch R. */
bool dp_guard_measure(const dp_attend_inputs *inputs, const dp_forward_policy *policy, int anchor,
                      int threads, dp_guard *guard, dp_error *error);
void dp_guard_free(dp_guard *guard);

/* ---- parts of dp_guard_measure ----------------------------------------------------------------
 */

/* One query head of the inputs as inputs of their own. Borrows; do not free. */
void dp_guard_view(const dp_attend_inputs *inputs, size_t head, dp_attend_inputs *view);
/* K minus its mean, in a copy; free copy->k. False: memory. */
bool dp_guard_smoothed(const dp_attend_inputs *inputs, dp_attend_inputs *copy);
/* The scores of a view, and its unguarded output: o [queries][dim] bf16 bits. */
bool dp_guard_survey(const dp_attend_inputs *view, const dp_direct_p *launch, int anchor,
                     int threads, dp_guard_scores *scores, uint16_t *o, dp_error *error);
/* The policy with an anchor under a pair of constants. */
dp_forward_policy dp_guard_policy(const dp_forward_policy *base, int anchor, dp_guard_pair pair);
/* Run one choice on a view (smoothed already where the choice says so). */
bool dp_guard_run(const dp_attend_inputs *view, const dp_forward_policy *base,
                  dp_guard_choice choice, int anchor, dp_guard_pair pair, int threads, uint16_t *o,
                  dp_error *error);
dp_guard_effect dp_guard_effect_of(const uint16_t *o, const uint16_t *reference, size_t rows,
                                   size_t dim);
/* Advice of each head and of the launch from everything measured. */
void dp_guard_advise(dp_guard *guard);

#endif
