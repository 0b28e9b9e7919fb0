/* SPDX-License-Identifier: MIT */
#include "analysis/diff_unit.h"

#include <math.h>
#include <stdlib.h>

size_t dp_unit_rows(const dp_unit *unit, dp_dump_id id)
{
    switch (dp_dump_datasets[id].rows) {
    case DP_DUMP_QUERY_ROWS:
        return DP_TILE;
    case DP_DUMP_KEY_ROWS:
        return unit->dump->key_rows;
    default:
        return unit->dump->features;
    }
}

size_t dp_unit_bytes(const dp_unit *unit, dp_dump_id id)
{
    return dp_unit_rows(unit, id) * dp_dump_width(unit->dump, id) * dp_dump_element(id);
}

bool dp_unit_allocate(dp_unit *unit, const dp_dump *dump, int threads, dp_error *error)
{
    memset(unit, 0, sizeof *unit);
    unit->dump = dump;
    unit->threads = threads;
    unit->last = DP_DUMP_LSE;
    bool good = true;
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        const size_t bytes = dp_unit_bytes(unit, (dp_dump_id)i);
        unit->dumped.data[i] = calloc(bytes, 1);
        unit->in.data[i] = calloc(bytes, 1);
        unit->out.data[i] = calloc(bytes, 1);
        good = good && unit->dumped.data[i] != NULL && unit->in.data[i] != NULL &&
               unit->out.data[i] != NULL;
    }
    return good || dp_fail(error, "%s: not enough memory for strips of %zu keys", dump->path,
                           dump->key_rows);
}

void dp_unit_free(dp_unit *unit)
{
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        free(unit->dumped.data[i]);
        free(unit->in.data[i]);
        free(unit->out.data[i]);
    }
    memset(unit, 0, sizeof *unit);
}

/* Strips of a head: of the windows, else those of one window cut at the query tiles. */
size_t dp_unit_strips(const dp_dump *dump)
{
    if (dump->strips != NULL) {
        return dump->strip_count;
    }
    const size_t first = dump->row_first / DP_TILE;
    return (dump->row_first + dump->rows + DP_TILE - 1) / DP_TILE - first;
}

size_t dp_unit_count(const dp_dump *dump)
{
    return dump->rows == 0 ? 0 : dump->batch * dump->head_count * dp_unit_strips(dump);
}

static size_t visited_tiles(const dp_unit *unit)
{
    const dp_dump *dump = unit->dump;
    const size_t tiles = dump->key_rows / DP_TILE;
    if (!dump->causal) {
        return tiles;
    }
    /* of the whole query tile: a window shows a part of what the operator ran */
    size_t last_row = (unit->query_tile + 1) * DP_TILE;
    last_row = last_row < dump->queries ? last_row : dump->queries;
    const ptrdiff_t last = (ptrdiff_t)(last_row - 1 + dump->keys) - (ptrdiff_t)dump->queries;
    const size_t needed = last < 0 ? 0 : (size_t)last / DP_TILE + 1;
    return needed < tiles ? needed : tiles;
}

dp_dump_strip dp_unit_strip(const dp_dump *dump, size_t index)
{
    if (dump->strips != NULL) {
        return dump->strips[index];
    }
    const size_t tile = (dump->row_first / DP_TILE + index) * DP_TILE;
    const size_t first = tile > dump->row_first ? tile : dump->row_first;
    const size_t end = dump->row_first + dump->rows;
    return (dp_dump_strip){first, (tile + DP_TILE < end ? tile + DP_TILE : end) - first};
}

static void place(dp_unit *unit, size_t index)
{
    const dp_dump *dump = unit->dump;
    const size_t strips = dp_unit_strips(dump);
    unit->batch = index / strips / dump->head_count;
    unit->position = index / strips % dump->head_count;
    unit->head = dump->heads[unit->position];
    unit->kv = (size_t)dump->kv_of_q[unit->head];
    const dp_dump_strip strip = dp_unit_strip(dump, index % strips);
    unit->query_tile = strip.first / DP_TILE;
    unit->row_first = strip.first;
    unit->rows = strip.rows;
    unit->tile_row = strip.first % DP_TILE;
    unit->visited = visited_tiles(unit);
    const float q = dump->q_global != NULL
                        ? dump->q_global[unit->batch * dump->head_count + unit->position]
                        : 1.0f;
    const float k =
        dump->k_global != NULL ? dump->k_global[unit->batch * dump->kv_heads + unit->kv] : 1.0f;
    unit->launch = dump->launch;
    unit->launch.multiplier =
        dp_score_multiplier(dump->softmax_scale, q, k, &unit->launch.switches);
    unit->mma = dump->mma;
}

/* `rows` rows of file_width elements, spread to the padded width; where the file has no column the
 * bytes stay as they are. */
static bool read_spread(const dp_dump *dump, dp_dump_id id, dp_dump_at at, size_t rows, void *out,
                        dp_error *error)
{
    const size_t size = dp_dump_element(id);
    const size_t width = dp_dump_width(dump, id) * size;
    const size_t first = dump->file_first[id] * size;
    const size_t stored = dump->file_width[id] * size;
    if (width == stored) {
        return dp_dump_read(dump, id, at, rows, out, error);
    }
    char *tight = malloc(rows * stored > 0 ? rows * stored : 1);
    bool good = tight != NULL || dp_fail(error, "%s: not enough memory", dump->path);
    good = good && dp_dump_read(dump, id, at, rows, tight, error);
    for (size_t r = 0; good && r < rows; r++) {
        memcpy((char *)out + r * width + first, tight + r * stored,
               first + stored < width ? stored : width - first);
    }
    free(tight);
    return good;
}

static const uint8_t *oracle_operand(const dp_operands *operands, dp_dump_id id)
{
    const uint8_t *const arrays[] = {operands->q_payload, operands->q_scale,   operands->k_payload,
                                     operands->k_scale,   operands->v_payload, operands->v_scale};
    return arrays[id];
}

/* The oracle's operand of this strip or key head. */
static bool take_oracle_operand(const dp_unit *unit, size_t kv, dp_dump_id id, void *out)
{
    if (unit->operands == NULL) {
        return false;
    }
    const dp_dump *dump = unit->dump;
    const size_t width = dp_dump_width(dump, id);
    const uint8_t *from = oracle_operand(unit->operands, id);
    if (dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS) {
        const size_t at = (unit->batch * dump->q_heads + unit->head) * unit->operands->query_rows +
                          unit->row_first;
        memset(out, 0, DP_TILE * width);
        memcpy(out, from + at * width, unit->rows * width);
    } else {
        const size_t bytes = dp_unit_bytes(unit, id);
        memcpy(out, from + (unit->batch * dump->kv_heads + kv) * bytes, bytes);
    }
    return true;
}

bool dp_unit_key_side(const dp_unit *unit, size_t kv, dp_dump_id id, void *out, dp_error *error)
{
    const dp_dump *dump = unit->dump;
    if (!dump->present[id]) {
        return take_oracle_operand(unit, kv, id, out);
    }
    memset(out, 0, dp_unit_bytes(unit, id));
    const dp_dump_at at = {unit->batch, kv, 0};
    return read_spread(dump, id, at, dp_dump_head_rows(dump, id), out, error);
}

/* The kernel's data of dataset id; what the file does not hold of a row is the oracle's. */
static bool load_dataset(dp_unit *unit, dp_dump_id id, dp_error *error)
{
    const dp_dump *dump = unit->dump;
    void *to = unit->dumped.data[id];
    unit->dumped.valid[id] = dump->present[id];
    if (!dump->present[id]) {
        return true;
    }
    if (dp_dump_datasets[id].rows != DP_DUMP_QUERY_ROWS) {
        return dp_unit_key_side(unit, unit->kv, id, to, error);
    }
    dp_dump_at at = {unit->batch, unit->position, 0};
    unit->dumped.valid[id] = dp_dump_find_row(dump, id, unit->row_first, &at.row);
    if (!unit->dumped.valid[id]) { /* another window */
        return true;
    }
    if (unit->out.valid[id]) {
        memcpy(to, unit->out.data[id], dp_unit_bytes(unit, id));
    } else {
        memset(to, 0, dp_unit_bytes(unit, id));
    }
    return read_spread(dump, id, at, unit->rows, to, error);
}

bool dp_unit_load(dp_unit *unit, size_t index, dp_error *error)
{
    const bool same_keys = unit->in.valid[DP_DUMP_K_PAYLOAD];
    const size_t old_batch = unit->batch;
    const size_t old_kv = unit->kv;
    place(unit, index);
    for (int i = 0; i <= (int)unit->last; i++) {
        const dp_dump_id id = (dp_dump_id)i;
        const bool key_side = dp_dump_datasets[id].rows != DP_DUMP_QUERY_ROWS;
        if (key_side && same_keys && old_batch == unit->batch && old_kv == unit->kv) {
            continue; /* the key head is still there */
        }
        if (id <= DP_DUMP_V_SCALE) {
            unit->out.valid[id] = take_oracle_operand(unit, unit->kv, id, unit->out.data[id]);
        } else {
            unit->out.valid[id] = dp_stage_ready(unit, id);
            if (unit->out.valid[id] &&
                !dp_stage_run(unit, &unit->launch, &unit->mma, id, unit->out.data[id], error)) {
                return false;
            }
        }
        if (!load_dataset(unit, id, error)) {
            return false;
        }
        const dp_strip_data *from = unit->dumped.valid[id] ? &unit->dumped : &unit->out;
        unit->in.valid[id] = from->valid[id];
        if (from->valid[id]) {
            memcpy(unit->in.data[id], from->data[id], dp_unit_bytes(unit, id));
        }
    }
    return true;
}

bool dp_diff_operands(const dp_dump *dump, const dp_direct_p *launch, int threads,
                      dp_operands *operands, dp_error *error)
{
    const size_t values = dump->batch * dump->kv_heads * dump->keys * dump->dim;
    uint16_t *k = malloc(values * sizeof *k);
    uint16_t *v = malloc(values * sizeof *v);
    bool good = k != NULL && v != NULL;
    if (!good) {
        (void)dp_fail(error, "%s: not enough memory for its inputs", dump->path);
    }
    dp_direct_p natural = *launch;
    dp_attention in = {.batch = dump->batch,
                       .q_heads = dump->q_heads,
                       .kv_heads = dump->kv_heads,
                       .queries = dump->queries,
                       .keys = dump->keys,
                       .dim = dump->dim,
                       .q = dump->q,
                       .k = dump->k,
                       .v = dump->v,
                       .kv_of_q = dump->kv_of_q,
                       .softmax_scale = dump->softmax_scale,
                       .causal = dump->causal};
    if (good && dump->order_given) { /* keys brought into the dump's order first */
        const size_t row = dump->dim * sizeof *k;
        for (size_t i = 0; i < dump->batch * dump->kv_heads * dump->keys; i++) {
            const size_t from =
                i / dump->keys * dump->keys + (size_t)dump->key_order[i % dump->keys];
            memcpy(k + i * dump->dim, dump->k + from * dump->dim, row);
            memcpy(v + i * dump->dim, dump->v + from * dump->dim, row);
        }
        in.k = k;
        in.v = v;
        natural.switches.natural_order = true;
    }
    good = good && dp_forward_quantize(&in, &natural, threads, operands, error);
    free(k);
    free(v);
    return good;
}
