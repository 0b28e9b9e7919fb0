/* SPDX-License-Identifier: MIT
 *
 * Times of the kernels beside a copy, in one run.
 */
#include "device/host.cuh"
#include "device/kernels/kernels.cuh"

namespace
{

using namespace dpd;

enum { DIM = 128 };

struct arrays {
    buffer<uint16_t> q, k, v, o, code_sum;
    buffer<int32_t> order, kv_of_q;
    buffer<uint8_t> q_payload, q_scale, k_payload, k_scale, v_payload, v_scale, p_payload, p_scale;
    buffer<float> raw, row_ref, lse;
    buffer<uint8_t> from, to;
};

bool fill(arrays &a, const dp_device_problem &p, const dpd_problem &shape, size_t copy_bytes)
{
    const size_t rows = p.batch * p.q_heads * p.queries;
    const size_t keys = p.batch * p.kv_heads * (size_t)shape.key_rows;
    const size_t inputs = p.batch * p.kv_heads * p.keys * DIM;
    const size_t scores = p.queries * (size_t)shape.key_rows;
    return a.q.allocate(rows * DIM) && a.k.allocate(inputs) && a.v.allocate(inputs) &&
           a.o.allocate(rows * DIM) && a.lse.allocate(rows) && a.order.allocate(p.keys) &&
           a.kv_of_q.allocate(p.q_heads) && a.q_payload.allocate(rows * 64) &&
           a.q_scale.allocate(rows * 8) && a.k_payload.allocate(keys * 64) &&
           a.k_scale.allocate(keys * 8) && a.v_payload.allocate(keys * 64) &&
           a.v_scale.allocate(keys * 4) && a.raw.allocate(scores) &&
           a.row_ref.allocate(p.queries) && a.p_payload.allocate(scores / 2) &&
           a.p_scale.allocate(scores / 32) && a.code_sum.allocate(scores / 32) &&
           a.from.allocate(copy_bytes) && a.to.allocate(copy_bytes) && a.q.upload(p.q) &&
           a.k.upload(p.k) && a.v.upload(p.v) && a.order.upload(p.key_order) &&
           a.kv_of_q.upload(p.kv_of_q);
}

} // namespace

bool dp_device_bench(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                     int repeats, dp_device_times *times, dp_error *error)
{
    const dp_device_problem &p = *problem;
    arrays a;
    dpd_problem s = {};
    s.batch = (int)p.batch;
    s.q_heads = (int)p.q_heads;
    s.kv_heads = (int)p.kv_heads;
    s.queries = (int)p.queries;
    s.keys = (int)p.keys;
    s.key_rows = ((int)p.keys + 127) / 128 * 128;
    s.causal = p.causal;
    times->copy_bytes = (size_t)1 << 30;
    if (cudaSetDevice(device) != cudaSuccess || !fill(a, p, s, times->copy_bytes)) {
        return cuda_failed("taking the benchmark's memory", error);
    }
    s.key_order = a.order.data();
    s.q = a.q.data();
    s.k = a.k.data();
    s.v = a.v.data();
    const int heads = s.batch * s.q_heads;
    const int kv = s.batch * s.kv_heads;
    const auto plain = [&](bool fold) {
        dpd_quantize_qk(s.q, nullptr, heads, s.queries, s.queries, fold, a.q_payload.data(),
                        a.q_scale.data(), nullptr);
    };
    times->copy = timed(repeats, [&] {
        (void)cudaMemcpyAsync(a.to.data(), a.from.data(), times->copy_bytes,
                              cudaMemcpyDeviceToDevice);
    });
    times->plain = timed(repeats, [&] { plain(false); });
    times->folded = timed(repeats, [&] { plain(true); });
    times->values = timed(repeats, [&] {
        dpd_quantize_v(s.v, s.key_order, kv, s.keys, s.key_rows, policy->v_zero_nan != 0,
                       a.v_payload.data(), a.v_scale.data(), nullptr);
    });
    plain(policy->fold_k64 != 0);
    dpd_quantize_qk(s.k, s.key_order, kv, s.keys, s.key_rows, policy->fold_k64 != 0,
                    a.k_payload.data(), a.k_scale.data(), nullptr);
    dpd_score(s, a.q_payload.data(), a.q_scale.data(), a.k_payload.data(), a.k_scale.data(),
              a.raw.data(), nullptr);
    dpd_reference(s, *policy, a.raw.data(), a.row_ref.data(), nullptr);
    times->produce = timed(repeats, [&] {
        dpd_produce(s, *policy, a.raw.data(), a.row_ref.data(), a.p_scale.data(),
                    a.p_payload.data(), a.code_sum.data(), nullptr);
    });
    times->fused = timed(repeats, [&] {
        dpd_forward(s, *policy, a.kv_of_q.data(), a.q_payload.data(), a.q_scale.data(),
                    a.k_payload.data(), a.k_scale.data(), a.v_payload.data(), a.v_scale.data(),
                    a.o.data(), a.lse.data(), nullptr);
    });
    return finished("the benchmark", error);
}
