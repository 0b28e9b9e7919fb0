/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "analysis/hypothesis.h"
#include "formats/bf16.h"
#include "formats/layout.h"

const dp_hypothesis *dp_hypothesis_at(size_t index)
{
    const dp_hypothesis *const tables[] = {
        dp_hypotheses_quantize, dp_hypotheses_score,  dp_hypotheses_scale, dp_hypotheses_code,
        dp_hypotheses_sum,      dp_hypotheses_output, dp_hypotheses_any};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (const dp_hypothesis *h = tables[t]; h->name != NULL; h++) {
            if (index-- == 0) {
                return h;
            }
        }
    }
    return NULL;
}

static double number(dp_dump_id id, uint32_t bits)
{
    const dp_bf16 x = {(uint16_t)bits};
    return dp_dump_datasets[id].kind == DP_DUMP_BF16 ? (double)dp_bf16_to_f32(x)
                                                     : (double)dp_f32_from_bits(bits);
}

static bool is_near(dp_dump_id id, uint32_t ours, uint32_t theirs, uint64_t ulps, double relative)
{
    const dp_diff_rules rules = {.nan_equal = true};
    uint64_t distance;
    const double a = number(id, ours);
    const double b = number(id, theirs);
    if (dp_diff_equal(&rules, id, ours, theirs, &distance) || !isfinite(a) || !isfinite(b)) {
        return distance == 0;
    }
    const double scale = fmax(fabs(a), fabs(b));
    return distance <= ulps ||
           fabs(a - b) <= relative * (id == DP_DUMP_LSE ? fmax(scale, 1.0) : scale);
}

void dp_hypothesis_near(const dp_unit *unit, dp_dump_id id, void *out, uint64_t ulps,
                        double relative)
{
    const size_t width = dp_dump_width(unit->dump, id);
    const size_t size = dp_dump_element(id);
    for (size_t i = 0; unit->dumped.valid[id] && i < unit->rows * width; i++) {
        const size_t row = i / width * width * size;
        const uint32_t ours = dp_diff_element(id, (char *)out + row, i % width);
        const uint32_t theirs =
            dp_diff_element(id, (const char *)unit->dumped.data[id] + row, i % width);
        const uint32_t oracle =
            dp_diff_element(id, (const char *)unit->out.data[id] + row, i % width);
        /* what is as near to the oracle is no evidence for the mistake */
        if (is_near(id, ours, theirs, ulps, relative) &&
            !is_near(id, oracle, theirs, ulps, relative)) {
            memcpy((char *)out + i * size, (char *)unit->dumped.data[id] + i * size, size);
        }
    }
}

void dp_hypothesis_relayout(int layout, bool to_stored, size_t rows, size_t cols, uint8_t *scale)
{
    const dp_layout_map map = {(dp_layout)layout, rows, cols};
    const size_t bytes = dp_layout_bytes(map);
    uint8_t *copy = calloc(bytes, 1);
    if (copy == NULL) {
        return;
    }
    if (to_stored) {
        dp_layout_swizzle(map, scale, copy);
    } else {
        uint8_t *stored = calloc(bytes, 1);
        if (stored != NULL) {
            memcpy(stored, scale, rows * cols);
            dp_layout_unswizzle(map, stored, copy);
        }
        free(stored);
    }
    memcpy(scale, copy, rows * cols);
    free(copy);
}

uint8_t dp_hypothesis_e2m1(float x, dp_ties ties)
{
    static const float middle[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    static const float value[7] = {0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    const float magnitude = fabsf(x);
    unsigned code = 0;
    for (unsigned i = 0; i < 7; i++) {
        const bool up = ties == DP_TIES_AWAY || (ties == DP_TIES_EVEN && i % 2 == 1);
        code += ties == DP_TIES_TRUNCATE ? magnitude >= value[i]
                                         : (up ? magnitude >= middle[i] : magnitude > middle[i]);
    }
    return (uint8_t)(code | (signbit(x) && x != 0.0f ? 8u : 0u));
}

/* ---- mistakes of any dataset ------------------------------------------------------------------
 */

static bool any_nibbles(const dp_unit *unit, dp_dump_id id, uint8_t *out)
{
    dp_nibble_swap(out, dp_unit_bytes(unit, id));
    return true;
}

/* One value everywhere the kernel is wrong. */
static bool any_constant(const dp_unit *unit, dp_dump_id id, void *out)
{
    const size_t bytes = dp_dump_width(unit->dump, id) * dp_dump_element(id);
    const size_t columns = dp_diff_columns(unit->dump, id);
    const bool query = dp_dump_datasets[id].rows == DP_DUMP_QUERY_ROWS;
    const size_t rows = query ? unit->rows : dp_dump_head_rows(unit->dump, id);
    uint64_t count = 0;
    uint32_t value = 0;
    const size_t size = dp_dump_element(id);
    for (size_t i = 0; i < rows * columns; i++) {
        char *ours = (char *)out + i / columns * bytes;
        const char *theirs = (const char *)unit->dumped.data[id] + i / columns * bytes;
        const uint32_t a = dp_diff_element(id, ours, i % columns);
        const uint32_t b = dp_diff_element(id, theirs, i % columns);
        if (a == b) {
            continue;
        }
        value = count == 0 ? b : value;
        if (b == value) {
            count++;
            if (dp_dump_datasets[id].kind == DP_DUMP_CODES) {
                uint8_t *byte = (uint8_t *)ours + i % columns / 2;
                const unsigned shift = i % columns % 2 * 4;
                *byte = (uint8_t)((*byte & ~(15u << shift)) | value << shift);
            } else {
                memcpy(ours + i % columns * size, theirs + i % columns * size, size);
            }
        }
    }
    return count >= 16 && unit->dumped.valid[id];
}

/* Rows and columns of each 128 x 128 tile exchanged (codes: of the unpacked tile). */
static uint32_t element(dp_dump_id id, const void *data, size_t width, size_t r, size_t c)
{
    return dp_diff_element(id, (const char *)data + r * width * dp_dump_element(id), c);
}

static void put(dp_dump_id id, void *data, size_t width, size_t r, size_t c, uint32_t bits)
{
    char *row = (char *)data + r * width * dp_dump_element(id);
    if (dp_dump_datasets[id].kind == DP_DUMP_CODES) {
        uint8_t *byte = (uint8_t *)row + c / 2;
        const unsigned shift = c % 2 * 4;
        *byte = (uint8_t)((*byte & ~(15u << shift)) | bits << shift);
    } else if (dp_dump_element(id) == 2) {
        const uint16_t value = (uint16_t)bits;
        memcpy(row + 2 * c, &value, sizeof value);
    } else {
        memcpy(row + 4 * c, &bits, sizeof bits);
    }
}

static bool any_transposed(const dp_unit *unit, dp_dump_id id, void *out)
{
    const size_t bytes = dp_unit_bytes(unit, id);
    const size_t width = dp_dump_width(unit->dump, id);
    const size_t columns = dp_dump_datasets[id].kind == DP_DUMP_CODES ? 2 * width : width;
    void *copy = malloc(bytes);
    if (copy == NULL || unit->rows < DP_TILE || columns % DP_TILE != 0) {
        free(copy);
        return false;
    }
    memcpy(copy, out, bytes);
    for (size_t tile = 0; tile < columns / DP_TILE; tile++) {
        for (size_t r = 0; r < DP_TILE; r++) {
            for (size_t c = 0; c < DP_TILE; c++) {
                put(id, out, width, r, tile * DP_TILE + c,
                    element(id, copy, width, c, tile * DP_TILE + r));
            }
        }
    }
    free(copy);
    return true;
}

/* Row r holds what belongs to row r + shift. */
static bool any_rows_shifted(const dp_unit *unit, dp_dump_id id, void *out, ptrdiff_t shift)
{
    const size_t bytes = dp_dump_width(unit->dump, id) * dp_dump_element(id);
    for (size_t r = 0; r < unit->rows; r++) {
        const ptrdiff_t from = (ptrdiff_t)r + shift;
        if (from >= 0 && from < (ptrdiff_t)unit->rows) {
            memcpy((char *)out + r * bytes, (char *)unit->out.data[id] + (size_t)from * bytes,
                   bytes);
        } else if (unit->dumped.valid[id]) { /* from another strip: not judged */
            memcpy((char *)out + r * bytes, (char *)unit->dumped.data[id] + r * bytes, bytes);
        }
    }
    return true;
}

/* One value a row is a factor or a rounding away. */
static bool any_factor(const dp_unit *unit, dp_dump_id id, void *out, double factor)
{
    float *x = out;
    for (size_t i = 0; i < unit->rows * dp_dump_width(unit->dump, id); i++) {
        x[i] = (float)((double)x[i] * factor);
    }
    dp_hypothesis_near(unit, id, out, 2, 0.0);
    return true;
}

static bool any_bf16(const dp_unit *unit, dp_dump_id id, void *out)
{
    float *x = out;
    for (size_t i = 0; i < unit->rows * dp_dump_width(unit->dump, id); i++) {
        x[i] = dp_bf16_to_f32(dp_bf16_from_f32(x[i], DP_ENCODE_NONSAT));
    }
    return true;
}

static bool any_ftz(const dp_unit *unit, dp_dump_id id, void *out)
{
    float *x = out;
    for (size_t i = 0; i < unit->rows * dp_dump_width(unit->dump, id); i++) {
        x[i] = fabsf(x[i]) < 0x1p-126f ? copysignf(0.0f, x[i]) : x[i];
    }
    return true;
}

#define OF(id_, short_)                                                                            \
    static bool constant_##short_(const dp_unit *u, double a, void *out)                           \
    {                                                                                              \
        (void)a;                                                                                   \
        return any_constant(u, id_, out);                                                          \
    }
#define CODES_OF(id_, short_)                                                                      \
    OF(id_, short_)                                                                                \
    static bool nibbles_##short_(const dp_unit *u, double a, void *out)                            \
    {                                                                                              \
        (void)a;                                                                                   \
        return any_nibbles(u, id_, out);                                                           \
    }
#define ROWS_OF(id_, short_)                                                                       \
    static bool shifted_##short_(const dp_unit *u, double a, void *out)                            \
    {                                                                                              \
        return any_rows_shifted(u, id_, out, (ptrdiff_t)a);                                        \
    }
#define TILES_OF(id_, short_)                                                                      \
    static bool transposed_##short_(const dp_unit *u, double a, void *out)                         \
    {                                                                                              \
        (void)a;                                                                                   \
        return any_transposed(u, id_, out);                                                        \
    }
#define REAL_OF(id_, short_)                                                                       \
    OF(id_, short_)                                                                                \
    static bool factor_##short_(const dp_unit *u, double a, void *out)                             \
    {                                                                                              \
        return any_factor(u, id_, out, a);                                                         \
    }                                                                                              \
    static bool bf16_##short_(const dp_unit *u, double a, void *out)                               \
    {                                                                                              \
        (void)a;                                                                                   \
        return any_bf16(u, id_, out);                                                              \
    }                                                                                              \
    static bool ftz_##short_(const dp_unit *u, double a, void *out)                                \
    {                                                                                              \
        (void)a;                                                                                   \
        return any_ftz(u, id_, out);                                                               \
    }
CODES_OF(DP_DUMP_Q_PAYLOAD, q_payload)
CODES_OF(DP_DUMP_K_PAYLOAD, k_payload)
CODES_OF(DP_DUMP_V_PAYLOAD, v_payload)
CODES_OF(DP_DUMP_P_PAYLOAD, p_payload)
OF(DP_DUMP_Q_SCALE, q_scale)
OF(DP_DUMP_K_SCALE, k_scale)
OF(DP_DUMP_V_SCALE, v_scale)
OF(DP_DUMP_P_SCALE, p_scale)
OF(DP_DUMP_CODE_SUM, code_sum)
OF(DP_DUMP_O, o)
REAL_OF(DP_DUMP_RAW, raw)
REAL_OF(DP_DUMP_ROW_REF, row_ref)
REAL_OF(DP_DUMP_ROW_SUM, row_sum)
REAL_OF(DP_DUMP_ACC, acc)
REAL_OF(DP_DUMP_LSE, lse)
ROWS_OF(DP_DUMP_RAW, raw)
ROWS_OF(DP_DUMP_ROW_REF, row_ref)
ROWS_OF(DP_DUMP_P_SCALE, p_scale)
ROWS_OF(DP_DUMP_P_PAYLOAD, p_payload)
ROWS_OF(DP_DUMP_CODE_SUM, code_sum)
ROWS_OF(DP_DUMP_ROW_SUM, row_sum)
ROWS_OF(DP_DUMP_ACC, acc)
ROWS_OF(DP_DUMP_O, o)
ROWS_OF(DP_DUMP_LSE, lse)
TILES_OF(DP_DUMP_RAW, raw)
TILES_OF(DP_DUMP_P_PAYLOAD, p_payload)
TILES_OF(DP_DUMP_ACC, acc)
TILES_OF(DP_DUMP_O, o)

#define NIBBLES(id_, short_)                                                                       \
    {                                                                                              \
        .name = "nibbles-swapped", .id = (id_), .run = nibbles_##short_,                           \
        .meaning = "the two codes of a byte are exchanged: element 0 belongs in the low nibble"    \
    }
#define CONSTANT(id_, short_)                                                                      \
    {                                                                                              \
        .name = "untouched", .id = (id_), .run = constant_##short_,                                \
        .meaning = "every wrong element holds one value: memory that was never written"            \
    }
#define SHIFTED(id_, short_, by_, text_)                                                           \
    {                                                                                              \
        .name = "rows-shifted", .id = (id_), .run = shifted_##short_, .argument = (by_),           \
        .meaning = "each row holds the data of the " text_ " row"                                  \
    }
#define TRANSPOSED(id_, short_)                                                                    \
    {                                                                                              \
        .name = "tile-transposed", .id = (id_), .run = transposed_##short_,                        \
        .meaning = "rows and columns of each 128 x 128 tile are exchanged"                         \
    }
#define FACTOR(id_, short_, name_, by_)                                                            \
    {                                                                                              \
        .name = (name_), .id = (id_), .run = factor_##short_, .argument = (by_),                   \
        .meaning = "the data are this factor times what is due: a constant is missing or applied " \
                   "twice"                                                                         \
    }
#define FACTORS(id_, short_)                                                                       \
    FACTOR(id_, short_, "factor-2", 2.0), FACTOR(id_, short_, "factor-1/2", 0.5),                  \
        FACTOR(id_, short_, "factor-6", 6.0), FACTOR(id_, short_, "factor-1/6", 1.0 / 6.0),        \
        FACTOR(id_, short_, "factor-12", 12.0), FACTOR(id_, short_, "factor-1/12", 1.0 / 12.0),    \
        FACTOR(id_, short_, "factor-36", 36.0), FACTOR(id_, short_, "factor-1/36", 1.0 / 36.0),    \
        FACTOR(id_, short_, "factor-256", 256.0),                                                  \
        FACTOR(id_, short_, "factor-1/256", 1.0 / 256.0),                                          \
        FACTOR(id_, short_, "factor-65536", 65536.0),                                              \
        FACTOR(id_, short_, "factor-1/65536", 1.0 / 65536.0),                                      \
        FACTOR(id_, short_, "factor-log2e", 1.4426950408889634),                                   \
        FACTOR(id_, short_, "factor-ln2", 0.6931471805599453),                                     \
        FACTOR(id_, short_, "sign-flipped", -1.0)
#define ROUNDED(id_, short_)                                                                       \
    {.name = "bf16-double-rounding",                                                               \
     .id = (id_),                                                                                  \
     .run = bf16_##short_,                                                                         \
     .meaning = "the data went through bf16 on the way"},                                          \
    {                                                                                              \
        .name = "subnormals-flushed", .id = (id_), .run = ftz_##short_,                            \
        .meaning = "subnormal results are zero"                                                    \
    }

const dp_hypothesis dp_hypotheses_any[] = {
    NIBBLES(DP_DUMP_Q_PAYLOAD, q_payload),
    NIBBLES(DP_DUMP_K_PAYLOAD, k_payload),
    NIBBLES(DP_DUMP_V_PAYLOAD, v_payload),
    NIBBLES(DP_DUMP_P_PAYLOAD, p_payload),
    TRANSPOSED(DP_DUMP_RAW, raw),
    TRANSPOSED(DP_DUMP_P_PAYLOAD, p_payload),
    TRANSPOSED(DP_DUMP_ACC, acc),
    TRANSPOSED(DP_DUMP_O, o),
    FACTORS(DP_DUMP_RAW, raw),
    FACTORS(DP_DUMP_ROW_REF, row_ref),
    FACTORS(DP_DUMP_ROW_SUM, row_sum),
    FACTORS(DP_DUMP_ACC, acc),
    FACTORS(DP_DUMP_LSE, lse),
    ROUNDED(DP_DUMP_RAW, raw),
    ROUNDED(DP_DUMP_ROW_REF, row_ref),
    ROUNDED(DP_DUMP_ROW_SUM, row_sum),
    ROUNDED(DP_DUMP_ACC, acc),
    ROUNDED(DP_DUMP_LSE, lse),
    SHIFTED(DP_DUMP_RAW, raw, 1, "next"),
    SHIFTED(DP_DUMP_RAW, raw, -1, "previous"),
    SHIFTED(DP_DUMP_ROW_REF, row_ref, 1, "next"),
    SHIFTED(DP_DUMP_ROW_REF, row_ref, -1, "previous"),
    SHIFTED(DP_DUMP_P_SCALE, p_scale, 1, "next"),
    SHIFTED(DP_DUMP_P_SCALE, p_scale, -1, "previous"),
    SHIFTED(DP_DUMP_P_PAYLOAD, p_payload, 1, "next"),
    SHIFTED(DP_DUMP_P_PAYLOAD, p_payload, -1, "previous"),
    SHIFTED(DP_DUMP_CODE_SUM, code_sum, 1, "next"),
    SHIFTED(DP_DUMP_CODE_SUM, code_sum, -1, "previous"),
    SHIFTED(DP_DUMP_ROW_SUM, row_sum, 1, "next"),
    SHIFTED(DP_DUMP_ROW_SUM, row_sum, -1, "previous"),
    SHIFTED(DP_DUMP_ACC, acc, 1, "next"),
    SHIFTED(DP_DUMP_ACC, acc, -1, "previous"),
    SHIFTED(DP_DUMP_O, o, 1, "next"),
    SHIFTED(DP_DUMP_O, o, -1, "previous"),
    SHIFTED(DP_DUMP_LSE, lse, 1, "next"),
    SHIFTED(DP_DUMP_LSE, lse, -1, "previous"),
    CONSTANT(DP_DUMP_Q_PAYLOAD, q_payload),
    CONSTANT(DP_DUMP_Q_SCALE, q_scale),
    CONSTANT(DP_DUMP_K_PAYLOAD, k_payload),
    CONSTANT(DP_DUMP_K_SCALE, k_scale),
    CONSTANT(DP_DUMP_V_PAYLOAD, v_payload),
    CONSTANT(DP_DUMP_V_SCALE, v_scale),
    CONSTANT(DP_DUMP_RAW, raw),
    CONSTANT(DP_DUMP_ROW_REF, row_ref),
    CONSTANT(DP_DUMP_P_SCALE, p_scale),
    CONSTANT(DP_DUMP_P_PAYLOAD, p_payload),
    CONSTANT(DP_DUMP_CODE_SUM, code_sum),
    CONSTANT(DP_DUMP_ROW_SUM, row_sum),
    CONSTANT(DP_DUMP_ACC, acc),
    CONSTANT(DP_DUMP_O, o),
    CONSTANT(DP_DUMP_LSE, lse),
    {.name = NULL},
};
