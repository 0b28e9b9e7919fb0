/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/range_study.h"

/* The real-valued results of a format, by dataset name. */
typedef struct {
    const char *name;
    size_t offset; /* in dp_range_result */
} result_field;

static const result_field fields[] = {
    {"zero_scale", offsetof(dp_range_result, zero_scale)},
    {"zero_payload", offsetof(dp_range_result, zero_payload)},
    {"underflow", offsetof(dp_range_result, underflow)},
    {"lost_mass", offsetof(dp_range_result, lost_mass)},
    {"p_rel_l2", offsetof(dp_range_result, p_rel_l2)},
    {"pv_cosine", offsetof(dp_range_result, pv_cosine)},
    {"pv_rel_l2", offsetof(dp_range_result, pv_rel_l2)},
    {"min_scale", offsetof(dp_range_result, min_scale)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static double *field_of(dp_range_result *result, size_t field)
{
    return (double *)(void *)((char *)result + fields[field].offset);
}

/* Integer descriptions of the cases, by dataset name. */
static const char *const case_fields[] = {"seq", "head", "heads", "rows",  "queries",
                                          "dim", "seed", "sms",   "causal"};
enum { CASE_FIELDS = sizeof case_fields / sizeof case_fields[0] };

static int64_t case_value(const dp_range_case *from, size_t field)
{
    const int64_t values[CASE_FIELDS] = {
        (int64_t)from->seq,     from->head,         (int64_t)from->heads, (int64_t)from->rows,
        (int64_t)from->queries, (int64_t)from->dim, (int64_t)from->seed,  from->sms,
        from->causal ? 1 : 0};
    return values[field];
}

static bool put_cases(dp_h5_writer *writer, const dp_range_study *study, dp_error *error)
{
    const uint64_t dims[] = {study->case_count};
    const dp_h5_labels labels = {.axes = "case"};
    int64_t *column = malloc(study->case_count * sizeof *column);
    char *sources = calloc(study->case_count, sizeof study->cases[0].source);
    bool good = (column != NULL && sources != NULL) ||
                dp_fail(error, "range: not enough memory to write the cases: free some");
    for (size_t field = 0; good && field < CASE_FIELDS; field++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/cases/%s", case_fields[field]);
        for (size_t i = 0; i < study->case_count; i++) {
            column[i] = case_value(&study->cases[i], field);
        }
        good = dp_h5_put(writer, path, DP_H5_I64, 1, dims, column, &labels, error);
    }
    /* One line a case. */
    size_t used = 0;
    for (size_t i = 0; good && i < study->case_count; i++) {
        used += (size_t)snprintf(sources + used, sizeof study->cases[0].source, "%s%.254s",
                                 i == 0 ? "" : "\n", study->cases[i].source);
    }
    good = good && dp_h5_put_text(writer, "/cases/seq", "source", sources, error);
    free(column);
    free(sources);
    return good;
}

static bool put_format(dp_h5_writer *writer, const dp_range_study *study, size_t format,
                       dp_error *error)
{
    const size_t cases = study->case_count;
    const char *name = study->formats[format].name;
    const uint64_t dims[] = {cases, DP_RANGE_SCALE_EXPONENTS};
    const dp_h5_labels labels = {.axes = "case", .block = (int64_t)study->block};
    const dp_h5_labels hist = {.axes = "exponent+127", .block = (int64_t)study->block};
    const dp_h5_labels hists = {.axes = "case,exponent+127", .block = (int64_t)study->block};
    char path[96];
    double *column = malloc(cases * sizeof *column);
    int64_t *counts = calloc((cases + 1) * DP_RANGE_SCALE_EXPONENTS, sizeof *counts);
    bool good = (column != NULL && counts != NULL) ||
                dp_fail(error, "range: not enough memory to write the results: free some");
    for (size_t field = 0; good && field < FIELDS; field++) {
        (void)snprintf(path, sizeof path, "/range/%s/%s", name, fields[field].name);
        for (size_t i = 0; i < cases; i++) {
            column[i] = *field_of(&study->results[i * study->format_count + format], field);
        }
        good = dp_h5_put(writer, path, DP_H5_F64, 1, dims, column, &labels, error);
    }
    for (size_t i = 0; good && i < cases; i++) {
        const dp_range_result *result = &study->results[i * study->format_count + format];
        for (size_t e = 0; e < DP_RANGE_SCALE_EXPONENTS; e++) {
            const int64_t count = (int64_t)result->counts.exponents[e];
            counts[(i + 1) * DP_RANGE_SCALE_EXPONENTS + e] = count;
            counts[e] += count; /* the first row is the sum over cases */
        }
    }
    (void)snprintf(path, sizeof path, "/range/%s/scale_hist", name);
    good = good && dp_h5_put(writer, path, DP_H5_I64, 1, dims + 1, counts, &hist, error);
    (void)snprintf(path, sizeof path, "/range/%s/scale_hist_case", name);
    good = good && dp_h5_put(writer, path, DP_H5_I64, 2, dims, counts + DP_RANGE_SCALE_EXPONENTS,
                             &hists, error);
    for (size_t i = 0; good && i < cases; i++) {
        counts[i] = (int64_t)study->results[i * study->format_count + format].lost_rows;
    }
    (void)snprintf(path, sizeof path, "/range/%s/lost_rows", name);
    good = good && dp_h5_put(writer, path, DP_H5_I64, 1, dims, counts, &labels, error);
    free(column);
    free(counts);
    return good;
}

/* "nvfp4-g1,mxfp4": the order of the study, which groups in a file do not keep. */
static bool put_root(dp_h5_writer *writer, const dp_range_study *study, dp_error *error)
{
    char names[DP_RANGE_FORMATS * 33] = "";
    size_t used = 0;
    for (size_t i = 0; i < study->format_count; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ",",
                                 study->formats[i].name);
    }
    return dp_h5_put_text(writer, "/", "formats", names, error) &&
           dp_h5_put_i64(writer, "/", "block", (int64_t)study->block, error);
}

bool dp_range_study_save(const dp_range_study *study, const char *path, const char *const *inputs,
                         size_t input_count, dp_error *error)
{
    dp_h5_writer writer;
    if (!dp_h5_create(&writer, path, "range", inputs, input_count, error)) {
        return false;
    }
    bool good = put_root(&writer, study, error) && put_cases(&writer, study, error);
    for (size_t format = 0; good && format < study->format_count; format++) {
        good = put_format(&writer, study, format, error);
    }
    if (good && dp_h5_commit(&writer, error)) {
        return true;
    }
    dp_h5_abandon(&writer);
    return false;
}

/* Set one integer description; false when it cannot be. */
static bool set_case_value(dp_range_case *to, size_t field, int64_t value)
{
    if (value < (field == 1 ? -1 : 0)) {
        return field == 6; /* seeds use all 64 bits */
    }
    switch (field) {
    case 0:
        to->seq = (size_t)value;
        break;
    case 1:
        to->head = value;
        break;
    case 2:
        to->heads = (size_t)value;
        break;
    case 3:
        to->rows = (size_t)value;
        break;
    case 4:
        to->queries = (size_t)value;
        break;
    case 5:
        to->dim = (size_t)value;
        break;
    case 6:
        to->seed = (uint64_t)value;
        break;
    case 7:
        to->sms = (int)value;
        break;
    default:
        to->causal = value != 0;
    }
    return true;
}

/* A dataset of one value a case. */
static bool read_column(const dp_h5 *file, const char *path, size_t cases, bool integer,
                        void **column, dp_error *error)
{
    dp_h5_shape shape;
    const bool good = integer
                          ? dp_h5_read_integers(file, path, 1, &shape, (int64_t **)column, error)
                          : dp_h5_read(file, path, DP_H5_F64, 1, &shape, column, error);
    if (good && shape.count != cases) {
        free(*column);
        return dp_fail(error,
                       "%s: %s: %zu values where /cases/seq has %zu: the file is inconsistent",
                       file->path, path, shape.count, cases);
    }
    return good;
}

static bool load_cases(const dp_h5 *file, dp_range_case *cases, size_t count, dp_error *error)
{
    for (size_t field = 0; field < CASE_FIELDS; field++) {
        char path[64];
        int64_t *column = NULL;
        (void)snprintf(path, sizeof path, "/cases/%s", case_fields[field]);
        if (!read_column(file, path, count, true, (void **)&column, error)) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            if (!set_case_value(&cases[i], field, column[i])) {
                free(column);
                return dp_fail(error, "%s: %s: value %zu is negative: the file is inconsistent",
                               file->path, path, i);
            }
        }
        free(column);
    }
    char *sources = NULL;
    if (!dp_h5_text(file, "/cases/seq", "source", &sources, error)) {
        return false;
    }
    const char *line = sources;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(line, "\n");
        (void)snprintf(cases[i].source, sizeof cases[i].source, "%.*s",
                       (int)(length < 255 ? length : 255), line);
        line += length + (line[length] == '\n');
    }
    free(sources);
    return true;
}

static bool load_format(const dp_h5 *file, const dp_range_study *study, size_t format,
                        dp_range_result *results, size_t cases, dp_error *error)
{
    char path[96];
    for (size_t field = 0; field < FIELDS; field++) {
        double *column = NULL;
        (void)snprintf(path, sizeof path, "/range/%s/%s", study->formats[format].name,
                       fields[field].name);
        if (!read_column(file, path, cases, false, (void **)&column, error)) {
            return false;
        }
        for (size_t i = 0; i < cases; i++) {
            *field_of(&results[i * study->format_count + format], field) = column[i];
        }
        free(column);
    }
    int64_t *lost = NULL;
    (void)snprintf(path, sizeof path, "/range/%s/lost_rows", study->formats[format].name);
    if (!read_column(file, path, cases, true, (void **)&lost, error)) {
        return false;
    }
    int64_t *hist = NULL;
    dp_h5_shape shape;
    (void)snprintf(path, sizeof path, "/range/%s/scale_hist_case", study->formats[format].name);
    bool good = dp_h5_read_integers(file, path, 2, &shape, &hist, error);
    if (good && shape.count != cases * DP_RANGE_SCALE_EXPONENTS) {
        good =
            dp_fail(error, "%s: %s: not [case][256]: the file is inconsistent", file->path, path);
    }
    for (size_t i = 0; good && i < cases; i++) {
        dp_range_result *result = &results[i * study->format_count + format];
        result->lost_rows = (uint64_t)lost[i];
        for (size_t e = 0; e < DP_RANGE_SCALE_EXPONENTS; e++) {
            result->counts.exponents[e] = (uint64_t)hist[i * DP_RANGE_SCALE_EXPONENTS + e];
        }
    }
    free(lost);
    free(hist);
    return good;
}

static bool load_root(const dp_h5 *file, dp_range_study *study, dp_error *error)
{
    char *names = NULL;
    int64_t block = 0;
    dp_range_study seen = {0};
    bool good = dp_h5_check_root(file, "range", NULL, error) &&
                dp_h5_i64(file, "/", "block", &block, error) &&
                dp_h5_text(file, "/", "formats", &names, error) &&
                dp_range_formats_parse(names, seen.formats, &seen.format_count, error);
    free(names);
    if (!good) {
        return false;
    }
    seen.block = (size_t)block;
    if (study->format_count == 0) {
        study->block = seen.block;
        study->format_count = seen.format_count;
        memcpy(study->formats, seen.formats, sizeof seen.formats);
    }
    bool same = study->format_count == seen.format_count && study->block == seen.block;
    for (size_t i = 0; same && i < seen.format_count; i++) {
        same = strcmp(study->formats[i].name, seen.formats[i].name) == 0;
    }
    return same || dp_fail(error,
                           "%s: other formats or another block size than the first file: run "
                           "directp range with the same --formats and --block",
                           file->path);
}

static bool load_all(const dp_h5 *file, dp_range_study *study, dp_error *error)
{
    dp_h5_type type;
    dp_h5_shape shape;
    if (!load_root(file, study, error) ||
        !dp_h5_describe(file, "/cases/seq", &type, &shape, error)) {
        return false;
    }
    const size_t count = shape.count, total = study->case_count + count;
    if (count == 0 || count > 1000000) {
        return dp_fail(error, "%s: /cases/seq: %zu cases: expected 1 to 1000000", file->path,
                       count);
    }
    dp_range_case *cases = calloc(total, sizeof *cases);
    dp_range_result *results = calloc(total * study->format_count, sizeof *results);
    bool good = (cases != NULL && results != NULL) ||
                dp_fail(error, "%s: not enough memory for %zu cases", file->path, total);
    dp_range_result *added = good ? results + study->case_count * study->format_count : NULL;
    good = good && load_cases(file, cases + study->case_count, count, error);
    for (size_t format = 0; good && format < study->format_count; format++) {
        good = load_format(file, study, format, added, count, error);
    }
    if (!good) {
        free(cases);
        free(results);
        return false;
    }
    if (study->case_count > 0) {
        memcpy(cases, study->cases, study->case_count * sizeof *cases);
        memcpy(results, study->results, study->case_count * study->format_count * sizeof *results);
    }
    dp_range_study_free(study);
    study->cases = cases;
    study->results = results;
    study->case_count = total;
    return true;
}

bool dp_range_study_load(dp_range_study *study, const char *path, dp_error *error)
{
    dp_h5 file;
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    const bool good = load_all(&file, study, error);
    dp_h5_close(&file);
    return good;
}
