/* SPDX-License-Identifier: MIT */
#include "analysis/range_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/numbers.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/ue5m3.h"

enum { DP_E2M1_THRESHOLDS = 7 };

/* Midpoints of the E2M1 magnitudes 0 0.5 1 1.5 2 3 4 6 and the steps between them. */
static const double e2m1_midpoint[DP_E2M1_THRESHOLDS] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
static const double e2m1_step[DP_E2M1_THRESHOLDS] = {0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 2.0};
static const double e2m1_max = 6.0;

typedef struct {
    const char *name;
    dp_range_kind kind;
    bool has_gain;
} format_name;

static const format_name names[] = {{"mxfp4-kernel", DP_RANGE_MXFP4_KERNEL, false},
                                    {"mxfp4", DP_RANGE_MXFP4, false},
                                    {"nvfp4", DP_RANGE_NVFP4, true},
                                    {"ue5m3", DP_RANGE_UE5M3, true},
                                    {"e4m3", DP_RANGE_E4M3, true},
                                    {"e5m2", DP_RANGE_E5M2, true}};

static bool parse_one(const char *text, dp_range_format *format, dp_error *error)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t length = strlen(names[i].name);
        if (strncmp(text, names[i].name, length) != 0) {
            continue;
        }
        const char *rest = text + length;
        *format = (dp_range_format){.kind = names[i].kind, .gain = 1.0};
        if (names[i].has_gain && strncmp(rest, "-g", 2) == 0) {
            if (!dp_parse_f64("--formats", rest + 2, 0x1p-20, 0x1p20, &format->gain, error)) {
                return false;
            }
            rest += strlen(rest);
        }
        if (*rest != '\0') {
            continue;
        }
        if (names[i].has_gain) {
            (void)snprintf(format->name, sizeof format->name, "%s-g%.7g", names[i].name,
                           format->gain);
        } else {
            (void)snprintf(format->name, sizeof format->name, "%s", names[i].name);
        }
        return true;
    }
    return dp_fail(error,
                   "--formats: '%s' is not a format: use nvfp4[-gG], ue5m3[-gG], mxfp4, "
                   "mxfp4-kernel, e4m3[-gG], e5m2[-gG], or all, or published",
                   text);
}

bool dp_range_formats_parse(const char *list, dp_range_format *formats, size_t *count,
                            dp_error *error)
{
    if (strcmp(list, "all") == 0) {
        list = DP_RANGE_ALL;
    } else if (strcmp(list, "published") == 0) {
        list = DP_RANGE_PUBLISHED;
    }
    bool last = false;
    *count = 0;
    while (!last) {
        char item[64];
        if (!dp_list_item(list, *count, item, sizeof item, &last)) {
            return dp_fail(error, "--formats: '%s' is not a list of names: separate them by commas",
                           list);
        }
        if (*count == DP_RANGE_FORMATS) {
            return dp_fail(error, "--formats: more than %d formats: ask for fewer",
                           (int)DP_RANGE_FORMATS);
        }
        dp_range_format *format = &formats[*count];
        if (!parse_one(item, format, error)) {
            return false;
        }
        for (size_t i = 0; i < *count; i++) {
            if (strcmp(formats[i].name, format->name) == 0) {
                return dp_fail(error, "--formats: %s appears twice: leave one out", format->name);
            }
        }
        ++*count;
    }
    return true;
}

bool dp_range_has_scale(const dp_range_format *format)
{
    return format->kind != DP_RANGE_E4M3 && format->kind != DP_RANGE_E5M2;
}

/* 2^exponent within the range of an E8M0 byte. */
static double e8m0_power(int exponent)
{
    return ldexp(1.0, exponent < -127 ? -127 : exponent > 127 ? 127 : exponent);
}

/* Exponents of the powers of two around x > 0: floor and ceil of log2, without a logarithm (which
 * may miss an exact power). */
static void log2_bounds(double x, int *floor_log2, int *ceil_log2)
{
    const double fraction = frexp(x, ceil_log2);
    *floor_log2 = *ceil_log2 - 1;
    if (fraction == 0.5) {
        *ceil_log2 = *floor_log2;
    }
}

/* Nearest power of two in value with the switch at 0.75 2^k, the tie going up. */
static double kernel_amplitude(double amax)
{
    int exponent;
    const double fraction = frexp(amax, &exponent);
    if (amax == 0.0) {
        return e8m0_power(-127);
    }
    return e8m0_power(fraction >= 0.75 ? exponent : exponent - 1);
}

double dp_range_scale(const dp_range_format *format, double amax)
{
    const float wanted = (float)(format->gain * amax / e2m1_max);
    int low, high;
    switch (format->kind) {
    case DP_RANGE_NVFP4:
        return (double)dp_e4m3_to_f32(dp_e4m3_from_f32(wanted, DP_ENCODE_PTX)) / format->gain;
    case DP_RANGE_UE5M3:
        return (double)dp_ue5m3_to_f32(dp_ue5m3_from_f32(wanted, DP_ENCODE_PTX)) / format->gain;
    case DP_RANGE_MXFP4:
        if (amax == 0.0) {
            return e8m0_power(-127);
        }
        log2_bounds(amax / e2m1_max, &low, &high);
        return e8m0_power(low);
    case DP_RANGE_MXFP4_KERNEL:
        return kernel_amplitude(amax);
    default:
        return 1.0 / format->gain;
    }
}

/* Round p * lift / step to E2M1 by thresholds and decode it to code * step / lift. step is exact
 * times a midpoint for powers of two. even: ties to the even code, else down. */
static void store_e2m1(const double *p, size_t count, double step, double lift, bool even,
                       double *decoded)
{
    double threshold[DP_E2M1_THRESHOLDS];
    double rise[DP_E2M1_THRESHOLDS];
    for (int k = 0; k < DP_E2M1_THRESHOLDS; k++) {
        threshold[k] = e2m1_midpoint[k] * step;
        rise[k] = e2m1_step[k] * step;
        if (even && k % 2 == 1) { /* the code above is even: reached on the midpoint itself */
            threshold[k] = nextafter(threshold[k], 0.0);
        }
    }
    for (size_t i = 0; i < count; i++) {
        const double lifted = p[i] * lift;
        double value = 0.0;
        for (int k = 0; k < DP_E2M1_THRESHOLDS; k++) {
            value += lifted > threshold[k] ? rise[k] : 0.0;
        }
        decoded[i] = value / lift;
    }
}

static double squared_error(const double *p, const double *decoded, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double error = decoded[i] - p[i];
        sum += error * error;
    }
    return sum;
}

/* The better of two adjacent powers of two; decoded holds its result. Returns the step. */
static double store_best_power(const double *p, size_t count, double amax, double *decoded)
{
    double lower_result[64];
    int low, high;
    if (amax == 0.0) {
        store_e2m1(p, count, e8m0_power(-127), 1.0, false, decoded);
        return e8m0_power(-127);
    }
    log2_bounds(amax / e2m1_max, &low, &high);
    store_e2m1(p, count, e8m0_power(high), 1.0, false, decoded);
    if (e8m0_power(low) == e8m0_power(high)) {
        return e8m0_power(high);
    }
    store_e2m1(p, count, e8m0_power(low), 1.0, false, lower_result);
    if (squared_error(p, lower_result, count) < squared_error(p, decoded, count)) {
        memcpy(decoded, lower_result, count * sizeof *decoded);
        return e8m0_power(low);
    }
    return e8m0_power(high);
}

/* One block. Returns its scale. */
static double store_block(const dp_range_format *format, const double *p, size_t count, double amax,
                          double *decoded)
{
    const double scale = dp_range_scale(format, amax);
    switch (format->kind) {
    case DP_RANGE_MXFP4:
        return store_best_power(p, count, amax, decoded);
    case DP_RANGE_MXFP4_KERNEL:
        store_e2m1(p, count, scale, e2m1_max, true, decoded);
        return scale;
    case DP_RANGE_E4M3:
        for (size_t i = 0; i < count; i++) {
            const dp_e4m3 code = dp_e4m3_from_f32((float)(p[i] * format->gain), DP_ENCODE_PTX);
            decoded[i] = (double)dp_e4m3_to_f32(code) / format->gain;
        }
        return scale;
    case DP_RANGE_E5M2:
        for (size_t i = 0; i < count; i++) {
            const dp_e5m2 code = dp_e5m2_from_f32((float)(p[i] * format->gain), DP_ENCODE_PTX);
            decoded[i] = (double)dp_e5m2_to_f32(code) / format->gain;
        }
        return scale;
    default:
        if (scale > 0.0) {
            store_e2m1(p, count, scale, 1.0, false, decoded);
        } else {
            memset(decoded, 0, count * sizeof *decoded);
        }
        return scale;
    }
}

static void count_scale(const dp_range_format *format, double scale, dp_range_counts *counts)
{
    if (!dp_range_has_scale(format)) {
        return;
    }
    if (scale == 0.0) {
        counts->zero_scale++;
        return;
    }
    int exponent;
    (void)frexp(scale, &exponent);
    exponent += 126; /* frexp's fraction is in [1/2, 1) */
    const int last = DP_RANGE_SCALE_EXPONENTS - 1;
    counts->exponents[exponent < 0 ? 0 : exponent > last ? last : exponent]++;
    if (counts->min_scale == 0.0 || scale < counts->min_scale) {
        counts->min_scale = scale;
    }
}

static double largest_payload(const dp_range_format *format, double scale)
{
    switch (format->kind) {
    case DP_RANGE_E4M3:
        return 448.0 * scale;
    case DP_RANGE_E5M2:
        return 57344.0 * scale;
    case DP_RANGE_MXFP4_KERNEL:
        return scale;
    default:
        return e2m1_max * scale;
    }
}

void dp_range_store(const dp_range_format *format, const double *p, size_t n, size_t block,
                    double *decoded, double *lost, dp_range_counts *counts)
{
    *lost = 0.0;
    counts->entries += n;
    for (size_t first = 0; first < n; first += block) {
        double amax = 0.0;
        for (size_t i = first; i < first + block; i++) {
            amax = p[i] > amax ? p[i] : amax;
        }
        const double scale = store_block(format, p + first, block, amax, decoded + first);
        const double limit = largest_payload(format, scale);
        counts->blocks++;
        count_scale(format, scale, counts);
        const size_t end = first + block < n ? first + block : n;
        for (size_t i = first; i < end; i++) {
            const bool zero = decoded[i] == 0.0;
            counts->zero_payload += zero;
            counts->underflow += zero && p[i] != 0.0;
            counts->nonzero += p[i] != 0.0;
            counts->saturated += scale > 0.0 && p[i] > limit;
            *lost += zero ? p[i] : 0.0;
        }
    }
}

void dp_range_counts_add(dp_range_counts *a, const dp_range_counts *b)
{
    a->blocks += b->blocks;
    a->zero_scale += b->zero_scale;
    a->entries += b->entries;
    a->zero_payload += b->zero_payload;
    a->underflow += b->underflow;
    a->nonzero += b->nonzero;
    a->saturated += b->saturated;
    if (a->min_scale == 0.0 || (b->min_scale != 0.0 && b->min_scale < a->min_scale)) {
        a->min_scale = b->min_scale;
    }
    for (int i = 0; i < DP_RANGE_SCALE_EXPONENTS; i++) {
        a->exponents[i] += b->exponents[i];
    }
}
