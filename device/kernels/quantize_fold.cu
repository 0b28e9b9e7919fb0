/* SPDX-License-Identifier: MIT
 *
 * Stage quantize [D1]: NVFP4 folded over K64. One scale serves the 32 values of blocks b and b + 4
 * of a row: of eleven multiples of amax / 6, rounded to E4M3, the one with the least squared error.
 *
 * A bf16 magnitude has 8 significant bits, a scale 4, so that in FP16 after a shift of the exponent
 * everything but a sum of squares is exact, two values an instruction. Blocks whose exponents
 * spread too far for FP16, or whose scales leave E4M3, go the long way in FP32.
 */
#include "device/kernels/instructions.cuh"
#include "device/kernels/kernels.cuh"
#include "device/kernels/quantize.cuh"
#include "formats/e4m3.h"

namespace
{

enum { BLOCK = 16, PAIR = 2 * BLOCK, WORDS = PAIR / 2, CANDIDATES = 11, THREADS = 128 };

__constant__ const float multiple[CANDIDATES] = {0.25f, 0.3125f, 0.375f, 0.4375f, 0.5f, 0.625f,
                                                 0.75f, 0.875f,  1.0f,   1.125f,  1.25f};
enum { UNITY = 8 }; /* multiple[8] is 1 */

/* ---- the long way ------------------------------------------------------------------------------
 */

/* Code of a magnitude under scale s > 0, midpoints down. x / s exceeds a midpoint m exactly when x
 * exceeds s * m: both products are exact, and a correctly rounded quotient cannot fall onto m from
 * above. */
__device__ __forceinline__ uint32_t long_code(float a, float s)
{
    return (a > 0.25f * s) + (a > 0.75f * s) + (a > 1.25f * s) + (a > 1.75f * s) + (a > 2.5f * s) +
           (a > 3.5f * s) + (a > 5.0f * s);
}

__device__ __forceinline__ float value_of(uint4 words, int i)
{
    const uint32_t word = i < 4 ? (i < 2 ? words.x : words.y) : (i < 6 ? words.z : words.w);
    return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xFFFF0000u);
}

/* Squared error of 8 values under scale s, adjacent pairs first. */
__device__ __forceinline__ float long_error(uint4 words, float s)
{
    float e[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float a = fabsf(value_of(words, i));
        const dp_e2m1 code = {(uint8_t)long_code(a, s)};
        const float grid = 0.5f * (float)dp_e2m1_twice_magnitude(code);
        const float d = __fsub_rn(s > 0.0f ? __fmul_rn(grid, s) : 0.0f, a);
        e[i] = __fmul_rn(d, d);
    }
#pragma unroll
    for (int width = 1; width < 8; width *= 2) {
#pragma unroll
        for (int i = 0; i < 8; i += 2 * width) {
            e[i] = __fadd_rn(e[i], e[i + width]);
        }
    }
    return s == s ? e[0] : __uint_as_float(0x7FFFFFFFu);
}

/* Piece i of the 32 values of a row: two of block b, two of block b + 4. */
__device__ __forceinline__ uint4 piece(const uint4 *from, int i)
{
    return from[i % 2 + i / 2 * 8];
}

/* Values in any range, NaN and infinity too: of a row from `from` on, to `payload` and `scale`. */
__device__ __noinline__ void long_way(const uint4 *from, uint2 *payload, uint8_t *scale)
{
    float amax = 0.0f;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        const uint4 words = piece(from, i);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            amax = dp_max(amax, fabsf(value_of(words, j)));
        }
    }
    const float base = __fmul_rn(amax, __uint_as_float(0x3E2AAAABu));
    dp_e4m3 best = dp_e4m3_from_f32(base, DP_ENCODE_NONSAT);
    float best_error = INFINITY;
#pragma unroll 1
    for (int c = 0; c < CANDIDATES; c++) {
        const dp_e4m3 byte = dp_e4m3_from_f32(__fmul_rn(base, multiple[c]), DP_ENCODE_NONSAT);
        const float s = dp_e4m3_to_f32(byte);
        float half[2];
#pragma unroll 1
        for (int i = 0; i < 2; i++) {
            half[1] =
                __fadd_rn(long_error(piece(from, 2 * i), s), long_error(piece(from, 2 * i + 1), s));
            half[0] = i == 0 ? half[1] : half[0];
        }
        const float error = __fadd_rn(half[0], half[1]);
        if (error < best_error) {
            best_error = error;
            best = byte;
        }
    }
    const float s = dp_e4m3_to_f32(best);
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        const uint4 words = piece(from, i);
        uint32_t code = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float x = value_of(words, j);
            code |= (long_code(fabsf(x), s) + (x < 0.0f ? 8u : 0u)) << (4 * j);
        }
        reinterpret_cast<uint32_t *>(payload)[i % 2 + i / 2 * 8] = s > 0.0f ? code : 0u;
    }
    scale[0] = scale[4] = best.bits;
}

/* ---- two values an instruction -----------------------------------------------------------------
 */

__device__ __forceinline__ __half2 as_half2(uint32_t bits)
{
    return reinterpret_cast<const __half2 &>(bits);
}
__device__ __forceinline__ uint32_t as_bits(__half2 x)
{
    return reinterpret_cast<const uint32_t &>(x);
}
__device__ __forceinline__ uint32_t twice(uint32_t half)
{
    return half << 16 | half;
}

/* Of the bf16 pairs, as bits: the largest magnitude, whether the second block has it, and the
 * smallest magnitude but zero. */
struct span {
    uint32_t largest, smallest;
    bool later;
};

__device__ __forceinline__ span span_of(const uint32_t *word)
{
    uint32_t most[2] = {0, 0};
    uint32_t least = 0xFFFFFFFFu; /* of the bits less 1, where zero comes last */
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        const uint32_t magnitude = word[i] & 0x7FFF7FFFu;
        most[i / (BLOCK / 2)] = __vmaxu2(most[i / (BLOCK / 2)], magnitude);
        least = __viaddmin_u16x2(magnitude, 0xFFFFFFFFu, least);
    }
    const uint32_t first = max(most[0] >> 16, most[0] & 0xFFFFu);
    const uint32_t second = max(most[1] >> 16, most[1] & 0xFFFFu);
    return {max(first, second), min(least >> 16, least & 0xFFFFu) + 1u, second >= first};
}

/* A block pair in FP16 units: value * 2^power, the largest magnitude in [2^13, 2^14). */
struct folded {
    __half2 magnitude[WORDS];
    float base;   /* amax / 6, in the values' units */
    float unit;   /* 2^power                        */
    float unit_1; /* 2^-power                       */
    float amax;   /* in FP16 units                  */
    bool later;   /* the second block has it        */
};

__device__ __forceinline__ void to_half(const uint32_t *word, uint32_t largest, folded &f)
{
    const int exponent = (int)(largest >> 7);
    const uint32_t move = twice((uint32_t)(28 - exponent) << 7 & 0xFFFFu);
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        f.magnitude[i] = as_half2(__viaddmax_s16x2(word[i] & 0x7FFF7FFFu, move, 0u) << 3);
    }
    f.unit = __uint_as_float((uint32_t)(267 - exponent) << 23);
    f.unit_1 = __uint_as_float((uint32_t)(exponent - 13) << 23);
    f.amax = __uint_as_float(largest << 16) * f.unit;
}

/* A scale, and the factor that takes values to its grid. The factor is low by 2^-9, which puts
 * exact midpoints below and leaves every other value, at least 2^-8 away, on its side. */
struct grid {
    float scale; /* in the values' units */
    float factor;
};

__device__ __forceinline__ grid grid_of(uint32_t byte)
{
    grid g;
    g.scale = dp_decode_e4m3(byte);
    g.factor = g.scale > 0.0f ? dp_rcp(g.scale) * 0.998046875f : 0.0f;
    return g;
}

/* Squared error in FP16 units of one of the two blocks: differences exact in FP16, squares exact in
 * FP32, then the sums, adjacent pairs first. CUT: some value may lie beyond the grid's largest and
 * half a step. */
template <bool CUT>
__device__ __forceinline__ float block_error(const __half2 *magnitude, __half2 scale,
                                             __half2 factor)
{
    float e[BLOCK / 2];
#pragma unroll
    for (int i = 0; i < BLOCK / 2; i++) {
        __half2 v = __hmul2(magnitude[i], factor);
        v = CUT ? __hmin2(v, as_half2(0x46004600u)) : v; /* 6 */
        /* the power of two at v, 1 at least: the grid's step is its half, and adding it 512 times
         * rounds v to that step */
        const __half2 power = as_half2(as_bits(__hmax2(v, as_half2(0x3C003C00u))) & 0x7C007C00u);
        const __half2 sum = __hfma2(power, as_half2(0x60006000u), v);       /* 512 */
        const __half2 rounded = __hfma2(power, as_half2(0xE000E000u), sum); /* -512 */
        const __half2 d = __hfma2(rounded, scale, __hneg2(magnitude[i]));
        const float low = __low2float(d);
        const float high = __high2float(d);
        e[i] = __fmaf_rn(low, low, __fmul_rn(high, high));
    }
#pragma unroll
    for (int width = 1; width < BLOCK / 2; width *= 2) {
#pragma unroll
        for (int i = 0; i < BLOCK / 2; i += 2 * width) {
            e[i] = __fadd_rn(e[i], e[i + width]);
        }
    }
    return e[0];
}

/* Squared error of both, or infinity when no thread of the warp can come to its `best` or below: no
 * sum falls below its terms. `lost` is the error of the largest value, where that is cut. */
template <bool CUT>
__device__ __forceinline__ float fold_error(const folded &f, const grid &g, float lost, float best)
{
    const __half2 scale = __float2half2_rn(g.scale * f.unit);
    const __half2 factor = __float2half2_rn(g.factor * f.unit_1);
    const float first = block_error<CUT>(f.magnitude, scale, factor);
    if (CUT && !__any_sync(__activemask(), __fadd_rn(first, f.later ? lost : 0.0f) <= best)) {
        return INFINITY;
    }
    return __fadd_rn(first, block_error<CUT>(f.magnitude + BLOCK / 2, scale, factor));
}

/* The first of the candidates with the least error. A candidate that cuts the largest value off by
 * d cannot do better than d * d, and those below it cut more; so the search goes from 1 up, then
 * from 1 down until no thread of the warp has anything to win. */
__device__ __forceinline__ uint32_t search(const folded &f)
{
    uint32_t best = dp_cvt_e4m3(f.base);
    float best_error = INFINITY;
    int winner = CANDIDATES;
#pragma unroll 1
    for (int i = 0; i < CANDIDATES; i++) {
        const int c = i < CANDIDATES - UNITY ? UNITY + i : CANDIDATES - 1 - i;
        const uint32_t byte = dp_cvt_e4m3(__fmul_rn(f.base, multiple[c]));
        const grid g = grid_of(byte);
        const float scale = g.scale * f.unit;
        const float cut = fmaxf(f.amax - 6.0f * scale, 0.0f);
        const float lost = cut * cut;
        if (__any_sync(__activemask(), lost <= best_error)) {
            const float error = __any_sync(__activemask(), f.amax >= 6.9f * scale)
                                    ? fold_error<true>(f, g, lost, best_error)
                                    : fold_error<false>(f, g, lost, best_error);
            if (error < best_error || (error == best_error && c < winner)) {
                best_error = error;
                winner = c;
                best = byte;
            }
        } else if (c < UNITY) {
            break;
        }
    }
    return best;
}

/* One thread a pair of blocks (b, b + 4) of a row. */
template <bool ORDERED>
__global__ void __launch_bounds__(THREADS, 5)
    quantize_folded(const uint16_t *x, const int32_t *order, int rows, int padded_rows,
                    uint8_t *payload, uint8_t *scale)
{
    const size_t head = blockIdx.y;
    const int b = (int)threadIdx.x % 4;
    const int row = (int)(blockIdx.x * (THREADS / 4) + threadIdx.x / 4);
    if (row >= padded_rows) {
        return;
    }
    const uint4 *from = dpd_row<ORDERED>(x, order, head, min(row, rows - 1), rows) + 2 * b;
    uint32_t word[WORDS];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint4 w = make_uint4(0, 0, 0, 0);
        if (row < rows) {
            w = __ldcs(from + i % 2 + i / 2 * 8);
        }
        word[4 * i] = w.x;
        word[4 * i + 1] = w.y;
        word[4 * i + 2] = w.z;
        word[4 * i + 3] = w.w;
    }
    const size_t out = head * padded_rows + row;
    uint2 *to = reinterpret_cast<uint2 *>(payload + out * (DPD_DIM / 2)) + b;
    scale += out * 8 + b;
    const span range = span_of(word);
    folded f;
    f.base = __fmul_rn(__uint_as_float(range.largest << 16), __uint_as_float(0x3E2AAAABu));
    const float widest = __fmul_rn(f.base, multiple[CANDIDATES - 1]);
    if (!(widest <= 448.0f) || (range.smallest >> 7) + 27 < range.largest >> 7) {
        long_way(from, to, scale);
        return;
    }
    uint32_t code[4] = {0, 0, 0, 0};
    uint32_t byte = 0;
    if (dp_cvt_e4m3(widest) != 0) { /* else every scale is 0, and so is every code */
        to_half(word, range.largest, f);
        f.later = range.later;
        byte = search(f);
        const float factor = 0.5f * grid_of(byte).factor;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            float half[8];
#pragma unroll
            for (int j = 0; j < 4; j++) { /* + 0: the sign bit is for values below zero alone */
                const uint32_t bits = word[4 * w + j];
                half[2 * j] = __fmaf_rn(__uint_as_float(bits << 16), factor, 0.0f);
                half[2 * j + 1] = __fmaf_rn(__uint_as_float(bits & 0xFFFF0000u), factor, 0.0f);
            }
            code[w] = dp_cvt_e2m1x8_clear(half);
        }
    }
    __stcs(to, make_uint2(code[0], code[1]));
    __stcs(to + 4, make_uint2(code[2], code[3]));
    scale[0] = scale[4] = (uint8_t)byte;
}

} // namespace

void dpd_quantize_fold(const uint16_t *x, const int32_t *order, int heads, int rows,
                       int padded_rows, uint8_t *payload, uint8_t *scale, cudaStream_t stream)
{
    const dim3 grid((padded_rows + THREADS / 4 - 1) / (THREADS / 4), heads);
    const auto kernel = order != nullptr ? quantize_folded<true> : quantize_folded<false>;
    kernel<<<grid, THREADS, 0, stream>>>(x, order, rows, padded_rows, payload, scale);
}
