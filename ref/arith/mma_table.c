/* SPDX-License-Identifier: MIT
 *
 * The instructions, as data. Grades and sources of each line: ref/arith/MMA.md, section 6.
 */
#include "ref/arith/mma.h"

#define E4M3 "e4m3", DP_MMA_E4M3
#define E5M2 "e5m2", DP_MMA_E5M2
#define E2M3 "e2m3", DP_MMA_E2M3
#define E3M2 "e3m2", DP_MMA_E3M2
#define E2M1 "e2m1", DP_MMA_E2M1
#define F16  "f16", DP_MMA_F16
#define BF16 "bf16", DP_MMA_BF16
#define TF32 "tf32", DP_MMA_TF32

/* ROW(instruction, arch, A, B, dtype, family, scale, block, k, terms, F, result, e0, grade) */
#define ROW_(i, r, at, af, bt, bf, d, fam, sc, bl, k, l, f, res, e0, g)                            \
    {i, at, bt, d, r, fam, af, bf, sc, bl, k, l, f, res, e0, g},
#define ROW(...) ROW_(__VA_ARGS__)

/* The same line for each pair of element types. */
#define FP8_PAIRS(i, r, ...)                                                                       \
    ROW(i, r, E4M3, E4M3, __VA_ARGS__)                                                             \
    ROW(i, r, E4M3, E5M2, __VA_ARGS__)                                                             \
    ROW(i, r, E5M2, E4M3, __VA_ARGS__)                                                             \
    ROW(i, r, E5M2, E5M2, __VA_ARGS__)
#define EIGHT_BIT_WITH(i, r, A, ...)                                                               \
    ROW(i, r, A, E4M3, __VA_ARGS__)                                                                \
    ROW(i, r, A, E5M2, __VA_ARGS__)                                                                \
    ROW(i, r, A, E2M3, __VA_ARGS__)                                                                \
    ROW(i, r, A, E3M2, __VA_ARGS__)                                                                \
    ROW(i, r, A, E2M1, __VA_ARGS__)
#define EIGHT_BIT_PAIRS(i, r, ...)                                                                 \
    EIGHT_BIT_WITH(i, r, E4M3, __VA_ARGS__)                                                        \
    EIGHT_BIT_WITH(i, r, E5M2, __VA_ARGS__)                                                        \
    EIGHT_BIT_WITH(i, r, E2M3, __VA_ARGS__)                                                        \
    EIGHT_BIT_WITH(i, r, E3M2, __VA_ARGS__)                                                        \
    EIGHT_BIT_WITH(i, r, E2M1, __VA_ARGS__)
#define HALF_PAIRS(i, r, ...)                                                                      \
    ROW(i, r, F16, F16, __VA_ARGS__)                                                               \
    ROW(i, r, BF16, BF16, __VA_ARGS__)

/* dtype, family, scale, block, k, terms, F, result, e0: one name a unit. */
#define HALF_F32          "f32", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 16, 16, 25, DP_MMA_F32_RZ, -133
#define HALF_F16          "f16", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 16, 16, 25, DP_MMA_F16_RNE, -21
#define SINGLE_F32        "f32", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 8, 8, 25, DP_MMA_F32_RZ, -133
#define HOPPER_F32        "f32", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 32, 32, 13, DP_MMA_E8M13_RZ, -133
#define HOPPER_F16        "f16", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 32, 32, 13, DP_MMA_F16_RNE, -21
#define ADA_F32           "f32", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 16, 16, 13, DP_MMA_E8M13_RZ, -132
#define ADA_F16           "f16", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 16, 16, 13, DP_MMA_F16_RNE, -21
#define BLACK_F32         "f32", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 32, 32, 25, DP_MMA_F32_RZ, -133
#define BLACK_F16         "f16", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 32, 32, 25, DP_MMA_F16_RNE, -21
#define GEFORCE_F16       "f16", DP_MMA_FUSED, DP_MMA_NO_SCALE, 0, 32, 32, 25, DP_MMA_F16_RNE, -22
#define MX8_F32           "f32", DP_MMA_FUSED, DP_MMA_UE8M0, 32, 32, 32, 25, DP_MMA_F32_RZ, -133
#define FP4_UE4M3_16      "f32", DP_MMA_GROUPED, DP_MMA_UE4M3, 16, 64, 4, 35, DP_MMA_F32_RZ, -139
#define FP4_UE8M0_16      "f32", DP_MMA_GROUPED, DP_MMA_UE8M0, 16, 64, 4, 35, DP_MMA_F32_RZ, -139
#define FP4_UE8M0_32      "f32", DP_MMA_GROUPED, DP_MMA_UE8M0, 32, 64, 4, 35, DP_MMA_F32_RZ, -139
#define EMULATED_F32      "f32", DP_MMA_EMULATED, DP_MMA_NO_SCALE, 0, 32, 16, 25, DP_MMA_F32_RZ, -133
#define EMULATED_F16      "f16", DP_MMA_EMULATED, DP_MMA_NO_SCALE, 0, 32, 16, 25, DP_MMA_F16_RNE, -21
#define K96(scale, block) "f32", DP_MMA_UNKNOWN, scale, block, 96, 0, 0, DP_MMA_F32_RZ, 0, '?'

#define HOPPER     "sm_90a"
#define BLACK      "sm_100a sm_103a"
#define DATACENTRE "sm_90a sm_100a sm_103a"
#define GEFORCE    "sm_120a"
#define ADA        "sm_89"

/* One row a line. */
/* clang-format off */
static const dp_mma_desc table[] = {
    HALF_PAIRS("wgmma", HOPPER, HALF_F32, 'V')
    ROW("wgmma", HOPPER, F16, F16, HALF_F16, 'V')
    ROW("wgmma", HOPPER, TF32, TF32, SINGLE_F32, 'V')
    FP8_PAIRS("wgmma", HOPPER, HOPPER_F32, 'V')
    FP8_PAIRS("wgmma", HOPPER, HOPPER_F16, 'V')

    HALF_PAIRS("tcgen05.mma.kind::f16", BLACK, HALF_F32, 'V')
    ROW("tcgen05.mma.kind::f16", BLACK, F16, F16, HALF_F16, '?')
    ROW("tcgen05.mma.kind::tf32", BLACK, TF32, TF32, SINGLE_F32, 'V')
    EIGHT_BIT_PAIRS("tcgen05.mma.kind::f8f6f4", BLACK, BLACK_F32, 'M')
    EIGHT_BIT_PAIRS("tcgen05.mma.kind::f8f6f4", BLACK, BLACK_F16, 'M')
    EIGHT_BIT_PAIRS("tcgen05.mma.kind::mxf8f6f4.block32.ue8m0", BLACK, MX8_F32, 'M')
    ROW("tcgen05.mma.kind::mxf4.block32.ue8m0", BLACK, E2M1, E2M1, FP4_UE8M0_32, 'M')
    ROW("tcgen05.mma.kind::mxf4nvf4.block16.ue4m3", BLACK, E2M1, E2M1, FP4_UE4M3_16, 'M')
    ROW("tcgen05.mma.kind::mxf4nvf4.block32.ue8m0", BLACK, E2M1, E2M1, FP4_UE8M0_32, 'M')
    ROW("tcgen05.mma.kind::mxf4nvf4.block16.ue8m0", BLACK, E2M1, E2M1, FP4_UE8M0_16, 'M')
    ROW("tcgen05.mma.kind::mxf4.k96.block32.ue8m0", "sm_103a", E2M1, E2M1, K96(DP_MMA_UE8M0, 32))
    ROW("tcgen05.mma.kind::mxf4nvf4.k96.block16.ue4m3", "sm_103a", E2M1, E2M1,
        K96(DP_MMA_UE4M3, 16))
    ROW("tcgen05.mma.kind::mxf4nvf4.k96.block32.ue8m0", "sm_103a", E2M1, E2M1,
        K96(DP_MMA_UE8M0, 32))

    HALF_PAIRS("mma.sync", DATACENTRE, HALF_F32, 'V')
    ROW("mma.sync", DATACENTRE, F16, F16, HALF_F16, 'V')
    ROW("mma.sync", HOPPER, TF32, TF32, SINGLE_F32, 'V')
    FP8_PAIRS("mma.sync", DATACENTRE, EMULATED_F32, 'V')
    FP8_PAIRS("mma.sync", DATACENTRE, EMULATED_F16, 'V')
    FP8_PAIRS("mma.sync", ADA, ADA_F32, 'V')
    FP8_PAIRS("mma.sync", ADA, ADA_F16, 'V')
    FP8_PAIRS("mma.sync", GEFORCE, BLACK_F32, 'M')
    FP8_PAIRS("mma.sync", GEFORCE, GEFORCE_F16, 'M')
    EIGHT_BIT_PAIRS("mma.sync.kind::f8f6f4", GEFORCE, BLACK_F32, 'M')
    EIGHT_BIT_PAIRS("mma.sync.kind::f8f6f4", GEFORCE, GEFORCE_F16, 'M')
    EIGHT_BIT_PAIRS("mma.sync.kind::mxf8f6f4.block32.ue8m0", GEFORCE, MX8_F32, 'M')
    ROW("mma.sync.kind::mxf4.block32.ue8m0", GEFORCE, E2M1, E2M1, FP4_UE8M0_32, 'M')
    ROW("mma.sync.kind::mxf4nvf4.block16.ue4m3", GEFORCE, E2M1, E2M1, FP4_UE4M3_16, 'M')
    ROW("mma.sync.kind::mxf4nvf4.block32.ue8m0", GEFORCE, E2M1, E2M1, FP4_UE8M0_32, 'M')
    ROW("mma.sync.kind::mxf4nvf4.block16.ue8m0", GEFORCE, E2M1, E2M1, FP4_UE8M0_16, 'M')
};
/* clang-format on */

const dp_mma_desc *dp_mma_table(size_t *count)
{
    *count = sizeof table / sizeof table[0];
    return table;
}

/* Whether `word` is one of the space-separated words of `list`. */
static bool listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; length != 0 && (at = strstr(at, word)) != NULL; at++) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

const dp_mma_desc *dp_mma_find(const char *instruction, const char *atype, const char *btype,
                               const char *dtype, const char *arch)
{
    size_t count;
    const dp_mma_desc *rows = dp_mma_table(&count);
    for (size_t i = 0; i < count; i++) {
        const dp_mma_desc *row = &rows[i];
        if (strcmp(row->instruction, instruction) == 0 && strcmp(row->atype, atype) == 0 &&
            strcmp(row->btype, btype) == 0 && strcmp(row->dtype, dtype) == 0 &&
            listed(row->arch, arch)) {
            return row;
        }
    }
    return NULL;
}
