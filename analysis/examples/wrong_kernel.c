/* SPDX-License-Identifier: MIT
 *
 * wrong_kernel.py in C: a "kernel" for directp diff. It takes scores from a dump of the oracle and
 * makes the scale bytes and codes of P of the policy fast (epoch S), right ("none") or with one
 * mistake ("shift", "truncate").
 *   cc -O2 -ffp-contract=off wrong_kernel.c -o wrong_kernel $(pkg-config --cflags --libs hdf5) -lm
 *   wrong_kernel shift scores.h5 shift.h5
 */
#include <hdf5.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_FIRST = 128, ROWS = 128, BLOCK = 32, L = 16 }; /* an odd query tile: no rebased Q1 */

static const float A = 1.5f, B = 1.2f;
static const float S = 0x1.0527aap-3f;     /* log2(e) / sqrt(128), the kernels' constant */
static const float LOG2_6 = 0x1.4ae00ep1f; /* log2(6)                                    */
static const float SHIFT = 0x1.a8ff98p-2f; /* log2(4/3): rounds to the nearest power of two */

/* One block of 32 scores: its stored scale byte, and 16 bytes of two codes each. */
static uint8_t classify(const float *raw, const char *mistake, uint8_t *packed)
{
    const int truncate = strcmp(mistake, "truncate") == 0;
    static const float midpoint[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    static const float value[7] = {0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    float most = raw[0];
    for (int i = 1; i < BLOCK; i++) {
        most = raw[i] > most ? raw[i] : most;
    }
    int u = (int)floorf(most * S + SHIFT) + 127;
    u = u < 0 ? 0 : u > 254 ? 254 : u;
    const float ab = fmaf(A, LOG2_6 - (float)((u > 1 ? u : 1) - 127), B);
    for (int i = 0; i < BLOCK; i++) {
        const float y = fmaf(raw[i], A * S, ab);
        int code = 0;
        for (int k = 0; k < 7; k++) {
            const int up = y > midpoint[k] || (y == midpoint[k] && k % 2 == 1); /* ties to even */
            code += truncate ? y >= value[k] : up;
        }
        packed[i / 2] = (uint8_t)(i % 2 == 0 ? code : packed[i / 2] | code << 4);
    }
    return (uint8_t)(u <= L ? 0 : strcmp(mistake, "shift") == 0 ? u : u - L);
}

static void check(int good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "wrong_kernel: %s failed\n", what);
        exit(2);
    }
}

/* What the oracle's dump says it is, the kernel's dump says too. */
static void copy_attribute(hid_t from, hid_t to, const char *name)
{
    const hid_t a = H5Aopen(from, name, H5P_DEFAULT);
    const hid_t type = H5Aget_type(a), space = H5Aget_space(a);
    const hid_t b = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    void *data = calloc(1, H5Tget_size(type)); /* one number, or a pointer to a text */
    check(data != NULL && H5Aread(a, type, data) >= 0 && H5Awrite(b, type, data) >= 0, name);
    (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, data);
    free(data);
    (void)H5Aclose(b);
    (void)H5Sclose(space);
    (void)H5Tclose(type);
    (void)H5Aclose(a);
}

static void put_integer(hid_t to, const char *name, int64_t number)
{
    const hid_t one = H5Screate(H5S_SCALAR);
    const hid_t a = H5Acreate2(to, name, H5T_STD_I64LE, one, H5P_DEFAULT, H5P_DEFAULT);
    check(H5Awrite(a, H5T_NATIVE_INT64, &number) >= 0, name);
    (void)H5Aclose(a);
    (void)H5Sclose(one);
}

/* A dataset [batch][head][row][columns]. */
static void put(hid_t file, const char *path, hid_t type, const hsize_t *dims, hsize_t columns,
                const void *data)
{
    const hsize_t extent[4] = {dims[0], dims[1], ROWS, columns};
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    (void)H5Pset_create_intermediate_group(links, 1);
    const hid_t space = H5Screate_simple(4, extent, NULL);
    const hid_t set = H5Dcreate2(file, path, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    check(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, path);
    (void)H5Dclose(set);
    (void)H5Sclose(space);
    (void)H5Pclose(links);
}

/* Rows 128 to 255 of every head's scores. */
static float *read_scores(hid_t file, hsize_t dims[4])
{
    const hid_t set = H5Dopen2(file, "/score/raw", H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    check(H5Sget_simple_extent_dims(space, dims, NULL) == 4, "/score/raw");
    const hsize_t start[4] = {0, 0, ROW_FIRST, 0}, count[4] = {dims[0], dims[1], ROWS, dims[3]};
    float *raw = malloc(dims[0] * dims[1] * ROWS * dims[3] * sizeof *raw);
    const hid_t memory = H5Screate_simple(4, count, NULL);
    check(raw != NULL &&
              H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
              H5Dread(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, raw) >= 0,
          "reading /score/raw");
    (void)H5Sclose(memory);
    (void)H5Sclose(space);
    (void)H5Dclose(set);
    return raw;
}

int main(int argc, char **argv)
{
    static const char *const said[] = {"schema",   "kind",          "policy", "epoch",
                                       "switches", "softmax_scale", "keys"};
    hsize_t dims[4];
    check(argc == 4, "usage: wrong_kernel none|shift|truncate SCORES.h5 DUMP.h5:");
    const hid_t oracle = H5Fopen(argv[2], H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dump = H5Fcreate(argv[3], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(oracle >= 0 && dump >= 0, "opening the files");
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        copy_attribute(oracle, dump, said[i]);
    }
    put_integer(dump, "row_first", ROW_FIRST);
    put_integer(dump, "queries", 256);
    float *raw = read_scores(oracle, dims);
    const size_t blocks = (size_t)(dims[0] * dims[1] * ROWS * dims[3] / BLOCK);
    uint8_t *scale = malloc(blocks), *payload = malloc(blocks * BLOCK / 2);
    check(scale != NULL && payload != NULL, "malloc");
    for (size_t i = 0; i < blocks; i++) {
        scale[i] = classify(raw + i * BLOCK, argv[1], payload + i * BLOCK / 2);
    }
    put(dump, "/score/raw", H5T_NATIVE_FLOAT, dims, dims[3], raw);
    put(dump, "/scale/p_scale", H5T_NATIVE_UINT8, dims, dims[3] / BLOCK, scale);
    put(dump, "/code/p_payload", H5T_NATIVE_UINT8, dims, dims[3] / 2, payload);
    free(raw);
    free(scale);
    free(payload);
    (void)H5Fclose(oracle);
    check(H5Fclose(dump) >= 0, "closing the dump");
    return 0;
}
