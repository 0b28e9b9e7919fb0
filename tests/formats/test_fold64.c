/* SPDX-License-Identifier: MIT
 *
 * Folded Q/K scales [B14]-[B16] against a derivation in double with values looked up, and by hand.
 */
#include <math.h>
#include <stdlib.h>

#include "formats/catalog.h"
#include "formats/fold64.h"
#include "nasty_blocks.h"
#include "support.h"

static const double factors[11] = {0.25, 0.3125, 0.375, 0.4375, 0.5, 0.625,
                                   0.75, 0.875,  1,     1.125,  1.25};
static const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
static const double middles[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};

static double r32(double v)
{
    return (double)(float)v;
}

/* E4M3 of a non-negative value by search; NaN (0x7F) beyond 464. */
static uint8_t e4m3(double v)
{
    dp_minifloat f;
    (void)dp_catalog_find("ue4m3", &f);
    if (isnan(v) || v > 464.0) {
        return 0x7F;
    }
    uint8_t best = 0;
    for (uint8_t c = 1; c < 0x7F; c++) {
        const double middle = (dp_minifloat_value(c - 1u, f) + dp_minifloat_value(c, f)) / 2.0;
        if (v > middle || (v == middle && c % 2 == 0)) {
            best = c;
        }
    }
    return best;
}

static int index_of(double magnitude)
{
    int index = 0;
    while (index < 7 && magnitude > middles[index]) {
        index++;
    }
    return index;
}

typedef struct {
    uint8_t codes[128], scale[8], winner[4];
} folded;

static folded by_search(const float *x, double g, dp_sum_order order)
{
    folded out;
    dp_minifloat f;
    (void)dp_catalog_find("ue4m3", &f);
    for (size_t b = 0; b < 4; b++) {
        double amax = 0.0;
        for (size_t i = 0; i < 32; i++) {
            const double m = fabs((double)x[(i / 16 * 4 + b) * 16 + i % 16]);
            amax = m > amax || isnan(m) ? m : amax;
        }
        const double base = r32(amax * r32(g / 6.0));
        uint8_t best = e4m3(base);
        double best_error = INFINITY;
        out.winner[b] = 255;
        for (uint8_t c = 0; c < 11; c++) {
            const uint8_t byte = e4m3(r32(base * factors[c]));
            const double s = dp_minifloat_value(byte, f);
            double terms[32];
            for (size_t i = 0; i < 32; i++) {
                const double e = (double)x[(i / 16 * 4 + b) * 16 + i % 16];
                const double v = s > 0.0 ? r32(r32(e * g) / s) : 0.0;
                const double grid = copysign(values[index_of(fabs(v))], v);
                const double difference = r32(r32(r32(grid * s) / g) - e);
                terms[i] = r32(difference * difference);
            }
            double error = 0.0;
            if (order == DP_SUM_SEQUENTIAL) {
                for (size_t i = 0; i < 32; i++) {
                    error = i == 0 ? terms[0] : r32(error + terms[i]);
                }
            } else {
                for (size_t width = 1; width < 32; width *= 2) {
                    for (size_t i = 0; i < 32; i += 2 * width) {
                        terms[i] = r32(terms[i] + terms[i + width]);
                    }
                }
                error = terms[0];
            }
            if (error < best_error) {
                best_error = error;
                best = byte;
                out.winner[b] = c;
            }
        }
        out.scale[b] = best;
        out.scale[b + 4] = best;
        const double s = dp_minifloat_value(best, f);
        for (size_t i = 0; i < 32; i++) {
            const size_t at = (i / 16 * 4 + b) * 16 + i % 16;
            const double v = s > 0.0 ? r32(r32((double)x[at] * g) / s) : 0.0;
            out.codes[at] = (uint8_t)(index_of(fabs(v)) | (v < 0.0 ? 8 : 0));
        }
    }
    return out;
}

START_TEST(rows_equal_the_search_in_double)
{
    static const float gs[4] = {1.0f, 448.0f, 3.0f, 0x1p-6f};
    dp_rng rng = {64};
    dp_tally tally = {0};
    for (int round = 0; round < 6000; round++) {
        float x[128];
        for (size_t b = 0; b < 8; b++) {
            const uint32_t kind = dp_rng_below(&rng, round % 8 == 0 ? DP_NASTY_KINDS : 2);
            dp_nasty_block(&rng, (dp_nasty)kind, x + 16 * b, 16);
        }
        const float g = round % 4 == 3 ? gs[dp_rng_below(&rng, 4)] : 1.0f;
        const dp_sum_order order = round % 2 == 0 ? DP_SUM_TREE : DP_SUM_SEQUENTIAL;
        const folded want = by_search(x, (double)g, order);
        uint8_t payload[64];
        uint8_t scale[8];
        dp_fold64_choice choice;
        dp_fold64_row(x, g, order, payload, scale, &choice);
        bool same = memcmp(scale, want.scale, 8) == 0 && memcmp(choice.winner, want.winner, 4) == 0;
        for (size_t i = 0; i < 128; i++) {
            same = same && ((payload[i / 2] >> (4 * (i % 2))) & 15) == want.codes[i];
        }
        if (!dp_tally_check(&tally, same)) {
            dp_tally_note(&tally,
                          "round %d g %g: scales %02x %02x %02x %02x not %02x %02x %02x %02x",
                          round, (double)g, scale[0], scale[1], scale[2], scale[3], want.scale[0],
                          want.scale[1], want.scale[2], want.scale[3]);
        }
    }
    dp_assert_tally(tally, 6000);
}
END_TEST

/* Block b and b + 4 share, b and b + 1 do not; strict thresholds; -0 loses its sign, a tiny
 * negative keeps it; the first of equal errors wins. */
START_TEST(by_hand)
{
    float x[128] = {0.0f};
    uint8_t payload[64];
    uint8_t scale[8];
    dp_fold64_choice choice;
    x[0] = 6.0f;
    x[1] = -0.75f; /* tie: down to 0.5, code 9; the hardware converter would say 10 */
    x[2] = -0.0f;
    x[3] = -0x1p-100f;
    x[64] = 3.0f;
    x[16] = 12.0f;
    dp_fold64_row(x, 1.0f, DP_SUM_TREE, payload, scale, &choice);
    ck_assert_uint_eq(scale[0], scale[4]);
    ck_assert_uint_eq(scale[1], scale[5]);
    ck_assert_uint_ne(scale[0], scale[1]);
    ck_assert_uint_eq(scale[0], 0x38);
    ck_assert_uint_eq(payload[0], 0x97);
    ck_assert_uint_eq(payload[1], 0x80);
    ck_assert_uint_eq(payload[32], 0x05);
    ck_assert_float_eq(choice.error[0], 0.0625f);
    /* base is 2: candidates below m = 1 saturate, scale 2 holds 12 exactly as code 7 */
    ck_assert_uint_eq(choice.winner[1], 8);
    ck_assert_float_eq(choice.error[1], 0.0f);
    /* blocks of zeros: scale 0, every candidate has error 0, the first wins */
    ck_assert_uint_eq(scale[2], 0);
    ck_assert_uint_eq(choice.winner[2], 0);
}
END_TEST

/* Beyond 464 * 6 the cast of base is NaN, but smaller candidates still fit. */
START_TEST(scales_that_do_not_fit)
{
    float x[128];
    uint8_t payload[64];
    uint8_t scale[8];
    dp_fold64_choice choice;
    for (int i = 0; i < 128; i++) {
        x[i] = 1e4f;
    }
    x[16] = 1e9f;
    x[32] = NAN;
    dp_fold64_row(x, 1.0f, DP_SUM_TREE, payload, scale, &choice);
    ck_assert_uint_ne(scale[0], 0x7F);
    ck_assert_uint_eq(payload[0], 0x77);
    ck_assert_uint_eq(scale[1], 0x7F); /* no candidate fits: the cast of base stays */
    ck_assert_uint_eq(choice.winner[1], 255);
    ck_assert_uint_eq(payload[8], 0x00);
    ck_assert_uint_eq(scale[2], 0x7F);
}
END_TEST

START_TEST(rows_and_threads)
{
    enum { ROWS = 203, STRIDE = 130 };
    float *x = malloc(ROWS * STRIDE * sizeof *x);
    uint8_t *payload = malloc(2 * ROWS * DP_FOLD64_PAYLOAD);
    uint8_t *scale = malloc(2 * ROWS * DP_FOLD64_SCALES);
    ck_assert(x && payload && scale);
    dp_rng rng = {9};
    for (size_t i = 0; i < ROWS * STRIDE; i++) {
        x[i] = (float)dp_rng_normal(&rng);
    }
    dp_fold64_rows(x, ROWS, STRIDE, 1.0f, DP_SUM_TREE, 5, payload, scale);
    for (size_t r = 0; r < ROWS; r++) {
        dp_fold64_row(x + r * STRIDE, 1.0f, DP_SUM_TREE, payload + (ROWS + r) * DP_FOLD64_PAYLOAD,
                      scale + (ROWS + r) * DP_FOLD64_SCALES, NULL);
    }
    ck_assert_mem_eq(payload, payload + ROWS * DP_FOLD64_PAYLOAD, ROWS * DP_FOLD64_PAYLOAD);
    ck_assert_mem_eq(scale, scale + ROWS * DP_FOLD64_SCALES, ROWS * DP_FOLD64_SCALES);
    free(x);
    free(payload);
    free(scale);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fold64");
    TCase *tests = tcase_create("fold64");
    tcase_add_test(tests, rows_equal_the_search_in_double);
    tcase_add_test(tests, by_hand);
    tcase_add_test(tests, scales_that_do_not_fit);
    tcase_add_test(tests, rows_and_threads);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
