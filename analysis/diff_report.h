/* SPDX-License-Identifier: MIT
 *
 * What the comparer found, as text, tables, JSON, HDF5 and JUnit XML.
 */
#ifndef DP_ANALYSIS_DIFF_REPORT_H
#define DP_ANALYSIS_DIFF_REPORT_H

#include "analysis/diff.h"
#include "analysis/report.h"

/* Print one comparison. */
bool dp_diff_print(const dp_diff_job *job, const dp_diff_result *result, dp_style style,
                   FILE *stream, dp_error *error);
/* Mismatch maps, histograms and counts (kind "diff") for `directp plot diff`. */
bool dp_diff_save(const dp_diff_job *job, const dp_diff_result *result, const char *path,
                  dp_error *error);
/* One test case a dataset, for a CI server. */
bool dp_diff_junit(const dp_diff_job *job, const dp_diff_result *result, const char *path,
                   dp_error *error);
/* "key tile 2, quarter 1, lane 7" of a column; empty where columns are no keys. */
const char *dp_diff_column_text(dp_dump_id id, uint64_t column, char text[80]);

#endif
