// Blocks in the host's memory, whole pages each; `depth` threads copy from and to other host memory. With a
// device, real/cuda/pinned_tier.h is the tier instead.
#pragma once

#include <memory>

#include "real/tiers/aligned_memory.h"
#include "real/tiers/wall_tier.h"

namespace moebius::kv {

class HostTier : public WallTier {
 public:
  // Times count from `zero`. run_error: no room for the blocks.
  HostTier(const TierShape& shape, HostClock::time_point zero);

  std::string description() const override;
  std::byte* memory(std::int64_t block) override;

 private:
  AlignedMemory blocks_;
  TransferThreads threads_;  // last: they end first
};

}  // namespace moebius::kv
