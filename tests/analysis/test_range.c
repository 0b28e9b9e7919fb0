/* SPDX-License-Identifier: MIT
 *
 * The range diagnostic: formats against values worked out by hand, the driver against a plain
 * restatement, and every row of the published table. Numbered cases: 44, 47, 52, 59, 82, 87, 90,
 * 107.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/range.h"
#include "analysis/range_kernels.h"
#include "support.h"

static dp_range_format format_of(const char *name)
{
    dp_range_format formats[DP_RANGE_FORMATS];
    size_t count;
    dp_error error = {""};
    ck_assert_msg(dp_range_formats_parse(name, formats, &count, &error), "%s", error.text);
    ck_assert_uint_eq(count, 1);
    return formats[0];
}

/* Decoded value of a block maximum p, times 1, in a block that holds nothing else. */
static double decoded_alone(const char *name, double p)
{
    const dp_range_format format = format_of(name);
    double row[32] = {p}, decoded[32], lost;
    dp_range_counts counts = {0};
    dp_range_store(&format, row, 32, 32, decoded, &lost, &counts);
    return decoded[0];
}

/* What becomes of a block whose maximum is r, by the gain G: 1, 2688 with the payload taken by the
 * rounded scale, and the scale alone for 6 and 320 * 6 (the payload of the maximum is then 6). */
START_TEST(block_maximum_by_gain)
{
    static const struct {
        double r, g1, g2688, six_scale_g6, six_scale_g1920;
    } cases[] = {
        {1, 1.03125, 1, 1, 1},
        {0.9, 0.9375, 0.928571429, 0.875, 0.9},
        {0.5, 0.515625, 0.5, 0.5, 0.5},
        {0.3, 0.3046875, 0.285714286, 0.3125, 0.3},
        {0.1, 0.10546875, 0.0982142857, 0.1015625, 0.1},
        {0.01, 0.01171875, 0.0100446429, 0.009765625, 0.01015625},
        {1e-3, 0, 0.000976562500, 0.001953125, 0.0009765625},
        {0x1p-10, 0, 0.000976562500, 0, 0.0009765625},
        {1e-5, 0, 8.71930804e-6, 0, 1.220703125e-5},
        {3e-6, 0, 2.90643601e-6, 0, 0},
        {2.2e-6, 0, 2.17982701e-6, 0, 0},
        {2.1e-6, 0, 0, 0, 0},
    };
    const dp_range_format g6 = format_of("nvfp4-g6"), g1920 = format_of("nvfp4-g1920");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double r = cases[i].r;
        ck_assert_double_eq_tol(decoded_alone("nvfp4-g1", r), cases[i].g1, 1e-15);
        ck_assert_double_eq_tol(decoded_alone("nvfp4-g2688", r), cases[i].g2688,
                                5e-9 * cases[i].g2688 + 1e-30);
        ck_assert_double_eq_tol(6.0 * dp_range_scale(&g6, r), cases[i].six_scale_g6, 1e-15);
        ck_assert_double_eq_tol(6.0 * dp_range_scale(&g1920, r), cases[i].six_scale_g1920, 1e-15);
    }
}
END_TEST

/* Whole-block flush: a scale is zero up to and including the tie at half the least E4M3. */
START_TEST(case_59_no_floor_under_the_scale)
{
    static const double gains[] = {1, 6, 448, 2688};
    for (size_t i = 0; i < 4; i++) {
        const dp_range_format format = {.kind = DP_RANGE_NVFP4, .gain = gains[i]};
        const double tie = 6.0 * 0x1p-10 / gains[i];
        ck_assert(dp_range_scale(&format, tie * 0.999999) == 0.0);
        ck_assert_double_eq_tol(dp_range_scale(&format, tie * 1.000001), 0x1p-9 / gains[i], 1e-18);
    }
    const dp_range_format wide = format_of("ue5m3-g1");
    ck_assert(dp_range_scale(&wide, 6.0 * 0x1p-18) == 0.0);
    ck_assert(dp_range_scale(&wide, 6.0 * 0x1p-18 * 1.000001) == 0x1p-17);
}
END_TEST

START_TEST(case_52_a_gain_beyond_2688_saturates)
{
    const dp_range_format format = format_of("nvfp4-g5376");
    double row[32] = {1.0}, decoded[32], lost;
    dp_range_counts counts = {0};
    dp_range_store(&format, row, 32, 32, decoded, &lost, &counts);
    ck_assert(decoded[0] == 0.5); /* 6 * 448 / 5376 */
    ck_assert_uint_eq(counts.saturated, 1);
}
END_TEST

/* Midpoints of E2M1 at scale 1 (amax = 6), where the payload is the value itself. */
START_TEST(ties_of_the_payload)
{
    static const double ties[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
    static const double down[] = {0, 0.5, 1, 1.5, 2, 3, 4};
    static const double even[] = {0, 1, 1, 2, 2, 4, 4};
    const dp_range_format nv = format_of("nvfp4-g1"), kernel = format_of("mxfp4-kernel");
    double row[32] = {6.0}, decoded[32], lost;
    for (size_t i = 0; i < 7; i++) {
        row[2 * i + 1] = ties[i];
        row[2 * i + 2] = ties[i] * 1.0000001;
    }
    dp_range_counts counts = {0};
    dp_range_store(&nv, row, 32, 32, decoded, &lost, &counts);
    for (size_t i = 0; i < 7; i++) {
        ck_assert(decoded[2 * i + 1] == down[i]);
        ck_assert(decoded[2 * i + 2] > down[i]);
    }
    /* The kernel's amplitude of amax = 1 is 1: payload 6p, value payload/6. Values 3k/24. */
    double unit[32] = {1.0};
    for (size_t i = 0; i < 7; i++) {
        unit[i + 1] = ties[i] / 6.0;
    }
    dp_range_store(&kernel, unit, 32, 32, decoded, &lost, &counts);
    for (size_t i = 0; i < 7; i++) {
        if (unit[i + 1] * 6.0 == ties[i]) { /* only these are ties in binary64 */
            ck_assert_double_eq_tol(decoded[i + 1], even[i] / 6.0, 1e-16);
        }
    }
}
END_TEST

/* The kernel's amplitude: nearest power of two, the switch at 0.75 2^k going up, so that the
 * payload of the maximum is 4.5 to 9 before it saturates at 6. */
START_TEST(case_44_kernel_amplitude_clips)
{
    const dp_range_format kernel = format_of("mxfp4-kernel");
    ck_assert(dp_range_scale(&kernel, 0.75) == 1.0);
    ck_assert(dp_range_scale(&kernel, nextafter(0.75, 0)) == 0.5);
    ck_assert(dp_range_scale(&kernel, 1.0) == 1.0);
    ck_assert(dp_range_scale(&kernel, nextafter(1.5, 0)) == 1.0);
    ck_assert(dp_range_scale(&kernel, 1.5) == 2.0);
    ck_assert(dp_range_scale(&kernel, 0.0) == 0x1p-127);
    ck_assert(dp_range_scale(&kernel, 1e-300) == 0x1p-127);
    ck_assert(decoded_alone("mxfp4-kernel", nextafter(0.75, 0)) == 0.5);            /* 9 cut to 6 */
    ck_assert_double_eq_tol(decoded_alone("mxfp4-kernel", 0.75), 4.0 / 6.0, 1e-16); /* 4.5 */
}
END_TEST

/* Floor and ceil of log2 for amax/6 at and next to exact powers of two. */
START_TEST(case_47_exact_powers_of_two)
{
    const dp_range_format best = format_of("mxfp4");
    for (int k = -100; k <= 0; k++) {
        const double amax = ldexp(6.0, k);
        ck_assert(dp_range_scale(&best, amax) == ldexp(1.0, k));
        ck_assert(dp_range_scale(&best, amax * (1 - 0x1p-50)) == ldexp(1.0, k - 1));
        ck_assert(dp_range_scale(&best, amax * (1 + 0x1p-50)) == ldexp(1.0, k));
        ck_assert(decoded_alone("mxfp4", amax) == amax);
    }
}
END_TEST

/* The lower squared error wins; equal errors of both steps: the larger step wins. */
START_TEST(best_power_tie_takes_the_larger_step)
{
    const dp_range_format best = format_of("mxfp4");
    double row[32] = {8.0, 4.0, 2.0}, decoded[32], lost;
    dp_range_counts counts = {0};
    dp_range_store(&best, row, 32, 32, decoded, &lost, &counts);
    ck_assert(counts.min_scale == 2.0); /* 8 is no multiple of step 1 within E2M1 */
    double tie[32] = {8.0, 7.0, 7.0};   /* step 1: 6 6 6, error 4+1+1; step 2: 8 6 6, error 2 */
    dp_range_store(&best, tie, 32, 32, decoded, &lost, &counts);
    ck_assert(decoded[0] == 8.0 && decoded[1] == 6.0);
    double even[32] = {7.0}; /* step 1: 6; step 2: 6 (3.5 goes down to 3): equal errors */
    counts = (dp_range_counts){0};
    dp_range_store(&best, even, 32, 32, decoded, &lost, &counts);
    ck_assert(counts.min_scale == 2.0 && decoded[0] == 6.0);
}
END_TEST

/* Underflow counts what was not zero before; both denominators are there. */
START_TEST(case_107_underflow_is_decoded_zero_of_nonzero_source)
{
    const dp_range_format format = format_of("e4m3-g1");
    double row[8] = {1e-5, 0.0, 1e-5, 1.0}, decoded[8], lost;
    dp_range_counts counts = {0};
    dp_range_store(&format, row, 4, 8, decoded, &lost, &counts);
    ck_assert_uint_eq(counts.entries, 4);
    ck_assert_uint_eq(counts.nonzero, 3);
    ck_assert_uint_eq(counts.zero_payload, 3);
    ck_assert_uint_eq(counts.underflow, 2);
    ck_assert_double_eq_tol(lost, 2e-5, 1e-18);
    double ordinary[8] = {0.0, 0.25, 0.5, 1.0};
    counts = (dp_range_counts){0};
    dp_range_store(&format, ordinary, 4, 8, decoded, &lost, &counts);
    ck_assert_uint_eq(counts.underflow, 0);
}
END_TEST

/* ---- The driver against a plain restatement ---- */

typedef struct {
    double lost, mass, error2, p2, dot, out2, exact2, difference2;
} totals;

static void plain_row(const dp_tensors *t, const dp_range_format *format, size_t block, size_t b,
                      size_t h, size_t i, totals *sum, dp_range_counts *counts)
{
    const size_t n = t->causal ? i + 1 : t->kv_len;
    double *p = calloc(t->kv_len + 64, sizeof *p), *stored = calloc(t->kv_len + 64, sizeof *p);
    ck_assert(p != NULL && stored != NULL);
    double most = -INFINITY, z = 0, lost, represented = 0;
    for (size_t j = 0; j < n; j++) {
        for (size_t d = 0; d < t->dim; d++) {
            p[j] += (double)dp_tensors_q(t, b, h, i)[d] * (double)dp_tensors_k(t, b, h, j)[d];
        }
        most = fmax(most, p[j] * t->softmax_scale);
    }
    for (size_t j = 0; j < n; j++) {
        p[j] = exp(p[j] * t->softmax_scale - most);
        z += p[j];
    }
    for (size_t j = 0; j < n; j++) {
        p[j] /= z;
        sum->mass += p[j];
        sum->p2 += p[j] * p[j];
    }
    dp_range_store(format, p, n, block, stored, &lost, counts);
    sum->lost += lost;
    for (size_t j = 0; j < n; j++) {
        represented += stored[j];
    }
    for (size_t j = 0; j < n; j++) {
        stored[j] = represented > 0 ? stored[j] / represented : 0;
        sum->error2 += (stored[j] - p[j]) * (stored[j] - p[j]);
    }
    for (size_t d = 0; d < t->dim; d++) {
        double exact = 0, out = 0;
        for (size_t j = 0; j < n; j++) {
            exact += p[j] * (double)dp_tensors_v(t, b, h, j)[d];
            out += stored[j] * (double)dp_tensors_v(t, b, h, j)[d];
        }
        sum->dot += exact * out;
        sum->exact2 += exact * exact;
        sum->out2 += out * out;
        sum->difference2 += (exact - out) * (exact - out);
    }
    free(p);
    free(stored);
}

static dp_tensors make(size_t batch, size_t q_heads, size_t kv_heads, size_t q_len, size_t kv_len,
                       size_t dim, bool causal)
{
    dp_rng rng = {20261129};
    dp_tensors t = {.batch = batch,
                    .q_heads = q_heads,
                    .kv_heads = kv_heads,
                    .q_len = q_len,
                    .kv_len = kv_len,
                    .dim = dim,
                    .softmax_scale = 1.0 / sqrt((double)dim),
                    .causal = causal,
                    .layer = -1};
    const size_t nq = batch * q_heads * q_len * dim, nk = batch * kv_heads * kv_len * dim;
    t.q = malloc(nq * sizeof *t.q);
    t.k = malloc(nk * sizeof *t.k);
    t.v = malloc(nk * sizeof *t.v);
    t.kv_of_q = malloc(q_heads * sizeof *t.kv_of_q);
    ck_assert(t.q && t.k && t.v && t.kv_of_q);
    for (size_t i = 0; i < nq; i++) {
        t.q[i] = (float)(3.0 * dp_rng_normal(&rng));
    }
    for (size_t i = 0; i < nk; i++) {
        t.k[i] = (float)(2.0 * dp_rng_normal(&rng));
        t.v[i] = (float)dp_rng_normal(&rng);
    }
    for (size_t h = 0; h < q_heads; h++) {
        t.kv_of_q[h] = (h * 7 + 1) % kv_heads; /* case 90: neither repeat nor tile */
    }
    return t;
}

static void close_to(double got, double want)
{
    ck_assert_msg(fabs(got - want) <= 1e-12 * fabs(want) + 1e-15, "%.17g, want %.17g", got, want);
}

/* Cases 82, 87, 90: causal rows of one key, lengths that fill no block, grouped heads, batches. */
START_TEST(driver_equals_restatement)
{
    static const struct {
        size_t batch, q_heads, kv_heads, q_len, kv_len, dim, block;
        bool causal;
    } shapes[] = {{1, 2, 1, 45, 45, 24, 16, true},
                  {2, 3, 3, 5, 131, 8, 32, false},
                  {1, 4, 2, 67, 67, 32, 64, true},
                  {1, 1, 1, 1, 1, 1, 8, false},
                  {2, 4, 2, 9, 64, 16, 8, false}};
    dp_range_format formats[DP_RANGE_FORMATS];
    size_t count;
    dp_error error = {""};
    ck_assert(dp_range_formats_parse("all", formats, &count, &error));
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        dp_tensors t = make(shapes[s].batch, shapes[s].q_heads, shapes[s].kv_heads, shapes[s].q_len,
                            shapes[s].kv_len, shapes[s].dim, shapes[s].causal);
        const dp_range_options options = {.block = shapes[s].block, .threads = 2, .title = "test"};
        dp_range_result results[DP_RANGE_FORMATS];
        ck_assert_msg(dp_range_run(&t, formats, count, &options, results, &error), "%s",
                      error.text);
        for (size_t f = 0; f < count; f++) {
            totals sum = {0};
            dp_range_counts counts = {0};
            for (size_t row = 0; row < t.batch * t.q_heads * t.q_len; row++) {
                plain_row(&t, &formats[f], shapes[s].block, row / t.q_len / t.q_heads,
                          row / t.q_len % t.q_heads, row % t.q_len, &sum, &counts);
            }
            ck_assert_mem_eq(&counts, &results[f].counts, sizeof counts);
            close_to(results[f].lost_mass, sum.lost / sum.mass);
            close_to(results[f].p_rel_l2, sqrt(sum.error2 / sum.p2));
            close_to(results[f].pv_cosine, sum.dot / sqrt(sum.out2 * sum.exact2));
            close_to(results[f].pv_rel_l2, sqrt(sum.difference2 / sum.exact2));
        }
        dp_tensors_free(&t);
    }
}
END_TEST

START_TEST(threads_change_no_bit)
{
    dp_tensors t = make(1, 3, 1, 50, 50, 16, true);
    const dp_range_format format = format_of("nvfp4-g448");
    dp_error error = {""};
    dp_range_result first[3], other[3];
    for (int threads = 1; threads <= 7; threads += 2) {
        for (int device = 0; device < 2; device++) {
            const dp_range_options options = {.arithmetic =
                                                  device ? DP_RANGE_DEVICE : DP_RANGE_EXACT,
                                              .block = 32,
                                              .per_head = true,
                                              .threads = threads,
                                              .title = "test"};
            dp_range_options alone = options;
            alone.threads = 1;
            memset(first, 0, sizeof first);
            memset(other, 0, sizeof other);
            ck_assert(dp_range_run(&t, &format, 1, &alone, first, &error));
            ck_assert(dp_range_run(&t, &format, 1, &options, other, &error));
            ck_assert_mem_eq(first, other, sizeof first);
        }
    }
    dp_tensors_free(&t);
}
END_TEST

START_TEST(bad_input_is_refused)
{
    dp_tensors t = make(1, 1, 1, 4, 8, 8, false);
    const dp_range_format format = format_of("mxfp4");
    const dp_range_options options = {.block = 32, .threads = 1, .title = "test"};
    dp_range_options odd = options;
    dp_range_result result;
    dp_error error = {""};
    t.k[5] = NAN;
    ck_assert(!dp_range_run(&t, &format, 1, &options, &result, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "/inputs/k: 1 of 64"));
    t.k[5] = 0.0f;
    t.causal = true;
    error.text[0] = '\0';
    ck_assert(!dp_range_run(&t, &format, 1, &options, &result, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "causal"));
    t.causal = false;
    odd.block = 24;
    error.text[0] = '\0';
    ck_assert(!dp_range_run(&t, &format, 1, &odd, &result, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "--block"));
    dp_tensors_free(&t);
    static const char *const lists[] = {"",           "nvfp4-g", "nvfp4-g0",      "mxfp4-g2",
                                        "nvfp4-g1x",  "fp4",     "mxfp4,,mxfp4",  "mxfp4,mxfp4",
                                        "nvfp4-gnan", "e4m3-1",  "nvfp4,nvfp4-g1"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        dp_range_format formats[DP_RANGE_FORMATS];
        size_t count;
        error.text[0] = '\0';
        ck_assert_msg(!dp_range_formats_parse(lists[i], formats, &count, &error), "%s", lists[i]);
        ck_assert(error.text[0] != '\0');
    }
}
END_TEST

/* ---- The published table ---- */

static void compare_row(const dp_range_result *r, const char *const want[6], dp_tally *tally)
{
    const double got[6] = {r->zero_scale, r->zero_payload, r->lost_mass,
                           r->p_rel_l2,   r->pv_cosine,    r->pv_rel_l2};
    for (int i = 0; i < 6; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%.6f", got[i]);
        if (!dp_tally_check(tally, strcmp(text, want[i]) == 0)) {
            dp_tally_note(tally, "column %d: %s, published %s", i, text, want[i]);
        }
    }
}

/* Every figure of data/published/range.csv, to the last printed digit. */
START_TEST(published_table)
{
    char path[512], line[256];
    FILE *file = fopen(dp_source_path(path, sizeof path, "data/published/range.csv"), "r");
    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    dp_tally tally = {0};
    dp_error error = {""};
    dp_tensors tensors = {0};
    while (fgets(line, sizeof line, file) != NULL) {
        char *cells[8], *rest = line;
        for (int i = 0; i < 8; i++) {
            cells[i] = rest;
            rest += strcspn(rest, ",\n");
            *rest++ = '\0';
        }
        const size_t seq = strtoul(cells[0], NULL, 10);
        if (tensors.kv_len != seq) {
            dp_tensors_free(&tensors);
            ck_assert(dp_range_random(20260814 + seq, 152, seq, 4, 64, 128, 0, &tensors, &error));
        }
        const dp_range_format format = format_of(cells[1]);
        const dp_range_options options = {
            .arithmetic = DP_RANGE_DEVICE, .block = 32, .title = "test"};
        dp_range_result result;
        ck_assert_msg(dp_range_run(&tensors, &format, 1, &options, &result, &error), "%s",
                      error.text);
        compare_row(&result, (const char *const *)cells + 2, &tally);
        if (seq == 8192 && strcmp(cells[1], "nvfp4-g1") == 0) {
            ck_assert_uint_eq(result.lost_rows, 237);
        }
    }
    dp_tensors_free(&tensors);
    (void)fclose(file);
    dp_assert_tally(tally, 36);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *tests = tcase_create("range");
    tcase_add_test(tests, block_maximum_by_gain);
    tcase_add_test(tests, case_59_no_floor_under_the_scale);
    tcase_add_test(tests, case_52_a_gain_beyond_2688_saturates);
    tcase_add_test(tests, ties_of_the_payload);
    tcase_add_test(tests, case_44_kernel_amplitude_clips);
    tcase_add_test(tests, case_47_exact_powers_of_two);
    tcase_add_test(tests, best_power_tie_takes_the_larger_step);
    tcase_add_test(tests, case_107_underflow_is_decoded_zero_of_nonzero_source);
    tcase_add_test(tests, driver_equals_restatement);
    tcase_add_test(tests, threads_change_no_bit);
    tcase_add_test(tests, bad_input_is_refused);
    tcase_add_test(tests, published_table);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
