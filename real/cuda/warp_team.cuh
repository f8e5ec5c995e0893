// Teams of as many warps as a kernel wants, whose copies into shared memory go on while they compute (PTX
// ISA, cp.async). Without a device a copy is made when it is waited for, and until then its place holds NaN:
// what is read too early, or written over too early, shows.
#pragma once

#include <vector>

#include "hw/error.h"
#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {

// A body of launch_warp_teams() has kWarps, kBlocks (of them on a multiprocessor) and kScratch (in words).

#ifdef __CUDACC__

template <int kWarpsOfTeam>
class WarpTeam {
 public:
  static constexpr int kThreads = kWarpsOfTeam * kLanes;

  __device__ explicit WarpTeam(float* scratch) : scratch_(scratch) {}
  __device__ float* scratch() const { return scratch_; }
  __device__ void sync() const { __syncthreads(); }
  template <class F>
  __device__ void each_warp(const F& f) const {
    f(Warp(static_cast<int>(threadIdx.x) / kLanes));
  }
  template <class F>
  __device__ void each_thread(const F& f) const {
    f(static_cast<int>(threadIdx.x));
  }
  // Begins to copy 16 bytes; zeros where there is nothing. For the thread's own eyes after wait(), for
  // others' after a sync() behind it.
  __device__ void copy(SharedWords to, const void* from, bool there) const {
    const std::size_t global = __cvta_generic_to_global(from);
    const int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to.bytes()), "l"(global), "r"(bytes)
                 : "memory");
  }
  __device__ void wait() const { asm volatile("cp.async.wait_all;" : : : "memory"); }

 private:
  float* scratch_;
};

template <class Body>
__global__ void __launch_bounds__(Body::kWarps* kLanes, Body::kBlocks) warp_teams_kernel(Body body) {
  extern __shared__ float4 warp_team_scratch[];
  body(WarpTeam<Body::kWarps>(reinterpret_cast<float*>(warp_team_scratch)), static_cast<int>(blockIdx.x));
}

template <class Body>
void launch_warp_teams(Stream stream, std::int64_t count, const Body& body) {
  if (count <= 0) return;
  CHECK(count <= 0x7fffffff, "too many teams");
  constexpr int kBytes = Body::kScratch * 4;
  const auto set = [](cudaFuncAttribute attribute, int value) {
    check_call(cudaFuncSetAttribute(warp_teams_kernel<Body>, attribute, value), "cudaFuncSetAttribute");
  };
  set(cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  set(cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  // clang-format off: it takes the brackets apart
  warp_teams_kernel<<<static_cast<unsigned>(count), Body::kWarps * kLanes, kBytes,
                      reinterpret_cast<cudaStream_t>(stream)>>>(body);
  // clang-format on
  check_launch();
}

#else

template <int kWarpsOfTeam>
class WarpTeam {
 public:
  static constexpr int kThreads = kWarpsOfTeam * kLanes;
  static_assert(kWarpsOfTeam <= kTeamWarps);  // PerThread has room for so many

  explicit WarpTeam(std::vector<float>& scratch) : scratch_(scratch) {}
  float* scratch() const { return scratch_.data(); }
  void sync() const {}
  template <class F>
  void each_warp(const F& f) const {
    for (int warp = 0; warp < kWarpsOfTeam; ++warp) f(Warp(warp));
  }
  template <class F>
  void each_thread(const F& f) const {
    for (int thread = 0; thread < kThreads; ++thread) f(thread);
  }
  void copy(SharedWords to, const void* from, bool there) const {
    const std::int64_t word = to.at() - reinterpret_cast<const std::uint32_t*>(scratch_.data());
    CHECK(word >= 0 && word + 4 <= static_cast<std::int64_t>(scratch_.size()) && word % 4 == 0 &&
              (!there || reinterpret_cast<std::uintptr_t>(from) % 16 == 0),
          "a copy at 16 bytes within the scratch");
    memset(&scratch_[word], 0xff, 16);
    begun_.push_back({word, there ? from : nullptr});
  }
  void wait() const {
    for (const Copy& copy : begun_) {
      if (copy.from) {
        memcpy(&scratch_[copy.word], copy.from, 16);
      } else {
        memset(&scratch_[copy.word], 0, 16);
      }
    }
    begun_.clear();
  }

 private:
  struct Copy {
    std::int64_t word;
    const void* from;
  };
  std::vector<float>& scratch_;
  mutable std::vector<Copy> begun_;
};

template <class Body>
void launch_warp_teams(Stream stream, std::int64_t count, const Body& body) {
  enqueue(stream, [=] {
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<float> scratch(Body::kScratch, NAN);
      const WarpTeam<Body::kWarps> team(scratch);
      body(team, static_cast<int>(i));
    }
  });
}

#endif

}  // namespace moebius::cuda
