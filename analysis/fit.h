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
    DP_FIT_GROUPS = 64, /* scores and rows fall into groups: bootstrap and cross-validation */
    DP_FIT_COEFFICIENTS = DP_MAP_COEFFICIENTS,
    DP_FIT_BINS = 96 /* of x, for drawing */
};

/* A map: y = Horner(c, max(x, floor)). floor is where the polynomial would turn up again. */
typedef struct {
    int degree; /* 1..3; 0 is the ideal map 2^x itself */
    float c[DP_FIT_COEFFICIENTS];
    float floor; /* -INFINITY for an affine map */
} dp_fit_map;

/* The map of double coefficients, rounded to f32, with its floor. */
dp_fit_map dp_fit_map_of(int degree, const double *c);
double dp_fit_value(const dp_fit_map *map, double x);
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

/* The sample that maps are judged on. */
typedef struct {
    int groups;
    size_t count; /* scores */
    double *x;
    uint8_t *ideal, *group;
    dp_fit_rows *rows; /* NULL: no outputs */
    int *unit;         /* [groups]: tensor head that a group belongs to, for cross-validation */
    int units;
    int threads;
} dp_fit_sample;

/* Blocks of 32 logits from N(0, sigma), natural units, sigmas in turn; exponent rule of the
 * kernels: floor(max + log2(4/3)) in octaves. */
bool dp_fit_sample_gaussian(dp_fit_sample *sample, const double *sigmas, size_t sigma_count,
                            size_t blocks, uint64_t seed, dp_error *error);
/* Scores and output rows of tensors: `rows` query rows a head, evenly spaced. launch: policy whose
 * schedule is kept while its map is replaced. May be called for several files. */
bool dp_fit_sample_attention(dp_fit_sample *sample, const dp_attend_inputs *inputs,
                             const dp_direct_p *launch, size_t rows, bool outputs, dp_error *error);
void dp_fit_sample_free(dp_fit_sample *sample);

/* Sums of every group; sums has sample->groups entries. Outputs only when `outputs`. */
void dp_fit_evaluate(const dp_fit_sample *sample, const dp_fit_map *map, bool outputs,
                     dp_fit_sums *sums);
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
 * the whole line; the others stay. By enumeration of every breakpoint, not by sampling. */
bool dp_fit_plateau_find(const dp_fit_sample *sample, const dp_fit_map *map, int index, bool around,
                         dp_fit_plateau *plateau, dp_error *error);

/* ---- search -------------------------------------------------------------------------------- */

typedef struct {
    double low[DP_FIT_COEFFICIENTS], high[DP_FIT_COEFFICIENTS];
    int degree;
    dp_fit_weights weights;
    size_t starts; /* scrambled Sobol points       */
    size_t locals; /* of them refined              */
    uint64_t seed;
    size_t bootstrap; /* replicates                 */
} dp_fit_options;

/* Everything evaluated. */
typedef struct {
    dp_fit_map map;
    dp_fit_sums *sums; /* [groups] */
} dp_fit_visit;

typedef struct {
    dp_fit_map best;
    dp_fit_measure measure;
    double loss;
    dp_fit_visit *visits;
    size_t visit_count, room;
    /* 2.5 and 97.5 per cent of the bootstrap */
    double low[DP_FIT_COEFFICIENTS], high[DP_FIT_COEFFICIENTS];
    double loss_low, loss_high;
    /* cross-validation: mean loss on units left out, by maps fitted to the others; and the loss of
     * the maps on what they were fitted to */
    double held_out, held_in;
    int folds;
} dp_fit_result;

bool dp_fit_search(const dp_fit_sample *sample, const dp_fit_options *options,
                   dp_fit_result *result, dp_error *error);
void dp_fit_result_free(dp_fit_result *result);

/* ---- file ---------------------------------------------------------------------------------- */

enum { DP_FIT_MAPS = 8, DP_FIT_NAME = 32 };

/* What `directp fit -o` writes and `directp plot fit` draws. */
typedef struct {
    size_t maps;
    char name[DP_FIT_MAPS][DP_FIT_NAME]; /* "fitted" first, then "ideal", then published pairs */
    dp_fit_map map[DP_FIT_MAPS];
    double kept[DP_FIT_MAPS][8]; /* share of the scores of each ideal code that keep it */
    double share[8];             /* of all scores, by ideal code                        */
    char source[256], objective[64];
    size_t grid; /* landscape [grid][grid] over b (rows) and a; 0: none */
    double a_low, a_high, b_low, b_high;
    double *loss, *match, *mass;
    double density[DP_FIT_BINS]; /* share of the scores by x, bins of 1/8 from -8 */
} dp_fit_study;

bool dp_fit_study_save(const dp_fit_study *study, const char *path, const char *const *inputs,
                       size_t input_count, dp_error *error);
bool dp_fit_study_load(dp_fit_study *study, const char *path, dp_error *error);
void dp_fit_study_free(dp_fit_study *study);
/* Landscape, curves and shares of the maps already in the study. */
bool dp_fit_study_fill(dp_fit_study *study, const dp_fit_sample *sample,
                       const dp_fit_options *options, dp_error *error);

/* Point `index` of the scrambled Sobol sequence (Joe and Kuo 2008 directions; digital shift). */
void dp_fit_sobol(uint64_t seed, uint32_t index, int dimensions, double *point);

#endif
