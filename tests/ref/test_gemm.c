/* SPDX-License-Identifier: MIT
 *
 * The whole-matrix forms against the element form, path by path: every instruction with an f32
 * result, odd shapes, K tails, C given and not, scale layouts, thread counts, and a hostile
 * floating-point environment.
 */
#include <fenv.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "mma_draw.h"
#include "ref/arith/gemm.h"
#include "ref/arith/mma_term.h"

enum { MAX_ROWS = 40, MAX_COLUMNS = 50, MAX_K = 200, MAX_SCALES = 16 };

/* One product: operands one code a word and packed, as the two interfaces want them. */
typedef struct {
    const dp_mma_desc *desc;
    dp_mma_switches switches;
    size_t m, n, k, scales;
    uint32_t a[MAX_ROWS * MAX_K], b[MAX_COLUMNS * MAX_K];
    uint8_t sfa[MAX_ROWS * MAX_SCALES], sfb[MAX_COLUMNS * MAX_SCALES];
    uint32_t packed_a[MAX_ROWS * MAX_K], packed_b[MAX_COLUMNS * MAX_K];
    float c[MAX_ROWS * MAX_COLUMNS];
    bool with_c;
    float wanted[MAX_ROWS * MAX_COLUMNS];
} product;

static void pack(const uint32_t *codes, size_t rows, size_t k, int bits, void *out)
{
    uint8_t *bytes = out;
    const size_t stride = bits == 4 ? (k + 1) / 2 : k * (size_t)((bits + 7) / 8);
    memset(out, 0, rows * stride);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < k; i++) {
            const uint32_t code = codes[r * k + i];
            uint8_t *row = bytes + r * stride;
            if (bits == 4) {
                row[i / 2] |= (uint8_t)(code << (i % 2 * 4));
            } else if (bits <= 8) {
                row[i] = (uint8_t)code;
            } else {
                memcpy(row + i * (size_t)bits / 8, &code, (size_t)bits / 8);
            }
        }
    }
}

static void draw_side(dp_rng *rng, const char *type, uint32_t *codes, size_t rows, size_t k)
{
    const ref_format f = ref_format_of(type);
    const uint32_t width = dp_rng_below(rng, 10);
    const uint32_t low = dp_rng_below(rng, 1u << f.exponent_bits);
    /* mostly kind data, so that the vector paths are the ones that run */
    const bool specials = dp_rng_below(rng, 6) == 0;
    int style = (int)dp_rng_below(rng, 8);
    style = style == 4 && !specials ? 0 : style;
    const uint32_t sign = 1u << (f.exponent_bits + f.mantissa_bits);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < k; i++) {
            codes[r * k + i] = draw_code(rng, f, style, low, width);
        }
        if (dp_rng_below(rng, 4) == 0) { /* cancelling neighbours */
            for (size_t i = 0; i + 1 < k; i += 2) {
                codes[r * k + i + 1] = codes[r * k + i] ^ sign;
            }
        }
        if (dp_rng_below(rng, 8) == 0) { /* a row, or a group, of zeros */
            const size_t first = dp_rng_below(rng, 2) * 16;
            for (size_t i = first; i < k && (first == 0 || i < 32); i++) {
                codes[r * k + i] &= sign;
            }
        }
    }
}

static void draw_scales(dp_rng *rng, const dp_mma_desc *desc, uint8_t *scale, size_t count)
{
    const uint32_t style = dp_rng_below(rng, 5);
    const bool ue8m0 = desc->scale == DP_MMA_UE8M0;
    const uint32_t one = ue8m0 ? 127 : 0x38;
    const uint32_t low = dp_rng_below(rng, 100);
    for (size_t i = 0; i < count; i++) {
        scale[i] = style == 0   ? (uint8_t)dp_rng_below(rng, ue8m0 ? 255 : 127)
                   : style == 1 ? (uint8_t)(low + dp_rng_below(rng, 24))
                   : style == 2 ? (uint8_t)(one - 20 + dp_rng_below(rng, 40))
                   : style == 3 ? (uint8_t)(dp_rng_below(rng, 40) == 0 ? 0xFF : one)
                                : (uint8_t)(one - 4 + dp_rng_below(rng, 8));
    }
}

static float draw_c(dp_rng *rng, uint32_t style)
{
    switch (style) {
    case 0:
        return dp_rng_nasty_f32(rng);
    case 1:
        return (float)ldexp(dp_rng_normal(rng), (int)dp_rng_below(rng, 60) - 30);
    case 2:
        return dp_rng_below(rng, 2) != 0 ? 0.0f : -0.0f;
    default:
        return (float)dp_rng_normal(rng) * 8.0f;
    }
}

static void draw_product(dp_rng *rng, product *p, const dp_mma_desc *desc)
{
    p->desc = desc;
    const uint32_t bits = dp_rng_below(rng, 6) == 0 ? dp_rng_u32(rng) : 0u;
    p->switches = (dp_mma_switches){.zero_group = bits & 1u,
                                    .zero_sign = (bits >> 1) & (bits >> 2) & 1u,
                                    .narrow_subnormal = (bits >> 3) & 1u,
                                    .fp8_c = (bits >> 4) & (bits >> 5) & 1u,
                                    .disabled_c = (bits >> 6) & 1u};
    p->m = 1 + dp_rng_below(rng, MAX_ROWS);
    p->n = 1 + dp_rng_below(rng, MAX_COLUMNS);
    p->k = 1 + dp_rng_below(rng, MAX_K);
    if (dp_rng_below(rng, 2) == 0) {
        p->k = desc->k * (1 + dp_rng_below(rng, MAX_K / desc->k));
    }
    p->scales = desc->block != 0 ? (p->k + desc->block - 1) / desc->block : 0;
    draw_side(rng, desc->atype, p->a, p->m, p->k);
    draw_side(rng, desc->btype, p->b, p->n, p->k);
    draw_scales(rng, desc, p->sfa, p->m * p->scales);
    draw_scales(rng, desc, p->sfb, p->n * p->scales);
    pack(p->a, p->m, p->k, dp_mma_code_bits(desc->a), p->packed_a);
    pack(p->b, p->n, p->k, dp_mma_code_bits(desc->b), p->packed_b);
    const uint32_t style = dp_rng_below(rng, 5);
    for (size_t i = 0; i < p->m * p->n; i++) {
        p->c[i] = draw_c(rng, style);
    }
    p->with_c = dp_rng_below(rng, 3) != 0;
}

/* Rule 7 by hand: zero codes and byte 0 in the tail. */
static void elements(product *p)
{
    const size_t padded = (p->k + p->desc->k - 1) / p->desc->k * p->desc->k;
    for (size_t m = 0; m < p->m; m++) {
        for (size_t n = 0; n < p->n; n++) {
            uint32_t a[MAX_K + 64] = {0};
            uint32_t b[MAX_K + 64] = {0};
            uint8_t sfa[MAX_SCALES + 4] = {0};
            uint8_t sfb[MAX_SCALES + 4] = {0};
            memcpy(a, p->a + m * p->k, p->k * sizeof a[0]);
            memcpy(b, p->b + n * p->k, p->k * sizeof b[0]);
            memcpy(sfa, p->sfa + m * p->scales, p->scales);
            memcpy(sfb, p->sfb + n * p->scales, p->scales);
            uint32_t bits = dp_mma_disabled_c(p->desc, &p->switches);
            if (p->with_c) {
                memcpy(&bits, &p->c[m * p->n + n], sizeof bits);
            }
            dp_error error = {{0}};
            ck_assert_msg(dp_mma_element32(p->desc, &p->switches, padded, a, b, sfa, sfb, bits,
                                           &bits, &error),
                          "%s", error.text);
            memcpy(&p->wanted[m * p->n + n], &bits, sizeof bits);
        }
    }
}

static void compare(const product *p, const float *d, const char *what, dp_tally *tally)
{
    for (size_t i = 0; i < p->m * p->n; i++) {
        uint32_t got;
        uint32_t wanted;
        memcpy(&got, &d[i], sizeof got);
        memcpy(&wanted, &p->wanted[i], sizeof wanted);
        if (!dp_tally_check(tally, got == wanted)) {
            dp_tally_note(tally, "%s: %s %s.%s %s %zux%zux%zu [%zu, %zu]: %08X, expected %08X",
                          what, p->desc->instruction, p->desc->atype, p->desc->btype, p->desc->arch,
                          p->m, p->n, p->k, i / p->n, i % p->n, got, wanted);
        }
    }
}

static void run(const product *p, dp_mma_run how, float *d)
{
    const dp_mma_source a = {.payload = p->packed_a, .scale = p->sfa};
    const dp_mma_source b = {.payload = p->packed_b, .scale = p->sfb};
    dp_error error = {{0}};
    memset(d, 0x5A, p->m * p->n * sizeof *d);
    ck_assert_msg(dp_gemm(p->desc, &p->switches, p->m, p->n, p->k, &a, &b, p->with_c ? p->c : NULL,
                          d, &how, &error),
                  "%s", error.text);
}

static const char *const path_names[DP_MMA_PATHS] = {"auto", "portable", "avx2", "avx512"};

static product the_product;
static float d[MAX_ROWS * MAX_COLUMNS];
static unsigned rounds = 2;

/* The rows of the table with a whole-matrix form. */
static const dp_mma_desc *next_desc(size_t *i)
{
    size_t count;
    const dp_mma_desc *table = dp_mma_table(&count);
    for (; *i < count; (*i)++) {
        if (table[*i].family != DP_MMA_UNKNOWN && table[*i].result != DP_MMA_F16_RNE) {
            return &table[(*i)++];
        }
    }
    return NULL;
}

START_TEST(every_path_equals_the_elements)
{
    product *p = &the_product;
    dp_rng rng = {.state = 0x67656D6D};
    dp_tally tally = {0};
    for (unsigned round = 0; round < rounds; round++) {
        const dp_mma_desc *desc;
        for (size_t i = 0; (desc = next_desc(&i)) != NULL;) {
            /* the grouped units are few rows of the table and many paths */
            const int repeats = desc->family == DP_MMA_GROUPED ? 12 : 1;
            for (int j = 0; j < repeats; j++) {
                draw_product(&rng, p, desc);
                elements(p);
                for (int path = 0; path < DP_MMA_PATHS; path++) {
                    if (dp_mma_path_available((dp_mma_path)path)) {
                        run(p, (dp_mma_run){.threads = 1, .path = (dp_mma_path)path}, d);
                        compare(p, d, path_names[path], &tally);
                    }
                }
            }
        }
    }
    dp_assert_tally(tally, 100000);
}
END_TEST

START_TEST(threads_and_environment_change_nothing)
{
    product *p = &the_product;
    dp_rng rng = {.state = 0x656E76};
    dp_tally tally = {0};
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const dp_mma_desc *desc;
    size_t i = 0;
    for (size_t turn = 0; (desc = next_desc(&i)) != NULL; turn++) {
        draw_product(&rng, p, desc);
        elements(p);
        for (int path = 0; path < DP_MMA_PATHS; path++) {
            if (!dp_mma_path_available((dp_mma_path)path)) {
                continue;
            }
            (void)fesetround(modes[turn % 4]);
#if defined(__x86_64__)
            const unsigned saved = _mm_getcsr();
            _mm_setcsr(saved | 0x8040u); /* FTZ and DAZ */
#endif
            run(p, (dp_mma_run){.threads = (int)(turn % 5), .path = (dp_mma_path)path}, d);
#if defined(__x86_64__)
            _mm_setcsr(saved);
#endif
            (void)fesetround(FE_TONEAREST);
            compare(p, d, path_names[path], &tally);
        }
    }
    dp_assert_tally(tally, 50000);
}
END_TEST

START_TEST(scale_layouts_and_tiles)
{
    product *p = &the_product;
    dp_rng rng = {.state = 0x6C6179};
    dp_tally tally = {0};
    static uint8_t stored_a[512 * 64];
    static uint8_t stored_b[512 * 64];
    static const dp_layout kinds[] = {DP_LAYOUT_LINEAR, DP_LAYOUT_128X4, DP_LAYOUT_SM120};
    const dp_mma_desc *desc;
    for (size_t i = 0; (desc = next_desc(&i)) != NULL;) {
        if (desc->block == 0) {
            continue;
        }
        draw_product(&rng, p, desc);
        elements(p);
        for (size_t j = 0; j < 3; j++) {
            /* the operand is a tile of a larger tensor: rows from 100, blocks from 5 */
            const dp_layout_map map = {kinds[j], 100 + MAX_COLUMNS, p->scales + 5 + 3};
            memset(stored_a, 0xFF, sizeof stored_a);
            memset(stored_b, 0xFF, sizeof stored_b);
            for (size_t s = 0; s < p->scales; s++) {
                for (size_t r = 0; r < p->m; r++) {
                    stored_a[dp_layout_offset(map, 100 + r, 5 + s)] = p->sfa[r * p->scales + s];
                }
                for (size_t r = 0; r < p->n; r++) {
                    stored_b[dp_layout_offset(map, 100 + r, 5 + s)] = p->sfb[r * p->scales + s];
                }
            }
            const dp_mma_source a = {p->packed_a, 0, stored_a, kinds[j], 100, 5, map.cols};
            const dp_mma_source b = {p->packed_b, 0, stored_b, kinds[j], 100, 5, map.cols};
            dp_error error = {{0}};
            ck_assert_msg(dp_gemm(desc, &p->switches, p->m, p->n, p->k, &a, &b,
                                  p->with_c ? p->c : NULL, d, NULL, &error),
                          "%s", error.text);
            compare(p, d, "layout", &tally);
        }
    }
    dp_assert_tally(tally, 10000);
}
END_TEST

/* An operand prepared once serves many products; preparing again reuses the memory; D may be C, and
 * strides leave the gaps alone. */
START_TEST(prepared_operands)
{
    product *p = &the_product;
    enum { STRIDE = MAX_COLUMNS + 7 };
    static float wide[MAX_ROWS * STRIDE];
    dp_rng rng = {.state = 0x70726570};
    dp_tally tally = {0};
    dp_mma_matrix a = {0};
    dp_mma_matrix b = {0};
    const dp_mma_desc *desc;
    for (size_t i = 0; (desc = next_desc(&i)) != NULL; i += 3) {
        draw_product(&rng, p, desc);
        p->with_c = true;
        elements(p);
        dp_error error = {{0}};
        const dp_mma_source source_a = {.payload = p->packed_a, .scale = p->sfa};
        const dp_mma_source source_b = {.payload = p->packed_b, .scale = p->sfb};
        ck_assert(
            dp_mma_prepare(&a, desc, &p->switches, DP_MMA_SIDE_A, p->m, p->k, &source_a, &error));
        ck_assert(
            dp_mma_prepare(&b, desc, &p->switches, DP_MMA_SIDE_B, p->n, p->k, &source_b, &error));
        for (int again = 0; again < 2; again++) {
            memset(wide, 0x33, sizeof wide);
            for (size_t m = 0; m < p->m; m++) {
                memcpy(wide + m * STRIDE, p->c + m * p->n, p->n * sizeof *wide);
            }
            ck_assert(dp_mma_multiply(&a, &b, wide, STRIDE, wide, STRIDE, NULL, &error));
            for (size_t m = 0; m < p->m; m++) {
                memcpy(d + m * p->n, wide + m * STRIDE, p->n * sizeof *wide);
                for (size_t n = p->n; n < STRIDE; n++) {
                    (void)dp_tally_check(&tally, dp_f32_bits(wide[m * STRIDE + n]) == 0x33333333u);
                }
            }
            compare(p, d, "prepared", &tally);
        }
    }
    dp_mma_matrix_free(&a);
    dp_mma_matrix_free(&b);
    dp_assert_tally(tally, 10000);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    const uint8_t bytes[64] = {0};
    float out[4];
    dp_error error = {{0}};
    ck_assert(!dp_gemm_plain("sm_80", "e4m3", "e4m3", NULL, 1, 1, 32, bytes, bytes, NULL, out, NULL,
                             &error));
    ck_assert_ptr_nonnull(strstr(error.text, "not in the table"));
    error.text[0] = '\0';
    ck_assert(!dp_gemm_nvfp4(NULL, 1, 1, 64, bytes, NULL, bytes, bytes, NULL, out, NULL, &error));
    error.text[0] = '\0';
    ck_assert(!dp_gemm_nvfp4(NULL, 1, 1, 0, bytes, bytes, bytes, bytes, NULL, out, NULL, &error));
    error.text[0] = '\0';
    ck_assert(!dp_gemm_named("tcgen05.mma.kind::mxf4nvf4.k96.block16.ue4m3", "e2m1", "e2m1",
                             "sm_103a", NULL, 1, 1, 96, &(dp_mma_source){.payload = bytes},
                             &(dp_mma_source){.payload = bytes}, NULL, out, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "nothing is known"));
    error.text[0] = '\0';
    const dp_mma_desc *half = dp_mma_find("wgmma", "e4m3", "e4m3", "f16", "sm_90a");
    ck_assert(!dp_gemm(half, NULL, 1, 1, 32, &(dp_mma_source){.payload = bytes},
                       &(dp_mma_source){.payload = bytes}, NULL, out, NULL, &error));
    dp_mma_matrix a = {0};
    ck_assert(!dp_mma_multiply(&a, &a, NULL, 0, out, 1, NULL, &error));
    const dp_mma_desc *desc = dp_mma_find("wgmma", "e4m3", "e4m3", "f32", "sm_90a");
    ck_assert(dp_mma_prepare(&a, desc, NULL, DP_MMA_SIDE_A, 1, 32,
                             &(dp_mma_source){.payload = bytes}, &error));
    error.text[0] = '\0';
    ck_assert(!dp_mma_multiply(&a, &a, NULL, 0, out, 1, NULL, &error));
    dp_mma_matrix_free(&a);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1) {
        rounds = strcmp(argv[1], "slow") == 0 ? 300 : (unsigned)strtoul(argv[1], NULL, 10);
    }
    Suite *suite = suite_create("gemm");
    TCase *tests = tcase_create("gemm");
    tcase_add_test(tests, every_path_equals_the_elements);
    tcase_add_test(tests, threads_and_environment_change_nothing);
    tcase_add_test(tests, scale_layouts_and_tiles);
    tcase_add_test(tests, prepared_operands);
    tcase_add_test(tests, wrong_calls_are_refused);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
