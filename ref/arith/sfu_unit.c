/* SPDX-License-Identifier: MIT */
#include "ref/arith/sfu_unit.h"

#include "data/sfu_h200.h"

const dp_sfu_unit dp_sfu_h200_unit = {"NVIDIA H200",
                                      {h200_ex2_segments, 17, 19, 13, 0x17E2},
                                      {h200_rcp_segments, 16, 17, 13, 0x07E7},
                                      {h200_lg2_segments, 17, 19, 12, 0x0345}};

uint64_t dp_sfu_square(uint32_t t, unsigned cut)
{
    uint64_t dropped = 0;
    for (unsigned i = 0; 2 * i < cut; i++) {
        /* t_i^2 in column 2i, and 2 t_i t_j in columns i + j + 1 below cut, j > i */
        const unsigned end = i + 1 + i + 1 > cut ? 0 : cut - 1 - i;
        const uint64_t above = (t & ((UINT64_C(1) << end) - 1)) >> (i + 1) << (i + 1);
        const uint64_t row = (UINT64_C(1) << (2 * i)) + (above << (i + 1));
        dropped += (t >> i & 1u) != 0 ? row : 0;
    }
    return ((uint64_t)t * t - dropped) >> cut;
}

static int64_t interpolate(const dp_sfu_interpolator *f, uint32_t x)
{
    const dp_sfu_segment *segment = &f->segments[x >> f->low_bits];
    const uint32_t t = x & ((1u << f->low_bits) - 1u);
    return ((int64_t)segment->c0 << f->c0_shift) + f->constant + (int64_t)segment->c1 * (int64_t)t +
           (int64_t)segment->c2 * (int64_t)dp_sfu_square(t, f->cut);
}

uint32_t dp_sfu_unit_ex2(const dp_sfu_unit *unit, uint32_t x)
{
    return (uint32_t)(interpolate(&unit->ex2, x) >> 15);
}

uint32_t dp_sfu_unit_rcp(const dp_sfu_unit *unit, uint32_t x)
{
    return (uint32_t)(interpolate(&unit->rcp, x) >> 15);
}

uint64_t dp_sfu_unit_lg2(const dp_sfu_unit *unit, uint32_t x)
{
    return (uint64_t)(interpolate(&unit->lg2, x) >> 2);
}
