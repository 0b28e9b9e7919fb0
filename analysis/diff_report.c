/* SPDX-License-Identifier: MIT */
#include "analysis/diff_report.h"

#include <inttypes.h>
#include <math.h>

/* As text: what fits a narrow terminal; places follow below the table. */
static const dp_column NARROW[] = {{"stage", NULL, -1},      {"dataset", NULL, -1},
                                   {"state", NULL, -1},      {"elements", NULL, -1},
                                   {"mismatches", NULL, -1}, {"rule", NULL, -1}};

static const dp_column COLUMNS[] = {{"stage", NULL, -1},
                                    {"dataset", NULL, -1},
                                    {"state", NULL, -1},
                                    {"elements", NULL, -1},
                                    {"mismatches", NULL, -1},
                                    {"rate", NULL, 9},
                                    {"rule", NULL, -1},
                                    {"first", "first (batch,head,row,column)", -1},
                                    {"expected", NULL, -1},
                                    {"found", NULL, -1},
                                    {"worst", "worst (batch,head,row,column)", -1},
                                    {"worst_distance", NULL, -1}};

const char *dp_diff_column_text(dp_dump_id id, uint64_t column, char text[80])
{
    text[0] = '\0';
    switch (id) {
    case DP_DUMP_RAW:
    case DP_DUMP_P_PAYLOAD:
    case DP_DUMP_V_PAYLOAD:
        (void)snprintf(text, 80, "key tile %" PRIu64 ", quarter %" PRIu64 ", lane %" PRIu64,
                       column / DP_TILE, column / DP_BLOCK % DP_QUARTERS, column % DP_BLOCK);
        break;
    case DP_DUMP_P_SCALE:
    case DP_DUMP_CODE_SUM:
    case DP_DUMP_V_SCALE:
        (void)snprintf(text, 80, "key tile %" PRIu64 ", quarter %" PRIu64, column / DP_QUARTERS,
                       column % DP_QUARTERS);
        break;
    case DP_DUMP_Q_PAYLOAD:
    case DP_DUMP_K_PAYLOAD:
        (void)snprintf(text, 80, "block %" PRIu64 ", feature %" PRIu64, column / 16, column);
        break;
    default:
        break;
    }
    return text;
}

static const char *state_of(const dp_diff_dataset *set)
{
    if (!set->dumped) {
        return "bridged";
    }
    return !set->compared ? "no source" : set->mismatches > 0 ? "DIFFERS" : "same";
}

static const char *rule_text(const dp_diff_job *job, dp_dump_id id, char text[40])
{
    if (job->rules.ulps[id] == 0) {
        return "bits";
    }
    (void)snprintf(text, 40, "%" PRIu64 " ulp", job->rules.ulps[id]);
    return text;
}

static int digits_of(dp_dump_id id)
{
    const dp_dump_kind kind = dp_dump_datasets[id].kind;
    return kind == DP_DUMP_CODES ? 1 : kind == DP_DUMP_BYTES ? 2 : kind == DP_DUMP_F32 ? 8 : 4;
}

static void add_place(dp_report *report, const dp_diff_place *place)
{
    char text[100];
    (void)snprintf(text, sizeof text, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, place->batch,
                   place->head, place->row, place->column);
    dp_report_text(report, text);
}

static void add_places(dp_report *report, dp_dump_id id, const dp_diff_dataset *set)
{
    if (set->mismatches == 0) {
        for (int i = 0; i < 5; i++) {
            dp_report_blank(report);
        }
        return;
    }
    add_place(report, &set->first);
    dp_report_bits(report, set->first.expected, digits_of(id));
    dp_report_bits(report, set->first.found, digits_of(id));
    add_place(report, &set->worst);
    if (set->worst.distance == UINT64_MAX) {
        dp_report_text(report, "NaN");
    } else {
        dp_report_i64(report, (int64_t)set->worst.distance);
    }
}

static dp_report *table(const dp_diff_job *job, const dp_diff_result *result, bool narrow)
{
    dp_report *report = narrow
                            ? dp_report_new(NULL, NARROW, sizeof NARROW / sizeof NARROW[0])
                            : dp_report_new("Stages", COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (int d = 0; report != NULL && d < DP_DUMP_DATASETS; d++) {
        const dp_dump_id id = (dp_dump_id)d;
        const dp_diff_dataset *set = &result->set[id];
        char rule[40];
        dp_report_text(report, dp_dump_datasets[id].stage);
        dp_report_text(report, dp_dump_datasets[id].name);
        dp_report_text(report, state_of(set));
        dp_report_i64(report, (int64_t)set->elements);
        dp_report_i64(report, (int64_t)set->mismatches);
        if (!narrow) {
            dp_report_f64(
                report, set->elements > 0 ? (double)set->mismatches / (double)set->elements : 0.0);
        }
        dp_report_text(report, rule_text(job, id, rule));
        if (!narrow) {
            add_places(report, id, set);
        }
    }
    return report;
}

/* Where the datasets that differ differ, two lines each. */
static void print_places(const dp_diff_result *result, FILE *stream)
{
    bool any = false;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_dump_id id = (dp_dump_id)d;
        const dp_diff_dataset *set = &result->set[id];
        if (set->histogram[0] > 0) {
            (void)fprintf(stream, "%s: %" PRIu64 " differences pass its rule or the options\n",
                          dp_dump_datasets[id].name, set->histogram[0]);
        }
        if (set->mismatches == 0) {
            continue;
        }
        (void)fputs(any ? "" : "\nDifferences at batch,head,row,column\n", stream);
        any = true;
        (void)fprintf(stream,
                      "  %-10s rate %.3g, first at %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                      ": found 0x%0*X for 0x%0*X\n",
                      dp_dump_datasets[id].name, (double)set->mismatches / (double)set->elements,
                      set->first.batch, set->first.head, set->first.row, set->first.column,
                      digits_of(id), (unsigned)set->first.found, digits_of(id),
                      (unsigned)set->first.expected);
        (void)fprintf(stream,
                      "             worst at %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ": ",
                      set->worst.batch, set->worst.head, set->worst.row, set->worst.column);
        if (set->worst.distance == UINT64_MAX) {
            (void)fputs("NaN\n", stream);
        } else {
            (void)fprintf(stream, "%" PRIu64 " %s\n", set->worst.distance,
                          dp_dump_datasets[id].kind >= DP_DUMP_F32 ? "ulp" : "off");
        }
        if (set->nan_pairs > 0) {
            (void)fprintf(stream, "             %" PRIu64 " of them are NaN against NaN\n",
                          set->nan_pairs);
        }
    }
}

/* y = slope x + intercept over the rows that differ, relative error and cosine. */
typedef struct {
    double slope, intercept, rel_l2, cosine;
} fit;

static fit fit_of(const dp_diff_dataset *set)
{
    fit f;
    const double var = set->sxx - set->sx * set->sx / set->n;
    f.slope = (set->sxy - set->sx * set->sy / set->n) / var;
    f.intercept = (set->sy - f.slope * set->sx) / set->n;
    f.rel_l2 = sqrt(fmax(0.0, set->sxx - 2.0 * set->sxy + set->syy) / set->sxx);
    f.cosine = set->sxy / sqrt(set->sxx * set->syy);
    return f;
}

static void print_histogram(const dp_diff_dataset *set, FILE *stream)
{
    (void)fputs("  distances: ", stream);
    int shown = 0;
    for (int b = 1; b < DP_DIFF_BUCKETS; b++) {
        if (set->histogram[b] == 0) {
            continue;
        }
        (void)fputs(shown == 0 ? "" : shown % 5 == 0 ? ",\n             " : ", ", stream);
        shown++;
        if (b == DP_DIFF_BUCKETS - 1) {
            (void)fprintf(stream, "NaN: %" PRIu64, set->histogram[b]);
        } else if (b == 1) {
            (void)fprintf(stream, "0-1: %" PRIu64, set->histogram[b]);
        } else {
            (void)fprintf(stream, "2^%d: %" PRIu64, b - 1, set->histogram[b]);
        }
    }
    (void)fprintf(stream, "\n  larger %" PRIu64 ", smaller %" PRIu64 "\n", set->above, set->below);
}

static bool by_key(dp_dump_id id)
{
    return id == DP_DUMP_RAW || id == DP_DUMP_P_PAYLOAD || id == DP_DUMP_P_SCALE ||
           id == DP_DUMP_CODE_SUM || id == DP_DUMP_V_PAYLOAD || id == DP_DUMP_V_SCALE;
}

static void print_where(dp_dump_id id, const dp_diff_dataset *set, FILE *stream)
{
    (void)fprintf(stream, "  by query tile: even %" PRIu64 ", odd %" PRIu64, set->parity[0],
                  set->parity[1]);
    if (by_key(id)) {
        (void)fprintf(stream, "; by quarter: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                      set->quarter[0], set->quarter[1], set->quarter[2], set->quarter[3]);
    }
    if (dp_dump_width(&(dp_dump){.features = 128, .key_rows = 128}, id) > 1) {
        (void)fprintf(stream, "\n  by column: even %" PRIu64 ", odd %" PRIu64, set->lane_parity[0],
                      set->lane_parity[1]);
    }
    (void)fputs("\n", stream);
    if (set->n > 1.0) {
        const fit f = fit_of(set);
        (void)fprintf(
            stream,
            "  rows that differ: slope %.6g, intercept %.6g, relative L2 %.4g\n    (cosine "
            "%.8f does not count)\n",
            f.slope, f.intercept, f.rel_l2, f.cosine);
    }
}

static dp_diff_cluster cluster_of(const dp_diff_result *result, dp_dump_id id)
{
    return dp_diff_cluster_of(&result->set[id].map[0][0], DP_DIFF_MAP, result->map_rows[id],
                              result->map_covered[id], result->map_columns[id],
                              result->set[id].mismatches);
}

/* How the mismatches lie: a wrong tile, lane or head, or a rule that acts everywhere. */
static void print_spread(const dp_diff_result *result, dp_dump_id id, FILE *stream)
{
    const dp_diff_dataset *set = &result->set[id];
    const dp_diff_spread *s = &set->spread;
    const dp_diff_cluster c = cluster_of(result, id);
    char residues[120];
    (void)fprintf(stream,
                  "  %s: %" PRIu64 " of %" PRIu64 " cells of the map hit, %.0f if diffuse; heads "
                  "%" PRIu64 "-%" PRIu64 ", rows %" PRIu64 "-%" PRIu64 ",\n    columns %" PRIu64
                  "-%" PRIu64 "; longest run %" PRIu64,
                  set->mismatches < 8 ? "few"
                  : c.clustered       ? "clustered"
                                      : "diffuse",
                  c.used, c.cells, c.diffuse, s->head_first, s->head_last, s->row_first,
                  s->row_last, s->column_first, s->column_last, s->longest_run);
    (void)dp_diff_residue_text(s, result->map_rows[id], result->map_columns[id], residues);
    (void)fprintf(stream, "%s%s\n", residues[0] != '\0' ? "; " : "", residues);
}

static void print_finding(const dp_diff_result *result, FILE *stream)
{
    if (result->against) {
        return;
    }
    for (size_t i = 0; i < result->finding_count; i++) {
        const dp_diff_finding *f = &result->findings[i];
        (void)fprintf(stream, "%s %s: %s\n", i == 0 ? "Diagnosis:" : "     also:", f->name,
                      f->meaning);
        if (f->detail[0] != '\0') {
            (void)fprintf(stream, "           %s\n", f->detail);
        }
        (void)fprintf(stream, "           %s %" PRIu64 " of %" PRIu64 " mismatches looked at\n",
                      f->left == 0 ? "explains" : "explains nearly all,", f->before - f->left,
                      f->before);
    }
    if (result->finding_count == 0) {
        (void)fprintf(stream,
                      "Diagnosis: none of the %zu known mistakes of this dataset explains the "
                      "data\n",
                      result->tried);
    }
    if (result->values[0] != '\0') {
        (void)fprintf(stream, "  values: %s\n", result->values);
    }
    if (result->presets_tried > 0) {
        (void)fprintf(stream, "  presets: of %zu quantizers %s%s\n", result->presets_tried,
                      result->presets[0] != '\0' ? "these make the bytes: "
                                                 : "none makes these bytes",
                      result->presets);
    }
}

static void print_first(const dp_diff_result *result, FILE *stream)
{
    if (result->first_wrong < 0) {
        return;
    }
    const dp_dump_id id = (dp_dump_id)result->first_wrong;
    const dp_diff_dataset *set = &result->set[id];
    char text[80];
    (void)fprintf(stream, "\nFirst wrong stage: %s (%s), %" PRIu64 " of %" PRIu64 " elements\n",
                  dp_dump_datasets[id].stage, dp_dump_datasets[id].name, set->mismatches,
                  set->elements);
    (void)fprintf(stream,
                  "  first: batch %" PRIu64 ", head %" PRIu64 ", row %" PRIu64 ", column %" PRIu64
                  "%s%s\n    expected 0x%0*X, found 0x%0*X\n",
                  set->first.batch, set->first.head, set->first.row, set->first.column,
                  dp_diff_column_text(id, set->first.column, text)[0] != '\0' ? ": " : "", text,
                  digits_of(id), (unsigned)set->first.expected, digits_of(id),
                  (unsigned)set->first.found);
    print_histogram(set, stream);
    print_where(id, set, stream);
    print_spread(result, id, stream);
    print_finding(result, stream);
}

static void print_head(const dp_diff_job *job, const dp_diff_result *result, FILE *stream)
{
    const dp_dump *dump = job->dump;
    if (job->against != NULL) {
        (void)fprintf(stream, "%s against %s, by bits\n", dump->path, job->against->path);
        return;
    }
    (void)fprintf(stream,
                  "%s\n  policy %s, epoch %s, batch %zu, %zu of %zu heads, rows %zu to %zu, %zu "
                  "keys%s\n",
                  dump->path, dump->launch.policy.name,
                  dump->launch.epoch == DP_EPOCH_S ? "S" : "R", dump->batch, dump->head_count,
                  dump->q_heads, dump->row_first, dump->row_first + dump->rows - 1, dump->keys,
                  dump->causal ? ", causal" : "");
    if (result->order_differs) {
        (void)fputs(
            "DIFFERS: anchor-not-permuted: /inputs/key_order is not the order of this policy's "
            "anchors; the stages are compared in the file's order\n",
            stream);
    }
}

static void json_spread(dp_json *json, const dp_diff_result *result, dp_dump_id id)
{
    const dp_diff_spread *s = &result->set[id].spread;
    const dp_diff_cluster c = cluster_of(result, id);
    char residues[120];
    dp_json_key(json, "spread");
    dp_json_object_line(json);
    dp_json_member_bool(json, "clustered", c.clustered);
    dp_json_member_u64(json, "cells", c.used);
    dp_json_key(json, "cells_if_diffuse");
    dp_json_f64(json, c.diffuse);
    dp_json_member_u64(json, "row_first", s->row_first);
    dp_json_member_u64(json, "row_last", s->row_last);
    dp_json_member_u64(json, "column_first", s->column_first);
    dp_json_member_u64(json, "column_last", s->column_last);
    dp_json_member_u64(json, "longest_run", s->longest_run);
    dp_json_member_text(
        json, "residues",
        dp_diff_residue_text(s, result->map_rows[id], result->map_columns[id], residues));
    dp_json_close(json);
}

static void json_dataset(dp_json *json, const dp_diff_job *job, const dp_diff_result *result,
                         dp_dump_id id)
{
    const dp_diff_dataset *set = &result->set[id];
    char rule[40];
    dp_json_object(json);
    dp_json_member_text(json, "stage", dp_dump_datasets[id].stage);
    dp_json_member_text(json, "dataset", dp_dump_datasets[id].name);
    dp_json_member_text(json, "state", state_of(set));
    dp_json_member_text(json, "rule", rule_text(job, id, rule));
    dp_json_member_u64(json, "elements", set->elements);
    dp_json_member_u64(json, "mismatches", set->mismatches);
    dp_json_member_u64(json, "passed_by_rule", set->histogram[0]);
    dp_json_member_u64(json, "nan_against_nan", set->nan_pairs);
    const dp_diff_place *places[] = {&set->first, &set->worst};
    const char *const names[] = {"first", "worst"};
    for (int i = 0; set->mismatches > 0 && i < 2; i++) {
        dp_json_key(json, names[i]);
        dp_json_object_line(json);
        dp_json_member_u64(json, "batch", places[i]->batch);
        dp_json_member_u64(json, "head", places[i]->head);
        dp_json_member_u64(json, "row", places[i]->row);
        dp_json_member_u64(json, "column", places[i]->column);
        dp_json_key(json, "expected");
        dp_json_bits(json, places[i]->expected, digits_of(id));
        dp_json_key(json, "found");
        dp_json_bits(json, places[i]->found, digits_of(id));
        dp_json_close(json);
    }
    if (set->mismatches > 0) {
        json_spread(json, result, id);
        dp_json_key(json, "histogram");
        dp_json_array_line(json);
        for (int b = 0; b < DP_DIFF_BUCKETS; b++) {
            dp_json_u64(json, set->histogram[b]);
        }
        dp_json_close(json);
    }
    dp_json_close(json);
}

static void print_json(const dp_diff_job *job, const dp_diff_result *result, FILE *stream)
{
    dp_json json;
    dp_json_start(&json, stream);
    dp_json_object(&json);
    dp_json_member_text(&json, "file", job->dump->path);
    if (job->against != NULL) {
        dp_json_member_text(&json, "against", job->against->path);
    } else {
        dp_json_member_text(&json, "policy", job->dump->launch.policy.name);
        dp_json_member_text(&json, "epoch", job->dump->launch.epoch == DP_EPOCH_S ? "S" : "R");
    }
    const bool wrong = result->first_wrong >= 0;
    dp_json_member_bool(&json, "key_order_differs", result->order_differs);
    dp_json_member_text(&json, "verdict", wrong || result->order_differs ? "different" : "same");
    dp_json_key(&json, "first_wrong_stage");
    if (wrong) {
        dp_json_text(&json, dp_dump_datasets[result->first_wrong].stage);
        dp_json_member_text(&json, "first_wrong_dataset",
                            dp_dump_datasets[result->first_wrong].name);
    } else {
        dp_json_null(&json);
    }
    dp_json_key(&json, "stages");
    dp_json_array(&json);
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        json_dataset(&json, job, result, (dp_dump_id)d);
    }
    dp_json_close(&json);
    dp_json_key(&json, "diagnosis");
    dp_json_array(&json);
    for (size_t i = 0; i < result->finding_count; i++) {
        dp_json_object(&json);
        dp_json_member_text(&json, "name", result->findings[i].name);
        dp_json_member_text(&json, "meaning", result->findings[i].meaning);
        dp_json_member_u64(&json, "mismatches", result->findings[i].before);
        dp_json_member_u64(&json, "unexplained", result->findings[i].left);
        dp_json_member_text(&json, "detail", result->findings[i].detail);
        dp_json_close(&json);
    }
    dp_json_close(&json);
    dp_json_member_text(&json, "presets", result->presets);
    dp_json_member_text(&json, "values", result->values);
    dp_json_close(&json);
    dp_json_finish(&json);
}

bool dp_diff_print(const dp_diff_job *job, const dp_diff_result *result, dp_style style,
                   FILE *stream, dp_error *error)
{
    if (style == DP_STYLE_JSON) {
        print_json(job, result, stream);
        return true;
    }
    dp_report *report = table(job, result, style == DP_STYLE_TEXT);
    if (style == DP_STYLE_TEXT) {
        print_head(job, result, stream);
    }
    const bool good = report != NULL && dp_report_print(report, style, stream, error);
    dp_report_free(report);
    if (good && style == DP_STYLE_TEXT) {
        print_places(result, stream);
        print_first(result, stream);
    }
    return good || dp_fail(error, "diff: not enough memory for the report");
}

static bool save_dataset(dp_h5_writer *w, const dp_diff_result *result, dp_dump_id id,
                         dp_error *error)
{
    const dp_diff_dataset *set = &result->set[id];
    char path[80], group[64];
    static const dp_h5_labels labels = {"mismatches", "row,column", NULL, 0};
    const uint64_t map[2] = {DP_DIFF_MAP, DP_DIFF_MAP};
    const uint64_t buckets[1] = {DP_DIFF_BUCKETS};
    int64_t histogram[DP_DIFF_BUCKETS];
    for (int b = 0; b < DP_DIFF_BUCKETS; b++) {
        histogram[b] = (int64_t)set->histogram[b];
    }
    (void)snprintf(group, sizeof group, "/diff/%s", dp_dump_datasets[id].name);
    (void)snprintf(path, sizeof path, "%s/map", group);
    bool good = dp_h5_put(w, path, DP_H5_U32, 2, map, set->map, &labels, error);
    (void)snprintf(path, sizeof path, "%s/histogram", group);
    return good && dp_h5_put(w, path, DP_H5_I64, 1, buckets, histogram, NULL, error) &&
           dp_h5_put_i64(w, group, "elements", (int64_t)set->elements, error) &&
           dp_h5_put_i64(w, group, "mismatches", (int64_t)set->mismatches, error) &&
           dp_h5_put_i64(w, group, "rows", (int64_t)result->map_rows[id], error) &&
           dp_h5_put_i64(w, group, "columns", (int64_t)result->map_columns[id], error);
}

bool dp_diff_save(const dp_diff_job *job, const dp_diff_result *result, const char *path,
                  dp_error *error)
{
    const char *const inputs[] = {job->dump->path,
                                  job->against != NULL ? job->against->path : job->dump->path};
    dp_h5_writer w;
    bool good = dp_h5_create(&w, path, "diff", inputs, 2, error);
    if (!good) {
        return false;
    }
    w.deflate = 4;
    good = dp_h5_put_text(&w, "/", "source", job->dump->path, error) &&
           dp_h5_put_text(&w, "/", "first_wrong",
                          result->first_wrong < 0 ? "" : dp_dump_datasets[result->first_wrong].name,
                          error) &&
           dp_h5_put_text(&w, "/", "diagnosis",
                          result->finding_count > 0 ? result->findings[0].name : "", error);
    for (int d = 0; good && d < DP_DUMP_DATASETS; d++) {
        good = !result->set[d].compared || save_dataset(&w, result, (dp_dump_id)d, error);
    }
    good = good && dp_h5_commit(&w, error);
    dp_h5_abandon(&w);
    return good;
}

/* Text inside an XML attribute. */
static void put_xml(const char *text, FILE *stream)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            (void)fputs("&amp;", stream);
            break;
        case '<':
            (void)fputs("&lt;", stream);
            break;
        case '"':
            (void)fputs("&quot;", stream);
            break;
        default:
            (void)fputc((unsigned char)*text < 32 ? '?' : *text, stream);
        }
    }
}

static void junit_cases(const dp_diff_job *job, const dp_diff_result *result, FILE *stream)
{
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        const dp_diff_dataset *set = &result->set[d];
        (void)fputs("  <testcase classname=\"", stream);
        put_xml(job->dump->path, stream);
        (void)fprintf(stream, "\" name=\"%s.%s\">", dp_dump_datasets[d].stage,
                      dp_dump_datasets[d].name);
        if (!set->compared) {
            (void)fputs("<skipped/>", stream);
        } else if (set->mismatches > 0) {
            (void)fprintf(stream,
                          "<failure message=\"%" PRIu64 " of %" PRIu64
                          " elements differ, first at batch %" PRIu64 " head %" PRIu64
                          " row %" PRIu64 " column %" PRIu64,
                          set->mismatches, set->elements, set->first.batch, set->first.head,
                          set->first.row, set->first.column);
            if (d == result->first_wrong && result->finding_count > 0) {
                (void)fputs("; ", stream);
                put_xml(result->findings[0].name, stream);
            }
            (void)fputs("\"/>", stream);
        }
        (void)fputs("</testcase>\n", stream);
    }
}

bool dp_diff_junit(const dp_diff_job *job, const dp_diff_result *result, const char *path,
                   dp_error *error)
{
    const char *const inputs[] = {job->dump->path,
                                  job->against != NULL ? job->against->path : job->dump->path};
    dp_output output;
    int failures = 0, skipped = 0;
    for (int d = 0; d < DP_DUMP_DATASETS; d++) {
        failures += result->set[d].mismatches > 0;
        skipped += !result->set[d].compared;
    }
    if (!dp_output_begin(&output, path, inputs, 2, error)) {
        return false;
    }
    FILE *stream = fopen(output.temporary, "w");
    if (stream == NULL) {
        dp_output_abandon(&output);
        return dp_fail(error, "%s: cannot be written", path);
    }
    (void)fprintf(stream,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<testsuite name=\"directp diff\" tests=\"%d\" failures=\"%d\" "
                  "skipped=\"%d\">\n",
                  DP_DUMP_DATASETS, failures, skipped);
    junit_cases(job, result, stream);
    (void)fputs("</testsuite>\n", stream);
    const bool written = ferror(stream) == 0;
    if (fclose(stream) != 0 || !written) {
        dp_output_abandon(&output);
        return dp_fail(error, "%s: cannot be written: is the disk full?", path);
    }
    return dp_output_commit(&output, error);
}
