/* SPDX-License-Identifier: MIT
 *
 * Running attention operators on Q, K and V: inputs, error measures, and the dump of every stage.
 */
#ifndef DP_ANALYSIS_ATTEND_H
#define DP_ANALYSIS_ATTEND_H

#include "analysis/h5.h"
#include "analysis/progress.h"
#include "analysis/tensors.h"
#include "ref/forward/forward.h"
#include "ref/forward/route.h"

/* ---- inputs: what the operator is given, in bf16 ------------------------------------------ */

typedef struct {
    dp_attention in; /* points into the arrays below */
    uint16_t *q, *k, *v;
    int32_t *kv_of_q;
    char source[256]; /* "random seed 20260814, 152 SMs", or the file */
    bool smooth_k;
} dp_attend_inputs;

typedef struct {
    bool smooth_k;   /* subtract each head's mean key, per feature, before rounding to bf16 */
    double q_factor; /* Q is multiplied by this; 1 */
    bool causal, no_causal; /* override what the file says */
    bool kv_interleave;     /* query head h reads key head h mod kv_heads, not h * kv / q heads */
    bool kv_block;          /* h * kv_heads / q_heads, whatever the file says */
} dp_attend_transform;

/* From a file's tensors (values not exact in bf16 are rounded to nearest even). */
bool dp_attend_from_tensors(const dp_tensors *tensors, const char *source,
                            const dp_attend_transform *transform, dp_attend_inputs *inputs,
                            dp_error *error);
/* N(0,1) as torch.randn draws [batch, seq, heads, dim] on a CUDA device with `sms` multiprocessors:
 * Q, then K and V with kv_heads. */
bool dp_attend_random(uint64_t seed, int sms, size_t batch, size_t seq, size_t heads,
                      size_t kv_heads, size_t dim, int threads,
                      const dp_attend_transform *transform, dp_attend_inputs *inputs,
                      dp_error *error);
void dp_attend_inputs_free(dp_attend_inputs *inputs);
/* Largest |q.k| * softmax scale of one query head over the keys it sees, in double precision. */
double dp_attend_largest_logit(const dp_attention *in, size_t batch, size_t head);

/* ---- error measures ------------------------------------------------------------------------ */

typedef struct {
    double cosine, rel_l2, rmse;
    double slope;            /* least-squares factor of x on reference: what cosine does not see */
    uint64_t nonfinite_rows; /* rows of x with a NaN or an infinity; left out of the others      */
    uint64_t rows;
} dp_attend_metrics;

/* Compare bf16 outputs of `rows` rows of `dim` values. x rows are x_stride values apart. */
dp_attend_metrics dp_attend_compare(const uint16_t *x, const uint16_t *reference, size_t rows,
                                    size_t dim);

/* ---- one run ------------------------------------------------------------------------------- */

/* Stages a dump may hold, in the order of the operator. */
enum {
    DP_STAGE_INPUTS = 1,
    DP_STAGE_QUANTIZE = 2,
    DP_STAGE_SCORE = 4,
    DP_STAGE_REFERENCE = 8,
    DP_STAGE_SCALE = 16,
    DP_STAGE_CODE = 32,
    DP_STAGE_DENOMINATOR = 64,
    DP_STAGE_ACCUMULATE = 128,
    DP_STAGE_OUTPUT = 256,
    DP_STAGE_ALL = 511
};
/* "all", or names separated by commas. */
bool dp_stages_parse(const char *text, unsigned *stages, dp_error *error);

/* Who computes the stages. */
typedef struct {
    const char *device; /* its name, for the dump */
    bool (*quantize)(void *context, const dp_attention *in, const dp_direct_p *launch, int threads,
                     dp_operands *out, dp_error *error);
    bool (*run)(void *context, const dp_forward_job *job, dp_error *error);
    void *context;
} dp_attend_engine;

typedef struct {
    const dp_attend_inputs *inputs;
    const dp_direct_p *launch;
    const dp_mma_switches *mma;
    int threads;
    unsigned stages;                /* what writer gets */
    dp_h5_writer *writer;           /* NULL: no dump */
    dp_progress *progress;          /* NULL, or advanced by one a strip */
    const dp_attend_engine *engine; /* NULL: the oracle */
} dp_attend_run_options;

/* Direct-P on the inputs. o: [batch][q_head][queries][dim] bf16 bits, lse [batch][q_head][queries].
 */
bool dp_attend_run(const dp_attend_run_options *options, uint16_t *o, float *lse, dp_error *error);
/* Number of strips a run has, for its progress bar. */
size_t dp_attend_strips(const dp_attention *in);

#endif
