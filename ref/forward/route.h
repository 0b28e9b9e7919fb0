/* SPDX-License-Identifier: MIT
 *
 * The standard paths: attention that computes an exponential and rounds it, as other kernels do.
 * One emulator, its switches a row of a table, each row with its provenance. Rules [R..] of
 * ROUTES.md.
 */
#ifndef DP_REF_FORWARD_ROUTE_H
#define DP_REF_FORWARD_ROUTE_H

#include "ref/forward/forward.h"

DP_BEGIN_C

enum { DP_ROUTE_TILE = 256 }; /* most keys of a tile */

/* Format of an operand of a matrix product [R1]. */
typedef enum {
    DP_OPERAND_BF16,
    DP_OPERAND_E4M3,      /* plain E4M3, RNE, saturating, through tcgen05            */
    DP_OPERAND_MXFP8,     /* E4M3, E8M0 per 32: ceil of log2(amax/448)               */
    DP_OPERAND_NVFP4,     /* E2M1, E4M3 per 16: E4M3(amax rcp(6)), x rcp(scale)      */
    DP_OPERAND_MXFP4,     /* E2M1, E8M0 amplitude per 32, as V of Direct-P (value code/6) */
    DP_OPERAND_E4M3_SM90, /* plain E4M3 through wgmma (Hopper)                       */
    DP_OPERAND_E4M3_SM89, /* plain E4M3 through mma.sync (Ada)                       */
    DP_OPERAND_NVFP4_K64, /* Q and K only: NVFP4, blocks 64 features apart share a scale [R1] */
    DP_OPERAND_INT8       /* Q and K only: one f32 scale a group of rows, exact s32 sums [R9] */
} dp_operand_format;

/* How one block of probabilities gets its scale and its payload [R4]. */
typedef enum {
    DP_P_PLAIN,     /* no block scale: cvt(P)                                               */
    DP_P_MAX_SIXTH, /* SFf = fl(max P * 1/6), payload E2M1(P / SFf)                         */
    DP_P_EX2_BLOCK, /* SFf = ex2(block max + z offset - sf_bias), payload E2M1(P / SFf)     */
    DP_P_LOG2,      /* b = max(z) - log2(max payload); payload cvt(ex2(z - b)), SFf = ex2(b) */
    DP_P_LOG2_CEIL, /* the same with b = ceil(...), exact in E8M0                           */
    DP_P_LOG2_NEAR, /* b = floor(max z + log2(4/3)) - log2 6: the block exponent of Direct-P */
    DP_P_ROUNDED,   /* SF = E4M3(min(max P / (6 g), 448)), payload E2M1(P / (SF g)), g = 1/lift */
    DP_P_SCALED     /* no block scale: E4M3(P / g) g, g = 1/lift, in BF16                   */
} dp_p_rule;

/* How MAX_SIXTH and EX2_BLOCK divide by max(SFf, divisor_floor) [R4]. */
typedef enum {
    DP_DIVIDE_RECIPROCAL, /* times fl(1/d)       */
    DP_DIVIDE_RCP,        /* times rcp.approx(d) */
    DP_DIVIDE_EXACT       /* fl(P/d)             */
} dp_p_divide;

/* What the row sum adds up [R5]. */
typedef enum {
    DP_SUM_UNROUNDED,  /* P before any rounding                        */
    DP_SUM_BF16,       /* P rounded to BF16                            */
    DP_SUM_REPRESENTED /* decoded payload times decoded scale          */
} dp_sum_source;

/* What is subtracted from Q and K [R8]. */
typedef enum {
    DP_SMOOTH_NONE,
    DP_SMOOTH_K,       /* K minus its mean over the sequence                                  */
    DP_SMOOTH_K_QTILE, /* and Q minus the mean of its 128 rows; the score starts at delta_s   */
    DP_SMOOTH_K_QALL   /* and Q minus its mean over the sequence                              */
} dp_smooth;

/* Which rows of Q and K share an INT8 scale [R9]. */
typedef enum {
    DP_INT8_BLOCK, /* 128 queries, 64 keys                                                    */
    DP_INT8_WARP,  /* 32 queries, 64 keys                                                     */
    DP_INT8_THREAD /* the queries of 32 alike modulo 8, the keys of 64 alike in (j mod 8)/2   */
} dp_int8_group;

/* What Direct-P changes in such a path [R7]; all zero: nothing. */
typedef struct {
    bool shiftless; /* no row maximum: z is the score in log2 units                            */
    bool overflow;  /* the scale is stored without saturation: above 448 it becomes NaN         */
    int degree;     /* LOG2 rules: 0 2^x; 1..3 Horner over map instead, negative counts as 0    */
    float map[4];
    float map_floor;   /* degree 2, 3: x below this counts as this; 0: no floor                 */
    int sampled_words; /* REPRESENTED: 0 all; n of the 4 words of 8 keys, times 4/n            */
} dp_route_direct;

/* A zero field is the default of that field, so that a row of the table names what it changes. */
typedef struct {
    const char *name;
    const char *provenance;
    dp_operand_format qk; /* Q and K, blocks along the head dimension */
    dp_operand_format v;  /* V, blocks along the keys                 */
    dp_operand_format p;
    dp_p_rule rule;
    float offset_log2;    /* added to the log2 scores before the exponential                     */
    float threshold_log2; /* the maximum is kept while the new one exceeds it by at most this     */
    float sf_bias;        /* EX2_BLOCK                                                            */
    float lift;           /* ROUNDED, SCALED, and G of LOG2 and MAX_SIXTH: factor inside the scale
                             only; 0 counts as 1                                                  */
    bool lift_row;        /* ROUNDED: lift over the largest P of the row and tile                 */
    dp_p_divide divide;
    float divisor_floor; /* SFf is at least this when it divides                                 */
    bool p_bf16;         /* P is rounded to BF16 before its scale and payload are made           */
    dp_sum_source sum;
    bool fake;  /* quantized operands are decoded, rounded to BF16, multiplied as BF16         */
    bool fresh; /* each tile accumulates alone, then joins O in f32                            */
    bool ascending; /* key tiles first to last */
    int tile; /* keys of a tile, a multiple of 32 up to DP_ROUTE_TILE; 0 counts as DP_TILE   */
    const char *polynomial; /* lanes that take the polynomial 2^x, by name; NULL: none */
    float lse_offset_log2;  /* removed from the LSE  */
    bool floor0;   /* maxima of blocks and rows of the first tile visited are at least 0          */
    bool residual; /* the keys past the last whole tile stay in BF16 and are visited first        */
    dp_smooth smooth;
    bool delta_f32; /* delta_s stays in f32; else it is rounded to BF16 */
    dp_int8_group int8;
    float v_channel; /* each feature of V is scaled to this before E4M3; 0: not */
    dp_route_direct direct;
} dp_route;

size_t dp_route_count(void);
const dp_route *dp_route_at(size_t index);
bool dp_route_find(const char *name, dp_route *route, dp_error *error);
/* Override one field from "name=value": the names of ROUTES.md. */
bool dp_route_set(dp_route *route, const char *assignment, dp_error *error);
/* Every field as "name=value", one a line. */
void dp_route_text(const dp_route *route, char *text, size_t size);
/* Fields that do not go together, for a route put together by hand. */
bool dp_route_check(const dp_route *route, dp_error *error);
/* Keys of a tile; the factor inside the scale. */
size_t dp_route_tile_keys(const dp_route *route);
float dp_route_lift(const dp_route *route);

/* What happened to P, over all visible blocks. */
typedef struct {
    uint64_t blocks, flushed;  /* blocks of P; those with a zero scale and a nonzero maximum */
    uint64_t codes, saturated; /* payload codes; those cut to the largest                    */
    uint64_t overflowed;       /* scales above 448 before they are stored                  */
    uint64_t nonfinite_rows;   /* output rows with a NaN or Inf                              */
} dp_route_stats;

/* Run a route. o: [batch][q_head][queries][dim] bf16 bits; lse [batch][q_head][queries], natural
 * log, may be NULL; stats may be NULL. sfu NULL: exact. mma NULL: defaults. */
bool dp_route_run(const dp_attention *in, const dp_route *route, const dp_mma_switches *mma,
                  const dp_sfu *sfu, int threads, uint16_t *o, float *lse, dp_route_stats *stats,
                  dp_error *error);

/* ---- single stages ------------------------------------------------------------------------- */

/* P of one row of one key tile. */
typedef struct {
    uint16_t code[DP_ROUTE_TILE]; /* one code (or bf16 word) a key        */
    uint8_t scale[DP_ROUTE_TILE / 16];
    float sum; /* what the tile adds to the row sum          */
    uint64_t flushed, saturated, overflowed;
} dp_route_p;

/* Running state of a row. Start with maximum = -Inf, sum = 0. */
typedef struct {
    float maximum; /* raw units */
    float sum;
} dp_route_row;

/* One row, one key tile: updates the state, writes P, returns the factor that O is multiplied by.
 * c: softmax scale * log2(e) in f32. first: the first tile visited. raw: dp_route_tile_keys scores,
 * hidden ones -Inf. With `fake` the codes are BF16 words of the decoded P, and no scales. */
float dp_route_tile(const dp_route *route, const dp_sfu *sfu, float c, bool first, const float *raw,
                    dp_route_row *row, dp_route_p *p);

DP_END_C

#endif
