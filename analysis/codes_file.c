/* SPDX-License-Identifier: MIT
 *
 * Files of kind "codes".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/codes.h"

typedef struct {
    const char *path;
    size_t offset; /* in dp_code_match */
    int rank;
    uint64_t dims[2];
    const char *axes;
} table;

static const table TABLES[] = {
    {"/codes/confusion",
     offsetof(dp_code_match, confusion),
     2,
     {DP_CODE_COUNT, DP_CODE_COUNT},
     "ideal,produced"},
    {"/codes/byte_lanes", offsetof(dp_code_match, byte_lanes), 1, {DP_BYTES, 0}, "raw_byte"},
    {"/codes/byte_match", offsetof(dp_code_match, byte_match), 1, {DP_BYTES, 0}, "raw_byte"},
    {"/codes/distance_lanes",
     offsetof(dp_code_match, distance_lanes),
     1,
     {DP_DISTANCE_BINS, 0},
     "distance"},
    {"/codes/distance_match",
     offsetof(dp_code_match, distance_match),
     1,
     {DP_DISTANCE_BINS, 0},
     "distance"},
};
enum { TABLE_COUNT = sizeof TABLES / sizeof TABLES[0] };

static void *table_data(dp_code_match *match, const table *t)
{
    return (char *)match + t->offset;
}

static bool put_launch(dp_h5_writer *w, const dp_attend_inputs *inputs, const dp_direct_p *launch,
                       const dp_mma_switches *mma, dp_error *error)
{
    char switches[1024];
    char fields[1024];
    dp_switches_text(&launch->switches, switches, sizeof switches);
    const size_t used = strlen(switches);
    (void)dp_mma_switches_text(mma, switches + used, sizeof switches - used);
    dp_forward_policy_text(&launch->policy, fields, sizeof fields);
    return dp_h5_put_text(w, "/", "policy", launch->policy.name, error) &&
           dp_h5_put_text(w, "/", "policy_fields", fields, error) &&
           dp_h5_put_text(w, "/", "epoch", launch->epoch == DP_EPOCH_S ? "S" : "R", error) &&
           dp_h5_put_text(w, "/", "switches", switches, error) &&
           dp_h5_put_text(w, "/", "sfu", launch->sfu->name, error) &&
           dp_h5_put_text(w, "/", "device", "CPU oracle", error) &&
           dp_h5_put_text(w, "/", "source", inputs->source, error) &&
           dp_h5_put_i64(w, "/", "smooth_k", inputs->smooth_k ? 1 : 0, error) &&
           dp_h5_put_i64(w, "/", "causal", inputs->in.causal ? 1 : 0, error);
}

static bool put_summary(dp_h5_writer *w, const dp_code_match *m, dp_error *error)
{
    return dp_h5_put_i64(w, "/codes", "lanes", m->lanes, error) &&
           dp_h5_put_i64(w, "/codes", "match", m->match, error) &&
           dp_h5_put_i64(w, "/codes", "code_sum", m->code_sum, error) &&
           dp_h5_put_i64(w, "/codes", "ideal_code_sum", m->ideal_code_sum, error) &&
           dp_h5_put_f64(w, "/codes", "mass_mean", m->mass_mean, error) &&
           dp_h5_put_f64(w, "/codes", "mass_least", m->mass_least, error) &&
           dp_h5_put_f64(w, "/codes", "mass_most", m->mass_most, error) &&
           dp_h5_put_i64(w, "/codes", "mass_rows", (int64_t)m->mass_rows, error) &&
           dp_h5_put_f64(w, "/codes", "distance_step", DP_DISTANCE_STEP, error);
}

bool dp_codes_save(const char *path, const dp_attend_inputs *inputs, const dp_direct_p *launch,
                   const dp_mma_switches *mma, const dp_code_match *match, dp_error *error)
{
    const char *const files[] = {inputs->source};
    dp_code_match copy = *match;
    dp_h5_writer w;
    bool good = dp_h5_create(&w, path, "codes", files, inputs->kv_of_q != NULL ? 1 : 0, error) &&
                put_launch(&w, inputs, launch, mma, error);
    for (size_t i = 0; good && i < TABLE_COUNT; i++) {
        const dp_h5_labels labels = {.axes = TABLES[i].axes};
        good = dp_h5_put(&w, TABLES[i].path, DP_H5_I64, TABLES[i].rank, TABLES[i].dims,
                         table_data(&copy, &TABLES[i]), &labels, error);
    }
    good = good && put_summary(&w, match, error) && dp_h5_commit(&w, error);
    dp_h5_abandon(&w);
    return good;
}

static bool get_table(const dp_h5 *file, const table *t, dp_code_match *match, dp_error *error)
{
    dp_h5_shape shape;
    void *data = NULL;
    if (!dp_h5_read(file, t->path, DP_H5_I64, t->rank, &shape, &data, error)) {
        return false;
    }
    const size_t cells = (size_t)t->dims[0] * (t->rank == 2 ? (size_t)t->dims[1] : 1);
    const bool good = shape.dims[0] == t->dims[0] && shape.count == cells;
    if (good) {
        memcpy(table_data(match, t), data, cells * sizeof(int64_t));
    }
    free(data);
    return good || dp_fail(error, "%s: %s has another shape than directp writes: make it again",
                           file->path, t->path);
}

static bool get_text(const dp_h5 *file, const char *name, char *to, size_t size, dp_error *error)
{
    char *text = NULL;
    if (!dp_h5_text(file, "/", name, &text, error)) {
        return false;
    }
    (void)snprintf(to, size, "%s", text);
    free(text);
    return true;
}

bool dp_codes_load(const char *path, dp_codes_file *to, dp_error *error)
{
    dp_h5 file;
    memset(to, 0, sizeof *to);
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    dp_code_match *m = &to->match;
    bool good = dp_h5_check_root(&file, "codes", NULL, error) &&
                get_text(&file, "policy", to->policy, sizeof to->policy, error) &&
                get_text(&file, "epoch", to->epoch, sizeof to->epoch, error) &&
                get_text(&file, "source", to->source, sizeof to->source, error) &&
                dp_h5_i64(&file, "/codes", "lanes", &m->lanes, error) &&
                dp_h5_i64(&file, "/codes", "match", &m->match, error) &&
                dp_h5_f64(&file, "/codes", "mass_mean", &m->mass_mean, error);
    for (size_t i = 0; good && i < TABLE_COUNT; i++) {
        good = get_table(&file, &TABLES[i], m, error);
    }
    dp_h5_close(&file);
    return good;
}
