/* SPDX-License-Identifier: MIT */
#include "analysis/diff.h"

#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"

typedef struct {
    const dp_diff_job *job;
    dp_diff_result *result;
    dp_unit unit;
    bool *seen;      /* [batch][kv_head]: key-side data compared already */
    double *numbers; /* two rows */
} walk;

static int bucket_of(uint64_t distance)
{
    int bucket = 1;
    while (distance > 1 && bucket < DP_DIFF_BUCKETS - 2) {
        distance >>= 1;
        bucket++;
    }
    return bucket;
}

static double number_of(dp_dump_id id, uint32_t bits)
{
    if (dp_dump_datasets[id].kind == DP_DUMP_F32) {
        return (double)dp_f32_from_bits(bits);
    }
    const dp_bf16 x = {(uint16_t)bits};
    return (double)dp_bf16_to_f32(x);
}

static bool is_real(dp_dump_id id)
{
    return dp_dump_datasets[id].kind == DP_DUMP_F32 || dp_dump_datasets[id].kind == DP_DUMP_BF16;
}

/* Where in a key tile a column lies. */
static size_t quarter_of(dp_dump_id id, size_t column)
{
    return id == DP_DUMP_P_SCALE || id == DP_DUMP_CODE_SUM ? column % DP_QUARTERS
                                                           : column / DP_BLOCK % DP_QUARTERS;
}

static void note(dp_diff_dataset *set, dp_dump_id id, dp_diff_place place)
{
    set->histogram[place.distance == UINT64_MAX ? DP_DIFF_BUCKETS - 1
                                                : bucket_of(place.distance)]++;
    set->quarter[quarter_of(id, place.column)]++;
    set->parity[place.row / DP_TILE & 1u]++;
    set->lane_parity[place.column & 1u]++;
    dp_diff_spread_add(&set->spread, &place, set->mismatches == 0);
    if (set->mismatches++ == 0) {
        set->first = place;
        set->worst = place;
    }
    if (place.distance > set->worst.distance) {
        set->worst = place;
    }
    if (is_real(id)) {
        const double expected = number_of(id, place.expected);
        const double found = number_of(id, place.found);
        set->above += found > expected;
        set->below += found < expected;
    } else if (dp_dump_datasets[id].kind != DP_DUMP_CODES) {
        set->above += place.found > place.expected;
        set->below += place.found < place.expected;
    } else {
        set->above += (place.found & 7u) > (place.expected & 7u);
        set->below += (place.found & 7u) < (place.expected & 7u);
    }
}

/* Columns of one tile of a dataset, for factors of their own. */
static size_t column_tile(dp_dump_id id)
{
    return id == DP_DUMP_RAW ? DP_TILE : DP_BLOCK;
}

/* Both rows as numbers, into the sums of the dataset and of the groups. */
static void add_sums(walk *w, dp_dump_id id, const char *expected, const char *found, size_t first,
                     size_t columns, const dp_diff_place *at)
{
    dp_diff_dataset *set = &w->result->set[id];
    const bool precise = dp_dump_datasets[id].kind == DP_DUMP_F32;
    double *x = w->numbers;
    double *y = w->numbers + columns;
    for (size_t i = 0; precise && i < columns; i++) {
        x[i] = (double)((const float *)(const void *)expected)[first + i];
        y[i] = (double)((const float *)(const void *)found)[first + i];
    }
    for (size_t i = 0; !precise && i < columns; i++) {
        x[i] = number_of(id, dp_diff_element(id, expected, first + i));
        y[i] = number_of(id, dp_diff_element(id, found, first + i));
    }
    const dp_diff_sums row = dp_diff_groups_row(
        &set->groups, at, columns > DP_BLOCK ? column_tile(id) : 0, first, columns, x, y, precise);
    set->n += row.n;
    set->sx += row.sx;
    set->sy += row.sy;
    set->sxx += row.sxx;
    set->sxy += row.sxy;
    set->syy += row.syy;
}

/* The first column from c on that is not in a run of equal bytes. */
static size_t skip_equal(dp_dump_id id, const char *expected, const char *found, size_t c,
                         size_t end)
{
    enum { RUN = 64 };
    const size_t size = dp_dump_element(id);
    const size_t codes = dp_dump_datasets[id].kind == DP_DUMP_CODES ? 2 : 1;
    while (c % codes == 0 && c < end) {
        const size_t run = end - c < RUN ? end - c : RUN;
        const size_t at = c / codes * size;
        if (memcmp(expected + at, found + at, (run + codes - 1) / codes * size) != 0) {
            break;
        }
        c += run;
    }
    return c;
}

/* One row that is not equal byte by byte. */
static bool compare_row(walk *w, dp_dump_id id, const char *expected, const char *found,
                        dp_diff_place at, size_t total_rows)
{
    dp_diff_dataset *set = &w->result->set[id];
    const size_t columns = dp_diff_columns(w->job->dump, id);
    const size_t first = dp_diff_first(w->job->dump, id);
    const size_t end = first + columns;
    bool differs = false;
    for (size_t c = first; c < end; c++) {
        c = skip_equal(id, expected, found, c, end);
        if (c == end) {
            break;
        }
        at.expected = dp_diff_element(id, expected, c);
        at.found = dp_diff_element(id, found, c);
        at.column = c;
        if (at.expected == at.found) {
            continue;
        }
        if (dp_diff_equal(&w->job->rules, id, at.expected, at.found, &at.distance)) {
            set->histogram[0]++;
            continue;
        }
        set->nan_pairs +=
            is_real(id) && isnan(number_of(id, at.expected)) && isnan(number_of(id, at.found));
        differs = true;
        note(set, id, at);
        const size_t y = total_rows > DP_DIFF_MAP ? at.row * DP_DIFF_MAP / total_rows : at.row;
        const size_t x = columns > DP_DIFF_MAP ? (c - first) * DP_DIFF_MAP / columns : c - first;
        set->map[y < DP_DIFF_MAP ? y : DP_DIFF_MAP - 1][x]++;
    }
    if (differs && is_real(id)) {
        add_sums(w, id, expected, found, first, columns, &at);
    }
    return differs;
}

static size_t rows_of_problem(const dp_dump *dump, dp_dump_id id)
{
    return dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS ? dump->queries
                                                           : dp_dump_head_rows(dump, id);
}

/* The data of one strip (or key head) against `expected`. */
static void compare_strip(walk *w, dp_dump_id id, const void *expected, size_t index)
{
    const dp_unit *unit = &w->unit;
    const dp_dump *dump = unit->dump;
    dp_diff_dataset *set = &w->result->set[id];
    const bool query = dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS;
    const size_t rows = query ? unit->rows : dp_dump_head_rows(dump, id);
    const size_t bytes = dp_dump_width(dump, id) * dp_dump_element(id);
    bool differs = false;
    set->compared = true;
    set->elements += rows * dp_diff_columns(dump, id);
    for (size_t r = 0; r < rows; r++) {
        const char *a = (const char *)expected + r * bytes;
        const char *b = (const char *)unit->dumped.data[id] + r * bytes;
        if (memcmp(a, b, bytes) != 0) {
            const dp_diff_place at = {.batch = dump->batches != NULL ? dump->batches[unit->batch]
                                                                     : unit->batch,
                                      .head = query ? unit->head : unit->kv,
                                      .row = (query ? unit->row_first : 0) + r};
            differs = compare_row(w, id, a, b, at, rows_of_problem(dump, id)) || differs;
        }
    }
    if (differs && set->kept_count < DP_DIFF_KEPT) {
        set->kept[set->kept_count++] = index;
    }
}

/* The codes of a block whose byte is not the oracle's may have been built on either byte: the one
 * nearer to the kernel's codes is what they are compared with, so that a wrong byte is not reported
 * again as wrong codes. */
static void recode_block(const dp_unit *unit, size_t r, size_t block, uint8_t codes[DP_BLOCK / 2])
{
    const dp_direct_p *launch = &unit->launch;
    const size_t keys = unit->dump->key_rows;
    const float row_ref = dp_strip_f32(&unit->in, DP_DUMP_ROW_REF)[r];
    const float *raw = dp_strip_f32(&unit->in, DP_DUMP_RAW) + r * keys + block * DP_BLOCK;
    const uint8_t stored = dp_strip_u8(&unit->in, DP_DUMP_P_SCALE)[r * (keys / DP_BLOCK) + block];
    const int working = dp_working_byte(launch, stored + launch->policy.shift);
    const dp_block_scalars scalars = dp_block_offsets(launch, row_ref, working);
    for (int j = 0; j < DP_BLOCK; j++) {
        const bool native = dp_forward_policy_native_pair(
            &launch->policy, (int)(unit->query_tile & 1u), (int)(block % DP_QUARTERS), j / 2);
        const uint8_t code = dp_lane_code(dp_lane_value(launch, scalars, native, raw[j]));
        codes[j / 2] = (uint8_t)(j % 2 == 0 ? code : codes[j / 2] | (code << 4));
    }
}

static unsigned code_mismatches(const uint8_t *a, const uint8_t *b)
{
    unsigned count = 0;
    for (int i = 0; i < DP_BLOCK / 2; i++) {
        count += ((a[i] ^ b[i]) & 0x0Fu) != 0;
        count += ((a[i] ^ b[i]) & 0xF0u) != 0;
    }
    return count;
}

static void follow_bytes(dp_unit *unit)
{
    const size_t blocks = unit->dump->key_rows / DP_BLOCK;
    const uint8_t *found = dp_strip_u8(&unit->dumped, DP_DUMP_P_SCALE);
    const uint8_t *expected = dp_strip_u8(&unit->out, DP_DUMP_P_SCALE);
    if (!unit->dumped.valid[DP_DUMP_P_SCALE] || !unit->out.valid[DP_DUMP_P_SCALE] ||
        !unit->dumped.valid[DP_DUMP_P_PAYLOAD] || !unit->out.valid[DP_DUMP_P_PAYLOAD]) {
        return;
    }
    for (size_t i = 0; i < unit->rows * blocks; i++) {
        uint8_t *ours = dp_strip_u8(&unit->out, DP_DUMP_P_PAYLOAD) + i * DP_BLOCK / 2;
        const uint8_t *theirs = dp_strip_u8(&unit->dumped, DP_DUMP_P_PAYLOAD) + i * DP_BLOCK / 2;
        uint8_t codes[DP_BLOCK / 2];
        if (found[i] == expected[i]) {
            continue;
        }
        recode_block(unit, i / blocks, i % blocks, codes);
        if (code_mismatches(codes, theirs) < code_mismatches(ours, theirs)) {
            memcpy(ours, codes, sizeof codes);
        }
    }
}

static bool wanted(const dp_diff_job *job, dp_dump_id id)
{
    return job->only == 0 || (job->only >> id & 1u) != 0;
}

static bool walk_oracle(walk *w, dp_error *error)
{
    dp_unit *unit = &w->unit;
    const dp_dump *dump = w->job->dump;
    for (size_t i = 0; i < dp_unit_count(dump); i++) {
        if (!dp_unit_load(unit, i, error)) {
            return false;
        }
        follow_bytes(unit);
        bool *seen = &w->seen[unit->batch * dump->kv_heads + unit->kv];
        for (int d = 0; d < DP_DUMP_DATASETS; d++) {
            const dp_dump_id id = (dp_dump_id)d;
            const bool key_side = dp_dump_datasets[id].rows != DP_DUMP_QUERY_ROWS;
            if (unit->dumped.valid[id] && unit->out.valid[id] && !(key_side && *seen) &&
                wanted(w->job, id)) {
                compare_strip(w, id, unit->out.data[id], i);
            }
        }
        *seen = true;
    }
    return true;
}

static bool same_windows(const dp_dump *a, const dp_dump *b)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_windows *x = &a->window[d];
        const dp_dump_windows *y = &b->window[d];
        if (a->present[d] && b->present[d] &&
            (x->count != y->count || x->length != y->length ||
             memcmp(x->first, y->first, x->count * sizeof x->first[0]) != 0 ||
             a->file_first[d] != b->file_first[d])) {
            return false;
        }
    }
    return true;
}

static bool same_problem(const dp_dump *a, const dp_dump *b, dp_error *error)
{
    return (a->batch == b->batch && a->q_heads == b->q_heads && a->kv_heads == b->kv_heads &&
            a->keys == b->keys && same_windows(a, b) && a->head_count == b->head_count &&
            a->features == b->features &&
            memcmp(a->heads, b->heads, a->head_count * sizeof *a->heads) == 0) ||
           dp_fail(
               error,
               "%s: its extents (batch %zu, heads %zu/%zu, rows %zu from %zu, keys %zu) are not "
               "those of %s: dump the same problem with both",
               b->path, b->batch, b->head_count, b->kv_heads, b->rows, b->row_first, b->keys,
               a->path);
}

/* Tight rows of the file, spread to the padded width. */
static void spread(const dp_dump *dump, dp_dump_id id, size_t rows, char *data)
{
    const size_t size = dp_dump_element(id);
    const size_t first = dump->file_first[id] * size;
    const size_t stored = dump->file_width[id] * size;
    const size_t width = dp_dump_width(dump, id) * size;
    for (size_t r = rows; stored < width && r-- > 0;) {
        memmove(data + r * width + first, data + r * stored, stored);
        memset(data + r * width, 0, first);
        memset(data + r * width + first + stored, 0, width - first - stored);
    }
}

/* One strip of one dataset of both dumps. */
static bool compare_files(walk *w, dp_dump_id id, dp_dump_at at, size_t rows, dp_error *error)
{
    const dp_dump *dump = w->job->dump;
    dp_unit *unit = &w->unit;
    const size_t stored = dump->file_width[id] * dp_dump_element(id);
    char *found = unit->dumped.data[id];
    char *expected = unit->out.data[id];
    if (!dp_dump_read(dump, id, at, rows, found, error) ||
        !dp_dump_read(w->job->against, id, at, rows, expected, error)) {
        return false;
    }
    if (memcmp(found, expected, rows * stored) == 0) {
        w->result->set[id].compared = true;
        w->result->set[id].elements += rows * dp_diff_columns(dump, id);
        return true;
    }
    spread(dump, id, rows, found);
    spread(dump, id, rows, expected);
    unit->dump = dump;
    unit->batch = at.batch;
    unit->head = unit->kv = at.head;
    if (dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS) {
        unit->head = dump->heads[at.head];
        unit->row_first = dp_dump_query_row(dump, id, at.row);
        unit->rows = rows;
    }
    compare_strip(w, id, expected, 0);
    return true;
}

/* One head of one dataset: strip by strip, or whole where rows are keys or features. */
static bool compare_heads(walk *w, dp_dump_id id, dp_dump_at at, dp_error *error)
{
    const dp_dump *dump = w->job->dump;
    if (dp_dump_datasets[id].rows != DP_DUMP_QUERY_ROWS) {
        return compare_files(w, id, at, dp_dump_head_rows(dump, id), error);
    }
    for (size_t i = 0; i < dp_unit_strips(dump); i++) {
        const dp_dump_strip strip = dp_unit_strip(dump, i);
        if (dp_dump_find_row(dump, id, strip.first, &at.row) &&
            !compare_files(w, id, at, strip.rows, error)) {
            return false;
        }
    }
    return true;
}

static bool walk_files(walk *w, dp_error *error)
{
    const dp_dump *a = w->job->dump;
    const dp_dump *b = w->job->against;
    if (!same_problem(a, b, error)) {
        return false;
    }
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_id id = (dp_dump_id)d;
        if (!a->present[id] || !b->present[id] || !wanted(w->job, id)) {
            continue;
        }
        if (a->file_width[id] != b->file_width[id]) {
            return dp_fail(error, "%s:%s: its rows are %zu long, those of %s %zu: pad both alike",
                           b->path, dp_dump_datasets[id].path, b->file_width[id], a->path,
                           a->file_width[id]);
        }
        for (size_t h = 0; h < a->batch * dp_dump_heads(a, id); h++) {
            const dp_dump_at at = {h / dp_dump_heads(a, id), h % dp_dump_heads(a, id), 0};
            if (!compare_heads(w, id, at, error)) {
                return false;
            }
        }
    }
    return true;
}

static bool prepare_operands(walk *w, dp_operands *operands, dp_error *error)
{
    const dp_dump *dump = w->job->dump;
    if (!dump->has_inputs) {
        return true;
    }
    if (!dp_diff_operands(dump, &dump->launch, w->job->threads, operands, error)) {
        return false;
    }
    w->unit.operands = operands;
    if (dump->order_given) {
        const bool natural = dump->causal || dump->launch.switches.natural_order ||
                             dump->launch.policy.reference == DP_REFERENCE_NONE;
        int32_t *order = malloc(dump->keys * sizeof *order);
        if (order == NULL) {
            return dp_fail(error, "%s: not enough memory", dump->path);
        }
        dp_anchor_order(dump->keys, natural ? 0 : (size_t)dump->launch.policy.anchor_keys, order);
        w->result->order_differs = memcmp(order, dump->key_order, dump->keys * sizeof *order) != 0;
        free(order);
    }
    return true;
}

dp_diff_result *dp_diff_run(const dp_diff_job *job, dp_error *error)
{
    const dp_dump *dump = job->dump;
    walk w = {.job = job, .result = calloc(1, sizeof *w.result)};
    dp_operands operands;
    memset(&operands, 0, sizeof operands);
    w.seen = calloc(dump->batch * dump->kv_heads, sizeof *w.seen);
    w.numbers = malloc(2 * (dump->key_rows + DP_HEAD_DIM) * sizeof *w.numbers);
    bool good = w.result != NULL && w.seen != NULL && w.numbers != NULL;
    if (!good) {
        (void)dp_fail(error, "%s: not enough memory", dump->path);
    }
    good = good && dp_unit_allocate(&w.unit, dump, job->threads, error);
    for (int d = 0; good && d < DP_DUMP_DATASETS; d++) {
        w.result->set[d].dumped = dump->present[d];
        w.result->map_rows[d] = rows_of_problem(dump, (dp_dump_id)d);
        w.result->map_columns[d] = dp_diff_columns(dump, (dp_dump_id)d);
        const size_t held = dp_dump_head_rows(dump, (dp_dump_id)d);
        w.result->map_covered[d] = held < w.result->map_rows[d] ? held : w.result->map_rows[d];
    }
    if (good && job->against != NULL) {
        w.result->against = true;
        good = walk_files(&w, error);
    } else if (good) {
        good = prepare_operands(&w, &operands, error) && walk_oracle(&w, error);
    }
    if (good) {
        w.result->first_wrong = -1;
        for (int d = DP_DUMP_DATASETS - 1; d >= 0; d--) {
            w.result->first_wrong = w.result->set[d].mismatches > 0 ? d : w.result->first_wrong;
        }
        if (w.result->first_wrong >= 0 && !job->no_diagnosis && job->against == NULL) {
            good = dp_diff_diagnose(job, &w.unit, w.result, error);
        }
    }
    dp_unit_free(&w.unit);
    dp_operands_free(&operands);
    free(w.seen);
    free(w.numbers);
    if (!good) {
        free(w.result);
        return NULL;
    }
    return w.result;
}
