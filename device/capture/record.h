/* SPDX-License-Identifier: MIT
 *
 * What the parts of the recorder share: the open file, the device and the options.
 */
#ifndef DP_DEVICE_CAPTURE_RECORD_H
#define DP_DEVICE_CAPTURE_RECORD_H

#include "device/capture/h5out.h"

typedef struct {
    dp_h5out *out;
    dp_error *error;
    int capability; /* 10 * major + minor */
    char arch[16];  /* "sm_90a" */
    unsigned tiles;
    uint64_t seed;
    bool quiet;
} dp_recorder;

/* Start the group of one experiment and write its common attributes. */
void dp_record_group(dp_recorder *r, const char *group, const char *instruction);
void dp_record_say(dp_recorder *r, const char *format, ...) DP_PRINTF(2, 3);

/* A failed CUDA call becomes the recorder's error; true when `status` is 0 (cudaSuccess). */
bool dp_record_cuda(dp_recorder *r, const char *where, int status);

void dp_record_sfu(dp_recorder *r);
void dp_record_lg2(dp_recorder *r);
void dp_record_convert(dp_recorder *r);
void dp_record_scalar(dp_recorder *r);
void dp_record_mma(dp_recorder *r);
void dp_record_block(dp_recorder *r);

#endif
