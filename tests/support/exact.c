/* SPDX-License-Identifier: MIT */
#include "exact.h"

#include <math.h>
#include <stdlib.h>

static const dp_exact_format formats[DP_EXACT_FORMATS] = {
    {"e2m1", 1, 2, 1, 1, 0, false, false, 6, 1, 0.5, {{7, 7}, {7, 15}, {8, 0}, {0, 0}}},
    {"e2m3",
     1,
     2,
     3,
     1,
     0,
     false,
     false,
     7.5,
     1,
     0.125,
     {{0x1F, 0x1F}, {0x1F, 0x3F}, {0x20, 0}, {0, 0}}},
    {"e3m2",
     1,
     3,
     2,
     3,
     0,
     false,
     false,
     28,
     0.25,
     0.0625,
     {{0x1F, 0x1F}, {0x1F, 0x3F}, {0x20, 0}, {0, 0}}},
    {"e4m3",
     1,
     4,
     3,
     7,
     1,
     false,
     false,
     448,
     0x1p-6,
     0x1p-9,
     {{0x7F, 0x7F}, {0x7F, 0xFF}, {0x7F, 0xFF}, {0, 0}}},
    {"ue4m3",
     0,
     4,
     3,
     7,
     1,
     false,
     false,
     448,
     0x1p-6,
     0x1p-9,
     {{0x7F, 0x7F}, {0x7F, 0x7F}, {0x7F, 0x7F}, {0, 0}}},
    {"e5m2",
     1,
     5,
     2,
     15,
     4,
     true,
     false,
     57344,
     0x1p-14,
     0x1p-16,
     {{0x7F, 0x7F}, {0x7F, 0xFF}, {0x7E, 0xFE}, {0, 0}}},
    {"ue5m3",
     0,
     5,
     3,
     15,
     1,
     false,
     false,
     114688,
     0x1p-14,
     0x1p-17,
     {{0xFF, 0xFF}, {0xFF, 0xFF}, {0xFF, 0xFF}, {0, 0}}},
    {"e4m3fnuz",
     1,
     4,
     3,
     8,
     0,
     false,
     true,
     240,
     0x1p-7,
     0x1p-10,
     {{0x80, 0x80}, {0x80, 0x80}, {0x80, 0x80}, {0, 0}}},
    {"e5m2fnuz",
     1,
     5,
     2,
     16,
     0,
     false,
     true,
     57344,
     0x1p-15,
     0x1p-17,
     {{0x80, 0x80}, {0x80, 0x80}, {0x80, 0x80}, {0, 0}}},
    {"fp16",
     1,
     5,
     10,
     15,
     1024,
     true,
     false,
     65504,
     0x1p-14,
     0x1p-24,
     {{0x7FFF, 0x7FFF}, {0x7FFF, 0xFFFF}, {0x7E00, 0xFE00}, {0, 0}}},
    {"bf16",
     1,
     8,
     7,
     127,
     128,
     true,
     false,
     0x1.FEp127,
     0x1p-126,
     0x1p-133,
     {{0x7FFF, 0x7FFF}, {0x7FFF, 0xFFFF}, {0x7FC0, 0xFFC0}, {0, 0}}},
};

const dp_exact_format *dp_exact_format_at(size_t index)
{
    return &formats[index < DP_EXACT_FORMATS ? index : 0];
}

/* The smallest f32 magnitude beyond a threshold, or on it when `on_it`. */
static uint32_t first_beyond(double threshold, bool on_it)
{
    uint32_t below = 0; /* zero is below every threshold */
    uint32_t beyond = DP_F32_INF;
    while (beyond - below > 1u) {
        const uint32_t middle = below + (beyond - below) / 2u;
        const double x = (double)dp_f32_from_bits(middle);
        if (on_it ? x >= threshold : x > threshold) {
            beyond = middle;
        } else {
            below = middle;
        }
    }
    return beyond;
}

static uint32_t first_of_code(const double *value, uint32_t code, dp_exact_direction direction)
{
    const double low = value[code - 1u];
    const double high = value[code];
    const double middle = 0.5 * (low + high);
    switch (direction) {
    case DP_EXACT_TOWARD_ZERO:
        return first_beyond(high, true);
    case DP_EXACT_AWAY:
        return first_beyond(low, false);
    case DP_EXACT_TIES_ZERO:
        return first_beyond(middle, false);
    case DP_EXACT_TIES_AWAY:
        return first_beyond(middle, true);
    default:
        return first_beyond(middle, code % 2u == 0);
    }
}

static void *must_have(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void find_firsts(dp_exact_list *list)
{
    for (int d = 0; d < DP_EXACT_DIRECTIONS; d++) {
        list->first[d] = must_have(calloc(list->finite + 1u, sizeof *list->first[d]));
        for (uint32_t code = 1; code <= list->finite; code++) {
            list->first[d][code] = first_of_code(list->value, code, (dp_exact_direction)d);
        }
    }
}

dp_exact_list dp_exact_list_of(const dp_exact_format *format)
{
    dp_exact_list list = {0};
    const uint32_t per_binade = 1u << format->mantissa_bits;
    list.finite = (per_binade << format->exponent_bits) - format->top_codes;
    list.value = must_have(calloc(list.finite + 1u, sizeof *list.value));
    double step = format->min_subnormal;
    for (uint32_t code = 1; code <= list.finite; code++) {
        list.value[code] = list.value[code - 1u] + step;
        if (code % per_binade == 0 && code > per_binade) {
            step *= 2.0;
        }
    }
    find_firsts(&list);
    return list;
}

dp_exact_list dp_exact_list_of_e8m0(void)
{
    dp_exact_list list = {0};
    list.finite = 255;
    list.value = must_have(calloc(256, sizeof *list.value));
    list.value[0] = 0x1p-127;
    for (uint32_t code = 1; code <= 255; code++) {
        list.value[code] = 2.0 * list.value[code - 1u];
    }
    find_firsts(&list);
    return list;
}

void dp_exact_list_free(dp_exact_list *list)
{
    free(list->value);
    for (int d = 0; d < DP_EXACT_DIRECTIONS; d++) {
        free(list->first[d]);
    }
}

uint32_t dp_exact_place(const dp_exact_list *list, uint32_t magnitude_bits,
                        dp_exact_direction direction)
{
    const uint32_t *first = list->first[direction];
    uint32_t low = 0;
    uint32_t high = list->finite + 1u;
    while (high - low > 1u) {
        const uint32_t middle = low + (high - low) / 2u;
        if (first[middle] <= magnitude_bits) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

dp_exact_direction dp_exact_direction_of(dp_round round, bool negative)
{
    switch (round) {
    case DP_RZ:
        return DP_EXACT_TOWARD_ZERO;
    case DP_RU:
        return negative ? DP_EXACT_TOWARD_ZERO : DP_EXACT_AWAY;
    case DP_RD:
        return negative ? DP_EXACT_AWAY : DP_EXACT_TOWARD_ZERO;
    case DP_RN_TIES_ZERO:
        return DP_EXACT_TIES_ZERO;
    case DP_RN_TIES_AWAY:
        return DP_EXACT_TIES_AWAY;
    default:
        return DP_EXACT_EVEN;
    }
}

/* F6: does the overflow give the special code of the format? */
static bool overflow_is_special(bool negative, bool infinite, dp_encode how)
{
    if (infinite && how.inf == DP_INF_KEPT) {
        return true;
    }
    if (how.overflow == DP_OVERFLOW_SPECIAL) {
        return true;
    }
    if (how.overflow != DP_OVERFLOW_IEEE754) {
        return false;
    }
    return infinite || how.round == DP_RS || how.round == DP_RNE || how.round == DP_RN_TIES_ZERO ||
           how.round == DP_RN_TIES_AWAY || (how.round == DP_RU && !negative) ||
           (how.round == DP_RD && negative);
}

uint32_t dp_exact_finish(const dp_exact_format *format, uint32_t place, bool negative,
                         bool infinite, dp_encode how)
{
    const uint32_t per_sign = (1u << format->mantissa_bits) << format->exponent_bits;
    const uint32_t finite = per_sign - format->top_codes;
    const bool minus = negative && format->sign_bits != 0;
    if (infinite || place == finite) {
        const bool special = overflow_is_special(minus, infinite, how);
        if (special && format->fnuz) {
            return 0x80;
        }
        place = special && format->top_codes != 0 ? finite : finite - 1u;
    }
    if (place == 0 && (how.drop_zero_sign || format->fnuz)) {
        return 0;
    }
    return place + (minus ? per_sign : 0u);
}

uint64_t dp_exact_fraction(const dp_exact_list *list, uint32_t magnitude_bits, unsigned n,
                           uint32_t *place)
{
    *place = dp_exact_place(list, magnitude_bits, DP_EXACT_TOWARD_ZERO);
    const double x = (double)dp_f32_from_bits(magnitude_bits);
    if (*place == list->finite) { /* beyond the top the answer is an overflow either way */
        return 0;
    }
    const double low = list->value[*place];
    const double high = list->value[*place + 1u];
    return (uint64_t)floor(ldexp((x - low) / (high - low), (int)n));
}

uint32_t dp_exact_encode(const dp_exact_format *format, const dp_exact_list *list, uint32_t bits,
                         dp_encode how)
{
    const bool negative = bits > 0x7FFFFFFFu;
    uint32_t magnitude = negative ? bits - 0x80000000u : bits;
    if (magnitude > DP_F32_INF) {
        return format->nan[how.nan][negative];
    }
    if (how.flush_subnormals && dp_f32_from_bits(magnitude) < 0x1p-126f) {
        magnitude = 0;
    }
    const bool infinite = magnitude == DP_F32_INF;
    uint32_t place = list->finite;
    if (!infinite && how.round == DP_RS) {
        const uint64_t patterns = (uint64_t)1 << how.random_bits;
        const uint64_t part = dp_exact_fraction(list, magnitude, how.random_bits, &place);
        place += part + how.random % patterns >= patterns ? 1u : 0u;
    } else if (!infinite) {
        const bool minus = negative && format->sign_bits != 0;
        place = dp_exact_place(list, magnitude, dp_exact_direction_of(how.round, minus));
    }
    return dp_exact_finish(format, place, negative, infinite, how);
}

uint32_t dp_exact_encode_e8m0(const dp_exact_list *list, uint32_t bits, dp_e8m0_encode how)
{
    static const dp_exact_direction directions[] = {DP_EXACT_AWAY, DP_EXACT_TOWARD_ZERO,
                                                    DP_EXACT_EVEN, DP_EXACT_TIES_AWAY};
    const uint32_t magnitude = bits > 0x7FFFFFFFu ? bits - 0x80000000u : bits;
    if (magnitude > DP_F32_INF) {
        return 255;
    }
    const uint32_t place =
        magnitude == DP_F32_INF ? 255u : dp_exact_place(list, magnitude, directions[how.round]);
    return place == 255 && how.satfinite ? 254u : place;
}

uint32_t dp_exact_decode(const dp_exact_format *format, const dp_exact_list *list, uint32_t code)
{
    const uint32_t per_sign = (1u << format->mantissa_bits) << format->exponent_bits;
    const bool minus = format->sign_bits != 0 && code / per_sign % 2u == 1u;
    const uint32_t place = code % per_sign;
    if (format->fnuz && minus && place == 0) {
        return 0x7FFFFFFFu;
    }
    uint32_t bits = 0x7FFFFFFFu;
    if (place < list->finite) {
        bits = dp_f32_bits((float)list->value[place]);
    } else if (format->has_inf && place == list->finite) {
        bits = DP_F32_INF;
    } else {
        return bits;
    }
    return minus ? bits | DP_F32_SIGN : bits;
}
