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
                                     "sampled-1",
                                     "hao-nv-fp8",
                                     "hao-nv-mxfp8",
                                     "fa4-fp8",
                                     "fa4-fp8-offset8-threshold8",
                                     "direct-nv-nv",
                                     "fast",
                                     "accurate",
                                     "guard-14b"};
static const double LIFTS[] = {1, 2, 16, 256, 320, 384, 416, 448, 2688};
static const double DENSITIES[] = {0, 1, 2, 3, 4};

typedef struct {
    dp_matrix *matrix;
    dp_attend_inputs inputs;
    const char *input;
    uint16_t *o, *reference;
    float *lse;
    int threads;
} bench;

static bool prepare(bench *b, const char *input, dp_error *error)
{
    const dp_matrix *m = b->matrix;
    const dp_attend_transform plain = {.q_factor = 1.0};
    dp_attend_inputs_free(&b->inputs);
    b->input = input;
    if (!dp_attend_random(m->seed, m->sms, 1, m->seq, m->heads, m->heads, m->dim, b->threads,
                          &plain, &b->inputs, error) ||
        !dp_matrix_shape(input, &b->inputs)) {
        return dp_fail(error, "matrix: input '%s': %s", input,
                       error != NULL ? error->text : "no such input");
    }
    return dp_reference_bf16(&b->inputs.in, b->threads, b->reference, NULL, error);
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
            p->heads == m->heads && p->seed == m->seed && p->sms == m->sms &&
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
    const size_t n = in->q_heads * in->queries * in->dim;
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
    policy.density = isnan(density) ? policy.density : (int)density;
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
        if (!isnan(parameter)) { /* the published G multiplies amax / 6 of P in (0, 1] */
            route.lift = (float)parameter;
            route.offset_log2 = 0.0f;
        }
        if (!dp_route_run(in, &route, NULL, NULL, b->threads, b->o, b->lse, &stats, error)) {
            return false;
        }
        const double blocks = stats.blocks > 0 ? (double)stats.blocks : NAN;
        row->flushed = (double)stats.flushed / blocks;
        row->overflowed = (double)stats.overflowed / blocks;
    }
    row->metrics = dp_attend_compare(b->o, b->reference, in->q_heads * in->queries, in->dim);
    const bool ones = strcmp(b->input, "ones") == 0 || strcmp(b->input, "tail") == 0;
    row->lost_mass = ones ? lost_mass(b) : NAN;
    find_published(b->matrix, row);
    return true;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool run_section(bench *b, const char *section, dp_error *error)
{
    bool good = true;
    if (strcmp(section, "formats") == 0) {
        good = prepare(b, "normal", error);
        for (size_t i = 0; good && i < COUNT(FORMATS); i++) {
            good = measure(b, section, FORMATS[i], NAN, error);
        }
    } else if (strcmp(section, "g") == 0) {
        good = prepare(b, "normal", error);
        for (size_t i = 0; good && i < 2 * COUNT(LIFTS); i++) {
            good = measure(b, section, i % 2 == 0 ? "stabilised" : "stabilised-mx-nv", LIFTS[i / 2],
                           error);
        }
    } else if (strcmp(section, "density") == 0) {
        good = prepare(b, "normal", error);
        for (size_t i = 0; good && i < COUNT(DENSITIES); i++) {
            good = measure(b, section, "accurate", DENSITIES[i], error);
        }
    } else if (strcmp(section, "inputs") == 0) {
        for (size_t k = 1; good && k < dp_matrix_input_count(); k++) {
            good = prepare(b, dp_matrix_input_name(k), error);
            for (size_t i = 0; good && i < COUNT(ROUTES); i++) {
                good = measure(b, section, ROUTES[i], NAN, error);
            }
        }
    } else {
        return dp_fail(
            error, "--sections: '%s': no such section: use formats, g, density or inputs", section);
    }
    return good;
}

bool dp_matrix_run(dp_matrix *matrix, const char *sections, int threads, dp_error *error)
{
    const size_t rows = matrix->heads * matrix->seq;
    bench b = {.matrix = matrix, .threads = threads};
    b.o = malloc(rows * matrix->dim * sizeof *b.o);
    b.reference = malloc(rows * matrix->dim * sizeof *b.reference);
    b.lse = malloc(rows * sizeof *b.lse);
    bool good = b.o != NULL && b.reference != NULL && b.lse != NULL;
    if (!good) {
        (void)dp_fail(error, "matrix: not enough memory for %zu rows: use a shorter sequence",
                      rows);
    }
    bool last = false;
    for (size_t i = 0; good && !last; i++) {
        char section[16];
        good = dp_list_item(sections, i, section, sizeof section, &last)
                   ? run_section(&b, section, error)
                   : dp_fail(error,
                             "--sections %s: a name is too long: use formats, g, density or "
                             "inputs",
                             sections);
    }
    dp_attend_inputs_free(&b.inputs);
    free(b.o);
    free(b.reference);
    free(b.lse);
    return good;
}

void dp_matrix_free(dp_matrix *matrix)
{
    free(matrix->rows);
    matrix->rows = NULL;
    matrix->count = matrix->room = 0;
}
