/* SPDX-License-Identifier: MIT */
#include "analysis/range_kernels.h"

#include <math.h>

size_t dp_range_padded(size_t keys)
{
    return (keys + DP_RANGE_LANES - 1) / DP_RANGE_LANES * DP_RANGE_LANES;
}

void dp_range_pack_keys(const float *keys, size_t count, size_t dim, float *packed)
{
    const size_t padded = dp_range_padded(count);
    for (size_t j = 0; j < padded; j++) {
        float *lane = packed + j / DP_RANGE_LANES * DP_RANGE_LANES * dim + j % DP_RANGE_LANES;
        for (size_t d = 0; d < dim; d++) {
            lane[d * DP_RANGE_LANES] = j < count ? keys[j * dim + d] : 0.0f;
        }
    }
}

void dp_range_scores(const float *const *q, const float *packed, size_t dim, size_t visible,
                     size_t padded, double *scores)
{
    for (size_t first = 0; first < visible; first += DP_RANGE_LANES) {
        const float *keys = packed + first * dim;
        double sum[DP_RANGE_TILE][DP_RANGE_LANES] = {{0.0}};
        for (size_t d = 0; d < dim; d++) {
            double key[DP_RANGE_LANES];
            for (size_t j = 0; j < DP_RANGE_LANES; j++) {
                key[j] = (double)keys[d * DP_RANGE_LANES + j];
            }
            for (size_t r = 0; r < DP_RANGE_TILE; r++) {
                const double feature = (double)q[r][d];
                for (size_t j = 0; j < DP_RANGE_LANES; j++) {
                    sum[r][j] += feature * key[j];
                }
            }
        }
        for (size_t r = 0; r < DP_RANGE_TILE; r++) {
            memcpy(scores + r * padded + first, sum[r], sizeof sum[r]);
        }
    }
}

double dp_range_softmax(double *row, size_t visible, size_t padded, double scale)
{
    double most = row[0] * scale;
    for (size_t j = 0; j < visible; j++) {
        row[j] *= scale;
        most = row[j] > most ? row[j] : most;
    }
    double sum = 0.0;
    for (size_t j = 0; j < visible; j++) {
        row[j] = exp(row[j] - most);
        sum += row[j];
    }
    double total = 0.0;
    for (size_t j = 0; j < visible; j++) {
        row[j] /= sum;
        total += row[j];
    }
    for (size_t j = visible; j < padded; j++) {
        row[j] = 0.0;
    }
    return total;
}

void dp_range_outputs(const double *p, const float *v, size_t dim, size_t visible, size_t padded,
                      double *out)
{
    for (size_t i = 0; i < DP_RANGE_TILE * dim; i++) {
        out[i] = 0.0;
    }
    for (size_t j = 0; j < visible; j++) {
        const float *value = v + j * dim;
        for (size_t r = 0; r < DP_RANGE_TILE; r++) {
            const double weight = p[r * padded + j];
            if (weight == 0.0) {
                continue;
            }
            double *sum = out + r * dim;
            for (size_t d = 0; d < dim; d++) {
                sum[d] += weight * (double)value[d];
            }
        }
    }
}
