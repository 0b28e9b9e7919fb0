/* SPDX-License-Identifier: MIT
 *
 * Replaying capture files (kind = "capture"): what an instruction returned, on hardware or in
 * another model, against the models of ref/arith, bit for bit.
 */
#ifndef DP_ANALYSIS_CAPTURE_H
#define DP_ANALYSIS_CAPTURE_H

#include "analysis/h5.h"
#include "ref/arith/mma.h"
#include "ref/arith/sfu.h"

typedef struct {
    char group[128];       /* name under /capture */
    char instruction[128]; /* its attribute */
    const char *model;   /* "matrix", "scalar", the dp_sfu's name; "none": nothing to replay with */
    uint64_t cases;      /* outputs in the group */
    uint64_t mismatches; /* outputs whose bits differ; 0 when the model is "none" */
    char first[640];     /* the first mismatch with its operands decoded, "" without one */
} dp_capture_result;

typedef struct {
    const dp_sfu
        *sfu; /* model of ex2, rcp and lg2; NULL: the device that the file names, else exact */
    const dp_mma_switches *switches; /* NULL: the defaults */
    const char *only;                /* replay this group alone; NULL: all */
    int threads;
} dp_capture_options;

/* Replay every group of the file in the order of their names. *results is freed by the caller.
 * False with one error for a file that is damaged, contradictory or no capture. */
bool dp_capture_replay(const char *path, const dp_capture_options *options,
                       dp_capture_result **results, size_t *count, dp_error *error);

/* --- parts of it --- */

/* One group: its path "/capture/NAME", and what both kinds of experiment need. */
typedef struct {
    const dp_h5 *file;
    char path[160];
    const dp_capture_options *options;
    const dp_sfu *sfu;
    dp_capture_result *result;
} dp_capture_group;

bool dp_capture_matrix(const dp_capture_group *group, dp_error *error);
bool dp_capture_function(const dp_capture_group *group, dp_error *error);

/* A dataset of the group, widened to 32 bits. `least` and `most` bound the rank. */
bool dp_capture_words(const dp_capture_group *group, const char *name, int least, int most,
                      dp_h5_shape *shape, int *width, uint32_t **words, dp_error *error);

/* A text attribute of the group, cut to size; false with an error when it is missing. */
bool dp_capture_text(const dp_capture_group *group, const char *name, char *text, size_t size,
                     dp_error *error);

/* Count the cases for which `compare` finds a difference; *first is the least of them (count when
 * there is none). The result does not depend on the number of threads. */
typedef bool dp_capture_compare(const void *context, size_t index);
uint64_t dp_capture_count(int threads, size_t count, dp_capture_compare *compare,
                          const void *context, size_t *first);

/* --- scalar instructions --- */

typedef struct {
    const char *instruction;
    int operands; /* words of x a case */
    int field;    /* bits of one output field */
    int fields;   /* output fields; a pair conversion also replays as a function of one input */
    int source;   /* bits of one field of a packed source operand, 0: operands are whole words */
    bool special; /* ex2, rcp, lg2: depends on the dp_sfu */
    uint32_t (*run)(const dp_sfu *sfu, const uint32_t *x);
} dp_capture_function_desc;

/* The row of that PTX name, or NULL. */
const dp_capture_function_desc *dp_capture_function_find(const char *instruction);

#endif
