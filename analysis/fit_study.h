/* SPDX-License-Identifier: MIT
 *
 * A finished fit as a file: what `directp fit -o` writes and `directp plot fit` draws.
 */
#ifndef DP_ANALYSIS_FIT_STUDY_H
#define DP_ANALYSIS_FIT_STUDY_H

#include "analysis/fit_search.h"

enum { DP_FIT_MAPS = 8, DP_FIT_NAME = 32 };

typedef struct {
    size_t maps;
    char name[DP_FIT_MAPS][DP_FIT_NAME]; /* "fitted" first, then "ideal", then published pairs */
    dp_fit_map map[DP_FIT_MAPS];
    double kept[DP_FIT_MAPS][8]; /* share of the scores of each ideal code that keep it */
    double share[8];             /* of all scores, by ideal code                        */
    char source[256], objective[64];
    size_t grid; /* landscape [grid][grid] over b (rows) and a; 0: none */
    double a_low, a_high, b_low, b_high;
    double *loss, *match, *mass;
    double density[DP_FIT_BINS]; /* share of the scores by x, bins of 1/8 from -8 */
    double equal[DP_FIT_MAPS]
                [DP_FIT_BINS]; /* of a bin's scores, those with the code of 2^x; NaN: none */
} dp_fit_study;

bool dp_fit_study_save(const dp_fit_study *study, const char *path, const char *const *inputs,
                       size_t input_count, dp_error *error);
bool dp_fit_study_load(dp_fit_study *study, const char *path, dp_error *error);
/* (A, B) of point `index` of the landscape. */
void dp_fit_study_point(const dp_fit_study *study, size_t index, double *a, double *b);
void dp_fit_study_free(dp_fit_study *study);
/* Landscape, curves and shares of the maps already in the study. */
bool dp_fit_study_fill(dp_fit_study *study, const dp_fit_sample *sample,
                       const dp_fit_options *options, dp_error *error);

#endif
