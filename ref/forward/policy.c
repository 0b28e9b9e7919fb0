/* SPDX-License-Identifier: MIT */
#include "ref/forward/policy.h"

#include "ref/forward/fields.h"

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

#define POLICY_FIELD(member) offsetof(dp_forward_policy, member)
#define SWITCH_FIELD(member) offsetof(dp_switches, member)
#define COEFFICIENT(i)       (offsetof(dp_forward_policy, coefficient) + (i) * sizeof(float))

static const dp_field POLICY_FIELDS[] = {
    {"map", DP_FIELD_CHOICE, POLICY_FIELD(map), 0, 0, {"affine", "polynomial", "ex2"}},
    {"a", DP_FIELD_FLOAT, COEFFICIENT(1), 0, 0, {0}},
    {"b", DP_FIELD_FLOAT, COEFFICIENT(0), 0, 0, {0}},
    {"c0", DP_FIELD_FLOAT, COEFFICIENT(0), 0, 0, {0}},
    {"c1", DP_FIELD_FLOAT, COEFFICIENT(1), 0, 0, {0}},
    {"c2", DP_FIELD_FLOAT, COEFFICIENT(2), 0, 0, {0}},
    {"c3", DP_FIELD_FLOAT, COEFFICIENT(3), 0, 0, {0}},
    {"degree", DP_FIELD_INT, POLICY_FIELD(degree), 0, 3, {0}},
    {"floor", DP_FIELD_FLOAT, POLICY_FIELD(map_floor), 0, 0, {0}},
    {"fold", DP_FIELD_BOOL, POLICY_FIELD(fold_k64), 0, 0, {"none", "k64"}},
    {"reference", DP_FIELD_CHOICE, POLICY_FIELD(reference), 0, 0, {"none", "anchor"}},
    {"anchor", DP_FIELD_INT, POLICY_FIELD(anchor_keys), 0, DP_TILE, {0}},
    {"margin", DP_FIELD_INT, POLICY_FIELD(margin), -1000, 1000, {0}},
    {"shift", DP_FIELD_INT, POLICY_FIELD(shift), 0, 126, {0}},
    {"density",
     DP_FIELD_INT,
     POLICY_FIELD(density),
     0,
     4,
     {"a unit is four of the sixteen pairs of a block"}},
    {"native-stages", DP_FIELD_INT, POLICY_FIELD(native_stages), 0, 3, {0}},
    {"denominator", DP_FIELD_CHOICE, POLICY_FIELD(denominator), 0, 0, {"producer", "correction"}},
    {"clear-zero", DP_FIELD_BOOL, POLICY_FIELD(clear_zero), 0, 0, {"off", "on"}},
    {"rebase-q1", DP_FIELD_BOOL, POLICY_FIELD(rebase_q1), 0, 0, {"off", "on"}},
};

static const dp_field SWITCH_FIELDS[] = {
    {"margin-units", DP_FIELD_BOOL, SWITCH_FIELD(margin_log2), 0, 0, {"raw", "log2"}},
    {"fma-denominator", DP_FIELD_BOOL, SWITCH_FIELD(fma_denominator), 0, 0, {"off", "on"}},
    {"multiplier", DP_FIELD_BOOL, SWITCH_FIELD(exact_multiplier), 0, 0, {"kernel", "exact"}},
    {"key-order", DP_FIELD_BOOL, SWITCH_FIELD(natural_order), 0, 0, {"anchor", "natural"}},
    {"fault-scale-first", DP_FIELD_BOOL, SWITCH_FIELD(fault_scale_first), 0, 0, {"off", "on"}},
    {"v-zero-block", DP_FIELD_BOOL, SWITCH_FIELD(v_zero_nan), 0, 0, {"zero", "nan"}},
    {"native-d64", DP_FIELD_BOOL, SWITCH_FIELD(native_d64), 0, 0, {"off", "on"}},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool dp_forward_policy_set(dp_forward_policy *policy, const char *assignment, dp_error *error)
{
    return dp_fields_set(POLICY_FIELDS, COUNT(POLICY_FIELDS), policy, assignment, "field", error);
}

void dp_forward_policy_text(const dp_forward_policy *policy, char *text, size_t size)
{
    dp_fields_text(POLICY_FIELDS, COUNT(POLICY_FIELDS), policy, text, size);
}

dp_switches dp_switches_default(void)
{
    dp_switches switches;
    memset(&switches, 0, sizeof switches);
    return switches;
}

bool dp_switches_set(dp_switches *switches, const char *assignment, dp_error *error)
{
    return dp_fields_set(SWITCH_FIELDS, COUNT(SWITCH_FIELDS), switches, assignment, "switch",
                         error);
}

void dp_switches_text(const dp_switches *switches, char *text, size_t size)
{
    dp_fields_text(SWITCH_FIELDS, COUNT(SWITCH_FIELDS), switches, text, size);
}
