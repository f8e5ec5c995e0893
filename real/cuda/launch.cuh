// How kernels are started. A kernel is a body: a struct with its operands and operator(), called once for
// each element, or by a team of threads for each row. Under nvcc a team is a block; a compiler without CUDA
// gives each team to one CPU thread, so that tests run the same bodies where there is no device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"

#ifndef __CUDACC__
#include "real/cuda/rehearsal.h"
#else
#include <cuda_runtime.h>

#include <string>

#include "hw/error.h"

namespace moebius::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kWarp = 32;

// The threads of a block. Every thread calls the same functions in the same order.
class Team {
 public:
  __device__ Team(float* scratch, double* partial) : scratch_(scratch), partial_(partial) {}

  __device__ float* scratch() const { return scratch_; }
  __device__ void sync() const { __syncthreads(); }  // what was written before is seen by all after
  // Calls f(i) for each i below count, spread over the threads: i belongs to the same thread each time.
  template <class F>
  __device__ void each(std::int64_t count, const F& f) const {
    for (std::int64_t i = threadIdx.x; i < count; i += kThreads) f(i);
  }
  // The sum, or the largest, of f(i), the same in all threads; an order that depends on count alone.
  template <class T, class F>
  __device__ T sum(std::int64_t count, const F& f) const {
    T mine = 0;
    each(count, [&](std::int64_t i) { mine += f(i); });
    return reduce(mine, [](T a, T b) { return a + b; });
  }
  template <class F>
  __device__ float max(std::int64_t count, const F& f) const {
    float mine = -INFINITY;
    each(count, [&](std::int64_t i) { mine = fmaxf(mine, f(i)); });
    return reduce(mine, [](float a, float b) { return fmaxf(a, b); });
  }

 private:
  // Butterflies give every lane the same bits, and every warp adds the same partial results again.
  template <class T, class Join>
  __device__ T reduce(T value, const Join& join) const {
    T* partial = reinterpret_cast<T*>(partial_);
    for (int step = kWarp / 2; step > 0; step /= 2)
      value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();  // the readers of the last reduction are through
    if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = partial[threadIdx.x % (kThreads / kWarp)];
    for (int step = kThreads / kWarp / 2; step > 0; step /= 2)
      value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
  }

  float* scratch_;
  double* partial_;
};

template <class Body>
__global__ void __launch_bounds__(kThreads) elements_kernel(std::int64_t count, Body body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride)
    body(i);
}

template <class Body>
__global__ void __launch_bounds__(kThreads) teams_kernel(std::int64_t count, Body body) {
  __shared__ float scratch[kScratch];
  __shared__ double partial[kThreads / kWarp];
  Team team(scratch, partial);
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    body(team, i);
    __syncthreads();  // scratch is free for the next row
  }
}

// The same with as much shared memory as the launch asks for.
template <class Body>
__global__ void __launch_bounds__(kThreads) wide_teams_kernel(std::int64_t count, Body body) {
  extern __shared__ float4 wide_scratch[];
  __shared__ double partial[kThreads / kWarp];
  Team team(reinterpret_cast<float*>(wide_scratch), partial);
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    body(team, i);
    __syncthreads();
  }
}

inline void check_call(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // it is told
  throw run_error(std::string("CUDA: ") + call + ": " + cudaGetErrorString(status));
}

inline void check_launch() {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess)
    throw run_error(std::string("CUDA: kernel launch: ") + cudaGetErrorString(status));
}

// body(i) for each i below count.
template <class Body>
void launch_elements(Stream stream, std::int64_t count, const Body& body) {
  constexpr std::int64_t kBlocks = 1 << 16;  // each takes several elements beyond that
  if (count <= 0) return;
  const auto blocks = static_cast<unsigned>(std::min(kBlocks, (count + kThreads - 1) / kThreads));
  // clang-format off: it takes the brackets apart
  elements_kernel<<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(stream)>>>(count, body);
  // clang-format on
  check_launch();
}

// body(team, i) for each i below count.
template <class Body>
void launch_teams(Stream stream, std::int64_t count, const Body& body) {
  constexpr std::int64_t kBlocks = 1 << 30;
  if (count <= 0) return;
  const auto blocks = static_cast<unsigned>(std::min(kBlocks, count));
  // clang-format off: it takes the brackets apart
  teams_kernel<<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(stream)>>>(count, body);
  // clang-format on
  check_launch();
}

// One block for each multiprocessor, which takes its threads' registers and its shared memory whole, so that
// no block of another kernel finds a place beside it: 1024 threads of 64 registers are the 65536 that every
// architecture from Ampere on has.
template <class Wait>
__global__ void __launch_bounds__(1024, 1) occupier_kernel(Wait wait) {
  constexpr int kLive = 54;  // values that stay in registers, since each round needs all of the round before
  float live[kLive];
#pragma unroll
  for (int i = 0; i < kLive; ++i) live[i] = static_cast<float>(threadIdx.x + i);
  if (threadIdx.x == 0) wait.arrive();
  bool over = false;
  while (!over) {
#pragma unroll
    for (int i = 0; i < kLive; ++i) live[i] = 0.5f * (live[i] + live[(i * 7 + 3) % kLive]);
    if (threadIdx.x == 0) over = wait.is_over();
    __nanosleep(1000);
    over = __syncthreads_or(over);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLive; ++i) sum += live[i];
  if (sum < 0) wait.arrive();  // never: averages of numbers that are not negative
}

template <class Wait>
void launch_occupiers(Stream stream, int count, const Wait& wait) {
  int shared = 0;
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaFuncSetAttribute(occupier_kernel<Wait>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  // clang-format off: it takes the brackets apart
  occupier_kernel<<<count, 1024, shared, reinterpret_cast<cudaStream_t>(stream)>>>(wait);
  // clang-format on
  check_launch();
}

// Floats that a team can be given by launch_wide_teams().
inline std::int64_t widest_scratch() {
  int device = 0, bytes = 0;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  check_call(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  constexpr int kOfTeam = 1024;  // partial sums, with room to spare
  return (bytes - kOfTeam) / static_cast<std::int64_t>(sizeof(float));
}

// body(team, i) for each i below count, with a scratch of `floats`, at 16 bytes.
template <class Body>
void launch_wide_teams(Stream stream, std::int64_t count, std::int64_t floats, const Body& body) {
  constexpr std::int64_t kBlocks = 1 << 30;
  if (count <= 0) return;
  const auto blocks = static_cast<unsigned>(std::min(kBlocks, count));
  const auto bytes = static_cast<int>(floats * static_cast<std::int64_t>(sizeof(float)));
  check_call(
      cudaFuncSetAttribute(wide_teams_kernel<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      "cudaFuncSetAttribute");
  // clang-format off: it takes the brackets apart
  wide_teams_kernel<<<blocks, kThreads, bytes, reinterpret_cast<cudaStream_t>(stream)>>>(count, body);
  // clang-format on
  check_launch();
}

}  // namespace moebius::cuda
#endif
