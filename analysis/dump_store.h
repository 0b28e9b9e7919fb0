/* SPDX-License-Identifier: MIT
 *
 * How the elements of a dump's dataset lie in its file: the order of the axes, the packing of codes
 * and the stored type. Everything is undone when a box of rows is read.
 */
#ifndef DP_ANALYSIS_DUMP_STORE_H
#define DP_ANALYSIS_DUMP_STORE_H

#include "analysis/h5.h"

/* Attribute `packing` of a payload. */
typedef enum {
    DP_DUMP_PACKING_LOW_FIRST, /* two codes a byte, the even index in the low nibble; the default */
    DP_DUMP_PACKING_HIGH_FIRST, /* the even index in the high nibble                              */
    DP_DUMP_PACKING_BYTE        /* one code a byte                                                */
} dp_dump_packing;

typedef struct {
    dp_h5_type type;              /* as stored                              */
    bool is_bf16;                 /* 16-bit integers hold bf16              */
    int batch, head, row, column; /* axes of the file, -1 where there is none */
    dp_dump_packing packing;
} dp_dump_store;

/* Extent along one of the axes above, 1 where there is none. */
DP_INLINE uint64_t dp_dump_store_extent(const dp_h5_shape *shape, int axis)
{
    return axis < 0 ? 1 : shape->dims[axis];
}

#endif
