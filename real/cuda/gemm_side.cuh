// Operands of the tile kernel (kernels_tile_gemm.cu): how a team brings a slab of one into shared memory, as
// rows of the result by words along k, whichever way it is stored, and where its scales stand.
#pragma once

#include <type_traits>

#include "real/cuda/kernels.h"
#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {

inline constexpr int kTile = kGemmTile;
inline constexpr int kSlabWords = 32;           // along k: 64 BF16 or 128 codes, all that share a scale
inline constexpr int kStride = kSlabWords + 4;  // words of a row: the lanes of a fragment meet all banks
inline constexpr int kWordsOfThread = kTile * kSlabWords / kTeamThreads;  // of one operand's slab
inline constexpr int kOctet = 8;  // rows whose codes stand side by side
// Warps stand 2 x 4 over the tile; each has 4 x 4 fragments.
inline constexpr int kWarpsDown = 2, kAcross = 4, kDown = kTile / kWarpsDown / kFragmentRows;
inline constexpr int kWarpRows = kDown * kFragmentRows, kWarpColumns = kAcross * kFragmentColumns;
static_assert(kTeamWarps / kWarpsDown * kWarpColumns == kTile && kWordsOfThread == 2 * kOctet);

struct alignas(16) Words4 {
  std::uint32_t word[4];
};
struct alignas(8) Words2 {
  std::uint32_t word[2];
};

template <class Wide>
MOEBIUS_DEVICE bool aligned_to(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(Wide) == 0;
}

template <Multiplicand type>
struct CodeOf {
  using Type = std::uint16_t;
};
template <>
struct CodeOf<Multiplicand::kE4m3> {
  using Type = std::uint8_t;
};

// The scale of row r: first[(r >> shift) * step].
struct ScaleLine {
  const float* first = nullptr;
  std::int64_t step = 0;
  int shift = 0;
  MOEBIUS_DEVICE float operator()(std::int64_t row) const { return first[(row >> shift) * step]; }
};
inline constexpr int kBlockShift = 7;
static_assert(1 << kBlockShift == kScaleBlock);

// One operand, as rows (of the result: rows of a, columns of b) and k.
template <Multiplicand type>
struct Side {
  using Code = typename CodeOf<type>::Type;
  static constexpr int kPerWord = per_word(type);

  Operand x;
  bool along_k;  // k runs along the columns of x

  MOEBIUS_DEVICE std::int64_t rows() const { return along_k ? x.rows : x.columns; }
  MOEBIUS_DEVICE const Code* at(std::int64_t row, std::int64_t k) const {
    const Code* codes = static_cast<const Code*>(x.data) + x.first_row * x.columns;
    return codes + (along_k ? row * x.columns + k : k * x.columns + row);
  }
  // The scales of all rows at one k.
  MOEBIUS_DEVICE ScaleLine scales_at(std::int64_t k) const {
    const float* first = x.scales + (along_k ? scale_index(x, 0, k) : scale_index(x, k, 0));
    if (x.storage == Storage::kFp8Blocks)
      return {first, along_k ? block_scale_stride(x.columns) : 1, kBlockShift};
    return {first, along_k ? blocks_of(x.columns) : 1, 0};
  }
  // The first k after this one that has another scale. Weights begin with a block.
  MOEBIUS_DEVICE std::int64_t scale_end(std::int64_t k) const {
    const std::int64_t at = x.storage == Storage::kFp8Columns ? x.first_row + k : k;
    return k + kScaleBlock - at % kScaleBlock;
  }

  // A word at (row, k); zero beyond the rows and from `end` on.
  MOEBIUS_DEVICE std::uint32_t gather(std::int64_t row, std::int64_t k, std::int64_t end) const {
    std::uint32_t word = 0;
    for (int i = 0; i < kPerWord; ++i) {
      if (row < rows() && k + i < end)
        word |= static_cast<std::uint32_t>(*at(row, k + i)) << (32 / kPerWord * i);
    }
    return word;
  }

  // What one thread fetches of the slab at (row, k), and where it puts it.
  MOEBIUS_DEVICE void fetch(int thread, std::int64_t row, std::int64_t k, std::int64_t end,
                            std::uint32_t* words) const {
    along_k ? fetch_rows(thread, row, k, end, words) : fetch_columns(thread, row, k, end, words);
  }
  MOEBIUS_DEVICE void put(int thread, const std::uint32_t* words, std::uint32_t* tile) const {
    MOEBIUS_UNROLL
    for (int i = 0; i < kWordsOfThread; ++i) {
      const int row = along_k ? row_of_quad(thread, i / 4) : first_of_octet(thread, i / kOctet) + i % kOctet;
      const int word = along_k ? thread % kQuads * 4 + i % 4 : thread % kSlabWords;
      tile[row * kStride + word] = words[i];
    }
  }

 private:
  // Rows of words: eight threads to a row, 16 bytes each, four times.
  static constexpr int kQuads = kSlabWords / 4;
  MOEBIUS_DEVICE static int row_of_quad(int thread, int quad) {
    return thread / kQuads + kTeamThreads / kQuads * quad;
  }
  MOEBIUS_DEVICE void fetch_rows(int thread, std::int64_t row, std::int64_t k, std::int64_t end,
                                 std::uint32_t* words) const {
    const std::int64_t first = k + thread % kQuads * 4 * kPerWord;
    MOEBIUS_UNROLL
    for (int quad = 0; quad < kWordsOfThread / 4; ++quad) {
      const std::int64_t r = row + row_of_quad(thread, quad);
      if (r < rows() && first + 4 * kPerWord <= end && aligned_to<Words4>(at(r, first))) {
        const Words4 loaded = *reinterpret_cast<const Words4*>(at(r, first));
        for (int i = 0; i < 4; ++i) words[4 * quad + i] = loaded.word[i];
      } else {
        for (int i = 0; i < 4; ++i) words[4 * quad + i] = gather(r, first + i * kPerWord, end);
      }
    }
  }
  // Eight neighbouring rows at one word of k: their codes stand side by side, a k below the other.
  MOEBIUS_DEVICE static int first_of_octet(int thread, int octet) {
    return (thread / kSlabWords + kTeamThreads / kSlabWords * octet) * kOctet;
  }
  MOEBIUS_DEVICE void fetch_columns(int thread, std::int64_t row, std::int64_t k, std::int64_t end,
                                    std::uint32_t* words) const {
    MOEBIUS_UNROLL
    for (int octet = 0; octet < kWordsOfThread / kOctet; ++octet) {
      fetch_octet(row + first_of_octet(thread, octet), k + thread % kSlabWords * kPerWord, end,
                  words + octet * kOctet);
    }
  }
  MOEBIUS_DEVICE void fetch_octet(std::int64_t row, std::int64_t k, std::int64_t end,
                                  std::uint32_t* words) const {
    using Wide = std::conditional_t<type == Multiplicand::kBf16, Words4, Words2>;
    static_assert(sizeof(Wide) == kOctet * sizeof(Code));
    bool whole = row + kOctet <= rows() && k + kPerWord <= end;
    for (int j = 0; whole && j < kPerWord; ++j) whole = aligned_to<Wide>(at(row, k + j));
    for (int i = 0; i < kOctet; ++i) words[i] = whole ? 0 : gather(row + i, k, end);
    if (!whole) return;
    for (int j = 0; j < kPerWord; ++j) {
      const Wide loaded = *reinterpret_cast<const Wide*>(at(row, k + j));
      for (int i = 0; i < kOctet; ++i) {
        const std::uint32_t code = loaded.word[i / kPerWord] >> (32 / kPerWord * (i % kPerWord));
        words[i] |= static_cast<std::uint32_t>(static_cast<Code>(code)) << (32 / kPerWord * j);
      }
    }
  }
};

}  // namespace moebius::cuda
