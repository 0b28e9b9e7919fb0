/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analysis/device_diff.h"
#include "analysis/splitmix.h"
#include "formats/parallel.h"
#include "ref/arith/byteops.h"
#include "ref/arith/cvt.h"
#include "ref/arith/f32.h"
#include "ref/arith/f32_fast.h"
#include "ref/arith/gemm.h"

static const char *const NAMES[DP_SELFTEST_ROWS] = {"cvt e2m1x8",
                                                    "cvt e2m1x8 relu",
                                                    "cvt e4m3",
                                                    "cvt ue8m0 up",
                                                    "cvt floor s32",
                                                    "fma f32x2",
                                                    "prmt",
                                                    "dp4a u32 u32",
                                                    "mma block16 ue4m3",
                                                    "mma block32 ue8m0",
                                                    "fused block16 ue4m3",
                                                    "fused block32 ue8m0"};

/* What the oracle says of case i. */
static uint32_t expected(dp_device_wrapper w, uint64_t i)
{
    const uint32_t x0 = dp_device_operand(w, i, 0);
    const uint32_t x1 = dp_device_operand(w, i, 1);
    const float f0 = dp_f32_from_bits(x0);
    const float f1 = dp_f32_from_bits(x1);
    switch (w) {
    case DP_WRAPPER_E2M1X8:
    case DP_WRAPPER_E2M1X8_RELU: {
        const uint32_t pair = dp_cvt_e2m1x2_f32(f1, f0, w == DP_WRAPPER_E2M1X8_RELU).bits;
        const uint32_t swapped = (pair >> 4 | pair << 4) & 0xFFu;
        return pair | swapped << 8 | swapped << 16 | pair << 24;
    }
    case DP_WRAPPER_E4M3:
        return dp_e4m3_from_f32(f0, DP_ENCODE_PTX).bits;
    case DP_WRAPPER_UE8M0:
        return dp_e8m0_from_f32(f0, dp_e8m0_encode_up()).bits;
    case DP_WRAPPER_FLOOR:
        return (uint32_t)dp_f32_floor_s32(x0, true);
    case DP_WRAPPER_FMA_X2: {
        float in[6];
        for (int k = 0; k < 6; k++) {
            in[k] = dp_f32_from_bits(dp_device_operand(w, i, k));
        }
        const uint32_t low = dp_f32_bits(dp_fma_rn_ftz(in[0], in[2], in[4]));
        const uint32_t high = dp_f32_bits(dp_fma_rn_ftz(in[1], in[3], in[5]));
        return low ^ (high << 16 | high >> 16);
    }
    case DP_WRAPPER_PRMT:
        return dp_prmt(x0, x1, dp_device_operand(w, i, 2), DP_PRMT_INDEX);
    default:
        return dp_dp4a(x0, x1, dp_device_operand(w, i, 2), false, false);
    }
}

enum { MAX_THREADS = 256 };

typedef struct {
    dp_device_wrapper wrapper;
    uint64_t first;
    const uint32_t *device;
    const uint32_t *oracle; /* NULL: computed by expected() */
    uint64_t mismatches[MAX_THREADS], first_bad[MAX_THREADS];
} check_job;

static void check_part(void *context, size_t first, size_t last, int thread)
{
    check_job *job = context;
    for (size_t i = first; i < last; i++) {
        const uint32_t want =
            job->oracle != NULL ? job->oracle[i] : expected(job->wrapper, job->first + i);
        if (want != job->device[i]) {
            if (job->mismatches[thread]++ == 0 || i < job->first_bad[thread]) {
                job->first_bad[thread] = i;
            }
        }
    }
}

static void check(check_job *job, size_t count, int threads, dp_selftest_row *row)
{
    const int used = dp_parallel_threads(threads) < MAX_THREADS ? threads : MAX_THREADS;
    memset(job->mismatches, 0, sizeof job->mismatches);
    dp_parallel_for(used, count, 1u << 14, check_part, job);
    size_t first = count;
    uint64_t mismatches = 0;
    for (int t = 0; t < MAX_THREADS; t++) {
        mismatches += job->mismatches[t];
        if (job->mismatches[t] > 0 && job->first_bad[t] < first) {
            first = (size_t)job->first_bad[t];
        }
    }
    if (mismatches > 0 && row->mismatches == 0) {
        row->first = row->cases + first;
        row->device = job->device[first];
        row->oracle = job->oracle != NULL ? job->oracle[first] : expected(job->wrapper, row->first);
    }
    row->mismatches += mismatches;
    row->cases += count;
}

static bool run_wrapper(int device, int threads, dp_device_wrapper wrapper, uint64_t cases,
                        dp_selftest_row *row, dp_error *error)
{
    const size_t chunk = (size_t)1 << 26;
    uint32_t *results = malloc(chunk * sizeof *results);
    check_job *job = calloc(1, sizeof *job);
    bool good = (results != NULL && job != NULL) ||
                dp_fail(error, "device selftest: not enough memory: 300 MB are needed");
    for (uint64_t at = 0; good && at < cases; at += chunk) {
        const size_t count = cases - at < chunk ? (size_t)(cases - at) : chunk;
        good = dp_device_wrapper_run(device, wrapper, at, count, results, error);
        job->wrapper = wrapper;
        job->first = at;
        job->device = results;
        if (good) {
            check(job, count, threads, row);
        }
    }
    free(results);
    free(job);
    return good;
}

/* ---- the block-scaled unit ---------------------------------------------------------------------
 */

enum { SIDE = 4096 };

typedef struct {
    uint8_t a[SIDE * 32], b[SIDE * 32], sa[SIDE * 4], sb[SIDE * 4];
    uint32_t c[(size_t)SIDE * SIDE], device[(size_t)SIDE * SIDE];
    float oracle[(size_t)SIDE * SIDE];
    check_job job;
} product;

/* Codes of both sides; some groups of A are zero. */
static void fill_codes(product *p, uint64_t *state)
{
    for (size_t i = 0; i < sizeof p->a; i++) {
        const uint64_t z = dp_splitmix(state);
        p->a[i] = (z >> 60) == 0 ? 0 : (uint8_t)z;
        p->b[i] = (z >> 56 & 15) == 0 ? 0 : (uint8_t)(z >> 8);
    }
    for (size_t i = 0; i < SIDE * 32; i += 8) {
        if ((dp_splitmix(state) & 7) == 0) {
            memset(&p->a[i], (dp_splitmix(state) & 1) != 0 ? 0x88 : 0, 8);
        }
    }
}

/* Rounds differ in how far scales and C spread: near ones make sums cancel, far ones make the
 * alignment shift bits out, raw bytes bring NaN, infinity and zero scales. */
static void fill_wild(product *p, uint64_t *state, unsigned spread, bool ue8m0)
{
    const uint32_t width = spread == 0 ? 2 : (spread == 1 ? 8 : (spread == 2 ? 24 : 64));
    for (size_t i = 0; i < sizeof p->sa; i++) {
        const uint64_t z = dp_splitmix(state);
        const uint32_t base = ue8m0 ? 127 : 56;
        const bool raw = (z >> 58) == 0;
        p->sa[i] = (uint8_t)(raw ? z : base + (uint32_t)(z & 0xFFFF) % width - width / 2);
        p->sb[i] =
            (uint8_t)(raw ? z >> 8 : base + (uint32_t)(z >> 16 & 0xFFFF) % width - width / 2);
        if (raw && (z >> 54 & 3) != 0) { /* a NaN scale fills a whole row: rare */
            p->sa[i] = (uint8_t)(p->sa[i] & 0x3F);
            p->sb[i] = (uint8_t)(p->sb[i] & 0x3F);
        }
    }
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        const uint64_t z = dp_splitmix(state);
        const uint32_t exponent = 127 + (uint32_t)(z >> 32 & 0xFFFF) % (2 * width) - width;
        p->c[i] =
            (z >> 61) == 0 ? (uint32_t)z : ((uint32_t)z & 0x807FFFFFu) | (exponent & 0xFF) << 23;
    }
}

/* One side of a product that can be summed in one go, and what lies just beyond: tiles of rows
 * whose scale exponents lie at most `spreads` - 1 apart, from `least` up. A third of the tiles is
 * loud, 6 times the largest scales and ordinary in the groups of the least exponent, so that sums
 * fill the 24 bits; a third has few codes other than zeros, so that sums come to a few steps. */
typedef struct {
    uint8_t *codes, *bytes;
    size_t tile;
    unsigned spreads;
    int least, range;
} near_side;

static void fill_near_side(const near_side *side, uint64_t *state, bool ue8m0)
{
    const size_t scales = ue8m0 ? 2 : 4;
    const size_t width = 32 / scales;
    for (size_t row = 0; row < SIDE; row++) {
        const unsigned spread = (unsigned)(row / side->tile) % side->spreads;
        const unsigned kind = (unsigned)(row / side->tile / side->spreads) % 3;
        const int base = side->least + (int)(dp_splitmix(state) % (unsigned)side->range);
        for (size_t i = 0; i < scales; i++) {
            const uint64_t z = dp_splitmix(state);
            const bool low = (z >> 60) < 4;
            const unsigned up = kind != 1 ? (unsigned)(z & 0xFFFF) % (spread + 1)
                                : low     ? 0
                                          : spread;
            const int exponent = base + (int)up;
            const int mantissa = kind == 1 ? 7 : (int)(z >> 32 & 7);
            uint8_t *codes = side->codes + row * 32 + i * width;
            side->bytes[row * scales + i] = (uint8_t)((z >> 48 & 1023) == 0 ? (ue8m0 ? 0xFF : 0x7F)
                                                      : ue8m0               ? exponent + 127
                                                              : (exponent + 7) << 3 | mantissa);
            for (size_t k = 0; k < width; k++) {
                if (kind == 1 && (!low || (z >> 59 & 1) != 0)) {
                    codes[k] = low && k == 0 ? 0x71 : 0x77;
                } else if (kind == 2 && (dp_splitmix(state) & 15) != 0) {
                    codes[k] = 0;
                }
            }
        }
    }
}

/* The least and the largest sum of scale exponents of a row and a column. */
static void exponents(const product *p, size_t row, size_t col, bool ue8m0, int *lo, int *hi)
{
    const size_t scales = ue8m0 ? 2 : 4;
    *lo = 512;
    *hi = -512;
    for (size_t i = 0; i < scales; i++) {
        const int a = p->sa[row * scales + i];
        const int b = p->sb[col * scales + i];
        const int e = ue8m0 ? a + b - 254 : (a >> 3) + (b >> 3) - 14;
        *lo = e < *lo ? e : *lo;
        *hi = e > *hi ? e : *hi;
    }
}

/* The kernel decides for 16 x 8 elements at once. C lies between the least and the largest exponent
 * at which nothing is cut, often at either; in two thirds of the tiles up to two beyond one of
 * them; some tiles start from zero. */
static void fill_near(product *p, uint64_t *state, bool ue8m0)
{
    fill_near_side(&(near_side){p->a, p->sa, 16, ue8m0 ? 10 : 6, ue8m0 ? -71 : -6, ue8m0 ? 82 : 9},
                   state, ue8m0);
    fill_near_side(&(near_side){p->b, p->sb, 8, ue8m0 ? 5 : 6, ue8m0 ? -31 : -6, ue8m0 ? 38 : 9},
                   state, ue8m0);
    for (size_t row = 0; row < SIDE; row++) {
        for (size_t col = 0; col < SIDE; col++) {
            const uint64_t z = dp_splitmix(state);
            const uint32_t tile = (uint32_t)(row / 16 * 2654435761u ^ col / 8 * 2246822519u) >> 13;
            int lo;
            int hi;
            exponents(p, row, col, ue8m0, &lo, &hi);
            const int least = hi - 12 - (tile % 3 == 1 ? 2 : 0);
            const int most = lo + (ue8m0 ? 33 : 27) + (tile % 3 == 2 ? 2 : 0);
            const int between = most > least ? most - least + 1 : 1;
            const uint32_t where = (uint32_t)(z >> 40 & 7);
            const int exponent = where < 2   ? least
                                 : where < 4 ? most
                                             : least + (int)((z >> 32 & 0xFF) % (unsigned)between);
            const uint32_t bits = ((uint32_t)z & 0x807FFFFFu) | (uint32_t)(exponent + 127) << 23;
            p->c[row * SIDE + col] = (z >> 60) == 0 || tile % 16 == 4 ? 0u : bits;
        }
    }
}

/* The fused kernel's rows with UE8M0 scales are P: codes without a sign. */
static void fill(product *p, uint64_t round, dp_device_mma mma, bool ue8m0)
{
    uint64_t state = round * 2 + ue8m0;
    fill_codes(p, &state);
    if (round % 2 == 0) {
        fill_wild(p, &state, (unsigned)(round / 2 % 4), ue8m0);
    } else {
        fill_near(p, &state, ue8m0);
    }
    for (size_t i = 0; mma == DP_DEVICE_MMA_FUSED && ue8m0 && i < sizeof p->a; i++) {
        p->a[i] &= 0x77;
    }
}

static bool run_product(int device, int threads, dp_device_mma mma, bool ue8m0, uint64_t cases,
                        dp_selftest_row *row, dp_error *error)
{
    product *p = malloc(sizeof *p);
    bool good =
        p != NULL || dp_fail(error, "device selftest: not enough memory: 210 MB are needed");
    const dp_mma_run run = {.threads = threads, .path = DP_MMA_PATH_AUTO};
    for (uint64_t round = 0; good && row->cases < cases; round++) {
        fill(p, round, mma, ue8m0);
        const float *c = (const float *)(const void *)p->c;
        good = dp_device_block_mma(device, mma, SIDE, SIDE, ue8m0, p->a, p->sa, p->b, p->sb, p->c,
                                   p->device, error) &&
               (ue8m0 ? dp_gemm_mxfp4(NULL, SIDE, SIDE, 64, p->a, p->sa, p->b, p->sb, c, p->oracle,
                                      &run, error)
                      : dp_gemm_nvfp4(NULL, SIDE, SIDE, 64, p->a, p->sa, p->b, p->sb, c, p->oracle,
                                      &run, error));
        p->job.device = p->device;
        p->job.oracle = (const uint32_t *)(const void *)p->oracle;
        if (good) {
            check(&p->job, (size_t)SIDE * SIDE, threads, row);
        }
    }
    free(p);
    return good;
}

bool dp_device_selftest(int device, int threads, uint64_t cases,
                        dp_selftest_row rows[DP_SELFTEST_ROWS], dp_error *error)
{
    bool good = true;
    for (int i = 0; i < DP_SELFTEST_ROWS && good; i++) {
        const uint64_t words = (uint64_t)1 << 32;
        rows[i] = (dp_selftest_row){.wrapper = NAMES[i]};
        if (i <= DP_WRAPPER_FLOOR) {
            const uint64_t count = cases < words / 4 ? 4 * cases : words;
            good = run_wrapper(device, threads, (dp_device_wrapper)i, count, &rows[i], error);
        } else if (i < DP_WRAPPER_COUNT) {
            good = run_wrapper(device, threads, (dp_device_wrapper)i, cases, &rows[i], error);
        } else {
            const int unit = i - DP_WRAPPER_COUNT;
            good =
                run_product(device, threads, unit < 2 ? DP_DEVICE_MMA_GROUPS : DP_DEVICE_MMA_FUSED,
                            unit % 2 == 1, cases / 2, &rows[i], error);
        }
    }
    return good;
}
