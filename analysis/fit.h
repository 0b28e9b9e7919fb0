/* SPDX-License-Identifier: MIT
 *
 * Fitting the map from a score to the value that becomes an E2M1 code. A candidate is
 * y = c0 + c1 x + ..., with x the score in octaves above a code of value 1: the ideal map is 2^x.
 * FIT.md states what each objective means and what the published constants turn out to optimise.
 */
#ifndef DP_ANALYSIS_FIT_H
#define DP_ANALYSIS_FIT_H

#include "analysis/attend.h"

enum {
    /* Scores and rows fall into groups, what the bootstrap draws; groups make up units, what the
     * cross-validation leaves out: a tensor's head, or a quarter of the drawn blocks. */
    DP_FIT_UNIT_GROUPS = 16,
    DP_FIT_UNITS = 256,
    DP_FIT_GROUPS = DP_FIT_UNIT_GROUPS * DP_FIT_UNITS, /* at most */
    DP_FIT_COEFFICIENTS = DP_MAP_COEFFICIENTS,
    DP_FIT_BINS = 96 /* of x, for drawing */
};

/* A map: y = Horner(c, max(x, floor)). floor is where the polynomial would turn up again. */
typedef struct {
    int degree; /* 1..3; 0 is the ideal map 2^x itself */
    float c[DP_FIT_COEFFICIENTS];
    float floor; /* -INFINITY for an affine map */
} dp_fit_map;

/* The map of double coefficients, rounded to f32, with the floor of the rounded ones. */
dp_fit_map dp_fit_map_of(int degree, const double *c);
/* Exact next to every midpoint for an affine map and an x of a sample, else Horner in binary64. */
double dp_fit_value(const dp_fit_map *map, double x);
/* Whether a larger score never gets a smaller value, up to the largest x there is, log2 9. */
bool dp_fit_monotone(const dp_fit_map *map);
/* Code of a value; ties to even code as cvt.rn.relu.satfinite.e2m1x2 (PTX ISA 9.1). */
int dp_fit_code(double y);

/* What a map did to one group. All measures are ratios of these sums. */
typedef struct {
    double scores, matched;    /* scores; those whose code is that of 2^x          */
    double mass, ideal_mass;   /* sum of the code values, of this map and of 2^x   */
    double error2, reference2; /* of outputs: |o - r|^2 and |r|^2                  */
} dp_fit_sums;

typedef struct {
    double match;  /* share of codes equal to those of 2^x                 */
    double mass;   /* represented mass relative to that of 2^x             */
    double output; /* relative L2 of the output against BF16; NaN: no rows */
} dp_fit_measure;

/* Objective, to be minimised: match (1 - match) + mass |mass - 1| + output relL2. */
typedef struct {
    double match, mass, output;
} dp_fit_weights;

dp_fit_measure dp_fit_measure_of(const dp_fit_sums *sums, const uint32_t *weight, int groups);
double dp_fit_loss(dp_fit_measure m, dp_fit_weights w);

typedef struct dp_fit_rows dp_fit_rows;

typedef struct {
    char text[56]; /* "FILE h3" */
} dp_fit_unit;

/* The sample that maps are judged on. Group g belongs to unit g / DP_FIT_UNIT_GROUPS. */
typedef struct {
    int groups, units;
    size_t count;   /* scores */
    double *x;      /* multiples of 2^-22, not below -64 */
    uint8_t *ideal; /* code of 2^x */
    uint16_t *group;
    dp_fit_rows *rows; /* NULL: no outputs */
    dp_fit_unit *unit; /* [units] names */
    int threads;
} dp_fit_sample;

/* Blocks of 32 logits from N(0, sigma), natural units, sigmas in turn; exponent rule of the
 * kernels: floor(max + log2(4/3)) in octaves. */
bool dp_fit_sample_gaussian(dp_fit_sample *sample, const double *sigmas, size_t sigma_count,
                            size_t blocks, uint64_t seed, dp_error *error);
/* Scores and output rows of tensors: `rows` query rows a head, evenly spaced. launch: policy whose
 * schedule is kept while its map is replaced. name: of the tensors, for the units. May be called
 * for several files; heads behind the sixteenth of a file share units with the first. */
bool dp_fit_sample_attention(dp_fit_sample *sample, const dp_attend_inputs *inputs,
                             const dp_direct_p *launch, size_t rows, bool outputs, const char *name,
                             dp_error *error);
void dp_fit_sample_free(dp_fit_sample *sample);

/* Sums of every group; sums has sample->groups entries. parts: which of them; the others are 0, and
 * measures made of them NaN. */
enum { DP_FIT_SCORES = 1, DP_FIT_OUTPUTS = 2, DP_FIT_ALL = 3 };
void dp_fit_evaluate(const dp_fit_sample *sample, const dp_fit_map *map, int parts,
                     dp_fit_sums *sums);
/* The parts that an objective needs. */
int dp_fit_parts(dp_fit_weights weights);
/* The parts of it that belong to rows. */
void dp_fit_rows_evaluate(const dp_fit_rows *rows, const dp_fit_map *map, int threads,
                          dp_fit_sums *sums);
void dp_fit_rows_free(dp_fit_rows *rows);

/* The policy's launch with another map. */
dp_direct_p dp_fit_launch(const dp_direct_p *launch, const dp_fit_map *map);

/* The x at which the value passes the midpoint above code k, for k = 0..6. */
void dp_fit_boundaries(const dp_fit_map *map, double x[7]);

/* ---- plateau ------------------------------------------------------------------------------- */

/* An open interval of one coefficient in which no code of the sample changes its match. */
typedef struct {
    double low, high;
    double matched;      /* scores that match inside                                  */
    double below, above; /* scores that match just outside                           */
    double best;         /* largest count anywhere on the line: matched when it is the optimum */
    size_t breakpoints;
} dp_fit_plateau;

/* The interval of coefficient `index` around the map's own value (around: true) or the best one on
 * the whole line; the others stay. By enumeration of every breakpoint, not by sampling. weight:
 * multiplicity of each group, NULL for once each. */
bool dp_fit_plateau_find(const dp_fit_sample *sample, const uint32_t *weight, const dp_fit_map *map,
                         int index, bool around, dp_fit_plateau *plateau, dp_error *error);

#endif
