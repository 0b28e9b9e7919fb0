/* SPDX-License-Identifier: MIT
 *
 * What `directp fit` prints.
 */
#ifndef DP_ANALYSIS_FIT_PRINT_H
#define DP_ANALYSIS_FIT_PRINT_H

#include "analysis/fit_study.h"
#include "analysis/report.h"

/* Maps, coefficients, region, folds and search as tables or as one JSON document on standard
 * output. study: the maps, "fitted" first, "ideal" second, then the published ones. */
bool dp_fit_print(dp_style style, const dp_fit_study *study, const dp_fit_sample *sample,
                  const dp_fit_options *options, const dp_fit_result *result, dp_error *error);

#endif
