/* SPDX-License-Identifier: MIT
 *
 * Whole tensors through the block kernels: which runs lie side by side, division among threads, and
 * the scalar route for recipes, tails and small tensors.
 */
#include "formats/bulk_block.h"

#include <stdlib.h>

#include "formats/block_internal.h"
#include "formats/bulk_block_plan.h"
#include "formats/parallel.h"

enum {
    GRAIN = 1 << 16,        /* elements a thread takes at a time, about                           */
    STREAM_BYTES = 1 << 22, /* output from here on is written around the caches                  */
    TABLES_PAY = 1 << 13,   /* elements from which filling the quantizer's tables pays           */
    VALUES_PAY = 1 << 16,   /* and those of the decoder, 4096 values                             */
    GROUP = 16              /* runs gathered at a time                                           */
};

typedef struct {
    const dp_block_plan *plan;
    dp_bulk_block_plan fast;
    const dp_bulk_block_kernels *kernels; /* NULL: the scalar definition */
    const dp_tensor *tensor;
    size_t axis;
    dp_block_shape shape;
    dp_bulk_source source;
    uint8_t *payload, *scale;
    const dp_bulk_block_values *values;
    const uint8_t *payload_in, *scale_in;
    void *out;
    bool bf16, stream;
} block_job;

static const dp_bulk_block_kernels *kernels_of(dp_path path)
{
    switch (dp_path_resolve(path)) {
#if defined(__x86_64__)
    case DP_PATH_AVX512:
        return &dp_bulk_block_avx512;
    case DP_PATH_AVX2:
        return &dp_bulk_block_avx2;
#endif
    case DP_PATH_PORTABLE:
        return &dp_bulk_block_portable;
    default:
        return NULL;
    }
}

/* Offset of the first element of a run: the run number written in the other axes' extents. */
static ptrdiff_t run_offset(const block_job *job, size_t run)
{
    const dp_tensor *tensor = job->tensor;
    ptrdiff_t offset = 0;
    for (size_t i = tensor->rank; i-- > 0;) {
        if (i != job->axis) {
            offset += (ptrdiff_t)(run % tensor->shape[i]) * tensor->stride[i];
            run /= tensor->shape[i];
        }
    }
    return offset;
}

/* True when every run begins where the one before ends, and none has a ragged tail. */
static bool one_sequence(const block_job *job)
{
    if (job->shape.padded != 0 || job->tensor->stride[job->axis] != 1) {
        return false;
    }
    ptrdiff_t expected = (ptrdiff_t)job->shape.length;
    for (size_t i = job->tensor->rank; i-- > 0;) {
        if (i != job->axis && job->tensor->shape[i] > 1) {
            if (job->tensor->stride[i] != expected) {
                return false;
            }
            expected *= (ptrdiff_t)job->tensor->shape[i];
        }
    }
    return true;
}

static dp_bulk_source source_at(const block_job *job, ptrdiff_t offset)
{
    dp_bulk_source source = job->source;
    source.data = (const uint8_t *)source.data + (source.bf16 ? 2 : 4) * offset;
    return source;
}

static size_t run_elements(const block_job *job)
{
    return job->shape.blocks * job->plan->recipe.block;
}

/* Elements first .. length - 1 of a run, its ragged tail, by the scalar definition. */
static void quantize_scalar(const block_job *job, size_t run, size_t first)
{
    const size_t block = job->plan->recipe.block;
    const ptrdiff_t stride = job->tensor->stride[job->axis];
    uint8_t *payload = job->payload + run * job->shape.run_payload_bytes;
    uint8_t *scale = job->scale + run * job->shape.run_scale_bytes;
    float x[DP_BLOCK_MAX];
    for (size_t at = first; at < job->shape.length; at += block) {
        const size_t n = job->shape.length - at < block ? job->shape.length - at : block;
        const ptrdiff_t start = run_offset(job, run) + (ptrdiff_t)at * stride;
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = dp_bulk_load(source_at(job, start + (ptrdiff_t)i * stride), 0);
            memcpy(&x[i], &bits, sizeof bits);
        }
        size_t bad = 0; /* fast recipes refuse nothing */
        (void)dp_block_quantize_run(job->plan, x, 1, n, payload + at * job->plan->element_bits / 8,
                                    scale + at / block, NULL, &bad);
    }
}

static void sequence_share(void *context, size_t first, size_t last, int thread)
{
    const block_job *job = context;
    const size_t block = job->fast.block;
    fenv_t callers;
    (void)thread;
    dp_environment_enter(&callers);
    job->kernels->quantize(&job->fast, source_at(job, (ptrdiff_t)(first * block)), last - first,
                           job->payload + first * block * job->plan->element_bits / 8,
                           job->scale + first, job->stream);
    dp_environment_leave(&callers);
}

/* Runs of stride 1 that do not follow each other, or have a tail. */
static void quantize_row(const block_job *job, size_t run)
{
    const size_t whole = job->shape.length / job->fast.block;
    job->kernels->quantize(&job->fast, source_at(job, run_offset(job, run)), whole,
                           job->payload + run * job->shape.run_payload_bytes,
                           job->scale + run * job->shape.run_scale_bytes, false);
    quantize_scalar(job, run, whole * job->fast.block);
}

/* The whole blocks of `runs` <= GROUP runs, piece by piece through a tile. */
static void quantize_columns(const block_job *job, size_t run, size_t runs, float *tile)
{
    const ptrdiff_t stride = job->tensor->stride[job->axis];
    const size_t block = job->fast.block;
    const size_t whole = job->shape.length / block * block;
    bool adjacent = runs == GROUP;
    ptrdiff_t offset[GROUP];
    for (size_t r = 0; r < runs; r++) {
        offset[r] = run_offset(job, run + r);
        adjacent = adjacent && offset[r] == offset[0] + (ptrdiff_t)r;
    }
    for (size_t at = 0; at < whole; at += DP_BULK_TILE) {
        const size_t n = whole - at < DP_BULK_TILE ? whole - at : DP_BULK_TILE;
        if (adjacent) {
            job->kernels->gather(source_at(job, offset[0] + (ptrdiff_t)at * stride), stride, n,
                                 tile);
        }
        for (size_t r = 0; r < runs; r++) {
            float *row = tile + r * DP_BULK_TILE;
            for (size_t i = 0; !adjacent && i < n; i++) {
                const ptrdiff_t from = offset[r] + (ptrdiff_t)(at + i) * stride;
                const uint32_t bits = dp_bulk_load(source_at(job, from), 0);
                memcpy(&row[i], &bits, sizeof bits);
            }
            const dp_bulk_source source = {row, false};
            job->kernels->quantize(&job->fast, source, n / block,
                                   job->payload + (run + r) * job->shape.run_payload_bytes +
                                       at * job->plan->element_bits / 8,
                                   job->scale + (run + r) * job->shape.run_scale_bytes + at / block,
                                   false);
        }
    }
    for (size_t r = 0; r < runs; r++) {
        quantize_scalar(job, run + r, whole);
    }
}

static void runs_share(void *context, size_t first, size_t last, int thread)
{
    const block_job *job = context;
    const bool rows = job->tensor->stride[job->axis] == 1;
    float tile[GROUP * DP_BULK_TILE];
    fenv_t callers;
    (void)thread;
    dp_environment_enter(&callers);
    for (size_t run = first; run < last;) {
        const size_t left = last - run;
        const size_t runs = rows ? 1 : left < GROUP ? left : GROUP;
        if (rows) {
            quantize_row(job, run);
        } else {
            quantize_columns(job, run, runs, tile);
        }
        run += runs;
    }
    dp_environment_leave(&callers);
}

/* Runs of a share: a multiple of GROUP with about GRAIN elements. */
static size_t run_grain(const block_job *job)
{
    const size_t runs = GRAIN / run_elements(job);
    return (runs / GROUP + 1) * GROUP;
}

/* A bf16 tensor under a recipe that may refuse it: as a dense f32 copy through block.h. */
static bool quantize_copy(const block_job *job, int threads, dp_error *error)
{
    const size_t length = job->shape.length;
    float *copy = malloc(job->shape.runs * length * sizeof *copy);
    if (copy == NULL) {
        return dp_fail(error, "tensor: out of memory for an f32 copy: quantize it in parts");
    }
    for (size_t run = 0; run < job->shape.runs; run++) {
        const ptrdiff_t offset = run_offset(job, run);
        for (size_t i = 0; i < length; i++) {
            const ptrdiff_t from = offset + (ptrdiff_t)i * job->tensor->stride[job->axis];
            const uint32_t bits = dp_bulk_load(source_at(job, from), 0);
            memcpy(&copy[run * length + i], &bits, sizeof bits);
        }
    }
    const size_t shape[2] = {job->shape.runs, length};
    const dp_tensor dense = dp_tensor_contiguous(2, shape);
    const bool good = dp_block_quantize(job->plan, copy, &dense, 1, threads, job->payload,
                                        job->scale, NULL, error);
    free(copy);
    return good;
}

static bool make_fast(block_job *job)
{
    fenv_t callers;
    dp_environment_enter(&callers);
    const bool fast = dp_bulk_block_plan_make(job->plan, &job->fast);
    dp_environment_leave(&callers);
    return fast;
}

static bool quantize_any(block_job *job, const dp_bulk_options *options, dp_error *error)
{
    const dp_bulk_options chosen = options != NULL ? *options : (dp_bulk_options){0};
    if (!dp_block_shape_of(job->plan, job->tensor, job->axis, &job->shape, error)) {
        return false;
    }
    const size_t elements = job->shape.runs * job->shape.length;
    job->kernels = kernels_of(chosen.path);
    const bool small = chosen.path == DP_PATH_AUTO && elements < TABLES_PAY;
    if (job->kernels == NULL || small || !make_fast(job)) {
        return job->source.bf16
                   ? quantize_copy(job, chosen.threads, error)
                   : dp_block_quantize(job->plan, job->source.data, job->tensor, job->axis,
                                       chosen.threads, job->payload, job->scale, NULL, error);
    }
    job->stream = job->shape.payload_bytes >= STREAM_BYTES;
    if (one_sequence(job)) {
        dp_parallel_for(chosen.threads, job->shape.runs * job->shape.blocks,
                        GRAIN / job->fast.block, sequence_share, job);
    } else {
        dp_parallel_for(chosen.threads, job->shape.runs, run_grain(job), runs_share, job);
    }
    return true;
}

bool dp_bulk_block_quantize_f32(const dp_block_plan *plan, const float *x, const dp_tensor *tensor,
                                size_t axis, const dp_bulk_options *options, uint8_t *payload,
                                uint8_t *scale, dp_error *error)
{
    block_job job = {.plan = plan, .tensor = tensor, .axis = axis, .payload = payload};
    job.scale = scale;
    job.source.data = x;
    return quantize_any(&job, options, error);
}

bool dp_bulk_block_quantize_bf16(const dp_block_plan *plan, const dp_bf16 *x,
                                 const dp_tensor *tensor, size_t axis,
                                 const dp_bulk_options *options, uint8_t *payload, uint8_t *scale,
                                 dp_error *error)
{
    block_job job = {.plan = plan, .tensor = tensor, .axis = axis, .payload = payload};
    job.scale = scale;
    job.source = (dp_bulk_source){x, true};
    return quantize_any(&job, options, error);
}

static uint32_t to_bf16_bits(uint32_t bits)
{
    return dp_minifloat_encode(bits, dp_bf16_format(), DP_ENCODE_NONSAT);
}

static void fill_values(const dp_block_plan *plan, bool bf16, dp_bulk_block_values *values)
{
    fenv_t callers;
    dp_environment_enter(&callers);
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint8_t scale = (uint8_t)byte;
        for (uint32_t code = 0; code < 16; code++) {
            const uint32_t bits = dp_f32_bits(dp_block_value_f32(plan, code, &scale));
            values->value[byte][code] = bf16 ? to_bf16_bits(bits) << 16 : bits;
        }
    }
    dp_environment_leave(&callers);
}

static void values_share(void *context, size_t first, size_t last, int thread)
{
    const block_job *job = context;
    (void)thread;
    job->kernels->dequantize(job->values, job->plan->recipe.block, job->payload_in + first / 2,
                             job->scale_in + first / job->plan->recipe.block, last - first,
                             job->bf16, (uint8_t *)job->out + (job->bf16 ? 2 : 4) * first,
                             job->stream);
}

static void put_value(const block_job *job, ptrdiff_t at, float value)
{
    if (job->bf16) {
        const uint16_t half = (uint16_t)to_bf16_bits(dp_f32_bits(value));
        memcpy((uint8_t *)job->out + 2 * at, &half, sizeof half);
    } else {
        memcpy((uint8_t *)job->out + 4 * at, &value, sizeof value);
    }
}

/* Any recipe, any strides. */
static void values_scalar_share(void *context, size_t first, size_t last, int thread)
{
    const block_job *job = context;
    const ptrdiff_t stride = job->tensor->stride[job->axis];
    const size_t block = job->plan->recipe.block;
    fenv_t callers;
    (void)thread;
    dp_environment_enter(&callers);
    for (size_t run = first; run < last; run++) {
        const uint8_t *payload = job->payload_in + run * job->shape.run_payload_bytes;
        const uint8_t *scale = job->scale_in + run * job->shape.run_scale_bytes;
        const ptrdiff_t offset = run_offset(job, run);
        for (size_t i = 0; i < job->shape.length; i++) {
            const uint32_t code = dp_block_get_code(job->plan, payload, i);
            const uint8_t *own = scale + i / block * job->plan->scale_size;
            put_value(job, offset + (ptrdiff_t)i * stride,
                      dp_block_value_f32(job->plan, code, own));
        }
    }
    dp_environment_leave(&callers);
}

static bool dequantize_any(block_job *job, const dp_bulk_options *options, dp_error *error)
{
    const dp_bulk_options chosen = options != NULL ? *options : (dp_bulk_options){0};
    const dp_block_recipe *r = &job->plan->recipe;
    if (!dp_block_shape_of(job->plan, job->tensor, job->axis, &job->shape, error)) {
        return false;
    }
    const size_t elements = job->shape.runs * job->shape.length;
    job->kernels = kernels_of(chosen.path);
    const bool by_table = job->plan->element_bits == 4 && job->plan->scale_size == 1 &&
                          r->block % 16 == 0 && r->packing == DP_PACK_PAIRS;
    const bool small = chosen.path == DP_PATH_AUTO && elements < VALUES_PAY;
    if (job->kernels == NULL || !by_table || small || !one_sequence(job)) {
        dp_parallel_for(chosen.threads, job->shape.runs, run_grain(job), values_scalar_share, job);
        return true;
    }
    dp_bulk_block_values values;
    fill_values(job->plan, job->bf16, &values);
    job->values = &values;
    job->stream = elements * (job->bf16 ? 2 : 4) >= STREAM_BYTES;
    dp_parallel_for(chosen.threads, elements, GRAIN / r->block * r->block, values_share, job);
    return true;
}

bool dp_bulk_block_dequantize_f32(const dp_block_plan *plan, const uint8_t *payload,
                                  const uint8_t *scale, const dp_tensor *tensor, size_t axis,
                                  const dp_bulk_options *options, float *out, dp_error *error)
{
    block_job job = {.plan = plan, .tensor = tensor, .axis = axis, .payload_in = payload};
    job.scale_in = scale;
    job.out = out;
    return dequantize_any(&job, options, error);
}

bool dp_bulk_block_dequantize_bf16(const dp_block_plan *plan, const uint8_t *payload,
                                   const uint8_t *scale, const dp_tensor *tensor, size_t axis,
                                   const dp_bulk_options *options, dp_bf16 *out, dp_error *error)
{
    block_job job = {.plan = plan, .tensor = tensor, .axis = axis, .payload_in = payload};
    job.scale_in = scale;
    job.out = out;
    job.bf16 = true;
    return dequantize_any(&job, options, error);
}
