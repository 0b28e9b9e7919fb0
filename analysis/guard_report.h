/* SPDX-License-Identifier: MIT
 *
 * What the guard adviser found, as text, tables, JSON and HDF5.
 */
#ifndef DP_ANALYSIS_GUARD_REPORT_H
#define DP_ANALYSIS_GUARD_REPORT_H

#include "analysis/guard.h"
#include "analysis/report.h"

/* One layer of a study: the tensors of one file. */
typedef struct {
    char file[256]; /* last part of the path          */
    int64_t layer;  /* -1 when the file does not say  */
    size_t q_heads, keys, queries, dim;
    bool causal;
    dp_guard guard;
} dp_guard_layer;

typedef struct {
    dp_guard_layer *layers;
    size_t count;
    const char *policy, *settings; /* fields set on top, "" for none */
    double q_factor;
    int anchor;
} dp_guard_study;

bool dp_guard_print(const dp_guard_study *study, dp_style style, FILE *stream, dp_error *error);
/* "0-2 smooth-k; 3 none": the advice, head by head. */
const char *dp_guard_heads_text(const dp_guard *guard, char *text, size_t size);
/* "--policy fast --epoch R --smooth-k --set reference=anchor,...": a choice as options of attend.
 * Empty for the exact maximum, which is no Direct-P. */
const char *dp_guard_options_text(const char *policy, const char *settings, dp_guard_choice choice,
                                  int anchor, dp_guard_pair pair, char *text, size_t size);

/* Kind "guard": /head/NAME over all heads of all layers, /layer/NAME over layers (FILES.md). */
bool dp_guard_save(const dp_guard_study *study, const char *path, const char *const *inputs,
                   size_t input_count, dp_error *error);

#endif
