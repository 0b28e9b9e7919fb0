/* SPDX-License-Identifier: MIT
 *
 * Recording what the instructions of the GPU in this machine return, into an HDF5 file of
 * kind = capture. Each experiment is one group under /capture with the attributes `instruction`,
 * `arch`, `source` = "hardware" and, where a rule was also checked on the device over all inputs,
 * `checked`, `check_mismatches` and `check_rule`.
 */
#ifndef DP_DEVICE_CAPTURE_H
#define DP_DEVICE_CAPTURE_H

#include "formats/error.h"

DP_BEGIN_C

typedef enum {
    DP_CAPTURE_DONE,      /* the file is written */
    DP_CAPTURE_NO_DEVICE, /* no CUDA device or driver; nothing written */
    DP_CAPTURE_FAILED,    /* `error` says why; nothing is left under `path` */
} dp_capture_status;

typedef struct {
    const char *only; /* comma-separated: sfu, lg2, convert, scalar, mma, block; NULL or "" = all */
    int device;       /* CUDA ordinal, from 0 */
    int level;        /* gzip level, 1 to 9; 0 = 4 */
    unsigned tiles;   /* matrix experiments: tiles a kind of data, 1 to 64; 0 = 2 */
    uint64_t seed;    /* of the random operands; recorded in the file */
    bool quiet;       /* say nothing on stdout */
} dp_capture_record_options;

/* Record into `path` (written under a temporary name, then renamed). Experiments whose instruction
 * the device does not have are named as skipped on stdout and are absent from the file. */
dp_capture_status dp_capture_record(const char *path, const dp_capture_record_options *options,
                                    dp_error *error);

DP_END_C

#endif
