/* SPDX-License-Identifier: MIT
 *
 * Operands of a standard path in the format its matrix product takes, one tile at a time.
 */
#ifndef DP_REF_FORWARD_ROUTE_OPERANDS_H
#define DP_REF_FORWARD_ROUTE_OPERANDS_H

#include "ref/arith/gemm.h"
#include "ref/forward/route.h"

/* The instruction that multiplies two operands of a format, NULL when the table has none. */
const dp_mma_desc *dp_operand_instruction(dp_operand_format format);

/* What one number of the format is in memory before it is decoded for the matrix unit:
 * bytes of `count` codes, scales of `count` numbers. */
size_t dp_operand_bytes(dp_operand_format format, size_t count);
size_t dp_operand_scales(dp_operand_format format, size_t count);

/* Quantize `rows` x `cols` (x[row * row_stride + col * col_stride], cols a multiple of 32 up to
 * DP_ROUTE_TILE, blocks along cols) and decode it for side `side` of the product. fake: NVFP4 and
 * MXFP8 become what they stand for, rounded to BF16, for the product of BF16 operands. Not INT8. */
bool dp_operand_prepare(dp_operand_format format, bool fake, dp_mma_side side,
                        const dp_mma_switches *mma, const float *x, size_t rows, size_t cols,
                        ptrdiff_t row_stride, ptrdiff_t col_stride, dp_mma_matrix *matrix,
                        dp_error *error);

#endif
