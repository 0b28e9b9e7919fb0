/* SPDX-License-Identifier: MIT
 *
 * directp swizzle on files: numbered case 65.
 */
#include <check.h>

#include "analysis/h5.h"
#include "scratch.h"

enum { ROWS = 130, COLUMNS = 3, COUNT = 2 };

static int swizzle(const char *in, const char *options, const char *out, dp_run *run)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "swizzle '%s:/s' %s -o '%s'", scratch(in), options,
                   scratch(out));
    run_directp(run, line);
    return run->status;
}

static uint8_t *load(const char *name, dp_h5_shape *shape)
{
    dp_h5 file;
    dp_error error = {""};
    void *data;
    ck_assert_msg(dp_h5_open(&file, scratch(name), &error), "%s", error.text);
    ck_assert_msg(dp_h5_read(&file, "/s", DP_H5_U8, -1, shape, &data, &error), "%s", error.text);
    dp_h5_close(&file);
    return data;
}

static void store(const char *name, int rank, const uint64_t *dims, const uint8_t *data)
{
    dp_h5_writer w;
    dp_error error = {""};
    const dp_h5_labels labels = {.format = "ue4m3"};
    ck_assert(dp_h5_create(&w, scratch(name), "dump", NULL, 0, &error));
    ck_assert(dp_h5_put(&w, "/s", DP_H5_U8, rank, dims, data, &labels, &error));
    ck_assert(dp_h5_commit(&w, &error));
}

START_TEST(case_65_there_and_back)
{
    static uint8_t scales[COUNT * ROWS * COLUMNS];
    static dp_run run;
    const uint64_t dims[] = {COUNT, ROWS, COLUMNS};
    dp_h5_shape shape;
    for (size_t i = 0; i < sizeof scales; i++) {
        scales[i] = (uint8_t)(1 + i % 251);
    }
    store("linear.h5", 3, dims, scales);
    ck_assert_msg(swizzle("linear.h5", "", "stored.h5", &run) == 0, "%s", run.err);
    uint8_t *stored = load("stored.h5", &shape);
    ck_assert(shape.rank == 2 && shape.dims[0] == COUNT && shape.dims[1] == 256 * 4);
    for (size_t m = 0; m < COUNT; m++) {
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t c = 0; c < COLUMNS; c++) {
                const size_t at = m * 1024 + r / 128 * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c;
                ck_assert_uint_eq(stored[at], scales[(m * ROWS + r) * COLUMNS + c]);
            }
        }
    }
    ck_assert_int_eq(swizzle("stored.h5", "--inverse", "back.h5", &run), 0);
    uint8_t *back = load("back.h5", &shape);
    ck_assert(shape.rank == 3 && shape.count == sizeof scales);
    ck_assert(memcmp(back, scales, sizeof scales) == 0);
    free(back);
    /* The swapped form puts bytes where 128x4 has padding: it is noticed. */
    ck_assert_int_eq(swizzle("linear.h5", "--layout 128x4-swapped", "wrong.h5", &run), 0);
    ck_assert_int_eq(swizzle("wrong.h5", "--inverse", "back.h5", &run), 1);
    ck_assert(strstr(run.err, "padding bytes are not 0") != NULL);
    ck_assert_int_eq(swizzle("stored.h5", "--inverse --rows 300", "back.h5", &run), 2);
    ck_assert_msg(strstr(run.err, "1024 bytes a matrix") != NULL, "%s", run.err);
    free(stored);
    char line[600];
    (void)snprintf(line, sizeof line, "swizzle '%s:/s'", scratch("linear.h5"));
    assert_refused(line, "--output is missing");
    (void)snprintf(line, sizeof line, "swizzle '%s' -o x", scratch("linear.h5"));
    assert_refused(line, "names no dataset");
    (void)snprintf(line, sizeof line, "swizzle '%s:/s' --inverse -o x", scratch("linear.h5"));
    assert_refused(line, "attribute 'rows' is missing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("swizzle");
    TCase *cases = tcase_create("swizzle");
    tcase_add_test(cases, case_65_there_and_back);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
