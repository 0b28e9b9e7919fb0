/* SPDX-License-Identifier: MIT
 *
 * A dump of a kernel (or of the oracle), read stage by stage in strips of up to 128 query rows of
 * one head. Any subset of the stages may be there; layouts and padding are undone on the way in.
 */
#ifndef DP_ANALYSIS_DUMP_H
#define DP_ANALYSIS_DUMP_H

#include "analysis/dump_store.h"
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

/* Windows of query rows that a dataset holds, one after another, in ascending order. */
enum { DP_DUMP_WINDOWS = 256 };
typedef struct {
    size_t count, length; /* count 0: one window, row_first and rows of the dump */
    size_t first[DP_DUMP_WINDOWS];
} dp_dump_windows;

/* Query rows of one query tile that the same datasets hold. */
typedef struct {
    size_t first, rows;
} dp_dump_strip;

typedef struct {
    char path[DP_PATH_SIZE];
    size_t batch, q_heads, kv_heads; /* of the whole problem              */
    size_t queries, keys, key_rows;  /* key_rows: keys padded to 128      */
    size_t dim, features;
    size_t row_first, rows; /* first and number of query rows that some dataset holds */
    size_t full_rows;       /* rows of the datasets that name no window, 0: there is none */
    size_t head_count;      /* query heads that the file holds          */
    size_t *heads;          /* [head_count]                             */
    size_t *batches;        /* [batch], NULL: entry i is i              */
    dp_dump_strip *strips;  /* of one head, NULL: the query tiles of row_first and rows */
    size_t strip_count;
    int32_t *kv_of_q;   /* [q_heads]                                */
    int32_t *key_order; /* [keys], physical position -> key         */
    bool order_given;   /* key_order is the file's                  */
    float *q_global;    /* [batch][head_count], NULL: 1             */
    float *k_global;    /* [batch][kv_heads]                        */
    double softmax_scale;
    bool causal;
    dp_direct_p launch; /* multiplier for global scales of 1  */
    dp_mma_switches mma;
    bool has_inputs; /* /inputs/q, k, v are there          */
    uint16_t *q, *k, *v;
    bool present[DP_DUMP_DATASETS];
    size_t file_width[DP_DUMP_DATASETS]; /* elements of a row in the file, two codes counted once */
    size_t file_first[DP_DUMP_DATASETS]; /* the first of them: a window of keys, else 0        */
    bool key_window[DP_DUMP_DATASETS];   /* its columns are a window of keys                    */
    size_t file_rows[DP_DUMP_DATASETS];  /* rows of a head in the file                         */
    dp_dump_windows window[DP_DUMP_DATASETS];
    /* Where the data are: whole in memory as [batch][head][row][file_width], or in the file. */
    void *memory[DP_DUMP_DATASETS];
    bool borrowed; /* memory belongs to the caller       */
    dp_h5 file;
    dp_h5_view view[DP_DUMP_DATASETS];
    dp_dump_store store[DP_DUMP_DATASETS];
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

/* Place of rows of a dataset, as the file counts. */
typedef struct {
    size_t batch, head, row;
} dp_dump_at;

/* Elements of a padded row, rows of a head in the file, heads in the file. */
size_t dp_dump_width(const dp_dump *dump, dp_dump_id id);
size_t dp_dump_head_rows(const dp_dump *dump, dp_dump_id id);
size_t dp_dump_heads(const dp_dump *dump, dp_dump_id id);

/* Row of the file that holds query row `row` of the operator; false when the dataset has no such
 * row. And the reverse. */
bool dp_dump_find_row(const dp_dump *dump, dp_dump_id id, size_t row, size_t *at);
size_t dp_dump_query_row(const dp_dump *dump, dp_dump_id id, size_t at);

/* Rows [at.row, at.row + rows) of one head, tight, file_width each. */
bool dp_dump_read(const dp_dump *dump, dp_dump_id id, dp_dump_at at, size_t rows, void *data,
                  dp_error *error);

#endif
