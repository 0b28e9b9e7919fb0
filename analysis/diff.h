/* SPDX-License-Identifier: MIT
 *
 * The comparer: every stage of a dump against the oracle, recomputed from the dump's own stage
 * before it, so that a wrong bit is reported once, where it was made. And the diagnosis: named
 * mistakes, each of which recomputes the first wrong stage as a kernel with that mistake would.
 */
#ifndef DP_ANALYSIS_DIFF_H
#define DP_ANALYSIS_DIFF_H

#include "analysis/diff_pattern.h"

/* How two elements are compared. */
typedef struct {
    uint64_t ulps[DP_DUMP_DATASETS]; /* largest distance that passes; 0: bits. Finite values only */
    bool ignore_zero_sign, nan_equal;
} dp_diff_rules;
/* "score=ulps:2,lse=ulps:4,acc=bits": stages or datasets. Exact stages take no tolerance. */
bool dp_diff_rules_parse(const char *text, dp_diff_rules *rules, dp_error *error);

enum { DP_DIFF_BUCKETS = 34, DP_DIFF_MAP = 128, DP_DIFF_KEPT = 6 };

typedef struct {
    bool dumped;   /* in the file                                             */
    bool compared; /* and the stage before it, or what bridges it, was there   */
    uint64_t elements, mismatches;
    dp_diff_place first, worst;
    /* [0]: equal after the rules; [1 + k]: distance in [2^k, 2^(k+1)); last: NaN or infinite */
    uint64_t histogram[DP_DIFF_BUCKETS];
    uint64_t nan_pairs;    /* mismatches of one NaN against another          */
    uint64_t above, below; /* found value larger, smaller                   */
    uint64_t quarter[DP_QUARTERS], parity[2], lane_parity[2]; /* of the mismatches */
    double n, sx, sy, sxx, sxy, syy; /* expected x, found y over rows that differ, float data */
    uint32_t map[DP_DIFF_MAP][DP_DIFF_MAP]; /* mismatches: rows x columns, scaled to fit */
    dp_diff_spread spread;                  /* where they lie                            */
    dp_diff_groups groups;                  /* factors by head and tile, float data      */
    size_t kept[DP_DIFF_KEPT], kept_count;  /* strips with mismatches, for the diagnosis */
} dp_diff_dataset;

/* A mistake that explains the first wrong dataset. */
typedef struct {
    const char *name, *meaning;
    uint64_t before,
        left; /* mismatches of the strips looked at, with the oracle, with the mistake */
    char detail[DP_DIFF_DETAIL]; /* what was measured, or empty */
} dp_diff_finding;

enum { DP_DIFF_FINDINGS = 4 };

typedef struct {
    dp_diff_dataset set[DP_DUMP_DATASETS];
    int first_wrong; /* dp_dump_id, -1 when everything agrees */
    size_t map_rows[DP_DUMP_DATASETS], map_columns[DP_DUMP_DATASETS]; /* what a map covers */
    size_t map_covered[DP_DUMP_DATASETS]; /* rows of a head that the dump holds */
    dp_diff_finding findings[DP_DIFF_FINDINGS];
    size_t finding_count;
    size_t tried; /* hypotheses of that dataset */
    /* Presets of formats/preset.h, of a first wrong dataset of the stage quantize: how many were
     * tried, and those that make the kernel's bytes, "TE, DUDA". */
    size_t presets_tried;
    char presets[200];
    char values[200];   /* codes of P: how near to midpoints the wrong ones lie, in a strip */
    bool order_differs; /* the dump's key order is not the policy's */
    bool against;       /* compared with another dump */
} dp_diff_result;

typedef struct {
    const dp_dump *dump, *against; /* against NULL: the oracle */
    dp_diff_rules rules;
    int threads;
    bool no_diagnosis;
    unsigned only; /* bits of dp_dump_id to compare, 0: all */
} dp_diff_job;

/* Heap-allocated result, released with free(). NULL with an error. */
dp_diff_result *dp_diff_run(const dp_diff_job *job, dp_error *error);

/* Elements of a row as they are compared (two a byte for codes): the first, how many, and one of
 * them. */
size_t dp_diff_first(const dp_dump *dump, dp_dump_id id);
size_t dp_diff_columns(const dp_dump *dump, dp_dump_id id);
uint32_t dp_diff_element(dp_dump_id id, const void *row, size_t column);
/* Equal under the rules; *distance in codes or ulps. */
bool dp_diff_equal(const dp_diff_rules *rules, dp_dump_id id, uint32_t expected, uint32_t found,
                   uint64_t *distance);
/* Mismatches of one strip between the kernel's data and `expected` (laid out as in a unit). */
uint64_t dp_diff_count(const dp_unit *unit, const dp_diff_rules *rules, dp_dump_id id,
                       const void *expected);

/* ---- diagnosis ------------------------------------------------------------------------------- */

typedef struct dp_hypothesis dp_hypothesis;
struct dp_hypothesis {
    const char *name;    /* "ties-away" */
    dp_dump_id id;       /* the dataset it explains */
    const char *meaning; /* one line for the user */
    /* The stage under the mistake: either a launch changed in one respect... */
    void (*change)(dp_direct_p *launch, double argument);
    /* ...or a function; out holds the oracle's data on entry. False: does not apply here. */
    bool (*run)(const dp_unit *unit, double argument, void *out);
    double argument;
};

/* Hypothesis number `index`; NULL after the last. */
const dp_hypothesis *dp_hypothesis_at(size_t index);
/* The dataset of a strip under a hypothesis. False when it does not apply. */
bool dp_hypothesis_run(const dp_hypothesis *hypothesis, const dp_unit *unit, void *out);
/* Insert a finding, the one that leaves the fewest mismatches first; one name once. */
void dp_diff_keep(dp_diff_result *result, const dp_diff_finding *finding);
/* The values behind the wrong codes of P of a loaded strip, into result->values. */
void dp_diff_values(const dp_unit *unit, dp_diff_result *result);
/* Mistakes of the bridged datasets before the first wrong one, carried on to it. */
bool dp_diff_upstream(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result,
                      dp_error *error);
/* Which presets explain a wrong operand, into result->presets. */
bool dp_diff_presets(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result,
                     dp_error *error);
/* Try all of the first wrong dataset. */
bool dp_diff_diagnose(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result,
                      dp_error *error);

#endif
