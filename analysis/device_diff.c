/* SPDX-License-Identifier: MIT */
#include "analysis/device_diff.h"

#include <stdlib.h>

#include "ref/arith/f32_fast.h"

bool dp_device_built(void)
{
    return dp_device_probe != NULL && dp_device_run != NULL && dp_device_forward != NULL &&
           dp_device_reference != NULL && dp_device_bench != NULL &&
           dp_device_wrapper_run != NULL && dp_device_block_mma != NULL;
}

dp_device_policy dp_device_policy_of(const dp_direct_p *launch)
{
    const dp_forward_policy *p = &launch->policy;
    dp_device_policy d = {.multiplier = launch->multiplier,
                          .map = (int)p->map,
                          .degree = p->degree,
                          .map_floor = p->map_floor,
                          .fold_k64 = p->fold_k64,
                          .anchor_keys = p->reference == DP_REFERENCE_ANCHOR ? p->anchor_keys : 0,
                          .shift = p->shift,
                          .correction_denominator = p->denominator == DP_DENOMINATOR_CORRECTION,
                          .clear_zero = p->clear_zero,
                          .rebase_q1 = p->rebase_q1,
                          .epoch_r = launch->epoch == DP_EPOCH_R,
                          .fma_denominator = launch->switches.fma_denominator,
                          .scale_first = launch->switches.fault_scale_first,
                          .v_zero_nan = launch->switches.v_zero_nan};
    memcpy(d.coefficient, p->coefficient, sizeof d.coefficient);
    const float margin = (float)p->margin;
    d.anchor_bias = launch->switches.margin_log2
                        ? margin / launch->multiplier
                        : dp_mul_rn_ftz(margin, dp_f32_from_bits(0x3F317218u));
    for (int stage = 0; stage < 2; stage++) {
        for (int quarter = 0; quarter < DP_QUARTERS; quarter++) {
            for (int pair = 0; pair < DP_PAIRS; pair++) {
                if (dp_forward_policy_native_pair(p, stage, quarter, pair)) {
                    d.native[stage][quarter] |= (uint16_t)(1u << pair);
                }
            }
        }
    }
    return d;
}

/* ---- both sides' data ------------------------------------------------------------------------ */

typedef struct {
    dp_attention in; /* one slice of the problem, 128 features a row */
    dp_operands operands;
    dp_device_stages oracle, device;
    size_t rows, keys; /* query rows of all heads; padded keys */
} workspace;

typedef struct {
    const char *name;
    size_t member; /* offset in dp_device_stages */
    size_t size;   /* bytes of an element        */
    dp_device_stage stage;
} dataset;

#define DATASET(name, size, stage)                                                                 \
    {                                                                                              \
#name, offsetof(dp_device_stages, name), size, stage                                       \
    }
static const dataset DATASETS[] = {
    DATASET(q_payload, 1, DP_DEVICE_QUANTIZE), DATASET(q_scale, 1, DP_DEVICE_QUANTIZE),
    DATASET(k_payload, 1, DP_DEVICE_QUANTIZE), DATASET(k_scale, 1, DP_DEVICE_QUANTIZE),
    DATASET(v_payload, 1, DP_DEVICE_QUANTIZE), DATASET(v_scale, 1, DP_DEVICE_QUANTIZE),
    DATASET(raw, 4, DP_DEVICE_SCORE),          DATASET(row_ref, 4, DP_DEVICE_REFERENCE),
    DATASET(p_scale, 1, DP_DEVICE_CODE),       DATASET(p_payload, 1, DP_DEVICE_CODE),
    DATASET(code_sum, 2, DP_DEVICE_CODE),      DATASET(row_sum, 4, DP_DEVICE_DENOMINATOR),
    DATASET(acc, 4, DP_DEVICE_ACCUMULATE),     DATASET(o, 2, DP_DEVICE_OUTPUT),
    DATASET(lse, 4, DP_DEVICE_OUTPUT),
};
enum { DATASETS_COUNT = sizeof DATASETS / sizeof DATASETS[0] };

static void **slot(dp_device_stages *stages, size_t i)
{
    return (void **)(void *)((char *)stages + DATASETS[i].member);
}

/* Elements of dataset i, and of one of its rows. */
static size_t width_of(const workspace *w, size_t i)
{
    const size_t widths[DATASETS_COUNT] = {
        64,           8,           64,           8, w->keys / 2, w->keys / 32, w->keys, 1,
        w->keys / 32, w->keys / 2, w->keys / 32, 1, DP_HEAD_DIM, DP_HEAD_DIM,  1};
    return widths[i];
}

static size_t rows_a_head(const workspace *w, size_t i)
{
    return i < 2 ? w->in.queries : (i < 4 ? w->keys : (i < 6 ? DP_HEAD_DIM : w->in.queries));
}

static size_t heads_of(const workspace *w, size_t i)
{
    return w->in.batch * (i >= 2 && i < 6 ? w->in.kv_heads : w->in.q_heads);
}

static size_t elements_of(const workspace *w, size_t i)
{
    return heads_of(w, i) * rows_a_head(w, i) * width_of(w, i);
}

static bool allocate(workspace *w, dp_device_stages *stages)
{
    for (size_t i = 0; i < DATASETS_COUNT; i++) {
        *slot(stages, i) = calloc(elements_of(w, i), DATASETS[i].size);
        if (*slot(stages, i) == NULL) {
            return false;
        }
    }
    return true;
}

static void release(dp_device_stages *stages)
{
    for (size_t i = 0; i < DATASETS_COUNT; i++) {
        free(*slot(stages, i));
        *slot(stages, i) = NULL;
    }
}

static bool keep_strip(void *context, const dp_strip *s)
{
    workspace *w = context;
    const size_t first = (s->batch * w->in.q_heads + s->head) * w->in.queries + s->row_first;
    const void *from[DATASETS_COUNT] = {[6] = s->raw,       [7] = s->row_ref,   [8] = s->p_scale,
                                        [9] = s->p_payload, [10] = s->code_sum, [11] = s->row_sum,
                                        [12] = s->acc,      [13] = s->o,        [14] = s->lse};
    for (size_t i = 6; i < DATASETS_COUNT; i++) {
        const size_t row = width_of(w, i) * DATASETS[i].size;
        memcpy((char *)*slot(&w->oracle, i) + first * row, from[i], s->rows * row);
    }
    return true;
}

/* The oracle's operands, without the padding of the query rows. */
static void keep_operands(workspace *w)
{
    const dp_operands *o = &w->operands;
    for (size_t h = 0; h < w->in.batch * w->in.q_heads; h++) {
        memcpy(w->oracle.q_payload + h * w->in.queries * 64, o->q_payload + h * o->query_rows * 64,
               w->in.queries * 64);
        memcpy(w->oracle.q_scale + h * w->in.queries * 8, o->q_scale + h * o->query_rows * 8,
               w->in.queries * 8);
    }
    memcpy(w->oracle.k_payload, o->k_payload, elements_of(w, 2));
    memcpy(w->oracle.k_scale, o->k_scale, elements_of(w, 3));
    memcpy(w->oracle.v_payload, o->v_payload, elements_of(w, 4));
    memcpy(w->oracle.v_scale, o->v_scale, elements_of(w, 5));
    /* padding rows of K hold what quantizing zeros gives: payload and scale 0 on both sides */
}

/* ---- comparison ------------------------------------------------------------------------------ */

static dp_diff_row *row_for(dp_diff_table *table, dp_diff_mode mode, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].mode == mode && strcmp(table->rows[i].dataset, name) == 0) {
            return &table->rows[i];
        }
    }
    dp_diff_row *row = &table->rows[table->count < DP_DIFF_ROWS ? table->count++ : 0];
    *row = (dp_diff_row){.mode = mode, .dataset = name};
    return row;
}

static uint32_t element_at(const void *data, size_t size, size_t i)
{
    uint32_t value = 0;
    memcpy(&value, (const char *)data + i * size, size);
    return value;
}

static void compare(const workspace *w, size_t i, dp_diff_mode mode, const void *device,
                    dp_diff_table *table)
{
    dp_diff_row *row = row_for(table, mode, DATASETS[i].name);
    const void *oracle = *slot((dp_device_stages *)&w->oracle, i);
    const size_t size = DATASETS[i].size;
    const size_t count = elements_of(w, i);
    row->elements += count;
    if (i == 9) {
        table->codes += 2 * count;
    }
    if (memcmp(oracle, device, count * size) == 0) {
        return;
    }
    for (size_t e = 0; e < count; e++) {
        const uint32_t a = element_at(oracle, size, e);
        const uint32_t b = element_at(device, size, e);
        if (a != b && row->mismatches++ == 0) {
            const size_t at = e / width_of(w, i);
            const size_t head = at / rows_a_head(w, i);
            const size_t heads = heads_of(w, i) / w->in.batch;
            row->first[0] = table->batch + head / heads;
            row->first[1] = table->head + head % heads;
            row->first[2] = at % rows_a_head(w, i);
            row->first[3] = e % width_of(w, i);
            row->oracle = a;
            row->device = b;
        }
    }
}

static void compare_stage(workspace *w, dp_device_stage stage, dp_diff_mode mode,
                          dp_diff_table *table)
{
    for (size_t i = 0; i < DATASETS_COUNT; i++) {
        if (DATASETS[i].stage == stage) {
            compare(w, i, mode, *slot(&w->device, i), table);
        }
    }
}

/* Each stage on the device from the oracle's data before it. */
static bool run_injected(workspace *w, const dp_device_problem *problem,
                         const dp_device_policy *policy, int device, dp_diff_table *table,
                         dp_error *error)
{
    for (int stage = DP_DEVICE_QUANTIZE; stage <= DP_DEVICE_OUTPUT; stage++) {
        /* inputs are the oracle's arrays, outputs the device's */
        dp_device_stages data = w->oracle;
        for (size_t i = 0; i < DATASETS_COUNT; i++) {
            if (DATASETS[i].stage == (dp_device_stage)stage) {
                *slot(&data, i) = *slot(&w->device, i);
            }
        }
        if (!dp_device_run(device, problem, policy, (dp_device_stage)stage, (dp_device_stage)stage,
                           &data, error)) {
            return false;
        }
        compare_stage(w, (dp_device_stage)stage, DP_DIFF_INJECTED, table);
    }
    return true;
}

static bool run_chained(workspace *w, const dp_device_problem *problem,
                        const dp_device_policy *policy, int device, dp_diff_table *table,
                        dp_error *error)
{
    if (!dp_device_run(device, problem, policy, DP_DEVICE_QUANTIZE, DP_DEVICE_OUTPUT, &w->device,
                       error)) {
        return false;
    }
    for (int stage = DP_DEVICE_QUANTIZE; stage <= DP_DEVICE_OUTPUT; stage++) {
        compare_stage(w, (dp_device_stage)stage, DP_DIFF_CHAINED, table);
    }
    /* poison, so that an element the fused kernel leaves out shows */
    memset(w->device.o, 0xA5, elements_of(w, 13) * 2);
    memset(w->device.lse, 0xA5, elements_of(w, 14) * 4);
    if (!dp_device_forward(device, problem, policy, 0, w->device.o, w->device.lse, NULL, error)) {
        return false;
    }
    compare_stage(w, DP_DEVICE_OUTPUT, DP_DIFF_FUSED, table);
    return true;
}

/* BF16 attention of both sides, in the place of the outputs. */
static bool run_reference(workspace *w, const dp_device_problem *problem, int device, int threads,
                          dp_diff_table *table, dp_error *error)
{
    memset(w->device.o, 0xA5, elements_of(w, 13) * 2);
    memset(w->device.lse, 0xA5, elements_of(w, 14) * 4);
    const float scale = (float)(1.4426950408889634 * dp_attention_scale(&w->in));
    if (!dp_reference_bf16(&w->in, threads, w->oracle.o, w->oracle.lse, error) ||
        !dp_device_reference(device, problem, scale, 0, w->device.o, w->device.lse, NULL, error)) {
        return false;
    }
    compare_stage(w, DP_DEVICE_OUTPUT, DP_DIFF_REFERENCE, table);
    return true;
}

/* ---- one problem ------------------------------------------------------------------------------
 */

static bool run_oracle(workspace *w, const dp_direct_p *launch, int threads, dp_error *error)
{
    if (!dp_forward_quantize(&w->in, launch, threads, &w->operands, error)) {
        return false;
    }
    w->keys = w->operands.key_rows;
    if (!allocate(w, &w->oracle) || !allocate(w, &w->device)) {
        return dp_fail(error,
                       "device diff: not enough memory for %zu x %zu scores of %zu heads: use a "
                       "shorter sequence or fewer heads",
                       w->in.queries, w->keys, w->in.batch * w->in.q_heads);
    }
    keep_operands(w);
    const dp_forward_job job = {.in = &w->in,
                                .operands = &w->operands,
                                .launch = launch,
                                .threads = threads,
                                .want_raw = true,
                                .sink = keep_strip,
                                .context = w};
    return dp_forward_run(&job, error);
}

static bool diff_slice(const dp_attention *in, const dp_direct_p *launch, int device, int threads,
                       dp_diff_table *table, dp_error *error)
{
    workspace w;
    memset(&w, 0, sizeof w);
    uint16_t *q = dp_device_padded(in->q, in->batch * in->q_heads * in->queries, in->dim);
    uint16_t *k = dp_device_padded(in->k, in->batch * in->kv_heads * in->keys, in->dim);
    uint16_t *v = dp_device_padded(in->v, in->batch * in->kv_heads * in->keys, in->dim);
    int32_t *map = malloc(in->q_heads * sizeof *map);
    bool good = q != NULL && k != NULL && v != NULL && map != NULL;
    if (!good) {
        (void)dp_fail(error, "device diff: not enough memory");
    }
    for (size_t h = 0; good && h < in->q_heads; h++) {
        map[h] = (int32_t)dp_attention_kv_head(in, h);
    }
    w.in = *in;
    w.in.softmax_scale = dp_attention_scale(in);
    w.in.dim = DP_HEAD_DIM;
    w.in.q = q;
    w.in.k = k;
    w.in.v = v;
    good = good && run_oracle(&w, launch, threads, error);
    if (good) {
        const dp_device_policy policy = dp_device_policy_of(launch);
        const dp_device_problem problem = {.batch = in->batch,
                                           .q_heads = in->q_heads,
                                           .kv_heads = in->kv_heads,
                                           .queries = in->queries,
                                           .keys = in->keys,
                                           .causal = in->causal,
                                           .kv_of_q = map,
                                           .key_order = w.operands.key_order,
                                           .q = q,
                                           .k = k,
                                           .v = v};
        good = run_injected(&w, &problem, &policy, device, table, error) &&
               run_chained(&w, &problem, &policy, device, table, error) &&
               run_reference(&w, &problem, device, threads, table, error);
    }
    release(&w.oracle);
    release(&w.device);
    dp_operands_free(&w.operands);
    free(q);
    free(k);
    free(v);
    free(map);
    return good;
}

/* Scores that are held at once, a side; more are compared head by head. */
#define SLICE_SCORES ((size_t)1 << 28)

bool dp_device_diff(const dp_attend_inputs *inputs, const dp_direct_p *launch, int device,
                    int threads, dp_diff_table *table, dp_error *error)
{
    const dp_attention *in = &inputs->in;
    if (launch->switches.native_d64) {
        return dp_fail(error, "native-d64: the kernels are built for 128 features: leave it off");
    }
    const size_t heads = in->batch * in->q_heads;
    if (heads == 1 || in->queries * in->keys <= SLICE_SCORES / heads) {
        return diff_slice(in, launch, device, threads, table, error);
    }
    bool good = true;
    for (size_t h = 0; good && h < heads; h++) {
        const size_t batch = h / in->q_heads;
        const size_t kv = batch * in->kv_heads + dp_attention_kv_head(in, h % in->q_heads);
        dp_attention one = *in;
        one.batch = one.q_heads = one.kv_heads = 1;
        one.kv_of_q = NULL;
        one.q += h * in->queries * in->dim;
        one.k += kv * in->keys * in->dim;
        one.v += kv * in->keys * in->dim;
        table->batch = batch;
        table->head = h % in->q_heads;
        good = diff_slice(&one, launch, device, threads, table, error);
    }
    return good;
}
