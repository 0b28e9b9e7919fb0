/* SPDX-License-Identifier: MIT
 *
 * The block-scaled FP4 matrix unit (kind::mxf4nvf4, K = 64), emulated with integer tensor cores:
 * the sum of a group of 16 products is one mma.sync m16n8k16 on bytes that hold twice the E2M1
 * values, exact; scales, alignment and the one truncation follow in integers. Rules 20 to 26 and 40
 * to 44 of ref/arith/MMA.md with the default switches.
 */
#ifndef DP_DEVICE_BLOCK_MMA_CUH
#define DP_DEVICE_BLOCK_MMA_CUH

#include "device/kernels/instructions.cuh"

#define DPD_ZERO_EXPONENT (-139)
/* Of a group whose every product is a zero: below all others, which may reach -254. */
#define DPD_NO_EXPONENT (-1000)

/* A block scale taken apart: value = significand / 8 * 2^exponent; significand 0..15, or NaN. */
struct dpd_scale {
    int32_t significand;
    int32_t exponent;
    bool nan;
};

/* UE4M3: bit 7 ignored, 0x7F NaN. */
__device__ __forceinline__ dpd_scale dpd_scale_ue4m3(uint32_t byte)
{
    const uint32_t magnitude = byte & 0x7Fu;
    const uint32_t field = magnitude >> 3;
    dpd_scale s;
    s.significand = (int32_t)((magnitude & 7u) + (field != 0 ? 8u : 0u));
    s.exponent = (int32_t)(field != 0 ? field : 1u) - 7;
    s.nan = magnitude == 0x7Fu;
    return s;
}

/* UE8M0: 2^(byte - 127), 0xFF NaN. */
__device__ __forceinline__ dpd_scale dpd_scale_ue8m0(uint32_t byte)
{
    dpd_scale s;
    s.significand = 8;
    s.exponent = (int32_t)byte - 127;
    s.nan = byte == 0xFFu;
    return s;
}

/* Eight E2M1 codes (a word, element 0 low) to eight bytes of twice their value: PRMT as an 8-entry
 * table. */
__device__ __forceinline__ void dpd_decode_word(uint32_t word, uint32_t bytes[2])
{
    for (int half = 0; half < 2; half++) {
        const uint32_t codes = (word >> (16 * half)) & 0xFFFFu;
        const uint32_t magnitude = dp_prmt(0x03020100u, 0x0C080604u, codes & 0x7777u);
        /* the sign of nibble i to every bit of byte i */
        const uint32_t signs = (codes >> 3) & 0x1111u;
        const uint32_t spread =
            (signs & 1u) | (signs & 0x10u) << 4 | (signs & 0x100u) << 8 | (signs & 0x1000u) << 12;
        const uint32_t mask = spread * 0xFFu;
        /* negate bytewise: (x ^ m) - m, bytes at most 12 so that no borrow crosses */
        bytes[half] = __vsub4(magnitude ^ mask, mask);
    }
}

/* Bit i: element i of a group of 16 (two words) is not a zero. */
__device__ __forceinline__ uint32_t dpd_nonzero_mask(uint32_t low, uint32_t high)
{
    uint32_t mask = 0;
    for (int i = 0; i < 8; i++) {
        mask |= ((low >> (4 * i)) & 7u) != 0 ? 1u << i : 0u;
        mask |= ((high >> (4 * i)) & 7u) != 0 ? 256u << i : 0u;
    }
    return mask;
}

/* |magnitude| * 2^shift, cut toward zero; shift may be negative. */
__device__ __forceinline__ int64_t dpd_aligned(int64_t value, int shift)
{
    const uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
    const uint64_t moved = shift >= 0 ? magnitude << shift : shift > -64 ? magnitude >> -shift : 0;
    return value < 0 ? -(int64_t)moved : (int64_t)moved;
}

/* sum * 2^exponent truncated to f32; subnormals kept, beyond the range infinity; zero is +0. */
__device__ __forceinline__ uint32_t dpd_truncate(int64_t sum, int exponent)
{
    if (sum == 0) {
        return 0;
    }
    const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
    const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    const int top = 63 - __clzll((long long)magnitude);
    const int binade = top + exponent;
    if (binade > 127) {
        return sign | 0x7F800000u;
    }
    const int lowest = binade < -126 ? -149 : binade - 23; /* weight of the last bit kept */
    const int shift = exponent - lowest;
    const uint64_t kept = shift >= 0 ? magnitude << shift : (shift > -64 ? magnitude >> -shift : 0);
    /* a normal result holds its leading 1 in kept: adding (field - 1) << 23 turns it into the field
     */
    return sign |
           (binade < -126 ? (uint32_t)kept : (uint32_t)kept + ((uint32_t)(binade + 126) << 23));
}

/* The sum of groups of any exponents. A call, because the callers are long and seldom need it. */
static __device__ __noinline__ int64_t dpd_sum_apart(int4 term, int4 exponent, int largest)
{
    return dpd_aligned(term.x, 27 + exponent.x - largest) +
           dpd_aligned(term.y, 27 + exponent.y - largest) +
           dpd_aligned(term.z, 27 + exponent.z - largest) +
           dpd_aligned(term.w, 27 + exponent.w - largest);
}

/* One K = 64 instruction for one element. term[g] * 2^(exponent[g] - 8): the sum of group g, at
 * most 16 * 144 * 225 in magnitude; exponent[g]: DPD_NO_EXPONENT where every product is a zero;
 * nan: one of the scales is; c: bits of C. */
__device__ __forceinline__ uint32_t dpd_block_mma_sum(const int32_t term[4], const int exponent[4],
                                                      bool nan, uint32_t c)
{
    const uint32_t c_field = (c >> 23) & 0xFFu;
    if (nan || (c_field == 0xFFu && (c & 0x7FFFFFu) != 0)) {
        return 0x7FFFFFFFu;
    }
    if (c_field == 0xFFu) {
        return c;
    }
    const int c_exponent =
        (c & 0x7FFFFFFFu) == 0 ? DPD_ZERO_EXPONENT : (c_field == 0 ? -126 : (int)c_field - 127);
    int largest = DPD_ZERO_EXPONENT;
    int smallest = 512;
#pragma unroll
    for (int g = 0; g < 4; g++) {
        largest = max(largest, exponent[g]);
        smallest = exponent[g] != DPD_NO_EXPONENT ? min(smallest, exponent[g]) : smallest;
    }
    const int spread = largest - smallest;
    largest = max(largest, c_exponent);
    int64_t sum = 0;
    /* Groups of like exponents add up exactly in 32 bits, in steps of the smallest one, which
     * nothing cuts. */
    if (spread <= 9 && largest - smallest <= 27) {
        int32_t near = 0;
#pragma unroll
        for (int g = 0; g < 4; g++) {
            near += term[g] << (max(exponent[g] - smallest, 0) & 31);
        }
        sum = (int64_t)near << ((27 + smallest - largest) & 63);
    } else {
        sum = dpd_sum_apart(make_int4(term[0], term[1], term[2], term[3]),
                            make_int4(exponent[0], exponent[1], exponent[2], exponent[3]), largest);
    }
    const int64_t c_significand = (int64_t)((c & 0x7FFFFFu) | (c_field != 0 ? 0x800000u : 0u));
    sum += dpd_aligned((c >> 31) != 0 ? -c_significand : c_significand, 12 + c_exponent - largest);
    return dpd_truncate(sum, largest - 35);
}

/* The same from group[g], exact sums of 16 products of doubled values; nonzero[g]: at least one of
 * them is not zero; a, b: scales of each group. */
__device__ __forceinline__ uint32_t dpd_block_mma_finish(const int32_t group[4],
                                                         const bool nonzero[4],
                                                         const dpd_scale a[4], const dpd_scale b[4],
                                                         uint32_t c)
{
    bool nan = false;
    int32_t term[4];
    int exponent[4];
#pragma unroll
    for (int g = 0; g < 4; g++) {
        nan = nan || a[g].nan || b[g].nan;
        const int32_t significand = a[g].significand * b[g].significand;
        term[g] = group[g] * significand;
        exponent[g] =
            nonzero[g] && significand != 0 ? a[g].exponent + b[g].exponent : DPD_NO_EXPONENT;
    }
    return dpd_block_mma_sum(term, exponent, nan, c);
}

/* mma.sync.m16n8k16.s8: D = A * B, exact. */
__device__ __forceinline__ void dpd_mma_s8(const uint32_t a[2], uint32_t b, int32_t d[4])
{
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%7,%7,%7,%7};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b), "r"(0));
}

#endif
