/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* gmtime_r */
#include "analysis/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STAGE(name_)                                                                               \
    {name_ "_elements", "elements of the stage that were compared", 0},                            \
    {                                                                                              \
        name_ "_mismatches", "those that differ", -1                                               \
    }

const dp_run_column dp_run_columns[DP_RUN_NUMBERS] = {
    {"elements", "compared, over all stages", 0},
    {"mismatches", "those that differ; another key order than the policy's counts as one", -1},
    {"mismatch_rate", "mismatches / elements", -1},
    STAGE("quantize"),
    STAGE("score"),
    STAGE("reference"),
    STAGE("scale"),
    STAGE("code"),
    STAGE("denominator"),
    STAGE("accumulate"),
    STAGE("output"),
    {"code_match", "share of the codes of P that are those of 2^x", 1},
    {"zero_scale", "fraction of the blocks of P whose scale byte is 0", -1},
    {"zero_payload", "fraction of the visible entries of P that are 0", -1},
    {"lost_mass", "probability on the entries that are 0, over all probability", -1},
    {"p_rel_l2", "relative L2 error of P (range)", -1},
    {"rel_l2", "relative L2 error of the output", -1},
    {"cosine", "of the output", 1},
    {"rmse", "root mean square error of the output", -1},
    {"rms", "root mean square of the output", 0},
    {"nonfinite_rows", "rows of the output with NaN or Inf", -1},
};

const dp_run_text_column dp_run_texts[DP_RUN_TEXTS] = {
    {"time", 20},        {"label", 128},    {"series", 128}, {"kind", 8},
    {"policy", 32},      {"epoch", 4},      {"device", 64},  {"producer", 64},
    {"first_wrong", 16}, {"diagnosis", 48}, {"failed", 255}};

void dp_run_set_text(dp_run_row *row, dp_run_text column, const char *text)
{
    size_t length = strlen(text);
    if (length > dp_run_texts[column].size) {
        length = dp_run_texts[column].size;
        while (length > 0 && ((unsigned char)text[length] & 0xC0u) == 0x80u) {
            length--; /* not inside a character of UTF-8 */
        }
    }
    memset(row->text[column], 0, DP_RUN_TEXT_SIZE);
    memcpy(row->text[column], text, length);
}

void dp_run_set(dp_run_row *row, dp_run_number column, double value)
{
    row->number[column] = value;
    row->known[column] = true;
}

void dp_history_free(dp_history *history)
{
    free(history->rows);
    memset(history, 0, sizeof *history);
}

/* Days since 1970-01-01 of a date of the Gregorian calendar: years begin in March, so that the leap
 * day is the last of its year. */
static int64_t days_of(int64_t year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 719468;
}

static int days_in(int year, int month)
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* `count` digits; *at moves behind them. -1: there are none. */
static int digits(const char **at, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if ((*at)[i] < '0' || (*at)[i] > '9') {
            return -1;
        }
        value = value * 10 + (*at)[i] - '0';
    }
    *at += count;
    return value;
}

static bool take(const char **at, char wanted)
{
    const bool there = **at == wanted;
    *at += there;
    return there;
}

/* "+01:00", "-0530", "Z" or nothing, in seconds. */
static bool take_offset(const char **at, int *seconds)
{
    *seconds = 0;
    if (**at == '\0') {
        return true;
    }
    if (**at == 'Z') {
        (*at)++;
        return **at == '\0';
    }
    const int sign = **at == '+' ? 1 : **at == '-' ? -1 : 0;
    if (sign == 0) {
        return false;
    }
    (*at)++;
    const int hours = digits(at, 2);
    *at += **at == ':';
    const int minutes = digits(at, 2);
    *seconds = sign * (hours * 3600 + minutes * 60);
    return hours >= 0 && hours <= 23 && minutes >= 0 && minutes <= 59 && **at == '\0';
}

static bool take_time(const char *at, int64_t *seconds)
{
    int hour = 0, minute = 0, second = 0, offset = 0;
    const int year = digits(&at, 4);
    if (year < 1 || !take(&at, '-')) {
        return false;
    }
    const int month = digits(&at, 2);
    if (month < 1 || month > 12 || !take(&at, '-')) {
        return false;
    }
    const int day = digits(&at, 2);
    if (day < 1 || day > days_in(year, month)) {
        return false;
    }
    if (*at == 'T' || *at == ' ') {
        at++;
        hour = digits(&at, 2);
        if (hour < 0 || hour > 23 || !take(&at, ':')) {
            return false;
        }
        minute = digits(&at, 2);
        if (minute < 0 || minute > 59) {
            return false;
        }
        if (*at == ':') {
            at++;
            second = digits(&at, 2);
        }
        if (second < 0 || second > 59 || !take_offset(&at, &offset)) {
            return false;
        }
    }
    *seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
    return *at == '\0';
}

bool dp_time_parse(const char *text, char utc[DP_RUN_TEXT_SIZE], dp_error *error)
{
    int64_t seconds = (int64_t)time(NULL);
    struct tm parts;
    if (text != NULL && !take_time(text, &seconds)) {
        return dp_fail(error,
                       "--time: '%.40s' is no time: give ISO 8601, such as 2026-11-29, "
                       "2026-11-29T21:30:00Z or 2026-11-29T22:30+01:00",
                       text);
    }
    const time_t stamp = (time_t)seconds;
    memset(utc, 0, DP_RUN_TEXT_SIZE);
    if (gmtime_r(&stamp, &parts) == NULL ||
        strftime(utc, DP_RUN_TEXT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        return dp_fail(error, "--time: '%.40s' is out of range: give another", text);
    }
    return true;
}
