// Gated delta networks on a device: real/host/host_kernels_delta.h over the sequences of a batch. Index
// arrays stand in the device's memory.
#pragma once

#include <cstdint>

#include "real/cuda/device.h"
#include "real/cuda/storage.h"

namespace moebius::cuda {

// Whose rows those of a batch are, and which row of what is kept is whose.
struct SequenceRows {
  std::int64_t sequences = 0;
  const std::int32_t* first = nullptr;   // row of each sequence, and behind them all rows
  const std::int32_t* owner = nullptr;   // sequence of each row
  const std::int32_t* states = nullptr;  // of each sequence
  const std::int32_t* past = nullptr;    // 0: nothing is kept of it yet
};

struct Convolution {
  SequenceRows rows;
  std::int64_t width = 0;
  Operand x, weight, kept;  // weight[columns, width], kept[., (width - 1) * columns]
};
void convolve(Stream stream, const Convolution& convolution, const Operand& y);

struct DeltaRule {
  SequenceRows rows;
  std::int64_t heads = 1, key_heads = 1, key_dim = 0, value_dim = 0;
  Operand qkv, gates, decay, state;
};
// key_dim is at most kLargestHead.
void delta_rule(Stream stream, const DeltaRule& rule, const Operand& o);

}  // namespace moebius::cuda
