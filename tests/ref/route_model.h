/* SPDX-License-Identifier: MIT
 *
 * The standard paths a second time, in binary64 and from their descriptions: one formula for all
 * block scales, rounding by search among the values of a format. Shares nothing with ref/forward.
 *
 * P = 2^offset exp(s - m); a block's scale before rounding is max(P) / top (6, or 448), times G
 * inside the stored scale alone; the payload is P over the unrounded scale, or over the stored one.
 */
#ifndef DP_TESTS_ROUTE_MODEL_H
#define DP_TESTS_ROUTE_MODEL_H

#include "formats/base.h"

enum { MODEL_TILE = 256 };

typedef struct {
    const char *name;
    /* Formats: b BF16, 8 E4M3, x MXFP8, n NVFP4, m MXFP4 (amplitudes), i INT8, s E4M3 steps of
     * 1/448 decoded to BF16. */
    char qk, pv;
    double offset, kept; /* octaves added to P; octaves of them left in the LSE */
    double threshold;
    double g;
    bool rounded; /* payload over the stored scale */
    bool by_row;  /* g over the largest P of the row and tile */
    bool pre;     /* P to BF16 first */
    char sum;     /* u unrounded, b BF16, r represented */
    bool fake;    /* what is decoded is rounded to BF16 before the products */
    int tile;
    bool ascending;
    bool floor0, residual;
    char smooth;      /* 0, k, t: K, and Q by tiles of 128 */
    double v_channel; /* 0: not */
    bool shiftless, overflow;
    int degree;
    double map[4], map_floor;
    int sampled;
    bool amplitude; /* MXFP8 of P with the nearest amplitude, as MXFP4 has it */
    double loose;   /* relative error of P: the polynomial 2^x, or 0 */
} model_row;

const model_row *model_rows(int *count);

/* One row of one tile. */
typedef struct {
    double weight[MODEL_TILE]; /* what multiplies V of a key */
    double code[MODEL_TILE];   /* the payload, decoded  */
    double scale[MODEL_TILE / 16];
    bool near_code[MODEL_TILE], near_scale[MODEL_TILE / 16]; /* a hair decides the rounding */
} model_p;

typedef struct {
    double maximum, sum; /* start with -Inf, 0 */
} model_state;

/* c: octaves a unit of the score. Returns the factor of what was accumulated before. */
double model_tile(const model_row *row, double c, bool first, const double *raw, int n,
                  model_state *state, model_p *p);

/* Whole attention of one head: o [queries][dim], lse [queries]. */
void model_attention(const model_row *row, int queries, int keys, int dim, const double *q,
                     const double *k, const double *v, double *o, double *lse);

double model_bf16(double x);
double model_e4m3(double x); /* saturates at 448 */
double model_e2m1(double x); /* saturates at 6 */

#endif
