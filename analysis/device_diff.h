/* SPDX-License-Identifier: MIT
 *
 * The oracle against the kernels: every stage of both, and the first place where they differ.
 */
#ifndef DP_ANALYSIS_DEVICE_DIFF_H
#define DP_ANALYSIS_DEVICE_DIFF_H

#include "analysis/attend.h"
#include "device/directp_device.h"

/* The kernels are linked when nvcc was there; without them these are null. */
#if defined(__GNUC__)
#pragma weak dp_device_probe
#pragma weak dp_device_run
#pragma weak dp_device_forward
#pragma weak dp_device_reference
#pragma weak dp_device_wrapper_run
#pragma weak dp_device_block_mma
#pragma weak dp_device_bench
#endif
bool dp_device_built(void);

/* How the device came to a stage's data. */
typedef enum {
    DP_DIFF_INJECTED, /* from the oracle's previous stage: a difference is this stage's own */
    DP_DIFF_CHAINED,  /* from the inputs, stage after stage                                 */
    DP_DIFF_FUSED,    /* from the inputs, by the fused kernel                               */
    DP_DIFF_REFERENCE /* BF16 attention on both sides, no stage of Direct-P                 */
} dp_diff_mode;

/* One dataset compared. */
typedef struct {
    dp_diff_mode mode;
    const char *dataset; /* "raw", "p_payload", ... */
    uint64_t elements, mismatches;
    uint64_t first[4];       /* batch, head, row, column of the first mismatch */
    uint32_t oracle, device; /* the elements there, bits */
} dp_diff_row;

enum { DP_DIFF_ROWS = 64 };

typedef struct {
    dp_diff_row rows[DP_DIFF_ROWS];
    size_t count;
    uint64_t codes;       /* codes of P compared, all modes */
    uint64_t batch, head; /* of the slice in work */
} dp_diff_table;

/* Numbers of the oracle's launch for the kernels. */
dp_device_policy dp_device_policy_of(const dp_direct_p *launch);

/* bf16 rows of `dim` padded with zeros to 128; NULL without memory. */
uint16_t *dp_device_padded(const uint16_t *x, size_t rows, size_t dim);

/* The kernels in place of the oracle, for dp_attend_run. `device` stays in use. */
typedef struct {
    int device;
    dp_device_info info;
} dp_device_engine;
dp_attend_engine dp_device_attend_engine(dp_device_engine *device);

/* Every wrapper of device/kernels/instructions.cuh and the block-scaled unit against the oracle:
 * conversions over min(2^32, 4 * cases) words, the others on `cases` drawn cases. */
typedef struct {
    const char *wrapper;
    uint64_t cases, mismatches, first; /* first: number of the first case that differs */
    uint32_t oracle, device;           /* results there */
} dp_selftest_row;
enum { DP_SELFTEST_ROWS = DP_WRAPPER_COUNT + 4 };
bool dp_device_selftest(int device, int threads, uint64_t cases,
                        dp_selftest_row rows[DP_SELFTEST_ROWS], dp_error *error);

/* Compare on one problem; rows are added to those of earlier problems (same mode and dataset). */
bool dp_device_diff(const dp_attend_inputs *inputs, const dp_direct_p *launch, int device,
                    int threads, dp_diff_table *table, dp_error *error);

#endif
