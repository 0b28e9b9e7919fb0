/* SPDX-License-Identifier: MIT
 *
 * `directp bench formats`: the bulk conversions and block quantizers, one core and two, on normal
 * deviates and on uniform bit patterns. The limit of a row is the bytes it moves, 4 an element for
 * the f32 and what codes and scales take, over the rate of memcpy (bytes read plus bytes written)
 * measured between the rows of the same run:
 *     limit = memcpy bytes per second / bytes an element.
 * memcpy reads what it is about to overwrite; stores around the cache do not, so a decoder may pass
 * 1. Rivals run on one core, on fewer elements: NVIDIA's header host path, and the scalar
 * definition of this library.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/bench_nvidia.h"
#include "analysis/benches.h"
#include "analysis/verb.h"
#include "formats/bulk_block.h"
#include "formats/parallel.h"

#if defined(DP_HAVE_NVIDIA_HEADERS)
enum { HAVE_NVIDIA = 1 };
#else
enum { HAVE_NVIDIA = 0 };
void dp_bench_nvidia_encode(dp_bulk_format format, const float *x, size_t n, uint8_t *codes)
{
    (void)format, (void)x, (void)n, (void)codes;
}
void dp_bench_nvidia_decode(dp_bulk_format format, const uint8_t *codes, size_t n, float *x)
{
    (void)format, (void)codes, (void)n, (void)x;
}
#endif

enum { ROWS = 12, ROW_LENGTH = 128, RIVAL_ELEMENTS = 1 << 18, DEFAULT_ELEMENTS = 1 << 24 };

typedef enum { COPY, ENCODE, DECODE, QUANTIZE, DEQUANTIZE } row_kind;

typedef struct {
    const char *name;
    row_kind kind;
    dp_bulk_format format; /* ENCODE, DECODE */
    dp_scale_rule rule;    /* QUANTIZE, DEQUANTIZE: AMAX is NVFP4, the rest MXFP4 */
    double bytes;          /* moved an element */
    double goal;           /* of the limit */
} row;

static const row rows[ROWS] = {
    {"f32 -> e2m1x2", ENCODE, DP_BULK_E2M1X2, DP_RULE_AMAX, 4.5, 0.8},
    {"f32 -> e4m3", ENCODE, DP_BULK_E4M3, DP_RULE_AMAX, 5.0, 0.8},
    {"f32 -> e5m2", ENCODE, DP_BULK_E5M2, DP_RULE_AMAX, 5.0, 0.8},
    {"e2m1x2 -> f32", DECODE, DP_BULK_E2M1X2, DP_RULE_AMAX, 4.5, 0.8},
    {"e4m3 -> f32", DECODE, DP_BULK_E4M3, DP_RULE_AMAX, 5.0, 0.8},
    {"e5m2 -> f32", DECODE, DP_BULK_E5M2, DP_RULE_AMAX, 5.0, 0.8},
    {"f32 -> nvfp4", QUANTIZE, DP_BULK_E2M1X2, DP_RULE_AMAX, 4.5 + 1.0 / 16, 0.5},
    {"f32 -> mxfp4 floor", QUANTIZE, DP_BULK_E2M1X2, DP_RULE_FLOOR, 4.5 + 1.0 / 32, 0.5},
    {"f32 -> mxfp4 rceil", QUANTIZE, DP_BULK_E2M1X2, DP_RULE_RCEIL, 4.5 + 1.0 / 32, 0.5},
    {"f32 -> mxfp4 amplitude", QUANTIZE, DP_BULK_E2M1X2, DP_RULE_AMPLITUDE, 4.5 + 1.0 / 32, 0.5},
    {"nvfp4 -> f32", DEQUANTIZE, DP_BULK_E2M1X2, DP_RULE_AMAX, 4.5 + 1.0 / 16, 0},
    {"mxfp4 -> f32", DEQUANTIZE, DP_BULK_E2M1X2, DP_RULE_FLOOR, 4.5 + 1.0 / 32, 0},
};

typedef struct {
    float *x, *back;
    uint8_t *codes, *scales;
    size_t n;
} arrays;

typedef struct {
    row what;
    arrays data;
    dp_bulk_options options;
    dp_block_plan plan;
    bool nvidia;
} job;

/* NVFP4 without a global scale, zero blocks to code 0; MXFP4 by the rule. */
static bool make_plan(dp_scale_rule rule, dp_block_plan *plan, dp_error *error)
{
    dp_block_recipe recipe = {.block = rule == DP_RULE_AMAX ? 16 : 32,
                              .element = dp_e2m1_format(),
                              .payload = DP_ENCODE_PTX,
                              .scale = rule == DP_RULE_AMAX ? DP_SCALE_E4M3 : DP_SCALE_E8M0,
                              .scale_encode = DP_ENCODE_PTX,
                              .rule = rule};
    const dp_global none = {DP_GLOBAL_NONE, 1.0f};
    recipe.byte0 = rule == DP_RULE_AMAX ? DP_BYTE0_CODE_ZERO : DP_BYTE0_VALUE;
    if (rule == DP_RULE_AMPLITUDE) {
        recipe.quotient = DP_QUOTIENT_AMPLITUDE;
        recipe.decode = DP_DECODE_AMPLITUDE;
    }
    return dp_block_plan_make(&recipe, none, plan, error);
}

static void copy_share(void *context, size_t first, size_t last, int thread)
{
    const job *j = context;
    (void)thread;
    memcpy(j->data.back + first, j->data.x + first, (last - first) * sizeof(float));
}

static void run_blocks(const job *j)
{
    const arrays *a = &j->data;
    const size_t shape[] = {a->n / ROW_LENGTH, ROW_LENGTH};
    const dp_tensor tensor = dp_tensor_contiguous(2, shape);
    dp_error error = {""}; /* nothing here can be refused */
    if (j->what.kind == QUANTIZE) {
        (void)dp_bulk_block_quantize_f32(&j->plan, a->x, &tensor, 1, &j->options, a->codes,
                                         a->scales, &error);
    } else {
        (void)dp_bulk_block_dequantize_f32(&j->plan, a->codes, a->scales, &tensor, 1, &j->options,
                                           a->back, &error);
    }
}

static void run_job(void *context)
{
    job *j = context;
    const arrays *a = &j->data;
    switch (j->what.kind) {
    case COPY:
        dp_parallel_for(j->options.threads, a->n, 1u << 18, copy_share, j);
        break;
    case ENCODE:
        if (j->nvidia) {
            dp_bench_nvidia_encode(j->what.format, a->x, a->n, a->codes);
        } else {
            dp_bulk_encode_f32(j->what.format, a->x, a->n, DP_ENCODE_PTX, &j->options, a->codes);
        }
        break;
    case DECODE:
        if (j->nvidia) {
            dp_bench_nvidia_decode(j->what.format, a->codes, a->n, a->back);
        } else {
            dp_bulk_decode_f32(j->what.format, a->codes, a->n, &j->options, a->back);
        }
        break;
    default:
        run_blocks(j);
        break;
    }
}

static uint64_t mix(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* 2^16 normal deviates repeated with changing signs, or every element its own random bits. */
static void fill(arrays *a, bool normal)
{
    enum { PERIOD = 1 << 16 };
    for (size_t i = 0; i < a->n; i++) {
        const uint64_t bits = mix(i);
        if (normal && i < PERIOD) {
            const double u = (double)((bits >> 40) + 1u) * 0x1p-24;
            const double v = (double)(bits & 0xFFFFFFu) * 0x1p-24;
            a->x[i] = (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
        } else if (normal) {
            const uint32_t sign = (uint32_t)(bits >> 32) & DP_F32_SIGN;
            a->x[i] = dp_f32_from_bits(dp_f32_bits(a->x[i % PERIOD]) ^ sign);
        } else {
            a->x[i] = dp_f32_from_bits((uint32_t)bits);
        }
        a->codes[i] = (uint8_t)(bits >> 56);
        a->scales[i / 16] = (uint8_t)(bits >> 48);
        a->back[i] = 0.0f;
    }
}

static bool allocate(arrays *a, size_t n)
{
    const size_t line = 4096;
    a->n = n;
    a->x = aligned_alloc(line, n * sizeof *a->x);
    a->back = aligned_alloc(line, n * sizeof *a->back);
    a->codes = aligned_alloc(line, n);
    a->scales = aligned_alloc(line, n / 16 + line - n / 16 % line);
    return a->x != NULL && a->back != NULL && a->codes != NULL && a->scales != NULL;
}

static void release(arrays *a)
{
    free(a->x);
    free(a->back);
    free(a->codes);
    free(a->scales);
}

/* Jobs of one measurement: rates in elements a second by row; rates[ROWS] is memcpy's. */
static bool measure(const arrays *a, dp_bulk_options how, bool nvidia, bool with_copy,
                    const dp_bench_options *options, double rates[ROWS + 1], dp_error *error)
{
    job jobs[ROWS + 1];
    dp_bench_item items[ROWS + 1];
    size_t index[ROWS + 1];
    size_t count = 0;
    for (size_t i = 0; i < ROWS + (with_copy ? 1u : 0u); i++) {
        const bool blocks = i < ROWS && rows[i].kind >= QUANTIZE;
        if (nvidia && (blocks || !HAVE_NVIDIA)) {
            continue;
        }
        job *j = &jobs[count];
        *j = (job){.data = *a, .options = how, .nvidia = nvidia};
        j->what = i < ROWS ? rows[i] : (row){.kind = COPY};
        if (blocks && !make_plan(rows[i].rule, &j->plan, error)) {
            return false;
        }
        items[count] = (dp_bench_item){.run = run_job, .context = j};
        index[count++] = i;
    }
    if (count > 0 && !dp_bench_measure(items, count, options, error)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        rates[index[i]] = (double)a->n / items[i].median_s;
    }
    return true;
}

typedef struct {
    double bulk[ROWS + 1], nvidia[ROWS + 1], scalar[ROWS + 1];
} rates;

static void cell(dp_report *table, double value)
{
    if (value > 0.0) {
        dp_report_f64(table, value);
    } else {
        dp_report_blank(table);
    }
}

static void add_rows(dp_report *table, const char *data, int threads, const rates *r)
{
    for (size_t i = 0; i < ROWS; i++) {
        const double limit = r->bulk[ROWS] * 8.0 / rows[i].bytes;
        dp_report_text(table, rows[i].name);
        dp_report_text(table, data);
        dp_report_i64(table, threads);
        dp_report_f64(table, 1e-9 * r->bulk[i]);
        dp_report_f64(table, 1e-9 * r->bulk[i] * rows[i].bytes);
        dp_report_f64(table, 1e-9 * limit);
        dp_report_f64(table, r->bulk[i] / limit);
        cell(table, rows[i].goal);
        if (HAVE_NVIDIA) {
            cell(table, 1e-9 * r->nvidia[i]);
            cell(table, r->nvidia[i] > 0.0 ? r->bulk[i] / r->nvidia[i] : 0.0);
        } else {
            dp_report_text(table, "absent");
            dp_report_text(table, "absent");
        }
        cell(table, 1e-9 * r->scalar[i]);
        cell(table, r->bulk[i] / r->scalar[i]);
    }
}

/* One kind of data: the rivals on one core, then bulk on one core and on more. */
static bool run_data(arrays *a, bool normal, const dp_bench_options *options, dp_report *table,
                     dp_error *error)
{
    rates r = {{0}, {0}, {0}};
    const char *name = normal ? "normal" : "any bits";
    arrays few = *a;
    few.n = a->n < RIVAL_ELEMENTS ? a->n : RIVAL_ELEMENTS;
    fill(a, normal);
    const dp_bulk_options scalar = {.path = DP_PATH_SCALAR, .threads = 1};
    if (!measure(&few, scalar, false, false, options, r.scalar, error) ||
        !measure(&few, scalar, true, false, options, r.nvidia, error)) {
        return false;
    }
    const int most = options->threads > 1 ? options->threads : 2;
    for (int threads = 1; threads <= most; threads += most - 1) {
        const dp_bulk_options bulk = {.threads = threads};
        if (!measure(a, bulk, false, true, options, r.bulk, error)) {
            return false;
        }
        add_rows(table, name, threads, &r);
    }
    return true;
}

int dp_bench_formats(const dp_bench_options *options)
{
    static const dp_column columns[] = {{"what", NULL, -1},
                                        {"data", NULL, -1},
                                        {"threads", NULL, -1},
                                        {"gelements_per_s", "G/s", 3},
                                        {"gbytes_per_s", "GB/s moved", 1},
                                        {"limit_gelements_per_s", "limit G/s", 3},
                                        {"of_limit", "of limit", 2},
                                        {"goal_of_limit", "goal", 1},
                                        {"nvidia_gelements_per_s", "NVIDIA G/s", 3},
                                        {"times_nvidia", "x NVIDIA", 1},
                                        {"scalar_gelements_per_s", "scalar G/s", 3},
                                        {"times_scalar", "x scalar", 1}};
    dp_error error = {""};
    arrays a = {NULL, NULL, NULL, NULL, 0};
    const size_t wanted = options->elements > 0 ? options->elements : DEFAULT_ELEMENTS;
    const size_t n = (wanted + 4095) / 4096 * 4096;
    char title[128];
    (void)snprintf(title, sizeof title,
                   "bulk conversions, %s; limit = memcpy rate / bytes an element",
                   dp_path_name(dp_path_resolve(DP_PATH_AUTO)));
    dp_report *table = dp_report_new(title, columns, sizeof columns / sizeof columns[0]);
    bool good = table != NULL && allocate(&a, n);
    if (!good) {
        (void)dp_fail(&error, "bench formats: memory ran short: give a smaller --elements");
    }
    good = good && run_data(&a, true, options, table, &error) &&
           run_data(&a, false, options, table, &error) &&
           dp_report_print(table, options->style, stdout, &error);
    release(&a);
    dp_report_free(table);
    return good ? DP_EXIT_SAME : dp_report_error(&error);
}
