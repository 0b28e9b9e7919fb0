/* SPDX-License-Identifier: MIT
 *
 * ref/arith/byteops.h against bit loops and the tables of PTX ISA 9.1 (prmt).
 */
#include "formats/e2m1.h"
#include "ref/arith/byteops.h"
#include "support.h"

/* The table of PTX ISA 9.1, prmt: source byte of d.b3 d.b2 d.b1 d.b0 for c[1:0] = 0..3. */
static const uint16_t modes[7][4] = {{0, 0, 0, 0},
                                     {0x3210, 0x4321, 0x5432, 0x6543},
                                     {0x5670, 0x6701, 0x7012, 0x0123},
                                     {0x0000, 0x1111, 0x2222, 0x3333},
                                     {0x3210, 0x3211, 0x3222, 0x3333},
                                     {0x0000, 0x1110, 0x2210, 0x3210},
                                     {0x1010, 0x3232, 0x1010, 0x3232}};

static int source_bit(uint32_t a, uint32_t b, uint32_t index)
{
    return (int)(index < 32 ? a >> index & 1u : b >> (index - 32) & 1u);
}

static uint32_t naive_prmt(uint32_t a, uint32_t b, uint32_t c, dp_prmt_mode mode)
{
    const uint32_t selector = mode == DP_PRMT_INDEX ? c : modes[mode][c & 3u];
    uint32_t result = 0;
    for (uint32_t bit = 0; bit < 32; bit++) {
        const uint32_t nibble = selector >> (4 * (bit / 8)) & 0xFu;
        const uint32_t inside = (nibble & 8u) != 0 ? 7 : bit % 8;
        if (source_bit(a, b, 8 * (nibble & 7u) + inside) != 0) {
            result |= 1u << bit;
        }
    }
    return result;
}

START_TEST(prmt)
{
    dp_rng rng = {0xB0000001u};
    dp_tally tally = {0};
    for (uint32_t n = 0; n < 7 * 65536; n++) {
        const dp_prmt_mode mode = (dp_prmt_mode)(n / 65536);
        const uint32_t a = dp_rng_u32(&rng);
        const uint32_t b = dp_rng_u32(&rng);
        const uint32_t c = (n & 0xFFFFu) | (dp_rng_u32(&rng) & 0xFFFF0000u);
        const uint32_t want = naive_prmt(a, b, c, mode);
        if (!dp_tally_check(&tally, dp_prmt(a, b, c, mode) == want)) {
            dp_tally_note(&tally, "mode %d %08x %08x %08x: %08x, want %08x", (int)mode, a, b, c,
                          dp_prmt(a, b, c, mode), want);
        }
    }
    dp_assert_tally(tally, 7 * 65536);
    ck_assert_uint_eq(dp_prmt(0x33221100u, 0x77665544u, 0x7531u, DP_PRMT_INDEX), 0x77553311u);
    ck_assert_uint_eq(dp_prmt(0x33228100u, 0x77665544u, 0x0098u, DP_PRMT_INDEX), 0x0000FF00u);
}
END_TEST

START_TEST(dp4a)
{
    dp_rng rng = {0xB0000002u};
    dp_tally tally = {0};
    for (int n = 0; n < 1000000; n++) {
        uint32_t a = dp_rng_u32(&rng);
        uint32_t b = dp_rng_u32(&rng);
        if (n % 5 == 0) { /* the extreme products */
            a = 0x807F00FFu;
            b = n % 2 == 0 ? 0x80808080u : 0xFFFFFFFFu;
        }
        const uint32_t c = dp_rng_u32(&rng);
        for (int signs = 0; signs < 4; signs++) {
            int64_t sum = (int64_t)c;
            for (int j = 0; j < 4; j++) {
                int x = (int)(a >> (8 * j) & 0xFFu);
                int y = (int)(b >> (8 * j) & 0xFFu);
                x -= (signs & 1) != 0 && x > 127 ? 256 : 0;
                y -= (signs & 2) != 0 && y > 127 ? 256 : 0;
                sum += x * y;
            }
            const uint32_t got = dp_dp4a(a, b, c, (signs & 1) != 0, (signs & 2) != 0);
            if (!dp_tally_check(&tally, got == (uint32_t)((uint64_t)sum & 0xFFFFFFFFu))) {
                dp_tally_note(&tally, "signs %d %08x %08x %08x: %08x", signs, a, b, c, got);
            }
        }
    }
    dp_assert_tally(tally, 4000000);
}
END_TEST

/* The plain sum through the decoder of the format, in doubles, negative codes left out. */
static uint32_t decoded_sum(const uint8_t *packed, size_t codes)
{
    double sum = 0;
    for (size_t i = 0; i < codes; i++) {
        const dp_e2m1 code = {(uint8_t)((unsigned)packed[i / 2] >> (4 * (i % 2)) & 0xFu)};
        sum += code.bits < 8 ? 2.0 * (double)dp_e2m1_to_f32(code) : 0.0;
    }
    return (uint32_t)sum;
}

static bool sums_agree(const uint8_t packed[16])
{
    uint32_t word[4];
    for (int k = 0; k < 4; k++) {
        word[k] = (uint32_t)packed[4 * k] | (uint32_t)packed[4 * k + 1] << 8 |
                  (uint32_t)packed[4 * k + 2] << 16 | (uint32_t)packed[4 * k + 3] << 24;
    }
    const uint32_t sum = dp_represented_sum_x2(word);
    return sum == dp_represented_sum_x2_plain(packed, DP_SUM_CODES) &&
           sum == decoded_sum(packed, DP_SUM_CODES);
}

START_TEST(represented_sum)
{
    dp_rng rng = {0xB0000003u};
    dp_tally tally = {0};
    uint8_t packed[16];
    for (int n = 0; n < 300000; n++) {
        for (int i = 0; i < 16; i++) {
            packed[i] = (uint8_t)dp_rng_u32(&rng);
            if (n % 3 == 0) {
                packed[i] &= 0x77u;
            }
        }
        dp_tally_check(&tally, sums_agree(packed));
    }
    for (int position = 0; position < 16; position++) {
        for (int pattern = 0; pattern < 256; pattern++) {
            memset(packed, pattern % 2 == 0 ? 0x77 : 0x00, sizeof packed);
            packed[position] = (uint8_t)pattern;
            dp_tally_check(&tally, sums_agree(packed));
        }
    }
    memset(packed, 0x77, sizeof packed);
    dp_tally_check(&tally, sums_agree(packed) && dp_represented_sum_x2_plain(packed, 32) == 384);
    dp_assert_tally(tally, 304097);
}
END_TEST

/* Words of the public fast policy example (B200 kernel words W0..W3): twice the sum is 73. */
START_TEST(represented_sum_examples)
{
    const uint32_t a[4] = {0x03466000u, 0x56000000u, 0x00000024u, 0x00013567u};
    const uint32_t b[4] = {0x12457000u, 0x56000001u, 0x00001123u, 0x01123467u};
    ck_assert_uint_eq(dp_represented_sum_x2(a), 73);
    ck_assert_uint_eq(dp_represented_sum_x2(b), 78);
}
END_TEST

START_TEST(exponent_byte)
{
    ck_assert_uint_eq(dp_f32_bits(dp_exponent_byte_to_f32(0)), 0);
    ck_assert_uint_eq(dp_f32_bits(dp_exponent_byte_to_f32(1)), 0x00800000u);
    ck_assert_uint_eq(dp_f32_bits(dp_exponent_byte_to_f32(127)), 0x3F800000u);
    ck_assert_uint_eq(dp_f32_bits(dp_exponent_byte_to_f32(255)), 0x7F800000u);
}
END_TEST

int main(void)
{
    printf("seeds 0xB0000001 .. 0xB0000003\n");
    Suite *suite = suite_create("byteops");
    TCase *tcase = tcase_create("byteops");
    tcase_add_test(tcase, prmt);
    tcase_add_test(tcase, dp4a);
    tcase_add_test(tcase, represented_sum);
    tcase_add_test(tcase, represented_sum_examples);
    tcase_add_test(tcase, exponent_byte);
    suite_add_tcase(suite, tcase);
    return dp_run_suite(suite);
}
