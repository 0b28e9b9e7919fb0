/* SPDX-License-Identifier: MIT */
#include "analysis/quantize_report.h"

#include <math.h>

static const dp_column columns[] = {
    {"dataset", NULL, -1},
    {"method", NULL, -1},
    {"axis", NULL, -1},
    {"elements", NULL, -1},
    {"compared", "compared (both finite)", -1},
    {"cosine", NULL, 9},
    {"relative_l2", "relative L2", 9},
    {"rmse", "RMSE", -1},
    {"mean_error", "signed mean error", -1},
    {"worst_error", "worst error", -1},
    {"nan_in", "NaN in", -1},
    {"inf_in", "Inf in", -1},
    {"nan_out", "NaN out", -1},
    {"inf_out", "Inf out", -1},
    {"saturated", NULL, -1},
    {"flushed", "flushed (nonzero to 0)", -1},
    {"flushed_percent_of_all", "  % of all elements", 4},
    {"flushed_percent_of_nonzero", "  % of nonzero elements", 4},
    {"blocks", NULL, -1},
    {"padded", "padding zeros", -1},
    {"zero_blocks", "all-zero blocks", -1},
    {"scale_bytes_zero", "scale bytes 0x00", -1},
    {"scale_bytes_nan", "scale bytes NaN", -1},
    {"saturated_scales", "saturated scales", -1},
    {"clipped_blocks", "clipped blocks", -1},
    {"worst_clip_percent", "worst clip, %", 4},
    {"amax", NULL, -1},
    {"global_decode_scale", "global decode scale", -1},
    {"amax_percent_of_range", "amax, % of 2688 * decode", 4},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_errors(dp_report *report, const dp_errors *e)
{
    dp_report_i64(report, (int64_t)e->elements);
    dp_report_i64(report, (int64_t)e->compared);
    dp_report_f64(report, e->cosine);
    dp_report_f64(report, e->rel_l2);
    dp_report_f64(report, e->rmse);
    dp_report_f64(report, e->mean_error);
    dp_report_f64(report, e->worst_error);
    dp_report_i64(report, (int64_t)e->nan_in);
    dp_report_i64(report, (int64_t)e->inf_in);
    dp_report_i64(report, (int64_t)e->nan_out);
    dp_report_i64(report, (int64_t)e->inf_out);
}

static void add_blocks(dp_report *report, const dp_quantize_method *m, const dp_quantize_result *r)
{
    const bool folded = m->preset.fold64;
    if (m->direct) {
        for (int i = 0; i < 8; i++) {
            dp_report_blank(report);
        }
        return;
    }
    dp_report_i64(report, (int64_t)r->stats.blocks);
    dp_report_i64(report, (int64_t)(r->shape.padded * r->shape.runs));
    /* Folded rows share a scale between two blocks, which the counters of single blocks miss. */
    if (folded) {
        dp_report_blank(report);
    } else {
        dp_report_i64(report, (int64_t)r->stats.zero_blocks);
    }
    dp_report_i64(report, (int64_t)r->scale_byte_zero);
    dp_report_i64(report, (int64_t)r->scale_byte_nan);
    if (folded) {
        dp_report_blank(report);
        dp_report_blank(report);
    } else {
        dp_report_i64(report, (int64_t)r->stats.saturated_scales);
        dp_report_i64(report, (int64_t)r->stats.clipped_blocks);
    }
    dp_report_f64(report, 100.0 * r->worst_clip);
}

static void add_row(dp_report *report, const dp_quantize_method *m, const dp_quantize_subject *s,
                    const dp_quantize_result *r)
{
    char axis[48];
    (void)snprintf(axis, sizeof axis, "%zu%s%s", s->axis, s->axes[s->axis][0] != '\0' ? " " : "",
                   s->axes[s->axis]);
    dp_report_text(report, s->name);
    dp_report_text(report, m->name);
    dp_report_text(report, axis);
    add_errors(report, &r->errors);
    if (m->preset.fold64) {
        dp_report_blank(report);
    } else {
        dp_report_i64(report, (int64_t)r->stats.saturated);
    }
    dp_report_i64(report, (int64_t)r->errors.underflow);
    dp_report_f64(report, dp_underflow_of_all(&r->errors));
    dp_report_f64(report, dp_underflow_of_nonzero(&r->errors));
    add_blocks(report, m, r);
    dp_report_f64(report, r->errors.amax);
    if (m->direct || r->global.kind == DP_GLOBAL_NONE) {
        dp_report_blank(report);
    } else if (r->global.kind == DP_GLOBAL_DIV) {
        dp_report_f64(report, 1.0 / (double)r->global.value);
    } else {
        dp_report_f32(report, r->global.value);
    }
    if (isnan(r->range_percent)) {
        dp_report_blank(report);
    } else {
        dp_report_f64(report, r->range_percent);
    }
}

bool dp_quantize_print(const char *path, const dp_quantize_method *method,
                       const dp_quantize_subject *subjects, const dp_quantize_result *results,
                       size_t count, dp_style style, dp_error *error)
{
    dp_report *report = dp_report_new(path, columns, COLUMNS);
    if (report == NULL) {
        return dp_fail(error, "quantize: memory ran short: free some and try again");
    }
    for (size_t i = 0; i < count; i++) {
        add_row(report, method, &subjects[i], &results[i]);
    }
    const bool good = style == DP_STYLE_TEXT ? dp_report_print_turned(report, stdout, error)
                                             : dp_report_print(report, style, stdout, error);
    dp_report_free(report);
    return good;
}
