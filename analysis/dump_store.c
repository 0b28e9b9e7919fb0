/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "analysis/dump_open.h"
#include "formats/bf16.h"
#include "formats/fp16.h"

/* ---- how a dataset is stored -------------------------------------------------------------------
 */

static bool one_a_row(dp_dump_id id)
{
    return id == DP_DUMP_ROW_REF || id == DP_DUMP_ROW_SUM || id == DP_DUMP_LSE;
}

static bool word_in(const char *words, const char *word, size_t length)
{
    while (*words != '\0') {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, word, n) == 0) {
            return true;
        }
        words += n + (words[n] == '|' ? 1 : 0);
    }
    return false;
}

static const char *row_names(dp_dump_id id)
{
    switch (dp_dump_datasets[id].rows) {
    case DP_DUMP_QUERY_ROWS:
        return "query|row|seq|q";
    case DP_DUMP_KEY_ROWS:
        return "row|key|seq|kv";
    default:
        return "dim|feature|d";
    }
}

static const char *column_names(dp_dump_id id)
{
    switch (id) {
    case DP_DUMP_Q_PAYLOAD:
    case DP_DUMP_K_PAYLOAD:
    case DP_DUMP_ACC:
    case DP_DUMP_O:
        return "dim|feature|d";
    case DP_DUMP_Q_SCALE:
    case DP_DUMP_K_SCALE:
        return "block|dim|feature|d";
    default:
        return "key|block|seq|kv";
    }
}

/* One name of the attribute `axes`. */
static bool take_axis(const dp_dump *dump, dp_dump_id id, const char *name, size_t length, int axis,
                      dp_dump_store *store)
{
    int *to = NULL;
    if (word_in("batch|b", name, length)) {
        to = &store->batch;
    } else if (word_in("head|q_head|kv_head|h", name, length)) {
        to = &store->head;
    } else if (word_in(row_names(id), name, length) && store->row < 0) {
        to = &store->row;
    } else if (!one_a_row(id) && word_in(column_names(id), name, length)) {
        to = &store->column;
    }
    if (to == NULL) { /* an axis of one element says nothing */
        return dump->view[id].shape.dims[axis] == 1;
    }
    const bool fresh = *to < 0;
    *to = axis;
    return fresh;
}

static bool axes_named(const dp_dump *dump, dp_dump_id id, const char *text, dp_dump_store *store,
                       dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    const char *at = text;
    int axis = 0;
    bool good = true;
    for (; good && *at != '\0'; axis++) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, ", ");
        good = axis < dump->view[id].shape.rank && take_axis(dump, id, at, length, axis, store);
        at += length;
        at += strspn(at, " ");
        at += *at == ',' ? 1 : 0;
    }
    return (good && axis == dump->view[id].shape.rank && store->row >= 0 &&
            (store->column >= 0 || one_a_row(id))) ||
           dp_fail(error,
                   "%s:%s: its axes '%.64s' are not an order of batch,head,%.8s%s: name one "
                   "for each dimension",
                   dump->path, path, text,
                   dp_dump_datasets[id].rows == DP_DUMP_FEATURE_ROWS ? "dim"
                   : dp_dump_datasets[id].rows == DP_DUMP_KEY_ROWS   ? "row"
                                                                     : "query",
                   one_a_row(id)                              ? ""
                   : strncmp(column_names(id), "dim", 3) == 0 ? ",dim"
                   : strncmp(column_names(id), "key", 3) == 0 ? ",key"
                                                              : ",block");
}

/* Without names the order is batch, head, row, column; a value a row may keep an axis of 1. */
static bool axes_default(const dp_dump *dump, dp_dump_id id, dp_dump_store *store, dp_error *error)
{
    const dp_h5_shape *shape = &dump->view[id].shape;
    const int rank = one_a_row(id) ? 3 : 4;
    const bool kept = one_a_row(id) && shape->rank == 4;
    *store = (dp_dump_store){store->type,   store->is_bf16, 0, 1, 2, one_a_row(id) ? -1 : 3,
                             store->packing};
    if (kept && shape->dims[2] == 1 && shape->dims[3] != 1) {
        store->row = 3;
        return true;
    }
    return shape->rank == rank || (kept && shape->dims[3] == 1) ||
           dp_fail(error,
                   "%s:%s: it has %d dimensions and %d are needed: reshape it, or name them "
                   "in the attribute axes",
                   dump->path, dp_dump_datasets[id].path, shape->rank, rank);
}

static bool take_axes(dp_dump *dump, dp_dump_id id, dp_dump_store *store, dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    char *text = NULL;
    store->batch = store->head = store->row = store->column = -1;
    if (!dp_h5_has_attribute(&dump->file, path, "axes")) {
        return axes_default(dump, id, store, error);
    }
    const bool good = dp_h5_text(&dump->file, path, "axes", &text, error) &&
                      axes_named(dump, id, text, store, error);
    free(text);
    return good;
}

static bool take_packing(const dp_dump *dump, dp_dump_id id, dp_dump_store *store, dp_error *error)
{
    static const char *const names[] = {"low-first", "high-first", "byte"};
    const char *path = dp_dump_datasets[id].path;
    char *text = NULL;
    if (dp_dump_datasets[id].kind != DP_DUMP_CODES ||
        !dp_h5_has_attribute(&dump->file, path, "packing")) {
        return true;
    }
    if (!dp_h5_text(&dump->file, path, "packing", &text, error)) {
        return false;
    }
    bool found = false;
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            store->packing = (dp_dump_packing)i;
            found = true;
        }
    }
    found = found || dp_fail(error,
                             "%s:%s: packing '%.32s': low-first, high-first and byte are "
                             "known",
                             dump->path, path, text);
    free(text);
    return found;
}

static const char *formats_of(dp_dump_id id)
{
    switch (id) {
    case DP_DUMP_Q_PAYLOAD:
    case DP_DUMP_K_PAYLOAD:
    case DP_DUMP_V_PAYLOAD:
    case DP_DUMP_P_PAYLOAD:
        return "e2m1";
    case DP_DUMP_Q_SCALE:
    case DP_DUMP_K_SCALE:
        return "ue4m3|e4m3";
    case DP_DUMP_V_SCALE:
    case DP_DUMP_P_SCALE:
        return "e8m0|ue8m0";
    case DP_DUMP_O:
        return "bf16|f32|f64";
    default:
        return "f32|f64|f16|bf16";
    }
}

/* The attributes format and block, where they are there, say what the stage is made of. */
static bool take_format(const dp_dump *dump, dp_dump_id id, char format[16], dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    const bool blocks = id <= DP_DUMP_V_SCALE || id == DP_DUMP_P_SCALE || id == DP_DUMP_P_PAYLOAD ||
                        id == DP_DUMP_CODE_SUM;
    const int64_t due = id <= DP_DUMP_K_SCALE ? 16 : DP_BLOCK;
    int64_t block = due;
    char *text = NULL;
    format[0] = '\0';
    if (blocks && dp_h5_has_attribute(&dump->file, path, "block") &&
        !dp_h5_i64(&dump->file, path, "block", &block, error)) {
        return false;
    }
    if (block != due) {
        return dp_fail(error, "%s:%s: blocks of %lld; those of this stage have %lld: check it",
                       dump->path, path, (long long)block, (long long)due);
    }
    if (id == DP_DUMP_CODE_SUM || !dp_h5_has_attribute(&dump->file, path, "format")) {
        return true;
    }
    if (!dp_h5_text(&dump->file, path, "format", &text, error)) {
        return false;
    }
    const bool good = word_in(formats_of(id), text, strlen(text)) ||
                      dp_fail(error,
                              "%s:%s: its format is '%.32s', and this stage is %s: convert "
                              "it, or mend the attribute",
                              dump->path, path, text, formats_of(id));
    if (good) {
        (void)snprintf(format, 16, "%s", text);
    }
    free(text);
    return good;
}

/* Types that can be read as this dataset without losing a bit. */
static bool type_serves(dp_dump_id id, dp_h5_type type, const char *format)
{
    const bool integer = type == DP_H5_U8 || type == DP_H5_U16 || type == DP_H5_U32 ||
                         type == DP_H5_I32 || type == DP_H5_I64;
    const bool real = type == DP_H5_F32 || type == DP_H5_F64;
    switch (dp_dump_datasets[id].kind) {
    case DP_DUMP_CODES:
    case DP_DUMP_BYTES:
        return integer;
    case DP_DUMP_COUNT:
        return integer || real;
    case DP_DUMP_BF16:
        return real || (type == DP_H5_U16 && strncmp(format, "f", 1) != 0);
    default:
        return real || type == DP_H5_F16 ||
               ((type == DP_H5_U32 || type == DP_H5_I32) && strcmp(format, "f32") == 0) ||
               (type == DP_H5_U16 && strcmp(format, "bf16") == 0);
    }
}

bool dp_dump_take_store(dp_dump *dump, dp_dump_id id, dp_error *error)
{
    const char *path = dp_dump_datasets[id].path;
    dp_dump_store *store = &dump->store[id];
    dp_h5_shape shape;
    char format[16];
    memset(store, 0, sizeof *store);
    if (!dp_h5_describe(&dump->file, path, &store->type, &shape, error) ||
        !take_format(dump, id, format, error) || !take_packing(dump, id, store, error)) {
        return false;
    }
    if (!type_serves(id, store->type, format)) {
        return dp_fail(error,
                       "%s:%s: its type is %s%s%s and %s is needed: store codes as plain "
                       "unsigned integers",
                       dump->path, path, dp_h5_name(store->type),
                       format[0] != '\0' ? " of format " : "", format,
                       dp_dump_datasets[id].kind <= DP_DUMP_COUNT ? "an integer" : "a float");
    }
    store->is_bf16 = strcmp(format, "bf16") == 0;
    return dp_h5_view_open(&dump->view[id], &dump->file, path, store->type, error) &&
           take_axes(dump, id, store, error);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static int64_t integer_at(const void *data, size_t i, dp_h5_type type)
{
    switch (type) {
    case DP_H5_U8:
        return ((const uint8_t *)data)[i];
    case DP_H5_U16:
        return ((const uint16_t *)data)[i];
    case DP_H5_U32:
        return ((const uint32_t *)data)[i];
    case DP_H5_I32:
        return ((const int32_t *)data)[i];
    default:
        return ((const int64_t *)data)[i];
    }
}

/* A real number as f32 bits; false when f32 does not hold it. NaNs of f64 keep their leading bits.
 */
static bool f32_at(const void *data, size_t i, const dp_dump_store *store, uint32_t *bits)
{
    switch (store->type) {
    case DP_H5_F32:
    case DP_H5_U32:
    case DP_H5_I32:
        *bits = ((const uint32_t *)data)[i];
        return true;
    case DP_H5_F16:
        *bits = dp_f32_bits(dp_fp16_to_f32((dp_fp16){((const uint16_t *)data)[i]}));
        return true;
    case DP_H5_U16:
        *bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        return true;
    default: {
        const double x = ((const double *)data)[i];
        *bits = dp_f32_bits((float)x);
        return isnan(x) || (double)(float)x == x;
    }
    }
}

static bool lossy(const dp_dump *dump, dp_dump_id id, size_t at, const char *what, dp_error *error)
{
    return dp_fail(error, "%s:%s: element %zu of a strip is no %s: write the numbers of the stage",
                   dump->path, dp_dump_datasets[id].path, at, what);
}

/* Element i as the bits that are compared. */
static bool element_at(const dp_dump *dump, dp_dump_id id, const void *data, size_t i,
                       uint32_t *bits, dp_error *error)
{
    const dp_dump_store *store = &dump->store[id];
    const dp_dump_kind kind = dp_dump_datasets[id].kind;
    const bool real = store->type == DP_H5_F32 || store->type == DP_H5_F64;
    if (kind == DP_DUMP_F32) {
        return f32_at(data, i, store, bits) || lossy(dump, id, i, "f32 number", error);
    }
    if (kind == DP_DUMP_BF16) {
        if (!real) {
            *bits = ((const uint16_t *)data)[i];
            return true;
        }
        const bool exact = f32_at(data, i, store, bits) && (*bits & 0xFFFFu) == 0;
        const uint32_t wide = *bits;
        *bits = wide >> 16;
        return exact || dp_fail(error,
                                "%s:%s: element 0x%08X is no bf16 number, and the operator returns "
                                "bf16: round it, or store bf16 bits as u16",
                                dump->path, dp_dump_datasets[id].path, (unsigned)wide);
    }
    if (real) { /* a count kept as a number */
        const double x =
            store->type == DP_H5_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
        *bits = x >= 0.0 && x <= 65535.0 ? (uint32_t)x : 0;
        return (double)*bits == x ||
               lossy(dump, id, i, "count: it is twice the sum of the code values", error);
    }
    const int64_t value = integer_at(data, i, store->type);
    const int64_t most = kind == DP_DUMP_COUNT                                             ? 65535
                         : kind == DP_DUMP_CODES && store->packing == DP_DUMP_PACKING_BYTE ? 15
                                                                                           : 255;
    *bits = (uint32_t)value;
    return (value >= 0 && value <= most) || lossy(dump, id, i,
                                                  most == 15    ? "code of 0 to 15"
                                                  : most == 255 ? "byte"
                                                                : "count",
                                                  error);
}

static void put_element(dp_dump_id id, const dp_dump_store *store, void *data, size_t i,
                        uint32_t bits)
{
    uint8_t *bytes = data;
    const uint16_t half = (uint16_t)bits;
    if (dp_dump_element(id) == 1) {
        if (store->packing == DP_DUMP_PACKING_BYTE && dp_dump_datasets[id].kind == DP_DUMP_CODES) {
            bytes[i / 2] = (uint8_t)(i % 2 == 0 ? bits : bytes[i / 2] | bits << 4);
        } else if (store->packing == DP_DUMP_PACKING_HIGH_FIRST) {
            bytes[i] = (uint8_t)(bits << 4 | (bits >> 4 & 15u));
        } else {
            bytes[i] = (uint8_t)bits;
        }
    } else if (dp_dump_element(id) == 2) {
        memcpy(bytes + 2 * i, &half, sizeof half);
    } else {
        memcpy(bytes + 4 * i, &bits, sizeof bits);
    }
}

static bool is_plain(dp_dump_id id, const dp_dump_store *store)
{
    static const dp_h5_type types[] = {[DP_DUMP_CODES] = DP_H5_U8,
                                       [DP_DUMP_BYTES] = DP_H5_U8,
                                       [DP_DUMP_COUNT] = DP_H5_U16,
                                       [DP_DUMP_F32] = DP_H5_F32,
                                       [DP_DUMP_BF16] = DP_H5_U16};
    return store->type == types[dp_dump_datasets[id].kind] &&
           store->packing == DP_DUMP_PACKING_LOW_FIRST &&
           (store->column < 0 || store->column > store->row);
}

bool dp_dump_read_stored(const dp_dump *dump, dp_dump_id id, dp_dump_at at, size_t rows, void *data,
                         dp_error *error)
{
    const dp_dump_store *store = &dump->store[id];
    const size_t columns = dump->file_width[id] * (store->packing == DP_DUMP_PACKING_BYTE ? 2 : 1);
    uint64_t start[DP_H5_RANK] = {0};
    uint64_t count[DP_H5_RANK];
    for (int i = 0; i < DP_H5_RANK; i++) {
        count[i] = 1;
    }
    const struct {
        int axis;
        uint64_t start, count;
    } axes[] = {{store->batch, at.batch, 1},
                {store->head, at.head, 1},
                {store->row, at.row, rows},
                {store->column, 0, columns}};
    for (int i = 0; i < 4; i++) {
        if (axes[i].axis >= 0) {
            start[axes[i].axis] = axes[i].start;
            count[axes[i].axis] = axes[i].count;
        }
    }
    if (is_plain(id, store)) {
        return dp_h5_view_read(&dump->view[id], start, count, data, error);
    }
    void *stored = malloc(rows * columns * dp_h5_size(store->type) + 1);
    bool good = stored != NULL || dp_fail(error, "%s: not enough memory", dump->path);
    good = good && dp_h5_view_read(&dump->view[id], start, count, stored, error);
    const bool turned = store->column >= 0 && store->column < store->row;
    for (size_t i = 0; good && i < rows * columns; i++) {
        const size_t from = turned ? i % columns * rows + i / columns : i;
        uint32_t bits = 0;
        good = element_at(dump, id, stored, from, &bits, error);
        put_element(id, store, data, i, bits);
    }
    free(stored);
    return good;
}
