/* SPDX-License-Identifier: MIT */
#include "route_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOG2_6    2.5849625007211562
#define LOG2_448  8.8073549220576041
#define LOG2_2688 11.392317422778762
#define POLY      1e-4

static const model_row ROWS[] = {
    /* The table of the standard paths: offset, what the LSE keeps of it, threshold; G. */
    {.name = "fa4-bf16", .qk = 'b', .pv = 'b', .threshold = 8, .loose = POLY},
    {.name = "fa4-fp8", .qk = '8', .pv = '8', .offset = 8},
    {.name = "fa4-fp8-offset8-threshold4", .qk = '8', .pv = '8', .offset = 8, .threshold = 4},
    {.name = "fa4-fp8-offset8-threshold8", .qk = '8', .pv = '8', .offset = 8, .threshold = 8},
    {.name = "fa4-fp8-offset4", .qk = '8', .pv = '8', .offset = 4, .threshold = 4},
    {.name = "fa3-fp8", .qk = '8', .pv = '8', .offset = 8},
    {.name = "hao-nv-bf16", .qk = 'n', .pv = 'b', .threshold = 8},
    {.name = "hao-nv-fp8", .qk = 'n', .pv = '8', .threshold = 8, .loose = POLY},
    {.name = "hao-nv-nv", .qk = 'n', .pv = 'n', .offset = LOG2_6, .kept = LOG2_6, .loose = POLY},
    {.name = "hao-nv-nv-log2", .qk = 'n', .pv = 'n', .offset = LOG2_6, .kept = LOG2_6},
    {.name = "hao-nv-mxfp8", .qk = 'n', .pv = 'x', .offset = LOG2_448, .kept = LOG2_448},
    {.name = "hao-mxfp8", .qk = 'x', .pv = 'x', .offset = LOG2_448, .kept = LOG2_448},
    {.name = "hao-mxfp8-fp8", .qk = 'x', .pv = '8', .threshold = 8, .loose = POLY},
    {.name = "sage3", .qk = 'n', .pv = 'n', .offset = LOG2_2688, .floor0 = true},
    {.name = "sage3-smooth",
     .qk = 'n',
     .pv = 'n',
     .offset = LOG2_2688,
     .floor0 = true,
     .smooth = 't'},
    {.name = "flashinfer-sm120", .qk = 'n', .pv = 'n', .offset = LOG2_2688, .smooth = 'f'},
    {.name = "sage2-fp8",
     .qk = 'i',
     .pv = '8',
     .offset = 8.807,
     .tile = 64,
     .ascending = true,
     .smooth = 'k',
     .v_channel = 448},
    {.name = "sage2-fp8-sm90",
     .qk = 'i',
     .pv = '8',
     .offset = 8.807,
     .ascending = true,
     .smooth = 'k',
     .v_channel = 448},
    {.name = "fastvideo", .qk = 'n', .pv = 'n'},
    {.name = "fastvideo-train",
     .qk = 'n',
     .pv = 'n',
     .rounded = true,
     .pre = true,
     .sum = 'b',
     .fake = true,
     .ascending = true},
    {.name = "fastvideo-train-global",
     .qk = 'n',
     .pv = 'n',
     .g = 2688,
     .rounded = true,
     .pre = true,
     .sum = 'b',
     .fake = true,
     .ascending = true},
    {.name = "fastvideo-train-two-level",
     .qk = 'n',
     .pv = 'n',
     .g = 2688,
     .rounded = true,
     .by_row = true,
     .pre = true,
     .sum = 'b',
     .fake = true,
     .ascending = true},
    {.name = "duda", .qk = 'n', .pv = 'n', .threshold = 8, .residual = true},
    {.name = "modelopt",
     .qk = 'n',
     .pv = 'n',
     .g = 2688,
     .rounded = true,
     .pre = true,
     .tile = 32,
     .ascending = true},
    {.name = "modelopt-128",
     .qk = 'n',
     .pv = 'n',
     .g = 2688,
     .rounded = true,
     .pre = true,
     .ascending = true},
    {.name = "modelopt-fp8", .qk = 'b', .pv = 's', .pre = true, .tile = 32, .ascending = true},
    {.name = "stabilised",
     .qk = 'n',
     .pv = 'n',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .g = 448,
     .sum = 'r'},
    {.name = "stabilised-mx-nv",
     .qk = 'm',
     .pv = 'n',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .g = 448,
     .sum = 'r'},
    {.name = "stabilised-nv-mx",
     .qk = 'n',
     .pv = 'm',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .sum = 'r'},
    {.name = "stabilised-mx-mx",
     .qk = 'm',
     .pv = 'm',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .sum = 'r'},
    {.name = "sampled-1",
     .qk = 'n',
     .pv = 'n',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .g = 448,
     .sum = 'r',
     .sampled = 1},
    {.name = "sampled-2",
     .qk = 'n',
     .pv = 'n',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .g = 448,
     .sum = 'r',
     .sampled = 2},
    {.name = "sampled-3",
     .qk = 'n',
     .pv = 'n',
     .offset = LOG2_6,
     .kept = LOG2_6,
     .g = 448,
     .sum = 'r',
     .sampled = 3},
    {.name = "shiftless-nv-nv",
     .qk = 'n',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true},
    {.name = "shiftless-nv-nv-raw",
     .qk = 'n',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .overflow = true},
    {.name = "shiftless-nv-nv-cubic",
     .qk = 'n',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 3,
     .map = {.99202336, .63145205, .28625049, .07839806}},
    {.name = "shiftless-nv-nv-quadratic",
     .qk = 'n',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 2,
     .map = {.879341148, .926581374, .335717889},
     .map_floor = -1.38},
    {.name = "shiftless-nv-nv-affine",
     .qk = 'n',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 1,
     .map = {0.92083546, 1.62330034}},
    {.name = "g-nv-nv", .qk = 'n', .pv = 'n'},
    {.name = "g-mx-nv", .qk = 'm', .pv = 'n'},
    {.name = "direct-nv-nv",
     .qk = 'n',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 1,
     .map = {1.22, 1.5},
     .sampled = 1},
    {.name = "direct-mx-nv",
     .qk = 'm',
     .pv = 'n',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 1,
     .map = {1.22, 1.5},
     .sampled = 1},
    {.name = "direct-nv-mx",
     .qk = 'n',
     .pv = 'm',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 1,
     .map = {1.22, 1.5},
     .sampled = 1},
    {.name = "direct-nv-fp8",
     .qk = 'n',
     .pv = 'x',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 1,
     .map = {1.22, 1.5},
     .sampled = 1,
     .amplitude = true},
    {.name = "direct-mx-mx",
     .qk = 'm',
     .pv = 'm',
     .sum = 'r',
     .ascending = true,
     .shiftless = true,
     .degree = 1,
     .map = {1.22, 1.5},
     .sampled = 1},
};

const model_row *model_rows(int *count)
{
    *count = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}

/* ---- rounding, by the values of the format ------------------------------------------------- */

/* Nearest of `steps` equal steps an octave, ties to the even one; below 2^least the step stays. */
static double nearest(double x, int steps, int least)
{
    if (x == 0.0 || !isfinite(x)) {
        return x;
    }
    int e;
    (void)frexp(x, &e);
    e = e - 1 > least ? e - 1 : least;
    const double unit = ldexp(1.0 / steps, e);
    return nearbyint(x / unit) * unit;
}

double model_bf16(double x)
{
    return nearest(x, 128, -126);
}

double model_e4m3(double x)
{
    const double y = nearest(x, 8, -6);
    return fabs(y) > 448.0 ? copysign(448.0, x) : y;
}

double model_e2m1(double x)
{
    const double y = nearest(x, 2, 0);
    return fabs(y) > 6.0 ? copysign(6.0, x) : y;
}

static double identity_or_bf16(bool to_bf16, double x)
{
    return to_bf16 ? model_bf16(x) : x;
}

/* Would a hair more or less round elsewhere? */
static bool is_near(double (*round)(double), double x, double hair)
{
    return round(x * (1.0 + hair)) != round(x * (1.0 - hair));
}

/* ---- P of a tile ---------------------------------------------------------------------------- */

static double map_of(const model_row *row, double x)
{
    if (row->degree == 0) {
        return exp2(x);
    }
    if (row->map_floor != 0.0 && x < row->map_floor) {
        x = row->map_floor;
    }
    double y = 0.0;
    for (int i = row->degree; i >= 0; i--) {
        y = y * x + row->map[i];
    }
    return y > 0.0 ? y : 0.0;
}

static double advance(const model_row *row, double c, bool first, const double *raw, int n,
                      model_state *state)
{
    if (row->shiftless) {
        state->maximum = 0.0;
        return first ? 0.0 : 1.0;
    }
    double top = state->maximum;
    for (int i = 0; i < n; i++) {
        top = fmax(top, raw[i]);
    }
    top = first && row->floor0 ? fmax(top, 0.0) : top;
    const double old = state->maximum;
    if (row->threshold > 0.0 && old > -INFINITY && (top - old) * c <= row->threshold) {
        return 1.0;
    }
    state->maximum = top;
    return old > -INFINITY ? exp2((old - top) * c) : 0.0;
}

/* Without block scales. */
static void plain(const model_row *row, const double *p, int n, double hair, model_p *out)
{
    for (int i = 0; i < n; i++) {
        double (*const round)(double) = row->pv == 'b' ? model_bf16 : model_e4m3;
        const double unit = row->pv == 's' ? 448.0 : 1.0;
        out->code[i] = round(p[i] * unit);
        out->near_code[i] = is_near(round, p[i] * unit, hair);
        out->weight[i] = row->pv == 's'
                             ? model_bf16((double)((float)out->code[i] * (1.0f / 448.0f)))
                             : out->code[i];
    }
}

/* The stored scale of a block of NVFP4 whose largest P is `top`. */
static double stored(const model_row *row, double top, double g)
{
    const double wanted = top / 6.0 * g;
    if (row->overflow && nearest(wanted, 8, -6) > 448.0) {
        return NAN;
    }
    return model_e4m3(wanted);
}

static void block_nv(const model_row *row, const double *p, double g, double floor, double hair,
                     int b, model_p *out)
{
    double top = floor;
    for (int i = 0; i < 16; i++) {
        top = fmax(top, p[i]);
    }
    const double scale = stored(row, top, g);
    out->scale[b] = scale;
    /* P in BF16: exact ties are decided; with a factor, what is compared is rounded */
    const double doubt = !row->pre ? hair : g != 1.0 ? 4e-7 : 0.0;
    out->near_scale[b] = is_near(model_e4m3, top / 6.0 * g, doubt);
    for (int i = 0; i < 16; i++) {
        const double divisor = row->rounded ? scale / g : top / 6.0;
        const double x = divisor > 0.0 ? p[i] / divisor : 0.0;
        const double y = row->degree > 0 ? (x > 0.0 ? map_of(row, log2(x)) : 0.0) : x;
        const int k = 16 * b + i;
        out->code[k] = model_e2m1(y);
        out->near_code[k] = is_near(model_e2m1, y, doubt) || (row->rounded && out->near_scale[b]);
        out->weight[k] = identity_or_bf16(row->fake, out->code[k] * scale / g);
        out->near_code[k] = out->near_code[k] ||
                            (row->fake && is_near(model_bf16, out->code[k] * scale / g, doubt));
    }
}

/* 32 keys: MXFP8 with a scale rounded up, MXFP4 with the nearest amplitude. */
static void block_mx(const model_row *row, const double *p, double hair, int b, model_p *out)
{
    double top = 0.0;
    for (int i = 0; i < 32; i++) {
        top = fmax(top, p[i]);
    }
    const bool fp8 = row->pv == 'x';
    const bool up = fp8 && !row->amplitude;
    const double exponent = up ? log2(top / 448.0) : log2(top) + log2(4.0 / 3.0);
    const double e = top > 0.0 ? (up ? ceil(exponent) : floor(exponent)) : 0.0;
    out->scale[b] = top > 0.0 ? exp2(e) : 0.0;
    out->near_scale[b] = top > 0.0 && fabs(exponent - nearbyint(exponent)) < 4 * hair + 1e-5;
    double (*const round)(double) = fp8 ? model_e4m3 : model_e2m1;
    for (int i = 0; i < 32; i++) {
        const double x = p[i] * exp2(-e) * (up ? 1.0 : 6.0);
        const double y = row->degree > 0 ? (x > 0.0 ? map_of(row, log2(x)) : 0.0) : x;
        const int k = 32 * b + i;
        out->code[k] = round(y);
        out->near_code[k] = is_near(round, y, hair) || out->near_scale[b];
        out->weight[k] = out->code[k] * out->scale[b];
    }
}

static double sum_of(const model_row *row, const double *exact, const double *p, int n,
                     const model_p *out)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        const bool counts = row->sampled == 0 || i % 32 < 8 * row->sampled;
        const double share = row->sampled > 0 ? 4.0 / row->sampled : 1.0;
        sum += row->sum == 'r'   ? (counts ? out->weight[i] * share : 0.0)
               : row->sum == 'b' ? p[i]
                                 : exact[i];
    }
    return sum;
}

/* May element i, within a BF16 step, be the largest of its 16? */
static bool is_top(const double *p, int i)
{
    bool top = true;
    for (int j = i / 16 * 16; j < i / 16 * 16 + 16; j++) {
        top = top && p[i] >= p[j] * (1.0 - 1.0 / 64.0);
    }
    return top;
}

double model_tile(const model_row *row, double c, bool first, const double *raw, int n,
                  model_state *state, model_p *out)
{
    const double factor = advance(row, c, first, raw, n, state);
    const double m = state->maximum > -INFINITY ? state->maximum : 0.0;
    double exact[MODEL_TILE], p[MODEL_TILE];
    bool near[MODEL_TILE];
    double top = 0.0;
    /* Scores are rounded to f32 before the exponential, P after it. */
    const double hair = row->loose > 0.0 ? row->loose : 6e-6;
    for (int i = 0; i < n; i++) {
        exact[i] = exp2((raw[i] - m) * c + row->offset);
        p[i] = identity_or_bf16(row->pre, exact[i]);
        near[i] = row->pre && is_near(model_bf16, exact[i], hair);
        top = fmax(top, p[i]);
    }
    double g = row->g > 0.0 ? row->g : 1.0;
    g = row->by_row && top > 0.0 ? g / top : g;
    memset(out, 0, sizeof *out);
    const double floor = first && row->floor0 ? exp2(-m * c + row->offset) : 0.0;
    for (int b = 0; b < n / 16 && row->pv == 'n'; b++) {
        block_nv(row, p + 16 * b, g, floor, hair, b, out);
    }
    for (int b = 0; b < n / 32 && (row->pv == 'x' || row->pv == 'm'); b++) {
        block_mx(row, p + 32 * b, hair, b, out);
    }
    if (row->pv == 'b' || row->pv == '8' || row->pv == 's') {
        plain(row, p, n, hair, out);
    }
    for (int i = 0; i < n; i++) {
        out->near_code[i] = out->near_code[i] || near[i];
        for (int j = i / 16 * 16; near[i] && j < i / 16 * 16 + 16; j++) {
            out->near_code[j] =
                out->near_code[j] || is_top(p, i); /* its BF16 step moves them all */
            out->near_scale[i / 16] = out->near_scale[i / 16] || is_top(p, i);
        }
    }
    state->sum = state->sum * factor + sum_of(row, exact, p, n, out);
    return factor;
}

/* ---- whole attention ------------------------------------------------------------------------ */

/* n values with one scale, to what the format stands for. */
static void quantize_group(char format, double *x, int n, ptrdiff_t stride)
{
    double amax = 0.0;
    for (int i = 0; i < n; i++) {
        amax = fmax(amax, fabs(x[i * stride]));
    }
    int e = 0;
    (void)frexp(amax, &e); /* amax = [.5, 1) 2^e */
    const double power = ldexp(1.0, e - 1);
    const bool up = amax > 1.5 * power || (amax == 1.5 * power && (e - 1 + 127) % 2 == 1);
    const double amplitude = up ? 2.0 * power : power;
    const double ceiling = exp2(ceil(log2(amax / 448.0)));
    const float scale = (float)model_e4m3((double)((float)amax * (1.0f / 6.0f)));
    const float inverse = 1.0f / scale;
    for (int i = 0; i < n && amax > 0.0; i++) {
        double *at = &x[i * stride];
        *at = format == 'n'   ? model_e2m1((double)((float)*at * inverse)) * (double)scale
              : format == 'x' ? model_e4m3(*at / ceiling) * ceiling
                              : model_e2m1(*at * 6.0 / amplitude) / 6.0 * amplitude;
    }
}

/* Rows of `cols` values (strides in values) in blocks along the columns. */
static void quantize(char format, double *x, int rows, int cols, ptrdiff_t row, ptrdiff_t col)
{
    const int block = format == 'n' ? 16 : 32;
    for (int r = 0; r < rows; r++) {
        for (int j = 0; j < cols && (format == '8' || format == 'b'); j++) {
            double *at = &x[r * row + j * col];
            *at = format == '8' ? model_e4m3(*at) : model_bf16(*at);
        }
        for (int j = 0; j < cols && strchr("nxm", format) != NULL; j += block) {
            quantize_group(format, &x[r * row + j * col], cols - j < block ? cols - j : block, col);
        }
    }
}

/* INT8 with a scale for each 32 queries, or 64 keys. */
static void quantize_int8(double *x, int rows, int dim, int group)
{
    for (int first = 0; first < rows; first += group) {
        const int n = (rows - first < group ? rows - first : group) * dim;
        float amax = 0.0f;
        for (int i = 0; i < n; i++) {
            amax = fmaxf(amax, fabsf((float)x[first * dim + i]));
        }
        const float scale = amax / 127.0f;
        for (int i = 0; i < n && scale > 0.0f; i++) {
            x[first * dim + i] = (double)lroundf((float)x[first * dim + i] / scale) * (double)scale;
        }
    }
}

static void mean_of(const double *x, int rows, int dim, int count, double *mean)
{
    for (int d = 0; d < dim; d++) {
        float sum = 0.0f;
        for (int j = 0; j < rows; j++) {
            sum += (float)x[j * dim + d];
        }
        mean[d] = model_bf16((double)(sum / (float)count));
    }
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

typedef struct {
    const model_row *row;
    int queries, keys, dim, tile;
    double *q, *k, *v; /* as the products see them */
    double *plain_q, *plain_k, *plain_v;
    double *k_mean;
    double *q_mean; /* [tiles of 128 queries][dim] */
} model_problem;

static double *copy(const double *x, size_t n)
{
    double *y = calloc(n, sizeof *y);
    if (y != NULL && x != NULL) {
        memcpy(y, x, n * sizeof *y);
    }
    return y;
}

static void smooth(model_problem *m)
{
    mean_of(m->plain_k, m->keys, m->dim, m->keys, m->k_mean);
    for (int i = 0; i < m->keys * m->dim; i++) {
        m->k[i] = model_bf16(m->k[i] - m->k_mean[i % m->dim]);
    }
    for (int first = 0; m->row->smooth != 'k' && first < m->queries; first += 128) {
        const int rows = m->queries - first < 128 ? m->queries - first : 128;
        double *mean = m->q_mean + first / 128 * m->dim;
        mean_of(m->plain_q + first * m->dim, rows, m->dim, 128, mean);
        for (int i = 0; i < rows * m->dim; i++) {
            double *q = &m->q[first * m->dim + i];
            *q = model_bf16(*q - mean[i % m->dim]);
        }
    }
}

static void prepare(model_problem *m)
{
    const model_row *row = m->row;
    const int dim = m->dim;
    if (row->smooth != 0) {
        smooth(m);
    }
    memcpy(m->plain_k, m->k, (size_t)(m->keys * dim) * sizeof *m->k);
    if (row->qk == 'i') {
        quantize_int8(m->q, m->queries, dim, 32);
        quantize_int8(m->k, m->keys, dim, 64);
    } else {
        quantize(row->qk, m->q, m->queries, dim, dim, 1);
        quantize(row->qk, m->k, m->keys, dim, dim, 1);
    }
    for (int d = 0; d < dim && row->v_channel > 0.0; d++) {
        float unit = 0.0f;
        for (int j = 0; j < m->keys; j++) {
            unit = fmaxf(unit, fabsf((float)m->v[j * dim + d]) / (float)row->v_channel);
        }
        for (int j = 0; j < m->keys; j++) {
            const float x = (float)m->v[j * dim + d] / unit;
            m->v[j * dim + d] = model_e4m3((double)x) * (double)unit;
        }
    }
    if (row->v_channel == 0.0) {
        /* tiles are multiples of 32, so blocks may start at key 0 */
        quantize(row->pv == 's' ? 'b' : row->pv, m->v, dim, m->keys, 1, dim);
    }
}

/* Scores of one query against one tile, hidden ones -Inf. */
static void scores_of(const model_problem *m, int query, int first, bool tail, double *raw)
{
    const double *q = (tail ? m->plain_q : m->q) + query * m->dim;
    for (int j = 0; j < m->tile; j++) {
        const double *k = (tail ? m->plain_k : m->k) + (first + j) * m->dim;
        raw[j] = first + j < m->keys ? dot(q, k, m->dim) : -INFINITY;
        if (first + j < m->keys && (m->row->smooth == 't' || m->row->smooth == 'f')) {
            const double *mean = m->q_mean + query / 128 * m->dim;
            const double delta = dot(mean, m->plain_k + (first + j) * m->dim, m->dim);
            raw[j] += m->row->smooth == 't' ? model_bf16(delta) : delta;
        }
    }
}

static void run_query(const model_problem *m, int query, double *o, double *lse)
{
    const model_row *row = m->row;
    const double c = 1.4426950408889634 / sqrt((double)m->dim);
    const int tiles = (m->keys + m->tile - 1) / m->tile;
    model_row bf16 = *row;
    bf16.pv = 'b';
    model_state state = {-INFINITY, 0.0};
    memset(o, 0, (size_t)m->dim * sizeof *o);
    for (int t = 0; t < tiles; t++) {
        const int first = (row->ascending ? t : tiles - 1 - t) * m->tile;
        const bool tail = row->residual && first + m->tile > m->keys;
        double raw[MODEL_TILE];
        model_p p;
        scores_of(m, query, first, tail, raw);
        const double factor = model_tile(tail ? &bf16 : row, c, t == 0, raw, m->tile, &state, &p);
        for (int d = 0; d < m->dim; d++) {
            o[d] *= factor;
            for (int j = 0; j < m->tile && first + j < m->keys; j++) {
                o[d] += p.weight[j] * (tail ? m->plain_v : m->v)[(first + j) * m->dim + d];
            }
        }
    }
    for (int d = 0; d < m->dim; d++) {
        o[d] /= state.sum;
    }
    *lse = (state.maximum * c + log2(state.sum) - (row->offset - row->kept)) * log(2.0);
    if (row->smooth != 0) {
        *lse += dot(m->plain_q + query * m->dim, m->k_mean, m->dim) / sqrt((double)m->dim);
    }
}

void model_attention(const model_row *row, int queries, int keys, int dim, const double *q,
                     const double *k, const double *v, double *o, double *lse)
{
    const size_t nq = (size_t)(queries * dim);
    const size_t nk = (size_t)(keys * dim);
    model_problem m = {.row = row, .queries = queries, .keys = keys, .dim = dim};
    m.tile = row->tile > 0 ? row->tile : 128;
    m.q = copy(q, nq);
    m.k = copy(k, nk);
    m.v = copy(v, nk);
    m.plain_q = copy(q, nq);
    m.plain_k = copy(k, nk);
    m.plain_v = copy(v, nk);
    m.k_mean = copy(NULL, (size_t)dim);
    m.q_mean = copy(NULL, nq + (size_t)dim);
    prepare(&m);
    for (int i = 0; i < queries; i++) {
        run_query(&m, i, o + i * dim, &lse[i]);
    }
    free(m.q);
    free(m.k);
    free(m.v);
    free(m.plain_q);
    free(m.plain_k);
    free(m.plain_v);
    free(m.k_mean);
    free(m.q_mean);
}
