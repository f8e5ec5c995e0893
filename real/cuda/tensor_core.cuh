// Tensor cores as kernels use them: a warp multiplies fragments of 16 x 8 results (PTX ISA, mma.sync.m16n8k16
// for BF16 and m16n8k32 for e4m3). Both read 32-bit words of neighbours along k in the same places, so that
// one set of indices serves both. Without a device the same indices are followed for all lanes of a warp, and
// the product is computed from what PTX says each lane holds.
#pragma once

#include <cstdint>

#include "hw/error.h"
#include "real/cuda/launch.cuh"

#ifdef __CUDACC__
#define MOEBIUS_UNROLL _Pragma("unroll")  // indices of registers are constants then
#define MOEBIUS_NO_UNROLL _Pragma("unroll 1")
#else
#define MOEBIUS_UNROLL
#define MOEBIUS_NO_UNROLL
#endif

namespace moebius::cuda {

inline constexpr int kLanes = 32, kTeamThreads = 256, kTeamWarps = kTeamThreads / kLanes;

enum class Multiplicand : std::uint8_t { kBf16, kE4m3 };
constexpr int per_word(Multiplicand type) {
  return type == Multiplicand::kBf16 ? 2 : 4;
}

// ---- who holds what: lane, register -> place in the fragment ----

inline constexpr int kFragmentRows = 16, kFragmentColumns = 8, kFragmentWords = 8;  // words along k
// a[16 rows][8 words], 4 registers
MOEBIUS_BOTH constexpr int a_row(int lane, int i) {
  return lane / 4 + 8 * (i % 2);
}
MOEBIUS_BOTH constexpr int a_word(int lane, int i) {
  return lane % 4 + 4 * (i / 2);
}
// b[8 columns][8 words], 2 registers
MOEBIUS_BOTH constexpr int b_column(int lane) {
  return lane / 4;
}
MOEBIUS_BOTH constexpr int b_word(int lane, int i) {
  return lane % 4 + 4 * i;
}
// c[16 rows][8 columns], 4 registers
MOEBIUS_BOTH constexpr int c_row(int lane, int i) {
  return lane / 4 + 8 * (i / 2);
}
MOEBIUS_BOTH constexpr int c_column(int lane, int i) {
  return lane % 4 * 2 + i % 2;
}

// A thread's registers in c += a b.
struct Fragments {
  float* c;
  const std::uint32_t *a, *b;
};

// load_matrices(): a warp reads four matrices of 8 x 8 BF16 from shared memory (ldmatrix.x4). Lane 8 m + i
// names where row i of matrix m stands, at 16 bytes: from(thread, lane). A lane gets words[m], two neighbours
// of row lane / 4 of matrix m, from column lane % 4 * 2 on, or of its transpose: to(thread).
enum class MatrixOrder : std::uint8_t { kRows, kTransposed };

// Two numbers as a word of BF16: `low` stands first in memory.
MOEBIUS_BOTH std::uint32_t bf16_word(float low, float high) {
  return static_cast<std::uint32_t>(to_bf16(low)) | static_cast<std::uint32_t>(to_bf16(high)) << 16;
}
// e4m3 fits into BF16: the first (half 0) or the last two codes of a word.
MOEBIUS_BOTH std::uint32_t bf16_of_codes(std::uint32_t word, int half) {
  const std::uint32_t pair = word >> (16 * half);
  return bf16_word(from_e4m3(static_cast<std::uint8_t>(pair)),
                   from_e4m3(static_cast<std::uint8_t>(pair >> 8)));
}

#ifdef __CUDACC__

// What each thread of a team keeps in registers from one step to the next.
template <class T>
class PerThread {
 public:
  __device__ T& operator[](int) { return mine_; }

 private:
  T mine_;
};

template <class F>
__device__ void each_thread(const Team&, const F& f) {
  f(static_cast<int>(threadIdx.x));
}

__device__ inline void multiply_bf16(float* c, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Before compute capability 8.9 there are no 8-bit products: two of BF16 over half of the numbers each. Which
// ones makes no difference, as long as both operands agree.
__device__ inline void multiply_e4m3(const Fragments& f) {
#if __CUDA_ARCH__ >= 890
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(f.c[0]), "+f"(f.c[1]), "+f"(f.c[2]), "+f"(f.c[3])
      : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));
#else
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t a[4] = {bf16_of_codes(f.a[0], half), bf16_of_codes(f.a[1], half),
                                bf16_of_codes(f.a[2], half), bf16_of_codes(f.a[3], half)};
    const std::uint32_t b[2] = {bf16_of_codes(f.b[0], half), bf16_of_codes(f.b[1], half)};
    multiply_bf16(f.c, a, b);
  }
#endif
}

class Warp {
 public:
  __device__ explicit Warp(int index) : index_(index) {}
  __device__ int index() const { return index_; }
  // Calls f(thread, lane) for each lane.
  template <class F>
  __device__ void lanes(const F& f) const {
    f(static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.x) % kLanes);
  }
  // c += a b, with the fragments that of(thread) names. All lanes together.
  template <Multiplicand type, class Of>
  __device__ void multiply(const Of& of) const {
    const Fragments f = of(static_cast<int>(threadIdx.x));
    if constexpr (type == Multiplicand::kE4m3) {
      multiply_e4m3(f);
    } else {
      const std::uint32_t a[4] = {f.a[0], f.a[1], f.a[2], f.a[3]}, b[2] = {f.b[0], f.b[1]};
      multiply_bf16(f.c, a, b);
    }
  }
  // of(thread), a float&, joined over the four lanes that hold the same rows of c, for each of them.
  template <class Of, class Join>
  __device__ void join_rows(const Of& of, const Join& join) const {
    float& mine = of(static_cast<int>(threadIdx.x));
    mine = join(mine, __shfl_xor_sync(0xffffffffu, mine, 1));
    mine = join(mine, __shfl_xor_sync(0xffffffffu, mine, 2));
  }
  // The same over all lanes.
  template <class Of, class Join>
  __device__ void join_all(const Of& of, const Join& join) const {
    float& mine = of(static_cast<int>(threadIdx.x));
    for (int step = 1; step < kLanes; step *= 2) mine = join(mine, __shfl_xor_sync(0xffffffffu, mine, step));
  }

 private:
  int index_;
};

template <class F>
__device__ void each_warp(const Team&, const F& f) {
  f(Warp(static_cast<int>(threadIdx.x) / kLanes));
}

// A place in shared memory, as instructions take it.
class SharedWords {
 public:
  SharedWords() = default;
  __device__ explicit SharedWords(const void* at)
      : bytes_(static_cast<std::uint32_t>(__cvta_generic_to_shared(at))) {}
  __device__ SharedWords operator+(int words) const {
    SharedWords further;
    further.bytes_ = bytes_ + 4 * static_cast<std::uint32_t>(words);
    return further;
  }
  __device__ std::uint32_t bytes() const { return bytes_; }

 private:
  std::uint32_t bytes_;
};

template <MatrixOrder order, class From, class To>
__device__ void load_matrices(const Warp&, const From& from, const To& to) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::uint32_t at = from(thread, thread % kLanes).bytes();
  std::uint32_t* w = to(thread);
  if constexpr (order == MatrixOrder::kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(at));
  }
}

// bf16_word() in one instruction.
__device__ inline std::uint32_t rounded_pair(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// 2^x to two last places; what is no normal number becomes 0.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#else

template <class T>
class PerThread {
 public:
  T& operator[](int thread) { return all_[thread]; }

 private:
  std::vector<T> all_ = std::vector<T>(kTeamThreads);
};

template <class F>
void each_thread(const Team&, const F& f) {
  for (int thread = 0; thread < kTeamThreads; ++thread) f(thread);
}

class Warp {
 public:
  explicit Warp(int index) : index_(index) {}
  int index() const { return index_; }
  template <class F>
  void lanes(const F& f) const {
    for (int lane = 0; lane < kLanes; ++lane) f(index_ * kLanes + lane, lane);
  }
  template <Multiplicand type, class Of>
  void multiply(const Of& of) const {
    constexpr int kDepth = kFragmentWords * per_word(type);
    float a[kFragmentRows][kDepth], b[kFragmentColumns][kDepth];
    lanes([&](int thread, int lane) {
      const Fragments f = of(thread);
      for (int i = 0; i < 4; ++i) unpack<type>(f.a[i], &a[a_row(lane, i)][a_word(lane, i) * per_word(type)]);
      for (int i = 0; i < 2; ++i) unpack<type>(f.b[i], &b[b_column(lane)][b_word(lane, i) * per_word(type)]);
    });
    lanes([&](int thread, int lane) {
      const Fragments f = of(thread);
      for (int i = 0; i < 4; ++i) {
        for (int d = 0; d < kDepth; ++d) f.c[i] += a[c_row(lane, i)][d] * b[c_column(lane, i)][d];
      }
    });
  }
  template <class Of, class Join>
  void join_rows(const Of& of, const Join& join) const {
    for (int first = index_ * kLanes; first < (index_ + 1) * kLanes; first += 4) {
      const float all = join(join(of(first), of(first + 1)), join(of(first + 2), of(first + 3)));
      for (int lane = 0; lane < 4; ++lane) of(first + lane) = all;
    }
  }
  template <class Of, class Join>
  void join_all(const Of& of, const Join& join) const {
    float all = of(index_ * kLanes);
    for (int lane = 1; lane < kLanes; ++lane) all = join(all, of(index_ * kLanes + lane));
    lanes([&](int thread, int) { of(thread) = all; });
  }

 private:
  template <Multiplicand type>
  static void unpack(std::uint32_t word, float* to) {
    for (int i = 0; i < per_word(type); ++i) {
      to[i] = type == Multiplicand::kE4m3 ? from_e4m3(static_cast<std::uint8_t>(word >> (8 * i)))
                                          : from_bf16(static_cast<std::uint16_t>(word >> (16 * i)));
    }
  }
  int index_;
};

template <class F>
void each_warp(const Team&, const F& f) {
  for (int warp = 0; warp < kTeamWarps; ++warp) f(Warp(warp));
}

class SharedWords {
 public:
  SharedWords() = default;
  explicit SharedWords(const void* at) : at_(static_cast<const std::uint32_t*>(at)) {}
  SharedWords operator+(int words) const { return SharedWords(at_ + words); }
  const std::uint32_t* at() const { return at_; }

 private:
  const std::uint32_t* at_ = nullptr;
};

template <MatrixOrder order, class From, class To>
void load_matrices(const Warp& warp, const From& from, const To& to) {
  SharedWords row[kLanes];
  warp.lanes([&](int thread, int lane) {
    row[lane] = from(thread, lane);
    CHECK(reinterpret_cast<std::uintptr_t>(row[lane].at()) % 16 == 0, "a row of a matrix at 16 bytes");
  });
  const auto element = [&](int matrix, int i, int j) {
    return row[8 * matrix + i].at()[j / 2] >> (16 * (j % 2)) & 0xffffu;
  };
  warp.lanes([&](int thread, int lane) {
    const int i = lane / 4, j = lane % 4 * 2;
    for (int m = 0; m < 4; ++m) {
      to(thread)[m] = order == MatrixOrder::kTransposed ? element(m, j, i) | element(m, j + 1, i) << 16
                                                        : element(m, i, j) | element(m, i, j + 1) << 16;
    }
  });
}

inline std::uint32_t rounded_pair(float low, float high) {
  return bf16_word(low, high);
}

inline float fast_exp2(float x) {
  return exp2f(x);
}

#endif

}  // namespace moebius::cuda
