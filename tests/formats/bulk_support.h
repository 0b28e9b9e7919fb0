/* SPDX-License-Identifier: MIT
 *
 * Shared by the suites of the bulk conversions: the paths of this machine, the policies that run on
 * SIMD, and the scalar definition as the reference.
 */
#ifndef DP_TESTS_BULK_SUPPORT_H
#define DP_TESTS_BULK_SUPPORT_H

#include <stdlib.h>

#include "formats/bulk.h"
#include "support.h"

static const dp_path bulk_paths[] = {DP_PATH_PORTABLE, DP_PATH_AVX2, DP_PATH_AVX512};
enum { BULK_PATHS = sizeof bulk_paths / sizeof bulk_paths[0] };

static inline bool bulk_has(dp_path path)
{
    return dp_path_resolve(path) == path;
}

static inline dp_bulk_options bulk_on(dp_path path, int threads)
{
    const dp_bulk_options options = {.path = path, .threads = threads};
    return options;
}

/* Every policy of nearest-even and toward-zero: 2 * 3 * 2 * 4. */
enum { BULK_POLICIES = 48 };
static inline dp_encode bulk_policy(int index)
{
    static const dp_overflow overflows[] = {DP_OVERFLOW_SATFINITE, DP_OVERFLOW_SPECIAL,
                                            DP_OVERFLOW_IEEE754};
    static const dp_nan_rule nans[] = {DP_NAN_PTX, DP_NAN_SIGNED, DP_NAN_MLDTYPES, DP_NAN_ZERO};
    dp_encode how = DP_ENCODE_PTX;
    how.round = index % 2 == 0 ? DP_RNE : DP_RZ;
    how.overflow = overflows[index / 2 % 3];
    how.inf = index / 6 % 2 == 0 ? DP_INF_LIKE_OVERFLOW : DP_INF_KEPT;
    how.nan = nans[index / 12 % 4];
    return how;
}

/* The scalar definition of each format's own header. */
static inline uint32_t bulk_reference(dp_bulk_format format, float x, dp_encode how)
{
    switch (format) {
    case DP_BULK_E2M1:
    case DP_BULK_E2M1X2:
        return dp_e2m1_from_f32(x, how).bits;
    case DP_BULK_E4M3:
        return dp_e4m3_from_f32(x, how).bits;
    case DP_BULK_UE4M3:
        return dp_ue4m3_from_f32(x, how).bits;
    case DP_BULK_E5M2:
        return dp_e5m2_from_f32(x, how).bits;
    case DP_BULK_UE5M3:
        return dp_ue5m3_from_f32(x, how).bits;
    case DP_BULK_BF16:
        return dp_bf16_from_f32(x, how).bits;
    default:
        return dp_fp16_from_f32(x, how).bits;
    }
}

static inline uint32_t bulk_reference_value(dp_bulk_format format, uint32_t code)
{
    const uint8_t byte = (uint8_t)code;
    const uint16_t word = (uint16_t)code;
    switch (format) {
    case DP_BULK_E2M1:
    case DP_BULK_E2M1X2:
        return dp_f32_bits(dp_e2m1_to_f32((dp_e2m1){byte}));
    case DP_BULK_E4M3:
        return dp_f32_bits(dp_e4m3_to_f32((dp_e4m3){byte}));
    case DP_BULK_UE4M3:
        return dp_f32_bits(dp_ue4m3_to_f32((dp_ue4m3){byte}));
    case DP_BULK_E5M2:
        return dp_f32_bits(dp_e5m2_to_f32((dp_e5m2){byte}));
    case DP_BULK_UE5M3:
        return dp_f32_bits(dp_ue5m3_to_f32((dp_ue5m3){byte}));
    case DP_BULK_E8M0:
        return dp_f32_bits(dp_e8m0_to_f32((dp_e8m0){byte}));
    case DP_BULK_BF16:
        return dp_f32_bits(dp_bf16_to_f32((dp_bf16){word}));
    default:
        return dp_f32_bits(dp_fp16_to_f32((dp_fp16){word}));
    }
}

/* Code i of an array of the format's layout. */
static inline uint32_t bulk_code(dp_bulk_format format, const void *codes, size_t i)
{
    const uint8_t *bytes = codes;
    if (format == DP_BULK_E2M1X2) {
        return dp_e2m1x2_get((dp_e2m1x2){bytes[i / 2]}, (unsigned)(i % 2)).bits;
    }
    if (format == DP_BULK_BF16 || format == DP_BULK_FP16) {
        uint16_t word;
        memcpy(&word, bytes + 2 * i, sizeof word);
        return word;
    }
    return bytes[i];
}

static inline void *bulk_allocate(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

#endif
