/* SPDX-License-Identifier: MIT
 *
 * A second derivation of the block quantizers: values in double, rounded to f32 by a cast, codes
 * found by searching tables of values. Slow, and shares with formats/ only the recipe it reads and
 * the catalogue's value of a code.
 */
#ifndef DP_TESTS_BLOCK_MODEL_H
#define DP_TESTS_BLOCK_MODEL_H

#include "formats/block.h"

/* As dp_block_quantize_one; codes for n elements, scale as plan.scale_size bytes. False when the
 * recipe refuses the block. */
bool dp_model_quantize(const dp_block_recipe *recipe, dp_global global, const float *x, size_t n,
                       uint8_t *codes, uint8_t *scale);

#endif
