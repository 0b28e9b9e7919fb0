/* SPDX-License-Identifier: MIT */
#include "analysis/device_softmax.h"

#include <math.h>

#include "analysis/range_kernels.h"
#include "ref/arith/sfu.h"

float dp_device_expf(float x)
{
    const float per_252 = dp_f32_from_bits(0x3BBB989Du);    /* log2(e) / 252 */
    const float log2e = dp_f32_from_bits(0x3FB8AA3Bu);      /* log2(e) rounded */
    const float log2e_rest = dp_f32_from_bits(0x32A57060u); /* and what that leaves */
    const float clamped = (float)((double)x * (double)per_252 + 0.5);
    const double place = clamped < 0.0f ? 0.0 : clamped > 1.0f ? 1.0 : (double)clamped;
    const double whole = floor(place * 252.0 + 1.0) - 127.0;
    const float high = (float)((double)x * (double)log2e - whole);
    const float fraction = (float)((double)x * (double)log2e_rest + (double)high);
    return dp_ex2_approx_ftz(dp_sfu_h200(), fraction) * (float)ldexp(1.0, (int)whole);
}

/* The product of two binary32 numbers is exact in binary64, so that each step rounds the sum (to
 * binary64, then to binary32) and nothing else. */
void dp_device_scores(const float *const *q, const float *packed, size_t dim, size_t visible,
                      size_t padded, double *scores)
{
    for (size_t first = 0; first < visible; first += DP_RANGE_LANES) {
        const float *keys = packed + first * dim;
        for (size_t r = 0; r < DP_RANGE_TILE; r++) {
            float sum[DP_RANGE_LANES] = {0.0f};
            for (size_t d = 0; d < dim; d++) {
                const double feature = (double)q[r][d];
                const float *key = keys + d * DP_RANGE_LANES;
                for (size_t j = 0; j < DP_RANGE_LANES; j++) {
                    sum[j] = (float)((double)sum[j] + feature * (double)key[j]);
                }
            }
            for (size_t j = 0; j < DP_RANGE_LANES; j++) {
                scores[r * padded + first + j] = (double)sum[j];
            }
        }
    }
}

double dp_device_softmax(double *row, size_t visible, size_t padded, double scale)
{
    const float factor = (float)scale;
    float most = -INFINITY;
    for (size_t j = 0; j < visible; j++) {
        const float scaled = (float)row[j] * factor;
        row[j] = (double)scaled;
        most = scaled > most ? scaled : most;
    }
    double sum = 0.0;
    for (size_t j = 0; j < visible; j++) {
        row[j] = (double)dp_device_expf((float)row[j] - most);
        sum += row[j];
    }
    const float whole = (float)sum;
    double total = 0.0;
    for (size_t j = 0; j < visible; j++) {
        row[j] = (double)((float)row[j] / whole);
        total += row[j];
    }
    for (size_t j = visible; j < padded; j++) {
        row[j] = 0.0;
    }
    return total;
}
