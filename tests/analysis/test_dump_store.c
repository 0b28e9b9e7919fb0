/* SPDX-License-Identifier: MIT
 *
 * Dumps stored in other ways: axes in another order, codes packed otherwise, wider numbers, windows
 * of rows and of keys, a part of the batch. Each must compare equal, and a wrong bit in it must be
 * found where it is; what contradicts itself is refused.
 */
#include <stdlib.h>

#include "dump_edit.h"

enum { HEADS = 2, SEQ = 256 };

/* A dataset turned: axis i of the new one is axis from[i] of the old one. */
static void turn(hid_t file, const char *path, hid_t type, const int from[4], const char *axes)
{
    hsize_t dims[4] = {1, 1, 1, 1}, out[4] = {1, 1, 1, 1}, step[4];
    int rank;
    const size_t size = H5Tget_size(type);
    char *data = take(file, path, type, dims, &rank);
    step[3] = 1;
    for (int i = 2; i >= 0; i--) {
        step[i] = step[i + 1] * dims[i + 1];
    }
    for (int i = 0; i < 4; i++) {
        out[i] = dims[from[i]];
    }
    const size_t count = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    char *turned = malloc(count * size);
    for (size_t i = 0; i < count; i++) {
        size_t rest = i, at = 0;
        for (int a = 3; a >= 0; a--) {
            at += rest % (size_t)out[a] * (size_t)step[from[a]];
            rest /= (size_t)out[a];
        }
        memcpy(turned + i * size, data + at * size, size);
    }
    replace(file, path, type, type, 4, out, turned, 0, NULL);
    label(file, path, "axes", axes);
    free(turned);
    free(data);
}

START_TEST(axes_in_any_order)
{
    static dp_run run;
    make("--policy accurate --epoch R");
    hid_t file = open_dump();
    turn(file, "/score/raw", H5T_NATIVE_FLOAT, (int[]){0, 1, 3, 2}, "batch,head,key,query");
    turn(file, "/output/o", H5T_NATIVE_UINT16, (int[]){0, 2, 1, 3}, "batch, query, head, dim");
    turn(file, "/code/p_payload", H5T_NATIVE_UINT8, (int[]){3, 2, 1, 0}, "key,query,head,batch");
    turn(file, "/quantize/v_payload", H5T_NATIVE_UINT8, (int[]){0, 3, 1, 2}, "batch,key,head,dim");
    /* a value a row, with an axis of one element at either place, without names */
    hsize_t dims[4];
    int rank;
    void *lse = take(file, "/output/lse", H5T_NATIVE_FLOAT, dims, &rank);
    const hsize_t between[4] = {1, HEADS, 1, SEQ}, behind[4] = {1, HEADS, SEQ, 1};
    replace(file, "/output/lse", H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, 4, between, lse, 0, NULL);
    void *sum = take(file, "/denominator/row_sum", H5T_NATIVE_FLOAT, dims, &rank);
    replace(file, "/denominator/row_sum", H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, 4, behind, sum, 0,
            NULL);
    close_dump(file);
    free(lse);
    free(sum);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    /* head 1, row 7, key 200 of the turned scores */
    file = open_dump();
    float *raw = take(file, "/score/raw", H5T_NATIVE_FLOAT, dims, &rank);
    raw[(SEQ + 200) * SEQ + 7] += 1.0f;
    replace(file, "/score/raw", H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, rank, dims, raw, 0, NULL);
    label(file, "/score/raw", "axes", "batch,head,key,query");
    close_dump(file);
    free(raw);
    ck_assert_int_eq(diff(&run, "--no-diagnosis"), 1);
    ck_assert_msg(strstr(run.out, "head 1, row 7, column 200") != NULL, "%s", run.out);
    char line[1024];
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    static const char *const bad[] = {"batch,head,key", "batch,head,key,key", "batch,head,key,foot",
                                      "batch,head,key,query,x", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        file = open_dump();
        label(file, "/score/raw", "axes", bad[i]);
        close_dump(file);
        assert_refused(line, "axes");
    }
}
END_TEST

static uint8_t *unpacked(const uint8_t *payload, size_t bytes)
{
    uint8_t *codes = malloc(2 * bytes);
    for (size_t i = 0; i < 2 * bytes; i++) {
        codes[i] = (uint8_t)(payload[i / 2] >> (i % 2 * 4) & 15);
    }
    return codes;
}

START_TEST(codes_packed_otherwise)
{
    static dp_run run;
    char line[1024];
    hsize_t dims[4];
    int rank;
    make("--policy fast --epoch R");
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    hid_t file = open_dump();
    uint8_t *p = take(file, "/code/p_payload", H5T_NATIVE_UINT8, dims, &rank);
    const size_t bytes = (size_t)(dims[1] * dims[2] * dims[3]);
    uint8_t *codes = unpacked(p, bytes);
    dims[3] *= 2;
    replace(file, "/code/p_payload", H5T_STD_I64BE, H5T_NATIVE_UINT8, rank, dims, codes, 0, NULL);
    close_dump(file);
    assert_refused(line, "packing"); /* a width twice as large is not guessed at */
    file = open_dump();
    label(file, "/code/p_payload", "packing", "byte");
    uint8_t *q = take(file, "/quantize/q_payload", H5T_NATIVE_UINT8, dims, &rank);
    for (size_t i = 0; i < (size_t)HEADS * SEQ * 64; i++) {
        q[i] = (uint8_t)(q[i] << 4 | q[i] >> 4);
    }
    replace(file, "/quantize/q_payload", H5T_STD_U8LE, H5T_NATIVE_UINT8, rank, dims, q, 0, NULL);
    close_dump(file);
    ck_assert_int_eq(diff(&run, ""), 1);
    ck_assert(strstr(run.out, "nibbles-swapped") != NULL);
    file = open_dump();
    label(file, "/quantize/q_payload", "packing", "high-first");
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    file = open_dump();
    label(file, "/quantize/q_payload", "packing", "sideways");
    close_dump(file);
    assert_refused(line, "packing");
    file = open_dump();
    label(file, "/quantize/q_payload", "packing", "high-first");
    codes[777] = 16; /* no code of four bits */
    dims[0] = 1;
    dims[3] = SEQ;
    replace(file, "/code/p_payload", H5T_STD_U8LE, H5T_NATIVE_UINT8, rank, dims, codes, 0, NULL);
    label(file, "/code/p_payload", "packing", "byte");
    close_dump(file);
    assert_refused(line, "777");
    free(p);
    free(q);
    free(codes);
}
END_TEST

/* Store a dataset of f32 in another type. */
static void store_as(hid_t file, const char *path, hid_t type, double factor)
{
    hsize_t dims[4];
    int rank;
    double *x = take(file, path, H5T_NATIVE_DOUBLE, dims, &rank);
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        count *= (size_t)dims[i];
    }
    for (size_t i = 0; i < count; i++) {
        x[i] *= factor;
    }
    replace(file, path, type, H5T_NATIVE_DOUBLE, rank, dims, x, 0, NULL);
    free(x);
}

START_TEST(wider_types)
{
    static dp_run run;
    char line[1024];
    hsize_t dims[4];
    int rank;
    make("--policy fast --epoch R");
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    hid_t file = open_dump();
    store_as(file, "/score/raw", H5T_IEEE_F64BE, 1.0);
    store_as(file, "/output/lse", H5T_IEEE_F64LE, 1.0);
    store_as(file, "/denominator/code_sum", H5T_IEEE_F32LE, 1.0);
    store_as(file, "/scale/p_scale", H5T_STD_I32BE, 1.0);
    float *m = take(file, "/reference/row_ref", H5T_NATIVE_FLOAT, dims, &rank);
    replace(file, "/reference/row_ref", H5T_STD_U32BE, H5T_NATIVE_UINT32, rank, dims, m, 0, NULL);
    close_dump(file);
    free(m);
    assert_refused(line, "/reference/row_ref"); /* integers are f32 bits only where it says so */
    file = open_dump();
    label(file, "/reference/row_ref", "format", "f32");
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    file = open_dump();
    store_as(file, "/denominator/code_sum", H5T_IEEE_F32LE, 0.5); /* not doubled: no whole number */
    close_dump(file);
    assert_refused(line, "twice the sum");
    file = open_dump();
    store_as(file, "/denominator/code_sum", H5T_IEEE_F32LE, 2.0);
    store_as(file, "/score/raw", H5T_IEEE_F64LE, 1.0 + 1e-12);
    close_dump(file);
    assert_refused(line, "f32 number");
    make("--policy fast --epoch R");
    static const struct {
        const char *path, *name, *text;
    } wrong[] = {{"/output/o", "format", "f16"},
                 {"/scale/p_scale", "format", "ue4m3"},
                 {"/code/p_payload", "format", "e4m3"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        make("--policy fast --epoch R");
        file = open_dump();
        label(file, wrong[i].path, wrong[i].name, wrong[i].text);
        close_dump(file);
        assert_refused(line, wrong[i].path);
    }
    make("--policy fast --epoch R");
    file = open_dump();
    label_list(file, "/scale/p_scale", "block", 1, (int64_t[]){16});
    close_dump(file);
    assert_refused(line, "blocks of 16");
}
END_TEST

/* Rows [first[i], first[i] + length) and columns [from, from + columns) of every head. */
static void cut(hid_t file, const char *path, hid_t type, const int64_t *first, hsize_t windows,
                size_t length, size_t from, size_t columns)
{
    hsize_t dims[4] = {1, 1, 1, 1};
    int rank;
    const size_t size = H5Tget_size(type);
    char *all = take(file, path, type, dims, &rank);
    const size_t rows = (size_t)dims[2];
    const size_t width = rank > 3 ? (size_t)dims[3] : 1;
    columns = columns > 0 ? columns : width;
    char *part = malloc((size_t)dims[1] * (size_t)windows * length * columns * size);
    char *to = part;
    for (size_t h = 0; h < (size_t)dims[1]; h++) {
        for (size_t r = 0; r < (size_t)windows * length; r++) {
            const size_t row = (size_t)first[r / length] + r % length;
            memcpy(to, all + ((h * rows + row) * width + from) * size, columns * size);
            to += columns * size;
        }
    }
    dims[2] = windows * length;
    dims[3] = columns;
    replace(file, path, type, type, rank, dims, part, 0, NULL);
    label_list(file, path, "row_first", windows, first);
    free(part);
    free(all);
}

START_TEST(windows_of_rows_and_keys)
{
    static dp_run run;
    char line[1024];
    hsize_t dims[4];
    int rank;
    static const int64_t three[3] = {10, 120, 226}, one[1] = {128};
    make("--policy fast --epoch R");
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    hid_t file = open_dump();
    cut(file, "/score/raw", H5T_NATIVE_FLOAT, three, 3, 30, 0, 0); /* across a tile, to the end */
    cut(file, "/scale/p_scale", H5T_NATIVE_UINT8, one, 1, 64, 2, 3);
    label_list(file, "/scale/p_scale", "key_first", 1, (int64_t[]){64});
    cut(file, "/code/p_payload", H5T_NATIVE_UINT8, one, 1, 64, 64, 16);
    label_list(file, "/code/p_payload", "key_first", 1, (int64_t[]){128});
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    char elements[32];
    (void)snprintf(elements, sizeof elements, "%d", HEADS * 90 * SEQ);
    ck_assert_msg(strstr(run.out, elements) != NULL, "%s", run.out);
    file = open_dump(); /* head 1, row 121 is row 31 of the file; columns 128 + 5 of row 130 */
    uint8_t *p = take(file, "/code/p_payload", H5T_NATIVE_UINT8, dims, &rank);
    p[(64 + 2) * 16 + 2] ^= 0x10u;
    replace(file, "/code/p_payload", H5T_STD_U8LE, H5T_NATIVE_UINT8, rank, dims, p, 0, NULL);
    label_list(file, "/code/p_payload", "row_first", 1, one);
    label_list(file, "/code/p_payload", "key_first", 1, (int64_t[]){128});
    close_dump(file);
    free(p);
    ck_assert_int_eq(diff(&run, "--no-diagnosis"), 1);
    ck_assert_msg(strstr(run.out, "head 1, row 130, column 133") != NULL, "%s", run.out);
    file = open_dump();
    float *raw = take(file, "/score/raw", H5T_NATIVE_FLOAT, dims, &rank);
    raw[(90 + 31) * SEQ + 3] += 1.0f;
    replace(file, "/score/raw", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, raw, 0, NULL);
    label_list(file, "/score/raw", "row_first", 3, three);
    close_dump(file);
    free(raw);
    ck_assert_int_eq(diff(&run, "--no-diagnosis"), 1);
    ck_assert_msg(strstr(run.out, "head 1, row 121, column 3") != NULL, "%s", run.out);
    static const struct {
        hsize_t count;
        int64_t first[3];
    } bad[] = {{3, {10, 20, 226}}, {3, {120, 10, 226}}, {3, {10, 120, 240}}, {3, {-1, 120, 226}},
               {2, {0, 250, 0}},   {1, {167, 0, 0}},    {1, {1 << 30, 0, 0}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        file = open_dump();
        label_list(file, "/score/raw", "row_first", bad[i].count, bad[i].first);
        close_dump(file);
        assert_refused(line, "row");
    }
    static const int64_t keys[] = {-32, 16, 256, 192};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        file = open_dump();
        label_list(file, "/score/raw", "row_first", 3, three);
        label_list(file, "/scale/p_scale", "key_first", 1, &keys[i]);
        close_dump(file);
        assert_refused(line, "/scale/p_scale");
    }
}
END_TEST

/* Datasets of different rows must say which. */
START_TEST(fewer_rows_need_a_name)
{
    char line[1024];
    static const int64_t first[1] = {0};
    make("--policy fast --epoch R");
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    const hid_t file = open_dump();
    cut(file, "/score/raw", H5T_NATIVE_FLOAT, first, 1, 128, 0, 0);
    const hid_t set = H5Dopen2(file, "/score/raw", H5P_DEFAULT);
    ck_assert(H5Adelete(set, "row_first") >= 0);
    (void)H5Dclose(set);
    close_dump(file);
    assert_refused(line, "row_first");
}
END_TEST

/* Entry 1 of a batch of two: the other entry's inputs are not looked at. */
START_TEST(part_of_a_batch)
{
    static dp_run run;
    char line[1024];
    static const char *const paths[] = {"/inputs/q", "/inputs/k", "/inputs/v"};
    make("--policy fast --epoch R");
    hid_t file = open_dump();
    for (size_t i = 0; i < 3; i++) {
        hsize_t dims[4];
        int rank;
        uint16_t *x = take(file, paths[i], H5T_NATIVE_UINT16, dims, &rank);
        const size_t n = (size_t)(dims[1] * dims[2] * dims[3]);
        uint16_t *two = calloc(2 * n, sizeof *two);
        memcpy(two + n, x, n * sizeof *two);
        dims[0] = 2;
        replace(file, paths[i], H5T_STD_U16LE, H5T_NATIVE_UINT16, rank, dims, two, 0, NULL);
        label(file, paths[i], "format", "bf16");
        free(two);
        free(x);
    }
    close_dump(file);
    (void)snprintf(line, sizeof line, "diff '%s'", dump);
    assert_refused(line, "batch");
    file = open_dump();
    label_list(file, "/", "batches", 1, (int64_t[]){1});
    close_dump(file);
    ck_assert_msg(diff(&run, "") == 0, "%s%s", run.out, run.err);
    file = open_dump();
    label_list(file, "/", "batches", 1, (int64_t[]){0});
    close_dump(file);
    ck_assert_int_eq(diff(&run, "--no-diagnosis"), 1);
    static const int64_t bad[][2] = {{2, 0}, {-1, 0}, {1, 1}};
    for (size_t i = 0; i < 3; i++) {
        file = open_dump();
        label_list(file, "/", "batches", i == 2 ? 2 : 1, bad[i]);
        close_dump(file);
        assert_refused(line, "batches");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dump storage");
    TCase *tests = tcase_create("storage");
    tcase_add_checked_fixture(tests, NULL, scratch_remove);
    tcase_add_test(tests, axes_in_any_order);
    tcase_add_test(tests, codes_packed_otherwise);
    tcase_add_test(tests, wider_types);
    tcase_add_test(tests, windows_of_rows_and_keys);
    tcase_add_test(tests, fewer_rows_need_a_name);
    tcase_add_test(tests, part_of_a_batch);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
