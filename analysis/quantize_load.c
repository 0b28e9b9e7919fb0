/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/numbers.h"
#include "analysis/quantize.h"
#include "formats/fp16.h"

/* Name of the dataset without its folder. */
static void take_name(const char *path, char name[64])
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(name, 64, "%.63s", slash != NULL ? slash + 1 : path);
}

static bool take_axes(const dp_h5 *file, const char *path, dp_quantize_subject *s, dp_error *error)
{
    char *text = NULL;
    if (!dp_h5_has_attribute(file, path, "axes")) {
        return true;
    }
    if (!dp_h5_text(file, path, "axes", &text, error)) {
        return false;
    }
    bool last = false;
    bool good = true;
    for (int i = 0; i < s->shape.rank && good; i++) {
        good = !last && dp_list_item(text, (size_t)i, s->axes[i], sizeof s->axes[i], &last);
    }
    if (!good || !last) {
        good = dp_fail(error, "%s:%s: its axes '%.64s' do not name %d dimensions: name each once",
                       file->path, path, text, s->shape.rank);
    }
    free(text);
    return good;
}

/* Widen 16-bit elements to f32, exactly. */
static bool widen(dp_quantize_subject *s, void *raw, dp_h5_type type, dp_error *error)
{
    if (type == DP_H5_F32) {
        s->values = raw;
        return true;
    }
    s->values = malloc(s->shape.count * sizeof(float));
    for (size_t i = 0; s->values != NULL && i < s->shape.count; i++) {
        const uint16_t bits = ((const uint16_t *)raw)[i];
        s->values[i] = type == DP_H5_F16 ? dp_fp16_to_f32((dp_fp16){bits})
                                         : dp_f32_from_bits((uint32_t)bits << 16);
    }
    free(raw);
    return s->values != NULL || dp_fail(error, "%s: no memory for it: free some", s->name);
}

bool dp_quantize_load(const dp_h5 *file, const char *path, dp_quantize_subject *s, dp_error *error)
{
    dp_h5_type type;
    void *raw;
    memset(s, 0, sizeof *s);
    take_name(path, s->name);
    if (!dp_h5_describe(file, path, &type, &s->shape, error)) {
        return false;
    }
    if (type == DP_H5_U16 && !dp_h5_check_format(file, path, "bf16", error)) {
        return false;
    }
    if (type != DP_H5_U16 && type != DP_H5_F16) {
        type = DP_H5_F32; /* a mismatch is named by the reader */
    }
    if (!dp_h5_read(file, path, type, -1, &s->shape, &raw, error)) {
        return false;
    }
    if (s->shape.count == 0 || s->shape.rank == 0) {
        free(raw);
        return dp_fail(error, "%s:%s: it is empty or a single number: give an array", file->path,
                       path);
    }
    return widen(s, raw, type, error) && take_axes(file, path, s, error) &&
           dp_quantize_axis(s, NULL, error);
}

bool dp_quantize_axis(dp_quantize_subject *s, const char *axis, dp_error *error)
{
    const int rank = s->shape.rank;
    int64_t index = rank - 1;
    for (int i = 0; axis != NULL && i < rank; i++) {
        if (strcmp(axis, s->axes[i]) == 0) {
            s->axis = (size_t)i;
            return true;
        }
    }
    dp_error ignored = {""};
    if (axis != NULL && !dp_parse_i64("--axis", axis, -rank, rank - 1, &index, &ignored)) {
        return dp_fail(error,
                       "--axis: %s has no axis '%.32s': give an index from %d to %d or a name "
                       "of its axes attribute",
                       s->name, axis, -rank, rank - 1);
    }
    s->axis = (size_t)(index < 0 ? index + rank : index);
    return true;
}
