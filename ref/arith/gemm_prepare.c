/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "ref/arith/gemm_internal.h"

enum { ALIGNMENT = 64 };

/* Lay out the arrays one after another: with base == NULL only the size is computed. */
typedef struct {
    unsigned char *base;
    size_t used;
} arena;

static void *take(arena *memory, size_t count, size_t size)
{
    void *at = memory->base != NULL ? memory->base + memory->used : NULL;
    memory->used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static void lay_out_vector(struct dp_mma_decoded *x, const dp_mma_matrix *matrix, arena *memory)
{
    const size_t lines = dp_gemm_lines(matrix);
    const size_t rows = matrix->side == DP_MMA_SIDE_A ? lines : lines * DP_GEMM_LANES;
    x->span = take(memory, lines * matrix->steps, sizeof *x->span);
    if (matrix->desc->family == DP_MMA_GROUPED) {
        const size_t groups = rows * matrix->steps * DP_GEMM_GROUPS;
        x->bytes = take(memory, rows * x->padded_k, sizeof *x->bytes);
        x->factor = take(memory, groups, sizeof *x->factor);
        x->m = take(memory, groups, sizeof *x->m);
        x->exp = take(memory, groups, sizeof *x->exp);
        x->nonzero = take(memory, groups, sizeof *x->nonzero);
        x->bias = take(memory, groups, sizeof *x->bias);
    } else {
        x->value = take(memory, rows * x->padded_k, sizeof *x->value);
        x->exponent = take(memory, rows * x->padded_k, sizeof *x->exponent);
        x->scale_exp = take(memory, rows * matrix->steps, sizeof *x->scale_exp);
    }
}

static void lay_out(struct dp_mma_decoded *x, const dp_mma_matrix *matrix, arena *memory)
{
    const dp_mma_desc *desc = matrix->desc;
    x->padded_k = matrix->steps * desc->k;
    x->scales = desc->block != 0 ? x->padded_k / desc->block : 0;
    const bool grouped = desc->family == DP_MMA_GROUPED;
    const size_t elements = matrix->rows * x->padded_k;
    x->terms = grouped ? NULL : take(memory, elements, sizeof *x->terms);
    x->codes = grouped ? take(memory, elements, sizeof *x->codes) : NULL;
    x->scale = take(memory, matrix->rows * x->scales, sizeof *x->scale);
    x->vector = dp_gemm_has_vector(desc, &matrix->switches);
    if (x->vector) {
        lay_out_vector(x, matrix, memory);
    }
}

static bool reserve(dp_mma_matrix *matrix, dp_error *error)
{
    struct dp_mma_decoded sizes;
    arena measure = {.base = NULL, .used = ALIGNMENT};
    (void)take(&measure, 1, sizeof sizes);
    lay_out(&sizes, matrix, &measure);
    if (matrix->capacity < measure.used) {
        free(matrix->memory);
        matrix->capacity = 0;
        matrix->decoded = NULL;
        matrix->memory = malloc(measure.used);
        if (matrix->memory == NULL) {
            return dp_fail(error, "matrix: %zu bytes are not available: use smaller tiles",
                           measure.used);
        }
        matrix->capacity = measure.used;
    }
    unsigned char *base = matrix->memory;
    base += (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT;
    arena memory = {.base = base, .used = 0};
    matrix->decoded = take(&memory, 1, sizeof sizes);
    lay_out(matrix->decoded, matrix, &memory);
    return true;
}

static uint32_t code_at(const unsigned char *row, int bits, size_t k)
{
    switch (bits) {
    case 4:
        return (uint32_t)(row[k / 2] >> (k % 2 * 4)) & 0xFu;
    case 16: {
        uint16_t word;
        memcpy(&word, row + 2 * k, sizeof word);
        return word;
    }
    case 32: {
        uint32_t word;
        memcpy(&word, row + 4 * k, sizeof word);
        return word;
    }
    default:
        return row[k];
    }
}

/* k codes from packed nibbles, zeros up to padded. */
static void unpack_nibbles(const unsigned char *row, size_t k, uint8_t *codes, size_t padded)
{
    for (size_t i = 0; i < k / 2; i++) {
        codes[2 * i] = row[i] & 0xFu;
        codes[2 * i + 1] = (uint8_t)(row[i] >> 4);
    }
    if (k % 2 != 0) {
        codes[k - 1] = row[k / 2] & 0xFu;
    }
    memset(codes + k, 0, padded - k);
}

static void decode_elements(dp_mma_matrix *matrix, const dp_mma_source *source)
{
    const dp_mma_desc *desc = matrix->desc;
    struct dp_mma_decoded *x = matrix->decoded;
    const dp_mma_format format = matrix->side == DP_MMA_SIDE_A ? desc->a : desc->b;
    const bool normalise = dp_mma_normalises(desc, &matrix->switches, format);
    const int bits = dp_mma_code_bits(format);
    const size_t tight = bits == 4 ? (matrix->k + 1) / 2 : matrix->k * (size_t)((bits + 7) / 8);
    const size_t stride = source->stride != 0 ? source->stride : tight;
    dp_mma_term table[256];
    for (uint32_t code = 0; bits <= 8 && code < 256; code++) {
        table[code] = dp_mma_term_of(format, code, normalise);
    }
    for (size_t r = 0; r < matrix->rows; r++) {
        const unsigned char *row = (const unsigned char *)source->payload + r * stride;
        if (x->codes != NULL) {
            unpack_nibbles(row, matrix->k, x->codes + r * x->padded_k, x->padded_k);
            continue;
        }
        dp_mma_term *terms = x->terms + r * x->padded_k;
        for (size_t k = 0; k < matrix->k; k++) {
            const uint32_t code = code_at(row, bits, k);
            terms[k] = bits <= 8 ? table[code] : dp_mma_term_of(format, code, normalise);
        }
        memset(terms + matrix->k, 0, (x->padded_k - matrix->k) * sizeof *terms); /* +0 */
    }
}

static void decode_scales(dp_mma_matrix *matrix, const dp_mma_source *source)
{
    const dp_mma_desc *desc = matrix->desc;
    struct dp_mma_decoded *x = matrix->decoded;
    if (x->scales == 0) {
        return;
    }
    const size_t given = (matrix->k + desc->block - 1) / desc->block;
    const size_t blocks = source->scale_blocks != 0 ? source->scale_blocks : given;
    const dp_layout_map map = {source->scale_layout, source->scale_row + matrix->rows, blocks};
    for (size_t r = 0; r < matrix->rows; r++) {
        for (size_t i = 0; i < x->scales; i++) {
            const uint8_t byte = i < given
                                     ? source->scale[dp_layout_offset(map, source->scale_row + r,
                                                                      source->scale_block + i)]
                                     : 0;
            x->scale[r * x->scales + i] = dp_mma_scale_of(desc->scale, byte);
        }
    }
}

bool dp_mma_prepare(dp_mma_matrix *matrix, const dp_mma_desc *desc, const dp_mma_switches *switches,
                    dp_mma_side side, size_t rows, size_t k, const dp_mma_source *source,
                    dp_error *error)
{
    if (desc->family == DP_MMA_UNKNOWN) {
        return dp_fail(error,
                       "%s (%s): nothing is known in public about the arithmetic of this "
                       "instruction: use a K=64 form",
                       desc->instruction, desc->arch);
    }
    if (k == 0) {
        return dp_fail(error, "%s: k = 0: give at least one column", desc->instruction);
    }
    if (desc->scale != DP_MMA_NO_SCALE && source->scale == NULL) {
        return dp_fail(error, "%s: operand without block scales: set source.scale",
                       desc->instruction);
    }
    const dp_mma_switches chosen = switches != NULL ? *switches : (dp_mma_switches){0};
    matrix->desc = desc;
    matrix->switches = chosen;
    matrix->side = side;
    matrix->rows = rows;
    matrix->k = k;
    matrix->steps = (k + desc->k - 1) / desc->k;
    if (!reserve(matrix, error)) {
        return false;
    }
    decode_elements(matrix, source);
    decode_scales(matrix, source);
    if (matrix->decoded->vector) {
        dp_gemm_pack(matrix);
    }
    return true;
}

void dp_mma_matrix_free(dp_mma_matrix *matrix)
{
    free(matrix->memory);
    *matrix = (dp_mma_matrix){0};
}
