/* SPDX-License-Identifier: MIT
 *
 * Splitting the error of a Direct-P output into what each quantization adds.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/exact.h"
#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/parallel.h"

/* Squared lengths of one head. */
typedef struct {
    double exact, qk, p, v, rest, total, bf16;
    uint64_t nonfinite_rows, rows;
} squares;

typedef struct {
    const dp_attention *in;
    const dp_direct_p *launch;
    const dp_operands *operands;
    dp_blas blas;
    /* binary64 operands, [head][row][dim] each; the quantized and `v_physical` in physical order */
    double *q, *k, *v, *q_code, *k_code, *v_code, *v_physical;
    uint16_t *bf16; /* O of BF16 attention */
    squares *strips;
    size_t strips_a_head;
} job;

static double from_bf16(uint16_t bits)
{
    const dp_bf16 x = {bits};
    return (double)dp_bf16_to_f32(x);
}

static double code_value(const uint8_t *payload, size_t i)
{
    const dp_e2m1 code = {(uint8_t)(((uint32_t)payload[i / 2] >> (i % 2 * 4)) & 15u)};
    return (double)dp_e2m1_to_f32(code);
}

static double *widen(const uint16_t *x, size_t count)
{
    double *out = malloc(count * sizeof *out);
    for (size_t i = 0; out != NULL && i < count; i++) {
        out[i] = from_bf16(x[i]);
    }
    return out;
}

/* Q or K as quantized: code times block scale. */
static double *decode_rows(const uint8_t *payload, const uint8_t *scale, size_t heads, size_t rows,
                           size_t padded, size_t dim, size_t features)
{
    double *out = malloc(heads * rows * dim * sizeof *out);
    for (size_t i = 0; out != NULL && i < heads * rows; i++) {
        const size_t row = i / rows * padded + i % rows;
        for (size_t d = 0; d < dim; d++) {
            const dp_e4m3 byte = {scale[row * features / 16 + d / 16]};
            out[i * dim + d] =
                code_value(payload + row * features / 2, d) * (double)dp_e4m3_to_f32(byte);
        }
    }
    return out;
}

/* V as quantized, code * 2^(u-127) / 6, and V itself, both [head][physical key][dim]. */
static void decode_v(job *j)
{
    const dp_attention *in = j->in;
    const dp_operands *x = j->operands;
    for (size_t head = 0; head < in->batch * in->kv_heads; head++) {
        for (size_t key = 0; key < in->keys; key++) {
            double *code = j->v_code + (head * in->keys + key) * in->dim;
            const size_t from = head * in->keys + (size_t)x->key_order[key];
            for (size_t d = 0; d < in->dim; d++) {
                const size_t row = head * x->features + d;
                const int u = x->v_scale[row * x->key_rows / DP_BLOCK + key / DP_BLOCK];
                code[d] =
                    ldexp(code_value(x->v_payload + row * x->key_rows / 2, key), u - 127) / 6.0;
            }
            memcpy(j->v_physical + (head * in->keys + key) * in->dim, j->v + from * in->dim,
                   in->dim * sizeof(double));
        }
    }
}

static bool prepare(job *j)
{
    const dp_attention *in = j->in;
    const dp_operands *x = j->operands;
    const size_t q_heads = in->batch * in->q_heads;
    const size_t kv_heads = in->batch * in->kv_heads;
    const size_t kv = kv_heads * in->keys * in->dim;
    j->q = widen(in->q, q_heads * in->queries * in->dim);
    j->k = widen(in->k, kv);
    j->v = widen(in->v, kv);
    j->q_code = decode_rows(x->q_payload, x->q_scale, q_heads, in->queries, x->query_rows, in->dim,
                            x->features);
    j->k_code = decode_rows(x->k_payload, x->k_scale, kv_heads, in->keys, x->key_rows, in->dim,
                            x->features);
    j->v_code = malloc(kv * sizeof(double));
    j->v_physical = malloc(kv * sizeof(double));
    j->strips = calloc(q_heads * j->strips_a_head, sizeof *j->strips);
    const bool good = j->q != NULL && j->k != NULL && j->v != NULL && j->q_code != NULL &&
                      j->k_code != NULL && j->v_code != NULL && j->v_physical != NULL &&
                      j->strips != NULL;
    if (good) {
        decode_v(j);
    }
    return good;
}

static double square(double x)
{
    return x * x;
}

/* P' of one strip: what its codes represent, divided by the row sum; zero where that row is not
 * valid, as its output is. */
static void represented(const job *j, const dp_strip *s, double *p)
{
    const size_t keys = j->in->keys;
    for (size_t r = 0; r < s->rows; r++) {
        const double sum = (double)s->row_sum[r];
        const bool valid = sum > 0.0 && isfinite(sum) && isfinite(s->row_ref[r]);
        for (size_t key = 0; key < keys; key++) {
            const int byte = s->p_scale[r * s->keys / DP_BLOCK + key / DP_BLOCK];
            const double value = code_value(s->p_payload + r * s->keys / 2, key);
            p[r * keys + key] = valid ? ldexp(value, byte - 127) / (6.0 * sum) : 0.0;
        }
    }
}

enum { EXACT, QK, PV, PV_CODE, OUTPUTS };

/* Add one finite row to the squares. */
static void add_row(const job *j, const dp_strip *s, size_t r, double *const out[OUTPUTS],
                    squares *sum)
{
    const size_t dim = j->in->dim;
    const size_t row = (s->batch * j->in->q_heads + s->head) * j->in->queries + s->row_first + r;
    for (size_t d = 0; d < dim; d++) {
        const size_t i = r * dim + d;
        const double o = from_bf16(s->o[r * s->dim + d]);
        sum->exact += square(out[EXACT][i]);
        sum->qk += square(out[QK][i] - out[EXACT][i]);
        sum->p += square(out[PV][i] - out[QK][i]);
        sum->v += square(out[PV_CODE][i] - out[PV][i]);
        sum->rest += square(o - out[PV_CODE][i]);
        sum->total += square(o - out[EXACT][i]);
        sum->bf16 += square(from_bf16(j->bf16[row * dim + d]) - out[EXACT][i]);
    }
}

static bool take_strip(void *context, const dp_strip *s)
{
    const job *j = context;
    const dp_attention *in = j->in;
    const size_t head = s->batch * in->q_heads + s->head;
    const size_t kv =
        (s->batch * in->kv_heads + dp_attention_kv_head(in, s->head)) * in->keys * in->dim;
    const size_t at = head * in->queries * in->dim;
    double *p = malloc(s->rows * in->keys * sizeof *p);
    double *memory = malloc(OUTPUTS * s->rows * in->dim * sizeof *memory);
    if (p == NULL || memory == NULL) {
        free(p);
        free(memory);
        return false;
    }
    double *out[OUTPUTS];
    for (size_t i = 0; i < OUTPUTS; i++) {
        out[i] = memory + i * s->rows * in->dim;
    }
    dp_exact_head x = {.queries = in->queries,
                       .keys = in->keys,
                       .dim = in->dim,
                       .q = j->q + at,
                       .k = j->k + kv,
                       .v = j->v + kv,
                       .scale = dp_attention_scale(in),
                       .causal = in->causal};
    dp_exact_rows(&j->blas, &x, s->row_first, s->rows, p, out[EXACT]);
    x.q = j->q_code + at;
    x.k = j->k_code + kv;
    x.v = j->v_physical + kv;
    x.key_order = j->operands->key_order;
    dp_exact_rows(&j->blas, &x, s->row_first, s->rows, p, out[QK]);
    represented(j, s, p);
    dp_blas_multiply(&j->blas, false, s->rows, in->dim, in->keys, 1.0, p, x.v, out[PV]);
    dp_blas_multiply(&j->blas, false, s->rows, in->dim, in->keys, 1.0, p, j->v_code + kv,
                     out[PV_CODE]);
    squares *sum = &j->strips[head * j->strips_a_head + s->row_first / DP_TILE];
    sum->rows = s->rows;
    for (size_t r = 0; r < s->rows; r++) {
        bool finite = true;
        for (size_t d = 0; d < in->dim; d++) {
            finite = finite && isfinite(from_bf16(s->o[r * s->dim + d]));
        }
        sum->nonfinite_rows += !finite;
        if (finite) {
            add_row(j, s, r, out, sum);
        }
    }
    free(p);
    free(memory);
    return true;
}

static dp_error_parts parts_of(const squares *strips, size_t count)
{
    squares sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.exact += strips[i].exact;
        sum.qk += strips[i].qk;
        sum.p += strips[i].p;
        sum.v += strips[i].v;
        sum.rest += strips[i].rest;
        sum.total += strips[i].total;
        sum.bf16 += strips[i].bf16;
        sum.rows += strips[i].rows;
        sum.nonfinite_rows += strips[i].nonfinite_rows;
    }
    const dp_error_parts parts = {.qk = sqrt(sum.qk / sum.exact),
                                  .p = sqrt(sum.p / sum.exact),
                                  .v = sqrt(sum.v / sum.exact),
                                  .rest = sqrt(sum.rest / sum.exact),
                                  .total = sqrt(sum.total / sum.exact),
                                  .bf16 = sqrt(sum.bf16 / sum.exact),
                                  .nonfinite_rows = sum.nonfinite_rows,
                                  .rows = sum.rows};
    return parts;
}

bool dp_decompose(const dp_attention *in, const dp_direct_p *launch, const dp_mma_switches *mma,
                  int threads, dp_error_parts *parts, dp_error *error)
{
    dp_operands operands;
    if (!dp_forward_quantize(in, launch, threads, &operands, error)) {
        return false;
    }
    const size_t heads = in->batch * in->q_heads;
    job j = {.in = in,
             .launch = launch,
             .operands = &operands,
             .blas = dp_blas_open(),
             .bf16 = malloc(heads * in->queries * in->dim * sizeof(uint16_t)),
             .strips_a_head = operands.query_rows / DP_TILE};
    const dp_forward_job run = {.in = in,
                                .operands = &operands,
                                .launch = launch,
                                .mma = mma,
                                .threads = threads,
                                .sink = take_strip,
                                .context = &j};
    bool good = (prepare(&j) && j.bf16 != NULL) ||
                dp_fail(error, "decompose: not enough memory: use a shorter sequence");
    good =
        good && dp_reference_bf16(in, threads, j.bf16, NULL, error) && dp_forward_run(&run, error);
    for (size_t h = 0; good && h < heads; h++) {
        parts[h] = parts_of(j.strips + h * j.strips_a_head, j.strips_a_head);
    }
    if (good) {
        parts[heads] = parts_of(j.strips, heads * j.strips_a_head);
    }
    dp_operands_free(&operands);
    double *const doubles[] = {j.q, j.k, j.v, j.q_code, j.k_code, j.v_code, j.v_physical};
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        free(doubles[i]);
    }
    free(j.bf16);
    free(j.strips);
    return good;
}
