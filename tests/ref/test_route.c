/* SPDX-License-Identifier: MIT
 *
 * The standard paths: decoded block maxima against the published table of the routes, flush
 * thresholds, LSE offsets, saturation of a stale maximum.
 */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "ref/forward/route_inputs.h"
#include "support.h"

enum { COLUMNS = 6 };

/* r = exp(block maximum - row maximum); decoded payload times scale of that block maximum, relative
 * to p: HAO (G=1; exactly 2^-10 is a tie that one ulp of ex2 decides), G=320, two-level, single
 * level, DuDa at p = 256 r, Model-Optimizer. */
static const struct {
    double r;
    double decoded[COLUMNS];
} GOLDEN[] = {
    {1, {1, 1, 1, 1.03125, 1.03125, 1}},
    {0.9, {.875, .9, .928571, .9375, .9375, .928571}},
    {0.5, {.5, .5, .5, .515625, .515625, .5}},
    {0.3, {.3125, .3, .285714, .304688, .304688, .285714}},
    {0.1, {.101563, .1, .0982143, .105469, .105469, .0982143}},
    {0.01, {.00976563, .0101563, .0100446, .0117188, .0102539, .0100446}},
    {1e-3, {.00195313, .000976563, .000976563, 0, .00100708, .000976563}},
    {0.9999995 / 1024, {0, .000976563, .000976563, 0, .00100708, .000976563}},
    {1e-5, {0, 1.2207e-5, 8.7193e-6, 0, 0, 8.7193e-6}},
    {3e-6, {0, 0, 4.3597e-6, 0, 0, 2.9064e-6}},
    {2.2e-6, {0, 0, 4.3597e-6, 0, 0, 2.1798e-6}},
    {2.1e-6, {0, 0, 0, 0, 0, 0}},
};

static dp_route find(const char *name)
{
    dp_route route;
    dp_error error = {""};
    ck_assert_msg(dp_route_find(name, &route, &error), "%s", error.text);
    return route;
}

static double decoded_maximum(const dp_route *route, double r, double ahead, double unit)
{
    float raw[DP_TILE];
    for (int j = 0; j < DP_TILE; j++) {
        raw[j] = -INFINITY;
    }
    /* c = 1, so raw scores are in octaves; block 1 holds the maximum looked at */
    raw[16] = (float)(log2(r) + ahead);
    dp_route_row row = {0.0f, 1.0f};
    dp_route_p p;
    dp_route_tile(route, dp_sfu_exact(), 1.0f, false, raw, &row, &p);
    const dp_e2m1 code = {(uint8_t)p.code[16]};
    const dp_e4m3 scale = {p.scale[1]};
    return (double)dp_e2m1_to_f32(code) * (double)dp_e4m3_to_f32(scale) / unit;
}

START_TEST(block_maxima_as_published)
{
    dp_route route[COLUMNS] = {find("hao-nv-nv"), find("stabilised"), find("sage3"),
                               find("fastvideo"), find("duda"),       find("modelopt")};
    route[1].lift = 320.0f;
    static const double unit[COLUMNS] = {6, 6 * 320, 2688, 1, 256, 2688};
    dp_tally tally = {0};
    for (size_t i = 0; i < sizeof GOLDEN / sizeof GOLDEN[0]; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            const double got = decoded_maximum(&route[c], GOLDEN[i].r, c == 4 ? 8.0 : 0.0, unit[c]);
            const double expected = GOLDEN[i].decoded[c];
            if (!dp_tally_check(&tally, fabs(got - expected) <= 1.3e-5 * expected)) {
                printf("%s %g %.9g %.9g\n", route[c].name, GOLDEN[i].r, got, expected);
                dp_tally_note(&tally, "%s at r = %g: %.7g, published %.7g", route[c].name,
                              GOLDEN[i].r, got, expected);
            }
        }
    }
    dp_assert_tally(tally, 72);
}
END_TEST

/* Whole blocks vanish at the thresholds of the formats: 2^-10/448 two-level, 2^-10 HAO, 6 * 2^-10
 * single. */
START_TEST(flush_thresholds)
{
    static const struct {
        const char *route;
        double threshold;
    } cases[] = {{"sage3", 0x1p-10 / 448},
                 {"modelopt", 0x1p-10 / 448},
                 {"hao-nv-nv", 0x1p-10},
                 {"fastvideo", 6 * 0x1p-10}};
    for (int i = 0; i < 4; i++) {
        const dp_route route = find(cases[i].route);
        const double step = route.p_bf16 ? 0x1p-8 : 1e-4; /* P in BF16 moves by half of that */
        ck_assert(decoded_maximum(&route, cases[i].threshold * (1 - step), 0, 1) == 0.0);
        ck_assert(decoded_maximum(&route, cases[i].threshold * (1 + step), 0, 1) > 0.0);
    }
}
END_TEST

/* Case 78: tile 2 is ln 2 above a maximum that may lag: 2 * 256 = 512 is cut to 448. */
START_TEST(case_78_stale_maximum_saturates)
{
    static const struct {
        const char *route;
        double ratio;
        bool saturates;
    } cases[] = {{"fa4-fp8-offset8-threshold8", 0.875, true},
                 {"fa4-fp8-offset4", 1.0, false},
                 {"fa4-fp8", 1.0, false}};
    for (int i = 0; i < 3; i++) {
        const dp_route route = find(cases[i].route);
        float raw[DP_TILE];
        for (int j = 0; j < DP_TILE; j++) {
            raw[j] = -INFINITY;
        }
        raw[0] = 1.0f;
        dp_route_row row = {0.0f, 0.0f};
        dp_route_p p;
        const float factor = dp_route_tile(&route, dp_sfu_exact(), 1.0f, false, raw, &row, &p);
        const dp_e4m3 code = {(uint8_t)p.code[0]};
        ck_assert(fabs((double)dp_e4m3_to_f32(code) / (double)row.sum - cases[i].ratio) < 1e-6);
        ck_assert_int_eq(p.saturated > 0, cases[i].saturates);
        ck_assert(factor == (route.threshold_log2 > 0 ? 1.0f : 0.5f));
    }
}
END_TEST

/* One tile of equal scores: LSE is ln(128) plus whatever offset a route forgets to remove. */
START_TEST(case_88_lse_offsets)
{
    static const struct {
        const char *route;
        double offset;
    } cases[] = {{"fa4-bf16", 0},
                 {"fa4-fp8", 0},
                 {"hao-nv-fp8", 0},
                 {"sage3", 0},
                 {"hao-nv-nv", 1.791759},
                 {"hao-nv-nv-log2", 1.791759},
                 {"duda", 0},
                 {"hao-nv-mxfp8", 6.104793},
                 {"modelopt", 0},
                 {"fa3-fp8", 0},
                 {"fa4-fp8-offset8-threshold4", 0},
                 {"fa4-fp8-offset8-threshold8", 0},
                 {"fa4-fp8-offset4", 0},
                 {"hao-nv-bf16", 0},
                 {"hao-mxfp8", 6.104793},
                 {"hao-mxfp8-fp8", 0},
                 {"flashinfer-sm120", 0},
                 {"fastvideo", 0},
                 {"modelopt-128", 0},
                 {"modelopt-fp8", 0},
                 {"fastvideo-train-two-level", 0},
                 {"stabilised", 1.791759},
                 {"sage2-fp8", 0},
                 {"sage2-fp8-sm90", 0},
                 {"sage3-smooth", 0},
                 {"fastvideo-train", 0},
                 {"fastvideo-train-global", 0},
                 {"shiftless-nv-nv", 0.030772}, /* E4M3(1/6) = 0.171875 */
                 {"sampled-1", 1.791759},
                 {"sampled-3", 1.791759}};
    uint16_t q[128 * 64], k[128 * 64], o[128 * 64];
    float lse[128];
    for (size_t i = 0; i < 128 * 64; i++) {
        q[i] = 0;
        k[i] = 0x3F80;
    }
    const dp_attention in = {.batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .queries = 128,
                             .keys = 128,
                             .dim = 64,
                             .q = q,
                             .k = k,
                             .v = k};
    dp_tally tally = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dp_route route = find(cases[i].route);
        dp_error error = {""};
        ck_assert_msg(dp_route_run(&in, &route, NULL, NULL, 2, o, lse, NULL, &error), "%s",
                      error.text);
        for (int row = 0; row < 128; row++) {
            const double expected = log(128.0) + cases[i].offset;
            if (!dp_tally_check(&tally, fabs((double)lse[row] - expected) < 2e-3)) {
                dp_tally_note(&tally, "%s: %g, %g expected", cases[i].route, (double)lse[row],
                              expected);
            }
        }
        const dp_bf16 first = {o[0]};
        ck_assert_msg(fabs((double)dp_bf16_to_f32(first) - 1.0) < 0.07, "%s: %g", cases[i].route,
                      (double)dp_bf16_to_f32(first));
    }
    dp_assert_tally(tally, 30 * 128);
}
END_TEST

/* Every route, causal and ragged and grouped: finite, near BF16, the same for any thread count. */
START_TEST(routes_are_near_bf16)
{
    enum { Q = 150, K = 150, D = 64, HEADS = 4, KV = 2 };
    static uint16_t q[HEADS * Q * D], k[KV * K * D], v[KV * K * D];
    static uint16_t a[HEADS * Q * D], b[HEADS * Q * D], reference[HEADS * Q * D];
    dp_rng rng = {42};
    for (size_t i = 0; i < HEADS * Q * D; i++) {
        q[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
    }
    for (size_t i = 0; i < KV * K * D; i++) {
        k[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
        v[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
    }
    const dp_attention in = {.batch = 1,
                             .q_heads = HEADS,
                             .kv_heads = KV,
                             .queries = Q,
                             .keys = K,
                             .dim = D,
                             .q = q,
                             .k = k,
                             .v = v,
                             .causal = true};
    dp_error error = {""};
    ck_assert(dp_reference_bf16(&in, 2, reference, NULL, &error));
    for (size_t r = 0; r < dp_route_count(); r++) {
        const dp_route *route = dp_route_at(r);
        dp_route_stats stats;
        ck_assert_msg(dp_route_run(&in, route, NULL, NULL, 1, a, NULL, &stats, &error), "%s",
                      error.text);
        (void)fesetround(FE_UPWARD);
        const bool good = dp_route_run(&in, route, NULL, NULL, 3, b, NULL, NULL, &error);
        const int mode = fegetround();
        (void)fesetround(FE_TONEAREST);
        ck_assert(good && mode == FE_UPWARD);
        ck_assert_msg(memcmp(a, b, sizeof a) == 0, "%s depends on threads or the rounding mode",
                      route->name);
        ck_assert_uint_eq(stats.nonfinite_rows, 0);
        double difference = 0.0, norm = 0.0;
        for (size_t i = 0; i < HEADS * Q * D; i++) {
            const dp_bf16 x = {a[i]}, y = {reference[i]};
            const double d = (double)dp_bf16_to_f32(x) - (double)dp_bf16_to_f32(y);
            difference += d * d;
            norm += (double)dp_bf16_to_f32(y) * (double)dp_bf16_to_f32(y);
        }
        const double relative = sqrt(difference / norm);
        const double bound = route->direct.sampled_words > 0                                 ? 1.3
                             : route->direct.degree > 0                                      ? 0.5
                             : route->qk == DP_OPERAND_MXFP4 || route->p == DP_OPERAND_MXFP4 ? 0.4
                             : route->qk == DP_OPERAND_INT8                                  ? 0.05
                             : route->rule == DP_P_SCALED                                    ? 0.02
                             : route->qk == DP_OPERAND_BF16                                  ? 0.01
                             : route->qk != DP_OPERAND_NVFP4                                 ? 0.12
                                                                                             : 0.25;
        ck_assert_msg(relative < bound, "%s: %g", route->name, relative);
        ck_assert_msg(relative > 1e-5, "%s: %g", route->name, relative);
    }
}
END_TEST

/* SageAttention3 starts the maxima of its first tile at 0. A block at -10 octaves has, by its own
 * maximum, the scale 448 * 2^-10 and the payload 6; by the floor 448 and 6 * 2^-10, which is 0. */
START_TEST(floor0_by_hand)
{
    float raw[DP_TILE];
    for (int j = 0; j < DP_TILE; j++) {
        raw[j] = -10.0f;
    }
    dp_route route = find("sage3");
    dp_route_p p;
    for (int floored = 0; floored < 2; floored++) {
        route.floor0 = floored == 1;
        dp_route_row row = {-INFINITY, 0.0f};
        dp_route_tile(&route, dp_sfu_exact(), 1.0f, true, raw, &row, &p);
        ck_assert(row.maximum == (floored ? 0.0f : -10.0f));
        ck_assert_uint_eq(p.scale[3], 0x7E); /* 448, either way: the maximum moves too */
        ck_assert_uint_eq(p.code[50], floored ? 0 : 7);
    }
    /* In the second tile nothing is floored. */
    dp_route_row row = {0.0f, 1.0f};
    dp_route_tile(&route, dp_sfu_exact(), 1.0f, false, raw, &row, &p);
    ck_assert_uint_eq(p.scale[3], 0x2E); /* .4375 */
    ck_assert_uint_eq(p.code[50], 7);
}
END_TEST

/* The polynomial 2^x on its lanes and no others: pairs k of fragments of 32, as tabulated. A lone
 * visible score makes the row sum that lane's exponential. */
START_TEST(polynomial_lanes_by_hand)
{
    static const struct {
        const char *route;
        int first_fragment; /* of 3 */
        int pairs[7];       /* ends with -1 */
    } cases[] = {{"fa4-bf16", 1, {12, 14, 28, 30, -1}},
                 {"hao-nv-nv", 1, {12, 14, 28, 30, -1}},
                 {"hao-nv-fp8", 0, {6, 8, 14, 16, 24, 26, -1}}};
    for (int i = 0; i < 3; i++) {
        const dp_route route = find(cases[i].route);
        for (int lane = 0; lane < DP_TILE; lane++) {
            const int fragment = lane / 32;
            bool expected = false;
            for (int k = 0; cases[i].pairs[k] >= 0; k++) {
                expected = expected || lane % 32 / 2 * 2 == cases[i].pairs[k];
            }
            expected = expected && fragment >= cases[i].first_fragment && fragment < 3;
            float raw[DP_TILE];
            for (int j = 0; j < DP_TILE; j++) {
                raw[j] = -INFINITY;
            }
            raw[lane] = -0.5f;
            dp_route_row row = {0.0f, 0.0f};
            dp_route_p p;
            dp_route_tile(&route, dp_sfu_exact(), 1.0f, false, raw, &row, &p);
            const double exact = exp2(-0.5 + (double)route.offset_log2);
            const bool off = fabs((double)row.sum / exact - 1.0) > 1e-6;
            ck_assert_msg(off == expected, "%s, lane %d", cases[i].route, lane);
        }
    }
}
END_TEST

/* A rising maximum: 5 octaves above a kept one (threshold 8) P is 32, above an exact one 1. */
START_TEST(thresholds_by_hand)
{
    static const struct {
        const char *route;
        double kept; /* the largest rise that keeps the maximum */
    } cases[] = {{"fa4-bf16", 8},
                 {"hao-nv-bf16", 8},
                 {"hao-nv-fp8", 8},
                 {"hao-mxfp8-fp8", 8},
                 {"duda", 8},
                 {"fa4-fp8-offset8-threshold8", 8},
                 {"fa4-fp8-offset8-threshold4", 4},
                 {"fa4-fp8-offset4", 4},
                 {"fa4-fp8", 0},
                 {"fa3-fp8", 0},
                 {"sage3", 0},
                 {"hao-nv-nv", 0},
                 {"hao-nv-mxfp8", 0},
                 {"modelopt", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dp_route route = find(cases[i].route);
        for (int more = 0; more < 2; more++) {
            float raw[DP_TILE] = {0};
            const float rise = (float)cases[i].kept + (more ? 0.25f : 0.0f);
            raw[5] = rise;
            dp_route_row row = {0.0f, 1.0f};
            dp_route_p p;
            const float factor = dp_route_tile(&route, dp_sfu_exact(), 1.0f, false, raw, &row, &p);
            ck_assert_msg(row.maximum == (more ? rise : 0.0f), "%s", cases[i].route);
            ck_assert(fabs((double)factor - (more ? exp2(-(double)rise) : 1.0)) < 1e-6);
        }
    }
}
END_TEST

/* Tiles of other widths: the output of exact arithmetic does not change, the bits do. */
START_TEST(tile_widths)
{
    enum { S = 300, D = 64 };
    static uint16_t q[S * D], k[S * D], v[S * D], a[S * D], b[S * D];
    dp_rng rng = {5};
    for (size_t i = 0; i < S * D; i++) {
        q[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng) * 3.0f, DP_ENCODE_PTX).bits;
        k[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
        v[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
    }
    const dp_attention in = {.batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .queries = S,
                             .keys = S,
                             .dim = D,
                             .q = q,
                             .k = k,
                             .v = v};
    dp_error error = {""};
    dp_route route = find("fa3-fp8");
    ck_assert(dp_route_run(&in, &route, NULL, NULL, 2, a, NULL, NULL, &error));
    static const int widths[] = {32, 64, 96, 160, 176, 224, 256};
    for (int i = 0; i < 7; i++) {
        route.tile = widths[i];
        const bool good = dp_route_run(&in, &route, NULL, NULL, 2, b, NULL, NULL, &error);
        if (widths[i] % 32 != 0) {
            ck_assert(!good && strstr(error.text, "tile=176") != NULL);
            continue;
        }
        ck_assert(good);
        double difference = 0.0, norm = 0.0;
        for (size_t j = 0; j < S * D; j++) {
            const dp_bf16 x = {a[j]}, y = {b[j]};
            difference += pow((double)dp_bf16_to_f32(x) - (double)dp_bf16_to_f32(y), 2);
            norm += pow((double)dp_bf16_to_f32(y), 2);
        }
        ck_assert_msg(difference < 0.02 * 0.02 * norm && difference > 0.0, "%d keys: %g", widths[i],
                      sqrt(difference / norm));
    }
}
END_TEST

/* INT8: which rows share a scale, ties away from zero. Row r holds 127 (r + 1) and its half. */
START_TEST(int8_groups_by_hand)
{
    enum { ROWS = 128, D = 32 };
    static float x[ROWS * D], scale[ROWS];
    static int16_t code[ROWS * D];
    for (int r = 0; r < ROWS; r++) {
        for (int d = 0; d < D; d++) {
            x[r * D + d] = 127.0f * (float)(r + 1) * (d % 2 == 0 ? 1.0f : -0.5f);
        }
    }
    for (int keys = 0; keys < 2; keys++) {
        for (int group = 0; group < 3; group++) {
            dp_int8_rows((dp_int8_group)group, keys == 1, x, ROWS, D, code, scale);
            for (int r = 0; r < ROWS; r++) {
                /* the last row of the group holds its largest value */
                const int rows = keys ? 64 : group == DP_INT8_BLOCK ? 128 : 32;
                int last = r / rows * rows + rows - 1;
                if (group == DP_INT8_THREAD) {
                    last = keys ? last - 7 + r % 8 / 2 * 2 + 1 : last - 7 + r % 8;
                }
                ck_assert_msg(scale[r] == (float)(last + 1), "group %d, row %d: %g", group, r,
                              (double)scale[r]);
                ck_assert(code[r * D] == (r == last ? 127 : code[r * D]));
                ck_assert(code[r * D + 1] == (r == last ? -64 : code[r * D + 1])); /* -63.5 */
                ck_assert(abs(code[r * D]) <= 127);
            }
        }
    }
    const int16_t q[DP_TILE * 2] = {3, -4}, k[2 * 2] = {127, 5, -127, 127};
    float q_scale[DP_TILE] = {0.5f}, k_scale[2] = {2.0f, 0.25f}, raw[DP_TILE * 2] = {10.0f};
    dp_int8_scores(q, q_scale, k, k_scale, 2, 2, true, raw);
    ck_assert(raw[0] == 10.0f + 361.0f && raw[1] == -889.0f / 8.0f);
}
END_TEST

/* A NaN in K: BF16 scores carry it into every row, NVFP4 makes it 6, INT8 0; no format refuses. */
START_TEST(nan_inputs)
{
    enum { S = 64, D = 32 };
    static uint16_t q[S * D], k[S * D], v[S * D], o[S * D];
    for (int i = 0; i < S * D; i++) {
        q[i] = k[i] = v[i] = 0x3F80;
    }
    k[5 * D + 7] = 0x7FC0;
    const dp_attention in = {.batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .queries = S,
                             .keys = S,
                             .dim = D,
                             .q = q,
                             .k = k,
                             .v = v};
    static const struct {
        const char *route;
        uint64_t lost;
    } cases[] = {{"fa4-bf16", S}, {"fa4-fp8", S}, {"hao-nv-nv", 0}, {"sage2-fp8", 0}};
    for (int i = 0; i < 4; i++) {
        dp_error error = {""};
        dp_route_stats stats;
        dp_route route = find(cases[i].route);
        route.smooth = DP_SMOOTH_NONE; /* a mean of NaN */
        ck_assert_msg(dp_route_run(&in, &route, NULL, NULL, 2, o, NULL, &stats, &error), "%s",
                      error.text);
        ck_assert_msg(stats.nonfinite_rows == cases[i].lost, "%s: %" PRIu64 " rows", route.name,
                      stats.nonfinite_rows);
    }
    float x[32] = {1.0f, NAN, INFINITY}, scale[1];
    int16_t code[32];
    dp_int8_rows(DP_INT8_WARP, true, x, 1, 32, code, scale);
    ck_assert(code[0] == 0 && code[1] == 0 && code[2] == 0 && isinf(scale[0]));
}
END_TEST

/* Names and values of the switches, and what does not go together. */
START_TEST(switches_by_name)
{
    dp_route route = find("hao-nv-nv");
    dp_error error = {""};
    char text[2048];
    ck_assert(dp_route_set(&route, "tile=224", &error) && route.tile == 224);
    ck_assert(dp_route_set(&route, "sum=represented", &error) && route.sum == DP_SUM_REPRESENTED);
    ck_assert(dp_route_set(&route, "polynomial=off", &error));
    ck_assert(dp_route_set(&route, "c3=0.5", &error) && route.direct.map[3] == 0.5f);
    ck_assert(dp_route_set(&route, "order=ascending", &error) && route.ascending);
    dp_route_text(&route, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "polynomial=off\n"));
    ck_assert_ptr_nonnull(strstr(text, "qk=nvfp4\n"));
    ck_assert_ptr_nonnull(strstr(text, "rule=max-sixth\n"));
    ck_assert_ptr_nonnull(strstr(text, "tile=224\n"));
    ck_assert_ptr_nonnull(strstr(text, "sampled=0\n"));
    ck_assert(!dp_route_set(&route, "tile=260", &error));
    ck_assert(!dp_route_set(&route, "rule=other", &error));
    ck_assert(!dp_route_set(&route, "polynomial=fast", &error));
    ck_assert(!dp_route_set(&route, "colour=red", &error));
    static const char *const refused[] = {"p=e4m3",      "rule=plain",  "tile=40",
                                          "residual=on", "rule=scaled", "v=bf16"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        route = find("modelopt");
        ck_assert(dp_route_check(&route, &error));
        ck_assert(dp_route_set(&route, refused[i], &error));
        ck_assert_msg(!dp_route_check(&route, &error), "%s", refused[i]);
    }
    /* a rule and a payload format that it does not make, v and p alike */
    static const char *const pairs[][3] = {{"modelopt", "v=e4m3", "p=e4m3"},
                                           {"hao-nv-nv-log2", "v=mxfp8", "p=mxfp8"},
                                           {"hao-nv-mxfp8", "v=nvfp4", "p=nvfp4"},
                                           {"fa4-bf16", "v=mxfp4", "p=mxfp4"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        error.text[0] = '\0';
        route = find(pairs[i][0]);
        ck_assert(dp_route_set(&route, pairs[i][1], &error));
        ck_assert(dp_route_set(&route, pairs[i][2], &error));
        ck_assert_msg(!dp_route_check(&route, &error) && strstr(error.text, "payloads") != NULL,
                      "%s: %s", pairs[i][0], error.text);
    }
    for (size_t i = 0; i < dp_route_count(); i++) {
        ck_assert_msg(dp_route_check(dp_route_at(i), &error), "%s", error.text);
    }
}
END_TEST

/* Scores of 0 in one block and `peak` octaves in another: without a row maximum a block scale is
 * 2^peak / 6, which NVFP4 holds up to 448. */
START_TEST(shiftless_scales_overflow_above_448)
{
    static const struct {
        float peak;
        bool overflows;
    } cases[] = {{11.0f, false}, {11.39f, false}, {11.42f, true}, {11.5f, true}, {30.0f, true}};
    for (int i = 0; i < 5; i++) {
        for (int raw = 0; raw < 2; raw++) {
            const dp_route route = find(raw ? "shiftless-nv-nv-raw" : "shiftless-nv-nv");
            float scores[DP_TILE] = {0};
            scores[20] = cases[i].peak;
            dp_route_row row = {-INFINITY, 0.0f};
            dp_route_p p;
            dp_route_tile(&route, dp_sfu_exact(), 1.0f, true, scores, &row, &p);
            ck_assert_uint_eq(p.overflowed, cases[i].overflows ? 1 : 0);
            /* E4M3 rounds up to 464 down to 448: only then is the value NaN. */
            const bool nan = raw && exp2((double)cases[i].peak) / 6 > 464;
            ck_assert_msg(p.scale[1] == (nan                  ? 0x7F
                                         : cases[i].overflows ? 0x7E
                                                              : p.scale[1]),
                          "peak %g: 0x%02X", (double)cases[i].peak, p.scale[1]);
            ck_assert_int_eq(isnan(row.sum), nan);
            ck_assert(row.maximum == 0.0f);
        }
    }
}
END_TEST

/* The affine map and the block rules by hand: scores 3 and 1 octaves in one block. */
START_TEST(direct_maps_by_hand)
{
    float scores[DP_TILE];
    for (int j = 0; j < DP_TILE; j++) {
        scores[j] = -INFINITY;
    }
    scores[0] = 3.0f;
    scores[1] = 1.0f;
    dp_route_p p;
    dp_route_row row = {-INFINITY, 0.0f};
    dp_route nv = find("shiftless-nv-nv-affine");
    dp_route_tile(&nv, dp_sfu_exact(), 1.0f, true, scores, &row, &p);
    /* scale 8/6 -> 1.375; x = log2 6: 1.62330034 x + .92083546 = 5.117 -> 6; x - 2: 1.870 -> 2 */
    ck_assert_uint_eq(p.scale[0], 0x3B);
    ck_assert_uint_eq(p.code[0], 7);
    ck_assert_uint_eq(p.code[1], 4);
    ck_assert(row.sum == 8.0f * 1.375f);
    dp_route mx = find("direct-nv-mx");
    mx.direct.sampled_words = 0;
    row = (dp_route_row){-INFINITY, 0.0f};
    dp_route_tile(&mx, dp_sfu_exact(), 1.0f, true, scores, &row, &p);
    ck_assert_uint_eq(p.scale[0], 130); /* floor(3 + .415) = 3 */
    ck_assert_uint_eq(p.code[0], 7);
    ck_assert(row.sum == 8.0f * 8.0f);
    mx.direct.degree = 0; /* 6 and 1.5 */
    row = (dp_route_row){-INFINITY, 0.0f};
    dp_route_tile(&mx, dp_sfu_exact(), 1.0f, true, scores, &row, &p);
    ck_assert(p.code[0] == 7 && p.code[1] == 3 && row.sum == 7.5f * 8.0f);
}
END_TEST

/* Equal scores: every word holds the same mass, so each sample has the whole sum. A mass in the
 * last word only is missed by three words and counted 4/4 by all. */
START_TEST(sampled_denominators)
{
    for (int words = 0; words <= 3; words++) {
        dp_route route = find("stabilised");
        route.direct.sampled_words = words;
        float even[DP_TILE] = {0};
        float last[DP_TILE];
        for (int j = 0; j < DP_TILE; j++) {
            last[j] = j % 32 >= 24 ? 0.0f : -INFINITY;
        }
        dp_route_p p;
        dp_route_row row = {-INFINITY, 0.0f};
        dp_route_tile(&route, dp_sfu_exact(), 1.0f, true, even, &row, &p);
        ck_assert_msg(fabsf(row.sum - 6.0f * DP_TILE) < 3e-4f, "%d words: %g", words,
                      (double)row.sum);
        row = (dp_route_row){-INFINITY, 0.0f};
        dp_route_tile(&route, dp_sfu_exact(), 1.0f, true, last, &row, &p);
        ck_assert(row.sum == (words == 0 ? 6.0f * DP_TILE / 4 : 0.0f));
    }
}
END_TEST

/* Means do not matter to exact attention. With K and Q far from zero the plain path loses the
 * differences; smoothing brings them back. */
START_TEST(smoothing_removes_a_common_mean)
{
    enum { S = 200, D = 64 };
    static uint16_t q[S * D], k[S * D], v[S * D], o[S * D], reference[S * D];
    dp_rng rng = {11};
    for (size_t i = 0; i < S * D; i++) {
        const double offset = i % D < 8 ? 6.0 : 0.0;
        q[i] = dp_bf16_from_f32((float)(dp_rng_normal(&rng) + offset), DP_ENCODE_PTX).bits;
        k[i] = dp_bf16_from_f32((float)(dp_rng_normal(&rng) + offset), DP_ENCODE_PTX).bits;
        v[i] = dp_bf16_from_f32((float)dp_rng_normal(&rng), DP_ENCODE_PTX).bits;
    }
    const dp_attention in = {.batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .queries = S,
                             .keys = S,
                             .dim = D,
                             .q = q,
                             .k = k,
                             .v = v};
    dp_error error = {""};
    ck_assert(dp_reference_bf16(&in, 2, reference, NULL, &error));
    double relative[2];
    for (int smooth = 0; smooth < 2; smooth++) {
        const dp_route route = find(smooth ? "sage3-smooth" : "sage3");
        ck_assert(dp_route_run(&in, &route, NULL, NULL, 2, o, NULL, NULL, &error));
        double difference = 0.0, norm = 0.0;
        for (size_t i = 0; i < S * D; i++) {
            const dp_bf16 x = {o[i]}, y = {reference[i]};
            const double d = (double)dp_bf16_to_f32(x) - (double)dp_bf16_to_f32(y);
            difference += d * d;
            norm += (double)dp_bf16_to_f32(y) * (double)dp_bf16_to_f32(y);
        }
        relative[smooth] = sqrt(difference / norm);
    }
    ck_assert_msg(relative[1] < 0.3 && relative[1] < 0.5 * relative[0], "plain %g, smoothed %g",
                  relative[0], relative[1]);
}
END_TEST

START_TEST(unknown_routes_are_refused)
{
    dp_route route;
    dp_error error = {""};
    ck_assert(!dp_route_find("fa5", &route, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "hao-nv-nv"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *tests = tcase_create("route");
    tcase_add_test(tests, block_maxima_as_published);
    tcase_add_test(tests, flush_thresholds);
    tcase_add_test(tests, case_78_stale_maximum_saturates);
    tcase_add_test(tests, case_88_lse_offsets);
    tcase_add_test(tests, routes_are_near_bf16);
    tcase_add_test(tests, floor0_by_hand);
    tcase_add_test(tests, polynomial_lanes_by_hand);
    tcase_add_test(tests, thresholds_by_hand);
    tcase_add_test(tests, tile_widths);
    tcase_add_test(tests, int8_groups_by_hand);
    tcase_add_test(tests, nan_inputs);
    tcase_add_test(tests, switches_by_name);
    tcase_add_test(tests, shiftless_scales_overflow_above_448);
    tcase_add_test(tests, direct_maps_by_hand);
    tcase_add_test(tests, sampled_denominators);
    tcase_add_test(tests, smoothing_removes_a_common_mean);
    tcase_add_test(tests, unknown_routes_are_refused);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
