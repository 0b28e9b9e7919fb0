/* SPDX-License-Identifier: MIT */
#include "analysis/errors.h"

#include <math.h>

/* Neumaier's compensated sum. */
typedef struct {
    double sum, rest;
} kahan;

static void kahan_add(kahan *k, double x)
{
    const double t = k->sum + x;
    k->rest += fabs(k->sum) >= fabs(x) ? (k->sum - t) + x : (x - t) + k->sum;
    k->sum = t;
}

static double kahan_value(const kahan *k)
{
    return k->sum + k->rest;
}

static void count_specials(float x, float y, dp_errors *e)
{
    e->nonzero += x != 0.0f ? 1 : 0;
    e->underflow += x != 0.0f && y == 0.0f ? 1 : 0;
    e->nan_in += isnan(x) ? 1 : 0;
    e->inf_in += isinf(x) ? 1 : 0;
    e->nan_out += isnan(y) ? 1 : 0;
    e->inf_out += isinf(y) ? 1 : 0;
}

void dp_errors_of(const float *x, const float *y, size_t count, dp_errors *errors)
{
    kahan xx = {0.0, 0.0};
    kahan yy = {0.0, 0.0};
    kahan xy = {0.0, 0.0};
    kahan dd = {0.0, 0.0};
    kahan d = {0.0, 0.0};
    *errors = (dp_errors){.elements = count};
    for (size_t i = 0; i < count; i++) {
        count_specials(x[i], y[i], errors);
        if (isfinite(x[i])) {
            errors->amax = fmax(errors->amax, fabs((double)x[i]));
        }
        if (!isfinite(x[i]) || !isfinite(y[i])) {
            continue;
        }
        const double a = (double)x[i];
        const double b = (double)y[i];
        kahan_add(&xx, a * a);
        kahan_add(&yy, b * b);
        kahan_add(&xy, a * b);
        kahan_add(&dd, (b - a) * (b - a));
        kahan_add(&d, b - a);
        errors->worst_error = fmax(errors->worst_error, fabs(b - a));
        errors->compared++;
    }
    const double n = (double)errors->compared;
    errors->cosine = kahan_value(&xy) / (sqrt(kahan_value(&xx)) * sqrt(kahan_value(&yy)));
    errors->rel_l2 = sqrt(kahan_value(&dd)) / sqrt(kahan_value(&xx));
    errors->rmse = sqrt(kahan_value(&dd) / n);
    errors->mean_error = kahan_value(&d) / n;
}

double dp_underflow_of_all(const dp_errors *errors)
{
    return errors->underflow == 0 ? 0.0
                                  : 100.0 * (double)errors->underflow / (double)errors->elements;
}

double dp_underflow_of_nonzero(const dp_errors *errors)
{
    return errors->underflow == 0 ? 0.0
                                  : 100.0 * (double)errors->underflow / (double)errors->nonzero;
}
