/* SPDX-License-Identifier: MIT */
#include "device/capture/mma.h"

#include <cstdio>
#include <cstdlib>

#include "device/capture/record.h"

/* Host and device memory of one experiment. */
typedef struct {
    size_t tiles, a, b, cd, sfa, sfb; /* bytes */
    uint8_t *host[6], *device[6];     /* a, b, c, sfa, sfb, d */
} dp_buffers;

static void dp_free(dp_buffers *m)
{
    for (int i = 0; i < 6; i++) {
        free(m->host[i]);
        (void)cudaFree(m->device[i]);
    }
}

static size_t dp_bytes(const dp_buffers *m, int which)
{
    const size_t sizes[6] = {m->a, m->b, m->cd, m->sfa, m->sfb, m->cd};
    return sizes[which];
}

static bool dp_allocate(dp_buffers *m, const dp_mma_experiment *what, size_t tiles, dp_recorder *r)
{
    *m = dp_buffers();
    m->tiles = tiles;
    m->a = tiles * (size_t)what->steps * (size_t)what->m * DP_ROW_BYTES;
    m->b = tiles * (size_t)what->steps * DP_TILE_N * DP_ROW_BYTES;
    m->cd = tiles * (size_t)what->m * DP_TILE_N * 4;
    m->sfa = tiles * (size_t)what->m * 4;
    m->sfb = tiles * DP_TILE_N * 4;
    for (int i = 0; i < 6; i++) {
        m->host[i] = (uint8_t *)calloc(1, dp_bytes(m, i));
        if (m->host[i] == nullptr || cudaMalloc(&m->device[i], dp_bytes(m, i)) != cudaSuccess) {
            return dp_fail(r->error, "%s: out of memory: ask for fewer tiles", what->group);
        }
    }
    return true;
}

static dp_tile dp_tile_at(const dp_buffers *m, const dp_mma_experiment *what, size_t i)
{
    const size_t rows = (size_t)what->m;
    dp_tile tile = dp_tile();
    tile.m = what->m;
    tile.steps = what->steps;
    tile.scales = what->block;
    tile.ue4m3 = what->ue4m3;
    tile.a = m->host[0] + i * (size_t)what->steps * rows * DP_ROW_BYTES;
    tile.b = m->host[1] + i * (size_t)what->steps * DP_TILE_N * DP_ROW_BYTES;
    tile.c = (uint32_t *)m->host[2] + i * rows * DP_TILE_N;
    tile.sfa = m->host[3] + i * rows * 4;
    tile.sfb = m->host[4] + i * DP_TILE_N * 4;
    return tile;
}

static bool dp_execute(dp_buffers *m, const dp_mma_experiment *what, bool swapped, dp_recorder *r)
{
    for (int i = 0; i < 5; i++) {
        (void)cudaMemcpy(m->device[i], m->host[i], dp_bytes(m, i), cudaMemcpyHostToDevice);
    }
    dp_mma_io io = dp_mma_io();
    io.a = m->device[0];
    io.b = m->device[1];
    io.c = (const uint32_t *)m->device[2];
    if (what->block > 0) {
        io.sfa = (const uint32_t *)m->device[3];
        io.sfb = (const uint32_t *)m->device[4];
    }
    io.d = (uint32_t *)m->device[5];
    io.tiles = (int)m->tiles;
    cudaError_t status = what->launch(&io, what, swapped);
    if (status == cudaSuccess) {
        status = cudaMemcpy(m->host[5], m->device[5], m->cd, cudaMemcpyDeviceToHost);
    }
    if (status != cudaSuccess) {
        return dp_fail(r->error, "%s: %s: report this with the device's name", what->group,
                       cudaGetErrorString(status));
    }
    return true;
}

/* Element bytes of one row of a case, 4-bit codes spread to one a byte. */
static size_t dp_expand_row(uint8_t *to, const uint8_t *row, dp_element element)
{
    if (dp_element_bits(element) != 4) {
        memcpy(to, row, DP_ROW_BYTES);
        return DP_ROW_BYTES;
    }
    for (int i = 0; i < DP_ROW_BYTES; i++) {
        to[2 * i] = row[i] & 0xF;
        to[2 * i + 1] = row[i] >> 4;
    }
    return 2 * DP_ROW_BYTES;
}

static void dp_write_operand(dp_recorder *r, const dp_buffers *m, const dp_mma_experiment *what,
                             bool is_b)
{
    const dp_element element = what->type[is_b ? 1 : 0];
    const size_t rows = is_b ? DP_TILE_N : (size_t)what->m, steps = (size_t)what->steps;
    const size_t cases = m->tiles * (size_t)what->m * DP_TILE_N;
    const size_t row_bytes = DP_ROW_BYTES * (dp_element_bits(element) == 4 ? 2u : 1u);
    uint8_t *out = (uint8_t *)malloc(cases * steps * row_bytes);
    uint8_t *to = out;
    for (size_t i = 0; out != nullptr && i < cases; i++) {
        const size_t tile = i / ((size_t)what->m * DP_TILE_N);
        const size_t row = is_b ? i % DP_TILE_N : i / DP_TILE_N % (size_t)what->m;
        for (size_t s = 0; s < steps; s++) {
            const uint8_t *from =
                m->host[is_b ? 1 : 0] + ((tile * steps + s) * rows + row) * DP_ROW_BYTES;
            to += dp_expand_row(to, from, element);
        }
    }
    const int bytes = dp_element_bits(element) < 16 ? 1 : dp_element_bits(element) / 8;
    if (out == nullptr) {
        (void)dp_fail(r->error, "%s: out of memory: ask for fewer tiles", what->group);
    } else {
        (void)dp_h5out_uint(r->out, is_b ? "b" : "a", "case,k", bytes, cases,
                            steps * row_bytes / (size_t)bytes, out);
        (void)dp_h5out_dataset_text(r->out, is_b ? "b" : "a", "format", dp_element_name(element));
    }
    free(out);
}

static void dp_write_result(dp_recorder *r, const dp_buffers *m, const dp_mma_experiment *what,
                            const char *name, int which)
{
    const size_t cases = m->cd / 4;
    uint32_t *wide = (uint32_t *)m->host[which];
    const bool half = what->type[2] == DP_OP_F16;
    uint16_t *narrow = (uint16_t *)malloc(cases * sizeof *narrow);
    for (size_t i = 0; narrow != nullptr && i < cases; i++) {
        narrow[i] = (uint16_t)wide[i];
    }
    (void)dp_h5out_uint(r->out, name, "case", half ? 2 : 4, cases, 0,
                        half ? (const void *)narrow : (const void *)wide);
    (void)dp_h5out_dataset_text(r->out, name, "format", dp_element_name(what->type[2]));
    free(narrow);
}

static void dp_write_scales(dp_recorder *r, const dp_buffers *m, const dp_mma_experiment *what,
                            bool is_b)
{
    const size_t count = (size_t)(what->type[0] == DP_OP_E2M1 ? 64 : 32) / (size_t)what->block;
    const size_t cases = m->cd / 4;
    uint8_t *out = (uint8_t *)malloc(cases * count);
    for (size_t i = 0; out != nullptr && i < cases; i++) {
        const size_t tile = i / ((size_t)what->m * DP_TILE_N);
        const size_t row = is_b ? tile * DP_TILE_N + i % DP_TILE_N : i / DP_TILE_N;
        memcpy(out + i * count, m->host[is_b ? 4 : 3] + row * 4, count);
    }
    (void)dp_h5out_uint(r->out, is_b ? "sfb" : "sfa", "case,block", 1, cases, count, out);
    (void)dp_h5out_dataset_text(r->out, is_b ? "sfb" : "sfa", "format",
                                what->ue4m3 ? "ue4m3" : "e8m0");
    free(out);
}

/* Which kind of data each case is, so that a mismatch can be placed. */
static void dp_write_kinds(dp_recorder *r, const dp_buffers *m, size_t per_kind)
{
    const size_t cases = m->cd / 4, per_tile = cases / m->tiles;
    uint8_t *kind = (uint8_t *)malloc(cases);
    char names[128] = "";
    for (size_t i = 0; kind != nullptr && i < cases; i++) {
        kind[i] = (uint8_t)(i / per_tile / per_kind);
    }
    for (int i = 0; i < DP_DATA_KINDS; i++) {
        strcat(names, i > 0 ? "," : "");
        strcat(names, dp_data_name((dp_data)i));
    }
    (void)dp_h5out_uint(r->out, "kind", "case", 1, cases, 0, kind);
    (void)dp_h5out_dataset_text(r->out, "kind", "names", names);
    free(kind);
}

static void dp_write(dp_recorder *r, const dp_buffers *m, const dp_mma_experiment *what,
                     size_t per_kind)
{
    dp_record_group(r, what->group, what->instruction);
    (void)dp_h5out_text(r->out, "atype", dp_element_name(what->type[0]));
    (void)dp_h5out_text(r->out, "btype", dp_element_name(what->type[1]));
    (void)dp_h5out_text(r->out, "dtype", dp_element_name(what->type[2]));
    (void)dp_h5out_int(r->out, "scale_d", what->ignore_c ? 0 : 1);
    dp_write_operand(r, m, what, false);
    dp_write_operand(r, m, what, true);
    dp_write_result(r, m, what, "c", 2);
    dp_write_result(r, m, what, "d", 5);
    if (what->block > 0) {
        dp_write_scales(r, m, what, false);
        dp_write_scales(r, m, what, true);
    }
    dp_write_kinds(r, m, per_kind);
    dp_record_say(r, "%-32s %zu cases\n", what->group, m->cd / 4);
}

static void dp_run(dp_recorder *r, const dp_mma_experiment *what, bool swapped)
{
    /* As many cases a kind of data whatever the tile height. */
    const size_t per_kind = (size_t)r->tiles * (what->m == 128 ? 1u : 64u / (size_t)what->m);
    uint64_t state = r->seed ^ (uint64_t)what->idesc << 32;
    for (const char *s = what->group; *s != '\0'; s++) {
        state = state * 1099511628211u + (uint64_t)(unsigned char)*s;
    }
    dp_buffers m;
    if (dp_allocate(&m, what, per_kind * DP_DATA_KINDS, r)) {
        for (size_t i = 0; i < m.tiles; i++) {
            dp_tile tile = dp_tile_at(&m, what, i);
            dp_tile_fill(&tile, (dp_data)(i / per_kind), what->type, &state);
        }
        if (dp_execute(&m, what, swapped, r)) {
            dp_write(r, &m, what, per_kind);
        }
    }
    dp_free(&m);
}

/* Small integers, exact in every datapath: a mismatch means operands in the wrong place. */
static int dp_misplaced(dp_recorder *r, const dp_mma_experiment *what, bool swapped)
{
    static const uint8_t codes[] = {0x00, 0x38, 0xB8, 0x40, 0x30, 0xC4}; /* 0 1 -1 2 0.5 -3 */
    static const int twice[] = {0, 2, -2, 4, 1, -6};
    dp_buffers m;
    int wrong = 0;
    if (dp_allocate(&m, what, 1, r)) {
        for (int i = 0; i < what->m * DP_ROW_BYTES; i++) {
            m.host[0][i] = codes[(i * 7 + i / 32 * 5 + i / 5) % 6];
        }
        for (int i = 0; i < DP_TILE_N * DP_ROW_BYTES; i++) {
            m.host[1][i] = codes[(i * 11 + i / 32 * 3 + i / 7) % 6];
        }
        wrong = dp_execute(&m, what, swapped, r) ? 0 : -1;
        for (int i = 0; wrong >= 0 && i < what->m * DP_TILE_N; i++) {
            int sum = 0;
            for (int k = 0; k < DP_ROW_BYTES; k++) {
                int x = i / DP_TILE_N * DP_ROW_BYTES + k, y = i % DP_TILE_N * DP_ROW_BYTES + k;
                sum += twice[(x * 7 + x / 32 * 5 + x / 5) % 6] *
                       twice[(y * 11 + y / 32 * 3 + y / 7) % 6];
            }
            wrong += dp_f32_bits((float)sum / 4.0f) != ((const uint32_t *)m.host[5])[i];
        }
    }
    dp_free(&m);
    return wrong;
}

static void dp_run_set(dp_recorder *r, dp_mma_set set, const char *family)
{
    const bool plain = set.list[0].block == 0;
    int wrong = plain ? dp_misplaced(r, &set.list[0], false) : 0;
    bool swapped = false;
    if (wrong > 0) {
        dp_record_say(r, "%s: %d outputs misplaced, trying the other descriptor\n", family, wrong);
        wrong = dp_misplaced(r, &set.list[0], true);
        swapped = true;
    }
    if (wrong != 0) {
        dp_record_say(r, "%s: %d outputs misplaced: not recorded\n", family, wrong);
        return;
    }
    for (int i = 0; i < set.count && r->error->text[0] == '\0'; i++) {
        dp_run(r, &set.list[i], swapped);
    }
}

void dp_record_mma(dp_recorder *r)
{
    dp_run_set(r, dp_mma_sync(), "mma.sync");
    if (r->capability == 90) {
        dp_run_set(r, dp_mma_wgmma(), "wgmma");
    } else {
        dp_record_say(r, "wgmma: skipped, needs compute capability 9.0\n");
    }
}

void dp_record_block(dp_recorder *r)
{
    if (r->capability == 100 || r->capability == 103) {
        dp_run_set(r, dp_mma_tcgen05(), "tcgen05");
    } else {
        dp_record_say(r, "tcgen05: skipped, needs compute capability 10.0 or 10.3\n");
    }
    if (r->capability == 120) {
        dp_run_set(r, dp_mma_block(), "mma.sync block_scale");
    } else {
        dp_record_say(r, "mma.sync block_scale: skipped, needs compute capability 12.0\n");
    }
}
