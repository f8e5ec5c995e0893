// Products of warpgroups as Hopper has them (PTX ISA, wgmma.mma_async): 128 threads multiply 64 rows by up to
// 256 columns that both stand in shared memory, 128 bytes of an operand to a line, the 16-byte pieces of a
// line in an order that differs from line to line (128-byte swizzle). Where an operand is stored with k along
// its rows, a line is 128 bytes of k of one row of the tile. Where it is stored the other way round, a line
// is 64 rows of the tile at one k, and lines of 64 k are a panel. Without a device a warpgroup reads the same
// bytes by the same descriptors.
#pragma once

#include <cstdint>
#include <cstring>

#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {

inline constexpr int kGroupThreads = 128, kGroups = kTeamThreads / kGroupThreads;
inline constexpr int kGroupRows = 64;           // of results
inline constexpr int kLine = 128, kPiece = 16;  // bytes
inline constexpr int kPanelLines = 64;          // k of a panel, and rows of the tile in it
inline constexpr int kPanelBytes = kPanelLines * kLine;
inline constexpr int kAtomBytes = 8 * kLine;  // after 8 lines the order of pieces begins anew

// Where a byte stands that would stand at `offset` if pieces kept their order; offsets from 1024 bytes.
MOEBIUS_BOTH constexpr std::uint32_t swizzled(std::uint32_t offset) {
  return offset ^ (offset / kLine % 8 * kPiece);
}

// How a warpgroup finds an operand whose first byte is at `address`: bits 0 to 13 the address, 16 to 29 the
// bytes from one panel to the next, 32 to 45 those from 8 lines to the next 8, all in units of 16; bits 62
// and 63 say 128-byte swizzle. k goes on by addresses within the line, or by lines.
MOEBIUS_BOTH constexpr std::uint64_t operand_descriptor(std::uint32_t address, bool panels) {
  const std::uint64_t panel = panels ? kPanelBytes / 16 : 1;  // without panels nothing reads it
  return (address & 0x3ffffu) / 16 | panel << 16 | std::uint64_t{kAtomBytes / 16} << 32 |
         std::uint64_t{1} << 62;
}

// ---- who holds what: thread of the warpgroup, register -> place in the result ----

MOEBIUS_BOTH constexpr int group_row(int thread, int i) {
  return thread / kLanes * 16 + c_row(thread % kLanes, i % 4);
}
MOEBIUS_BOTH constexpr int group_column(int thread, int i) {
  return i / 4 * 8 + c_column(thread % kLanes, i % 4);
}

// What one instruction multiplies.
template <Multiplicand operand, int columns, bool a_by_panels, bool b_by_panels>
struct GroupProduct {
  static constexpr Multiplicand type = operand;
  static constexpr int kColumns = columns, kRegisters = columns / 2;
  static constexpr bool a_panels = a_by_panels, b_panels = b_by_panels;
  static constexpr int kDepth = type == Multiplicand::kBf16 ? 16 : 32;  // 32 bytes of k
};

// Bytes from an operand at one k to the same at the next that an instruction begins with.
MOEBIUS_BOTH constexpr std::uint32_t next_step(bool panels) {
  return panels ? 2 * kAtomBytes : 32;
}

// A team's shared memory, from a multiple of kAtomBytes on.
struct SharedBytes {
  char* bytes;
  std::uint32_t address;  // as descriptors count
};
inline constexpr std::int64_t kToAlign = kAtomBytes;  // bytes that this may cost

#ifdef __CUDACC__

__device__ inline SharedBytes shared_bytes(const Team& team) {
  char* bytes = reinterpret_cast<char*>(team.scratch());
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(bytes));
  const std::uint32_t skipped = (0u - address) % kAtomBytes;
  return {bytes + skipped, address + skipped};
}

// Copies a piece, or zeros: on its way until copies_wait().
__device__ inline void copy_piece(const SharedBytes& shared, std::uint32_t offset, const char* from,
                                  bool present) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared.address + offset),
               "l"(from), "r"(present ? 16 : 0)
               : "memory");
}
// What was copied since the last call belongs together.
__device__ inline void copies_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// All but the latest kLater groups are there, for warpgroups too once the team has met.
template <int kLater>
__device__ inline void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Registers of an asm statement.
#define MOEBIUS_8_SUMS(c, i)                                                                  \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define MOEBIUS_32_SUMS(c, i) \
  MOEBIUS_8_SUMS(c, i), MOEBIUS_8_SUMS(c, i + 8), MOEBIUS_8_SUMS(c, i + 16), MOEBIUS_8_SUMS(c, i + 24)
#define MOEBIUS_64_SUMS(c) MOEBIUS_32_SUMS(c, 0), MOEBIUS_32_SUMS(c, 32)
#define MOEBIUS_128_SUMS(c) MOEBIUS_64_SUMS(c), MOEBIUS_32_SUMS(c, 64), MOEBIUS_32_SUMS(c, 96)

// c = a b, or += : starts one instruction.
template <class P>
__device__ inline void start_product(float* c, std::uint64_t a, std::uint64_t b, int add) {
  static_assert(P::kColumns == 128 || (P::kColumns == 256 && P::type == Multiplicand::kBf16));
  if constexpr (P::type == Multiplicand::kE4m3) {
    static_assert(!P::a_panels && !P::b_panels, "8-bit operands have k along their lines");
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, add, 1, 1;\n}"
        : MOEBIUS_64_SUMS(c)
        : "l"(a), "l"(b), "r"(add));
  } else if constexpr (P::kColumns == 128) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, add, 1, 1, %67, %68;\n}"
        : MOEBIUS_64_SUMS(c)
        : "l"(a), "l"(b), "r"(add), "n"(P::a_panels), "n"(P::b_panels));
  } else {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "
        "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
        "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
        "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
        "%123, %124, %125, %126, %127}, "
        "%128, %129, add, 1, 1, %131, %132;\n}"
        : MOEBIUS_128_SUMS(c)
        : "l"(a), "l"(b), "r"(add), "n"(P::a_panels), "n"(P::b_panels));
  }
}

#undef MOEBIUS_128_SUMS
#undef MOEBIUS_64_SUMS
#undef MOEBIUS_32_SUMS
#undef MOEBIUS_8_SUMS

class Warpgroup {
 public:
  __device__ explicit Warpgroup(int index) : index_(index) {}
  __device__ int index() const { return index_; }
  // Calls f(thread, its number in the warpgroup).
  template <class F>
  __device__ void threads(const F& f) const {
    f(static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.x) % kGroupThreads);
  }
  // Registers that were written otherwise are seen by products from here on.
  __device__ void fence() const { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  // Starts c = a b, or c += a b, with c where of(thread) says. Nobody touches c before wait().
  template <class P, class Of>
  __device__ void multiply(const SharedBytes&, const Of& of, std::uint64_t a, std::uint64_t b,
                           bool add) const {
    start_product<P>(of(static_cast<int>(threadIdx.x)), a, b, add ? 1 : 0);
  }
  // Products since the last call belong together.
  __device__ void commit() const { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  // All but the latest kLater groups are done.
  template <int kLater>
  __device__ void wait() const {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLater) : "memory");
  }
  // After wait<0>(): results are read from here on.
  template <int kRegisters, class Of>
  __device__ void done(const Of& of) const {
    float* c = of(static_cast<int>(threadIdx.x));
    MOEBIUS_UNROLL
    for (int i = 0; i < kRegisters; ++i) asm volatile("" : "+f"(c[i])::"memory");
  }
  // The four words of each of four neighbouring threads, as rows of a matrix, become its columns.
  template <class Of>
  __device__ void transpose_quads(const Of& of) const {
    std::uint32_t* word = of(static_cast<int>(threadIdx.x));
    MOEBIUS_UNROLL
    for (int step = 1; step < 4; step *= 2) {
      const bool upper = (threadIdx.x & step) != 0;
      MOEBIUS_UNROLL
      for (int i = 0; i < 4; ++i) {
        if ((i & step) != 0) continue;
        const std::uint32_t mine = upper ? word[i] : word[i + step];
        const std::uint32_t other = __shfl_xor_sync(0xffffffffu, mine, step);
        (upper ? word[i] : word[i + step]) = other;
      }
    }
  }

 private:
  int index_;
};

// The index is the same in all lanes, and the compiler sees it.
template <class F>
__device__ void each_warpgroup(const Team&, const F& f) {
  f(Warpgroup(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kGroupThreads, 0)));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool kHasWarpgroups = true;
#else
inline constexpr bool kHasWarpgroups = false;
#endif

// wide_teams_kernel with Body::kBlocks teams to a multiprocessor; empty where there is no such instruction.
template <class Body>
__global__ void __launch_bounds__(kTeamThreads, Body::kBlocks) warpgroups_kernel(Body body) {
  if constexpr (kHasWarpgroups) {
    extern __shared__ float4 wide_scratch[];
    __shared__ double partial[kTeamWarps];
    body(Team(reinterpret_cast<float*>(wide_scratch), partial), blockIdx.x);
  }
}

// Whether this binary has a body for this device: an empty one needs next to no registers.
template <class Body>
bool has_warpgroups() {
  int device = 0, major = 0;
  cudaFuncAttributes found;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  check_call(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  if (major != 9) return false;
  check_call(cudaFuncGetAttributes(&found, warpgroups_kernel<Body>), "cudaFuncGetAttributes");
  return found.numRegs > 64;
}

template <class Body>
void launch_warpgroups(Stream stream, std::int64_t count, std::int64_t bytes, const Body& body) {
  if (count <= 0) return;
  check_call(cudaFuncSetAttribute(warpgroups_kernel<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "cudaFuncSetAttribute");
  // All teams that kBlocks counts have their place.
  check_call(cudaFuncSetAttribute(warpgroups_kernel<Body>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared),
             "cudaFuncSetAttribute");
  // clang-format off: it takes the brackets apart
  warpgroups_kernel<<<static_cast<unsigned>(count), kTeamThreads, bytes,
                      reinterpret_cast<cudaStream_t>(stream)>>>(body);
  // clang-format on
  check_launch();
}

inline int count_multiprocessors() {
  int device = 0, count = 0;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  check_call(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  return count;
}

#else

inline SharedBytes shared_bytes(const Team& team) {
  return {reinterpret_cast<char*>(team.scratch()), 0};
}
inline void copy_piece(const SharedBytes& shared, std::uint32_t offset, const char* from, bool present) {
  present ? std::memcpy(shared.bytes + offset, from, kPiece) : std::memset(shared.bytes + offset, 0, kPiece);
}
inline void copies_commit() {}
template <int kLater>
void copies_wait() {}

class Warpgroup {
 public:
  explicit Warpgroup(int index) : index_(index) {}
  int index() const { return index_; }
  template <class F>
  void threads(const F& f) const {
    for (int i = 0; i < kGroupThreads; ++i) f(index_ * kGroupThreads + i, i);
  }
  void fence() const {}
  template <class P, class Of>
  void multiply(const SharedBytes& shared, const Of& of, std::uint64_t a, std::uint64_t b, bool add) const {
    const std::vector<float> left = numbers<P>(shared, a, kGroupRows, P::a_panels),
                             right = numbers<P>(shared, b, P::kColumns, P::b_panels);
    threads([&](int thread, int own) {
      float* c = of(thread);
      for (int i = 0; i < P::kRegisters; ++i) {
        const float* row = &left[group_row(own, i) * P::kDepth];
        const float* column = &right[group_column(own, i) * P::kDepth];
        float sum = add ? c[i] : 0;
        for (int k = 0; k < P::kDepth; ++k) sum += row[k] * column[k];
        c[i] = sum;
      }
    });
  }
  void commit() const {}
  template <int kLater>
  void wait() const {}
  template <int kRegisters, class Of>
  void done(const Of&) const {}
  template <class Of>
  void transpose_quads(const Of& of) const {
    for (int first = index_ * kGroupThreads; first < (index_ + 1) * kGroupThreads; first += 4) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < i; ++j) std::swap(of(first + i)[j], of(first + j)[i]);
      }
    }
  }

 private:
  // An operand as the instruction finds it: [row][k].
  template <class P>
  static std::vector<float> numbers(const SharedBytes& shared, std::uint64_t descriptor, int rows,
                                    bool panels) {
    constexpr int kSize = 4 / per_word(P::type);
    const auto field = [&](int bit) { return static_cast<int>(descriptor >> bit & 0x3fff) * 16; };
    const int start = field(0), panel = field(16), atom = field(32);
    std::vector<float> all;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < P::kDepth; ++k) {
        const int at = panels ? row / 64 * panel + k / 8 * atom + k % 8 * kLine + row % 64 * kSize
                              : row / 8 * atom + row % 8 * kLine + k * kSize;
        const char* found = shared.bytes + swizzled(static_cast<std::uint32_t>(start + at));
        if constexpr (P::type == Multiplicand::kBf16) {
          std::uint16_t bits;
          std::memcpy(&bits, found, kSize);
          all.push_back(from_bf16(bits));
        } else {
          all.push_back(from_e4m3(static_cast<std::uint8_t>(*found)));
        }
      }
    }
    return all;
  }
  int index_;
};

template <class F>
void each_warpgroup(const Team&, const F& f) {
  for (int index = 0; index < kGroups; ++index) f(Warpgroup(index));
}

template <class Body>
bool has_warpgroups() {
  return true;
}
template <class Body>
void launch_warpgroups(Stream stream, std::int64_t count, std::int64_t bytes, const Body& body) {
  launch_wide_teams(stream, count, bytes / static_cast<std::int64_t>(sizeof(float)), body);
}
inline int count_multiprocessors() {
  return 1;
}

#endif

}  // namespace moebius::cuda
