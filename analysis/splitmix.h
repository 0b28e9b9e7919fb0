/* SPDX-License-Identifier: MIT
 *
 * splitmix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every machine.
 */
#ifndef DP_ANALYSIS_SPLITMIX_H
#define DP_ANALYSIS_SPLITMIX_H

#include "formats/base.h"

/* The next 64 bits; *state is the seed at first. */
DP_INLINE uint64_t dp_splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

#endif
