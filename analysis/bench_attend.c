/* SPDX-License-Identifier: MIT
 *
 * `directp bench attend`: the bit-exact forward (S = 4096, one head, D = 128, policy fast) against
 * FP32 attention of the same shape through OpenBLAS (sgemm, exponential, sgemm) in the same run on
 * the same threads, its stages, and time and memory from S = 1024 to 16384.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "analysis/attend.h"
#include "analysis/benches.h"
#include "analysis/blas.h"
#include "analysis/verb.h"
#include "formats/bf16.h"
#include "formats/parallel.h"
#include "ref/arith/gemm.h"

enum { DIM = 128, COMPARED = 4096, LEAST = 1024, MOST = 16384, STRIP = 128 };
#define GOAL 4.0

/* What is measured at one length. */
typedef struct {
    size_t seq;
    int threads;
    dp_attend_inputs inputs;
    dp_direct_p launch;
    dp_operands operands;
    dp_blas blas;
    float *q, *k, *v, *out; /* f32 inputs of the rival */
    float *scratch;         /* STRIP x seq a thread    */
    uint16_t *o;
    float *lse;
    dp_error error;
} shape;

/* ---- the rival ------------------------------------------------------------------------------- */

static void blas_strips(void *context, size_t first, size_t last, int thread)
{
    shape *s = context;
    const int keys = (int)s->seq;
    const float scale = (float)dp_attention_scale(&s->inputs.in);
    float *p = s->scratch + (size_t)thread * STRIP * s->seq;
    for (size_t strip = first; strip < last; strip++) {
        const size_t row = strip * STRIP;
        s->blas.sgemm(DP_BLAS_ROW_MAJOR, DP_BLAS_NO_TRANS, DP_BLAS_TRANS, STRIP, keys, DIM, scale,
                      s->q + row * DIM, DIM, s->k, DIM, 0.0f, p, keys);
        for (size_t r = 0; r < STRIP; r++) {
            float *x = p + r * s->seq;
            float largest = x[0];
            float sum = 0.0f;
            for (size_t j = 1; j < s->seq; j++) {
                largest = x[j] > largest ? x[j] : largest;
            }
            for (size_t j = 0; j < s->seq; j++) {
                x[j] = expf(x[j] - largest);
                sum += x[j];
            }
            const float inverse = 1.0f / sum;
            for (size_t j = 0; j < s->seq; j++) {
                x[j] *= inverse;
            }
        }
        s->blas.sgemm(DP_BLAS_ROW_MAJOR, DP_BLAS_NO_TRANS, DP_BLAS_NO_TRANS, STRIP, DIM, keys, 1.0f,
                      p, keys, s->v, DIM, 0.0f, s->out + row * DIM, DIM);
    }
}

static void run_blas(void *context)
{
    shape *s = context;
    if (s->blas.sgemm != NULL) {
        dp_parallel_for(s->threads, s->seq / STRIP, 1, blas_strips, s);
    }
}

/* ---- the oracle and its stages ----------------------------------------------------------------
 */

static void run_oracle(void *context)
{
    shape *s = context;
    const dp_attend_run_options options = {
        .inputs = &s->inputs, .launch = &s->launch, .threads = s->threads};
    (void)dp_attend_run(&options, s->o, s->lse, &s->error);
}

static void run_quantize(void *context)
{
    shape *s = context;
    dp_operands operands;
    if (dp_forward_quantize(&s->inputs.in, &s->launch, s->threads, &operands, &s->error)) {
        dp_operands_free(&operands);
    }
}

/* One strip's stages over and over, as often as the forward visits a tile. */
typedef struct {
    const shape *of;
    dp_mma_matrix a, b;
    float raw[STRIP * STRIP];
} tile_job;

static void classify_tiles(void *context, size_t first, size_t last, int thread)
{
    const tile_job *jobs = context;
    const tile_job *job = &jobs[thread];
    dp_p_row p;
    uint32_t used = 0;
    for (size_t i = first; i < last; i++) {
        for (size_t row = 0; row < STRIP; row++) {
            dp_classify_row(&job->of->launch, (int)(i & 1u), 0.0f, job->raw + row * STRIP, &p);
            used += p.payload[0];
        }
    }
    (void)used;
}

static void multiply_tiles(void *context, size_t first, size_t last, int thread)
{
    tile_job *job = (tile_job *)context + thread;
    dp_error error;
    for (size_t i = first; i < last; i++) {
        (void)dp_mma_multiply(&job->a, &job->b, NULL, 0, job->raw, STRIP, NULL, &error);
    }
}

static void prepare_tiles(void *context, size_t first, size_t last, int thread)
{
    tile_job *job = (tile_job *)context + thread;
    const dp_operands *x = &job->of->operands;
    const dp_mma_source source = {.payload = x->v_payload,
                                  .stride = x->key_rows / 2,
                                  .scale = x->v_scale,
                                  .scale_blocks = x->key_rows / DP_BLOCK};
    const dp_mma_desc *pv =
        dp_mma_find("tcgen05.mma.kind::mxf4nvf4.block32.ue8m0", "e2m1", "e2m1", "f32", "sm_100a");
    dp_error error;
    for (size_t i = first; i < last; i++) {
        (void)dp_mma_prepare(&job->a, pv, NULL, DP_MMA_SIDE_A, STRIP, STRIP, &source, &error);
    }
}

typedef struct {
    shape *of;
    tile_job *jobs;
    dp_parallel_body *body;
} stage_job;

static void run_stage(void *context)
{
    const stage_job *job = context;
    const size_t tiles = job->of->seq / STRIP;
    dp_parallel_for(job->of->threads, tiles * tiles, 4, job->body, job->jobs);
}

static bool prepare_jobs(shape *s, tile_job *jobs)
{
    const dp_operands *x = &s->operands;
    const dp_mma_desc *qk =
        dp_mma_find("tcgen05.mma.kind::mxf4nvf4.block16.ue4m3", "e2m1", "e2m1", "f32", "sm_100a");
    const dp_mma_source q = {.payload = x->q_payload, .scale = x->q_scale};
    const dp_mma_source k = {.payload = x->k_payload, .scale = x->k_scale};
    bool good = true;
    for (int t = 0; good && t < s->threads; t++) {
        jobs[t].of = s;
        good =
            dp_mma_prepare(&jobs[t].a, qk, NULL, DP_MMA_SIDE_A, STRIP, DIM, &q, &s->error) &&
            dp_mma_prepare(&jobs[t].b, qk, NULL, DP_MMA_SIDE_B, STRIP, DIM, &k, &s->error) &&
            dp_mma_multiply(&jobs[t].a, &jobs[t].b, NULL, 0, jobs[t].raw, STRIP, NULL, &s->error);
    }
    return good;
}

/* ---- set up -----------------------------------------------------------------------------------
 */

static float *widen(const uint16_t *x, size_t count)
{
    float *out = malloc(count * sizeof *out);
    for (size_t i = 0; out != NULL && i < count; i++) {
        const dp_bf16 value = {x[i]};
        out[i] = dp_bf16_to_f32(value);
    }
    return out;
}

static bool make_shape(shape *s, size_t seq, int threads, dp_error *error)
{
    memset(s, 0, sizeof *s);
    s->seq = seq;
    s->threads = threads;
    s->blas = dp_blas_open();
    dp_forward_policy policy;
    const dp_switches switches = dp_switches_default();
    const dp_attend_transform plain = {.q_factor = 1.0};
    if (!dp_forward_policy_find("fast", &policy, error) ||
        !dp_attend_random(1, 152, 1, seq, 1, 1, DIM, threads, &plain, &s->inputs, error)) {
        return false;
    }
    s->launch =
        dp_direct_p_make(&policy, DP_EPOCH_S, &switches, dp_attention_scale(&s->inputs.in), NULL);
    s->q = widen(s->inputs.q, seq * DIM);
    s->k = widen(s->inputs.k, seq * DIM);
    s->v = widen(s->inputs.v, seq * DIM);
    s->out = malloc(seq * DIM * sizeof(float));
    s->scratch = malloc((size_t)threads * STRIP * seq * sizeof(float));
    s->o = malloc(seq * DIM * sizeof(uint16_t));
    s->lse = malloc(seq * sizeof(float));
    return (s->q != NULL && s->k != NULL && s->v != NULL && s->out != NULL && s->scratch != NULL &&
            s->o != NULL && s->lse != NULL &&
            dp_forward_quantize(&s->inputs.in, &s->launch, threads, &s->operands, error)) ||
           dp_fail(error, "bench attend: memory ran short at S = %zu: free some", seq);
}

static void free_shape(shape *s)
{
    dp_attend_inputs_free(&s->inputs);
    dp_operands_free(&s->operands);
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->out);
    free(s->scratch);
    free(s->o);
    free(s->lse);
}

/* The most memory this process has held so far, 10^6 bytes: lengths are run in ascending order. */
static double peak_megabytes(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024e-6;
}

/* ---- report -----------------------------------------------------------------------------------
 */

static const dp_column COLUMNS[] = {{"what", NULL, -1},
                                    {"seq", NULL, -1},
                                    {"threads", NULL, -1},
                                    {"median_s", NULL, 4},
                                    {"of_rival", "of OpenBLAS", 2},
                                    {"goal", NULL, 1},
                                    {"ns_per_score", NULL, 3},
                                    {"peak_megabytes", "peak MB", 1}};

static void add(dp_report *table, const char *what, const shape *s, double seconds, double rival,
                double goal, double memory)
{
    dp_report_text(table, what);
    dp_report_i64(table, (int64_t)s->seq);
    dp_report_i64(table, s->threads);
    dp_report_f64(table, seconds);
    if (rival > 0.0) {
        dp_report_f64(table, seconds / rival);
    } else {
        dp_report_blank(table);
    }
    if (goal > 0.0) {
        dp_report_f64(table, goal);
    } else {
        dp_report_blank(table);
    }
    dp_report_f64(table, 1e9 * seconds / ((double)s->seq * (double)s->seq));
    if (memory > 0.0) {
        dp_report_f64(table, memory);
    } else {
        dp_report_blank(table);
    }
}

enum { BLAS, ORACLE, QUANTIZE, MULTIPLY, PREPARE, CLASSIFY, ITEMS };

static bool compare(const dp_bench_options *options, int threads, dp_report *table, dp_error *error)
{
    static const char *const names[ITEMS] = {
        "OpenBLAS FP32 attention",    "oracle, policy fast",      "  quantize Q, K, V",
        "  one product of each tile", "  P of each tile decoded", "  codes and sums of each tile"};
    shape s;
    tile_job *jobs = calloc((size_t)threads, sizeof *jobs);
    bool good = make_shape(&s, COMPARED, threads, error) && jobs != NULL && prepare_jobs(&s, jobs);
    stage_job multiply = {&s, jobs, multiply_tiles};
    stage_job prepare = {&s, jobs, prepare_tiles};
    stage_job classify = {&s, jobs, classify_tiles};
    dp_bench_item items[ITEMS] = {
        {.run = run_blas, .context = &s},        {.run = run_oracle, .context = &s},
        {.run = run_quantize, .context = &s},    {.run = run_stage, .context = &multiply},
        {.run = run_stage, .context = &prepare}, {.run = run_stage, .context = &classify}};
    /* Preparing leaves another operand in jobs[].a: products run after it with the same cost. */
    good = good && dp_bench_measure(items, PREPARE, options, error) &&
           dp_bench_measure(items + PREPARE, 2, options, error);
    const double rival = good && s.blas.sgemm != NULL ? items[BLAS].median_s : 0.0;
    for (int i = s.blas.sgemm != NULL ? 0 : 1; good && i < ITEMS; i++) {
        add(table, names[i], &s, items[i].median_s, i == BLAS ? 0.0 : rival,
            i == ORACLE && rival > 0.0 ? GOAL : 0.0, 0.0);
    }
    for (int t = 0; jobs != NULL && t < threads; t++) {
        dp_mma_matrix_free(&jobs[t].a);
        dp_mma_matrix_free(&jobs[t].b);
    }
    free(jobs);
    free_shape(&s);
    return good;
}

static bool scale_up(const dp_bench_options *options, int threads, dp_report *table,
                     dp_error *error)
{
    bool good = true;
    const dp_bench_options once = {.threads = options->threads, .repeats = 1};
    for (size_t seq = LEAST; good && seq <= MOST; seq *= 2) {
        shape s;
        good = make_shape(&s, seq, threads, error);
        dp_bench_item item = {.run = run_oracle, .context = &s};
        good = good && dp_bench_measure(&item, 1, &once, error);
        if (good) {
            add(table, "oracle, policy fast", &s, item.median_s, 0.0, 0.0, peak_megabytes());
        }
        free_shape(&s);
    }
    return good;
}

int dp_bench_attend(const dp_bench_options *options)
{
    dp_error error = {""};
    const int threads = dp_parallel_threads(options->threads);
    dp_report *table =
        dp_report_new("bit-exact forward against FP32 attention, one head, D = 128; a score is one "
                      "query and key",
                      COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    bool good = table != NULL || dp_fail(&error, "bench attend: memory ran short: free some");
    good = good && scale_up(options, threads, table, &error) &&
           compare(options, threads, table, &error) &&
           dp_report_print(table, options->style, stdout, &error);
    dp_report_free(table);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
