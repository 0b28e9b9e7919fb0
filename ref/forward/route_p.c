/* SPDX-License-Identifier: MIT
 *
 * The softmax of a standard path, one row of one key tile at a time [R2]..[R5].
 */
#include <math.h>

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e8m0.h"
#include "ref/arith/exp2_poly.h"
#include "ref/arith/f32_fast.h"
#include "ref/forward/route.h"

#define LOG2_6   2.584962500721156f
#define LOG2_448 8.807354922057604f

static size_t block_of(dp_operand_format p)
{
    return p == DP_OPERAND_NVFP4 ? 16 : (p == DP_OPERAND_MXFP8 || p == DP_OPERAND_MXFP4 ? 32 : 0);
}

static float exponential(const dp_sfu *sfu, const dp_exp2_lanes *lanes, size_t lane, float x)
{
    return lanes != NULL && dp_exp2_lane_is_poly(lanes, (unsigned)lane)
               ? dp_exp2_poly_fast(x, DP_EXP2_DEFAULT_DEGREE)
               : dp_ex2_approx_ftz(sfu, x);
}

static float largest_of(const float *x, size_t n, float start)
{
    for (size_t i = 0; i < n; i++) {
        start = x[i] > start ? x[i] : start;
    }
    return start;
}

/* Sum of n values as the kernels reduce them: four packed accumulators, element i in accumulator
 * (i mod 8) / 2, lane i mod 2; `first` joins accumulator 0, lane 0 [R5]. */
static float packed_sum(const float *x, size_t n, float first)
{
    float lane[8] = {first, 0, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        lane[i % 8] = dp_add_rn_ftz(lane[i % 8], x[i]);
    }
    float pair[2];
    for (int l = 0; l < 2; l++) {
        pair[l] = dp_add_rn_ftz(dp_add_rn_ftz(lane[l], lane[2 + l]),
                                dp_add_rn_ftz(lane[4 + l], lane[6 + l]));
    }
    return dp_add_rn_ftz(pair[0], pair[1]);
}

static float decoded(dp_operand_format format, uint16_t code)
{
    const dp_e2m1 e2m1 = {(uint8_t)code};
    const dp_e4m3 e4m3 = {(uint8_t)code};
    const dp_bf16 bf16 = {code};
    switch (format) {
    case DP_OPERAND_BF16:
        return dp_bf16_to_f32(bf16);
    case DP_OPERAND_E4M3:
    case DP_OPERAND_E4M3_SM90:
    case DP_OPERAND_E4M3_SM89:
    case DP_OPERAND_MXFP8:
        return dp_e4m3_to_f32(e4m3);
    default:
        return dp_e2m1_to_f32(e2m1);
    }
}

static uint16_t encoded(dp_operand_format format, float x, uint64_t *saturated)
{
    switch (format) {
    case DP_OPERAND_BF16:
        return dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
    case DP_OPERAND_E4M3:
    case DP_OPERAND_E4M3_SM90:
    case DP_OPERAND_E4M3_SM89:
    case DP_OPERAND_MXFP8:
        *saturated += x > 464.0f;
        return dp_e4m3_from_f32(x, DP_ENCODE_PTX).bits;
    default:
        *saturated += x > 7.0f;
        return dp_e2m1_from_f32(x, DP_ENCODE_PTX).bits;
    }
}

/* The scale before it is rounded, the byte, and what the log2 scores of the block are lowered by.
 */
typedef struct {
    float unrounded;
    uint8_t byte;
    float lowered; /* LOG2: b */
} block_scale;

/* A scale as it is stored: saturating, or the value above 448 becomes NaN [R7]. */
static uint8_t stored_scale(const dp_route *route, float x)
{
    return dp_e4m3_from_f32(x, route->direct.overflow ? DP_ENCODE_NONSAT : DP_ENCODE_PTX).bits;
}

/* The largest log2 score of a block, at least `floor` [R3]. */
static block_scale scale_of(const dp_route *route, const dp_sfu *sfu, const float *z,
                            const float *p, size_t n, float floor)
{
    block_scale s = {0.0f, 0, 0.0f};
    const float sixth = dp_f32_from_bits(0x3E2AAAABu);
    const float lift = dp_route_lift(route);
    const float top = route->p == DP_OPERAND_MXFP8 ? LOG2_448 : LOG2_6;
    const float z_max = largest_of(z, n, floor);
    const float clamped = z_max > -100.0f ? z_max : -100.0f;
    switch (route->rule) {
    case DP_P_MAX_SIXTH:
        s.unrounded = dp_mul_rn_ftz(largest_of(p, n, 0.0f), sixth);
        s.byte = stored_scale(route, dp_mul_rn_ftz(s.unrounded, lift));
        break;
    case DP_P_EX2_BLOCK:
        s.unrounded = dp_ex2_approx_ftz(sfu, dp_sub_rn_ftz(z_max, route->sf_bias));
        s.byte = stored_scale(route, s.unrounded);
        break;
    case DP_P_LOG2:
        s.lowered = dp_sub_rn_ftz(clamped, top);
        s.unrounded = dp_ex2_approx_ftz(sfu, s.lowered);
        s.byte = z_max == -INFINITY ? 0 : stored_scale(route, dp_mul_rn_ftz(s.unrounded, lift));
        break;
    case DP_P_LOG2_CEIL: {
        s.lowered = ceilf(dp_sub_rn_ftz(clamped, top));
        s.unrounded = dp_ex2_approx_ftz(sfu, s.lowered);
        s.byte = z_max == -INFINITY ? 0 : dp_e8m0_from_f32(s.unrounded, dp_e8m0_encode_down()).bits;
        break;
    }
    case DP_P_LOG2_NEAR: {
        /* The exponent e holds amplitudes: a value of 6 codes stands for 2^e. */
        const float e = floorf(dp_add_rn_ftz(z_max, 0.41503749927884376f));
        const float held = e > -126.0f ? (e < 127.0f ? e : 127.0f) : -126.0f;
        s.lowered = dp_sub_rn_ftz(held, LOG2_6);
        s.unrounded = ldexpf(1.0f, (int)held);
        s.byte = z_max == -INFINITY ? 0 : (uint8_t)(127 + (int)held);
        break;
    }
    case DP_P_ROUNDED: {
        const float wanted = largest_of(p, n, 0.0f) / dp_mul_rn_ftz(6.0f, 1.0f / lift);
        s.byte = stored_scale(route, wanted > 448.0f ? 448.0f : wanted);
        s.unrounded = wanted;
        break;
    }
    default:
        break;
    }
    return s;
}

/* What the payload stands for under a stored scale of ROUNDED. */
static float rounded_scale(const dp_route *route, uint8_t bits)
{
    const dp_e4m3 byte = {bits};
    return dp_mul_rn_ftz(dp_e4m3_to_f32(byte), 1.0f / dp_route_lift(route));
}

/* P over its scale, before the payload is rounded. */
static float payload_value(const dp_route *route, const dp_sfu *sfu, block_scale s, float p)
{
    const float d = s.unrounded > route->divisor_floor ? s.unrounded : route->divisor_floor;
    switch (route->rule) {
    case DP_P_MAX_SIXTH:
    case DP_P_EX2_BLOCK:
        if (route->divide == DP_DIVIDE_EXACT) {
            return dp_ftz_result(p / d); /* 0/0 is NaN, code +6, under a scale of 0 */
        }
        return dp_mul_rn_ftz(p, route->divide == DP_DIVIDE_RCP ? dp_rcp_approx_ftz(sfu, d)
                                                               : dp_ftz_result(1.0f / d));
    case DP_P_ROUNDED: {
        const float scale = rounded_scale(route, s.byte);
        return scale > 0.0f ? p / scale : 0.0f;
    }
    default:
        return p;
    }
}

static bool is_log2(const dp_route *route)
{
    return route->rule == DP_P_LOG2 || route->rule == DP_P_LOG2_CEIL ||
           route->rule == DP_P_LOG2_NEAR;
}

static float represented_scale(const dp_route *route, uint8_t byte)
{
    const dp_e4m3 e4m3 = {byte};
    const dp_e8m0 e8m0 = {byte};
    if (route->rule == DP_P_ROUNDED) {
        return rounded_scale(route, byte);
    }
    return route->p == DP_OPERAND_NVFP4 ? dp_e4m3_to_f32(e4m3) / dp_route_lift(route)
                                        : dp_e8m0_to_f32(e8m0);
}

/* 2^x, or the polynomial that stands for it [R7]. */
static float mapped(const dp_route *route, const dp_sfu *sfu, float x)
{
    const dp_route_direct *d = &route->direct;
    if (d->degree == 0) {
        return dp_ex2_approx_ftz(sfu, x);
    }
    x = d->map_floor != 0.0f && x < d->map_floor ? d->map_floor : x;
    float y = d->map[d->degree];
    for (int i = d->degree - 1; i >= 0; i--) {
        y = dp_fma_rn_ftz(y, x, d->map[i]);
    }
    return y > 0.0f ? y : 0.0f;
}

/* Is this key of a tile among those that the denominator adds up? */
static bool is_sampled(const dp_route *route, size_t key)
{
    return route->direct.sampled_words == 0 || key % 32 < 8 * (size_t)route->direct.sampled_words;
}

/* One block: payload codes, scale byte, and its part of the row sum into values[] (or its total).
 */
static float quantize_block(const dp_route *route, const dp_sfu *sfu, const float *z, float *p,
                            size_t n, size_t first, float floor, uint16_t *code, uint8_t *byte,
                            dp_route_p *stats)
{
    const block_scale s = scale_of(route, sfu, z, p, n, floor);
    float represented = 0.0f;
    for (size_t i = 0; i < n; i++) {
        if (is_log2(route)) {
            p[i] = z[i] == -INFINITY ? 0.0f : mapped(route, sfu, dp_sub_rn_ftz(z[i], s.lowered));
        }
        code[i] = encoded(route->p, payload_value(route, sfu, s, p[i]), &stats->saturated);
        represented += is_sampled(route, first + i) ? decoded(route->p, code[i]) : 0.0f;
    }
    *byte = s.byte;
    const float stored = route->rule == DP_P_ROUNDED
                             ? s.unrounded
                             : dp_mul_rn_ftz(s.unrounded, dp_route_lift(route));
    stats->overflowed += route->p == DP_OPERAND_NVFP4 && stored > 448.0f;
    stats->flushed += s.byte == 0 && s.unrounded > 0.0f && route->p == DP_OPERAND_NVFP4;
    if (route->sum == DP_SUM_REPRESENTED) {
        const int words = route->direct.sampled_words;
        const float all = words > 0 ? dp_mul_rn_ftz(represented, 4.0f / (float)words) : represented;
        return dp_mul_rn_ftz(all, represented_scale(route, s.byte));
    }
    return is_log2(route) ? dp_mul_rn_ftz(packed_sum(p, n, 0.0f), s.unrounded) : 0.0f;
}

/* The new maximum, and the factor for what is already there [R3]. */
static float advance(const dp_route *route, const dp_sfu *sfu, float c, bool first,
                     const float *raw, size_t keys, dp_route_row *row)
{
    if (route->direct.shiftless) {
        row->maximum = 0.0f;
        return first ? 0.0f : 1.0f;
    }
    const float start = first && route->floor0 ? 0.0f : row->maximum;
    const float fresh = largest_of(raw, keys, start);
    const float old = row->maximum;
    row->maximum = fresh;
    if (old == -INFINITY) {
        return 0.0f;
    }
    const float t = dp_mul_rn_ftz(dp_sub_rn_ftz(old, fresh), c);
    if (route->threshold_log2 > 0.0f && t >= -route->threshold_log2) {
        row->maximum = old;
        return 1.0f;
    }
    return dp_ex2_approx_ftz(sfu, t);
}

/* P without block scales, and what it represents. */
static float quantize_plain(const dp_route *route, const float *p, size_t keys, dp_route_p *out)
{
    const float unit = 1.0f / dp_route_lift(route);
    float represented = 0.0f;
    for (size_t i = 0; i < keys; i++) {
        if (route->rule == DP_P_SCALED) {
            const float wanted = p[i] / unit;
            out->saturated += wanted > 464.0f;
            const dp_e4m3 code = dp_e4m3_from_f32(wanted, DP_ENCODE_PTX);
            const float value = dp_mul_rn_ftz(dp_e4m3_to_f32(code), unit);
            out->code[i] = dp_bf16_from_f32(value, DP_ENCODE_NONSAT).bits;
        } else {
            out->code[i] = encoded(route->p, p[i], &out->saturated);
        }
        represented += decoded(route->p, out->code[i]);
    }
    return represented;
}

/* The codes as the BF16 words that a product of decoded operands takes. */
static void decode_to_bf16(const dp_route *route, size_t keys, size_t block, dp_route_p *out)
{
    for (size_t i = 0; i < keys; i++) {
        const float scale = represented_scale(route, out->scale[i / block]);
        const float value = dp_mul_rn_ftz(decoded(route->p, out->code[i]), scale);
        out->code[i] = dp_bf16_from_f32(value, DP_ENCODE_NONSAT).bits;
    }
    memset(out->scale, 0, sizeof out->scale);
}

/* P of a row before it is quantized; z: log2 scores. */
static void exponentials(const dp_route *route, const dp_sfu *sfu, float c, float bias,
                         const float *raw, size_t keys, float *z, float *p)
{
    const dp_exp2_lanes *lanes =
        route->polynomial != NULL ? dp_exp2_lanes_by_name(route->polynomial) : NULL;
    for (size_t i = 0; i < keys; i++) {
        z[i] = dp_fma_rn_ftz(raw[i], c, bias);
        p[i] = is_log2(route) ? 0.0f : exponential(sfu, lanes, i, z[i]);
    }
}

float dp_route_tile(const dp_route *route, const dp_sfu *sfu, float c, bool first, const float *raw,
                    dp_route_row *row, dp_route_p *out)
{
    const size_t keys = dp_route_tile_keys(route);
    const float factor = advance(route, sfu, c, first, raw, keys, row);
    const float safe = row->maximum == -INFINITY ? 0.0f : row->maximum;
    const float bias = dp_fma_rn_ftz(-safe, c, route->offset_log2);
    float z[DP_ROUTE_TILE], p[DP_ROUTE_TILE], exact[DP_ROUTE_TILE];
    memset(out, 0, sizeof *out);
    exponentials(route, sfu, c, bias, raw, keys, z, p);
    memcpy(exact, p, keys * sizeof *exact);
    for (size_t i = 0; route->p_bf16 && i < keys; i++) {
        p[i] = dp_bf16_to_f32(dp_bf16_from_f32(p[i], DP_ENCODE_NONSAT));
    }
    dp_route lifted;
    if (route->lift_row) {
        const float top = largest_of(p, keys, 0.0f);
        lifted = *route;
        lifted.lift = top > 0.0f ? dp_route_lift(route) / top : 1.0f;
        route = &lifted;
    }
    const float carried = dp_mul_rn_ftz(row->sum, factor);
    const size_t n = block_of(route->p);
    const float floor = first && route->floor0 ? bias : -INFINITY; /* the z of a score of 0 */
    float represented = 0.0f;
    for (size_t b = 0; n > 0 && b < keys / n; b++) {
        represented = dp_add_rn_ftz(represented,
                                    quantize_block(route, sfu, z + b * n, p + b * n, n, b * n,
                                                   floor, out->code + b * n, &out->scale[b], out));
    }
    if (n == 0) {
        represented = quantize_plain(route, p, keys, out);
    }
    if ((n > 0 && is_log2(route)) || route->sum == DP_SUM_REPRESENTED) {
        row->sum = dp_add_rn_ftz(carried, represented);
    } else {
        row->sum = packed_sum(route->sum == DP_SUM_BF16 ? p : exact, keys, carried);
    }
    if (route->fake && n > 0) {
        decode_to_bf16(route, keys, n, out);
    }
    out->sum = row->sum;
    return factor;
}
