/* SPDX-License-Identifier: MIT */
#include "analysis/dump.h"

#include <stdlib.h>

#include "analysis/dump_open.h"

const dp_dump_dataset dp_dump_datasets[DP_DUMP_DATASETS] = {
    {"q_payload", "/quantize/q_payload", "quantize", DP_DUMP_QUERY_ROWS, DP_DUMP_CODES},
    {"q_scale", "/quantize/q_scale", "quantize", DP_DUMP_QUERY_ROWS, DP_DUMP_BYTES},
    {"k_payload", "/quantize/k_payload", "quantize", DP_DUMP_KEY_ROWS, DP_DUMP_CODES},
    {"k_scale", "/quantize/k_scale", "quantize", DP_DUMP_KEY_ROWS, DP_DUMP_BYTES},
    {"v_payload", "/quantize/v_payload", "quantize", DP_DUMP_FEATURE_ROWS, DP_DUMP_CODES},
    {"v_scale", "/quantize/v_scale", "quantize", DP_DUMP_FEATURE_ROWS, DP_DUMP_BYTES},
    {"raw", "/score/raw", "score", DP_DUMP_QUERY_ROWS, DP_DUMP_F32},
    {"row_ref", "/reference/row_ref", "reference", DP_DUMP_QUERY_ROWS, DP_DUMP_F32},
    {"p_scale", "/scale/p_scale", "scale", DP_DUMP_QUERY_ROWS, DP_DUMP_BYTES},
    {"p_payload", "/code/p_payload", "code", DP_DUMP_QUERY_ROWS, DP_DUMP_CODES},
    {"code_sum", "/denominator/code_sum", "denominator", DP_DUMP_QUERY_ROWS, DP_DUMP_COUNT},
    {"row_sum", "/denominator/row_sum", "denominator", DP_DUMP_QUERY_ROWS, DP_DUMP_F32},
    {"acc", "/accumulate/acc", "accumulate", DP_DUMP_QUERY_ROWS, DP_DUMP_F32},
    {"o", "/output/o", "output", DP_DUMP_QUERY_ROWS, DP_DUMP_BF16},
    {"lse", "/output/lse", "output", DP_DUMP_QUERY_ROWS, DP_DUMP_F32},
};

size_t dp_dump_element(dp_dump_id id)
{
    switch (dp_dump_datasets[id].kind) {
    case DP_DUMP_CODES:
    case DP_DUMP_BYTES:
        return 1;
    case DP_DUMP_COUNT:
    case DP_DUMP_BF16:
        return 2;
    default:
        return 4;
    }
}

size_t dp_dump_width(const dp_dump *dump, dp_dump_id id)
{
    switch (id) {
    case DP_DUMP_Q_PAYLOAD:
    case DP_DUMP_K_PAYLOAD:
        return dump->features / 2;
    case DP_DUMP_Q_SCALE:
    case DP_DUMP_K_SCALE:
        return dump->features / 16;
    case DP_DUMP_V_PAYLOAD:
    case DP_DUMP_P_PAYLOAD:
        return dump->key_rows / 2;
    case DP_DUMP_V_SCALE:
    case DP_DUMP_P_SCALE:
    case DP_DUMP_CODE_SUM:
        return dump->key_rows / DP_BLOCK;
    case DP_DUMP_RAW:
        return dump->key_rows;
    case DP_DUMP_ACC:
    case DP_DUMP_O:
        return dump->features;
    default:
        return 1;
    }
}

size_t dp_dump_head_rows(const dp_dump *dump, dp_dump_id id)
{
    switch (dp_dump_datasets[id].rows) {
    case DP_DUMP_QUERY_ROWS:
        return dump->window[id].count > 0 ? dump->window[id].count * dump->window[id].length
                                          : dump->rows;
    case DP_DUMP_KEY_ROWS:
        return dump->keys;
    default:
        return dump->features;
    }
}

size_t dp_dump_heads(const dp_dump *dump, dp_dump_id id)
{
    return dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS ? dump->head_count : dump->kv_heads;
}

bool dp_dump_find_row(const dp_dump *dump, dp_dump_id id, size_t row, size_t *at)
{
    const dp_dump_windows *w = &dump->window[id];
    if (w->count == 0) {
        *at = row - dump->row_first;
        return row >= dump->row_first && *at < dump->rows;
    }
    for (size_t i = 0; i < w->count; i++) {
        if (row >= w->first[i] && row - w->first[i] < w->length) {
            *at = i * w->length + (row - w->first[i]);
            return true;
        }
    }
    return false;
}

size_t dp_dump_query_row(const dp_dump *dump, dp_dump_id id, size_t at)
{
    const dp_dump_windows *w = &dump->window[id];
    return w->count == 0 ? dump->row_first + at : w->first[at / w->length] + at % w->length;
}

bool dp_dump_read(const dp_dump *dump, dp_dump_id id, dp_dump_at at, size_t rows, void *data,
                  dp_error *error)
{
    if (dump->memory[id] == NULL) {
        return dp_dump_read_stored(dump, id, at, rows, data, error);
    }
    const size_t bytes = dump->file_width[id] * dp_dump_element(id);
    const size_t from =
        (at.batch * dp_dump_heads(dump, id) + at.head) * dp_dump_head_rows(dump, id) + at.row;
    memcpy(data, (const char *)dump->memory[id] + from * bytes, rows * bytes);
    return true;
}

void dp_dump_close(dp_dump *dump)
{
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        if (!dump->borrowed) {
            free(dump->memory[i]);
        }
        if (dump->file_open) {
            dp_h5_view_close(&dump->view[i]);
        }
    }
    if (dump->file_open) {
        dp_h5_close(&dump->file);
    }
    if (!dump->borrowed) {
        free(dump->heads);
        free(dump->batches);
        free(dump->strips);
        free(dump->kv_of_q);
        free(dump->key_order);
        free(dump->q_global);
        free(dump->k_global);
        free(dump->q);
        free(dump->k);
        free(dump->v);
    }
    memset(dump, 0, sizeof *dump);
}

bool dp_dump_open(dp_dump *dump, const char *path, const dp_dump_overrides *overrides,
                  dp_error *error)
{
    memset(dump, 0, sizeof *dump);
    for (int i = 0; i < DP_DUMP_DATASETS; i++) {
        dump->view[i].id = -1;
        dump->view[i].type = -1;
    }
    if (strlen(path) >= sizeof dump->path) {
        return dp_fail(error, "%.80s...: this path is too long: give a shorter one", path);
    }
    memcpy(dump->path, path, strlen(path) + 1);
    if (!dp_h5_open(&dump->file, path, error)) {
        return false;
    }
    dump->file_open = true;
    const bool good = dp_dump_take_shapes(dump, error) && dp_dump_take_scales(dump, error) &&
                      dp_dump_take_launch(dump, overrides, error);
    if (!good) {
        dp_dump_close(dump);
    }
    return good;
}
