/* SPDX-License-Identifier: MIT
 *
 * The correctly rounded special functions against MPFR. The C library's long double function is
 * used as a sieve: where its 64-bit result lies farther than 2^-44 (relative) from every midpoint
 * of two f32 it already determines the rounding; the rest, about one in 2^19, is decided by MPFR.
 * Run with "exhaustive" it covers all 2^32 inputs of each function.
 */
#include <float.h>
#include <math.h>
#include <mpfr.h>

#include "formats/parallel.h"
#include "ref/arith/sfu.h"
#include "support.h"

typedef struct {
    const char *name;
    uint32_t (*ours)(uint32_t);
    long double (*sieve)(long double);
    int (*mpfr)(mpfr_t, const mpfr_t, mpfr_rnd_t);
} function;

static long double reciprocal_l(long double x)
{
    return 1.0L / x;
}
static int reciprocal_mpfr(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_ui_div(r, 1, x, rnd);
}
static int exp2_mpfr(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_exp2(r, x, rnd);
}
static int log2_mpfr(mpfr_t r, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_log2(r, x, rnd);
}

static const function ex2 = {"ex2", dp_ex2_exact, exp2l, exp2_mpfr};
static const function rcp = {"rcp", dp_rcp_exact, reciprocal_l, reciprocal_mpfr};
static const function lg2 = {"lg2", dp_lg2_exact, log2l, log2_mpfr};

static uint32_t by_mpfr(const function *f, float x)
{
    mpfr_t argument, result;
    mpfr_init2(argument, 24);
    mpfr_init2(result, 24);
    mpfr_set_flt(argument, x, MPFR_RNDN);
    f->mpfr(result, argument, MPFR_RNDN);
    const uint32_t bits = dp_f32_bits(mpfr_get_flt(result, MPFR_RNDN));
    mpfr_clear(argument);
    mpfr_clear(result);
    return bits;
}

/* True if v, a good approximation, is safely on one side of every f32 midpoint. */
static bool clear_of_midpoints(long double v)
{
#if LDBL_MANT_DIG == 64
    if (!(fabsl(v) >= 0x1p-126L) || !(fabsl(v) < 0x1p128L)) {
        return false;
    }
    int exponent;
    const uint64_t bits = (uint64_t)ldexpl(frexpl(fabsl(v), &exponent), 64);
    const int64_t distance = (int64_t)(bits & 0xFFFFFFFFFFu) - ((int64_t)1 << 39);
    return distance > (1 << 20) || distance < -(1 << 20);
#else
    (void)v;
    return false;
#endif
}

static uint32_t reference(const function *f, uint32_t x)
{
    const float argument = dp_f32_from_bits(dp_f32_bits_is_nan(x)   ? 0x7FC00000u
                                            : (x & DP_F32_INF) == 0 ? x & DP_F32_SIGN
                                                                    : x);
    const long double v = f->sieve((long double)argument);
    uint32_t bits = clear_of_midpoints(v) ? dp_f32_bits((float)v) : by_mpfr(f, argument);
    if (dp_f32_bits_is_nan(bits)) {
        return 0x7FFFFFFFu;
    }
    return (bits & DP_F32_INF) == 0 ? bits & DP_F32_SIGN : bits;
}

typedef struct {
    const function *f;
    uint64_t step;
    dp_tally tally[64];
} sweep;

static void sweep_body(void *context, size_t first, size_t last, int thread)
{
    sweep *s = context;
    for (size_t n = first; n < last; n++) {
        const uint32_t x = (uint32_t)(n * s->step);
        const uint32_t got = s->f->ours(x);
        const uint32_t want = reference(s->f, x);
        if (!dp_tally_check(&s->tally[thread], got == want)) {
            dp_tally_note(&s->tally[thread], "%s(%08x): %08x, MPFR %08x", s->f->name, x, got, want);
        }
    }
    mpfr_free_cache();
}

static bool exhaustive = false;

static dp_tally run_sweep(const function *f, uint64_t step)
{
    static sweep s;
    memset(&s, 0, sizeof s);
    s.f = f;
    s.step = step;
    const int threads = dp_parallel_threads(0) < 64 ? dp_parallel_threads(0) : 64;
    dp_parallel_for(threads, (size_t)(((UINT64_C(1) << 32) + step - 1) / step), 1 << 16, sweep_body,
                    &s);
    dp_tally total = {0};
    for (int t = 0; t < 64; t++) {
        dp_tally_merge(&total, &s.tally[t]);
    }
    return total;
}

static void check_octave(const function *f, uint32_t exponent, uint32_t step)
{
    dp_tally tally = {0};
    for (uint32_t i = 0; i < 1u << 23; i += step) {
        const uint32_t x = exponent << 23 | i;
        const uint32_t got = f->ours(x);
        if (!dp_tally_check(&tally, got == reference(f, x))) {
            dp_tally_note(&tally, "%s(%08x): %08x, MPFR %08x", f->name, x, got, reference(f, x));
        }
    }
    dp_assert_tally(tally, (1u << 23) / step);
}

static void check_function(const function *f)
{
    /* 1021 is odd: every exponent, every residue of the mantissa */
    dp_tally tally = run_sweep(f, exhaustive ? 1 : 1021);
    dp_assert_tally(tally, exhaustive ? UINT64_C(1) << 32 : 4000000);
}

START_TEST(exp2_is_correctly_rounded)
{
    check_function(&ex2);
    check_octave(&ex2, 127, 1);
}
END_TEST

START_TEST(reciprocal_is_correctly_rounded)
{
    check_function(&rcp);
    check_octave(&rcp, 127, 1);
}
END_TEST

START_TEST(log2_is_correctly_rounded)
{
    check_function(&lg2);
    check_octave(&lg2, 126, 7);
    check_octave(&lg2, 127, 1);
}
END_TEST

/* Inputs next to every place where something changes: specials, flush and overflow limits, powers.
 */
START_TEST(boundaries)
{
    static const uint32_t centres[] = {0x00000000u, 0x00800000u, 0x33000000u, 0x32800000u,
                                       0x3F800000u, 0x3F3504F3u, 0x3FB504F3u, 0x42FC0000u,
                                       0x43000000u, 0x43160000u, 0x7E800000u, 0x7F000000u,
                                       0x7F800000u, 0x7FC00000u, 0x80000000u, 0xFFFFFFFFu};
    const function *all[3] = {&ex2, &rcp, &lg2};
    dp_tally tally = {0};
    for (size_t k = 0; k < sizeof centres / sizeof centres[0]; k++) {
        for (uint32_t offset = 0; offset < 8192; offset++) {
            for (int sign = 0; sign < 2; sign++) {
                const uint32_t x = (centres[k] + offset - 4096u) ^ (sign != 0 ? DP_F32_SIGN : 0);
                for (int f = 0; f < 3; f++) {
                    const uint32_t got = all[f]->ours(x);
                    if (!dp_tally_check(&tally, got == reference(all[f], x))) {
                        dp_tally_note(&tally, "%s(%08x): %08x, want %08x", all[f]->name, x, got,
                                      reference(all[f], x));
                    }
                }
            }
        }
    }
    dp_assert_tally(tally, 700000);
}
END_TEST

/* PTX ISA 9.1, tables of ex2, rcp and lg2. */
START_TEST(special_values)
{
    static const uint32_t in[] = {0xFF800000u, 0x80000000u, 0x00000000u, 0x7F800000u,
                                  0x7FC00001u, 0xFFC00001u, 0x80000001u, 0x007FFFFFu};
    static const uint32_t want_ex2[] = {0,           0x3F800000u, 0x3F800000u, 0x7F800000u,
                                        0x7FFFFFFFu, 0x7FFFFFFFu, 0x3F800000u, 0x3F800000u};
    static const uint32_t want_rcp[] = {0x80000000u, 0xFF800000u, 0x7F800000u, 0,
                                        0x7FFFFFFFu, 0x7FFFFFFFu, 0xFF800000u, 0x7F800000u};
    static const uint32_t want_lg2[] = {0x7FFFFFFFu, 0xFF800000u, 0xFF800000u, 0x7F800000u,
                                        0x7FFFFFFFu, 0x7FFFFFFFu, 0xFF800000u, 0xFF800000u};
    for (int i = 0; i < 8; i++) {
        ck_assert_uint_eq(dp_sfu_ex2(dp_sfu_exact(), in[i]), want_ex2[i]);
        ck_assert_uint_eq(dp_sfu_rcp(dp_sfu_exact(), in[i]), want_rcp[i]);
        ck_assert_uint_eq(dp_sfu_lg2(dp_sfu_exact(), in[i]), want_lg2[i]);
    }
    ck_assert_uint_eq(dp_lg2_exact(0xBF800000u), 0x7FFFFFFFu);
    ck_assert_uint_eq(dp_ex2_exact(0xC2FC0000u), 0x00800000u); /* 2^-126 survives */
    ck_assert_uint_eq(dp_ex2_exact(0xC2FC0001u), 0);
    ck_assert_uint_eq(dp_ex2_exact(0x42FFFFFFu), 0x7F7FFFA7u);
    ck_assert_uint_eq(dp_lg2_exact(0x41000000u), 0x40400000u);
    ck_assert(dp_ex2_approx_ftz(dp_sfu_exact(), 3.0f) == 8.0f);
    ck_assert(dp_rcp_approx_ftz(dp_sfu_exact(), -4.0f) == -0.25f);
    ck_assert(dp_lg2_approx_ftz(dp_sfu_exact(), 0.25f) == -2.0f);
}
END_TEST

int main(int argc, char **argv)
{
    exhaustive = argc > 1 && strcmp(argv[1], "exhaustive") == 0;
    Suite *suite = suite_create("sfu exact");
    TCase *tcase = tcase_create("sfu exact");
    tcase_add_test(tcase, exp2_is_correctly_rounded);
    tcase_add_test(tcase, reciprocal_is_correctly_rounded);
    tcase_add_test(tcase, log2_is_correctly_rounded);
    tcase_add_test(tcase, boundaries);
    tcase_add_test(tcase, special_values);
    suite_add_tcase(suite, tcase);
    return dp_run_suite(suite);
}
