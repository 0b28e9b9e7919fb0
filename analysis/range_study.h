/* SPDX-License-Identifier: MIT
 *
 * The outcome of one `directp range`: every case (a sequence length, a file, a head) under every
 * format, and its HDF5 file (kind "range"), which `directp plot range` reads.
 */
#ifndef DP_ANALYSIS_RANGE_STUDY_H
#define DP_ANALYSIS_RANGE_STUDY_H

#include "analysis/range.h"

/* Where the rows of a case came from. */
typedef struct {
    char source[256]; /* "random", or the file's name */
    uint64_t seed;    /* of random inputs */
    int sms;          /* of random inputs, else 0 */
    size_t seq;       /* keys */
    size_t heads;     /* query heads, over all batches */
    int64_t head;     /* the one head of this case, -1 when all heads count together */
    size_t rows;      /* query rows used of each head */
    size_t queries;   /* query rows there are */
    size_t dim;
    double softmax_scale;
    bool causal;
} dp_range_case;

typedef struct {
    size_t block;
    size_t format_count;
    dp_range_format formats[DP_RANGE_FORMATS];
    size_t case_count;
    dp_range_case *cases;
    dp_range_result *results; /* [case][format] */
} dp_range_study;

void dp_range_study_free(dp_range_study *study);

/* Run the diagnostic on tensors and append its cases. `like` holds what tensors do not know:
 * source, seed, sms. */
bool dp_range_study_add(dp_range_study *study, const dp_tensors *tensors,
                        const dp_range_options *options, const dp_range_case *like,
                        dp_error *error);

/* Write the study: /cases/... and /range/FORMAT/... . inputs: files that must not be overwritten.
 */
bool dp_range_study_save(const dp_range_study *study, const char *path, const char *const *inputs,
                         size_t input_count, dp_error *error);

/* Append the cases of a file that dp_range_study_save wrote (or that follows the same schema). The
 * formats must be those already present; the first file decides. */
bool dp_range_study_load(dp_range_study *study, const char *path, dp_error *error);

#endif
