/* SPDX-License-Identifier: MIT
 *
 * The matrix experiments: one instruction, one pair of operand types, one output type each. Every
 * kernel computes one tile a thread block from the operands of operands.h.
 */
#ifndef DP_DEVICE_CAPTURE_MMA_H
#define DP_DEVICE_CAPTURE_MMA_H

#include <cuda_runtime.h>

#include "device/capture/operands.h"

typedef struct {
    const uint8_t *a, *b;      /* [tile][step][m or 8][32] */
    const uint32_t *c;         /* [tile][m][8] */
    const uint32_t *sfa, *sfb; /* [tile][m or 8], four scale bytes each */
    uint32_t *d;               /* [tile][m][8] */
    int tiles;
} dp_mma_io;

typedef struct dp_mma_experiment {
    const char *group;       /* name under /capture */
    const char *instruction; /* as `directp capture check` looks it up */
    dp_element type[3];      /* A, B, C and D */
    int m, steps;            /* rows of A; instructions chained over k */
    int block;               /* elements a scale, 0 = no scales */
    bool ue4m3;              /* scale type, else UE8M0 */
    bool ignore_c;           /* D = A * B: enable-input-d is false, c holds arbitrary bits */
    unsigned idesc;          /* tcgen05 instruction descriptor */
    cudaError_t (*launch)(const dp_mma_io *io, const struct dp_mma_experiment *what, bool swapped);
} dp_mma_experiment;

typedef struct {
    const dp_mma_experiment *list;
    int count;
} dp_mma_set;

dp_mma_set dp_mma_wgmma(void);   /* compute capability 9.0 */
dp_mma_set dp_mma_sync(void);    /* 9.0 and up */
dp_mma_set dp_mma_tcgen05(void); /* 10.0, 10.3 */
dp_mma_set dp_mma_block(void);   /* 12.0 */

#endif
