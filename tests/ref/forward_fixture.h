/* SPDX-License-Identifier: MIT
 *
 * A forward run with every stage kept, for the suites of ref/forward.
 */
#ifndef DP_TESTS_REF_FORWARD_FIXTURE_H
#define DP_TESTS_REF_FORWARD_FIXTURE_H

#include <stdlib.h>

#include "formats/bf16.h"
#include "ref/forward/forward.h"
#include "support.h"

typedef struct {
    dp_attention in;
    uint16_t *q, *k, *v;
    dp_direct_p launch;
    dp_operands operands;
    /* every stage, [head][row]... */
    float *raw, *row_ref, *row_sum, *acc, *lse;
    uint8_t *p_scale, *p_payload;
    uint16_t *code_sum, *o;
} fixture;

static inline bool keep(void *context, const dp_strip *s)
{
    fixture *f = context;
    for (size_t r = 0; r < s->rows; r++) {
        const size_t row = (s->batch * f->in.q_heads + s->head) * f->in.queries + s->row_first + r;
        memcpy(f->raw + row * s->keys, s->raw + r * s->keys, s->keys * sizeof(float));
        memcpy(f->p_scale + row * s->keys / 32, s->p_scale + r * s->keys / 32, s->keys / 32);
        memcpy(f->p_payload + row * s->keys / 2, s->p_payload + r * s->keys / 2, s->keys / 2);
        memcpy(f->code_sum + row * s->keys / 32, s->code_sum + r * s->keys / 32, s->keys / 16);
        memcpy(f->acc + row * s->dim, s->acc + r * s->dim, s->dim * sizeof(float));
        memcpy(f->o + row * s->dim, s->o + r * s->dim, s->dim * sizeof(uint16_t));
        f->row_ref[row] = s->row_ref[r];
        f->row_sum[row] = s->row_sum[r];
        f->lse[row] = s->lse[r];
    }
    return true;
}

static inline uint16_t *draw(dp_rng *rng, size_t n, double sigma)
{
    uint16_t *x = malloc(n * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = dp_bf16_from_f32((float)(sigma * dp_rng_normal(rng)), DP_ENCODE_PTX).bits;
    }
    return x;
}

static inline void build(fixture *f, dp_attention shape, double sigma, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    dp_rng rng = {seed};
    f->in = shape;
    f->q = draw(&rng, shape.batch * shape.q_heads * shape.queries * shape.dim, sigma);
    f->k = draw(&rng, shape.batch * shape.kv_heads * shape.keys * shape.dim, 1.0);
    f->v = draw(&rng, shape.batch * shape.kv_heads * shape.keys * shape.dim, 1.0);
    f->in.q = f->q;
    f->in.k = f->k;
    f->in.v = f->v;
}

static inline void run(fixture *f, const char *policy, dp_epoch epoch, const char *change,
                       int threads)
{
    dp_forward_policy found;
    dp_switches switches = dp_switches_default();
    dp_error error = {""};
    ck_assert_msg(dp_forward_policy_find(policy, &found, &error), "%s", error.text);
    while (change != NULL && *change != '\0') { /* "name=value name=value" */
        char one[64];
        const size_t length = strcspn(change, " ");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, change);
        ck_assert_msg(dp_switches_set(&switches, one, &error), "%s", error.text);
        change += length + (change[length] == ' ');
    }
    f->launch = dp_direct_p_make(&found, epoch, &switches, dp_attention_scale(&f->in), NULL);
    dp_operands_free(&f->operands);
    ck_assert_msg(dp_forward_quantize(&f->in, &f->launch, threads, &f->operands, &error), "%s",
                  error.text);
    const size_t rows = f->in.batch * f->in.q_heads * f->in.queries;
    const size_t keys = f->operands.key_rows;
    const size_t dim = f->operands.features;
    f->raw = realloc(f->raw, rows * keys * sizeof(float));
    f->p_scale = realloc(f->p_scale, rows * keys / 32);
    f->p_payload = realloc(f->p_payload, rows * keys / 2);
    f->code_sum = realloc(f->code_sum, rows * keys / 16);
    f->acc = realloc(f->acc, rows * dim * sizeof(float));
    f->o = realloc(f->o, rows * dim * sizeof(uint16_t));
    f->row_ref = realloc(f->row_ref, rows * sizeof(float));
    f->row_sum = realloc(f->row_sum, rows * sizeof(float));
    f->lse = realloc(f->lse, rows * sizeof(float));
    const dp_forward_job job = {&f->in, &f->operands, &f->launch, NULL, threads, true, keep, f};
    ck_assert_msg(dp_forward_run(&job, &error), "%s", error.text);
}

static inline void discard(fixture *f)
{
    dp_operands_free(&f->operands);
    free(f->q);
    free(f->k);
    free(f->v);
    free(f->raw);
    free(f->p_scale);
    free(f->p_payload);
    free(f->code_sum);
    free(f->acc);
    free(f->o);
    free(f->row_ref);
    free(f->row_sum);
    free(f->lse);
}

#endif
