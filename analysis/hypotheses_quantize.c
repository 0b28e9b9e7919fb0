/* SPDX-License-Identifier: MIT
 *
 * Known mistakes of the stage quantize.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"
#include "formats/bf16.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "formats/fold64.h"
#include "formats/layout.h"
#include "ref/arith/f32_fast.h"

enum { QK_BLOCK = 16 };

static float from_bf16(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return dp_bf16_to_f32(x);
}

static bool is_q(dp_dump_id id)
{
    return id == DP_DUMP_Q_PAYLOAD || id == DP_DUMP_Q_SCALE;
}

/* Source row r of the strip (Q) or of the key head (K), padded with zeros. */
bool dp_hypothesis_source_row(const dp_unit *unit, bool q, size_t r, bool natural, float *x)
{
    const dp_dump *dump = unit->dump;
    if (!dump->has_inputs || r >= (q ? unit->rows : dump->keys)) {
        return false;
    }
    const size_t key = natural ? r : (size_t)dump->key_order[q ? 0 : r];
    const size_t row =
        q ? (unit->batch * dump->q_heads + unit->head) * dump->queries + unit->row_first + r
          : (unit->batch * dump->kv_heads + unit->kv) * dump->keys + key;
    const uint16_t *from = (q ? dump->q : dump->k) + row * dump->dim;
    for (size_t d = 0; d < dump->features; d++) {
        x[d] = d < dump->dim ? from_bf16(from[d]) : 0.0f;
    }
    return true;
}

static float amax_of(const float *x, size_t n)
{
    float amax = 0.0f;
    for (size_t i = 0; i < n; i++) {
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    }
    return amax;
}

static void put_code(uint8_t *payload, size_t i, uint8_t code)
{
    uint8_t *byte = &payload[i / 2];
    *byte = (uint8_t)(i % 2 == 0 ? (*byte & 0xF0u) | code : (*byte & 0x0Fu) | (uint32_t)code << 4);
}

static size_t rows_of(const dp_unit *unit, dp_dump_id id)
{
    return is_q(id) ? unit->rows : unit->dump->keys;
}

/* How the payload of Q and K is made from the block's scale. */
typedef enum { BY_POLICY, BY_DIVISION, BY_RECIPROCAL, BY_UNROUNDED } scaling;

typedef struct {
    dp_ties ties;
    scaling how;
    bool natural;
    float factor;
} payload_rule;

static float scaled(const dp_unit *unit, const payload_rule *rule, float x, float scale, float amax)
{
    const bool fold = unit->launch.policy.fold_k64 && unit->dump->features == DP_HEAD_DIM;
    const bool division = rule->how == BY_DIVISION || (rule->how == BY_POLICY && fold);
    if (rule->how == BY_UNROUNDED) {
        return amax > 0.0f ? x * (6.0f / amax) : 0.0f;
    }
    if (scale <= 0.0f) {
        return 0.0f;
    }
    return division ? x / scale : dp_mul_rn_ftz(x, dp_rcp_approx_ftz(unit->launch.sfu, scale));
}

static bool payload_of(const dp_unit *unit, dp_dump_id id, payload_rule rule, uint8_t *out)
{
    const size_t features = unit->dump->features;
    const uint8_t *scales = dp_strip_u8(&unit->in, is_q(id) ? DP_DUMP_Q_SCALE : DP_DUMP_K_SCALE);
    for (size_t r = 0; r < rows_of(unit, id); r++) {
        float x[DP_HEAD_DIM];
        if (!dp_hypothesis_source_row(unit, is_q(id), r, rule.natural, x)) {
            return false;
        }
        for (size_t i = 0; i < features; i++) {
            const size_t b = i / QK_BLOCK;
            const dp_e4m3 byte = {scales[r * (features / QK_BLOCK) + b]};
            const float v = scaled(unit, &rule, x[i], dp_e4m3_to_f32(byte),
                                   amax_of(x + b * QK_BLOCK, QK_BLOCK));
            put_code(out + r * features / 2, i, dp_hypothesis_e2m1(v * rule.factor, rule.ties));
        }
    }
    return true;
}

/* argument: which rule of this list. */
static const payload_rule RULES[] = {
    {DP_TIES_DOWN, BY_POLICY, false, 1.0f},     {DP_TIES_AWAY, BY_POLICY, false, 1.0f},
    {DP_TIES_TRUNCATE, BY_POLICY, false, 1.0f}, {DP_TIES_EVEN, BY_DIVISION, false, 1.0f},
    {DP_TIES_EVEN, BY_RECIPROCAL, false, 1.0f}, {DP_TIES_EVEN, BY_UNROUNDED, false, 1.0f},
    {DP_TIES_EVEN, BY_POLICY, false, 0.5f},     {DP_TIES_EVEN, BY_POLICY, false, 2.0f},
    {DP_TIES_DOWN, BY_RECIPROCAL, false, 1.0f},
};

/* The folding quantizer divides already, and sends midpoints down. */
static bool apart_q(const dp_unit *unit, double argument, void *out)
{
    return unit->launch.policy.fold_k64 == (argument == 0.0) &&
           payload_of(unit, DP_DUMP_Q_PAYLOAD, RULES[3], out);
}
static bool apart_k(const dp_unit *unit, double argument, void *out)
{
    return unit->launch.policy.fold_k64 == (argument == 0.0) &&
           payload_of(unit, DP_DUMP_K_PAYLOAD, RULES[3], out);
}
static bool payload_q(const dp_unit *unit, double argument, void *out)
{
    return payload_of(unit, DP_DUMP_Q_PAYLOAD, RULES[(int)argument], out);
}
static bool payload_k(const dp_unit *unit, double argument, void *out)
{
    return payload_of(unit, DP_DUMP_K_PAYLOAD, RULES[(int)argument], out);
}

/* Whole rows by the quantizer of the other kind, or in another key order. */
typedef enum { ROW_PLAIN, ROW_FOLDED, ROW_NATURAL } row_kind;

static void plain_row(const dp_unit *unit, const float *x, bool division, bool up, uint8_t *payload,
                      uint8_t *scale)
{
    const float sixth = dp_rcp_approx_ftz(unit->launch.sfu, 6.0f);
    for (size_t b = 0; b < unit->dump->features / QK_BLOCK; b++) {
        const float amax = amax_of(x + b * QK_BLOCK, QK_BLOCK);
        const float wanted = division ? amax / 6.0f : dp_mul_rn_ftz(amax, sixth);
        dp_e4m3 byte = dp_e4m3_from_f32(wanted, DP_ENCODE_PTX);
        if (up && dp_e4m3_to_f32(byte) < wanted && byte.bits < 0x7Eu) {
            byte.bits++;
        }
        scale[b] = byte.bits;
        const float factor =
            amax == 0.0f ? 0.0f : dp_rcp_approx_ftz(unit->launch.sfu, dp_e4m3_to_f32(byte));
        for (size_t i = 0; i < QK_BLOCK; i++) {
            put_code(payload, b * QK_BLOCK + i,
                     dp_hypothesis_e2m1(dp_mul_rn_ftz(x[b * QK_BLOCK + i], factor), DP_TIES_EVEN));
        }
    }
}

static bool rows_by(const dp_unit *unit, dp_dump_id id, row_kind kind, uint8_t *out)
{
    const bool policy_folds = unit->launch.policy.fold_k64;
    const bool fold = kind == ROW_FOLDED || (kind == ROW_NATURAL && policy_folds);
    const bool payload = id == DP_DUMP_Q_PAYLOAD || id == DP_DUMP_K_PAYLOAD;
    if (unit->dump->features != DP_HEAD_DIM || (kind != ROW_NATURAL && fold == policy_folds)) {
        return false;
    }
    for (size_t r = 0; r < rows_of(unit, id); r++) {
        float x[DP_HEAD_DIM];
        uint8_t codes[DP_HEAD_DIM / 2] = {0}, scales[DP_HEAD_DIM / QK_BLOCK];
        if (!dp_hypothesis_source_row(unit, is_q(id), r, kind == ROW_NATURAL, x)) {
            return false;
        }
        if (fold) {
            dp_fold64_row(x, 1.0f, DP_SUM_TREE, codes, scales, NULL);
        } else {
            plain_row(unit, x, false, false, codes, scales);
        }
        memcpy(out + r * (payload ? sizeof codes : sizeof scales), payload ? codes : scales,
               payload ? sizeof codes : sizeof scales);
    }
    return true;
}

#define ROWS(id_, short_)                                                                          \
    static bool rows_##short_(const dp_unit *unit, double argument, void *out)                     \
    {                                                                                              \
        return rows_by(unit, id_, (row_kind)argument, out);                                        \
    }
ROWS(DP_DUMP_Q_PAYLOAD, q_payload)
ROWS(DP_DUMP_Q_SCALE, q_scale)
ROWS(DP_DUMP_K_PAYLOAD, k_payload)
ROWS(DP_DUMP_K_SCALE, k_scale)

/* Scale bytes of the plain quantizer, rounded another way. 0: amax / 6, 1: up, 2: not zero-based
 * (the maximum without its sign), 3: fold over the pair but plain rounding of the pair's maximum.
 */
static bool scale_rounded(const dp_unit *unit, dp_dump_id id, int kind, uint8_t *out)
{
    for (size_t r = 0; r < rows_of(unit, id); r++) {
        float x[DP_HEAD_DIM];
        uint8_t codes[DP_HEAD_DIM / 2] = {0}, scales[DP_HEAD_DIM / QK_BLOCK] = {0};
        if (!dp_hypothesis_source_row(unit, is_q(id), r, false, x) ||
            (kind < 3 && unit->launch.policy.fold_k64)) {
            return false;
        }
        if (kind == 2) {
            for (size_t i = 0; i < DP_HEAD_DIM; i++) {
                x[i] = x[i] > 0.0f ? x[i] : 0.0f;
            }
        }
        for (size_t i = 0; kind == 3 && i < DP_HEAD_DIM / 2; i++) {
            const float a = fabsf(x[i]);
            const float b = fabsf(x[i + DP_HEAD_DIM / 2]);
            x[i] = x[i + DP_HEAD_DIM / 2] = a > b ? a : b;
        }
        plain_row(unit, x, kind == 0, kind == 1, codes, scales);
        memcpy(out + r * unit->dump->features / QK_BLOCK, scales, unit->dump->features / QK_BLOCK);
    }
    return true;
}

static bool scale_q(const dp_unit *unit, double argument, void *out)
{
    return scale_rounded(unit, DP_DUMP_Q_SCALE, (int)argument, out);
}
static bool scale_k(const dp_unit *unit, double argument, void *out)
{
    return scale_rounded(unit, DP_DUMP_K_SCALE, (int)argument, out);
}

/* Bytes in another layout under the name of linear ones. */
#define LAYOUT(id_, short_)                                                                        \
    static bool layout_##short_(const dp_unit *unit, double argument, void *out)                   \
    {                                                                                              \
        const bool q = (id_) == DP_DUMP_Q_SCALE;                                                   \
        const size_t rows = q ? DP_TILE : dp_dump_head_rows(unit->dump, id_);                      \
        dp_hypothesis_relayout((int)argument % 10, argument < 10.0, rows,                          \
                               dp_dump_width(unit->dump, id_), out);                               \
        return true;                                                                               \
    }
LAYOUT(DP_DUMP_Q_SCALE, q_scale)
LAYOUT(DP_DUMP_K_SCALE, k_scale)
LAYOUT(DP_DUMP_V_SCALE, v_scale)

/* ---- V -----------------------------------------------------------------------------------------
 */

float dp_hypothesis_v_at(const dp_unit *unit, size_t position, size_t d, bool natural)
{
    const dp_dump *dump = unit->dump;
    if (position >= dump->keys || d >= dump->dim) {
        return 0.0f;
    }
    const size_t key = natural ? position : (size_t)dump->key_order[position];
    return from_bf16(
        dump->v[((unit->batch * dump->kv_heads + unit->kv) * dump->keys + key) * dump->dim + d]);
}

typedef enum { AMPLITUDE_NEAREST, AMPLITUDE_UP, AMPLITUDE_DOWN, AMPLITUDE_STEP } amplitude;

static uint8_t amplitude_byte(float amax, amplitude how)
{
    if (!(amax > 1e-38f)) {
        return 0;
    }
    const dp_e8m0_encode rounding[] = {
        {DP_E8M0_NEAREST_EVEN, true}, {DP_E8M0_UP, true}, {DP_E8M0_DOWN, true}, {DP_E8M0_UP, true}};
    return dp_e8m0_from_f32(how == AMPLITUDE_STEP ? amax / 6.0f : amax, rounding[how]).bits;
}

typedef struct {
    dp_ties ties;
    amplitude how;
    bool natural, across; /* across: blocks of 32 features of one key */
    double factor;        /* value code 6 stands at amplitude * factor / 6 */
} v_rule;

static float v_amax(const dp_unit *unit, const v_rule *rule, size_t position, size_t d)
{
    float amax = 0.0f;
    for (size_t i = 0; i < DP_BLOCK; i++) {
        const float x =
            rule->across
                ? dp_hypothesis_v_at(unit, position, d / DP_BLOCK * DP_BLOCK + i, rule->natural)
                : dp_hypothesis_v_at(unit, position / DP_BLOCK * DP_BLOCK + i, d, rule->natural);
        amax = fabsf(x) > amax ? fabsf(x) : amax;
    }
    return amax;
}

static bool v_codes(const dp_unit *unit, v_rule rule, uint8_t *out)
{
    const size_t keys = unit->dump->key_rows;
    if (!unit->dump->has_inputs) {
        return false;
    }
    for (size_t d = 0; d < unit->dump->features; d++) {
        uint8_t byte = 0;
        for (size_t j = 0; j < keys; j++) {
            if (j % DP_BLOCK == 0 || rule.across) {
                byte = amplitude_byte(v_amax(unit, &rule, j, d), rule.how);
            }
            const double x = (double)dp_hypothesis_v_at(unit, j, d, rule.natural);
            const float value =
                byte == 0 ? 0.0f : (float)(x * ldexp(6.0 * rule.factor, 127 - byte));
            put_code(out + d * keys / 2, j, dp_hypothesis_e2m1(value, rule.ties));
        }
    }
    return true;
}

static const v_rule V_RULES[] = {
    {DP_TIES_DOWN, AMPLITUDE_NEAREST, false, false, 1.0},
    {DP_TIES_AWAY, AMPLITUDE_NEAREST, false, false, 1.0},
    {DP_TIES_TRUNCATE, AMPLITUDE_NEAREST, false, false, 1.0},
    {DP_TIES_EVEN, AMPLITUDE_NEAREST, false, true, 1.0},
    {DP_TIES_EVEN, AMPLITUDE_NEAREST, true, false, 1.0},
    {DP_TIES_EVEN, AMPLITUDE_NEAREST, false, false, 1.0 / 6.0},
    {DP_TIES_EVEN, AMPLITUDE_UP, false, false, 1.0},
    {DP_TIES_EVEN, AMPLITUDE_DOWN, false, false, 1.0},
    {DP_TIES_EVEN, AMPLITUDE_NEAREST, false, false, 0.5},
};

static bool payload_v(const dp_unit *unit, double argument, void *out)
{
    return v_codes(unit, V_RULES[(int)argument], out);
}

/* argument: 0 up, 1 down, 2 step, 3 natural order. */
static bool scale_v(const dp_unit *unit, double argument, void *out)
{
    static const amplitude how[] = {AMPLITUDE_UP, AMPLITUDE_DOWN, AMPLITUDE_STEP,
                                    AMPLITUDE_NEAREST};
    const v_rule rule = {.natural = argument == 3.0};
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    if (!unit->dump->has_inputs) {
        return false;
    }
    for (size_t i = 0; i < unit->dump->features * blocks; i++) {
        ((uint8_t *)out)[i] = amplitude_byte(v_amax(unit, &rule, i % blocks * DP_BLOCK, i / blocks),
                                             how[(int)argument]);
    }
    return true;
}

/* Blocks along the head dimension, bytes as [key][block of 32 features] in the same memory. */
static bool scale_v_across(const dp_unit *unit, double argument, void *out)
{
    const v_rule rule = {.across = true};
    const size_t blocks = unit->dump->features / DP_BLOCK;
    (void)argument;
    if (!unit->dump->has_inputs) {
        return false;
    }
    for (size_t j = 0; j < unit->dump->key_rows; j++) {
        for (size_t b = 0; b < blocks; b++) {
            ((uint8_t *)out)[j * blocks + b] =
                amplitude_byte(v_amax(unit, &rule, j, b * DP_BLOCK), AMPLITUDE_NEAREST);
        }
    }
    return true;
}

static bool byte_offset(const dp_unit *unit, dp_dump_id id, int by, uint8_t *out)
{
    for (size_t i = 0; i < dp_unit_bytes(unit, id); i++) {
        const int byte = out[i] + by;
        out[i] = (uint8_t)(byte < 0 ? 0 : byte > 255 ? 255 : byte);
    }
    return true;
}
static bool offset_v(const dp_unit *unit, double argument, void *out)
{
    return byte_offset(unit, DP_DUMP_V_SCALE, (int)argument, out);
}
static bool offset_q(const dp_unit *unit, double argument, void *out)
{
    return byte_offset(unit, DP_DUMP_Q_SCALE, (int)argument, out);
}
static bool offset_k(const dp_unit *unit, double argument, void *out)
{
    return byte_offset(unit, DP_DUMP_K_SCALE, (int)argument, out);
}

/* Scales beyond the largest are NaN, not held at it. */
static bool not_saturated(const dp_unit *unit, dp_dump_id id, uint8_t *out)
{
    const size_t width = dp_dump_width(unit->dump, id);
    for (size_t r = 0; r < rows_of(unit, id); r++) {
        float x[DP_HEAD_DIM];
        if (!dp_hypothesis_source_row(unit, is_q(id), r, false, x)) {
            return false;
        }
        for (size_t b = 0; b < width; b++) {
            const float wanted = amax_of(x + b * QK_BLOCK, QK_BLOCK) / 6.0f;
            const bool beyond = dp_e4m3_from_f32(wanted, DP_ENCODE_NONSAT).bits == 0x7Fu;
            out[r * width + b] = beyond ? 0x7Fu : out[r * width + b];
        }
    }
    return true;
}
static bool saturation_q(const dp_unit *unit, double argument, void *out)
{
    (void)argument;
    return not_saturated(unit, DP_DUMP_Q_SCALE, out);
}
static bool saturation_k(const dp_unit *unit, double argument, void *out)
{
    (void)argument;
    return not_saturated(unit, DP_DUMP_K_SCALE, out);
}

#define QK(name_, function_, argument_, meaning_)                                                  \
    {.name = (name_),                                                                              \
     .id = DP_DUMP_Q_PAYLOAD,                                                                      \
     .run = function_##_q,                                                                         \
     .argument = (argument_),                                                                      \
     .meaning = (meaning_)},                                                                       \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_K_PAYLOAD, .run = function_##_k, .argument = (argument_),   \
        .meaning = (meaning_)                                                                      \
    }
#define SCALES(name_, function_, argument_, meaning_)                                              \
    {.name = (name_),                                                                              \
     .id = DP_DUMP_Q_SCALE,                                                                        \
     .run = function_##_q,                                                                         \
     .argument = (argument_),                                                                      \
     .meaning = (meaning_)},                                                                       \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_K_SCALE, .run = function_##_k, .argument = (argument_),     \
        .meaning = (meaning_)                                                                      \
    }
#define EACH(name_, id_, function_, argument_, meaning_)                                           \
    {                                                                                              \
        .name = (name_), .id = (id_), .run = (function_), .argument = (argument_),                 \
        .meaning = (meaning_)                                                                      \
    }
#define LAYOUTS(id_, function_)                                                                    \
    EACH("layout-128x4", id_, function_, DP_LAYOUT_128X4,                                          \
         "the bytes lie in 128 x 4 atoms and are labelled linear"),                                \
        EACH("layout-64-row", id_, function_, DP_LAYOUT_SM120,                                     \
             "the bytes lie in atoms of 64 rows and are labelled linear"),                         \
        EACH("layout-swapped", id_, function_, DP_LAYOUT_128X4_SWAPPED,                            \
             "128 x 4 atoms with 32 and 4 exchanged"),                                             \
        EACH("layout-unswizzled-twice", id_, function_, 10 + DP_LAYOUT_128X4,                      \
             "the 128 x 4 layout was undone once too often"),                                      \
        EACH("layout-unswizzled-twice", id_, function_, 10 + DP_LAYOUT_SM120,                      \
             "the 64-row layout was undone once too often")

const dp_hypothesis dp_hypotheses_quantize[] = {
    QK("ties-toward-zero", payload, 0, "midpoints go to the smaller magnitude"),
    QK("ties-away", payload, 1, "midpoints go to the larger magnitude"),
    QK("truncated", payload, 2, "magnitudes are cut, not rounded"),
    QK("ties-to-even", apart, 0, "midpoints go to the even code; the fold sends them down"),
    QK("division", apart, 1, "elements are divided by the scale, not multiplied by its rcp"),
    QK("reciprocal", payload, 4, "elements are multiplied by rcp(scale), not divided"),
    QK("reciprocal", payload, 8, "elements are multiplied by rcp(scale), not divided"),
    QK("unrounded-scale", payload, 5, "elements are scaled by amax / 6 before it is rounded"),
    QK("factor-1/2", payload, 6, "elements are half as large: FN against FNUZ, or a table of 2x"),
    QK("factor-2", payload, 7, "elements are twice as large: FN against FNUZ, or a table of 2x"),
    EACH("fold-missing", DP_DUMP_Q_PAYLOAD, rows_q_payload, ROW_PLAIN, "not folded over K64"),
    EACH("fold-missing", DP_DUMP_K_PAYLOAD, rows_k_payload, ROW_PLAIN, "not folded over K64"),
    EACH("fold-missing", DP_DUMP_Q_SCALE, rows_q_scale, ROW_PLAIN, "scales not folded over K64"),
    EACH("fold-missing", DP_DUMP_K_SCALE, rows_k_scale, ROW_PLAIN, "scales not folded over K64"),
    EACH("fold-unwanted", DP_DUMP_Q_PAYLOAD, rows_q_payload, ROW_FOLDED, "folded over K64"),
    EACH("fold-unwanted", DP_DUMP_K_PAYLOAD, rows_k_payload, ROW_FOLDED, "folded over K64"),
    EACH("fold-unwanted", DP_DUMP_Q_SCALE, rows_q_scale, ROW_FOLDED, "scales folded over K64"),
    EACH("fold-unwanted", DP_DUMP_K_SCALE, rows_k_scale, ROW_FOLDED, "scales folded over K64"),
    EACH("anchor-not-permuted", DP_DUMP_K_PAYLOAD, rows_k_payload, ROW_NATURAL,
         "keys are in natural order: the anchors do not come first"),
    EACH("anchor-not-permuted", DP_DUMP_K_SCALE, rows_k_scale, ROW_NATURAL,
         "keys are in natural order: the anchors do not come first"),
    EACH("anchor-not-permuted", DP_DUMP_V_PAYLOAD, payload_v, 4,
         "keys are in natural order: the anchors do not come first"),
    EACH("anchor-not-permuted", DP_DUMP_V_SCALE, scale_v, 3,
         "keys are in natural order: the anchors do not come first"),
    SCALES("division", scale, 0, "the scale is amax / 6, not amax * rcp(6)"),
    SCALES("scale-rounded-up", scale, 1, "the scale is rounded up, not to nearest"),
    SCALES("saturation-mode", saturation, 0,
           "scales above 464 are NaN: the cast does not saturate"),
    SCALES("amax-without-abs", scale, 2, "the block maximum is that of the signed values"),
    SCALES("fold-by-maximum", scale, 3,
           "the folded scale is the pair's amax / 6, not the search's"),
    SCALES("scale-exponent-off", offset, 8, "scale bytes are twice too large: FN against FNUZ"),
    SCALES("scale-exponent-off", offset, -8, "scale bytes are half too small: FN against FNUZ"),
    LAYOUTS(DP_DUMP_Q_SCALE, layout_q_scale),
    LAYOUTS(DP_DUMP_K_SCALE, layout_k_scale),
    LAYOUTS(DP_DUMP_V_SCALE, layout_v_scale),
    EACH("ties-toward-zero", DP_DUMP_V_PAYLOAD, payload_v, 0, "midpoints go to zero"),
    EACH("ties-away", DP_DUMP_V_PAYLOAD, payload_v, 1, "midpoints go away from zero"),
    EACH("truncated", DP_DUMP_V_PAYLOAD, payload_v, 2, "magnitudes are cut, not rounded"),
    EACH("v-wrong-axis", DP_DUMP_V_PAYLOAD, payload_v, 3,
         "blocks of V run along the head dimension, not along the keys"),
    EACH("v-wrong-axis", DP_DUMP_V_SCALE, scale_v_across, 0,
         "blocks of V run along the head dimension, not along the keys"),
    EACH("v-step-for-amplitude", DP_DUMP_V_PAYLOAD, payload_v, 5,
         "the byte of V is taken for the step: payload six times too small"),
    EACH("v-scale-rounded-up", DP_DUMP_V_PAYLOAD, payload_v, 6, "amplitude rounded up"),
    EACH("v-scale-rounded-down", DP_DUMP_V_PAYLOAD, payload_v, 7, "amplitude rounded down"),
    EACH("factor-1/2", DP_DUMP_V_PAYLOAD, payload_v, 8, "elements are half as large"),
    EACH("v-scale-rounded-up", DP_DUMP_V_SCALE, scale_v, 0, "amplitude rounded up, not to nearest"),
    EACH("v-scale-rounded-down", DP_DUMP_V_SCALE, scale_v, 1,
         "amplitude is the exponent of amax, not the nearest power of two"),
    EACH("v-step-for-amplitude", DP_DUMP_V_SCALE, scale_v, 2, "the byte is the step amax / 6"),
    EACH("scale-byte-off", DP_DUMP_V_SCALE, offset_v, 1, "bytes are one too large: factor 2"),
    EACH("scale-byte-off", DP_DUMP_V_SCALE, offset_v, -1, "bytes are one too small: factor 1/2"),
    {.name = NULL},
};
