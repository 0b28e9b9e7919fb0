/* SPDX-License-Identifier: MIT
 *
 * What the quantizers share.
 */
#ifndef DP_DEVICE_QUANTIZE_CUH
#define DP_DEVICE_QUANTIZE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

enum { DPD_DIM = 128 }; /* features of a row */

/* Output row `row` of a head, which is input row order[row], or row. */
template <bool ORDERED>
__device__ __forceinline__ const uint4 *dpd_row(const uint16_t *x, const int32_t *order,
                                                size_t head, int row, int rows)
{
    const size_t from = head * rows + (ORDERED ? order[row] : row);
    return reinterpret_cast<const uint4 *>(x + from * DPD_DIM);
}

/* The folded NVFP4, as dpd_quantize_qk. */
void dpd_quantize_fold(const uint16_t *x, const int32_t *order, int heads, int rows,
                       int padded_rows, uint8_t *payload, uint8_t *scale, cudaStream_t stream);

#endif
