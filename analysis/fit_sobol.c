/* SPDX-License-Identifier: MIT
 *
 * Scrambled Sobol points.
 */
#include "analysis/fit_search.h"
#include "analysis/torch_rand.h"

/* Joe and Kuo, SIAM J. Sci. Comput. 30 (2008): dimensions 2 to 4 of new-joe-kuo-6. */
static uint32_t direction(int dimension, int bit)
{
    static const struct {
        int s;
        uint32_t a, m[3];
    } rows[4] = {{0, 0, {0}}, {1, 0, {1}}, {2, 1, {1, 3}}, {3, 1, {1, 3, 1}}};
    if (dimension == 0) {
        return 1u << (31 - bit);
    }
    const int s = rows[dimension].s;
    uint32_t v[32] = {0};
    for (int i = 0; i <= bit; i++) {
        if (i < s) {
            v[i] = rows[dimension].m[i] << (31 - i);
            continue;
        }
        v[i] = v[i - s] ^ (v[i - s] >> s);
        for (int k = 1; k < s; k++) {
            v[i] ^= ((rows[dimension].a >> (s - 1 - k)) & 1u) * v[i - k];
        }
    }
    return v[bit];
}

void dp_fit_sobol(uint64_t seed, uint32_t index, int dimensions, double *point)
{
    uint32_t shift[4];
    dp_philox(seed, 0, 0, shift);
    for (int d = 0; d < dimensions && d < 4; d++) {
        uint32_t bits = shift[d];
        for (int bit = 0; bit < 32; bit++) {
            bits ^= ((index >> bit) & 1u) * direction(d, bit);
        }
        point[d] = ((double)bits + 0.5) * 0x1p-32;
    }
}
