/* SPDX-License-Identifier: MIT
 *
 * The error report of `directp quantize`: one row an array in JSON and CSV, one column in text.
 */
#ifndef DP_ANALYSIS_QUANTIZE_REPORT_H
#define DP_ANALYSIS_QUANTIZE_REPORT_H

#include "analysis/quantize.h"
#include "analysis/report.h"

bool dp_quantize_print(const char *path, const dp_quantize_method *method,
                       const dp_quantize_subject *subjects, const dp_quantize_result *results,
                       size_t count, dp_style style, dp_error *error);

#endif
