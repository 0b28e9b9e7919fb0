/* SPDX-License-Identifier: MIT */
#include "analysis/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/numbers.h"
#include "formats/bf16.h"

/* Matched schedules side by side: Direct-P, exact maximum, then the other kernels. */
static const char *const FORMATS[] = {"direct-nv-nv",
                                      "direct-mx-nv",
                                      "direct-nv-mx",
                                      "direct-mx-mx",
                                      "direct-nv-fp8",
                                      "stabilised",
                                      "stabilised-mx-nv",
                                      "stabilised-nv-mx",
                                      "stabilised-mx-mx",
                                      "hao-nv-nv",
                                      "hao-nv-nv-log2",
                                      "hao-nv-mxfp8",
                                      "hao-nv-fp8",
                                      "hao-nv-bf16",
                                      "hao-mxfp8",
                                      "fa4-fp8",
                                      "fa4-bf16",
                                      "hao-mxfp8-fp8",
                                      "fa3-fp8",
                                      "sage2-fp8",
                                      "fast",
                                      "accurate",
                                      "wan",
                                      "ideal",
                                      "quadratic",
                                      "cubic"};
static const char *const ROUTES[] = {"hao-nv-nv",
                                     "sage3",
                                     "sage3-smooth",
                                     "fastvideo",
                                     "duda",
                                     "modelopt",
                                     "stabilised",
                                     "shiftless-nv-nv",
                                     "shiftless-nv-nv-raw",
                                     "shiftless-nv-nv-cubic",
                                     "sampled-1",
                                     "hao-nv-fp8",
                                     "hao-nv-mxfp8",
                                     "fa4-fp8",
                                     "fa4-fp8-offset8-threshold8",
                                     "sage2-fp8",
                                     "direct-nv-nv",
                                     "fast",
                                     "accurate",
                                     "guard-14b"};
static const double LIFTS[] = {1, 2, 16, 256, 320, 384, 416, 448, 2688};
static const double DENSITIES[] = {0, 1, 2, 3, 4};

/* Paths without a row maximum: bounded, as computed, with a map for 2^x; and one with a maximum. */
static const char *const SHIFTLESS[] = {"shiftless-nv-nv-raw",
                                        "shiftless-nv-nv",
                                        "shiftless-nv-nv-cubic",
                                        "direct-nv-nv",
                                        "fast",
                                        "hao-nv-nv"};
static const char *const OVERFLOW_INPUTS[] = {"normal", "q-x4", "q-x10"};

typedef struct {
    dp_matrix *matrix;
    dp_attend_inputs inputs;
    char input[DP_MATRIX_NAME];
    uint16_t *o, *reference;
    float *lse;
    int threads;
} bench;

static void discard(bench *b)
{
    dp_attend_inputs_free(&b->inputs);
    free(b->o);
    free(b->reference);
    free(b->lse);
    b->o = b->reference = NULL;
    b->lse = NULL;
}

/* The name of a file without its folder and ending. */
static void stem_of(const char *path, char *stem, size_t size)
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(stem, size, "%s", slash != NULL ? slash + 1 : path);
    char *dot = strrchr(stem, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
}

static bool load_file(bench *b, const char *path, dp_error *error)
{
    const dp_attend_transform plain = {.q_factor = 1.0};
    dp_tensors tensors;
    if (!dp_tensors_load(path, &tensors, error)) {
        return false;
    }
    const bool good = dp_attend_from_tensors(&tensors, path, &plain, &b->inputs, error);
    dp_tensors_free(&tensors);
    stem_of(path, b->input, sizeof b->input);
    return good;
}

static bool draw(bench *b, const char *input, dp_error *error)
{
    const dp_matrix *m = b->matrix;
    const dp_attend_transform plain = {.q_factor = 1.0};
    (void)snprintf(b->input, sizeof b->input, "%s", input);
    return dp_attend_random(m->seed, m->sms, 1, m->seq, m->heads, m->heads, m->dim, b->threads,
                            &plain, &b->inputs, error) &&
           (dp_matrix_shape(input, &b->inputs) ||
            dp_fail(error, "matrix: input '%s': no such input", input));
}

/* Inputs, from a file or by name, and BF16 attention of them. */
static bool prepare(bench *b, const char *input, bool is_file, dp_error *error)
{
    discard(b);
    if (!(is_file ? load_file(b, input, error) : draw(b, input, error))) {
        return false;
    }
    const dp_attention *in = &b->inputs.in;
    const size_t rows = in->batch * in->q_heads * in->queries;
    b->o = malloc(rows * in->dim * sizeof *b->o);
    b->reference = malloc(rows * in->dim * sizeof *b->reference);
    b->lse = malloc(rows * sizeof *b->lse);
    if (b->o == NULL || b->reference == NULL || b->lse == NULL) {
        return dp_fail(error, "matrix: not enough memory for %zu rows: use a shorter sequence",
                       rows);
    }
    return dp_reference_bf16(in, b->threads, b->reference, NULL, error);
}

static dp_matrix_row *append(dp_matrix *m)
{
    if (m->count == m->room) {
        const size_t room = m->room > 0 ? 2 * m->room : 64;
        dp_matrix_row *rows = realloc(m->rows, room * sizeof *rows);
        if (rows == NULL) {
            return NULL;
        }
        m->rows = rows;
        m->room = room;
    }
    return &m->rows[m->count++];
}

static void find_published(const dp_matrix *m, dp_matrix_row *row)
{
    row->published_cosine = row->published_rel_l2 = NAN;
    const char *table = strcmp(row->section, "formats") == 0   ? "matrix"
                        : strcmp(row->section, "g") == 0       ? "g-sweep"
                        : strcmp(row->section, "density") == 0 ? "density"
                                                               : "";
    for (size_t i = 0; i < dp_matrix_published_count(); i++) {
        const dp_matrix_published *p = dp_matrix_published_at(i);
        if (strcmp(p->table, table) == 0 && strcmp(p->route, row->name) == 0 && p->seq == m->seq &&
            p->heads == m->heads && p->seed == m->seed && p->sms == m->sms && m->file_count == 0 &&
            (isnan(row->parameter) || p->parameter == row->parameter)) {
            row->published_cosine = p->cosine;
            row->published_rel_l2 = p->rel_l2;
        }
    }
}

/* 1 minus the mean of the finite outputs. */
static double lost_mass(const bench *b)
{
    const dp_attention *in = &b->inputs.in;
    const size_t n = in->batch * in->q_heads * in->queries * in->dim;
    double sum = 0.0;
    double count = 0.0;
    for (size_t i = 0; i < n; i++) {
        const dp_bf16 bits = {b->o[i]};
        const double x = (double)dp_bf16_to_f32(bits);
        sum += isfinite(x) ? x : 0.0;
        count += isfinite(x) ? 1.0 : 0.0;
    }
    return 1.0 - sum / count;
}

static bool run_policy(bench *b, dp_forward_policy policy, double density, dp_error *error)
{
    const dp_switches switches = dp_switches_default();
    if (!isnan(density)) { /* the published builds have native lanes in stage 1 only */
        policy.density = (int)density;
        policy.native_stages = 2;
    }
    const bool guard = strncmp(policy.name, "guard", 5) == 0;
    const dp_direct_p launch = dp_direct_p_make(&policy, guard ? DP_EPOCH_R : DP_EPOCH_S, &switches,
                                                dp_attention_scale(&b->inputs.in), NULL);
    const dp_attend_run_options options = {
        .inputs = &b->inputs, .launch = &launch, .threads = b->threads};
    return dp_attend_run(&options, b->o, b->lse, error);
}

static bool measure(bench *b, const char *section, const char *name, double parameter,
                    dp_error *error)
{
    dp_matrix_row *row = append(b->matrix);
    if (row == NULL) {
        return dp_fail(error, "matrix: not enough memory");
    }
    *row = (dp_matrix_row){.parameter = parameter, .flushed = NAN, .overflowed = NAN};
    (void)snprintf(row->section, sizeof row->section, "%s", section);
    (void)snprintf(row->input, sizeof row->input, "%s", b->input);
    (void)snprintf(row->name, sizeof row->name, "%s", name);
    dp_forward_policy policy;
    dp_route route;
    dp_route_stats stats;
    const dp_attention *in = &b->inputs.in;
    if (dp_forward_policy_find(name, &policy, NULL)) {
        if (!run_policy(b, policy, parameter, error)) {
            return false;
        }
    } else {
        if (!dp_route_find(name, &route, error)) {
            return false;
        }
        route.lift = isnan(parameter) ? route.lift : (float)parameter;
        if (!dp_route_run(in, &route, NULL, NULL, b->threads, b->o, b->lse, &stats, error)) {
            return false;
        }
        const double blocks = stats.blocks > 0 ? (double)stats.blocks : NAN;
        row->flushed = (double)stats.flushed / blocks;
        row->overflowed = (double)stats.overflowed / blocks;
    }
    row->metrics =
        dp_attend_compare(b->o, b->reference, in->batch * in->q_heads * in->queries, in->dim);
    const bool ones = strcmp(b->input, "ones") == 0 || strcmp(b->input, "tail") == 0;
    row->lost_mass = ones ? lost_mass(b) : NAN;
    find_published(b->matrix, row);
    return true;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a section runs, and on which inputs. */
typedef struct {
    const char *name;
    const char *const *operators;
    size_t operator_count;
    const double *parameters; /* NULL: none */
    size_t parameter_count;
    const char *const *inputs; /* NULL: all but the first */
    size_t input_count;
} section_plan;

static const char *const NORMAL[] = {"normal"};
static const char *const SWEEP[] = {"g-nv-nv", "g-mx-nv"};
static const char *const BESIDE[] = {"hao-nv-nv", "direct-nv-nv"};
static const char *const FAST[] = {"fast"};
static const section_plan SECTIONS[] = {
    {"formats", FORMATS, COUNT(FORMATS), NULL, 1, NORMAL, 1},
    {"g", BESIDE, COUNT(BESIDE), NULL, 1, NORMAL, 1},
    {"g", SWEEP, COUNT(SWEEP), LIFTS, COUNT(LIFTS), NORMAL, 1},
    {"density", FAST, 1, DENSITIES, COUNT(DENSITIES), NORMAL, 1},
    {"inputs", ROUTES, COUNT(ROUTES), NULL, 1, NULL, 0},
    {"overflow", SHIFTLESS, COUNT(SHIFTLESS), NULL, 1, OVERFLOW_INPUTS, COUNT(OVERFLOW_INPUTS)},
};

static bool run_plan(bench *b, const section_plan *plan, dp_error *error)
{
    bool good = true;
    for (size_t i = 0; good && i < plan->operator_count * plan->parameter_count; i++) {
        const double parameter =
            plan->parameters != NULL ? plan->parameters[i / plan->operator_count] : NAN;
        good = measure(b, plan->name, plan->operators[i % plan->operator_count], parameter, error);
    }
    return good;
}

/* A plan on each of its inputs, or on every file. */
static bool run_inputs(bench *b, const section_plan *plan, dp_error *error)
{
    const dp_matrix *m = b->matrix;
    const bool files = m->file_count > 0;
    const size_t shaped = plan->inputs != NULL ? plan->input_count : dp_matrix_input_count() - 1;
    bool good = true;
    for (size_t k = 0; good && k < (files ? m->file_count : shaped); k++) {
        const char *input = files                  ? m->files[k]
                            : plan->inputs != NULL ? plan->inputs[k]
                                                   : dp_matrix_input_name(k + 1);
        good = prepare(b, input, files, error) && run_plan(b, plan, error);
    }
    return good;
}

static bool run_section(bench *b, const char *section, dp_error *error)
{
    bool known = false;
    for (size_t i = 0; i < COUNT(SECTIONS); i++) {
        if (strcmp(SECTIONS[i].name, section) == 0) {
            known = true;
            if (!run_inputs(b, &SECTIONS[i], error)) {
                return false;
            }
        }
    }
    return known || dp_fail(error,
                            "--sections: '%s': no such section: use formats, g, density, inputs "
                            "or overflow",
                            section);
}

bool dp_matrix_run(dp_matrix *matrix, const char *sections, int threads, dp_error *error)
{
    bench b = {.matrix = matrix, .threads = threads};
    bool good = true;
    bool last = false;
    for (size_t i = 0; good && !last; i++) {
        char section[16];
        good = dp_list_item(sections, i, section, sizeof section, &last)
                   ? run_section(&b, section, error)
                   : dp_fail(error,
                             "--sections %s: a name is too long: use formats, g, density, inputs "
                             "or overflow",
                             sections);
    }
    discard(&b);
    return good;
}

void dp_matrix_free(dp_matrix *matrix)
{
    free(matrix->rows);
    matrix->rows = NULL;
    matrix->count = matrix->room = 0;
}
