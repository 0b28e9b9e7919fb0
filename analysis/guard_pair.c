/* SPDX-License-Identifier: MIT
 *
 * The range of exponents that a shift stores, and the constants that put rows inside it.
 */
#include <math.h>

#include "analysis/guard.h"

/* The public builder refuses a margin and a shift of more than this together; it reads the margin
 * as octaves (MrHuff/fp4-fa4 edde9bcb, build_wan_nv_mx_bundle.py). */
enum { BUILD_CHECK = 126 };

/* Slack that makes constants inside the build check preferable to those in the middle. */
#define ENOUGH 16.0

void dp_guard_range(const dp_guard_frame *frame, int shift, double *low, double *high)
{
    const double keys = log2((double)(frame->keys > 0 ? frame->keys : 1));
    const double v = frame->v_largest > 0.0 ? log2(frame->v_largest) : -INFINITY;
    const double o = frame->o_least > 0.0 ? log2(frame->o_least) : INFINITY;
    /* Stored byte 4 or more: P2 * sum/6 is normal [D12]. The accumulator holds 36 * sum * o, which
     * must stay normal with eight bits to spare [D14]. */
    *low = fmax((double)(4 + shift - 127), (double)shift - 122.0 - o);
    /* The byte is not clamped up to 254 [D6]; the sum of all keys stays below 2^126/36, above which
     * rcp(sum)/36 is flushed, and the accumulator, 36 * sum * v, below 2^128. */
    *high = fmin(126.5, (double)shift - keys + fmin(120.0, 122.0 - v));
}

double dp_guard_slack(const dp_guard_frame *frame, double below, double miss, int margin, int shift)
{
    double low;
    double high;
    const double octaves = (double)margin * frame->unit;
    dp_guard_range(frame, shift, &low, &high);
    return fmin(high - (miss - octaves), below - octaves - low);
}

/* Least and most octaves of margin under a shift; least > most: none. */
static void bounds(const dp_guard_frame *frame, double below, double miss, int shift, double *least,
                   double *most)
{
    double low;
    double high;
    dp_guard_range(frame, shift, &low, &high);
    *least = fmax(0.0, miss - high);
    *most = fmin(below - low, (double)DP_GUARD_MARGIN_MOST * frame->unit);
}

dp_guard_pair dp_guard_choose(const dp_guard_frame *frame, double below, double miss, int shift)
{
    double least;
    double most;
    double low;
    double high;
    dp_guard_pair pair = {.shift = shift};
    for (int l = shift; l >= 0; l--) {
        bounds(frame, below, miss, l, &least, &most);
        if (ceil(least / frame->unit) <= floor(most / frame->unit)) {
            pair.shift = l;
            break;
        }
    }
    /* The middle: as far from the top as from the bottom of the range. */
    bounds(frame, below, miss, pair.shift, &least, &most);
    dp_guard_range(frame, pair.shift, &low, &high);
    const double middle = 0.5 * (miss + below) - 0.5 * (low + high);
    const double wanted = fmax(0.0, ceil(fmin(fmax(middle, least), most) / frame->unit));
    const double room = fmax(0.0, floor(most / frame->unit));
    pair.margin = (int)fmin(fmin(wanted, least <= most ? room : wanted), DP_GUARD_MARGIN_MOST);
    if (pair.margin + pair.shift > BUILD_CHECK) {
        const int small = BUILD_CHECK - pair.shift;
        if (small >= 0 && dp_guard_slack(frame, below, miss, small, pair.shift) >= ENOUGH) {
            pair.margin = small;
        }
    }
    pair.octaves = (double)pair.margin * frame->unit;
    pair.slack = dp_guard_slack(frame, below, miss, pair.margin, pair.shift);
    return pair;
}

dp_guard_pair dp_guard_least(const dp_guard_frame *frame, double miss, int shift)
{
    double least;
    double most;
    bounds(frame, 0.0, miss, shift, &least, &most);
    dp_guard_pair pair = {.shift = shift};
    pair.margin = (int)fmin(ceil(least / frame->unit), DP_GUARD_MARGIN_MOST);
    pair.octaves = (double)pair.margin * frame->unit;
    pair.slack = dp_guard_slack(frame, 0.0, miss, pair.margin, shift);
    return pair;
}
