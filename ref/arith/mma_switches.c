/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "ref/arith/mma.h"

enum { PREFIX = 4, VALUES = 2 }; /* strlen("mma.") */

typedef struct {
    const char *name;
    size_t offset;
    const char *value[VALUES];
} switch_name;

static const switch_name names[] = {
    {"zero_group", offsetof(dp_mma_switches, zero_group), {"excluded", "scale"}},
    {"zero_sign", offsetof(dp_mma_switches, zero_sign), {"positive", "keep"}},
    {"narrow_subnormal", offsetof(dp_mma_switches, narrow_subnormal), {"emin", "normalised"}},
    {"fp8_c", offsetof(dp_mma_switches, fp8_c), {"early", "late"}},
    {"disabled_c", offsetof(dp_mma_switches, disabled_c), {"positive", "negative"}},
};
enum { SWITCHES = sizeof names / sizeof names[0] };

DP_STATIC_ASSERT(sizeof(dp_mma_switches) == SWITCHES, "every switch has a name");

size_t dp_mma_switches_text(const dp_mma_switches *switches, char *text, size_t size)
{
    static const dp_mma_switches defaults;
    const unsigned char *fields = (const unsigned char *)(switches ? switches : &defaults);
    size_t length = 0;
    for (size_t i = 0; i < SWITCHES; i++) {
        const size_t value = fields[names[i].offset];
        const int written =
            snprintf(length < size ? text + length : NULL, length < size ? size - length : 0,
                     "mma.%s=%s\n", names[i].name, value < VALUES ? names[i].value[value] : "?");
        length += written > 0 ? (size_t)written : 0;
    }
    return length;
}

bool dp_mma_switch_set(dp_mma_switches *switches, const char *name, const char *value,
                       dp_error *error)
{
    const char *bare = strncmp(name, "mma.", PREFIX) == 0 ? name + PREFIX : name;
    for (size_t i = 0; i < SWITCHES; i++) {
        if (strcmp(bare, names[i].name) != 0) {
            continue;
        }
        for (unsigned v = 0; v < VALUES; v++) {
            if (strcmp(value, names[i].value[v]) == 0) {
                ((unsigned char *)switches)[names[i].offset] = (unsigned char)v;
                return true;
            }
        }
        return dp_fail(error, "switch mma.%s: no value \"%s\": use %s or %s", bare, value,
                       names[i].value[0], names[i].value[1]);
    }
    return dp_fail(error, "switch %s: no such switch of the matrix units: see ref/arith/MMA.md",
                   name);
}

/* Copy [from, to) into a string of `size` bytes; false if it does not fit. */
static bool copy_span(char *out, size_t size, const char *from, const char *to)
{
    const size_t length = (size_t)(to - from);
    if (length >= size) {
        return false;
    }
    memcpy(out, from, length);
    out[length] = '\0';
    return true;
}

bool dp_mma_switches_parse(dp_mma_switches *switches, const char *text, dp_error *error)
{
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        if (end == NULL) {
            end = text + strlen(text);
        }
        if (strncmp(text, "mma.", PREFIX) == 0) {
            char name[64];
            char value[64];
            const char *equal = memchr(text, '=', (size_t)(end - text));
            if (equal == NULL || !copy_span(name, sizeof name, text, equal) ||
                !copy_span(value, sizeof value, equal + 1, end)) {
                return dp_fail(error, "switches: line \"%.*s\" is not NAME=VALUE: correct it",
                               (int)(end - text < 80 ? end - text : 80), text);
            }
            if (!dp_mma_switch_set(switches, name, value, error)) {
                return false;
            }
        }
        text = *end == '\0' ? end : end + 1;
    }
    return true;
}
