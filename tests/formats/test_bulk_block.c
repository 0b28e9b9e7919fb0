/* SPDX-License-Identifier: MIT
 *
 * Bulk block quantizers and decoders against the scalar definition of block.h: recipes drawn from
 * every field, adversarial data, every path, shapes, axes, strides, threads and a hostile
 * floating-point environment [B1]-[B12].
 */
#include <fenv.h>
#include <math.h>

#include "bulk_support.h"
#include "formats/bulk_block.h"

enum { MOST = 1 << 15 };

static dp_block_recipe nvfp4_recipe(void)
{
    dp_block_recipe r = {.block = 16, .element = dp_e2m1_format(), .payload = DP_ENCODE_PTX};
    r.scale = DP_SCALE_E4M3;
    r.scale_encode = DP_ENCODE_PTX;
    r.rule = DP_RULE_AMAX;
    return r;
}

static dp_block_recipe mxfp4_recipe(dp_scale_rule rule)
{
    dp_block_recipe r = nvfp4_recipe();
    r.block = 32;
    r.scale = DP_SCALE_E8M0;
    r.rule = rule;
    if (rule == DP_RULE_AMPLITUDE) {
        r.quotient = DP_QUOTIENT_AMPLITUDE;
        r.decode = DP_DECODE_AMPLITUDE;
    }
    return r;
}

static float approximate_rcp(float x)
{
    return dp_f32_from_bits(dp_f32_bits(1.0f / x) & 0xFFFFFF00u);
}

/* Any recipe, most of them ones that kernels do. */
static dp_block_recipe any_recipe(dp_rng *rng)
{
    static const dp_scale_rule rules[] = {DP_RULE_FLOOR, DP_RULE_CEIL,        DP_RULE_RCEIL,
                                          DP_RULE_EVEN,  DP_RULE_FLOOR_RATIO, DP_RULE_ROUND,
                                          DP_RULE_FLOOR, DP_RULE_AMPLITUDE,   DP_RULE_BEST_L2};
    static const float floors[] = {0.0f, 0.0f, 0x1p-6f, 1e-20f};
    const bool mx = dp_rng_below(rng, 2) != 0;
    dp_block_recipe r = mx ? mxfp4_recipe(rules[dp_rng_below(rng, 9)]) : nvfp4_recipe();
    const dp_minifloat elements[] = {dp_e2m1_format(),
                                     dp_e2m1_format(),
                                     dp_e4m3_format(),
                                     dp_e5m2_format(),
                                     {"e2m3", 1, 2, 3, 1, DP_TOP_FINITE}};
    r.block = dp_rng_below(rng, 8) == 0 ? 48 : 16u << dp_rng_below(rng, 2);
    r.element = elements[dp_rng_below(rng, 5)];
    r.payload = bulk_policy((int)dp_rng_below(rng, BULK_POLICIES));
    r.scale_encode = bulk_policy((int)dp_rng_below(rng, BULK_POLICIES));
    r.scale = mx ? DP_SCALE_E8M0 : (dp_scale_format)dp_rng_below(rng, 2);
    r.ratio = (dp_ratio)dp_rng_below(rng, 6);
    if (r.rule != DP_RULE_AMPLITUDE) {
        r.quotient = (dp_quotient)dp_rng_below(rng, 6);
    }
    r.byte0 = (dp_byte0)dp_rng_below(rng, 5);
    r.scale_min = floors[dp_rng_below(rng, 4)];
    r.divisor_add = dp_rng_below(rng, 4) == 0 ? 1e-8f : 0.0f;
    r.divisor_min = floors[dp_rng_below(rng, 4)];
    r.amax_zero = dp_rng_below(rng, 3) == 0 ? 1e-38f : 0.0f;
    r.zero_amax = (dp_zero_amax)dp_rng_below(rng, 2);
    r.nan = (dp_block_nan)dp_rng_below(rng, 2);
    r.inf = (dp_block_inf)dp_rng_below(rng, 3);
    r.nan_scale_as_inf = dp_rng_below(rng, 3) == 0;
    r.ftz = dp_rng_below(rng, 10) == 0;
    r.quotient_via = dp_rng_below(rng, 10) == 0 ? DP_VIA_BF16 : DP_VIA_NONE;
    r.rcp = dp_rng_below(rng, 4) == 0 ? approximate_rcp : NULL;
    return r;
}

static dp_global any_global(dp_rng *rng)
{
    static const float values[] = {1.0f, 0.75f, 448.0f, 2688.0f, 1e-30f, 3e37f, 0x1p-140f};
    const dp_global global = {(dp_global_kind)dp_rng_below(rng, 3), values[dp_rng_below(rng, 7)]};
    return global;
}

/* One block drawn to hurt; blocks of 16, so that those of 32 mix two kinds. */
static void fill_block(dp_rng *rng, float *x)
{
    static const float thresholds[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f};
    const uint32_t kind = dp_rng_below(rng, 10);
    const float size = ldexpf(1.0f, (int)dp_rng_below(rng, 40) - 20);
    const float scale = dp_e4m3_to_f32((dp_e4m3){(uint8_t)(1u + dp_rng_below(rng, 0x7Eu))});
    const int extreme = dp_rng_below(rng, 2) != 0 ? -130 : 118;
    for (size_t i = 0; i < 16; i++) {
        const float normal = (float)dp_rng_normal(rng);
        const uint32_t ulps = dp_rng_below(rng, 3) - 1u;
        switch (kind) {
        case 0: /* zeros of both signs */
            x[i] = dp_rng_below(rng, 2) != 0 ? -0.0f : 0.0f;
            break;
        case 1:
            x[i] = dp_rng_nasty_f32(rng);
            break;
        case 2: /* a block whose maximum is one ulp around 6 * 2^k or 2^k */
            x[i] = i == 0
                       ? dp_f32_from_bits(
                             dp_f32_bits(size * (dp_rng_below(rng, 2) != 0 ? 6.0f : 1.0f)) + ulps)
                       : normal * size * 0.2f;
            break;
        case 3: /* elements at the thresholds of the scaled level, an ulp to either side */
        case 4:
            x[i] = dp_f32_from_bits(
                dp_f32_bits(scale * (i == 0 ? 6.0f : thresholds[dp_rng_below(rng, 8)])) + ulps);
            x[i] = dp_rng_below(rng, 2) != 0 ? -x[i] : x[i];
            break;
        case 5: /* one Inf or NaN */
            x[i] = i == 7 ? dp_f32_from_bits(dp_rng_below(rng, 2) != 0 ? 0xFF800000u : 0xFFC00001u)
                          : normal;
            break;
        case 6: /* underflowing scales, and overflowing ones */
            x[i] = ldexpf(normal, extreme + (int)dp_rng_below(rng, 9));
            break;
        default:
            x[i] = normal * size;
            break;
        }
    }
}

static float *hurtful(uint64_t seed, size_t n)
{
    dp_rng rng = {.state = seed};
    float *x = bulk_allocate(n * sizeof *x);
    for (size_t i = 0; i < n; i += 16) {
        fill_block(&rng, x + i);
    }
    return x;
}

static bool same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* The tensor under the plan by every path against block.h. */
static void compare(dp_tally *tally, const dp_block_plan *plan, const float *x,
                    const dp_tensor *tensor, size_t axis, const char *what)
{
    dp_block_shape shape;
    dp_error error = {""};
    ck_assert_msg(dp_block_shape_of(plan, tensor, axis, &shape, &error), "%s", error.text);
    uint8_t *want = bulk_allocate(shape.payload_bytes);
    uint8_t *want_scale = bulk_allocate(shape.scale_bytes);
    uint8_t *got = bulk_allocate(shape.payload_bytes);
    uint8_t *got_scale = bulk_allocate(shape.scale_bytes);
    const bool good = dp_block_quantize(plan, x, tensor, axis, 1, want, want_scale, NULL, &error);
    for (int p = 0; p < BULK_PATHS; p++) {
        const dp_bulk_options options = bulk_on(bulk_paths[p], 1 + (int)(tally->cases % 3));
        if (!bulk_has(bulk_paths[p])) {
            continue;
        }
        memset(got, 0xA5, shape.payload_bytes);
        memset(got_scale, 0xA5, shape.scale_bytes);
        const bool answer =
            dp_bulk_block_quantize_f32(plan, x, tensor, axis, &options, got, got_scale, &error);
        if (!dp_tally_check(tally,
                            answer == good &&
                                (!good || (same(got, want, shape.payload_bytes) &&
                                           same(got_scale, want_scale, shape.scale_bytes))))) {
            size_t i = 0;
            while (i < shape.scale_bytes && got_scale[i] == want_scale[i]) {
                i++;
            }
            dp_tally_note(tally, "%s %s: first scale that differs %zu of %zu",
                          dp_path_name(bulk_paths[p]), what, i, shape.scale_bytes);
        }
    }
    free(want);
    free(want_scale);
    free(got);
    free(got_scale);
}

START_TEST(any_recipe_equals_the_definition)
{
    enum { RECIPES = 1500, N = 96 * 50 };
    dp_tally tally = {0};
    dp_rng rng = {.state = 20261129};
    float *x = hurtful(5, N);
    const size_t extents[] = {N};
    const dp_tensor tensor = dp_tensor_contiguous(1, extents);
    int fast = 0;
    for (int i = 0; i < RECIPES; i++) {
        const dp_block_recipe recipe = any_recipe(&rng);
        const dp_global global = any_global(&rng);
        dp_block_plan plan;
        dp_error error = {""};
        char what[32];
        (void)snprintf(what, sizeof what, "recipe %d", i);
        if (dp_block_plan_make(&recipe, global, &plan, &error)) {
            fast += dp_bulk_block_is_fast(&plan) ? 1 : 0;
            compare(&tally, &plan, x, &tensor, 0, what);
        }
    }
    free(x);
    ck_assert_msg(fast > RECIPES / 8, "only %d recipes ran on kernels", fast);
    dp_assert_tally(tally, RECIPES / 2);
}
END_TEST

static void make(dp_block_plan *plan, dp_block_recipe recipe, dp_global_kind kind, float value)
{
    const dp_global global = {kind, value};
    dp_error error = {""};
    ck_assert_msg(dp_block_plan_make(&recipe, global, plan, &error), "%s", error.text);
}

enum { USUAL = 6 };
static dp_block_plan usual_plan(int index)
{
    dp_block_plan plan;
    dp_block_recipe nvfp4 = nvfp4_recipe();
    nvfp4.byte0 = DP_BYTE0_CODE_ZERO;
    switch (index) {
    case 0:
        make(&plan, nvfp4, DP_GLOBAL_NONE, 1.0f);
        break;
    case 1:
        make(&plan, nvfp4, DP_GLOBAL_DIV, 336.7f);
        break;
    case 2:
        make(&plan, nvfp4, DP_GLOBAL_MUL, 0.0123f);
        break;
    case 3:
        make(&plan, mxfp4_recipe(DP_RULE_FLOOR), DP_GLOBAL_NONE, 1.0f);
        break;
    case 4:
        make(&plan, mxfp4_recipe(DP_RULE_RCEIL), DP_GLOBAL_NONE, 1.0f);
        break;
    default:
        make(&plan, mxfp4_recipe(DP_RULE_AMPLITUDE), DP_GLOBAL_NONE, 1.0f);
        break;
    }
    return plan;
}

START_TEST(usual_recipes_run_on_kernels)
{
    for (int i = 0; i < USUAL; i++) {
        const dp_block_plan plan = usual_plan(i);
        ck_assert_msg(dp_bulk_block_is_fast(&plan), "recipe %d", i);
    }
}
END_TEST

/* Shapes, axes and strides: rows, ragged rows, columns, a middle axis, a view with gaps, a
 * reversed axis. */
static dp_tensor shape_of(int index, size_t *axis, size_t *first)
{
    static const size_t shapes[][3] = {{3, 7, 64},   {5, 3, 77}, {1, 129, 48}, {2, 96, 33},
                                       {2, 600, 32}, {64, 5, 6}, {4, 40, 16}};
    static const size_t axes[] = {2, 2, 1, 1, 1, 0, 1};
    const int s = index % 7;
    dp_tensor tensor = dp_tensor_contiguous(3, shapes[s]);
    *axis = axes[s];
    *first = 0;
    if (index / 7 == 1) { /* a gap after every row */
        tensor.stride[0] += 5 * (ptrdiff_t)tensor.shape[1];
        tensor.stride[1] += 5;
    }
    if (index / 7 == 2) { /* the last axis backwards */
        *first = tensor.shape[2] - 1;
        tensor.stride[2] = -1;
    }
    return tensor;
}

START_TEST(shapes_axes_and_strides)
{
    dp_tally tally = {0};
    float *x = hurtful(6, 2 * MOST);
    for (int i = 0; i < 21 * USUAL; i++) {
        size_t axis = 0;
        size_t first = 0;
        const dp_tensor tensor = shape_of(i / USUAL, &axis, &first);
        const dp_block_plan plan = usual_plan(i % USUAL);
        char what[32];
        (void)snprintf(what, sizeof what, "shape %d, recipe %d", i / USUAL, i % USUAL);
        compare(&tally, &plan, x + first, &tensor, axis, what);
    }
    free(x);
    dp_assert_tally(tally, 21 * USUAL);
}
END_TEST

START_TEST(bf16_tensors_are_their_f32_values)
{
    enum { ROWS = 96, COLUMNS = 80, N = ROWS * COLUMNS };
    dp_tally tally = {0};
    float *x = hurtful(7, N);
    dp_bf16 half[N];
    uint8_t want[N], got[N], want_scale[N / 8], got_scale[N / 8];
    const size_t extents[] = {ROWS, COLUMNS};
    const dp_tensor tensor = dp_tensor_contiguous(2, extents);
    for (size_t i = 0; i < N; i++) {
        half[i] = dp_bf16_from_f32(x[i], DP_ENCODE_NONSAT);
        x[i] = dp_bf16_to_f32(half[i]);
    }
    for (int i = 0; i < USUAL * 2 * (BULK_PATHS + 1); i++) {
        const dp_path path =
            i / (2 * USUAL) < BULK_PATHS ? bulk_paths[i / (2 * USUAL)] : DP_PATH_SCALAR;
        const dp_bulk_options options = bulk_on(path, 2);
        const dp_block_plan plan = usual_plan(i % USUAL);
        const size_t axis = (size_t)(i / USUAL % 2);
        dp_block_shape shape;
        dp_error error = {""};
        ck_assert(dp_block_shape_of(&plan, &tensor, axis, &shape, &error));
        ck_assert(dp_block_quantize(&plan, x, &tensor, axis, 1, want, want_scale, NULL, &error));
        ck_assert(dp_bulk_block_quantize_bf16(&plan, half, &tensor, axis, &options, got, got_scale,
                                              &error));
        if (!dp_tally_check(&tally, same(got, want, shape.payload_bytes) &&
                                        same(got_scale, want_scale, shape.scale_bytes))) {
            dp_tally_note(&tally, "%s recipe %d axis %zu", dp_path_name(path), i % USUAL, axis);
        }
    }
    free(x);
    dp_assert_tally(tally, 2 * USUAL * (BULK_PATHS + 1));
}
END_TEST

/* Every scale byte with every code, by every path, to f32 and bf16, in rows and along columns. */
START_TEST(decoders_equal_the_definition)
{
    enum { BLOCKS = 1024, MOST_N = BLOCKS * 32 };
    dp_tally tally = {0};
    static uint8_t payload[MOST_N / 2], scale[BLOCKS];
    static float want[MOST_N], got[MOST_N];
    static dp_bf16 half[MOST_N];
    dp_rng rng = {.state = 8};
    for (size_t i = 0; i < sizeof payload; i++) {
        payload[i] = (uint8_t)dp_rng_u32(&rng);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        scale[i] = (uint8_t)i;
    }
    for (int i = 0; i < USUAL * 2 * BULK_PATHS; i++) {
        const dp_path path = bulk_paths[i / (2 * USUAL)];
        const dp_bulk_options options = bulk_on(path, 1 + i % 3);
        const dp_block_plan plan = usual_plan(i % USUAL);
        const size_t axis = (size_t)(i / USUAL % 2);
        const size_t n = BLOCKS * plan.recipe.block;
        const size_t extents[] = {axis == 0 ? n / 8 : 8, axis == 0 ? 8 : n / 8};
        const dp_tensor tensor = dp_tensor_contiguous(2, extents);
        dp_error error = {""};
        ck_assert(dp_block_dequantize(&plan, payload, scale, &tensor, axis, 1, want, &error));
        ck_assert(dp_bulk_block_dequantize_f32(&plan, payload, scale, &tensor, axis, &options, got,
                                               &error));
        ck_assert(dp_bulk_block_dequantize_bf16(&plan, payload, scale, &tensor, axis, &options,
                                                half, &error));
        bool equal = same(got, want, n * sizeof *want);
        for (size_t k = 0; k < n; k++) {
            equal = equal && half[k].bits == dp_bf16_from_f32(want[k], DP_ENCODE_NONSAT).bits;
        }
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally, "%s recipe %d axis %zu", dp_path_name(path), i % USUAL, axis);
        }
    }
    dp_assert_tally(tally, USUAL * 2 * BULK_PATHS);
}
END_TEST

/* Large enough for stores around the cache and several shares. */
START_TEST(large_tensors_and_threads)
{
    dp_tally tally = {0};
    const size_t n = (size_t)9 << 20;
    float *block = hurtful(9, MOST);
    float *x = bulk_allocate(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = block[(i + i / MOST * 16) % MOST];
    }
    uint8_t *want = bulk_allocate(n / 2 + n / 16);
    uint8_t *got = bulk_allocate(n / 2 + n / 16);
    const size_t extents[] = {n / 128, 128};
    const dp_tensor tensor = dp_tensor_contiguous(2, extents);
    for (int i = 0; i < 2 * 3; i++) {
        const dp_block_plan plan = usual_plan(i % 2 == 0 ? 0 : 3);
        const dp_bulk_options one = bulk_on(DP_PATH_PORTABLE, 1);
        const dp_bulk_options many = bulk_on(DP_PATH_AUTO, 1 + 2 * (i / 2));
        dp_error error = {""};
        ck_assert(
            dp_bulk_block_quantize_f32(&plan, x, &tensor, 1, &one, want, want + n / 2, &error));
        ck_assert(
            dp_bulk_block_quantize_f32(&plan, x, &tensor, 1, &many, got, got + n / 2, &error));
        if (!dp_tally_check(&tally, same(got, want, n / 2 + n / plan.recipe.block))) {
            dp_tally_note(&tally, "run %d", i);
        }
    }
    free(block);
    free(x);
    free(want);
    free(got);
    dp_assert_tally(tally, 6);
}
END_TEST

START_TEST(environment_does_not_matter)
{
    enum { N = 16384 };
    dp_tally tally = {0};
    float *x = hurtful(10, N);
    static uint8_t want[N], got[N];
    static float back_want[N], back[N];
    const size_t extents[] = {N};
    const dp_tensor tensor = dp_tensor_contiguous(1, extents);
    for (int i = 0; i < USUAL * BULK_PATHS; i++) {
        const dp_block_plan plan = usual_plan(i % USUAL);
        const dp_bulk_options options = bulk_on(bulk_paths[i / USUAL], 1);
        const size_t bytes = N / 2 + N / plan.recipe.block;
        dp_error error = {""};
        ck_assert(dp_block_quantize(&plan, x, &tensor, 0, 1, want, want + N / 2, NULL, &error));
        ck_assert(dp_block_dequantize(&plan, want, want + N / 2, &tensor, 0, 1, back_want, &error));
        fesetround(FE_UPWARD);
#if defined(__x86_64__)
        __builtin_ia32_ldmxcsr(0x1F80u | 0x8040u | 0x4000u); /* FTZ, DAZ, up */
#endif
        const bool good =
            dp_bulk_block_quantize_f32(&plan, x, &tensor, 0, &options, got, got + N / 2, &error) &&
            dp_bulk_block_dequantize_f32(&plan, want, want + N / 2, &tensor, 0, &options, back,
                                         &error);
        const bool kept = fegetround() == FE_UPWARD;
        fesetenv(FE_DFL_ENV);
        if (!dp_tally_check(&tally, good && kept && same(got, want, bytes) &&
                                        same(back, back_want, sizeof back))) {
            dp_tally_note(&tally, "%s recipe %d", dp_path_name(options.path), i % USUAL);
        }
    }
    free(x);
    dp_assert_tally(tally, USUAL * BULK_PATHS);
}
END_TEST

START_TEST(refusals_name_the_element)
{
    enum { N = 1 << 15 };
    dp_block_recipe recipe = nvfp4_recipe();
    recipe.nan = DP_NAN_ERROR;
    dp_block_plan plan;
    make(&plan, recipe, DP_GLOBAL_NONE, 1.0f);
    static float x[N];
    static dp_bf16 half[N];
    static uint8_t payload[N / 2], scale[N / 16];
    const size_t extents[] = {N};
    const dp_tensor tensor = dp_tensor_contiguous(1, extents);
    dp_error error = {""};
    ck_assert(dp_bulk_block_quantize_f32(&plan, x, &tensor, 0, NULL, payload, scale, &error));
    x[12345] = dp_f32_from_bits(DP_F32_NAN_CUDA);
    half[777].bits = 0x7FFF;
    ck_assert(!dp_bulk_block_quantize_f32(&plan, x, &tensor, 0, NULL, payload, scale, &error));
    ck_assert_msg(strstr(error.text, "12345") != NULL, "%s", error.text);
    error.text[0] = '\0';
    ck_assert(!dp_bulk_block_quantize_bf16(&plan, half, &tensor, 0, NULL, payload, scale, &error));
    ck_assert_msg(strstr(error.text, "777") != NULL, "%s", error.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bulk_block");
    TCase *tests = tcase_create("blocks");
    tcase_add_test(tests, any_recipe_equals_the_definition);
    tcase_add_test(tests, usual_recipes_run_on_kernels);
    tcase_add_test(tests, shapes_axes_and_strides);
    tcase_add_test(tests, bf16_tensors_are_their_f32_values);
    tcase_add_test(tests, decoders_equal_the_definition);
    tcase_add_test(tests, large_tensors_and_threads);
    tcase_add_test(tests, environment_does_not_matter);
    tcase_add_test(tests, refusals_name_the_element);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
