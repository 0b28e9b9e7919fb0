/* SPDX-License-Identifier: MIT */
#include "analysis/codes.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "ref/arith/f32_fast.h"

/* Where the code changes, in x = log2 of the value: log2 of the midpoints of E2M1. */
static void midpoints(double at[7])
{
    static const double value[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
    for (int i = 0; i < 7; i++) {
        at[i] = log2(value[i]);
    }
}

typedef struct {
    const dp_attention *in;
    const dp_direct_p *launch;
    dp_direct_p ideal; /* the same bytes, every lane 2^x, no rebased quarter */
    double midpoint[7];
    pthread_mutex_t lock;
    dp_code_match *match; /* counts so far, under the lock */
    double *row_mass;     /* [head][row], NaN for rows without mass */
} job;

static int distance_bin(const job *j, float x)
{
    double nearest = INFINITY;
    for (int i = 0; i < 7; i++) {
        const double d = fabs((double)x - j->midpoint[i]);
        nearest = d < nearest ? d : nearest;
    }
    const double bin = nearest / DP_DISTANCE_STEP;
    return bin < DP_DISTANCE_BINS - 1 ? (int)bin : DP_DISTANCE_BINS - 1; /* NaN goes last */
}

static unsigned code_at(const uint8_t *payload, size_t i)
{
    return ((unsigned)payload[i / 2] >> (i % 2 * 4)) & 7u;
}

/* One row of one key tile. produced: its codes; masses gain the represented sums. */
static void count_tile(const job *j, const float *raw, float row_ref, const uint8_t *produced,
                       dp_code_match *m, double *mass, double *ideal_mass)
{
    static const uint8_t twice[DP_CODE_COUNT] = {0, 1, 2, 3, 4, 6, 8, 12};
    dp_p_row ideal;
    dp_classify_row(&j->ideal, 1, row_ref, raw, &ideal);
    for (size_t b = 0; b < DP_QUARTERS; b++) {
        const float q = dp_block_offsets(j->launch, row_ref, ideal.working[b]).q;
        int64_t sum = 0;
        int64_t ideal_sum = 0;
        for (size_t i = b * DP_BLOCK; i < (b + 1) * DP_BLOCK; i++) {
            if (raw[i] == -INFINITY) {
                continue; /* masked */
            }
            const unsigned code = code_at(produced, i);
            const unsigned right = code_at(ideal.payload, i);
            const int bin = distance_bin(j, dp_fma_rn_ftz(raw[i], j->launch->multiplier, q));
            m->confusion[right][code]++;
            m->byte_lanes[ideal.raw_byte[b]]++;
            m->byte_match[ideal.raw_byte[b]] += code == right;
            m->distance_lanes[bin]++;
            m->distance_match[bin] += code == right;
            sum += twice[code];
            ideal_sum += twice[right];
        }
        m->code_sum += sum;
        m->ideal_code_sum += ideal_sum;
        *mass += ldexp((double)sum, ideal.stored[b]);
        *ideal_mass += ldexp((double)ideal_sum, ideal.stored[b]);
    }
}

static void add_counts(dp_code_match *to, const dp_code_match *from)
{
    for (int i = 0; i < DP_CODE_COUNT; i++) {
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            to->confusion[i][k] += from->confusion[i][k];
        }
    }
    for (int i = 0; i < DP_BYTES; i++) {
        to->byte_lanes[i] += from->byte_lanes[i];
        to->byte_match[i] += from->byte_match[i];
    }
    for (int i = 0; i < DP_DISTANCE_BINS; i++) {
        to->distance_lanes[i] += from->distance_lanes[i];
        to->distance_match[i] += from->distance_match[i];
    }
    to->code_sum += from->code_sum;
    to->ideal_code_sum += from->ideal_code_sum;
}

static bool take_strip(void *context, const dp_strip *s)
{
    job *j = context;
    dp_code_match *counts = calloc(1, sizeof *counts);
    if (counts == NULL) {
        return false;
    }
    const size_t first = (s->batch * j->in->q_heads + s->head) * j->in->queries + s->row_first;
    for (size_t r = 0; r < s->rows; r++) {
        double mass = 0.0;
        double ideal_mass = 0.0;
        for (size_t key = 0; key < s->keys; key += DP_TILE) {
            count_tile(j, s->raw + r * s->keys + key, s->row_ref[r],
                       s->p_payload + (r * s->keys + key) / 2, counts, &mass, &ideal_mass);
        }
        j->row_mass[first + r] = mass / ideal_mass;
    }
    (void)pthread_mutex_lock(&j->lock);
    add_counts(j->match, counts);
    (void)pthread_mutex_unlock(&j->lock);
    free(counts);
    return true;
}

static void summarise(const job *j, dp_code_match *m)
{
    m->mass_least = INFINITY;
    m->mass_most = -INFINITY;
    for (size_t i = 0; i < j->in->batch * j->in->q_heads * j->in->queries; i++) {
        const double ratio = j->row_mass[i];
        if (isfinite(ratio)) {
            m->mass_rows++;
            m->mass_mean += ratio;
            m->mass_least = ratio < m->mass_least ? ratio : m->mass_least;
            m->mass_most = ratio > m->mass_most ? ratio : m->mass_most;
        }
    }
    m->mass_mean /= (double)m->mass_rows;
    for (int i = 0; i < DP_CODE_COUNT; i++) {
        m->match += m->confusion[i][i];
        for (int k = 0; k < DP_CODE_COUNT; k++) {
            m->lanes += m->confusion[i][k];
        }
    }
}

bool dp_codes_run(const dp_attention *in, const dp_direct_p *launch, const dp_mma_switches *mma,
                  int threads, dp_code_match *match, dp_error *error)
{
    memset(match, 0, sizeof *match);
    dp_operands operands;
    if (!dp_forward_quantize(in, launch, threads, &operands, error)) {
        return false;
    }
    job j = {.in = in, .launch = launch, .match = match};
    dp_forward_policy every_lane = launch->policy;
    every_lane.map = DP_MAP_EX2;
    every_lane.rebase_q1 = false;
    j.ideal = dp_direct_p_make(&every_lane, launch->epoch, &launch->switches,
                               dp_attention_scale(in), launch->sfu);
    midpoints(j.midpoint);
    j.row_mass = malloc(in->batch * in->q_heads * in->queries * sizeof(double));
    (void)pthread_mutex_init(&j.lock, NULL);
    const dp_forward_job run = {.in = in,
                                .operands = &operands,
                                .launch = launch,
                                .mma = mma,
                                .threads = threads,
                                .want_raw = true,
                                .sink = take_strip,
                                .context = &j};
    const bool good = (j.row_mass != NULL || dp_fail(error, "codes: not enough memory")) &&
                      dp_forward_run(&run, error);
    if (good) {
        summarise(&j, match);
    }
    (void)pthread_mutex_destroy(&j.lock);
    dp_operands_free(&operands);
    free(j.row_mass);
    return good;
}
