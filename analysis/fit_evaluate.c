/* SPDX-License-Identifier: MIT
 *
 * What a map does to the scores of a sample.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit_rows.h"
#include "formats/parallel.h"

static const double CODE_VALUE[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

typedef struct {
    const dp_fit_sample *sample;
    const dp_fit_map *map;
    bool by_threshold;
    double threshold[7]; /* the least x of a sample whose code is above k */
    dp_fit_sums *sums;   /* [threads][groups] */
} score_job;

/* An affine map that rises is exact on the x of a sample, hence monotone there: seven searches give
 * all codes. */
static void find_thresholds(const dp_fit_map *map, double *threshold)
{
    for (int k = 0; k < 7; k++) {
        int64_t low = -((int64_t)1 << 28) - 1; /* 2^-22: below every x */
        int64_t high = ((int64_t)1 << 28) + 1;
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            if (dp_fit_code(dp_fit_value(map, 0x1p-22 * (double)middle)) > k) {
                high = middle;
            } else {
                low = middle;
            }
        }
        threshold[k] = 0x1p-22 * (double)high;
    }
}

/* Scores first .. last, all of one group, by thresholds. */
static void count_run(const score_job *job, size_t first, size_t last, dp_fit_sums *g)
{
    const double *x = job->sample->x;
    const uint8_t *ideal = job->sample->ideal;
    const double *t = job->threshold;
    int64_t matched = 0;
    int64_t twice = 0;
    int64_t ideal_twice = 0;
    static const int doubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    for (size_t i = first; i < last; i++) {
        const int code = (x[i] >= t[0]) + (x[i] >= t[1]) + (x[i] >= t[2]) + (x[i] >= t[3]) +
                         (x[i] >= t[4]) + (x[i] >= t[5]) + (x[i] >= t[6]);
        matched += code == ideal[i];
        twice += doubled[code];
        ideal_twice += doubled[ideal[i]];
    }
    g->scores += (double)(last - first);
    g->matched += (double)matched;
    g->mass += 0.5 * (double)twice;
    g->ideal_mass += 0.5 * (double)ideal_twice;
}

/* Multiples of one half in doubles: sums do not depend on the split. */
static void evaluate_scores(void *context, size_t first, size_t last, int thread)
{
    const score_job *job = context;
    const dp_fit_sample *s = job->sample;
    dp_fit_sums *sums = job->sums + (ptrdiff_t)thread * s->groups;
    for (size_t i = first; job->by_threshold && i < last;) {
        size_t end = i + 1;
        while (end < last && s->group[end] == s->group[i]) {
            end++;
        }
        count_run(job, i, end, &sums[s->group[i]]);
        i = end;
    }
    for (size_t i = first; !job->by_threshold && i < last; i++) {
        const int code = dp_fit_code(dp_fit_value(job->map, s->x[i]));
        dp_fit_sums *g = &sums[s->group[i]];
        g->scores += 1.0;
        g->matched += code == s->ideal[i];
        g->mass += CODE_VALUE[code];
        g->ideal_mass += CODE_VALUE[s->ideal[i]];
    }
}

static void add_scores(const dp_fit_sample *sample, const dp_fit_map *map, int threads,
                       dp_fit_sums *sums)
{
    const size_t all = (size_t)threads * (size_t)sample->groups;
    score_job job = {.sample = sample, .map = map, .sums = calloc(all, sizeof *sums)};
    if (job.sums == NULL) {
        return; /* measured as NaN: never the best */
    }
    job.by_threshold = map->degree == 1 && map->c[1] > 0.0f;
    if (job.by_threshold) {
        find_thresholds(map, job.threshold);
    }
    dp_parallel_for(threads, sample->count, 65536, evaluate_scores, &job);
    for (size_t i = 0; i < all; i++) {
        dp_fit_sums *g = &sums[i % (size_t)sample->groups];
        g->scores += job.sums[i].scores;
        g->matched += job.sums[i].matched;
        g->mass += job.sums[i].mass;
        g->ideal_mass += job.sums[i].ideal_mass;
    }
    free(job.sums);
}

void dp_fit_evaluate(const dp_fit_sample *sample, const dp_fit_map *map, int parts,
                     dp_fit_sums *sums)
{
    const int threads = dp_parallel_threads(sample->threads);
    memset(sums, 0, (size_t)sample->groups * sizeof *sums);
    if (parts & DP_FIT_SCORES) {
        add_scores(sample, map, threads, sums);
    }
    for (const dp_fit_rows *rows = sample->rows; (parts & DP_FIT_OUTPUTS) && rows != NULL;
         rows = rows->next) {
        dp_fit_rows_evaluate(rows, map, threads, sums);
    }
}
