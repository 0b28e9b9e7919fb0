/* SPDX-License-Identifier: MIT
 *
 * What one Direct-P forward is, as data: the policy (constants and masks of a kernel build), the
 * epoch of the sources it models, and the switches for what those sources leave open. FORWARD.md
 * numbers the rules; [D..] refers to them.
 */
#ifndef DP_REF_FORWARD_POLICY_H
#define DP_REF_FORWARD_POLICY_H

#include "formats/error.h"

DP_BEGIN_C

enum {
    DP_TILE = 128,          /* query rows and keys of a tile                  */
    DP_BLOCK = 32,          /* keys that share one scale byte of P, a quarter */
    DP_QUARTERS = 4,        /* blocks of a key tile                           */
    DP_PAIRS = 16,          /* packed pairs of a block                        */
    DP_HEAD_DIM = 128,      /* head dimension of the kernels                  */
    DP_MAP_COEFFICIENTS = 4 /* up to a cubic                                  */
};

/* Which sources are modelled [D2]: they differ in floors, product order and LSE. */
typedef enum {
    DP_EPOCH_S, /* the snapshot the published timings come from */
    DP_EPOCH_R  /* the later tree: guard fix, Algorithm 3       */
} dp_epoch;

/* How a lane that does not use the exponential unit makes its value from the score [D9]. */
typedef enum {
    DP_MAP_AFFINE,     /* y = fma(raw, A s, fma(A, q, B)), coefficients folded      */
    DP_MAP_POLYNOMIAL, /* x = fma(raw, s, q), Horner over x; x held at the floor    */
    DP_MAP_EX2         /* every lane takes ex2(fma(raw, s, q)): the ideal route     */
} dp_map_kind;

typedef enum {
    DP_REFERENCE_NONE,  /* m = 0                                                           */
    DP_REFERENCE_ANCHOR /* m = max over the first keys of the permuted order, plus margin  */
} dp_reference_kind;

typedef enum {
    DP_DENOMINATOR_PRODUCER,  /* per quarter, Q2 Q0 Q1 Q3, 1/6 inside the terms      */
    DP_DENOMINATOR_CORRECTION /* pairs (Q0+Q1), (Q2+Q3), one final 1/12              */
} dp_denominator_kind;

/* One kernel build. */
typedef struct {
    const char *name;
    const char *provenance;
    dp_map_kind map;
    /* AFFINE: {B, A}. POLYNOMIAL: coefficients of x^0, x^1, ... Exactly these floats are used. */
    float coefficient[DP_MAP_COEFFICIENTS];
    int degree;      /* POLYNOMIAL: 1..3                                                    */
    float map_floor; /* POLYNOMIAL: x below this counts as this (keeps a parabola monotone) */
    bool fold_k64;   /* Q and K scales folded over K64 by squared error                     */
    dp_reference_kind reference;
    int anchor_keys; /* 32 or 128: keys sampled for the anchor, first in the physical order */
    int margin;      /* M, in the unit of dp_switches.margin_units                          */
    int shift;       /* L: stored byte = working byte - L                                   */
    int density;     /* native EX2 density, 0..4: 4 * density of the 16 pairs of native_stages */
    unsigned native_stages; /* bit s: stage s = (query tile) & 1 has native lanes                 */
    dp_denominator_kind denominator;
    bool clear_zero; /* codes cleared where the raw byte u is 0                             */
    bool rebase_q1;  /* Q1 of stage 0 is built on Q0's working byte                         */
} dp_forward_policy;

/* What the sources do not determine, or what a user wants to vary [D3]. All recorded in every dump.
 */
typedef struct {
    bool margin_log2; /* margin_units=log2: M in log2 units of the scaled score; default raw     */
    bool fma_denominator;  /* epoch S producer: the adds of d0, d1, d3 contracted; default off  */
    bool exact_multiplier; /* S0 rounded from log2(e)*scale; default the kernels' 0x3E0293D5 at
                              D=128 */
    bool natural_order; /* no permutation of K and V for the anchor; default off, on when causal */
    bool fault_scale_first; /* fault: (P2/6) * sum instead of P2 * (sum/6) in epoch R */
    bool v_zero_nan; /* an all-zero V block gets code 7 (0 * Inf) instead of code 0             */
    bool native_d64; /* D <= 64: one K64 step on 64 features, no fold; default padded to 128    */
} dp_switches;

dp_switches dp_switches_default(void);
/* Set one from "name=value"; the text of all of them, one "name=value" a line, into text. */
bool dp_switches_set(dp_switches *switches, const char *assignment, dp_error *error);
void dp_switches_text(const dp_switches *switches, char *text, size_t size);

/* The table of policies. */
size_t dp_forward_policy_count(void);
const dp_forward_policy *dp_forward_policy_at(size_t index);
/* Find by name; false with an error that lists the names. */
bool dp_forward_policy_find(const char *name, dp_forward_policy *policy, dp_error *error);
/* Override one field from "name=value": a b c0 c1 c2 c3 map fold anchor margin shift density
 * native-stages denominator clear-zero rebase-q1 floor. */
bool dp_forward_policy_set(dp_forward_policy *policy, const char *assignment, dp_error *error);
void dp_forward_policy_text(const dp_forward_policy *policy, char *text, size_t size);

/* True when lane pair p (0..15) of a quarter (0..3) of a stage (0, 1) takes the exponential unit
 * [D10]. */
bool dp_forward_policy_native_pair(const dp_forward_policy *policy, int stage, int quarter,
                                   int pair);

DP_END_C

#endif
