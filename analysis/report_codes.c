/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/attend_reports.h"
#include "analysis/codes.h"

static const dp_column COLUMNS[] = {{"operator", NULL, -1},      {"epoch", NULL, -1},
                                    {"lanes", NULL, -1},         {"match", NULL, 6},
                                    {"code_sum_ratio", NULL, 6}, {"mass_mean", NULL, 6},
                                    {"mass_least", NULL, 6},     {"mass_most", NULL, 6}};

static dp_report *summary(const dp_direct_p *launch, const dp_code_match *m)
{
    dp_report *report = dp_report_new("Codes against those of 2^x under the same working byte",
                                      COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    if (report != NULL) {
        dp_report_text(report, launch->policy.name);
        dp_report_text(report, launch->epoch == DP_EPOCH_S ? "S" : "R");
        dp_report_i64(report, m->lanes);
        dp_report_f64(report, (double)m->match / (double)m->lanes);
        dp_report_f64(report, (double)m->code_sum / (double)m->ideal_code_sum);
        dp_report_f64(report, m->mass_mean);
        dp_report_f64(report, m->mass_least);
        dp_report_f64(report, m->mass_most);
    }
    return report;
}

static void print_confusion(const dp_code_match *m)
{
    static const char *const value[DP_CODE_COUNT] = {"0", "0.5", "1", "1.5", "2", "3", "4", "6"};
    (void)printf(
        "\nOf the lanes whose ideal code is (row), the share that got (column), in %%\n%7s", "");
    for (int k = 0; k < DP_CODE_COUNT; k++) {
        (void)printf("%8s", value[k]);
    }
    (void)printf("%14s\n", "lanes");
    for (int i = 0; i < DP_CODE_COUNT; i++) {
        int64_t lanes = 0;
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            lanes += m->confusion[i][k];
        }
        (void)printf("%7s", value[i]);
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            (void)printf("%8.2f",
                         lanes > 0 ? 100.0 * (double)m->confusion[i][k] / (double)lanes : 0.0);
        }
        (void)printf("%14lld\n", (long long)lanes);
    }
}

static void json_list(dp_json *json, const char *key, const int64_t *values, size_t count)
{
    dp_json_key(json, key);
    dp_json_array_line(json);
    for (size_t i = 0; i < count; i++) {
        dp_json_i64(json, values[i]);
    }
    dp_json_close(json);
}

static bool print_json(const dp_report *report, const dp_code_match *m, dp_error *error)
{
    dp_json json;
    dp_json_start(&json, stdout);
    dp_json_object(&json);
    dp_json_member_text(&json, "title", "Codes against those of 2^x under the same working byte");
    dp_json_key(&json, "rows");
    const bool good = dp_report_json(report, &json, error);
    dp_json_key(&json, "confusion");
    dp_json_array(&json);
    for (size_t i = 0; i < DP_CODE_COUNT; i++) {
        dp_json_array_line(&json);
        for (size_t k = 0; k < DP_CODE_COUNT; k++) {
            dp_json_i64(&json, m->confusion[i][k]);
        }
        dp_json_close(&json);
    }
    dp_json_close(&json);
    json_list(&json, "byte_lanes", m->byte_lanes, DP_BYTES);
    json_list(&json, "byte_match", m->byte_match, DP_BYTES);
    dp_json_member_f64(&json, "distance_step", DP_DISTANCE_STEP);
    json_list(&json, "distance_lanes", m->distance_lanes, DP_DISTANCE_BINS);
    json_list(&json, "distance_match", m->distance_match, DP_DISTANCE_BINS);
    dp_json_close(&json);
    dp_json_finish(&json);
    return good;
}

bool dp_report_codes(const dp_attend_inputs *inputs, const dp_direct_p *launch,
                     const dp_mma_switches *mma, int threads, const char *output, dp_style style,
                     dp_error *error)
{
    dp_code_match *m = malloc(sizeof *m);
    bool good = (m != NULL || dp_fail(error, "codes: not enough memory")) &&
                dp_codes_run(&inputs->in, launch, mma, threads, m, error) &&
                dp_codes_save(output, inputs, launch, mma, m, error);
    dp_report *report = good ? summary(launch, m) : NULL;
    good = good && (report != NULL || dp_fail(error, "codes: not enough memory for the report"));
    if (good && style == DP_STYLE_JSON) {
        good = print_json(report, m, error);
    } else if (good) {
        good = dp_report_print(report, style, stdout, error);
        if (style == DP_STYLE_TEXT) {
            print_confusion(m);
        }
    }
    dp_report_free(report);
    free(m);
    return good;
}
