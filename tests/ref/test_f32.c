/* SPDX-License-Identifier: MIT
 *
 * ref/arith/f32.h against MPFR, and ref/arith/f32_fast.h against ref/arith/f32.h.
 * Run with the argument "exhaustive" it draws 10^8 cases of each instead of 10^6.
 */
#include <fenv.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "ref/arith/f32.h"
#include "ref/arith/f32_fast.h"
#include "support.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static uint64_t draws = 1000000;

static const mpfr_rnd_t mpfr_mode[4] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDD, MPFR_RNDU};

/* Operands that hurt a sum of a product and a number: the third is often the rounded product
 * negated, a few ulps off, or many binades away, and the product is often near the subnormal limit.
 */
static void draw(dp_rng *rng, uint32_t v[3])
{
    for (int i = 0; i < 3; i++) {
        v[i] = dp_f32_bits(dp_rng_nasty_f32(rng));
    }
    const uint32_t kind = dp_rng_below(rng, 9);
    if (kind == 0 || kind == 1) { /* cancellation */
        const double product = (double)dp_f32_from_bits(v[0]) * (double)dp_f32_from_bits(v[1]);
        v[2] = (dp_f32_bits((float)product) ^ DP_F32_SIGN) + dp_rng_below(rng, 5) - 2u;
    } else if (kind == 2) { /* product next to 2^-126 */
        const uint32_t e = 1 + dp_rng_below(rng, 253);
        v[0] = e << 23 | dp_rng_u32(rng) >> 9;
        v[1] = (254 - 126 - e + dp_rng_below(rng, 3)) << 23 | dp_rng_u32(rng) >> 9;
        v[1] &= DP_F32_ABS;
        v[2] = dp_rng_below(rng, 2) == 0 ? v[2] & 0x80FFFFFFu : v[2];
    } else if (kind == 3) { /* addend about half an ulp of the product, or its tie */
        const double product = (double)dp_f32_from_bits(v[0]) * (double)dp_f32_from_bits(v[1]);
        const uint32_t p = dp_f32_bits((float)product);
        const uint32_t shift = (22u + dp_rng_below(rng, 28)) << 23;
        v[2] = (p & DP_F32_ABS) > shift ? p - shift : p;
        v[2] ^= dp_rng_u32(rng) & DP_F32_SIGN;
        v[2] &= dp_rng_below(rng, 2) == 0 ? 0xFF800000u : 0xFFFFFFFFu;
    } else if (kind == 4) { /* factors with few bits: exact ties */
        v[0] &= 0xFFFFF000u;
        v[1] &= 0xFFFFF000u;
    } else if (kind ==
               8) { /* exact results within an ulp of 2^-126: (1 - d)(1 + d') 2^-126 +- few ulp */
        v[0] = 0x3F800000u + dp_rng_below(rng, 9) - 4u;
        v[1] = 0x00800000u + dp_rng_below(rng, 5);
        v[2] = dp_rng_below(rng, 2) == 0 ? 0x80000000u : 0x00800000u + dp_rng_below(rng, 5);
        if (v[2] < DP_F32_SIGN &&
            v[2] != 0) { /* twice as large a product, minus about half of it */
            v[0] += 0x00800000u;
            v[2] |= DP_F32_SIGN;
        }
        const uint32_t flip = dp_rng_u32(rng) & DP_F32_SIGN;
        v[0] ^= flip;
        v[2] ^= flip;
    } else if (kind == 5) { /* sums of neighbours in exponent */
        v[2] = (v[0] & 0xFF800000u) + dp_rng_below(rng, 1u << 25) - (1u << 24);
        v[1] = 0x3F800000u;
    }
}

typedef enum { ADD, SUB, MUL, FMA } operation;

static int apply(mpfr_t r, operation op, mpfr_t x[3], mpfr_rnd_t rnd)
{
    switch (op) {
    case ADD:
        return mpfr_add(r, x[0], x[1], rnd);
    case SUB:
        return mpfr_sub(r, x[0], x[1], rnd);
    case MUL:
        return mpfr_mul(r, x[0], x[1], rnd);
    case FMA:
    default:
        return mpfr_fma(r, x[0], x[1], x[2], rnd);
    }
}

/* MPFR's answer: exact inputs, one rounding to 24 bits. Without .ftz the exponents are those of
 * binary32; with it they are unbounded below until the result is judged. */
static uint32_t reference(operation op, const uint32_t v[3], dp_f32_mode mode)
{
    static mpfr_t x[3], r;
    static bool ready = false;
    if (!ready) {
        for (int i = 0; i < 3; i++) {
            mpfr_init2(x[i], 24);
        }
        mpfr_init2(r, 24);
        mpfr_set_emax(128);
        ready = true;
    }
    const bool keep = mode.subnormal == DP_F32_KEEP;
    mpfr_set_emin(keep ? -148 : -1000);
    for (int i = 0; i < 3; i++) {
        const bool flush = !keep && (v[i] & 0x7F800000u) == 0;
        mpfr_set_flt(x[i], dp_f32_from_bits(flush ? v[i] & 0x80000000u : v[i]), MPFR_RNDN);
    }
    const mpfr_rnd_t rnd = mpfr_mode[mode.round];
    bool flushed = false;
    if (mode.subnormal == DP_F32_FTZ_EXACT) { /* toward zero crosses no power of two */
        apply(r, op, x, MPFR_RNDZ);
        flushed = mpfr_regular_p(r) && mpfr_get_exp(r) < -125;
    }
    const int inexact = apply(r, op, x, rnd);
    if (keep) {
        mpfr_subnormalize(r, inexact, rnd);
    } else if (flushed || (mpfr_regular_p(r) && mpfr_get_exp(r) < -125)) {
        mpfr_set_zero(r, mpfr_signbit(r) != 0 ? -1 : 1);
    }
    return mpfr_nan_p(r) ? 0x7FFFFFFFu : dp_f32_bits(mpfr_get_flt(r, MPFR_RNDN));
}

static uint32_t ours(operation op, const uint32_t v[3], dp_f32_mode mode)
{
    switch (op) {
    case ADD:
        return dp_f32_add(v[0], v[1], mode);
    case SUB:
        return dp_f32_sub(v[0], v[1], mode);
    case MUL:
        return dp_f32_mul(v[0], v[1], mode);
    case FMA:
    default:
        return dp_f32_fma(v[0], v[1], v[2], mode);
    }
}

START_TEST(definition_equals_mpfr)
{
    dp_rng rng = {0xF3200001u};
    dp_tally tally = {0};
    const uint64_t count = draws;
    for (uint64_t n = 0; n < count; n++) {
        uint32_t v[3];
        draw(&rng, v);
        const uint32_t pick = dp_rng_u32(&rng);
        const operation op = (pick & 1u) != 0 ? FMA : (operation)(pick >> 1 & 3u);
        const dp_f32_mode mode = {(dp_f32_round)(pick >> 3 & 3u),
                                  (dp_f32_subnormal)((pick >> 5) % 3u)};
        const uint32_t want = reference(op, v, mode);
        const uint32_t got = ours(op, v, mode);
        if (!dp_tally_check(&tally, got == want)) {
            dp_tally_note(&tally, "op %d %08x %08x %08x round %d subnormal %d: %08x, MPFR %08x",
                          (int)op, v[0], v[1], v[2], (int)mode.round, (int)mode.subnormal, got,
                          want);
        }
    }
    dp_assert_tally(tally, count);
}
END_TEST

static void compare(dp_tally *tally, const char *name, const uint32_t v[3], float fast,
                    uint32_t definition)
{
    if (!dp_tally_check(tally, dp_f32_bits(fast) == definition)) {
        dp_tally_note(tally, "%s %08x %08x %08x: fast %08x, definition %08x", name, v[0], v[1],
                      v[2], dp_f32_bits(fast), definition);
    }
}

START_TEST(fast_equals_definition)
{
    dp_rng rng = {0xF3200002u};
    dp_tally tally = {0};
    const uint64_t count = 5 * draws;
    for (uint64_t n = 0; n < count; n++) {
        uint32_t v[3];
        draw(&rng, v);
        const float a = dp_f32_from_bits(v[0]);
        const float b = dp_f32_from_bits(v[1]);
        const float c = dp_f32_from_bits(v[2]);
        const uint32_t fused = dp_f32_fma(v[0], v[1], v[2], DP_F32_RN_FTZ);
        compare(&tally, "add", v, dp_add_rn_ftz(a, b), dp_f32_add(v[0], v[1], DP_F32_RN_FTZ));
        compare(&tally, "add2", v, dp_add_rn_ftz(a, c), dp_f32_add(v[0], v[2], DP_F32_RN_FTZ));
        compare(&tally, "sub", v, dp_sub_rn_ftz(a, b), dp_f32_sub(v[0], v[1], DP_F32_RN_FTZ));
        compare(&tally, "mul", v, dp_mul_rn_ftz(a, b), dp_f32_mul(v[0], v[1], DP_F32_RN_FTZ));
        compare(&tally, "fma", v, dp_fma_rn_ftz(a, b, c), fused);
        compare(&tally, "fma by doubles", v,
                dp_flush_round(dp_fma_odd(dp_ftz(a), dp_ftz(b), dp_ftz(c))), fused);
        const uint32_t kept = dp_f32_fma(v[0], v[1], v[2], DP_F32_RN_KEEP);
        const uint32_t doubles = dp_f32_bits(dp_fma_by_doubles(a, b, c));
        compare(&tally, "fma keep", v,
                dp_f32_from_bits(dp_f32_bits_is_nan(doubles) ? DP_F32_NAN : doubles), kept);
        compare(&tally, "add.rm", v, dp_add_rm_ftz(a, b), dp_f32_add(v[0], v[1], DP_F32_RM_FTZ));
        compare(&tally, "add.rm 2", v, dp_add_rm_ftz(a, c), dp_f32_add(v[0], v[2], DP_F32_RM_FTZ));
        compare(&tally, "max", v, dp_max_ftz(a, b), dp_f32_max(v[0], v[1], true, false));
        compare(&tally, "min", v, dp_min_ftz(a, b), dp_f32_min(v[0], v[1], true, false));
        dp_tally_check(&tally, dp_floor_s32_ftz(a) == dp_f32_floor_s32(v[0], true));
    }
    dp_assert_tally(tally, 12 * count);
}
END_TEST

/* IEEE gradual underflow on hardware: C's fmaf is a third opinion on the kept-subnormal fma. */
START_TEST(definition_equals_libm_fma)
{
    dp_rng rng = {0xF3200003u};
    dp_tally tally = {0};
    for (uint64_t n = 0; n < 5 * draws; n++) {
        uint32_t v[3];
        draw(&rng, v);
        const uint32_t got = dp_f32_fma(v[0], v[1], v[2], DP_F32_RN_KEEP);
        const float want =
            fmaf(dp_f32_from_bits(v[0]), dp_f32_from_bits(v[1]), dp_f32_from_bits(v[2]));
        const uint32_t bits = want != want ? 0x7FFFFFFFu : dp_f32_bits(want);
        if (!dp_tally_check(&tally, got == bits)) {
            dp_tally_note(&tally, "%08x %08x %08x: %08x, libm %08x", v[0], v[1], v[2], got, bits);
        }
    }
    dp_assert_tally(tally, 5 * draws);
}
END_TEST

/* FNV-1a over every kind of definition call. */
static uint64_t digest(void)
{
    dp_rng rng = {0xF3200004u};
    uint64_t hash = 0xCBF29CE484222325u;
    for (int n = 0; n < 100000; n++) {
        uint32_t v[3];
        for (int i = 0; i < 3; i++) { /* integers only: the generator must not feel the mode */
            v[i] = dp_rng_u32(&rng);
            v[i] = (n & 1) != 0 ? (v[i] & 0x80FFFFFFu) + (dp_rng_below(&rng, 3) << 23) : v[i];
        }
        const dp_f32_mode mode = {(dp_f32_round)(n >> 1 & 3), (dp_f32_subnormal)((n >> 3) % 3)};
        const uint32_t results[6] = {
            dp_f32_add(v[0], v[1], mode),        dp_f32_mul(v[0], v[1], mode),
            dp_f32_fma(v[0], v[1], v[2], mode),  dp_f32_min(v[0], v[1], true, false),
            dp_f32_max(v[0], v[1], false, true), (uint32_t)dp_f32_floor_s32(v[2], (n & 4) != 0)};
        for (int i = 0; i < 6; i++) {
            hash = (hash ^ results[i]) * 0x100000001B3u;
        }
    }
    return hash;
}

START_TEST(environment_changes_nothing)
{
    const uint64_t calm = digest();
    fenv_t saved;
    fegetenv(&saved);
    fesetround(FE_UPWARD);
    const uint64_t upward = digest();
    fesetround(FE_TOWARDZERO);
    const uint64_t truncated = digest();
    uint64_t flushed = calm;
#if defined(__x86_64__)
    const unsigned control = _mm_getcsr();
    _mm_setcsr(control | 0x8040u); /* FTZ and DAZ, still rounding toward zero */
    flushed = digest();
    _mm_setcsr(control);
#endif
    fesetenv(&saved);
    ck_assert_uint_eq(upward, calm);
    ck_assert_uint_eq(truncated, calm);
    ck_assert_uint_eq(flushed, calm);
}
END_TEST

/* Results next to 2^-126. The expected values of DP_F32_FTZ were returned by an H200 (CUDA 13.0,
 * driver 580.159): it rounds to 24 bits first, with unbounded exponent. */
START_TEST(flush_decision)
{
    const dp_f32_mode exact = {DP_F32_RN, DP_F32_FTZ_EXACT};
    /* 2^-126 - 2^-150 needs no rounding in 24 bits; gradual underflow would round it up */
    ck_assert_uint_eq(dp_f32_mul(0x3F7FFFFFu, 0x00800000u, DP_F32_RN_FTZ), 0);
    ck_assert_uint_eq(dp_f32_mul(0x3F7FFFFFu, 0x00800000u, DP_F32_RN_KEEP), 0x00800000u);
    ck_assert_uint_eq(dp_f32_fma(0x3F7FFFFFu, 0x00800001u, 0x81000000u, DP_F32_RN_FTZ),
                      0x80000000u);
    ck_assert_uint_eq(dp_f32_mul(0xBF000000u, 0x80FFFFFFu, DP_F32_RN_FTZ), 0);
    /* 2^-126 (1 - 2^-46) rounds up to 2^-126 */
    ck_assert_uint_eq(dp_f32_fma(0x80800001u, 0xBFFFFFFFu, 0x80800001u, DP_F32_RN_FTZ),
                      0x00800000u);
    ck_assert_uint_eq(dp_f32_fma(0x80800001u, 0xBFFFFFFFu, 0x80800001u, exact), 0);
    ck_assert_uint_eq(
        dp_f32_bits(dp_mul_rn_ftz(dp_f32_from_bits(0xBF7FFFFFu), dp_f32_from_bits(0x00800000u))),
        0x80000000u);
    /* subnormal operands are zeros of their sign, in every operation */
    ck_assert_uint_eq(dp_f32_add(0x807FFFFFu, 0x80000001u, DP_F32_RN_FTZ), 0x80000000u);
    ck_assert_uint_eq(dp_f32_mul(0x007FFFFFu, 0x7F800000u, DP_F32_RN_FTZ), 0x7FFFFFFFu);
}
END_TEST

START_TEST(zero_signs_and_specials)
{
    ck_assert_uint_eq(dp_f32_add(0x3F800000u, 0xBF800000u, DP_F32_RN_FTZ), 0);
    ck_assert_uint_eq(dp_f32_add(0x3F800000u, 0xBF800000u, DP_F32_RM_FTZ), 0x80000000u);
    ck_assert_uint_eq(dp_f32_add(0, 0x80000000u, DP_F32_RM_FTZ), 0x80000000u);
    ck_assert_uint_eq(dp_f32_add(0, 0, DP_F32_RM_FTZ), 0);
    ck_assert_uint_eq(dp_f32_fma(0x80000000u, 0x3F800000u, 0, DP_F32_RN_FTZ), 0);
    ck_assert_uint_eq(dp_f32_add(0x7F800000u, 0xFF800000u, DP_F32_RN_FTZ), 0x7FFFFFFFu);
    ck_assert_uint_eq(dp_f32_mul(0, 0xFF800000u, DP_F32_RN_FTZ), 0x7FFFFFFFu);
    ck_assert_uint_eq(dp_f32_add(0xFFC12345u, 0, DP_F32_RN_FTZ), 0x7FFFFFFFu);
    const dp_f32_mode rz = {DP_F32_RZ, DP_F32_FTZ};
    ck_assert_uint_eq(dp_f32_mul(0x7F7FFFFFu, 0x40000000u, rz), 0x7F7FFFFFu);
    ck_assert_uint_eq(dp_f32_mul(0x7F7FFFFFu, 0xC0000000u, DP_F32_RM_FTZ), 0xFF800000u);
}
END_TEST

START_TEST(min_and_max)
{
    ck_assert_uint_eq(dp_f32_min(0, 0x80000000u, false, false), 0x80000000u);
    ck_assert_uint_eq(dp_f32_max(0x80000000u, 0, false, false), 0);
    ck_assert_uint_eq(dp_f32_min(0x7FC00000u, 0x40000000u, false, false), 0x40000000u);
    ck_assert_uint_eq(dp_f32_max(0x40000000u, 0xFFC00001u, false, false), 0x40000000u);
    ck_assert_uint_eq(dp_f32_max(0x40000000u, 0xFFC00001u, false, true), 0x7FFFFFFFu);
    ck_assert_uint_eq(dp_f32_max(0xFFC00002u, 0xFFC00001u, false, false), 0x7FFFFFFFu);
    ck_assert_uint_eq(dp_f32_max(0x80000001u, 0x80000002u, true, false), 0x80000000u);
    ck_assert_uint_eq(dp_f32_max(0xFFC00002u, 0x00000001u, true, false), 0);
    dp_rng rng = {0xF3200005u};
    dp_tally tally = {0};
    for (int n = 0; n < 1000000; n++) {
        const float a = dp_rng_nasty_f32(&rng);
        const float b = dp_rng_nasty_f32(&rng);
        if (a == b || a != a || b != b) {
            continue;
        }
        const uint32_t low = dp_f32_min(dp_f32_bits(a), dp_f32_bits(b), false, false);
        const uint32_t high = dp_f32_max(dp_f32_bits(a), dp_f32_bits(b), false, false);
        const bool equal = low == dp_f32_bits(a < b ? a : b) && high == dp_f32_bits(a < b ? b : a);
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally, "%a %a", (double)a, (double)b);
        }
    }
    dp_assert_tally(tally, 500000);
}
END_TEST

static int32_t saturate(double integer)
{
    return integer != integer         ? 0
           : integer >= 2147483648.0  ? INT32_MAX
           : integer <= -2147483648.0 ? INT32_MIN
                                      : (int32_t)integer;
}

/* Every exponent and sign, a sample of mantissas, against libm's exact rounding functions. */
START_TEST(conversion_to_s32)
{
    dp_rng rng = {0xF3200006u};
    dp_tally tally = {0};
    const uint32_t step = draws > 1000000 ? 1 : 4093;
    for (uint64_t n = 0; n < (UINT64_C(1) << 32); n += step) {
        const uint32_t x = (uint32_t)n ^ (step > 1 ? dp_rng_below(&rng, 4) : 0);
        const double value = (double)dp_f32_from_bits(x);
        const double flushed = (double)dp_f32_from_bits(dp_f32_flush(x));
        const bool equal = dp_f32_floor_s32(x, false) == saturate(floor(value)) &&
                           dp_f32_floor_s32(x, true) == saturate(floor(flushed)) &&
                           dp_f32_to_s32(x, DP_F32_RP, false) == saturate(ceil(value)) &&
                           dp_f32_to_s32(x, DP_F32_RZ, false) == saturate(trunc(value)) &&
                           dp_f32_to_s32(x, DP_F32_RN, false) == saturate(nearbyint(value)) &&
                           dp_floor_s32_ftz(dp_f32_from_bits(x)) == saturate(floor(flushed));
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally, "%08x: floor %d", x, dp_f32_floor_s32(x, false));
        }
    }
    for (int n = 0; n < 1000000; n++) {
        const int32_t k = (int32_t)(dp_rng_u32(&rng) >> dp_rng_below(&rng, 32));
        const int32_t x = (n & 1) != 0 ? k : (int32_t)(0u - (uint32_t)k);
        dp_tally_check(&tally, dp_f32_from_s32(x) == dp_f32_bits((float)x));
    }
    dp_assert_tally(tally, 2000000);
}
END_TEST

START_TEST(pairs_are_two_operations)
{
    const dp_f32x2 a = dp_f32x2_pack(0x3F800000u, 0x40000000u);
    const dp_f32x2 b = dp_f32x2_pack(0x3F800001u, 0xC0000000u);
    ck_assert_uint_eq(a.bits, 0x400000003F800000u);
    ck_assert_uint_eq(dp_f32x2_add(a, b, DP_F32_RM_FTZ).bits, 0x8000000040000000u);
    ck_assert_uint_eq(dp_f32x2_mul(a, b, DP_F32_RN_FTZ).bits, 0xC08000003F800001u);
    ck_assert_uint_eq(dp_f32x2_fma(a, b, a, DP_F32_RN_FTZ).bits, 0xC000000040000000u);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exhaustive") == 0) {
        draws = 100000000;
    }
    printf("seeds 0xF3200001 .. 0xF3200006, %" PRIu64 " draws\n", draws);
    Suite *suite = suite_create("f32");
    TCase *against_mpfr = tcase_create("mpfr"); /* CK_RUN_CASE=mpfr runs it alone */
    tcase_add_test(against_mpfr, definition_equals_mpfr);
    suite_add_tcase(suite, against_mpfr);
    TCase *fast = tcase_create("fast");
    tcase_add_test(fast, fast_equals_definition);
    tcase_add_test(fast, definition_equals_libm_fma);
    suite_add_tcase(suite, fast);
    TCase *rules = tcase_create("rules");
    tcase_add_test(rules, environment_changes_nothing);
    tcase_add_test(rules, flush_decision);
    tcase_add_test(rules, zero_signs_and_specials);
    tcase_add_test(rules, min_and_max);
    tcase_add_test(rules, conversion_to_s32);
    tcase_add_test(rules, pairs_are_two_operations);
    suite_add_tcase(suite, rules);
    return dp_run_suite(suite);
}
