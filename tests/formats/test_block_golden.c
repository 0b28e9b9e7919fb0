/* SPDX-License-Identifier: MIT
 *
 * Bytes that other projects' own code made (data/golden/README.md) against the preset that claims
 * to follow them.
 */
#include <stdlib.h>

#include "formats/preset.h"
#include "support.h"

enum { LONGEST = 64, LINE = 2048 };

static unsigned hex(const char *text, size_t digits)
{
    char copy[9] = {0};
    memcpy(copy, text, digits);
    return (unsigned)strtoul(copy, NULL, 16);
}

/* A recipe name and its three hex fields; cuts the line in place. */
static void split(char *line, char *fields[4])
{
    fields[0] = line;
    for (int i = 1; i < 4; i++) {
        fields[i] = strchr(fields[i - 1], ',');
        ck_assert_ptr_nonnull(fields[i]);
        *fields[i]++ = '\0';
    }
    fields[3][strcspn(fields[3], "\r\n")] = '\0';
}

static void check_line(dp_tally *tally, char *line)
{
    char *fields[4];
    split(line, fields);
    const size_t n = strlen(fields[1]) / 8;
    ck_assert_uint_le(n, LONGEST);
    ck_assert_uint_eq(strlen(fields[3]), 2 * n);
    float x[LONGEST];
    uint8_t codes[LONGEST];
    uint8_t scale[4] = {0};
    for (size_t i = 0; i < n; i++) {
        x[i] = dp_f32_from_bits(hex(fields[1] + 8 * i, 8));
    }
    dp_preset found;
    dp_error error = {{0}};
    ck_assert_msg(dp_preset_find(fields[0], &found, &error), "%s", error.text);
    dp_block_plan plan;
    const dp_global none = {DP_GLOBAL_NONE, 1.0f};
    size_t bad = 0;
    ck_assert(dp_block_plan_make(&found.recipe, none, &plan, NULL));
    ck_assert(dp_block_quantize_one(&plan, x, n, codes, scale, NULL, &bad));
    if (!dp_tally_check(tally, scale[0] == hex(fields[2], 2))) {
        dp_tally_note(tally, "%s scale %02x not %s of block %.80s...", fields[0], scale[0],
                      fields[2], fields[1]);
    }
    for (size_t i = 0; i < n; i++) {
        if (!dp_tally_check(tally, codes[i] == hex(fields[3] + 2 * i, 2))) {
            dp_tally_note(tally, "%s scale %02x element %zu %08" PRIx32 ": code %02x not %.2s",
                          fields[0], scale[0], i, dp_f32_bits(x[i]), codes[i], fields[3] + 2 * i);
        }
    }
}

static void check_file(const char *name, size_t least)
{
    char path[1024];
    char line[LINE];
    dp_tally tally = {0};
    FILE *file = fopen(dp_source_path(path, sizeof path, name), "r");
    ck_assert_msg(file != NULL, "%s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#') {
            check_line(&tally, line);
        }
    }
    (void)fclose(file);
    dp_assert_tally(tally, least);
}

START_TEST(ml_dtypes_bytes)
{
    check_file("data/golden/mldtypes.csv", 5000);
}
END_TEST

START_TEST(cuda_host_bytes)
{
    check_file("data/golden/cuda_host.csv", 5000);
}
END_TEST

START_TEST(ggml_bytes)
{
    check_file("data/golden/ggml.csv", 4000);
}
END_TEST

START_TEST(torchao_bytes)
{
    check_file("data/golden/torchao.csv", 15000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block_golden");
    TCase *tests = tcase_create("block_golden");
    tcase_add_test(tests, ml_dtypes_bytes);
    tcase_add_test(tests, cuda_host_bytes);
    tcase_add_test(tests, ggml_bytes);
    tcase_add_test(tests, torchao_bytes);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
