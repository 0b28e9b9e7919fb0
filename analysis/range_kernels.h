/* SPDX-License-Identifier: MIT
 *
 * The three loops that the range diagnostic spends its time in, on tiles of DP_RANGE_TILE query
 * rows. Every sum runs in a fixed order (over features for a score, over keys for an output), lanes
 * are independent sums, and products are not fused: the vector width the compiler picks cannot
 * change a bit.
 */
#ifndef DP_ANALYSIS_RANGE_KERNELS_H
#define DP_ANALYSIS_RANGE_KERNELS_H

#include "formats/base.h"

/* Rows of a tile; keys that lie side by side in packed keys. */
enum { DP_RANGE_TILE = 4, DP_RANGE_LANES = 64 };

/* Keys rounded up to whole lanes: the row length of every array below. */
size_t dp_range_padded(size_t keys);

/* keys [keys][dim] -> packed [padded / LANES][dim][LANES], padding 0. */
void dp_range_pack_keys(const float *keys, size_t count, size_t dim, float *packed);

/* scores[r][j] = sum over d of q[r][d] k[j][d], in binary64, for the first `visible` keys rounded
 * up to whole lanes. q: DP_RANGE_TILE pointers to dim values. scores: [TILE][padded]. */
void dp_range_scores(const float *const *q, const float *packed, size_t dim, size_t visible,
                     size_t padded, double *scores);

/* Softmax of one row in place: the first `visible` scores, times scale, become probabilities;
 * everything up to padded becomes 0. Returns their sum (1 but for rounding). */
double dp_range_softmax(double *row, size_t visible, size_t padded, double scale);

/* out[r][d] = sum over j < visible of p[r][j] v[j][d]. p: [TILE][padded]; v: [keys][dim]; out:
 * [TILE][dim]. Entries that are 0 are skipped. */
void dp_range_outputs(const double *p, const float *v, size_t dim, size_t visible, size_t padded,
                      double *out);

#endif
