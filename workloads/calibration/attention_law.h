// Tables of attention kernels that are known by a law of their tiles: what a scenario names where software
// runs another kernel than the measured stacks do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hw/accelerator.h"
#include "workloads/calibration/harvest.h"

namespace moebius {

struct AttentionSize {
  bool backward = false, causal = true;
  std::int64_t sequences = 1, keys = 0;  // as many queries as keys
  int heads = 1, head_dim = 128;
};

struct AttentionLaw {
  std::string name;                                                         // "FlashAttention-2"
  std::string stack;                                                        // by which a scenario names it
  std::string source;                                                       // key of the profile's source
  std::string forward, backward;                                            // notes of the two tables
  std::function<double(const Accelerator&, const AttentionSize&)> seconds;  // of a causal kernel
};

// Both directions, BF16, causal, whole sequences of 512 tokens and more. They answer only where they are
// named.
void add_attention_law(Harvest& harvest, const AttentionLaw& law);

}  // namespace moebius
