/* SPDX-License-Identifier: MIT
 *
 * directp record: append the rates of a run to a history, and judge them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/commands.h"
#include "analysis/condition.h"
#include "analysis/options.h"
#include "analysis/rates.h"
#include "analysis/report.h"

typedef struct {
    dp_rates_options rates;
    const char *label, *time, *output, *tolerance, *zero_sign, *nan;
    dp_texts fail_if;
    int64_t threads;
    bool json, csv;
    dp_style style;
} request;

static const char NOTES[] =
    "INPUT is a dump (compared with the oracle, or with --against another dump), or a file that\n"
    "directp diff -o, range -o or attend --codes wrote. Each gives a row of the history, a range\n"
    "file one a case and format. Without INPUT the history is printed; --csv has all its columns.\n"
    "A row belongs to a series: the input's name without folder and .h5, unless --series says\n"
    "otherwise. last, best and median are those of the earlier rows of the same series and kind\n"
    "that did not fail.\n"
    "The rows are appended whole or not at all, also when a condition holds: the column `failed`\n"
    "then says which. Other writers are waited for.\n"
    "Conditions, separated by commas: SUM < SUM, with < <= > >= == !=, + - * / ( ), numbers, 5%,\n"
    "the names below, and last, best, median of one (last.rel_l2; alone: of the first name). A\n"
    "comparison with NaN holds; a name that was not measured is an error; without an earlier row\n"
    "a reference is not judged.\n"
    "  code_mismatches>0        zero_scale>5%        lost_mass > last*1.1\n"
    "  code_match < best - 0.001        rel_l2 > 1.05*median\n"
    "Names:";

static bool parse(int *argc, char **argv, request *r, int *status)
{
    const dp_option options[] = {
        DP_OUTPUT(&r->output, "the history (HDF5), made when it is not there"),
        DP_TEXT("label", &r->label, "TEXT", "what this run is of: a commit, a version"),
        DP_TEXT("time", &r->time, "ISO", "its time (ISO 8601) instead of now"),
        DP_TEXT("series", &r->rates.series, "NAME", "what it is compared with over time"),
        DP_TEXTS("fail-if", &r->fail_if, "CONDITIONS", "exit 1 when one holds; may be repeated"),
        DP_TEXT("policy", &r->rates.overrides.policy, "NAME", "policy, instead of the dump's"),
        DP_CHOICE("epoch", &r->rates.overrides.epoch, "S|R", "epoch, instead of the dump's"),
        DP_TEXT("set", &r->rates.overrides.set, "NAME=VALUE,...",
                "policy fields and switches on top"),
        DP_CHOICE("sfu", &r->rates.overrides.sfu, "exact|h200", "model of EX2, RCP and LG2"),
        DP_TEXT("against", &r->rates.against, "OTHER.h5", "compare one dump with another by bits"),
        DP_TEXT("tolerance", &r->tolerance, "STAGE=ulps:N,...", "distances that pass"),
        DP_CHOICE("zero-sign", &r->zero_sign, "strict|ignore", "-0 against +0"),
        DP_CHOICE("nan", &r->nan, "bits|equal", "NaNs of different bits"),
        DP_THREADS(&r->threads),
        DP_JSON(&r->json),
        DP_CSV(&r->csv),
    };
    char *notes = dp_conditions_help(NOTES);
    const dp_usage usage = {
        .verb = "record",
        .operands = "[INPUT.h5...]",
        .summary = "Append the rates of a run (code match, zero scales, lost mass, mismatches of "
                   "every stage, error of the output) to a history. Exit status 1: a condition "
                   "of --fail-if holds.",
        .notes = notes,
        .example =
            "directp record dump.h5 -o history.h5 --label v2 --fail-if 'lost_mass > last*1.1'\n"
            "directp record -o history.h5 --csv\n"
            "directp plot history history.h5 -o plots",
        .least = 0,
        .most = 256,
        .options = options,
        .count = sizeof options / sizeof options[0]};
    *status = dp_options_parse(&usage, argc, argv);
    free(notes);
    return *status == DP_CONTINUE;
}

/* The columns of text worth a terminal's width. */
static const int TERSE[] = {DP_RUN_MISMATCHES, DP_RUN_CODE_MATCH, DP_RUN_ZERO_SCALE,
                            DP_RUN_LOST_MASS,  DP_RUN_REL_L2,     DP_RUN_COSINE};
enum { TERSE_COUNT = sizeof TERSE / sizeof TERSE[0] };

static void add_number(dp_report *report, const dp_run_row *row, int column)
{
    const double value = row->number[column];
    if (!row->known[column]) {
        dp_report_blank(report);
    } else if (value >= 0.0 && value < 9e15 && value == (double)(int64_t)value &&
               column < DP_RUN_CODE_MATCH && column != DP_RUN_MISMATCH_RATE) {
        dp_report_i64(report, (int64_t)value);
    } else {
        dp_report_f64(report, value);
    }
}

static bool print_terse(const dp_run_row *rows, size_t count, dp_error *error)
{
    static const dp_column columns[] = {{"time", NULL, -1},      {"label", NULL, -1},
                                        {"series", NULL, -1},    {"mismatches", NULL, 0},
                                        {"code_match", NULL, 6}, {"zero_scale", NULL, 6},
                                        {"lost_mass", NULL, 6},  {"rel_l2", NULL, 6},
                                        {"cosine", NULL, 6},     {"failed", NULL, -1}};
    dp_report *report = dp_report_new("Runs", columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; report != NULL && i < count; i++) {
        dp_report_text(report, rows[i].text[DP_RUN_TIME]);
        dp_report_text(report, rows[i].text[DP_RUN_LABEL]);
        dp_report_text(report, rows[i].text[DP_RUN_SERIES]);
        for (int c = 0; c < TERSE_COUNT; c++) {
            add_number(report, &rows[i], TERSE[c]);
        }
        dp_report_text(report, rows[i].text[DP_RUN_FAILED]);
    }
    const bool good = report != NULL && dp_report_print(report, DP_STYLE_TEXT, stdout, error);
    dp_report_free(report);
    return good || dp_fail(error, "record: not enough memory for the table");
}

static bool print_whole(const dp_run_row *rows, size_t count, dp_style style, dp_error *error)
{
    dp_column columns[DP_RUN_TEXTS + DP_RUN_NUMBERS];
    for (int c = 0; c < DP_RUN_TEXTS + DP_RUN_NUMBERS; c++) {
        columns[c] = (dp_column){c < DP_RUN_TEXTS ? dp_run_texts[c].name
                                                  : dp_run_columns[c - DP_RUN_TEXTS].name,
                                 NULL, -1};
    }
    dp_report *report = dp_report_new("Runs", columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; report != NULL && i < count; i++) {
        for (int c = 0; c < DP_RUN_TEXTS; c++) {
            dp_report_text(report, rows[i].text[c]);
        }
        for (int c = 0; c < DP_RUN_NUMBERS; c++) {
            add_number(report, &rows[i], c);
        }
    }
    const bool good = report != NULL && dp_report_print(report, style, stdout, error);
    dp_report_free(report);
    return good || dp_fail(error, "record: not enough memory for the table");
}

static bool print_rows(const request *r, const dp_run_row *rows, size_t count, dp_error *error)
{
    return r->style == DP_STYLE_TEXT ? print_terse(rows, count, error)
                                     : print_whole(rows, count, r->style, error);
}

/* Two rows of one series in one call would be taken for two runs. */
static bool check_series(const dp_rates *rates, dp_error *error)
{
    for (size_t i = 0; i < rates->count; i++) {
        for (size_t k = i + 1; k < rates->count; k++) {
            if (strcmp(rates->rows[i].text[DP_RUN_SERIES], rates->rows[k].text[DP_RUN_SERIES]) ==
                    0 &&
                strcmp(rates->rows[i].text[DP_RUN_KIND], rates->rows[k].text[DP_RUN_KIND]) == 0) {
                return dp_fail(error,
                               "record: two inputs of the series '%s': record them one by one, "
                               "each with its --series",
                               rates->rows[i].text[DP_RUN_SERIES]);
            }
        }
    }
    return true;
}

static bool measure(const request *r, int count, char **inputs, dp_rates *rates, dp_error *error)
{
    char utc[DP_RUN_TEXT_SIZE];
    dp_rates_options options = r->rates;
    options.threads = (int)r->threads;
    options.rules.ignore_zero_sign = strcmp(r->zero_sign, "ignore") == 0;
    options.rules.nan_equal = strcmp(r->nan, "equal") == 0;
    if (options.against != NULL && count != 1) {
        return dp_fail(error, "--against: %d inputs: a pair is one input and the other dump",
                       count);
    }
    if (options.series != NULL && count > 1) {
        return dp_fail(error, "--series: %d inputs: record them one by one", count);
    }
    if (strlen(r->label) > dp_run_texts[DP_RUN_LABEL].size ||
        (options.series != NULL && strlen(options.series) > dp_run_texts[DP_RUN_SERIES].size)) {
        return dp_fail(error, "--label, --series: longer than %zu bytes: shorten it",
                       dp_run_texts[DP_RUN_LABEL].size);
    }
    bool good = dp_time_parse(r->time, utc, error) &&
                dp_diff_rules_parse(r->tolerance, &options.rules, error);
    for (int i = 0; good && i < count; i++) {
        good = dp_rates_of_file(rates, inputs[i], &options, error);
    }
    for (size_t i = 0; good && i < rates->count; i++) {
        dp_run_set_text(&rates->rows[i], DP_RUN_TIME, utc);
        dp_run_set_text(&rates->rows[i], DP_RUN_LABEL, r->label);
    }
    return good && check_series(rates, error);
}

/* Judge and append, with the history held. */
static bool judge_and_append(const request *r, const dp_conditions *conditions, int count,
                             char **inputs, dp_rates *rates, bool *failed, dp_error *error)
{
    dp_history_lock lock;
    dp_history before = {0};
    if (!dp_history_lock_take(&lock, r->output, 60.0, error)) {
        return false;
    }
    FILE *there = fopen(r->output, "rb");
    if (there != NULL) {
        (void)fclose(there);
    }
    const bool good =
        (there == NULL || dp_history_load(&before, r->output, error)) &&
        dp_conditions_judge(conditions, rates->rows, rates->count, &before, failed, error) &&
        dp_history_append(r->output, rates->rows, rates->count, (const char *const *)inputs,
                          (size_t)count, error);
    dp_history_lock_release(&lock);
    if (good && r->style == DP_STYLE_TEXT) {
        (void)printf("%s: %zu rows, %zu of them new\n", r->output, before.count + rates->count,
                     rates->count);
    }
    dp_history_free(&before);
    return good;
}

static bool show(const request *r, dp_error *error)
{
    dp_history history;
    if (r->fail_if.count > 0) {
        return dp_fail(error, "--fail-if: no input: give what it should judge");
    }
    if (!dp_history_load(&history, r->output, error)) {
        return false;
    }
    const bool good = print_rows(r, history.rows, history.count, error);
    dp_history_free(&history);
    return good;
}

static bool record(const request *r, int count, char **inputs, bool *failed, dp_error *error)
{
    dp_rates rates = {0};
    if (r->output == NULL) {
        return dp_fail(error, "record: no history: name it with -o HISTORY.h5");
    }
    if (count == 0) {
        return show(r, error);
    }
    dp_conditions *conditions = dp_conditions_parse(r->fail_if.item, r->fail_if.count, error);
    const bool good = conditions != NULL && measure(r, count, inputs, &rates, error) &&
                      judge_and_append(r, conditions, count, inputs, &rates, failed, error) &&
                      print_rows(r, rates.rows, rates.count, error);
    dp_conditions_free(conditions);
    dp_rates_free(&rates);
    return good;
}

int dp_cmd_record(int argc, char **argv)
{
    request r = {.label = "", .tolerance = "", .zero_sign = "strict", .nan = "bits"};
    int status = 0;
    if (!parse(&argc, argv, &r, &status)) {
        return status;
    }
    dp_error error = {""};
    bool failed = false;
    if (!dp_style_of(r.json, r.csv, &r.style, &error) ||
        !record(&r, argc - 1, argv + 1, &failed, &error)) {
        return dp_report_error(&error);
    }
    return failed ? DP_EXIT_DIFFERENT : DP_EXIT_SAME;
}
