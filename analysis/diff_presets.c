/* SPDX-License-Identifier: MIT
 *
 * Whose quantizer made these bytes: every preset of formats/preset.h on the inputs, against the
 * operands of a dump that are not this policy's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"
#include "formats/bf16.h"
#include "formats/preset.h"

/* Where the global scale comes from. */
typedef enum { GLOBAL_OF_TENSOR, GLOBAL_OF_HEAD, GLOBAL_OF_FILE, GLOBAL_KINDS } global_kind;

static bool is_payload(dp_dump_id id)
{
    return dp_dump_datasets[id].kind == DP_DUMP_CODES;
}

/* Source tensor of an operand, and its heads and rows. */
static const uint16_t *tensor_of(const dp_dump *dump, dp_dump_id id, size_t *heads, size_t *rows)
{
    const bool q = id <= DP_DUMP_Q_SCALE;
    *heads = q ? dump->q_heads : dump->kv_heads;
    *rows = q ? dump->queries : dump->keys;
    return q ? dump->q : id <= DP_DUMP_K_SCALE ? dump->k : dump->v;
}

static float amax_of(const uint16_t *x, size_t count)
{
    uint16_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const uint16_t magnitude = x[i] & 0x7FFFu;
        most = magnitude > most && magnitude < 0x7F80u ? magnitude : most;
    }
    return dp_bf16_to_f32((dp_bf16){most});
}

/* The preset's global scale for this strip. False where the kind says nothing new. */
static bool global_of(const dp_unit *unit, dp_dump_id id, const dp_preset *preset, global_kind kind,
                      dp_global *global)
{
    const dp_dump *dump = unit->dump;
    size_t heads, rows;
    const uint16_t *x = tensor_of(dump, id, &heads, &rows);
    const size_t head = id <= DP_DUMP_Q_SCALE ? unit->head : unit->kv;
    const size_t count = rows * dump->dim;
    const float *given = id <= DP_DUMP_Q_SCALE   ? dump->q_global
                         : id <= DP_DUMP_K_SCALE ? dump->k_global
                                                 : NULL;
    *global = (dp_global){DP_GLOBAL_NONE, 1.0f};
    if (preset->global == DP_PRESET_FLAT) {
        return kind == GLOBAL_OF_TENSOR;
    }
    if (kind == GLOBAL_OF_FILE) {
        if (given == NULL) {
            return false;
        }
        *global = (dp_global){
            DP_GLOBAL_MUL,
            given[id <= DP_DUMP_Q_SCALE ? unit->batch * dump->head_count + unit->position
                                        : unit->batch * dump->kv_heads + unit->kv]};
        return global->value > 0.0f && global->value != 1.0f;
    }
    *global =
        dp_preset_global(preset, kind == GLOBAL_OF_TENSOR
                                     ? amax_of(x, dump->batch * heads * count)
                                     : amax_of(x + (unit->batch * heads + head) * count, count));
    return kind == GLOBAL_OF_TENSOR || heads * dump->batch > 1;
}

/* One run of blocks by the preset: a row of Q or K, or the keys of one feature of V. */
static bool run_of(const dp_block_plan *plan, const dp_preset *preset, const float *x,
                   size_t length, uint8_t *payload, uint8_t *scale)
{
    size_t bad;
    if (preset->fold64) {
        return false; /* the policies fold themselves: fold-missing and fold-unwanted */
    }
    return dp_block_quantize_run(plan, x, 1, length, payload, scale, NULL, &bad);
}

static bool bytes_by(const dp_unit *unit, dp_dump_id id, const dp_preset *preset, global_kind kind,
                     uint8_t *out)
{
    const dp_dump *dump = unit->dump;
    const bool v = id >= DP_DUMP_V_PAYLOAD;
    const size_t length = v ? dump->key_rows : dump->features;
    const size_t width = dp_dump_width(dump, id);
    const size_t rows = v ? dump->features : id <= DP_DUMP_Q_SCALE ? unit->rows : dump->keys;
    dp_global global;
    dp_block_plan plan;
    if (!global_of(unit, id, preset, kind, &global) ||
        !dp_block_plan_make(&preset->recipe, global, &plan, NULL)) {
        return false;
    }
    float *x = calloc(length, sizeof *x);
    uint8_t *payload = calloc(length, 1);
    uint8_t *scale = calloc(length, 4);
    bool good = x != NULL && payload != NULL && scale != NULL;
    for (size_t r = 0; good && r < rows; r++) {
        for (size_t j = 0; v && j < dump->key_rows; j++) {
            x[j] = dp_hypothesis_v_at(unit, j, r, false);
        }
        good = (v || dp_hypothesis_source_row(unit, id <= DP_DUMP_Q_SCALE, r, false, x)) &&
               run_of(&plan, preset, x, length, payload, scale);
        memcpy(out + r * width, is_payload(id) ? payload : scale, good ? width : 0);
    }
    free(x);
    free(payload);
    free(scale);
    return good;
}

/* Mismatches that the preset leaves over the strips; false when it explains nothing. */
static bool preset_explains(const dp_diff_job *job, dp_unit *unit, const dp_diff_result *result,
                            const dp_preset *preset, global_kind kind, uint8_t *out, uint64_t *left,
                            dp_error *error)
{
    const dp_dump_id id = (dp_dump_id)result->first_wrong;
    const dp_diff_dataset *set = &result->set[id];
    *left = 0;
    for (size_t i = 0; i < set->kept_count; i++) {
        if (!dp_unit_load(unit, set->kept[i], error)) {
            return false;
        }
        memcpy(out, unit->out.data[id], dp_unit_bytes(unit, id));
        if (!bytes_by(unit, id, preset, kind, out)) {
            return false;
        }
        *left += dp_diff_count(unit, &job->rules, id, out);
        if (*left * 50 > set->mismatches) {
            return false;
        }
    }
    return set->kept_count > 0;
}

static void name_preset(dp_diff_result *result, const dp_preset *preset, global_kind kind)
{
    static const char *const of[] = {"", " (scale of the head)", " (the file's global scale)"};
    const size_t used = strlen(result->presets);
    if (used + 48 < sizeof result->presets) {
        (void)snprintf(result->presets + used, sizeof result->presets - used, "%s%s%s",
                       used > 0 ? ", " : "", preset->preset, of[kind]);
    }
}

bool dp_diff_presets(const dp_diff_job *job, dp_unit *unit, dp_diff_result *result, dp_error *error)
{
    const dp_dump_id id = (dp_dump_id)result->first_wrong;
    const char *format = id <= DP_DUMP_K_SCALE ? "nvfp4" : "mxfp4";
    uint8_t *out = job->dump->has_inputs ? malloc(dp_unit_bytes(unit, id)) : NULL;
    dp_error inner = {""};
    dp_diff_finding f = {
        .name = "preset",
        .meaning = "the bytes are those of another stack's quantizer",
        .before = result->set[id].mismatches,
        .left = UINT64_MAX,
    };
    for (size_t p = 0; out != NULL && p < dp_preset_count(); p++) {
        const dp_preset preset = dp_preset_at(p);
        if (strcmp(preset.format, format) != 0) {
            continue;
        }
        result->presets_tried++;
        for (int kind = 0; kind < GLOBAL_KINDS; kind++) {
            uint64_t left;
            if (preset_explains(job, unit, result, &preset, (global_kind)kind, out, &left,
                                &inner)) {
                name_preset(result, &preset, (global_kind)kind);
                f.left = left < f.left ? left : f.left;
                break;
            }
        }
    }
    free(out);
    if (inner.text[0] != '\0') {
        return dp_fail(error, "%s", inner.text);
    }
    if (result->presets[0] != '\0') {
        (void)snprintf(f.detail, sizeof f.detail, "%.180s", result->presets);
        dp_diff_keep(result, &f);
    }
    return true;
}
