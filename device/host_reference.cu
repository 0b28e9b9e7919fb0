/* SPDX-License-Identifier: MIT
 *
 * The host side of the BF16 reference kernel.
 */
#include "device/host.cuh"
#include "device/kernels/kernels.cuh"

using namespace dpd;

bool dp_device_reference(int device, const dp_device_problem *problem, float scale, int repeats,
                         uint16_t *o, float *lse, float *milliseconds, dp_error *error)
{
    enum { DIM = 128 };
    const dp_device_problem &p = *problem;
    dp_device_info info;
    dpd_problem s = {};
    buffer<uint16_t> q, k, v, out;
    buffer<int32_t> kv_of_q;
    buffer<float> out_lse;
    const size_t rows = p.batch * p.q_heads * p.queries;
    const size_t keys = p.batch * p.kv_heads * p.keys;
    if (!dp_device_probe(device, &info, error)) {
        return false;
    }
    if (rows == 0 || keys == 0 || p.queries > (1u << 20) || p.keys > (1u << 20) ||
        p.batch * p.q_heads > 65535) {
        return dp_fail(error,
                       "device: shape %zu x %zu heads, %zu queries, %zu keys: give extents "
                       "from 1 to 2^20 and at most 65535 heads in all",
                       p.batch, p.q_heads, p.queries, p.keys);
    }
    if (!q.allocate(rows * DIM) || !k.allocate(keys * DIM) || !v.allocate(keys * DIM) ||
        !out.allocate(rows * DIM) || !out_lse.allocate(rows) || !kv_of_q.allocate(p.q_heads) ||
        !q.upload(p.q) || !k.upload(p.k) || !v.upload(p.v) || !kv_of_q.upload(p.kv_of_q)) {
        return cuda_failed("taking the reference's memory", error);
    }
    s.batch = (int)p.batch;
    s.q_heads = (int)p.q_heads;
    s.kv_heads = (int)p.kv_heads;
    s.queries = (int)p.queries;
    s.keys = (int)p.keys;
    s.causal = p.causal;
    s.q = q.data();
    s.k = k.data();
    s.v = v.data();
    const auto run = [&] {
        dpd_reference_forward(s, kv_of_q.data(), scale, out.data(), out_lse.data(), nullptr);
    };
    if (milliseconds != nullptr) {
        *milliseconds = timed(repeats, run);
    } else {
        run();
    }
    return finished("the BF16 reference", error) &&
           ((out.get(o, 0, rows * DIM) && out_lse.get(lse, 0, rows)) ||
            cuda_failed("copying results back", error));
}
