/* SPDX-License-Identifier: MIT
 *
 * The search and what it claims about its result: folds, bootstrap, threads, files, and maps of
 * degree 2 and 3.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit_rows.h"
#include "analysis/fit_search.h"
#include "support.h"

/* Bits, not values: NaN and -0 are told apart. */
static int compare(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes);
}

static dp_fit_options options_of(int degree, dp_fit_weights weights, size_t bootstrap)
{
    dp_fit_options o = {.degree = degree,
                        .low = {0.2, degree == 1 ? 0.4 : 0.1},
                        .high = {1.8, degree == 1 ? 2.4 : 2.0},
                        .weights = weights,
                        .starts = 64,
                        .locals = 1,
                        .seed = 20260730,
                        .bootstrap = bootstrap};
    o.high[2] = degree > 1 ? 0.8 : 0.0;
    o.high[3] = degree > 2 ? 0.3 : 0.0;
    return o;
}

static dp_fit_sample gaussian(double sigma, size_t blocks)
{
    dp_fit_sample sample = {.threads = 2};
    dp_error error = {""};
    ck_assert_msg(dp_fit_sample_gaussian(&sample, &sigma, 1, blocks, 7, &error), "%s", error.text);
    return sample;
}

/* The scores of one unit, or all but those. */
static dp_fit_sample part_of(const dp_fit_sample *all, int unit, bool others)
{
    dp_fit_sample part = {.groups = all->groups, .units = all->units, .threads = 1};
    part.x = calloc(all->count, sizeof *part.x);
    part.ideal = calloc(all->count, 1);
    part.group = calloc(all->count, sizeof *part.group);
    for (size_t i = 0; i < all->count; i++) {
        if ((all->group[i] / DP_FIT_UNIT_GROUPS == unit) != others) {
            part.x[part.count] = all->x[i];
            part.ideal[part.count] = all->ideal[i];
            part.group[part.count++] = all->group[i];
        }
    }
    return part;
}

static double loss_on(const dp_fit_sample *sample, const dp_fit_map *map, dp_fit_weights weights)
{
    static dp_fit_sums sums[DP_FIT_GROUPS];
    dp_fit_evaluate(sample, map, dp_fit_parts(weights), sums);
    return dp_fit_loss(dp_fit_measure_of(sums, NULL, sample->groups), weights);
}

/* A fold is what a search over the other units alone would find, judged on the unit alone. */
START_TEST(folds_do_not_know_what_they_judge)
{
    dp_error error = {""};
    static const dp_fit_weights weights[] = {{.match = 1.0}, {.match = 0.01, .mass = 1.0}};
    dp_fit_sample sample = gaussian(2.0, 256);
    for (int w = 0; w < 2; w++) {
        const dp_fit_options o = options_of(1, weights[w], 0);
        dp_fit_result r;
        ck_assert(dp_fit_search(&sample, &o, &r, &error));
        ck_assert_int_eq(r.folds, 4);
        double in = 0.0, out = 0.0;
        for (int u = 0; u < 4; u++) {
            dp_fit_sample others = part_of(&sample, u, true);
            dp_fit_sample own = part_of(&sample, u, false);
            dp_fit_result alone;
            ck_assert(dp_fit_search(&others, &o, &alone, &error));
            ck_assert_msg(compare(alone.best.c, r.fold[u].map.c, sizeof alone.best.c) == 0,
                          "unit %d: %.9g %.9g, alone %.9g %.9g", u, (double)r.fold[u].map.c[1],
                          (double)r.fold[u].map.c[0], (double)alone.best.c[1],
                          (double)alone.best.c[0]);
            ck_assert(fabs(r.fold[u].held_in - loss_on(&others, &alone.best, o.weights)) < 1e-12);
            ck_assert(fabs(r.fold[u].held_out - loss_on(&own, &alone.best, o.weights)) < 1e-12);
            in += r.fold[u].held_in / 4;
            out += r.fold[u].held_out / 4;
            dp_fit_result_free(&alone);
            dp_fit_sample_free(&others);
            dp_fit_sample_free(&own);
        }
        ck_assert(fabs(in - r.held_in) < 1e-12 && fabs(out - r.held_out) < 1e-12);
        dp_fit_result_free(&r);
    }
    dp_fit_sample_free(&sample);
}
END_TEST

START_TEST(resampling_draws_filled_groups)
{
    dp_fit_sample sample = gaussian(1.0, 64);
    uint16_t filled[DP_FIT_GROUPS];
    ck_assert_int_eq(dp_fit_filled(&sample, filled), 64);
    sample.groups = 80; /* sixteen of which are empty */
    ck_assert_int_eq(dp_fit_filled(&sample, filled), 64);
    double total[80] = {0};
    double square = 0.0;
    uint32_t before[80] = {0};
    enum { ROUNDS = 4000 };
    for (size_t i = 0; i < ROUNDS; i++) {
        uint32_t weight[80];
        dp_fit_resample(5, i, filled, 64, 80, weight);
        uint32_t sum = 0;
        for (int g = 0; g < 80; g++) {
            sum += weight[g];
            total[g] += weight[g];
            square += (double)weight[g] * weight[g];
        }
        ck_assert_uint_eq(sum, 64);
        ck_assert(compare(weight, before, sizeof weight) != 0);
        memcpy(before, weight, sizeof weight);
    }
    for (int g = 0; g < 80; g++) {
        ck_assert(g < 64 ? fabs(total[g] / ROUNDS - 1.0) < 0.08 : total[g] == 0.0);
    }
    /* Binomial: variance 1 - 1/64. */
    ck_assert(fabs(square / ROUNDS / 64.0 - 1.0 - 63.0 / 64.0) < 0.03);
    dp_fit_sample_free(&sample);
}
END_TEST

/* The interval of a fixed map's loss against the standard error of a mean over groups. */
START_TEST(interval_is_two_standard_errors)
{
    dp_error error = {""};
    dp_fit_sample sample = gaussian(1.0, 2048);
    const double c[2] = {1.2, 1.5};
    const dp_fit_map map = dp_fit_map_of(1, c);
    static dp_fit_sums sums[DP_FIT_GROUPS], worse[DP_FIT_GROUPS];
    dp_fit_evaluate(&sample, &map, DP_FIT_SCORES, sums);
    double mean = 0.0, square = 0.0;
    for (int g = 0; g < 64; g++) {
        const double share = 1.0 - sums[g].matched / sums[g].scores;
        mean += share / 64;
        square += share * share / 64;
        worse[g] = sums[g];
        worse[g].matched -= g < 32 ? 1.0 : -0.9; /* a little worse, in half of the groups */
    }
    const double standard = sqrt((square - mean * mean) / 64);
    const dp_fit_options o = options_of(1, (dp_fit_weights){.match = 1.0}, 2000);
    dp_fit_spread spread;
    ck_assert(dp_fit_spread_of(&sample, &o, sums, worse, &spread, &error));
    printf("loss %.5f, %.5f to %.5f, standard error %.5f, beaten %.3f\n", mean, spread.low,
           spread.high, standard, spread.beaten);
    ck_assert(fabs((mean - spread.low) / standard - 1.96) < 0.25);
    ck_assert(fabs((spread.high - mean) / standard - 1.96) < 0.25);
    ck_assert(spread.beaten > 0.2 && spread.beaten < 0.5);
    ck_assert(dp_fit_spread_of(&sample, &o, sums, NULL, &spread, &error));
    ck_assert(isnan(spread.beaten));
    /* Seven groups are too few to say anything. */
    size_t kept = 0;
    for (size_t i = 0; i < sample.count; i++) {
        if (sample.group[i] < 8) {
            sample.x[kept] = sample.x[i];
            sample.ideal[kept] = sample.ideal[i];
            sample.group[kept++] = sample.group[i];
        }
    }
    sample.count = kept;
    ck_assert(dp_fit_spread_of(&sample, &o, sums, worse, &spread, &error));
    ck_assert(!isnan(spread.low) && !isnan(spread.beaten));
    for (size_t i = 0; i < sample.count; i++) {
        sample.group[i] = sample.group[i] == 7 ? 6 : sample.group[i];
    }
    ck_assert(dp_fit_spread_of(&sample, &o, sums, worse, &spread, &error));
    ck_assert(isnan(spread.low) && isnan(spread.high) && isnan(spread.beaten));
    const dp_fit_options small = options_of(1, (dp_fit_weights){.match = 1.0}, 40);
    dp_fit_result r;
    ck_assert(dp_fit_search(&sample, &small, &r, &error));
    ck_assert_uint_eq(r.replicates, 0);
    dp_fit_result_free(&r);
    dp_fit_sample_free(&sample);
}
END_TEST

/* The maps of replicates are optima of the replicates: none keeps fewer codes than the best map of
 * the whole sample, and the loss is that of the count. */
START_TEST(replicates_are_fitted_again)
{
    dp_error error = {""};
    dp_fit_sample sample = gaussian(2.0, 64);
    const dp_fit_options o = options_of(1, (dp_fit_weights){.match = 1.0}, 60);
    dp_fit_result r;
    ck_assert(dp_fit_search(&sample, &o, &r, &error));
    ck_assert_uint_eq(r.replicates, 60);
    ck_assert_uint_ge(r.distinct, 8);
    ck_assert(r.low[0] < r.high[0] && r.low[1] < r.high[1] && r.loss_low < r.loss_high);
    ck_assert(r.low[0] <= (double)r.best.c[0] && (double)r.best.c[0] <= r.high[0]);
    ck_assert(r.low[1] <= (double)r.best.c[1] && (double)r.best.c[1] <= r.high[1]);
    uint16_t filled[DP_FIT_GROUPS];
    const int count = dp_fit_filled(&sample, filled);
    double least = 1.0;
    for (size_t i = 0; i < 60; i++) {
        uint32_t weight[DP_FIT_GROUPS];
        dp_fit_resample(o.seed, i, filled, count, sample.groups, weight);
        dp_fit_joint joint;
        ck_assert(dp_fit_joint_find(&sample, weight, dp_fit_plane_low, dp_fit_plane_high, &r.best,
                                    &joint, &error));
        ck_assert(joint.count >= dp_fit_count(&sample, weight, &r.best));
        const double loss = 1.0 - (double)joint.count / 2048.0;
        least = loss < least ? loss : least;
    }
    ck_assert(fabs(least - r.loss_low) < 0.01 && least <= r.loss_low);
    dp_fit_result_free(&r);
    dp_fit_sample_free(&sample);
}
END_TEST

static dp_fit_sample tensors(uint64_t seed, size_t heads, int threads, dp_fit_sample sample)
{
    dp_error error = {""};
    const dp_attend_transform plain = {.q_factor = 1.0};
    dp_attend_inputs inputs;
    dp_forward_policy policy;
    const dp_switches switches = dp_switches_default();
    ck_assert(
        dp_attend_random(seed, 152, 1, 256, heads, heads, 64, threads, &plain, &inputs, &error));
    ck_assert(dp_forward_policy_find("fast", &policy, &error));
    const dp_direct_p launch =
        dp_direct_p_make(&policy, DP_EPOCH_S, &switches, dp_attention_scale(&inputs.in), NULL);
    sample.threads = threads;
    ck_assert_msg(dp_fit_sample_attention(&sample, &inputs, &launch, 16, true, "t", &error), "%s",
                  error.text);
    dp_attend_inputs_free(&inputs);
    return sample;
}

/* Two files together are the same groups as each alone. */
START_TEST(files_do_not_mix)
{
    dp_fit_sample first = tensors(1, 3, 2, (dp_fit_sample){0});
    dp_fit_sample second = tensors(2, 2, 2, (dp_fit_sample){0});
    dp_fit_sample both = tensors(2, 2, 2, tensors(1, 3, 2, (dp_fit_sample){0}));
    ck_assert_int_eq(both.units, 5);
    ck_assert_int_eq(both.groups, 5 * DP_FIT_UNIT_GROUPS);
    ck_assert_str_eq(both.unit[4].text, "t h1");
    const double c[2] = {1.2, 1.5};
    const dp_fit_map map = dp_fit_map_of(1, c);
    static dp_fit_sums a[DP_FIT_GROUPS], b[DP_FIT_GROUPS], all[DP_FIT_GROUPS];
    dp_fit_evaluate(&first, &map, DP_FIT_ALL, a);
    dp_fit_evaluate(&second, &map, DP_FIT_ALL, b);
    dp_fit_evaluate(&both, &map, DP_FIT_ALL, all);
    size_t wrong = 0;
    for (int g = 0; g < both.groups; g++) {
        const dp_fit_sums *alone = g < first.groups ? &a[g] : &b[g - first.groups];
        wrong += compare(&all[g], alone, sizeof *alone) != 0;
        wrong += !(alone->scores == 256.0 && alone->reference2 > 0.0); /* one row a group */
    }
    ck_assert_uint_eq(wrong, 0);
    dp_fit_sample_free(&first);
    dp_fit_sample_free(&second);
    dp_fit_sample_free(&both);
}
END_TEST

/* One seed, one result: whatever the number of threads. */
START_TEST(threads_change_nothing)
{
    dp_error error = {""};
    dp_fit_result one = {0};
    static const dp_fit_weights weights[] = {{.match = 1.0}, {1, 1, 4}};
    for (int w = 0; w < 2; w++) {
        for (int threads = 1; threads <= 3; threads++) {
            dp_fit_sample sample = tensors(5, 2, threads, (dp_fit_sample){0});
            const dp_fit_options o = options_of(1, weights[w], 40);
            dp_fit_result r;
            ck_assert(dp_fit_search(&sample, &o, &r, &error));
            if (threads == 1) {
                one = r;
                dp_fit_sample_free(&sample);
                continue;
            }
            ck_assert_uint_eq(r.visit_count, one.visit_count);
            ck_assert(compare(&r.best, &one.best, sizeof r.best) == 0);
            ck_assert(compare(r.low, one.low, sizeof r.low) == 0);
            ck_assert(compare(r.high, one.high, sizeof r.high) == 0);
            ck_assert(r.loss == one.loss && r.loss_low == one.loss_low);
            ck_assert(r.held_out == one.held_out && r.distinct == one.distinct);
            ck_assert(compare(&r.joint, &one.joint, sizeof r.joint) == 0);
            dp_fit_result_free(&r);
            dp_fit_sample_free(&sample);
        }
        dp_fit_result_free(&one);
    }
}
END_TEST

/* The fast weighted sum against its definition, every bit. */
START_TEST(weighted_sums_are_equal)
{
    enum { ROWS = 23, DIM = 128 };
    static float data[ROWS][DIM];
    const float *v[ROWS];
    float weight[ROWS];
    dp_rng rng = {12};
    size_t wrong = 0;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < ROWS; i++) {
            v[i] = data[i];
            weight[i] = ldexpf((float)(1 + dp_rng_below(&rng, 12)), -(int)dp_rng_below(&rng, 40));
            for (size_t d = 0; d < DIM; d++) {
                data[i][d] = (float)dp_rng_normal(&rng);
            }
        }
        const size_t count = dp_rng_below(&rng, ROWS + 1);
        const size_t dim = 1 + dp_rng_below(&rng, DIM);
        float fast[DIM] = {0};
        float plain[DIM] = {0};
        dp_fit_accumulate(fast, dim, v, weight, count);
        dp_fit_accumulate_scalar(plain, dim, v, weight, count);
        wrong += compare(fast, plain, sizeof fast) != 0;
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* Parabola and cubic under every objective: rounded to f32, monotone, no worse than the published
 * map, and the oracle runs what was fitted with the error that was measured. */
START_TEST(parabola_and_cubic)
{
    dp_error error = {""};
    static const dp_fit_weights weights[] = {{.match = 1}, {0.01, 1, 0}, {.output = 1}, {1, 1, 4}};
    static const char *const published[] = {"quadratic", "cubic"};
    dp_fit_sample sample = tensors(5, 2, 2, (dp_fit_sample){0});
    for (int degree = 2; degree <= 3; degree++) {
        double affine_match = 0.0;
        for (int w = 0; w < 4; w++) {
            const dp_fit_options o = options_of(degree, weights[w], w == 1 ? 40 : 0);
            dp_fit_result r;
            ck_assert_msg(dp_fit_search(&sample, &o, &r, &error), "%s", error.text);
            dp_forward_policy policy;
            ck_assert(dp_forward_policy_find(published[degree - 2], &policy, &error));
            dp_fit_map map = {.degree = degree, .floor = policy.map_floor};
            memcpy(map.c, policy.coefficient, sizeof map.c);
            printf("degree %d, weights %g %g %g: c %.6g %.6g %.6g %.6g floor %.4g loss %.5f, "
                   "published %.5f\n",
                   degree, weights[w].match, weights[w].mass, weights[w].output,
                   (double)r.best.c[0], (double)r.best.c[1], (double)r.best.c[2],
                   (double)r.best.c[3], (double)r.best.floor, r.loss,
                   loss_on(&sample, &map, o.weights));
            ck_assert_int_eq(r.best.degree, degree);
            ck_assert(dp_fit_monotone(&r.best) && dp_fit_monotone(&map));
            ck_assert(r.loss <= loss_on(&sample, &map, o.weights));
            ck_assert(r.loss == loss_on(&sample, &r.best, o.weights));
            ck_assert(!r.joint_searched && r.folds == 2);
            for (int k = 0; k <= degree; k++) {
                ck_assert((double)r.best.c[k] >= o.low[k] - 1e-6 &&
                          (double)r.best.c[k] <= o.high[k] + 1e-6);
            }
            affine_match = w == 0 ? r.measure.match : affine_match;
            ck_assert(w != 0 || r.measure.match > (degree == 2 ? 0.77 : 0.97));
            ck_assert(w != 1 || fabs(r.measure.mass - 1.0) < 1e-3);
            dp_fit_result_free(&r);
        }
    }
    dp_fit_sample_free(&sample);
}
END_TEST

/* Floors and monotony against the definition. */
START_TEST(floors_keep_maps_monotone)
{
    dp_rng rng = {3};
    int wrong = 0, falling = 0;
    for (int i = 0; i < 3000; i++) {
        const int degree = 2 + i % 2;
        double c[4];
        for (int k = 0; k < 4; k++) {
            c[k] = dp_rng_unit(&rng) * (k == 0 ? 1.8 : k == 1 ? 2.0 : k == 2 ? 0.8 : 0.3);
        }
        c[3] = i % 16 == 1 ? 0.0 : c[3]; /* a cubic that is a parabola */
        c[2] = i % 5 == 0 ? -0.3 * c[2] : c[2];
        const dp_fit_map map = dp_fit_map_of(degree, c);
        bool rises = true;
        double before = dp_fit_value(&map, -64.0);
        for (int step = -6400; step <= 316; step += step < -800 ? 50 : 1) {
            const double x = 0.01 * step;
            const double here = dp_fit_value(&map, x);
            rises = rises && here >= before - 1e-5;
            before = here;
        }
        falling += !rises;
        wrong += rises != dp_fit_monotone(&map);
        wrong += c[2] > 0.0 && !rises; /* the floor holds these */
        if (map.floor > -64.0f) {      /* and not before it must */
            const double below = dp_fit_value(&map, (double)map.floor - 1.0);
            wrong += below != dp_fit_value(&map, (double)map.floor);
            dp_fit_map free_map = map;
            free_map.floor = -INFINITY;
            wrong += c[2] > 0.0 && dp_fit_value(&free_map, (double)map.floor + 0.3) <=
                                       dp_fit_value(&map, (double)map.floor);
            wrong += c[2] > 0.0 && dp_fit_value(&free_map, (double)map.floor - 0.05) <=
                                       dp_fit_value(&map, (double)map.floor) - 1e-6;
        }
    }
    printf("%d of 3000 maps fall somewhere\n", falling);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_ge(falling, 100);
}
END_TEST

static double bowl(void *context, const double *c)
{
    ++*(int *)context;
    return (c[0] - 0.7) * (c[0] - 0.7) + fabs(c[1] - 1.3) + 0.5 * (c[0] - 0.7) * (c[1] - 1.3);
}

/* The optimiser stays in its box and gets to the bottom of a bowl; the name tells which it is. */
START_TEST(optimiser_finds_a_bowl)
{
    const char *expected = getenv("DIRECTP_REFINER");
    ck_assert(expected == NULL || strcmp(expected, dp_fit_refiner()) == 0);
    const double low[2] = {0.2, 0.4}, high[2] = {1.8, 2.4};
    double c[2] = {1.5, 0.6};
    int calls = 0;
    ck_assert(dp_fit_refine(2, low, high, c, bowl, &calls));
    ck_assert_msg(fabs(c[0] - 0.7) < 0.02 && fabs(c[1] - 1.3) < 0.02, "%g %g", c[0], c[1]);
    ck_assert_int_le(calls, 1000);
    const double tight[2] = {1.0, 1.6};
    double d[2] = {1.5, 2.0};
    ck_assert(dp_fit_refine(2, tight, high, d, bowl, &calls));
    ck_assert(d[0] >= 1.0 && d[1] >= 1.6 && d[0] < 1.02 && d[1] < 1.62);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit_search");
    TCase *tests = tcase_create("fit_search");
    tcase_add_test(tests, folds_do_not_know_what_they_judge);
    tcase_add_test(tests, resampling_draws_filled_groups);
    tcase_add_test(tests, interval_is_two_standard_errors);
    tcase_add_test(tests, replicates_are_fitted_again);
    tcase_add_test(tests, files_do_not_mix);
    tcase_add_test(tests, threads_change_nothing);
    tcase_add_test(tests, weighted_sums_are_equal);
    tcase_add_test(tests, parabola_and_cubic);
    tcase_add_test(tests, floors_keep_maps_monotone);
    tcase_add_test(tests, optimiser_finds_a_bowl);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
