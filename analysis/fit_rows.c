/* SPDX-License-Identifier: MIT */
#include "analysis/fit_rows.h"

#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e8m0.h"
#include "formats/parallel.h"

/* Row number `i` of `rows` evenly spaced ones. */
static size_t chosen(size_t i, size_t rows, size_t queries)
{
    return (2 * i + 1) * queries / (2 * rows);
}

/* Strips come from any thread; every row is written by the one strip it lies in. */
static bool keep_rows(void *context, const dp_strip *strip)
{
    dp_fit_rows *rows = context;
    const size_t per_head = rows->count / rows->heads;
    for (size_t i = 0; i < per_head; i++) {
        dp_fit_row *row = &rows->row[strip->head * per_head + i];
        const size_t at = (size_t)row->unit; /* holds the query until dp_fit_rows_take ends */
        if (at >= strip->row_first && at < strip->row_first + strip->rows) {
            const size_t r = at - strip->row_first;
            memcpy(row->raw, strip->raw + r * strip->keys, strip->keys * sizeof(float));
            row->reference = strip->row_ref[r];
            row->stage = (int)(strip->row_first / DP_TILE & 1);
        }
    }
    return true;
}

/* V as the matrix unit sees it, in physical key order, the amplitude's 1/6 included. */
static bool decode_v(const dp_operands *operands, size_t heads, dp_fit_rows *rows)
{
    const size_t keys = operands->key_rows;
    rows->v = calloc(heads * keys * rows->dim, sizeof(float));
    for (size_t i = 0; rows->v != NULL && i < heads * rows->dim; i++) {
        const size_t head = i / rows->dim;
        const size_t d = i % rows->dim;
        const size_t line = head * operands->features + d;
        for (size_t j = 0; j < keys; j++) {
            const uint8_t byte = operands->v_payload[line * (keys / 2) + j / 2];
            const dp_e2m1 code = {(uint8_t)(j % 2 == 0 ? byte & 15 : byte >> 4)};
            const dp_e8m0 scale = {operands->v_scale[line * (keys / DP_BLOCK) + j / DP_BLOCK]};
            rows->v[(head * keys + j) * rows->dim + d] =
                dp_e2m1_to_f32(code) * dp_e8m0_to_f32(scale) / 6.0f;
        }
    }
    return rows->v != NULL;
}

static bool allocate(dp_fit_rows *rows)
{
    rows->row = calloc(rows->count, sizeof *rows->row);
    rows->store = calloc(rows->count * (rows->keys + rows->dim), sizeof(float));
    for (size_t i = 0; rows->row != NULL && rows->store != NULL && i < rows->count; i++) {
        rows->row[i].raw = rows->store + i * (rows->keys + rows->dim);
        rows->row[i].expected = rows->row[i].raw + rows->keys;
    }
    return rows->row != NULL && rows->store != NULL;
}

/* Expected outputs, groups and units, once the scores are there. */
static bool finish(dp_fit_rows *rows, const dp_attention *in, int threads, int first_unit,
                   dp_error *error)
{
    const size_t all = in->q_heads * in->queries;
    uint16_t *o = malloc(all * in->dim * sizeof *o);
    const bool good = o != NULL && dp_reference_bf16(in, threads, o, NULL, error);
    const size_t per_head = rows->count / rows->heads;
    for (size_t i = 0; good && i < rows->count; i++) {
        dp_fit_row *row = &rows->row[i];
        const size_t head = i / per_head;
        for (size_t d = 0; d < in->dim; d++) {
            const dp_bf16 bits = {o[(head * in->queries + (size_t)row->unit) * in->dim + d]};
            row->expected[d] = dp_bf16_to_f32(bits);
        }
        row->unit = (int)(head % (size_t)rows->units);
        /* Rows of a head spread over the groups of its unit. */
        row->group = (first_unit + row->unit) * DP_FIT_UNIT_GROUPS +
                     (int)(i % per_head) % DP_FIT_UNIT_GROUPS;
    }
    free(o);
    return good;
}

bool dp_fit_rows_take(const dp_attend_inputs *inputs, const dp_direct_p *launch, size_t rows,
                      int threads, int first_unit, dp_fit_rows **taken, dp_error *error)
{
    /* One batch entry: more heads would not tell more about a map. */
    dp_attention in = inputs->in;
    in.batch = 1;
    rows = rows < in.queries ? rows : in.queries;
    dp_operands operands;
    dp_fit_rows *made = calloc(1, sizeof *made);
    if (made == NULL || !dp_forward_quantize(&in, launch, threads, &operands, error)) {
        free(made);
        return dp_fail(error, "fit: %s", error != NULL ? error->text : "not enough memory");
    }
    made->launch = *launch;
    made->heads = in.q_heads;
    made->count = rows * in.q_heads;
    made->keys = operands.key_rows;
    made->dim = in.dim;
    made->units = in.q_heads < 16 ? (int)in.q_heads : 16;
    bool good = allocate(made) && decode_v(&operands, in.kv_heads, made);
    for (size_t i = 0; good && i < made->count; i++) {
        made->row[i].head = dp_attention_kv_head(&in, i / rows);
        made->row[i].unit = (int)chosen(i % rows, rows, in.queries);
    }
    const dp_forward_job job = {.in = &in,
                                .operands = &operands,
                                .launch = launch,
                                .threads = threads,
                                .want_raw = true,
                                .sink = keep_rows,
                                .context = made};
    good = good && dp_forward_run(&job, error) && finish(made, &in, threads, first_unit, error);
    dp_operands_free(&operands);
    if (!good) {
        dp_fit_rows_free(made);
        return dp_fail(error, "fit: %s",
                       error != NULL && error->text[0] != '\0' ? error->text : "not enough memory");
    }
    *taken = made;
    return true;
}

void dp_fit_rows_free(dp_fit_rows *rows)
{
    while (rows != NULL) {
        dp_fit_rows *next = rows->next;
        free(rows->row);
        free(rows->store);
        free(rows->v);
        free(rows);
        rows = next;
    }
}

typedef struct {
    const dp_fit_rows *rows;
    dp_direct_p launch;
    double *error2, *reference2; /* [row] */
} row_job;

static void add_tile(const dp_fit_rows *rows, const dp_fit_row *row, size_t tile, const dp_p_row *p,
                     float *acc, double *sum)
{
    static const float value[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const float *v[DP_TILE];
    float weight[DP_TILE];
    size_t n = 0;
    for (size_t b = 0; b < DP_QUARTERS; b++) {
        const float scale = ldexpf(1.0f, (int)p->stored[b] - 127); /* times a value: exact */
        double codes = 0.0;
        for (size_t j = b * DP_BLOCK; j < (b + 1) * DP_BLOCK; j++) {
            const uint8_t byte = p->payload[j / 2];
            const int code = (j % 2 == 0 ? byte : byte >> 4) & 7;
            if (code != 0) {
                codes += (double)value[code];
                weight[n] = value[code] * scale;
                v[n++] = rows->v + (row->head * rows->keys + tile * DP_TILE + j) * rows->dim;
            }
        }
        *sum += p->stored[b] > 0 ? codes * (double)scale : 0.0;
    }
    dp_fit_accumulate(acc, rows->dim, v, weight, n);
}

static void evaluate_row(void *context, size_t first, size_t last, int thread)
{
    row_job *job = context;
    const dp_fit_rows *rows = job->rows;
    (void)thread;
    for (size_t r = first; r < last; r++) {
        const dp_fit_row *row = &rows->row[r];
        float acc[DP_HEAD_DIM] = {0};
        double sum = 0.0;
        for (size_t tile = 0; tile < rows->keys / DP_TILE; tile++) {
            dp_p_row p;
            dp_classify_row(&job->launch, row->stage, row->reference, row->raw + tile * DP_TILE,
                            &p);
            add_tile(rows, row, tile, &p, acc, &sum);
        }
        for (size_t d = 0; d < rows->dim; d++) {
            const double o = sum > 0.0 ? (double)acc[d] / sum : 0.0;
            const double e = (double)row->expected[d];
            job->error2[r] += (o - e) * (o - e);
            job->reference2[r] += e * e;
        }
    }
}

void dp_fit_rows_evaluate(const dp_fit_rows *rows, const dp_fit_map *map, int threads,
                          dp_fit_sums *sums)
{
    row_job job = {.rows = rows, .launch = dp_fit_launch(&rows->launch, map)};
    job.error2 = calloc(2 * rows->count, sizeof(double));
    job.reference2 = job.error2 != NULL ? job.error2 + rows->count : NULL;
    if (job.error2 == NULL) {
        return;
    }
    dp_parallel_for(threads, rows->count, 4, evaluate_row, &job);
    for (size_t r = 0; r < rows->count; r++) {
        sums[rows->row[r].group].error2 += job.error2[r];
        sums[rows->row[r].group].reference2 += job.reference2[r];
    }
    free(job.error2);
}
