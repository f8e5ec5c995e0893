// What the analytic model knows of an architecture's kernels, each number from kernel measurements (never
// from a system): one row per value of Accelerator::architecture.
#pragma once

#include <string_view>

namespace moebius {

struct Architecture {
  std::string_view name;  // "hopper"
  double clock = 0;       // Hz; used when the catalog has none for the chip
  // Tiles of a GEMM, one per core at a time; the reduction goes in steps of 128 bytes of k.
  int max_block_m = 0, max_block_n = 0;
  // Cycles of a step in which the tensor unit waits: barriers, and for block-scaled 8- and 4-bit types the
  // scaling of partial sums in general registers.
  double overhead_16bit = 0, overhead_8bit = 0, overhead_4bit = 0;
  double load_latency =
      0;                // cycles from memory to the core when all stream; a step lasts at least this / stages
  int stages = 0;       // steps in flight
  double prologue = 0;  // cycles before the first product and after the last store of a kernel
  double store_share = 0;  // of the achieved memory rate: the tiles of a wave are stored all at once
  double sustained = 1;    // clock of a GEMM under the power limit over that of a short burst
  double attention = 0;    // share of the peak that the two products of fused attention reach on full tiles
  double core_stream = 0;  // bytes per cycle that one core can keep moving
  float error_gemm = 0, error_attention = 0, error_stream = 0;  // expected relative errors of this row
  std::string_view source;
};

// Null for an architecture without a row: the plain roofline answers for it.
const Architecture* find_architecture(std::string_view name);

}  // namespace moebius
