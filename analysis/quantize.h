/* SPDX-License-Identifier: MIT
 *
 * The parts of `directp quantize`: what to do (method), to which array (subject), and what came out
 * (result).
 */
#ifndef DP_ANALYSIS_QUANTIZE_H
#define DP_ANALYSIS_QUANTIZE_H

#include "analysis/errors.h"
#include "analysis/h5.h"
#include "formats/layout.h"
#include "formats/preset.h"

/* What the options say; NULL or 0 where they say nothing. */
typedef struct {
    const char *format;   /* e2m1 .. fp16, nvfp4, nvfp4-k64, mxfp4, mxfp8-e4m3, ... */
    const char *recipe;   /* te, TORCHAO-FLOOR, PRESET:format, flat */
    const char *rule;     /* E8M0 scale rule in place of the recipe's */
    const char *rounding; /* of the payload, in place of the recipe's */
    const char *overflow;
    const char *nan; /* of a direct conversion */
    const char *via; /* f16 or bf16: round to it first, to reproduce a kernel that does */
    int64_t block;
} dp_quantize_options;

/* A direct conversion (no scales), or a block recipe. */
typedef struct {
    char name[96]; /* "TE:nvfp4", "e4m3" */
    bool direct;
    bool refuse_nan; /* direct: a NaN is an error */
    dp_via via;      /* direct */
    dp_minifloat element;
    dp_encode encode; /* direct */
    dp_preset preset; /* block recipe, the options applied */
} dp_quantize_method;

bool dp_quantize_method_of(const dp_quantize_options *options, dp_quantize_method *method,
                           dp_error *error);
/* The formulas, to standard output. */
void dp_quantize_explain(const dp_quantize_method *method);

/* An array to quantize. */
typedef struct {
    char name[64]; /* "q": datasets are called q_payload, q_scale, q_global */
    float *values; /* contiguous, owned */
    dp_h5_shape shape;
    char axes[DP_H5_RANK][24]; /* name of each dimension, "" when unknown */
    size_t axis;               /* blocks run along it */
} dp_quantize_subject;

/* Read a dataset of bf16 bits, f16 or f32 of any rank 1 to 8. */
bool dp_quantize_load(const dp_h5 *file, const char *path, dp_quantize_subject *subject,
                      dp_error *error);
/* Choose the axis: a name, or an index (negative from the end); NULL is the last. */
bool dp_quantize_axis(dp_quantize_subject *subject, const char *axis, dp_error *error);

typedef struct {
    dp_block_shape shape; /* runs and bytes; blocks = 0 for a direct conversion */
    dp_global global;
    uint8_t *payload; /* runs of packed codes (16-bit codes: two bytes each, native) */
    uint8_t *scale;
    size_t code_bytes; /* 1, or 2 for 16-bit formats */
    float *decoded;    /* in the subject's order */
    dp_block_stats stats;
    dp_errors errors;
    uint64_t scale_byte_zero; /* stored bytes 0x00 */
    uint64_t scale_byte_nan;  /* 0x7F and 0xFF of E4M3, 0xFF of UE5M3 and E8M0 */
    size_t first_nan[3];      /* indices of the first of those */
    double worst_clip;        /* largest share of a clipped element that was lost, 0 to 1 */
    double range_percent;     /* amax in percent of 2688 * decode scale; NaN without E4M3 scales */
} dp_quantize_result;

bool dp_quantize_run(const dp_quantize_method *method, const dp_quantize_subject *subject,
                     int threads, dp_quantize_result *result, dp_error *error);
void dp_quantize_result_free(dp_quantize_result *result);

/* Write payload, scales and global scale of a subject under /quantize. */
bool dp_quantize_put(dp_h5_writer *writer, const dp_quantize_method *method,
                     const dp_quantize_subject *subject, const dp_quantize_result *result,
                     dp_layout layout, dp_error *error);

#endif
