/* SPDX-License-Identifier: MIT
 *
 * Tensors: any axis, any strides, ragged tails, threads; and what no quantizer may do, whatever the
 * data: leave the format, depend on the caller's floating-point environment, change what it
 * already quantized.
 */
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "formats/catalog.h"
#include "formats/fold64.h"
#include "formats/preset.h"
#include "nasty_blocks.h"
#include "support.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static const dp_global no_global = {DP_GLOBAL_NONE, 1.0f};

static dp_block_plan plan_of(const char *name)
{
    dp_preset found;
    dp_error error = {{0}};
    dp_block_plan plan;
    ck_assert_msg(dp_preset_find(name, &found, &error), "%s", error.text);
    ck_assert_msg(dp_block_plan_make(&found.recipe, no_global, &plan, &error), "%s", error.text);
    return plan;
}

typedef struct {
    dp_block_shape shape;
    uint8_t *payload, *scale;
    dp_block_stats stats;
} quantized;

static quantized quantize(const dp_block_plan *plan, const float *x, const dp_tensor *tensor,
                          size_t axis, int threads)
{
    quantized q;
    dp_error error = {{0}};
    ck_assert_msg(dp_block_shape_of(plan, tensor, axis, &q.shape, &error), "%s", error.text);
    q.payload = malloc(q.shape.payload_bytes);
    q.scale = malloc(q.shape.scale_bytes);
    ck_assert(q.payload && q.scale);
    memset(q.payload, 0xEE, q.shape.payload_bytes);
    ck_assert_msg(
        dp_block_quantize(plan, x, tensor, axis, threads, q.payload, q.scale, &q.stats, &error),
        "%s", error.text);
    return q;
}

static void release(quantized q)
{
    free(q.payload);
    free(q.scale);
}

static float *draw(uint64_t seed, size_t n)
{
    dp_rng rng = {seed};
    float *x = malloc((n + 15) / 16 * 16 * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < n; i += 16) {
        dp_nasty_block(&rng, (dp_nasty)dp_rng_below(&rng, DP_NASTY_NEGATIVE + 1), x + i, 16);
    }
    return x;
}

/* V runs along keys: quantizing axis 0 of [key][d] equals quantizing the transposed copy along its
 * last axis. */
START_TEST(any_axis_equals_the_transposed_copy)
{
    static const char *const names[] = {"DIRECTP-V:mxfp4", "PTX:nvfp4", "OCP:mxfp8-e5m2",
                                        "GGML:mxfp4"};
    enum { A = 5, B = 37, C = 6 };
    float *x = draw(1, A * B * C);
    float *moved = malloc(A * B * C * sizeof *moved);
    ck_assert_ptr_nonnull(moved);
    const size_t shape[3] = {A, B, C};
    const dp_tensor tensor = dp_tensor_contiguous(3, shape);
    for (size_t p = 0; p < 4; p++) {
        const dp_block_plan plan = plan_of(names[p]);
        for (size_t axis = 0; axis < 3; axis++) {
            const size_t n = shape[axis];
            size_t row = 0;
            for (size_t a = 0; a < (axis == 0 ? 1 : A); a++) {
                for (size_t b = 0; b < (axis == 1 ? 1 : B); b++) {
                    for (size_t c = 0; c < (axis == 2 ? 1 : C); c++) {
                        for (size_t i = 0; i < n; i++) {
                            const size_t at[3] = {axis == 0 ? i : a, axis == 1 ? i : b,
                                                  axis == 2 ? i : c};
                            moved[row * n + i] = x[(at[0] * B + at[1]) * C + at[2]];
                        }
                        row++;
                    }
                }
            }
            const size_t flat[2] = {row, n};
            const dp_tensor copy = dp_tensor_contiguous(2, flat);
            const quantized q = quantize(&plan, x, &tensor, axis, 3);
            const quantized m = quantize(&plan, moved, &copy, 1, 1);
            ck_assert_uint_eq(q.shape.runs, row);
            ck_assert_uint_eq(q.shape.payload_bytes, m.shape.payload_bytes);
            ck_assert_mem_eq(q.payload, m.payload, q.shape.payload_bytes);
            ck_assert_mem_eq(q.scale, m.scale, q.shape.scale_bytes);
            ck_assert_mem_eq(&q.stats, &m.stats, sizeof q.stats);
            ck_assert_uint_eq(q.stats.padded, q.shape.padded * row);
            ck_assert_uint_eq(q.stats.elements, A * B * C);
            /* back into the strided tensor: element by element the same value */
            float *back = malloc(A * B * C * sizeof *back);
            float *back_flat = malloc(A * B * C * sizeof *back_flat);
            double *wide = malloc(A * B * C * sizeof *wide);
            ck_assert(back && back_flat && wide);
            ck_assert(dp_block_dequantize(&plan, q.payload, q.scale, &tensor, axis, 2, back, NULL));
            ck_assert(
                dp_block_dequantize_f64(&plan, q.payload, q.scale, &tensor, axis, 2, wide, NULL));
            ck_assert(dp_block_dequantize(&plan, m.payload, m.scale, &copy, 1, 1, back_flat, NULL));
            const size_t step = axis == 0 ? B * C : axis == 1 ? C : 1;
            for (size_t i = 0; i < A * B * C; i++) {
                const size_t inside = i / step % n;
                const size_t run = i / (step * n) * step + i % step;
                ck_assert_uint_eq(dp_f32_bits(back[i]), dp_f32_bits(back_flat[run * n + inside]));
                ck_assert_uint_eq(dp_f32_bits(back[i]), dp_f32_bits((float)wide[i]));
            }
            free(back);
            free(back_flat);
            free(wide);
            release(q);
            release(m);
        }
    }
    free(x);
    free(moved);
}
END_TEST

START_TEST(strides_may_be_negative_or_zero)
{
    const dp_block_plan plan = plan_of("PTX:nvfp4");
    float *x = draw(2, 64);
    float reversed[64];
    for (size_t i = 0; i < 64; i++) {
        reversed[i] = x[63 - i];
    }
    const dp_tensor backwards = {1, {64}, {-1}};
    const size_t shape[1] = {64};
    const dp_tensor forwards = dp_tensor_contiguous(1, shape);
    const quantized a = quantize(&plan, x + 63, &backwards, 0, 1);
    const quantized b = quantize(&plan, reversed, &forwards, 0, 1);
    ck_assert_mem_eq(a.payload, b.payload, a.shape.payload_bytes);
    ck_assert_mem_eq(a.scale, b.scale, a.shape.scale_bytes);
    const dp_tensor constant = {2, {3, 20}, {0, 0}};
    const quantized c = quantize(&plan, x, &constant, 1, 1);
    ck_assert_mem_eq(c.payload, c.payload + c.shape.run_payload_bytes, c.shape.run_payload_bytes);
    release(a);
    release(b);
    release(c);
    free(x);
}
END_TEST

START_TEST(threads_change_nothing)
{
    float *x = draw(3, 61 * 333);
    const size_t shape[2] = {61, 333};
    const dp_tensor tensor = dp_tensor_contiguous(2, shape);
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        dp_block_plan plan;
        ck_assert(dp_block_plan_make(&row.recipe, no_global, &plan, NULL));
        const quantized one = quantize(&plan, x, &tensor, 1, 1);
        const quantized many = quantize(&plan, x, &tensor, 1, 7);
        ck_assert_mem_eq(one.payload, many.payload, one.shape.payload_bytes);
        ck_assert_mem_eq(one.scale, many.scale, one.shape.scale_bytes);
        ck_assert_mem_eq(&one.stats, &many.stats, sizeof one.stats);
        release(one);
        release(many);
    }
    free(x);
}
END_TEST

/* Every code under every scale byte and kind of global scale, from the tables of the catalogue
 * [B10]. The byte of DIRECTP-V is an amplitude: code 7 decodes to it. */
START_TEST(decoding_follows_its_formula)
{
    dp_tally tally = {0};
    dp_minifloat e4m3;
    ck_assert(dp_catalog_find("ue4m3", &e4m3));
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        const dp_block_recipe *r = &row.recipe;
        const bool amplitude = strcmp(row.preset, "DIRECTP-V") == 0;
        for (int kind = 0; kind < (r->scale == DP_SCALE_E8M0 ? 1 : 3); kind++) {
            const dp_global global = {(dp_global_kind)kind, kind == 0 ? 1.0f : 3.7f};
            dp_block_plan plan;
            ck_assert(dp_block_plan_make(r, global, &plan, NULL));
            for (unsigned byte = 0; byte < (r->scale == DP_SCALE_E8M0 ? 255u : 127u); byte++) {
                const uint8_t scale = (uint8_t)byte;
                const double s = r->scale == DP_SCALE_E8M0 ? ldexp(1.0, (int)byte - 127)
                                                           : dp_minifloat_value(byte, e4m3);
                for (uint32_t code = 0; code <= dp_minifloat_max_code(r->element); code++) {
                    double want = dp_minifloat_value(code, r->element) * s;
                    want = amplitude               ? want / 6.0
                           : kind == DP_GLOBAL_MUL ? want * (double)3.7f
                           : kind == DP_GLOBAL_DIV ? want / (double)3.7f
                                                   : want;
                    const double got = dp_block_value(&plan, code, &scale);
                    const float narrow = dp_block_value_f32(&plan, code, &scale);
                    if (!dp_tally_check(&tally, got == want && dp_f32_bits(narrow) ==
                                                                   dp_f32_bits((float)want))) {
                        dp_tally_note(&tally, "%s:%s scale %02x code %02x: %a not %a", row.preset,
                                      row.format, byte, code, got, want);
                    }
                }
            }
        }
    }
    dp_assert_tally(tally, 100000);
    const dp_block_plan v = plan_of("DIRECTP-V:mxfp4");
    const uint8_t one = 0x7F;
    ck_assert_double_eq(dp_block_value(&v, 7, &one), 1.0);
}
END_TEST

/* The caller's rounding mode and FTZ/DAZ do not reach the bytes [B1]. */
START_TEST(environment_changes_nothing)
{
    enum { ROWS = 64, COLS = 128 };
    float *x = draw(4, ROWS * COLS);
    for (size_t i = 0; i < COLS; i++) {
        x[i] = ldexpf(x[i], -140); /* a row of subnormals */
    }
    const size_t shape[2] = {ROWS, COLS};
    const dp_tensor tensor = dp_tensor_contiguous(2, shape);
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        dp_block_plan plan;
        ck_assert(dp_block_plan_make(&row.recipe, no_global, &plan, NULL));
        const quantized want = quantize(&plan, x, &tensor, 1, 1);
        float *value = malloc(ROWS * COLS * sizeof *value);
        float *again = malloc(ROWS * COLS * sizeof *again);
        ck_assert(value && again);
        ck_assert(dp_block_dequantize(&plan, want.payload, want.scale, &tensor, 1, 1, value, NULL));
        for (int m = 0; m < 3; m++) {
            ck_assert_int_eq(fesetround(modes[m]), 0);
#if defined(__x86_64__)
            _mm_setcsr(_mm_getcsr() | 0x8040u); /* FTZ and DAZ */
#endif
            dp_block_plan made_here;
            const bool ok = dp_block_plan_make(&row.recipe, no_global, &made_here, NULL);
            const quantized got = quantize(&made_here, x, &tensor, 1, 2);
            const bool back =
                dp_block_dequantize(&plan, got.payload, got.scale, &tensor, 1, 1, again, NULL);
            const int kept = fegetround();
            ck_assert_int_eq(fesetenv(FE_DFL_ENV), 0);
            ck_assert(ok && back);
            ck_assert_int_eq(kept, modes[m]);
            ck_assert_mem_eq(want.payload, got.payload, want.shape.payload_bytes);
            ck_assert_mem_eq(want.scale, got.scale, want.shape.scale_bytes);
            ck_assert_mem_eq(value, again, ROWS * COLS * sizeof *value);
            release(got);
        }
        free(value);
        free(again);
        release(want);
    }
    /* and the folded quantizer */
    uint8_t payload[2][ROWS * DP_FOLD64_PAYLOAD];
    uint8_t scale[2][ROWS * DP_FOLD64_SCALES];
    dp_fold64_rows(x, ROWS, COLS, 1.0f, DP_SUM_TREE, 1, payload[0], scale[0]);
    ck_assert_int_eq(fesetround(FE_UPWARD), 0);
    dp_fold64_rows(x, ROWS, COLS, 1.0f, DP_SUM_TREE, 2, payload[1], scale[1]);
    ck_assert_int_eq(fesetenv(FE_DFL_ENV), 0);
    ck_assert_mem_eq(payload[0], payload[1], sizeof payload[0]);
    ck_assert_mem_eq(scale[0], scale[1], sizeof scale[0]);
    free(x);
}
END_TEST

/* Finite blocks: codes stay inside the format, decoded values inside max * scale, padding and
 * unused nibbles 0. */
START_TEST(quantizers_stay_inside_the_format)
{
    dp_rng rng = {5};
    dp_tally tally = {0};
    for (size_t p = 0; p < dp_preset_count(); p++) {
        const dp_preset row = dp_preset_at(p);
        if (row.recipe.payload.overflow == DP_OVERFLOW_SPECIAL) {
            continue; /* overflow to NaN is what such a recipe asks for */
        }
        dp_block_plan plan;
        ck_assert(dp_block_plan_make(&row.recipe, no_global, &plan, NULL));
        const uint32_t max_code = dp_minifloat_max_code(row.recipe.element);
        const uint32_t mask = dp_minifloat_magnitude_mask(row.recipe.element);
        for (int round = 0; round < 400; round++) {
            float x[64];
            uint8_t codes[64];
            uint8_t scale[4] = {0};
            size_t bad = 0;
            const size_t n = 1 + dp_rng_below(&rng, (uint32_t)row.recipe.block);
            dp_nasty_block(&rng, (dp_nasty)dp_rng_below(&rng, DP_NASTY_TINY), x, n);
            memset(codes, 0xEE, sizeof codes);
            ck_assert(dp_block_quantize_one(&plan, x, n, codes, scale, NULL, &bad));
            const float s = dp_block_scale_value(row.recipe.scale, scale);
            for (size_t i = 0; i < row.recipe.block; i++) {
                const double v = dp_block_value(&plan, codes[i], scale);
                const bool nan_scale = isnan(s);
                const bool ok = i >= n ? codes[i] == 0
                                       : codes[i] <= (mask << 1 | 1u) &&
                                             (codes[i] & mask) <= max_code &&
                                             (nan_scale || fabs(v) <= (double)plan.max * (double)s);
                if (!dp_tally_check(&tally, ok)) {
                    dp_tally_note(&tally, "%s:%s element %zu of %zu = %.9g: code %02x scale %02x",
                                  row.preset, row.format, i, n, (double)x[i], codes[i], scale[0]);
                }
            }
        }
    }
    dp_assert_tally(tally, 100000);
}
END_TEST

/* quantize(dequantize(q)) == q: by byte for floor, by value for rceil, whose largest code may leave
 * room for a smaller scale. */
START_TEST(requantising_changes_no_value)
{
    static const char *const names[] = {"OCP:mxfp4",         "OCP:mxfp8-e4m3", "OCP:mxfp8-e5m2",
                                        "PTX:mxfp4",         "PTX:mxfp8-e4m3", "PTX:mxfp8-e5m2",
                                        "TORCHAO-CEIL:mxfp4"};
    dp_rng rng = {6};
    dp_tally tally = {0};
    for (size_t p = 0; p < sizeof names / sizeof names[0]; p++) {
        const dp_block_plan plan = plan_of(names[p]);
        for (int round = 0; round < 3000; round++) {
            float x[32];
            float once[32];
            uint8_t codes[32];
            uint8_t again[32];
            uint8_t scale = 0;
            uint8_t scale_again = 0;
            size_t bad = 0;
            dp_nasty_block(&rng, (dp_nasty)dp_rng_below(&rng, DP_NASTY_UNDERFLOW), x, 32);
            ck_assert(dp_block_quantize_one(&plan, x, 32, codes, &scale, NULL, &bad));
            if (scale < 30 || scale > 220) {
                continue; /* values would leave the f32 grid */
            }
            for (size_t i = 0; i < 32; i++) {
                once[i] = dp_block_value_f32(&plan, codes[i], &scale);
            }
            ck_assert(dp_block_quantize_one(&plan, once, 32, again, &scale_again, NULL, &bad));
            /* Under floor the largest scaled magnitude stays in the top binade: bytes come back. */
            if (p < 3 && !dp_tally_check(&tally, scale == scale_again &&
                                                     memcmp(codes, again, sizeof codes) == 0)) {
                dp_tally_note(&tally, "%s: scale %02x then %02x", names[p], scale, scale_again);
            }
            for (size_t i = 0; i < 32; i++) {
                const float twice = dp_block_value_f32(&plan, again[i], &scale_again);
                if (!dp_tally_check(&tally, dp_f32_bits(twice) == dp_f32_bits(once[i]))) {
                    dp_tally_note(&tally, "%s element %zu: %.9g then %.9g (scale %02x, %02x)",
                                  names[p], i, (double)once[i], (double)twice, scale, scale_again);
                }
            }
        }
    }
    dp_assert_tally(tally, 7 * 32 * 1000);
}
END_TEST

START_TEST(statistics_add_up)
{
    const dp_block_plan plan = plan_of("PTX:nvfp4");
    float *x = draw(7, 40 * 50);
    x[3] = NAN;
    x[777] = INFINITY;
    const size_t shape[2] = {40, 50};
    const dp_tensor tensor = dp_tensor_contiguous(2, shape);
    const quantized q = quantize(&plan, x, &tensor, 1, 4);
    uint64_t flushed = 0;
    uint64_t zero_scales = 0;
    uint64_t nan_scales = 0;
    for (size_t row = 0; row < 40; row++) {
        for (size_t b = 0; b < 4; b++) {
            const float s = dp_block_scale_value(DP_SCALE_E4M3, q.scale + row * 4 + b);
            zero_scales += s == 0.0f ? 1u : 0u;
            nan_scales += isnan(s) ? 1u : 0u;
        }
        for (size_t i = 0; i < 50; i++) {
            const float v = dp_block_value_f32(
                &plan, dp_block_get_code(&plan, q.payload + row * q.shape.run_payload_bytes, i),
                q.scale + row * 4 + i / 16);
            flushed += x[row * 50 + i] != 0.0f && v == 0.0f ? 1u : 0u;
        }
    }
    ck_assert_uint_eq(q.stats.nan, 1);
    ck_assert_uint_eq(q.stats.inf, 1);
    ck_assert_uint_eq(q.stats.blocks, 160);
    ck_assert_uint_eq(q.stats.elements, 2000);
    ck_assert_uint_eq(q.stats.padded, 40 * 14);
    ck_assert_uint_eq(q.stats.flushed, flushed);
    ck_assert_uint_eq(q.stats.zero_scales, zero_scales);
    ck_assert_uint_eq(q.stats.nan_scales, nan_scales);
    ck_assert_uint_gt(flushed, 0);
    dp_block_stats sum = q.stats;
    dp_block_stats_add(&sum, &q.stats);
    const uint64_t *one = (const uint64_t *)(const void *)&q.stats;
    const uint64_t *two = (const uint64_t *)(const void *)&sum;
    for (size_t i = 0; i < sizeof sum / sizeof *two; i++) {
        ck_assert_uint_eq(two[i], 2 * one[i]);
    }
    release(q);
    free(x);
}
END_TEST

START_TEST(bad_recipes_and_shapes_are_refused)
{
    const dp_block_recipe good = plan_of("PTX:nvfp4").recipe;
    dp_block_recipe bad[10];
    for (int i = 0; i < 10; i++) {
        bad[i] = good;
    }
    bad[0].block = 0;
    bad[1].block = DP_BLOCK_MAX + 1;
    bad[2].payload.round = DP_RZ;
    bad[3].rule = DP_RULE_FLOOR;
    bad[4].scale = DP_SCALE_E8M0;
    bad[5].quotient = DP_QUOTIENT_AMPLITUDE;
    bad[6].decode = DP_DECODE_AMPLITUDE;
    bad[7].block = 15;
    bad[7].packing = DP_PACK_HALVES;
    bad[8].scale_min = NAN;
    bad[9].element.exponent_bits = 8;
    dp_block_plan plan;
    for (int i = 0; i < 10; i++) {
        dp_error error = {{0}};
        ck_assert_msg(!dp_block_plan_make(&bad[i], no_global, &plan, &error), "recipe %d", i);
        ck_assert_msg(strncmp(error.text, "recipe: ", 8) == 0, "%s", error.text);
    }
    const dp_block_recipe ocp = plan_of("OCP:mxfp4").recipe;
    const dp_global two = {DP_GLOBAL_MUL, 2.0f};
    ck_assert(!dp_block_plan_make(&ocp, two, &plan, NULL));
    ck_assert(dp_block_plan_make(&good, no_global, &plan, NULL));
    dp_block_shape shape;
    const dp_tensor tensors[5] = {{0, {1}, {1}},
                                  {9, {1}, {1}},
                                  {2, {3, 0}, {1, 1}},
                                  {2, {SIZE_MAX / 2, 4}, {1, 1}},
                                  {2, {SIZE_MAX / 80, 1}, {1, 1}}};
    for (int i = 0; i < 5; i++) {
        dp_error error = {{0}};
        ck_assert_msg(!dp_block_shape_of(&plan, &tensors[i], 1, &shape, &error), "tensor %d", i);
        ck_assert_msg(strncmp(error.text, "tensor: ", 8) == 0, "%s", error.text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block_tensor");
    TCase *tests = tcase_create("block_tensor");
    tcase_add_test(tests, any_axis_equals_the_transposed_copy);
    tcase_add_test(tests, strides_may_be_negative_or_zero);
    tcase_add_test(tests, threads_change_nothing);
    tcase_add_test(tests, decoding_follows_its_formula);
    tcase_add_test(tests, environment_changes_nothing);
    tcase_add_test(tests, quantizers_stay_inside_the_format);
    tcase_add_test(tests, requantising_changes_no_value);
    tcase_add_test(tests, statistics_add_up);
    tcase_add_test(tests, bad_recipes_and_shapes_are_refused);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
