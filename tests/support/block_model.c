/* SPDX-License-Identifier: MIT */
#include "block_model.h"

#include <float.h>
#include <math.h>

#include "formats/catalog.h"

typedef struct {
    const dp_block_recipe *r;
    double g, d, max;
    int emax;
} model;

static double r32(const model *m, double v)
{
    const float rounded = (float)v;
    return m->r->ftz && fabsf(rounded) < FLT_MIN ? copysign(0.0, v) : (double)rounded;
}

static double flush(const model *m, double v)
{
    return m->r->ftz && fabs(v) < (double)FLT_MIN ? copysign(0.0, v) : v;
}

static double mul(const model *m, double a, double b)
{
    return r32(m, flush(m, a) * flush(m, b));
}

static double quot(const model *m, double a, double b)
{
    return r32(m, flush(m, a) / flush(m, b));
}

/* Value rounded to p significant bits with smallest exponent `lowest`, by scaling to an integer. */
static double narrow(double v, int p, int lowest, double largest)
{
    if (v == 0.0 || !isfinite(v)) {
        return v;
    }
    int e = 0;
    (void)frexp(v, &e);
    const int unit = (e - p) > lowest ? e - p : lowest;
    const double rounded = ldexp(nearbyint(ldexp(v, -unit)), unit);
    return fabs(rounded) > largest ? copysign(INFINITY, v) : rounded;
}

static double via(dp_via how, double v)
{
    switch (how) {
    case DP_VIA_BF16:
        return narrow(v, 8, -133, 0x1.FEp127);
    case DP_VIA_FP16:
        return narrow(v, 11, -24, 65504.0);
    default:
        return v;
    }
}

/* Nearest magnitude code by search; v >= 0. Returns max_code + 1 for an overflow. */
static uint32_t nearest(double v, dp_minifloat f, dp_round round)
{
    const uint32_t top = dp_minifloat_max_code(f);
    uint32_t code = 0;
    for (uint32_t c = 0; c <= top; c++) {
        const double below = dp_minifloat_value(c, f);
        const double step =
            c < top ? dp_minifloat_value(c + 1, f) - below : below - dp_minifloat_value(c - 1, f);
        const double middle = below + step / 2.0;
        const bool tie_up = round == DP_RNE ? c % 2 == 1 : round == DP_RN_TIES_AWAY;
        if (v > middle || (v == middle && tie_up)) {
            code = c + 1;
        }
    }
    return code;
}

static uint32_t cast(double v, dp_minifloat f, dp_encode how)
{
    const uint32_t ones = (1u << (f.exponent_bits + f.mantissa_bits)) - 1u;
    const uint32_t sign_bit = f.has_sign != 0 ? ones + 1u : 0u;
    const uint32_t sign = signbit(v) ? sign_bit : 0u;
    if (isnan(v)) {
        switch (how.nan) {
        case DP_NAN_ZERO:
            return 0;
        case DP_NAN_SIGNED:
            return ones | sign;
        case DP_NAN_MLDTYPES:
            if (f.top == DP_TOP_FINITE) {
                return sign ^ sign_bit;
            }
            return (f.top == DP_TOP_IEEE ? ones ^ (ones & ((1u << (f.mantissa_bits - 1u)) - 1u))
                                         : ones) |
                   sign;
        default:
            return ones;
        }
    }
    const uint32_t top = dp_minifloat_max_code(f);
    uint32_t code = isinf(v) ? top + 1 : nearest(fabs(v), f, how.round);
    if (code > top) {
        code = how.overflow == DP_OVERFLOW_SPECIAL && f.top != DP_TOP_FINITE ? top + 1 : top;
    }
    return code | (code == 0 && how.drop_zero_sign ? 0u : sign);
}

static double ratio(const model *m, double amax)
{
    const double rcp_max = (double)(float)(1.0 / m->max);
    switch (m->r->ratio) {
    case DP_RATIO_DIV:
        return mul(m, quot(m, amax, m->max), m->g);
    case DP_RATIO_RCP:
        return mul(m, mul(m, amax, rcp_max), m->g);
    case DP_RATIO_G_OVER:
        return mul(m, amax, quot(m, m->g, m->max));
    case DP_RATIO_G_RCP:
        return mul(m, amax, mul(m, m->g, rcp_max));
    case DP_RATIO_DIV_D:
        return quot(m, quot(m, amax, m->max), m->d);
    default:
        return quot(m, amax, mul(m, m->max, m->d));
    }
}

static int floor_log2(double v)
{
    int e = 0;
    while (ldexp(1.0, e) > v) {
        e--;
    }
    while (ldexp(1.0, e + 1) <= v) {
        e++;
    }
    return e;
}

static uint8_t clip(int exponent, bool wrap)
{
    if (exponent < -127) {
        return wrap ? (uint8_t)(exponent + 127 + 256) : 0;
    }
    return exponent > 127 ? 254 : (uint8_t)(exponent + 127);
}

/* Nearest power with ties to the even byte; byte 0 is everything up to its own midpoint. */
static uint8_t nearest_power(double t, bool ties_up)
{
    for (int byte = 0; byte < 254; byte++) {
        const double middle = 1.5 * ldexp(1.0, byte - 127);
        if (t < middle || (t == middle && byte % 2 == 0 && !ties_up)) {
            return (uint8_t)byte;
        }
    }
    return 254;
}

static double quotient(const model *m, double x, const uint8_t *scale, double s, double t)
{
    const dp_block_recipe *r = m->r;
    const bool byte_zero = r->scale == DP_SCALE_F32 ? s == 0.0 : scale[0] == 0;
    if (byte_zero) {
        switch (r->byte0) {
        case DP_BYTE0_CODE_ZERO:
            return 0.0;
        case DP_BYTE0_FACTOR_ZERO:
            return mul(m, x, 0.0);
        case DP_BYTE0_FACTOR_ONE:
            return flush(m, x);
        case DP_BYTE0_FACTOR_MAX:
            return mul(m, x, (double)FLT_MAX);
        case DP_BYTE0_EMPTY_ONLY:
            if (t == 0.0) {
                return mul(m, x, 0.0);
            }
            break;
        default:
            break;
        }
    }
    if (r->quotient == DP_QUOTIENT_AMPLITUDE) {
        return mul(m, mul(m, x, scale[0] == 255 ? NAN : ldexp(1.0, 127 - scale[0])), m->max);
    }
    double divisor = r->divisor == DP_DIVISOR_UNROUNDED ? t : s;
    if (isnan(divisor) && r->nan_scale_as_inf) {
        divisor = INFINITY;
    }
    if (r->divisor_add > 0.0f) {
        divisor = r32(m, divisor + (double)r->divisor_add);
    }
    if (divisor < (double)r->divisor_min) {
        divisor = (double)r->divisor_min;
    }
    switch (r->quotient) {
    case DP_QUOTIENT_DIV:
        return quot(m, mul(m, x, m->g), divisor);
    case DP_QUOTIENT_DIV_SD:
        return quot(m, x, mul(m, divisor, m->d));
    case DP_QUOTIENT_RCP:
        return mul(m, x, mul(m, m->g, quot(m, 1.0, divisor)));
    case DP_QUOTIENT_RCP_SD: {
        const double inverse = quot(m, 1.0, mul(m, divisor, m->d));
        return mul(m, x, inverse > (double)FLT_MAX ? (double)FLT_MAX : inverse);
    }
    case DP_QUOTIENT_G_OVER_S:
        return mul(m, x, quot(m, m->g, divisor));
    default:
        return mul(m, x, quot(m, quot(m, 1.0, m->d), divisor));
    }
}

static uint8_t code_of(const model *m, double x, const uint8_t *scale, double s, double t)
{
    double v = via(m->r->quotient_via, quotient(m, x, scale, s, t));
    if (isnan(v)) {
        v = copysign(NAN, isnan(x) ? x : 1.0);
    }
    return (uint8_t)cast(v, m->r->element, m->r->payload);
}

static double power_error(const model *m, const float *x, size_t n, uint8_t byte)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double s = byte == 255 ? NAN : ldexp(1.0, byte - 127);
        const uint8_t code = code_of(m, (double)x[i], &byte, s, s);
        const double difference = dp_minifloat_value(code, m->r->element) * s - (double)x[i];
        sum += difference * difference;
    }
    return sum;
}

static uint8_t best_of_two(const model *m, double amax, const float *x, size_t n)
{
    int low = -400;
    while (ldexp(m->max, low + 1) <= amax) {
        low++;
    }
    if (ldexp(m->max, low) == amax) {
        return clip(low, m->r->low == DP_E8M0_LOW_WRAP);
    }
    const uint8_t a = clip(low, m->r->low == DP_E8M0_LOW_WRAP);
    const uint8_t b = clip(low + 1, m->r->low == DP_E8M0_LOW_WRAP);
    return power_error(m, x, n, a) < power_error(m, x, n, b) ? a : b;
}

static uint8_t e8m0(const model *m, double amax, double t, const float *x, size_t n)
{
    const dp_block_recipe *r = m->r;
    const bool infinite = isinf(amax);
    const bool wrap = r->low == DP_E8M0_LOW_WRAP;
    int e = infinite ? 128 : amax == 0.0 ? -1000 : floor_log2(amax);
    const bool reads_t = r->rule == DP_RULE_RCEIL || r->rule == DP_RULE_ROUND ||
                         r->rule == DP_RULE_ROUND_UP || r->rule == DP_RULE_ROUND_LOG2 ||
                         r->rule == DP_RULE_FLOOR_RATIO;
    if (amax == 0.0 && !reads_t && r->rule != DP_RULE_AMPLITUDE) {
        return 0;
    }
    switch (r->rule) {
    case DP_RULE_FLOOR:
        if (r->log2_f32 && !infinite) {
            e = (int)floor((double)(float)log2(amax));
        }
        return clip(e - m->emax, wrap);
    case DP_RULE_CEIL:
        return clip(e + (!infinite && ldexp(1.0, e) < amax ? 1 : 0) - m->emax, wrap);
    case DP_RULE_EVEN: {
        const double limit = 2.0 - ldexp(1.0, -m->r->element.mantissa_bits - 1);
        return clip(e + (!infinite && amax >= limit * ldexp(1.0, e) ? 1 : 0) - m->emax, wrap);
    }
    case DP_RULE_RCEIL: {
        if (t == 0.0) {
            return 0;
        }
        if (isinf(t)) {
            return 254;
        }
        const int k = floor_log2(t);
        return clip(k + (ldexp(1.0, k) < t ? 1 : 0), false);
    }
    case DP_RULE_ROUND:
        return nearest_power(t, false);
    case DP_RULE_ROUND_UP:
        return nearest_power(t, true);
    case DP_RULE_ROUND_LOG2: {
        if (isinf(t) || t == 0.0) {
            return t == 0.0 ? 0 : 254;
        }
        const int k = floor_log2(t);
        const double squared = ldexp(t, -k) * ldexp(t, -k); /* exact: 48 bits */
        return clip(k + (squared > 2.0 ? 1 : 0), wrap);
    }
    case DP_RULE_FLOOR_RATIO:
        return isinf(t) ? 254 : t == 0.0 ? 0 : clip(floor_log2(t), false);
    case DP_RULE_AMPLITUDE:
        return nearest_power(amax, false);
    default:
        return infinite ? 254 : best_of_two(m, amax, x, n);
    }
}

static double scale_value(const dp_block_recipe *r, const uint8_t *scale)
{
    if (r->scale == DP_SCALE_E8M0) {
        return scale[0] == 255 ? NAN : ldexp(1.0, scale[0] - 127);
    }
    if (r->scale == DP_SCALE_F32) {
        float value = 0.0f;
        memcpy(&value, scale, 4); /* the tests run on little-endian machines */
        return (double)value;
    }
    dp_minifloat f;
    (void)dp_catalog_find(r->scale == DP_SCALE_E4M3 ? "ue4m3" : "ue5m3", &f);
    return dp_minifloat_value(scale[0], f);
}

static void store(const dp_block_recipe *r, double t, uint8_t *scale)
{
    if (r->scale == DP_SCALE_F32) {
        const float value = isnan(t) ? dp_f32_from_bits(DP_F32_NAN_CUDA)
                            : isinf(t) && r->inf == DP_INF_SATURATE ? FLT_MAX
                                                                    : (float)t;
        memcpy(scale, &value, 4);
        return;
    }
    dp_minifloat f;
    (void)dp_catalog_find(r->scale == DP_SCALE_E4M3 ? "ue4m3" : "ue5m3", &f);
    const dp_encode plain = {0};
    scale[0] = (uint8_t)cast(t, f, isnan(t) ? plain : r->scale_encode);
}

bool dp_model_quantize(const dp_block_recipe *recipe, dp_global global, const float *x, size_t n,
                       uint8_t *codes, uint8_t *scale)
{
    model m = {recipe, 1.0, 1.0, dp_minifloat_max(recipe->element), 0};
    m.emax = floor_log2(m.max);
    if (global.kind == DP_GLOBAL_DIV) {
        m.g = (double)global.value;
        m.d = (double)(float)(1.0 / m.g);
    } else if (global.kind == DP_GLOBAL_MUL) {
        m.d = (double)global.value;
        m.g = (double)(float)(1.0 / m.d);
    }
    double amax = 0.0;
    bool nan = false;
    bool infinite = false;
    for (size_t i = 0; i < n; i++) {
        nan = nan || isnan(x[i]);
        infinite = infinite || isinf(x[i]);
        amax = fabs((double)x[i]) > amax ? fabs((double)x[i]) : amax;
    }
    if ((nan && recipe->nan == DP_NAN_ERROR) || (infinite && recipe->inf == DP_INF_ERROR)) {
        return false;
    }
    amax = via(recipe->amax_via, flush(&m, amax));
    amax = amax <= (double)recipe->amax_zero ? 0.0 : amax;
    if (amax == 0.0 && recipe->zero_amax == DP_ZERO_AMAX_ONE) {
        amax = 1.0;
    }
    double t = ratio(&m, amax);
    if (amax == 0.0 && recipe->zero_amax == DP_ZERO_SCALE_ONE) {
        t = 1.0;
        amax = recipe->rule == DP_RULE_AMPLITUDE ? 1.0 : ldexp(1.0, m.emax);
    }
    t = t < (double)recipe->scale_min ? (double)recipe->scale_min : t;
    const bool poisoned = (nan && recipe->nan == DP_NAN_PROPAGATE) ||
                          (infinite && recipe->inf == DP_INF_NAN) ||
                          (t == 0.0 && recipe->zero_amax == DP_ZERO_SCALE_NAN);
    if (poisoned) {
        t = NAN;
    }
    const bool largest = !poisoned && isinf(amax) && recipe->inf != DP_INF_BINADE;
    if (recipe->scale == DP_SCALE_F32 && largest) {
        const float top = FLT_MAX;
        memcpy(scale, &top, 4);
    } else if (largest) {
        scale[0] = recipe->scale == DP_SCALE_E4M3 ? 0x7E : 0xFE;
    } else if (recipe->scale != DP_SCALE_E8M0) {
        store(recipe, t, scale);
    } else if (poisoned) {
        scale[0] = 255;
    } else {
        scale[0] = e8m0(&m, amax, t, x, n);
    }
    for (size_t i = 0; i < n; i++) {
        codes[i] = code_of(&m, (double)x[i], scale, scale_value(recipe, scale), t);
    }
    return true;
}
