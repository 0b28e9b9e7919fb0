/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/numbers.h"
#include "analysis/tensors.h"
#include "formats/bf16.h"
#include "formats/fp16.h"

/* One of the three arrays on its way in: extents and strides in the order batch, head, seq, dim. */
typedef struct {
    const char *path;
    dp_h5_type type;
    char format[8];
    size_t extent[4];
    size_t stride[4];
    float *values;
} operand;

/* Which dimension of the file is batch, head, seq, dim. */
static bool read_axes(const dp_h5 *file, const char *path, int where[4], dp_error *error)
{
    static const char *const names = "batch|head|seq|dim";
    char *text = NULL;
    for (int i = 0; i < 4; i++) {
        where[i] = i;
    }
    if (!dp_h5_has_attribute(file, path, "axes")) {
        return true;
    }
    if (!dp_h5_text(file, path, "axes", &text, error)) {
        return false;
    }
    bool last = false;
    unsigned seen = 0;
    for (int i = 0; i < 4; i++) {
        char item[16];
        const int axis = !last && dp_list_item(text, (size_t)i, item, sizeof item, &last)
                             ? dp_choice_index(names, item)
                             : -1;
        if (axis >= 0) {
            where[axis] = i;
            seen |= 1u << axis;
        }
    }
    const bool good = (seen == 15u && last) ||
                      dp_fail(error,
                              "%s:%s: its axes '%.64s' are not an order of batch,head,seq,dim: "
                              "name each of the four once",
                              file->path, path, text);
    free(text);
    return good;
}

/* The element format: what the type says, and for bf16 bits what `format` says. */
static bool read_format(const dp_h5 *file, operand *o, dp_error *error)
{
    const char *expected = o->type == DP_H5_F32 ? "f32" : o->type == DP_H5_F16 ? "f16" : "bf16";
    const bool labelled = dp_h5_has_attribute(file, o->path, "format");
    (void)snprintf(o->format, sizeof o->format, "%s", expected);
    if (o->type == DP_H5_U16 && !labelled) {
        return dp_fail(error,
                       "%s:%s: 16-bit integers without a 'format' attribute could be "
                       "anything: write format = \"bf16\"",
                       file->path, o->path);
    }
    return !labelled || dp_h5_check_format(file, o->path, expected, error);
}

static bool read_layout(const dp_h5 *file, operand *o, dp_h5_shape *shape, dp_error *error)
{
    int where[4];
    if (!dp_h5_describe(file, o->path, &o->type, shape, error)) {
        return false;
    }
    if (o->type != DP_H5_U16 && o->type != DP_H5_F16 && o->type != DP_H5_F32) {
        o->type = DP_H5_U16; /* reading will name both types */
        return true;
    }
    if (!read_format(file, o, error) || !read_axes(file, o->path, where, error)) {
        return false;
    }
    for (int axis = 0; axis < 4 && shape->rank == 4; axis++) {
        o->extent[axis] = (size_t)shape->dims[where[axis]];
        o->stride[axis] = 1;
        for (int i = where[axis] + 1; i < 4; i++) {
            o->stride[axis] *= (size_t)shape->dims[i];
        }
    }
    return true;
}

static float value_at(const void *raw, size_t i, dp_h5_type type)
{
    switch (type) {
    case DP_H5_U16: /* as bits, so that a NaN keeps its payload */
        return dp_f32_from_bits((uint32_t)((const uint16_t *)raw)[i] << 16);
    case DP_H5_F16:
        return dp_fp16_to_f32((dp_fp16){((const uint16_t *)raw)[i]});
    default:
        return ((const float *)raw)[i];
    }
}

static void transpose(operand *o, const void *raw)
{
    float *to = o->values;
    for (size_t b = 0; b < o->extent[0]; b++) {
        for (size_t h = 0; h < o->extent[1]; h++) {
            for (size_t s = 0; s < o->extent[2]; s++) {
                const size_t from = b * o->stride[0] + h * o->stride[1] + s * o->stride[2];
                for (size_t d = 0; d < o->extent[3]; d++) {
                    *to++ = value_at(raw, from + d * o->stride[3], o->type);
                }
            }
        }
    }
}

static bool read_operand(const dp_h5 *file, operand *o, dp_error *error)
{
    dp_h5_shape shape;
    void *raw;
    if (!read_layout(file, o, &shape, error) ||
        !dp_h5_read(file, o->path, o->type, 4, &shape, &raw, error)) {
        return false;
    }
    if (shape.count == 0) {
        free(raw);
        return dp_fail(error, "%s:%s: it is empty: write its data", file->path, o->path);
    }
    if (o->type == DP_H5_F32 && o->stride[3] == 1 && o->stride[2] == o->extent[3] &&
        o->stride[1] == o->extent[2] * o->stride[2] &&
        o->stride[0] == o->extent[1] * o->stride[1]) {
        o->values = raw; /* already in order */
        return true;
    }
    o->values = malloc(shape.count * sizeof(float));
    if (o->values != NULL) {
        transpose(o, raw);
    }
    free(raw);
    return o->values != NULL ||
           dp_fail(error, "%s:%s: no memory for %zu elements: free some or cut the file up",
                   file->path, o->path, shape.count);
}

static bool shapes_agree(const dp_h5 *file, const operand o[3], dp_error *error)
{
    static const char *const names[] = {"batch", "head", "seq", "dim"};
    for (int axis = 0; axis < 4; axis++) {
        const bool with_q = axis == 0 || axis == 3;
        if (o[1].extent[axis] != o[2].extent[axis] ||
            (with_q && o[0].extent[axis] != o[1].extent[axis])) {
            return dp_fail(error,
                           "%s:/inputs: the %s extents of q, k, v are %zu, %zu, %zu: they must "
                           "agree",
                           file->path, names[axis], o[0].extent[axis], o[1].extent[axis],
                           o[2].extent[axis]);
        }
    }
    if (strcmp(o[0].format, o[1].format) != 0 || strcmp(o[0].format, o[2].format) != 0) {
        return dp_fail(error, "%s:/inputs: the formats of q, k, v are %s, %s, %s: they must agree",
                       file->path, o[0].format, o[1].format, o[2].format);
    }
    return true;
}

/* kv_of_q: from the file, else consecutive groups. */
static bool read_heads(const dp_h5 *file, dp_tensors *t, dp_error *error)
{
    int64_t *given = NULL;
    size_t count = t->q_heads;
    if (dp_h5_has_attribute(file, "/", "kv_of_q")) {
        if (!dp_h5_i64_list(file, "/", "kv_of_q", &given, &count, error)) {
            return false;
        }
    } else if (t->q_heads % t->kv_heads != 0) {
        return dp_fail(error, "%s:/: %zu query heads do not divide into %zu groups: write kv_of_q",
                       file->path, t->q_heads, t->kv_heads);
    }
    t->kv_of_q = malloc(t->q_heads * sizeof *t->kv_of_q);
    bool good = t->kv_of_q != NULL || dp_fail(error, "%s: no memory: free some", file->path);
    if (good && count != t->q_heads) {
        good = dp_fail(error, "%s:/: kv_of_q has %zu entries for %zu query heads: write one each",
                       file->path, count, t->q_heads);
    }
    for (size_t h = 0; good && h < t->q_heads; h++) {
        const int64_t kv = given != NULL ? given[h] : (int64_t)(h * t->kv_heads / t->q_heads);
        if (kv < 0 || (uint64_t)kv >= t->kv_heads) {
            good = dp_fail(error, "%s:/: kv_of_q of head %zu is %" PRId64 ": give 0 to %zu",
                           file->path, h, kv, t->kv_heads - 1);
            break;
        }
        t->kv_of_q[h] = (size_t)kv;
    }
    free(given);
    return good;
}

static bool optional_text(const dp_h5 *file, const char *name, char **text, dp_error *error)
{
    return !dp_h5_has_attribute(file, "/", name) || dp_h5_text(file, "/", name, text, error);
}

static bool read_attributes(const dp_h5 *file, dp_tensors *t, dp_error *error)
{
    int64_t causal = 0;
    t->layer = -1;
    t->softmax_scale = 1.0 / sqrt((double)t->dim);
    if ((dp_h5_has_attribute(file, "/", "softmax_scale") &&
         !dp_h5_f64(file, "/", "softmax_scale", &t->softmax_scale, error)) ||
        (dp_h5_has_attribute(file, "/", "causal") &&
         !dp_h5_i64(file, "/", "causal", &causal, error)) ||
        (dp_h5_has_attribute(file, "/", "layer") &&
         !dp_h5_i64(file, "/", "layer", &t->layer, error))) {
        return false;
    }
    if (!isfinite(t->softmax_scale) || t->softmax_scale <= 0.0) {
        return dp_fail(error, "%s:/: softmax_scale is %.17g: give a positive number", file->path,
                       t->softmax_scale);
    }
    if (causal != 0 && causal != 1) {
        return dp_fail(error, "%s:/: causal is %" PRId64 ": give 0 or 1", file->path, causal);
    }
    t->causal = causal == 1;
    return optional_text(file, "model", &t->model, error) &&
           optional_text(file, "note", &t->note, error) &&
           optional_text(file, "producer", &t->producer, error);
}

bool dp_tensors_read(const dp_h5 *file, dp_tensors *tensors, dp_error *error)
{
    operand o[3] = {{.path = "/inputs/q"}, {.path = "/inputs/k"}, {.path = "/inputs/v"}};
    memset(tensors, 0, sizeof *tensors);
    bool good = dp_h5_check_root(file, "tensors|dump", NULL, error);
    for (int i = 0; good && i < 3; i++) {
        good = read_operand(file, &o[i], error);
    }
    tensors->q = o[0].values;
    tensors->k = o[1].values;
    tensors->v = o[2].values;
    if (good && shapes_agree(file, o, error)) {
        tensors->batch = o[0].extent[0];
        tensors->q_heads = o[0].extent[1];
        tensors->kv_heads = o[1].extent[1];
        tensors->q_len = o[0].extent[2];
        tensors->kv_len = o[1].extent[2];
        tensors->dim = o[0].extent[3];
        memcpy(tensors->format, o[0].format, sizeof tensors->format);
        if (read_heads(file, tensors, error) && read_attributes(file, tensors, error)) {
            return true;
        }
    }
    dp_tensors_free(tensors);
    return false;
}

bool dp_tensors_load(const char *path, dp_tensors *tensors, dp_error *error)
{
    dp_h5 file;
    memset(tensors, 0, sizeof *tensors);
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    const bool good = dp_tensors_read(&file, tensors, error);
    dp_h5_close(&file);
    return good;
}

void dp_tensors_free(dp_tensors *tensors)
{
    free(tensors->q);
    free(tensors->k);
    free(tensors->v);
    free(tensors->kv_of_q);
    free(tensors->model);
    free(tensors->note);
    free(tensors->producer);
    memset(tensors, 0, sizeof *tensors);
}

const float *dp_tensors_q(const dp_tensors *tensors, size_t batch, size_t head, size_t row)
{
    return tensors->q + ((batch * tensors->q_heads + head) * tensors->q_len + row) * tensors->dim;
}

static size_t kv_offset(const dp_tensors *tensors, size_t batch, size_t q_head, size_t row)
{
    const size_t head = tensors->kv_of_q[q_head];
    return ((batch * tensors->kv_heads + head) * tensors->kv_len + row) * tensors->dim;
}

const float *dp_tensors_k(const dp_tensors *tensors, size_t batch, size_t q_head, size_t row)
{
    return tensors->k + kv_offset(tensors, batch, q_head, row);
}

const float *dp_tensors_v(const dp_tensors *tensors, size_t batch, size_t q_head, size_t row)
{
    return tensors->v + kv_offset(tensors, batch, q_head, row);
}
