/* SPDX-License-Identifier: MIT
 *
 * The page of `directp report`: what is measured of one file, what follows from it, and how it is
 * drawn. One file of HTML with its charts inside; nothing outside it is referred to.
 */
#ifndef DP_ANALYSIS_PAGE_H
#define DP_ANALYSIS_PAGE_H

#include <stdio.h>

#include "analysis/codes.h"
#include "analysis/diff.h"
#include "analysis/exact.h"
#include "analysis/guard.h"
#include "analysis/range.h"
#include "analysis/tensors.h"

enum {
    DP_PAGE_OPERATORS = 16,
    DP_PAGE_FAST = 0,
    DP_PAGE_WAN = 1,
    DP_PAGE_ACCURATE = 2,
    DP_PAGE_DIRECT =
        5, /* the first are Direct-P, the simplest first; the last is `fast` with its guard */
    DP_PAGE_GUARDED = 4, /* which is there when the adviser wants an anchor                   */
    DP_PAGE_FORMATS = 6,
    DP_PAGE_MAPS = 4
};

/* How far an operator is from FP4. */
typedef enum {
    DP_PAGE_FP4,
    DP_PAGE_FP8_PV,
    DP_PAGE_FP8,
    DP_PAGE_BF16_PV,
    DP_PAGE_BF16
} dp_page_class;

typedef struct {
    const char *name, *says;
    dp_page_class class;
} dp_page_operator;
extern const dp_page_operator dp_page_operators[DP_PAGE_OPERATORS];
extern const char *const dp_page_formats[DP_PAGE_FORMATS];

/* A simpler choice is taken while its error is at most this times the least. */
#define DP_PAGE_SIMPLE 1.05
/* FP8 P and V are named as the better choice where FP4 has more than this times their error. */
#define DP_PAGE_FP8_FACTOR 1.25

/* One operator on all heads. [0]: K as given, [1]: K minus its mean. */
typedef struct {
    bool present;
    dp_guard_effect whole[2];
    dp_guard_effect *head[2];
} dp_page_run;

/* What to do. */
typedef struct {
    int policy; /* of dp_page_operators */
    bool smooth;
    bool direct;         /* policy is a Direct-P one: none of them lost a row              */
    double error, worst; /* of that choice: relative L2 over all heads, of the worst head  */
    size_t worst_head;
    int fp4, fp8, all_fp8; /* least error of each class under the same K, -1: none present   */
    double fp4_error, fp8_error, all_fp8_error, qk_error; /* qk: NVFP4 Q and K, BF16 P and V */
    bool fp4_suffices; /* FP8 P and V would gain less than a quarter                          */
} dp_page_verdict;

typedef struct {
    const char *path, *command;
    char sha256[65], date[32];
    uint64_t bytes;
    const dp_tensors *tensors;
    size_t heads; /* query heads over all batches */
    dp_page_run run[DP_PAGE_OPERATORS];
    dp_guard guard;
    bool has_range;
    dp_range_result range[DP_PAGE_FORMATS];
    char range_why[1024]; /* why there is none */
    dp_page_verdict verdict;
    dp_code_match codes[2]; /* of fast and accurate under the K of the verdict */
    dp_error_parts *parts;  /* [heads + 1] of the best of fast and accurate, or NULL */
    const char *parts_policy;
    dp_dump dump;
    dp_diff_result *diff; /* NULL: the file holds no stages, or diff_why */
    char diff_why[1024];
} dp_page;

/* Measure everything. tensors must outlive the page. */
bool dp_page_measure(const char *path, const char *command, const dp_tensors *tensors, int threads,
                     dp_page *page, dp_error *error);
void dp_page_free(dp_page *page);
/* The verdict from the runs and the guard. */
dp_page_verdict dp_page_judge(const dp_page *page);

/* The page. */
void dp_page_write(FILE *out, const dp_page *page);
/* Its charts. */
void dp_page_chart_operators(FILE *out, const dp_page *page);
void dp_page_chart_plane(FILE *out, const dp_page *page);
void dp_page_chart_rows(FILE *out, const dp_page *page);
void dp_page_chart_choices(FILE *out, const dp_page *page);
void dp_page_chart_range(FILE *out, const dp_page *page);
void dp_page_chart_scales(FILE *out, const dp_page *page);
void dp_page_chart_parts(FILE *out, const dp_page *page);
void dp_page_chart_boundaries(FILE *out);
void dp_page_chart_match(FILE *out, const dp_page *page);
void dp_page_chart_confusion(FILE *out, const dp_page *page, int which);
void dp_page_chart_mismatches(FILE *out, const dp_page *page);
void dp_page_chart_distances(FILE *out, const dp_page *page);

#endif
