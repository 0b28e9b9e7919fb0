/* SPDX-License-Identifier: MIT
 *
 * A finished fit as a file: the maps, the landscape of the objective, and where the scores lie.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/fit_study.h"
#include "analysis/numbers.h"

void dp_fit_study_free(dp_fit_study *study)
{
    free(study->loss);
    free(study->match);
    free(study->mass);
    study->loss = study->match = study->mass = NULL;
}

void dp_fit_study_point(const dp_fit_study *study, size_t index, double *a, double *b)
{
    const size_t row = index / study->grid;
    const size_t column = index % study->grid;
    const double steps = (double)(study->grid - 1);
    *a = study->a_low + (study->a_high - study->a_low) * (double)column / steps;
    *b = study->b_low + (study->b_high - study->b_low) * (double)row / steps;
}

static bool fill_landscape(dp_fit_study *study, const dp_fit_sample *sample,
                           const dp_fit_options *options, dp_error *error)
{
    const size_t n = study->grid;
    study->loss = calloc(n * n + 1, sizeof(double));
    study->match = calloc(n * n + 1, sizeof(double));
    study->mass = calloc(n * n + 1, sizeof(double));
    dp_fit_sums *sums = calloc((size_t)sample->groups + 1, sizeof *sums);
    if (study->loss == NULL || study->match == NULL || study->mass == NULL || sums == NULL) {
        free(sums);
        return dp_fail(error, "fit: not enough memory for a landscape of %zu x %zu", n, n);
    }
    for (size_t i = 0; i < n * n; i++) {
        double c[2];
        dp_fit_study_point(study, i, &c[1], &c[0]);
        const dp_fit_map map = dp_fit_map_of(1, c);
        dp_fit_evaluate(sample, &map, DP_FIT_ALL, sums);
        const dp_fit_measure m = dp_fit_measure_of(sums, NULL, sample->groups);
        study->loss[i] = dp_fit_loss(m, options->weights);
        study->match[i] = m.match;
        study->mass[i] = m.mass;
    }
    free(sums);
    return true;
}

bool dp_fit_study_fill(dp_fit_study *study, const dp_fit_sample *sample,
                       const dp_fit_options *options, dp_error *error)
{
    double of_code[8] = {0};
    memset(study->kept, 0, sizeof study->kept);
    memset(study->density, 0, sizeof study->density);
    memset(study->equal, 0, sizeof study->equal);
    for (size_t i = 0; i < sample->count; i++) {
        const int ideal = sample->ideal[i];
        of_code[ideal] += 1.0;
        const double place = floor(8.0 * (sample->x[i] + 8.0));
        const int bin = (int)fmin(fmax(place, 0.0), DP_FIT_BINS - 1);
        study->density[bin] += 1.0;
        for (size_t m = 0; m < study->maps; m++) {
            const int code = dp_fit_code(dp_fit_value(&study->map[m], sample->x[i]));
            study->kept[m][ideal] += code == ideal;
            study->equal[m][bin] += code == ideal;
        }
    }
    for (int b = 0; b < DP_FIT_BINS; b++) {
        for (size_t m = 0; m < study->maps; m++) {
            study->equal[m][b] =
                study->density[b] > 0.0 ? study->equal[m][b] / study->density[b] : NAN;
        }
        study->density[b] /= (double)sample->count;
    }
    for (int k = 0; k < 8; k++) {
        for (size_t m = 0; m < study->maps; m++) {
            study->kept[m][k] = of_code[k] > 0.0 ? study->kept[m][k] / of_code[k] : NAN;
        }
        study->share[k] = of_code[k] / (double)sample->count;
    }
    return study->grid == 0 || fill_landscape(study, sample, options, error);
}

static bool put(dp_h5_writer *writer, const char *path, size_t rows, size_t columns,
                const double *data, const char *axes, dp_error *error)
{
    const uint64_t dims[2] = {rows, columns};
    const dp_h5_labels labels = {.axes = axes};
    return dp_h5_put(writer, path, DP_H5_F64, 2, dims, data, &labels, error);
}

static bool put_maps(dp_h5_writer *writer, const dp_fit_study *study, dp_error *error)
{
    double table[DP_FIT_MAPS][DP_FIT_COEFFICIENTS + 2];
    char names[DP_FIT_MAPS * DP_FIT_NAME] = "";
    size_t used = 0;
    for (size_t m = 0; m < study->maps; m++) {
        table[m][0] = study->map[m].degree;
        table[m][1] = (double)study->map[m].floor;
        for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
            table[m][2 + k] = (double)study->map[m].c[k];
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", m > 0 ? "," : "",
                                 study->name[m]);
    }
    return put(writer, "/maps/table", study->maps, DP_FIT_COEFFICIENTS + 2, table[0],
               "map,degree floor c0 c1 c2 c3", error) &&
           dp_h5_put_text(writer, "/maps/table", "names", names, error) &&
           put(writer, "/maps/kept", study->maps, 8, study->kept[0], "map,code", error) &&
           put(writer, "/maps/equal", study->maps, DP_FIT_BINS, study->equal[0], "map,x", error) &&
           put(writer, "/scores/share", 1, 8, study->share, "one,code", error) &&
           put(writer, "/scores/density", 1, DP_FIT_BINS, study->density, "one,x", error);
}

bool dp_fit_study_save(const dp_fit_study *study, const char *path, const char *const *inputs,
                       size_t input_count, dp_error *error)
{
    dp_h5_writer writer;
    bool good = dp_h5_create(&writer, path, "fit", inputs, input_count, error) &&
                put_maps(&writer, study, error) &&
                dp_h5_put_text(&writer, "/maps", "source", study->source, error) &&
                dp_h5_put_text(&writer, "/maps", "objective", study->objective, error);
    if (good && study->grid > 0) {
        const size_t n = study->grid;
        good = put(&writer, "/landscape/loss", n, n, study->loss, "b,a", error) &&
               put(&writer, "/landscape/match", n, n, study->match, "b,a", error) &&
               put(&writer, "/landscape/mass", n, n, study->mass, "b,a", error) &&
               dp_h5_put_f64(&writer, "/landscape", "a_low", study->a_low, error) &&
               dp_h5_put_f64(&writer, "/landscape", "a_high", study->a_high, error) &&
               dp_h5_put_f64(&writer, "/landscape", "b_low", study->b_low, error) &&
               dp_h5_put_f64(&writer, "/landscape", "b_high", study->b_high, error);
    }
    good = good && dp_h5_commit(&writer, error);
    dp_h5_abandon(&writer);
    return good;
}

/* A table of exactly rows x columns (rows 0: any up to most) copied into data. */
static bool get(const dp_h5 *file, const char *path, size_t rows, size_t columns, size_t most,
                double *data, size_t *got, dp_error *error)
{
    dp_h5_shape shape;
    void *values = NULL;
    if (!dp_h5_read(file, path, DP_H5_F64, 2, &shape, &values, error)) {
        return false;
    }
    const bool fits = shape.dims[1] == columns && shape.dims[0] >= 1 && shape.dims[0] <= most &&
                      (rows == 0 || shape.dims[0] == rows);
    if (fits) {
        memcpy(data, values, shape.count * sizeof(double));
        *got = shape.dims[0];
    }
    free(values);
    return fits || dp_fail(error,
                           "%s: %s has another shape than a fit has: write it again with "
                           "directp fit -o",
                           file->path, path);
}

static bool get_text(const dp_h5 *file, const char *name, char *text, size_t size, dp_error *error)
{
    char *value = NULL;
    if (!dp_h5_text(file, "/maps", name, &value, error)) {
        return false;
    }
    (void)snprintf(text, size, "%s", value);
    free(value);
    return true;
}

static bool get_maps(const dp_h5 *file, dp_fit_study *study, dp_error *error)
{
    double table[DP_FIT_MAPS][DP_FIT_COEFFICIENTS + 2] = {{0}};
    size_t n = 0;
    size_t one = 0;
    char *names = NULL;
    if (!get(file, "/maps/table", 0, DP_FIT_COEFFICIENTS + 2, DP_FIT_MAPS, table[0], &study->maps,
             error) ||
        !get(file, "/maps/kept", study->maps, 8, DP_FIT_MAPS, study->kept[0], &n, error) ||
        !get(file, "/maps/equal", study->maps, DP_FIT_BINS, DP_FIT_MAPS, study->equal[0], &n,
             error) ||
        !get(file, "/scores/share", 1, 8, 1, study->share, &one, error) ||
        !get(file, "/scores/density", 1, DP_FIT_BINS, 1, study->density, &one, error) ||
        !dp_h5_text(file, "/maps/table", "names", &names, error)) {
        return false;
    }
    for (size_t m = 0; m < study->maps; m++) {
        bool last = false;
        const double degree = table[m][0];
        if (!dp_list_item(names, m, study->name[m], DP_FIT_NAME, &last) ||
            !(degree >= 0.0 && degree <= 3.0)) {
            free(names);
            return dp_fail(error, "%s: map %zu has no name or no degree: write it again",
                           file->path, m);
        }
        study->map[m].degree = (int)degree;
        study->map[m].floor = (float)table[m][1];
        for (int k = 0; k < DP_FIT_COEFFICIENTS; k++) {
            study->map[m].c[k] = (float)table[m][2 + k];
        }
    }
    free(names);
    return get_text(file, "source", study->source, sizeof study->source, error) &&
           get_text(file, "objective", study->objective, sizeof study->objective, error);
}

static bool get_landscape(const dp_h5 *file, dp_fit_study *study, dp_error *error)
{
    dp_h5_shape shape[3];
    void *data[3] = {NULL, NULL, NULL};
    static const char *const paths[3] = {"/landscape/loss", "/landscape/match", "/landscape/mass"};
    bool good = true;
    for (int i = 0; good && i < 3; i++) {
        good = dp_h5_read(file, paths[i], DP_H5_F64, 2, &shape[i], &data[i], error);
        good = good &&
               ((shape[i].dims[0] == shape[i].dims[1] && shape[i].dims[0] >= 2 &&
                 shape[i].dims[0] == shape[0].dims[0]) ||
                dp_fail(error, "%s: %s is not a square: write it again", file->path, paths[i]));
    }
    study->loss = data[0];
    study->match = data[1];
    study->mass = data[2];
    study->grid = good ? shape[0].dims[0] : 0;
    return good && dp_h5_f64(file, "/landscape", "a_low", &study->a_low, error) &&
           dp_h5_f64(file, "/landscape", "a_high", &study->a_high, error) &&
           dp_h5_f64(file, "/landscape", "b_low", &study->b_low, error) &&
           dp_h5_f64(file, "/landscape", "b_high", &study->b_high, error);
}

bool dp_fit_study_load(dp_fit_study *study, const char *path, dp_error *error)
{
    memset(study, 0, sizeof *study);
    dp_h5 file;
    if (!dp_h5_open(&file, path, error)) {
        return false;
    }
    bool good = dp_h5_check_root(&file, "fit", NULL, error) && get_maps(&file, study, error);
    if (good && dp_h5_exists(&file, "/landscape/loss")) {
        good = get_landscape(&file, study, error);
    }
    dp_h5_close(&file);
    if (!good) {
        dp_fit_study_free(study);
    }
    return good;
}
