/* SPDX-License-Identifier: MIT
 *
 * data/mma_vectors.h5 (vectors of MMA-Sim 2.1.1, an independent software model) replayed: each case
 * through the element interface, and as 1x1 products of the whole-matrix form.
 */
#include <hdf5.h>
#include <stdlib.h>

#include "ref/arith/mma.h"
#include "support.h"

typedef struct {
    uint16_t *a, *b;
    uint8_t *sfa, *sfb;
    uint32_t *c, *d;
    size_t cases, k, scales;
    char instruction[64], atype[16], btype[16], dtype[16], arch[16];
} vectors;

static void read_text(hid_t group, const char *name, char *text, size_t size)
{
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    ck_assert_msg(attribute >= 0, "attribute %s missing", name);
    const hid_t type = H5Aget_type(attribute);
    if (H5Tis_variable_str(type) > 0) {
        char *value = NULL;
        ck_assert_int_ge(H5Aread(attribute, type, (void *)&value), 0);
        (void)snprintf(text, size, "%s", value);
        (void)H5free_memory(value);
    } else {
        const size_t length = H5Tget_size(type);
        ck_assert_uint_lt(length, size);
        memset(text, 0, size);
        ck_assert_int_ge(H5Aread(attribute, type, text), 0);
    }
    (void)H5Tclose(type);
    (void)H5Aclose(attribute);
}

/* Read a dataset as `type`; *columns is 1 for a vector. NULL when it does not exist. */
static void *read_data(hid_t group, const char *name, hid_t type, size_t *rows, size_t *columns)
{
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0) {
        return NULL;
    }
    const hid_t data = H5Dopen(group, name, H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    hsize_t extent[2] = {1, 1};
    ck_assert_int_le(H5Sget_simple_extent_ndims(space), 2);
    (void)H5Sget_simple_extent_dims(space, extent, NULL);
    *rows = (size_t)extent[0];
    *columns = (size_t)extent[1];
    void *values = calloc(*rows * *columns, H5Tget_size(type));
    ck_assert_ptr_nonnull(values);
    ck_assert_int_ge(H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    (void)H5Sclose(space);
    (void)H5Dclose(data);
    return values;
}

static vectors load(hid_t group)
{
    vectors v = {0};
    size_t rows;
    size_t columns;
    read_text(group, "instruction", v.instruction, sizeof v.instruction);
    read_text(group, "atype", v.atype, sizeof v.atype);
    read_text(group, "btype", v.btype, sizeof v.btype);
    read_text(group, "dtype", v.dtype, sizeof v.dtype);
    read_text(group, "arch", v.arch, sizeof v.arch);
    v.a = read_data(group, "a", H5T_NATIVE_UINT16, &v.cases, &v.k);
    v.b = read_data(group, "b", H5T_NATIVE_UINT16, &rows, &columns);
    ck_assert_uint_eq(rows, v.cases);
    ck_assert_uint_eq(columns, v.k);
    v.c = read_data(group, "c", H5T_NATIVE_UINT32, &rows, &columns);
    v.d = read_data(group, "d", H5T_NATIVE_UINT32, &rows, &columns);
    ck_assert_uint_eq(rows, v.cases);
    v.sfa = read_data(group, "sfa", H5T_NATIVE_UINT8, &rows, &v.scales);
    v.sfb = read_data(group, "sfb", H5T_NATIVE_UINT8, &rows, &v.scales);
    return v;
}

static void unload(vectors *v)
{
    free(v->a);
    free(v->b);
    free(v->c);
    free(v->d);
    free(v->sfa);
    free(v->sfb);
}

static void replay(const char *name, const vectors *v, dp_tally *tally)
{
    const dp_mma_desc *desc = dp_mma_find(v->instruction, v->atype, v->btype, v->dtype, v->arch);
    ck_assert_msg(desc != NULL, "%s: no such instruction", name);
    for (size_t i = 0; i < v->cases; i++) {
        uint32_t d = 0;
        dp_error error = {{0}};
        const bool done =
            dp_mma_element(desc, NULL, v->k, v->a + i * v->k, v->b + i * v->k,
                           v->sfa != NULL ? v->sfa + i * v->scales : NULL,
                           v->sfb != NULL ? v->sfb + i * v->scales : NULL, v->c[i], &d, &error);
        ck_assert_msg(done, "%s", error.text);
        if (!dp_tally_check(tally, d == v->d[i])) {
            dp_tally_note(tally, "%s case %zu: c %08X d %08X expected %08X", name, i, v->c[i], d,
                          v->d[i]);
        }
    }
}

static herr_t each_group(hid_t parent, const char *name, const H5L_info_t *info, void *context)
{
    (void)info;
    const hid_t group = H5Gopen(parent, name, H5P_DEFAULT);
    ck_assert_int_ge(group, 0);
    vectors v = load(group);
    replay(name, &v, context);
    unload(&v);
    (void)H5Gclose(group);
    return 0;
}

START_TEST(public_model_vectors_match)
{
    char path[4096];
    const hid_t file = H5Fopen(dp_source_path(path, sizeof path, "data/mma_vectors.h5"),
                               H5F_ACC_RDONLY, H5P_DEFAULT);
    ck_assert_msg(file >= 0, "cannot open %s", path);
    dp_tally tally = {0};
    const hid_t capture = H5Gopen(file, "capture", H5P_DEFAULT);
    (void)H5Literate(capture, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, each_group, &tally);
    (void)H5Gclose(capture);
    (void)H5Fclose(file);
    dp_assert_tally(tally, 18 * 2000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mma vectors");
    TCase *tests = tcase_create("mma vectors");
    tcase_add_test(tests, public_model_vectors_match);
    suite_add_tcase(suite, tests);
    return dp_run_suite(suite);
}
