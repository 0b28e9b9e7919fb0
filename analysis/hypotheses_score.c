/* SPDX-License-Identifier: MIT
 *
 * Known mistakes of the stages score and reference.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/fp16.h"
#include "formats/layout.h"
#include "ref/arith/f32_fast.h"

static uint8_t *copy_of(const dp_unit *unit, dp_dump_id id)
{
    const size_t bytes = dp_unit_bytes(unit, id);
    uint8_t *copy = unit->in.valid[id] ? malloc(bytes) : NULL;
    if (copy != NULL) {
        memcpy(copy, unit->in.data[id], bytes);
    }
    return copy;
}

/* Score with one operand changed. */
static bool score_with(const dp_unit *unit, dp_dump_id id, const uint8_t *changed, void *out)
{
    return dp_stage_score(unit, &unit->mma, id == DP_DUMP_Q_PAYLOAD ? changed : NULL,
                          id == DP_DUMP_Q_SCALE ? changed : NULL,
                          id == DP_DUMP_K_PAYLOAD ? changed : NULL,
                          id == DP_DUMP_K_SCALE ? changed : NULL, out, NULL);
}

/* argument: layout, +10 when linear bytes were read as if they lay in it. */
static bool layout(const dp_unit *unit, dp_dump_id id, double argument, void *out)
{
    uint8_t *scale = copy_of(unit, id);
    if (scale != NULL) {
        dp_hypothesis_relayout((int)argument % 10, argument < 10.0, dp_unit_rows(unit, id),
                               dp_dump_width(unit->dump, id), scale);
    }
    const bool good = scale != NULL && score_with(unit, id, scale, out);
    free(scale);
    return good;
}
static bool layout_q(const dp_unit *unit, double argument, void *out)
{
    return layout(unit, DP_DUMP_Q_SCALE, argument, out);
}
static bool layout_k(const dp_unit *unit, double argument, void *out)
{
    return layout(unit, DP_DUMP_K_SCALE, argument, out);
}

static bool nibbles(const dp_unit *unit, dp_dump_id id, void *out)
{
    uint8_t *payload = copy_of(unit, id);
    if (payload != NULL) {
        dp_nibble_swap(payload, dp_unit_bytes(unit, id));
    }
    const bool good = payload != NULL && score_with(unit, id, payload, out);
    free(payload);
    return good;
}
static bool nibbles_q(const dp_unit *unit, double argument, void *out)
{
    (void)argument;
    return nibbles(unit, DP_DUMP_Q_PAYLOAD, out);
}
static bool nibbles_k(const dp_unit *unit, double argument, void *out)
{
    (void)argument;
    return nibbles(unit, DP_DUMP_K_PAYLOAD, out);
}

/* One scale page for both halves of the head dimension (argument: whose). */
static bool one_page(const dp_unit *unit, double argument, void *out)
{
    const size_t width = dp_dump_width(unit->dump, DP_DUMP_Q_SCALE);
    uint8_t *q = copy_of(unit, DP_DUMP_Q_SCALE);
    uint8_t *k = copy_of(unit, DP_DUMP_K_SCALE);
    bool good = q != NULL && k != NULL;
    for (size_t i = 0; good && i < DP_TILE * width; i++) {
        q[i] = argument != 1.0 ? q[i / width * width + i % (width / 2)] : q[i];
    }
    for (size_t i = 0; good && i < unit->dump->key_rows * width; i++) {
        k[i] = argument != 0.0 ? k[i / width * width + i % (width / 2)] : k[i];
    }
    good = good && dp_stage_score(unit, &unit->mma, NULL, q, NULL, k, out, NULL);
    free(q);
    free(k);
    return good;
}

/* Only one of the two instructions counts: argument 0 the first, 1 the second. */
static bool one_step(const dp_unit *unit, double argument, void *out)
{
    const size_t width = dp_dump_width(unit->dump, DP_DUMP_Q_PAYLOAD);
    uint8_t *q = copy_of(unit, DP_DUMP_Q_PAYLOAD);
    for (size_t i = 0; q != NULL && i < DP_TILE * width; i++) {
        q[i] = (i % width < width / 2) == (argument == 0.0) ? q[i] : 0;
    }
    const bool good = q != NULL && score_with(unit, DP_DUMP_Q_PAYLOAD, q, out);
    free(q);
    return good;
}

/* argument 0: key heads tiled; 1: always the first; 2: neighbour. */
static bool head_map(const dp_unit *unit, double argument, void *out)
{
    const size_t heads = unit->dump->kv_heads;
    const size_t kv = argument == 0.0   ? unit->head % heads
                      : argument == 1.0 ? 0
                                        : (unit->kv + 1) % heads;
    uint8_t *payload = malloc(dp_unit_bytes(unit, DP_DUMP_K_PAYLOAD));
    uint8_t *scale = malloc(dp_unit_bytes(unit, DP_DUMP_K_SCALE));
    const bool good = heads > 1 && payload != NULL && scale != NULL &&
                      dp_unit_key_side(unit, kv, DP_DUMP_K_PAYLOAD, payload, NULL) &&
                      dp_unit_key_side(unit, kv, DP_DUMP_K_SCALE, scale, NULL) &&
                      dp_stage_score(unit, &unit->mma, NULL, NULL, payload, scale, out, NULL);
    free(payload);
    free(scale);
    return good;
}

/* The mask another way. */
typedef enum {
    MASK_NONE,
    MASK_PADDING_ALONE,
    MASK_ONE_SHORT,
    MASK_ONE_MORE,
    MASK_TOP_LEFT,
    MASK_COLUMNS,
    MASK_NO_PADDING,
    MASK_PADDED_LENGTH, /* the diagonal counts padded keys; padding is seen or not */
    MASK_PADDED_LENGTH_HIDDEN,
    MASK_UP_128, /* the diagonal is rounded to blocks of keys */
    MASK_UP_64,
    MASK_UP_32,
    MASK_UP_16,
    MASK_DOWN_128,
    MASK_DOWN_32,
    MASK_LAST_ROW, /* one bound for the whole query tile */
    MASK_FIRST_ROW,
    MASK_FLIPPED /* keys before the diagonal are hidden */
} mask_rule;

static ptrdiff_t floor_to(ptrdiff_t x, ptrdiff_t step)
{
    return x >= 0 ? x / step * step : -((-x + step - 1) / step * step);
}

/* The last key that row `row` of the operator sees. */
static ptrdiff_t bound_of(const dp_unit *unit, mask_rule how, ptrdiff_t row)
{
    const ptrdiff_t keys = (ptrdiff_t)unit->dump->keys;
    const ptrdiff_t queries = (ptrdiff_t)unit->dump->queries;
    const ptrdiff_t right = row + keys - queries;
    const ptrdiff_t tile = (ptrdiff_t)unit->query_tile * DP_TILE + keys - queries;
    switch (how) {
    case MASK_ONE_SHORT:
        return right - 1;
    case MASK_ONE_MORE:
        return right + 1;
    case MASK_TOP_LEFT:
        return row;
    case MASK_PADDED_LENGTH:
    case MASK_PADDED_LENGTH_HIDDEN:
        return row + (ptrdiff_t)unit->dump->key_rows - queries;
    case MASK_UP_128:
        return floor_to(right, 128) + 127;
    case MASK_UP_64:
        return floor_to(right, 64) + 63;
    case MASK_UP_32:
        return floor_to(right, 32) + 31;
    case MASK_UP_16:
        return floor_to(right, 16) + 15;
    case MASK_DOWN_128:
        return floor_to(right + 1, 128) - 1;
    case MASK_DOWN_32:
        return floor_to(right + 1, 32) - 1;
    case MASK_LAST_ROW:
        return tile + DP_TILE - 1;
    case MASK_FIRST_ROW:
        return tile;
    default:
        return right;
    }
}

static bool masked_under(const dp_unit *unit, mask_rule how, size_t r, size_t j)
{
    const dp_dump *dump = unit->dump;
    const ptrdiff_t row = (ptrdiff_t)(unit->row_first + r);
    const bool by_column = how == MASK_COLUMNS || j >= dump->keys;
    const ptrdiff_t key = by_column ? (ptrdiff_t)j : (ptrdiff_t)dump->key_order[j];
    const bool padding_seen =
        how == MASK_NONE || how == MASK_NO_PADDING || how == MASK_PADDED_LENGTH;
    if (j >= dump->keys && !padding_seen) {
        return true;
    }
    if (!dump->causal || (how == MASK_NO_PADDING && j >= dump->keys) || how == MASK_NONE ||
        how == MASK_PADDING_ALONE) {
        return false;
    }
    return how == MASK_FLIPPED ? key < bound_of(unit, how, row) : key > bound_of(unit, how, row);
}

static bool mask_under(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    dp_dump open = *unit->dump; /* the same without a mask */
    dp_unit plain = *unit;
    open.causal = false;
    open.keys = open.key_rows;
    plain.dump = &open;
    plain.visited = keys / DP_TILE;
    if ((!unit->dump->causal && unit->dump->keys == keys) ||
        !dp_stage_score(&plain, &unit->mma, NULL, NULL, NULL, NULL, out, NULL)) {
        return false;
    }
    for (size_t i = 0; i < unit->rows * keys; i++) {
        if (masked_under(unit, (mask_rule)argument, i / keys, i % keys)) {
            ((float *)out)[i] = -INFINITY;
        }
    }
    return true;
}

/* Scores already in log2 units (argument 0) or natural units (1). */
static bool scaled(const dp_unit *unit, double argument, void *out)
{
    float *raw = out;
    const float s = argument == 0.0 ? unit->launch.multiplier : (float)unit->dump->softmax_scale;
    for (size_t i = 0; i < unit->rows * unit->dump->key_rows; i++) {
        raw[i] = dp_mul_rn_ftz(raw[i], s);
    }
    dp_hypothesis_near(unit, DP_DUMP_RAW, out, 2, 0.0);
    return true;
}

static bool half(const dp_unit *unit, double argument, void *out)
{
    float *raw = out;
    (void)argument;
    for (size_t i = 0; i < unit->rows * unit->dump->key_rows; i++) {
        raw[i] = dp_fp16_to_f32(dp_fp16_from_f32(raw[i], DP_ENCODE_NONSAT));
    }
    return true;
}

static float operand(const uint8_t *payload, const uint8_t *scale, size_t features, size_t row,
                     size_t d)
{
    const dp_e2m1 code = {
        (uint8_t)((unsigned)payload[row * features / 2 + d / 2] >> (d % 2 * 4) & 15u)};
    const dp_e4m3 byte = {scale[row * (features / 16) + d / 16]};
    return dp_e2m1_to_f32(code) * dp_e4m3_to_f32(byte);
}

/* Decoded operands multiplied in f32 order: argument 0 one rounding of the exact sum, 1 a chain of
 * f32 FMAs. */
static bool software(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    const size_t features = unit->dump->features;
    float *q = malloc(DP_TILE * features * sizeof *q);
    float *k = malloc(keys * features * sizeof *k);
    const bool good = q != NULL && k != NULL;
    for (size_t i = 0; good && i < DP_TILE * features; i++) {
        q[i] =
            operand(dp_strip_u8(&unit->in, DP_DUMP_Q_PAYLOAD),
                    dp_strip_u8(&unit->in, DP_DUMP_Q_SCALE), features, i / features, i % features);
    }
    for (size_t i = 0; good && i < keys * features; i++) {
        k[i] =
            operand(dp_strip_u8(&unit->in, DP_DUMP_K_PAYLOAD),
                    dp_strip_u8(&unit->in, DP_DUMP_K_SCALE), features, i / features, i % features);
    }
    for (size_t i = 0; good && i < unit->rows * keys; i++) {
        const float *a = q + i / keys * features;
        const float *b = k + i % keys * features;
        double sum = 0.0;
        float chain = 0.0f;
        for (size_t d = 0; d < features; d++) {
            sum += (double)a[d] * (double)b[d];
            chain = argument == 1.0 ? fmaf(a[d], b[d], chain) : chain;
        }
        if (!dp_unit_masked(unit, i / keys, i % keys)) {
            ((float *)out)[i] = argument == 0.0 ? (float)sum : chain;
        }
    }
    free(q);
    free(k);
    return good;
}

static bool other_zero_group(const dp_unit *unit, double argument, void *out)
{
    dp_mma_switches mma = unit->mma;
    (void)argument;
    mma.zero_group = mma.zero_group == DP_MMA_ZERO_GROUP_SCALE ? DP_MMA_ZERO_GROUP_EXCLUDED
                                                               : DP_MMA_ZERO_GROUP_SCALE;
    return dp_stage_score(unit, &mma, NULL, NULL, NULL, NULL, out, NULL);
}

/* ---- reference ---------------------------------------------------------------------------------
 */

static void anchors(dp_direct_p *launch, double argument)
{
    launch->policy.anchor_keys = (int)argument;
}
static void no_reference(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->policy.reference = DP_REFERENCE_NONE;
}
static void with_reference(dp_direct_p *launch, double argument)
{
    launch->policy.reference = DP_REFERENCE_ANCHOR;
    launch->policy.anchor_keys = (int)argument;
}
static void margin(dp_direct_p *launch, double argument)
{
    launch->policy.margin = (int)argument;
}
static void margin_units(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->switches.margin_log2 = !launch->switches.margin_log2;
}

/* Maximum over other keys: 0 all, 1 the last tile, 2 running maximum without the last tile; +10: no
 * margin. 20: M itself is added, 21: the margin is subtracted. */
static bool other_maximum(const dp_unit *unit, double argument, void *out)
{
    const dp_forward_policy *policy = &unit->launch.policy;
    const size_t keys = unit->dump->key_rows;
    const int kind = (int)argument;
    const float m = (float)policy->margin;
    const float bias = dp_mul_rn_ftz(m, dp_f32_from_bits(0x3F317218u));
    const size_t last = (unit->visited > 0 ? unit->visited - 1 : 0) * DP_TILE;
    size_t first = kind % 10 == 1 && kind < 20 ? last : 0;
    size_t end = kind % 10 == 2 ? last : unit->visited * DP_TILE;
    end = kind >= 20 ? (size_t)policy->anchor_keys : end;
    for (size_t r = 0; r < unit->rows; r++) {
        float largest = -INFINITY;
        for (size_t j = first; j < end; j++) {
            const float x = dp_strip_f32(&unit->in, DP_DUMP_RAW)[r * keys + j];
            largest = x > largest ? x : largest;
        }
        const float by = kind == 20 ? m : kind == 21 ? -bias : kind >= 10 ? 0.0f : bias;
        ((float *)out)[r] = dp_add_rn_ftz(largest, by);
    }
    return end > first;
}

/* m in log2 units: multiplied by s once too often. */
static bool scaled_reference(const dp_unit *unit, double argument, void *out)
{
    float *m = out;
    (void)argument;
    for (size_t r = 0; r < unit->rows; r++) {
        m[r] = dp_mul_rn_ftz(m[r], unit->launch.multiplier);
    }
    dp_hypothesis_near(unit, DP_DUMP_ROW_REF, out, 2, 0.0);
    return true;
}

#define RAW(name_, function_, argument_, meaning_)                                                 \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_RAW, .run = (function_), .argument = (argument_),           \
        .meaning = (meaning_)                                                                      \
    }
#define REFERENCE(name_, change_, argument_, meaning_)                                             \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_ROW_REF, .change = (change_), .argument = (argument_),      \
        .meaning = (meaning_)                                                                      \
    }
#define MAXIMUM(name_, argument_, meaning_)                                                        \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_ROW_REF, .run = other_maximum, .argument = (argument_),     \
        .meaning = (meaning_)                                                                      \
    }

const dp_hypothesis dp_hypotheses_score[] = {
    RAW("q-nibbles-swapped", nibbles_q, 0, "the two codes of a byte of Q are exchanged"),
    RAW("k-nibbles-swapped", nibbles_k, 0, "the two codes of a byte of K are exchanged"),
    RAW("q-scale-layout", layout_q, DP_LAYOUT_128X4,
        "scales of Q lie in 128 x 4 atoms and are read as linear"),
    RAW("q-scale-layout", layout_q, 10 + DP_LAYOUT_128X4,
        "linear scales of Q are read as 128 x 4 atoms"),
    RAW("q-scale-layout-64-row", layout_q, DP_LAYOUT_SM120,
        "scales of Q lie in atoms of 64 rows and are read as linear"),
    RAW("q-scale-layout-64-row", layout_q, 10 + DP_LAYOUT_SM120,
        "linear scales of Q are read as atoms of 64 rows"),
    RAW("q-scale-layout-swapped", layout_q, DP_LAYOUT_128X4_SWAPPED,
        "scale atoms of Q with 32 and 4 exchanged"),
    RAW("k-scale-layout", layout_k, DP_LAYOUT_128X4,
        "scales of K lie in 128 x 4 atoms and are read as linear"),
    RAW("k-scale-layout", layout_k, 10 + DP_LAYOUT_128X4,
        "linear scales of K are read as 128 x 4 atoms"),
    RAW("k-scale-layout-64-row", layout_k, DP_LAYOUT_SM120,
        "scales of K lie in atoms of 64 rows and are read as linear"),
    RAW("k-scale-layout-64-row", layout_k, 10 + DP_LAYOUT_SM120,
        "linear scales of K are read as atoms of 64 rows"),
    RAW("k-scale-layout-swapped", layout_k, DP_LAYOUT_128X4_SWAPPED,
        "scale atoms of K with 32 and 4 exchanged"),
    RAW("fold-missing", one_page, 2,
        "a kernel for folded scales read unfolded ones: the first page serves both K64 steps"),
    RAW("fold-missing-q", one_page, 0, "the first scale page of Q serves both K64 steps"),
    RAW("fold-missing-k", one_page, 1, "the first scale page of K serves both K64 steps"),
    RAW("second-k64-missing", one_step, 0, "features 64 to 127 are left out"),
    RAW("first-k64-missing", one_step, 1,
        "features 0 to 63 are left out: the second step does not accumulate"),
    RAW("gqa-interleaved", head_map, 0, "key heads are tiled (h mod n), not in groups"),
    RAW("gqa-first-head", head_map, 1, "every query head reads key head 0"),
    RAW("gqa-neighbour", head_map, 2, "the next key head is read"),
    RAW("mask-missing", mask_under, MASK_NONE, "nothing is masked"),
    RAW("mask-missing", mask_under, MASK_PADDING_ALONE, "no causal mask: padding alone is hidden"),
    RAW("mask-off-by-one", mask_under, MASK_ONE_SHORT, "the diagonal itself is hidden"),
    RAW("mask-off-by-one", mask_under, MASK_ONE_MORE, "one key beyond the diagonal is seen"),
    RAW("mask-top-left", mask_under, MASK_TOP_LEFT, "the causal mask is aligned at the top left"),
    RAW("mask-column-order", mask_under, MASK_COLUMNS,
        "the mask compares stored columns, not the keys they hold"),
    RAW("padding-not-masked", mask_under, MASK_NO_PADDING, "padded keys take part with score 0"),
    RAW("mask-padded-length", mask_under, MASK_PADDED_LENGTH,
        "the key length is rounded up to the tile: diagonal and padding are those of padded keys"),
    RAW("mask-padded-length", mask_under, MASK_PADDED_LENGTH_HIDDEN,
        "the diagonal counts padded keys"),
    RAW("mask-tile-rounded", mask_under, MASK_UP_128,
        "the causal bound is rounded up to the key tile"),
    RAW("mask-tile-rounded", mask_under, MASK_DOWN_128,
        "the causal bound is rounded down to the key tile"),
    RAW("mask-tile-rounded", mask_under, MASK_LAST_ROW,
        "all rows of a query tile have the bound of its last row"),
    RAW("mask-tile-rounded", mask_under, MASK_FIRST_ROW,
        "all rows of a query tile have the bound of its first row"),
    RAW("mask-block-rounded", mask_under, MASK_UP_64, "the causal bound is rounded up to 64 keys"),
    RAW("mask-block-rounded", mask_under, MASK_UP_32, "the causal bound is rounded up to 32 keys"),
    RAW("mask-block-rounded", mask_under, MASK_UP_16, "the causal bound is rounded up to 16 keys"),
    RAW("mask-block-rounded", mask_under, MASK_DOWN_32,
        "the causal bound is rounded down to 32 keys"),
    RAW("mask-flipped", mask_under, MASK_FLIPPED, "keys before the diagonal are hidden"),
    RAW("scores-scaled-log2", scaled, 0, "the softmax scale and log2(e) are applied already"),
    RAW("scores-scaled", scaled, 1, "the softmax scale is applied already"),
    RAW("f16-scores", half, 0, "scores went through f16"),
    RAW("accumulate-rounded", software, 0,
        "the sum is rounded to nearest once: not the matrix unit's truncation"),
    RAW("accumulate-f32-chain", software, 1, "a chain of f32 FMAs, not the matrix unit"),
    RAW("zero-group-exponent", other_zero_group, 0, "the other value of the switch mma.zero_group"),
    REFERENCE("anchor-32", anchors, 32, "the maximum is over 32 keys"),
    REFERENCE("anchor-64", anchors, 64, "the maximum is over 64 keys"),
    REFERENCE("anchor-128", anchors, 128, "the maximum is over 128 keys"),
    REFERENCE("anchor-16", anchors, 16, "the maximum is over 16 keys"),
    REFERENCE("margin-units", margin_units, 0, "the margin is in the other unit: raw or log2"),
    REFERENCE("margin-missing", margin, 0, "no margin is added"),
    REFERENCE("margin-64", margin, 64, "the margin is 64"),
    REFERENCE("margin-110", margin, 110, "the margin is 110"),
    REFERENCE("margin-112", margin, 112, "the margin is 112"),
    REFERENCE("reference-missing", no_reference, 0, "m is 0"),
    REFERENCE("reference-unwanted", with_reference, 32, "m is an anchor's; the policy has none"),
    REFERENCE("reference-unwanted", with_reference, 128, "m is an anchor's; the policy has none"),
    MAXIMUM("row-maximum", 0, "m is the maximum of the whole row, plus the margin"),
    MAXIMUM("row-maximum", 10, "m is the maximum of the whole row"),
    MAXIMUM("last-tile-maximum", 1, "m is the maximum of the last key tile, plus the margin"),
    MAXIMUM("stale-maximum", 2, "m is a running maximum that misses the last key tile"),
    MAXIMUM("stale-maximum", 12, "m is a running maximum that misses the last key tile"),
    MAXIMUM("margin-without-ln2", 20, "M is added, not M ln 2"),
    MAXIMUM("margin-subtracted", 21, "the margin is subtracted"),
    {.name = "reference-scaled",
     .id = DP_DUMP_ROW_REF,
     .run = scaled_reference,
     .meaning = "m is in log2 units already"},
    {.name = NULL},
};
