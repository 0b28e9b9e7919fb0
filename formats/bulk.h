/* SPDX-License-Identifier: MIT
 *
 * Whole arrays between f32 or bf16 and the element formats: SIMD and threads beside the scalar
 * definition of each format's own header, equal to it on every bit for every input, length,
 * alignment, path and thread count, and in any floating-point environment (FTZ, DAZ, rounding
 * mode, unmasked exceptions) [F1].
 *
 * Pointers need not be aligned. Source and destination must not overlap. n = 0 is allowed.
 */
#ifndef DP_FORMATS_BULK_H
#define DP_FORMATS_BULK_H

#include "formats/bf16.h"
#include "formats/e2m1.h"
#include "formats/e4m3.h"
#include "formats/e5m2.h"
#include "formats/e8m0.h"
#include "formats/fp16.h"
#include "formats/ue4m3.h"
#include "formats/ue5m3.h"

DP_BEGIN_C

/* How a code array is laid out. */
typedef enum {
    DP_BULK_E2M1,   /* one code a byte, high nibble zero                                      */
    DP_BULK_E2M1X2, /* two codes a byte, even index low [F2]; n elements take (n + 1) / 2
                       bytes, the high nibble of the last is zero where n is odd              */
    DP_BULK_E4M3,   /* one byte                                                               */
    DP_BULK_UE4M3,
    DP_BULK_E5M2,
    DP_BULK_UE5M3,
    DP_BULK_E8M0, /* one byte; encoded by dp_bulk_encode_e8m0 only                            */
    DP_BULK_BF16, /* two bytes                                                                */
    DP_BULK_FP16
} dp_bulk_format;
#define DP_BULK_FORMATS 9

/* Which code does the work. Every path gives the same bits; the choice is for tests and timing. A
 * path that the machine lacks is replaced by the next one down. */
typedef enum {
    DP_PATH_AUTO,     /* the fastest the machine has                                          */
    DP_PATH_SCALAR,   /* the scalar definition, element by element                            */
    DP_PATH_PORTABLE, /* plain C, branch-free                                                 */
    DP_PATH_AVX2,     /* AVX2                                                                 */
    DP_PATH_AVX512    /* AVX-512 F, BW, VL, DQ, VBMI: Ice Lake, Zen 4 and later               */
} dp_path;

/* The path that `path` means on this machine: never AUTO. */
dp_path dp_path_resolve(dp_path path);
/* "auto", "scalar", "portable", "avx2", "avx512" */
const char *dp_path_name(dp_path path);

/* Random bits for element `index` (0-based), a pure function: called once an element, from any
 * thread and in any order. */
typedef uint32_t dp_bulk_random(void *context, uint64_t index);

/* Zero-initialised: every online CPU, the fastest path. */
typedef struct {
    int threads; /* 0 or less: one per online CPU */
    dp_path path;
    /* DP_RS takes the bits of element i from random_words[i], else from random(random_context, i),
     * else from how.random for every element. */
    const uint32_t *random_words;
    dp_bulk_random *random;
    void *random_context;
} dp_bulk_options;

/* Bytes that n elements take. */
size_t dp_bulk_bytes(dp_bulk_format format, size_t n);
/* The description of a format; that of E8M0, which has none, is all zero. */
dp_minifloat dp_bulk_description(dp_bulk_format format);

/* codes[i] = dp_minifloat_encode(x[i]): x holds n f32 or bf16, codes dp_bulk_bytes(format, n)
 * bytes. E8M0 is left untouched: its rounding is described by dp_e8m0_encode. Nearest-even and
 * toward-zero run on SIMD with any overflow, Inf and NaN rule; the rest runs on the scalar
 * definition, threaded. */
void dp_bulk_encode_f32(dp_bulk_format format, const float *x, size_t n, dp_encode how,
                        const dp_bulk_options *options, void *codes);
void dp_bulk_encode_bf16(dp_bulk_format format, const dp_bf16 *x, size_t n, dp_encode how,
                         const dp_bulk_options *options, void *codes);
/* codes[i] = dp_e8m0_from_f32(x[i], how) */
void dp_bulk_encode_e8m0(const float *x, size_t n, dp_e8m0_encode how,
                         const dp_bulk_options *options, dp_e8m0 *codes);

/* x[i] = dp_FORMAT_to_f32(codes[i]) */
void dp_bulk_decode_f32(dp_bulk_format format, const void *codes, size_t n,
                        const dp_bulk_options *options, float *x);
/* x[i] = dp_bf16_from_f32(dp_FORMAT_to_f32(codes[i]), DP_ENCODE_NONSAT): exact for every format but
 * FP16, which is rounded to nearest even; every NaN becomes 0x7FFF. */
void dp_bulk_decode_bf16(dp_bulk_format format, const void *codes, size_t n,
                         const dp_bulk_options *options, dp_bf16 *x);

/* The same with the code's own type, so that formats cannot be mixed up:
 * dp_bulk_e4m3_from_f32(x, n, how, options, codes), dp_bulk_e4m3_to_f32(codes, n, options, x). */
#define DP_BULK_TYPED(name, type, layout)                                                          \
    static inline void dp_bulk_##name##_from_f32(const float *x, size_t n, dp_encode how,          \
                                                 const dp_bulk_options *options, type *codes)      \
    {                                                                                              \
        dp_bulk_encode_f32(layout, x, n, how, options, codes);                                     \
    }                                                                                              \
    static inline void dp_bulk_##name##_to_f32(const type *codes, size_t n,                        \
                                               const dp_bulk_options *options, float *x)           \
    {                                                                                              \
        dp_bulk_decode_f32(layout, codes, n, options, x);                                          \
    }
DP_BULK_TYPED(e2m1, dp_e2m1, DP_BULK_E2M1)
DP_BULK_TYPED(e2m1x2, dp_e2m1x2, DP_BULK_E2M1X2)
DP_BULK_TYPED(e4m3, dp_e4m3, DP_BULK_E4M3)
DP_BULK_TYPED(ue4m3, dp_ue4m3, DP_BULK_UE4M3)
DP_BULK_TYPED(e5m2, dp_e5m2, DP_BULK_E5M2)
DP_BULK_TYPED(ue5m3, dp_ue5m3, DP_BULK_UE5M3)
DP_BULK_TYPED(bf16, dp_bf16, DP_BULK_BF16)
DP_BULK_TYPED(fp16, dp_fp16, DP_BULK_FP16)
#undef DP_BULK_TYPED

DP_END_C

#endif
