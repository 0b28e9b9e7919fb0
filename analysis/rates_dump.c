/* SPDX-License-Identifier: MIT
 *
 * Rates of a dump: what its codes and bytes keep of P, and how far its output is off.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/attend.h"
#include "analysis/rates.h"
#include "formats/bf16.h"

/* Counts over the visible entries and blocks of P. */
typedef struct {
    uint64_t lanes, match, zero; /* entries, codes equal to those of 2^x, codes of 0  */
    uint64_t blocks, zero_scale; /* blocks with a visible key, scale bytes of 0       */
    double mass, lost;           /* probability of the kernel's scores, in binary64   */
} counts;

typedef struct {
    dp_unit unit;
    dp_direct_p ideal; /* the same bytes, every lane 2^x, no rebased quarter */
    counts all;
    double *p; /* of one row */
} walk;

static unsigned code_at(const uint8_t *payload, size_t i)
{
    return ((unsigned)payload[i / 2] >> (i % 2 * 4)) & 7u;
}

/* Is column `index` of dataset id the kernel's own, not what bridges a window of keys? */
static bool own(const walk *w, dp_dump_id id, size_t index)
{
    const dp_dump *dump = w->unit.dump;
    const size_t first = dump->file_first[id];
    return w->unit.dumped.valid[id] && index >= first && index < first + dump->file_width[id];
}

/* Softmax of the scores of one row, 0 where masked. False: there is no finite one. */
static bool probabilities(const walk *w, size_t r, const float *raw, size_t keys, double *p)
{
    const double multiplier = (double)w->unit.launch.multiplier;
    double most = -INFINITY;
    for (size_t k = 0; k < keys; k++) {
        const double x = (double)raw[k] * multiplier;
        p[k] = dp_unit_masked(&w->unit, r, k) ? -INFINITY : x;
        if (isnan(p[k]) || p[k] == INFINITY) {
            return false;
        }
        most = p[k] > most ? p[k] : most;
    }
    double sum = 0.0;
    for (size_t k = 0; k < keys; k++) {
        p[k] = exp2(p[k] - most);
        sum += p[k];
    }
    for (size_t k = 0; k < keys; k++) {
        p[k] /= sum;
    }
    return most > -INFINITY;
}

/* The codes of one row and key tile against the ideal ones. */
static void count_match(walk *w, size_t r, size_t tile, const float *raw, const uint8_t *payload)
{
    dp_p_row ideal;
    const float row_ref = dp_strip_f32(&w->unit.in, DP_DUMP_ROW_REF)[r];
    dp_classify_row(&w->ideal, 1, row_ref, raw + tile, &ideal);
    for (size_t i = 0; i < DP_TILE; i++) {
        if (own(w, DP_DUMP_P_PAYLOAD, (tile + i) / 2) && !dp_unit_masked(&w->unit, r, tile + i)) {
            w->all.match += code_at(payload, tile + i) == code_at(ideal.payload, i);
        }
    }
}

static void count_block(walk *w, size_t r, size_t block, const uint8_t *payload, int byte,
                        const double *p)
{
    size_t seen = 0;
    for (size_t i = block * DP_BLOCK; i < (block + 1) * DP_BLOCK; i++) {
        const bool zero = code_at(payload, i) == 0;
        if (dp_unit_masked(&w->unit, r, i)) {
            continue;
        }
        seen++;
        if (!own(w, DP_DUMP_P_PAYLOAD, i / 2)) {
            continue;
        }
        w->all.lanes++;
        w->all.zero += zero;
        if (p != NULL) {
            w->all.mass += p[i];
            w->all.lost += zero || byte == 0 ? p[i] : 0.0;
        }
    }
    if (seen > 0 && own(w, DP_DUMP_P_SCALE, block)) {
        w->all.blocks++;
        w->all.zero_scale += byte == 0;
    }
}

static void count_row(walk *w, size_t r)
{
    const dp_unit *unit = &w->unit;
    const size_t keys = unit->dump->key_rows;
    const bool scores = unit->in.valid[DP_DUMP_RAW] && unit->in.valid[DP_DUMP_ROW_REF];
    const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys;
    const uint8_t *payload = dp_strip_u8(&unit->in, DP_DUMP_P_PAYLOAD) + r * keys / 2;
    const uint8_t *bytes = dp_strip_u8(&unit->in, DP_DUMP_P_SCALE) + r * keys / DP_BLOCK;
    const bool weighed = scores && probabilities(w, r, raw, keys, w->p);
    for (size_t block = 0; block < keys / DP_BLOCK; block++) {
        count_block(w, r, block, payload, bytes[block], weighed ? w->p : NULL);
    }
    for (size_t tile = 0; scores && tile < keys; tile += DP_TILE) {
        count_match(w, r, tile, raw, payload);
    }
}

/* Every strip of the dump. */
static bool walk_strips(walk *w, bool *scores, dp_error *error)
{
    const dp_dump *dump = w->unit.dump;
    *scores = true;
    for (size_t i = 0; i < dp_unit_count(dump); i++) {
        if (!dp_unit_load(&w->unit, i, error)) {
            return false;
        }
        *scores = *scores && w->unit.in.valid[DP_DUMP_RAW] && w->unit.in.valid[DP_DUMP_ROW_REF];
        for (size_t r = 0; w->unit.in.valid[DP_DUMP_P_SCALE] && r < w->unit.rows; r++) {
            count_row(w, r);
        }
    }
    return true;
}

static double ratio(double part, double whole)
{
    return whole > 0.0 ? part / whole : 0.0;
}

static void set_counts(dp_run_row *row, const dp_dump *dump, const counts *c, bool scores)
{
    if (dump->present[DP_DUMP_P_SCALE] && c->blocks > 0) {
        dp_run_set(row, DP_RUN_ZERO_SCALE, ratio((double)c->zero_scale, (double)c->blocks));
    }
    if (!dump->present[DP_DUMP_P_PAYLOAD] || c->lanes == 0) {
        return; /* the codes seen were the oracle's */
    }
    dp_run_set(row, DP_RUN_ZERO_PAYLOAD, ratio((double)c->zero, (double)c->lanes));
    if (scores) {
        dp_run_set(row, DP_RUN_CODE_MATCH, ratio((double)c->match, (double)c->lanes));
        dp_run_set(row, DP_RUN_LOST_MASS, ratio(c->lost, c->mass));
    }
}

static bool rates_of_p(dp_run_row *row, const dp_dump *dump, int threads, dp_error *error)
{
    walk w = {.p = malloc((dump->key_rows + 1) * sizeof *w.p)};
    dp_operands operands;
    bool scores = false;
    memset(&operands, 0, sizeof operands);
    bool good = w.p != NULL || dp_fail(error, "%s: not enough memory", dump->path);
    good = good && dp_unit_allocate(&w.unit, dump, threads, error);
    if (good && dump->has_inputs) {
        good = dp_diff_operands(dump, &dump->launch, threads, &operands, error);
        w.unit.operands = &operands;
    }
    dp_forward_policy every_lane = dump->launch.policy;
    every_lane.map = DP_MAP_EX2;
    every_lane.rebase_q1 = false;
    w.ideal = dp_direct_p_make(&every_lane, dump->launch.epoch, &dump->launch.switches,
                               dump->softmax_scale, dump->launch.sfu);
    good = good && walk_strips(&w, &scores, error);
    if (good) {
        set_counts(row, dump, &w.all, scores);
    }
    dp_unit_free(&w.unit);
    dp_operands_free(&operands);
    free(w.p);
    return good;
}

/* The output of a dump, [batch][head in the file][row in the file][dim]. */
static uint16_t *read_output(const dp_dump *dump, dp_error *error)
{
    const size_t width = dump->file_width[DP_DUMP_O];
    const size_t rows = dp_dump_head_rows(dump, DP_DUMP_O);
    const size_t heads = dump->batch * dump->head_count;
    uint16_t *o = malloc(heads * rows * dump->dim * sizeof *o);
    uint16_t *one = malloc(rows * width * sizeof *one);
    bool good = o != NULL && one != NULL && width >= dump->dim;
    if (!good) {
        (void)dp_fail(error, "%s: not enough memory for its output", dump->path);
    }
    for (size_t h = 0; good && h < heads; h++) {
        const dp_dump_at at = {h / dump->head_count, h % dump->head_count, 0};
        good = dp_dump_read(dump, DP_DUMP_O, at, rows, one, error);
        for (size_t r = 0; good && r < rows; r++) {
            memcpy(o + (h * rows + r) * dump->dim, one + r * width, dump->dim * sizeof *o);
        }
    }
    free(one);
    if (!good) {
        free(o);
        return NULL;
    }
    return o;
}

static void set_output(dp_run_row *row, const uint16_t *o, const uint16_t *reference, size_t rows,
                       size_t dim)
{
    const dp_attend_metrics m = dp_attend_compare(o, reference, rows, dim);
    double square = 0.0;
    for (size_t i = 0; i < rows * dim; i++) {
        const double x = (double)dp_bf16_to_f32((dp_bf16){o[i]});
        square += isfinite(x) ? x * x : 0.0;
    }
    dp_run_set(row, DP_RUN_REL_L2, m.rel_l2);
    dp_run_set(row, DP_RUN_COSINE, m.cosine);
    dp_run_set(row, DP_RUN_RMSE, m.rmse);
    dp_run_set(row, DP_RUN_RMS, sqrt(square / ((double)rows * (double)dim)));
    dp_run_set(row, DP_RUN_NONFINITE_ROWS, (double)m.nonfinite_rows);
}

/* BF16 attention of the dump's inputs, the rows and heads that the dump holds. */
static uint16_t *reference_output(const dp_dump *dump, int threads, dp_error *error)
{
    const dp_attention in = {.batch = dump->batch,
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
    const size_t heads = dump->batch * dump->head_count;
    const size_t rows = dp_dump_head_rows(dump, DP_DUMP_O);
    const size_t row = dump->dim;
    uint16_t *whole = malloc(dump->batch * dump->q_heads * dump->queries * row * sizeof *whole);
    uint16_t *part = malloc(heads * rows * row * sizeof *part);
    bool good = whole != NULL && part != NULL;
    if (!good) {
        (void)dp_fail(error, "%s: not enough memory for BF16 attention", dump->path);
    }
    good = good && dp_reference_bf16(&in, threads, whole, NULL, error);
    for (size_t h = 0; good && h < heads; h++) {
        const size_t head =
            h / dump->head_count * dump->q_heads + dump->heads[h % dump->head_count];
        for (size_t r = 0; r < rows; r++) {
            const size_t from = dp_dump_query_row(dump, DP_DUMP_O, r);
            memcpy(part + (h * rows + r) * row, whole + (head * dump->queries + from) * row,
                   row * sizeof *part);
        }
    }
    free(whole);
    if (!good) {
        free(part);
        return NULL;
    }
    return part;
}

static bool compare_outputs(dp_run_row *row, const dp_dump *dump, uint16_t *reference,
                            dp_error *error)
{
    uint16_t *o = reference != NULL ? read_output(dump, error) : NULL;
    if (o != NULL) {
        set_output(row, o, reference,
                   dump->batch * dump->head_count * dp_dump_head_rows(dump, DP_DUMP_O), dump->dim);
    }
    const bool good = o != NULL;
    free(o);
    free(reference);
    return good;
}

bool dp_rates_of_dump(dp_run_row *row, const dp_dump *dump, int threads, dp_error *error)
{
    const bool p = dump->present[DP_DUMP_P_SCALE] || dump->present[DP_DUMP_P_PAYLOAD];
    if (p && !rates_of_p(row, dump, threads, error)) {
        return false;
    }
    return !dump->present[DP_DUMP_O] || !dump->has_inputs ||
           compare_outputs(row, dump, reference_output(dump, threads, error), error);
}

bool dp_rates_of_pair(dp_run_row *row, const dp_dump *dump, const dp_dump *other, dp_error *error)
{
    return !dump->present[DP_DUMP_O] || !other->present[DP_DUMP_O] || dump->dim != other->dim ||
           dp_dump_head_rows(dump, DP_DUMP_O) != dp_dump_head_rows(other, DP_DUMP_O) ||
           compare_outputs(row, dump, read_output(other, error), error);
}
