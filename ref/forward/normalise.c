/* SPDX-License-Identifier: MIT
 *
 * The represented denominator and the output of a row [D12]..[D14].
 */
#include <math.h>

#include "formats/bf16.h"
#include "ref/arith/f32_fast.h"
#include "ref/forward/classify.h"

#define C6  0x3E2AAAABu /* 1/6   */
#define C36 0x3CE38E39u /* 1/36  */
#define C12 0x3DAAAAABu /* 1/12  */
#define LN2 0x3F317218u /* ln 2  */

/* The float whose exponent field is the stored byte: byte 0 gives 0, not 2^-127. */
static float power_of_byte(uint8_t stored)
{
    return dp_f32_from_bits((uint32_t)stored << 23);
}

/* One quarter's term of the producer's sum, rounded as the epoch does. */
static float producer_term(const dp_direct_p *launch, uint8_t stored, uint16_t code_sum)
{
    const float sixth = dp_f32_from_bits(C6);
    const float half_sum = 0.5f * (float)code_sum; /* exact */
    if (launch->epoch == DP_EPOCH_S || launch->switches.fault_scale_first) {
        return dp_mul_rn_ftz(dp_mul_rn_ftz(power_of_byte(stored), sixth), half_sum);
    }
    return dp_mul_rn_ftz(power_of_byte(stored), dp_mul_rn_ftz(half_sum, sixth));
}

static float producer_add(const dp_direct_p *launch, float tile, uint8_t stored, uint16_t code_sum)
{
    if (launch->epoch == DP_EPOCH_S && launch->switches.fma_denominator) {
        const float scale = dp_mul_rn_ftz(power_of_byte(stored), dp_f32_from_bits(C6));
        return dp_fma_rn_ftz(scale, 0.5f * (float)code_sum, tile);
    }
    return dp_add_rn_ftz(tile, producer_term(launch, stored, code_sum));
}

float dp_row_sum_add(const dp_direct_p *launch, float row_sum, const uint8_t stored[DP_QUARTERS],
                     const uint16_t code_sum[DP_QUARTERS])
{
    if (launch->policy.denominator == DP_DENOMINATOR_PRODUCER) {
        float tile = producer_term(launch, stored[2], code_sum[2]);
        tile = producer_add(launch, tile, stored[0], code_sum[0]);
        tile = producer_add(launch, tile, stored[1], code_sum[1]);
        tile = producer_add(launch, tile, stored[3], code_sum[3]);
        return dp_add_rn_ftz(row_sum, tile);
    }
    for (int half = 0; half < DP_QUARTERS; half += 2) {
        const float t0 = dp_mul_rn_ftz(power_of_byte(stored[half]), (float)code_sum[half]);
        const float t1 = dp_mul_rn_ftz(power_of_byte(stored[half + 1]), (float)code_sum[half + 1]);
        row_sum = dp_add_rn_ftz(row_sum, dp_add_rn_ftz(t0, t1));
    }
    return row_sum;
}

float dp_row_sum_finish(const dp_direct_p *launch, float row_sum)
{
    return launch->policy.denominator == DP_DENOMINATOR_PRODUCER
               ? row_sum
               : dp_mul_rn_ftz(row_sum, dp_f32_from_bits(C12));
}

static float log_sum(const dp_direct_p *launch, float row_ref, float row_sum)
{
    const float log2_sum = dp_lg2_approx_ftz(launch->sfu, row_sum);
    float lse = dp_fma_rn_ftz(row_ref, launch->multiplier, log2_sum);
    if (launch->epoch == DP_EPOCH_R) {
        /* The subnormal lift of this epoch cannot act: a sum made with flushed adds is never
         * subnormal, so the term subtracted here is always 0. */
        lse = dp_add_rn_ftz(lse, (float)launch->policy.shift);
    }
    return dp_mul_rn_ftz(lse, dp_f32_from_bits(LN2));
}

void dp_output_row(const dp_direct_p *launch, float row_ref, float row_sum, const float *acc,
                   size_t dim, uint16_t *o, float *lse)
{
    const float sum = dp_ftz(row_sum);
    const bool valid = sum > 0.0f && isfinite(sum) && isfinite(row_ref);
    const float scale =
        valid ? dp_mul_rn_ftz(dp_rcp_approx_ftz(launch->sfu, sum), dp_f32_from_bits(C36)) : 0.0f;
    for (size_t d = 0; d < dim; d++) {
        const float x = valid ? dp_mul_rn_ftz(acc[d], scale) : 0.0f;
        o[d] = dp_bf16_from_f32(x, DP_ENCODE_NONSAT).bits;
    }
    if (lse != NULL) {
        *lse = valid ? log_sum(launch, row_ref, sum) : -INFINITY;
    }
}
