/* SPDX-License-Identifier: MIT
 *
 * The standard case whose values of P lie on the midpoints of E2M1. Q, K and their scales are such
 * that a score may be any multiple of 2^-20: four pairs of blocks (d-halves alike, so that folded
 * and unfolded quantizers agree) carry four digits of it, each block exact under its scale. Every
 * fourth key has the row's maximum X, so that every block of 32 has one working byte, whatever the
 * order of the keys; the other keys take the multiples next to the scores at which the policy's
 * value crosses a midpoint, found with the oracle's own functions.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/standard_cases.h"
#include "formats/bf16.h"

enum { FEATURES = 128, BLOCK = 16, DIGITS = 4, FREE = 12, STEP_BITS = 20, AROUND = 4 };

/* The policies that are aimed at, a head each. X is that of a block whose byte is 127 + octave,
 * or, where the policy has a reference, given. */
typedef struct {
    const char *policy; /* NULL: the caller's */
    int octave;
    float x;
} aim;

static const aim AIMS[] = {
    {"fast", 1, 0.0f},       {"fast", 3, 0.0f},      {"wan", 1, 0.0f},
    {"wan", 3, 0.0f},        {"accurate", 0, 4.0f},  {"accurate", 0, 12.0f},
    {"guard-1.3b", 0, 8.0f}, {"guard-14b", 0, 8.0f}, {"ideal-accurate", 0, 12.0f},
    {NULL, 1, 8.0f},         {NULL, 3, 12.0f}};
_Static_assert(sizeof AIMS / sizeof AIMS[0] == DP_STANDARD_AIMS, "one head of the case an aim");

/* Q of the free features of a pair of blocks, times its scale. Feature 0 is 6 in Q and 0 in K,
 * feature 1 the reverse: they set the scales. */
static const float Q_FREE[FREE] = {6, 6, 6, 4, 2, 1, 1, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
static const float Q_SCALE[DIGITS] = {0x1p-1f, 0x1p-4f, 0x1p-6f, 0x1p-9f};
static const float K_SCALE[DIGITS] = {0x1p-1f, 0x1p-4f, 0x1p-7f, 0x1p-9f};
/* One unit of a digit (a quarter of the two scales), in multiples of 2^-20. */
static const long UNIT[DIGITS] = {1L << 16, 1L << 10, 1L << 5, 1};

/* Codes of K whose products with Q_FREE have the sum `units` quarters. */
static bool digit(long units, float k[FREE])
{
    static const float value[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const float sign = units < 0 ? -1.0f : 1.0f;
    long left = units < 0 ? -units : units;
    for (int f = 0; f < FREE; f++) {
        int code = 7;
        while ((long)(4.0f * Q_FREE[f] * value[code]) > left) {
            code--;
        }
        left -= (long)(4.0f * Q_FREE[f] * value[code]);
        k[f] = sign * value[code];
    }
    return left == 0;
}

static long rounded(long n, long unit)
{
    return n >= 0 ? (n + unit / 2) / unit : -((-n + unit / 2) / unit);
}

/* A row of K whose score with the case's Q is n * 2^-20. */
static bool key_row(long n, float *k)
{
    memset(k, 0, FEATURES * sizeof *k);
    bool good = true;
    for (int b = 0; b < DIGITS; b++) {
        const long units = rounded(n, UNIT[b]);
        float codes[FREE];
        n -= units * UNIT[b];
        good = digit(units, codes) && good;
        for (int f = 0; f < FREE; f++) {
            k[b * BLOCK + 2 + f] = K_SCALE[b] * codes[f];
        }
        k[b * BLOCK + 1] = k[FEATURES / 2 + b * BLOCK + 1] = 6.0f * K_SCALE[b];
    }
    return good && n == 0;
}

static void query_row(float *q)
{
    memset(q, 0, FEATURES * sizeof *q);
    for (int b = 0; b < DIGITS; b++) {
        for (int f = 0; f < FREE; f++) {
            q[b * BLOCK + 2 + f] = Q_SCALE[b] * Q_FREE[f];
        }
        q[b * BLOCK] = q[FEATURES / 2 + b * BLOCK] = 6.0f * Q_SCALE[b];
    }
}

static float score_of(long n)
{
    return ldexpf((float)n, -STEP_BITS); /* below 2^24: exact */
}

/* Scalars of a block under a policy where the row's maximum is x * 2^-20. */
static dp_block_scalars scalars_of(const dp_direct_p *launch, long x)
{
    float row[DP_TILE];
    for (int j = 0; j < DP_TILE; j++) {
        row[j] = score_of(x);
    }
    const float m = dp_row_reference(launch, row);
    const int u = dp_block_byte(launch, row[0], m);
    return dp_block_offsets(launch, m, dp_working_byte(launch, u));
}

static float value_of(const dp_direct_p *launch, dp_block_scalars s, long n)
{
    return dp_lane_value(launch, s, launch->policy.map == DP_MAP_EX2, score_of(n));
}

/* The least n whose value reaches the midpoint: values grow with scores. */
static long crossing(const dp_direct_p *launch, dp_block_scalars s, float middle, long x)
{
    long below = -(1L << 25);
    long above = x;
    while (above - below > 1) {
        const long n = below + (above - below) / 2;
        *(value_of(launch, s, n) >= middle ? &above : &below) = n;
    }
    return above;
}

static const float MIDDLE[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

/* How well a maximum serves: a midpoint met exactly counts most, then a value one or two ulps
 * away on either side. */
static int merit(const dp_direct_p *launch, long x)
{
    const dp_block_scalars s = scalars_of(launch, x);
    int sum = 0;
    for (int k = 0; k < 7; k++) {
        const long at = crossing(launch, s, MIDDLE[k], x);
        for (long n = at - 2; n <= at + 2; n++) {
            const int64_t ulps =
                (int64_t)dp_f32_bits(value_of(launch, s, n)) - (int64_t)dp_f32_bits(MIDDLE[k]);
            sum += ulps == 0 ? 4 : ulps >= -2 && ulps <= 2 ? 1 : 0;
        }
    }
    return sum;
}

/* With a reference the constant of the map depends on the maximum: the best of 512. */
static long maximum_of(const dp_direct_p *launch, const aim *a)
{
    const bool reference = launch->policy.reference != DP_REFERENCE_NONE;
    const float wanted = reference ? a->x : ((float)a->octave + 0.1f) / launch->multiplier;
    const long first = lrintf(ldexpf(wanted, STEP_BITS));
    long best = first;
    int most = -1;
    for (long i = 0; reference && i < 512; i++) {
        const int found = merit(launch, first + i * 977);
        best = found > most ? first + i * 977 : best;
        most = found > most ? found : most;
    }
    return best;
}

static bool head_keys(const dp_direct_p *launch, const aim *a, size_t keys, float *k)
{
    const long x = maximum_of(launch, a);
    const dp_block_scalars s = scalars_of(launch, x);
    size_t target = 0;
    bool good = true;
    for (size_t j = 0; j < keys; j++) {
        long n = x;
        if (j % 4 != 0) {
            n = crossing(launch, s, MIDDLE[target % 7], x) + (long)(target / 7 % (2 * AROUND + 1)) -
                AROUND;
            n = n < x ? n : x;
            target++;
        }
        good = key_row(n, k + j * FEATURES) && good;
    }
    return good;
}

bool dp_standard_midpoints(const dp_direct_p *aimed, size_t queries, size_t keys, float *q,
                           float *k, dp_error *error)
{
    const dp_switches switches = dp_switches_default();
    for (size_t h = 0; h < DP_STANDARD_AIMS; h++) {
        dp_forward_policy policy;
        if (!dp_forward_policy_find(AIMS[h].policy != NULL ? AIMS[h].policy : "fast", &policy,
                                    error)) {
            return false;
        }
        dp_direct_p launch =
            dp_direct_p_make(&policy, DP_EPOCH_R, &switches, 1.0 / sqrt(128.0), NULL);
        if (AIMS[h].policy == NULL && aimed != NULL) {
            launch = *aimed;
        }
        for (size_t r = 0; r < queries; r++) {
            query_row(q + (h * queries + r) * FEATURES);
        }
        if (!head_keys(&launch, &AIMS[h], keys, k + h * keys * FEATURES)) {
            return dp_fail(error,
                           "cases: a score of the midpoints of head %zu cannot be made: "
                           "please report this bug",
                           h);
        }
    }
    return true;
}
