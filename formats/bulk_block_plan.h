/* SPDX-License-Identifier: MIT
 *
 * Inside of the bulk block quantizers: a recipe turned into constants and tables, and the kernels
 * of each path. Not installed for users.
 *
 * A kernel does a block in three steps: amax (integer maximum of the magnitudes), the scale byte
 * from it, and the codes of v = fl(fl(x * before) op factor). before and factor depend on the
 * stored byte alone, so the scalar definition fills them into tables of 256.
 */
#ifndef DP_FORMATS_BULK_BLOCK_PLAN_H
#define DP_FORMATS_BULK_BLOCK_PLAN_H

#include "formats/bulk_block.h"
#include "formats/bulk_plan.h"

/* Blocks a kernel takes at a step; shares of threads are multiples of it. */
enum { DP_BULK_BLOCKS = 16 };

typedef enum {
    DP_BULK_SCALE_CAST,  /* t to E4M3 or UE5M3                            */
    DP_BULK_SCALE_FIELD, /* E8M0: ((amax + add) >> 23) - emax, 0 at least */
    DP_BULK_SCALE_T,     /* E8M0: t to a power of two                     */
    DP_BULK_SCALE_AMAX   /* E8M0: amax to a power of two                  */
} dp_bulk_scale_kind;

typedef struct {
    size_t block; /* 16 or 32 */
    dp_bulk_plan element;
    dp_bulk_width width; /* NIBBLES or BYTES */
    /* amax [B5], [B8] */
    bool ignore_nan;
    uint32_t amax_zero;  /* f32 bits: magnitudes up to this ... */
    uint32_t amax_small; /* ... become this                      */
    /* t = (amax op first) op second, at least scale_min [B3] */
    bool first_divides, second_divides;
    float first, second, scale_min;
    /* the byte [B4] */
    dp_bulk_scale_kind kind;
    dp_bulk_plan cast;
    dp_bulk_e8m0_plan power;
    uint32_t field_add;
    uint32_t emax;
    bool inf_replaced;
    uint32_t inf_byte, nan_byte;
    /* the quotient [B6], [B7] */
    bool divides;    /* op is a division, else a product                */
    bool scales;     /* some `before` is not 1                          */
    bool zero_codes; /* byte 0: every code of the block is +0           */
    bool flush_safe; /* subnormal results of the quotient may be zeros  */
    /* Bytes under which subnormal elements may be zeros too: first .. first + count - 1. */
    uint32_t tame_first, tame_count;
    float before[256];
    float factor[256];
} dp_bulk_block_plan;

/* False: no kernel does this recipe. Assumes the default floating-point environment. */
bool dp_bulk_block_plan_make(const dp_block_plan *plan, dp_bulk_block_plan *fast);

/* Every value of a recipe with 4-bit codes and 1-byte scales: f32 bits, or bf16 bits << 16. */
typedef struct {
    uint32_t value[256][16];
} dp_bulk_block_values;

/* One thread's share of whole blocks that follow each other, under the default floating-point
 * environment. */
typedef struct {
    void (*quantize)(const dp_bulk_block_plan *plan, dp_bulk_source source, size_t blocks,
                     uint8_t *payload, uint8_t *scale, bool stream);
    /* packed 4-bit codes of n = a multiple of 16 elements; out: f32, or bf16 */
    void (*dequantize)(const dp_bulk_block_values *values, size_t block, const uint8_t *payload,
                       const uint8_t *scale, size_t n, bool bf16, uint8_t *out, bool stream);
    /* to[run][i] = from[i * stride + run], f32, 16 runs of n <= 512; to is [16][512] */
    void (*gather)(dp_bulk_source from, ptrdiff_t stride, size_t n, float *to);
} dp_bulk_block_kernels;

enum { DP_BULK_TILE = 512 };

extern const dp_bulk_block_kernels dp_bulk_block_portable;
#if defined(__x86_64__)
extern const dp_bulk_block_kernels dp_bulk_block_avx2;
extern const dp_bulk_block_kernels dp_bulk_block_avx512;
#endif

#endif
