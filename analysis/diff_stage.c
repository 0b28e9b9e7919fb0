/* SPDX-License-Identifier: MIT
 *
 * The stages of the oracle on one strip, each from the data before it.
 */
#include <math.h>

#include "analysis/diff_unit.h"
#include "formats/parallel.h"

#define QK_INSTRUCTION "tcgen05.mma.kind::mxf4nvf4.block16.ue4m3"
#define PV_INSTRUCTION "tcgen05.mma.kind::mxf4nvf4.block32.ue8m0"

bool dp_stage_ready(const dp_unit *unit, dp_dump_id id)
{
    static const struct {
        dp_dump_id needs[5];
        int count;
    } table[DP_DUMP_DATASETS] = {
        [DP_DUMP_RAW] = {{DP_DUMP_Q_PAYLOAD, DP_DUMP_Q_SCALE, DP_DUMP_K_PAYLOAD, DP_DUMP_K_SCALE},
                         4},
        [DP_DUMP_ROW_REF] = {{DP_DUMP_RAW}, 1},
        [DP_DUMP_P_SCALE] = {{DP_DUMP_RAW, DP_DUMP_ROW_REF}, 2},
        [DP_DUMP_P_PAYLOAD] = {{DP_DUMP_RAW, DP_DUMP_ROW_REF}, 2},
        [DP_DUMP_CODE_SUM] = {{DP_DUMP_P_PAYLOAD}, 1},
        [DP_DUMP_ROW_SUM] = {{DP_DUMP_P_SCALE, DP_DUMP_CODE_SUM}, 2},
        [DP_DUMP_ACC] = {{DP_DUMP_P_SCALE, DP_DUMP_P_PAYLOAD, DP_DUMP_V_PAYLOAD, DP_DUMP_V_SCALE},
                         4},
        [DP_DUMP_O] = {{DP_DUMP_ROW_REF, DP_DUMP_ROW_SUM, DP_DUMP_ACC}, 3},
        [DP_DUMP_LSE] = {{DP_DUMP_ROW_REF, DP_DUMP_ROW_SUM}, 2},
    };
    for (int i = 0; i < table[id].count; i++) {
        if (!unit->in.valid[table[id].needs[i]]) {
            return false;
        }
    }
    return table[id].count > 0;
}

bool dp_unit_masked(const dp_unit *unit, size_t r, size_t position)
{
    const dp_dump *dump = unit->dump;
    if (position >= dump->keys) {
        return true;
    }
    return dump->causal &&
           (size_t)dump->key_order[position] + dump->queries > unit->row_first + r + dump->keys;
}

static void mask(const dp_unit *unit, float *raw)
{
    const size_t keys = unit->dump->key_rows;
    if (!unit->dump->causal && keys == unit->dump->keys) {
        return;
    }
    for (size_t r = 0; r < DP_TILE; r++) {
        for (size_t j = 0; j < keys; j++) {
            if (j >= unit->visited * DP_TILE || dp_unit_masked(unit, r, j)) {
                raw[r * keys + j] = -INFINITY;
            }
        }
    }
}

bool dp_stage_score(const dp_unit *unit, const dp_mma_switches *mma, const uint8_t *q_payload,
                    const uint8_t *q_scale, const uint8_t *k_payload, const uint8_t *k_scale,
                    float *raw, dp_error *error)
{
    const dp_strip_data *in = &unit->in;
    const dp_mma_source q = {.payload =
                                 q_payload != NULL ? q_payload : dp_strip_u8(in, DP_DUMP_Q_PAYLOAD),
                             .scale = q_scale != NULL ? q_scale : dp_strip_u8(in, DP_DUMP_Q_SCALE)};
    const dp_mma_source k = {.payload =
                                 k_payload != NULL ? k_payload : dp_strip_u8(in, DP_DUMP_K_PAYLOAD),
                             .scale = k_scale != NULL ? k_scale : dp_strip_u8(in, DP_DUMP_K_SCALE)};
    const dp_mma_run run = {unit->threads, DP_MMA_PATH_AUTO};
    if (!dp_gemm(dp_mma_find(QK_INSTRUCTION, "e2m1", "e2m1", "f32", "sm_100a"), mma, DP_TILE,
                 unit->dump->key_rows, unit->dump->features, &q, &k, NULL, raw, &run, error)) {
        return false;
    }
    mask(unit, raw);
    return true;
}

bool dp_stage_accumulate(const dp_unit *unit, const dp_mma_switches *mma, const uint8_t *p_payload,
                         const uint8_t *p_scale, const uint8_t *v_payload, const uint8_t *v_scale,
                         float *acc, dp_error *error)
{
    const dp_strip_data *in = &unit->in;
    const size_t keys = unit->dump->key_rows;
    const size_t blocks = keys / DP_BLOCK;
    if (unit->visited == 0) {
        memset(acc, 0, DP_TILE * unit->dump->features * sizeof *acc);
        return true;
    }
    /* one product over the visited keys: its instructions chain in increasing key, as the kernel's
     */
    const dp_mma_source p = {.payload =
                                 p_payload != NULL ? p_payload : dp_strip_u8(in, DP_DUMP_P_PAYLOAD),
                             .stride = keys / 2,
                             .scale = p_scale != NULL ? p_scale : dp_strip_u8(in, DP_DUMP_P_SCALE),
                             .scale_blocks = blocks};
    const dp_mma_source v = {.payload =
                                 v_payload != NULL ? v_payload : dp_strip_u8(in, DP_DUMP_V_PAYLOAD),
                             .stride = keys / 2,
                             .scale = v_scale != NULL ? v_scale : dp_strip_u8(in, DP_DUMP_V_SCALE),
                             .scale_blocks = blocks};
    const dp_mma_run run = {unit->threads, DP_MMA_PATH_AUTO};
    return dp_gemm(dp_mma_find(PV_INSTRUCTION, "e2m1", "e2m1", "f32", "sm_100a"), mma, DP_TILE,
                   unit->dump->features, unit->visited * DP_TILE, &p, &v, NULL, acc, &run, error);
}

typedef struct {
    const dp_unit *unit;
    const dp_direct_p *launch;
    dp_dump_id id;
    void *out;
} row_job;

static void classify(const row_job *job, size_t r)
{
    const dp_unit *unit = job->unit;
    const size_t keys = unit->dump->key_rows;
    const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys;
    const float row_ref = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
    uint8_t *out = (uint8_t *)job->out + r * dp_dump_width(unit->dump, job->id);
    for (size_t tile = 0; tile < keys / DP_TILE; tile++) {
        dp_p_row p;
        if (tile < unit->visited) {
            dp_classify_row(job->launch, (int)(unit->query_tile & 1u), row_ref,
                            raw + tile * DP_TILE, &p);
        } else {
            memset(&p, 0, sizeof p);
            memset(p.stored, dp_stored_byte(job->launch, 0), sizeof p.stored);
        }
        if (job->id == DP_DUMP_P_SCALE) {
            memcpy(out + tile * DP_QUARTERS, p.stored, sizeof p.stored);
        } else {
            memcpy(out + tile * DP_TILE / 2, p.payload, sizeof p.payload);
        }
    }
}

static void sum_row(const row_job *job, size_t r)
{
    const dp_unit *unit = job->unit;
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    const uint8_t *stored = dp_strip_u8(&unit->in, DP_DUMP_P_SCALE) + r * blocks;
    const uint16_t *codes = dp_strip_u16(&unit->in, DP_DUMP_CODE_SUM) + r * blocks;
    float sum = 0.0f;
    for (size_t tile = 0; tile < unit->visited; tile++) {
        sum = dp_row_sum_add(job->launch, sum, stored + tile * DP_QUARTERS,
                             codes + tile * DP_QUARTERS);
    }
    ((float *)job->out)[r] = dp_row_sum_finish(job->launch, sum);
}

static void run_row(const row_job *job, size_t r)
{
    const dp_unit *unit = job->unit;
    const dp_strip_data *in = &unit->in;
    const size_t keys = unit->dump->key_rows;
    const size_t features = unit->dump->features;
    switch (job->id) {
    case DP_DUMP_ROW_REF:
        ((float *)job->out)[r] =
            unit->visited == 0
                ? 0.0f
                : dp_row_reference(job->launch, dp_strip_f32(in, DP_DUMP_RAW) + r * keys);
        break;
    case DP_DUMP_CODE_SUM:
        for (size_t b = 0; b < keys / DP_BLOCK; b++) {
            ((uint16_t *)job->out)[r * (keys / DP_BLOCK) + b] =
                dp_code_sum(dp_strip_u8(in, DP_DUMP_P_PAYLOAD) + r * keys / 2 + b * DP_BLOCK / 2);
        }
        break;
    case DP_DUMP_ROW_SUM:
        sum_row(job, r);
        break;
    case DP_DUMP_O:
    case DP_DUMP_LSE: {
        uint16_t o[DP_HEAD_DIM];
        float lse = 0.0f;
        const bool wanted = job->id == DP_DUMP_O;
        dp_output_row(job->launch, dp_strip_f32(in, DP_DUMP_ROW_REF)[r],
                      dp_strip_f32(in, DP_DUMP_ROW_SUM)[r],
                      wanted ? dp_strip_f32(in, DP_DUMP_ACC) + r * features : NULL,
                      wanted ? features : 0, o, &lse);
        if (wanted) {
            memcpy((uint16_t *)job->out + r * features, o, features * sizeof *o);
        } else {
            ((float *)job->out)[r] = lse;
        }
        break;
    }
    default:
        classify(job, r);
        break;
    }
}

static void run_rows(void *context, size_t first, size_t last, int thread)
{
    (void)thread;
    for (size_t r = first; r < last; r++) {
        run_row(context, r);
    }
}

bool dp_stage_run(const dp_unit *unit, const dp_direct_p *launch, const dp_mma_switches *mma,
                  dp_dump_id id, void *out, dp_error *error)
{
    if (id == DP_DUMP_RAW) {
        return dp_stage_score(unit, mma, NULL, NULL, NULL, NULL, out, error);
    }
    if (id == DP_DUMP_ACC) {
        return dp_stage_accumulate(unit, mma, NULL, NULL, NULL, NULL, out, error);
    }
    row_job job = {unit, launch, id, out};
    dp_parallel_for(unit->threads, unit->rows, 8, run_rows, &job);
    return true;
}
