/* SPDX-License-Identifier: MIT
 *
 * Known mistakes of the stage code.
 */
#include <math.h>

#include "analysis/hypothesis.h"
#include "formats/bf16.h"
#include "formats/fp16.h"
#include "ref/arith/f32_fast.h"

#define LOG2_6 0x40257007u

/* ---- launches changed in one respect -----------------------------------------------------------
 */

static void density(dp_direct_p *launch, double argument)
{
    launch->policy.density = (int)argument;
    if (argument > 0.0 && launch->policy.native_stages == 0) {
        launch->policy.native_stages = 3;
    }
}
static void native_stages(dp_direct_p *launch, double argument)
{
    launch->policy.native_stages = (unsigned)argument;
    launch->policy.density = launch->policy.density > 0 ? launch->policy.density : 1;
}
static void ideal(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->policy.map = DP_MAP_EX2;
}
static void toggle_rebase(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->policy.rebase_q1 = !launch->policy.rebase_q1;
}
static void toggle_clear(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->policy.clear_zero = !launch->policy.clear_zero;
}
static void map_of(dp_direct_p *launch, double argument)
{
    static const float maps[][2] = {
        {1.2f, 1.5f}, {0.8f, 1.65f}, {0.95f, 1.6f}, {0.92083546f, 1.62330034f}, {1.5f, 1.2f}};
    launch->policy.map = DP_MAP_AFFINE;
    launch->policy.coefficient[0] = maps[(int)argument][0];
    launch->policy.coefficient[1] = maps[(int)argument][1];
}

/* ---- codes by another rule ---------------------------------------------------------------------
 */

typedef enum {
    CODE_TIES_DOWN,
    CODE_TIES_AWAY,
    CODE_TRUNCATED,
    CODE_UNFUSED,         /* x first, then A x + B                              */
    CODE_UNFUSED_ROUNDED, /* A x and + B rounded apart                          */
    CODE_FACTOR_6,        /* without log2 6                                     */
    CODE_FACTOR_2,
    CODE_FACTOR_HALF,
    CODE_STORED_BYTE, /* built on the stored byte, not the working one      */
    CODE_RAW_BYTE,    /* the floor acts on the published byte alone         */
    CODE_NO_REFERENCE,
    CODE_OTHER_QUARTER, /* native pairs of the next quarter                   */
    CODE_OTHER_STAGE,   /* parity of the query tile exchanged                 */
    CODE_BF16_VALUE,
    CODE_F16_SCORE,
    CODE_BF16_SCORE,
    CODE_REBASE_FLOOR, /* the rebased quarter with a floor of its own        */
    CODE_REBASE_Q0,    /* the rebased quarter keeps Q0's byte                */
    CODE_NAN_ZERO,
    CODE_WRAPPED,      /* above the largest: not saturated                   */
    CODE_MAGNITUDE,    /* no ReLU: negative values keep their magnitude      */
    CODE_NATIVE_LANES, /* keys 2p of a native pair alone                     */
    CODE_BASE_E        /* exp instead of exp2 in native lanes                */
} code_rule;

static float block_maximum(const float *raw)
{
    float largest = -INFINITY;
    for (size_t j = 0; j < DP_BLOCK; j++) {
        largest = raw[j] > largest ? raw[j] : largest;
    }
    return largest;
}

/* The offsets of a block under the rule. */
static dp_block_scalars offsets(const dp_direct_p *launch, code_rule rule, int stage, int quarter,
                                float row_ref, const int *u)
{
    int working = dp_working_byte(launch, u[quarter]);
    const int working0 = dp_working_byte(launch, u[0]);
    const float m = rule == CODE_NO_REFERENCE ? 0.0f : row_ref;
    working = rule == CODE_STORED_BYTE ? dp_stored_byte(launch, u[quarter]) : working;
    working = rule == CODE_RAW_BYTE ? u[quarter] : working;
    dp_block_scalars block = dp_block_offsets(launch, m, working);
    if (launch->policy.rebase_q1 && stage == 0 && quarter == 1) {
        if (rule == CODE_REBASE_Q0) {
            block = dp_block_offsets(launch, m, working0);
        } else if (rule == CODE_REBASE_FLOOR) {
            block = dp_rebased_offsets(launch, m, working0, working0, working);
        } else {
            block =
                dp_rebased_offsets(launch, m, rule == CODE_RAW_BYTE ? u[0] : working0, u[0], u[1]);
        }
    }
    const float by = rule == CODE_FACTOR_6      ? -dp_f32_from_bits(LOG2_6)
                     : rule == CODE_FACTOR_2    ? 1.0f
                     : rule == CODE_FACTOR_HALF ? -1.0f
                                                : 0.0f;
    if (by != 0.0f) {
        block.q = dp_add_rn_ftz(block.q, by);
        block.ab =
            dp_fma_rn_ftz(launch->policy.coefficient[1], block.q, launch->policy.coefficient[0]);
    }
    return block;
}

static float value_of(const dp_direct_p *launch, code_rule rule, dp_block_scalars block,
                      bool native, float raw)
{
    const float a = launch->policy.coefficient[1];
    const float b = launch->policy.coefficient[0];
    if (rule == CODE_F16_SCORE) {
        raw = dp_fp16_to_f32(dp_fp16_from_f32(raw, DP_ENCODE_NONSAT));
    } else if (rule == CODE_BF16_SCORE) {
        raw = dp_bf16_to_f32(dp_bf16_from_f32(raw, DP_ENCODE_NONSAT));
    }
    if (!native && rule == CODE_UNFUSED) {
        return dp_fma_rn_ftz(a, dp_fma_rn_ftz(raw, launch->multiplier, block.q), b);
    }
    if (!native && rule == CODE_UNFUSED_ROUNDED) {
        return dp_add_rn_ftz(
            dp_mul_rn_ftz(a, dp_add_rn_ftz(dp_mul_rn_ftz(raw, launch->multiplier), block.q)), b);
    }
    if (native && rule == CODE_BASE_E) {
        return expf(dp_fma_rn_ftz(raw, launch->multiplier, block.q));
    }
    return dp_lane_value(launch, block, native, raw);
}

static uint8_t code_of(code_rule rule, float y)
{
    if (rule == CODE_NAN_ZERO && y != y) {
        return 0;
    }
    if (rule == CODE_BF16_VALUE) {
        y = dp_bf16_to_f32(dp_bf16_from_f32(y, DP_ENCODE_NONSAT));
    }
    if (rule == CODE_WRAPPED && y > 7.0f) {
        return 0;
    }
    if (rule == CODE_MAGNITUDE && y < 0.0f) {
        return dp_lane_code(-y);
    }
    if (rule <= CODE_TRUNCATED && y > 0.0f) {
        static const dp_ties ties[] = {DP_TIES_DOWN, DP_TIES_AWAY, DP_TIES_TRUNCATE};
        return dp_hypothesis_e2m1(y, ties[rule]);
    }
    return dp_lane_code(y);
}

static bool is_native(const dp_direct_p *launch, code_rule rule, int stage, int quarter, int lane)
{
    const bool rebased = launch->policy.rebase_q1 && stage == 0 && quarter == 1 &&
                         launch->policy.map == DP_MAP_AFFINE;
    const int from = rule == CODE_OTHER_QUARTER ? (quarter + 1) % DP_QUARTERS : quarter;
    return !rebased && dp_forward_policy_native_pair(&launch->policy, stage, from, lane / 2) &&
           !(rule == CODE_NATIVE_LANES && lane % 2 == 1);
}

static void code_tile(const dp_unit *unit, code_rule rule, float row_ref, const float *raw,
                      uint8_t *payload)
{
    const dp_direct_p *launch = &unit->launch;
    const int stage = (int)(unit->query_tile & 1u) ^ (rule == CODE_OTHER_STAGE ? 1 : 0);
    int u[DP_QUARTERS];
    for (size_t q = 0; q < DP_QUARTERS; q++) {
        u[q] = dp_block_byte(launch, block_maximum(raw + q * DP_BLOCK), row_ref);
    }
    dp_block_scalars block = {0};
    for (int j = 0; j < DP_TILE; j++) {
        const int q = j / DP_BLOCK;
        block = j % DP_BLOCK == 0 ? offsets(launch, rule, stage, q, row_ref, u) : block;
        const bool native = is_native(launch, rule, stage, q, j % DP_BLOCK);
        uint8_t code = code_of(rule, value_of(launch, rule, block, native, raw[j]));
        code = launch->policy.clear_zero && u[q] == 0 ? 0 : code;
        payload[j / 2] = (uint8_t)(j % 2 == 0 ? code : payload[j / 2] | (code << 4));
    }
}

static bool codes_by(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    for (size_t r = 0; r < unit->rows; r++) {
        const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys;
        const float row_ref = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
        for (size_t tile = 0; tile < unit->visited; tile++) {
            code_tile(unit, (code_rule)argument, row_ref, raw + tile * DP_TILE,
                      (uint8_t *)out + (r * keys + tile * DP_TILE) / 2);
        }
    }
    return true;
}

/* Codes in the wrong place: 0 words of 8 reversed, 1 pairs reversed in a word, 2 halves of a block
 * exchanged, 3 quarters of a K64 pair exchanged, 4 keys 0..15 and 16..31 interleaved, 5 one key
 * late.
 */
static bool codes_moved(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    const uint8_t *right = dp_strip_u8(&unit->out, DP_DUMP_P_PAYLOAD);
    for (size_t i = 0; i < unit->rows * keys; i++) {
        const size_t lane = i % DP_BLOCK;
        size_t from = i;
        switch ((int)argument) {
        case 0:
            from = i ^ 7u;
            break;
        case 1:
            from = i ^ 6u;
            break;
        case 2:
            from = i ^ 16u;
            break;
        case 3:
            from = i ^ 32u;
            break;
        case 4:
            from = i - lane + lane / 2 + lane % 2 * (DP_BLOCK / 2);
            break;
        default:
            from = lane > 0 ? i - 1 : i + DP_BLOCK - 1;
            break;
        }
        const uint8_t code = (uint8_t)((unsigned)right[from / 2] >> (from % 2 * 4) & 15u);
        uint8_t *byte = (uint8_t *)out + i / 2;
        *byte =
            (uint8_t)(i % 2 == 0 ? (*byte & 0xF0u) | code : (*byte & 0x0Fu) | (uint32_t)code << 4);
    }
    return true;
}

#define CHANGE(name_, change_, argument_, meaning_)                                                \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_P_PAYLOAD, .change = (change_), .argument = (argument_),    \
        .meaning = (meaning_)                                                                      \
    }
#define RULE(name_, rule_, meaning_)                                                               \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_P_PAYLOAD, .run = codes_by, .argument = (rule_),            \
        .meaning = (meaning_)                                                                      \
    }
#define MOVED(name_, how_, meaning_)                                                               \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_P_PAYLOAD, .run = codes_moved, .argument = (how_),          \
        .meaning = (meaning_)                                                                      \
    }

const dp_hypothesis dp_hypotheses_code[] = {
    RULE("ties-toward-zero", CODE_TIES_DOWN, "midpoints go down, not to the even code"),
    RULE("ties-away", CODE_TIES_AWAY, "midpoints go up, not to the even code"),
    RULE("truncated", CODE_TRUNCATED, "values are cut, not rounded"),
    RULE("unfused", CODE_UNFUSED, "x is rounded before the affine map: coefficients not folded"),
    RULE("unfused", CODE_UNFUSED_ROUNDED, "every product and sum of the map is rounded apart"),
    RULE("factor-6", CODE_FACTOR_6, "log2 6 is missing: values six times too small"),
    RULE("factor-2", CODE_FACTOR_2, "values are twice too large"),
    RULE("factor-1/2", CODE_FACTOR_HALF, "values are half too small"),
    RULE("built-on-stored-byte", CODE_STORED_BYTE,
         "codes are built on the stored byte, L too small, not on the working byte"),
    RULE("floor-on-published-byte", CODE_RAW_BYTE,
         "the floor acts on the published byte alone, not on the working byte"),
    RULE("reference-not-subtracted", CODE_NO_REFERENCE, "m is not in the offset"),
    CHANGE("native-missing", density, 0, "no lane takes the exponential unit"),
    CHANGE("native-density-1", density, 1, "four pairs take the exponential unit"),
    CHANGE("native-density-2", density, 2, "eight pairs take the exponential unit"),
    CHANGE("native-all", density, 4, "every lane takes the exponential unit"),
    CHANGE("ideal-exponential", ideal, 0, "every lane is 2^x: the affine map is missing"),
    RULE("native-other-quarter", CODE_OTHER_QUARTER, "native pairs are the next quarter's"),
    RULE("native-half-pairs", CODE_NATIVE_LANES, "only the even key of a native pair is native"),
    RULE("native-base-e", CODE_BASE_E, "native lanes take exp, not exp2"),
    CHANGE("native-stage-0", native_stages, 1, "native lanes act in even query tiles alone"),
    CHANGE("native-stage-1", native_stages, 2, "native lanes act in odd query tiles alone"),
    CHANGE("native-both-stages", native_stages, 3, "native lanes act in both stages"),
    CHANGE("rebase-q1", toggle_rebase, 0,
           "the rebase of Q1 in even query tiles is missing, or there without need"),
    RULE("stage-parity", CODE_OTHER_STAGE, "even and odd query tiles are exchanged"),
    RULE("rebase-with-floor", CODE_REBASE_FLOOR, "the rebased quarter has a floor of its own"),
    RULE("rebase-keeps-q0", CODE_REBASE_Q0, "the rebased quarter is coded with Q0's byte"),
    CHANGE("clear-zero", toggle_clear, 0,
           "codes of blocks with byte 0 are cleared without need, or not cleared"),
    CHANGE("map-fast", map_of, 0, "A, B are 1.5, 1.2 of the policy fast"),
    CHANGE("map-accurate", map_of, 1, "A, B are 1.65, 0.8 of the policy accurate"),
    CHANGE("map-wan", map_of, 2, "A, B are 1.6, 0.95 of the policy wan"),
    CHANGE("map-nvnv", map_of, 3, "A, B are those of the historical NVFP4 map"),
    CHANGE("map-exchanged", map_of, 4, "A and B are exchanged"),
    {.name = "map-other",
     .id = DP_DUMP_P_PAYLOAD,
     .run = dp_hypothesis_fitted_map,
     .meaning = "the map is affine with other constants"},
    RULE("bf16-double-rounding", CODE_BF16_VALUE, "values went through bf16 before the converter"),
    RULE("bf16-scores", CODE_BF16_SCORE, "scores went through bf16"),
    RULE("f16-scores", CODE_F16_SCORE, "scores went through f16"),
    RULE("nan-to-zero", CODE_NAN_ZERO, "NaN becomes code 0, not 7"),
    RULE("not-saturated", CODE_WRAPPED, "values above the largest are not saturated"),
    RULE("relu-missing", CODE_MAGNITUDE, "negative values keep their magnitude"),
    MOVED("word-reversed", 0, "the eight codes of a word are in reverse order"),
    MOVED("bytes-reversed", 1, "the four bytes of a word are in reverse order"),
    MOVED("halves-exchanged", 2, "keys 0-15 and 16-31 of a block are exchanged"),
    MOVED("quarters-exchanged", 3, "the quarters of a K64 step are exchanged"),
    MOVED("interleaved", 4, "keys 0-15 and 16-31 of a block are interleaved"),
    MOVED("one-key-late", 5, "codes are stored one key late"),
    {.name = NULL},
};
