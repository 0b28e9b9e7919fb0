/* SPDX-License-Identifier: MIT
 *
 * Times of the kernels beside copies, in one run.
 */
#include "device/host.cuh"
#include "device/kernels/kernels.cuh"

namespace
{

using namespace dpd;

enum { DIM = 128 };

/* Memory that launches in a row touch before they return to the first: ten times the cache. */
constexpr size_t SPREAD = (size_t)512 << 20;
constexpr size_t COPY = (size_t)1 << 30;

struct bench {
    const dp_device_problem &p;
    const dp_device_policy &policy;
    int repeats;
    dpd_problem shape;
    buffer<uint8_t> from, to; /* of the copies */
    buffer<uint16_t> q, k, v;
    buffer<int32_t> order, kv_of_q;
    buffer<uint8_t> q_payload, q_scale, k_payload, k_scale, v_payload, v_scale;
};

size_t sets_of(size_t bytes)
{
    return (SPREAD + bytes - 1) / bytes;
}

/* work(set) for each of `sets`, in a row; milliseconds of one. */
template <typename Work> float timed_each(int repeats, size_t sets, Work work)
{
    const float all = timed(repeats, [&] {
        for (size_t i = 0; i < sets; i++) {
            work(i);
        }
    });
    return all / (float)sets;
}

/* A kernel and its rival. */
template <typename Work> dp_device_time measure(bench &b, size_t bytes, Work work)
{
    dp_device_time t = {0, 0, bytes};
    const size_t sets = sets_of(bytes);
    t.ms = timed_each(b.repeats, sets, work);
    t.copy_ms = timed_each(b.repeats, sets, [&](size_t i) {
        for (size_t left = bytes / 2; left > 0;) {
            const size_t part = std::min(left, COPY);
            const size_t at = i * part % (COPY - part + 1) / 256 * 256;
            (void)cudaMemcpyAsync(b.to.data() + at, b.from.data() + at, part,
                                  cudaMemcpyDeviceToDevice);
            left -= part;
        }
    });
    return t;
}

bool open(bench &b, dp_error *error)
{
    const dp_device_problem &p = b.p;
    dpd_problem &s = b.shape;
    s.batch = (int)p.batch;
    s.q_heads = (int)p.q_heads;
    s.kv_heads = (int)p.kv_heads;
    s.queries = (int)p.queries;
    s.keys = (int)p.keys;
    s.key_rows = ((int)p.keys + 127) / 128 * 128;
    s.causal = p.causal;
    const size_t rows = p.batch * p.q_heads * p.queries;
    const size_t keys = p.batch * p.kv_heads * (size_t)s.key_rows;
    const size_t inputs = p.batch * p.kv_heads * p.keys * DIM;
    const bool good = b.from.allocate(COPY) && b.to.allocate(COPY) && b.q.allocate(rows * DIM) &&
                      b.k.allocate(inputs) && b.v.allocate(inputs) && b.order.allocate(p.keys) &&
                      b.kv_of_q.allocate(p.q_heads) && b.q_payload.allocate(rows * 64) &&
                      b.q_scale.allocate(rows * 8) && b.k_payload.allocate(keys * 64) &&
                      b.k_scale.allocate(keys * 8) && b.v_payload.allocate(keys * 64) &&
                      b.v_scale.allocate(keys * 4) && b.q.upload(p.q) && b.k.upload(p.k) &&
                      b.v.upload(p.v) && b.order.upload(p.key_order) && b.kv_of_q.upload(p.kv_of_q);
    s.key_order = b.order.data();
    s.q = b.q.data();
    s.k = b.k.data();
    s.v = b.v.data();
    return good || cuda_failed("taking the benchmark's memory", error);
}

/* Copies of a bf16 array, one a set. */
bool replicate(buffer<uint16_t> &to, const uint16_t *from, size_t count, size_t sets)
{
    bool good = to.allocate(count * sets);
    for (size_t i = 0; good && i < sets; i++) {
        good = cudaMemcpy(to.data() + i * count, from, count * sizeof *from,
                          cudaMemcpyDeviceToDevice) == cudaSuccess;
    }
    return good;
}

bool quantizers(bench &b, dp_device_times *times, dp_error *error)
{
    const dpd_problem &s = b.shape;
    const int heads = s.batch * s.q_heads;
    const int kv = s.batch * s.kv_heads;
    const size_t rows = (size_t)heads * s.queries;
    const size_t keys = (size_t)kv * s.key_rows;
    const size_t key_inputs = (size_t)kv * s.keys * DIM;
    const size_t q_bytes = rows * (2 * DIM + 64 + 8);
    const size_t v_bytes = 2 * key_inputs + keys * (64 + 4);
    const size_t q_sets = sets_of(q_bytes);
    const size_t v_sets = sets_of(v_bytes);
    buffer<uint16_t> q, v;
    buffer<uint8_t> payload, scale;
    if (!replicate(q, s.q, rows * DIM, q_sets) || !replicate(v, s.v, key_inputs, v_sets) ||
        !payload.allocate(std::max(rows * q_sets, keys * v_sets) * 64) ||
        !scale.allocate(std::max(rows * q_sets, keys * v_sets) * 8)) {
        return cuda_failed("taking the quantizers' memory", error);
    }
    for (int fold = 0; fold < 2; fold++) {
        (fold != 0 ? times->folded : times->plain) = measure(b, q_bytes, [&](size_t i) {
            dpd_quantize_qk(q.data() + i * rows * DIM, nullptr, heads, s.queries, s.queries,
                            fold != 0, payload.data() + i * rows * 64, scale.data() + i * rows * 8,
                            nullptr);
        });
    }
    times->values = measure(b, v_bytes, [&](size_t i) {
        dpd_quantize_v(v.data() + i * key_inputs, s.key_order, kv, s.keys, s.key_rows,
                       b.policy.v_zero_nan != 0, payload.data() + i * keys * 64,
                       scale.data() + i * keys * 4, nullptr);
    });
    return finished("the quantizers' benchmark", error);
}

/* Scores of the first key head against each query head, so that every head has its own memory. */
bool producer(bench &b, dp_device_times *times, dp_error *error)
{
    const dpd_problem &s = b.shape;
    const size_t rows = (size_t)s.queries;
    const size_t scores = rows * (size_t)s.key_rows;
    const size_t bytes = scores * 4 + scores / 2 + 3 * (scores / 32); /* a head */
    size_t free_bytes = 0;
    size_t all_bytes = 0;
    (void)cudaMemGetInfo(&free_bytes, &all_bytes);
    const size_t fit = free_bytes / 8 * 7 / (bytes + rows * 4);
    const int heads = (int)std::min((size_t)s.batch * s.q_heads, std::max<size_t>(fit, 1));
    buffer<float> raw, row_ref;
    buffer<uint8_t> p_payload, p_scale;
    buffer<uint16_t> code_sum;
    if (!raw.allocate(scores * heads) || !row_ref.allocate(rows * heads) ||
        !p_payload.allocate(scores / 2 * heads) || !p_scale.allocate(scores / 32 * heads) ||
        !code_sum.allocate(scores / 32 * heads)) {
        return cuda_failed("taking the producer's memory", error);
    }
    for (int h = 0; h < heads; h++) {
        dpd_score(s, b.q_payload.data() + h * rows * 64, b.q_scale.data() + h * rows * 8,
                  b.k_payload.data(), b.k_scale.data(), raw.data() + h * scores, nullptr);
        dpd_reference(s, b.policy, raw.data() + h * scores, row_ref.data() + h * rows, nullptr);
    }
    times->produce_heads = heads;
    times->produce = measure(b, bytes * heads, [&](size_t) {
        dpd_produce(s, b.policy, heads, raw.data(), row_ref.data(), p_scale.data(),
                    p_payload.data(), code_sum.data(), nullptr);
    });
    return finished("the producer's benchmark", error);
}

} // namespace

bool dp_device_bench(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                     int repeats, dp_device_times *times, dp_error *error)
{
    bench b = {*problem, *policy, repeats, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    buffer<uint16_t> o;
    buffer<float> lse;
    if (cudaSetDevice(device) != cudaSuccess) {
        return cuda_failed("selecting the device", error);
    }
    if (!open(b, error)) {
        return false;
    }
    const dpd_problem &s = b.shape;
    const int heads = s.batch * s.q_heads;
    const int kv = s.batch * s.kv_heads;
    const size_t rows = (size_t)heads * s.queries;
    if (!o.allocate(rows * DIM) || !lse.allocate(rows)) {
        return cuda_failed("taking the outputs' memory", error);
    }
    times->copy = measure(b, 2 * COPY, [&](size_t) {
        (void)cudaMemcpyAsync(b.to.data(), b.from.data(), COPY, cudaMemcpyDeviceToDevice);
    });
    const bool fold = policy->fold_k64 != 0;
    dpd_quantize_qk(s.q, nullptr, heads, s.queries, s.queries, fold, b.q_payload.data(),
                    b.q_scale.data(), nullptr);
    dpd_quantize_qk(s.k, s.key_order, kv, s.keys, s.key_rows, fold, b.k_payload.data(),
                    b.k_scale.data(), nullptr);
    dpd_quantize_v(s.v, s.key_order, kv, s.keys, s.key_rows, policy->v_zero_nan != 0,
                   b.v_payload.data(), b.v_scale.data(), nullptr);
    times->fused = timed(repeats, [&] {
        dpd_forward(s, *policy, b.kv_of_q.data(), b.q_payload.data(), b.q_scale.data(),
                    b.k_payload.data(), b.k_scale.data(), b.v_payload.data(), b.v_scale.data(),
                    o.data(), lse.data(), nullptr);
    });
    return finished("the fused benchmark", error) && quantizers(b, times, error) &&
           producer(b, times, error);
}
