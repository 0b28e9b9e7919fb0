/* SPDX-License-Identifier: MIT */
#include "formats/layout.h"

static const struct {
    const char *name;
    dp_layout kind;
} names[] = {
    {"linear", DP_LAYOUT_LINEAR},
    {"128x4", DP_LAYOUT_128X4},
    {"sm120", DP_LAYOUT_SM120},
    {"128x4-swapped", DP_LAYOUT_128X4_SWAPPED},
};

bool dp_layout_find(const char *name, dp_layout *kind)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i].name) == 0) {
            *kind = names[i].kind;
            return true;
        }
    }
    return false;
}

const char *dp_layout_name(dp_layout kind)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kind == names[i].kind) {
            return names[i].name;
        }
    }
    return "unknown";
}

void dp_layout_swizzle(dp_layout_map map, const uint8_t *linear, uint8_t *stored)
{
    memset(stored, 0, dp_layout_bytes(map));
    for (size_t row = 0; row < map.rows; row++) {
        for (size_t col = 0; col < map.cols; col++) {
            stored[dp_layout_offset(map, row, col)] = linear[row * map.cols + col];
        }
    }
}

void dp_layout_unswizzle(dp_layout_map map, const uint8_t *stored, uint8_t *linear)
{
    for (size_t row = 0; row < map.rows; row++) {
        for (size_t col = 0; col < map.cols; col++) {
            linear[row * map.cols + col] = stored[dp_layout_offset(map, row, col)];
        }
    }
}

size_t dp_layout_dirty_padding(dp_layout_map map, const uint8_t *stored)
{
    size_t dirty = 0;
    for (size_t offset = 0; offset < dp_layout_bytes(map); offset++) {
        size_t row = 0;
        size_t col = 0;
        if (!dp_layout_coord(map, offset, &row, &col) && stored[offset] != 0) {
            dirty++;
        }
    }
    return dirty;
}

void dp_nibble_swap(uint8_t *payload, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        payload[i] = (uint8_t)((payload[i] << 4) | (payload[i] >> 4));
    }
}
