/* SPDX-License-Identifier: MIT
 *
 * The host side: memory, launches, errors as values.
 */
#include <cstdio>
#include <cstring>

#include "device/host.cuh"
#include "device/kernels/kernels.cuh"

namespace
{

using namespace dpd;

enum { DIM = 128 };

/* Problem and operands on the device. */
struct session {
    dpd_problem shape = {};
    size_t heads = 0, kv = 0; /* batch * heads */
    buffer<uint16_t> q, k, v;
    buffer<int32_t> order, kv_of_q;
    buffer<uint8_t> q_payload, q_scale, k_payload, k_scale, v_payload, v_scale;
};

bool open(session &s, const dp_device_problem &p, bool inputs, dp_error *error)
{
    if (p.batch == 0 || p.q_heads == 0 || p.kv_heads == 0 || p.queries == 0 || p.keys == 0 ||
        p.queries > (1u << 20) || p.keys > (1u << 20) || p.batch * p.q_heads > 65535) {
        return dp_fail(error,
                       "device: shape %zu x %zu heads, %zu queries, %zu keys: give extents "
                       "from 1 to 2^20 and at most 65535 heads in all",
                       p.batch, p.q_heads, p.queries, p.keys);
    }
    s.shape.batch = (int)p.batch;
    s.shape.q_heads = (int)p.q_heads;
    s.shape.kv_heads = (int)p.kv_heads;
    s.shape.queries = (int)p.queries;
    s.shape.keys = (int)p.keys;
    s.shape.key_rows = ((int)p.keys + 127) / 128 * 128;
    s.shape.causal = p.causal;
    s.heads = p.batch * p.q_heads;
    s.kv = p.batch * p.kv_heads;
    const size_t key_rows = s.kv * (size_t)s.shape.key_rows;
    const size_t rows = s.heads * p.queries;
    bool good = s.order.allocate(p.keys) && s.kv_of_q.allocate(p.q_heads) &&
                s.q_payload.allocate(rows * 64) && s.q_scale.allocate(rows * 8) &&
                s.k_payload.allocate(key_rows * 64) && s.k_scale.allocate(key_rows * 8) &&
                s.v_payload.allocate(key_rows * 64) && s.v_scale.allocate(key_rows * 4) &&
                s.order.upload(p.key_order) && s.kv_of_q.upload(p.kv_of_q);
    if (good && inputs) {
        good = s.q.allocate(rows * DIM) && s.k.allocate(s.kv * p.keys * DIM) &&
               s.v.allocate(s.kv * p.keys * DIM) && s.q.upload(p.q) && s.k.upload(p.k) &&
               s.v.upload(p.v);
    }
    s.shape.key_order = s.order.data();
    s.shape.q = s.q.data();
    s.shape.k = s.k.data();
    s.shape.v = s.v.data();
    return good || cuda_failed("taking the problem's memory", error);
}

void launch_quantize(const session &s, const dp_device_policy &policy)
{
    const dpd_problem &p = s.shape;
    dpd_quantize_qk(p.q, nullptr, (int)s.heads, p.queries, p.queries, policy.fold_k64 != 0,
                    s.q_payload.data(), s.q_scale.data(), nullptr);
    dpd_quantize_qk(p.k, p.key_order, (int)s.kv, p.keys, p.key_rows, policy.fold_k64 != 0,
                    s.k_payload.data(), s.k_scale.data(), nullptr);
    dpd_quantize_v(p.v, p.key_order, (int)s.kv, p.keys, p.key_rows, policy.v_zero_nan != 0,
                   s.v_payload.data(), s.v_scale.data(), nullptr);
}

bool quantize(session &s, const dp_device_policy &policy, const dp_device_stages &out,
              dp_error *error)
{
    launch_quantize(s, policy);
    if (!finished("quantization", error)) {
        return false;
    }
    const size_t rows = s.heads * (size_t)s.shape.queries;
    const size_t keys = s.kv * (size_t)s.shape.key_rows;
    return (s.q_payload.get(out.q_payload, 0, rows * 64) &&
            s.q_scale.get(out.q_scale, 0, rows * 8) &&
            s.k_payload.get(out.k_payload, 0, keys * 64) &&
            s.k_scale.get(out.k_scale, 0, keys * 8) &&
            s.v_payload.get(out.v_payload, 0, keys * 64) &&
            s.v_scale.get(out.v_scale, 0, keys * 4)) ||
           cuda_failed("copying the operands back", error);
}

/* What score and accumulate need when quantize does not run. Absent arrays stay unset. */
bool upload_operands(session &s, const dp_device_stages &in, bool qk, bool v, dp_error *error)
{
    const bool have = (!qk || (in.q_payload && in.q_scale && in.k_payload && in.k_scale)) &&
                      (!v || (in.v_payload && in.v_scale));
    if (!have) {
        return dp_fail(error,
                       "device: operands are missing: give the quantize stage's data, or start "
                       "at quantize");
    }
    const bool good = (!qk || (s.q_payload.upload(in.q_payload) && s.q_scale.upload(in.q_scale) &&
                               s.k_payload.upload(in.k_payload) && s.k_scale.upload(in.k_scale))) &&
                      (!v || (s.v_payload.upload(in.v_payload) && s.v_scale.upload(in.v_scale)));
    return good || cuda_failed("copying the operands", error);
}

/* Arrays of one head. */
struct head_buffers {
    buffer<float> raw, row_ref, row_sum, acc, lse;
    buffer<uint8_t> p_scale, p_payload;
    buffer<uint16_t> code_sum, o;
};

bool allocate(head_buffers &h, const dpd_problem &p, dp_error *error)
{
    const size_t rows = (size_t)p.queries;
    const size_t keys = (size_t)p.key_rows;
    return (h.raw.allocate(rows * keys) && h.row_ref.allocate(rows) && h.row_sum.allocate(rows) &&
            h.acc.allocate(rows * DIM) && h.lse.allocate(rows) &&
            h.p_scale.allocate(rows * keys / 32) && h.p_payload.allocate(rows * keys / 2) &&
            h.code_sum.allocate(rows * keys / 32) && h.o.allocate(rows * DIM)) ||
           cuda_failed("taking one head's memory", error);
}

/* Upload what a stage reads, if it was not computed before. */
template <typename T>
bool give(buffer<T> &to, const T *from, size_t offset, size_t count, const char *what,
          dp_error *error)
{
    if (from == nullptr) {
        return dp_fail(error, "device: %s is missing: it is what the first stage starts from",
                       what);
    }
    return to.put(from + offset, count) || cuda_failed("copying a stage", error);
}

struct span {
    dp_device_stage first, last;
    bool has(dp_device_stage stage) const
    {
        return stage >= first && stage <= last;
    }
};

bool run_head(const session &s, const dp_device_policy &policy, span stages, size_t head, size_t kv,
              const dp_device_stages &data, head_buffers &h, dp_error *error)
{
    const dpd_problem &p = s.shape;
    const size_t rows = (size_t)p.queries;
    const size_t keys = (size_t)p.key_rows;
    const size_t scores = rows * keys;
    const size_t at = head * rows;
    bool good = true;
    if (stages.has(DP_DEVICE_SCORE)) {
        dpd_score(p, s.q_payload.data() + at * 64, s.q_scale.data() + at * 8,
                  s.k_payload.data() + kv * keys * 64, s.k_scale.data() + kv * keys * 8,
                  h.raw.data(), nullptr);
    } else if (stages.has(DP_DEVICE_REFERENCE) || stages.has(DP_DEVICE_CODE)) {
        good = give(h.raw, data.raw, head * scores, scores, "raw", error);
    }
    if (stages.has(DP_DEVICE_REFERENCE)) {
        dpd_reference(p, policy, h.raw.data(), h.row_ref.data(), nullptr);
    } else if (good && (stages.has(DP_DEVICE_CODE) || stages.has(DP_DEVICE_OUTPUT))) {
        good = give(h.row_ref, data.row_ref, at, rows, "row_ref", error);
    }
    if (good && stages.has(DP_DEVICE_CODE)) {
        dpd_produce(p, policy, 1, h.raw.data(), h.row_ref.data(), h.p_scale.data(),
                    h.p_payload.data(), h.code_sum.data(), nullptr);
    } else if (good && (stages.has(DP_DEVICE_DENOMINATOR) || stages.has(DP_DEVICE_ACCUMULATE))) {
        good =
            give(h.p_scale, data.p_scale, head * scores / 32, scores / 32, "p_scale", error) &&
            (!stages.has(DP_DEVICE_DENOMINATOR) ||
             give(h.code_sum, data.code_sum, head * scores / 32, scores / 32, "code_sum", error)) &&
            (!stages.has(DP_DEVICE_ACCUMULATE) ||
             give(h.p_payload, data.p_payload, head * scores / 2, scores / 2, "p_payload", error));
    }
    if (good && stages.has(DP_DEVICE_DENOMINATOR)) {
        dpd_denominate(p, policy, h.p_scale.data(), h.code_sum.data(), h.row_sum.data(), nullptr);
    } else if (good && stages.has(DP_DEVICE_OUTPUT)) {
        good = give(h.row_sum, data.row_sum, at, rows, "row_sum", error);
    }
    if (good && stages.has(DP_DEVICE_ACCUMULATE)) {
        dpd_accumulate(p, h.p_payload.data(), h.p_scale.data(), s.v_payload.data() + kv * keys * 64,
                       s.v_scale.data() + kv * keys * 4, h.acc.data(), nullptr);
    } else if (good && stages.has(DP_DEVICE_OUTPUT)) {
        good = give(h.acc, data.acc, at * DIM, rows * DIM, "acc", error);
    }
    if (good && stages.has(DP_DEVICE_OUTPUT)) {
        dpd_output(p, policy, h.row_ref.data(), h.row_sum.data(), h.acc.data(), h.o.data(),
                   h.lse.data(), nullptr);
    }
    return good && finished("a stage", error);
}

template <typename T> T *part(T *array, size_t offset)
{
    return array != nullptr ? array + offset : nullptr;
}

bool fetch_head(const session &s, span stages, size_t head, const dp_device_stages &out,
                const head_buffers &h, dp_error *error)
{
    const size_t rows = (size_t)s.shape.queries;
    const size_t scores = rows * (size_t)s.shape.key_rows;
    const size_t at = head * rows;
    bool good = true;
    if (stages.has(DP_DEVICE_SCORE)) {
        good = good && h.raw.get(part(out.raw, head * scores), 0, scores);
    }
    if (stages.has(DP_DEVICE_REFERENCE)) {
        good = good && h.row_ref.get(part(out.row_ref, at), 0, rows);
    }
    if (stages.has(DP_DEVICE_CODE)) {
        good = good && h.p_scale.get(part(out.p_scale, head * scores / 32), 0, scores / 32) &&
               h.p_payload.get(part(out.p_payload, head * scores / 2), 0, scores / 2) &&
               h.code_sum.get(part(out.code_sum, head * scores / 32), 0, scores / 32);
    }
    if (stages.has(DP_DEVICE_DENOMINATOR)) {
        good = good && h.row_sum.get(part(out.row_sum, at), 0, rows);
    }
    if (stages.has(DP_DEVICE_ACCUMULATE)) {
        good = good && h.acc.get(part(out.acc, at * DIM), 0, rows * DIM);
    }
    if (stages.has(DP_DEVICE_OUTPUT)) {
        good = good && h.o.get(part(out.o, at * DIM), 0, rows * DIM) &&
               h.lse.get(part(out.lse, at), 0, rows);
    }
    return good || cuda_failed("copying results back", error);
}

} // namespace

bool dp_device_probe(int device, dp_device_info *info, dp_error *error)
{
    memset(info, 0, sizeof *info);
    int count = 0;
    (void)cudaDriverGetVersion(&info->driver);
    (void)cudaRuntimeGetVersion(&info->runtime);
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        return dp_fail(error,
                       "device: no CUDA device here: run on a machine with an NVIDIA GPU and a "
                       "driver for CUDA 13.0");
    }
    cudaDeviceProp properties;
    if (device < 0 || device >= count ||
        cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
        return dp_fail(error, "device: %d: there are %d devices, counted from 0", device, count);
    }
    (void)snprintf(info->name, sizeof info->name, "%s", properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
    info->memory = properties.totalGlobalMem;
    if (cudaSetDevice(device) != cudaSuccess) {
        return cuda_failed("selecting the device", error);
    }
    return true;
}

bool dp_device_run(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                   dp_device_stage first, dp_device_stage last, dp_device_stages *stages,
                   dp_error *error)
{
    dp_device_info info;
    session s;
    head_buffers h;
    const span range = {first, last};
    if (!dp_device_probe(device, &info, error) ||
        !open(s, *problem, first == DP_DEVICE_QUANTIZE, error)) {
        return false;
    }
    if (first == DP_DEVICE_QUANTIZE) {
        if (!quantize(s, *policy, *stages, error)) {
            return false;
        }
    } else if (!upload_operands(s, *stages, range.has(DP_DEVICE_SCORE),
                                range.has(DP_DEVICE_ACCUMULATE), error)) {
        return false;
    }
    if (last == DP_DEVICE_QUANTIZE) {
        return true;
    }
    if (!allocate(h, s.shape, error)) {
        return false;
    }
    for (size_t head = 0; head < s.heads; head++) {
        const size_t kv = head / problem->q_heads * problem->kv_heads +
                          (size_t)problem->kv_of_q[head % problem->q_heads];
        if (!run_head(s, *policy, range, head, kv, *stages, h, error) ||
            !fetch_head(s, range, head, *stages, h, error)) {
            return false;
        }
    }
    return true;
}

bool dp_device_forward(int device, const dp_device_problem *problem, const dp_device_policy *policy,
                       int repeats, uint16_t *o, float *lse, float milliseconds[2], dp_error *error)
{
    dp_device_info info;
    session s;
    buffer<uint16_t> out;
    buffer<float> out_lse;
    if (!dp_device_probe(device, &info, error) || !open(s, *problem, true, error)) {
        return false;
    }
    const size_t rows = s.heads * problem->queries;
    if (!out.allocate(rows * DIM) || !out_lse.allocate(rows)) {
        return cuda_failed("taking the outputs' memory", error);
    }
    const auto fused = [&] {
        dpd_forward(s.shape, *policy, s.kv_of_q.data(), s.q_payload.data(), s.q_scale.data(),
                    s.k_payload.data(), s.k_scale.data(), s.v_payload.data(), s.v_scale.data(),
                    out.data(), out_lse.data(), nullptr);
    };
    const auto operands = [&] { launch_quantize(s, *policy); };
    if (repeats > 0) {
        milliseconds[0] = timed(repeats, operands);
        milliseconds[1] = timed(repeats, fused);
    } else {
        operands();
        fused();
    }
    return finished("the fused forward", error) &&
           ((out.get(o, 0, rows * DIM) && out_lse.get(lse, 0, rows)) ||
            cuda_failed("copying results back", error));
}
