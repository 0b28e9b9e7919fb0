/* SPDX-License-Identifier: MIT */
#include "device/capture/operands.h"

#include <math.h>

typedef struct {
    const char *name;
    int bits, mantissa, bias;
    bool ieee;      /* the top exponent holds Inf and NaN */
    uint32_t limit; /* largest finite magnitude code */
} dp_layout;

static const dp_layout dp_layouts[] = {
    [DP_OP_E2M1] = {"e2m1", 4, 1, 1, false, 0x7},
    [DP_OP_E4M3] = {"e4m3", 8, 3, 7, false, 0x7E},
    [DP_OP_E5M2] = {"e5m2", 8, 2, 15, true, 0x7B},
    [DP_OP_F16] = {"f16", 16, 10, 15, true, 0x7BFF},
    [DP_OP_BF16] = {"bf16", 16, 7, 127, true, 0x7F7F},
    [DP_OP_TF32] = {"tf32", 32, 23, 127, true, 0x7F7FFFFF},
    [DP_OP_F32] = {"f32", 32, 23, 127, true, 0x7F7FFFFF},
};

static const char *const dp_data_names[DP_DATA_KINDS] = {"bits",  "normal",  "cancel", "small",
                                                         "zeros", "special", "pass",   "align",
                                                         "tail",  "big",     "floor"};

const char *dp_element_name(dp_element element)
{
    return dp_layouts[element].name;
}

const char *dp_data_name(dp_data data)
{
    return dp_data_names[data];
}

int dp_element_bits(dp_element element)
{
    return dp_layouts[element].bits;
}

static uint64_t dp_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int dp_between(uint64_t *state, int low, int high)
{
    return low + (int)(dp_next(state) % (uint64_t)(high - low + 1));
}

/* Sum of uniforms: close enough to a bell, the same on every machine. */
static double dp_bell(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        sum += (double)(dp_next(state) >> 11) * 0x1p-53 - 0.5;
    }
    return sum * 1.4;
}

static uint32_t dp_sign_of(const dp_layout *l)
{
    return 1u << (l->bits - 1);
}

static double dp_decode(dp_element element, uint32_t code)
{
    const dp_layout *l = &dp_layouts[element];
    uint32_t magnitude = code & (dp_sign_of(l) - 1u);
    if (magnitude > l->limit) {
        return 0;
    }
    int exponent = (int)(magnitude >> l->mantissa);
    double fraction = (double)(magnitude & ((1u << l->mantissa) - 1u));
    double whole = exponent > 0 ? (double)(1u << l->mantissa) : 0.0;
    double value = ldexp(whole + fraction, (exponent > 0 ? exponent : 1) - l->bias - l->mantissa);
    return (code & dp_sign_of(l)) != 0 ? -value : value;
}

/* Nearest code (ties to even by the host's rounding of an exact quotient), saturating. */
static uint32_t dp_encode_value(dp_element element, double value)
{
    const dp_layout *l = &dp_layouts[element];
    uint32_t sign = signbit(value) ? dp_sign_of(l) : 0;
    double magnitude = fabs(value);
    if (magnitude >= dp_decode(element, l->limit)) {
        return sign | l->limit;
    }
    int exponent = magnitude > 0 ? ilogb(magnitude) : -2000;
    if (exponent < 1 - l->bias) {
        exponent = 1 - l->bias;
    }
    double steps = nearbyint(ldexp(magnitude, l->mantissa - exponent));
    uint32_t code = (uint32_t)steps + ((uint32_t)(exponent + l->bias - 1) << l->mantissa);
    return sign | code;
}

static uint32_t dp_random_finite(dp_element element, uint64_t *state)
{
    const dp_layout *l = &dp_layouts[element];
    uint32_t code = (uint32_t)(dp_next(state) >> 20);
    uint32_t magnitude = code & (dp_sign_of(l) - 1u);
    return (code & dp_sign_of(l)) | (magnitude > l->limit ? l->limit - (code & 3u) : magnitude);
}

/* A random code whose value is near 2^exponent. */
static uint32_t dp_random_near(dp_element element, int exponent, uint64_t *state)
{
    double mantissa = 1.0 + (double)(dp_next(state) >> 11) * 0x1p-53;
    double value = ldexp(mantissa, exponent);
    return dp_encode_value(element, (dp_next(state) & 1u) != 0 ? -value : value);
}

static int dp_lanes(dp_element element)
{
    return DP_ROW_BYTES * 8 / dp_layouts[element].bits;
}

static uint32_t dp_get(const uint8_t *row, dp_element element, int k)
{
    switch (dp_layouts[element].bits) {
    case 4:
        return (uint32_t)row[k / 2] >> (4u * (unsigned)(k & 1)) & 0xFu;
    case 8:
        return row[k];
    case 16:
        return (uint32_t)row[2 * k] | (uint32_t)row[2 * k + 1] << 8;
    default:
        return (uint32_t)row[4 * k] | (uint32_t)row[4 * k + 1] << 8 |
               (uint32_t)row[4 * k + 2] << 16 | (uint32_t)row[4 * k + 3] << 24;
    }
}

static void dp_set(uint8_t *row, dp_element element, int k, uint32_t code)
{
    int bits = dp_layouts[element].bits;
    if (bits == 4) {
        unsigned shift = 4u * (unsigned)(k & 1);
        row[k / 2] = (uint8_t)((row[k / 2] & ~(0xFu << shift)) | (code & 0xFu) << shift);
        return;
    }
    for (int i = 0; i < bits / 8; i++) {
        row[k * bits / 8 + i] = (uint8_t)(code >> (8 * i));
    }
}

/* Exponents that keep sums of 16- and 32-bit element types inside f32 in the ordinary kinds. */
static int dp_center(dp_element element, uint64_t *state, int spread)
{
    int low = element == DP_OP_E2M1 ? 0 : -spread;
    int high = element == DP_OP_E2M1 ? 2 : spread;
    return dp_between(state, low, high);
}

static uint32_t dp_special_code(dp_element element, uint64_t *state)
{
    const dp_layout *l = &dp_layouts[element];
    uint32_t room = dp_sign_of(l) - 1u - l->limit;
    uint32_t code = room == 0 ? l->limit : l->limit + 1u + (uint32_t)(dp_next(state) % room);
    if (l->ieee && (dp_next(state) & 1u) != 0) {
        code = l->limit + 1u; /* Inf */
    }
    return code | ((dp_next(state) & 1u) != 0 ? dp_sign_of(l) : 0);
}

/* Products near the least result in even places, far below it in odd ones; mostly powers of two, so
 * that an f16 result is a tie at 2^-25 that a bit near 2^-47 breaks. */
static uint32_t dp_floor_operand(dp_element element, int k, bool is_b, uint64_t *state)
{
    const dp_layout *l = &dp_layouts[element];
    const int least = 1 - l->bias - l->mantissa; /* exponent of the least subnormal */
    const int even = l->bias == 127 ? -75 : is_b ? -12 : -13, odd = l->bias == 127 ? -81 : least;
    const int spread = l->bias == 127 ? 2 : (int)(dp_next(state) % 4) / 3;
    const int exponent = (k % 2 == 0 ? even : odd) + dp_between(state, 0, spread + k % 2);
    const uint32_t sign = (dp_next(state) & 1u) != 0 ? dp_sign_of(l) : 0;
    return (dp_next(state) & 3u) == 0 ? dp_random_near(element, exponent, state)
                                      : sign | dp_encode_value(element, ldexp(1.0, exponent));
}

/* One element of an A row or B column. `row` decides what the whole row is about. */
static uint32_t dp_operand(dp_element element, dp_data data, bool is_b, int row, int k, int special,
                           uint64_t *state)
{
    const dp_layout *l = &dp_layouts[element];
    uint32_t sign = (dp_next(state) & 1u) != 0 ? dp_sign_of(l) : 0;
    switch (data) {
    case DP_DATA_BITS:
        return l->bits > 8 && row % 2 == 0
                   ? dp_random_near(element, dp_center(element, state, 12), state)
                   : dp_random_finite(element, state);
    case DP_DATA_NORMAL:
        return dp_encode_value(element, ldexp(dp_bell(state), row % 5 - 2));
    case DP_DATA_SMALL: {
        uint32_t top = 3u << l->mantissa;
        return sign |
               (uint32_t)(dp_next(state) % top) >> (dp_next(state) % (uint64_t)(l->mantissa + 1));
    }
    case DP_DATA_ZEROS:
        /* A third of the rows: no nonzero at all, with one sign or mixed. */
        if (row % 3 == 0) {
            return row % 2 == 0 ? (row % 4 == 0 ? dp_sign_of(l) : 0) : sign;
        }
        return k < 2 * (row % 4) ? dp_encode_value(element, (k & 1) != 0 ? -1.5 : 1.5) : sign;
    case DP_DATA_SPECIAL:
        return k == special ? dp_special_code(element, state)
                            : dp_random_near(element, dp_center(element, state, 2), state);
    case DP_DATA_ALIGN:
        return k <= row % 7 ? dp_random_near(element, dp_center(element, state, 9), state) : sign;
    case DP_DATA_TAIL:
        return dp_random_near(element,
                              k == special ? (l->bits > 8 ? 12 : 8)
                                           : dp_center(element, state, l->bits > 8 ? 13 : 6),
                              state);
    case DP_DATA_BIG:
        return sign | (l->limit - (uint32_t)(dp_next(state) % (1u << l->mantissa)));
    case DP_DATA_FLOOR:
        return k <= row % 6 ? dp_floor_operand(element, k, is_b, state) : sign;
    case DP_DATA_CANCEL:
    case DP_DATA_PASS:
    case DP_DATA_KINDS:
        break;
    }
    return dp_random_near(element, dp_center(element, state, 3), state);
}

static void dp_fill_rows(uint8_t *rows, int count, bool is_b, dp_element element, dp_data data,
                         uint64_t *state)
{
    int lanes = dp_lanes(element);
    for (int r = 0; r < count; r++) {
        uint8_t *row = rows + r * DP_ROW_BYTES;
        int special = dp_between(state, 0, 3 * lanes - 1);
        for (int k = 0; k < lanes; k++) {
            uint32_t code = dp_operand(element, data, is_b, r, k, special, state);
            if (data == DP_DATA_CANCEL && (k & 1) != 0) {
                uint32_t mate = dp_get(row, element, k - 1);
                code = is_b ? mate : mate ^ dp_sign_of(&dp_layouts[element]);
                if (!is_b && dp_between(state, 0, 3 + r % 16) == 0) {
                    code ^= 1u;
                }
            }
            if (is_b && (data == DP_DATA_ZEROS || data == DP_DATA_ALIGN) && r < 4) {
                code = dp_encode_value(element, r % 2 == 0 ? 1.0 : -1.0);
            }
            if (data == DP_DATA_PASS && is_b) {
                code = (dp_next(state) & 1u) != 0 ? dp_sign_of(&dp_layouts[element]) : 0;
                code = r < 2 ? 0 : code;
            }
            dp_set(row, element, k, code);
        }
    }
}

/* The sum of products in double (exact for the 8-bit types) and the largest product exponent. */
static double dp_dot(const dp_tile *t, const dp_element type[3], int m, int n, int *top)
{
    double sum = 0;
    *top = -200;
    for (int s = 0; s < t->steps; s++) {
        const uint8_t *a = t->a + (s * t->m + m) * DP_ROW_BYTES;
        const uint8_t *b = t->b + (s * DP_TILE_N + n) * DP_ROW_BYTES;
        for (int k = 0; k < dp_lanes(type[0]); k++) {
            double x = dp_decode(type[0], dp_get(a, type[0], k));
            double y = dp_decode(type[1], dp_get(b, type[1], k));
            if (x != 0 && y != 0 && ilogb(x) + ilogb(y) > *top) {
                *top = ilogb(x) + ilogb(y);
            }
            sum += x * y;
        }
    }
    return sum;
}

static uint32_t dp_ladder(dp_element element, int step, uint64_t *state)
{
    const dp_layout *l = &dp_layouts[element];
    uint32_t one = (uint32_t)l->bias << l->mantissa;
    uint32_t sign = (step & 1) != 0 ? dp_sign_of(l) : 0;
    uint32_t bit = 1u << ((step / 2) % l->mantissa);
    switch ((step / 2 / l->mantissa) % 4) {
    case 0:
        return sign | one | bit;
    case 1:
        return sign | bit; /* subnormals */
    case 2:
        return sign | (one + (7u << l->mantissa)) | bit | 1u;
    default:
        return (uint32_t)dp_next(state) & (2u * dp_sign_of(l) - 1u);
    }
}

static uint32_t dp_accumulator(const dp_tile *t, dp_data data, const dp_element type[3], int m,
                               int n, uint64_t *state)
{
    const dp_element d = type[2];
    const uint32_t sign = (dp_next(state) & 1u) != 0 ? dp_sign_of(&dp_layouts[d]) : 0;
    int top = 0;
    double sum = dp_dot(t, type, m, n, &top);
    switch (data) {
    case DP_DATA_CANCEL:
        if (n % 2 == 0 || sum == 0) {
            return dp_encode_value(d, -sum + ldexp(dp_bell(state), top - dp_between(state, 0, 30)));
        }
        return dp_encode_value(d, -sum);
    case DP_DATA_SMALL:
        return dp_random_near(d,
                              n % 2 != 0       ? top + dp_between(state, -20, 8)
                              : d == DP_OP_F16 ? dp_between(state, -26, -13)
                                               : dp_between(state, -150, -100),
                              state);
    case DP_DATA_ZEROS:
    case DP_DATA_FLOOR:
        if (n % 4 == 3) {
            return dp_random_near(d, dp_between(state, d == DP_OP_F16 ? -26 : -150, -5), state);
        }
        return sign;
    case DP_DATA_SPECIAL:
        return dp_between(state, 0, 3) == 0 ? dp_special_code(d, state)
                                            : dp_random_near(d, dp_between(state, -8, 12), state);
    case DP_DATA_PASS:
        return dp_ladder(d, m * DP_TILE_N + n, state);
    case DP_DATA_ALIGN: {
        uint32_t near = dp_random_near(d, top + dp_between(state, -30, 30), state);
        return n % 2 == 0 ? near : near & ~((1u << (dp_layouts[d].mantissa - 2)) - 1u);
    }
    case DP_DATA_BIG:
        return n % 2 == 0 ? dp_random_near(d, top + dp_between(state, -4, 8), state)
                          : sign | (dp_layouts[d].limit - (uint32_t)(dp_next(state) & 15u));
    case DP_DATA_NORMAL:
        return dp_encode_value(d, 4.0 * dp_bell(state));
    case DP_DATA_TAIL:
        return dp_random_near(d, top + dp_between(state, -16, 4), state);
    case DP_DATA_BITS:
    case DP_DATA_KINDS:
        break;
    }
    return dp_random_near(d, top + dp_between(state, -30, 30), state);
}

static void dp_fill_scales(uint8_t *scales, int rows, bool ue4m3, dp_data data, uint64_t *state)
{
    for (int i = 0; i < rows * 4; i++) {
        int code = ue4m3 ? dp_between(state, 0x30, 0x5F) : dp_between(state, 117, 137);
        if (data == DP_DATA_BITS || data == DP_DATA_ALIGN) {
            code = ue4m3 ? dp_between(state, 0, 0x7E) : dp_between(state, 97, 157);
        }
        if (data == DP_DATA_SMALL) {
            code = ue4m3 ? dp_between(state, 0, 9) : dp_between(state, 0, 70);
        }
        if (data == DP_DATA_BIG) {
            code = ue4m3 ? dp_between(state, 0x78, 0x7E) : dp_between(state, 185, 254);
        }
        if (data == DP_DATA_SPECIAL && dp_between(state, 0, 40) == 0) {
            code = ue4m3 ? 0x7F : 0xFF;
        }
        scales[i] = (uint8_t)code;
    }
}

void dp_tile_fill(dp_tile *tile, dp_data data, const dp_element type[3], uint64_t *state)
{
    for (int s = 0; s < tile->steps; s++) {
        dp_fill_rows(tile->a + s * tile->m * DP_ROW_BYTES, tile->m, false, type[0], data, state);
        dp_fill_rows(tile->b + s * DP_TILE_N * DP_ROW_BYTES, DP_TILE_N, true, type[1], data, state);
    }
    if (tile->scales > 0) {
        dp_fill_scales(tile->sfa, tile->m, tile->ue4m3, data, state);
        dp_fill_scales(tile->sfb, DP_TILE_N, tile->ue4m3, data, state);
    }
    for (int m = 0; m < tile->m; m++) {
        for (int n = 0; n < DP_TILE_N; n++) {
            tile->c[m * DP_TILE_N + n] = dp_accumulator(tile, data, type, m, n, state);
        }
    }
}
