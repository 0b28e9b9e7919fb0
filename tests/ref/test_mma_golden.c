/* SPDX-License-Identifier: MIT
 *
 * Worked examples of the matrix units: each expected value follows from the rules by hand (the
 * derivation stands next to it), or is the hardware value of a public report.
 */
#include "ref/arith/gemm.h"
#include "ref/arith/mma.h"
#include "support.h"

enum { MAX_K = 128 };

static const char *const NVFP4 = "tcgen05.mma.kind::mxf4nvf4.block16.ue4m3";
static const char *const MXFP8 = "tcgen05.mma.kind::mxf8f6f4.block32.ue8m0";

/* An element under construction. */
typedef struct {
    const dp_mma_desc *desc;
    dp_mma_switches switches;
    uint16_t a[MAX_K], b[MAX_K];
    uint8_t sfa[MAX_K / 16], sfb[MAX_K / 16];
    uint32_t c;
} element;

static element start(const char *instruction, const char *type, const char *dtype, const char *arch,
                     uint16_t fill, uint8_t scale)
{
    element e = {.desc = dp_mma_find(instruction, type, type, dtype, arch)};
    ck_assert_msg(e.desc != NULL, "%s %s %s %s is not in the table", instruction, type, dtype,
                  arch);
    for (int i = 0; i < MAX_K; i++) {
        e.a[i] = e.b[i] = fill;
    }
    memset(e.sfa, scale, sizeof e.sfa);
    memset(e.sfb, scale, sizeof e.sfb);
    return e;
}

static uint32_t run_k(const element *e, size_t k)
{
    uint32_t d = 0xDEADBEEFu;
    dp_error error = {{0}};
    const bool done =
        dp_mma_element(e->desc, &e->switches, k, e->a, e->b, e->sfa, e->sfb, e->c, &d, &error);
    ck_assert_msg(done, "%s", error.text);
    return d;
}

static uint32_t run(const element *e)
{
    return run_k(e, e->desc->k);
}

static void expect(const char *what, uint32_t got, uint32_t wanted)
{
    ck_assert_msg(got == wanted, "%s: %08X, expected %08X", what, got, wanted);
}

/* Rule 25: 64 ones sum to 2^6; with F = 35 and E = 0 the last bit of the sum is 2^-35. */
START_TEST(nvfp4_keeps_35_bits)
{
    element e = start(NVFP4, "e2m1", "f32", "sm_100a", 2, 0x38);
    expect("64 ones", run(&e), 0x42800000u);
    e.c = 0xAE000000u;
    expect("64 ones - 2^-35", run(&e), 0x427FFFFFu);
    e.c = 0xAD800000u;
    expect("64 ones - 2^-36", run(&e), 0x42800000u);
}
END_TEST

/* Rule 23: scales 448 give exponent 8+8 = 16, so a group of that exponent leaves C = 1 + 2^-23 with
 * 19 fraction bits. */
START_TEST(zero_group_rule)
{
    element e = start(NVFP4, "e2m1", "f32", "sm_100a", 0, 0x7E);
    e.c = 0x3F800001u;
    expect("zero blocks, default", run(&e), 0x3F800001u);
    e.switches.zero_group = DP_MMA_ZERO_GROUP_SCALE;
    expect("zero blocks, scale", run(&e), 0x3F800000u);
    e.a[0] = e.b[0] = e.b[1] = 2;
    e.a[1] = 0xA; /* 1*1 - 1*1 */
    expect("cancelling group, scale", run(&e), 0x3F800000u);
    e.switches.zero_group = DP_MMA_ZERO_GROUP_EXCLUDED;
    expect("cancelling group, default", run(&e), 0x3F800000u);
}
END_TEST

/* 2^23 - 2^23 - 0.5 - 0.25 - 0.125: how many low bits survive next to 2^23 tells F. f16 cannot hold
 * 2^23, so each large term is a product. Exponents of the products: 23, 23, -1, -2, -3. */
static uint32_t paper_example(const char *instruction, const char *type, const char *arch,
                              uint16_t big_a, uint16_t big_b, uint16_t one, uint16_t half,
                              uint16_t quarter, uint16_t eighth, uint16_t sign)
{
    element e = start(instruction, type, "f32", arch, 0, 0x7F);
    const uint16_t a[5] = {big_a, (uint16_t)(big_a | sign), (uint16_t)(half | sign),
                           (uint16_t)(quarter | sign), (uint16_t)(eighth | sign)};
    const uint16_t b[5] = {big_b, big_b, one, one, one};
    const int order[5] = {0, 4, 1, 3, 2}; /* position must not matter */
    for (int i = 0; i < 5; i++) {
        e.a[order[i]] = a[i];
        e.b[order[i]] = b[i];
    }
    return run(&e);
}

START_TEST(paper_example_of_each_unit)
{
    /* f16: 2^12 = 0x6C00, 2^11 = 0x6800, 1 = 0x3C00; F = 25 keeps 2^-2: -0.5 - 0.25. */
    expect("Hopper f16",
           paper_example("wgmma", "f16", "sm_90a", 0x6C00, 0x6800, 0x3C00, 0x3800, 0x3400, 0x3000,
                         0x8000),
           0xBF400000u);
    expect("Blackwell f16",
           paper_example("tcgen05.mma.kind::f16", "f16", "sm_100a", 0x6C00, 0x6800, 0x3C00, 0x3800,
                         0x3400, 0x3000, 0x8000),
           0xBF400000u);
    expect("Blackwell bf16",
           paper_example("tcgen05.mma.kind::f16", "bf16", "sm_100a", 0x4580, 0x4500, 0x3F80, 0x3F00,
                         0x3E80, 0x3E00, 0x8000),
           0xBF400000u);
    /* E5M2: 2^12 = 0x6C, 2^11 = 0x68, 1 = 0x3C. */
    expect("Blackwell FP8",
           paper_example("tcgen05.mma.kind::f8f6f4", "e5m2", "sm_100a", 0x6C, 0x68, 0x3C, 0x38,
                         0x34, 0x30, 0x80),
           0xBF400000u);
    expect("Blackwell MXFP8",
           paper_example(MXFP8, "e5m2", "sm_100a", 0x6C, 0x68, 0x3C, 0x38, 0x34, 0x30, 0x80),
           0xBF400000u);
    expect("GeForce Blackwell FP8",
           paper_example("mma.sync", "e5m2", "sm_120a", 0x6C, 0x68, 0x3C, 0x38, 0x34, 0x30, 0x80),
           0xBF400000u);
    /* F = 13 keeps 2^10: nothing of the small terms. */
    expect("Hopper FP8",
           paper_example("wgmma", "e5m2", "sm_90a", 0x6C, 0x68, 0x3C, 0x38, 0x34, 0x30, 0x80), 0u);
    expect("Ada FP8",
           paper_example("mma.sync", "e5m2", "sm_89", 0x6C, 0x68, 0x3C, 0x38, 0x34, 0x30, 0x80),
           0u);
}
END_TEST

/* The same on NVFP4: 2^23 needs a scale product of 2^16 (0x78 = 2^8 twice) and C; the groups hold
 * +-2^16 * 4 * 4 * 8 = 2^23 and the small terms. F = 35 keeps all three: -0.875. */
START_TEST(paper_example_nvfp4)
{
    element e = start(NVFP4, "e2m1", "f32", "sm_100a", 0, 0x38);
    e.sfa[0] = e.sfb[0] = 0x78;
    for (int i = 0; i < 8; i++) { /* eight products of 4*4 at scale 2^16: 2^23 */
        e.a[i] = e.b[i] = 6;
    }
    e.c = 0xCB000000u;          /* -2^23 */
    e.a[16] = 0x9, e.b[16] = 2; /* -0.5 * 1 */
    e.a[32] = 0x9, e.b[32] = 1; /* -0.5 * 0.5 */
    e.a[48] = 0x9, e.b[48] = 1; /* -0.5 * 0.5 * 2^-1 */
    e.sfa[3] = 0x30;
    expect("NVFP4", run(&e), 0xBF600000u);
}
END_TEST

/* Rule 13: 12*24 (significand 2.25 at 2^7) aligns one bit lower than 18*16 (1.125 at 2^8). Next to
 * it 2^-6 survives F = 13 in the first form and not in the second. E4M3: 12 = 0x54, 24 = 0x5C,
 * 18 = 0x59, 16 = 0x58, 2^-6 = 0x08. 288 = 0x43900000, 288 + 2^-6 has 14 significant bits too many
 * for E8M13, so a second -288 uncovers it. */
START_TEST(unnormalised_products_align_differently)
{
    element e = start("wgmma", "e4m3", "f32", "sm_90a", 0, 0);
    e.a[0] = 0x54, e.b[0] = 0x5C;
    e.a[1] = 0xD4, e.b[1] = 0x5C;
    e.a[2] = 0x08, e.b[2] = 0x38;
    expect("12*24", run(&e), 0x3C800000u);
    e.a[0] = 0x59, e.b[0] = 0x58;
    expect("18*16", run(&e), 0u);
}
END_TEST

/* Case 93: C passed through with A = B = 0. FP8 on Hopper and Ada keeps 13 fraction bits. */
START_TEST(case_93_accumulator_keeps_13_bits)
{
    const char *const units[][2] = {{"wgmma", "sm_90a"}, {"mma.sync", "sm_89"}};
    for (size_t i = 0; i < 2; i++) {
        element e = start(units[i][0], "e4m3", "f32", units[i][1], 0, 0);
        e.c = 0x3F800400u; /* 1 + 2^-13 */
        expect("1 + 2^-13", run(&e), 0x3F800400u);
        e.c = 0x3F800200u; /* 1 + 2^-14 */
        expect("1 + 2^-14", run(&e), 0x3F800000u);
        e.c = 0xBF8007FFu;
        expect("negative, truncated toward zero", run(&e), 0xBF800400u);
        e.switches.fp8_c = DP_MMA_FP8_C_LATE;
        expect("late C ends in the same 13 bits", run(&e), 0xBF800400u);
    }
    element e = start("tcgen05.mma.kind::f8f6f4", "e4m3", "f32", "sm_100a", 0, 0);
    e.c = 0x3F800001u;
    expect("Blackwell keeps an f32", run(&e), 0x3F800001u);
}
END_TEST

/* Case 95: f16 accumulators overflow in PV. 448*448 = 200704 > 65504 by itself; 32 products of at
 * most 2047 still fit, e.g. 448 * 2.25 = 1008: 32256 = 0x77E0. */
START_TEST(case_95_half_accumulator)
{
    const char *const units[][2] = {{"wgmma", "sm_90a"},
                                    {"tcgen05.mma.kind::f8f6f4", "sm_100a"},
                                    {"mma.sync", "sm_90a"},
                                    {"mma.sync", "sm_120a"}};
    for (size_t i = 0; i < 4; i++) {
        element e = start(units[i][0], "e4m3", "f16", units[i][1], 0x7E, 0);
        expect("32 * 448 * 448", run(&e), 0x7C00u);
        for (int k = 0; k < 32; k++) {
            e.b[k] = 0x41; /* 2.25 */
        }
        expect("32 * 448 * 2.25", run(&e), 0x77E0u);
        for (int k = 0; k < 32; k++) {
            e.a[k] = 0xFE;
        }
        e.c = 0xF800u; /* -32768: -65024 still fits, -32256 more does not */
        expect("-65024", run(&e), 0xFBF0u);
        e.c = 0xFBF0u;
        expect("overflow", run(&e), 0xFC00u);
    }
}
END_TEST

/* Rule 40. */
START_TEST(special_values)
{
    element e = start("tcgen05.mma.kind::f8f6f4", "e5m2", "f32", "sm_100a", 0x3C, 0);
    e.a[5] = 0x7D;
    expect("NaN element", run(&e), 0x7FFFFFFFu);
    e.a[5] = 0xFC;
    expect("-inf * 1", run(&e), 0xFF800000u);
    e.b[5] = 0x00;
    expect("inf * 0", run(&e), 0x7FFFFFFFu);
    e.b[5] = 0xBC;
    expect("-inf * -1", run(&e), 0x7F800000u);
    e.c = 0xFF800000u;
    expect("inf - inf through C", run(&e), 0x7FFFFFFFu);
    e.a[5] = 0x3C;
    expect("C = -inf", run(&e), 0xFF800000u);
    e.c = 0xFF800001u;
    expect("C = NaN", run(&e), 0x7FFFFFFFu);
    e.c = 0;
    e.a[1] = 0x7C, e.a[2] = 0xFC;
    expect("inf - inf", run(&e), 0x7FFFFFFFu);

    e = start("wgmma", "e4m3", "f16", "sm_90a", 0x38, 0);
    e.b[31] = 0xFF;
    expect("E4M3 NaN, f16", run(&e), 0x7FFFu);
    e.b[31] = 0xFE;
    expect("E4M3 has no infinity", run(&e) & 0x7C00u, 0xDC00u & 0x7C00u);

    e = start(NVFP4, "e2m1", "f32", "sm_100a", 2, 0x38);
    e.sfa[2] = 0x7F;
    expect("NaN scale", run(&e), 0x7FFFFFFFu);
    e.sfa[2] = 0xFF;
    expect("NaN scale with bit 7", run(&e), 0x7FFFFFFFu);
    e.sfa[2] = 0xB8;
    expect("bit 7 ignored", run(&e), 0x42800000u);
    e.c = 0x7F800000u;
    expect("C = inf", run(&e), 0x7F800000u);

    e = start(MXFP8, "e4m3", "f32", "sm_100a", 0x38, 0x7F);
    e.sfb[0] = 0xFF;
    expect("UE8M0 NaN", run(&e), 0x7FFFFFFFu);
    e.sfb[0] = 0xFE;
    e.sfa[0] = 0xFE;
    expect("2^254 overflows to infinity", run(&e), 0x7F800000u);
    e.sfb[0] = 0x00; /* 2^-127, not zero (case 30): 32 * 2^127 * 2^-127 */
    expect("UE8M0 code 0", run(&e), 0x42000000u);
}
END_TEST

/* Rule 16: in kind::mxf8f6f4 with C = 0 the zero C joins at -133, and what lies below 2^-158 goes.
 * -2^-150 * 32 products: each is 2^(E-17), kept; the sum -2^-145 is an f32 subnormal. */
START_TEST(live_zero_exponent)
{
    element e = start(MXFP8, "e4m3", "f32", "sm_100a", 0x38, 0x7F);
    e.sfa[0] = 127 - 75;
    e.sfb[0] = 127 - 75;
    expect("32 * 2^-150", run(&e), 0x00000010u);
    e.sfa[0] = 127 - 77;
    expect("32 * 2^-152", run(&e), 0x00000004u);
    e.sfa[0] = 127 - 83;
    expect("32 * 2^-158, below the f32 grid", run(&e), 0u);
    e.c = 0x00000001u; /* subnormal C has exponent -126: E = -126, grid 2^-151 */
    e.sfa[0] = 127 - 77;
    expect("2^-149 + 32 * 2^-152 cut at 2^-151", run(&e), 0x00000001u);
}
END_TEST

/* Rule 42 and 43. */
START_TEST(sign_of_zero)
{
    element e = start("wgmma", "e4m3", "f32", "sm_90a", 0x80, 0);
    for (int k = 0; k < 32; k++) {
        e.b[k] = 0x38;
    }
    e.c = 0x80000000u;
    expect("all -0, default", run(&e), 0u);
    e.switches.zero_sign = DP_MMA_ZERO_SIGN_KEEP;
    expect("all -0, keep", run(&e), 0x80000000u);
    e.b[3] = 0xB8;
    expect("one +0", run(&e), 0u);
    e.b[3] = 0x38;
    e.switches.disabled_c = DP_MMA_DISABLED_C_POSITIVE;
    e.c = dp_mma_disabled_c(e.desc, &e.switches);
    expect("no C counts +0", run(&e), 0u);
    e.switches.disabled_c = DP_MMA_DISABLED_C_NEGATIVE;
    e.c = dp_mma_disabled_c(e.desc, &e.switches);
    expect("no C counts -0", run(&e), 0x80000000u);

    e = start(NVFP4, "e2m1", "f32", "sm_100a", 8, 0x38);
    for (int k = 0; k < 64; k++) {
        e.b[k] = 2;
    }
    e.c = 0x80000000u;
    expect("E2M1 all -0, default", run(&e), 0u);
    e.switches.zero_sign = DP_MMA_ZERO_SIGN_KEEP;
    expect("E2M1 all -0, keep", run(&e), 0x80000000u);

    e = start(MXFP8, "e4m3", "f32", "sm_100a", 0, 127 - 80);
    e.a[0] = 0xB8, e.b[0] = 0x38; /* -2^-160 */
    expect("underflow", run(&e), 0u);
    e.a[1] = 0xB8, e.b[1] = 0x38;
    e.sfa[0] = 127 - 77; /* S = -2^-156 before the conversion */
    e.switches.zero_sign = DP_MMA_ZERO_SIGN_KEEP;
    expect("negative underflow, keep", run(&e), 0x80000000u);
}
END_TEST

/* Rule 12: 0.5*1 in E2M1 has exponent 0 with field emin, -1 normalised; beside 6*6 nothing changes,
 * so the case needs a small neighbour: E = 0 or -1 decides whether C keeps 2^-26. */
START_TEST(narrow_subnormal_exponent)
{
    element e = start("tcgen05.mma.kind::f8f6f4", "e2m1", "f32", "sm_100a", 0, 0);
    e.a[0] = 1, e.b[0] = 2;
    e.a[1] = 9, e.b[1] = 2;
    e.c = 0x32800000u; /* 2^-26 */
    expect("emin", run(&e), 0u);
    e.switches.narrow_subnormal = DP_MMA_SUBNORMAL_NORMALISED;
    expect("normalised", run(&e), 0x32800000u);
}
END_TEST

/* Rule 31 to 33: u = 1 and C = 2^-24 + 2^-25 rounds up to 1 + 2^-23, where a fused sum truncates.
 */
START_TEST(emulated_fp8_rounds_the_sum_with_c)
{
    element e = start("mma.sync", "e4m3", "f32", "sm_100a", 0, 0);
    e.a[0] = e.b[0] = 0x38;
    e.c = 0x33C00000u;
    expect("emulated", run(&e), 0x3F800001u);
    element fused = start("tcgen05.mma.kind::f8f6f4", "e4m3", "f32", "sm_100a", 0, 0);
    fused.a[0] = fused.b[0] = 0x38;
    fused.c = 0x33C00000u;
    expect("fused", run(&fused), 0x3F800000u);
    /* The two halves truncate one after the other: 448*448 in set 0, 2^-9 * 2^0 in set 1; F = 25
     * below 2^16 keeps 2^-9, below F32_RZ 2^(17-23) does not. In one half 2 * 2^-9... is equal. */
    e.c = 0;
    e.a[0] = 0x7E, e.b[0] = 0x7E;
    e.a[2] = 0xFE, e.b[2] = 0x7E;
    e.a[1] = 0x01, e.b[1] = 0x38;
    expect("lost between the halves", run(&e), 0u);
    e.a[2] = 0, e.a[4] = 0xFE, e.b[4] = 0x7E;
    expect("kept in one half", run(&e), 0x3B000000u);
    /* E5M2 2^-16 is subnormal in f16 too: times 2^15 it aligns at 2^(-14+15), whose window ends at
     * 2^-24, so 2^-16 * 2^-9 is cut, as it would not be beside a normal 0.5. */
    e = start("mma.sync", "e5m2", "f32", "sm_100a", 0, 0);
    e.a[0] = 0x01, e.b[0] = 0x78;
    e.a[1] = 0x01, e.b[1] = 0x18;
    e.a[4] = 0x81, e.b[4] = 0x78;
    expect("E5M2 subnormal keeps emin", run(&e), 0u);
    e.a[0] = 0x38, e.b[0] = 0x3C;
    e.a[4] = 0xB8, e.b[4] = 0x3C;
    expect("normal 0.5", run(&e), 0x33000000u);
}
END_TEST

/* Case 71: all ones over K that is no multiple of the instruction: 96, and each K of the list. */
START_TEST(case_71_k_tail)
{
    static const size_t sizes[] = {16, 17, 31, 33, 48, 80, 96};
    uint8_t ones[64];
    uint8_t scale[8];
    memset(ones, 0x22, sizeof ones);
    memset(scale, 0x38, sizeof scale);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        float d = 0;
        dp_error error = {{0}};
        ck_assert_msg(
            dp_gemm_nvfp4(NULL, 1, 1, sizes[i], ones, scale, ones, scale, NULL, &d, NULL, &error),
            "%s", error.text);
        ck_assert_msg(d == (float)sizes[i], "K = %zu: %g", sizes[i], (double)d);
        uint8_t one_hot[64] = {0};
        one_hot[(sizes[i] - 1) / 2] = sizes[i] % 2 != 0 ? 0x02 : 0x20;
        ck_assert(dp_gemm_nvfp4(NULL, 1, 1, sizes[i], one_hot, scale, ones, scale, NULL, &d, NULL,
                                &error));
        ck_assert_msg(d == 1.0f, "last k of %zu: %g", sizes[i], (double)d);
    }
}
END_TEST

/* Case 72: scale bytes 0x7F mean 1.0 for every N. */
START_TEST(case_72_small_shapes)
{
    uint8_t ones[17 * 16];
    uint8_t scale[17];
    memset(ones, 0x22, sizeof ones);
    memset(scale, 0x7F, sizeof scale);
    for (size_t n = 1; n <= 17; n++) {
        float d[17];
        dp_error error = {{0}};
        ck_assert(dp_gemm_mxfp4(NULL, 1, n, 32, ones, scale, ones, scale, NULL, d, NULL, &error));
        for (size_t i = 0; i < n; i++) {
            ck_assert_msg(d[i] == 32.0f, "n = %zu column %zu: %g", n, i, (double)d[i]);
        }
    }
}
END_TEST

/* Case 104: all ones, K = 128, row scales 2 and 4 and column scales 1 and 2 by bands of 128. */
START_TEST(case_104_scale_bands)
{
    enum { SIZE = 256, K = 128, BLOCKS = K / 32 };
    static uint8_t ones[SIZE * K / 2];
    static uint8_t sfa[SIZE * BLOCKS];
    static uint8_t sfb[SIZE * BLOCKS];
    static float d[SIZE * SIZE];
    memset(ones, 0x22, sizeof ones);
    for (size_t i = 0; i < SIZE * BLOCKS; i++) {
        sfa[i] = i / BLOCKS < 128 ? 128 : 129;
        sfb[i] = i / BLOCKS < 128 ? 127 : 128;
    }
    dp_error error = {{0}};
    ck_assert(dp_gemm_mxfp4(NULL, SIZE, SIZE, K, ones, sfa, ones, sfb, NULL, d, NULL, &error));
    dp_tally tally = {0};
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        const float row = i / SIZE < 128 ? 2.0f : 4.0f;
        const float column = i % SIZE < 128 ? 1.0f : 2.0f;
        if (!dp_tally_check(&tally, d[i] == 128.0f * row * column)) {
            dp_tally_note(&tally, "[%zu, %zu] = %g", i / SIZE, i % SIZE, (double)d[i]);
        }
    }
    dp_assert_tally(tally, SIZE * SIZE);
}
END_TEST

START_TEST(k96_is_refused)
{
    const dp_mma_desc *desc = dp_mma_find("tcgen05.mma.kind::mxf4nvf4.k96.block16.ue4m3", "e2m1",
                                          "e2m1", "f32", "sm_103a");
    ck_assert_ptr_nonnull(desc);
    const uint16_t zeros[96] = {0};
    const uint8_t scale[6] = {0};
    uint32_t d = 0;
    dp_error error = {{0}};
    ck_assert(!dp_mma_element(desc, NULL, 96, zeros, zeros, scale, scale, 0, &d, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "nothing is known"));
    desc = dp_mma_find(NVFP4, "e2m1", "e2m1", "f32", "sm_103a");
    error.text[0] = '\0';
    ck_assert(!dp_mma_element(desc, NULL, 96, zeros, zeros, scale, scale, 0, &d, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "nothing is known"));
    error.text[0] = '\0';
    ck_assert(!dp_mma_element(desc, NULL, 65, zeros, zeros, scale, scale, 0, &d, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "multiple"));
    error.text[0] = '\0';
    ck_assert(!dp_mma_element(desc, NULL, 64, zeros, zeros, NULL, scale, 0, &d, &error));
}
END_TEST

START_TEST(table_is_consistent)
{
    size_t count;
    const dp_mma_desc *rows = dp_mma_table(&count);
    for (size_t i = 0; i < count; i++) {
        char arch[32];
        (void)snprintf(arch, sizeof arch, "%.*s", (int)strcspn(rows[i].arch, " "), rows[i].arch);
        ck_assert_ptr_eq(
            dp_mma_find(rows[i].instruction, rows[i].atype, rows[i].btype, rows[i].dtype, arch),
            &rows[i]);
        ck_assert_str_eq(rows[i].dtype, rows[i].result == DP_MMA_F16_RNE ? "f16" : "f32");
    }
    ck_assert_ptr_null(dp_mma_find("wgmma", "e4m3", "e4m3", "f32", "sm_100a"));
    ck_assert_ptr_null(dp_mma_find("wgmma", "e4m3", "e4m3", "f32", "sm_90"));
    ck_assert_ptr_null(dp_mma_find("wgmma", "e4m3", "e4m3", "f32", ""));
}
END_TEST

START_TEST(switches_are_named)
{
    dp_mma_switches s = {0};
    char text[256];
    ck_assert_uint_lt(dp_mma_switches_text(&s, text, sizeof text), sizeof text);
    ck_assert_str_eq(text, "mma.zero_group=excluded\nmma.zero_sign=positive\n"
                           "mma.narrow_subnormal=emin\nmma.fp8_c=early\nmma.disabled_c=positive\n");
    const dp_mma_switches other = {1, 1, 1, 1, 1};
    (void)dp_mma_switches_text(&other, text, sizeof text);
    dp_error error = {{0}};
    ck_assert(dp_mma_switches_parse(&s, text, &error));
    ck_assert_mem_eq(&s, &other, sizeof s);
    ck_assert(dp_mma_switches_parse(&s, "exp2=exact\nmma.zero_sign=positive", &error));
    ck_assert_uint_eq(s.zero_sign, DP_MMA_ZERO_SIGN_POSITIVE);
    ck_assert_uint_eq(s.zero_group, DP_MMA_ZERO_GROUP_SCALE);
    ck_assert(!dp_mma_switches_parse(&s, "mma.zero_sign=maybe\n", &error));
    error.text[0] = '\0';
    ck_assert(!dp_mma_switches_parse(&s, "mma.zero_sing=keep\n", &error));
    error.text[0] = '\0';
    ck_assert(!dp_mma_switches_parse(&s, "mma.zero_sign\n", &error));
    const size_t length = dp_mma_switches_text(&other, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_uint_eq(dp_mma_switches_text(&other, text, 5), length);
    ck_assert_str_eq(text, "mma.");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mma golden");
    TCase *tests = tcase_create("mma golden");
    tcase_add_test(tests, nvfp4_keeps_35_bits);
    tcase_add_test(tests, zero_group_rule);
    tcase_add_test(tests, paper_example_of_each_unit);
    tcase_add_test(tests, paper_example_nvfp4);
    tcase_add_test(tests, unnormalised_products_align_differently);
    tcase_add_test(tests, case_93_accumulator_keeps_13_bits);
    tcase_add_test(tests, case_95_half_accumulator);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, live_zero_exponent);
    tcase_add_test(tests, sign_of_zero);
    tcase_add_test(tests, narrow_subnormal_exponent);
    tcase_add_test(tests, emulated_fp8_rounds_the_sum_with_c);
    tcase_add_test(tests, case_71_k_tail);
    tcase_add_test(tests, case_72_small_shapes);
    tcase_add_test(tests, case_104_scale_bands);
    tcase_add_test(tests, k96_is_refused);
    tcase_add_test(tests, table_is_consistent);
    tcase_add_test(tests, switches_are_named);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
