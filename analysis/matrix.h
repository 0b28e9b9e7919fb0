/* SPDX-License-Identifier: MIT
 *
 * Many operators on the same inputs: the format matrix, the sweep of the factor G, native density,
 * and inputs on which routes differ most. MATRIX.md says which published rows are comparable.
 */
#ifndef DP_ANALYSIS_MATRIX_H
#define DP_ANALYSIS_MATRIX_H

#include "analysis/attend.h"

enum { DP_MATRIX_NAME = 40 };

/* One operator on one input. */
typedef struct {
    char section[16]; /* formats, g, density, inputs, overflow */
    char input[DP_MATRIX_NAME];
    char name[DP_MATRIX_NAME]; /* route or policy */
    double parameter;          /* G or density; NaN: none */
    dp_attend_metrics metrics;
    double lost_mass;  /* 1 - mean output where V is 1; NaN elsewhere   */
    double flushed;    /* share of P blocks whose scale became 0; NaN for policies */
    double overflowed; /* share of P blocks with a scale above 448 before it is stored; as above */
    double published_cosine, published_rel_l2; /* NaN: no such row */
} dp_matrix_row;

typedef struct {
    dp_matrix_row *rows;
    size_t count, room;
    uint64_t seed;
    int sms;
    size_t seq, heads, dim;
    const char *const *files; /* tensors instead of drawn ones; not saved */
    size_t file_count;
} dp_matrix;

/* Run the sections named in the list ("formats,g,density,inputs,overflow") on drawn Q, K and V, or
 * each on every file. */
bool dp_matrix_run(dp_matrix *matrix, const char *sections, int threads, dp_error *error);
void dp_matrix_free(dp_matrix *matrix);
bool dp_matrix_save(const dp_matrix *matrix, const char *path, dp_error *error);
bool dp_matrix_load(dp_matrix *matrix, const char *path, dp_error *error);

/* Inputs by name: normal, q-x4, q-x10, sink, tail, ones. Changes N(0,1) tensors in place. */
size_t dp_matrix_input_count(void);
const char *dp_matrix_input_name(size_t index);
bool dp_matrix_shape(const char *input, dp_attend_inputs *inputs);

/* The printed row of the technical report v2 that a measured one corresponds to. */
typedef struct {
    const char *table; /* "matrix", "g-sweep", "density" */
    const char *name;  /* as the report calls it */
    const char *route; /* this project's reading of it */
    double parameter;
    uint64_t seed;
    int sms;
    size_t seq, heads;
    double cosine, rel_l2, rmse;
} dp_matrix_published;
size_t dp_matrix_published_count(void);
const dp_matrix_published *dp_matrix_published_at(size_t index);

#endif
