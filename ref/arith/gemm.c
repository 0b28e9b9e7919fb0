/* SPDX-License-Identifier: MIT */
#include "ref/arith/gemm.h"

#include "formats/parallel.h"
#include "ref/arith/gemm_internal.h"

enum { TILE_ROWS = 16, TILE_COLUMNS = 128 };

typedef struct {
    const dp_mma_matrix *a, *b;
    const float *c;
    size_t c_stride;
    float *d;
    size_t d_stride;
    size_t column_tiles;
    dp_gemm_kernel *kernel;
} job;

bool dp_mma_path_available(dp_mma_path path)
{
    switch (path) {
    case DP_MMA_PATH_AUTO:
    case DP_MMA_PATH_PORTABLE:
        return true;
#if defined(__x86_64__)
    case DP_MMA_PATH_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case DP_MMA_PATH_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vnni");
#endif
    default:
        return false;
    }
}

static dp_gemm_kernel *kernel_of(dp_mma_path path, const dp_mma_matrix *a)
{
#if defined(__x86_64__)
    const bool grouped = a->desc->family == DP_MMA_GROUPED;
    if (!a->decoded->vector || path == DP_MMA_PATH_PORTABLE) {
        return dp_gemm_portable;
    }
    if (path == DP_MMA_PATH_AVX512 ||
        (path == DP_MMA_PATH_AUTO && dp_mma_path_available(DP_MMA_PATH_AVX512))) {
        return grouped ? dp_gemm_grouped_avx512 : dp_gemm_fused_avx512;
    }
    if (path == DP_MMA_PATH_AVX2 || dp_mma_path_available(DP_MMA_PATH_AVX2)) {
        return grouped ? dp_gemm_grouped_avx2 : dp_gemm_fused_avx2;
    }
#endif
    (void)path;
    (void)a;
    return dp_gemm_portable;
}

static void run_tiles(void *context, size_t first, size_t last, int thread)
{
    const job *work = context;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const size_t row = i / work->column_tiles * TILE_ROWS;
        const size_t column = i % work->column_tiles * TILE_COLUMNS;
        const size_t rows = work->a->rows;
        const size_t columns = work->b->rows;
        work->kernel(work->a, work->b, row, row + TILE_ROWS < rows ? row + TILE_ROWS : rows, column,
                     column + TILE_COLUMNS < columns ? column + TILE_COLUMNS : columns, work->c,
                     work->c_stride, work->d, work->d_stride);
    }
}

static bool compatible(const dp_mma_matrix *a, const dp_mma_matrix *b, const float *c,
                       size_t c_stride, size_t d_stride, dp_error *error)
{
    if (a->decoded == NULL || b->decoded == NULL || a->side != DP_MMA_SIDE_A ||
        b->side != DP_MMA_SIDE_B) {
        return dp_fail(error, "product: operands are not prepared as A and B: prepare them first");
    }
    if (a->desc != b->desc || a->k != b->k ||
        memcmp(&a->switches, &b->switches, sizeof a->switches) != 0) {
        return dp_fail(error, "product: A and B were prepared for different instructions, switches "
                              "or k: prepare both alike");
    }
    if (a->desc->result == DP_MMA_F16_RNE) {
        return dp_fail(error, "%s: f16 results have no whole-matrix form: compute elements",
                       a->desc->instruction);
    }
    if (d_stride < b->rows || (c != NULL && c_stride < b->rows)) {
        return dp_fail(error, "product: row stride below the %zu columns: correct it", b->rows);
    }
    return true;
}

bool dp_mma_multiply(const dp_mma_matrix *a, const dp_mma_matrix *b, const float *c,
                     size_t c_stride, float *d, size_t d_stride, const dp_mma_run *run,
                     dp_error *error)
{
    if (!compatible(a, b, c, c_stride, d_stride, error)) {
        return false;
    }
    const dp_mma_run how = run != NULL ? *run : (dp_mma_run){.threads = 1};
    if (!dp_mma_path_available(how.path)) {
        return dp_fail(error, "product: this processor cannot run the path asked for: use auto");
    }
    job work = {.a = a,
                .b = b,
                .c = c,
                .c_stride = c_stride,
                .d = d,
                .d_stride = d_stride,
                .column_tiles = (b->rows + TILE_COLUMNS - 1) / TILE_COLUMNS,
                .kernel = kernel_of(how.path, a)};
    dp_parallel_for(how.threads, (a->rows + TILE_ROWS - 1) / TILE_ROWS * work.column_tiles, 1,
                    run_tiles, &work);
    return true;
}

bool dp_gemm(const dp_mma_desc *desc, const dp_mma_switches *switches, size_t m, size_t n, size_t k,
             const dp_mma_source *a, const dp_mma_source *b, const float *c, float *d,
             const dp_mma_run *run, dp_error *error)
{
    dp_mma_matrix x = {0};
    dp_mma_matrix y = {0};
    const bool done = dp_mma_prepare(&x, desc, switches, DP_MMA_SIDE_A, m, k, a, error) &&
                      dp_mma_prepare(&y, desc, switches, DP_MMA_SIDE_B, n, k, b, error) &&
                      dp_mma_multiply(&x, &y, c, n, d, n, run, error);
    dp_mma_matrix_free(&x);
    dp_mma_matrix_free(&y);
    return done;
}

bool dp_gemm_named(const char *instruction, const char *atype, const char *btype, const char *arch,
                   const dp_mma_switches *switches, size_t m, size_t n, size_t k,
                   const dp_mma_source *a, const dp_mma_source *b, const float *c, float *d,
                   const dp_mma_run *run, dp_error *error)
{
    const dp_mma_desc *desc = dp_mma_find(instruction, atype, btype, "f32", arch);
    if (desc == NULL) {
        return dp_fail(error, "%s %s.%s on %s: not in the table of instructions: see MMA.md",
                       instruction, atype, btype, arch);
    }
    return dp_gemm(desc, switches, m, n, k, a, b, c, d, run, error);
}

bool dp_gemm_nvfp4(const dp_mma_switches *switches, size_t m, size_t n, size_t k, const uint8_t *a,
                   const uint8_t *sfa, const uint8_t *b, const uint8_t *sfb, const float *c,
                   float *d, const dp_mma_run *run, dp_error *error)
{
    return dp_gemm_named("tcgen05.mma.kind::mxf4nvf4.block16.ue4m3", "e2m1", "e2m1", "sm_100a",
                         switches, m, n, k, &(dp_mma_source){.payload = a, .scale = sfa},
                         &(dp_mma_source){.payload = b, .scale = sfb}, c, d, run, error);
}

bool dp_gemm_mxfp4(const dp_mma_switches *switches, size_t m, size_t n, size_t k, const uint8_t *a,
                   const uint8_t *sfa, const uint8_t *b, const uint8_t *sfb, const float *c,
                   float *d, const dp_mma_run *run, dp_error *error)
{
    return dp_gemm_named("tcgen05.mma.kind::mxf4.block32.ue8m0", "e2m1", "e2m1", "sm_100a",
                         switches, m, n, k, &(dp_mma_source){.payload = a, .scale = sfa},
                         &(dp_mma_source){.payload = b, .scale = sfb}, c, d, run, error);
}

bool dp_gemm_mx(const char *atype, const char *btype, const dp_mma_switches *switches, size_t m,
                size_t n, size_t k, const void *a, const uint8_t *sfa, const void *b,
                const uint8_t *sfb, const float *c, float *d, const dp_mma_run *run,
                dp_error *error)
{
    return dp_gemm_named("tcgen05.mma.kind::mxf8f6f4.block32.ue8m0", atype, btype, "sm_100a",
                         switches, m, n, k, &(dp_mma_source){.payload = a, .scale = sfa},
                         &(dp_mma_source){.payload = b, .scale = sfb}, c, d, run, error);
}

bool dp_gemm_plain(const char *arch, const char *atype, const char *btype,
                   const dp_mma_switches *switches, size_t m, size_t n, size_t k, const void *a,
                   const void *b, const float *c, float *d, const dp_mma_run *run, dp_error *error)
{
    const char *instruction = "wgmma";
    if (strcmp(arch, "sm_90a") != 0) {
        instruction = strcmp(atype, "tf32") == 0 ? "tcgen05.mma.kind::tf32"
                      : strcmp(atype, "f16") == 0 || strcmp(atype, "bf16") == 0
                          ? "tcgen05.mma.kind::f16"
                          : "tcgen05.mma.kind::f8f6f4";
    }
    return dp_gemm_named(instruction, atype, btype, arch, switches, m, n, k,
                         &(dp_mma_source){.payload = a}, &(dp_mma_source){.payload = b}, c, d, run,
                         error);
}
