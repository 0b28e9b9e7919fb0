/* SPDX-License-Identifier: MIT */
#include "fault_case.h"

#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "support.h"

static float draw(dp_rng *rng, int inputs)
{
    switch (inputs) {
    case 1: /* multiples of 1/4 up to 6, blocks with 6 in them: scale 1, many midpoints */
        return 0.25f * (float)((int)dp_rng_below(rng, 49) - 24);
    case 2:
        return (float)(2.5 * dp_rng_normal(rng));
    case 3:
        return (float)(0.02 * dp_rng_normal(rng));
    default:
        return (float)dp_rng_normal(rng);
    }
}

/* `side`: 0 for Q, 1 for K, 2 for V. */
static uint16_t *tensor(dp_rng *rng, size_t count, int inputs, int side)
{
    uint16_t *x = malloc(count * sizeof *x);
    for (size_t i = 0; i < count; i++) {
        float value = draw(rng, inputs >= 4 || (inputs > 1 && side == 2) ? 0 : inputs);
        if (inputs == 1 && i % 16 == 5) {
            value = i % 32 == 5 ? 6.0f : -6.0f;
        }
        if (inputs == 5 && side == 0 && i % 128 == 40) { /* a scale beyond E4M3's range */
            value *= 3000.0f;
        }
        if (inputs == 4 && side < 2) { /* rows from visible to far below every exponent */
            value += side == 1 ? 1.5f : -7.0f * (float)(i / 128 % 64) / 64.0f;
        }
        x[i] = dp_bf16_from_f32(value, DP_ENCODE_NONSAT).bits;
    }
    return x;
}

size_t fault_elements(const fault_problem *problem, dp_dump_id id)
{
    const dp_dump *dump = &problem->dump;
    return dump->batch * dp_dump_heads(dump, id) * dp_dump_head_rows(dump, id) *
           dp_dump_width(dump, id);
}

static void describe(const fault_case *from, fault_problem *p)
{
    dp_dump *d = &p->dump;
    (void)snprintf(d->path, sizeof d->path, "%s", from->name);
    d->batch = 1;
    d->q_heads = d->head_count = from->q_heads;
    d->kv_heads = from->kv_heads;
    d->queries = d->rows = from->queries;
    d->keys = from->keys;
    d->key_rows = p->operands.key_rows;
    d->dim = d->features = 128;
    d->softmax_scale = dp_attention_scale(&p->in);
    d->causal = from->causal;
    d->launch = p->launch;
    d->has_inputs = true;
    d->borrowed = true;
    d->q = p->q;
    d->k = p->k;
    d->v = p->v;
    d->kv_of_q = p->kv_of_q;
    d->key_order = p->operands.key_order;
    d->order_given = true;
    d->heads = malloc(from->q_heads * sizeof *d->heads);
    for (size_t h = 0; h < from->q_heads; h++) {
        d->heads[h] = h;
    }
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        const dp_dump_id id = (dp_dump_id)i;
        d->present[i] = true;
        d->file_width[i] = dp_dump_width(d, id);
        d->memory[i] = calloc(fault_elements(p, id), dp_dump_element(id));
    }
}

void fault_problem_make(const fault_case *from, uint64_t seed, fault_problem *p)
{
    memset(p, 0, sizeof *p);
    dp_rng rng = {seed};
    dp_forward_policy policy;
    dp_error error = {""};
    ck_assert_msg(dp_forward_policy_find(from->policy, &policy, &error), "%s", error.text);
    const size_t q = from->q_heads * from->queries * 128;
    const size_t kv = from->kv_heads * from->keys * 128;
    p->q = tensor(&rng, q, from->inputs, 0);
    p->k = tensor(&rng, kv, from->inputs, 1);
    p->v = tensor(&rng, kv, from->inputs, 2);
    p->kv_of_q = malloc(from->q_heads * sizeof *p->kv_of_q);
    for (size_t h = 0; h < from->q_heads; h++) {
        p->kv_of_q[h] = (int32_t)(h * from->kv_heads / from->q_heads);
    }
    p->in = (dp_attention){.batch = 1,
                           .q_heads = from->q_heads,
                           .kv_heads = from->kv_heads,
                           .queries = from->queries,
                           .keys = from->keys,
                           .dim = 128,
                           .q = p->q,
                           .k = p->k,
                           .v = p->v,
                           .kv_of_q = p->kv_of_q,
                           .causal = from->causal};
    const dp_switches switches = dp_switches_default();
    p->launch = dp_direct_p_make(&policy, from->epoch, &switches, dp_attention_scale(&p->in), NULL);
    ck_assert_msg(dp_forward_quantize(&p->in, &p->launch, 2, &p->operands, &error), "%s",
                  error.text);
    describe(from, p);
    fault_problem_operands(p, &p->operands);
    fault_problem_run(p, &p->in, &p->operands, &p->launch);
    p->pristine = p->dump;
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        const size_t bytes = fault_elements(p, (dp_dump_id)i) * dp_dump_element((dp_dump_id)i);
        p->saved[i] = malloc(bytes);
        memcpy(p->saved[i], p->dump.memory[i], bytes);
    }
}

void fault_problem_reset(fault_problem *p)
{
    p->dump = p->pristine;
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        memcpy(p->dump.memory[i], p->saved[i],
               fault_elements(p, (dp_dump_id)i) * dp_dump_element((dp_dump_id)i));
    }
}

void fault_problem_free(fault_problem *p)
{
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        free(p->dump.memory[i]);
        free(p->saved[i]);
    }
    free(p->pristine.heads);
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->kv_of_q);
    dp_operands_free(&p->operands);
}

static void take_rows(fault_problem *p, dp_dump_id id, const uint8_t *data, size_t padded)
{
    const size_t width = dp_dump_width(&p->dump, id);
    const size_t rows = dp_dump_head_rows(&p->dump, id);
    for (size_t h = 0; h < dp_dump_heads(&p->dump, id); h++) {
        memcpy((uint8_t *)p->dump.memory[id] + h * rows * width, data + h * padded * width,
               rows * width);
    }
}

void fault_problem_operands(fault_problem *p, const dp_operands *o)
{
    take_rows(p, DP_DUMP_Q_PAYLOAD, o->q_payload, o->query_rows);
    take_rows(p, DP_DUMP_Q_SCALE, o->q_scale, o->query_rows);
    take_rows(p, DP_DUMP_K_PAYLOAD, o->k_payload, o->key_rows);
    take_rows(p, DP_DUMP_K_SCALE, o->k_scale, o->key_rows);
    take_rows(p, DP_DUMP_V_PAYLOAD, o->v_payload, o->features);
    take_rows(p, DP_DUMP_V_SCALE, o->v_scale, o->features);
}

static bool keep_strip(void *context, const dp_strip *s)
{
    fault_problem *p = context;
    const void *const from[DP_DUMP_DATASETS] = {[DP_DUMP_RAW] = s->raw,
                                                [DP_DUMP_ROW_REF] = s->row_ref,
                                                [DP_DUMP_P_SCALE] = s->p_scale,
                                                [DP_DUMP_P_PAYLOAD] = s->p_payload,
                                                [DP_DUMP_CODE_SUM] = s->code_sum,
                                                [DP_DUMP_ROW_SUM] = s->row_sum,
                                                [DP_DUMP_ACC] = s->acc,
                                                [DP_DUMP_O] = s->o,
                                                [DP_DUMP_LSE] = s->lse};
    for (int i = DP_DUMP_RAW; i < DP_DUMP_DATASETS; i++) {
        const dp_dump_id id = (dp_dump_id)i;
        const size_t row = dp_dump_width(&p->dump, id) * dp_dump_element(id);
        memcpy((char *)p->dump.memory[i] + (s->head * p->dump.queries + s->row_first) * row,
               from[i], s->rows * row);
    }
    return true;
}

void fault_problem_run(fault_problem *p, const dp_attention *in, const dp_operands *operands,
                       const dp_direct_p *launch)
{
    dp_error error = {""};
    const dp_forward_job job = {.in = in,
                                .operands = operands,
                                .launch = launch,
                                .threads = 1,
                                .want_raw = true,
                                .sink = keep_strip,
                                .context = p};
    ck_assert_msg(dp_forward_run(&job, &error), "%s", error.text);
}

void fault_problem_follow(fault_problem *p, dp_dump_id after)
{
    dp_error error = {""};
    dp_unit unit;
    dp_dump partial = p->dump;
    for (int i = after < DP_DUMP_RAW ? DP_DUMP_RAW : (int)after + 1; i < DP_DUMP_DATASETS; i++) {
        partial.present[i] = false;
    }
    ck_assert_msg(dp_unit_allocate(&unit, &partial, 1, &error), "%s", error.text);
    for (size_t i = 0; i < dp_unit_count(&partial); i++) {
        ck_assert_msg(dp_unit_load(&unit, i, &error), "%s", error.text);
        for (int d = (int)after + 1; d < DP_DUMP_DATASETS; d++) {
            const dp_dump_id id = (dp_dump_id)d;
            const size_t row = dp_dump_width(&partial, id) * dp_dump_element(id);
            if (id > DP_DUMP_V_SCALE) {
                memcpy((char *)p->dump.memory[d] +
                           (unit.head * partial.queries + unit.row_first) * row,
                       unit.out.data[d], unit.rows * row);
            }
        }
    }
    dp_unit_free(&unit);
}
