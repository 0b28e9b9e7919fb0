/* SPDX-License-Identifier: MIT
 *
 * The forward operator on a CUDA device: every stage as a kernel, and one fused kernel. The kernels
 * share the formats with the oracle and no stage: two programs written from the same rules
 * (ref/forward/FORWARD.md, ref/arith/MMA.md), compared bit by bit.
 *
 * All pointers are host memory. Errors are values; nothing is printed. Without a device every call
 * but dp_device_probe fails with one sentence.
 */
#ifndef DP_DEVICE_DIRECTP_DEVICE_H
#define DP_DEVICE_DIRECTP_DEVICE_H

#include "formats/error.h"

DP_BEGIN_C

typedef struct {
    char name[256];   /* "NVIDIA H200" */
    int major, minor; /* compute capability */
    int multiprocessors;
    int driver, runtime; /* CUDA versions, 13000 for 13.0 */
    size_t memory;       /* bytes */
} dp_device_info;

/* False without a usable device (error says why); device counts from 0. */
bool dp_device_probe(int device, dp_device_info *info, dp_error *error);

/* A kernel build as numbers: what the oracle's policy, epoch and switches come to. */
typedef struct {
    float multiplier;           /* s [D5]                                                     */
    int map;                    /* 0 affine, 1 polynomial, 2 every lane EX2 [D9]              */
    int degree;                 /* polynomial: 1..3                                           */
    float coefficient[4];       /* affine {B, A, 0, 0}; polynomial x^0 ..                     */
    float map_floor;            /* polynomial                                                 */
    int fold_k64;               /* Q and K quantizer [D1]                                     */
    int anchor_keys;            /* 0: no reference, else 1..128 [D4]                          */
    float anchor_bias;          /* added to the anchor's maximum, raw units                   */
    int shift;                  /* L [D7]                                                     */
    uint16_t native[2][4];      /* bit p: pair p of quarter q of stage s is native [D10]      */
    int correction_denominator; /* 0 producer, 1 correction [D12]                            */
    int clear_zero, rebase_q1;  /* [D7], [D11]                                                */
    int epoch_r;                /* 0 S, 1 R [D2]                                              */
    int fma_denominator, scale_first, v_zero_nan; /* switches [D3]                           */
} dp_device_policy;

/* Shape of the problem. Rows are [batch][head][row][128] bf16 bits (pad smaller heads with zeros).
 */
typedef struct {
    size_t batch, q_heads, kv_heads, queries, keys;
    int causal;
    const int32_t *kv_of_q;   /* q_heads entries                               */
    const int32_t *key_order; /* keys entries: physical position -> key        */
    const uint16_t *q, *k, *v;
} dp_device_problem;

/* Every stage, as in a dump: rows of queries, keys padded to a multiple of 128 (key_rows). NULL:
 * not wanted (as output) or not given (as input). */
typedef struct {
    uint8_t *q_payload, *q_scale; /* [b][q_head][queries][64], [..][8]       */
    uint8_t *k_payload, *k_scale; /* [b][kv_head][key_rows][64], [..][8]     */
    uint8_t *v_payload, *v_scale; /* [b][kv_head][128][key_rows/2], [..][key_rows/32] */
    float *raw;                   /* [b][q_head][queries][key_rows]          */
    float *row_ref;               /* [b][q_head][queries]                    */
    uint8_t *p_scale;             /* [..][key_rows/32]                       */
    uint8_t *p_payload;           /* [..][key_rows/2]                        */
    uint16_t *code_sum;           /* [..][key_rows/32]                       */
    float *row_sum;               /* [b][q_head][queries]                    */
    float *acc;                   /* [..][128]                               */
    uint16_t *o;                  /* [..][128] bf16 bits                     */
    float *lse;                   /* [b][q_head][queries]                    */
} dp_device_stages;

/* Stages in order. A run starts from the data before `first` (problem->q.. for DP_DEVICE_QUANTIZE)
 * and ends with `last`: re-injection starts in the middle. */
typedef enum {
    DP_DEVICE_QUANTIZE,
    DP_DEVICE_SCORE,
    DP_DEVICE_REFERENCE,
    DP_DEVICE_CODE, /* scale, code and code_sum */
    DP_DEVICE_DENOMINATOR,
    DP_DEVICE_ACCUMULATE,
    DP_DEVICE_OUTPUT
} dp_device_stage;

/* Run stages first..last, one kernel each. What `first` needs and is not computed is read from
 * stages; every non-NULL array of a computed stage is written. */
bool dp_device_run(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                   dp_device_stage first, dp_device_stage last, dp_device_stages *stages,
                   dp_error *error);

/* The whole forward in one kernel after quantization, no memory of size queries x keys.
 * milliseconds may be NULL; else the median kernel time of `repeats` runs (quantization included in
 * [0], fused kernel in [1]). */
bool dp_device_forward(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                       int repeats, uint16_t *o, float *lse, float milliseconds[2],
                       dp_error *error);

/* BF16 attention in the order of FlashAttention-4, the yardstick of the published errors: equal to
 * dp_reference_bf16 (ref/forward/reference_bf16.c) on every bit. problem->key_order is not read.
 * scale: log2(e) times the softmax scale. o: [batch][q_head][queries][128] bf16 bits, lse: natural
 * logarithms, [batch][q_head][queries]. milliseconds may be NULL; else the median of `repeats`
 * runs.
 */
bool dp_device_reference(int device, const dp_device_problem *problem, float scale, int repeats,
                         uint16_t *o, float *lse, float *milliseconds, dp_error *error);

/* ---- the wrappers of device/kernels/instructions.cuh, one by one -------------------------------
 */

typedef enum {
    DP_WRAPPER_E2M1X8,      /* result: eight codes, of operands 0 1 1 0 1 0 0 1        */
    DP_WRAPPER_E2M1X8_RELU, /* the same                                                */
    DP_WRAPPER_E4M3,        /* 8 bits                                                  */
    DP_WRAPPER_UE8M0,       /* 8 bits                                                  */
    DP_WRAPPER_FLOOR,       /* cvt.rmi.ftz.s32.f32                                     */
    DP_WRAPPER_FMA_X2,      /* both results folded into 32 bits: x ^ rotate(y, 16)     */
    DP_WRAPPER_PRMT,
    DP_WRAPPER_DP4A,
    DP_WRAPPER_COUNT
} dp_device_wrapper;

/* Operand `index` (0..5) of case i. Operand 0 of the conversions counts through every 32-bit word
 * and operand 1 is a bijection of it; the others are drawn, a quarter of the FP32 ones near one
 * exponent so that sums cancel. */
DP_INLINE uint32_t dp_device_operand(dp_device_wrapper wrapper, uint64_t i, int index)
{
    if (wrapper <= DP_WRAPPER_FLOOR) {
        return index == 0 ? (uint32_t)i : (uint32_t)i * 2654435761u ^ 0x5BD1E995u;
    }
    uint64_t z = (i * 8u + (uint64_t)index) * 0x9E3779B97F4A7C15u + (uint64_t)wrapper;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    const uint32_t word = (uint32_t)z;
    return wrapper == DP_WRAPPER_FMA_X2 && (i & 3u) == 0 ? (word & 0x807FFFFFu) | 0x3F800000u
                                                         : word;
}

/* Results of cases first .. first + count - 1. */
bool dp_device_wrapper_run(int device, dp_device_wrapper wrapper, uint64_t first, size_t count,
                           uint32_t *results, dp_error *error);

/* The two emulations of the matrix unit: sums of groups in integers (the kernels of the stages),
 * and sums of a whole instruction where they are exact (the fused kernel). */
typedef enum { DP_DEVICE_MMA_GROUPS, DP_DEVICE_MMA_FUSED } dp_device_mma;

/* D = A B + C on the emulated matrix unit: m x 64 codes a, n x 64 codes b (32 bytes a row), 4 UE4M3
 * scales a row or, with ue8m0, 2 UE8M0 ones. m and n are multiples of 64; c and d are [m][n] bits.
 */
bool dp_device_block_mma(int device, dp_device_mma mma, size_t m, size_t n, bool ue8m0,
                         const uint8_t *a, const uint8_t *a_scale, const uint8_t *b,
                         const uint8_t *b_scale, const uint32_t *c, uint32_t *d, dp_error *error);

/* ---- speed ------------------------------------------------------------------------------------
 */

/* One kernel: milliseconds of a launch among launches that follow each other, each on memory that
 * is no longer in the cache; the bytes it reads and writes; a copy that moves as many, timed in the
 * same way. */
typedef struct {
    float ms, copy_ms;
    size_t bytes;
} dp_device_time;

/* Medians by events in one run. */
typedef struct {
    dp_device_time copy;          /* 1 GiB read and 1 GiB written; copy_ms the same   */
    dp_device_time plain, folded; /* Q of every head                          */
    dp_device_time values;        /* V of every head                          */
    dp_device_time produce;       /* scores of produce_heads heads            */
    int produce_heads;            /* as many as the memory holds              */
    float fused;                  /* every head, quantization left out        */
} dp_device_times;

bool dp_device_bench(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                     int repeats, dp_device_times *times, dp_error *error);

DP_END_C

#endif
