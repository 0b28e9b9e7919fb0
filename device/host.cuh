/* SPDX-License-Identifier: MIT
 *
 * What the host files share: device arrays, CUDA's errors as values, times by events.
 */
#ifndef DP_DEVICE_HOST_CUH
#define DP_DEVICE_HOST_CUH

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "device/directp_device.h"

namespace dpd
{

/* A device array that frees itself. */
template <typename T> class buffer
{
  public:
    buffer() = default;
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    ~buffer()
    {
        (void)cudaFree(data_);
    }
    bool allocate(size_t count)
    {
        count_ = count;
        return cudaMalloc(&data_, std::max<size_t>(count, 1) * sizeof(T)) == cudaSuccess;
    }
    bool upload(const T *from)
    {
        return cudaMemcpy(data_, from, count_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess;
    }
    /* Part [offset, offset + count) from or to host memory. */
    bool put(const T *from, size_t count)
    {
        return cudaMemcpy(data_, from, count * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess;
    }
    bool get(T *to, size_t offset, size_t count) const
    {
        return to == nullptr || cudaMemcpy(to, data_ + offset, count * sizeof(T),
                                           cudaMemcpyDeviceToHost) == cudaSuccess;
    }
    T *data() const
    {
        return data_;
    }

  private:
    T *data_ = nullptr;
    size_t count_ = 0;
};

inline bool cuda_failed(const char *what, dp_error *error)
{
    const cudaError_t code = cudaGetLastError();
    return dp_fail(error, "device: %s failed (%s): check the device, or use a smaller problem",
                   what, cudaGetErrorString(code));
}

inline bool finished(const char *what, dp_error *error)
{
    return (cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess) ||
           cuda_failed(what, error);
}

inline float median(std::vector<float> times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/* Milliseconds of `work`, median of `repeats` after one warm-up. */
template <typename Work> float timed(int repeats, Work work)
{
    cudaEvent_t start, stop;
    (void)cudaEventCreate(&start);
    (void)cudaEventCreate(&stop);
    std::vector<float> times;
    work();
    for (int i = 0; i < repeats; i++) {
        float ms = 0.0f;
        (void)cudaEventRecord(start);
        work();
        (void)cudaEventRecord(stop);
        (void)cudaEventSynchronize(stop);
        (void)cudaEventElapsedTime(&ms, start, stop);
        times.push_back(ms);
    }
    (void)cudaEventDestroy(start);
    (void)cudaEventDestroy(stop);
    return median(times);
}

} // namespace dpd

#endif
