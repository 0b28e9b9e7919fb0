/* SPDX-License-Identifier: MIT
 *
 * Does a tensor need a guard? Direct-P without a row reference holds row maxima of about 2^-107 to
 * 2^113; a guard moves each row by an anchor. What each head needs, and what each choice costs.
 */
#ifndef DP_ANALYSIS_GUARD_H
#define DP_ANALYSIS_GUARD_H

#include "analysis/attend.h"

typedef enum {
    DP_GUARD_NONE,   /* base policy, no reference                      */
    DP_GUARD_SMOOTH, /* the same, K minus its mean                     */
    DP_GUARD_ANCHOR, /* base policy with the margin and shift below    */
    DP_GUARD_BOTH,   /* smoothing and anchor                           */
    DP_GUARD_CHOICES,
    DP_GUARD_BEYOND = DP_GUARD_CHOICES /* no margin and shift hold it: an exact row maximum */
} dp_guard_choice;

const char *dp_guard_choice_name(dp_guard_choice choice);

/* One query head. Exponents are in octaves of the scaled score. */
typedef struct {
    size_t batch, head;
    double largest_logit[2]; /* plain, smoothed; natural units           */
    double top[2];           /* largest row maximum                      */
    double bottom[2];        /* least row maximum                        */
    double miss[2];          /* most that a row maximum exceeds its anchor by */
    bool safe[2];            /* the unguarded path keeps every row       */
    dp_guard_choice advice;
    double rel_l2[DP_GUARD_CHOICES];      /* of the head's output, over its finite rows  */
    uint64_t lost_rows[DP_GUARD_CHOICES]; /* not finite, or zero where BF16 is not       */
} dp_guard_head;

typedef struct {
    size_t count;
    dp_guard_head *heads;
    int anchor, margin, shift; /* constants of the anchored runs: margin in raw units */
    double margin_octaves;
} dp_guard;

/* Lowest and highest exponent of a row maximum that an unguarded path with shift L stores with a
 * byte whose term of the denominator cannot flush, and whose sums cannot overflow. */
void dp_guard_range(int shift, double *low, double *high);

/* inputs: not smoothed. policy: base, e.g. fast. anchor: 32 or 128 keys. */
bool dp_guard_measure(const dp_attend_inputs *inputs, const dp_forward_policy *policy, int anchor,
                      int threads, dp_guard *guard, dp_error *error);
void dp_guard_free(dp_guard *guard);

#endif
