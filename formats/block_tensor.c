/* SPDX-License-Identifier: MIT
 *
 * Runs and tensors: blocks along any axis, ragged tails, threads [B9], [B12].
 */
#include <stdlib.h>

#include "formats/block_internal.h"
#include "formats/parallel.h"

dp_tensor dp_tensor_contiguous(size_t rank, const size_t *shape)
{
    dp_tensor tensor = {rank, {0}, {0}};
    ptrdiff_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
        tensor.shape[i] = shape[i];
        tensor.stride[i] = stride;
        stride *= (ptrdiff_t)shape[i];
    }
    return tensor;
}

bool dp_block_shape_of(const dp_block_plan *plan, const dp_tensor *tensor, size_t axis,
                       dp_block_shape *shape, dp_error *error)
{
    if (tensor->rank < 1 || tensor->rank > DP_RANK_MAX || axis >= tensor->rank) {
        return dp_fail(error,
                       "tensor: axis %zu of rank %zu: use a rank of 1 to %u and an axis "
                       "below it",
                       axis, tensor->rank, DP_RANK_MAX);
    }
    const size_t limit = SIZE_MAX / 64;
    size_t total = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        const size_t extent = tensor->shape[i];
        if (extent == 0 || extent > limit / total) {
            return dp_fail(error,
                           "tensor: extent %zu of axis %zu: empty or too large: use at "
                           "least 1 and a total below 2^58",
                           extent, i);
        }
        total *= extent;
    }
    const size_t block = plan->recipe.block;
    shape->length = tensor->shape[axis];
    shape->runs = total / shape->length;
    shape->blocks = (shape->length + block - 1) / block;
    shape->padded = shape->blocks * block - shape->length;
    const size_t codes = shape->blocks * block;
    shape->run_payload_bytes = plan->element_bits == 4 ? (codes + 1) / 2 : codes;
    shape->run_scale_bytes = shape->blocks * plan->scale_size;
    if (shape->run_payload_bytes > limit / shape->runs) {
        return dp_fail(error,
                       "tensor: %zu runs padded to blocks of %zu: too large: use a shorter "
                       "block",
                       shape->runs, block);
    }
    shape->payload_bytes = shape->runs * shape->run_payload_bytes;
    shape->scale_bytes = shape->runs * shape->run_scale_bytes;
    return true;
}

static void put_code(const dp_block_plan *plan, uint8_t *payload, size_t i, uint8_t code)
{
    if (plan->element_bits == 8) {
        payload[i] = code;
    } else if (plan->recipe.packing == DP_PACK_HALVES) {
        const size_t half = plan->recipe.block / 2;
        const size_t inside = i % plan->recipe.block;
        const size_t byte = i / plan->recipe.block * half + inside % half;
        payload[byte] = (uint8_t)(payload[byte] | (code << (inside < half ? 0u : 4u)));
    } else {
        payload[i / 2] = (uint8_t)(payload[i / 2] | (code << (4u * (i % 2u))));
    }
}

bool dp_block_quantize_run(const dp_block_plan *plan, const float *x, ptrdiff_t stride,
                           size_t length, uint8_t *payload, uint8_t *scale, dp_block_stats *stats,
                           size_t *bad)
{
    const size_t block = plan->recipe.block;
    const size_t codes_in_run = (length + block - 1) / block * block;
    float elements[DP_BLOCK_MAX];
    uint8_t codes[DP_BLOCK_MAX];
    fenv_t callers;
    dp_environment_enter(&callers);
    memset(payload, 0, plan->element_bits == 4 ? (codes_in_run + 1) / 2 : codes_in_run);
    bool ok = true;
    for (size_t start = 0; ok && start < length; start += block) {
        const size_t n = length - start < block ? length - start : block;
        for (size_t i = 0; i < n; i++) {
            elements[i] = x[(ptrdiff_t)(start + i) * stride];
        }
        ok = dp_block_quantize_one(plan, elements, n, codes,
                                   scale + start / block * plan->scale_size, stats, bad);
        if (!ok) {
            *bad += start;
            break;
        }
        for (size_t i = 0; i < n; i++) {
            put_code(plan, payload, start + i, codes[i]);
        }
    }
    dp_environment_leave(&callers);
    return ok;
}

/* Offset of the first element of a run: the run number written in the other axes' extents. */
static ptrdiff_t run_offset(const dp_tensor *tensor, size_t axis, size_t run)
{
    ptrdiff_t offset = 0;
    for (size_t i = tensor->rank; i-- > 0;) {
        if (i != axis) {
            offset += (ptrdiff_t)(run % tensor->shape[i]) * tensor->stride[i];
            run /= tensor->shape[i];
        }
    }
    return offset;
}

typedef struct {
    dp_block_stats stats;
    bool failed;
    size_t run, element; /* of the first refused element this thread met */
} lane;

typedef struct {
    const dp_block_plan *plan;
    const dp_tensor *tensor;
    size_t axis;
    dp_block_shape shape;
    const float *x;
    uint8_t *payload, *scale;
    const uint8_t *payload_in, *scale_in;
    float *out;
    double *out_f64;
    lane *lanes;
} job;

static void quantize_runs(void *context, size_t first, size_t last, int thread)
{
    const job *j = context;
    lane *mine = &j->lanes[thread];
    for (size_t run = first; run < last; run++) {
        size_t bad = 0;
        const bool ok = dp_block_quantize_run(
            j->plan, j->x + run_offset(j->tensor, j->axis, run), j->tensor->stride[j->axis],
            j->shape.length, j->payload + run * j->shape.run_payload_bytes,
            j->scale + run * j->shape.run_scale_bytes, &mine->stats, &bad);
        if (!ok && (!mine->failed || run < mine->run)) {
            mine->failed = true;
            mine->run = run;
            mine->element = bad;
        }
    }
}

/* The first refused element in tensor order, whichever thread met it. */
static bool report(const job *j, int threads, dp_block_stats *stats, dp_error *error)
{
    dp_block_stats sum = {0};
    const lane *first = NULL;
    for (int i = 0; i < threads; i++) {
        dp_block_stats_add(&sum, &j->lanes[i].stats);
        if (j->lanes[i].failed && (first == NULL || j->lanes[i].run < first->run)) {
            first = &j->lanes[i];
        }
    }
    if (stats != NULL) {
        *stats = sum;
    }
    if (first != NULL) {
        return dp_fail(error,
                       "tensor: NaN or infinity at element %zu of run %zu along axis %zu: "
                       "the recipe refuses it: clean the input or name a rule for it",
                       first->element, first->run, j->axis);
    }
    return true;
}

bool dp_block_quantize(const dp_block_plan *plan, const float *x, const dp_tensor *tensor,
                       size_t axis, int threads, uint8_t *payload, uint8_t *scale,
                       dp_block_stats *stats, dp_error *error)
{
    job j = {.plan = plan, .tensor = tensor, .axis = axis, .x = x};
    j.payload = payload;
    j.scale = scale;
    if (!dp_block_shape_of(plan, tensor, axis, &j.shape, error)) {
        return false;
    }
    const int n = dp_parallel_threads(threads);
    j.lanes = calloc((size_t)n, sizeof *j.lanes);
    if (j.lanes == NULL) {
        return dp_fail(error, "tensor: out of memory: use fewer threads");
    }
    dp_parallel_for(n, j.shape.runs, 1 + 4096 / j.shape.length, quantize_runs, &j);
    const bool ok = report(&j, n, stats, error);
    free(j.lanes);
    return ok;
}

static void dequantize_runs(void *context, size_t first, size_t last, int thread)
{
    const job *j = context;
    (void)thread;
    for (size_t run = first; run < last; run++) {
        const ptrdiff_t offset = run_offset(j->tensor, j->axis, run);
        const uint8_t *payload = j->payload_in + run * j->shape.run_payload_bytes;
        const uint8_t *scale = j->scale_in + run * j->shape.run_scale_bytes;
        const ptrdiff_t stride = j->tensor->stride[j->axis];
        if (j->out != NULL) {
            dp_block_dequantize_run(j->plan, payload, scale, j->shape.length, j->out + offset,
                                    stride);
        } else {
            dp_block_dequantize_run_f64(j->plan, payload, scale, j->shape.length,
                                        j->out_f64 + offset, stride);
        }
    }
}

static bool dequantize(job *j, int threads, dp_error *error)
{
    if (!dp_block_shape_of(j->plan, j->tensor, j->axis, &j->shape, error)) {
        return false;
    }
    dp_parallel_for(threads, j->shape.runs, 1 + 4096 / j->shape.length, dequantize_runs, j);
    return true;
}

bool dp_block_dequantize(const dp_block_plan *plan, const uint8_t *payload, const uint8_t *scale,
                         const dp_tensor *tensor, size_t axis, int threads, float *out,
                         dp_error *error)
{
    job j = {.plan = plan, .tensor = tensor, .axis = axis, .out = out};
    j.payload_in = payload;
    j.scale_in = scale;
    return dequantize(&j, threads, error);
}

bool dp_block_dequantize_f64(const dp_block_plan *plan, const uint8_t *payload,
                             const uint8_t *scale, const dp_tensor *tensor, size_t axis,
                             int threads, double *out, dp_error *error)
{
    job j = {.plan = plan, .tensor = tensor, .axis = axis, .out_f64 = out};
    j.payload_in = payload;
    j.scale_in = scale;
    return dequantize(&j, threads, error);
}
