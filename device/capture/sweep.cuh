/* SPDX-License-Identifier: MIT
 *
 * Sweeps over inputs on the device: record y = f(x), or count where a rule disagrees with f.
 */
#ifndef DP_DEVICE_CAPTURE_SWEEP_CUH
#define DP_DEVICE_CAPTURE_SWEEP_CUH

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "device/capture/record.h"

/* Mismatches of a sweep, the least input among them, and what the instruction returned there. */
typedef struct {
    unsigned long long count;
    unsigned first, got, wanted;
} dp_sweep_tally;

/* y[i] = Op(first + i) */
template <class Op, class Y> __global__ void dp_sweep_table(Y *y, uint32_t first, uint32_t count)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        y[i] = (Y)Op::run(first + i);
    }
}

/* y[i] = Op(x[i]) */
template <class Op, class Y> __global__ void dp_sweep_list(Y *y, const uint32_t *x, uint32_t count)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        y[i] = (Y)Op::run(x[i]);
    }
}

/* Op(x) against Rule(x, table) for x = first .. first + count - 1; count may be 2^32. */
template <class Op, class Rule>
__global__ void dp_sweep_check(dp_sweep_tally *tally, const uint32_t *table, uint64_t first,
                               uint64_t count)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count;
         i += (uint64_t)gridDim.x * blockDim.x) {
        const uint32_t x = (uint32_t)(first + i), got = Op::run(x), wanted = Rule::run(x, table);
        if (got != wanted) {
            if (atomicAdd(&tally->count, 1ull) == 0) {
                tally->first = x, tally->got = got, tally->wanted = wanted;
            }
        }
    }
}

/* Attributes `checked`, `check_mismatches`, ... of the current group. */
template <class Op, class Rule>
static void dp_record_check(dp_recorder *r, const char *what, const uint32_t *table, uint64_t first,
                            uint64_t count)
{
    dp_sweep_tally *tally = nullptr, host = dp_sweep_tally();
    (void)cudaMalloc(&tally, sizeof host);
    (void)cudaMemset(tally, 0, sizeof host);
    dp_sweep_check<Op, Rule><<<4096, 256>>>(tally, table, first, count);
    if (dp_record_cuda(r, what, cudaMemcpy(&host, tally, sizeof host, cudaMemcpyDeviceToHost))) {
        (void)dp_h5out_text(r->out, "check_rule", what);
        (void)dp_h5out_int(r->out, "checked", (int64_t)count);
        (void)dp_h5out_int(r->out, "check_mismatches", (int64_t)host.count);
        dp_record_say(r, "  check %s: %llu inputs, %llu mismatches", what,
                      (unsigned long long)count, host.count);
        if (host.count > 0) {
            (void)dp_h5out_int(r->out, "check_mismatch_x", host.first);
            dp_record_say(r, ", one is x %08X: device %08X rule %08X", host.first, host.got,
                          host.wanted);
        }
        dp_record_say(r, "\n");
    }
    (void)cudaFree(tally);
}

/* y of a list of inputs, as datasets x and y. */
template <class Op, class Y>
static void dp_record_list(dp_recorder *r, const uint32_t *x, uint32_t count)
{
    uint32_t *device_x = nullptr;
    Y *device_y = nullptr, *y = (Y *)malloc(count * sizeof *y);
    (void)cudaMalloc(&device_x, count * sizeof *device_x);
    (void)cudaMalloc(&device_y, count * sizeof *device_y);
    (void)cudaMemcpy(device_x, x, count * sizeof *x, cudaMemcpyHostToDevice);
    dp_sweep_list<Op, Y><<<256, 256>>>(device_y, device_x, count);
    if (dp_record_cuda(r, "list",
                       cudaMemcpy(y, device_y, count * sizeof *y, cudaMemcpyDeviceToHost))) {
        (void)dp_h5out_uint(r->out, "x", "case", 4, count, 0, x);
        (void)dp_h5out_uint(r->out, "y", "case", sizeof *y, count, 0, y);
    }
    (void)cudaFree(device_x);
    (void)cudaFree(device_y);
    free(y);
}

/* A complete sweep: attributes `first`, `step` = 1 in place of x. */
template <class Op, class Y>
static void dp_record_range(dp_recorder *r, uint32_t first, uint32_t count)
{
    Y *device_y = nullptr, *y = (Y *)malloc(count * sizeof *y);
    (void)cudaMalloc(&device_y, count * sizeof *device_y);
    dp_sweep_table<Op, Y><<<1024, 256>>>(device_y, first, count);
    if (dp_record_cuda(r, "range",
                       cudaMemcpy(y, device_y, count * sizeof *y, cudaMemcpyDeviceToHost))) {
        (void)dp_h5out_int(r->out, "first", first);
        (void)dp_h5out_int(r->out, "step", 1);
        (void)dp_h5out_uint(r->out, "y", "case", sizeof *y, count, 0, y);
    }
    (void)cudaFree(device_y);
    free(y);
}

#endif
