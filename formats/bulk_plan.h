/* SPDX-License-Identifier: MIT
 *
 * Inside of the bulk conversions: an encode policy or a format turned into the constants that a
 * branch-free kernel needs, and the table of kernels each path offers. Not installed for users.
 */
#ifndef DP_FORMATS_BULK_PLAN_H
#define DP_FORMATS_BULK_PLAN_H

#include "formats/bulk.h"

/* An encode with nearest-even or toward-zero rounding, on magnitudes:
 *   m = min(|x|, clamp), e = max(exponent field of m, first_field), quotient = round(m / 2^(e-..)),
 *   code = quotient + (e << mantissa_bits) - offset,
 * then Inf, the sign and NaN replace or complete the code. */
typedef struct {
    bool vector;    /* the policy is one the kernels do; else the scalar definition          */
    bool truncate;  /* RZ, else RNE                                                          */
    bool prefix;    /* BF16: the subnormal grid is that of f32, rounding is one addition     */
    uint32_t clamp; /* f32 bits: the largest finite value, or the next on the continued grid
                       where overflow is special [F5, F6]                                    */
    uint32_t first_field; /* f32 exponent field of the smallest normal                            */
    uint32_t mantissa_bits;
    uint32_t offset;
    uint32_t inf_code;   /* without sign                                                          */
    uint32_t nan_code;   /* of a NaN with sign 0                                                  */
    uint32_t nan_sign;   /* what a set sign bit toggles in it                                     */
    uint32_t sign_bit;   /* 0 where the format has none                                           */
    uint32_t sign_shift; /* from bit 31 of the f32 to sign_bit                                    */
    bool tails;          /* Inf is not what the clamp makes of it, or the sign of a NaN counts    */
} dp_bulk_plan;

/* An E8M0 encode: code = (a + add + (lsb of the field & even)) >> 23 for normal a, a > threshold
 * for subnormal a, then at most `most`; NaN is 0xFF. */
typedef struct {
    uint32_t add;
    uint32_t even;
    uint32_t threshold;
    uint32_t most;
} dp_bulk_e8m0_plan;

dp_bulk_plan dp_bulk_plan_minifloat(dp_minifloat f, dp_encode how);
dp_bulk_plan dp_bulk_plan_encode(dp_bulk_format format, dp_encode how);
dp_bulk_e8m0_plan dp_bulk_plan_e8m0(dp_e8m0_encode how);

/* The values of all codes of a format of at most 8 bits. */
typedef struct {
    uint32_t f32[256];
    uint16_t bf16[256];
} dp_bulk_table;

void dp_bulk_table_fill(dp_bulk_format format, dp_bulk_table *table);

/* The source of an encode: n elements of f32 or bf16. */
typedef struct {
    const void *data;
    bool bf16;
} dp_bulk_source;

/* Pack codes as they leave a kernel. */
typedef enum { DP_BULK_NIBBLES, DP_BULK_BYTES, DP_BULK_WORDS } dp_bulk_width;

dp_bulk_width dp_bulk_width_of(dp_bulk_format format);

/* One thread's share. `stream` asks for stores that bypass the cache. */
typedef struct {
    void (*encode)(const dp_bulk_plan *plan, dp_bulk_width width, dp_bulk_source source, size_t n,
                   uint8_t *codes, bool stream);
    void (*encode_e8m0)(const dp_bulk_e8m0_plan *plan, const float *x, size_t n, uint8_t *codes,
                        bool stream);
    /* Formats of at most 8 bits, by table; width NIBBLES or BYTES. */
    void (*decode_f32)(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                       size_t n, uint8_t *x, bool stream);
    void (*decode_bf16)(const dp_bulk_table *table, dp_bulk_width width, const uint8_t *codes,
                        size_t n, uint8_t *x, bool stream);
    void (*fp16_to_f32)(const uint8_t *codes, size_t n, uint8_t *x, bool stream);
    void (*bf16_to_f32)(const uint8_t *codes, size_t n, uint8_t *x, bool stream);
} dp_bulk_kernels;

extern const dp_bulk_kernels dp_bulk_portable;
#if defined(__x86_64__)
extern const dp_bulk_kernels dp_bulk_avx2;
extern const dp_bulk_kernels dp_bulk_avx512;
#endif

/* f32 bits of element i of a source. */
static inline uint32_t dp_bulk_load(dp_bulk_source source, size_t i)
{
    const uint8_t *bytes = (const uint8_t *)source.data;
    if (source.bf16) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        return (uint32_t)half << 16;
    }
    uint32_t bits;
    memcpy(&bits, bytes + 4 * i, sizeof bits);
    return bits;
}

static inline dp_bulk_source dp_bulk_advance(dp_bulk_source source, size_t i)
{
    source.data = (const uint8_t *)source.data + (source.bf16 ? 2 : 4) * i;
    return source;
}

/* The code of one f32; see dp_bulk_plan. */
static inline uint32_t dp_bulk_encode_one(const dp_bulk_plan *plan, uint32_t bits)
{
    const uint32_t magnitude = bits & DP_F32_ABS;
    const uint32_t m = magnitude < plan->clamp ? magnitude : plan->clamp;
    uint32_t code;
    if (plan->prefix) {
        code = (m + (plan->truncate ? 0u : 0x7FFFu + ((m >> 16) & 1u))) >> 16;
    } else {
        const uint32_t field = m >> 23;
        const uint32_t e = field > plan->first_field ? field : plan->first_field;
        /* From 26 on nothing is left of 24 bits, nor of half a unit; 30 keeps the sum in range. A
         * subnormal f32 lies far below, so its hidden bit does not matter. */
        const uint32_t wanted = 23u - plan->mantissa_bits + (e - field);
        const uint32_t shift = wanted < 30u ? wanted : 30u;
        const uint32_t significand = (m & 0x7FFFFFu) | 0x800000u;
        const uint32_t half =
            plan->truncate ? 0u : ((1u << shift) >> 1) - 1u + ((significand >> shift) & 1u);
        code = ((significand + half) >> shift) + (e << plan->mantissa_bits) - plan->offset;
    }
    const uint32_t sign = (bits >> plan->sign_shift) & plan->sign_bit;
    code = magnitude == DP_F32_INF ? plan->inf_code : code;
    code |= sign;
    return magnitude > DP_F32_INF ? plan->nan_code ^ (sign & plan->nan_sign) : code;
}

/* The E8M0 code of one f32; see dp_bulk_e8m0_plan. */
static inline uint32_t dp_bulk_e8m0_one(const dp_bulk_e8m0_plan *plan, uint32_t bits)
{
    const uint32_t magnitude = bits & DP_F32_ABS;
    const uint32_t field = magnitude >> 23;
    const uint32_t normal = (magnitude + plan->add + (field & plan->even)) >> 23;
    const uint32_t code = field == 0 ? (magnitude > plan->threshold ? 1u : 0u) : normal;
    const uint32_t most = magnitude > DP_F32_INF ? DP_E8M0_NAN : plan->most;
    return code < most ? code : most;
}

#endif
