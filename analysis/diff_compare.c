/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "analysis/diff.h"

size_t dp_diff_first(const dp_dump *dump, dp_dump_id id)
{
    return dump->file_first[id] * (dp_dump_datasets[id].kind == DP_DUMP_CODES ? 2 : 1);
}

size_t dp_diff_columns(const dp_dump *dump, dp_dump_id id)
{
    const size_t width = dp_dump_width(dump, id) - dump->file_first[id];
    const size_t stored = dump->file_width[id] < width ? dump->file_width[id] : width;
    return dp_dump_datasets[id].kind == DP_DUMP_CODES ? 2 * stored : stored;
}

uint32_t dp_diff_element(dp_dump_id id, const void *row, size_t column)
{
    switch (dp_dump_datasets[id].kind) {
    case DP_DUMP_CODES:
        return (uint32_t)((const uint8_t *)row)[column / 2] >> (column % 2 * 4) & 15u;
    case DP_DUMP_BYTES:
        return ((const uint8_t *)row)[column];
    case DP_DUMP_COUNT:
    case DP_DUMP_BF16:
        return ((const uint16_t *)row)[column];
    default:
        return ((const uint32_t *)row)[column];
    }
}

/* A number with sign and magnitude as one on a line. */
static int64_t ordered(uint32_t bits, uint32_t sign)
{
    const int64_t magnitude = bits & (sign - 1);
    return (bits & sign) != 0 ? -magnitude : magnitude;
}

bool dp_diff_equal(const dp_diff_rules *rules, dp_dump_id id, uint32_t expected, uint32_t found,
                   uint64_t *distance)
{
    const dp_dump_kind kind = dp_dump_datasets[id].kind;
    *distance = 0;
    if (expected == found) {
        return true;
    }
    if (kind == DP_DUMP_BYTES || kind == DP_DUMP_COUNT) {
        *distance = expected > found ? expected - found : found - expected;
        return false;
    }
    const uint32_t sign = kind == DP_DUMP_CODES ? 8u : kind == DP_DUMP_BF16 ? 0x8000u : 1u << 31;
    const uint32_t infinity = kind == DP_DUMP_CODES  ? 15u
                              : kind == DP_DUMP_BF16 ? 0x7F80u
                                                     : 0x7F800000u;
    const uint32_t a = expected & (sign - 1);
    const uint32_t b = found & (sign - 1);
    if (a > infinity || b > infinity) { /* a NaN: no distance */
        *distance = UINT64_MAX;
        return a > infinity && b > infinity && rules->nan_equal;
    }
    const int64_t d = ordered(expected, sign) - ordered(found, sign);
    *distance = (uint64_t)(d < 0 ? -d : d);
    if (d == 0) { /* zeros of two signs */
        return rules->ignore_zero_sign;
    }
    if (a == infinity || b == infinity) { /* never within a tolerance of anything else */
        return false;
    }
    return *distance <= rules->ulps[id];
}

uint64_t dp_diff_count(const dp_unit *unit, const dp_diff_rules *rules, dp_dump_id id,
                       const void *expected)
{
    const dp_dump *dump = unit->dump;
    const bool query = dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS;
    const size_t rows = query ? unit->rows : dp_dump_head_rows(dump, id);
    const size_t bytes = dp_dump_width(dump, id) * dp_dump_element(id);
    const size_t first = dp_diff_first(dump, id);
    const size_t columns = dp_diff_columns(dump, id);
    uint64_t count = 0;
    for (size_t r = 0; r < rows; r++) {
        const char *a = (const char *)expected + r * bytes;
        const char *b = (const char *)unit->dumped.data[id] + r * bytes;
        if (memcmp(a, b, bytes) == 0) {
            continue;
        }
        for (size_t c = first; c < first + columns; c++) {
            uint64_t distance;
            count += !dp_diff_equal(rules, id, dp_diff_element(id, a, c), dp_diff_element(id, b, c),
                                    &distance);
        }
    }
    return count;
}

/* A tolerance that takes a gain of 1.05 for agreement proves nothing. */
static uint64_t most_ulps(dp_dump_kind kind)
{
    return kind == DP_DUMP_BF16 ? 6 : 419430; /* 0.05 of 2^7 and of 2^23 */
}

static bool rule_of(const char *text, size_t length, dp_diff_rules *rules, dp_error *error)
{
    char item[64];
    unsigned long long ulps = 0;
    char rule[16] = "";
    if (length >= sizeof item) {
        return dp_fail(error, "--tolerance '%.40s': too long: give stage=ulps:N", text);
    }
    memcpy(item, text, length);
    item[length] = '\0';
    char *equals = strchr(item, '=');
    char rest = '\0';
    if (equals != NULL) {
        *equals = '\0';
        if (strcmp(equals + 1, "bits") == 0) {
            memcpy(rule, "bits", 5);
        } else if (sscanf(equals + 1, "ulps:%7llu%c", &ulps, &rest) == 1) {
            memcpy(rule, "ulps", 5);
        }
    }
    bool found = false;
    for (int i = 0; rule[0] != '\0' && i < DP_DUMP_DATASETS; i++) {
        const dp_dump_dataset *set = &dp_dump_datasets[i];
        const bool named = strcmp(item, set->name) == 0;
        const bool real = set->kind == DP_DUMP_F32 || set->kind == DP_DUMP_BF16;
        if (named && !real && ulps > 0) {
            return dp_fail(error, "--tolerance %s: it is exact, and compared by bits: leave it out",
                           set->name);
        }
        if (named || (real && strcmp(item, set->stage) == 0)) {
            if (ulps > most_ulps(set->kind)) {
                return dp_fail(error,
                               "--tolerance %s=ulps:%llu: it would pass %s times 1.05: give at "
                               "most %llu",
                               item, ulps, set->name, (unsigned long long)most_ulps(set->kind));
            }
            rules->ulps[i] = ulps;
            found = true;
        }
    }
    return found || dp_fail(error,
                            "--tolerance '%s': give STAGE=ulps:N or STAGE=bits with one of score, "
                            "reference, row_sum, accumulate, output, o, lse",
                            item);
}

bool dp_diff_rules_parse(const char *text, dp_diff_rules *rules, dp_error *error)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        if (!rule_of(text, length, rules, error)) {
            return false;
        }
        text += length;
        text += *text == ',' ? 1 : 0;
    }
    return true;
}
