/* SPDX-License-Identifier: MIT
 *
 * The captured special functions: the tables in the library are the published captures, the range
 * reduction is the measured one, and a capture written to a file comes back.
 */
#include <math.h>
#include <stdlib.h>

#include "ref/arith/sfu.h"
#include "ref/arith/sfu_file.h"
#include "support.h"

#define TABLE(name) (dp_sfu_h200()->name)

/* How many entries have each delta, as published with the capture; CRC-32 by another program. */
static void check_table(const dp_sfu_table *table, uint32_t crc, const uint32_t counts[3])
{
    uint32_t seen[4] = {0, 0, 0, 0}; /* -1, 0, 1, others */
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        const int32_t delta = dp_sfu_delta(table, i);
        seen[delta >= -1 && delta <= 1 ? delta + 1 : 3]++;
    }
    for (int k = 0; k < 3; k++) {
        ck_assert_uint_eq(seen[k], counts[k]);
    }
    ck_assert_uint_eq(seen[3], 0);
    ck_assert_uint_eq(table->crc32, crc);
    ck_assert_uint_eq(dp_sfu_crc32(table), crc);
    ck_assert_str_eq(table->device, "NVIDIA H200");
}

START_TEST(tables_are_the_published_ones)
{
    const uint32_t ex2[3] = {3093, 5125875, 3259640};
    const uint32_t rcp[3] = {374723, 7280086, 733799};
    check_table(TABLE(ex2), 0x676486CDu, ex2);
    check_table(TABLE(rcp), 0xA9F2ECFCu, rcp);
    dp_tally tally = {0};
    for (uint32_t i = 1; i < DP_SFU_ENTRIES; i++) {
        dp_tally_check(&tally, dp_sfu_entry(TABLE(ex2), i) >= dp_sfu_entry(TABLE(ex2), i - 1));
    }
    dp_assert_tally(tally, 8388607);
    ck_assert_uint_eq(dp_sfu_entry(TABLE(ex2), 0), 0x40000000u);
    ck_assert_uint_lt(dp_sfu_entry(TABLE(ex2), DP_SFU_ENTRIES - 1), 0x40800000u);
}
END_TEST

/* The measured reduction, in doubles: drop what lies below 2^-23, complement the fraction of a
 * negative argument, look the octave up. */
static uint32_t plain_ex2(uint32_t x)
{
    const double value = (double)dp_f32_from_bits(x);
    double k = floor(fabs(value) * 0x1p23);
    if (value < 0) {
        k = fmod(k, 0x1p23) == 0 ? -k : -k - 1;
    }
    const double whole = floor(k * 0x1p-23);
    const double octave = k - whole * 0x1p23;
    if (whole < -126) {
        return 0;
    }
    if (whole > 127) {
        return 0x7F800000u;
    }
    const float result = dp_f32_from_bits(dp_sfu_entry(TABLE(ex2), (uint32_t)octave));
    return dp_f32_bits((float)ldexp((double)result, (int)whole - 1));
}

START_TEST(ex2_range_reduction)
{
    dp_rng rng = {0x5F000001u};
    dp_tally tally = {0};
    for (int n = 0; n < 2000000; n++) {
        uint32_t x = dp_rng_u32(&rng) & 0x81FFFFFFu;
        x = (x & 0x80FFFFFFu) + ((90u + dp_rng_below(&rng, 48)) << 23);
        if (n % 16 == 0) { /* integers and their neighbours */
            const float whole = (float)((int)dp_rng_below(&rng, 280) - 140);
            x = dp_f32_bits(whole) + dp_rng_below(&rng, 3) - 1u;
        }
        if ((x & DP_F32_INF) == 0 || dp_f32_bits_is_nan(x)) {
            x = 0x3F800000u;
        }
        const uint32_t got = dp_ex2_captured(TABLE(ex2), x);
        if (!dp_tally_check(&tally, got == plain_ex2(x))) {
            dp_tally_note(&tally, "%08x: %08x, want %08x", x, got, plain_ex2(x));
        }
    }
    dp_assert_tally(tally, 2000000);
}
END_TEST

/* PTX ISA 9.1 bounds: ex2 within 2 ulp, rcp within 1 ulp; integers distance is ulps in one binade.
 */
START_TEST(contracts)
{
    dp_tally tally = {0};
    for (uint64_t n = 0; n < UINT64_C(1) << 32; n += 509) {
        const uint32_t x = (uint32_t)n;
        if (dp_f32_bits_is_nan(x)) {
            continue;
        }
        const int64_t ex2 = (int64_t)dp_ex2_captured(TABLE(ex2), x) - (int64_t)dp_ex2_exact(x);
        const int64_t rcp = (int64_t)dp_rcp_captured(TABLE(rcp), x) - (int64_t)dp_rcp_exact(x);
        if (!dp_tally_check(&tally, ex2 >= -2 && ex2 <= 2 && rcp >= -1 && rcp <= 1)) {
            dp_tally_note(&tally, "%08x: ex2 off by %" PRId64 ", rcp by %" PRId64, x, ex2, rcp);
        }
    }
    dp_assert_tally(tally, 8000000);
}
END_TEST

/* The mantissa of 1/x does not depend on the exponent; below 2^-126 the result is a signed zero. */
START_TEST(rcp_exponents)
{
    dp_rng rng = {0x5F000002u};
    dp_tally tally = {0};
    for (int n = 0; n < 1000000; n++) {
        const uint32_t mantissa = dp_rng_u32(&rng) >> 9;
        const uint32_t field = 1 + dp_rng_below(&rng, 254);
        const uint32_t sign = dp_rng_u32(&rng) & DP_F32_SIGN;
        const uint32_t octave = dp_sfu_entry(TABLE(rcp), mantissa);
        const int64_t moved = (int64_t)octave - ((int64_t)field - 127) * 0x800000;
        const uint32_t want = moved < 0x800000 ? sign : sign | (uint32_t)moved;
        const uint32_t got = dp_rcp_captured(TABLE(rcp), sign | field << 23 | mantissa);
        if (!dp_tally_check(&tally, got == want)) {
            dp_tally_note(&tally, "field %u mantissa %06x: %08x, want %08x", field, mantissa, got,
                          want);
        }
    }
    dp_assert_tally(tally, 1000000);
}
END_TEST

START_TEST(special_values)
{
    const dp_sfu *h200 = dp_sfu_h200();
    static const uint32_t in[] = {0xFF800000u, 0x80000000u, 0,
                                  0x7F800000u, 0x7FC00001u, 0x807FFFFFu};
    static const uint32_t ex2[] = {0,           0x3F800000u, 0x3F800000u,
                                   0x7F800000u, 0x7FFFFFFFu, 0x3F800000u};
    static const uint32_t rcp[] = {0x80000000u, 0xFF800000u, 0x7F800000u,
                                   0,           0x7FFFFFFFu, 0xFF800000u};
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_eq(dp_sfu_ex2(h200, in[i]), ex2[i]);
        ck_assert_uint_eq(dp_sfu_rcp(h200, in[i]), rcp[i]);
    }
    ck_assert_ptr_eq(dp_sfu_by_name("h200"), h200);
    ck_assert_ptr_eq(dp_sfu_by_name("exact"), dp_sfu_exact());
    ck_assert_ptr_null(dp_sfu_by_name("b200"));
}
END_TEST

/* A made-up capture with deltas up to 7: four bits each. */
START_TEST(files_come_back)
{
    uint32_t *results = malloc(DP_SFU_ENTRIES * sizeof *results);
    ck_assert_ptr_nonnull(results);
    dp_rng rng = {0x5F000003u};
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        results[i] = dp_rcp_octave(i) + dp_rng_below(&rng, 15) - 7u;
    }
    dp_sfu_table made = {DP_SFU_RCP, "a test", "none", "none", 0, 0, NULL};
    dp_error error = {{0}};
    ck_assert_msg(dp_sfu_from_results(&made, results, &error), "%s", error.text);
    ck_assert_uint_eq(made.bits, 4);
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert(dp_sfu_write(&made, file, "temporary", &error));
    rewind(file);
    dp_sfu_table back;
    ck_assert_msg(dp_sfu_read(&back, file, "temporary", &error), "%s", error.text);
    dp_tally tally = {0};
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        dp_tally_check(&tally, dp_sfu_entry(&back, i) == results[i]);
    }
    dp_assert_tally(tally, DP_SFU_ENTRIES);
    ck_assert_str_eq(back.device, "a test");
    dp_sfu_release(&back);

    /* one flipped bit, a missing tail, another file */
    (void)fseek(file, 100000, SEEK_SET);
    const int byte = fgetc(file);
    (void)fseek(file, 100000, SEEK_SET);
    (void)fputc(byte ^ 1, file);
    rewind(file);
    ck_assert(!dp_sfu_read(&back, file, "F", &error));
    ck_assert_ptr_nonnull(strstr(error.text, "F: CRC-32"));
    error.text[0] = '\0';
    FILE *cut = tmpfile();
    ck_assert_ptr_nonnull(cut);
    rewind(file);
    for (int n = 0; n < 5000; n++) {
        (void)fputc(fgetc(file), cut);
    }
    rewind(cut);
    ck_assert(!dp_sfu_read(&back, cut, "F", &error));
    ck_assert_ptr_nonnull(strstr(error.text, "cut short"));
    error.text[0] = '\0';
    rewind(cut);
    (void)fputs("something else\n", cut);
    rewind(cut);
    ck_assert(!dp_sfu_read(&back, cut, "F", &error));
    ck_assert_ptr_nonnull(strstr(error.text, "not a capture"));
    ck_assert_ptr_null(back.words);
    (void)fclose(cut);
    (void)fclose(file);
    dp_sfu_release(&made);
    free(results);
}
END_TEST

int main(void)
{
    printf("seeds 0x5F000001 .. 0x5F000003\n");
    Suite *suite = suite_create("sfu captured");
    TCase *tcase = tcase_create("sfu captured");
    tcase_add_test(tcase, tables_are_the_published_ones);
    tcase_add_test(tcase, ex2_range_reduction);
    tcase_add_test(tcase, contracts);
    tcase_add_test(tcase, rcp_exponents);
    tcase_add_test(tcase, special_values);
    tcase_add_test(tcase, files_come_back);
    suite_add_tcase(suite, tcase);
    return dp_run_suite(suite);
}
