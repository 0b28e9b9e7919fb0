/* SPDX-License-Identifier: MIT
 *
 * The joint optimum of an affine map: against an exhaustive sweep in exact rationals, and its
 * polygon against counting.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/fit_joint.h"
#include "support.h"

__extension__ typedef __int128 wide;

/* The midpoints between codes in quarters, typed from PTX ISA 9.1's E2M1 values. */
static const int QUARTERS[7] = {1, 3, 5, 7, 10, 14, 20};
static const double LOW[2] = {0.25, 0.5};
static const double HIGH[2] = {1.75, 2.5};

/* Code of the ideal map by comparing logarithms. */
static int ideal_code(double x)
{
    int code = 0;
    for (int k = 0; k < 7; k++) {
        code += x > log2(0.25 * QUARTERS[k]);
    }
    return code;
}

static dp_fit_sample empty_sample(size_t n)
{
    dp_fit_sample s = {.groups = 4 * DP_FIT_UNIT_GROUPS, .units = 4, .threads = 1};
    s.x = calloc(n + 1, sizeof *s.x);
    s.ideal = calloc(n + 1, 1);
    s.group = calloc(n + 1, sizeof *s.group);
    return s;
}

static void add(dp_fit_sample *s, double x)
{
    s->x[s->count] = x;
    s->ideal[s->count] = (uint8_t)ideal_code(x);
    s->group[s->count] = (uint16_t)(s->count % (size_t)s->groups);
    s->count++;
}

static dp_fit_sample random_sample(dp_rng *rng, size_t n, bool coarse)
{
    dp_fit_sample s = empty_sample(n + 128);
    for (size_t i = 0; i < n; i++) {
        const double x = -4.0 + 7.0 * dp_rng_unit(rng);
        /* Coarse: scores of few values, so that many lines meet in one point. */
        add(&s, coarse ? floor(8.0 * x) / 8.0 + 0x1p-20 : floor(x * 0x1p22) * 0x1p-22);
    }
    return s;
}

/* ---- The exhaustive sweep -------------------------------------------------------------------
 * On a vertical line A = n / d every score asks B to lie in an interval; the most intervals over a
 * B. The count over a column changes only at columns through a crossing: those, the columns midway
 * between them and the ends of the box are all that is needed. */

typedef struct {
    wide n, d; /* d > 0 */
} ratio;

static int by_ratio(const void *a, const void *b)
{
    const ratio *x = a;
    const ratio *y = b;
    const wide left = x->n * y->d;
    const wide right = y->n * x->d;
    return (left > right) - (left < right);
}

/* Ends of code's interval, in quarters; false at the open end. */
static bool quarter(int code, bool upper, int *q)
{
    const int index = upper ? code : code - 1;
    *q = index >= 0 && index < 7 ? QUARTERS[index] : 0;
    return index >= 0 && index < 7;
}

/* B of a line, times 4 d 2^22, on the column A = n / d. */
static wide height(const dp_fit_sample *s, size_t i, int q, ratio a)
{
    const wide x = (wide)(s->x[i] * 0x1p22);
    return (wide)q * a.d * ((wide)1 << 22) - 4 * a.n * x;
}

static int64_t best_of_column(const dp_fit_sample *s, ratio a)
{
    const wide unit = 4 * a.d * ((wide)1 << 22);
    const wide bottom = unit / 4;  /* B = 0.25 */
    const wide top = unit / 4 * 7; /* B = 1.75 */
    int64_t best = 0;
    for (size_t i = 0; i <= s->count; i++) { /* the lower ends, where a count can begin */
        int q = 0;
        wide b = bottom;
        if (i < s->count) {
            b = quarter(s->ideal[i], false, &q) ? height(s, i, q, a) : bottom;
        }
        b = b < bottom ? bottom : b;
        int64_t count = 0;
        for (size_t k = 0; b <= top && k < s->count; k++) {
            const bool above = !quarter(s->ideal[k], false, &q) || b >= height(s, k, q, a);
            const bool below = !quarter(s->ideal[k], true, &q) || b <= height(s, k, q, a);
            count += above && below;
        }
        best = count > best ? count : best;
    }
    return best;
}

static int64_t exhaustive(const dp_fit_sample *s)
{
    ratio *column = calloc(8 * s->count * s->count + 16 * s->count + 2, sizeof *column);
    size_t n = 0;
    column[n++] = (ratio){1, 2};
    column[n++] = (ratio){5, 2};
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->count; k++) {
            for (int ends = 0; ends < 4; ends++) {
                int q = 0, p = 0;
                const wide d = (wide)(s->x[i] * 0x1p22) - (wide)(s->x[k] * 0x1p22);
                if (d <= 0 || !quarter(s->ideal[i], (ends & 1) != 0, &q) ||
                    !quarter(s->ideal[k], (ends & 2) != 0, &p)) {
                    continue;
                }
                const ratio a = {(wide)(q - p) * ((wide)1 << 20), d};
                if (2 * a.n > a.d && 2 * a.n < 5 * a.d) {
                    column[n++] = a;
                }
            }
        }
    }
    qsort(column, n, sizeof *column, by_ratio);
    int64_t best = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t here = best_of_column(s, column[i]);
        best = here > best ? here : best;
        if (i + 1 < n) {
            const ratio between = {column[i].n + column[i + 1].n, column[i].d + column[i + 1].d};
            here = best_of_column(s, between);
            best = here > best ? here : best;
        }
    }
    free(column);
    return best;
}

static dp_fit_joint find(const dp_fit_sample *s, const uint32_t *weight)
{
    const double start[2] = {1.2, 1.5};
    const dp_fit_map map = dp_fit_map_of(1, start);
    dp_fit_joint joint;
    dp_error error = {""};
    ck_assert_msg(dp_fit_joint_find(s, weight, LOW, HIGH, &map, &joint, &error), "%s", error.text);
    return joint;
}

START_TEST(bound_is_the_exhaustive_maximum)
{
    dp_rng rng = {20260816};
    int wrong = 0, gaps = 0, rounds = 0;
    for (int coarse = 0; coarse < 2; coarse++) {
        for (size_t n = 1; n <= 14; n++) {
            for (int repeat = 0; repeat < 12; repeat++) {
                dp_fit_sample s = random_sample(&rng, n, coarse != 0);
                const dp_fit_joint joint = find(&s, NULL);
                const int64_t truth = exhaustive(&s);
                wrong += joint.bound != truth;
                gaps += coarse == 0 && joint.count != joint.bound;
                rounds++;
                ck_assert_msg(joint.count <= truth && truth <= joint.bound,
                              "%zu scores: %lld found, %lld proved, %lld is true", n,
                              (long long)joint.count, (long long)joint.bound, (long long)truth);
                ck_assert_int_eq(dp_fit_count(&s, NULL, &joint.map), joint.count);
                dp_fit_sample_free(&s);
            }
        }
    }
    printf("%d of %d bounds differ, %d optima without a f32 pair\n", wrong, rounds, gaps);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(gaps, 0);
}
END_TEST

/* A f32 pair's value against the midpoints in exact integers. */
static int exact_code(float a, float b, double x)
{
    int ea, eb;
    const wide ma = (wide)ldexpf(frexpf(a, &ea), 24);
    const wide mb = (wide)ldexpf(frexpf(b, &eb), 24);
    const wide mx = (wide)(x * 0x1p22);
    /* A x = ma mx 2^(ea - 46), B = mb 2^(eb - 24), both in 2^-72. */
    const wide y = (ma == 0 ? 0 : ma * mx * ((wide)1 << (ea + 26))) +
                   (mb == 0 ? 0 : mb * ((wide)1 << (eb + 48)));
    int code = 0;
    for (int k = 0; k < 7; k++) {
        const wide m = (wide)QUARTERS[k] << 70;
        code += y > m || (y == m && k % 2 == 1);
    }
    return code;
}

START_TEST(values_are_exact_next_to_midpoints)
{
    dp_rng rng = {7};
    size_t wrong = 0, cases = 0;
    for (int i = 0; i < 2000000; i++) {
        const double x = (floor(dp_rng_unit(&rng) * 0x1p28) - 0x1p27) * 0x1p-22;
        const float a = (float)(0.4 + 2.0 * dp_rng_unit(&rng));
        /* B next to where A x + B is a midpoint. */
        const double m = 0.25 * QUARTERS[i % 7];
        float b = (float)(m - (double)a * x);
        const int step = (int)(dp_rng_unit(&rng) * 3.0) - 1;
        b = step == 0 ? b : nextafterf(b, step > 0 ? 100.0f : -100.0f);
        if (!(fabsf(b) > 0x1p-12f && fabsf(b) < 200.0f)) {
            continue;
        }
        const double c[2] = {(double)b, (double)a};
        const dp_fit_map map = dp_fit_map_of(1, c);
        cases++;
        wrong += dp_fit_code(dp_fit_value(&map, x)) != exact_code(a, b, x);
    }
    for (int k = 0; k < 7; k++) { /* ties by construction */
        const double c[2] = {0.25 * QUARTERS[k] - 0.75, 1.5};
        const dp_fit_map map = dp_fit_map_of(1, c);
        wrong += dp_fit_code(dp_fit_value(&map, 0.5)) != (k % 2 == 1 ? k + 1 : k);
    }
    ck_assert_uint_ge(cases, 900000);
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* Codes by thresholds in x against codes one by one: pairs that rise (thresholds), fall or stand
 * (no thresholds), and values that are ties. */
START_TEST(sums_are_of_codes_one_by_one)
{
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    dp_rng rng = {31};
    dp_fit_sample s = random_sample(&rng, 1500, false);
    for (int i = 0; i < 100; i++) {
        add(&s, 0.5 * (i % 8) - 2.0);
    }
    size_t wrong = 0;
    for (int round = 0; round < 400; round++) {
        double c[2] = {0.25 * dp_rng_below(&rng, 8), 0.5 * dp_rng_below(&rng, 6) - 0.5};
        if (round % 2 == 0) {
            c[0] = 0.2 + 1.6 * dp_rng_unit(&rng);
            c[1] = -0.2 + 2.6 * dp_rng_unit(&rng);
        }
        const dp_fit_map map = dp_fit_map_of(1, c);
        dp_fit_sums sums[4 * DP_FIT_UNIT_GROUPS], expected[4 * DP_FIT_UNIT_GROUPS] = {{0}};
        dp_fit_evaluate(&s, &map, DP_FIT_ALL, sums);
        for (size_t i = 0; i < s.count; i++) {
            dp_fit_sums *g = &expected[s.group[i]];
            const int code = exact_code(map.c[1], map.c[0], s.x[i]);
            g->scores += 1.0;
            g->matched += code == s.ideal[i];
            g->mass += value[code];
            g->ideal_mass += value[s.ideal[i]];
        }
        for (int g = 0; g < s.groups; g++) {
            wrong += sums[g].scores != expected[g].scores || sums[g].matched != expected[g].matched;
            wrong +=
                sums[g].mass != expected[g].mass || sums[g].ideal_mass != expected[g].ideal_mass;
        }
    }
    ck_assert_uint_eq(wrong, 0);
    dp_fit_sample_free(&s);
}
END_TEST

/* Counting at any real pair, in long double. */
static int64_t count_at(const dp_fit_sample *s, long double a, long double b)
{
    int64_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        const long double y = a * (long double)s->x[i] + b;
        int code = 0;
        for (int k = 0; k < 7; k++) {
            code += y > 0.25L * QUARTERS[k];
        }
        count += code == s->ideal[i];
    }
    return count;
}

/* Inside the polygon the count stays, over each side it changes: less at an optimum. */
static void check_polygon(const dp_fit_sample *s, const dp_fit_cell *cell, int64_t count, bool best)
{
    long double a = 0.0L, b = 0.0L;
    for (int i = 0; i < cell->vertices; i++) {
        a += (long double)cell->a[i] / cell->vertices;
        b += (long double)cell->b[i] / cell->vertices;
    }
    ck_assert_int_eq(count_at(s, a, b), count);
    for (int i = 0; i < cell->vertices; i++) {
        const int next = (i + 1) % cell->vertices;
        const long double ma = 0.5L * ((long double)cell->a[i] + (long double)cell->a[next]);
        const long double mb = 0.5L * ((long double)cell->b[i] + (long double)cell->b[next]);
        const long double inner = 0.998L, outer = 1.002L;
        ck_assert_int_eq(count_at(s, a + inner * ((long double)cell->a[i] - a),
                                  b + inner * ((long double)cell->b[i] - b)),
                         count);
        const int64_t inside = count_at(s, a + inner * (ma - a), b + inner * (mb - b));
        const int64_t outside = count_at(s, a + outer * (ma - a), b + outer * (mb - b));
        ck_assert_int_eq(inside, count);
        /* A side of the box is no line. */
        const bool rim = fabsl(ma - 0.5L) < 1e-9L || fabsl(ma - 2.5L) < 1e-9L ||
                         fabsl(mb - 0.25L) < 1e-9L || fabsl(mb - 1.75L) < 1e-9L;
        ck_assert_msg(rim || (best ? outside < count : outside != count),
                      "side %d: %lld inside and outside", i, (long long)outside);
    }
}

START_TEST(polygon_is_where_no_code_changes)
{
    dp_error error = {""};
    static const double sigmas[] = {0.5, 1.0, 2.0, 4.0};
    for (int i = 0; i < 4; i++) {
        dp_fit_sample s = {.threads = 1};
        ck_assert(dp_fit_sample_gaussian(&s, &sigmas[i], 1, 64, 11, &error));
        const dp_fit_joint joint = find(&s, NULL);
        printf("sigma %g: A %.9g B %.9g, %lld of %zu, area %.3g, %zu boxes\n", sigmas[i],
               (double)joint.map.c[1], (double)joint.map.c[0], (long long)joint.count, s.count,
               joint.cell.area, joint.boxes);
        ck_assert_int_eq(joint.count, joint.bound);
        ck_assert_uint_ge(joint.cells, 1);
        ck_assert_int_eq(count_at(&s, (long double)joint.map.c[1], (long double)joint.map.c[0]),
                         joint.count);
        check_polygon(&s, &joint.cell, joint.count, true);
        /* The polygon of a map that is not the best one. */
        const double c[2] = {1.2, 1.5};
        const dp_fit_map map = dp_fit_map_of(1, c);
        dp_fit_cell cell;
        dp_fit_cell_around(&s, LOW, HIGH, &map, &cell);
        ck_assert(cell.a_low <= 1.5 && 1.5 <= cell.a_high && cell.area > 0.0);
        check_polygon(&s, &cell, dp_fit_count(&s, NULL, &map), false);
        /* Nothing anywhere is better than what was proved. */
        dp_rng rng = {(uint64_t)i + 1};
        for (int k = 0; k < 3000; k++) {
            const int64_t here = count_at(&s, 0.5L + 2.0L * (long double)dp_rng_unit(&rng),
                                          0.25L + 1.5L * (long double)dp_rng_unit(&rng));
            ck_assert_int_le(here, joint.bound);
        }
        dp_fit_sample_free(&s);
    }
}
END_TEST

/* Of several best polygons the largest is reported, and their number is right. */
START_TEST(largest_region_is_kept)
{
    dp_rng rng = {77};
    int several = 0;
    for (int round = 0; round < 40; round++) {
        dp_fit_sample s = random_sample(&rng, 12, false);
        const dp_fit_joint joint = find(&s, NULL);
        double areas[64] = {0};
        size_t seen = 0;
        for (int k = 0; k < 4000; k++) {
            const double c[2] = {LOW[0] + (HIGH[0] - LOW[0]) * dp_rng_unit(&rng),
                                 LOW[1] + (HIGH[1] - LOW[1]) * dp_rng_unit(&rng)};
            const dp_fit_map map = dp_fit_map_of(1, c);
            if (dp_fit_count(&s, NULL, &map) != joint.bound) {
                continue;
            }
            dp_fit_cell cell;
            dp_fit_cell_around(&s, LOW, HIGH, &map, &cell);
            ck_assert_msg(cell.area <= joint.cell.area * (1.0 + 1e-9), "%g beside %g", cell.area,
                          joint.cell.area);
            size_t i = 0;
            while (i < seen && fabs(areas[i] - cell.area) > 1e-9 * cell.area) {
                i++;
            }
            if (i == seen && seen < 64) {
                areas[seen++] = cell.area;
            }
        }
        several += seen > 1;
        ck_assert_uint_ge(joint.cells, seen); /* small ones may be missed by points */
        dp_fit_sample_free(&s);
    }
    ck_assert_int_ge(several, 10);
}
END_TEST

/* A weight is a repetition. */
START_TEST(weights_are_repetitions)
{
    dp_rng rng = {99};
    for (int round = 0; round < 10; round++) {
        dp_fit_sample s = random_sample(&rng, 60, false);
        dp_fit_sample repeated = empty_sample(400);
        uint32_t weight[4 * DP_FIT_UNIT_GROUPS];
        for (int g = 0; g < s.groups; g++) {
            weight[g] = (uint32_t)(dp_rng_unit(&rng) * 4.0);
        }
        for (size_t i = 0; i < s.count; i++) {
            for (uint32_t k = 0; k < weight[s.group[i]]; k++) {
                add(&repeated, s.x[i]);
            }
        }
        const dp_fit_joint weighted = find(&s, weight);
        const dp_fit_joint plain = find(&repeated, NULL);
        ck_assert_int_eq(weighted.bound, plain.bound);
        ck_assert_int_eq(weighted.count, dp_fit_count(&repeated, NULL, &weighted.map));
        for (int index = 0; index < 2; index++) { /* along a line too */
            dp_error error = {""};
            dp_fit_plateau line, same;
            ck_assert(dp_fit_plateau_find(&s, weight, &plain.map, index, false, &line, &error));
            ck_assert(
                dp_fit_plateau_find(&repeated, NULL, &plain.map, index, false, &same, &error));
            ck_assert(line.best == same.best && line.low == same.low && line.high == same.high);
            ck_assert(line.below == same.below && line.above == same.above);
        }
        dp_fit_sample_free(&s);
        dp_fit_sample_free(&repeated);
    }
}
END_TEST

/* What exactness rests on: x a multiple of 2^-22 from -64 to log2 9, its code that of 2^x. */
START_TEST(scores_lie_on_the_grid)
{
    dp_error error = {""};
    static const double sigmas[2] = {1.0, 40.0};
    dp_fit_sample s = {.threads = 2};
    ck_assert(dp_fit_sample_gaussian(&s, sigmas, 2, 128, 3, &error));
    size_t wrong = 0, least = 0;
    for (size_t i = 0; i < s.count; i++) {
        const double x = s.x[i] * 0x1p22;
        wrong += x != floor(x) || s.x[i] < -64.0 || s.x[i] > 3.17;
        wrong += s.ideal[i] != ideal_code(s.x[i]);
        least += s.x[i] == -64.0;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_ge(least, 100);
    dp_fit_sample_free(&s);
}
END_TEST

/* Nothing to count, one score, equal scores, and scores at 0 and at the least x. */
START_TEST(degenerate_samples)
{
    dp_fit_sample s = empty_sample(64);
    dp_fit_joint joint = find(&s, NULL);
    ck_assert_int_eq(joint.count, 0);
    ck_assert_int_eq(joint.bound, 0);
    add(&s, 0.0);
    joint = find(&s, NULL);
    ck_assert_int_eq(joint.count, 1);
    for (int i = 0; i < 10; i++) {
        add(&s, 0.0);
        add(&s, -64.0);
    }
    joint = find(&s, NULL);
    ck_assert_int_eq(joint.count, 21);
    ck_assert_int_eq(joint.bound, 21);
    dp_fit_sample_free(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit_joint");
    TCase *tests = tcase_create("fit_joint");
    tcase_add_test(tests, bound_is_the_exhaustive_maximum);
    tcase_add_test(tests, values_are_exact_next_to_midpoints);
    tcase_add_test(tests, sums_are_of_codes_one_by_one);
    tcase_add_test(tests, polygon_is_where_no_code_changes);
    tcase_add_test(tests, largest_region_is_kept);
    tcase_add_test(tests, weights_are_repetitions);
    tcase_add_test(tests, scores_lie_on_the_grid);
    tcase_add_test(tests, degenerate_samples);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
