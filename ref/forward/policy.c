/* SPDX-License-Identifier: MIT */
#include "ref/forward/policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL "MrHuff/fp4-fa4 at edde9bcb, "

/* Coefficients are the floats of the builds; only {B, A} are stored for an affine map. */
#define AFFINE(a, b)                                                                               \
    .map = DP_MAP_AFFINE, .coefficient = {b, a}, .degree = 1, .map_floor = -INFINITY
#define FAST_SCHEDULE                                                                              \
    .fold_k64 = true, .reference = DP_REFERENCE_NONE, .anchor_keys = 0, .margin = 0, .shift = 16,  \
    .density = 0, .native_stages = 3, .denominator = DP_DENOMINATOR_PRODUCER, .clear_zero = false, \
    .rebase_q1 = true
#define ACCURATE_SCHEDULE                                                                          \
    .fold_k64 = false, .reference = DP_REFERENCE_ANCHOR, .anchor_keys = 32, .margin = 64,          \
    .shift = 8, .density = 1, .native_stages = 3, .denominator = DP_DENOMINATOR_CORRECTION,        \
    .clear_zero = true, .rebase_q1 = false
#define GUARD_SCHEDULE(margin_, shift_)                                                            \
    .fold_k64 = true, .reference = DP_REFERENCE_ANCHOR, .anchor_keys = 128, .margin = (margin_),   \
    .shift = (shift_), .density = 1, .native_stages = 2, .denominator = DP_DENOMINATOR_PRODUCER,   \
    .clear_zero = false, .rebase_q1 = true

static const dp_forward_policy POLICIES[] = {
    {.name = "fast", .provenance = KERNEL "policy fast", AFFINE(1.5f, 1.2f), FAST_SCHEDULE},
    {.name = "accurate",
     .provenance = KERNEL "policy accurate",
     AFFINE(1.65f, 0.8f),
     ACCURATE_SCHEDULE},
    {.name = "guard-1.3b",
     .provenance = KERNEL "balanced build for Wan2.1 1.3B layers 27-29",
     AFFINE(1.65f, 0.8f),
     GUARD_SCHEDULE(110, 16)},
    {.name = "guard-14b",
     .provenance = KERNEL "balanced build for Wan2.1 14B layers 33-34 and 38-39",
     AFFINE(1.65f, 0.8f),
     GUARD_SCHEDULE(112, 14)},
    {.name = "wan", .provenance = KERNEL "Wan bundle map", AFFINE(1.6f, 0.95f), FAST_SCHEDULE},
    {.name = "ideal",
     .provenance = "fast with 2^x on every lane: the codes that rounding the exponential gives",
     .map = DP_MAP_EX2,
     .coefficient = {0},
     .degree = 0,
     .map_floor = -INFINITY,
     FAST_SCHEDULE},
    {.name = "ideal-accurate",
     .provenance = "accurate with 2^x on every lane",
     .map = DP_MAP_EX2,
     .coefficient = {0},
     .degree = 0,
     .map_floor = -INFINITY,
     ACCURATE_SCHEDULE},
    {.name = "cubic",
     .provenance = "historical NV/NV cubic of the technical report v2, in the fast schedule",
     .map = DP_MAP_POLYNOMIAL,
     .coefficient = {0.99202336f, 0.63145205f, 0.28625049f, 0.07839806f},
     .degree = 3,
     .map_floor = -INFINITY,
     FAST_SCHEDULE},
    {.name = "quadratic",
     .provenance =
         "degree 2 of this project: least squares to 2^x over [-2, log2 6] among the "
         "parabolas whose vertex, 0.24, rounds to 0; a score below it counts as the vertex",
     .map = DP_MAP_POLYNOMIAL,
     .coefficient = {0.879341148f, 0.926581374f, 0.335717889f},
     .degree = 2,
     .map_floor = -1.38f,
     FAST_SCHEDULE},
    {.name = "affine-nvnv",
     .provenance = "historical NV/NV affine map of the technical report v2, in the fast schedule",
     AFFINE(1.62330034f, 0.92083546f),
     FAST_SCHEDULE},
};

#define POLICY_COUNT (sizeof POLICIES / sizeof POLICIES[0])

size_t dp_forward_policy_count(void)
{
    return POLICY_COUNT;
}

const dp_forward_policy *dp_forward_policy_at(size_t index)
{
    return &POLICIES[index < POLICY_COUNT ? index : 0];
}

bool dp_forward_policy_find(const char *name, dp_forward_policy *policy, dp_error *error)
{
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < POLICY_COUNT; i++) {
        if (strcmp(POLICIES[i].name, name) == 0) {
            *policy = POLICIES[i];
            return true;
        }
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "", POLICIES[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return dp_fail(error, "policy '%s': no such policy: use one of: %s", name, names);
}

bool dp_forward_policy_native_pair(const dp_forward_policy *policy, int stage, int quarter,
                                   int pair)
{
    if (policy->map == DP_MAP_EX2) {
        return true;
    }
    if (((policy->native_stages >> stage) & 1u) == 0) {
        return false;
    }
    /* Four pairs a unit: {Q, Q+8, 4, 12} in the sources, {Q+2 mod 4, 6} and eight on from the
     * published figures of density 2; the order of the last two units is assumed [D10]. */
    static const int turn[4] = {0, 2, 1, 3};
    static const int fixed[4] = {4, 6, 5, 7};
    const int half = pair % 8;
    for (int step = 0; step < policy->density && step < 4; step++) {
        if (half == (quarter + turn[step]) % 4 || half == fixed[step]) {
            return true;
        }
    }
    return false;
}

/* ---- text <-> fields ---------------------------------------------------------------------- */

typedef enum { FIELD_BOOL, FIELD_INT, FIELD_FLOAT, FIELD_CHOICE } field_kind;

typedef struct {
    const char *name;
    field_kind kind;
    size_t offset;
    int low, high;          /* INT: the range accepted             */
    const char *choices[4]; /* CHOICE and BOOL: text of 0, 1, 2, 3. INT: the reason of the range */
} field;

#define POLICY_FIELD(member) offsetof(dp_forward_policy, member)
#define SWITCH_FIELD(member) offsetof(dp_switches, member)
#define COEFFICIENT(i)       (offsetof(dp_forward_policy, coefficient) + (i) * sizeof(float))

static const field POLICY_FIELDS[] = {
    {"map", FIELD_CHOICE, POLICY_FIELD(map), 0, 0, {"affine", "polynomial", "ex2"}},
    {"a", FIELD_FLOAT, COEFFICIENT(1), 0, 0, {0}},
    {"b", FIELD_FLOAT, COEFFICIENT(0), 0, 0, {0}},
    {"c0", FIELD_FLOAT, COEFFICIENT(0), 0, 0, {0}},
    {"c1", FIELD_FLOAT, COEFFICIENT(1), 0, 0, {0}},
    {"c2", FIELD_FLOAT, COEFFICIENT(2), 0, 0, {0}},
    {"c3", FIELD_FLOAT, COEFFICIENT(3), 0, 0, {0}},
    {"degree", FIELD_INT, POLICY_FIELD(degree), 0, 3, {0}},
    {"floor", FIELD_FLOAT, POLICY_FIELD(map_floor), 0, 0, {0}},
    {"fold", FIELD_BOOL, POLICY_FIELD(fold_k64), 0, 0, {"none", "k64"}},
    {"reference", FIELD_CHOICE, POLICY_FIELD(reference), 0, 0, {"none", "anchor"}},
    {"anchor", FIELD_INT, POLICY_FIELD(anchor_keys), 0, DP_TILE, {0}},
    {"margin", FIELD_INT, POLICY_FIELD(margin), -1000, 1000, {0}},
    {"shift", FIELD_INT, POLICY_FIELD(shift), 0, 126, {0}},
    {"density",
     FIELD_INT,
     POLICY_FIELD(density),
     0,
     4,
     {"a unit is four of the sixteen pairs of a block"}},
    {"native-stages", FIELD_INT, POLICY_FIELD(native_stages), 0, 3, {0}},
    {"denominator", FIELD_CHOICE, POLICY_FIELD(denominator), 0, 0, {"producer", "correction"}},
    {"clear-zero", FIELD_BOOL, POLICY_FIELD(clear_zero), 0, 0, {"off", "on"}},
    {"rebase-q1", FIELD_BOOL, POLICY_FIELD(rebase_q1), 0, 0, {"off", "on"}},
};

static const field SWITCH_FIELDS[] = {
    {"margin-units", FIELD_BOOL, SWITCH_FIELD(margin_log2), 0, 0, {"raw", "log2"}},
    {"fma-denominator", FIELD_BOOL, SWITCH_FIELD(fma_denominator), 0, 0, {"off", "on"}},
    {"multiplier", FIELD_BOOL, SWITCH_FIELD(exact_multiplier), 0, 0, {"kernel", "exact"}},
    {"key-order", FIELD_BOOL, SWITCH_FIELD(natural_order), 0, 0, {"anchor", "natural"}},
    {"fault-scale-first", FIELD_BOOL, SWITCH_FIELD(fault_scale_first), 0, 0, {"off", "on"}},
    {"v-zero-block", FIELD_BOOL, SWITCH_FIELD(v_zero_nan), 0, 0, {"zero", "nan"}},
    {"native-d64", FIELD_BOOL, SWITCH_FIELD(native_d64), 0, 0, {"off", "on"}},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool parse_number(const char *text, double low, double high, double *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

static bool set_choice(const field *f, char *where, const char *text)
{
    for (int i = 0; i < 4 && f->choices[i] != NULL; i++) {
        if (strcmp(text, f->choices[i]) == 0) {
            if (f->kind == FIELD_BOOL) {
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

static bool set_field(const field *f, char *where, const char *text, dp_error *error)
{
    double value = 0.0;
    if (f->kind == FIELD_BOOL || f->kind == FIELD_CHOICE) {
        return set_choice(f, where, text) ||
               dp_fail(error, "%s=%s: unknown value: use %s or %s%s%s", f->name, text,
                       f->choices[0], f->choices[1], f->choices[2] != NULL ? " or " : "",
                       f->choices[2] != NULL ? f->choices[2] : "");
    }
    if (f->kind == FIELD_INT) {
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

static bool set_by_name(const field *fields, size_t count, void *object, const char *assignment,
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

static void text_of(const field *fields, size_t count, const void *object, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const char *where = (const char *)object + fields[i].offset;
        int n = 0;
        if (fields[i].kind == FIELD_FLOAT) {
            float value;
            memcpy(&value, where, sizeof value);
            n = snprintf(text + used, size - used, "%s=%.9g\n", fields[i].name, (double)value);
        } else if (fields[i].kind == FIELD_INT) {
            int value;
            memcpy(&value, where, sizeof value);
            n = snprintf(text + used, size - used, "%s=%d\n", fields[i].name, value);
        } else {
            int value = 0;
            bool flag = false;
            if (fields[i].kind == FIELD_BOOL) {
                memcpy(&flag, where, sizeof flag);
                value = flag ? 1 : 0;
            } else {
                memcpy(&value, where, sizeof value);
            }
            n = snprintf(text + used, size - used, "%s=%s\n", fields[i].name,
                         fields[i].choices[value & 3]);
        }
        used += n > 0 ? (size_t)n : 0;
    }
}

bool dp_forward_policy_set(dp_forward_policy *policy, const char *assignment, dp_error *error)
{
    return set_by_name(POLICY_FIELDS, COUNT(POLICY_FIELDS), policy, assignment, "field", error);
}

void dp_forward_policy_text(const dp_forward_policy *policy, char *text, size_t size)
{
    text_of(POLICY_FIELDS, COUNT(POLICY_FIELDS), policy, text, size);
}

dp_switches dp_switches_default(void)
{
    dp_switches switches;
    memset(&switches, 0, sizeof switches);
    return switches;
}

bool dp_switches_set(dp_switches *switches, const char *assignment, dp_error *error)
{
    return set_by_name(SWITCH_FIELDS, COUNT(SWITCH_FIELDS), switches, assignment, "switch", error);
}

void dp_switches_text(const dp_switches *switches, char *text, size_t size)
{
    text_of(SWITCH_FIELDS, COUNT(SWITCH_FIELDS), switches, text, size);
}
