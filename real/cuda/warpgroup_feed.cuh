// How a team of warpgroups brings slabs of an operand into shared memory (kernels_warpgroup_gemm.cu).
#pragma once

#include "real/cuda/kernels.h"
#include "real/cuda/warpgroup.cuh"

namespace moebius::cuda {

inline constexpr int kLinesAtOnce = kTeamThreads * kPiece / kLine;  // that a team copies, a piece to a thread

// How one thread brings slabs of one operand into shared memory: one piece of every kLinesAtOnce-th line.
template <int kSize, bool panels, int kTileRows, bool of_slabs>
struct Feed {
  static constexpr int kTimes = kTileRows / kLinesAtOnce;
  static constexpr int kSlab = kLine / kSize;  // k
  const char* next;                            // of its first line in the slab that comes next
  std::int64_t pitch;                          // bytes from a row of the stored matrix to the next
  std::int64_t left;                           // of k, from the piece in its first line on
  int times;                                   // lines that hold rows of the tile
  std::uint32_t place;                         // of its first piece in the stage

  MOEBIUS_DEVICE void start(int thread, const Operand& x, std::int64_t row) {
    const int line = thread / (kLine / kPiece), piece = thread % (kLine / kPiece);
    pitch = x.columns * kSize;
    next = static_cast<const char*>(x.data) + x.first_row * pitch;
    std::int64_t lines;
    if constexpr (panels) {
      next += line * pitch + row * kSize + piece * kPiece;
      left = x.rows - line;
      lines = (x.columns - row - piece * (kPiece / kSize) + kPanelLines - 1) / kPanelLines *
              (kPanelLines / kLinesAtOnce);
    } else {
      next += (row + line) * pitch + piece * kPiece;
      left = x.columns - piece * (kPiece / kSize);
      lines = (x.rows - row - line + kLinesAtOnce - 1) / kLinesAtOnce;
    }
    times = lines < 0 ? 0 : lines > kTimes ? kTimes : static_cast<int>(lines);
    place = swizzled(line * kLine + piece * kPiece);
  }

  // Of codes that turn_rows() left, from this slab on: lines stand as they will in a stage.
  MOEBIUS_DEVICE void start_at_slab(int thread, const Operand& x, const std::uint8_t* codes,
                                    std::int64_t slab, std::int64_t row) {
    const int line = thread / (kLine / kPiece), piece = thread % (kLine / kPiece);
    pitch = x.columns * kLine;  // from a slab to the next
    next = reinterpret_cast<const char*>(codes) + slab * pitch + (row + line) * kLine + piece * kPiece;
    const std::int64_t lines = (x.columns - row - line + kLinesAtOnce - 1) / kLinesAtOnce;
    times = lines < 0 ? 0 : lines > kTimes ? kTimes : static_cast<int>(lines);
    place = swizzled(line * kLine + piece * kPiece);
  }

  MOEBIUS_DEVICE void fetch(const SharedBytes& shared, std::uint32_t stage) {
    constexpr int kOfPanel = kPanelLines / kLinesAtOnce;
    MOEBIUS_UNROLL
    for (int i = 0; i < kTimes; ++i) {
      if (i >= times) continue;
      const std::uint32_t at = stage + place + i * kLinesAtOnce * kLine;
      if constexpr (of_slabs) {
        copy_piece(shared, at, next + i * kLinesAtOnce * kLine, true);
      } else if constexpr (panels) {
        const int below = i % kOfPanel * kLinesAtOnce;
        copy_piece(shared, at, next + below * pitch + i / kOfPanel * kLine, below < left);
      } else {
        copy_piece(shared, at, next + i * kLinesAtOnce * pitch, left > 0);
      }
    }
    next += of_slabs ? pitch : panels ? kSlab * pitch : kLine;
    left -= kSlab;
  }
};

}  // namespace moebius::cuda
