/* SPDX-License-Identifier: MIT
 *
 * Known mistakes of the stages denominator and accumulate.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"
#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/layout.h"
#include "ref/arith/f32_fast.h"

/* ---- sums of codes ------------------------------------------------------------------------------
 */

typedef enum {
    COUNT_NOT_DOUBLED,
    COUNT_OF_CODES, /* code numbers, not values      */
    COUNT_LOW,      /* low nibbles alone             */
    COUNT_HIGH,
    COUNT_HALF,      /* 16 of the 32 keys             */
    COUNT_BYTE,      /* wrapped to 8 bits             */
    COUNT_SATURATED, /* held at 255                   */
    COUNT_NONZERO,
    COUNT_SIX_FOR_FOUR, /* weight 12 taken for 8      */
    COUNT_TILE
} count_rule;

static unsigned weight(unsigned code, count_rule rule)
{
    static const unsigned twice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    switch (rule) {
    case COUNT_OF_CODES:
        return code;
    case COUNT_NONZERO:
        return code > 0;
    case COUNT_SIX_FOR_FOUR:
        return code == 7 ? 8 : twice[code];
    default:
        return twice[code];
    }
}

static bool count_codes(const dp_unit *unit, double argument, void *out)
{
    const count_rule rule = (count_rule)argument;
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    for (size_t i = 0; i < unit->rows * blocks; i++) {
        const uint8_t *payload = dp_strip_u8(&unit->in, DP_DUMP_P_PAYLOAD) + i * DP_BLOCK / 2;
        unsigned sum = 0;
        for (size_t j = 0; j < DP_BLOCK / 2; j++) {
            const unsigned low = weight(payload[j] & 7u, rule);
            const unsigned high = weight(payload[j] >> 4 & 7u, rule);
            const bool counted = rule != COUNT_HALF || j < DP_BLOCK / 4;
            sum += counted && rule != COUNT_HIGH ? low : 0;
            sum += counted && rule != COUNT_LOW ? high : 0;
        }
        sum = rule == COUNT_NOT_DOUBLED ? sum / 2 : rule == COUNT_BYTE ? sum & 255u : sum;
        sum = rule == COUNT_SATURATED && sum > 255 ? 255 : sum;
        ((uint16_t *)out)[i] = (uint16_t)sum;
    }
    return true;
}

static bool counts_moved(const dp_unit *unit, double argument, void *out)
{
    const uint16_t *right = dp_strip_u16(&unit->out, DP_DUMP_CODE_SUM);
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    for (size_t i = 0; i < unit->rows * blocks; i++) {
        ((uint16_t *)out)[i] = right[i ^ (size_t)argument];
    }
    return true;
}

/* ---- the row's normaliser -----------------------------------------------------------------------
 */

static void other_epoch(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->epoch = launch->epoch == DP_EPOCH_S ? DP_EPOCH_R : DP_EPOCH_S;
}
static void scale_first(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->switches.fault_scale_first = !launch->switches.fault_scale_first;
}
static void contracted(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->switches.fma_denominator = !launch->switches.fma_denominator;
}
static void other_denominator(dp_direct_p *launch, double argument)
{
    (void)argument;
    launch->policy.denominator = launch->policy.denominator == DP_DENOMINATOR_PRODUCER
                                     ? DP_DENOMINATOR_CORRECTION
                                     : DP_DENOMINATOR_PRODUCER;
}

typedef enum {
    SUM_ORDER,        /* Q0 Q1 Q2 Q3                              */
    SUM_REVERSED,     /* Q3 Q2 Q1 Q0                              */
    SUM_BY_TILE,      /* 1/12 a tile, not at the end              */
    SUM_NOT_DIVIDED,  /* without the factor                       */
    SUM_LAST_MISSING, /* the last tile does not count             */
    SUM_LAST_ALONE,   /* only the last tile counts                */
    SUM_FIRST_MISSING,
    SUM_BYTE_ZERO,  /* byte 0 is 2^-127, not 0                  */
    SUM_ONE_BY_ONE, /* quarters added to the row one by one     */
    SUM_BF16,       /* the row sum is kept in bf16              */
    SUM_DESCENDING, /* tiles from the last to the first         */
    SUM_DOUBLE,     /* one rounding of the exact sum            */
    SUM_HALF,       /* quarters Q0 and Q1 alone                 */
    SUM_SIXTH_FOR_TWELFTH
} sum_rule;

static float power(uint8_t stored)
{
    return dp_f32_from_bits((uint32_t)stored << 23);
}

/* A quarter's term as the policy rounds it; correction: without its factor. */
static float term(const dp_direct_p *launch, sum_rule rule, uint8_t stored, uint16_t count)
{
    const float sixth = dp_f32_from_bits(0x3E2AAAABu);
    const float half = 0.5f * (float)count;
    if (launch->policy.denominator == DP_DENOMINATOR_CORRECTION) {
        return dp_mul_rn_ftz(power(stored), (float)count);
    }
    if (rule == SUM_NOT_DIVIDED) {
        return dp_mul_rn_ftz(power(stored), half);
    }
    if (launch->epoch == DP_EPOCH_S || launch->switches.fault_scale_first) {
        return dp_mul_rn_ftz(dp_mul_rn_ftz(power(stored), sixth), half);
    }
    return dp_mul_rn_ftz(power(stored), dp_mul_rn_ftz(half, sixth));
}

static float tile_sum(const dp_direct_p *launch, sum_rule rule, float row, const uint8_t *stored,
                      const uint16_t *count)
{
    static const int producer[] = {2, 0, 1, 3}, forward[] = {0, 1, 2, 3}, backward[] = {3, 2, 1, 0};
    const bool correction = launch->policy.denominator == DP_DENOMINATOR_CORRECTION;
    const int *order = rule == SUM_ORDER      ? forward
                       : rule == SUM_REVERSED ? backward
                       : correction           ? forward
                                              : producer;
    float t[DP_QUARTERS];
    for (int i = 0; i < DP_QUARTERS; i++) {
        t[i] = term(launch, rule, stored[order[i]], count[order[i]]);
        t[i] = rule == SUM_HALF && order[i] >= 2 ? 0.0f : t[i];
    }
    if (rule == SUM_ONE_BY_ONE || (rule == SUM_ORDER && correction)) {
        for (int i = 0; i < DP_QUARTERS; i++) {
            row = dp_add_rn_ftz(row, t[i]);
        }
        return row;
    }
    if (correction) {
        row = dp_add_rn_ftz(row, dp_add_rn_ftz(t[0], t[1]));
        return dp_add_rn_ftz(row, dp_add_rn_ftz(t[2], t[3]));
    }
    float tile = t[0];
    for (int i = 1; i < DP_QUARTERS; i++) {
        tile = dp_add_rn_ftz(tile, t[i]);
    }
    return dp_add_rn_ftz(row, tile);
}

static float finish(const dp_direct_p *launch, sum_rule rule, float row)
{
    const bool correction = launch->policy.denominator == DP_DENOMINATOR_CORRECTION;
    const uint32_t factor = rule == SUM_SIXTH_FOR_TWELFTH ? 0x3E2AAAABu : 0x3DAAAAABu;
    return correction && rule != SUM_NOT_DIVIDED && rule != SUM_BY_TILE
               ? dp_mul_rn_ftz(row, dp_f32_from_bits(factor))
               : row;
}

static double exact_sum(const dp_unit *unit, const uint8_t *stored, const uint16_t *count,
                        bool zero)
{
    double sum = 0.0;
    for (size_t b = 0; b < unit->visited * DP_QUARTERS; b++) {
        const double p = stored[b] == 0 && !zero ? 0.0 : ldexp(1.0, stored[b] - 127);
        sum += p * (double)count[b] / 12.0;
    }
    return sum;
}

static bool sums_by(const dp_unit *unit, double argument, void *out)
{
    const sum_rule rule = (sum_rule)argument;
    const dp_direct_p *launch = &unit->launch;
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    const bool correction = launch->policy.denominator == DP_DENOMINATOR_CORRECTION;
    for (size_t r = 0; r < unit->rows; r++) {
        const uint8_t *stored = dp_strip_u8(&unit->in, DP_DUMP_P_SCALE) + r * blocks;
        const uint16_t *count = dp_strip_u16(&unit->in, DP_DUMP_CODE_SUM) + r * blocks;
        float row = 0.0f;
        for (size_t i = 0; i < unit->visited; i++) {
            const size_t tile = rule == SUM_DESCENDING ? unit->visited - 1 - i : i;
            const bool last = tile + 1 == unit->visited;
            if ((rule == SUM_LAST_MISSING && last) || (rule == SUM_LAST_ALONE && !last) ||
                (rule == SUM_FIRST_MISSING && tile == 0)) {
                continue;
            }
            const float before = rule == SUM_BY_TILE ? 0.0f : row;
            float sum = tile_sum(launch, rule, before, stored + tile * DP_QUARTERS,
                                 count + tile * DP_QUARTERS);
            sum = rule == SUM_BY_TILE && correction
                      ? dp_mul_rn_ftz(sum, dp_f32_from_bits(0x3DAAAAABu))
                      : sum;
            row = rule == SUM_BY_TILE ? dp_add_rn_ftz(row, sum) : sum;
            row = rule == SUM_BF16 ? dp_bf16_to_f32(dp_bf16_from_f32(row, DP_ENCODE_NONSAT)) : row;
        }
        row = finish(launch, rule, row);
        row = rule == SUM_DOUBLE ? (float)exact_sum(unit, stored, count, false) : row;
        row = rule == SUM_BYTE_ZERO ? (float)exact_sum(unit, stored, count, true) : row;
        ((float *)out)[r] = row;
    }
    if (rule == SUM_BYTE_ZERO) {
        dp_hypothesis_near(unit, DP_DUMP_ROW_SUM, out, 8, 0.0);
    }
    return true;
}

/* The sum of unrounded 2^x: argument 1 divided by 2^L as the stored bytes are, 0 not. */
static bool unrounded(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    if (!unit->in.valid[DP_DUMP_RAW] || !unit->in.valid[DP_DUMP_ROW_REF]) {
        return false;
    }
    for (size_t r = 0; r < unit->rows; r++) {
        const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys;
        const double m = (double)dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
        double sum = 0.0;
        for (size_t j = 0; j < unit->visited * DP_TILE; j++) {
            sum += exp2(((double)raw[j] - m) * (double)unit->launch.multiplier);
        }
        ((float *)out)[r] = (float)(argument == 1.0 ? ldexp(sum, -unit->launch.policy.shift) : sum);
    }
    dp_hypothesis_near(unit, DP_DUMP_ROW_SUM, out, 0, 2e-4);
    return true;
}

/* ---- the accumulator ----------------------------------------------------------------------------
 */

static uint8_t *copy_of(const dp_unit *unit, dp_dump_id id)
{
    const size_t bytes = dp_unit_bytes(unit, id);
    uint8_t *copy = unit->in.valid[id] ? malloc(bytes) : NULL;
    if (copy != NULL) {
        memcpy(copy, unit->in.data[id], bytes);
    }
    return copy;
}

static bool accumulate_with(const dp_unit *unit, dp_dump_id id, const uint8_t *changed, void *out)
{
    return dp_stage_accumulate(unit, &unit->mma, id == DP_DUMP_P_PAYLOAD ? changed : NULL,
                               id == DP_DUMP_P_SCALE ? changed : NULL,
                               id == DP_DUMP_V_PAYLOAD ? changed : NULL,
                               id == DP_DUMP_V_SCALE ? changed : NULL, out, NULL);
}

static bool acc_nibbles(const dp_unit *unit, double argument, void *out)
{
    const dp_dump_id id = argument == 0.0 ? DP_DUMP_P_PAYLOAD : DP_DUMP_V_PAYLOAD;
    uint8_t *payload = copy_of(unit, id);
    if (payload != NULL) {
        dp_nibble_swap(payload, dp_unit_bytes(unit, id));
    }
    const bool good = payload != NULL && accumulate_with(unit, id, payload, out);
    free(payload);
    return good;
}

static bool acc_layout(const dp_unit *unit, double argument, void *out)
{
    uint8_t *scale = copy_of(unit, DP_DUMP_V_SCALE);
    if (scale != NULL) {
        dp_hypothesis_relayout((int)argument % 10, argument < 10.0, unit->dump->features,
                               dp_dump_width(unit->dump, DP_DUMP_V_SCALE), scale);
    }
    const bool good = scale != NULL && accumulate_with(unit, DP_DUMP_V_SCALE, scale, out);
    free(scale);
    return good;
}

/* Bytes of P changed: 0 quarters of a K64 step exchanged, 1 halves exchanged, 2 reversed, 3 byte 0
 * is 0, 4 all one page (the first quarter's). */
static bool acc_scale(const dp_unit *unit, double argument, void *out)
{
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    const uint8_t *right = dp_strip_u8(&unit->in, DP_DUMP_P_SCALE);
    uint8_t *scale = copy_of(unit, DP_DUMP_P_SCALE);
    uint8_t *payload = copy_of(unit, DP_DUMP_P_PAYLOAD);
    const int kind = (int)argument;
    static const size_t moved[] = {1, 2, 3};
    bool good = scale != NULL && payload != NULL;
    for (size_t i = 0; good && i < unit->rows * blocks; i++) {
        scale[i] = kind < 3 ? right[i ^ moved[kind]] : kind == 4 ? right[i & ~(size_t)3] : right[i];
        if (kind == 3 && right[i] == 0) {
            memset(payload + i * DP_BLOCK / 2, 0, DP_BLOCK / 2);
        }
    }
    good = good && dp_stage_accumulate(unit, &unit->mma, payload, scale, NULL, NULL, out, NULL);
    free(scale);
    free(payload);
    return good;
}

/* Codes of P left out: 0 the last tile, 1 the first, 2 all but the last, 3 the second K64 of each
 * tile, 4 the first K64 of each tile, 5 all but the last K64. */
static bool acc_missing(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    uint8_t *payload = copy_of(unit, DP_DUMP_P_PAYLOAD);
    for (size_t i = 0; payload != NULL && i < unit->rows * keys / 2; i++) {
        const size_t key = i * 2 % keys;
        const size_t tile = key / DP_TILE;
        const bool last = tile + 1 == unit->visited;
        const bool second = key % DP_TILE >= DP_TILE / 2;
        const bool gone[] = {last, tile == 0, !last, second, !second, !last || !second};
        payload[i] = gone[(int)argument] ? 0 : payload[i];
    }
    const bool good = payload != NULL && accumulate_with(unit, DP_DUMP_P_PAYLOAD, payload, out);
    free(payload);
    return good;
}

static bool acc_head(const dp_unit *unit, double argument, void *out)
{
    const size_t heads = unit->dump->kv_heads;
    const size_t kv = argument == 0.0   ? unit->head % heads
                      : argument == 1.0 ? 0
                                        : (unit->kv + 1) % heads;
    uint8_t *payload = malloc(dp_unit_bytes(unit, DP_DUMP_V_PAYLOAD));
    uint8_t *scale = malloc(dp_unit_bytes(unit, DP_DUMP_V_SCALE));
    const bool good = heads > 1 && payload != NULL && scale != NULL &&
                      dp_unit_key_side(unit, kv, DP_DUMP_V_PAYLOAD, payload, NULL) &&
                      dp_unit_key_side(unit, kv, DP_DUMP_V_SCALE, scale, NULL) &&
                      dp_stage_accumulate(unit, &unit->mma, NULL, NULL, payload, scale, out, NULL);
    free(payload);
    free(scale);
    return good;
}

/* Another adder: 0 exact sum rounded once, 1 rounded to nearest after each K64 step, 2 after each
 * tile, 3 tiles from the last to the first with rounding after each, 4 an f32 chain key by key, 5
 * an f16 accumulator a K64 step, 6 a bf16 one. */
static bool acc_software(const dp_unit *unit, double argument, void *out)
{
    const size_t keys = unit->dump->key_rows;
    const size_t end = unit->visited * DP_TILE;
    const size_t features = unit->dump->features;
    const int kind = (int)argument;
    const size_t step = kind == 0 ? end : kind == 2 || kind == 3 ? DP_TILE : kind == 4 ? 1 : 64;
    double *v = malloc((end > 0 ? end : 1) * features * sizeof *v);
    double *p = malloc((end > 0 ? end : 1) * sizeof *p);
    const bool good = v != NULL && p != NULL && end > 0;
    for (size_t i = 0; good && i < end * features; i++) {
        const size_t d = i / end;
        const size_t j = i % end;
        const dp_e2m1 code = {
            (uint8_t)((unsigned)dp_strip_u8(&unit->in, DP_DUMP_V_PAYLOAD)[d * keys / 2 + j / 2] >>
                          (j % 2 * 4) &
                      15u)};
        const uint8_t byte =
            dp_strip_u8(&unit->in, DP_DUMP_V_SCALE)[d * (keys / DP_BLOCK) + j / DP_BLOCK];
        v[i] = ldexp((double)dp_e2m1_to_f32(code), byte - 127);
    }
    for (size_t r = 0; good && r < unit->rows; r++) {
        for (size_t j = 0; j < end; j++) {
            const size_t at = r * keys + j;
            const dp_e2m1 code = {
                (uint8_t)((unsigned)dp_strip_u8(&unit->in, DP_DUMP_P_PAYLOAD)[at / 2] >>
                              (at % 2 * 4) &
                          15u)};
            p[j] = ldexp((double)dp_e2m1_to_f32(code),
                         dp_strip_u8(&unit->in, DP_DUMP_P_SCALE)[at / DP_BLOCK] - 127);
        }
        for (size_t d = 0; d < features; d++) {
            float sum = 0.0f;
            for (size_t s = 0; s < end; s += step) {
                const size_t first = kind == 3 ? end - step - s : s;
                double part = 0.0;
                for (size_t j = first; j < first + step; j++) {
                    part += p[j] * v[d * end + j];
                }
                sum = (float)((double)sum + part);
                sum = kind == 6 ? dp_bf16_to_f32(dp_bf16_from_f32(sum, DP_ENCODE_NONSAT)) : sum;
            }
            ((float *)out)[r * features + d] = sum;
        }
    }
    free(v);
    free(p);
    return good;
}

static bool acc_zero_group(const dp_unit *unit, double argument, void *out)
{
    dp_mma_switches mma = unit->mma;
    (void)argument;
    mma.zero_group = mma.zero_group == DP_MMA_ZERO_GROUP_SCALE ? DP_MMA_ZERO_GROUP_EXCLUDED
                                                               : DP_MMA_ZERO_GROUP_SCALE;
    return dp_stage_accumulate(unit, &mma, NULL, NULL, NULL, NULL, out, NULL);
}

/* 2^L: the accumulator was brought back to the unshifted scale. */
static bool acc_lifted(const dp_unit *unit, double argument, void *out)
{
    float *acc = out;
    (void)argument;
    for (size_t i = 0; i < unit->rows * unit->dump->features; i++) {
        acc[i] = ldexpf(acc[i], unit->launch.policy.shift);
    }
    return true;
}

/* V of the oracle in another form: 0 blocks along the head dimension are read as blocks of keys. */
static bool acc_v_axis(const dp_unit *unit, double argument, void *out)
{
    const size_t features = unit->dump->features;
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    uint8_t *scale = copy_of(unit, DP_DUMP_V_SCALE);
    (void)argument;
    for (size_t i = 0; scale != NULL && i < features * blocks; i++) { /* [block][feature] bytes */
        scale[i] = dp_strip_u8(&unit->in, DP_DUMP_V_SCALE)[i % features * blocks + i / features];
    }
    const bool good = scale != NULL && accumulate_with(unit, DP_DUMP_V_SCALE, scale, out);
    free(scale);
    return good;
}

/* Feature d reads V of feature d + 1 or d - 1 (argument 1, -1); +-2: its scales too. */
static bool acc_v_feature(const dp_unit *unit, double argument, void *out)
{
    const size_t features = unit->dump->features;
    const ptrdiff_t by = argument > 0.0 ? 1 : -1;
    uint8_t *payload = copy_of(unit, DP_DUMP_V_PAYLOAD);
    uint8_t *scale = copy_of(unit, DP_DUMP_V_SCALE);
    const size_t bytes = dp_dump_width(unit->dump, DP_DUMP_V_PAYLOAD);
    const size_t blocks = dp_dump_width(unit->dump, DP_DUMP_V_SCALE);
    bool good = payload != NULL && scale != NULL;
    for (size_t d = 0; good && d < features; d++) {
        const ptrdiff_t from = (ptrdiff_t)d + by;
        if (from >= 0 && (size_t)from < features) {
            memcpy(payload + d * bytes,
                   dp_strip_u8(&unit->in, DP_DUMP_V_PAYLOAD) + (size_t)from * bytes, bytes);
            memcpy(scale + d * blocks,
                   dp_strip_u8(&unit->in, DP_DUMP_V_SCALE) +
                       (fabs(argument) > 1.0 ? (size_t)from : d) * blocks,
                   blocks);
        }
    }
    good = good && dp_stage_accumulate(unit, &unit->mma, NULL, NULL, payload, scale, out, NULL);
    free(payload);
    free(scale);
    return good;
}

#define ROW(id_, name_, function_, argument_, meaning_)                                            \
    {                                                                                              \
        .name = (name_), .id = (id_), .run = (function_), .argument = (argument_),                 \
        .meaning = (meaning_)                                                                      \
    }
#define COUNT(name_, rule_, meaning_) ROW(DP_DUMP_CODE_SUM, name_, count_codes, rule_, meaning_)
#define SUM(name_, rule_, meaning_)   ROW(DP_DUMP_ROW_SUM, name_, sums_by, rule_, meaning_)
#define ACC(name_, function_, argument_, meaning_)                                                 \
    ROW(DP_DUMP_ACC, name_, function_, argument_, meaning_)
#define CHANGE(name_, change_, meaning_)                                                           \
    {                                                                                              \
        .name = (name_), .id = DP_DUMP_ROW_SUM, .change = (change_), .meaning = (meaning_)         \
    }

const dp_hypothesis dp_hypotheses_sum[] = {
    COUNT("sum-not-doubled", COUNT_NOT_DOUBLED, "the sum is that of the values, not twice it"),
    COUNT("code-numbers-summed", COUNT_OF_CODES, "code numbers are added, not their values"),
    COUNT("low-nibbles-alone", COUNT_LOW, "odd keys are left out"),
    COUNT("high-nibbles-alone", COUNT_HIGH, "even keys are left out"),
    COUNT("half-block-summed", COUNT_HALF, "16 of the 32 keys are added"),
    COUNT("sum-wrapped", COUNT_BYTE, "the sum is cut to 8 bits"),
    COUNT("sum-saturated", COUNT_SATURATED, "the sum is held at 255"),
    COUNT("codes-counted", COUNT_NONZERO, "nonzero codes are counted"),
    COUNT("largest-code-as-4", COUNT_SIX_FOR_FOUR, "code 7 counts as 4, not as 6"),
    ROW(DP_DUMP_CODE_SUM, "quarters-exchanged", counts_moved, 1,
        "quarters of a K64 step exchanged"),
    ROW(DP_DUMP_CODE_SUM, "halves-exchanged", counts_moved, 2, "the K64 steps are exchanged"),
    ROW(DP_DUMP_CODE_SUM, "quarters-reversed", counts_moved, 3, "quarters in reverse order"),
    CHANGE("other-epoch", other_epoch, "product order of the other epoch (S or R)"),
    CHANGE("scale-first", scale_first, "(s/6)*c instead of s*(c/6), or the reverse"),
    CHANGE("fma-denominator", contracted, "the adds of d0, d1, d3 are contracted, or not"),
    CHANGE("other-denominator", other_denominator,
           "the correction's sum for the producer's, or the reverse"),
    SUM("quarter-order", SUM_ORDER, "quarters are added in the order Q0 Q1 Q2 Q3"),
    SUM("quarter-order", SUM_REVERSED, "quarters are added from Q3 to Q0"),
    SUM("quarters-one-by-one", SUM_ONE_BY_ONE, "quarters join the row sum one by one"),
    SUM("twelfth-by-tile", SUM_BY_TILE, "1/12 is applied to every tile, not at the end"),
    SUM("divisor-missing", SUM_NOT_DIVIDED, "1/6 or 1/12 is missing"),
    SUM("sixth-for-twelfth", SUM_SIXTH_FOR_TWELFTH, "1/6 for 1/12: twice as large"),
    SUM("last-tile-missing", SUM_LAST_MISSING, "the last key tile is not in the sum"),
    SUM("first-tile-missing", SUM_FIRST_MISSING, "the first key tile is not in the sum"),
    SUM("last-tile-alone", SUM_LAST_ALONE, "the sum starts anew at every key tile"),
    SUM("half-tile", SUM_HALF, "Q2 and Q3 are not in the sum"),
    SUM("tiles-descending", SUM_DESCENDING, "tiles are added from the last to the first"),
    SUM("bf16-sum", SUM_BF16, "the row sum is kept in bf16"),
    SUM("exact-sum", SUM_DOUBLE, "the sum is rounded once, at the end"),
    SUM("byte-zero-counts", SUM_BYTE_ZERO, "byte 0 counts as 2^-127, not as 0"),
    ROW(DP_DUMP_ROW_SUM, "unrounded-p", unrounded, 1,
        "the sum is of unrounded 2^x, not of the codes that PV uses"),
    ROW(DP_DUMP_ROW_SUM, "unrounded-p", unrounded, 0,
        "the sum is of unrounded 2^x without the shift L"),
    ACC("p-nibbles-swapped", acc_nibbles, 0, "the two codes of a byte of P are exchanged"),
    ACC("v-nibbles-swapped", acc_nibbles, 1, "the two codes of a byte of V are exchanged"),
    ACC("v-scale-layout", acc_layout, DP_LAYOUT_128X4,
        "scales of V lie in 128 x 4 atoms and are read as linear"),
    ACC("v-scale-layout", acc_layout, 10 + DP_LAYOUT_128X4,
        "linear scales of V are read as 128 x 4 atoms"),
    ACC("v-scale-layout-64-row", acc_layout, DP_LAYOUT_SM120,
        "scales of V lie in atoms of 64 rows and are read as linear"),
    ACC("v-scale-layout-64-row", acc_layout, 10 + DP_LAYOUT_SM120,
        "linear scales of V are read as atoms of 64 rows"),
    ACC("v-scale-layout-swapped", acc_layout, DP_LAYOUT_128X4_SWAPPED,
        "scale atoms of V with 32 and 4 exchanged"),
    ACC("v-scale-transposed", acc_v_axis, 0, "scales of V are read as [block][feature]"),
    ACC("v-feature-shifted", acc_v_feature, 1, "codes of V are those of the next feature"),
    ACC("v-feature-shifted", acc_v_feature, -1, "codes of V are those of the previous feature"),
    ACC("v-feature-shifted", acc_v_feature, 2, "V is that of the next feature"),
    ACC("v-feature-shifted", acc_v_feature, -2, "V is that of the previous feature"),
    ACC("p-scale-exchanged", acc_scale, 0, "bytes of P: quarters of a K64 step exchanged"),
    ACC("p-scale-halves", acc_scale, 1, "bytes of P: the K64 steps are exchanged"),
    ACC("p-scale-reversed", acc_scale, 2, "bytes of P: quarters in reverse order"),
    ACC("p-scale-first-quarter", acc_scale, 4, "the first quarter's byte serves the whole tile"),
    ACC("byte-zero-is-zero", acc_scale, 3, "byte 0 of P counts as 0, not as 2^-127"),
    ACC("last-tile-missing", acc_missing, 0, "the last key tile is left out"),
    ACC("first-tile-missing", acc_missing, 1, "the first key tile is left out"),
    ACC("last-tile-alone", acc_missing, 2, "the accumulator starts anew at every key tile"),
    ACC("second-k64-missing", acc_missing, 3, "the second K64 of each tile is left out"),
    ACC("first-k64-missing", acc_missing, 4, "the first K64 of each tile is left out"),
    ACC("last-k64-alone", acc_missing, 5, "no instruction accumulates: the last K64 remains"),
    ACC("gqa-interleaved", acc_head, 0, "value heads are tiled (h mod n), not in groups"),
    ACC("gqa-first-head", acc_head, 1, "every query head reads value head 0"),
    ACC("gqa-neighbour", acc_head, 2, "the next value head is read"),
    ACC("accumulate-rounded", acc_software, 1,
        "each K64 step is rounded to nearest, not truncated by the matrix unit"),
    ACC("accumulate-by-tile", acc_software, 2, "rounded to nearest once a key tile"),
    ACC("accumulate-exact", acc_software, 0, "rounded once, at the end"),
    ACC("tiles-descending", acc_software, 3, "tiles from the last to the first"),
    ACC("accumulate-f32-chain", acc_software, 4, "a chain of f32 additions key by key"),
    ACC("accumulate-bf16", acc_software, 6, "the accumulator is kept in bf16"),
    ACC("zero-group-exponent", acc_zero_group, 0, "the other value of the switch mma.zero_group"),
    ACC("shift-undone", acc_lifted, 0, "the accumulator is multiplied by 2^L"),
    {.name = NULL},
};
