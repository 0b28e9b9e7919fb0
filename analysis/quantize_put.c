/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/quantize.h"

/* Names the file format gives the layouts. */
static const char *layout_name(dp_layout layout)
{
    switch (layout) {
    case DP_LAYOUT_128X4:
        return "atom128x4";
    case DP_LAYOUT_SM120:
        return "atom64x4";
    case DP_LAYOUT_128X4_SWAPPED:
        return "atom128x4-swapped";
    default:
        return "linear";
    }
}

/* Extents of the other axes in order, then `last`; "batch,head,dim,seq" likewise. */
static int run_extents(const dp_quantize_subject *s, size_t last, uint64_t dims[DP_H5_RANK],
                       char axes[256])
{
    int rank = 0;
    size_t used = 0;
    axes[0] = '\0';
    for (int i = 0; i < s->shape.rank; i++) {
        if ((size_t)i != s->axis) {
            dims[rank++] = s->shape.dims[i];
            used += (size_t)snprintf(axes + used, 256 - used, "%s,", s->axes[i]);
        }
    }
    dims[rank++] = last;
    (void)snprintf(axes + used, 256 - used, "%s", s->axes[s->axis]);
    if (s->axes[0][0] == '\0') {
        axes[0] = '\0';
    }
    return rank;
}

/* How codes share bytes, in the words of a dump (FILES.md) where it has one. */
static const char *packing_name(const dp_quantize_method *m)
{
    const int width = m->element.has_sign + m->element.exponent_bits + m->element.mantissa_bits;
    if (width > 4) {
        return width > 8 ? "none" : "byte";
    }
    return !m->direct && m->preset.recipe.packing == DP_PACK_HALVES ? "halves" : "low-first";
}

static bool put_payload(dp_h5_writer *w, const dp_quantize_method *m, const dp_quantize_subject *s,
                        const dp_quantize_result *r, dp_error *error)
{
    char path[128];
    char axes[256];
    uint64_t dims[DP_H5_RANK];
    const int rank = run_extents(s, r->shape.run_payload_bytes / r->code_bytes, dims, axes);
    const dp_h5_labels labels = {.format = m->element.name,
                                 .axes = axes[0] != '\0' ? axes : NULL,
                                 .layout = "linear",
                                 .block = m->direct ? 0 : (int64_t)m->preset.recipe.block};
    (void)snprintf(path, sizeof path, "/quantize/%s_payload", s->name);
    return dp_h5_put(w, path, r->code_bytes == 2 ? DP_H5_U16 : DP_H5_U8, rank, dims, r->payload,
                     &labels, error) &&
           dp_h5_put_i64(w, path, "length", (int64_t)r->shape.length, error) &&
           dp_h5_put_i64(w, path, "padded", (int64_t)r->shape.padded, error) &&
           dp_h5_put_text(w, path, "packing", packing_name(m), error);
}

/* Scales in an atom layout: one buffer for each matrix of the two last dimensions. */
static bool put_swizzled(dp_h5_writer *w, const char *path, const char *format,
                         const dp_quantize_subject *s, const dp_quantize_result *r, size_t block,
                         dp_layout layout, dp_error *error)
{
    uint64_t dims[DP_H5_RANK];
    char axes[256];
    const int rank = run_extents(s, r->shape.blocks, dims, axes);
    const dp_layout_map map = {layout, rank > 1 ? (size_t)dims[rank - 2] : 1, r->shape.blocks};
    const size_t bytes = dp_layout_bytes(map);
    const size_t matrices = r->shape.runs / map.rows;
    uint8_t *stored = malloc(matrices * bytes);
    if (stored == NULL) {
        return dp_fail(error, "quantize: no memory for %zu scale bytes: free some",
                       matrices * bytes);
    }
    for (size_t i = 0; i < matrices; i++) {
        dp_layout_swizzle(map, r->scale + i * map.rows * map.cols, stored + i * bytes);
    }
    const dp_h5_labels labels = {
        .format = format, .layout = layout_name(layout), .block = (int64_t)block};
    const int stored_rank = rank > 2 ? rank - 1 : 1;
    dims[stored_rank - 1] = bytes;
    const bool good = dp_h5_put(w, path, DP_H5_U8, stored_rank, dims, stored, &labels, error) &&
                      dp_h5_put_i64(w, path, "rows", (int64_t)map.rows, error) &&
                      dp_h5_put_i64(w, path, "columns", (int64_t)map.cols, error);
    free(stored);
    return good;
}

static bool put_scale(dp_h5_writer *w, const dp_quantize_method *m, const dp_quantize_subject *s,
                      const dp_quantize_result *r, dp_layout layout, dp_error *error)
{
    static const char *const formats[] = {"ue4m3", "ue5m3", "e8m0", "f32"};
    const char *format = formats[m->preset.recipe.scale];
    char path[128];
    char axes[256];
    uint64_t dims[DP_H5_RANK];
    (void)snprintf(path, sizeof path, "/quantize/%s_scale", s->name);
    if (layout != DP_LAYOUT_LINEAR) {
        return put_swizzled(w, path, format, s, r, m->preset.recipe.block, layout, error);
    }
    const int rank = run_extents(s, r->shape.blocks, dims, axes);
    const dp_h5_labels labels = {.format = format,
                                 .axes = axes[0] != '\0' ? axes : NULL,
                                 .layout = "linear",
                                 .block = (int64_t)m->preset.recipe.block};
    const bool wide = m->preset.recipe.scale == DP_SCALE_F32;
    return dp_h5_put(w, path, wide ? DP_H5_F32 : DP_H5_U8, rank, dims, r->scale, &labels, error);
}

/* One tensor, one global scale; written for every head because a dump may hold part of them. */
static bool put_global(dp_h5_writer *w, const dp_quantize_subject *s, const dp_quantize_result *r,
                       dp_error *error)
{
    char path[128];
    const bool heads =
        s->shape.rank == 4 && strcmp(s->axes[0], "batch") == 0 && strcmp(s->axes[1], "head") == 0;
    const uint64_t one[] = {1};
    const size_t count = heads ? (size_t)(s->shape.dims[0] * s->shape.dims[1]) : 1;
    float *values = malloc(count * sizeof *values);
    if (values == NULL) {
        return dp_fail(error, "quantize: no memory for %zu global scales: free some", count);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = r->global.value;
    }
    const dp_h5_labels labels = {.format = "f32", .axes = heads ? "batch,head" : NULL};
    (void)snprintf(path, sizeof path, "/quantize/%s_global", s->name);
    const bool good =
        dp_h5_put(w, path, DP_H5_F32, heads ? 2 : 1, heads ? s->shape.dims : one, values, &labels,
                  error) &&
        dp_h5_put_text(w, path, "kind", r->global.kind == DP_GLOBAL_DIV ? "divide" : "multiply",
                       error);
    free(values);
    return good;
}

bool dp_quantize_put(dp_h5_writer *w, const dp_quantize_method *m, const dp_quantize_subject *s,
                     const dp_quantize_result *r, dp_layout layout, dp_error *error)
{
    if (!put_payload(w, m, s, r, error)) {
        return false;
    }
    if (m->direct) {
        return true;
    }
    return put_scale(w, m, s, r, layout, error) &&
           (r->global.kind == DP_GLOBAL_NONE || put_global(w, s, r, error));
}
