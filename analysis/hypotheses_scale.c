/* SPDX-License-Identifier: MIT
 *
 * Known mistakes of the stage scale, and launches changed in one respect, which explain codes too.
 */
#include <math.h>

#include "analysis/hypothesis.h"
#include "ref/arith/f32_fast.h"

#define SHIFT 0x3ED47FCCu /* log2(4/3) */

/* ---- launches changed in one respect -----------------------------------------------------------
 */

static void other_epoch(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->epoch = launch->epoch == DP_EPOCH_S ? DP_EPOCH_R : DP_EPOCH_S;
}
static void shift(dp_direct_p *launch, double argument)
{
    launch->policy.shift = (int)argument;
}
static void double_shift(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->policy.shift *= 2;
}
static void natural_base(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->multiplier = (float)((double)launch->multiplier / 1.4426950408889634);
}
static void multiplier(dp_direct_p *launch, double argument)
{
    launch->multiplier = (float)((double)launch->multiplier * argument);
}
static void exact_multiplier(dp_direct_p *launch, double argument)
{
    /* S0 is 25 ulp below log2(e)/sqrt(128): the exact product instead */
    const float kernel = dp_f32_from_bits(0x3E0293D5u);
    const float exact = (float)(1.4426950408889634 / sqrt(128.0));
    (void)argument;
    launch->multiplier = launch->switches.exact_multiplier ? launch->multiplier / exact * kernel
                                                           : launch->multiplier / kernel * exact;
}

/* ---- bytes from another rule -------------------------------------------------------------------
 */

enum {
    BYTE_CEIL,
    BYTE_FLOOR,
    BYTE_FLOOR_OF_SIXTH,
    BYTE_MIDPOINT_DOWN,
    BYTE_NO_REFERENCE,
    BYTE_HALF_BLOCK,
    BYTE_OTHER_QUARTER,
    BYTE_NEXT_QUARTER,
    BYTE_TILE_MAXIMUM,
    BYTE_PREVIOUS_TILE,
    BYTE_ABSOLUTE,
    BYTE_STALE,
    BYTE_MINIMUM,
    BYTE_LOW_CLAMP
};

static float maximum(const float *raw, size_t first, size_t count, int kind)
{
    float largest = kind == BYTE_MINIMUM ? INFINITY : -INFINITY;
    for (size_t j = first; j < first + count; j++) {
        const float x = kind == BYTE_ABSOLUTE ? fabsf(raw[j]) : raw[j];
        largest = kind == BYTE_MINIMUM ? (x < largest ? x : largest) : (x > largest ? x : largest);
    }
    return largest;
}

static float block_maximum(const float *raw, size_t block, int kind)
{
    const size_t tile = block / DP_QUARTERS;
    float before = -INFINITY;
    switch (kind) {
    case BYTE_HALF_BLOCK:
        return maximum(raw, block * DP_BLOCK, DP_BLOCK / 2, kind);
    case BYTE_OTHER_QUARTER:
        return maximum(raw, (block ^ 1u) * DP_BLOCK, DP_BLOCK, kind);
    case BYTE_NEXT_QUARTER:
        return maximum(raw, (tile * DP_QUARTERS + (block + 1) % DP_QUARTERS) * DP_BLOCK, DP_BLOCK,
                       kind);
    case BYTE_TILE_MAXIMUM:
        return maximum(raw, tile * DP_TILE, DP_TILE, kind);
    case BYTE_PREVIOUS_TILE:
        return maximum(raw, (tile > 0 ? block - DP_QUARTERS : block) * DP_BLOCK, DP_BLOCK, kind);
    case BYTE_STALE: /* running maximum over the blocks of the row */
        for (size_t b = 0; b <= block; b++) {
            const float x = maximum(raw, b * DP_BLOCK, DP_BLOCK, kind);
            before = x > before ? x : before;
        }
        return before;
    default:
        return maximum(raw, block * DP_BLOCK, DP_BLOCK, kind);
    }
}

static int raw_byte(const dp_direct_p *launch, float x, float row_ref, int kind)
{
    const float d = kind == BYTE_NO_REFERENCE ? x : dp_sub_rn_ftz(x, row_ref);
    const float g = dp_mul_rn_ftz(d, launch->multiplier);
    double e = 0.0;
    switch (kind) {
    case BYTE_CEIL:
        e = ceil((double)g);
        break;
    case BYTE_FLOOR:
        e = floor((double)g);
        break;
    case BYTE_FLOOR_OF_SIXTH: /* of the maximum over 6, brought back by the payload's 2^2 */
        e = floor((double)g - 2.584962500721156) + 2.0;
        break;
    case BYTE_MIDPOINT_DOWN:
        e = ceil((double)dp_add_rn_ftz(g, dp_f32_from_bits(SHIFT))) - 1.0;
        break;
    default:
        return dp_block_byte(launch, x, kind == BYTE_NO_REFERENCE ? 0.0f : row_ref);
    }
    e += 127.0;
    return !(e > 0.0) ? 0 : e > 254.0 ? 254 : (int)e;
}

static bool bytes_by(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    const size_t blocks = keys / DP_BLOCK;
    const int kind = (int)argument;
    for (size_t i = 0; i < unit->rows * blocks; i++) {
        const size_t r = i / blocks;
        if (i % blocks >= unit->visited * DP_QUARTERS) {
            continue;
        }
        const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys;
        const float x = block_maximum(raw, i % blocks, kind);
        const int u = raw_byte(&unit->launch, x, dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r], kind);
        ((uint8_t *)out)[i] = (uint8_t)dp_stored_byte(&unit->launch, u);
    }
    return true;
}

/* Stored bytes moved: argument is added; 1000: the working byte is stored; 2000 and 2001: the two,
 * or the four, bytes of a word in reverse order; 3000: floor of 0 for 1 or 1 for 0; 4000:
 * transposed quarters of a tile pair. */
static bool bytes_moved(const dp_unit *unit, double argument, void *out)
{
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    const uint8_t *right = dp_strip_u8(&unit->out, DP_DUMP_P_SCALE);
    uint8_t *bytes = out;
    const int kind = (int)argument;
    for (size_t i = 0; i < unit->rows * blocks; i++) {
        int byte = right[i];
        if (kind == 2000) {
            byte = right[i ^ 1u];
        } else if (kind == 2001) {
            byte = right[i ^ 3u];
        } else if (kind == 2002) {
            byte = right[i ^ 2u];
        } else {
            byte += kind;
        }
        bytes[i] = (uint8_t)(byte < 0 ? 0 : byte > 255 ? 255 : byte);
    }
    return true;
}

/* The byte before L is taken off: the raw one (0) or the working one (1). */
static bool bytes_unshifted(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    const size_t blocks = keys / DP_BLOCK;
    for (size_t i = 0; i < unit->rows * blocks; i++) {
        const size_t r = i / blocks;
        const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys;
        const int u = dp_block_byte(&unit->launch, block_maximum(raw, i % blocks, -1),
                                    dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r]);
        ((uint8_t *)out)[i] = (uint8_t)(argument == 0.0 ? u : dp_working_byte(&unit->launch, u));
    }
    return true;
}

#define BYTES(name_, function_, argument_, meaning_)                                               \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_P_SCALE, .run = (function_), .argument = (argument_),       \
        .meaning = (meaning_)                                                                      \
    }
#define BOTH(name_, change_, argument_, meaning_)                                                  \
    {.name = (name_),                                                                              \
     .id = DP_DUMP_P_SCALE,                                                                        \
     .change = (change_),                                                                          \
     .argument = (argument_),                                                                      \
     .meaning = (meaning_)},                                                                       \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_P_PAYLOAD, .change = (change_), .argument = (argument_),    \
        .meaning = (meaning_)                                                                      \
    }

const dp_hypothesis dp_hypotheses_scale[] = {
    BOTH("other-epoch", other_epoch, 0, "the floors are those of the other epoch (S or R)"),
    BYTES("shift-missing", bytes_unshifted, 0, "L is not subtracted: the raw byte is stored"),
    BYTES("shift-missing", bytes_unshifted, 1, "L is not subtracted: the working byte is stored"),
    BOTH("shift-twice", double_shift, 0, "L is subtracted twice"),
    BOTH("shift-8", shift, 8, "L is 8, as in the policy accurate"),
    BOTH("shift-14", shift, 14, "L is 14, as in the guard of the 14B model"),
    BOTH("shift-16", shift, 16, "L is 16, as in the policy fast"),
    BYTES("byte-off", bytes_moved, 1, "bytes are one too large: factor 2"),
    BYTES("byte-off", bytes_moved, -1, "bytes are one too small: factor 1/2"),
    BYTES("quarters-exchanged", bytes_moved, 2000, "the bytes of a K64 pair are exchanged"),
    BYTES("quarters-reversed", bytes_moved, 2001, "the four bytes of a word are in reverse order"),
    BYTES("halves-exchanged", bytes_moved, 2002, "the bytes of the two K64 steps are exchanged"),
    BYTES("ceil", bytes_by, BYTE_CEIL, "the exponent is rounded up, not to the nearest power"),
    BYTES("floor", bytes_by, BYTE_FLOOR, "the exponent is cut, not rounded to the nearest power"),
    BYTES("floor-of-sixth", bytes_by, BYTE_FLOOR_OF_SIXTH, "the exponent is that of maximum / 6"),
    BYTES("midpoint-down", bytes_by, BYTE_MIDPOINT_DOWN, "0.75 * 2^k goes down instead of up"),
    BYTES("reference-not-subtracted", bytes_by, BYTE_NO_REFERENCE, "m is not subtracted"),
    BYTES("half-block-maximum", bytes_by, BYTE_HALF_BLOCK, "the maximum is over 16 of 32 keys"),
    BYTES("other-quarter", bytes_by, BYTE_OTHER_QUARTER, "the maximum is the neighbour quarter's"),
    BYTES("next-quarter", bytes_by, BYTE_NEXT_QUARTER, "the maximum is the next quarter's"),
    BYTES("tile-maximum", bytes_by, BYTE_TILE_MAXIMUM, "the maximum is over the whole key tile"),
    BYTES("previous-tile", bytes_by, BYTE_PREVIOUS_TILE, "the maximum is the previous key tile's"),
    BYTES("absolute-maximum", bytes_by, BYTE_ABSOLUTE, "the maximum is of magnitudes"),
    BYTES("stale-maximum", bytes_by, BYTE_STALE, "the maximum also covers earlier blocks"),
    BYTES("minimum", bytes_by, BYTE_MINIMUM, "the minimum is taken for the maximum"),
    BOTH("base-e", natural_base, 0, "scores are in natural units: log2(e) is missing"),
    BOTH("scale-twice", multiplier, 0.08838834764831845, "the softmax scale is applied twice"),
    BOTH("scale-missing", multiplier, 11.313708498984761, "the softmax scale is missing"),
    BOTH("multiplier", exact_multiplier, 0,
         "the multiplier is the other one: 0x3E0293D5 or log2(e)/sqrt(128) rounded"),
    {.name = NULL},
};
