/* SPDX-License-Identifier: MIT
 *
 * Whole matrices through a matrix unit: D[m][n] = sum over k of A[m][k] * B[n][k], plus C, each
 * element exactly as dp_mma_element gives it, the instructions chained in increasing k.
 *
 * Three implementations (portable, AVX2, AVX-512 with VNNI) give the same bits, for every number of
 * threads; the fastest that the processor has is chosen. The result does not depend on the rounding
 * mode, FTZ or DAZ of the caller.
 */
#ifndef DP_REF_ARITH_GEMM_H
#define DP_REF_ARITH_GEMM_H

#include "formats/layout.h"
#include "ref/arith/mma.h"

DP_BEGIN_C

typedef enum {
    DP_MMA_PATH_AUTO,     /* the fastest available */
    DP_MMA_PATH_PORTABLE, /* the scalar definition over decoded operands */
    DP_MMA_PATH_AVX2,
    DP_MMA_PATH_AVX512, /* F, BW, DQ, VL and VNNI */
    DP_MMA_PATHS
} dp_mma_path;

/* Whether this processor can run a path. */
bool dp_mma_path_available(dp_mma_path path);

/* How to run; NULL means one thread, path AUTO. */
typedef struct {
    int threads; /* as in dp_parallel_for: <= 0 means every online processor */
    dp_mma_path path;
} dp_mma_run;

/* An operand in memory. Rows are M (A) or N (B); K is contiguous.
 * Codes: E2M1 two a byte, even k in the low nibble; E2M3 and E3M2 one a byte in bits 5..0; FP8 one
 * a byte; f16 and bf16 16-bit words, tf32 32-bit words, both aligned. */
typedef struct {
    const void *payload;
    size_t stride;          /* bytes from one row to the next; 0: rows follow each other tightly */
    const uint8_t *scale;   /* NULL without block scales */
    dp_layout scale_layout; /* order of the scale bytes: linear, 128x4 or sm120 */
    size_t scale_row, scale_block; /* where this operand begins inside the scale tensor */
    size_t scale_blocks;           /* scales in a row of the tensor; 0: those of k */
} dp_mma_source;

typedef enum { DP_MMA_SIDE_A, DP_MMA_SIDE_B } dp_mma_side;

/* An operand decoded once, to be used in any number of products. Zero-initialise before the first
 * prepare; preparing again reuses the memory; the source is not referenced afterwards. Read only
 * while it is in use, so threads may share it. Fields are private. */
typedef struct {
    const dp_mma_desc *desc;
    dp_mma_switches switches;
    dp_mma_side side;
    size_t rows, k, steps;
    void *memory;
    size_t capacity;
    struct dp_mma_decoded *decoded; /* inside memory */
} dp_mma_matrix;

/* Decode an operand of `rows` x `k` for one instruction. k need not be a multiple of the
 * instruction's: the tail is filled with zero codes, and scale blocks wholly inside it with byte 0,
 * as a kernel fills them. Fails on unknown arithmetic, missing scales, k = 0, or no memory. */
bool dp_mma_prepare(dp_mma_matrix *matrix, const dp_mma_desc *desc, const dp_mma_switches *switches,
                    dp_mma_side side, size_t rows, size_t k, const dp_mma_source *source,
                    dp_error *error);
void dp_mma_matrix_free(dp_mma_matrix *matrix);

/* D = A*B + C over prepared operands of one instruction, switches and k.
 *   c  [a->rows][c_stride] floats, or NULL for none; may be d itself
 *   d  [a->rows][d_stride] floats; strides count floats, at least b->rows
 * Instructions with f16 results are refused (use dp_mma_element). */
bool dp_mma_multiply(const dp_mma_matrix *a, const dp_mma_matrix *b, const float *c,
                     size_t c_stride, float *d, size_t d_stride, const dp_mma_run *run,
                     dp_error *error);

/* Prepare, multiply and free in one call; C and D are tight, [m][n]. */
bool dp_gemm(const dp_mma_desc *desc, const dp_mma_switches *switches, size_t m, size_t n, size_t k,
             const dp_mma_source *a, const dp_mma_source *b, const float *c, float *d,
             const dp_mma_run *run, dp_error *error);

/* dp_gemm by names: instruction, element types and target as in dp_mma_find, f32 result. An
 * instruction that is not in the table is an error. */
bool dp_gemm_named(const char *instruction, const char *atype, const char *btype, const char *arch,
                   const dp_mma_switches *switches, size_t m, size_t n, size_t k,
                   const dp_mma_source *a, const dp_mma_source *b, const float *c, float *d,
                   const dp_mma_run *run, dp_error *error);

/* NVFP4: kind::mxf4nvf4, E2M1 with UE4M3 per 16, linear scales [row][ceil(k/16)]. */
bool dp_gemm_nvfp4(const dp_mma_switches *switches, size_t m, size_t n, size_t k, const uint8_t *a,
                   const uint8_t *sfa, const uint8_t *b, const uint8_t *sfb, const float *c,
                   float *d, const dp_mma_run *run, dp_error *error);
/* MXFP4: kind::mxf4, E2M1 with UE8M0 per 32, linear scales [row][ceil(k/32)]. */
bool dp_gemm_mxfp4(const dp_mma_switches *switches, size_t m, size_t n, size_t k, const uint8_t *a,
                   const uint8_t *sfa, const uint8_t *b, const uint8_t *sfb, const float *c,
                   float *d, const dp_mma_run *run, dp_error *error);
/* MXFP8, MXFP6 and mixtures: kind::mxf8f6f4, UE8M0 per 32, linear scales. */
bool dp_gemm_mx(const char *atype, const char *btype, const dp_mma_switches *switches, size_t m,
                size_t n, size_t k, const void *a, const uint8_t *sfa, const void *b,
                const uint8_t *sfb, const float *c, float *d, const dp_mma_run *run,
                dp_error *error);
/* Without scales: "e4m3", "e5m2" (and on Blackwell "e2m3" "e3m2" "e2m1"), "f16", "bf16", "tf32" on
 * the wgmma of sm_90a or the tcgen05.mma of sm_100a, sm_103a. */
bool dp_gemm_plain(const char *arch, const char *atype, const char *btype,
                   const dp_mma_switches *switches, size_t m, size_t n, size_t k, const void *a,
                   const void *b, const float *c, float *d, const dp_mma_run *run, dp_error *error);

DP_END_C

#endif
