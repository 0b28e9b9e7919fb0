/* SPDX-License-Identifier: MIT
 *
 * The kernels, as the host calls them: device pointers, one stream, no errors but CUDA's.
 */
#ifndef DP_DEVICE_KERNELS_CUH
#define DP_DEVICE_KERNELS_CUH

#include <cuda_runtime.h>

#include "device/directp_device.h"

/* The problem on the device. */
struct dpd_problem {
    int batch, q_heads, kv_heads;
    int queries, keys;
    int key_rows; /* keys rounded up to 128 */
    int causal;
    const int32_t *key_order;
    const uint16_t *q, *k, *v;
};

/* The key at a physical position is padding, or behind the causal mask of a query row [D15]. */
__device__ __forceinline__ bool dpd_hidden(const dpd_problem &p, int row, int position)
{
    return position >= p.keys || (p.causal && p.key_order[position] + p.queries > row + p.keys);
}

/* Stage quantize. rows x 128 bf16 at x (row i of the output is row order[i], or i); zero rows fill
 * up. */
void dpd_quantize_qk(const uint16_t *x, const int32_t *order, int heads, int rows, int padded_rows,
                     bool fold, uint8_t *payload, uint8_t *scale, cudaStream_t stream);
void dpd_quantize_v(const uint16_t *v, const int32_t *order, int heads, int keys, int key_rows,
                    bool zero_nan, uint8_t *payload, uint8_t *scale, cudaStream_t stream);

/* One head. raw [queries][key_rows]. */
void dpd_score(const dpd_problem &problem, const uint8_t *q_payload, const uint8_t *q_scale,
               const uint8_t *k_payload, const uint8_t *k_scale, float *raw, cudaStream_t stream);
void dpd_reference(const dpd_problem &problem, const dp_device_policy &policy, const float *raw,
                   float *row_ref, cudaStream_t stream);
/* `heads` of them, one after the other in every array. */
void dpd_produce(const dpd_problem &problem, const dp_device_policy &policy, int heads,
                 const float *raw, const float *row_ref, uint8_t *p_scale, uint8_t *p_payload,
                 uint16_t *code_sum, cudaStream_t stream);
void dpd_denominate(const dpd_problem &problem, const dp_device_policy &policy,
                    const uint8_t *p_scale, const uint16_t *code_sum, float *row_sum,
                    cudaStream_t stream);
void dpd_accumulate(const dpd_problem &problem, const uint8_t *p_payload, const uint8_t *p_scale,
                    const uint8_t *v_payload, const uint8_t *v_scale, float *acc,
                    cudaStream_t stream);
void dpd_output(const dpd_problem &problem, const dp_device_policy &policy, const float *row_ref,
                const float *row_sum, const float *acc, uint16_t *o, float *lse,
                cudaStream_t stream);

/* The fused forward: every head. kv_of_q on the device. */
void dpd_forward(const dpd_problem &problem, const dp_device_policy &policy, const int32_t *kv_of_q,
                 const uint8_t *q_payload, const uint8_t *q_scale, const uint8_t *k_payload,
                 const uint8_t *k_scale, const uint8_t *v_payload, const uint8_t *v_scale,
                 uint16_t *o, float *lse, cudaStream_t stream);

/* BF16 attention in the order of FlashAttention-4: every head. kv_of_q on the device; scale is
 * log2(e) times the softmax scale. */
void dpd_reference_forward(const dpd_problem &problem, const int32_t *kv_of_q, float scale,
                           uint16_t *o, float *lse, cudaStream_t stream);

#endif
