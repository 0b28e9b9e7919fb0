/* SPDX-License-Identifier: MIT
 *
 * Groups of matrix instructions: one output element a case.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/capture.h"
#include "formats/catalog.h"

typedef struct {
    const dp_mma_desc *desc;
    const dp_mma_switches *switches;
    uint32_t *a, *b, *c, *d;
    uint8_t *sfa, *sfb;
    size_t cases, k, scales;
    bool ignore_c; /* D = A * B */
    char atype[16], btype[16], dtype[16], arch[16];
} matrix_data;

static uint32_t accumulator(const matrix_data *m, size_t i)
{
    return m->ignore_c ? dp_mma_disabled_c(m->desc, m->switches) : m->c[i];
}

static uint32_t model(const matrix_data *m, size_t i, dp_error *error)
{
    uint32_t d = 0;
    (void)dp_mma_element32(m->desc, m->switches, m->k, m->a + i * m->k, m->b + i * m->k,
                           m->sfa != NULL ? m->sfa + i * m->scales : NULL,
                           m->sfb != NULL ? m->sfb + i * m->scales : NULL, accumulator(m, i), &d,
                           error);
    return d;
}

static bool differs(const void *context, size_t i)
{
    const matrix_data *m = context;
    return model(m, i, NULL) != m->d[i];
}

/* A dataset of `cases` rows and (columns > 0) that many columns; *cases 0 takes the file's. */
static bool read(const dp_capture_group *g, const char *name, size_t *cases, size_t *columns,
                 uint32_t **words, dp_error *error)
{
    dp_h5_shape shape;
    int width;
    const int rank = columns != NULL ? 2 : 1;
    if (!dp_capture_words(g, name, rank, rank, &shape, &width, words, error)) {
        return false;
    }
    if (*cases != 0 && shape.dims[0] != *cases) {
        return dp_fail(error, "%s:%s/%s: it has %" PRIu64 " cases and a has %zu: record it again",
                       g->file->path, g->path, name, shape.dims[0], *cases);
    }
    if (columns != NULL && *columns != 0 && shape.dims[1] != *columns) {
        return dp_fail(error, "%s:%s/%s: %" PRIu64 " columns where %zu belong: record it again",
                       g->file->path, g->path, name, shape.dims[1], *columns);
    }
    *cases = (size_t)shape.dims[0];
    if (columns != NULL) {
        *columns = (size_t)shape.dims[1];
    }
    return true;
}

/* Codes must fit their type: a stray high bit means that the file was packed otherwise. */
static bool check_codes(const dp_capture_group *g, const char *name, const char *type,
                        const uint32_t *codes, size_t count, dp_error *error)
{
    dp_minifloat format;
    const uint32_t codes_of_type =
        dp_catalog_find(strcmp(type, "f16") == 0 ? "fp16" : type, &format)
            ? dp_minifloat_codes(format)
            : 0;
    for (size_t i = 0; codes_of_type != 0 && i < count; i++) {
        if (codes[i] >= codes_of_type) {
            return dp_fail(error,
                           "%s:%s/%s: element %zu is 0x%X, no code of %s: store one element a word",
                           g->file->path, g->path, name, i, codes[i], type);
        }
    }
    return true;
}

static bool read_scales(const dp_capture_group *g, matrix_data *m, const char *name,
                        uint8_t **bytes, dp_error *error)
{
    uint32_t *words = NULL;
    size_t columns = m->k / m->desc->block;
    size_t cases = m->cases;
    bool good = read(g, name, &cases, &columns, &words, error);
    *bytes = good ? malloc(cases * columns + 1) : NULL;
    for (size_t i = 0; *bytes != NULL && i < cases * columns; i++) {
        good = good && (words[i] <= 0xFF ||
                        dp_fail(error, "%s:%s/%s: element %zu is 0x%X, no scale byte: store bytes",
                                g->file->path, g->path, name, i, words[i]));
        (*bytes)[i] = (uint8_t)words[i];
    }
    free(words);
    m->scales = columns;
    return good && (*bytes != NULL || dp_fail(error, "%s:%s/%s: memory is short: free some",
                                              g->file->path, g->path, name));
}

static bool load(const dp_capture_group *g, matrix_data *m, dp_error *error)
{
    int64_t scale_d = 1;
    if (dp_h5_has_attribute(g->file, g->path, "scale_d") &&
        !dp_h5_i64(g->file, g->path, "scale_d", &scale_d, error)) {
        return false;
    }
    m->ignore_c = scale_d == 0;
    return read(g, "a", &m->cases, &m->k, &m->a, error) &&
           read(g, "b", &m->cases, &m->k, &m->b, error) &&
           read(g, "c", &m->cases, NULL, &m->c, error) &&
           read(g, "d", &m->cases, NULL, &m->d, error) &&
           check_codes(g, "a", m->atype, m->a, m->cases * m->k, error) &&
           check_codes(g, "b", m->btype, m->b, m->cases * m->k, error) &&
           check_codes(g, "c", m->dtype, m->c, m->cases, error) &&
           check_codes(g, "d", m->dtype, m->d, m->cases, error);
}

static double value(const char *type, uint32_t code)
{
    dp_minifloat format;
    if (dp_catalog_find(strcmp(type, "f16") == 0 ? "fp16" : type, &format)) {
        return dp_minifloat_value(code, format);
    }
    return (double)dp_f32_from_bits(code);
}

/* The largest products come first in a text of bounded length: they decide the alignment. */
static void describe_products(const matrix_data *m, size_t i, char *text, size_t size)
{
    bool *told = calloc(m->k, sizeof *told);
    size_t at = 0;
    for (size_t n = 0; told != NULL && n < 6 && n < m->k && at < size; n++) {
        size_t best = m->k;
        double largest = -1;
        for (size_t k = 0; k < m->k; k++) {
            const double p =
                value(m->atype, m->a[i * m->k + k]) * value(m->btype, m->b[i * m->k + k]);
            const double magnitude = p != p ? 1e300 : p < 0 ? -p : p;
            if (!told[k] && magnitude > largest) {
                best = k;
                largest = magnitude;
            }
        }
        told[best] = true;
        at += (size_t)snprintf(text + at, size - at, "%s[%zu] 0x%X (%.9g) * 0x%X (%.9g)",
                               n > 0 ? ", " : "", best, m->a[i * m->k + best],
                               value(m->atype, m->a[i * m->k + best]), m->b[i * m->k + best],
                               value(m->btype, m->b[i * m->k + best]));
    }
    free(told);
}

static void describe(const dp_capture_group *g, const matrix_data *m, size_t i)
{
    char products[400] = "";
    const uint32_t d = model(m, i, NULL);
    describe_products(m, i, products, sizeof products);
    (void)snprintf(g->result->first, sizeof g->result->first,
                   "case %zu: c 0x%X (%.9g), file 0x%X (%.9g), model 0x%X (%.9g); largest products "
                   "%s",
                   i, accumulator(m, i), value(m->dtype, accumulator(m, i)), m->d[i],
                   value(m->dtype, m->d[i]), d, value(m->dtype, d), products);
}

static bool replay(const dp_capture_group *g, matrix_data *m, dp_error *error)
{
    size_t first;
    if (!dp_capture_text(g, "atype", m->atype, sizeof m->atype, error) ||
        !dp_capture_text(g, "btype", m->btype, sizeof m->btype, error) ||
        !dp_capture_text(g, "dtype", m->dtype, sizeof m->dtype, error) ||
        !dp_capture_text(g, "arch", m->arch, sizeof m->arch, error) || !load(g, m, error)) {
        return false;
    }
    g->result->cases = m->cases;
    m->desc = dp_mma_find(g->result->instruction, m->atype, m->btype, m->dtype, m->arch);
    if (m->desc == NULL || m->desc->family == DP_MMA_UNKNOWN) {
        g->result->model = "none";
        return true;
    }
    if (m->desc->block != 0 &&
        (m->k % m->desc->block != 0 || !read_scales(g, m, "sfa", &m->sfa, error) ||
         !read_scales(g, m, "sfb", &m->sfb, error))) {
        return dp_fail(error, "%s:%s: k = %zu is no multiple of the block: record it again",
                       g->file->path, g->path, m->k);
    }
    if (m->cases > 0) { /* whatever the model refuses, it refuses in the first case */
        dp_error refused = {""};
        (void)model(m, 0, &refused);
        if (refused.text[0] != '\0') {
            return dp_fail(error, "%s:%s: %.700s", g->file->path, g->path, refused.text);
        }
    }
    g->result->model = "matrix";
    g->result->mismatches = dp_capture_count(g->options->threads, m->cases, differs, m, &first);
    if (g->result->mismatches > 0) {
        describe(g, m, first);
    }
    return true;
}

bool dp_capture_matrix(const dp_capture_group *group, dp_error *error)
{
    matrix_data m = {.switches = group->options->switches};
    const bool good = replay(group, &m, error);
    free(m.a);
    free(m.b);
    free(m.c);
    free(m.d);
    free(m.sfa);
    free(m.sfb);
    return good;
}
