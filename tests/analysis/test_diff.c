/* SPDX-License-Identifier: MIT
 *
 * The mutation test of the comparer: faults planted into an emulated kernel, one at a time. Each
 * must be found, at the stage where it was planted, and most must be called by their name.
 */
#include <math.h>
#include <stdlib.h>

#include "fault_case.h"
#include "formats/bf16.h"
#include "formats/layout.h"
#include "formats/preset.h"
#include "ref/arith/f32_fast.h"
#include "support.h"

enum {
    FAST,
    ACCURATE,
    GUARD,
    CAUSAL,
    GRID,
    PEAKED,
    FLUSH,
    FLUSH_R,
    FLAT,
    SINGLE,
    EMPTY,
    HUGE_Q,
    RAGGED,
    GROUPED,
    CASES
};

static const fault_case CASE[CASES] = {
    [FAST] = {"fast", "fast", DP_EPOCH_R, 256, 256, 2, 1, false, 0},
    [GROUPED] = {"grouped", "fast", DP_EPOCH_R, 128, 256, 4, 2, false, 0},
    [ACCURATE] = {"accurate", "accurate", DP_EPOCH_R, 256, 256, 2, 2, false, 0},
    [GUARD] = {"guard", "guard-14b", DP_EPOCH_R, 256, 256, 2, 1, false, 0},
    [CAUSAL] = {"causal-ragged", "accurate", DP_EPOCH_S, 200, 300, 2, 1, true, 0},
    [GRID] = {"midpoints", "accurate", DP_EPOCH_R, 128, 256, 1, 1, false, 1},
    [PEAKED] = {"peaked", "guard-1.3b", DP_EPOCH_S, 256, 256, 1, 1, false, 2},
    [FLUSH] = {"flush", "fast", DP_EPOCH_S, 256, 512, 1, 1, false, 4},
    [FLUSH_R] = {"flush-r", "fast", DP_EPOCH_R, 128, 256, 1, 1, false, 4},
    [FLAT] = {"flat", "fast", DP_EPOCH_R, 128, 256, 1, 1, false, 3},
    [EMPTY] = {"rows-without-keys", "fast", DP_EPOCH_R, 256, 128, 1, 1, true, 0},
    [HUGE_Q] = {"huge", "accurate", DP_EPOCH_R, 128, 128, 1, 1, false, 5},
    [RAGGED] = {"ragged", "fast", DP_EPOCH_R, 128, 200, 1, 1, false, 0},
    [SINGLE] = {"fast-s", "fast", DP_EPOCH_S, 256, 512, 2, 2, false, 0},
};

typedef void plant(fault_problem *p, double argument);

typedef struct {
    const char *name;
    int from;             /* case                                          */
    dp_dump_id stage;     /* the dataset that must be the first wrong one   */
    const char *expected; /* name of the diagnosis, NULL: none is known    */
    plant *put;
    double argument;
    bool follow; /* the emulated kernel goes on with the wrong data        */
} fault;

/* ---- launches with one thing wrong: a kernel built with another constant ------------------------
 */

typedef enum {
    L_EPOCH,
    L_SHIFT,
    L_DENSITY,
    L_STAGES,
    L_REBASE,
    L_CLEAR,
    L_A,
    L_B,
    L_ANCHOR,
    L_MARGIN,
    L_UNITS,
    L_NO_REFERENCE,
    L_DENOMINATOR,
    L_SCALE_FIRST,
    L_FMA,
    L_MULTIPLIER,
    L_IDEAL,
    L_LOG2E
} launch_field;

static void launch_with(fault_problem *p, launch_field field, double x)
{
    dp_direct_p wrong = p->launch;
    dp_forward_policy *policy = &wrong.policy;
    switch (field) {
    case L_EPOCH:
        wrong.epoch = wrong.epoch == DP_EPOCH_S ? DP_EPOCH_R : DP_EPOCH_S;
        break;
    case L_SHIFT:
        policy->shift = (int)x;
        break;
    case L_DENSITY:
        policy->density = (int)x;
        break;
    case L_STAGES:
        policy->native_stages = (unsigned)x;
        break;
    case L_REBASE:
        policy->rebase_q1 = !policy->rebase_q1;
        break;
    case L_CLEAR:
        policy->clear_zero = !policy->clear_zero;
        break;
    case L_A:
        policy->coefficient[1] = (float)x;
        policy->coefficient[0] = x > 1.62 ? 0.8f : x > 1.55 ? 0.95f : 1.2f;
        break;
    case L_B:
        policy->coefficient[0] = (float)x;
        break;
    case L_ANCHOR:
        policy->anchor_keys = (int)x;
        break;
    case L_MARGIN:
        policy->margin = (int)x;
        break;
    case L_UNITS:
        wrong.switches.margin_log2 = !wrong.switches.margin_log2;
        break;
    case L_NO_REFERENCE:
        policy->reference = DP_REFERENCE_NONE;
        break;
    case L_DENOMINATOR:
        policy->denominator = policy->denominator == DP_DENOMINATOR_PRODUCER
                                  ? DP_DENOMINATOR_CORRECTION
                                  : DP_DENOMINATOR_PRODUCER;
        break;
    case L_SCALE_FIRST:
        wrong.switches.fault_scale_first = true;
        break;
    case L_FMA:
        wrong.switches.fma_denominator = true;
        break;
    case L_MULTIPLIER:
        wrong.multiplier = (float)(1.4426950408889634 / sqrt(128.0));
        break;
    case L_IDEAL:
        policy->map = DP_MAP_EX2;
        break;
    default:
        wrong.multiplier = (float)(1.0 / sqrt(128.0));
        break;
    }
    fault_problem_run(p, &p->in, &p->operands, &wrong);
}

#define LAUNCH(field_, short_)                                                                     \
    static void launch_##short_(fault_problem *p, double argument)                                 \
    {                                                                                              \
        launch_with(p, field_, argument);                                                          \
    }
LAUNCH(L_EPOCH, epoch)
LAUNCH(L_SHIFT, shift)
LAUNCH(L_DENSITY, density)
LAUNCH(L_STAGES, stages)
LAUNCH(L_REBASE, rebase)
LAUNCH(L_CLEAR, clear)
LAUNCH(L_A, a)
LAUNCH(L_B, b)
LAUNCH(L_ANCHOR, anchor)
LAUNCH(L_MARGIN, margin)
LAUNCH(L_UNITS, units)
LAUNCH(L_NO_REFERENCE, no_reference)
LAUNCH(L_DENOMINATOR, denominator)
LAUNCH(L_SCALE_FIRST, scale_first)
LAUNCH(L_FMA, fma)
LAUNCH(L_MULTIPLIER, multiplier)
LAUNCH(L_IDEAL, ideal)
LAUNCH(L_LOG2E, log2e)

/* ---- operands misread: the dump's operands are right, the kernel's view of them is not ----------
 */

typedef enum {
    M_Q_NIBBLES,
    M_K_NIBBLES,
    M_V_NIBBLES,
    M_Q_LAYOUT,
    M_K_LAYOUT,
    M_V_LAYOUT,
    M_V_LAYOUT_64,
    M_Q_LAYOUT_SWAPPED,
    M_FOLD,
    M_SECOND_K64,
    M_FIRST_K64,
    M_GQA,
    M_CAUSAL,
    M_TOP_LEFT,
    M_PADDING,
    M_V_ROLL
} misread;

static void swizzle(uint8_t *scale, dp_layout kind, size_t rows, size_t cols)
{
    const dp_layout_map map = {kind, rows, cols};
    uint8_t *copy = calloc(dp_layout_bytes(map), 1);
    dp_layout_swizzle(map, scale, copy);
    memcpy(scale, copy, rows * cols);
    free(copy);
}

static void zero_half(uint8_t *payload, size_t rows, bool second)
{
    for (size_t i = 0; i < rows * 64; i++) {
        payload[i] = (i % 64 >= 32) == second ? 0 : payload[i];
    }
}

static void operands_with(fault_problem *p, misread what)
{
    dp_operands wrong;
    dp_error error = {""};
    dp_attention in = p->in;
    int32_t map[64];
    ck_assert(dp_forward_quantize(&p->in, &p->launch, 1, &wrong, &error));
    const size_t q_rows = in.q_heads * wrong.query_rows;
    const size_t k_rows = in.kv_heads * wrong.key_rows;
    const size_t v_rows = in.kv_heads * 128;
    switch (what) {
    case M_Q_NIBBLES:
        dp_nibble_swap(wrong.q_payload, q_rows * 64);
        break;
    case M_K_NIBBLES:
        dp_nibble_swap(wrong.k_payload, k_rows * 64);
        break;
    case M_V_NIBBLES:
        dp_nibble_swap(wrong.v_payload, v_rows * wrong.key_rows / 2);
        break;
    case M_Q_LAYOUT:
    case M_Q_LAYOUT_SWAPPED:
        for (size_t h = 0; h < in.q_heads; h++) {
            swizzle(wrong.q_scale + h * wrong.query_rows * 8,
                    what == M_Q_LAYOUT ? DP_LAYOUT_128X4 : DP_LAYOUT_128X4_SWAPPED,
                    wrong.query_rows, 8);
        }
        break;
    case M_K_LAYOUT:
        for (size_t h = 0; h < in.kv_heads; h++) {
            swizzle(wrong.k_scale + h * wrong.key_rows * 8, DP_LAYOUT_128X4, wrong.key_rows, 8);
        }
        break;
    case M_V_LAYOUT:
    case M_V_LAYOUT_64:
        for (size_t h = 0; h < in.kv_heads; h++) {
            swizzle(wrong.v_scale + h * 128 * wrong.key_rows / 32,
                    what == M_V_LAYOUT ? DP_LAYOUT_128X4 : DP_LAYOUT_SM120, 128,
                    wrong.key_rows / 32);
        }
        break;
    case M_FOLD:
        for (size_t i = 0; i < q_rows * 8; i++) {
            wrong.q_scale[i] = wrong.q_scale[i / 8 * 8 + i % 4];
        }
        for (size_t i = 0; i < k_rows * 8; i++) {
            wrong.k_scale[i] = wrong.k_scale[i / 8 * 8 + i % 4];
        }
        break;
    case M_SECOND_K64:
        zero_half(wrong.q_payload, q_rows, true);
        break;
    case M_FIRST_K64:
        zero_half(wrong.q_payload, q_rows, false);
        break;
    case M_GQA:
        for (size_t h = 0; h < in.q_heads; h++) {
            map[h] = (int32_t)(h % in.kv_heads);
        }
        in.kv_of_q = map;
        break;
    case M_CAUSAL:
        in.causal = false;
        break;
    case M_V_ROLL: /* V of the neighbour feature */
        memmove(wrong.v_payload, wrong.v_payload + wrong.key_rows / 2,
                (v_rows - 1) * wrong.key_rows / 2);
        break;
    default:
        in.keys = wrong.key_rows;
        free(wrong.key_order);
        wrong.key_order = malloc(in.keys * sizeof *wrong.key_order);
        for (size_t i = 0; i < in.keys; i++) {
            wrong.key_order[i] = (int32_t)i;
        }
        break;
    }
    fault_problem_run(p, &in, &wrong, &p->launch);
    dp_operands_free(&wrong);
}

#define OPERANDS(what_, short_)                                                                    \
    static void read_##short_(fault_problem *p, double argument)                                   \
    {                                                                                              \
        (void)argument;                                                                            \
        operands_with(p, what_);                                                                   \
    }
OPERANDS(M_Q_NIBBLES, q_nibbles)
OPERANDS(M_K_NIBBLES, k_nibbles)
OPERANDS(M_V_NIBBLES, v_nibbles)
OPERANDS(M_Q_LAYOUT, q_layout)
OPERANDS(M_K_LAYOUT, k_layout)
OPERANDS(M_V_LAYOUT, v_layout)
OPERANDS(M_V_LAYOUT_64, v_layout_64)
OPERANDS(M_Q_LAYOUT_SWAPPED, q_swapped)
OPERANDS(M_FOLD, fold)
OPERANDS(M_SECOND_K64, second_k64)
OPERANDS(M_FIRST_K64, first_k64)
OPERANDS(M_GQA, gqa)
OPERANDS(M_CAUSAL, causal)
OPERANDS(M_PADDING, padding)
OPERANDS(M_V_ROLL, v_roll)

/* ---- another quantizer: the kernel's operands are wrong in the dump too -------------------------
 */

static void quantized_with(fault_problem *p, const dp_direct_p *launch)
{
    dp_operands wrong;
    dp_error error = {""};
    ck_assert(dp_forward_quantize(&p->in, launch, 1, &wrong, &error));
    fault_problem_operands(p, &wrong);
    fault_problem_run(p, &p->in, &wrong, &p->launch);
    dp_operands_free(&wrong);
}
static void quantize_unfolded(fault_problem *p, double argument)
{
    dp_direct_p wrong = p->launch;
    (void)argument;
    wrong.policy.fold_k64 = !wrong.policy.fold_k64;
    quantized_with(p, &wrong);
}
static void quantize_natural(fault_problem *p, double argument)
{
    dp_direct_p wrong = p->launch;
    (void)argument;
    wrong.switches.natural_order = true;
    quantized_with(p, &wrong);
}

/* Codes of Q, K or V from their scales with the tie rule of `argument`: 0 down, 1 away, 2 cut. */
static uint8_t code_under(float x, int ties)
{
    static const float value[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const float a = fabsf(x);
    int best = 0;
    for (int c = 1; c < 8; c++) {
        const float middle = 0.5f * (value[c - 1] + value[c]);
        const bool up = ties == 1 || (ties == 3 && c % 2 == 0);
        if (ties == 2 ? a >= value[c] : up ? a >= middle : a > middle) {
            best = c;
        }
    }
    return (uint8_t)(best | (x < 0.0f ? 8 : 0));
}
static void tie_qk(fault_problem *p, dp_dump_id id, int ties)
{
    const bool q = id == DP_DUMP_Q_PAYLOAD;
    uint8_t *payload = p->dump.memory[id];
    const uint8_t *scale = p->dump.memory[q ? DP_DUMP_Q_SCALE : DP_DUMP_K_SCALE];
    const size_t rows = q ? p->in.queries : p->in.keys;
    for (size_t i = 0; i < rows * 128; i++) { /* head 0 */
        const size_t row = q ? i / 128 : (size_t)p->dump.key_order[i / 128];
        const dp_bf16 x = {(q ? p->q : p->k)[row * 128 + i % 128]};
        const unsigned byte = scale[i / 16];
        /* an E4M3 scale by its definition */
        const float s = byte >> 3 == 0
                            ? ldexpf((float)(byte & 7u), -9)
                            : ldexpf(1.0f + (float)(byte & 7u) / 8.0f, (int)(byte >> 3) - 7);
        const float inverse = dp_rcp_approx_ftz(dp_sfu_exact(), s);
        const uint8_t code = s > 0.0f ? code_under(dp_bf16_to_f32(x) * inverse, ties) : 0;
        payload[i / 2] = (uint8_t)(i % 2 == 0 ? code : payload[i / 2] | (code << 4));
    }
}
static void tie_q(fault_problem *p, double argument)
{
    tie_qk(p, DP_DUMP_Q_PAYLOAD, (int)argument);
}
static void tie_k(fault_problem *p, double argument)
{
    tie_qk(p, DP_DUMP_K_PAYLOAD, (int)argument);
}
static void tie_v(fault_problem *p, double argument)
{
    uint8_t *payload = p->dump.memory[DP_DUMP_V_PAYLOAD];
    const uint8_t *scale = p->dump.memory[DP_DUMP_V_SCALE];
    const size_t keys = p->dump.key_rows;
    for (size_t i = 0; i < 128 * keys; i++) {
        const size_t key = (size_t)p->dump.key_order[i % keys];
        const dp_bf16 x = {p->v[key * 128 + i / keys]};
        const double factor = ldexp(argument == 3.0 ? 1.0 : 6.0, 127 - scale[i / 32]);
        const uint8_t code = code_under((float)((double)dp_bf16_to_f32(x) * factor), (int)argument);
        payload[i / 2] = (uint8_t)(i % 2 == 0 ? code : payload[i / 2] | (code << 4));
    }
}
/* Blocks of V across 32 features of one key. */
static void v_across(fault_problem *p, double argument)
{
    const size_t keys = p->dump.key_rows;
    uint8_t *payload = p->dump.memory[DP_DUMP_V_PAYLOAD];
    (void)argument;
    for (size_t i = 0; i < 128 * keys; i++) {
        const uint16_t *row = p->v + (size_t)p->dump.key_order[i % keys] * 128;
        float amax = 0.0f;
        for (size_t d = i / keys / 32 * 32; d < i / keys / 32 * 32 + 32; d++) {
            amax = fmaxf(amax, fabsf(dp_bf16_to_f32((dp_bf16){row[d]})));
        }
        int e = 0;
        const float m = frexpf(amax, &e); /* nearest power of two of amax */
        const int exponent = m > 0.75f || (m == 0.75f && (e & 1) != 0) ? e : e - 1;
        const float x = dp_bf16_to_f32((dp_bf16){row[i / keys]});
        const uint8_t code = amax == 0.0f ? 0 : dp_lane_code(fabsf(ldexpf(6.0f * x, -exponent)));
        const uint8_t full = (uint8_t)(code | (x < 0.0f ? 8 : 0));
        payload[i / 2] = (uint8_t)(i % 2 == 0 ? full : payload[i / 2] | (full << 4));
    }
}

/* ---- data of one stage changed ------------------------------------------------------------------
 */

static void nibbles(fault_problem *p, dp_dump_id id)
{
    dp_nibble_swap(p->dump.memory[id], fault_elements(p, id));
}
static void swap_q(fault_problem *p, double a)
{
    (void)a;
    nibbles(p, DP_DUMP_Q_PAYLOAD);
}
static void swap_k(fault_problem *p, double a)
{
    (void)a;
    nibbles(p, DP_DUMP_K_PAYLOAD);
}
static void swap_v(fault_problem *p, double a)
{
    (void)a;
    nibbles(p, DP_DUMP_V_PAYLOAD);
}
static void swap_p(fault_problem *p, double a)
{
    (void)a;
    nibbles(p, DP_DUMP_P_PAYLOAD);
}
static void layout_of(fault_problem *p, dp_dump_id id, double kind)
{
    const size_t rows = dp_dump_head_rows(&p->dump, id);
    const size_t width = dp_dump_width(&p->dump, id);
    for (size_t h = 0; h < dp_dump_heads(&p->dump, id); h++) {
        swizzle((uint8_t *)p->dump.memory[id] + h * rows * width, (dp_layout)kind, rows, width);
    }
}
static void layout_q(fault_problem *p, double kind)
{
    layout_of(p, DP_DUMP_Q_SCALE, kind);
}
static void layout_k(fault_problem *p, double kind)
{
    layout_of(p, DP_DUMP_K_SCALE, kind);
}
static void layout_v(fault_problem *p, double kind)
{
    layout_of(p, DP_DUMP_V_SCALE, kind);
}
static void bytes_plus(fault_problem *p, dp_dump_id id, int by)
{
    uint8_t *bytes = p->dump.memory[id];
    for (size_t i = 0; i < fault_elements(p, id); i++) {
        bytes[i] = (uint8_t)(bytes[i] + by);
    }
}
static void plus_q(fault_problem *p, double by)
{
    bytes_plus(p, DP_DUMP_Q_SCALE, (int)by);
}
static void plus_v(fault_problem *p, double by)
{
    bytes_plus(p, DP_DUMP_V_SCALE, (int)by);
}
static void plus_p(fault_problem *p, double by)
{
    bytes_plus(p, DP_DUMP_P_SCALE, (int)by);
}
/* Element i of a row takes element i ^ argument. */
static void exchange_p_scale(fault_problem *p, double argument)
{
    uint8_t *bytes = p->dump.memory[DP_DUMP_P_SCALE];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_P_SCALE); i++) {
        const size_t other = i ^ (size_t)argument;
        if (i < other) {
            const uint8_t x = bytes[i];
            bytes[i] = bytes[other];
            bytes[other] = x;
        }
    }
}
static void exchange_codes(fault_problem *p, double argument)
{
    uint8_t *bytes = p->dump.memory[DP_DUMP_P_PAYLOAD];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_P_PAYLOAD); i++) {
        const size_t other = i ^ (size_t)argument;
        if (i < other) {
            const uint8_t x = bytes[i];
            bytes[i] = bytes[other];
            bytes[other] = x;
        }
    }
}
static void factor(fault_problem *p, dp_dump_id id, double by)
{
    float *x = p->dump.memory[id];
    for (size_t i = 0; i < fault_elements(p, id); i++) {
        x[i] = (float)((double)x[i] * by);
    }
}
static void factor_raw(fault_problem *p, double by)
{
    factor(p, DP_DUMP_RAW, by);
}
static void factor_sum(fault_problem *p, double by)
{
    factor(p, DP_DUMP_ROW_SUM, by);
}
static void factor_acc(fault_problem *p, double by)
{
    factor(p, DP_DUMP_ACC, by);
}
static void bf16_of(fault_problem *p, dp_dump_id id)
{
    float *x = p->dump.memory[id];
    for (size_t i = 0; i < fault_elements(p, id); i++) {
        x[i] = dp_bf16_to_f32(dp_bf16_from_f32(x[i], DP_ENCODE_NONSAT));
    }
}
static void bf16_raw(fault_problem *p, double a)
{
    (void)a;
    bf16_of(p, DP_DUMP_RAW);
}
static void bf16_acc(fault_problem *p, double a)
{
    (void)a;
    bf16_of(p, DP_DUMP_ACC);
}
static void bf16_lse(fault_problem *p, double a)
{
    (void)a;
    bf16_of(p, DP_DUMP_LSE);
}
static void transpose(fault_problem *p, dp_dump_id id)
{
    float *x = p->dump.memory[id];
    const size_t width = dp_dump_width(&p->dump, id);
    for (size_t t = 0; t < fault_elements(p, id) / (128 * 128); t++) {
        float *tile = x + t / (width / 128) * 128 * width + t % (width / 128) * 128;
        for (size_t r = 0; r < 128; r++) {
            for (size_t c = 0; c < r; c++) {
                const float y = tile[r * width + c];
                tile[r * width + c] = tile[c * width + r];
                tile[c * width + r] = y;
            }
        }
    }
}
static void transpose_raw(fault_problem *p, double a)
{
    (void)a;
    transpose(p, DP_DUMP_RAW);
}
static void transpose_acc(fault_problem *p, double a)
{
    (void)a;
    transpose(p, DP_DUMP_ACC);
}
/* A quarter of the rows never written: argument is what the memory held. */
static void untouched(fault_problem *p, dp_dump_id id, int byte)
{
    const size_t bytes = fault_elements(p, id) * dp_dump_element(id);
    memset((char *)p->dump.memory[id] + bytes / 2, byte, bytes / 4);
}
static void untouched_raw(fault_problem *p, double byte)
{
    untouched(p, DP_DUMP_RAW, (int)byte);
}
static void untouched_p(fault_problem *p, double byte)
{
    untouched(p, DP_DUMP_P_PAYLOAD, (int)byte);
}
static void untouched_o(fault_problem *p, double byte)
{
    untouched(p, DP_DUMP_O, (int)byte);
}
static void untouched_acc(fault_problem *p, double byte)
{
    untouched(p, DP_DUMP_ACC, (int)byte);
}
/* Rows late by one. */
static void late(fault_problem *p, dp_dump_id id)
{
    const size_t row = dp_dump_width(&p->dump, id) * dp_dump_element(id);
    memmove((char *)p->dump.memory[id] + row, p->dump.memory[id],
            fault_elements(p, id) * dp_dump_element(id) - row);
}
static void late_p(fault_problem *p, double a)
{
    (void)a;
    late(p, DP_DUMP_P_PAYLOAD);
}
static void late_o(fault_problem *p, double a)
{
    (void)a;
    late(p, DP_DUMP_O);
}
/* One element, one bit. */
static void one_bit(fault_problem *p, dp_dump_id id)
{
    const size_t bytes = fault_elements(p, id) * dp_dump_element(id);
    ((uint8_t *)p->dump.memory[id])[bytes / 2 + bytes / 5 / 4 * 4] ^= 1u;
}
static void bit_at(fault_problem *p, double id)
{
    one_bit(p, (dp_dump_id)id);
}

/* ---- stage rules rewritten ----------------------------------------------------------------------
 */

/* Bytes: 0 ceil, 1 floor, 2 the block maximum over 16 keys, 3 without m, 4 neighbour's maximum. */
static void rewrite_bytes(fault_problem *p, double argument)
{
    const float *raw = p->dump.memory[DP_DUMP_RAW];
    const float *m = p->dump.memory[DP_DUMP_ROW_REF];
    uint8_t *out = p->dump.memory[DP_DUMP_P_SCALE];
    const size_t blocks = p->dump.key_rows / 32;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_P_SCALE); i++) {
        const float *block = raw + (argument == 4.0 ? (i ^ 1u) : i) * 32;
        float x = -INFINITY;
        for (int j = 0; j < (argument == 2.0 ? 16 : 32); j++) {
            x = fmaxf(x, block[j]);
        }
        const float d = argument == 3.0 ? x : dp_sub_rn_ftz(x, m[i / blocks]);
        const float g = dp_mul_rn_ftz(d, p->launch.multiplier);
        const float e = argument == 0.0   ? ceilf(g)
                        : argument == 1.0 ? floorf(g)
                                          : floorf(dp_add_rn_ftz(g, dp_f32_from_bits(0x3ED47FCCu)));
        const int u = (int)fminf(fmaxf(e + 127.0f, 0.0f), 254.0f);
        out[i] = (uint8_t)dp_stored_byte(&p->launch, u);
    }
}

/* Codes without rebase, from the definition: 0 ties down, 1 ties away, 2 cut, 3 unfused, 4 without
 * log2 6, 5 on the stored byte, 6 value through bf16, 7 scores through bf16, 8 without m, 9 ReLU
 * missing, 10 twice as large, 11 native pairs of the next quarter, 12 not saturated. */
static uint8_t rewritten(const fault_problem *p, int rule, int stage, int quarter, int lane,
                         float m, int u, float raw)
{
    const dp_direct_p *launch = &p->launch;
    const int working = rule == 5 ? dp_stored_byte(launch, u) : dp_working_byte(launch, u);
    dp_block_scalars s = dp_block_offsets(launch, rule == 8 ? 0.0f : m, working);
    const float a = launch->policy.coefficient[1];
    const float b = launch->policy.coefficient[0];
    if (rule == 4 || rule == 10) {
        s.q = dp_add_rn_ftz(s.q, rule == 4 ? -dp_f32_from_bits(0x40257007u) : 1.0f);
        s.ab = dp_fma_rn_ftz(a, s.q, b);
    }
    const bool native = dp_forward_policy_native_pair(
        &launch->policy, stage, rule == 11 ? (quarter + 1) % 4 : quarter, lane / 2);
    raw = rule == 7 ? dp_bf16_to_f32(dp_bf16_from_f32(raw, DP_ENCODE_NONSAT)) : raw;
    float y = dp_lane_value(launch, s, native, raw);
    if (rule == 3 && !native) {
        y = dp_fma_rn_ftz(a, dp_fma_rn_ftz(raw, launch->multiplier, s.q), b);
    }
    y = rule == 6 ? dp_bf16_to_f32(dp_bf16_from_f32(y, DP_ENCODE_NONSAT)) : y;
    if (rule == 9) {
        return dp_lane_code(fabsf(y));
    }
    if (rule == 12 && y > 7.0f) {
        return 0;
    }
    return y <= 0.0f ? 0 : rule < 3 ? code_under(y, rule) : dp_lane_code(y);
}

static void rewrite_codes(fault_problem *p, double argument)
{
    const float *raw = p->dump.memory[DP_DUMP_RAW];
    const float *m = p->dump.memory[DP_DUMP_ROW_REF];
    uint8_t *out = p->dump.memory[DP_DUMP_P_PAYLOAD];
    const size_t keys = p->dump.key_rows;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_RAW); i++) {
        const size_t row = i / keys;
        float x = -INFINITY;
        for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++) {
            x = fmaxf(x, raw[j]);
        }
        const int u = dp_block_byte(&p->launch, x, m[row]);
        uint8_t code = rewritten(p, (int)argument, (int)(row % p->in.queries / 128 & 1u),
                                 (int)(i % 128 / 32), (int)(i % 32), m[row], u, raw[i]);
        code = p->launch.policy.clear_zero && u == 0 ? 0 : code;
        out[i / 2] = (uint8_t)(i % 2 == 0 ? code : out[i / 2] | (code << 4));
    }
}

/* Scores that put every fourth lane on a midpoint of the converter, found by search; then codes
 * under a tie rule. */
static void midpoint_codes(fault_problem *p, double argument)
{
    static const float middle[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    float *raw = p->dump.memory[DP_DUMP_RAW];
    const float *m = p->dump.memory[DP_DUMP_ROW_REF];
    const size_t keys = p->dump.key_rows;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_RAW) / 32; i++) {
        float *block = raw + i * 32;
        float x = -INFINITY;
        for (size_t j = 0; j < 32; j++) {
            x = fmaxf(x, block[j]);
        }
        const int u = dp_block_byte(&p->launch, x, m[i * 32 / keys]);
        const dp_block_scalars s =
            dp_block_offsets(&p->launch, m[i * 32 / keys], dp_working_byte(&p->launch, u));
        for (size_t j = 2; j < 32; j += 4) {
            if (block[j] == x) {
                continue; /* the maximum stays */
            }
            const float wanted = middle[(i + j) % 7];
            float guess = (wanted - s.ab) / s.as;
            for (int step = -8; step <= 8; step++) {
                const float near = dp_f32_from_bits((uint32_t)((int64_t)dp_f32_bits(guess) + step));
                if (near <= x && dp_fma_rn_ftz(near, s.as, s.ab) == wanted) {
                    block[j] = near;
                    break;
                }
            }
        }
    }
    for (int d = 0; d <= DP_DUMP_V_SCALE; d++) {
        p->dump.present[d] = false; /* these scores belong to no operands */
    }
    p->dump.has_inputs = false;
    fault_problem_follow(p, DP_DUMP_ROW_REF);
    rewrite_codes(p, argument);
}

/* Counts: 0 not doubled, 1 code numbers, 2 wrapped to 8 bits, 3 even keys alone. */
static void rewrite_counts(fault_problem *p, double argument)
{
    static const unsigned twice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    const uint8_t *payload = p->dump.memory[DP_DUMP_P_PAYLOAD];
    uint16_t *out = p->dump.memory[DP_DUMP_CODE_SUM];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_CODE_SUM); i++) {
        unsigned sum = 0;
        for (size_t j = 0; j < 32; j++) {
            const unsigned code = (unsigned)payload[i * 16 + j / 2] >> (j % 2 * 4) & 7u;
            sum += argument == 1.0 ? code : argument == 3.0 && j % 2 == 1 ? 0 : twice[code];
        }
        sum = argument == 0.0 ? sum / 2 : argument == 2.0 ? sum % 256 : sum;
        out[i] = (uint16_t)sum;
    }
}

/* Row sums: 0 quarters in order Q0..Q3, 1 the last tile left out, 2 unrounded P, 3 every tile anew,
 * 4 byte 0 as 2^-127. */
static void rewrite_sums(fault_problem *p, double argument)
{
    const uint8_t *stored = p->dump.memory[DP_DUMP_P_SCALE];
    const uint16_t *count = p->dump.memory[DP_DUMP_CODE_SUM];
    const float *raw = p->dump.memory[DP_DUMP_RAW];
    const float *m = p->dump.memory[DP_DUMP_ROW_REF];
    float *out = p->dump.memory[DP_DUMP_ROW_SUM];
    const size_t blocks = p->dump.key_rows / 32;
    for (size_t r = 0; r < fault_elements(p, DP_DUMP_ROW_SUM); r++) {
        float sum = 0.0f;
        double exact = 0.0, zeros = 0.0;
        for (size_t t = 0; t < blocks / 4; t++) {
            const size_t at = r * blocks + 4 * t;
            uint8_t s[4] = {stored[at], stored[at + 1], stored[at + 2], stored[at + 3]};
            uint16_t c[4] = {count[at], count[at + 1], count[at + 2], count[at + 3]};
            if (argument == 0.0) { /* what is added third comes first and so on */
                const uint8_t s2[4] = {s[1], s[2], s[0], s[3]};
                const uint16_t c2[4] = {c[1], c[2], c[0], c[3]};
                memcpy(s, s2, sizeof s);
                memcpy(c, c2, sizeof c);
            }
            for (int b = 0; b < 4; b++) {
                zeros += ldexp((double)c[b] / 12.0, s[b] - 127);
            }
            if (argument == 1.0 && t + 1 == blocks / 4) {
                continue;
            }
            sum = dp_row_sum_add(&p->launch, argument == 3.0 ? 0.0f : sum, s, c);
        }
        for (size_t j = 0; j < blocks * 32; j++) {
            exact += exp2(((double)raw[r * blocks * 32 + j] - (double)m[r]) *
                          (double)p->launch.multiplier);
        }
        sum = dp_row_sum_finish(&p->launch, sum);
        out[r] = argument == 2.0   ? (float)ldexp(exact, -p->launch.policy.shift)
                 : argument == 4.0 ? (float)zeros
                                   : sum;
    }
}

/* Accumulator: 0 rounded to nearest a K64 step, 1 only the last tile, 2 quarter bytes exchanged. */
static double p_value(const fault_problem *p, size_t row, size_t key, size_t block)
{
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const size_t keys = p->dump.key_rows;
    const uint8_t *payload = p->dump.memory[DP_DUMP_P_PAYLOAD];
    const uint8_t *stored = p->dump.memory[DP_DUMP_P_SCALE];
    const unsigned code = (unsigned)payload[(row * keys + key) / 2] >> (key % 2 * 4) & 7u;
    return ldexp(value[code], stored[row * (keys / 32) + block] - 127);
}
static double v_value(const fault_problem *p, size_t head, size_t d, size_t key)
{
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const size_t keys = p->dump.key_rows;
    const size_t row = head * 128 + d;
    const uint8_t *payload = p->dump.memory[DP_DUMP_V_PAYLOAD];
    const uint8_t *scale = p->dump.memory[DP_DUMP_V_SCALE];
    const unsigned code = (unsigned)payload[(row * keys + key) / 2] >> (key % 2 * 4) & 15u;
    const double x = ldexp(value[code & 7u], scale[row * (keys / 32) + key / 32] - 127);
    return (code & 8u) != 0 ? -x : x;
}
static void rewrite_acc(fault_problem *p, double argument)
{
    float *out = p->dump.memory[DP_DUMP_ACC];
    const size_t keys = p->dump.key_rows;
    for (size_t row = 0; row < p->in.q_heads * p->in.queries; row++) {
        const size_t head = (size_t)p->kv_of_q[row / p->in.queries];
        for (size_t d = 0; d < 128; d++) {
            float acc = 0.0f;
            for (size_t step = 0; step < keys / 64; step++) {
                double part = 0.0;
                for (size_t j = step * 64; j < step * 64 + 64; j++) {
                    part += p_value(p, row, j, argument == 2.0 ? (j / 32) ^ 1u : j / 32) *
                            v_value(p, head, d, j);
                }
                acc = argument == 1.0 && step % 2 == 0 ? (float)part : (float)((double)acc + part);
            }
            out[row * 128 + d] = acc;
        }
    }
}

/* O: 0 cut, 1 through f16-like 11 bits, 2 factor 36, 3 division, 4 2^L, 5 invalid rows NaN, 6 not
 * normalised, 7 half. */
static void rewrite_o(fault_problem *p, double argument)
{
    const float *acc = p->dump.memory[DP_DUMP_ACC];
    const float *sum = p->dump.memory[DP_DUMP_ROW_SUM];
    const float c36 = dp_f32_from_bits(0x3CE38E39u);
    uint16_t *out = p->dump.memory[DP_DUMP_O];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_O); i++) {
        const float s = sum[i / 128];
        const float inverse = dp_rcp_approx_ftz(p->launch.sfu, s);
        float scale = dp_mul_rn_ftz(inverse, c36);
        if (!(s > 0.0f)) {
            out[i] = argument == 5.0 ? 0x7FC0u : out[i];
            continue;
        }
        scale = argument == 2.0   ? inverse
                : argument == 6.0 ? c36
                : argument == 4.0 ? ldexpf(scale, p->launch.policy.shift)
                : argument == 7.0 ? 0.5f * scale
                                  : scale;
        const float x = argument == 3.0 ? acc[i] / s * c36 : dp_mul_rn_ftz(acc[i], scale);
        out[i] = argument == 0.0 ? (uint16_t)(dp_f32_bits(x) >> 16)
                                 : dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
    }
}

/* Accumulators whose outputs lie at midpoints of bf16, where the last bit of the factor decides. */
static void midpoint_o(fault_problem *p, double argument)
{
    float *acc = p->dump.memory[DP_DUMP_ACC];
    const float *sum = p->dump.memory[DP_DUMP_ROW_SUM];
    for (int d = 0; d < DP_DUMP_ACC; d++) {
        p->dump.present[d] = d == DP_DUMP_ROW_REF || d == DP_DUMP_ROW_SUM;
    }
    p->dump.has_inputs = false; /* these accumulators belong to no codes */
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_ACC); i++) {
        const float scale = dp_mul_rn_ftz(dp_rcp_approx_ftz(p->launch.sfu, sum[i / 128]),
                                          dp_f32_from_bits(0x3CE38E39u));
        const float o = dp_mul_rn_ftz(acc[i], scale);
        acc[i] = dp_f32_from_bits((dp_f32_bits(o) & 0xFFFF0000u) | 0x8000u) / scale;
    }
    fault_problem_follow(p, DP_DUMP_ACC);
    rewrite_o(p, argument);
}

static void add_lse(fault_problem *p, double by)
{
    float *lse = p->dump.memory[DP_DUMP_LSE];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_LSE); i++) {
        lse[i] = (float)((double)lse[i] + by);
    }
}
static void lse_base_2(fault_problem *p, double a)
{
    float *lse = p->dump.memory[DP_DUMP_LSE];
    const float *sum = p->dump.memory[DP_DUMP_ROW_SUM];
    const float *m = p->dump.memory[DP_DUMP_ROW_REF];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_LSE); i++) {
        const float l = dp_lg2_approx_ftz(p->launch.sfu, sum[i]);
        const float lift = p->launch.epoch == DP_EPOCH_R ? (float)p->launch.policy.shift : 0.0f;
        const float x = dp_fma_rn_ftz(a == 1.0 ? 0.0f : m[i], p->launch.multiplier, l);
        lse[i] = a == 1.0 ? dp_mul_rn_ftz(dp_add_rn_ftz(x, lift), dp_f32_from_bits(0x3F317218u))
                          : dp_add_rn_ftz(x, lift);
    }
}
static void lse_infinite(fault_problem *p, double a)
{
    float *lse = p->dump.memory[DP_DUMP_LSE];
    (void)a;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_LSE); i++) {
        lse[i] = isinf(lse[i]) ? INFINITY : lse[i];
    }
}

/* ---- masks, from all scores of the padded problem
 * ------------------------------------------------
 */

enum {
    MASK_SHORT,
    MASK_MORE,
    MASK_TOP,
    MASK_TILE,
    MASK_TILE_DOWN,
    MASK_BLOCK,
    MASK_WHOLE_TILE,
    MASK_LENGTH,
    MASK_PADDING,
    MASK_BACKWARDS
};

static bool seen_under(const fault_problem *p, int how, long row, long key)
{
    const long keys = (long)p->in.keys;
    const long diagonal = row + keys - (long)p->in.queries;
    switch (how) {
    case MASK_SHORT:
        return key < keys && key < diagonal;
    case MASK_MORE:
        return key < keys && key <= diagonal + 1;
    case MASK_TOP:
        return key < keys && key <= row;
    case MASK_TILE: /* whole tiles of keys alone are skipped */
        return key < keys && key / 128 <= diagonal / 128;
    case MASK_TILE_DOWN: /* the tile of the diagonal is skipped, unless all of it is seen */
        return key < keys && key / 128 < (diagonal + 1) / 128;
    case MASK_BLOCK:
        return key < keys && key / 32 <= diagonal / 32;
    case MASK_WHOLE_TILE: /* one bound for the query tile */
        return key < keys && key <= row / 128 * 128 + 127 + keys - (long)p->in.queries;
    case MASK_LENGTH:
        return key < keys && key <= row + (long)p->dump.key_rows - (long)p->in.queries;
    case MASK_PADDING:
        return !p->in.causal || key >= keys || key <= diagonal;
    default:
        return key < keys && key >= diagonal;
    }
}

static void mask_raw(fault_problem *p, double how)
{
    dp_operands wide = p->operands;
    dp_attention in = p->in;
    float *raw = p->dump.memory[DP_DUMP_RAW];
    const size_t keys = p->dump.key_rows;
    in.causal = false;
    in.keys = keys;
    wide.key_order = malloc(keys * sizeof *wide.key_order);
    for (size_t i = 0; i < keys; i++) {
        wide.key_order[i] = (int32_t)i;
    }
    fault_problem_run(p, &in, &wide, &p->launch);
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_RAW); i++) {
        const bool seen =
            seen_under(p, (int)how, (long)(i / keys % p->in.queries), (long)(i % keys));
        raw[i] = seen ? raw[i] : -INFINITY;
    }
    free(wide.key_order);
}

/* Keys stored backwards; the kernel's mask is that of keys in order. */
static void mask_columns(fault_problem *p, double argument)
{
    static int32_t order[1024];
    (void)argument;
    for (size_t i = 0; i < p->in.keys; i++) {
        order[i] = (int32_t)(p->in.keys - 1 - i);
    }
    p->dump.key_order = order;
    p->dump.has_inputs = false;
}

/* ---- other stacks' quantizers -------------------------------------------------------------------
 */

static void quantized_by(fault_problem *p, const char *name, int side)
{
    dp_preset preset;
    dp_error error = {""};
    dp_block_plan plan;
    size_t bad;
    const dp_dump_id id = side == 0   ? DP_DUMP_Q_PAYLOAD
                          : side == 1 ? DP_DUMP_K_PAYLOAD
                                      : DP_DUMP_V_PAYLOAD;
    const dp_dump_id scale_id = (dp_dump_id)(id + 1);
    ck_assert_msg(dp_preset_find(name, &preset, &error), "%s", error.text);
    const size_t rows = dp_dump_head_rows(&p->dump, id);
    const size_t length = side == 2 ? p->dump.key_rows : 128;
    const size_t heads = dp_dump_heads(&p->dump, id);
    const uint16_t *source = side == 0 ? p->q : side == 1 ? p->k : p->v;
    float amax = 0.0f;
    for (size_t i = 0; i < heads * (side == 0 ? p->in.queries : p->in.keys) * 128; i++) {
        amax = fmaxf(amax, fabsf(dp_bf16_to_f32((dp_bf16){source[i]})));
    }
    ck_assert(dp_block_plan_make(&preset.recipe, dp_preset_global(&preset, amax), &plan, &error));
    float *x = malloc(length * sizeof *x);
    for (size_t r = 0; r < heads * rows; r++) {
        const size_t head = r / rows;
        for (size_t j = 0; j < length; j++) {
            const size_t key = side == 2 ? j : r % rows;
            const size_t from = side == 0 ? r
                                : key < p->in.keys
                                    ? head * p->in.keys + (size_t)p->dump.key_order[key]
                                    : 0;
            const dp_bf16 value = {source[from * 128 + (side == 2 ? r % rows : j)]};
            x[j] = key < p->in.keys || side == 0 ? dp_bf16_to_f32(value) : 0.0f;
        }
        ck_assert(dp_block_quantize_run(
            &plan, x, 1, length, (uint8_t *)p->dump.memory[id] + r * dp_dump_width(&p->dump, id),
            (uint8_t *)p->dump.memory[scale_id] + r * dp_dump_width(&p->dump, scale_id), NULL,
            &bad));
    }
    free(x);
    fault_problem_follow(p, DP_DUMP_V_SCALE);
}
static void quantize_te(fault_problem *p, double side)
{
    quantized_by(p, "TE:nvfp4", (int)side);
}
static void quantize_ptx(fault_problem *p, double side)
{
    quantized_by(p, "PTX:nvfp4", (int)side);
}
static void quantize_ocp(fault_problem *p, double side)
{
    quantized_by(p, "OCP:mxfp4", (int)side);
}

/* A scale beyond the largest becomes the NaN byte. */
static void scale_not_saturated(fault_problem *p, double argument)
{
    uint8_t *scale = p->dump.memory[DP_DUMP_Q_SCALE];
    (void)argument;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_Q_SCALE); i++) {
        float amax = 0.0f;
        for (size_t j = 0; j < 16; j++) {
            amax = fmaxf(amax, fabsf(dp_bf16_to_f32((dp_bf16){p->q[i * 16 + j]})));
        }
        scale[i] = amax / 6.0f > 464.0f ? 0x7F : scale[i];
    }
}

/* ---- factors of a head, a tile, a row -----------------------------------------------------------
 */

enum { OF_HEAD, OF_QUERY_TILE, OF_COLUMNS, OF_ROW, OF_ALL };

static void factor_of(fault_problem *p, dp_dump_id id, int what, double by)
{
    float *x = p->dump.memory[id];
    const size_t width = dp_dump_width(&p->dump, id);
    for (size_t i = 0; i < fault_elements(p, id); i++) {
        const size_t head = i / width / p->in.queries;
        const size_t row = i / width % p->in.queries;
        const bool hit = what == OF_HEAD         ? head == 1
                         : what == OF_QUERY_TILE ? row / 128 == 1
                         : what == OF_COLUMNS    ? i % width / (width / 2) == 1
                                                 : true;
        const double f = what == OF_ROW ? by + 0.01 * (double)(row % 50) : hit ? by : 1.0;
        x[i] = (float)((double)x[i] * f);
    }
}
static void head_raw(fault_problem *p, double by)
{
    factor_of(p, DP_DUMP_RAW, OF_HEAD, by);
}
static void tile_raw(fault_problem *p, double by)
{
    factor_of(p, DP_DUMP_RAW, OF_COLUMNS, by);
}
static void head_sum(fault_problem *p, double by)
{
    factor_of(p, DP_DUMP_ROW_SUM, OF_HEAD, by);
}
static void tile_acc(fault_problem *p, double by)
{
    factor_of(p, DP_DUMP_ACC, OF_QUERY_TILE, by);
}
static void row_acc(fault_problem *p, double by)
{
    factor_of(p, DP_DUMP_ACC, OF_ROW, by);
}
static void all_acc(fault_problem *p, double by)
{
    factor_of(p, DP_DUMP_ACC, OF_ALL, by);
}
static void head_lse(fault_problem *p, double by)
{
    float *lse = p->dump.memory[DP_DUMP_LSE];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_LSE); i++) {
        lse[i] += i / p->in.queries == 1 ? (float)by : 0.0f;
    }
}
static void head_o(fault_problem *p, double by)
{
    uint16_t *o = p->dump.memory[DP_DUMP_O];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_O); i++) {
        const float x = dp_bf16_to_f32((dp_bf16){o[i]});
        o[i] = i / 128 / p->in.queries == 1 ? dp_bf16_from_f32(x * (float)by, DP_ENCODE_NONSAT).bits
                                            : o[i];
    }
}

/* ---- more rules of single stages ----------------------------------------------------------------
 */

/* m is the running maximum that misses the last key tile. */
static void stale_m(fault_problem *p, double argument)
{
    const float *raw = p->dump.memory[DP_DUMP_RAW];
    float *m = p->dump.memory[DP_DUMP_ROW_REF];
    const size_t keys = p->dump.key_rows;
    const float bias = (float)p->launch.policy.margin * 0.6931471805599453f;
    for (size_t r = 0; r < fault_elements(p, DP_DUMP_ROW_REF); r++) {
        float most = -INFINITY;
        for (size_t j = 0; j < (argument == 0.0 ? keys - 128 : keys); j++) {
            most = fmaxf(most, raw[r * keys + j]);
        }
        m[r] = most + bias;
    }
}
/* Byte of the block of element i, before every floor and shift. */
static int raw_byte_at(const fault_problem *p, size_t i)
{
    const float *raw = p->dump.memory[DP_DUMP_RAW];
    float x = -INFINITY;
    for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++) {
        x = fmaxf(x, raw[j]);
    }
    return dp_block_byte(&p->launch, x, 0.0f);
}
/* Working byte without the floor that the stored byte has. */
static void codes_without_floor(fault_problem *p, double argument)
{
    const float *raw = p->dump.memory[DP_DUMP_RAW];
    uint8_t *out = p->dump.memory[DP_DUMP_P_PAYLOAD];
    (void)argument;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_RAW); i++) {
        const size_t row = i / p->dump.key_rows % p->in.queries;
        const int u = raw_byte_at(p, i);
        const int u0 = raw_byte_at(p, i / 128 * 128);
        const bool rebased = p->launch.policy.rebase_q1 && row / 128 % 2 == 0 && i % 128 / 32 == 1;
        const dp_block_scalars s = rebased ? dp_rebased_offsets(&p->launch, 0.0f, u0, u0, u)
                                           : dp_block_offsets(&p->launch, 0.0f, u);
        const uint8_t code = dp_lane_code(dp_lane_value(&p->launch, s, false, raw[i]));
        out[i / 2] = (uint8_t)(i % 2 == 0 ? code : out[i / 2] | code << 4);
    }
}
static void flush_acc(fault_problem *p, double argument)
{
    float *acc = p->dump.memory[DP_DUMP_ACC];
    (void)argument;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_ACC); i++) {
        acc[i] = fabsf(acc[i]) < 0x1p-126f ? copysignf(0.0f, acc[i]) : acc[i];
    }
}
/* 0: log2 units, 1: natural units. */
static void scaled_raw(fault_problem *p, double argument)
{
    float *raw = p->dump.memory[DP_DUMP_RAW];
    const float s = argument == 0.0 ? p->launch.multiplier : (float)p->dump.softmax_scale;
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_RAW); i++) {
        raw[i] *= s;
    }
}
static void scaled_m(fault_problem *p, double argument)
{
    float *m = p->dump.memory[DP_DUMP_ROW_REF];
    for (size_t i = 0; i < fault_elements(p, DP_DUMP_ROW_REF); i++) {
        m[i] = argument == 0.0 ? m[i] * p->launch.multiplier
                               : m[i] + (float)(p->launch.policy.margin * (1.0 - log(2.0)));
    }
}
static void late_acc(fault_problem *p, double a)
{
    (void)a;
    late(p, DP_DUMP_ACC);
}
static void bits_acc(fault_problem *p, double a)
{
    (void)a;
    one_bit(p, DP_DUMP_ACC);
    ((uint32_t *)p->dump.memory[DP_DUMP_ACC])[5] ^= 8u;
}

/* Noise that follows no rule: one element in `argument` is off by some ulps or codes. */
static void noise(fault_problem *p, dp_dump_id id, uint32_t one_in, uint32_t most)
{
    dp_rng rng = {4711};
    const size_t size = dp_dump_element(id);
    for (size_t i = 0; i < fault_elements(p, id); i++) {
        if (dp_rng_below(&rng, one_in) == 0) {
            uint32_t bits = 0;
            memcpy(&bits, (char *)p->dump.memory[id] + i * size, size);
            bits = bits + 1 + dp_rng_below(&rng, most) - most / 2;
            memcpy((char *)p->dump.memory[id] + i * size, &bits, size);
        }
    }
}
#define NOISE(id_, short_, most_)                                                                  \
    static void noise_##short_(fault_problem *p, double argument)                                  \
    {                                                                                              \
        noise(p, id_, (uint32_t)argument, most_);                                                  \
    }
NOISE(DP_DUMP_RAW, raw, 7)
NOISE(DP_DUMP_P_SCALE, p_scale, 4)
NOISE(DP_DUMP_P_PAYLOAD, p_payload, 5)
NOISE(DP_DUMP_ROW_SUM, row_sum, 9)
NOISE(DP_DUMP_ACC, acc, 1000)
NOISE(DP_DUMP_O, o, 3)
NOISE(DP_DUMP_LSE, lse, 7)
NOISE(DP_DUMP_V_SCALE, v_scale, 5)

/* ---- the table ----------------------------------------------------------------------------------
 */

#define Q_P DP_DUMP_Q_PAYLOAD
#define Q_S DP_DUMP_Q_SCALE
#define K_P DP_DUMP_K_PAYLOAD
#define K_S DP_DUMP_K_SCALE
#define V_P DP_DUMP_V_PAYLOAD
#define V_S DP_DUMP_V_SCALE
#define RAW DP_DUMP_RAW
#define REF DP_DUMP_ROW_REF
#define P_S DP_DUMP_P_SCALE
#define P_P DP_DUMP_P_PAYLOAD
#define CNT DP_DUMP_CODE_SUM
#define SUM DP_DUMP_ROW_SUM
#define ACC DP_DUMP_ACC
#define O_O DP_DUMP_O
#define LSE DP_DUMP_LSE

static const fault FAULTS[] = {
    /* quantize */
    {"Q ties toward zero", GRID, Q_P, "ties-toward-zero", tie_q, 0, true},
    {"Q ties away", GRID, Q_P, "ties-away", tie_q, 1, true},
    {"Q truncated", GRID, Q_P, "truncated", tie_q, 2, true},
    {"K ties toward zero", GRID, K_P, "ties-toward-zero", tie_k, 0, true},
    {"K ties away", GRID, K_P, "ties-away", tie_k, 1, true},
    {"V ties toward zero", GRID, V_P, "ties-toward-zero", tie_v, 0, true},
    /* V away from zero is no fault: 6 * 2^k * x is a midpoint at 0.75 only, where even is away */
    {"V truncated", GRID, V_P, "truncated", tie_v, 2, true},
    {"V byte taken for the step", GRID, V_P, "v-step-for-amplitude", tie_v, 3, true},
    {"V blocks along the head dimension", GRID, V_P, "v-wrong-axis", v_across, 0, true},
    {"Q nibbles swapped", FAST, Q_P, "nibbles-swapped", swap_q, 0, true},
    {"K nibbles swapped", FAST, K_P, "nibbles-swapped", swap_k, 0, true},
    {"V nibbles swapped", ACCURATE, V_P, "nibbles-swapped", swap_v, 0, true},
    {"Q scales in 128x4 atoms", FAST, Q_S, "layout-128x4", layout_q, DP_LAYOUT_128X4, true},
    {"Q scales in 64-row atoms", FAST, Q_S, "layout-64-row", layout_q, DP_LAYOUT_SM120, true},
    {"K scales in 128x4 atoms", ACCURATE, K_S, "layout-128x4", layout_k, DP_LAYOUT_128X4, true},
    {"K scales in 64-row atoms", ACCURATE, K_S, "layout-64-row", layout_k, DP_LAYOUT_SM120, true},
    {"K scale atoms swapped", ACCURATE, K_S, "layout-swapped", layout_k, DP_LAYOUT_128X4_SWAPPED,
     true},
    {"V scales in 128x4 atoms", GUARD, V_S, "layout-128x4", layout_v, DP_LAYOUT_128X4, true},
    {"Q scale twice (FNUZ)", ACCURATE, Q_S, "scale-exponent-off", plus_q, 8, true},
    {"V byte one too large", FAST, V_S, "scale-byte-off", plus_v, 1, true},
    {"K and Q not folded", FAST, Q_P, "fold-missing", quantize_unfolded, 0, false},
    {"K and Q folded without need", ACCURATE, Q_P, "fold-unwanted", quantize_unfolded, 0, false},
    {"anchors not permuted", ACCURATE, K_P, "anchor-not-permuted", quantize_natural, 0, false},
    {"anchors not permuted, guard", GUARD, K_P, "anchor-not-permuted", quantize_natural, 0, false},
    {"Q quantized by TE", ACCURATE, Q_P, "preset:TE", quantize_te, 0, false},
    {"K quantized by TE", ACCURATE, K_P, "preset:TE", quantize_te, 1, false},
    {"Q quantized by PTX", ACCURATE, Q_P, "preset:PTX", quantize_ptx, 0, false},
    {"V quantized by OCP", ACCURATE, V_P, "preset:OCP", quantize_ocp, 2, false},
    {"V quantized by OCP, padded", RAGGED, V_P, "preset:OCP", quantize_ocp, 2, false},
    {"Q scale not saturated", HUGE_Q, Q_S, "saturation-mode", scale_not_saturated, 0, true},
    {"one bit of Q", FAST, Q_P, "single-bit", bit_at, Q_P, true},
    {"one bit of V's scale", FAST, V_S, "single-bit", bit_at, V_S, true},
    /* score */
    {"Q read nibbles swapped", FAST, RAW, "q-nibbles-swapped", read_q_nibbles, 0, false},
    {"K read nibbles swapped", ACCURATE, RAW, "k-nibbles-swapped", read_k_nibbles, 0, false},
    {"Q scales read in the wrong layout", FAST, RAW, "q-scale-layout", read_q_layout, 0, false},
    {"Q scale atoms read swapped", FAST, RAW, "q-scale-layout-swapped", read_q_swapped, 0, false},
    {"K scales read in the wrong layout", ACCURATE, RAW, "k-scale-layout", read_k_layout, 0, false},
    {"folded kernel on unfolded scales", ACCURATE, RAW, "fold-missing", read_fold, 0, false},
    {"second K64 step missing", FAST, RAW, "second-k64-missing", read_second_k64, 0, false},
    {"first K64 step missing", FAST, RAW, "first-k64-missing", read_first_k64, 0, false},
    {"GQA heads tiled", GROUPED, RAW, "gqa-interleaved", read_gqa, 0, false},
    {"causal mask missing", CAUSAL, RAW, "mask-missing", read_causal, 0, false},
    {"keys of the mask rounded up, padding seen", CAUSAL, RAW, "mask-padded-length", read_padding,
     0, false},
    {"mask hides the diagonal", CAUSAL, RAW, "mask-off-by-one", mask_raw, MASK_SHORT, true},
    {"mask shows one key more", CAUSAL, RAW, "mask-off-by-one", mask_raw, MASK_MORE, true},
    {"mask at the top left", CAUSAL, RAW, "mask-top-left", mask_raw, MASK_TOP, true},
    {"mask by whole key tiles", CAUSAL, RAW, "mask-tile-rounded", mask_raw, MASK_TILE, true},
    {"mask skips the diagonal's tile", CAUSAL, RAW, "mask-tile-rounded", mask_raw, MASK_TILE_DOWN,
     true},
    {"mask by blocks of 32 keys", CAUSAL, RAW, "mask-block-rounded", mask_raw, MASK_BLOCK, true},
    {"one bound for a query tile", CAUSAL, RAW, "mask-tile-rounded", mask_raw, MASK_WHOLE_TILE,
     true},
    {"keys of the mask rounded up", CAUSAL, RAW, "mask-padded-length", mask_raw, MASK_LENGTH, true},
    {"padding not masked, causal", CAUSAL, RAW, "padding-not-masked", mask_raw, MASK_PADDING, true},
    {"padding not masked", RAGGED, RAW, "padding-not-masked", mask_raw, MASK_PADDING, true},
    {"mask the wrong way round", CAUSAL, RAW, "mask-flipped", mask_raw, MASK_BACKWARDS, true},
    {"mask by stored columns", CAUSAL, RAW, "mask-column-order", mask_columns, 0, false},
    {"scores in log2 units", ACCURATE, RAW, "scores-scaled-log2", scaled_raw, 0, true},
    {"scores in natural units", ACCURATE, RAW, "scores-scaled", scaled_raw, 1, true},
    {"scores of one head half", FAST, RAW, "factor-by-head", head_raw, 0.5, true},
    {"scores of a key tile scaled twice", FAST, RAW, "factor-by-column-tile", tile_raw,
     1.4426950408889634, true},
    {"scores twice", FAST, RAW, "factor-2", factor_raw, 2, true},
    {"scores times log2(e)", FAST, RAW, "factor-log2e", factor_raw, 1.4426950408889634, true},
    {"scores through bf16", FAST, RAW, "bf16-double-rounding", bf16_raw, 0, true},
    {"score tile transposed", FAST, RAW, "tile-transposed", transpose_raw, 0, true},
    {"scores never written", ACCURATE, RAW, "untouched", untouched_raw, 0, true},
    {"one bit of a score", FAST, RAW, "single-bit", bit_at, RAW, true},
    /* reference */
    {"anchor of 128 for 32", ACCURATE, REF, "anchor-128", launch_anchor, 128, false},
    {"anchor of 32 for 128", GUARD, REF, "anchor-32", launch_anchor, 32, false},
    {"margin of the 1.3B guard", GUARD, REF, "margin-110", launch_margin, 110, false},
    {"no margin", ACCURATE, REF, "margin-missing", launch_margin, 0, false},
    {"margin in log2 units", ACCURATE, REF, "margin-units", launch_units, 0, false},
    {"no reference", GUARD, REF, "reference-missing", launch_no_reference, 0, false},
    {"running maximum without the last tile", ACCURATE, REF, "stale-maximum", stale_m, 0, true},
    {"maximum of the whole row", ACCURATE, REF, "row-maximum", stale_m, 1, true},
    {"m in log2 units", ACCURATE, REF, "reference-scaled", scaled_m, 0, true},
    {"M added, not M ln 2", ACCURATE, REF, "margin-without-ln2", scaled_m, 1, true},
    {"one bit of m", GUARD, REF, "single-bit", bit_at, REF, true},
    /* scale */
    {"floors of the other epoch", FLUSH, P_S, "other-epoch", launch_epoch, 0, false},
    {"L not subtracted", FAST, P_S, "shift-missing", launch_shift, 0, false},
    {"L of the 14B guard", FAST, P_S, "shift-14", launch_shift, 14, false},
    {"L twice", ACCURATE, P_S, "shift-twice", launch_shift, 16, false},
    {"exponent rounded up", ACCURATE, P_S, "ceil", rewrite_bytes, 0, true},
    {"exponent cut", ACCURATE, P_S, "floor", rewrite_bytes, 1, true},
    {"maximum of 16 keys", ACCURATE, P_S, "half-block-maximum", rewrite_bytes, 2, true},
    {"m not subtracted", ACCURATE, P_S, "reference-not-subtracted", rewrite_bytes, 3, true},
    {"maximum of the neighbour quarter", ACCURATE, P_S, "other-quarter", rewrite_bytes, 4, true},
    {"bytes one too large", FAST, P_S, "byte-off", plus_p, 1, true},
    {"bytes one too small", FAST, P_S, "byte-off", plus_p, -1, true},
    {"quarters exchanged", FAST, P_S, "quarters-exchanged", exchange_p_scale, 1, true},
    {"K64 halves exchanged", FAST, P_S, "halves-exchanged", exchange_p_scale, 2, true},
    {"log2(e) missing", ACCURATE, P_S, "base-e", launch_log2e, 0, false},
    {"one bit of a byte", FAST, P_S, "single-bit", bit_at, P_S, true},
    /* code */
    {"P ties toward zero", ACCURATE, P_P, "ties-toward-zero", midpoint_codes, 0, true},
    {"P ties away", ACCURATE, P_P, "ties-away", midpoint_codes, 1, true},
    {"P truncated", ACCURATE, P_P, "truncated", rewrite_codes, 2, true},
    {"affine map not fused", ACCURATE, P_P, "unfused", midpoint_codes, 3, true},
    {"log2 6 missing", ACCURATE, P_P, "factor-6", rewrite_codes, 4, true},
    {"codes on the stored byte", ACCURATE, P_P, "built-on-stored-byte", rewrite_codes, 5, true},
    {"value through bf16", ACCURATE, P_P, "bf16-double-rounding", rewrite_codes, 6, true},
    {"scores through bf16 before the map", ACCURATE, P_P, "bf16-scores", rewrite_codes, 7, true},
    {"m not in the offset", ACCURATE, P_P, "reference-not-subtracted", rewrite_codes, 8, true},
    {"no ReLU", ACCURATE, P_P, "relu-missing", rewrite_codes, 9, true},
    {"codes twice", ACCURATE, P_P, "factor-2", rewrite_codes, 10, true},
    {"native pairs of the next quarter", ACCURATE, P_P, "native-other-quarter", rewrite_codes, 11,
     true},
    {"not saturated", ACCURATE, P_P, "not-saturated", rewrite_codes, 12, true},
    {"no native lanes", ACCURATE, P_P, "native-missing", launch_density, 0, false},
    {"density 2", ACCURATE, P_P, "native-density-2", launch_density, 2, false},
    {"every lane native", ACCURATE, P_P, "native-all", launch_density, 4, false},
    {"native lanes in the wrong stage", GUARD, P_P, "native-stage-0", launch_stages, 1, false},
    {"native lanes in both stages", GUARD, P_P, "native-both-stages", launch_stages, 3, false},
    {"exact 2^x for the map", FAST, P_P, "ideal-exponential", launch_ideal, 0, false},
    {"Q1 not rebased", GRID, P_P, "rebase-q1", launch_rebase, 0, false},
    {"multiplier rounded from log2(e)/sqrt(D)", FAST, P_P, "multiplier", launch_multiplier, 0,
     false},
    {"map of Wan", FAST, P_P, "map-wan", launch_a, 1.6, false},
    {"map of accurate", FAST, P_P, "map-accurate", launch_a, 1.65, false},
    {"B of an unknown map", FAST, P_P, "map-other", launch_b, 1.0, false},
    {"floor on the published byte alone", FLUSH_R, P_P, "floor-on-published-byte",
     codes_without_floor, 0, true},
    {"codes cleared without need", FLUSH, P_P, "clear-zero", launch_clear, 0, false},
    {"P nibbles swapped", FAST, P_P, "nibbles-swapped", swap_p, 0, true},
    {"bytes of a word reversed", FAST, P_P, "bytes-reversed", exchange_codes, 3, true},
    {"halves of a block exchanged", FAST, P_P, "halves-exchanged", exchange_codes, 8, true},
    {"code rows late by one", FAST, P_P, "rows-shifted", late_p, 0, true},
    {"codes never written", FAST, P_P, "untouched", untouched_p, 0, true},
    {"one bit of a code", FAST, P_P, "single-bit", bit_at, P_P, true},
    /* denominator */
    {"sum not doubled", FAST, CNT, "sum-not-doubled", rewrite_counts, 0, true},
    {"code numbers summed", FAST, CNT, "code-numbers-summed", rewrite_counts, 1, true},
    {"sum wrapped to a byte", FLAT, CNT, "sum-wrapped", rewrite_counts, 2, true},
    {"even keys alone", FAST, CNT, "low-nibbles-alone", rewrite_counts, 3, true},
    {"(s/6)*c product order", FLUSH_R, SUM, "scale-first", launch_scale_first, 0, false},
    {"adds contracted", SINGLE, SUM, "fma-denominator", launch_fma, 0, false},
    {"correction's sum", FAST, SUM, "other-denominator", launch_denominator, 0, false},
    {"quarters in order", SINGLE, SUM, "quarter-order", rewrite_sums, 0, true},
    {"last tile not in the sum", FAST, SUM, "last-tile-missing", rewrite_sums, 1, true},
    {"denominator of unrounded P", FAST, SUM, "unrounded-p", rewrite_sums, 2, true},
    {"sum anew at every tile", FAST, SUM, "last-tile-alone", rewrite_sums, 3, true},
    {"byte 0 as 2^-127", FLUSH, SUM, "byte-zero-counts", rewrite_sums, 4, true},
    {"sum six times", FAST, SUM, "factor-6", factor_sum, 6, true},
    {"sum times 256", ACCURATE, SUM, "factor-256", factor_sum, 256, true},
    {"sum of one head times 1.2", FAST, SUM, "factor-by-head", head_sum, 1.2, true},
    {"one bit of a sum", FAST, SUM, "single-bit", bit_at, SUM, true},
    /* accumulate */
    {"V read nibbles swapped", FAST, ACC, "v-nibbles-swapped", read_v_nibbles, 0, false},
    {"V scales read in the wrong layout", FAST, ACC, "v-scale-layout", read_v_layout, 0, false},
    {"V scales read in 64-row atoms", FAST, ACC, "v-scale-layout-64-row", read_v_layout_64, 0,
     false},
    {"V of the neighbour feature", FAST, ACC, "v-feature-shifted", read_v_roll, 0, false},
    {"rounded to nearest a K64 step", PEAKED, ACC, "accumulate-rounded", rewrite_acc, 0, true},
    {"accumulator anew at every tile", ACCURATE, ACC, "last-tile-alone", rewrite_acc, 1, true},
    {"P bytes of the other quarter", ACCURATE, ACC, "p-scale-exchanged", rewrite_acc, 2, true},
    {"accumulator times 36", FAST, ACC, "factor-36", factor_acc, 36, true},
    {"accumulator / 256", ACCURATE, ACC, "factor-1/256", factor_acc, 1.0 / 256.0, true},
    {"accumulator through bf16", FAST, ACC, "bf16-double-rounding", bf16_acc, 0, true},
    {"accumulator transposed", FAST, ACC, "tile-transposed", transpose_acc, 0, true},
    {"accumulator never written", FAST, ACC, "untouched", untouched_acc, 0, true},
    {"accumulator of a query tile times 3", FAST, ACC, "factor-by-query-tile", tile_acc, 3, true},
    {"accumulator rows of their own factors", FAST, ACC, "factor-by-row", row_acc, 0.7, true},
    {"accumulator times 1.1", FAST, ACC, "factor", all_acc, 1.1, true},
    {"accumulator flushed", FLUSH, ACC, "subnormals-flushed", flush_acc, 0, true},
    {"accumulator rows late by one", FAST, ACC, "rows-shifted", late_acc, 0, true},
    {"two bits of the accumulator", FAST, ACC, "single-bit", bits_acc, 0, true},
    {"one bit of the accumulator", FAST, ACC, "single-bit", bit_at, ACC, true},
    /* output */
    {"O cut to bf16", FAST, O_O, "o-truncated", rewrite_o, 0, false},
    {"1/36 missing", FAST, O_O, "factor-36", rewrite_o, 2, false},
    {"division for the reciprocal", FAST, O_O, "division", midpoint_o, 3, false},
    {"O times 2^L", ACCURATE, O_O, "factor-2^L", rewrite_o, 4, false},
    {"O not normalised", FAST, O_O, "not-normalised", rewrite_o, 6, false},
    {"O half", FAST, O_O, "factor-1/2", rewrite_o, 7, false},
    {"O rows late by one", FAST, O_O, "rows-shifted", late_o, 0, false},
    {"O never written", FAST, O_O, "untouched", untouched_o, 0xA5, false},
    {"O of one head times 1.5", FAST, O_O, "factor-by-head", head_o, 1.5, false},
    {"one bit of O", FAST, O_O, "single-bit", bit_at, O_O, false},
    {"LSE off by ln 6", FAST, LSE, "lse-off-ln-6", add_lse, 1.791759469228055, false},
    {"LSE off by ln 448", FAST, LSE, "lse-off-ln-448", add_lse, 6.104793232414985, false},
    {"LSE low by L ln 2", FAST, LSE, "lse-shift-lost", add_lse, -11.090354888959125, false},
    {"LSE high by L ln 2", SINGLE, LSE, "lse-shift-added", add_lse, 11.090354888959125, false},
    {"LSE in base 2", ACCURATE, LSE, "lse-base-2", lse_base_2, 0, false},
    {"LSE without m", ACCURATE, LSE, "lse-without-reference", lse_base_2, 1, false},
    {"LSE +Inf for empty rows", EMPTY, LSE, "lse-plus-infinity", lse_infinite, 0, false},
    {"O NaN for empty rows", EMPTY, O_O, "invalid-rows-nan", rewrite_o, 5, false},
    {"LSE through bf16", FAST, LSE, "bf16-double-rounding", bf16_lse, 0, false},
    {"LSE of one head off by 0.3", FAST, LSE, "offset-by-head", head_lse, 0.3, false},
    /* what follows no rule is called by no name */
    {"noise in V's scales", FAST, V_S, NULL, noise_v_scale, 5, true},
    {"noise in the scores", FAST, RAW, NULL, noise_raw, 10, true},
    {"noise in the bytes", FAST, P_S, NULL, noise_p_scale, 20, true},
    {"noise in the codes", ACCURATE, P_P, NULL, noise_p_payload, 20, true},
    {"noise in the sums", FAST, SUM, NULL, noise_row_sum, 3, true},
    {"noise in the accumulator", FAST, ACC, NULL, noise_acc, 3, true},
    {"noise in O", FAST, O_O, NULL, noise_o, 9, false},
    {"noise in the LSE", FAST, LSE, NULL, noise_lse, 3, false},
    {"one bit of the LSE", FAST, LSE, "single-bit", bit_at, LSE, false},
};
enum { FAULT_COUNT = sizeof FAULTS / sizeof FAULTS[0] };

typedef struct {
    int detected, placed, named;
    int repeated; /* a fault reported at more than its own stage */
    int failures; /* rows whose outcome is not what the table says */
} outcome;

/* "preset:TE" is in the list of presets. */
static bool has_name(const dp_diff_result *result, const char *name)
{
    if (name != NULL && strncmp(name, "preset:", 7) == 0) {
        return strstr(result->presets, name + 7) != NULL;
    }
    for (size_t i = 0; name != NULL && i < result->finding_count; i++) {
        if (strcmp(result->findings[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void judge(const fault *f, const dp_diff_result *result, outcome *sum)
{
    const bool detected = result->first_wrong >= 0;
    const bool placed = result->first_wrong == (int)f->stage;
    const bool named = has_name(result, f->expected);
    /* a fault of no known kind must not be called by a name */
    const bool silent = f->expected != NULL || result->finding_count == 0;
    sum->detected += detected;
    sum->placed += placed;
    sum->named += named;
    const bool good = detected && placed && (f->expected == NULL || named);
    int stages = 0; /* where the kernel went on with its own data, one stage alone is wrong */
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        stages += result->set[d].mismatches > 0;
    }
    sum->failures += !good || !silent || (f->follow && stages != 1);
    sum->repeated += f->follow && stages != 1;
    (void)printf("%-36s %-14s %-10s %-10s %-24s %s\n", f->name, CASE[f->from].name,
                 dp_dump_datasets[f->stage].name,
                 detected ? dp_dump_datasets[result->first_wrong].name : "-",
                 result->finding_count > 0 ? result->findings[0].name : "(none)",
                 f->follow && stages != 1 ? "REPEATED"
                 : good && silent         ? "ok"
                 : !detected              ? "SURVIVES"
                 : !placed                ? "WRONG STAGE"
                 : !good                  ? "NOT NAMED"
                                          : "named all the same");
}

static dp_diff_result *compare(const fault_problem *p, bool diagnose)
{
    dp_error error = {""};
    const dp_diff_job job = {.dump = &p->dump, .threads = 1, .no_diagnosis = !diagnose};
    dp_diff_result *result = dp_diff_run(&job, &error);
    ck_assert_msg(result != NULL, "%s", error.text);
    return result;
}

START_TEST(correct_dumps_pass)
{
    for (int c = 0; c < CASES; c++) {
        fault_problem p;
        fault_problem_make(&CASE[c], 7000 + (uint64_t)c, &p);
        dp_diff_result *result = compare(&p, false);
        ck_assert_msg(result->first_wrong < 0, "%s: %s differs", CASE[c].name,
                      dp_dump_datasets[result->first_wrong < 0 ? 0 : result->first_wrong].name);
        for (int d = 0; d < DP_DUMP_DATASETS; d++) {
            ck_assert_msg(result->set[d].compared && result->set[d].elements > 0, "%s: %s skipped",
                          CASE[c].name, dp_dump_datasets[d].name);
        }
        free(result);
        fault_problem_free(&p);
    }
}
END_TEST

START_TEST(faults_are_found_and_named)
{
    outcome sum = {0};
    (void)printf("%-36s %-14s %-10s %-10s %-24s %s\n", "fault", "case", "stage", "found at",
                 "diagnosis", "verdict");
    static fault_problem problems[CASES];
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        fault_problem *p = &problems[FAULTS[i].from];
        if (p->dump.batch == 0) {
            fault_problem_make(&CASE[FAULTS[i].from], 7000 + (uint64_t)FAULTS[i].from, p);
        }
        FAULTS[i].put(p, FAULTS[i].argument);
        if (FAULTS[i].follow) {
            fault_problem_follow(p, FAULTS[i].stage);
        }
        dp_diff_result *result = compare(p, true);
        judge(&FAULTS[i], result, &sum);
        free(result);
        fault_problem_reset(p);
    }
    for (int c = 0; c < CASES; c++) {
        if (problems[c].dump.batch > 0) {
            fault_problem_free(&problems[c]);
        }
    }
    (void)printf("%d faults: %d found, %d at the right stage, %d named\n", (int)FAULT_COUNT,
                 sum.detected, sum.placed, sum.named);
    ck_assert_int_ge(FAULT_COUNT, 80);
    ck_assert_int_eq(sum.detected, FAULT_COUNT);
    ck_assert_int_eq(sum.placed, FAULT_COUNT);
    ck_assert_int_ge(sum.named, 175);
    ck_assert_int_eq(sum.repeated, 0);
    ck_assert_int_eq(sum.failures, 0);
}
END_TEST

/* Ties sent the wrong way lie on midpoints, codes twice as large do not. */
START_TEST(case_29_how_near_to_a_midpoint)
{
    for (int kind = 0; kind < 2; kind++) {
        fault_problem p;
        size_t near = 0, all = 0;
        fault_problem_make(&CASE[ACCURATE], 7000, &p);
        if (kind == 0) {
            midpoint_codes(&p, 1);
        } else {
            rewrite_codes(&p, 10);
        }
        dp_diff_result *result = compare(&p, true);
        ck_assert_int_eq(result->first_wrong, DP_DUMP_P_PAYLOAD);
        ck_assert_msg(sscanf(result->values, "%zu of %zu", &near, &all) == 2, "%s", result->values);
        ck_assert(all > 100 && (kind == 0 ? near == all : near * 20 < all));
        free(result);
        p.dump = p.pristine;
        fault_problem_free(&p);
    }
}
END_TEST

/* Only the inputs and O were dumped: the mistake lies in a stage that is not there. */
START_TEST(bridged_faults_are_named)
{
    static const char *const names[] = {"GQA heads tiled", "causal mask missing",
                                        "anchor of 128 for 32", "map of Wan", "K and Q not folded"};
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        bool chosen = false;
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            chosen = chosen || strcmp(names[n], FAULTS[i].name) == 0;
        }
        if (!chosen) {
            continue;
        }
        fault_problem p;
        fault_problem_make(&CASE[FAULTS[i].from], 7000 + (uint64_t)FAULTS[i].from, &p);
        FAULTS[i].put(&p, FAULTS[i].argument);
        if (FAULTS[i].follow) {
            fault_problem_follow(&p, FAULTS[i].stage);
        }
        for (int d = 0; d < DP_DUMP_DATASETS; d++) {
            p.dump.present[d] = d == DP_DUMP_O;
        }
        dp_diff_result *result = compare(&p, true);
        ck_assert_int_eq(result->first_wrong, DP_DUMP_O);
        ck_assert_msg(has_name(result, FAULTS[i].expected), "%s: %s", FAULTS[i].name,
                      result->finding_count > 0 ? result->findings[0].name : "(none)");
        free(result);
        p.dump = p.pristine;
        fault_problem_free(&p);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diff");
    TCase *tests = tcase_create("faults");
    tcase_add_test(tests, correct_dumps_pass);
    tcase_add_test(tests, faults_are_found_and_named);
    tcase_add_test(tests, bridged_faults_are_named);
    tcase_add_test(tests, case_29_how_near_to_a_midpoint);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
