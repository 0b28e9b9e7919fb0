/* SPDX-License-Identifier: MIT
 *
 * Groups of scalar instructions: x [case] or [case, operand] and y [case]; a complete sweep has the
 * attributes `first` and `step` in place of x, and may hold dy, the first differences of y modulo
 * 2^32, in place of y.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/capture.h"

typedef struct {
    const dp_capture_function_desc *desc;
    const dp_sfu *sfu;
    uint32_t *x, *y;
    size_t cases;
    int columns;    /* words of x a case; 0 for a sweep */
    bool one_input; /* a pair conversion recorded as a function of one input */
    uint64_t first, step;
} function_data;

static void input(const function_data *f, size_t i, uint32_t x[3])
{
    const uint32_t one =
        f->columns == 0 ? (uint32_t)(f->first + f->step * i) : f->x[i * (size_t)f->columns];
    x[0] = one;
    for (int c = 1; c < f->columns && c < 3; c++) {
        x[c] = f->x[i * (size_t)f->columns + (size_t)c];
    }
    if (f->one_input) {
        x[0] = f->desc->source != 0 ? one | one << f->desc->source : one;
        x[1] = one;
    }
}

static uint32_t model(const function_data *f, size_t i)
{
    uint32_t x[3] = {0, 0, 0};
    input(f, i, x);
    const uint32_t y = f->desc->run(f->sfu, x);
    return f->one_input ? y & ((1u << f->desc->field) - 1u) : y;
}

static bool differs(const void *context, size_t i)
{
    const function_data *f = context;
    return model(f, i) != f->y[i];
}

static bool sweep(const dp_capture_group *g, function_data *f, dp_error *error)
{
    int64_t first;
    int64_t step;
    if (!dp_h5_i64(g->file, g->path, "first", &first, error) ||
        !dp_h5_i64(g->file, g->path, "step", &step, error)) {
        return false;
    }
    if (first < 0 || first > UINT32_MAX || step < 1 || step > UINT32_MAX) {
        return dp_fail(error,
                       "%s:%s: first = %" PRId64 ", step = %" PRId64 " are no 32-bit inputs: "
                       "record the sweep again",
                       g->file->path, g->path, first, step);
    }
    f->first = (uint64_t)first;
    f->step = (uint64_t)step;
    return true;
}

static bool inputs(const dp_capture_group *g, function_data *f, dp_error *error)
{
    char path[200];
    dp_h5_shape shape;
    int width;
    (void)snprintf(path, sizeof path, "%s/x", g->path);
    const bool stored = dp_h5_exists(g->file, path);
    if (dp_h5_has_attribute(g->file, g->path, "first")) {
        if (stored) {
            return dp_fail(error, "%s:%s: it has both x and first: keep one of them", g->file->path,
                           g->path);
        }
        return sweep(g, f, error);
    }
    if (!dp_capture_words(g, "x", 1, 2, &shape, &width, &f->x, error)) {
        return false;
    }
    f->columns = shape.rank == 2 ? (int)(shape.dims[1] > 3 ? 4 : shape.dims[1]) : 1;
    if (shape.dims[0] != f->cases) {
        return dp_fail(error, "%s:%s: x has %" PRIu64 " cases and y has %zu: record it again",
                       g->file->path, g->path, shape.dims[0], f->cases);
    }
    return true;
}

static bool outputs(const dp_capture_group *g, function_data *f, int *width, dp_error *error)
{
    char path[200];
    dp_h5_shape shape;
    (void)snprintf(path, sizeof path, "%s/dy", g->path);
    const bool differences = dp_h5_exists(g->file, path);
    if (!dp_capture_words(g, differences ? "dy" : "y", 1, 1, &shape, width, &f->y, error)) {
        return false;
    }
    f->cases = shape.count;
    for (size_t i = 1; differences && i < shape.count; i++) {
        f->y[i] += f->y[i - 1];
    }
    return true;
}

/* Do the operands in the file fit the instruction, and is a pair recorded by one input? */
static bool fits(const dp_capture_group *g, function_data *f, int width, dp_error *error)
{
    const int columns = f->columns == 0 ? 1 : f->columns;
    const dp_capture_function_desc *d = f->desc;
    if (d->fields == 2 && columns == 1) {
        f->one_input = d->operands == 2 || width * 8 < 2 * d->field;
    }
    if (columns != d->operands && !f->one_input) {
        return dp_fail(error, "%s:%s: %s takes %d operands and x has %d: record it again",
                       g->file->path, g->path, d->instruction, d->operands, columns);
    }
    const int bits = f->one_input ? d->field : d->field * d->fields;
    if (width * 8 < bits) {
        return dp_fail(error, "%s:%s: y holds %d bits and %s returns %d: store wider integers",
                       g->file->path, g->path, width * 8, d->instruction, bits);
    }
    return true;
}

static void describe(const dp_capture_group *g, const function_data *f, size_t i)
{
    uint32_t x[3] = {0, 0, 0};
    char operands[120] = "";
    input(f, i, x);
    const int count = f->one_input ? 1 : f->desc->operands;
    if (f->one_input && f->desc->source != 0) {
        x[0] &= (1u << f->desc->source) - 1u;
    }
    for (int c = 0, at = 0; c < count && c < 3; c++) {
        at += snprintf(operands + at, sizeof operands - (size_t)at, "%sx%d 0x%08X (%.9g)",
                       c > 0 ? ", " : "", c, x[c], (double)dp_f32_from_bits(x[c]));
    }
    const uint32_t y = model(f, i);
    (void)snprintf(g->result->first, sizeof g->result->first,
                   "case %zu: %s: file 0x%08X (%.9g), model 0x%08X (%.9g)", i, operands, f->y[i],
                   (double)dp_f32_from_bits(f->y[i]), y, (double)dp_f32_from_bits(y));
}

static bool replay(const dp_capture_group *g, function_data *f, dp_error *error)
{
    int width = 0;
    size_t first;
    if (!outputs(g, f, &width, error) || !inputs(g, f, error)) {
        return false;
    }
    g->result->cases = f->cases;
    if (f->desc == NULL) {
        g->result->model = "none";
        return true;
    }
    if (!fits(g, f, width, error)) {
        return false;
    }
    g->result->model = f->desc->special ? f->sfu->name : "scalar";
    g->result->mismatches = dp_capture_count(g->options->threads, f->cases, differs, f, &first);
    if (g->result->mismatches > 0) {
        describe(g, f, first);
    }
    return true;
}

bool dp_capture_function(const dp_capture_group *group, dp_error *error)
{
    function_data f = {.desc = dp_capture_function_find(group->result->instruction),
                       .sfu = group->sfu};
    const bool good = replay(group, &f, error);
    free(f.x);
    free(f.y);
    return good;
}
