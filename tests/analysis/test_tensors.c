/* SPDX-License-Identifier: MIT
 *
 * Q, K and V: every format, axis order and head map reads into the same arrays, and files that
 * contradict themselves are refused.
 */
#include <check.h>
#include <math.h>

#include "analysis/tensors.h"
#include "formats/bf16.h"
#include "scratch.h"

enum { BATCH = 2, HEADS = 4, GROUPS = 2, ROWS = 5, KEYS = 7, DIM = 6 };

/* A value that bf16 and f16 hold exactly and that tells where it belongs. */
static float element(int which, size_t b, size_t h, size_t s, size_t d)
{
    return (float)((int)(64 * b + 16 * h + 2 * s + d) - 40) * 0.25f * (float)(which + 1);
}

static dp_tensors make(const char *format)
{
    dp_tensors t = {.batch = BATCH,
                    .q_heads = HEADS,
                    .kv_heads = GROUPS,
                    .q_len = ROWS,
                    .kv_len = KEYS,
                    .dim = DIM,
                    .softmax_scale = 0.375,
                    .causal = true,
                    .layer = -1};
    float **arrays[] = {&t.q, &t.k, &t.v};
    for (int which = 0; which < 3; which++) {
        const size_t heads = which == 0 ? HEADS : GROUPS;
        const size_t rows = which == 0 ? ROWS : KEYS;
        float *to = malloc(BATCH * heads * rows * DIM * sizeof *to);
        *arrays[which] = to;
        for (size_t i = 0; i < BATCH * heads * rows * DIM; i++) {
            to[i] = element(which, i / (heads * rows * DIM), i / (rows * DIM) % heads,
                            i / DIM % rows, i % DIM);
        }
    }
    t.kv_of_q = calloc(HEADS, sizeof *t.kv_of_q);
    t.kv_of_q[1] = t.kv_of_q[2] = 1; /* not the default grouping */
    (void)snprintf(t.format, sizeof t.format, "%s", format);
    return t;
}

START_TEST(round_trip_in_every_format)
{
    const char *const formats[] = {"bf16", "f16", "f32"};
    for (int i = 0; i < 3; i++) {
        dp_error error = {""};
        dp_tensors t = make(formats[i]);
        dp_tensors got;
        t.q[3] = NAN;
        t.k[4] = -INFINITY;
        t.v[5] = -0.0f;
        ck_assert_msg(dp_tensors_save(scratch("t.h5"), &t, &error), "%s", error.text);
        ck_assert_msg(dp_tensors_load(scratch("t.h5"), &got, &error), "%s", error.text);
        ck_assert(isnan(got.q[3]));
        got.q[3] = t.q[3];
        ck_assert(memcmp(got.q, t.q, BATCH * HEADS * ROWS * DIM * sizeof(float)) == 0);
        ck_assert(memcmp(got.k, t.k, BATCH * GROUPS * KEYS * DIM * sizeof(float)) == 0);
        ck_assert(memcmp(got.v, t.v, BATCH * GROUPS * KEYS * DIM * sizeof(float)) == 0);
        ck_assert(got.softmax_scale == 0.375 && got.causal && got.layer == -1);
        ck_assert(memcmp(got.kv_of_q, t.kv_of_q, HEADS * sizeof *t.kv_of_q) == 0);
        ck_assert_str_eq(got.format, formats[i]);
        ck_assert(dp_tensors_k(&got, 1, 2, 3)[4] == element(1, 1, 1, 3, 4));
        ck_assert(dp_tensors_v(&got, 1, 3, 3)[4] == element(2, 1, 0, 3, 4));
        ck_assert(dp_tensors_q(&got, 1, 3, 3)[4] == element(0, 1, 3, 3, 4));
        dp_tensors_free(&t);
        dp_tensors_free(&got);
    }
}
END_TEST

/* Write a file with q, k, v in a given order of axes. */
static void put_in_order(dp_h5_writer *writer, const char *axes, const int order[4],
                         dp_error *error)
{
    const char *const paths[] = {"/inputs/q", "/inputs/k", "/inputs/v"};
    static float data[BATCH * HEADS * KEYS * DIM];
    for (int which = 0; which < 3; which++) {
        const size_t extent[4] = {BATCH, which == 0 ? HEADS : GROUPS, which == 0 ? ROWS : KEYS,
                                  DIM};
        uint64_t dims[4];
        size_t count = 1;
        for (int i = 0; i < 4; i++) {
            dims[i] = extent[order[i]];
            count *= extent[order[i]];
        }
        for (size_t flat = 0; flat < count; flat++) {
            size_t index[4];
            size_t rest = flat;
            for (int i = 3; i >= 0; i--) {
                index[order[i]] = rest % dims[i];
                rest /= dims[i];
            }
            data[flat] = element(which, index[0], index[1], index[2], index[3]);
        }
        const dp_h5_labels labels = {.format = "f32", .axes = axes};
        ck_assert_msg(dp_h5_put(writer, paths[which], DP_H5_F32, 4, dims, data, &labels, error),
                      "%s", error->text);
    }
}

START_TEST(every_order_of_axes)
{
    static const char *const names[] = {"batch", "head", "seq", "dim"};
    dp_tensors expected = make("f32");
    for (int code = 0; code < 256; code++) {
        const int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15) {
            continue;
        }
        char axes[64];
        (void)snprintf(axes, sizeof axes, "%s,%s,%s,%s", names[order[0]], names[order[1]],
                       names[order[2]], names[order[3]]);
        dp_h5_writer writer;
        dp_error error = {""};
        dp_tensors got;
        ck_assert(dp_h5_create(&writer, scratch("axes.h5"), "tensors", NULL, 0, &error));
        put_in_order(&writer, axes, order, &error);
        ck_assert(dp_h5_commit(&writer, &error));
        ck_assert_msg(dp_tensors_load(scratch("axes.h5"), &got, &error), "%s", error.text);
        ck_assert_msg(memcmp(got.q, expected.q, BATCH * HEADS * ROWS * DIM * 4) == 0, "%s", axes);
        ck_assert_msg(memcmp(got.k, expected.k, BATCH * GROUPS * KEYS * DIM * 4) == 0, "%s", axes);
        /* What the file does not say: dim^-0.5, not causal, consecutive groups. */
        ck_assert(got.softmax_scale == 1.0 / sqrt(6.0) && !got.causal);
        ck_assert(got.kv_of_q[0] == 0 && got.kv_of_q[1] == 0 && got.kv_of_q[2] == 1 &&
                  got.kv_of_q[3] == 1);
        dp_tensors_free(&got);
    }
    dp_tensors_free(&expected);
}
END_TEST

/* One thing wrong at a time. */
static void assert_load_fails(const char *text)
{
    dp_error error = {""};
    dp_tensors got;
    ck_assert_msg(!dp_tensors_load(scratch("bad.h5"), &got, &error), "loaded; wanted '%s'", text);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s (wanted '%s')", error.text, text);
    ck_assert_msg(strstr(error.text, "bad.h5") != NULL, "%s", error.text);
}

typedef struct {
    uint64_t q[4], k[4], v[4];
    int rank;
    dp_h5_type type;
    const char *format, *axes;
    const char *kind;
} shape_case;

static void write_shapes(const shape_case *c)
{
    static const float zeros[4096];
    dp_h5_writer writer;
    dp_error error = {""};
    const dp_h5_labels labels = {.format = c->format, .axes = c->axes};
    ck_assert(dp_h5_create(&writer, scratch("bad.h5"), c->kind, NULL, 0, &error));
    ck_assert(dp_h5_put(&writer, "/inputs/q", c->type, c->rank, c->q, zeros, &labels, &error));
    ck_assert(dp_h5_put(&writer, "/inputs/k", c->type, c->rank, c->k, zeros, &labels, &error));
    ck_assert(dp_h5_put(&writer, "/inputs/v", c->type, c->rank, c->v, zeros, &labels, &error));
    ck_assert(dp_h5_commit(&writer, &error));
}

START_TEST(contradictions_are_refused)
{
    const shape_case good = {{1, 4, 8, 4}, {1, 2, 8, 4}, {1, 2, 8, 4}, 4,
                             DP_H5_F32,    "f32",        NULL,         "tensors"};
    dp_error error = {""};
    dp_tensors got;
    shape_case c = good;
    write_shapes(&c);
    ck_assert_msg(dp_tensors_load(scratch("bad.h5"), &got, &error), "%s", error.text);
    dp_tensors_free(&got);
    c.k[3] = 8;
    write_shapes(&c);
    assert_load_fails("the dim extents of q, k, v are 4, 8, 4");
    c = good;
    c.v[2] = 9;
    write_shapes(&c);
    assert_load_fails("the seq extents of q, k, v are 8, 8, 9");
    c = good;
    c.q[0] = 2;
    write_shapes(&c);
    assert_load_fails("the batch extents of q, k, v are 2, 1, 1");
    c = good;
    c.k[1] = c.v[1] = 3;
    write_shapes(&c);
    assert_load_fails("4 query heads do not divide into 3 groups");
    c = good;
    c.q[2] = 0;
    write_shapes(&c);
    assert_load_fails("/inputs/q: it is empty");
    c = good;
    c.rank = 3;
    write_shapes(&c);
    assert_load_fails("has 3 dimensions and 4 are needed");
    c = good;
    c.axes = "batch,head,seq";
    write_shapes(&c);
    assert_load_fails("axes 'batch,head,seq' are not an order of");
    c.axes = "batch,head,seq,seq";
    write_shapes(&c);
    assert_load_fails("are not an order of");
    c.axes = "batch,head,seq,dim,dim";
    write_shapes(&c);
    assert_load_fails("are not an order of");
    c = good;
    c.format = "bf16";
    write_shapes(&c);
    assert_load_fails("format is 'bf16' and f32 is needed");
    c = good;
    c.type = DP_H5_U16;
    c.format = NULL;
    write_shapes(&c);
    assert_load_fails("16-bit integers without a 'format' attribute");
    c.format = "f16";
    write_shapes(&c);
    assert_load_fails("format is 'f16' and bf16 is needed");
    c = good;
    c.type = DP_H5_F64;
    write_shapes(&c);
    assert_load_fails("64-bit IEEE float and unsigned 16-bit integer is needed");
    c = good;
    c.kind = "capture";
    write_shapes(&c);
    assert_load_fails("kind is 'capture' and tensors|dump is needed");
}
END_TEST

START_TEST(root_attributes_are_checked)
{
    const char *const said[] = {
        "softmax_scale is 0",    "softmax_scale is nan",   "causal is 2",
        "kv_of_q has 3 entries", "kv_of_q of head 1 is 2", "kv_of_q of head 0 is -1"};
    for (int i = 0; i < 6; i++) {
        const uint64_t dims[] = {1, 2, 3, 4};
        static const float zeros[24];
        dp_h5_writer w;
        dp_error error = {""};
        ck_assert(dp_h5_create(&w, scratch("bad.h5"), "tensors", NULL, 0, &error));
        ck_assert(dp_h5_put(&w, "/inputs/q", DP_H5_F32, 4, dims, zeros, NULL, &error));
        ck_assert(dp_h5_put(&w, "/inputs/k", DP_H5_F32, 4, dims, zeros, NULL, &error));
        ck_assert(dp_h5_put(&w, "/inputs/v", DP_H5_F32, 4, dims, zeros, NULL, &error));
        const int64_t three[] = {0, 1, 1};
        const int64_t large[] = {0, 2};
        const int64_t negative[] = {-1, 0};
        const bool good =
            i < 2    ? dp_h5_put_f64(&w, "/", "softmax_scale", i == 0 ? 0.0 : (double)NAN, &error)
            : i == 2 ? dp_h5_put_i64(&w, "/", "causal", 2, &error)
            : i == 3 ? dp_h5_put_i64_list(&w, "/", "kv_of_q", three, 3, &error)
                     : dp_h5_put_i64_list(&w, "/", "kv_of_q", i == 4 ? large : negative, 2, &error);
        ck_assert(good);
        ck_assert(dp_h5_commit(&w, &error));
        assert_load_fails(said[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensors");
    TCase *cases = tcase_create("tensors");
    tcase_add_test(cases, round_trip_in_every_format);
    tcase_add_test(cases, every_order_of_axes);
    tcase_add_test(cases, contradictions_are_refused);
    tcase_add_test(cases, root_attributes_are_checked);
    suite_add_tcase(suite, cases);
    const int status = dp_run_suite(suite);
    scratch_remove();
    return status;
}
