/* SPDX-License-Identifier: MIT
 *
 * The search for the best map of a sample, and how far its result can be trusted.
 */
#ifndef DP_ANALYSIS_FIT_SEARCH_H
#define DP_ANALYSIS_FIT_SEARCH_H

#include "analysis/fit_joint.h"

enum {
    DP_FIT_REPLICATES = 40, /* fewer do not reach the ends of a 95 per cent interval */
    DP_FIT_DRAWN = 8        /* groups, of fewer of which there is nothing to draw: no interval */
};

typedef struct {
    double low[DP_FIT_COEFFICIENTS], high[DP_FIT_COEFFICIENTS];
    int degree;
    dp_fit_weights weights;
    size_t starts; /* scrambled Sobol points       */
    size_t locals; /* of them refined              */
    uint64_t seed;
    size_t bootstrap; /* replicates: 0, or DP_FIT_REPLICATES and more */
} dp_fit_options;

/* Everything evaluated. */
typedef struct {
    dp_fit_map map;
    dp_fit_sums *sums; /* [groups] */
    int owner;         /* the fold that it was looked for in; -1 a start, -2 the whole sample */
} dp_fit_visit;

/* The unit that a fold leaves out: what maps fitted to the others do on it. */
typedef struct {
    dp_fit_map map;
    double held_in, held_out; /* loss on the others, and on the unit */
} dp_fit_fold;

typedef struct {
    dp_fit_map best;
    dp_fit_measure measure;
    double loss;
    bool joint_searched; /* codes alone and an affine map: `joint` holds the proof */
    dp_fit_joint joint;
    dp_fit_visit *visits;
    size_t visit_count, room;
    /* 2.5 and 97.5 per cent of the maps fitted to the bootstrap's samples, and of their loss */
    double low[DP_FIT_COEFFICIENTS], high[DP_FIT_COEFFICIENTS];
    double loss_low, loss_high;
    size_t replicates, distinct; /* maps among them that differ */
    int folds;
    dp_fit_fold *fold;        /* [folds] */
    double held_in, held_out; /* means over the folds */
} dp_fit_result;

bool dp_fit_search(const dp_fit_sample *sample, const dp_fit_options *options,
                   dp_fit_result *result, dp_error *error);
void dp_fit_result_free(dp_fit_result *result);

/* Whether only the share of equal codes counts. */
bool dp_fit_codes_alone(dp_fit_weights weights);

/* The groups that hold scores, [groups]; their number. */
int dp_fit_filled(const dp_fit_sample *sample, uint16_t *filled);
/* Multiplicity of the groups in replicate `index` of the bootstrap: as many draws as groups hold
 * scores. */
void dp_fit_resample(uint64_t seed, size_t index, const uint16_t *filled, int count, int groups,
                     uint32_t *weight);

/* 2.5 and 97.5 per cent of the loss of one fixed map over the replicates, and the share of them in
 * which it loses to `other` (NULL: none). */
typedef struct {
    double low, high, beaten;
} dp_fit_spread;
bool dp_fit_spread_of(const dp_fit_sample *sample, const dp_fit_options *options,
                      const dp_fit_sums *sums, const dp_fit_sums *other, dp_fit_spread *spread,
                      dp_error *error);

/* ---- for the files of this part ------------------------------------------------------------ */

typedef struct {
    const dp_fit_sample *sample;
    const dp_fit_options *options;
    dp_fit_result *result;
    const uint32_t *weight; /* of the groups that are fitted to; NULL: all alike */
    int owner;
    bool failed;
} dp_fit_task;

/* Evaluate and remember; the loss on the task's groups. */
double dp_fit_visit_map(dp_fit_task *task, const double *c);
/* The visit of least loss under group weights among the starts and the task's own. */
size_t dp_fit_least(const dp_fit_task *task, double *loss);
/* Refine the best `locals` starts for the task's groups, and prove where that is possible. */
bool dp_fit_refine_best(dp_fit_task *task, size_t locals, dp_fit_joint *joint, dp_error *error);

bool dp_fit_bootstrap(dp_fit_task *task, dp_error *error);
bool dp_fit_cross_validate(dp_fit_task *task, dp_error *error);

/* A loss over `n` coefficients, lowered from c inside the box. */
typedef double dp_fit_loss_function(void *context, const double *c);
bool dp_fit_refine(int n, const double *low, const double *high, double *c,
                   dp_fit_loss_function *loss, void *context);
/* "NLopt SBPLX", or what replaces it in a build without NLopt. */
const char *dp_fit_refiner(void);

/* Point `index` of the scrambled Sobol sequence (Joe and Kuo 2008 directions; digital shift). */
void dp_fit_sobol(uint64_t seed, uint32_t index, int dimensions, double *point);

#endif
