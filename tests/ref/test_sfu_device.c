/* SPDX-License-Identifier: MIT
 *
 * The special functions of a device: the H200's formula against what an H200 returned, the range
 * reduction, the published bounds, and captures as files.
 */
#include <math.h>
#include <stdlib.h>

#include "ref/arith/sfu.h"
#include "ref/arith/sfu_file.h"
#include "support.h"

static const dp_sfu_unit *const h200_unit = &dp_sfu_h200_unit;

/* CRC-32 as zlib's, over words least significant byte first. */
typedef struct {
    uint32_t step[256];
    uint32_t state;
} crc32_sum;

static void crc32_start(crc32_sum *crc)
{
    for (uint32_t n = 0; n < 256; n++) {
        crc->step[n] = n;
        for (int k = 0; k < 8; k++) {
            crc->step[n] = crc->step[n] >> 1 ^ ((crc->step[n] & 1u) != 0 ? 0xEDB88320u : 0u);
        }
    }
    crc->state = 0xFFFFFFFFu;
}

static void crc32_word(crc32_sum *crc, uint32_t word)
{
    for (int k = 0; k < 32; k += 8) {
        crc->state = crc->state >> 8 ^ crc->step[(crc->state ^ word >> k) & 0xFFu];
    }
}

static dp_sfu_table load(const char *name)
{
    char path[512];
    dp_sfu_table table;
    dp_error error = {{0}};
    FILE *file = fopen(dp_source_path(path, sizeof path, name), "rb");
    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_msg(dp_sfu_read(&table, file, path, &error), "%s", error.text);
    (void)fclose(file);
    return table;
}

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

/* The captures of data/ are the published ones, and the formula gives every entry of them. */
START_TEST(unit_equals_captures)
{
    const uint32_t ex2_counts[3] = {3093, 5125875, 3259640};
    const uint32_t rcp_counts[3] = {374723, 7280086, 733799};
    dp_sfu_table ex2 = load("data/ex2_h200.sfu");
    dp_sfu_table rcp = load("data/rcp_h200.sfu");
    check_table(&ex2, 0x676486CDu, ex2_counts);
    check_table(&rcp, 0xA9F2ECFCu, rcp_counts);
    dp_tally tally = {0};
    for (uint32_t i = 0; i < DP_SFU_ENTRIES; i++) {
        const uint32_t x = 0x3F800000u | i;
        const bool equal = dp_sfu_entry(&ex2, i) == dp_ex2_unit(h200_unit, x) &&
                           dp_sfu_entry(&rcp, i) == dp_rcp_unit(h200_unit, x);
        if (!dp_tally_check(&tally, equal)) {
            dp_tally_note(&tally, "%08x: ex2 %08x, captured %08x; rcp %08x, captured %08x", x,
                          dp_ex2_unit(h200_unit, x), dp_sfu_entry(&ex2, i),
                          dp_rcp_unit(h200_unit, x), dp_sfu_entry(&rcp, i));
        }
    }
    dp_assert_tally(tally, DP_SFU_ENTRIES);
    dp_sfu_release(&ex2);
    dp_sfu_release(&rcp);
}
END_TEST

/* lg2 of complete octaves: CRC-32 of the 2^23 results that an H200 returned (driver 580.159.04,
 * CUDA 13.0, 2026-11-29). The first three alone determine the formula's coefficients. */
START_TEST(lg2_octaves)
{
    static const struct {
        int exponent;
        uint32_t crc;
    } octave[] = {{0, 0x15F1D460u},  {-1, 0x1852A07Cu},  {-2, 0x7605ECD8u},   {-3, 0x2EB485FDu},
                  {-8, 0xE4DBA272u}, {-64, 0x777A2D37u}, {-126, 0xE50D3C27u}, {1, 0xF4D108DFu},
                  {2, 0xE534B1E1u},  {64, 0xA82D26ADu}};
    for (size_t k = 0; k < sizeof octave / sizeof octave[0]; k++) {
        crc32_sum crc;
        crc32_start(&crc);
        const uint32_t first = (uint32_t)(octave[k].exponent + 127) << 23;
        for (uint32_t i = 0; i < 1u << 23; i++) {
            crc32_word(&crc, dp_lg2_unit(h200_unit, first | i));
        }
        ck_assert_msg(~crc.state == octave[k].crc, "exponent %d: %08x", octave[k].exponent,
                      ~crc.state);
    }
    ck_assert_uint_eq(dp_lg2_unit(h200_unit, 0x3F000000u), 0xBF7FFFFEu);
    ck_assert_uint_eq(dp_lg2_unit(h200_unit, 0x3F800000u), 0);
    ck_assert_uint_eq(dp_lg2_unit(h200_unit, 0x3F7FFFFFu), 0xB24B4000u);
}
END_TEST

/* The square by its definition: every partial product t_i t_j of column i + j, the two equal ones
 * added into the next column, columns below the cut left out. */
START_TEST(truncated_square)
{
    dp_tally tally = {0};
    for (uint32_t t = 0; t < 1u << 17; t++) {
        for (unsigned cut = 17; cut <= 19; cut += 2) {
            uint64_t sum = 0;
            for (unsigned i = 0; i < 17; i++) {
                for (unsigned j = i; j < 17; j++) {
                    const unsigned column = i == j ? 2 * i : i + j + 1;
                    const bool product = (t >> i & 1u) != 0 && (t >> j & 1u) != 0;
                    sum += product && column >= cut ? UINT64_C(1) << (column - cut) : 0;
                }
            }
            dp_tally_check(&tally, dp_sfu_square(t, cut) == sum);
        }
    }
    dp_assert_tally(tally, 1u << 18);
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
    const float result =
        dp_f32_from_bits(0x40000000u + dp_sfu_unit_ex2(h200_unit, (uint32_t)octave));
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
        const uint32_t got = dp_ex2_unit(h200_unit, x);
        if (!dp_tally_check(&tally, got == plain_ex2(x))) {
            dp_tally_note(&tally, "%08x: %08x, want %08x", x, got, plain_ex2(x));
        }
    }
    dp_assert_tally(tally, 2000000);
}
END_TEST

/* PTX ISA 9.1 bounds: ex2 within 2 ulp, rcp within 1 ulp, lg2 within 2^-22 absolutely for x in
 * [1/2, 2] and relatively elsewhere. */
START_TEST(contracts)
{
    dp_tally tally = {0};
    double worst_inside = 0, worst_outside = 0;
    for (uint64_t n = 0; n < UINT64_C(1) << 32; n += 509) {
        const uint32_t x = (uint32_t)n;
        if (dp_f32_bits_is_nan(x)) {
            continue;
        }
        const int64_t ex2 = (int64_t)dp_ex2_unit(h200_unit, x) - (int64_t)dp_ex2_exact(x);
        const int64_t rcp = (int64_t)dp_rcp_unit(h200_unit, x) - (int64_t)dp_rcp_exact(x);
        double error = 0;
        if (x >= 0x00800000u && x < DP_F32_INF) {
            const double exact = log2((double)dp_f32_from_bits(x));
            error = fabs((double)dp_f32_from_bits(dp_lg2_unit(h200_unit, x)) - exact);
            if (x >= 0x3F000000u && x <= 0x40000000u) {
                worst_inside = error > worst_inside ? error : worst_inside;
            } else {
                error /= fabs(exact);
                worst_outside = error > worst_outside ? error : worst_outside;
            }
        }
        const bool good = ex2 >= -2 && ex2 <= 2 && rcp >= -1 && rcp <= 1 && error <= 0x1p-22;
        if (!dp_tally_check(&tally, good)) {
            dp_tally_note(&tally, "%08x: ex2 off by %" PRId64 ", rcp by %" PRId64 ", lg2 by %a", x,
                          ex2, rcp, error);
        }
    }
    printf("lg2: at most 2^%.2f for x in [1/2, 2], relatively 2^%.2f elsewhere\n",
           log2(worst_inside), log2(worst_outside));
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
        const uint32_t octave = 0x3F000000u + dp_sfu_unit_rcp(h200_unit, mantissa);
        const int64_t moved = (int64_t)octave - ((int64_t)field - 127) * 0x800000;
        const uint32_t want = moved < 0x800000 ? sign : sign | (uint32_t)moved;
        const uint32_t got = dp_rcp_unit(h200_unit, sign | field << 23 | mantissa);
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
    static const uint32_t lg2[] = {0x7FFFFFFFu, 0xFF800000u, 0xFF800000u,
                                   0x7F800000u, 0x7FFFFFFFu, 0xFF800000u};
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_eq(dp_sfu_ex2(h200, in[i]), ex2[i]);
        ck_assert_uint_eq(dp_sfu_rcp(h200, in[i]), rcp[i]);
        ck_assert_uint_eq(dp_sfu_lg2(h200, in[i]), lg2[i]);
    }
    ck_assert_uint_eq(dp_sfu_lg2(h200, 0x80800000u), 0x7FFFFFFFu);
    ck_assert_ptr_eq(dp_sfu_by_name("h200"), h200);
    ck_assert_ptr_eq(dp_sfu_by_name("exact"), dp_sfu_exact());
    ck_assert_ptr_null(dp_sfu_by_name("b200"));
}
END_TEST

/* A capture put into a dp_sfu is used, through the same range reduction, and what it lacks is
 * exact. */
START_TEST(captures_are_used)
{
    dp_sfu_table ex2 = load("data/ex2_h200.sfu");
    const dp_sfu mixed = {"mixed", NULL, &ex2, NULL};
    dp_rng rng = {0x5F000004u};
    dp_tally tally = {0};
    for (int n = 0; n < 500000; n++) {
        const uint32_t x = dp_f32_bits(dp_rng_nasty_f32(&rng));
        dp_tally_check(&tally, dp_sfu_ex2(&mixed, x) == dp_ex2_unit(h200_unit, x) &&
                                   dp_sfu_rcp(&mixed, x) == dp_rcp_exact(x) &&
                                   dp_sfu_lg2(&mixed, x) == dp_lg2_exact(x));
    }
    dp_assert_tally(tally, 500000);
    dp_sfu_release(&ex2);
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
    printf("seeds 0x5F000001 .. 0x5F000004\n");
    Suite *suite = suite_create("sfu device");
    TCase *tcase = tcase_create("sfu device");
    tcase_add_test(tcase, unit_equals_captures);
    tcase_add_test(tcase, lg2_octaves);
    tcase_add_test(tcase, truncated_square);
    tcase_add_test(tcase, ex2_range_reduction);
    tcase_add_test(tcase, contracts);
    tcase_add_test(tcase, rcp_exponents);
    tcase_add_test(tcase, special_values);
    tcase_add_test(tcase, captures_are_used);
    tcase_add_test(tcase, files_come_back);
    suite_add_tcase(suite, tcase);
    return dp_run_suite(suite);
}
