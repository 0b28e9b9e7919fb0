/* SPDX-License-Identifier: MIT
 *
 * From what was measured to advice, for each head and for a launch of all of them.
 */
#include <math.h>

#include "analysis/guard.h"

/* An exact maximum costs a pass over the row: it is advised only where the others lose rows or have
 * more than this times its error. */
#define EXACT_PRICE 1.25

const char *dp_guard_choice_name(dp_guard_choice choice)
{
    static const char *const names[DP_GUARD_CHOICES] = {
        "none", "smooth-k", "anchor", "smooth-k+anchor", "exact-max", "smooth-k+exact-max"};
    return names[choice < DP_GUARD_CHOICES ? choice : 0];
}

bool dp_guard_is_smooth(dp_guard_choice choice)
{
    return choice == DP_GUARD_SMOOTH || choice == DP_GUARD_BOTH || choice == DP_GUARD_EXACT_SMOOTH;
}

bool dp_guard_is_anchored(dp_guard_choice choice)
{
    return choice == DP_GUARD_ANCHOR || choice == DP_GUARD_BOTH;
}

/* Fewest lost rows, then the least error, among [first, last). */
static dp_guard_choice best_effect(const dp_guard_effect *effect, int first, int last)
{
    int best = first;
    for (int c = first + 1; c < last; c++) {
        const uint64_t lost = dp_guard_lost(&effect[c]);
        const uint64_t least = dp_guard_lost(&effect[best]);
        const bool better =
            effect[c].rel_l2 < effect[best].rel_l2 || !isfinite(effect[best].rel_l2);
        best = lost < least || (lost == least && better) ? c : best;
    }
    return (dp_guard_choice)best;
}

/* Is every row inside the range by the bounds, and kept in fact? */
static bool holds(const dp_guard_head *head, dp_guard_choice choice)
{
    const dp_guard_scores *s = &head->scores[dp_guard_is_smooth(choice) ? 1 : 0];
    const bool inside =
        choice >= DP_GUARD_EXACT ||
        (dp_guard_is_anchored(choice) ? s->pair.slack >= 0.0 && s->rebase_slack >= 0.0 : s->safe);
    return inside && dp_guard_lost(&head->effect[choice]) == 0;
}

/* The least error among the choices of Direct-P that hold; DP_GUARD_CHOICES when none does. */
static dp_guard_choice best_that_holds(const dp_guard_head *head)
{
    int best = DP_GUARD_CHOICES;
    for (int c = 0; c < DP_GUARD_EXACT; c++) {
        if (holds(head, (dp_guard_choice)c) &&
            (best == DP_GUARD_CHOICES || head->effect[c].rel_l2 < head->effect[best].rel_l2)) {
            best = c;
        }
    }
    return (dp_guard_choice)best;
}

/* Is the exact maximum worth its price? Where it keeps more rows, or as many with less error. */
static bool is_worth(uint64_t exact_lost, double exact_error, uint64_t lost, double error)
{
    return exact_lost < lost ||
           (exact_lost == lost && isfinite(exact_error) && !(error <= EXACT_PRICE * exact_error));
}

static dp_guard_choice advise_head(const dp_guard_head *head)
{
    for (int c = DP_GUARD_NONE; c <= DP_GUARD_SMOOTH; c++) {
        if (holds(head, (dp_guard_choice)c)) {
            return (dp_guard_choice)c;
        }
    }
    const dp_guard_choice exact = best_effect(head->effect, DP_GUARD_EXACT, DP_GUARD_CHOICES);
    dp_guard_choice cheap = best_that_holds(head);
    if (cheap == DP_GUARD_CHOICES) {
        cheap = best_effect(head->effect, DP_GUARD_NONE, DP_GUARD_EXACT);
    }
    return is_worth(dp_guard_lost(&head->effect[exact]), head->effect[exact].rel_l2,
                    dp_guard_lost(&head->effect[cheap]), head->effect[cheap].rel_l2)
               ? exact
               : cheap;
}

static bool needs_nothing(const dp_guard_head *head)
{
    return holds(head, DP_GUARD_NONE);
}

static dp_guard_uniform uniform_of(const dp_guard *guard, dp_guard_choice choice)
{
    dp_guard_uniform u = {.worst = NAN};
    double logs = 0.0;
    for (size_t h = 0; h < guard->count; h++) {
        const dp_guard_head *head = &guard->heads[h];
        const dp_guard_effect *effect = &head->launch[choice];
        u.lost_rows += dp_guard_lost(effect);
        logs += log(effect->rel_l2);
        if (needs_nothing(head)) {
            const double ratio = effect->rel_l2 / head->effect[DP_GUARD_NONE].rel_l2;
            if (!(u.worst >= ratio)) {
                u.worst = ratio;
                u.worst_head = h;
            }
        }
    }
    u.error = exp(logs / (double)guard->count);
    return u;
}

/* Does every head of the launch stay inside the range under this choice? */
static bool holds_all(const dp_guard *guard, dp_guard_choice choice)
{
    const int which = dp_guard_is_smooth(choice) ? 1 : 0;
    for (size_t h = 0; h < guard->count; h++) {
        if (choice < DP_GUARD_ANCHOR && !guard->heads[h].scores[which].safe) {
            return false;
        }
    }
    return !dp_guard_is_anchored(choice) || guard->pair[which].slack >= 0.0;
}

static dp_guard_choice best_together(const dp_guard *guard)
{
    /* Nothing, then smoothing alone, when every head is inside the range by that. */
    for (int c = DP_GUARD_NONE; c <= DP_GUARD_SMOOTH; c++) {
        if (holds_all(guard, (dp_guard_choice)c) && guard->uniform[c].lost_rows == 0) {
            return (dp_guard_choice)c;
        }
    }
    int best[2] = {DP_GUARD_NONE, DP_GUARD_EXACT};
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        const int kind = c >= DP_GUARD_EXACT ? 1 : 0;
        const dp_guard_uniform *u = &guard->uniform[c];
        const dp_guard_uniform *b = &guard->uniform[best[kind]];
        const bool better = u->error < b->error || !isfinite(b->error);
        best[kind] = u->lost_rows < b->lost_rows || (u->lost_rows == b->lost_rows && better)
                         ? c
                         : best[kind];
    }
    const dp_guard_uniform *cheap = &guard->uniform[best[0]];
    const dp_guard_uniform *exact = &guard->uniform[best[1]];
    return (dp_guard_choice)
        best[is_worth(exact->lost_rows, exact->error, cheap->lost_rows, cheap->error) ? 1 : 0];
}

void dp_guard_advise(dp_guard *guard)
{
    for (size_t h = 0; h < guard->count; h++) {
        guard->heads[h].advice = advise_head(&guard->heads[h]);
    }
    for (int c = 0; c < DP_GUARD_CHOICES; c++) {
        guard->uniform[c] = uniform_of(guard, (dp_guard_choice)c);
    }
    guard->together = best_together(guard);
    guard->apart = guard->uniform[guard->together].worst > 1.0;
}
