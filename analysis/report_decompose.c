/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/attend_reports.h"
#include "analysis/exact.h"

static const dp_column COLUMNS[] = {{"operator", NULL, -1},
                                    {"head", NULL, -1},
                                    {"qk", "Q, K", 6},
                                    {"p", "P", 6},
                                    {"v", "V", 6},
                                    {"rest", NULL, 6},
                                    {"total", NULL, 6},
                                    {"bf16", "BF16's own", 6},
                                    {"nonfinite_rows", NULL, -1},
                                    {"rows", NULL, -1}};

static void add(dp_report *report, const char *name, size_t head, bool all, dp_error_parts parts)
{
    dp_report_text(report, name);
    if (all) {
        dp_report_text(report, "all");
    } else {
        dp_report_i64(report, (int64_t)head);
    }
    dp_report_f64(report, parts.qk);
    dp_report_f64(report, parts.p);
    dp_report_f64(report, parts.v);
    dp_report_f64(report, parts.rest);
    dp_report_f64(report, parts.total);
    dp_report_f64(report, parts.bf16);
    dp_report_i64(report, (int64_t)parts.nonfinite_rows);
    dp_report_i64(report, (int64_t)parts.rows);
}

bool dp_report_decompose(const dp_attention *in, const dp_direct_p *launch,
                         const dp_mma_switches *mma, int threads, bool per_head, dp_style style,
                         dp_error *error)
{
    const size_t heads = in->batch * in->q_heads;
    dp_error_parts *parts = calloc(heads + 1, sizeof *parts);
    dp_report *report = dp_report_new("Relative L2 error against exact attention, by its cause",
                                      COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    bool good = (parts != NULL && report != NULL) ||
                dp_fail(error, "decompose: not enough memory for the report");
    good = good && dp_decompose(in, launch, mma, threads, parts, error);
    for (size_t h = per_head ? 0 : heads; good && h <= heads; h++) {
        add(report, launch->policy.name, h, h == heads, parts[h]);
    }
    good = good && dp_report_print(report, style, stdout, error);
    dp_report_free(report);
    free(parts);
    return good;
}
