/* SPDX-License-Identifier: MIT
 *
 * What to do, from what was measured.
 */
#include <math.h>

#include "analysis/page.h"

static bool keeps_all(const dp_page_run *run, int which)
{
    return run->present && dp_guard_lost(&run->whole[which]) == 0 &&
           isfinite(run->whole[which].rel_l2);
}

/* Least error among operators [first, last) of a class that keep all rows; -1: none does. */
static int best_of(const dp_page *page, int first, int last, dp_page_class class, int which)
{
    int best = -1;
    for (int i = first; i < last; i++) {
        const dp_page_run *run = &page->run[i];
        if (dp_page_operators[i].class == class && keeps_all(run, which) &&
            (best < 0 || run->whole[which].rel_l2 < page->run[best].whole[which].rel_l2)) {
            best = i;
        }
    }
    return best;
}

static double error_of(const dp_page *page, int i, int which)
{
    return i < 0 ? NAN : page->run[i].whole[which].rel_l2;
}

/* Kept in fact and, without a reference, inside the bounds as well. */
static bool trusted(const dp_page *page, int i, int which)
{
    bool good = keeps_all(&page->run[i], which);
    for (size_t h = 0; good && i <= DP_PAGE_WAN && h < page->guard.count; h++) {
        good = page->guard.heads[h].scores[which].safe;
    }
    return good;
}

/* The simplest of operators [first, last) of FP4 whose error is close to the least: K as given
 * before smoothed, then in their order. */
static void choose(const dp_page *page, int first, int last, dp_page_verdict *v)
{
    double least = INFINITY;
    for (int i = first; i < last; i++) {
        for (int which = 0; which < 2; which++) {
            const bool fits = dp_page_operators[i].class == DP_PAGE_FP4 && trusted(page, i, which);
            least = fits ? fmin(least, error_of(page, i, which)) : least;
        }
    }
    for (int k = 0; v->policy < 0 && k < 2 * (last - first); k++) {
        const int which = k / (last - first);
        const int i = first + k % (last - first);
        if (dp_page_operators[i].class == DP_PAGE_FP4 && trusted(page, i, which) &&
            error_of(page, i, which) <= DP_PAGE_SIMPLE * least) {
            v->policy = i;
            v->smooth = which == 1;
        }
    }
}

dp_page_verdict dp_page_judge(const dp_page *page)
{
    dp_page_verdict v = {.policy = -1};
    choose(page, 0, DP_PAGE_DIRECT, &v);
    v.direct = v.policy >= 0;
    if (!v.direct) {
        choose(page, 0, DP_PAGE_OPERATORS, &v);
    }
    const int which = v.smooth ? 1 : 0;
    v.error = error_of(page, v.policy, which);
    for (size_t h = 0; v.policy >= 0 && h < page->heads; h++) {
        const double error = page->run[v.policy].head[which][h].rel_l2;
        if (error > v.worst) {
            v.worst = error;
            v.worst_head = h;
        }
    }
    v.fp4 = best_of(page, 0, DP_PAGE_OPERATORS, DP_PAGE_FP4, which);
    v.fp8 = best_of(page, 0, DP_PAGE_OPERATORS, DP_PAGE_FP8_PV, which);
    v.all_fp8 = best_of(page, 0, DP_PAGE_OPERATORS, DP_PAGE_FP8, which);
    v.fp4_error = error_of(page, v.fp4, which);
    v.fp8_error = error_of(page, v.fp8, which);
    v.all_fp8_error = error_of(page, v.all_fp8, which);
    v.qk_error = error_of(page, best_of(page, 0, DP_PAGE_OPERATORS, DP_PAGE_BF16_PV, which), which);
    v.fp4_suffices = v.fp4 >= 0 && !(v.fp4_error > DP_PAGE_FP8_FACTOR * v.fp8_error);
    return v;
}
