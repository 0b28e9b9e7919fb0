/* SPDX-License-Identifier: MIT */
#include "analysis/range.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/device_softmax.h"
#include "analysis/progress.h"
#include "analysis/range_kernels.h"
#include "formats/parallel.h"

/* Sums over one row. Kept row by row and added in row order, so that the number of threads cannot
 * change a digit. */
typedef struct {
    double lost;        /* exact probability on entries that decode to 0 */
    double error2;      /* |represented - exact|^2 of P */
    double dot, out2;   /* <o, O>, |o|^2 of the outputs */
    double difference2; /* |o - O|^2 */
    bool lost_row;
} row_sums;

typedef struct {
    double mass, p2, out2; /* sum of P, |P|^2, |O|^2 */
} exact_sums;

typedef struct {
    const dp_tensors *tensors;
    const dp_range_format *formats;
    size_t format_count;
    dp_range_arithmetic arithmetic;
    size_t block, rows, cases;
    size_t tiles;            /* of one head */
    size_t padded;           /* keys, up to whole lanes */
    float *keys;             /* [batch * kv_head] packed */
    exact_sums *exact;       /* [batch * head][row] */
    row_sums *sums;          /* [batch * head][row][format] */
    dp_range_counts *counts; /* [thread][case][format] */
    double *scratch;         /* [thread]: see scratch_size */
    size_t scratch_size;
    dp_progress progress;
} range_run;

size_t dp_range_rows(const dp_tensors *tensors, const dp_range_options *options)
{
    return options->rows == 0 || options->rows > tensors->q_len ? tensors->q_len : options->rows;
}

size_t dp_range_cases(const dp_tensors *tensors, const dp_range_options *options)
{
    return options->per_head ? tensors->batch * tensors->q_heads : 1;
}

/* The query row that sample number `index` stands for: evenly spaced, the last row included. */
static size_t query_row(const range_run *run, size_t index)
{
    return (index + 1) * run->tensors->q_len / run->rows - 1;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double distance2(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sum;
}

/* Divide a represented row by its own sum; a row that lost everything stays 0. */
static bool renormalise(double *row, size_t n)
{
    double sum = 0.0;
    for (size_t j = 0; j < n; j++) {
        sum += row[j];
    }
    for (size_t j = 0; j < n && sum > 0.0; j++) {
        row[j] /= sum;
    }
    return sum > 0.0;
}

/* One tile: up to DP_RANGE_TILE rows of one head. `valid` of them are real, the rest repeat the
 * last one and are not counted. */
typedef struct {
    size_t slot;    /* of the first row in exact[] */
    size_t case_id; /* where its counts go */
    size_t valid;
    size_t visible[DP_RANGE_TILE];
    size_t most_visible;
    const float *q[DP_RANGE_TILE];
    const float *keys, *v;
} query_tile;

static query_tile tile_at(const range_run *run, size_t index)
{
    const dp_tensors *t = run->tensors;
    const size_t head_index = index / run->tiles;
    const size_t batch = head_index / t->q_heads, head = head_index % t->q_heads;
    const size_t first = index % run->tiles * DP_RANGE_TILE;
    const size_t kv = batch * t->kv_heads + t->kv_of_q[head];
    query_tile out = {.slot = head_index * run->rows + first,
                      .case_id = run->cases > 1 ? head_index : 0,
                      .keys = run->keys + kv * run->padded * t->dim,
                      .v = dp_tensors_v(t, batch, head, 0)};
    for (size_t r = 0; r < DP_RANGE_TILE; r++) {
        const bool real = first + r < run->rows;
        const size_t row = query_row(run, real ? first + r : run->rows - 1);
        out.valid += real;
        out.q[r] = dp_tensors_q(t, batch, head, row);
        out.visible[r] = t->causal ? row + 1 : t->kv_len;
        out.most_visible = out.visible[r] > out.most_visible ? out.visible[r] : out.most_visible;
    }
    return out;
}

static void do_format(range_run *run, const query_tile *tile, size_t format, int thread,
                      const double *p, const double *exact_out, double *stored, double *out)
{
    const size_t dim = run->tensors->dim;
    dp_range_counts *counts =
        &run->counts[((size_t)thread * run->cases + tile->case_id) * run->format_count + format];
    memset(stored, 0, DP_RANGE_TILE * run->padded * sizeof *stored);
    for (size_t r = 0; r < tile->valid; r++) {
        row_sums *sums = &run->sums[(tile->slot + r) * run->format_count + format];
        double *row = stored + r * run->padded;
        dp_range_store(&run->formats[format], p + r * run->padded, tile->visible[r], run->block,
                       row, &sums->lost, counts);
        sums->lost_row = !renormalise(row, tile->visible[r]);
        sums->error2 = distance2(row, p + r * run->padded, tile->visible[r]);
    }
    dp_range_outputs(stored, tile->v, dim, tile->most_visible, run->padded, out);
    for (size_t r = 0; r < tile->valid; r++) {
        row_sums *sums = &run->sums[(tile->slot + r) * run->format_count + format];
        sums->dot = dot(out + r * dim, exact_out + r * dim, dim);
        sums->out2 = dot(out + r * dim, out + r * dim, dim);
        sums->difference2 = distance2(out + r * dim, exact_out + r * dim, dim);
    }
}

static void do_probabilities(range_run *run, const query_tile *tile, double *p)
{
    const bool device = run->arithmetic == DP_RANGE_DEVICE;
    const double scale = run->tensors->softmax_scale;
    (device ? dp_device_scores : dp_range_scores)(tile->q, tile->keys, run->tensors->dim,
                                                  tile->most_visible, run->padded, p);
    for (size_t r = 0; r < DP_RANGE_TILE; r++) {
        double *row = p + r * run->padded;
        const double mass = (device ? dp_device_softmax : dp_range_softmax)(row, tile->visible[r],
                                                                            run->padded, scale);
        if (r < tile->valid) {
            run->exact[tile->slot + r].mass = mass;
            run->exact[tile->slot + r].p2 = dot(row, row, tile->visible[r]);
        }
    }
}

static void do_tiles(void *context, size_t first, size_t last, int thread)
{
    range_run *run = context;
    const size_t dim = run->tensors->dim;
    double *p = run->scratch + (size_t)thread * run->scratch_size;
    double *stored = p + DP_RANGE_TILE * run->padded;
    double *exact_out = stored + DP_RANGE_TILE * run->padded;
    double *out = exact_out + DP_RANGE_TILE * dim;
    for (size_t index = first; index < last; index++) {
        const query_tile tile = tile_at(run, index);
        do_probabilities(run, &tile, p);
        dp_range_outputs(p, tile.v, dim, tile.most_visible, run->padded, exact_out);
        for (size_t r = 0; r < tile.valid; r++) {
            run->exact[tile.slot + r].out2 = dot(exact_out + r * dim, exact_out + r * dim, dim);
        }
        for (size_t format = 0; format < run->format_count; format++) {
            do_format(run, &tile, format, thread, p, exact_out, stored, out);
        }
        dp_progress_add(&run->progress, 1);
    }
}

static double fraction(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : (double)part / (double)whole;
}

/* Sum the rows of one case. A norm of 0 (all values 0) gives NaN, which is what 0/0 means. */
static void finish(const range_run *run, size_t case_id, size_t format, dp_range_result *result)
{
    const size_t all = run->tensors->batch * run->tensors->q_heads * run->rows;
    const size_t per_case = all / run->cases;
    exact_sums exact = {0};
    row_sums sums = {0};
    for (size_t row = case_id * per_case; row < (case_id + 1) * per_case; row++) {
        const row_sums *from = &run->sums[row * run->format_count + format];
        exact.mass += run->exact[row].mass;
        exact.p2 += run->exact[row].p2;
        exact.out2 += run->exact[row].out2;
        sums.lost += from->lost;
        sums.error2 += from->error2;
        sums.dot += from->dot;
        sums.out2 += from->out2;
        sums.difference2 += from->difference2;
        result->lost_rows += from->lost_row;
    }
    const dp_range_counts *counts = &result->counts;
    const bool scaled = dp_range_has_scale(&run->formats[format]);
    result->zero_scale = scaled ? fraction(counts->zero_scale, counts->blocks) : (double)NAN;
    result->zero_payload = fraction(counts->zero_payload, counts->entries);
    result->underflow = fraction(counts->underflow, counts->nonzero);
    result->lost_mass = sums.lost / exact.mass;
    result->p_rel_l2 = sqrt(sums.error2) / sqrt(exact.p2);
    result->pv_cosine = sums.dot / (sqrt(sums.out2) * sqrt(exact.out2));
    result->pv_rel_l2 = sqrt(sums.difference2) / sqrt(exact.out2);
    result->min_scale = counts->min_scale > 0.0 ? counts->min_scale : (double)NAN;
}

static bool check_finite(const char *name, const float *x, size_t n, dp_error *error)
{
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        bad += isfinite(x[i]) ? 0 : 1;
    }
    return bad == 0 || dp_fail(error,
                               "/inputs/%s: %zu of %zu elements are NaN or infinite: softmax of "
                               "such rows is undefined, mask or repair them first",
                               name, bad, n);
}

static bool check(const dp_tensors *t, const dp_range_options *options, dp_error *error)
{
    const size_t q = t->batch * t->q_heads * t->q_len * t->dim;
    const size_t kv = t->batch * t->kv_heads * t->kv_len * t->dim;
    if (options->block < 8 || options->block > 64 || (options->block & (options->block - 1)) != 0) {
        return dp_fail(error, "--block: %zu is not 8, 16, 32 or 64: choose one", options->block);
    }
    if (t->causal && t->q_len != t->kv_len) {
        return dp_fail(error,
                       "/inputs/q: causal with %zu queries and %zu keys leaves open which key a "
                       "query sees: use --no-causal or equal lengths",
                       t->q_len, t->kv_len);
    }
    return check_finite("q", t->q, q, error) && check_finite("k", t->k, kv, error) &&
           check_finite("v", t->v, kv, error);
}

static bool allocate(range_run *run, int threads, dp_error *error)
{
    const dp_tensors *t = run->tensors;
    const size_t heads = t->batch * t->q_heads;
    const size_t kv_heads = t->batch * t->kv_heads;
    run->scratch_size = 2 * DP_RANGE_TILE * run->padded + 2 * DP_RANGE_TILE * t->dim;
    run->keys = calloc(kv_heads * run->padded * t->dim, sizeof *run->keys);
    run->exact = calloc(heads * run->rows, sizeof *run->exact);
    run->sums = calloc(heads * run->rows * run->format_count, sizeof *run->sums);
    run->counts = calloc((size_t)threads * run->cases * run->format_count, sizeof *run->counts);
    run->scratch = calloc((size_t)threads * run->scratch_size, sizeof *run->scratch);
    if (!run->keys || !run->exact || !run->sums || !run->counts || !run->scratch) {
        return dp_fail(error, "range: not enough memory for %zu heads of %zu keys: use --rows",
                       heads, t->kv_len);
    }
    for (size_t i = 0; i < kv_heads; i++) {
        dp_range_pack_keys(t->k + i * t->kv_len * t->dim, t->kv_len, t->dim,
                           run->keys + i * run->padded * t->dim);
    }
    return true;
}

static void release(range_run *run)
{
    free(run->keys);
    free(run->exact);
    free(run->sums);
    free(run->counts);
    free(run->scratch);
}

bool dp_range_run(const dp_tensors *tensors, const dp_range_format *formats, size_t format_count,
                  const dp_range_options *options, dp_range_result *results, dp_error *error)
{
    if (!check(tensors, options, error)) {
        return false;
    }
    const int threads = dp_parallel_threads(options->threads);
    range_run run = {.tensors = tensors,
                     .formats = formats,
                     .format_count = format_count,
                     .arithmetic = options->arithmetic,
                     .block = options->block,
                     .rows = dp_range_rows(tensors, options),
                     .cases = dp_range_cases(tensors, options),
                     .padded = dp_range_padded(tensors->kv_len)};
    run.tiles = (run.rows + DP_RANGE_TILE - 1) / DP_RANGE_TILE;
    const bool ready = allocate(&run, threads, error);
    if (ready) {
        const size_t tiles = tensors->batch * tensors->q_heads * run.tiles;
        dp_progress_start(&run.progress, options->title, tiles);
        dp_parallel_for(threads, tiles, 1, do_tiles, &run);
        dp_progress_end(&run.progress);
        for (size_t i = 0; i < run.cases * format_count; i++) {
            results[i] = (dp_range_result){0};
            for (size_t thread = 0; thread < (size_t)threads; thread++) {
                dp_range_counts_add(&results[i].counts,
                                    &run.counts[thread * run.cases * format_count + i]);
            }
            finish(&run, i / format_count, i % format_count, &results[i]);
        }
    }
    release(&run);
    return ready;
}
