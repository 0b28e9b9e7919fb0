/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/attend.h"
#include "analysis/dump_open.h"
#include "formats/layout.h"

static bool is_scale_page(dp_dump_id id)
{
    return id == DP_DUMP_Q_SCALE || id == DP_DUMP_K_SCALE || id == DP_DUMP_V_SCALE;
}

/* The `layout` attribute of a scale tensor is something else than linear. */
static bool other_layout(const dp_dump *dump, dp_dump_id id, char name[32], dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    char *text = NULL;
    name[0] = '\0';
    if (!is_scale_page(id) || !dp_h5_has_attribute(&dump->file, path, "layout") ||
        !dp_h5_text(&dump->file, path, "layout", &text, error)) {
        return false;
    }
    if (strlen(text) < 32) {
        memcpy(name, text, strlen(text) + 1);
    } else {
        memcpy(name, "?", 2);
    }
    free(text);
    return strcmp(name, "linear") != 0;
}

/* An extent learnt a second time must be the same. 0 is "not known yet". */
static bool agree(const dp_dump *dump, const char *path, const char *what, size_t *known,
                  uint64_t given, dp_error *error)
{
    if (given == 0 || given > (uint64_t)1 << 40) {
        return dp_fail(error, "%s:%s: its %s is %" PRIu64 ": write its data", dump->path, path,
                       what, given);
    }
    if (*known != 0 && *known != given) {
        return dp_fail(error,
                       "%s:%s: its %s is %" PRIu64 ", elsewhere in the file it is %zu: dump one "
                       "problem in one file",
                       dump->path, path, what, given, *known);
    }
    *known = (size_t)given;
    return true;
}

static bool root_size(dp_dump *dump, const char *name, size_t *value, dp_error *error)
{
    int64_t number = 0;
    if (!dp_h5_has_attribute(&dump->file, "/", name)) {
        return true;
    }
    return dp_h5_i64(&dump->file, "/", name, &number, error) &&
           (number >= 0 && number < (int64_t)1 << 40
                ? agree(dump, "/", name, value, (uint64_t)number, error)
                : dp_fail(error, "%s:/: its %s is %" PRId64 ": give a count", dump->path, name,
                          number));
}

/* Keys of one stored element along a row, 0 where columns of query rows are no keys. */
static size_t keys_a_column(dp_dump_id id)
{
    return id == DP_DUMP_RAW                                 ? 1
           : id == DP_DUMP_P_PAYLOAD                         ? 2
           : id == DP_DUMP_P_SCALE || id == DP_DUMP_CODE_SUM ? DP_BLOCK
                                                             : 0;
}

/* Entries of the batch that the dump holds (root attribute batches); of the inputs those are kept.
 */
static bool select_batches(dp_dump *dump, dp_attend_inputs *inputs, dp_error *error)
{
    int64_t *list = NULL;
    size_t count = 0;
    if (dump->batches == NULL && dp_h5_has_attribute(&dump->file, "/", "batches")) {
        if (!dp_h5_i64_list(&dump->file, "/", "batches", &list, &count, error)) {
            return false;
        }
        dump->batches = calloc(count > 0 ? count : 1, sizeof *dump->batches);
        bool good = count > 0 && dump->batches != NULL;
        for (size_t i = 0; good && i < count; i++) {
            good = list[i] >= (i > 0 ? list[i - 1] + 1 : 0) && list[i] < 1 << 24;
            dump->batches[i] = good ? (size_t)list[i] : 0;
        }
        free(list);
        if (!good) {
            return dp_fail(error, "%s:/: batches is no ascending list of entries: mend it",
                           dump->path);
        }
        dump->batch = count;
    }
    if (inputs == NULL || dump->batches == NULL) {
        return true;
    }
    dp_attention *in = &inputs->in;
    if (dump->batches[dump->batch - 1] >= in->batch) {
        return dp_fail(error, "%s:/: batches names entry %zu of %zu: give indices into the inputs",
                       dump->path, dump->batches[dump->batch - 1], in->batch);
    }
    const size_t q = in->q_heads * in->queries * in->dim;
    const size_t kv = in->kv_heads * in->keys * in->dim;
    for (size_t i = 0; i < dump->batch; i++) { /* ascending: never over what is still needed */
        const size_t from = dump->batches[i];
        memmove(inputs->q + i * q, inputs->q + from * q, q * sizeof *inputs->q);
        memmove(inputs->k + i * kv, inputs->k + from * kv, kv * sizeof *inputs->k);
        memmove(inputs->v + i * kv, inputs->v + from * kv, kv * sizeof *inputs->v);
    }
    in->batch = dump->batch;
    return true;
}

static bool take_inputs(dp_dump *dump, dp_error *error)
{
    dump->has_inputs = dp_h5_exists(&dump->file, "/inputs/q") &&
                       dp_h5_exists(&dump->file, "/inputs/k") &&
                       dp_h5_exists(&dump->file, "/inputs/v");
    if (!dump->has_inputs) {
        return select_batches(dump, NULL, error);
    }
    dp_tensors tensors;
    const dp_attend_transform transform = {.q_factor = 1.0};
    dp_attend_inputs inputs;
    if (!dp_tensors_read(&dump->file, &tensors, error)) {
        return false;
    }
    const bool good = dp_attend_from_tensors(&tensors, dump->path, &transform, &inputs, error);
    dp_tensors_free(&tensors);
    if (!good) {
        return false;
    }
    const dp_attention *in = &inputs.in;
    if (!select_batches(dump, &inputs, error)) {
        dp_attend_inputs_free(&inputs);
        return false;
    }
    dump->batch = in->batch;
    dump->q_heads = in->q_heads;
    dump->kv_heads = in->kv_heads;
    dump->queries = in->queries;
    dump->keys = in->keys;
    dump->q = inputs.q; /* the arrays change hands */
    dump->k = inputs.k;
    dump->v = inputs.v;
    inputs.q = inputs.k = inputs.v = NULL;
    const size_t dim = in->dim;
    dp_attend_inputs_free(&inputs);
    return agree(dump, "/inputs/q", "head dimension", &dump->dim, dim, error);
}

/* Heads of the file and their key heads. */
static bool take_heads(dp_dump *dump, dp_error *error)
{
    int64_t *list = NULL;
    size_t count = 0;
    bool good = true;
    if (dp_h5_has_attribute(&dump->file, "/", "heads")) {
        good = dp_h5_i64_list(&dump->file, "/", "heads", &list, &count, error) &&
               agree(dump, "/", "number of query heads", &dump->head_count, count, error);
    }
    dump->head_count = dump->head_count > 0 ? dump->head_count : dump->q_heads;
    size_t most = dump->q_heads;
    for (size_t h = 0; good && list != NULL && h < count; h++) {
        good = list[h] >= 0 && list[h] < 65536;
        most = good && (size_t)list[h] + 1 > most ? (size_t)list[h] + 1 : most;
        good = good && (dump->q_heads == 0 || most == dump->q_heads);
        if (!good) {
            (void)dp_fail(error, "%s:/: heads[%zu] is %" PRId64 ": there is no such query head",
                          dump->path, h, list[h]);
        }
    }
    dump->q_heads = most > 0 ? most : dump->head_count;
    dump->kv_heads = dump->kv_heads > 0 ? dump->kv_heads : dump->q_heads;
    good = good && (list != NULL || dump->q_heads == dump->head_count ||
                    dp_fail(error,
                            "%s:/: %zu of %zu query heads are there: name them in the attribute "
                            "heads",
                            dump->path, dump->head_count, dump->q_heads));
    dump->heads = good ? calloc(dump->head_count, sizeof *dump->heads) : NULL;
    dump->kv_of_q = good ? calloc(dump->q_heads, sizeof *dump->kv_of_q) : NULL;
    good = good && dump->heads != NULL && dump->kv_of_q != NULL;
    for (size_t h = 0; good && h < dump->head_count; h++) {
        dump->heads[h] = list != NULL ? (size_t)list[h] : h;
    }
    free(list);
    return good || dp_fail(error, "%s: not enough memory", dump->path);
}

static bool take_head_map(dp_dump *dump, dp_error *error)
{
    int64_t *map = NULL;
    size_t count = dump->q_heads;
    bool good = true;
    if (dp_h5_has_attribute(&dump->file, "/", "kv_of_q")) {
        good = dp_h5_i64_list(&dump->file, "/", "kv_of_q", &map, &count, error);
    }
    if (good && count != dump->q_heads) {
        good = dp_fail(error, "%s:/: kv_of_q has %zu entries for %zu query heads: write one each",
                       dump->path, count, dump->q_heads);
    }
    for (size_t h = 0; good && h < dump->q_heads; h++) {
        const int64_t kv = map != NULL ? map[h] : (int64_t)(h * dump->kv_heads / dump->q_heads);
        if (kv < 0 || (uint64_t)kv >= dump->kv_heads) {
            good = dp_fail(error, "%s:/: kv_of_q of head %zu is %" PRId64 ": give 0 to %zu",
                           dump->path, h, kv, dump->kv_heads - 1);
        } else {
            dump->kv_of_q[h] = (int32_t)kv;
        }
    }
    free(map);
    return good;
}

/* The first key of the columns, for datasets of which a window of keys was dumped. */
static bool take_key_window(dp_dump *dump, dp_dump_id id, dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    const bool own = dp_h5_has_attribute(&dump->file, path, "key_first");
    const size_t keys = keys_a_column(id);
    int64_t first = 0;
    if (keys == 0 || (!own && !dp_h5_has_attribute(&dump->file, "/", "key_first"))) {
        return true;
    }
    if (!dp_h5_i64(&dump->file, own ? path : "/", "key_first", &first, error)) {
        return false;
    }
    if (first < 0 || first > (int64_t)1 << 40 || first % DP_BLOCK != 0) {
        return dp_fail(error, "%s:%s: key_first is %" PRId64 ": give a multiple of %d", dump->path,
                       path, first, (int)DP_BLOCK);
    }
    dump->file_first[id] = (size_t)first / keys;
    dump->key_window[id] = true;
    return true;
}

/* Extents of one dataset in its natural shape. */
static bool take_dataset(dp_dump *dump, dp_dump_id id, dp_error *error)
{
    const dp_dump_dataset *set = &dp_dump_datasets[id];
    if (!dp_dump_take_store(dump, id, error)) {
        return false;
    }
    const dp_dump_store *store = &dump->store[id];
    const dp_h5_shape *shape = &dump->view[id].shape;
    const size_t columns = (size_t)dp_dump_store_extent(shape, store->column);
    if (store->packing == DP_DUMP_PACKING_BYTE && columns % 2 != 0) {
        return dp_fail(error, "%s:%s: %zu codes a row: an even number is needed, pad it",
                       dump->path, set->path, columns);
    }
    dump->present[id] = true;
    dump->file_width[id] = store->packing == DP_DUMP_PACKING_BYTE ? columns / 2 : columns;
    dump->file_rows[id] = (size_t)dp_dump_store_extent(shape, store->row);
    const bool query = set->rows == DP_DUMP_QUERY_ROWS;
    return agree(dump, set->path, "batch", &dump->batch, dp_dump_store_extent(shape, store->batch),
                 error) &&
           agree(dump, set->path, query ? "number of query heads" : "number of key heads",
                 query ? &dump->head_count : &dump->kv_heads,
                 dp_dump_store_extent(shape, store->head), error) &&
           take_key_window(dump, id, error) && (!query || dp_dump_take_windows(dump, id, error));
}

static size_t round_up(size_t n)
{
    return (n + DP_TILE - 1) / DP_TILE * DP_TILE;
}

/* Keys a dataset speaks of, 0 when it says nothing. */
static size_t keys_of(const dp_dump *dump, dp_dump_id id)
{
    if (!dump->present[id] || dump->key_window[id]) {
        return 0;
    }
    switch (id) {
    case DP_DUMP_RAW:
        return dump->file_width[id];
    case DP_DUMP_V_PAYLOAD:
    case DP_DUMP_P_PAYLOAD:
        return dump->file_width[id] * 2;
    case DP_DUMP_P_SCALE:
    case DP_DUMP_CODE_SUM:
        return dump->file_width[id] * DP_BLOCK;
    case DP_DUMP_K_PAYLOAD:
        return dump->file_rows[id];
    default:
        return 0;
    }
}

static size_t features_of(const dp_dump *dump, dp_dump_id id)
{
    if (!dump->present[id]) {
        return 0;
    }
    switch (id) {
    case DP_DUMP_Q_PAYLOAD:
    case DP_DUMP_K_PAYLOAD:
        return dump->file_width[id] * 2;
    case DP_DUMP_ACC:
        return dump->file_width[id];
    default:
        return 0;
    }
}

/* What no attribute said is learnt from the datasets. */
static bool infer(dp_dump *dump, dp_error *error)
{
    for (int i = 0; i < DP_DUMP_DATASETS && dump->keys == 0; i++) {
        dump->keys = keys_of(dump, (dp_dump_id)i);
    }
    for (int i = 0; i < DP_DUMP_DATASETS && dump->features == 0; i++) {
        dump->features = features_of(dump, (dp_dump_id)i);
    }
    dump->features = dump->features > 0 ? dump->features : DP_HEAD_DIM;
    dump->dim = dump->dim > 0 ? dump->dim : dump->features;
    dump->key_rows = round_up(dump->keys);
    if (!dp_dump_make_strips(dump, error)) {
        return false;
    }
    dump->queries = dump->queries > 0 ? dump->queries : dump->row_first + dump->rows;
    if (dump->batch == 0 || dump->keys == 0) {
        return dp_fail(error, "%s: it holds no stage of the operator: see the list of datasets",
                       dump->path);
    }
    if ((dump->features != DP_HEAD_DIM && dump->features != DP_HEAD_DIM / 2) ||
        dump->dim > dump->features) {
        return dp_fail(error, "%s: %zu features: the operator has 128, or 64 with native-d64",
                       dump->path, dump->features);
    }
    if (dump->row_first + dump->rows > dump->queries) {
        return dp_fail(error, "%s: query rows %zu to %zu of %zu: check row_first", dump->path,
                       dump->row_first, dump->row_first + dump->rows, dump->queries);
    }
    return true;
}

/* Row widths are those of the padded or of the true number of keys or features. */
static bool check_widths(const dp_dump *dump, dp_error *error)
{
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        const dp_dump_id id = (dp_dump_id)i;
        if (!dump->present[id] || dump->memory[id] != NULL) {
            continue;
        }
        dp_dump tight = *dump;
        tight.key_rows = dump->keys;
        const size_t full = dp_dump_width(dump, id);
        size_t least = dp_dump_width(&tight, id);
        least = id == DP_DUMP_O || id == DP_DUMP_ACC ? dump->dim : least;
        const size_t width = dump->file_width[id];
        const size_t rows = dump->file_rows[id];
        const bool few = dp_dump_datasets[id].rows != DP_DUMP_QUERY_ROWS &&
                         rows != dp_dump_head_rows(dump, id) && rows != dump->key_rows;
        const bool wide =
            dp_dump_datasets[id].kind == DP_DUMP_CODES && width >= 2 * least && width <= 2 * full;
        if (dump->key_window[id] && width > 0 && dump->file_first[id] < full &&
            width <= full - dump->file_first[id]) {
            continue;
        }
        if (width < least || width > full || few || dump->key_window[id]) {
            return dp_fail(error,
                           "%s:%s: %zu rows of %zu: for %zu keys and %zu features %zu rows "
                           "of %zu are needed: %s",
                           dump->path, dp_dump_datasets[id].path, rows, width, dump->keys,
                           dump->features, dp_dump_head_rows(dump, id), full,
                           wide ? "with one code a byte set its attribute packing to 'byte'"
                                : "write the shape of this stage");
        }
    }
    return true;
}

static bool take_root(dp_dump *dump, dp_error *error)
{
    int64_t causal = 0;
    if (!root_size(dump, "keys", &dump->keys, error) ||
        !root_size(dump, "queries", &dump->queries, error) ||
        !root_size(dump, "features", &dump->features, error) ||
        !root_size(dump, "dim", &dump->dim, error) ||
        !root_size(dump, "q_heads", &dump->q_heads, error) ||
        (dp_h5_has_attribute(&dump->file, "/", "causal") &&
         !dp_h5_i64(&dump->file, "/", "causal", &causal, error))) {
        return false;
    }
    if (causal != 0 && causal != 1) {
        return dp_fail(error, "%s:/: causal is %" PRId64 ": give 0 or 1", dump->path, causal);
    }
    dump->causal = causal == 1;
    return true;
}

/* A dataset behind a link that leads nowhere is lost, not left out: comparing less would pass. */
static bool check_links(const dp_dump *dump, dp_error *error)
{
    static const char *const others[] = {"/inputs/q",          "/inputs/k",
                                         "/inputs/v",          "/inputs/key_order",
                                         "/quantize/q_global", "/quantize/k_global"};
    bool good = true;
    for (int i = 0; good && i < DP_DUMP_DATASETS; i++) {
        good = dp_h5_leads(&dump->file, dp_dump_datasets[i].path, error);
    }
    for (size_t i = 0; good && i < sizeof others / sizeof others[0]; i++) {
        good = dp_h5_leads(&dump->file, others[i], error);
    }
    return good;
}

bool dp_dump_take_shapes(dp_dump *dump, dp_error *error)
{
    if (!dp_h5_check_root(&dump->file, "dump", NULL, error) || !check_links(dump, error) ||
        !take_inputs(dump, error) || !take_root(dump, error)) {
        return false;
    }
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        char layout[32];
        const dp_dump_id id = (dp_dump_id)i;
        if (dp_h5_exists(&dump->file, dp_dump_datasets[i].path) &&
            !other_layout(dump, id, layout, error) && !take_dataset(dump, id, error)) {
            return false;
        }
    }
    if (!infer(dump, error) || !take_heads(dump, error) || !take_head_map(dump, error)) {
        return false;
    }
    for (int i = 0; i < DP_DUMP_DATASETS; i++) { /* scales in pages, now that extents are known */
        char layout[32];
        const dp_dump_id id = (dp_dump_id)i;
        if (dp_h5_exists(&dump->file, dp_dump_datasets[i].path) &&
            other_layout(dump, id, layout, error) && !dp_dump_take_pages(dump, id, layout, error)) {
            return false;
        }
    }
    return check_widths(dump, error);
}
