/* SPDX-License-Identifier: MIT */
#include "analysis/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/codes.h"

void dp_rates_free(dp_rates *rates)
{
    free(rates->rows);
    memset(rates, 0, sizeof *rates);
}

dp_run_row *dp_rates_add(dp_rates *rates, dp_error *error)
{
    dp_run_row *more = realloc(rates->rows, (rates->count + 1) * sizeof *more);
    if (more == NULL) {
        (void)dp_fail(error, "record: not enough memory for %zu rows", rates->count + 1);
        return NULL;
    }
    rates->rows = more;
    memset(&more[rates->count], 0, sizeof *more);
    return &more[rates->count++];
}

/* "STAGE_elements" of a dataset's stage; the next column is its mismatches. */
static dp_run_number column_of(dp_dump_id id)
{
    const char *stage = dp_dump_datasets[id].stage;
    for (int c = DP_RUN_QUANTIZE_ELEMENTS; c < DP_RUN_CODE_MATCH; c += 2) {
        const char *name = dp_run_columns[c].name;
        if (strncmp(name, stage, strlen(stage)) == 0 && name[strlen(stage)] == '_') {
            return (dp_run_number)c;
        }
    }
    return DP_RUN_NUMBERS;
}

static void add(dp_run_row *row, dp_run_number column, double value)
{
    dp_run_set(row, column, (row->known[column] ? row->number[column] : 0.0) + value);
}

static void add_dataset(dp_run_row *row, dp_dump_id id, double elements, double mismatches)
{
    const dp_run_number stage = column_of(id);
    add(row, DP_RUN_ELEMENTS, elements);
    add(row, DP_RUN_MISMATCHES, mismatches);
    if (stage < DP_RUN_CODE_MATCH) {
        add(row, stage, elements);
        add(row, (dp_run_number)(stage + 1), mismatches);
    }
}

static void finish_counts(dp_run_row *row)
{
    if (row->known[DP_RUN_ELEMENTS]) {
        const double elements = row->number[DP_RUN_ELEMENTS];
        dp_run_set(row, DP_RUN_MISMATCH_RATE,
                   elements > 0.0 ? row->number[DP_RUN_MISMATCHES] / elements : 0.0);
    }
}

void dp_rates_of_diff(dp_run_row *row, const dp_diff_result *result)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_diff_dataset *set = &result->set[d];
        if (set->compared) {
            add_dataset(row, (dp_dump_id)d, (double)set->elements, (double)set->mismatches);
        }
    }
    if (result->order_differs) { /* no stage is wrong, and still the dumps differ */
        add(row, DP_RUN_ELEMENTS, 1.0);
        add(row, DP_RUN_MISMATCHES, 1.0);
    }
    finish_counts(row);
    dp_run_set_text(row, DP_RUN_FIRST_WRONG,
                    result->first_wrong >= 0 ? dp_dump_datasets[result->first_wrong].name
                    : result->order_differs  ? "key_order"
                                             : "");
    dp_run_set_text(row, DP_RUN_DIAGNOSIS,
                    result->finding_count > 0 ? result->findings[0].name : "");
}

/* A root text that may be missing. */
static void copy_attribute(dp_run_row *row, dp_run_text column, const dp_h5 *file, const char *name)
{
    char *text = NULL;
    dp_error ignored = {""};
    if (dp_h5_has_attribute(file, "/", name) && dp_h5_text(file, "/", name, &text, &ignored)) {
        dp_run_set_text(row, column, text);
    }
    free(text);
}

static void copy_origin(dp_run_row *row, const dp_h5 *file)
{
    copy_attribute(row, DP_RUN_DEVICE, file, "device");
    copy_attribute(row, DP_RUN_PRODUCER, file, "producer");
}

void dp_rates_of_attributes(dp_run_row *row, const dp_dump *dump)
{
    copy_attribute(row, DP_RUN_POLICY, &dump->file, "policy");
    copy_attribute(row, DP_RUN_EPOCH, &dump->file, "epoch");
    copy_origin(row, &dump->file);
}

bool dp_rates_of_range(dp_rates *rates, const char *series, const dp_range_study *study,
                       dp_error *error)
{
    for (size_t i = 0; i < study->case_count * study->format_count; i++) {
        const dp_range_case *from = &study->cases[i / study->format_count];
        const dp_range_format *format = &study->formats[i % study->format_count];
        const dp_range_result *r = &study->results[i];
        char name[512], head[32] = "";
        dp_run_row *row = dp_rates_add(rates, error);
        if (row == NULL) {
            return false;
        }
        if (from->head >= 0) {
            (void)snprintf(head, sizeof head, " head %lld", (long long)from->head);
        }
        (void)snprintf(name, sizeof name, "%s: %s S=%zu%s %s", series, from->source, from->seq,
                       head, format->name);
        dp_run_set_text(row, DP_RUN_SERIES, name);
        dp_run_set_text(row, DP_RUN_KIND, "range");
        if (!isnan(r->zero_scale)) { /* a format without block scales has none */
            dp_run_set(row, DP_RUN_ZERO_SCALE, r->zero_scale);
        }
        dp_run_set(row, DP_RUN_ZERO_PAYLOAD, r->zero_payload);
        dp_run_set(row, DP_RUN_LOST_MASS, r->lost_mass);
        dp_run_set(row, DP_RUN_P_REL_L2, r->p_rel_l2);
        dp_run_set(row, DP_RUN_REL_L2, r->pv_rel_l2);
        dp_run_set(row, DP_RUN_COSINE, r->pv_cosine);
    }
    return true;
}

static dp_run_row *named_row(dp_rates *rates, const char *series, const char *kind, dp_error *error)
{
    dp_run_row *row = dp_rates_add(rates, error);
    if (row != NULL) {
        dp_run_set_text(row, DP_RUN_SERIES, series);
        dp_run_set_text(row, DP_RUN_KIND, kind);
    }
    return row;
}

static bool from_range(dp_rates *rates, const char *path, const char *series, dp_error *error)
{
    dp_range_study study = {0};
    const size_t first = rates->count;
    dp_h5 file;
    bool good =
        dp_range_study_load(&study, path, error) && dp_rates_of_range(rates, series, &study, error);
    dp_range_study_free(&study);
    if (good && dp_h5_open(&file, path, error)) {
        for (size_t i = first; i < rates->count; i++) {
            copy_origin(&rates->rows[i], &file);
        }
        dp_h5_close(&file);
        return true;
    }
    return false;
}

static bool from_codes(dp_rates *rates, const char *path, const char *series, dp_error *error)
{
    dp_codes_file *codes = calloc(1, sizeof *codes);
    if (codes == NULL) {
        return dp_fail(error, "%s: not enough memory", path);
    }
    const bool good = dp_codes_load(path, codes, error);
    dp_run_row *row = good ? named_row(rates, series, "codes", error) : NULL;
    if (row != NULL) {
        const double lanes = (double)codes->match.lanes;
        int64_t zero = 0;
        for (int i = 0; i < DP_CODE_COUNT; i++) {
            zero += codes->match.confusion[i][0];
        }
        dp_run_set_text(row, DP_RUN_POLICY, codes->policy);
        dp_run_set_text(row, DP_RUN_EPOCH, codes->epoch);
        dp_run_set(row, DP_RUN_CODE_MATCH, (double)codes->match.match / lanes);
        dp_run_set(row, DP_RUN_ZERO_PAYLOAD, (double)zero / lanes);
    }
    free(codes);
    return row != NULL;
}

/* A report of `directp diff -o`. */
static bool read_report(dp_run_row *row, const dp_h5 *file, dp_error *error)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        char group[64];
        int64_t elements = 0, mismatches = 0;
        (void)snprintf(group, sizeof group, "/diff/%s", dp_dump_datasets[d].name);
        if (!dp_h5_exists(file, group)) {
            continue;
        }
        if (!dp_h5_i64(file, group, "elements", &elements, error) ||
            !dp_h5_i64(file, group, "mismatches", &mismatches, error)) {
            return false;
        }
        if (mismatches < 0 || elements < mismatches) {
            return dp_fail(error, "%s:%s: %lld mismatches of %lld elements: the file is damaged",
                           file->path, group, (long long)mismatches, (long long)elements);
        }
        add_dataset(row, (dp_dump_id)d, (double)elements, (double)mismatches);
    }
    finish_counts(row);
    copy_attribute(row, DP_RUN_FIRST_WRONG, file, "first_wrong");
    copy_attribute(row, DP_RUN_DIAGNOSIS, file, "diagnosis");
    copy_attribute(row, DP_RUN_POLICY, file, "policy");
    copy_attribute(row, DP_RUN_EPOCH, file, "epoch");
    copy_origin(row, file);
    return row->known[DP_RUN_ELEMENTS] ||
           dp_fail(error, "%s: no dataset was compared in this report: write it again", file->path);
}

static bool from_report(dp_rates *rates, const char *path, const char *series, dp_error *error)
{
    dp_h5 file;
    dp_run_row *row = named_row(rates, series, "diff", error);
    if (row == NULL || !dp_h5_open(&file, path, error)) {
        return false;
    }
    const bool good = read_report(row, &file, error);
    dp_h5_close(&file);
    return good;
}

/* A dump against the oracle, or against another. */
static bool from_dump(dp_rates *rates, const char *path, const char *series,
                      const dp_rates_options *options, dp_error *error)
{
    dp_dump dump, other;
    dp_dump_overrides overrides = options->overrides;
    const bool pair = options->against != NULL;
    dp_run_row *row = named_row(rates, series, pair ? "pair" : "dump", error);
    overrides.data_only = pair;
    if (row == NULL || !dp_dump_open(&dump, path, &overrides, error)) {
        return false;
    }
    if (pair && !dp_dump_open(&other, options->against, &overrides, error)) {
        dp_dump_close(&dump);
        return false;
    }
    const dp_diff_job job = {.dump = &dump,
                             .against = pair ? &other : NULL,
                             .threads = options->threads,
                             .rules = options->rules};
    dp_diff_result *result = dp_diff_run(&job, error);
    bool good = result != NULL;
    if (good) {
        dp_rates_of_attributes(row, &dump);
        dp_rates_of_diff(row, result);
        if (!pair) {
            dp_run_set_text(row, DP_RUN_POLICY, dump.launch.policy.name);
            dp_run_set_text(row, DP_RUN_EPOCH, dump.launch.epoch == DP_EPOCH_S ? "S" : "R");
        }
        good = pair ? dp_rates_of_pair(row, &dump, &other, error)
                    : dp_rates_of_dump(row, &dump, options->threads, error);
    }
    good = good && (row->known[DP_RUN_ELEMENTS] || row->known[DP_RUN_REL_L2] ||
                    dp_fail(error,
                            "%s: nothing in it could be compared: dump a stage together with the "
                            "one before it, or the inputs",
                            path));
    free(result);
    if (pair) {
        dp_dump_close(&other);
    }
    dp_dump_close(&dump);
    return good;
}

/* "folder/name.h5" is "name". */
static void default_series(const char *path, char *series, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);
    length -= length > 3 && strcmp(name + length - 3, ".h5") == 0 ? 3 : 0;
    (void)snprintf(series, size, "%.*s", (int)(length < size - 1 ? length : size - 1), name);
}

/* The kind of a file, as a copy of it: "dump", "range"... */
static bool kind_of(const char *path, char kind[16], dp_error *error)
{
    dp_h5 file;
    char *text = NULL;
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    bool good = dp_h5_check_root(&file, "dump|diff|range|codes|tensors", &text, error);
    dp_h5_close(&file);
    if (good) {
        (void)snprintf(kind, 16, "%.15s", text);
        good = strcmp(kind, "tensors") != 0 ||
               dp_fail(error,
                       "%s: it holds inputs, no results: run directp attend or range on it and "
                       "record what that writes",
                       path);
    }
    free(text);
    return good;
}

bool dp_rates_of_file(dp_rates *rates, const char *path, const dp_rates_options *options,
                      dp_error *error)
{
    char kind[16] = "", series[256];
    default_series(path, series, sizeof series);
    if (options->series != NULL) {
        (void)snprintf(series, sizeof series, "%.255s", options->series);
    }
    if (!kind_of(path, kind, error)) {
        return false;
    }
    if (options->against != NULL && strcmp(kind, "dump") != 0) {
        return dp_fail(error, "%s: its kind is '%s': --against compares two dumps", path, kind);
    }
    return strcmp(kind, "dump") == 0    ? from_dump(rates, path, series, options, error)
           : strcmp(kind, "range") == 0 ? from_range(rates, path, series, error)
           : strcmp(kind, "codes") == 0 ? from_codes(rates, path, series, error)
                                        : from_report(rates, path, series, error);
}
