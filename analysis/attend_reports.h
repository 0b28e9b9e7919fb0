/* SPDX-License-Identifier: MIT
 *
 * What `directp attend` prints beyond the error against BF16.
 */
#ifndef DP_ANALYSIS_ATTEND_REPORTS_H
#define DP_ANALYSIS_ATTEND_REPORTS_H

#include "analysis/attend.h"
#include "analysis/report.h"

/* --decompose: run the launch and print where its error comes from (exact.h), one row a head when
 * asked, then all. */
bool dp_report_decompose(const dp_attention *in, const dp_direct_p *launch,
                         const dp_mma_switches *mma, int threads, bool per_head, dp_style style,
                         dp_error *error);

/* --codes OUT: run the launch, compare its codes with the ideal ones (codes.h), write the file and
 * print the summary. */
bool dp_report_codes(const dp_attend_inputs *inputs, const dp_direct_p *launch,
                     const dp_mma_switches *mma, int threads, const char *output, dp_style style,
                     dp_error *error);

/* --table: every launch of the table on every file, with and without smoothing of K, a row a head.
 */
bool dp_report_table(const char *const *files, size_t count, int threads, dp_style style,
                     dp_error *error);

#endif
