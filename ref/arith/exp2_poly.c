/* SPDX-License-Identifier: MIT */
#include "ref/arith/exp2_poly.h"

#define MAGIC       0x4B400000u /* 2^23 + 2^22 */
#define MINUS_127   0xC2FE0000u
#define ROW_PER_DEG (DP_EXP2_MAX_DEGREE + 1)

/* flash_attn/cute/utils.py, POLY_EX2; c[0] is 1 in every degree. */
static const uint32_t coefficients[DP_EXP2_MAX_DEGREE][ROW_PER_DEG] = {
    {0x3F800000u, 0x3F6C28C5u},
    {0x3F800000u, 0x3F2A70E4u, 0x3EA903CAu},
    {0x3F800000u, 0x3F31F519u, 0x3E6906A4u, 0x3D9DF09Du},
    {0x3F800000u, 0x3F316B3Fu, 0x3E77150Eu, 0x3D55EA42u, 0x3C5C1E37u},
    {0x3F800000u, 0x3F31725Fu, 0x3E75ED73u, 0x3D6490D6u, 0x3C13B1A6u, 0x3AF4DB16u},
};

const uint32_t *dp_exp2_poly_coefficients(unsigned degree)
{
    const unsigned row = degree < 1 ? 1 : degree > DP_EXP2_MAX_DEGREE ? DP_EXP2_MAX_DEGREE : degree;
    return coefficients[row - 1];
}

uint32_t dp_exp2_poly(uint32_t x, unsigned degree)
{
    const uint32_t *c = dp_exp2_poly_coefficients(degree);
    const uint32_t y = dp_f32_max(x, MINUS_127, true, false);
    const uint32_t t = dp_f32_add(y, MAGIC, DP_F32_RM_FTZ);
    const uint32_t back = dp_f32_sub(t, MAGIC, DP_F32_RN_FTZ);
    const uint32_t r = dp_f32_sub(y, back, DP_F32_RN_FTZ);
    uint32_t p = c[degree];
    for (unsigned i = degree; i-- > 0;) {
        p = dp_f32_fma(p, r, c[i], DP_F32_RN_FTZ);
    }
    return p + (t << 23);
}

/* FlashAttention-4 at 0251105 (flash_fwd_sm100.py) and HAO's FP4 fork (MrHuff/fp4-fa4 at edde9bcb).
 */
static const dp_exp2_lanes table[] = {{"off", 0, 4, 0},         {"fa4-2cta-d128", 10, 4, 1},
                                      {"fa4-d128", 16, 4, 1},   {"fa4-d192", 16, 4, 0},
                                      {"fa4-varlen", 32, 4, 1}, {"fa4-fp8-causal", 8, 4, 1},
                                      {"hao-fp8-pv", 9, 4, 0},  {"hao-fp8-pv-mxfp8-qk", 10, 4, 0},
                                      {"fa4-d256", 14, 6, 0},   {NULL, 0, 0, 0}};

const dp_exp2_lanes *dp_exp2_lane_table(void)
{
    return table;
}

const dp_exp2_lanes *dp_exp2_lanes_by_name(const char *name)
{
    for (const dp_exp2_lanes *entry = table; entry->name != NULL; entry++) {
        if (strcmp(entry->name, name) == 0) {
            return entry;
        }
    }
    return NULL;
}
