/* SPDX-License-Identifier: MIT */
#include "ref/forward/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool parse_number(const char *text, double low, double high, double *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

static bool set_choice(const dp_field *f, char *where, const char *text)
{
    for (int i = 0; i < DP_FIELD_CHOICES && f->choices[i] != NULL; i++) {
        if (strcmp(text, f->choices[i]) == 0) {
            if (f->kind == DP_FIELD_BOOL) {
                const bool value = i != 0;
                memcpy(where, &value, sizeof value);
            } else {
                memcpy(where, &i, sizeof i);
            }
            return true;
        }
    }
    return false;
}

static bool refuse_choice(const dp_field *f, const char *text, dp_error *error)
{
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < DP_FIELD_CHOICES && f->choices[i] != NULL; i++) {
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " or " : "", f->choices[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return dp_fail(error, "%s=%s: unknown value: use %s", f->name, text, names);
}

static bool set_field(const dp_field *f, char *where, const char *text, dp_error *error)
{
    double value = 0.0;
    if (f->kind == DP_FIELD_BOOL || f->kind == DP_FIELD_CHOICE) {
        return set_choice(f, where, text) || refuse_choice(f, text, error);
    }
    if (f->kind == DP_FIELD_INT) {
        if (!parse_number(text, f->low, f->high, &value) || value != floor(value)) {
            return dp_fail(error, "%s=%s: not a whole number from %d to %d%s%s%s: give one",
                           f->name, text, f->low, f->high, f->choices[0] != NULL ? " (" : "",
                           f->choices[0] != NULL ? f->choices[0] : "",
                           f->choices[0] != NULL ? ")" : "");
        }
        const int number = (int)value;
        memcpy(where, &number, sizeof number);
        return true;
    }
    if (!parse_number(text, -3.4e38, 3.4e38, &value)) {
        return dp_fail(error, "%s=%s: not a finite number: give one", f->name, text);
    }
    const float number = (float)value;
    memcpy(where, &number, sizeof number);
    return true;
}

bool dp_fields_set(const dp_field *fields, size_t count, void *object, const char *assignment,
                   const char *what, dp_error *error)
{
    const char *equals = strchr(assignment, '=');
    const size_t length = equals != NULL ? (size_t)(equals - assignment) : 0;
    for (size_t i = 0; equals != NULL && i < count; i++) {
        if (strlen(fields[i].name) == length && strncmp(fields[i].name, assignment, length) == 0) {
            return set_field(&fields[i], (char *)object + fields[i].offset, equals + 1, error);
        }
    }
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "", fields[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return dp_fail(error, "%s '%s': no such %s: give name=value with one of: %s", what, assignment,
                   what, names);
}

void dp_fields_text(const dp_field *fields, size_t count, const void *object, char *text,
                    size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const char *where = (const char *)object + fields[i].offset;
        int n = 0;
        if (fields[i].kind == DP_FIELD_FLOAT) {
            float value;
            memcpy(&value, where, sizeof value);
            n = snprintf(text + used, size - used, "%s=%.9g\n", fields[i].name, (double)value);
        } else if (fields[i].kind == DP_FIELD_INT) {
            int value;
            memcpy(&value, where, sizeof value);
            n = snprintf(text + used, size - used, "%s=%d\n", fields[i].name, value);
        } else {
            int value = 0;
            bool flag = false;
            if (fields[i].kind == DP_FIELD_BOOL) {
                memcpy(&flag, where, sizeof flag);
                value = flag ? 1 : 0;
            } else {
                memcpy(&value, where, sizeof value);
            }
            n = snprintf(text + used, size - used, "%s=%s\n", fields[i].name,
                         fields[i].choices[value & (DP_FIELD_CHOICES - 1)]);
        }
        used += n > 0 ? (size_t)n : 0;
    }
}
