/* SPDX-License-Identifier: MIT
 *
 * The switches of a route by name, and which of them go together.
 */
#include <stdio.h>

#include "ref/arith/exp2_poly.h"
#include "ref/forward/fields.h"
#include "ref/forward/route.h"

#define AT(member) offsetof(dp_route, member)
#define OFF_ON                                                                                     \
    {                                                                                              \
        "off", "on"                                                                                \
    }
#define OPERANDS                                                                                   \
    {                                                                                              \
        "bf16", "e4m3", "mxfp8", "nvfp4", "mxfp4", "e4m3-sm90", "e4m3-sm89", "nvfp4-k64", "int8"   \
    }
#define RULES                                                                                      \
    {                                                                                              \
        "plain", "max-sixth", "ex2-block", "log2", "log2-ceil", "log2-near", "rounded", "scaled"   \
    }

static const dp_field FIELDS[] = {
    {"qk", DP_FIELD_CHOICE, AT(qk), 0, 0, OPERANDS},
    {"v", DP_FIELD_CHOICE, AT(v), 0, 0, OPERANDS},
    {"p", DP_FIELD_CHOICE, AT(p), 0, 0, OPERANDS},
    {"rule", DP_FIELD_CHOICE, AT(rule), 0, 0, RULES},
    {"offset", DP_FIELD_FLOAT, AT(offset_log2), 0, 0, {0}},
    {"threshold", DP_FIELD_FLOAT, AT(threshold_log2), 0, 0, {0}},
    {"sf-bias", DP_FIELD_FLOAT, AT(sf_bias), 0, 0, {0}},
    {"lift", DP_FIELD_FLOAT, AT(lift), 0, 0, {0}},
    {"lift-row", DP_FIELD_BOOL, AT(lift_row), 0, 0, OFF_ON},
    {"divide", DP_FIELD_CHOICE, AT(divide), 0, 0, {"reciprocal", "rcp", "exact"}},
    {"floor", DP_FIELD_FLOAT, AT(divisor_floor), 0, 0, {0}},
    {"p-bf16", DP_FIELD_BOOL, AT(p_bf16), 0, 0, OFF_ON},
    {"sum", DP_FIELD_CHOICE, AT(sum), 0, 0, {"unrounded", "bf16", "represented"}},
    {"fake", DP_FIELD_BOOL, AT(fake), 0, 0, OFF_ON},
    {"fresh", DP_FIELD_BOOL, AT(fresh), 0, 0, OFF_ON},
    {"order", DP_FIELD_BOOL, AT(ascending), 0, 0, {"descending", "ascending"}},
    {"tile", DP_FIELD_INT, AT(tile), 0, DP_ROUTE_TILE, {"a multiple of 32; 0 is 128"}},
    {"lse-offset", DP_FIELD_FLOAT, AT(lse_offset_log2), 0, 0, {0}},
    {"floor0", DP_FIELD_BOOL, AT(floor0), 0, 0, OFF_ON},
    {"residual", DP_FIELD_BOOL, AT(residual), 0, 0, OFF_ON},
    {"smooth", DP_FIELD_CHOICE, AT(smooth), 0, 0, {"none", "k", "k-qtile", "k-qall"}},
    {"delta", DP_FIELD_BOOL, AT(delta_f32), 0, 0, {"bf16", "f32"}},
    {"int8", DP_FIELD_CHOICE, AT(int8), 0, 0, {"block", "warp", "thread"}},
    {"v-channel", DP_FIELD_FLOAT, AT(v_channel), 0, 0, {0}},
    {"shiftless", DP_FIELD_BOOL, AT(direct.shiftless), 0, 0, OFF_ON},
    {"overflow", DP_FIELD_BOOL, AT(direct.overflow), 0, 0, {"saturate", "nan"}},
    {"degree", DP_FIELD_INT, AT(direct.degree), 0, 3, {"of the map; 0 is 2^x"}},
    {"c0", DP_FIELD_FLOAT, AT(direct.map[0]), 0, 0, {0}},
    {"c1", DP_FIELD_FLOAT, AT(direct.map[1]), 0, 0, {0}},
    {"c2", DP_FIELD_FLOAT, AT(direct.map[2]), 0, 0, {0}},
    {"c3", DP_FIELD_FLOAT, AT(direct.map[3]), 0, 0, {0}},
    {"map-floor", DP_FIELD_FLOAT, AT(direct.map_floor), 0, 0, {0}},
    {"sampled", DP_FIELD_INT, AT(direct.sampled_words), 0, 3, {"words of 8 keys; 0 is all"}},
};

#define FIELD_COUNT (sizeof FIELDS / sizeof FIELDS[0])

bool dp_route_set(dp_route *route, const char *assignment, dp_error *error)
{
    static const char polynomial[] = "polynomial=";
    const size_t length = sizeof polynomial - 1;
    if (strncmp(assignment, polynomial, length) != 0) {
        return dp_fields_set(FIELDS, FIELD_COUNT, route, assignment, "route switch", error);
    }
    const dp_exp2_lanes *lanes = dp_exp2_lanes_by_name(assignment + length);
    if (lanes == NULL) {
        return dp_fail(error, "%s: no such lanes: use off, or a name of ref/arith/exp2_poly.c",
                       assignment);
    }
    route->polynomial = lanes->name;
    return true;
}

void dp_route_text(const dp_route *route, char *text, size_t size)
{
    const int n = snprintf(text, size, "polynomial=%s\n",
                           route->polynomial != NULL ? route->polynomial : "off");
    if (n > 0 && (size_t)n < size) {
        dp_fields_text(FIELDS, FIELD_COUNT, route, text + n, size - (size_t)n);
    }
}

size_t dp_route_tile_keys(const dp_route *route)
{
    return route->tile > 0 ? (size_t)route->tile : (size_t)DP_TILE;
}

float dp_route_lift(const dp_route *route)
{
    return route->lift > 0.0f ? route->lift : 1.0f;
}

/* Payload formats that a rule can make. */
static bool rule_fits(const dp_route *route)
{
    switch (route->rule) {
    case DP_P_PLAIN:
        return route->p == DP_OPERAND_BF16 || route->p == DP_OPERAND_E4M3 ||
               route->p == DP_OPERAND_E4M3_SM90 || route->p == DP_OPERAND_E4M3_SM89;
    case DP_P_SCALED:
        return route->p == DP_OPERAND_BF16;
    case DP_P_LOG2_CEIL:
    case DP_P_LOG2_NEAR:
        return route->p == DP_OPERAND_MXFP8 || route->p == DP_OPERAND_MXFP4;
    default:
        return route->p == DP_OPERAND_NVFP4;
    }
}

static bool is_amplitude(const dp_route *route)
{
    return route->qk == DP_OPERAND_MXFP4 || route->v == DP_OPERAND_MXFP4;
}

bool dp_route_check(const dp_route *route, dp_error *error)
{
    const char *name = route->name != NULL ? route->name : "route";
    if (route->v != route->p) {
        return dp_fail(error, "%s: v and p have different formats: no product takes them", name);
    }
    if (!rule_fits(route)) {
        return dp_fail(
            error,
            "%s: rule does not make payloads of format p: plain goes with bf16 and e4m3, "
            "scaled with bf16, log2-ceil and log2-near with mxfp8 and mxfp4, the others "
            "with nvfp4",
            name);
    }
    if (route->tile % 32 != 0 || route->tile < 0 || route->tile > DP_ROUTE_TILE) {
        return dp_fail(error, "%s: tile=%d: give a multiple of 32 up to %d, or 0", name,
                       route->tile, DP_ROUTE_TILE);
    }
    if (route->residual && (is_amplitude(route) || route->lift > 1.0f || route->ascending ||
                            route->qk == DP_OPERAND_INT8 || route->smooth != DP_SMOOTH_NONE)) {
        return dp_fail(error,
                       "%s: residual goes with descending order and without mxfp4, int8, lift and "
                       "smoothing",
                       name);
    }
    if (route->fake && is_amplitude(route)) {
        return dp_fail(error, "%s: fake decodes nvfp4 and mxfp8 operands, not mxfp4", name);
    }
    return true;
}
