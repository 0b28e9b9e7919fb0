/* SPDX-License-Identifier: MIT
 *
 * Wrong codes of P and the values they were made from: a code that differs next to a midpoint may
 * be an input that differs by an ulp, one that differs elsewhere is not.
 */
#include <math.h>
#include <stdio.h>

#include "analysis/hypothesis.h"

static const float MIDDLE[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

/* The oracle's value of a lane. False where Q1 is rebased, whose path is another. */
static bool value_at(const dp_unit *unit, size_t r, size_t column, float *value)
{
    const dp_direct_p *launch = &unit->launch;
    const size_t keys = unit->dump->key_rows;
    const size_t block = column / DP_BLOCK;
    const int stage = (int)(unit->query_tile & 1u);
    const int quarter = (int)(block % DP_QUARTERS);
    const float m = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
    const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys + block * DP_BLOCK;
    float largest = -INFINITY;
    if (launch->policy.rebase_q1 && stage == 0 && quarter == 1) {
        return false;
    }
    for (size_t j = 0; j < DP_BLOCK; j++) {
        largest = raw[j] > largest ? raw[j] : largest;
    }
    const int u = dp_block_byte(launch, largest, m);
    const bool native = dp_forward_policy_native_pair(&launch->policy, stage, quarter,
                                                      (int)(column % DP_BLOCK / 2));
    *value = dp_lane_value(launch, dp_block_offsets(launch, m, dp_working_byte(launch, u)), native,
                           raw[column % DP_BLOCK]);
    return true;
}

/* Floats between a value and the nearest midpoint. */
static uint64_t ulps_to_midpoint(float value, float *nearest)
{
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 7; k++) {
        const int64_t d = (int64_t)dp_f32_bits(value) - (int64_t)dp_f32_bits(MIDDLE[k]);
        const uint64_t distance = (uint64_t)(d < 0 ? -d : d);
        if (value > 0.0f && distance < least) {
            least = distance;
            *nearest = MIDDLE[k];
        }
    }
    return least;
}

void dp_diff_values(const dp_unit *unit, dp_diff_result *result)
{
    const size_t width = dp_dump_width(unit->dump, DP_DUMP_P_PAYLOAD);
    const uint8_t *ours = dp_strip_u8(&unit->out, DP_DUMP_P_PAYLOAD);
    const uint8_t *theirs = dp_strip_u8(&unit->dumped, DP_DUMP_P_PAYLOAD);
    const size_t first = dp_diff_first(unit->dump, DP_DUMP_P_PAYLOAD);
    const size_t columns = dp_diff_columns(unit->dump, DP_DUMP_P_PAYLOAD);
    size_t looked = 0, close = 0;
    char sample[80] = "";
    for (size_t i = 0; i < unit->rows * columns; i++) {
        const size_t r = i / columns;
        const size_t c = first + i % columns;
        const uint32_t a = dp_diff_element(DP_DUMP_P_PAYLOAD, ours + r * width, c);
        const uint32_t b = dp_diff_element(DP_DUMP_P_PAYLOAD, theirs + r * width, c);
        float value = 0.0f, nearest = 0.0f;
        if (a == b || !value_at(unit, r, c, &value)) {
            continue;
        }
        const uint64_t ulps = ulps_to_midpoint(value, &nearest);
        if (looked++ == 0 && ulps != UINT64_MAX) {
            (void)snprintf(sample, sizeof sample, "; the first: %.9g, %llu ulps from %g",
                           (double)value, (unsigned long long)ulps, (double)nearest);
        }
        close += ulps <= 4;
    }
    if (looked > 0) {
        (void)snprintf(result->values, sizeof result->values,
                       "%zu of %zu wrong codes come from values within 4 ulps of a midpoint%s",
                       close, looked, sample);
    }
}
