/* SPDX-License-Identifier: MIT
 *
 * Block quantizers and their decoders over whole tensors with SIMD and threads, beside the scalar
 * definition of block.h and equal to it on every byte for every recipe, shape, axis, path and
 * thread count. Recipes that no kernel does run on the scalar definition.
 */
#ifndef DP_FORMATS_BULK_BLOCK_H
#define DP_FORMATS_BULK_BLOCK_H

#include "formats/block.h"
#include "formats/bulk.h"

DP_BEGIN_C

/* True when SIMD does the recipe: blocks of 16 or 32; payload of 4 bits in pairs or of 8 bits,
 * nearest or toward zero, NaN without sign; scale E4M3 or UE5M3 from amax, or E8M0 by FLOOR, CEIL,
 * RCEIL, EVEN, ROUND, FLOOR_RATIO or AMPLITUDE; the divisor is the stored scale; no refusals, no
 * extra roundings, no FTZ. Every ratio and quotient order, and any reciprocal, is among them. */
bool dp_bulk_block_is_fast(const dp_block_plan *plan);

/* dp_block_quantize without statistics: blocks along `axis` of an f32 tensor (strides in elements,
 * any sign); payload and scale take the sizes of dp_block_shape_of. options: threads and path. */
bool dp_bulk_block_quantize_f32(const dp_block_plan *plan, const float *x, const dp_tensor *tensor,
                                size_t axis, const dp_bulk_options *options, uint8_t *payload,
                                uint8_t *scale, dp_error *error);
/* The same for the f32 values of a bf16 tensor. */
bool dp_bulk_block_quantize_bf16(const dp_block_plan *plan, const dp_bf16 *x,
                                 const dp_tensor *tensor, size_t axis,
                                 const dp_bulk_options *options, uint8_t *payload, uint8_t *scale,
                                 dp_error *error);

/* dp_block_dequantize. */
bool dp_bulk_block_dequantize_f32(const dp_block_plan *plan, const uint8_t *payload,
                                  const uint8_t *scale, const dp_tensor *tensor, size_t axis,
                                  const dp_bulk_options *options, float *out, dp_error *error);
/* The f32 of dp_block_dequantize rounded to bf16 by DP_ENCODE_NONSAT. */
bool dp_bulk_block_dequantize_bf16(const dp_block_plan *plan, const uint8_t *payload,
                                   const uint8_t *scale, const dp_tensor *tensor, size_t axis,
                                   const dp_bulk_options *options, dp_bf16 *out, dp_error *error);

DP_END_C

#endif
