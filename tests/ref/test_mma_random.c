/* SPDX-License-Identifier: MIT
 *
 * Every instruction of the table against the reference of mma_reference.h, on drawn operands made
 * to hurt: cancellation, terms at the edge of the alignment window, zero groups under large scales,
 * subnormals, special values, C at minus the sum. "slow" as argument draws 10^8 cases.
 */
#include <stdlib.h>

#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/fp16.h"
#include "formats/parallel.h"
#include "mma_draw.h"
#include "ref/arith/mma_term.h"
#include "support.h"

enum { MAX_K = 128, CHUNK = 4096, VARIANTS = 6 };

static size_t cases = 600000;

typedef struct {
    const dp_mma_desc *desc;
    dp_mma_switches switches;
    size_t k;
    uint32_t a[MAX_K], b[MAX_K];
    uint8_t sfa[8], sfb[8];
    uint32_t c;
} drawn;

/* A code whose exponent is as near to e as the format allows, subnormals included. */
static uint32_t code_near(dp_rng *rng, ref_format f, int e)
{
    const int field = e - ref_emin(f) + 1;
    const int top = (1 << f.exponent_bits) - 1;
    return code_in_window(rng, f, (uint32_t)(field < 0 ? 0 : field > top ? top : field), 0);
}

/* One product, its negative, and all others at the lower edge of the window it opens. */
static void draw_edge(dp_rng *rng, drawn *x)
{
    const ref_format fa = ref_format_of(x->desc->atype);
    const ref_format fb = ref_format_of(x->desc->btype);
    const uint32_t a = draw_code(rng, fa, 3, dp_rng_below(rng, 32), 4);
    const uint32_t b = draw_code(rng, fb, 3, dp_rng_below(rng, 32), 4);
    const int edge = ref_exponent(ref_value_of(fa, a), ref_emin(fa)) +
                     ref_exponent(ref_value_of(fb, b), ref_emin(fb)) - x->desc->fraction;
    for (size_t i = 0; i < x->k; i++) {
        const uint32_t range = (1u << fa.exponent_bits) - 1u;
        const int e = ref_emin(fa) + (int)dp_rng_below(rng, range);
        x->a[i] = code_near(rng, fa, e);
        x->b[i] = code_near(rng, fb, edge - e + (int)dp_rng_below(rng, 8) - 1);
    }
    const size_t i = dp_rng_below(rng, (uint32_t)x->k);
    const size_t j = dp_rng_below(rng, 2) != 0 ? i ^ 4u : dp_rng_below(rng, (uint32_t)x->k);
    x->a[i] = a, x->b[i] = b;
    x->a[j] = a ^ (1u << (fa.exponent_bits + fa.mantissa_bits)), x->b[j] = b;
}

static void draw_elements(dp_rng *rng, drawn *x)
{
    const ref_format fa = ref_format_of(x->desc->atype);
    const ref_format fb = ref_format_of(x->desc->btype);
    const int style = (int)dp_rng_below(rng, 8);
    const uint32_t width = dp_rng_below(rng, 12);
    const uint32_t low_a = dp_rng_below(rng, 1u << fa.exponent_bits);
    const uint32_t low_b = dp_rng_below(rng, 1u << fb.exponent_bits);
    for (size_t i = 0; i < x->k; i++) {
        x->a[i] = draw_code(rng, fa, style, low_a, width);
        x->b[i] = draw_code(rng, fb, style, low_b, width);
    }
    if (dp_rng_below(rng, 3) == 0) { /* cancelling pairs at random distance */
        for (size_t i = 0; i < x->k; i++) {
            const size_t j = dp_rng_below(rng, (uint32_t)x->k);
            if (i != j && dp_rng_below(rng, 2) != 0) {
                x->a[j] = x->a[i] ^ (1u << (fa.exponent_bits + fa.mantissa_bits));
                x->b[j] = x->b[i];
            }
        }
    }
    if (dp_rng_below(rng, 4) == 0) { /* whole groups of zeros */
        for (size_t i = 0; i < x->k; i++) {
            x->a[i] =
                (dp_rng_below(rng, 2) != 0 && i / 16 % 2 == 0) || i / 16 % 4 == 2 ? 0 : x->a[i];
        }
    }
    if (dp_rng_below(rng, 64) == 0) { /* nothing but minus zero */
        for (size_t i = 0; i < x->k; i++) {
            x->a[i] = 0;
            x->b[i] = 1u << (fb.exponent_bits + fb.mantissa_bits);
        }
    }
}

static void draw_scales(dp_rng *rng, drawn *x)
{
    static const uint8_t edges[] = {0, 1, 7, 8, 0x38, 0x7E, 0x7F, 0x80, 0xFE, 0xFF};
    const uint32_t style = dp_rng_below(rng, 4);
    const bool ue8m0 = x->desc->scale == DP_MMA_UE8M0;
    const uint32_t middle = ue8m0 ? dp_rng_below(rng, 240) : dp_rng_below(rng, 0x70);
    for (int i = 0; i < 8; i++) {
        uint8_t *const s[2] = {&x->sfa[i], &x->sfb[i]};
        for (int j = 0; j < 2; j++) {
            const uint32_t limit = ue8m0 ? 255 : 127;
            *s[j] = style == 0   ? (uint8_t)dp_rng_below(rng, limit)
                    : style == 1 ? edges[dp_rng_below(rng, sizeof edges)]
                    : style == 2 ? (uint8_t)(middle + dp_rng_below(rng, 16))
                                 : (uint8_t)((ue8m0 ? 111u : 0x28u) + dp_rng_below(rng, 32));
        }
    }
}

/* The largest exponent of a product and the sum of them all, roughly: where C begins to matter. */
static double rough_sum(const drawn *x, int *largest)
{
    const ref_format fa = ref_format_of(x->desc->atype);
    const ref_format fb = ref_format_of(x->desc->btype);
    double sum = 0.0;
    *largest = -200;
    for (size_t i = 0; i < x->k; i++) {
        double v = ref_element(x->desc->a, fa, x->a[i]) * ref_element(x->desc->b, fb, x->b[i]);
        if (x->desc->scale == DP_MMA_UE8M0) {
            const size_t s = i / x->desc->block;
            v = ldexp(v, x->sfa[s] + x->sfb[s] - 254);
        } else if (x->desc->scale == DP_MMA_UE4M3) {
            const size_t s = i / x->desc->block;
            v *=
                ref_table[DP_MMA_E4M3][x->sfa[s] & 0x7F] * ref_table[DP_MMA_E4M3][x->sfb[s] & 0x7F];
        }
        if (isfinite(v) && v != 0.0) {
            sum += v;
            *largest = ilogb(v) > *largest ? ilogb(v) : *largest;
        }
    }
    return sum;
}

static uint32_t f32_code(double v)
{
    return dp_f32_bits((float)v);
}

static void draw_c(dp_rng *rng, drawn *x)
{
    const bool f16 = x->desc->result == DP_MMA_F16_RNE;
    int largest;
    const double sum = rough_sum(x, &largest);
    uint32_t f32 = 0;
    switch (dp_rng_below(rng, 7)) {
    case 0:
        f32 = dp_rng_below(rng, 2) << 31;
        break;
    case 1: /* minus the sum, a few units away */
        f32 = f32_code(-sum) + dp_rng_below(rng, 5) - 2u;
        break;
    case 2: /* at the lower edge of the window */
        f32 = f32_code(ldexp(1.0 + dp_rng_unit(rng),
                             largest - (int)dp_rng_below(rng, 44) - (f16 ? 0 : 4))) |
              (dp_rng_u32(rng) & DP_F32_SIGN);
        break;
    case 3: /* above it */
        f32 = f32_code(ldexp(1.0 + dp_rng_unit(rng), largest + (int)dp_rng_below(rng, 44))) |
              (dp_rng_u32(rng) & DP_F32_SIGN);
        break;
    case 4:
        f32 = dp_f32_bits(dp_rng_nasty_f32(rng));
        break;
    case 5:
        f32 = f32_code(sum * (dp_rng_unit(rng) - 0.5));
        break;
    default:
        f32 = dp_rng_u32(rng);
        break;
    }
    x->c = f32;
    if (f16) {
        x->c = dp_rng_below(rng, 3) == 0
                   ? dp_rng_u32(rng) >> 16
                   : (uint32_t)dp_fp16_from_f32(dp_f32_from_bits(f32), DP_ENCODE_NONSAT).bits;
    }
}

/* An instruction and its elements. */
static void draw(dp_rng *rng, drawn *x)
{
    size_t count;
    const dp_mma_desc *table = dp_mma_table(&count);
    /* grouped and emulated instructions are few rows of many: a third of the cases each */
    const uint32_t kind = dp_rng_below(rng, 3);
    do {
        x->desc = &table[dp_rng_below(rng, (uint32_t)count)];
    } while (x->desc->family == DP_MMA_UNKNOWN ||
             (kind == 1 && x->desc->family != DP_MMA_GROUPED) ||
             (kind == 2 && x->desc->family != DP_MMA_EMULATED));
    x->k = x->desc->k * (size_t)(1 + (dp_rng_below(rng, 8) == 0));
    draw_elements(rng, x);
    if (dp_rng_below(rng, 4) == 0) {
        draw_edge(rng, x);
    }
}

/* The rest of a case: several on the same elements. */
static void draw_surroundings(dp_rng *rng, drawn *x)
{
    const uint32_t bits = dp_rng_below(rng, 4) == 0 ? dp_rng_u32(rng) : 0u;
    x->switches = (dp_mma_switches){.zero_group = bits & 1u,
                                    .zero_sign = (bits >> 1) & 1u,
                                    .narrow_subnormal = (bits >> 2) & 1u,
                                    .fp8_c = (bits >> 3) & 1u};
    draw_scales(rng, x);
    draw_c(rng, x);
}

static uint32_t expected(const drawn *x)
{
    int terms;
    (void)ref_unit_of(x->desc, &x->switches, &terms);
    const int block = x->desc->block != 0 ? x->desc->block : terms;
    uint32_t c = x->c;
    for (size_t at = 0; at < x->k; at += (size_t)terms) {
        c = ref_instruction(x->desc, &x->switches, x->a + at, x->b + at,
                            x->sfa + at / (size_t)block, x->sfb + at / (size_t)block, c);
    }
    return c;
}

typedef struct {
    dp_tally tally[256];
} results;

static void check_chunk(void *context, size_t first, size_t last, int thread)
{
    results *all = context;
    dp_tally *tally = &all->tally[thread];
    for (size_t chunk = first; chunk < last; chunk++) {
        dp_rng rng = {.state = 0x6D6D6100000000u + chunk};
        drawn x;
        for (int i = 0; i < CHUNK; i++) {
            if (i % VARIANTS == 0) {
                draw(&rng, &x);
            }
            draw_surroundings(&rng, &x);
            uint32_t d = 0;
            dp_error error = {{0}};
            const bool done =
                dp_mma_element32(x.desc, &x.switches, x.k, x.a, x.b, x.sfa, x.sfb, x.c, &d, &error);
            const uint32_t wanted = expected(&x);
            if (!dp_tally_check(tally, done && d == wanted)) {
                dp_tally_note(tally,
                              "%s %s.%s->%s %s: c %08X d %08X expected %08X chunk %zu #%d %s",
                              x.desc->instruction, x.desc->atype, x.desc->btype, x.desc->dtype,
                              x.desc->arch, x.c, d, wanted, chunk, i, error.text);
            }
        }
    }
}

START_TEST(every_instruction_follows_the_rules)
{
    results *all = calloc(1, sizeof *all);
    ck_assert_ptr_nonnull(all);
    dp_parallel_for(0, (cases + CHUNK - 1) / CHUNK, 1, check_chunk, all);
    dp_tally total = {0};
    for (int i = 0; i < 256; i++) {
        dp_tally_merge(&total, &all->tally[i]);
    }
    free(all);
    (void)printf("%" PRIu64 " cases, seed base 0x6D6D6100000000\n", total.cases);
    dp_assert_tally(total, cases);
}
END_TEST

/* The element decoders against the definition, and against formats/, for every code. */
START_TEST(every_code_is_taken_apart_rightly)
{
    static const char *const names[DP_MMA_FORMATS] = {"e4m3", "e5m2", "e2m3", "e3m2",
                                                      "e2m1", "f16",  "bf16", "tf32"};
    dp_tally tally = {0};
    for (int f = 0; f < DP_MMA_FORMATS; f++) {
        const int bits = dp_mma_code_bits((dp_mma_format)f);
        for (uint32_t i = 0; i < 1u << (bits < 16 ? bits : 16); i++) {
            const uint32_t code = bits == 32 ? i * 65537u : i;
            for (int normalise = 0; normalise < 2; normalise++) {
                const dp_mma_term t = dp_mma_term_of((dp_mma_format)f, code, normalise != 0);
                const double v = ref_value(names[f], code);
                const double w = ldexp((double)t.sig, t.exp - dp_mma_fraction((dp_mma_format)f));
                const int emin = normalise != 0 ? REF_NO_EMIN : ref_emin(ref_format_of(names[f]));
                const bool same = isnan(v)   ? t.kind == DP_TERM_NAN
                                  : isinf(v) ? t.kind == DP_TERM_INF && (t.negative != 0) == (v < 0)
                                             : t.kind == DP_TERM_FINITE && w == v &&
                                                   (t.negative != 0) == (signbit(v) != 0) &&
                                                   t.exp == ref_exponent(v, emin);
                if (!dp_tally_check(&tally, same)) {
                    dp_tally_note(&tally, "%s code %X", names[f], code);
                }
            }
        }
    }
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        const double e4m3 = (double)dp_e4m3_to_f32((dp_e4m3){byte});
        const double e5m2 = (double)dp_e5m2_to_f32((dp_e5m2){byte});
        const double v = ref_value("e4m3", i);
        const double w = ref_value("e5m2", i);
        (void)dp_tally_check(&tally, isnan(v) ? isnan(e4m3) : v == e4m3);
        (void)dp_tally_check(&tally, isnan(w) ? isnan(e5m2) : w == e5m2);
        (void)dp_tally_check(&tally, (double)dp_e2m1_to_f32((dp_e2m1){byte & 15}) * 2.0 ==
                                         (double)dp_mma_e2m1_doubled[i & 15]);
    }
    dp_assert_tally(tally, 4 * 65536);
}
END_TEST

/* Rule 26 as a property: when no bit is lost, D is the exact sum truncated to f32; and drawn cases
 * must reach both sides. */
START_TEST(nvfp4_is_the_exact_sum_when_no_bit_is_lost)
{
    const dp_mma_desc *desc =
        dp_mma_find("tcgen05.mma.kind::mxf4nvf4.block16.ue4m3", "e2m1", "e2m1", "f32", "sm_100a");
    dp_rng rng = {.state = 0x26};
    dp_tally tally = {0};
    uint64_t lost = 0;
    uint64_t moved = 0;
    for (int i = 0; i < 100000; i++) {
        drawn x = {.desc = desc, .k = 64};
        draw_elements(&rng, &x);
        draw_scales(&rng, &x);
        for (int g = 0; g < 4; g++) {
            x.sfa[g] &= 0x7Eu;
            x.sfb[g] &= 0x7Eu;
        }
        draw_c(&rng, &x);
        const dp_mma_term c = dp_mma_term_of_c(false, x.c);
        if (c.kind != DP_TERM_FINITE) {
            continue;
        }
        double exponents[4];
        double term[4];
        double largest = c.sig != 0 ? c.exp : -139;
        for (int g = 0; g < 4; g++) {
            double q = 0;
            bool zeros = true;
            for (int k = 16 * g; k < 16 * g + 16; k++) {
                const double p = ref_table[DP_MMA_E2M1][x.a[k]] * ref_table[DP_MMA_E2M1][x.b[k]];
                q += p;
                zeros = zeros && p == 0.0;
            }
            const double s = ref_table[DP_MMA_E4M3][x.sfa[g]] * ref_table[DP_MMA_E4M3][x.sfb[g]];
            term[g] = q * s;
            exponents[g] = zeros || s == 0.0
                               ? -139
                               : ref_exponent(ref_table[DP_MMA_E4M3][x.sfa[g]], -6) +
                                     ref_exponent(ref_table[DP_MMA_E4M3][x.sfb[g]], -6);
            largest = exponents[g] > largest ? exponents[g] : largest;
        }
        mpfr_t sum;
        mpfr_init2(sum, 600);
        mpfr_set_flt(sum, dp_f32_from_bits(x.c), MPFR_RNDN);
        bool exact =
            c.sig == 0 || fmod((double)dp_f32_from_bits(x.c), ldexp(1.0, (int)largest - 35)) == 0.0;
        for (int g = 0; g < 4; g++) {
            (void)mpfr_add_d(sum, sum, term[g], MPFR_RNDN);
            exact = exact && (term[g] == 0.0 || exponents[g] >= largest - 27);
        }
        const float rz = mpfr_get_flt(sum, MPFR_RNDZ);
        mpfr_clear(sum);
        uint32_t d = 0;
        dp_error error = {{0}};
        ck_assert(dp_mma_element32(desc, NULL, 64, x.a, x.b, x.sfa, x.sfb, x.c, &d, &error));
        const bool same = d == (rz == 0.0f ? 0u : dp_f32_bits(rz));
        const bool overflow = (d & DP_F32_ABS) == DP_F32_INF;
        lost += !exact;
        moved += !exact && !same;
        if (exact && !overflow && !dp_tally_check(&tally, same)) {
            dp_tally_note(&tally, "case %d: %08X, exact sum truncates to %08X", i, d,
                          dp_f32_bits(rz));
        }
    }
    dp_assert_tally(tally, 25000);
    ck_assert_msg(lost > 1000 && moved > 100, "%" PRIu64 " lost a bit, %" PRIu64 " moved", lost,
                  moved);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "slow") == 0) {
        cases = 100000000;
    } else if (argc > 1) {
        cases = strtoul(argv[1], NULL, 10);
    }
    ref_fill_table();
    Suite *suite = suite_create("mma random");
    TCase *tests = tcase_create("mma random");
    tcase_add_test(tests, every_code_is_taken_apart_rightly);
    tcase_add_test(tests, nvfp4_is_the_exact_sum_when_no_bit_is_lost);
    tcase_add_test(tests, every_instruction_follows_the_rules);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
