/* SPDX-License-Identifier: MIT
 *
 * The formats in which a softmax probability may be stored, and what each makes of one row.
 *
 *   nvfp4-gG      E2M1 payload, one scale a block: E4M3(G amax/6) / G
 *   ue5m3-gG      the same with a UE5M3 scale
 *   mxfp4         E2M1 payload, power-of-two step: 2^floor or 2^ceil of log2(amax/6), whichever has
 *                 the lower squared error, a tie going to the larger
 *   mxfp4-kernel  E2M1 payload, power-of-two amplitude a: the power nearest to amax, from 0.75 2^k
 *                 on 2^k; payload 6p/a, value payload a/6 (a payload above 6 saturates)
 *   e4m3-gG       E4M3(G p) / G, no block scale
 *   e5m2-gG       E5M2(G p) / G, no block scale
 * G defaults to 1. Powers of two are clamped to the range of E8M0, 2^-127 .. 2^127: an MX scale is
 * never zero.
 */
#ifndef DP_ANALYSIS_RANGE_FORMAT_H
#define DP_ANALYSIS_RANGE_FORMAT_H

#include "formats/error.h"

typedef enum {
    DP_RANGE_NVFP4,
    DP_RANGE_UE5M3,
    DP_RANGE_MXFP4,
    DP_RANGE_MXFP4_KERNEL,
    DP_RANGE_E4M3,
    DP_RANGE_E5M2
} dp_range_kind;

typedef struct {
    dp_range_kind kind;
    double gain;   /* G */
    char name[32]; /* as written above */
} dp_range_format;

enum { DP_RANGE_FORMATS = 32, DP_RANGE_SCALE_EXPONENTS = 256 };

/* The formats that "all" and "published" stand for. */
#define DP_RANGE_ALL                                                                               \
    "nvfp4-g1,nvfp4-g448,mxfp4,mxfp4-kernel,ue5m3-g1,e4m3-g1,e4m3-g256,e4m3-g448,e5m2-g1"
#define DP_RANGE_PUBLISHED "nvfp4-g1,nvfp4-g448,mxfp4"

/* "nvfp4-g448,mxfp4", "all" or "published" -> at most DP_RANGE_FORMATS formats, none twice. */
bool dp_range_formats_parse(const char *list, dp_range_format *formats, size_t *count,
                            dp_error *error);

/* Does the format have a block scale? */
bool dp_range_has_scale(const dp_range_format *format);

/* The block scale as the format decodes it, for a block whose largest entry is amax >= 0:
 * the step for NVFP4, UE5M3 and mxfp4 (for mxfp4 the smaller of the two candidates), the amplitude
 * for mxfp4-kernel; 1/G for the formats without a scale. */
double dp_range_scale(const dp_range_format *format, double amax);

/* Integer counts of any number of rows. */
typedef struct {
    uint64_t blocks, zero_scale; /* blocks that hold a visible key; those of scale 0 */
    uint64_t entries;            /* visible probabilities */
    uint64_t zero_payload;       /* entries that decode to 0 */
    uint64_t underflow;          /* of those, entries that were not 0 before */
    uint64_t nonzero;            /* entries that were not 0 before */
    uint64_t saturated;          /* entries beyond the largest payload */
    double min_scale;            /* smallest nonzero scale, 0 when there is none */
    uint64_t exponents[DP_RANGE_SCALE_EXPONENTS]; /* nonzero scales by floor(log2) + 127, clamped */
} dp_range_counts;

void dp_range_counts_add(dp_range_counts *a, const dp_range_counts *b);

/* Store one row.
 *   p       n probabilities >= 0, followed by zeros up to a multiple of block
 *   n       visible keys, >= 1
 *   block   entries that share a scale, a power of two in 8 .. 64
 *   decoded what the format makes of them, same length as p (padding decodes to 0)
 *   lost    out: the sum of the entries that decode to 0
 * E2M1 thresholds are strict: a value on the midpoint of two codes takes the smaller one, except
 * in mxfp4-kernel, whose converter rounds a tie to the even code. */
void dp_range_store(const dp_range_format *format, const double *p, size_t n, size_t block,
                    double *decoded, double *lost, dp_range_counts *counts);

#endif
