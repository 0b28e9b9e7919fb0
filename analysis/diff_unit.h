/* SPDX-License-Identifier: MIT
 *
 * One strip of a dump (up to 128 query rows of one head): the kernel's data, what the oracle makes
 * of them stage by stage, and the single stages as functions, for re-injection.
 */
#ifndef DP_ANALYSIS_DIFF_UNIT_H
#define DP_ANALYSIS_DIFF_UNIT_H

#include "analysis/dump.h"
#include "ref/arith/gemm.h"

/* Data of a strip. Query-side arrays have DP_TILE rows of dp_dump_width elements, zero beyond the
 * strip; key-side arrays are those of the whole key head, padded to key_rows. */
typedef struct {
    void *data[DP_DUMP_DATASETS];
    bool valid[DP_DUMP_DATASETS];
} dp_strip_data;

enum { DP_UNIT_NOTE = 200 };

typedef struct {
    const dp_dump *dump;
    dp_direct_p launch; /* multiplier of this head */
    dp_mma_switches mma;
    int threads;
    dp_dump_id last;             /* the last dataset that dp_unit_load makes */
    size_t batch, position;      /* head as the file counts */
    size_t head, kv;             /* query head of the operator, and its key head */
    size_t row_first, rows;      /* query rows of the operator */
    size_t query_tile, tile_row; /* tile of the rows, and place of the first one in it */
    size_t visited;              /* key tiles that some row sees */
    dp_strip_data dumped;        /* of the kernel; not valid where not dumped */
    dp_strip_data in;            /* injected: the kernel's, else the oracle's */
    dp_strip_data out;           /* the oracle's, each from `in` of the stages before */
    char *note;                  /* DP_UNIT_NOTE bytes for what a hypothesis measured, or NULL */
    dp_operands *operands;       /* oracle's operands of the whole problem, NULL without inputs */
} dp_unit;

DP_INLINE float *dp_strip_f32(const dp_strip_data *strip, dp_dump_id id)
{
    return (float *)strip->data[id];
}
DP_INLINE uint8_t *dp_strip_u8(const dp_strip_data *strip, dp_dump_id id)
{
    return (uint8_t *)strip->data[id];
}
DP_INLINE uint16_t *dp_strip_u16(const dp_strip_data *strip, dp_dump_id id)
{
    return (uint16_t *)strip->data[id];
}

bool dp_unit_allocate(dp_unit *unit, const dp_dump *dump, int threads, dp_error *error);
void dp_unit_free(dp_unit *unit);
/* Rows of a padded array, and its bytes. */
size_t dp_unit_rows(const dp_unit *unit, dp_dump_id id);
size_t dp_unit_bytes(const dp_unit *unit, dp_dump_id id);
/* Strips of one head, and one of them. */
size_t dp_unit_strips(const dp_dump *dump);
dp_dump_strip dp_unit_strip(const dp_dump *dump, size_t index);
/* Strips of a dump, and strip number i: its place, the kernel's data, then every stage. */
size_t dp_unit_count(const dp_dump *dump);
bool dp_unit_load(dp_unit *unit, size_t index, dp_error *error);
/* Key-side data of a key head, padded; dumped or the oracle's. False when there is none. */
bool dp_unit_key_side(const dp_unit *unit, size_t kv, dp_dump_id id, void *out, dp_error *error);

/* Is everything there that the stage of this dataset starts from? */
bool dp_stage_ready(const dp_unit *unit, dp_dump_id id);
/* One dataset from `in`, under a launch. out: dp_unit_bytes. Not for the operands. */
bool dp_stage_run(const dp_unit *unit, const dp_direct_p *launch, const dp_mma_switches *mma,
                  dp_dump_id id, void *out, dp_error *error);
/* raw or acc from operands other than those of `in` (NULL: those of `in`). */
bool dp_stage_score(const dp_unit *unit, const dp_mma_switches *mma, const uint8_t *q_payload,
                    const uint8_t *q_scale, const uint8_t *k_payload, const uint8_t *k_scale,
                    float *raw, dp_error *error);
bool dp_stage_accumulate(const dp_unit *unit, const dp_mma_switches *mma, const uint8_t *p_payload,
                         const uint8_t *p_scale, const uint8_t *v_payload, const uint8_t *v_scale,
                         float *acc, dp_error *error);
/* Hidden from row r of the strip (padding, causal)? */
bool dp_unit_masked(const dp_unit *unit, size_t r, size_t position);

/* The oracle's operands of a dump with inputs, keys in the dump's order. */
bool dp_diff_operands(const dp_dump *dump, const dp_direct_p *launch, int threads,
                      dp_operands *operands, dp_error *error);

#endif
