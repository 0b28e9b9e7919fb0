/* SPDX-License-Identifier: MIT
 *
 * `directp bench arith`: the matrix-unit models on one core, 128x128x128, counted as 2mnk, against
 * OpenBLAS sgemm of the same size on one core in the same run. OpenBLAS is opened when it is there
 * and never required; linking it would start its threads in every run of the command.
 */
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "analysis/benches.h"
#include "analysis/blas.h"
#include "analysis/verb.h"
#include "ref/arith/gemm.h"

enum { SIZE = 128, MODELS = 8 };

/* A model and what bounds its fast path: the vector instructions of 16 lanes for 16 columns and one
 * instruction of k products, counted by hand in gemm_avx512.c. The rate at which this core issues
 * such instructions is measured in the same run, so that
 *     bound = 2 * 16 * k / operations * issue rate.
 *   grouped: 16 dot products, 4 biases, 4 * (2 converts + 2 multiplies + 2 fused multiply-adds),
 *            2 truncations, 8 to see that no bit is lost
 *   fused:   k/2 * 2 + 4 for the largest exponent, k * (2 multiplies + convert + add), 36 around */
typedef struct {
    const char *name, *instruction, *type, *arch;
    int k, operations;
    double goal; /* of sgemm; 0 where none is set */
} model;

static const model models[MODELS] = {
    {"NVFP4", "tcgen05.mma.kind::mxf4nvf4.block16.ue4m3", "e2m1", "sm_100a", 64, 54, 1.0 / 15},
    {"MXFP4", "tcgen05.mma.kind::mxf4.block32.ue8m0", "e2m1", "sm_100a", 64, 54, 1.0 / 15},
    {"MXFP8", "tcgen05.mma.kind::mxf8f6f4.block32.ue8m0", "e4m3", "sm_100a", 32, 200, 1.0 / 60},
    {"FP8 Blackwell", "tcgen05.mma.kind::f8f6f4", "e4m3", "sm_100a", 32, 200, 1.0 / 60},
    {"FP8 Hopper", "wgmma", "e4m3", "sm_90a", 32, 200, 1.0 / 60},
    {"FP8 E5M2 Hopper", "wgmma", "e5m2", "sm_90a", 32, 200, 1.0 / 60},
    {"bf16", "tcgen05.mma.kind::f16", "bf16", "sm_100a", 16, 120, 0},
    {"f16", "tcgen05.mma.kind::f16", "f16", "sm_100a", 16, 120, 0},
};

typedef struct {
    const dp_mma_desc *desc;
    dp_mma_source source_a, source_b;
    dp_mma_matrix a, b;
    dp_mma_run run;
    bool prepare; /* decode both operands in every call */
    float *d;
    dp_error error;
} model_job;

typedef struct {
    dp_sgemm_function *sgemm;
    float *a, *b, *d;
} blas_job;

static void run_sgemm(void *context)
{
    const blas_job *job = context;
    job->sgemm(DP_BLAS_ROW_MAJOR, DP_BLAS_NO_TRANS, DP_BLAS_TRANS, SIZE, SIZE, SIZE, 1.0f, job->a,
               SIZE, job->b, SIZE, 0.0f, job->d, SIZE);
}

static bool prepare(model_job *job)
{
    return dp_mma_prepare(&job->a, job->desc, NULL, DP_MMA_SIDE_A, SIZE, SIZE, &job->source_a,
                          &job->error) &&
           dp_mma_prepare(&job->b, job->desc, NULL, DP_MMA_SIDE_B, SIZE, SIZE, &job->source_b,
                          &job->error);
}

static void run_model(void *context)
{
    model_job *job = context;
    if (!job->prepare || prepare(job)) {
        (void)dp_mma_multiply(&job->a, &job->b, NULL, 0, job->d, SIZE, &job->run, &job->error);
    }
}

/* Independent vector instructions of 512 bits, a third of them multiply-adds and the rest integer:
 * what a core issues at best when no unit is short. */
enum { ISSUE_ROUNDS = 4096, ISSUE_OPERATIONS = ISSUE_ROUNDS * 8 * 3 };

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void run_issue(void *context)
{
    __m512 x[8];
    __m512i y[8];
    const __m512 half = _mm512_set1_ps(0.5f);
    const __m512i one = _mm512_set1_epi32(1);
    const float *in = context; /* from memory, so that the compiler cannot foresee the sums */
    for (int i = 0; i < 8; i++) {
        x[i] = _mm512_loadu_ps(in + 16 * i);
        y[i] = _mm512_castps_si512(x[i]);
    }
    for (int round = 0; round < ISSUE_ROUNDS; round++) {
        for (int i = 0; i < 8; i++) {
            x[i] = _mm512_fmadd_ps(x[i], half, half);
            y[i] = _mm512_add_epi32(_mm512_xor_si512(y[i], one), one);
        }
    }
    float *out = context;
    for (int i = 0; i < 8; i++) {
        x[0] = _mm512_add_ps(x[0], _mm512_add_ps(x[i], _mm512_cvtepi32_ps(y[i])));
    }
    _mm512_storeu_ps(out, x[0]);
}
#else
static void run_issue(void *context)
{
    (void)context;
}
#endif

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Codes as a quantiser leaves them: every code of E2M1; FP8 and 16-bit numbers over some eight
 * octaves, so that alignment has work to do. */
static void fill_payload(const char *type, uint8_t *payload, uint32_t seed)
{
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        const uint32_t r = next_random(&seed);
        const uint32_t sign = r & 1u;
        if (strcmp(type, "e2m1") == 0) {
            payload[i] = (uint8_t)r;
        } else if (strcmp(type, "e4m3") == 0) {
            payload[i] = (uint8_t)(sign << 7 | (0x18 + (r >> 1) % 0x40));
        } else if (strcmp(type, "e5m2") == 0) {
            payload[i] = (uint8_t)(sign << 7 | (0x2C + (r >> 1) % 0x20));
        } else {
            const uint32_t one = strcmp(type, "bf16") == 0 ? 0x3F80 : 0x3C00;
            const uint16_t word = (uint16_t)(sign << 15 | (one - 0x400 + (r >> 1) % 0x800));
            memcpy(payload + 2 * i, &word, sizeof word);
        }
    }
}

static bool set_up(model_job *job, const model *what, uint8_t *memory, dp_error *error)
{
    job->desc = dp_mma_find(what->instruction, what->type, what->type, "f32", what->arch);
    if (job->desc == NULL) {
        return dp_fail(error, "bench arith: %s is not in the table: report this", what->name);
    }
    uint8_t *const payload_a = memory;
    uint8_t *const payload_b = payload_a + 2 * SIZE * SIZE;
    uint8_t *const scale = payload_b + 2 * SIZE * SIZE;
    fill_payload(what->type, payload_a, 1);
    fill_payload(what->type, payload_b, 2);
    uint32_t seed = 3;
    for (size_t i = 0; i < SIZE * SIZE / 16; i++) {
        scale[i] =
            (uint8_t)((job->desc->scale == DP_MMA_UE8M0 ? 123 : 0x28) + next_random(&seed) % 8);
    }
    job->source_a = (dp_mma_source){.payload = payload_a, .scale = scale};
    job->source_b = (dp_mma_source){.payload = payload_b, .scale = scale};
    job->run = (dp_mma_run){.threads = 1};
    return prepare(job) || dp_fail(error, "%s", job->error.text);
}

/* sgemm, the issue rate, then each model prepared and with its operands decoded in the call. */
enum {
    SGEMM,
    ISSUE,
    FIRST_MODEL,
    ITEMS = FIRST_MODEL + 2 * MODELS,
    MODEL_BYTES = SIZE * SIZE * 8,
    COLUMNS = 7
};

static double gflops(const dp_bench_item *item)
{
    return 1e-9 * 2.0 * SIZE * SIZE * SIZE / item->median_s;
}

/* A number, or an empty cell for one that was not measured (0). */
static void cell(dp_report *table, double value)
{
    if (value > 0.0) {
        dp_report_f64(table, value);
    } else {
        dp_report_blank(table);
    }
}

static void add_row(dp_report *table, const char *name, const char *call, double rate, double sgemm,
                    double goal, double bound)
{
    dp_report_text(table, name);
    dp_report_text(table, call);
    cell(table, rate);
    cell(table, sgemm > 0.0 ? rate / sgemm : 0.0);
    cell(table, goal);
    cell(table, bound);
    cell(table, bound > 0.0 ? rate / bound : 0.0);
}

static bool report(const dp_bench_options *options, const dp_bench_item *items, bool has_sgemm,
                   bool has_issue, dp_error *error)
{
    static const dp_column columns[COLUMNS] = {
        {"what", NULL, -1},           {"call", NULL, -1},
        {"gflops", "GFLOP/s", 2},     {"of_sgemm", "of sgemm", 3},
        {"goal_of_sgemm", "goal", 3}, {"bound_gflops", "bound GFLOP/s", 2},
        {"of_bound", "of bound", 2}};
    dp_report *table = dp_report_new(
        "matrix-unit models, 128x128x128 as 2mnk, one core; bound: the vector instructions of the "
        "fast path at this core's issue rate",
        columns, COLUMNS);
    if (table == NULL) {
        return dp_fail(error, "bench arith: memory ran short: free some and try again");
    }
    const double sgemm = has_sgemm ? gflops(&items[SGEMM]) : 0.0;
    const double issue = has_issue ? 1e-9 * ISSUE_OPERATIONS / items[ISSUE].median_s : 0.0;
    add_row(table, "OpenBLAS sgemm", has_sgemm ? "multiply" : "not installed", sgemm, sgemm, 0.0,
            0.0);
    add_row(table, "512-bit instructions", "10^9 a second", issue, 0.0, 0.0, 0.0);
    for (int i = 0; i < 2 * MODELS; i++) {
        const model *what = &models[i / 2];
        const double bound = i % 2 == 0 ? 32.0 * what->k / what->operations * issue : 0.0;
        add_row(table, what->name, i % 2 == 0 ? "multiply" : "decode + multiply",
                gflops(&items[FIRST_MODEL + i]), sgemm, i % 2 == 0 ? what->goal : 0.0, bound);
    }
    const bool good = dp_report_print(table, options->style, stdout, error);
    dp_report_free(table);
    return good;
}

static void run_nothing(void *context)
{
    (void)context;
}

static bool measure(const dp_bench_options *options, model_job *jobs, uint8_t *memory,
                    float *floats, dp_error *error)
{
    blas_job blas = {dp_blas_open().sgemm, floats, floats + SIZE * SIZE, floats + 2 * SIZE * SIZE};
    const bool wide = dp_mma_path_available(DP_MMA_PATH_AVX512);
    dp_bench_item items[ITEMS] = {
        [SGEMM] = {.run = blas.sgemm != NULL ? run_sgemm : run_nothing, .context = &blas},
        [ISSUE] = {.run = wide ? run_issue : run_nothing, .context = blas.d}};
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        floats[i] = floats[SIZE * SIZE + i] = (float)(i % 31) - 15.0f;
    }
    for (size_t i = 0; i < 2 * MODELS; i++) {
        jobs[i].prepare = i % 2 != 0;
        jobs[i].d = floats + 3 * SIZE * SIZE;
        if (!set_up(&jobs[i], &models[i / 2], memory + i * MODEL_BYTES, error)) {
            return false;
        }
        items[FIRST_MODEL + i] = (dp_bench_item){.run = run_model, .context = &jobs[i]};
    }
    return dp_bench_measure(items, ITEMS, options, error) &&
           report(options, items, blas.sgemm != NULL, wide, error);
}

int dp_bench_arith(const dp_bench_options *options)
{
    dp_error error = {""};
    model_job *jobs = calloc(2 * MODELS, sizeof *jobs);
    uint8_t *memory = malloc(2 * MODELS * MODEL_BYTES);
    float *floats = malloc(4 * SIZE * SIZE * sizeof *floats);
    bool good = jobs != NULL && memory != NULL && floats != NULL;
    if (good) {
        good = measure(options, jobs, memory, floats, &error);
    } else {
        (void)dp_fail(&error, "bench arith: memory ran short: free some and try again");
    }
    for (size_t i = 0; jobs != NULL && i < 2 * MODELS; i++) {
        dp_mma_matrix_free(&jobs[i].a);
        dp_mma_matrix_free(&jobs[i].b);
    }
    free(jobs);
    free(memory);
    free(floats);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
