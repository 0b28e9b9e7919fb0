/* SPDX-License-Identifier: MIT
 *
 * Block quantizers: n elements share one scale. Stacks that call the result "NVFP4" or "MXFP4"
 * disagree in the rule of the scale, in the order of the operations, in every tail case; here each
 * of those is a field of a recipe, and a stack is a row of a table (preset.h). Rules B1.. of
 * FORMATS.md; the numbers stand in brackets.
 *
 * This is the plain scalar definition. Arithmetic is f32, each operation rounded once to nearest
 * even; the functions on runs and tensors set the default floating-point environment while they
 * work and restore the caller's, so neither FTZ/DAZ nor a rounding mode changes a byte [B1].
 */
#ifndef DP_FORMATS_BLOCK_H
#define DP_FORMATS_BLOCK_H

#include "formats/error.h"
#include "formats/minifloat.h"

DP_BEGIN_C

#define DP_BLOCK_MAX 4096u /* longest block */
#define DP_RANK_MAX  8u

/* Stored format of a scale. E4M3 scales are non-negative: the same bytes as UE4M3. */
typedef enum {
    DP_SCALE_E4M3,
    DP_SCALE_UE5M3,
    DP_SCALE_E8M0,
    DP_SCALE_F32 /* not rounded; 4 bytes little-endian */
} dp_scale_format;

/* From amax to the stored scale [B4]. max = largest finite element, emax its exponent, t = the
 * ratio amax/max as dp_ratio computes it. */
typedef enum {
    DP_RULE_AMAX,        /* t cast to E4M3, UE5M3 or F32                                          */
    DP_RULE_FLOOR,       /* E8M0: floor(log2 amax) - emax            (OCP MX v1.0, 6.3)           */
    DP_RULE_CEIL,        /* E8M0: ceil(log2 amax) - emax                                          */
    DP_RULE_RCEIL,       /* E8M0: t rounded up (cvt.rp.ue8m0x2)                                   */
    DP_RULE_EVEN,        /* E8M0: floor after amax is rounded half up to the element's mantissa   */
    DP_RULE_ROUND,       /* E8M0: t to the nearest power, midpoint 1.5 * 2^k, ties to even code   */
    DP_RULE_ROUND_LOG2,  /* E8M0: t to the nearest power in log2, midpoint sqrt(2) * 2^k          */
    DP_RULE_FLOOR_RATIO, /* E8M0: t rounded down: one binade low for most blocks, a known fault   */
    DP_RULE_AMPLITUDE,   /* E8M0: amax itself to the nearest power; for QUOTIENT_AMPLITUDE        */
    DP_RULE_BEST_L2,     /* E8M0: of 2^floor and 2^ceil of log2(amax/max) the one with the lower
                            squared error over the block, tie to ceil                             */
    DP_RULE_ROUND_UP     /* E8M0: as ROUND, ties up (ml_dtypes 0.6.0)                             */
} dp_scale_rule;

/* Order of the operations of t; g = global encode factor, d = global decode factor [B3]. */
typedef enum {
    DP_RATIO_DIV,       /* fl(fl(amax / max) * g)          */
    DP_RATIO_RCP,       /* fl(fl(amax * fl(1/max)) * g)    */
    DP_RATIO_G_OVER,    /* fl(amax * fl(g / max))          */
    DP_RATIO_G_RCP,     /* fl(amax * fl(g * fl(1/max)))    */
    DP_RATIO_DIV_D,     /* fl(fl(amax / max) / d)          */
    DP_RATIO_OVER_MAX_D /* fl(amax / fl(max * d))         */
} dp_ratio;

/* Order of the operations that scale an element x; s = the divisor [B6]. */
typedef enum {
    DP_QUOTIENT_DIV,      /* fl(fl(x * g) / s)                                                   */
    DP_QUOTIENT_DIV_SD,   /* fl(x / fl(s * d))                                                   */
    DP_QUOTIENT_RCP,      /* fl(x * fl(g * rcp(s)))                                              */
    DP_QUOTIENT_RCP_SD,   /* fl(x * min(rcp(fl(s * d)), FLT_MAX))                                */
    DP_QUOTIENT_G_OVER_S, /* fl(x * fl(g / s))                                                   */
    DP_QUOTIENT_RCP_D_S,  /* fl(x * fl(rcp(d) / s))                                              */
    DP_QUOTIENT_AMPLITUDE /* fl(x * 2^(127-u) * max), exact but for one rounding; u = E8M0 byte  */
} dp_quotient;

/* What s is. */
typedef enum {
    DP_DIVISOR_STORED,   /* the stored scale, decoded */
    DP_DIVISOR_UNROUNDED /* t before its cast         */
} dp_divisor;

/* What scaling does when the stored byte is 0 (E4M3: scale 0; E8M0: 2^-127) [B7]. */
typedef enum {
    DP_BYTE0_VALUE,       /* nothing special: 2^-127, or a division by 0 and its Inf or NaN */
    DP_BYTE0_CODE_ZERO,   /* every code of the block is +0                                  */
    DP_BYTE0_FACTOR_ZERO, /* elements are multiplied by 0: the sign stays, NaN stays        */
    DP_BYTE0_FACTOR_ONE,  /* elements are taken as they are                                 */
    DP_BYTE0_FACTOR_MAX,  /* elements are multiplied by FLT_MAX                             */
    DP_BYTE0_EMPTY_ONLY   /* FACTOR_ZERO when t is 0, else VALUE                            */
} dp_byte0;

/* What an all-zero block is [B5]. */
typedef enum {
    DP_ZERO_AMAX_ZERO, /* amax is 0 and the rule is applied to it (E8M0: byte 0) */
    DP_ZERO_AMAX_ONE,  /* amax is replaced by 1                                  */
    DP_ZERO_SCALE_ONE, /* the scale is 1                                         */
    DP_ZERO_SCALE_NAN  /* the scale is NaN when t is 0 (ml_dtypes)       */
} dp_zero_amax;

/* A NaN, and an infinity, among the elements [B8]. */
typedef enum {
    DP_NAN_PROPAGATE, /* the scale is NaN                            */
    DP_NAN_IGNORE,    /* amax skips it; its element code is as F7    */
    DP_NAN_ERROR      /* refused                                     */
} dp_block_nan;
typedef enum {
    DP_INF_SATURATE, /* the largest finite scale                                    */
    DP_INF_BINADE,   /* the rule reads Inf as 2^128 (exponent field 255), E8M0 only */
    DP_INF_NAN,      /* the scale is NaN                                            */
    DP_INF_ERROR     /* refused                                                     */
} dp_block_inf;

/* An E8M0 exponent below -127. */
typedef enum {
    DP_E8M0_LOW_CLIP, /* byte 0                       */
    DP_E8M0_LOW_WRAP  /* the low 8 bits, a known fault */
} dp_e8m0_low;

/* A narrower format that a value passes through, to reproduce kernels that round twice [B2]. */
typedef enum { DP_VIA_NONE, DP_VIA_BF16, DP_VIA_FP16 } dp_via;

/* How a code becomes a value [B10]. */
typedef enum {
    DP_DECODE_PRODUCT,  /* code * s * d                                     */
    DP_DECODE_AMPLITUDE /* code * 2^(u-127) / max: the byte is the amplitude */
} dp_block_decode;

/* Which two codes share a byte [B9]. */
typedef enum {
    DP_PACK_PAIRS, /* 2i low, 2i+1 high                             */
    DP_PACK_HALVES /* element j low, element j + block/2 high (ggml) */
} dp_packing;

/* A quantizer. Every field is read; zero-initialised fields mean the first value of their type. */
typedef struct {
    size_t block;         /* elements that share a scale, 1..DP_BLOCK_MAX                   */
    dp_minifloat element; /* payload format, at most 8 bits                                 */
    dp_encode payload;    /* rounding and tails of the payload                              */
    dp_scale_format scale;
    dp_encode scale_encode; /* rounding and overflow of an E4M3 or UE5M3 scale              */
    dp_scale_rule rule;
    dp_ratio ratio;
    dp_quotient quotient;
    dp_divisor divisor;
    dp_byte0 byte0;
    float scale_min;   /* t is at least this (0: no floor)                                  */
    float divisor_add; /* added to s                                                        */
    float divisor_min; /* s is at least this                                                */
    float amax_zero;   /* an amax up to this counts as 0                                    */
    dp_zero_amax zero_amax;
    dp_block_nan nan;
    dp_block_inf inf;
    dp_e8m0_low low;
    dp_via amax_via;       /* amax is rounded to this first                                 */
    dp_via quotient_via;   /* the scaled element is rounded to this before the payload cast */
    bool log2_f32;         /* FLOOR: exponent = floor of log2(amax) rounded to f32, a fault */
    bool nan_scale_as_inf; /* a NaN scale divides as Inf                                    */
    bool ftz;              /* every f32 operation flushes subnormal inputs and results      */
    dp_block_decode decode;
    dp_packing packing;
    float (*rcp)(float); /* reciprocal; NULL = correctly rounded. For approximate ones [B6] */
} dp_block_recipe;

/* The global scale of NVFP4, one f32 for a tensor. The kind is never guessed: files of both kinds
 * exist and mixing them up is wrong by the square [B11]. */
typedef enum {
    DP_GLOBAL_NONE, /* 1                                                        */
    DP_GLOBAL_MUL,  /* value = decode factor d: x = code * s * d                */
    DP_GLOBAL_DIV   /* value = encode factor g: x = code * s / g                */
} dp_global_kind;
typedef struct {
    dp_global_kind kind;
    float value; /* positive and finite */
} dp_global;

/* A recipe made ready: checked, with its constants. Copy freely. */
typedef struct {
    dp_block_recipe recipe;
    dp_global global;
    float g, d;          /* encode and decode factor; the one not given is fl(1/other) */
    float max;           /* largest finite element */
    float rcp_max;       /* fl(1/max) */
    int emax;            /* exponent of max */
    size_t element_bits; /* 4 or 8: bits of a stored code */
    size_t scale_size;   /* bytes of a stored scale: 1 or 4 */
} dp_block_plan;

bool dp_block_plan_make(const dp_block_recipe *recipe, dp_global global, dp_block_plan *plan,
                        dp_error *error);

/* What happened, element and block counts. Sums of several calls may be added. */
typedef struct {
    uint64_t elements;
    uint64_t padded;           /* zeros that filled ragged tails, not in `elements`              */
    uint64_t nan;              /* NaN elements                                                   */
    uint64_t inf;              /* infinite elements                                              */
    uint64_t saturated;        /* finite elements whose scaled magnitude exceeded the largest    */
    uint64_t flushed;          /* elements other than 0 that decode to 0                         */
    uint64_t blocks;           /* all of them                                                    */
    uint64_t zero_blocks;      /* blocks whose elements are all 0                                */
    uint64_t zero_scales;      /* stored scale decodes to 0                                      */
    uint64_t saturated_scales; /* finite blocks whose scale was cut to the largest               */
    uint64_t nan_scales;       /* stored scale is NaN                                            */
    uint64_t clipped_blocks;   /* blocks with a saturated element; conformant under FLOOR        */
} dp_block_stats;
void dp_block_stats_add(dp_block_stats *sum, const dp_block_stats *more);

/* One block. x: n elements, 1 <= n <= recipe.block; the missing ones count as zeros. codes: n
 * codes, one a byte. scale: plan.scale_size bytes. stats is added to, or NULL. Assumes the default
 * floating-point environment. False, and nothing written, only for NaN or Inf that the recipe
 * refuses; *bad is then the index of the element. */
bool dp_block_quantize_one(const dp_block_plan *plan, const float *x, size_t n, uint8_t *codes,
                           uint8_t *scale, dp_block_stats *stats, size_t *bad);

/* The value of a stored scale: exact; E8M0 0xFF and NaN codes give NaN. */
float dp_block_scale_value(dp_scale_format format, const uint8_t *scale);
/* The stored scale of a block whose largest magnitude is amax (not NaN); x and n are read by
 * BEST_L2 alone. unrounded, if not NULL, gets t. For tools that explain a byte. */
void dp_block_scale_of(const dp_block_plan *plan, float amax, const float *x, size_t n,
                       uint8_t *scale, float *unrounded);

/* Value of a code under a stored scale: as double exact, but for the division of GLOBAL_DIV and of
 * DECODE_AMPLITUDE, which is rounded once; as f32 that rounded once more [B10]. */
double dp_block_value(const dp_block_plan *plan, uint32_t code, const uint8_t *scale);
float dp_block_value_f32(const dp_block_plan *plan, uint32_t code, const uint8_t *scale);

/* A tensor in memory: shape and strides in elements. Any strides, negative ones too. */
typedef struct {
    size_t rank; /* 1..DP_RANK_MAX */
    size_t shape[DP_RANK_MAX];
    ptrdiff_t stride[DP_RANK_MAX];
} dp_tensor;
/* Row-major strides for a shape. */
dp_tensor dp_tensor_contiguous(size_t rank, const size_t *shape);

/* The quantized form: runs along the axis, in row-major order of the other axes. A run is padded
 * with zeros to whole blocks; blocks never cross a run [B12]. */
typedef struct {
    size_t runs;
    size_t length;            /* elements of a run */
    size_t blocks;            /* blocks of a run   */
    size_t padded;            /* zeros at the end of a run */
    size_t run_payload_bytes; /* ceil(blocks * block / 2) for 4-bit codes, else blocks * block */
    size_t run_scale_bytes;   /* blocks * scale size */
    size_t payload_bytes;     /* all runs */
    size_t scale_bytes;
} dp_block_shape;
bool dp_block_shape_of(const dp_block_plan *plan, const dp_tensor *tensor, size_t axis,
                       dp_block_shape *shape, dp_error *error);

/* One run of `length` elements, `stride` apart. payload and scale: run_payload_bytes and
 * run_scale_bytes. False for a refused NaN or Inf; *bad is then its index in the run. */
bool dp_block_quantize_run(const dp_block_plan *plan, const float *x, ptrdiff_t stride,
                           size_t length, uint8_t *payload, uint8_t *scale, dp_block_stats *stats,
                           size_t *bad);
void dp_block_dequantize_run(const dp_block_plan *plan, const uint8_t *payload,
                             const uint8_t *scale, size_t length, float *out, ptrdiff_t stride);
void dp_block_dequantize_run_f64(const dp_block_plan *plan, const uint8_t *payload,
                                 const uint8_t *scale, size_t length, double *out,
                                 ptrdiff_t stride);

/* Whole tensors, blocks along `axis` (0..rank-1). payload and scale: sizes of dp_block_shape_of.
 * threads <= 0: one per CPU; the result does not depend on it. stats is set (NULL: not wanted). */
bool dp_block_quantize(const dp_block_plan *plan, const float *x, const dp_tensor *tensor,
                       size_t axis, int threads, uint8_t *payload, uint8_t *scale,
                       dp_block_stats *stats, dp_error *error);
/* Back to a tensor of any strides: f32, and double. */
bool dp_block_dequantize(const dp_block_plan *plan, const uint8_t *payload, const uint8_t *scale,
                         const dp_tensor *tensor, size_t axis, int threads, float *out,
                         dp_error *error);
bool dp_block_dequantize_f64(const dp_block_plan *plan, const uint8_t *payload,
                             const uint8_t *scale, const dp_tensor *tensor, size_t axis,
                             int threads, double *out, dp_error *error);

/* Code of element i of a run, from the packed payload. */
uint32_t dp_block_get_code(const dp_block_plan *plan, const uint8_t *payload, size_t i);

DP_END_C

#endif
