// The tiers below a replica's device memory, as its scheduler sees them.
#pragma once

#include <cstdint>
#include <span>

#include "hw/units.h"
#include "workloads/serving/kv/block_index.h"

namespace moebius {

// A prompt that is admitted: `there` leading blocks of its chain are in device memory.
struct PromptAsk {
  std::int32_t id = 0;      // of the sequence
  std::int32_t prompt = 0;  // tokens
  kv::Chain chain;
  std::int64_t there = 0;
  Time now;
  bool again = false;  // it was admitted before, and driven out
};

struct LoadedBlocks {
  std::int64_t blocks = 0;  // behind those that are there
  Time ready;               // when the last layer of the last one is in device memory
};

class TiersBelow {
 public:
  virtual ~TiersBelow() = default;
  // Whether a waiting sequence may be admitted, or still waits for blocks that were sent for.
  virtual bool may_start(std::int32_t id, Time now) const = 0;
  // Blocks behind the first `there` in the memory of its own node.
  virtual std::int64_t near(kv::Chain chain, std::int64_t there) const = 0;
  // What comes from below for the prompt; the rest is computed.
  virtual LoadedBlocks load(const PromptAsk& ask) = 0;
  // These went from device memory; when their room is free.
  virtual Time take_in(std::span<const kv::EvictedBlock> blocks, Time now) = 0;
  // All blocks of the chain are in device memory, the first `reused` of them since before.
  virtual void computed(kv::Chain chain, std::int64_t reused, Time now) = 0;
};

}  // namespace moebius
