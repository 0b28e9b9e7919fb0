/* SPDX-License-Identifier: MIT */
#include "analysis/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static bool starts_like_number(const char *text)
{
    return text[0] != '\0' && isspace((unsigned char)text[0]) == 0;
}

bool dp_parse_i64(const char *where, const char *text, int64_t low, int64_t high, int64_t *value,
                  dp_error *error)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+' ? 1 : 0);
    const int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
    char *end = NULL;
    errno = 0;
    const long long parsed = strtoll(text, &end, base);
    const bool whole = starts_like_number(text) && end != text && *end == '\0';
    if (!whole || errno == ERANGE || parsed < low || parsed > high) {
        return dp_fail(error,
                       "%s: '%.64s' is not %s: give a whole number from %" PRId64 " to %" PRId64,
                       where, text, whole ? "in range" : "a whole number", low, high);
    }
    *value = parsed;
    return true;
}

bool dp_parse_f64(const char *where, const char *text, double low, double high, double *value,
                  dp_error *error)
{
    char *end = NULL;
    const double parsed = strtod(text, &end);
    const bool whole = starts_like_number(text) && end != text && *end == '\0';
    if (!whole || !isfinite(parsed) || parsed < low || parsed > high) {
        return dp_fail(error, "%s: '%.64s' is not %s: give a number from %.17g to %.17g", where,
                       text, whole && !isnan(parsed) ? "in range" : "a number", low, high);
    }
    *value = parsed;
    return true;
}

bool dp_list_item(const char *text, size_t index, char *item, size_t size, bool *last)
{
    for (size_t i = 0; i < index; i++) {
        const char *comma = strchr(text, ',');
        if (comma == NULL) {
            return false;
        }
        text = comma + 1;
    }
    const size_t length = strcspn(text, ",");
    if (length >= size) {
        return false;
    }
    memcpy(item, text, length);
    item[length] = '\0';
    *last = text[length] == '\0';
    return true;
}

/* The item to parse next, or an error for a list that is too long or an item that is too long. */
static bool next_item(const char *where, const char *text, size_t index, size_t capacity,
                      char item[64], bool *last, dp_error *error)
{
    if (index >= capacity) {
        return dp_fail(error, "%s: the list is too long: give at most %zu numbers", where,
                       capacity);
    }
    if (!dp_list_item(text, index, item, 64, last)) {
        return dp_fail(error, "%s: '%.64s' is not a list of numbers: separate them with commas",
                       where, text);
    }
    return true;
}

bool dp_parse_i64_list(const char *where, const char *text, int64_t low, int64_t high,
                       int64_t *values, size_t capacity, size_t *count, dp_error *error)
{
    bool last = false;
    for (*count = 0; !last; (*count)++) {
        char item[64];
        if (!next_item(where, text, *count, capacity, item, &last, error) ||
            !dp_parse_i64(where, item, low, high, &values[*count], error)) {
            return false;
        }
    }
    return true;
}

bool dp_parse_f64_list(const char *where, const char *text, double low, double high, double *values,
                       size_t capacity, size_t *count, dp_error *error)
{
    bool last = false;
    for (*count = 0; !last; (*count)++) {
        char item[64];
        if (!next_item(where, text, *count, capacity, item, &last, error) ||
            !dp_parse_f64(where, item, low, high, &values[*count], error)) {
            return false;
        }
    }
    return true;
}

int dp_choice_index(const char *choices, const char *text)
{
    const size_t length = strlen(text);
    int index = 0;
    for (const char *choice = choices; length > 0; index++) {
        const size_t span = strcspn(choice, "|");
        if (span == length && memcmp(choice, text, length) == 0) {
            return index;
        }
        if (choice[span] == '\0') {
            break;
        }
        choice += span + 1;
    }
    return -1;
}
