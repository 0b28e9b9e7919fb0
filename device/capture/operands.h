/* SPDX-License-Identifier: MIT
 *
 * Operands of the matrix experiments: tiles of A (m rows), B (8 columns), C (m x 8), made on the
 * host from a seed. A row or column is 32 bytes per instruction whatever the element type, so one
 * layout serves 8-bit (k = 32), 16-bit (k = 16), 32-bit (k = 8) and packed 4-bit (k = 64) elements.
 */
#ifndef DP_DEVICE_CAPTURE_OPERANDS_H
#define DP_DEVICE_CAPTURE_OPERANDS_H

#include "formats/base.h"

DP_BEGIN_C

#define DP_ROW_BYTES 32
#define DP_TILE_N    8

typedef enum {
    DP_OP_E2M1,
    DP_OP_E4M3,
    DP_OP_E5M2,
    DP_OP_F16,
    DP_OP_BF16,
    DP_OP_TF32,
    DP_OP_F32
} dp_element;

/* What the values of a tile are meant to reach. */
typedef enum {
    DP_DATA_BITS,    /* random finite bit patterns, c within 2^+-30 of the products */
    DP_DATA_NORMAL,  /* bell-shaped values, as in a network */
    DP_DATA_CANCEL,  /* pairs that cancel, c close to minus the sum */
    DP_DATA_SMALL,   /* subnormal and least codes, c down to the f32 subnormals */
    DP_DATA_ZEROS,   /* signed zeros, exact cancellation, tiny c */
    DP_DATA_SPECIAL, /* NaN and Inf among finite values */
    DP_DATA_PASS,    /* every product zero, c any bits: what reaches d */
    DP_DATA_ALIGN,   /* few terms at chosen exponent distances from c */
    DP_DATA_TAIL,    /* one large term, many that are cut by the alignment */
    DP_DATA_BIG,     /* largest magnitudes: overflow of the output */
    DP_DATA_FLOOR,   /* few products near the least result, others far below, the rest zero */
    DP_DATA_KINDS
} dp_data;

typedef struct {
    int m;        /* rows of A */
    int steps;    /* instructions chained over k */
    int scales;   /* scale bytes a row (0, 1, 2, 4) */
    bool ue4m3;   /* scales are UE4M3, else UE8M0 */
    uint8_t *a;   /* [steps][m][32] */
    uint8_t *b;   /* [steps][8][32] */
    uint32_t *c;  /* [m][8] bits, f16 in the low half */
    uint8_t *sfa; /* [m][4] */
    uint8_t *sfb; /* [8][4] */
} dp_tile;

const char *dp_element_name(dp_element element);
const char *dp_data_name(dp_data data);
int dp_element_bits(dp_element element);

/* Fill one tile. `type` are the types of A, B and of C/D; *state is the generator's state. */
void dp_tile_fill(dp_tile *tile, dp_data data, const dp_element type[3], uint64_t *state);

DP_END_C

#endif
