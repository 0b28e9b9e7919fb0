/* SPDX-License-Identifier: MIT
 *
 * A dump of a kernel (or of the oracle), read stage by stage in strips of up to 128 query rows of
 * one head. Any subset of the stages may be there; layouts and padding are undone on the way in.
 */
#ifndef DP_ANALYSIS_DUMP_H
#define DP_ANALYSIS_DUMP_H

#include "analysis/h5.h"
#include "ref/forward/forward.h"

/* Datasets of a dump in the order of the operator. */
typedef enum {
    DP_DUMP_Q_PAYLOAD,
    DP_DUMP_Q_SCALE,
    DP_DUMP_K_PAYLOAD,
    DP_DUMP_K_SCALE,
    DP_DUMP_V_PAYLOAD,
    DP_DUMP_V_SCALE,
    DP_DUMP_RAW,
    DP_DUMP_ROW_REF,
    DP_DUMP_P_SCALE,
    DP_DUMP_P_PAYLOAD,
    DP_DUMP_CODE_SUM,
    DP_DUMP_ROW_SUM,
    DP_DUMP_ACC,
    DP_DUMP_O,
    DP_DUMP_LSE,
    DP_DUMP_DATASETS
} dp_dump_id;

/* What the rows of a dataset are. */
typedef enum { DP_DUMP_QUERY_ROWS, DP_DUMP_KEY_ROWS, DP_DUMP_FEATURE_ROWS } dp_dump_rows;

/* What its elements are, for comparing. */
typedef enum {
    DP_DUMP_CODES, /* bytes of two codes, the even one low */
    DP_DUMP_BYTES, /* scale bytes                          */
    DP_DUMP_COUNT, /* u16 numbers                          */
    DP_DUMP_F32,
    DP_DUMP_BF16
} dp_dump_kind;

typedef struct {
    const char *name, *path, *stage;
    dp_dump_rows rows;
    dp_dump_kind kind;
} dp_dump_dataset;

extern const dp_dump_dataset dp_dump_datasets[DP_DUMP_DATASETS];
/* Bytes of an element (two codes are one). */
size_t dp_dump_element(dp_dump_id id);

typedef struct {
    char path[DP_PATH_SIZE];
    size_t batch, q_heads, kv_heads; /* of the whole problem              */
    size_t queries, keys, key_rows;  /* key_rows: keys padded to 128      */
    size_t dim, features;
    size_t row_first, rows; /* window of query rows that the file holds */
    size_t head_count;      /* query heads that the file holds          */
    size_t *heads;          /* [head_count]                             */
    int32_t *kv_of_q;       /* [q_heads]                                */
    int32_t *key_order;     /* [keys], physical position -> key         */
    bool order_given;       /* key_order is the file's                  */
    float *q_global;        /* [batch][head_count], NULL: 1             */
    float *k_global;        /* [batch][kv_heads]                        */
    double softmax_scale;
    bool causal;
    dp_direct_p launch; /* multiplier for global scales of 1  */
    dp_mma_switches mma;
    bool has_inputs; /* /inputs/q, k, v are there          */
    uint16_t *q, *k, *v;
    bool present[DP_DUMP_DATASETS];
    size_t file_width[DP_DUMP_DATASETS]; /* elements of a row as stored        */
    /* Where the data are: whole in memory as [batch][head][row][file_width], or in the file. */
    void *memory[DP_DUMP_DATASETS];
    bool borrowed; /* memory belongs to the caller       */
    bool wide_o;   /* O is stored as f32                 */
    dp_h5 file;
    dp_h5_view view[DP_DUMP_DATASETS];
    bool file_open;
} dp_dump;

/* What replaces the file's attributes; NULL keeps them. */
typedef struct {
    const char *policy, *epoch, *set, *sfu;
    bool data_only; /* compare with another file: policy and switches are not needed */
} dp_dump_overrides;

/* Open a dump. Without policy, epoch or switches, in the file or as overrides, it is refused. */
bool dp_dump_open(dp_dump *dump, const char *path, const dp_dump_overrides *overrides,
                  dp_error *error);
void dp_dump_close(dp_dump *dump);

/* Elements of a padded row, rows of a head in the file, heads in the file. */
size_t dp_dump_width(const dp_dump *dump, dp_dump_id id);
size_t dp_dump_head_rows(const dp_dump *dump, dp_dump_id id);
size_t dp_dump_heads(const dp_dump *dump, dp_dump_id id);

/* Rows [row, row + rows) of one head as the file counts heads and rows, tight, file_width each. */
bool dp_dump_read(const dp_dump *dump, dp_dump_id id, size_t batch, size_t head, size_t row,
                  size_t rows, void *data, dp_error *error);

#endif
