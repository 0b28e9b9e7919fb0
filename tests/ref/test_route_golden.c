/* SPDX-License-Identifier: MIT
 *
 * Every route against a second derivation in binary64 (route_model.c): codes, scale bytes, factors
 * and sums tile by tile; then whole outputs and LSE.
 */
#include <math.h>
#include <stdlib.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "ref/forward/route.h"
#include "route_model.h"
#include "support.h"

enum { TILES = 4, TRIALS = 60 };

static const model_row *row_named(const char *name)
{
    int count = 0;
    const model_row *rows = model_rows(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    ck_abort_msg("no second derivation of route %s", name);
    return NULL;
}

static double decoded_code(const dp_route *route, uint16_t code)
{
    const dp_bf16 bf16 = {code};
    const dp_e4m3 e4m3 = {(uint8_t)code};
    const dp_e2m1 e2m1 = {(uint8_t)code};
    if (route->fake || route->p == DP_OPERAND_BF16) {
        return (double)dp_bf16_to_f32(bf16);
    }
    return route->p == DP_OPERAND_NVFP4 || route->p == DP_OPERAND_MXFP4
               ? (double)dp_e2m1_to_f32(e2m1)
               : (double)dp_e4m3_to_f32(e4m3);
}

static double decoded_scale(const dp_route *route, uint8_t byte)
{
    const dp_e4m3 e4m3 = {byte};
    const dp_e8m0 e8m0 = {byte};
    return route->p == DP_OPERAND_NVFP4 ? (double)dp_e4m3_to_f32(e4m3)
                                        : (double)dp_e8m0_to_f32(e8m0);
}

/* Codes and scale bytes of a tile. What a hair decides is left out, and counted. */
static void compare_p(const dp_route *route, const model_row *row, const dp_route_p *p,
                      const model_p *m, int keys, dp_tally *tally, uint64_t *skipped)
{
    const int block = row->pv == 'n' ? 16 : row->pv == 'x' || row->pv == 'm' ? 32 : 0;
    for (int b = 0; block > 0 && !route->fake && b < keys / block; b++) {
        const double got = decoded_scale(route, p->scale[b]);
        *skipped += m->near_scale[b];
        /* a block of nothing has byte 0, which as E8M0 is 2^-127 */
        const bool equal = got == m->scale[b] || (isnan(got) && isnan(m->scale[b])) ||
                           (m->scale[b] == 0.0 && p->scale[b] == 0);
        if (!m->near_scale[b] && !dp_tally_check(tally, equal)) {
            dp_tally_note(tally, "%s: scale %d is %g, %g expected", route->name, b, got,
                          m->scale[b]);
        }
    }
    for (int i = 0; i < keys; i++) {
        const int b = block > 0 ? i / block : 0;
        const bool near = m->near_code[i] || (block > 0 && route->fake && m->near_scale[b]);
        *skipped += near;
        const double got = decoded_code(route, p->code[i]);
        const double expected = route->fake || row->pv == 's' ? m->weight[i] : m->code[i];
        /* under a scale of 0 the code is without meaning: NaN or 0 */
        const bool idle = block == 16 && m->scale[b] == 0.0;
        if (!near && !idle && !dp_tally_check(tally, got == expected)) {
            dp_tally_note(tally, "%s: code %d is %g, %g expected", route->name, i, got, expected);
        }
    }
}

/* Scores in octaves of one tile: some far below, some hidden, later tiles sometimes far above. */
static void draw(dp_rng *rng, int keys, int tile, double spread, float *raw)
{
    const double lift = dp_rng_below(rng, 3) == 0 ? 12.0 * dp_rng_unit(rng) : 0.0;
    const bool hidden = tile == 2 && dp_rng_below(rng, 4) == 0;
    for (int i = 0; i < keys; i++) {
        const double z = spread * dp_rng_normal(rng) + lift - 4.0;
        raw[i] = hidden || dp_rng_below(rng, 40) == 0 ? -INFINITY : (float)z;
    }
}

static void run_row(const dp_route *route, const model_row *row, dp_rng *rng, double spread,
                    dp_tally *tally, uint64_t *skipped)
{
    const int keys = (int)dp_route_tile_keys(route);
    dp_route_row state = {-INFINITY, 0.0f};
    model_state expected = {-INFINITY, 0.0};
    for (int t = 0; t < TILES; t++) {
        float raw[DP_ROUTE_TILE];
        double exact[DP_ROUTE_TILE];
        draw(rng, keys, t, spread, raw);
        for (int i = 0; i < keys; i++) {
            exact[i] = (double)raw[i];
        }
        static dp_route_p p;
        static model_p m;
        const float factor = dp_route_tile(route, dp_sfu_exact(), 1.0f, t == 0, raw, &state, &p);
        const double wanted = model_tile(row, 1.0, t == 0, exact, keys, &expected, &m);
        if (!dp_tally_check(tally, fabs((double)factor - wanted) <= 2e-6 * wanted)) {
            dp_tally_note(tally, "%s: factor %g, %g expected", route->name, (double)factor, wanted);
        }
        compare_p(route, row, &p, &m, keys, tally, skipped);
        /* one code at a tie is a twelfth of its block at most */
        const double loose = row->sum == 'r' ? 2e-2 : row->sum == 'b' ? 2e-3 : 1e-4;
        const double off = fabs((double)state.sum - expected.sum);
        const bool lost = isnan(expected.sum) && isnan((double)state.sum);
        if (!dp_tally_check(tally, lost || off <= loose * expected.sum)) {
            dp_tally_note(tally, "%s: sum %g, %g expected", route->name, (double)state.sum,
                          expected.sum);
        }
        expected.sum = (double)state.sum; /* one tie does not fail the tiles after it */
        if (isnan(expected.sum)) {
            return;
        }
    }
}

START_TEST(tiles_by_another_derivation)
{
    dp_rng rng = {20260814};
    uint64_t cases = 0, skipped = 0;
    for (size_t r = 0; r < dp_route_count(); r++) {
        const dp_route *route = dp_route_at(r);
        const model_row *row = row_named(route->name);
        dp_tally tally = {0};
        uint64_t mine = 0;
        for (int i = 0; i < TRIALS; i++) {
            run_row(route, row, &rng, 0.5 + i % 6, &tally, &mine);
        }
        dp_assert_tally(tally, route->tile == 32 ? 7000 : 15000);
        /* MX: the row's maximum, 448 or 6, is where the exponent changes: a hair decides */
        const bool mx = row->pv == 'x' || row->pv == 'm';
        const uint64_t share = mx ? 6 : row->loose > 0.0 ? 16 : 50;
        ck_assert_msg(mine < tally.cases / share, "%s: %" PRIu64 " of %" PRIu64 " left out",
                      route->name, mine, tally.cases);
        cases += tally.cases;
        skipped += mine;
    }
    printf("%" PRIu64 " codes, bytes, factors and sums; %" PRIu64 " more lie on a boundary\n",
           cases, skipped);
}
END_TEST

enum { QUERIES = 150, KEYS = 300, DIM = 64 };

static double draw_bf16(dp_rng *rng, double factor, double offset, uint16_t *bits)
{
    const dp_bf16 x =
        dp_bf16_from_f32((float)(factor * dp_rng_normal(rng) + offset), DP_ENCODE_PTX);
    *bits = x.bits;
    return (double)dp_bf16_to_f32(x);
}

/* Outputs and LSE of a head, peaked, with a common offset in the first features of Q and K. The
 * bounds that are wider: Hopper's FP8 sums keep 13 fraction bits; stabilised-mx-mx puts the row's
 * maximum on the switch of the MX exponent, which the last bit of a score then decides. */
START_TEST(whole_outputs_by_another_derivation)
{
    static uint16_t q[QUERIES * DIM], k[KEYS * DIM], v[KEYS * DIM], o[QUERIES * DIM];
    static double exact_q[QUERIES * DIM], exact_k[KEYS * DIM], exact_v[KEYS * DIM];
    static double expected[QUERIES * DIM];
    static float lse[QUERIES];
    static double expected_lse[QUERIES];
    dp_rng rng = {8};
    for (int i = 0; i < QUERIES * DIM; i++) {
        exact_q[i] = draw_bf16(&rng, 1.5, i % DIM < 6 ? 1.0 : 0.0, &q[i]);
    }
    for (int i = 0; i < KEYS * DIM; i++) {
        exact_k[i] = draw_bf16(&rng, 1.0, i % DIM < 6 ? 1.0 : 0.0, &k[i]);
        exact_v[i] = draw_bf16(&rng, 1.0, 0.0, &v[i]);
    }
    const dp_attention in = {.batch = 1,
                             .q_heads = 1,
                             .kv_heads = 1,
                             .queries = QUERIES,
                             .keys = KEYS,
                             .dim = DIM,
                             .q = q,
                             .k = k,
                             .v = v};
    for (size_t r = 0; r < dp_route_count(); r++) {
        const dp_route *route = dp_route_at(r);
        const model_row *row = row_named(route->name);
        dp_error error = {""};
        ck_assert_msg(dp_route_run(&in, route, NULL, NULL, 2, o, lse, NULL, &error), "%s",
                      error.text);
        model_attention(row, QUERIES, KEYS, DIM, exact_q, exact_k, exact_v, expected, expected_lse);
        double difference = 0.0, norm = 0.0, worst = 0.0;
        for (int i = 0; i < QUERIES * DIM; i++) {
            const dp_bf16 x = {o[i]};
            difference += pow((double)dp_bf16_to_f32(x) - expected[i], 2);
            norm += expected[i] * expected[i];
        }
        for (int i = 0; i < QUERIES; i++) {
            worst = fmax(worst, fabs((double)lse[i] - expected_lse[i]));
        }
        /* 1.7e-3 is BF16's rounding of the output. Above it: single codes at boundaries. */
        const double most = route->p == DP_OPERAND_E4M3_SM90 && route->qk == route->p ? 4e-3
                            : row->qk == 'm' && row->pv == 'm' && row->degree == 0    ? 1e-2
                            : row->rounded                                            ? 3e-3
                                                                                      : 1.8e-3;
        const double lse_most = most == 4e-3     ? 1e-3
                                : most == 1e-2   ? 1e-2
                                : row->loose > 0 ? 4e-5
                                                 : 2e-6;
        /* and the 13 bits are seen */
        ck_assert(most != 4e-3 || worst > 1e-4);
        ck_assert_msg(sqrt(difference / norm) < most && worst < lse_most,
                      "%s: output off by %.2e, LSE by %.2e", route->name, sqrt(difference / norm),
                      worst);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route_golden");
    TCase *tests = tcase_create("route_golden");
    tcase_add_test(tests, tiles_by_another_derivation);
    tcase_add_test(tests, whole_outputs_by_another_derivation);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
