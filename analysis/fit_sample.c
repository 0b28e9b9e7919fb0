/* SPDX-License-Identifier: MIT
 *
 * Scores to fit on: drawn, or taken from the oracle's own score stage.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/fit.h"
#include "analysis/fit_rows.h"
#include "analysis/torch_rand.h"

static const double LOG2_E = 1.4426950408889634;

static bool resize(void **array, size_t bytes)
{
    void *larger = realloc(*array, bytes);
    *array = larger != NULL ? larger : *array;
    return larger != NULL;
}

static bool grow(dp_fit_sample *sample, size_t more, dp_error *error)
{
    const size_t count = sample->count + more;
    void *x = sample->x;
    void *ideal = sample->ideal;
    void *group = sample->group;
    const bool good = resize(&x, count * sizeof *sample->x) && resize(&ideal, count) &&
                      resize(&group, count * sizeof *sample->group);
    sample->x = x;
    sample->ideal = ideal;
    sample->group = group;
    return good || dp_fail(error, "fit: not enough memory for %zu scores: use fewer rows", count);
}

/* x as it is judged: a multiple of 2^-22 not below -64, so that A x + B with a f32 A is exact in
 * binary64 next to every midpoint. That is the last place of the kernels' own x near 2. */
static double on_grid(double x)
{
    return fmax(nearbyint(x * 0x1p22) * 0x1p-22, -64.0);
}

/* One block: z in octaves, -INFINITY where masked. The exponent is floor(max + log2(4/3)) and a
 * value of 6 stands at the exponent: x = z - e + log2(6) [D6 of FORWARD.md]. */
static void add_block(dp_fit_sample *sample, const double *z, int group)
{
    double largest = -INFINITY;
    for (int i = 0; i < DP_BLOCK; i++) {
        largest = z[i] > largest ? z[i] : largest;
    }
    if (!isfinite(largest)) {
        return;
    }
    const double up = log2(6.0) - floor(largest + log2(4.0 / 3.0));
    for (int i = 0; i < DP_BLOCK; i++) {
        if (isfinite(z[i])) {
            const double x = on_grid(z[i] + up);
            sample->x[sample->count] = x;
            sample->ideal[sample->count] = (uint8_t)dp_fit_code(exp2(x));
            sample->group[sample->count++] = (uint16_t)group;
        }
    }
}

/* Units of names "NAME h0", "NAME h1", ... */
static bool add_units(dp_fit_sample *sample, const char *name, char kind, int units,
                      dp_error *error)
{
    const int all = sample->units + units;
    if (all > DP_FIT_UNITS) {
        return dp_fail(error, "fit: %d heads: at most %d can be told apart: give fewer files", all,
                       DP_FIT_UNITS);
    }
    dp_fit_unit *unit = realloc(sample->unit, (size_t)all * sizeof *unit);
    if (unit == NULL) {
        return dp_fail(error, "fit: not enough memory");
    }
    sample->unit = unit;
    for (int u = 0; u < units; u++) {
        (void)snprintf(unit[sample->units + u].text, sizeof unit->text, "%.30s %c%d", name, kind,
                       u);
    }
    sample->units = all;
    sample->groups = all * DP_FIT_UNIT_GROUPS;
    return true;
}

bool dp_fit_sample_gaussian(dp_fit_sample *sample, const double *sigmas, size_t sigma_count,
                            size_t blocks, uint64_t seed, dp_error *error)
{
    const size_t n = blocks * DP_BLOCK;
    float *drawn = malloc(n * sizeof *drawn);
    enum { QUARTERS = 4, GROUPS = QUARTERS * DP_FIT_UNIT_GROUPS };
    if (drawn == NULL || !add_units(sample, "quarter", 'q', QUARTERS, error) ||
        !grow(sample, n, error)) {
        free(drawn);
        return dp_fail(error, "fit: not enough memory for %zu blocks: use fewer", blocks);
    }
    (void)dp_torch_randn(seed, 0, DP_SMS_GB200, n, drawn, sample->threads);
    for (size_t b = 0; b < blocks; b++) {
        double z[DP_BLOCK];
        for (size_t i = 0; i < DP_BLOCK; i++) {
            z[i] = LOG2_E * sigmas[b % sigma_count] * (double)drawn[b * DP_BLOCK + i];
        }
        add_block(sample, z, (int)(b / sigma_count % GROUPS));
    }
    free(drawn);
    return true;
}

bool dp_fit_sample_attention(dp_fit_sample *sample, const dp_attend_inputs *inputs,
                             const dp_direct_p *launch, size_t rows, bool outputs, const char *name,
                             dp_error *error)
{
    dp_fit_rows *taken = NULL;
    if (!dp_fit_rows_take(inputs, launch, rows, sample->threads, sample->units, &taken, error)) {
        return false;
    }
    bool good = add_units(sample, name, 'h', taken->units, error);
    double z[DP_BLOCK];
    for (size_t r = 0; good && r < taken->count; r++) {
        const dp_fit_row *row = &taken->row[r];
        good = grow(sample, taken->keys, error);
        for (size_t j = 0; good && j < taken->keys; j += DP_BLOCK) {
            for (size_t i = 0; i < DP_BLOCK; i++) {
                z[i] =
                    ((double)row->raw[j + i] - (double)row->reference) * (double)launch->multiplier;
            }
            add_block(sample, z, row->group);
        }
    }
    if (good && outputs) {
        taken->next = sample->rows;
        sample->rows = taken;
    } else {
        dp_fit_rows_free(taken);
    }
    return good;
}

void dp_fit_sample_free(dp_fit_sample *sample)
{
    free(sample->x);
    free(sample->ideal);
    free(sample->group);
    free(sample->unit);
    dp_fit_rows_free(sample->rows);
    memset(sample, 0, sizeof *sample);
}
