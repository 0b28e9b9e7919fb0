/* SPDX-License-Identifier: MIT
 *
 * The block-scaled FP4 matrix unit by bf16 tensor cores, bit for bit. A code times its scale is a
 * bf16 number, and where the exponents of a K = 64 instruction lie close together (nearly always)
 * the tensor core's sum S of the 64 products is exact; then the unit's one truncation is fma.rz(S,
 * 1, C). Whether it is exact follows from bounds kept beside each row and column. Where it need not
 * be, the warp takes the tile apart into groups and sums them in integers (dpd_block_mma_sum).
 *
 * With lo and hi the least and largest exponent e_a + e_b over the groups with a product other than
 * zero, a group of 16 is a multiple of 2^(lo - 8) below 2^(hi + 11), and
 *   - nothing of a group is cut (rule 22 of ref/arith/MMA.md) if C < 2^(lo + 28): the window ends
 * at 2^(largest - 35); with UE8M0 scales, whose groups are multiples of 2^(lo - 2), if C < 2^(lo +
 * 34);
 *   - nothing of C is cut if C = 0 or C >= 2^(hi - 12);
 *   - UE4M3: two groups are exact in 24 bits if hi - lo <= 4, and so is the sum of all four if it
 * is less than 2^(lo + 16). UE8M0: 64 products are exact if hi - lo <= 11.
 */
#ifndef DP_DEVICE_EXACT_MMA_CUH
#define DP_DEVICE_EXACT_MMA_CUH

#include "device/kernels/block_mma.cuh"

/* An operand of ROWS rows and K = 128: bf16 pairs, in chunks of 16 bytes that hold what one lane of
 * mma.m16n8k16 needs of two groups. */
template <int ROWS> struct dpd_exact_operand {
    uint4 chunk[ROWS][16];
    float2 bound[2][ROWS];   /* of each instruction: about 2^hi and 2^lo, see dpd_bound      */
    uint32_t scale[ROWS][2]; /* scale bytes, four a word: UE4M3 one a group, UE8M0 two alike */
};

/* What the values in memory are divided by, so that bf16 holds each step of the conversion:
 * UE4M3 2^8 a side; UE8M0 2^16 for the rows (P), 2^8 for the columns (V). */
#define DPD_UNDO_UE4M3 65536.0f    /* 2^16 */
#define DPD_UNDO_UE8M0 16777216.0f /* 2^24 */
/* The scale exponents for which UE8M0 operands hold values and not stand-ins. */
#define DPD_LEAST_P   (-70)
#define DPD_LARGEST_P 17
#define DPD_LEAST_V   (-30)
#define DPD_LARGEST_V 9

/* The exponent that a UE8M0 operand holds for a scale's: the scale's own, or a stand-in. */
template <bool P> __device__ __forceinline__ int dpd_held(int exponent)
{
    return P ? min(max(exponent, DPD_LEAST_P), DPD_LARGEST_P)
             : min(max(exponent, DPD_LEAST_V), DPD_LARGEST_V);
}

/* Chunk t (lane % 4) of unit u (32 elements) of a row. The lanes that read and those that write
 * together (2 rows x 4 chunks, 2 rows x 4 units) fall into different banks. */
__device__ __forceinline__ int dpd_chunk(int row, int unit, int t)
{
    return (unit * 4 + (t ^ (unit >> 1) ^ ((row & 1) << 1))) ^ ((row & 1) << 2);
}

__device__ __forceinline__ float dpd_exp2i(int exponent) /* -126..127 */
{
    return __uint_as_float((uint32_t)(exponent + 127) << 23);
}

/* 2^exponent as a bf16 pair, -126..127. */
__device__ __forceinline__ uint32_t dpd_exp2i_bf16x2(int exponent)
{
    return (uint32_t)(exponent + 127) * 0x00800080u;
}

__device__ __forceinline__ uint32_t dpd_mul_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000u));
    return d;
}

/* Elements PAIR and PAIR + 4 of eight codes, each times `scale` * 2^-126: the code's bits in place
 * are a bf16 subnormal or one of the least normal numbers. */
template <int PAIR, bool SIGNED>
__device__ __forceinline__ uint32_t dpd_pair_bf16(uint32_t codes, uint32_t scale)
{
    const uint32_t magnitude = (PAIR == 0   ? codes << 6
                                : PAIR == 1 ? codes << 2
                                            : codes >> (PAIR == 2 ? 2 : 6)) &
                               0x01C001C0u;
    const uint32_t sign = SIGNED ? (codes << (12 - 4 * PAIR)) & 0x80008000u : 0u;
    return dpd_mul_bf16x2(magnitude | sign, scale);
}

/* Store 32 codes (two groups), unit `unit` of a row. scale0, scale1: 2^126 times the groups' scales
 * in this operand. */
template <bool SIGNED>
__device__ __forceinline__ void dpd_store_unit(uint4 *row, int r, int unit, uint4 codes,
                                               uint32_t scale0, uint32_t scale1)
{
#define DPD_CHUNK(T)                                                                               \
    row[dpd_chunk(r, unit, T)] = make_uint4(                                                       \
        dpd_pair_bf16<T, SIGNED>(codes.x, scale0), dpd_pair_bf16<T, SIGNED>(codes.y, scale0),      \
        dpd_pair_bf16<T, SIGNED>(codes.z, scale1), dpd_pair_bf16<T, SIGNED>(codes.w, scale1))
    DPD_CHUNK(0);
    DPD_CHUNK(1);
    DPD_CHUNK(2);
    DPD_CHUNK(3);
#undef DPD_CHUNK
}

/* Exponents of the groups that hold something. */
struct dpd_range {
    int hi, lo;
    bool strange; /* a NaN scale, or an exponent that the operand does not hold */
};

/* The other half of an instruction is the neighbouring lane's. */
__device__ __forceinline__ dpd_range dpd_join(dpd_range mine)
{
    dpd_range both;
    both.hi = max(mine.hi, __shfl_xor_sync(0xFFFFFFFFu, mine.hi, 1));
    both.lo = min(mine.lo, __shfl_xor_sync(0xFFFFFFFFu, mine.lo, 1));
    both.strange = __shfl_xor_sync(0xFFFFFFFFu, (int)mine.strange, 1) != 0 || mine.strange;
    return both;
}

/* A row's share of the bounds: the product of a row's and a column's is 2^(hi - 12) and 2^(lo +
 * top). A row of zeros bounds nothing; a strange one fails every comparison. */
__device__ __forceinline__ float2 dpd_bound(dpd_range r, int top)
{
    if (r.strange) {
        return make_float2(__uint_as_float(0x7FFFFFFFu), __uint_as_float(0x7FFFFFFFu));
    }
    return r.hi < r.lo ? make_float2(0.0f, INFINITY)
                       : make_float2(dpd_exp2i(r.hi - 6), dpd_exp2i(r.lo + top / 2));
}

/* Decode unit `unit` of a row with UE4M3 scale bytes low and high. */
template <int ROWS>
__device__ __forceinline__ void dpd_put_ue4m3(dpd_exact_operand<ROWS> &to, int row, int unit,
                                              uint4 codes, uint32_t bytes)
{
    uint32_t factor[2];
    dpd_range range = {-512, 512, false};
#pragma unroll
    for (int group = 0; group < 2; group++) {
        const dpd_scale s = dpd_scale_ue4m3(bytes >> (8 * group));
        const uint32_t any = group == 0 ? codes.x | codes.y : codes.z | codes.w;
        const bool live = (any & 0x77777777u) != 0 && s.significand != 0;
        range.hi = live ? max(range.hi, s.exponent) : range.hi;
        range.lo = live ? min(range.lo, s.exponent) : range.lo;
        range.strange = range.strange || s.nan;
        /* the byte as an f32 is 2^-120 of its value; 2^118 of it has at most four bits */
        const uint32_t value = __float_as_uint(__fmul_rn(
            __fmul_rn(__uint_as_float((bytes >> (8 * group) & 0x7Fu) << 20), dpd_exp2i(120)),
            dpd_exp2i(118)));
        factor[group] = __byte_perm(value, 0, 0x3232);
    }
    dpd_store_unit<true>(to.chunk[row], row, unit, codes, factor[0], factor[1]);
    const dpd_range both = dpd_join(range);
    if (unit % 2 == 0) {
        to.bound[unit / 2][row] = dpd_bound(both, 28);
    }
    reinterpret_cast<uint16_t *>(to.scale[row])[unit] = (uint16_t)bytes;
}

/* Decode unit `unit` of a row with one UE8M0 scale byte. P: rows, codes without sign. */
template <bool P, int ROWS>
__device__ __forceinline__ void dpd_put_ue8m0(dpd_exact_operand<ROWS> &to, int row, int unit,
                                              uint4 codes, uint32_t byte)
{
    const int exponent = (int)byte - 127;
    const int held = dpd_held<P>(exponent);
    const bool live = ((codes.x | codes.y | codes.z | codes.w) & 0x77777777u) != 0;
    dpd_range range = {-512, 512, byte == 0xFFu};
    if (live) {
        range.hi = range.lo = exponent;
        range.strange = range.strange || held != exponent;
    }
    const uint32_t factor = dpd_exp2i_bf16x2(held + (P ? 126 - 16 : 126 - 8));
    dpd_store_unit<!P>(to.chunk[row], row, unit, codes, factor, factor);
    dpd_range both = dpd_join(range);
    both.strange = both.strange || both.hi - both.lo > (P ? 8 : 3);
    if (unit % 2 == 0) {
        to.bound[unit / 2][row] = dpd_bound(both, 34);
    }
    reinterpret_cast<uint16_t *>(to.scale[row])[unit] = (uint16_t)(byte | byte << 8);
}

/* Decode rows [0, ROWS) from memory: 64 payload bytes a row. Rows beyond `valid` are zeros with
 * scale byte 0. */
template <int ROWS, bool UE8M0>
__device__ void dpd_load_exact(dpd_exact_operand<ROWS> &to, const uint8_t *payload, size_t stride,
                               const uint8_t *scale, size_t scale_stride, int valid, int thread,
                               int threads)
{
#pragma unroll 2
    for (int i = thread; i < ROWS * 4; i += threads) {
        const int row = i / 4;
        const int unit = i % 4;
        uint4 codes = make_uint4(0, 0, 0, 0);
        uint32_t bytes = 0;
        if (row < valid) {
            codes = *reinterpret_cast<const uint4 *>(payload + row * stride + unit * 16);
            bytes =
                UE8M0 ? scale[row * scale_stride + unit]
                      : *reinterpret_cast<const uint16_t *>(scale + row * scale_stride + unit * 2);
        }
        if (UE8M0) {
            dpd_put_ue8m0<false>(to, row, unit, codes, bytes);
        } else {
            dpd_put_ue4m3(to, row, unit, codes, bytes);
        }
    }
}

/* mma.sync.m16n8k16 bf16: d += a b. Of a group: words lo and hi of rows g and g + 8, and of the
 * column. */
__device__ __forceinline__ void dpd_mma_bf16(float d[4], const uint32_t a[4], uint32_t b_lo,
                                             uint32_t b_hi)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_lo), "r"(b_hi));
}

/* The A side of one instruction in registers: fragment of each group, bounds of rows g and g + 8.
 */
struct dpd_exact_a {
    uint32_t word[4][4];
    float2 bound[2];
};

template <int ROWS>
__device__ __forceinline__ dpd_exact_a dpd_read_a(const dpd_exact_operand<ROWS> &a, int row0,
                                                  int instruction)
{
    const int g = (int)(threadIdx.x % 32) / 4;
    const int t = (int)threadIdx.x % 4;
    dpd_exact_a out;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = row0 + g + 8 * half;
        const uint4 low = a.chunk[row][dpd_chunk(row, 2 * instruction, t)];
        const uint4 high = a.chunk[row][dpd_chunk(row, 2 * instruction + 1, t)];
        out.word[0][half] = low.x;
        out.word[0][half + 2] = low.y;
        out.word[1][half] = low.z;
        out.word[1][half + 2] = low.w;
        out.word[2][half] = high.x;
        out.word[2][half + 2] = high.y;
        out.word[3][half] = high.z;
        out.word[3][half + 2] = high.w;
        out.bound[half] = a.bound[instruction][row];
    }
    return out;
}

/* Terms and exponents of the four groups of one element from the groups' sums. */
template <bool UE8M0>
__device__ __forceinline__ uint32_t dpd_finish_groups(const float sum[4], const float absolute[4],
                                                      uint32_t a_bytes, uint32_t b_bytes,
                                                      uint32_t c)
{
    int32_t term[4];
    int exponent[4];
    bool nan = false;
#pragma unroll
    for (int g = 0; g < 4; g++) {
        const uint32_t a = a_bytes >> (8 * g) & 0xFFu;
        const uint32_t b = b_bytes >> (8 * g) & 0xFFu;
        const dpd_scale sa = UE8M0 ? dpd_scale_ue8m0(a) : dpd_scale_ue4m3(a);
        const dpd_scale sb = UE8M0 ? dpd_scale_ue8m0(b) : dpd_scale_ue4m3(b);
        const int held_a = UE8M0 ? dpd_held<true>(sa.exponent) : sa.exponent;
        const int held_b = UE8M0 ? dpd_held<false>(sb.exponent) : sb.exponent;
        nan = nan || sa.nan || sb.nan;
        /* two steps: one power of two could leave the range */
        term[g] = __float2int_rz(__fmul_rn(__fmul_rn(sum[g], dpd_exp2i((UE8M0 ? 24 : 16) - held_a)),
                                           dpd_exp2i(8 - held_b)));
        exponent[g] = absolute[g] != 0.0f ? sa.exponent + sb.exponent : DPD_NO_EXPONENT;
    }
    return dpd_block_mma_sum(term, exponent, nan, c);
}

/* 16 x 8 elements group by group; all lanes of the warp. A call, because it is long and seldom
 * needed. */
template <bool UE8M0, int A_ROWS, int B_ROWS>
__device__ __noinline__ uint4 dpd_tile_apart(const dpd_exact_operand<A_ROWS> &a, int row0,
                                             const dpd_exact_operand<B_ROWS> &b, int col0,
                                             int instruction, uint4 c)
{
    const int g = (int)(threadIdx.x % 32) / 4;
    const int t = (int)threadIdx.x % 4;
    const dpd_exact_a rows = dpd_read_a(a, row0, instruction);
    const uint4 low = b.chunk[col0 + g][dpd_chunk(g, 2 * instruction, t)];
    const uint4 high = b.chunk[col0 + g][dpd_chunk(g, 2 * instruction + 1, t)];
    const uint32_t column[4][2] = {
        {low.x, low.y}, {low.z, low.w}, {high.x, high.y}, {high.z, high.w}};
    float sum[4][4] = {};
    float absolute[4][4] = {};
#pragma unroll
    for (int group = 0; group < 4; group++) {
        uint32_t magnitude[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            magnitude[i] = rows.word[group][i] & 0x7FFF7FFFu;
        }
        dpd_mma_bf16(sum[group], rows.word[group], column[group][0], column[group][1]);
        dpd_mma_bf16(absolute[group], magnitude, column[group][0] & 0x7FFF7FFFu,
                     column[group][1] & 0x7FFF7FFFu);
    }
    uint32_t d[4] = {c.x, c.y, c.z, c.w};
#pragma unroll
    for (int out = 0; out < 4; out++) {
        const float sums[4] = {sum[0][out], sum[1][out], sum[2][out], sum[3][out]};
        const float sizes[4] = {absolute[0][out], absolute[1][out], absolute[2][out],
                                absolute[3][out]};
        d[out] =
            dpd_finish_groups<UE8M0>(sums, sizes, a.scale[row0 + g + 8 * (out / 2)][instruction],
                                     b.scale[col0 + 2 * t + out % 2][instruction], d[out]);
    }
    return make_uint4(d[0], d[1], d[2], d[3]);
}

/* One instruction on 16 rows (from row0 of a, in `rows` too) and 8 columns (from col0 of b): d is C
 * and D, in the layout of mma.m16n8. FIRST: C is zero. */
template <bool UE8M0, bool FIRST, int A_ROWS, int B_ROWS>
__device__ __forceinline__ void
dpd_exact_tile(const dpd_exact_operand<A_ROWS> &a, int row0, const dpd_exact_a &rows,
               const dpd_exact_operand<B_ROWS> &b, int col0, int instruction, float d[4])
{
    const int g = (int)(threadIdx.x % 32) / 4;
    const int t = (int)threadIdx.x % 4;
    const uint4 low = b.chunk[col0 + g][dpd_chunk(g, 2 * instruction, t)];
    const uint4 high = b.chunk[col0 + g][dpd_chunk(g, 2 * instruction + 1, t)];
    const float4 columns = *reinterpret_cast<const float4 *>(&b.bound[instruction][col0 + 2 * t]);
    float s[4] = {};
    float s2[4] = {};
    dpd_mma_bf16(s, rows.word[0], low.x, low.y);
    dpd_mma_bf16(s, rows.word[1], low.z, low.w);
    dpd_mma_bf16(UE8M0 ? s : s2, rows.word[2], high.x, high.y);
    dpd_mma_bf16(UE8M0 ? s : s2, rows.word[3], high.z, high.w);
    bool exact = true;
    float result[4];
#pragma unroll
    for (int out = 0; out < 4; out++) {
        const float2 row = rows.bound[out / 2];
        const float hi = __fmul_rn(row.x, out % 2 == 0 ? columns.x : columns.z);
        const float lo = __fmul_rn(row.y, out % 2 == 0 ? columns.y : columns.w);
        const float size = fabsf(d[out]);
        float x = s[out];
        if (!UE8M0) {
            x = __fadd_rz(s[out], s2[out]);
            exact = exact && hi <= __fmul_rn(lo, dpd_exp2i(4 - 40));
        }
        if (FIRST) {
            exact = exact && hi < INFINITY; /* false for NaN */
            result[out] = __fmaf_rz(x, UE8M0 ? DPD_UNDO_UE8M0 : DPD_UNDO_UE4M3, 0.0f);
        } else {
            if (!UE8M0) {
                exact = exact && fabsf(x) < __fmul_rn(lo, dpd_exp2i(-28));
            }
            exact = exact && (size >= hi || size == 0.0f) && size < lo;
            result[out] = __fmaf_rz(x, UE8M0 ? DPD_UNDO_UE8M0 : DPD_UNDO_UE4M3, d[out]);
        }
    }
    if (__all_sync(0xFFFFFFFFu, exact)) {
#pragma unroll
        for (int out = 0; out < 4; out++) {
            d[out] = result[out];
        }
    } else {
        const uint4 c = FIRST ? make_uint4(0, 0, 0, 0)
                              : make_uint4(__float_as_uint(d[0]), __float_as_uint(d[1]),
                                           __float_as_uint(d[2]), __float_as_uint(d[3]));
        const uint4 r = dpd_tile_apart<UE8M0>(a, row0, b, col0, instruction, c);
        d[0] = __uint_as_float(r.x);
        d[1] = __uint_as_float(r.y);
        d[2] = __uint_as_float(r.z);
        d[3] = __uint_as_float(r.w);
    }
}

#endif
