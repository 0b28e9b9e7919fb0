/* SPDX-License-Identifier: MIT
 *
 * Direct-P on inputs, with every stage that was asked for written as it is made: a file of kind
 * "dump".
 */
#include "analysis/attend.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct {
    const dp_attend_run_options *options;
    uint16_t *o;
    float *lse;
    pthread_mutex_t lock; /* HDF5 takes one caller at a time */
    dp_error *error;
} receiver;

static const char *const STAGE_NAMES[] = {"inputs",      "quantize",   "score",
                                          "reference",   "scale",      "code",
                                          "denominator", "accumulate", "output"};
enum { STAGE_COUNT = sizeof STAGE_NAMES / sizeof STAGE_NAMES[0] };

bool dp_stages_parse(const char *text, unsigned *stages, dp_error *error)
{
    if (strcmp(text, "all") == 0) {
        *stages = DP_STAGE_ALL;
        return true;
    }
    *stages = 0;
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        int found = -1;
        for (int i = 0; i < STAGE_COUNT; i++) {
            if (strlen(STAGE_NAMES[i]) == length && strncmp(text, STAGE_NAMES[i], length) == 0) {
                found = i;
            }
        }
        if (found < 0) {
            return dp_fail(error,
                           "--stages %.*s: no such stage: use all, or some of inputs, quantize, "
                           "score, reference, scale, code, denominator, accumulate, output",
                           (int)length, text);
        }
        *stages |= 1u << found;
        text += length;
        text += *text == ',' ? 1 : 0;
    }
    return *stages != 0 || dp_fail(error, "--stages: an empty list: name a stage, or all");
}

size_t dp_attend_strips(const dp_attention *in)
{
    return in->batch * in->q_heads * ((in->queries + DP_TILE - 1) / DP_TILE);
}

/* ---- what a dump holds ---------------------------------------------------------------------- */

/* A dataset written strip by strip: [batch][head][query][width]; width 0: [batch][head][query]. */
typedef struct {
    unsigned stage;
    const char *path;
    dp_h5_type type;
    dp_h5_labels labels;
} strip_dataset;

static const strip_dataset STRIPS[] = {
    {DP_STAGE_SCORE, "/score/raw", DP_H5_F32, {"f32", "batch,head,query,key", NULL, 0}},
    {DP_STAGE_REFERENCE, "/reference/row_ref", DP_H5_F32, {"f32", "batch,head,query", NULL, 0}},
    {DP_STAGE_SCALE, "/scale/p_scale", DP_H5_U8, {"e8m0", "batch,head,query,block", "linear", 32}},
    {DP_STAGE_CODE, "/code/p_payload", DP_H5_U8, {"e2m1", "batch,head,query,key", NULL, 32}},
    {DP_STAGE_DENOMINATOR,
     "/denominator/code_sum",
     DP_H5_U16,
     {"twice the sum of the code values", "batch,head,query,block", NULL, 32}},
    {DP_STAGE_DENOMINATOR, "/denominator/row_sum", DP_H5_F32, {"f32", "batch,head,query", NULL, 0}},
    {DP_STAGE_ACCUMULATE, "/accumulate/acc", DP_H5_F32, {"f32", "batch,head,query,dim", NULL, 0}},
    {DP_STAGE_OUTPUT, "/output/o", DP_H5_U16, {"bf16", "batch,head,query,dim", NULL, 0}},
    {DP_STAGE_OUTPUT, "/output/lse", DP_H5_F32, {"f32", "batch,head,query", NULL, 0}},
};
enum { STRIP_DATASETS = sizeof STRIPS / sizeof STRIPS[0] };

/* Data and row width of dataset i in a strip. */
static const void *strip_data(const dp_strip *s, int i, size_t *width)
{
    switch (i) {
    case 0:
        *width = s->keys;
        return s->raw;
    case 1:
        *width = 0;
        return s->row_ref;
    case 2:
        *width = s->keys / DP_BLOCK;
        return s->p_scale;
    case 3:
        *width = s->keys / 2;
        return s->p_payload;
    case 4:
        *width = s->keys / DP_BLOCK;
        return s->code_sum;
    case 5:
        *width = 0;
        return s->row_sum;
    case 6:
        *width = s->dim;
        return s->acc;
    case 7:
        *width = s->dim;
        return s->o;
    default:
        *width = 0;
        return s->lse;
    }
}

static bool reserve_strips(const dp_attend_run_options *options, const dp_operands *operands,
                           dp_error *error)
{
    const dp_attention *in = &options->inputs->in;
    const dp_strip shape = {.keys = operands->key_rows, .dim = operands->features};
    for (int i = 0; i < STRIP_DATASETS; i++) {
        size_t width = 0;
        (void)strip_data(&shape, i, &width);
        const uint64_t dims[4] = {in->batch, in->q_heads, in->queries, width};
        if ((options->stages & STRIPS[i].stage) != 0 &&
            !dp_h5_reserve(options->writer, STRIPS[i].path, STRIPS[i].type, width > 0 ? 4 : 3, dims,
                           &STRIPS[i].labels, error)) {
            return false;
        }
    }
    return true;
}

static bool put_strip(const receiver *to, const dp_strip *strip)
{
    for (int i = 0; i < STRIP_DATASETS; i++) {
        size_t width = 0;
        const void *data = strip_data(strip, i, &width);
        const uint64_t start[4] = {strip->batch, strip->head, strip->row_first, 0};
        const uint64_t count[4] = {1, 1, strip->rows, width};
        if ((to->options->stages & STRIPS[i].stage) != 0 &&
            !dp_h5_put_part(to->options->writer, STRIPS[i].path, STRIPS[i].type, width > 0 ? 4 : 3,
                            start, count, data, to->error)) {
            return false;
        }
    }
    return true;
}

/* Rows [0, rows) of every head, of operands padded to `padded` rows. */
static bool put_rows(dp_h5_writer *writer, const char *path, const uint8_t *data, size_t batch,
                     size_t heads, size_t rows, size_t padded, size_t width,
                     const dp_h5_labels *labels, dp_error *error)
{
    const uint64_t dims[4] = {batch, heads, rows, width};
    if (!dp_h5_reserve(writer, path, DP_H5_U8, 4, dims, labels, error)) {
        return false;
    }
    for (size_t h = 0; h < batch * heads; h++) {
        const uint64_t start[4] = {h / heads, h % heads, 0, 0};
        const uint64_t count[4] = {1, 1, rows, width};
        if (!dp_h5_put_part(writer, path, DP_H5_U8, 4, start, count, data + h * padded * width,
                            error)) {
            return false;
        }
    }
    return true;
}

static bool put_globals(dp_h5_writer *writer, const dp_attention *in, dp_error *error)
{
    static const dp_h5_labels labels = {"f32", "batch,head", NULL, 0};
    const uint64_t q[2] = {in->batch, in->q_heads};
    const uint64_t k[2] = {in->batch, in->kv_heads};
    float *ones = malloc(in->batch * in->q_heads * sizeof *ones);
    if (ones == NULL) {
        return dp_fail(error, "%s: not enough memory", writer->output.path);
    }
    for (size_t i = 0; i < in->batch * in->q_heads; i++) {
        ones[i] = 1.0f;
    }
    const bool good =
        dp_h5_put(writer, "/quantize/q_global", DP_H5_F32, 2, q, ones, &labels, error) &&
        dp_h5_put(writer, "/quantize/k_global", DP_H5_F32, 2, k, ones, &labels, error);
    free(ones);
    return good;
}

static bool put_operands(dp_h5_writer *writer, const dp_attention *in, const dp_operands *operands,
                         dp_error *error)
{
    static const dp_h5_labels payload = {"e2m1", "batch,head,row,dim", NULL, 16};
    static const dp_h5_labels scale = {"ue4m3", "batch,head,row,block", "linear", 16};
    static const dp_h5_labels v_payload = {"e2m1", "batch,head,dim,key", NULL, 32};
    static const dp_h5_labels v_scale = {"e8m0", "batch,head,dim,block", "linear", 32};
    const size_t f = operands->features;
    const size_t b = in->batch;
    const uint64_t order[1] = {in->keys};
    return put_rows(writer, "/quantize/q_payload", operands->q_payload, b, in->q_heads, in->queries,
                    operands->query_rows, f / 2, &payload, error) &&
           put_rows(writer, "/quantize/q_scale", operands->q_scale, b, in->q_heads, in->queries,
                    operands->query_rows, f / 16, &scale, error) &&
           put_rows(writer, "/quantize/k_payload", operands->k_payload, b, in->kv_heads, in->keys,
                    operands->key_rows, f / 2, &payload, error) &&
           put_rows(writer, "/quantize/k_scale", operands->k_scale, b, in->kv_heads, in->keys,
                    operands->key_rows, f / 16, &scale, error) &&
           put_rows(writer, "/quantize/v_payload", operands->v_payload, b, in->kv_heads, f, f,
                    operands->key_rows / 2, &v_payload, error) &&
           put_rows(writer, "/quantize/v_scale", operands->v_scale, b, in->kv_heads, f, f,
                    operands->key_rows / DP_BLOCK, &v_scale, error) &&
           put_globals(writer, in, error) &&
           dp_h5_put(writer, "/inputs/key_order", DP_H5_I32, 1, order, operands->key_order, NULL,
                     error);
}

static bool put_inputs(dp_h5_writer *writer, const dp_attention *in, dp_error *error)
{
    static const dp_h5_labels labels = {"bf16", "batch,head,seq,dim", NULL, 0};
    const uint64_t q[4] = {in->batch, in->q_heads, in->queries, in->dim};
    const uint64_t kv[4] = {in->batch, in->kv_heads, in->keys, in->dim};
    return dp_h5_put(writer, "/inputs/q", DP_H5_U16, 4, q, in->q, &labels, error) &&
           dp_h5_put(writer, "/inputs/k", DP_H5_U16, 4, kv, in->k, &labels, error) &&
           dp_h5_put(writer, "/inputs/v", DP_H5_U16, 4, kv, in->v, &labels, error);
}

/* Root attributes: everything a reader needs to run the same again. */
static bool put_root(const dp_attend_run_options *options, const dp_operands *operands,
                     dp_error *error)
{
    dp_h5_writer *w = options->writer;
    const dp_attention *in = &options->inputs->in;
    const dp_direct_p *launch = options->launch;
    const dp_mma_switches mma = options->mma != NULL ? *options->mma : (dp_mma_switches){0};
    char switches[1024];
    dp_switches_text(&launch->switches, switches, sizeof switches);
    const size_t used = strlen(switches);
    (void)dp_mma_switches_text(&mma, switches + used, sizeof switches - used);
    char fields[1024];
    dp_forward_policy_text(&launch->policy, fields, sizeof fields);
    int64_t map[256];
    for (size_t h = 0; h < in->q_heads && h < 256; h++) {
        map[h] = (int64_t)dp_attention_kv_head(in, h);
    }
    return dp_h5_put_text(w, "/", "policy", launch->policy.name, error) &&
           dp_h5_put_text(w, "/", "policy_fields", fields, error) &&
           dp_h5_put_text(w, "/", "epoch", launch->epoch == DP_EPOCH_S ? "S" : "R", error) &&
           dp_h5_put_text(w, "/", "switches", switches, error) &&
           dp_h5_put_text(w, "/", "sfu", launch->sfu->name, error) &&
           dp_h5_put_text(w, "/", "device",
                          options->engine != NULL ? options->engine->device : "CPU oracle",
                          error) &&
           dp_h5_put_text(w, "/", "source", options->inputs->source, error) &&
           dp_h5_put_i64(w, "/", "smooth_k", options->inputs->smooth_k ? 1 : 0, error) &&
           dp_h5_put_i64(w, "/", "causal", in->causal ? 1 : 0, error) &&
           dp_h5_put_i64(w, "/", "dim", (int64_t)in->dim, error) &&
           dp_h5_put_i64(w, "/", "features", (int64_t)operands->features, error) &&
           dp_h5_put_i64(w, "/", "keys", (int64_t)in->keys, error) &&
           dp_h5_put_i64(w, "/", "keys_padded", (int64_t)operands->key_rows, error) &&
           dp_h5_put_f64(w, "/", "softmax_scale", dp_attention_scale(in), error) &&
           (in->q_heads > 256 || dp_h5_put_i64_list(w, "/", "kv_of_q", map, in->q_heads, error));
}

/* ---- the run -------------------------------------------------------------------------------- */

static bool receive(void *context, const dp_strip *strip)
{
    receiver *to = context;
    const dp_attention *in = &to->options->inputs->in;
    const size_t head = strip->batch * in->q_heads + strip->head;
    for (size_t r = 0; r < strip->rows; r++) {
        const size_t row = head * in->queries + strip->row_first + r;
        memcpy(to->o + row * in->dim, strip->o + r * strip->dim, in->dim * sizeof(uint16_t));
        to->lse[row] = strip->lse[r];
    }
    bool good = true;
    if (to->options->writer != NULL) {
        (void)pthread_mutex_lock(&to->lock);
        good = put_strip(to, strip);
        (void)pthread_mutex_unlock(&to->lock);
    }
    if (to->options->progress != NULL) {
        dp_progress_add(to->options->progress, 1);
    }
    return good;
}

static bool begin_dump(const dp_attend_run_options *options, const dp_operands *operands,
                       dp_error *error)
{
    const dp_attention *in = &options->inputs->in;
    return put_root(options, operands, error) && reserve_strips(options, operands, error) &&
           ((options->stages & DP_STAGE_INPUTS) == 0 || put_inputs(options->writer, in, error)) &&
           ((options->stages & DP_STAGE_QUANTIZE) == 0 ||
            put_operands(options->writer, in, operands, error));
}

bool dp_attend_run(const dp_attend_run_options *options, uint16_t *o, float *lse, dp_error *error)
{
    dp_operands operands;
    const dp_attend_engine *engine = options->engine;
    if (!(engine != NULL ? engine->quantize(engine->context, &options->inputs->in, options->launch,
                                            options->threads, &operands, error)
                         : dp_forward_quantize(&options->inputs->in, options->launch,
                                               options->threads, &operands, error))) {
        return false;
    }
    receiver to = {.options = options, .o = o, .lse = lse, .error = error};
    (void)pthread_mutex_init(&to.lock, NULL);
    const dp_forward_job job = {.in = &options->inputs->in,
                                .operands = &operands,
                                .launch = options->launch,
                                .mma = options->mma,
                                .threads = options->threads,
                                .want_raw = options->writer != NULL &&
                                            (options->stages & DP_STAGE_SCORE) != 0,
                                .sink = receive,
                                .context = &to};
    const bool good =
        (options->writer == NULL || begin_dump(options, &operands, error)) &&
        (engine != NULL ? engine->run(engine->context, &job, error) : dp_forward_run(&job, error));
    (void)pthread_mutex_destroy(&to.lock);
    dp_operands_free(&operands);
    return good;
}
