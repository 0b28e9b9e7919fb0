/* SPDX-License-Identifier: MIT
 *
 * Fitting of maps: the measured character of the published constants, the plateau against brute
 * force, the output measure against the whole oracle, and the search.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit_study.h"
#include "scratch.h"

static dp_fit_sample gaussian(double sigma, size_t blocks)
{
    dp_fit_sample sample = {.threads = 2};
    dp_error error = {""};
    ck_assert_msg(dp_fit_sample_gaussian(&sample, &sigma, 1, blocks, 7, &error), "%s", error.text);
    return sample;
}

static dp_fit_measure judge(const dp_fit_sample *sample, double a, double b)
{
    const double c[4] = {b, a};
    const dp_fit_map map = dp_fit_map_of(1, c);
    dp_fit_sums sums[DP_FIT_GROUPS];
    dp_fit_evaluate(sample, &map, DP_FIT_SCORES, sums);
    return dp_fit_measure_of(sums, NULL, sample->groups);
}

/* Agreement and mass of (1.5, 1.2), Gaussian blocks of natural logits. */
START_TEST(published_constants_trade_codes_for_mass)
{
    static const struct {
        double sigma, match, mass;
    } rows[] = {{0.5, .41, 1.12}, {1, .41, 1.01}, {2, .76, .93}, {4, .92, .94}};
    for (int i = 0; i < 4; i++) {
        dp_fit_sample sample = gaussian(rows[i].sigma, 8192);
        const dp_fit_measure m = judge(&sample, 1.5, 1.2);
        printf("sigma %g: match %.4f mass %.4f\n", rows[i].sigma, m.match, m.mass);
        ck_assert_msg(fabs(m.match - rows[i].match) < 0.006, "sigma %g: match %.4f", rows[i].sigma,
                      m.match);
        ck_assert_msg(fabs(m.mass - rows[i].mass) < 0.006, "sigma %g: mass %.4f", rows[i].sigma,
                      m.mass);
        dp_fit_sample_free(&sample);
    }
}
END_TEST

/* A second reading of the same figures: blocks drawn by another generator, codes by comparing with
 * every representable value, exponents by search. */
static int nearest_code(double y)
{
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    int best = 0;
    for (int k = 1; k < 8; k++) {
        const double nearer = fabs(y - value[best]) - fabs(y - value[k]);
        best = nearer > 0.0 || (nearer == 0.0 && k % 2 == 0) ? k : best;
    }
    return best;
}

START_TEST(figures_by_another_derivation)
{
    dp_rng rng = {20260801};
    double match = 0.0, n = 0.0;
    for (int block = 0; block < 4096; block++) {
        double z[32], largest = -1e30;
        for (int i = 0; i < 32; i++) {
            z[i] = 2.0 * 1.4426950408889634 * dp_rng_normal(&rng);
            largest = fmax(largest, exp2(z[i]));
        }
        int e = -40; /* the nearest power of two, 0.75 and above going up */
        while (largest >= 0.75 * exp2(e + 1)) {
            e++;
        }
        for (int i = 0; i < 32; i++) {
            const double amplitude = 6.0 * exp2(z[i]) / exp2(e);
            match += nearest_code(amplitude) == nearest_code(fmax(0, 1.5 * log2(amplitude) + 1.2));
            n += 1.0;
        }
    }
    dp_fit_sample sample = gaussian(2.0, 8192);
    const dp_fit_measure m = judge(&sample, 1.5, 1.2);
    ck_assert_msg(fabs(match / n - m.match) < 0.005, "%.4f and %.4f", match / n, m.match);
    dp_fit_sample_free(&sample);
}
END_TEST

static dp_fit_options affine(dp_fit_weights weights)
{
    const dp_fit_options o = {.low = {0.2, 0.4},
                              .high = {1.8, 2.4},
                              .degree = 1,
                              .weights = weights,
                              .starts = 64,
                              .locals = 3,
                              .seed = 20260730,
                              .bootstrap = 100};
    return o;
}

START_TEST(best_codes_at_sigma_1)
{
    dp_fit_sample sample = gaussian(1.0, 2048);
    const dp_fit_options o = affine((dp_fit_weights){.match = 1.0});
    dp_fit_result r;
    dp_error error = {""};
    ck_assert_msg(dp_fit_search(&sample, &o, &r, &error), "%s", error.text);
    printf("A %.5f B %.5f match %.4f\n", (double)r.best.c[1], (double)r.best.c[0], r.measure.match);
    /* The neighbourhood of (0.65, 1.05), .64, is a lower summit. */
    ck_assert_msg(fabs(r.measure.match - 0.655) < 0.01, "match %.4f", r.measure.match);
    ck_assert(judge(&sample, 0.65, 1.05).match < r.measure.match - 0.004);
    /* The summits keep the boundaries of the two or three smallest codes and give up the others:
     * code 0 ends at x = -2, and code 1/2 at log2 3/4 (or code 1 at log2 5/4). */
    const double a = 0.5 / (2.0 + log2(0.75));
    const double b = 0.25 + 2.0 * a;
    ck_assert_msg(fabs((double)r.best.c[1] - a) < 0.002 && fabs((double)r.best.c[0] - b) < 0.002,
                  "A %.5f B %.5f, expected %.5f %.5f", (double)r.best.c[1], (double)r.best.c[0], a,
                  b);
    ck_assert_int_eq(r.joint.count, r.joint.bound);
    ck_assert_int_eq(r.joint.count, dp_fit_count(&sample, NULL, &r.best));
    ck_assert(r.low[0] <= (double)r.best.c[0] + 0.05 && r.high[0] >= (double)r.best.c[0] - 0.05);
    ck_assert_int_eq(r.folds, 4);
    ck_assert_msg(fabs(r.held_out - r.held_in) < 0.02, "out %.4f in %.4f", r.held_out, r.held_in);
    dp_fit_result_free(&r);
    dp_fit_sample_free(&sample);
}
END_TEST

/* The enumeration against counting: inside, at both sides, and no point of a fine grid above its
 * best. */
START_TEST(plateau_is_what_counting_finds)
{
    dp_fit_sample sample = gaussian(1.0, 64);
    dp_error error = {""};
    const double n = (double)sample.count;
    for (int index = 0; index < 2; index++) {
        const double c[4] = {1.05, 0.65};
        const dp_fit_map map = dp_fit_map_of(1, c);
        dp_fit_plateau at, best;
        ck_assert(dp_fit_plateau_find(&sample, NULL, &map, index, true, &at, &error));
        ck_assert(dp_fit_plateau_find(&sample, NULL, &map, index, false, &best, &error));
        ck_assert_uint_ge(at.breakpoints, sample.count);
        ck_assert(at.low <= c[index] + 1e-6 && c[index] - 1e-6 < at.high);
        ck_assert(best.matched == best.best && best.best >= at.matched);
        const dp_fit_plateau *both[2] = {&at, &best};
        for (int k = 0; k < 2; k++) {
            const double width = both[k]->high - both[k]->low;
            const double places[3] = {0.5 * (both[k]->low + both[k]->high),
                                      both[k]->low - 1e-7 * width, both[k]->high + 1e-7 * width};
            const double expected[3] = {both[k]->matched, both[k]->below, both[k]->above};
            for (int p = 0; p < 3; p++) {
                double count = 0.0; /* in double: the places are closer than f32 numbers */
                for (size_t i = 0; i < sample.count; i++) {
                    const double a = index == 1 ? places[p] : (double)map.c[1];
                    const double b = index == 0 ? places[p] : (double)map.c[0];
                    count += nearest_code(fmax(0, a * sample.x[i] + b)) == sample.ideal[i];
                }
                ck_assert_msg(count == expected[p], "index %d place %d: %g, enumerated %g", index,
                              p, count, expected[p]);
            }
        }
        for (double t = 0.2; t < 2.4; t += 0.003) {
            const dp_fit_measure m = index == 0 ? judge(&sample, 0.65, t) : judge(&sample, t, 1.05);
            ck_assert_msg(m.match * n <= best.best + 0.5, "%g is better than the optimum", t);
        }
    }
    dp_fit_sample_free(&sample);
}
END_TEST

/* With every row taken, the measure is the oracle's own error. */
START_TEST(output_measure_is_the_oracles)
{
    dp_error error = {""};
    const dp_attend_transform plain = {.q_factor = 1.0};
    dp_attend_inputs inputs;
    ck_assert(dp_attend_random(3, 152, 1, 256, 2, 1, 64, 2, &plain, &inputs, &error));
    dp_forward_policy policy;
    const dp_switches switches = dp_switches_default();
    static const struct {
        const char *policy;
        dp_epoch epoch;
        int degree;
    } cases[] = {
        {"fast", DP_EPOCH_S, 1}, {"accurate", DP_EPOCH_S, 1}, {"quadratic", DP_EPOCH_R, 2}};
    enum { ROWS = 2 * 256 };
    static uint16_t o[ROWS * 64], reference[ROWS * 64];
    ck_assert(dp_reference_bf16(&inputs.in, 2, reference, NULL, &error));
    for (size_t i = 0; i < 3; i++) {
        ck_assert(dp_forward_policy_find(cases[i].policy, &policy, &error));
        const dp_direct_p launch = dp_direct_p_make(&policy, cases[i].epoch, &switches,
                                                    dp_attention_scale(&inputs.in), NULL);
        dp_fit_sample sample = {.threads = 2};
        ck_assert_msg(dp_fit_sample_attention(&sample, &inputs, &launch, 256, true, "t", &error),
                      "%s", error.text);
        dp_fit_map map = {.degree = cases[i].degree, .floor = policy.map_floor};
        memcpy(map.c, policy.coefficient, sizeof map.c);
        dp_fit_sums sums[DP_FIT_GROUPS];
        dp_fit_evaluate(&sample, &map, DP_FIT_ALL, sums);
        const dp_fit_measure m = dp_fit_measure_of(sums, NULL, sample.groups);
        static float lse[ROWS];
        const dp_attend_run_options run = {.inputs = &inputs, .launch = &launch, .threads = 2};
        ck_assert(dp_attend_run(&run, o, lse, &error));
        const dp_attend_metrics whole = dp_attend_compare(o, reference, ROWS, 64);
        ck_assert_msg(fabs(m.output - whole.rel_l2) < 1e-4, "%s: %.7f, oracle %.7f",
                      cases[i].policy, m.output, whole.rel_l2);
        ck_assert_int_eq(sample.units, 2);
        dp_fit_sample_free(&sample);
    }
    dp_attend_inputs_free(&inputs);
}
END_TEST

/* Sobol points: the first 16 fill every sixteenth of each axis once, whatever the shift. */
START_TEST(sobol_points_are_stratified)
{
    unsigned seen[4] = {0};
    for (uint32_t i = 0; i < 16; i++) {
        double p[4];
        dp_fit_sobol(99, i, 4, p);
        for (int d = 0; d < 4; d++) {
            ck_assert(p[d] > 0.0 && p[d] < 1.0);
            seen[d] |= 1u << (int)(16.0 * p[d]);
        }
    }
    for (int d = 0; d < 4; d++) {
        ck_assert_uint_eq(seen[d], 0xFFFF);
    }
}
END_TEST

/* The first two dimensions are a (0, 6, 2)-net: 64 points, one in every box of sides 2^-a and
 * 2^-(6 - a) (Niederreiter 1987). The others fill 1024 strips of each axis once. */
START_TEST(sobol_points_are_a_net)
{
    int wrong = 0;
    for (int a = 0; a <= 6; a++) {
        bool seen[64] = {false};
        for (uint32_t i = 0; i < 64; i++) {
            double p[2];
            dp_fit_sobol(5, i, 2, p);
            const int box = (int)(ldexp(p[0], a)) << (6 - a) | (int)ldexp(p[1], 6 - a);
            wrong += seen[box];
            seen[box] = true;
        }
    }
    static bool strip[4][1024];
    for (uint32_t i = 0; i < 1024; i++) {
        double p[4];
        dp_fit_sobol(5, i, 4, p);
        for (int d = 0; d < 4; d++) {
            wrong += strip[d][(int)(1024.0 * p[d])];
            strip[d][(int)(1024.0 * p[d])] = true;
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* The command: what it writes is what the plot reads; wrong requests are refused. */
START_TEST(command_and_plot)
{
    static dp_run run;
    char line[1400];
    const char *file = scratch("fit.h5");
    (void)snprintf(line, sizeof line,
                   "fit --random 5 --seq 256 --heads 2 --rows 8 --dim 64 --objective output "
                   "--starts 16 --locals 1 --bootstrap 40 --grid 5 --json -o %s",
                   file);
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    ck_assert_ptr_nonnull(strstr(run.out, "\"plateau_low\""));
    dp_fit_study study;
    dp_error error = {""};
    ck_assert_msg(dp_fit_study_load(&study, scratch("fit.h5"), &error), "%s", error.text);
    ck_assert_uint_eq(study.grid, 5);
    ck_assert_uint_eq(study.maps, 8);
    ck_assert_str_eq(study.name[2], "fast");
    ck_assert(study.map[2].c[1] == 1.5f && study.kept[1][3] == 1.0);
    dp_fit_study_free(&study);
    (void)snprintf(line, sizeof line, "plot fit %s --data-only -o %s", scratch("fit.h5"),
                   scratch("."));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    static const char *const refused[] = {
        "fit",
        "fit --sigma 1 --objective output",
        "fit --sigma 1 --objective mix --weights 0,0,0",
        "fit --sigma 1 --random 3",
        "fit --sigma 1 --bootstrap 39",
        "fit --sigma 1 --weights 1,1,1",
        "fit --sigma 1 --grid 9",
        "fit --sigma 1 --rows 9",
        "fit --sigma 1 --policy wan",
        "fit --random 3 --blocks 64",
        "fit --random 3 --causal --no-causal",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        run_directp(&run, refused[i]);
        ck_assert_msg(run.status == 2 && run.out[0] == '\0', "%s: %d", refused[i], run.status);
    }
    scratch_remove();
}
END_TEST

/* Codes of a real layer: the optimum is proved, and every head is judged by a fit to the others. */
START_TEST(real_tensors_are_proved)
{
    static dp_run run;
    char path[1024];
    char line[1400];
    (void)snprintf(line, sizeof line, "fit %s --rows 4 --bootstrap 0 --starts 16 --locals 1 --csv",
                   dp_source_path(path, sizeof path, "data/real/minilm_layer0.h5"));
    run_directp(&run, line);
    ck_assert_msg(run.status == 0, "%s", run.err);
    ck_assert_ptr_nonnull(strstr(run.out, ",yes,"));
    ck_assert_ptr_nonnull(strstr(run.out, "minilm_layer0.h5 h11,"));
    const char *region = strstr(run.out, "a_low,");
    ck_assert_ptr_nonnull(region);
    double number[9] = {0};
    region = strchr(region, '\n') + 1;
    for (int i = 0; i < 8; i++) {
        char *end = NULL;
        number[i] = strtod(region, &end);
        region = end + 1;
    }
    ck_assert_msg(strncmp(region, "yes,", 4) == 0, "%.80s", region);
    ck_assert(number[0] < number[1] && number[2] < number[3] && number[6] == number[7]);
    scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit");
    TCase *tests = tcase_create("fit");
    tcase_add_test(tests, published_constants_trade_codes_for_mass);
    tcase_add_test(tests, figures_by_another_derivation);
    tcase_add_test(tests, best_codes_at_sigma_1);
    tcase_add_test(tests, plateau_is_what_counting_finds);
    tcase_add_test(tests, output_measure_is_the_oracles);
    tcase_add_test(tests, sobol_points_are_stratified);
    tcase_add_test(tests, sobol_points_are_a_net);
    tcase_add_test(tests, command_and_plot);
    tcase_add_test(tests, real_tensors_are_proved);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
