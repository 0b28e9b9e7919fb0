/* SPDX-License-Identifier: MIT
 *
 * The matrix units written a second time, from the rules of ref/arith/MMA.md and in another way:
 * elements are real numbers (doubles, exact), a field exponent is the logarithm of the value
 * clipped at emin, sums are GMP integers, conversions are MPFR's, special values are what IEEE
 * addition makes of them, and the numbers of each unit follow from its name instead of the table.
 */
#ifndef DP_TESTS_MMA_REFERENCE_H
#define DP_TESTS_MMA_REFERENCE_H

#include <math.h>
#include <mpfr.h>

#include "ref/arith/mma.h"

enum { REF_MAX_TERMS = 65, REF_NO_EMIN = -100000 };

typedef struct {
    int exponent_bits, mantissa_bits;
    bool infinities, one_nan;
    bool truncated; /* tf32: rule 5 */
} ref_format;

static inline ref_format ref_format_of(const char *name)
{
    static const struct {
        const char *name;
        ref_format format;
    } formats[] = {{"e4m3", {4, 3, false, true, false}},  {"e5m2", {5, 2, true, false, false}},
                   {"e2m3", {2, 3, false, false, false}}, {"e3m2", {3, 2, false, false, false}},
                   {"e2m1", {2, 1, false, false, false}}, {"f16", {5, 10, true, false, false}},
                   {"bf16", {8, 7, true, false, false}},  {"tf32", {8, 23, true, false, true}},
                   {"f32", {8, 23, true, false, false}}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return formats[i].format;
        }
    }
    return (ref_format){0};
}

static inline int ref_emin(ref_format f)
{
    return 2 - (1 << (f.exponent_bits - 1));
}

/* Rule 2, from the definition of a binary format. */
static inline double ref_value_of(ref_format f, uint32_t code)
{
    if (f.truncated) {
        code &= ~0x1FFFu;
    }
    const uint32_t scale = 1u << f.mantissa_bits;
    const uint32_t m = code % scale;
    const uint32_t e = code / scale % (1u << f.exponent_bits);
    const double sign = code / scale / (1u << f.exponent_bits) % 2u != 0 ? -1.0 : 1.0;
    if (e == (1u << f.exponent_bits) - 1u && f.infinities) {
        return m == 0 ? sign * (double)INFINITY : (double)NAN;
    }
    if (e == (1u << f.exponent_bits) - 1u && f.one_nan && m == scale - 1u) {
        return (double)NAN;
    }
    const double fraction = (double)m / (double)scale;
    return sign * (e == 0 ? ldexp(fraction, ref_emin(f))
                          : ldexp(1.0 + fraction, (int)e - 1 + ref_emin(f)));
}

static inline double ref_value(const char *name, uint32_t code)
{
    return ref_value_of(ref_format_of(name), code);
}

/* ref_value_of remembered for the formats of at most 8 bits. Fill before threads start. */
static double ref_table[DP_MMA_F16][256];

static inline void ref_fill_table(void)
{
    static const char *const names[DP_MMA_F16] = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
    for (int f = 0; f < DP_MMA_F16; f++) {
        for (uint32_t code = 0; code < 256; code++) {
            ref_table[f][code] = ref_value(names[f], code);
        }
    }
}

static inline double ref_element(dp_mma_format format, ref_format f, uint32_t code)
{
    return format < DP_MMA_F16 ? ref_table[format][code] : ref_value_of(f, code);
}

static inline int ref_exponent(double v, int emin)
{
    if (v == 0.0 || !isfinite(v)) {
        return 0;
    }
    const int e = ilogb(v);
    return e > emin ? e : emin;
}

typedef struct {
    bool f16;
    int precision; /* bits of a normal result: 24, 14 or 11 */
    int fraction, zero_exponent;
    bool keep_zero_sign;
} ref_unit;

/* rho: S * 2^unit to the result format by MPFR. */
static inline uint32_t ref_convert(const ref_unit *u, mpz_t s, int unit)
{
    mpfr_t x;
    mpfr_init2(x, 128);
    (void)mpfr_set_z_2exp(x, s, unit, MPFR_RNDN); /* exact */
    const int emin = u->f16 ? -14 : -126;
    const int exponent = (int)mpfr_get_exp(x) - 1;
    const int precision = exponent >= emin ? u->precision : u->precision - (emin - exponent);
    if (precision >= 1) {
        (void)mpfr_prec_round(x, precision, u->f16 ? MPFR_RNDN : MPFR_RNDZ);
    } else { /* below the grid: zero, unless f16 rounds more than half a step up */
        const bool up = u->f16 && precision == 0 && mpfr_cmp_si_2exp(x, 1, -25) != 0 &&
                        mpfr_cmp_si_2exp(x, -1, -25) != 0;
        const int sign = mpfr_sgn(x);
        (void)mpfr_set_si_2exp(x, up ? sign : 0, -24, MPFR_RNDN);
    }
    const double limit = u->f16 ? 0x1p16 : 0x1p128;
    double d = mpfr_get_d(x, MPFR_RNDN); /* exact */
    mpfr_clear(x);
    if (fabs(d) >= limit) {
        d = copysign((double)INFINITY, d);
    }
    if (!u->f16) {
        return dp_f32_bits((float)d);
    }
    const uint32_t sign = signbit(d) ? 0x8000u : 0u;
    const double a = fabs(d);
    if (isinf(a)) {
        return sign | 0x7C00u;
    }
    if (a < 0x1p-14) {
        return sign | (uint32_t)(a * 0x1p24);
    }
    const int e = ilogb(a);
    return sign | (uint32_t)((e + 15) * 1024 + (int)((ldexp(a, -e) - 1.0) * 1024.0));
}

static inline bool ref_all_minus(int terms, const double *v)
{
    bool all_minus = true;
    for (int i = 0; i < terms; i++) {
        all_minus = all_minus && signbit(v[i]) != 0;
    }
    return all_minus;
}

/* Rules 15, 16, 25, 40, 41, 42 over terms of value v[i] and exponent e[i]; a zero term brings its
 * own exponent, which the caller has set. C is one of the terms. all_minus: the sign of a sum of
 * nothing but zeros, under zero_sign = keep. */
static inline uint32_t ref_sum(const ref_unit *u, int terms, const double *v, const int *e,
                               bool all_minus)
{
    double ieee = 0.0;
    int largest = e[0];
    for (int i = 0; i < terms; i++) {
        ieee += v[i];
        largest = e[i] > largest ? e[i] : largest;
    }
    if (isnan(ieee)) {
        return u->f16 ? 0x7FFFu : 0x7FFFFFFFu;
    }
    if (isinf(ieee)) {
        return (u->f16 ? 0x7C00u : 0x7F800000u) |
               (ieee > 0 ? 0u : (u->f16 ? 0x8000u : 0x80000000u));
    }
    mpz_t s;
    mpz_t t;
    mpz_init2(s, 128);
    mpz_init2(t, 128);
    for (int i = 0; i < terms; i++) {
        int x;
        const double m = frexp(v[i], &x);
        mpz_set_si(t, (long)(m * 0x1p53));
        const int shift = x - 53 - (largest - u->fraction);
        if (shift >= 0) {
            mpz_mul_2exp(t, t, (mp_bitcnt_t)shift);
        } else {
            mpz_tdiv_q_2exp(t, t, (mp_bitcnt_t)-shift);
        }
        mpz_add(s, s, t);
    }
    const int sign = mpz_sgn(s);
    uint32_t bits = sign != 0 ? ref_convert(u, s, largest - u->fraction) : 0u;
    mpz_clear(s);
    mpz_clear(t);
    const uint32_t minus = u->f16 ? 0x8000u : 0x80000000u;
    if ((bits & ~minus) == 0) {
        bits = u->keep_zero_sign && (sign < 0 || (sign == 0 && all_minus)) ? minus : 0u;
    }
    return bits;
}

static inline double ref_c_value(const ref_unit *u, uint32_t bits)
{
    return ref_value(u->f16 ? "f16" : "f32", bits);
}

static inline int ref_c_exponent(const ref_unit *u, double c)
{
    return c == 0.0 ? u->zero_exponent : ref_exponent(c, u->f16 ? -14 : -126);
}

/* One instruction of section 2: n products of a[i] and b[i] with scale exponent s, and C. */
static inline uint32_t ref_fused(const ref_unit *u, int n, const double *a, int emin_a,
                                 const double *b, int emin_b, double s_value, int s, uint32_t c,
                                 bool late)
{
    double v[REF_MAX_TERMS];
    int e[REF_MAX_TERMS];
    for (int i = 0; i < n; i++) {
        v[i] = a[i] * b[i] * s_value;
        e[i] = a[i] == 0.0 || b[i] == 0.0
                   ? u->zero_exponent
                   : ref_exponent(a[i], emin_a) + ref_exponent(b[i], emin_b) + s;
    }
    v[n] = ref_c_value(u, c);
    e[n] = ref_c_exponent(u, v[n]);
    if (!late || !isfinite(v[n])) {
        return ref_sum(u, n + 1, v, e, ref_all_minus(n + 1, v));
    }
    const double products = ref_c_value(u, ref_sum(u, n, v, e, ref_all_minus(n, v)));
    const double two[2] = {products, v[n]};
    const int exponents[2] = {ref_c_exponent(u, products), e[n]};
    return ref_sum(u, 2, two, exponents, ref_all_minus(2, two));
}

/* Section 4. */
static inline uint32_t ref_emulated(const ref_unit *u, const double *a, const double *b, uint32_t c)
{
    double half[2][2][16];
    int filled[2] = {0, 0};
    for (int k = 0; k < 32; k++) {
        const int set = (k & 2) >> 1;
        half[set][0][filled[set]] = a[k];
        half[set][1][filled[set]++] = b[k];
    }
    uint32_t x = ref_fused(u, 16, half[0][0], -14, half[0][1], -14, 1.0, 0, 0, false);
    x = ref_fused(u, 16, half[1][0], -14, half[1][1], -14, 1.0, 0, x, false);
    const double sum = ref_c_value(u, x) + ref_c_value(u, c);
    if (isnan(sum)) {
        return u->f16 ? 0x7FFFu : 0x7FFFFFFFu;
    }
    if (!u->f16) {
        volatile float p = dp_f32_from_bits(x);
        volatile float q = dp_f32_from_bits(c);
        volatile float r = p + q;
        return dp_f32_bits(r);
    }
    if (isinf(sum) || sum == 0.0) {
        return (signbit(sum) ? 0x8000u : 0u) | (isinf(sum) ? 0x7C00u : 0u);
    }
    mpz_t s; /* every f16 is a multiple of 2^-24, so the sum is exact */
    mpz_init_set_d(s, ldexp(sum, 24));
    const uint32_t bits = ref_convert(u, s, -24);
    mpz_clear(s);
    return bits;
}

/* Section 3. */
static inline uint32_t ref_grouped(const ref_unit *u, const double *a, const double *b,
                                   const double *sa, const double *sb, int block, int scale_emin,
                                   bool exclude, uint32_t c)
{
    double v[REF_MAX_TERMS];
    int e[REF_MAX_TERMS];
    bool all_minus = true;
    for (int g = 0; g < 4; g++) {
        const double x = sa[g * 16 / block];
        const double y = sb[g * 16 / block];
        double q = 0.0;
        bool nothing = x == 0.0 || y == 0.0;
        bool zeros = true;
        for (int k = 16 * g; k < 16 * g + 16; k++) {
            q += a[k] * b[k];
            zeros = zeros && a[k] * b[k] == 0.0;
            all_minus = all_minus && signbit(a[k] * b[k]) != 0;
        }
        nothing = nothing || zeros;
        v[g] = q * x * y;
        e[g] = (x == 0.0 ? scale_emin : ref_exponent(x, scale_emin)) +
               (y == 0.0 ? scale_emin : ref_exponent(y, scale_emin));
        e[g] = nothing && exclude ? u->zero_exponent : e[g];
    }
    v[4] = ref_c_value(u, c);
    e[4] = ref_c_exponent(u, v[4]);
    return ref_sum(u, 5, v, e, all_minus && signbit(v[4]) != 0);
}

/* The numbers of a unit from its names (MMA.md, section 6). */
static inline ref_unit ref_unit_of(const dp_mma_desc *desc, const dp_mma_switches *switches,
                                   int *terms)
{
    const bool sync = strncmp(desc->instruction, "mma.sync", 8) == 0;
    const bool sixteen = strstr(desc->atype, "f16") != NULL;
    const bool ada = sync && strcmp(desc->arch, "sm_89") == 0;
    const bool geforce = sync && strcmp(desc->arch, "sm_120a") == 0;
    const bool hopper = strcmp(desc->instruction, "wgmma") == 0;
    const bool fp8 = strcmp(desc->atype, "e4m3") == 0 || strcmp(desc->atype, "e5m2") == 0;
    const bool narrow = fp8 && (ada || hopper);
    ref_unit u = {.f16 = strcmp(desc->dtype, "f16") == 0,
                  .fraction = narrow ? 13 : 25,
                  .keep_zero_sign = switches->zero_sign == DP_MMA_ZERO_SIGN_KEEP};
    u.precision = u.f16 ? 11 : narrow ? 14 : 24;
    u.zero_exponent = u.f16 ? (geforce ? -22 : -21) : (ada ? -132 : -133);
    *terms = sixteen || ada ? 16 : strcmp(desc->atype, "tf32") == 0 ? 8 : 32;
    if (strstr(desc->instruction, "mxf4") != NULL) {
        u.fraction = 35;
        u.zero_exponent = -139;
        *terms = 64;
    }
    return u;
}

/* One instruction. k elements, k = what the unit takes. */
static inline uint32_t ref_instruction(const dp_mma_desc *desc, const dp_mma_switches *switches,
                                       const uint32_t *a, const uint32_t *b, const uint8_t *sfa,
                                       const uint8_t *sfb, uint32_t c)
{
    int terms;
    const ref_unit u = ref_unit_of(desc, switches, &terms);
    const ref_format fa = ref_format_of(desc->atype);
    const ref_format fb = ref_format_of(desc->btype);
    double va[64];
    double vb[64];
    for (int i = 0; i < terms; i++) {
        va[i] = ref_element(desc->a, fa, a[i]);
        vb[i] = ref_element(desc->b, fb, b[i]);
    }
    double sa[4] = {1.0, 1.0, 1.0, 1.0};
    double sb[4] = {1.0, 1.0, 1.0, 1.0};
    const bool ue8m0 = strstr(desc->instruction, "ue8m0") != NULL;
    const bool ue4m3 = strstr(desc->instruction, "ue4m3") != NULL;
    const int block = strstr(desc->instruction, "block16") != NULL ? 16 : 32;
    for (int i = 0; i < terms / block && (ue8m0 || ue4m3); i++) {
        sa[i] = ue4m3            ? ref_element(DP_MMA_E4M3, fa, sfa[i] & 0x7F)
                : sfa[i] == 0xFF ? (double)NAN
                                 : ldexp(1.0, sfa[i] - 127);
        sb[i] = ue4m3            ? ref_element(DP_MMA_E4M3, fa, sfb[i] & 0x7F)
                : sfb[i] == 0xFF ? (double)NAN
                                 : ldexp(1.0, sfb[i] - 127);
    }
    if (terms == 64) {
        return ref_grouped(&u, va, vb, sa, sb, block, ue4m3 ? -6 : REF_NO_EMIN,
                           switches->zero_group == DP_MMA_ZERO_GROUP_EXCLUDED, c);
    }
    const bool datacentre = strstr(desc->arch, "sm_90a sm_100a") != NULL;
    if (datacentre && desc->atype[0] == 'e') {
        return ref_emulated(&u, va, vb, c);
    }
    const bool normalise = switches->narrow_subnormal == DP_MMA_SUBNORMAL_NORMALISED;
    const int emin_a =
        normalise && fa.exponent_bits + fa.mantissa_bits < 7 ? REF_NO_EMIN : ref_emin(fa);
    const int emin_b =
        normalise && fb.exponent_bits + fb.mantissa_bits < 7 ? REF_NO_EMIN : ref_emin(fb);
    const int s = isnan(sa[0]) || isnan(sb[0]) ? 0 : ilogb(sa[0]) + ilogb(sb[0]);
    return ref_fused(&u, terms, va, emin_a, vb, emin_b, sa[0] * sb[0], s, c,
                     switches->fp8_c == DP_MMA_FP8_C_LATE && u.fraction == 13);
}

#endif
