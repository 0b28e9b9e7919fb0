/* SPDX-License-Identifier: MIT
 *
 * The HDF5 layer against files written through the HDF5 library directly: types, byte orders,
 * ranks, sizes, attributes. Numbered cases: 57, 108, 111.
 */
#include <check.h>

#include "analysis/h5.h"
#include "scratch.h"

/* ---- Writing test files without the layer under test ---- */

static hid_t raw_file;

static void raw_begin(const char *path)
{
    raw_file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(raw_file >= 0);
}

static void raw_end(void)
{
    ck_assert(H5Fclose(raw_file) >= 0);
}

static void raw_dataset(const char *name, hid_t type, int rank, const hsize_t *dims, hid_t plan,
                        const void *data)
{
    const hsize_t grows[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    const bool chunks = plan != H5P_DEFAULT && H5Pget_layout(plan) == H5D_CHUNKED;
    const hid_t space = H5Screate_simple(rank, dims, chunks ? grows : NULL);
    const hid_t set = H5Dcreate2(raw_file, name, type, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    ck_assert(set >= 0);
    if (data != NULL) {
        ck_assert(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    }
    (void)H5Dclose(set);
    (void)H5Sclose(space);
}

static void raw_attribute(const char *object, const char *name, hid_t type, hid_t space,
                          const void *data)
{
    const hid_t id = H5Acreate_by_name(raw_file, object, name, type, space, H5P_DEFAULT,
                                       H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(id >= 0);
    if (data != NULL) {
        ck_assert(H5Awrite(id, type, data) >= 0);
    }
    (void)H5Aclose(id);
}

static hid_t small_float(size_t exponent_bits, size_t mantissa_bits, size_t bias)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    const size_t width = 1 + exponent_bits + mantissa_bits;
    ck_assert(H5Tset_fields(type, width - 1, mantissa_bits, exponent_bits, 0, mantissa_bits) >= 0);
    ck_assert(H5Tset_precision(type, width) >= 0);
    ck_assert(H5Tset_size(type, (width + 7) / 8) >= 0);
    ck_assert(H5Tset_ebias(type, bias) >= 0);
    return type;
}

static void assert_read_fails(const dp_h5 *file, const char *path, dp_h5_type type, int rank,
                              const char *text)
{
    dp_error error = {""};
    dp_h5_shape shape;
    void *data;
    ck_assert_msg(!dp_h5_read(file, path, type, rank, &shape, &data, &error), "%s was read", path);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s: %s (wanted '%s')", path, error.text, text);
    ck_assert_msg(strstr(error.text, path) != NULL, "%s not named: %s", path, error.text);
    ck_assert_ptr_null(data);
}

/* ---- Tests ---- */

/* HDF5's own small-float types misread codes: they are refused, with both type names. */
START_TEST(case_108_small_float_types_are_refused)
{
    const uint8_t bytes[] = {0x78, 0x7E, 0x06, 0x07};
    const hsize_t dims[] = {4};
    raw_begin(scratch("floats.h5"));
    const hid_t e4m3 = small_float(4, 3, 7);
    const hid_t e2m1 = small_float(2, 1, 1);
    const hid_t bf16 = small_float(8, 7, 127);
    raw_dataset("e4m3", e4m3, 1, dims, H5P_DEFAULT, bytes);
    raw_dataset("e2m1", e2m1, 1, dims, H5P_DEFAULT, bytes);
    raw_dataset("bf16", bf16, 1, (const hsize_t[]){2}, H5P_DEFAULT, bytes);
    raw_dataset("plain", H5T_STD_U8LE, 1, dims, H5P_DEFAULT, bytes);
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    ck_assert_msg(dp_h5_open(&file, scratch("floats.h5"), &error), "%s", error.text);
    assert_read_fails(&file, "/e4m3", DP_H5_U8, 1, "8-bit float (4 exponent bits, 3 mantissa bits");
    assert_read_fails(&file, "/e4m3", DP_H5_U8, 1, "unsigned 8-bit integer");
    assert_read_fails(&file, "/e4m3", DP_H5_F32, 1, "32-bit IEEE float");
    assert_read_fails(&file, "/e2m1", DP_H5_U8, 1, "2 exponent bits, 1 mantissa bits");
    assert_read_fails(&file, "/bf16", DP_H5_U16, 1, "8 exponent bits, 7 mantissa bits");
    assert_read_fails(&file, "/bf16", DP_H5_F16, 1, "8 exponent bits, 7 mantissa bits");
    dp_h5_shape shape;
    void *data;
    ck_assert(dp_h5_read(&file, "/plain", DP_H5_U8, 1, &shape, &data, &error));
    ck_assert(shape.count == 4 && memcmp(data, bytes, 4) == 0);
    free(data);
    dp_h5_close(&file);
    (void)H5Tclose(e4m3);
    (void)H5Tclose(e2m1);
    (void)H5Tclose(bf16);
}
END_TEST

/* Bytes come back as they are, whatever the sign or byte order of the file's integer type. */
START_TEST(case_111_bytes_are_preserved)
{
    const uint8_t bytes[] = {0x7E, 0x38, 0xFF, 0x80};
    const hsize_t four[] = {4};
    const hsize_t two[] = {2};
    const hsize_t one[] = {1};
    raw_begin(scratch("ints.h5"));
    raw_dataset("u8", H5T_STD_U8LE, 1, four, H5P_DEFAULT, bytes);
    raw_dataset("i8", H5T_STD_I8LE, 1, four, H5P_DEFAULT, bytes);
    raw_dataset("u16be", H5T_STD_U16BE, 1, two, H5P_DEFAULT, bytes);
    raw_dataset("i16le", H5T_STD_I16LE, 1, two, H5P_DEFAULT, bytes);
    raw_dataset("u32be", H5T_STD_U32BE, 1, one, H5P_DEFAULT, bytes);
    raw_dataset("f32be", H5T_IEEE_F32BE, 1, one, H5P_DEFAULT, bytes);
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    dp_h5_shape shape;
    void *data;
    ck_assert(dp_h5_open(&file, scratch("ints.h5"), &error));
    const char *const paths[] = {"/u8", "/i8"};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(dp_h5_read(&file, paths[i], DP_H5_U8, 1, &shape, &data, &error), "%s",
                      error.text);
        ck_assert(memcmp(data, bytes, 4) == 0);
        free(data);
    }
    ck_assert(dp_h5_read(&file, "/u16be", DP_H5_U16, 1, &shape, &data, &error));
    ck_assert_uint_eq(((uint16_t *)data)[0], 0x7E38);
    ck_assert_uint_eq(((uint16_t *)data)[1], 0xFF80);
    free(data);
    ck_assert(dp_h5_read(&file, "/i16le", DP_H5_U16, 1, &shape, &data, &error));
    ck_assert_uint_eq(((uint16_t *)data)[0], 0x387E);
    ck_assert_uint_eq(((uint16_t *)data)[1], 0x80FF);
    free(data);
    ck_assert(dp_h5_read(&file, "/u32be", DP_H5_U32, 1, &shape, &data, &error));
    ck_assert_uint_eq(((uint32_t *)data)[0], 0x7E38FF80u);
    free(data);
    ck_assert(dp_h5_read(&file, "/f32be", DP_H5_F32, 1, &shape, &data, &error));
    ck_assert_uint_eq(dp_f32_bits(((float *)data)[0]), 0x7E38FF80u);
    free(data);
    assert_read_fails(&file, "/u8", DP_H5_U16, 1, "unsigned 8-bit integer");
    assert_read_fails(&file, "/u8", DP_H5_F32, 1, "32-bit IEEE float is needed");
    assert_read_fails(&file, "/f32be", DP_H5_U32, 1, "32-bit IEEE float and");
    assert_read_fails(&file, "/i16le", DP_H5_F16, 1, "signed 16-bit integer");
    dp_h5_close(&file);
}
END_TEST

/* A global scale that is not a scale is named by path and index; zeros are counted, not inverted.
 */
START_TEST(case_57_scales_are_checked)
{
    const float good[] = {2.0f, 0.0f, 4.0f};
    const uint32_t bad_bits[] = {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xBF800000u, 0x80000001u};
    const hsize_t dims[] = {3};
    raw_begin(scratch("scales.h5"));
    raw_dataset("good", H5T_IEEE_F32LE, 1, dims, H5P_DEFAULT, good);
    for (size_t i = 0; i < 5; i++) {
        float bad[] = {1.0f, 1.0f, dp_f32_from_bits(bad_bits[i])};
        char name[16];
        (void)snprintf(name, sizeof name, "bad%zu", i);
        raw_dataset(name, H5T_IEEE_F32LE, 1, dims, H5P_DEFAULT, bad);
    }
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    dp_h5_shape shape;
    float *scales;
    size_t zeros = 99;
    ck_assert(dp_h5_open(&file, scratch("scales.h5"), &error));
    ck_assert(dp_h5_read_scales(&file, "/good", 1, &shape, &scales, &zeros, &error));
    ck_assert_uint_eq(zeros, 1);
    free(scales);
    for (size_t i = 0; i < 5; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "/bad%zu", i);
        error.text[0] = '\0';
        ck_assert(!dp_h5_read_scales(&file, name, 1, &shape, &scales, &zeros, &error));
        ck_assert_msg(strstr(error.text, "scale 2 is") != NULL, "%s", error.text);
        ck_assert_msg(strstr(error.text, name) != NULL, "%s", error.text);
    }
    dp_h5_close(&file);
}
END_TEST

static hid_t chunked(hsize_t rows, hsize_t columns, bool gzip)
{
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_chunk(plan, 2, (const hsize_t[]){rows, columns}) >= 0);
    if (gzip) {
        ck_assert(H5Pset_shuffle(plan) >= 0 && H5Pset_deflate(plan, 6) >= 0);
        ck_assert(H5Pset_fletcher32(plan) >= 0);
    }
    return plan;
}

/* Chunks, filters and compact storage read the same as plain storage. */
START_TEST(storage_layouts)
{
    enum { ROWS = 37, COLUMNS = 53 };
    static uint16_t values[ROWS][COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        values[i / COLUMNS][i % COLUMNS] = (uint16_t)(i * 40503);
    }
    const hsize_t dims[] = {ROWS, COLUMNS};
    const hid_t compact = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_layout(compact, H5D_COMPACT) >= 0);
    raw_begin(scratch("layouts.h5"));
    raw_dataset("plain", H5T_STD_U16LE, 2, dims, H5P_DEFAULT, values);
    raw_dataset("chunks", H5T_STD_U16LE, 2, dims, chunked(10, 10, false), values);
    raw_dataset("gzip", H5T_STD_U16LE, 2, dims, chunked(16, 64, true), values);
    raw_dataset("compact", H5T_STD_U16LE, 2, dims, compact, values);
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    ck_assert(dp_h5_open(&file, scratch("layouts.h5"), &error));
    const char *const paths[] = {"/plain", "/chunks", "/gzip", "/compact"};
    for (int i = 0; i < 4; i++) {
        dp_h5_shape shape;
        void *data;
        ck_assert_msg(dp_h5_read(&file, paths[i], DP_H5_U16, 2, &shape, &data, &error), "%s",
                      error.text);
        ck_assert(shape.dims[0] == ROWS && shape.dims[1] == COLUMNS);
        ck_assert(memcmp(data, values, sizeof values) == 0);
        free(data);
    }
    assert_read_fails(&file, "/plain", DP_H5_U16, 4, "[37, 53] has 2 dimensions and 4 are needed");
    assert_read_fails(&file, "/none", DP_H5_U16, 2, "there is no /none");
    assert_read_fails(&file, "/plain/deeper", DP_H5_U16, 2, "/plain");
    file.limit = 100;
    assert_read_fails(&file, "/gzip", DP_H5_U16, 2, "more than the limit of 100");
    dp_h5_close(&file);
}
END_TEST

/* An extent costs nothing to write: data that were never written must not be allocated. */
START_TEST(huge_extents_without_data)
{
    const hsize_t huge[] = {(hsize_t)1 << 20, (hsize_t)1 << 11};
    const hsize_t absurd[] = {(hsize_t)1 << 40, (hsize_t)1 << 40};
    raw_begin(scratch("huge.h5"));
    raw_dataset("late", H5T_STD_U8LE, 2, huge, H5P_DEFAULT, NULL);
    raw_dataset("chunks", H5T_STD_U8LE, 2, huge, chunked(1024, 1024, true), NULL);
    raw_dataset("absurd", H5T_STD_U8LE, 2, absurd, chunked(1024, 1024, false), NULL);
    raw_dataset("thick", H5T_STD_U8LE, 2, (const hsize_t[]){4, 4}, chunked(65535, 65536, false),
                NULL);
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    ck_assert(dp_h5_open(&file, scratch("huge.h5"), &error));
    assert_read_fails(&file, "/late", DP_H5_U8, 2, "that are not in the file");
    assert_read_fails(&file, "/chunks", DP_H5_U8, 2, "2048 of its 2048 chunks were never written");
    assert_read_fails(&file, "/absurd", DP_H5_U8, 2, "too large");
    file.limit = (uint64_t)1 << 31;
    assert_read_fails(&file, "/thick", DP_H5_U8, 2, "chunk shape is impossible");
    dp_h5_close(&file);
}
END_TEST

/* Data in other files stay there. */
START_TEST(links_out_of_the_file_are_refused)
{
    const uint8_t byte[] = {1};
    raw_begin(scratch("target.h5"));
    raw_dataset("q", H5T_STD_U8LE, 1, (const hsize_t[]){1}, H5P_DEFAULT, byte);
    raw_end();
    raw_begin(scratch("links.h5"));
    ck_assert(H5Lcreate_external(scratch("target.h5"), "/q", raw_file, "out", H5P_DEFAULT,
                                 H5P_DEFAULT) >= 0);
    ck_assert(H5Lcreate_soft("/loop", raw_file, "loop", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_external(plan, "/etc/hostname", 0, 1) >= 0);
    raw_dataset("external", H5T_STD_U8LE, 1, (const hsize_t[]){1}, plan, NULL);
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    ck_assert(dp_h5_open(&file, scratch("links.h5"), &error));
    assert_read_fails(&file, "/out", DP_H5_U8, 1, "link to another file");
    assert_read_fails(&file, "/loop", DP_H5_U8, 1, "cannot be");
    assert_read_fails(&file, "/external", DP_H5_U8, 1, "in another file");
    dp_h5_close(&file);
}
END_TEST

/* Attributes of every reasonable shape of text and number. */
START_TEST(attributes)
{
    const hid_t scalar = H5Screate(H5S_SCALAR);
    const hid_t single = H5Screate_simple(1, (const hsize_t[]){1}, NULL);
    const hid_t pair = H5Screate_simple(1, (const hsize_t[]){2}, NULL);
    const hid_t nothing = H5Screate(H5S_NULL);
    const hid_t fixed = H5Tcopy(H5T_C_S1);
    ck_assert(H5Tset_size(fixed, 8) >= 0);
    const hid_t spaces = H5Tcopy(fixed);
    ck_assert(H5Tset_strpad(spaces, H5T_STR_SPACEPAD) >= 0);
    const hid_t variable = H5Tcopy(H5T_C_S1);
    ck_assert(H5Tset_size(variable, H5T_VARIABLE) >= 0);
    ck_assert(H5Tset_cset(variable, H5T_CSET_UTF8) >= 0);
    const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
    ck_assert(H5Tenum_insert(boolean, "FALSE", (const int8_t[]){0}) >= 0);
    ck_assert(H5Tenum_insert(boolean, "TRUE", (const int8_t[]){1}) >= 0);
    const char *text = "caf\xC3\xA9";
    const char *null_text = NULL;
    raw_begin(scratch("attributes.h5"));
    raw_attribute("/", "fixed", fixed, scalar, "bf16\0\0\0\0");
    raw_attribute("/", "full", fixed, scalar, "12345678");
    raw_attribute("/", "spaces", spaces, single, "bf16    ");
    raw_attribute("/", "variable", variable, scalar, &text);
    raw_attribute("/", "null", variable, scalar, &null_text);
    raw_attribute("/", "i8", H5T_STD_I8BE, scalar, (const int8_t[]){-3});
    raw_attribute("/", "u16be", H5T_STD_U16BE, single, (const uint8_t[]){0x01, 0x02});
    raw_attribute("/", "u64", H5T_STD_U64LE, scalar, (const uint64_t[]){UINT64_MAX});
    raw_attribute("/", "bool", boolean, scalar, (const int8_t[]){1});
    raw_attribute("/", "f64be", H5T_IEEE_F64BE, scalar,
                  (const uint8_t[]){0x3F, 0xD0, 0, 0, 0, 0, 0, 0});
    raw_attribute("/", "f32", H5T_NATIVE_FLOAT, single, (const float[]){0.125f});
    raw_attribute("/", "pair", H5T_STD_I32LE, pair, (const int32_t[]){7, -8});
    raw_attribute("/", "nothing", H5T_STD_I32LE, nothing, NULL);
    raw_end();
    dp_h5 file;
    dp_error error = {""};
    ck_assert(dp_h5_open(&file, scratch("attributes.h5"), &error));
    const struct {
        const char *name, *expected;
    } texts[] = {{"fixed", "bf16"},
                 {"full", "12345678"},
                 {"spaces", "bf16"},
                 {"variable", "caf\xC3\xA9"},
                 {"null", ""}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *got;
        ck_assert_msg(dp_h5_text(&file, "/", texts[i].name, &got, &error), "%s", error.text);
        ck_assert_str_eq(got, texts[i].expected);
        free(got);
    }
    const struct {
        const char *name;
        int64_t expected;
    } integers[] = {{"i8", -3}, {"u16be", 0x0102}, {"bool", 1}};
    for (size_t i = 0; i < 3; i++) {
        int64_t got = 99;
        ck_assert_msg(dp_h5_i64(&file, "/", integers[i].name, &got, &error), "%s", error.text);
        ck_assert_int_eq(got, integers[i].expected);
    }
    double real = 0;
    ck_assert(dp_h5_f64(&file, "/", "f64be", &real, &error) && real == 0.25);
    ck_assert(dp_h5_f64(&file, "/", "f32", &real, &error) && real == 0.125);
    ck_assert(dp_h5_f64(&file, "/", "i8", &real, &error) && real == -3.0);
    int64_t *list;
    size_t count;
    ck_assert(dp_h5_i64_list(&file, "/", "pair", &list, &count, &error));
    ck_assert(count == 2 && list[0] == 7 && list[1] == -8);
    free(list);
    char *got;
    int64_t integer;
    ck_assert(!dp_h5_i64(&file, "/", "pair", &integer, &error));
    ck_assert(strstr(error.text, "is a list") != NULL);
    const char *const wrong[] = {"fixed", "f32", "u64", "nothing", "absent"};
    const char *const said[] = {"write a number", "not an integer", "beyond 2^63", "empty",
                                "is missing"};
    for (size_t i = 0; i < 5; i++) {
        error.text[0] = '\0';
        ck_assert(!dp_h5_i64(&file, "/", wrong[i], &integer, &error));
        ck_assert_msg(strstr(error.text, said[i]) != NULL, "%s: %s", wrong[i], error.text);
    }
    error.text[0] = '\0';
    ck_assert(!dp_h5_text(&file, "/", "i8", &got, &error));
    ck_assert(strstr(error.text, "not one text") != NULL);
    dp_h5_close(&file);
}
END_TEST

/* What is no HDF5 file is refused with the reason. */
START_TEST(files_that_are_none)
{
    dp_h5 file;
    dp_error error = {""};
    ck_assert(!dp_h5_open(&file, scratch("absent.h5"), &error));
    ck_assert(strstr(error.text, "No such file") != NULL);
    dp_h5_close(&file);
    error.text[0] = '\0';
    ck_assert(!dp_h5_open(&file, "/", &error));
    ck_assert(strstr(error.text, "a directory") != NULL);
    error.text[0] = '\0';
    ck_assert(!dp_h5_open(&file, "/dev/zero", &error));
    ck_assert(strstr(error.text, "not a regular file") != NULL);
    const char *const contents[] = {"", "not an HDF5 file at all", "\x89HDF\r\n\x1A\n"};
    for (int i = 0; i < 3; i++) {
        FILE *out = fopen(scratch("junk.h5"), "wb");
        (void)fwrite(contents[i], 1, strlen(contents[i]), out);
        (void)fclose(out);
        error.text[0] = '\0';
        ck_assert(!dp_h5_open(&file, scratch("junk.h5"), &error));
        ck_assert_msg(strstr(error.text, "HDF5 cannot open it (") != NULL, "%s", error.text);
    }
}
END_TEST

/* What the layer writes it reads back, and a reader without it finds the agreed types. */
START_TEST(written_files_read_back)
{
    enum { COUNT = 3 * 1000 };
    static uint8_t bytes[COUNT];
    static uint16_t words[COUNT];
    for (int i = 0; i < COUNT; i++) {
        bytes[i] = (uint8_t)(i * 7);
        words[i] = (uint16_t)(i * 40503);
    }
    const uint64_t dims[] = {3, 1000};
    dp_error error = {""};
    for (int deflate = 0; deflate <= 6; deflate += 6) {
        dp_h5_writer writer;
        const dp_h5_labels labels = {
            .format = "e2m1", .axes = "row,dim", .layout = "linear", .block = 16};
        ck_assert(dp_h5_create(&writer, scratch("out.h5"), "dump", NULL, 0, &error));
        writer.deflate = deflate;
        ck_assert(
            dp_h5_put(&writer, "/quantize/q_payload", DP_H5_U8, 2, dims, bytes, &labels, &error));
        ck_assert(dp_h5_put(&writer, "/a/b/half", DP_H5_F16, 2, dims, words, NULL, &error));
        ck_assert(dp_h5_commit(&writer, &error));
        dp_h5_abandon(&writer);
        dp_h5 file;
        dp_h5_shape shape;
        dp_h5_type type;
        void *data;
        ck_assert(dp_h5_open(&file, scratch("out.h5"), &error));
        ck_assert_msg(dp_h5_check_root(&file, "tensors|dump", NULL, &error), "%s", error.text);
        ck_assert(dp_h5_check_format(&file, "/quantize/q_payload", "e2m1", &error));
        ck_assert(dp_h5_read(&file, "/quantize/q_payload", DP_H5_U8, 2, &shape, &data, &error));
        ck_assert(memcmp(data, bytes, COUNT) == 0);
        free(data);
        ck_assert(dp_h5_describe(&file, "/a/b/half", &type, &shape, &error));
        ck_assert_int_eq(type, DP_H5_F16);
        ck_assert(dp_h5_read(&file, "/a/b/half", DP_H5_F16, 2, &shape, &data, &error));
        ck_assert(memcmp(data, words, sizeof words) == 0);
        free(data);
        int64_t block = 0;
        ck_assert(dp_h5_i64(&file, "/quantize/q_payload", "block", &block, &error) && block == 16);
        ck_assert(!dp_h5_check_format(&file, "/quantize/q_payload", "e4m3|e5m2", &error));
        ck_assert(strstr(error.text, "format is 'e2m1' and e4m3|e5m2 is needed") != NULL);
        error.text[0] = '\0';
        ck_assert(!dp_h5_check_root(&file, "capture", NULL, &error));
        ck_assert(strstr(error.text, "kind is 'dump'") != NULL);
        error.text[0] = '\0';
        dp_h5_close(&file);
    }
    ck_assert_int_eq(scratch_count(".tmp"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("h5");
    TCase *cases = tcase_create("h5");
    tcase_add_test(cases, case_108_small_float_types_are_refused);
    tcase_add_test(cases, case_111_bytes_are_preserved);
    tcase_add_test(cases, case_57_scales_are_checked);
    tcase_add_test(cases, storage_layouts);
    tcase_add_test(cases, huge_extents_without_data);
    tcase_add_test(cases, links_out_of_the_file_are_refused);
    tcase_add_test(cases, attributes);
    tcase_add_test(cases, files_that_are_none);
    tcase_add_test(cases, written_files_read_back);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
