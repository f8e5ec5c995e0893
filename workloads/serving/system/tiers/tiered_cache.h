// The tiers below the device memory of one pool: blocks in each node's host memory and on its drives, ways
// between them that are shared by all that moves, an index of what other nodes have. Everything is decided
// when it is asked for: a transfer's end follows from what its ways have before them (shared_link.h), and a
// block can be found from the moment on at which it is told of, but is not used before it is there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/serving/system/tiers/tier_figures.h"
#include "workloads/serving/system/tiers/tier_rules.h"
#include "workloads/serving/system/tiers/tiers_below.h"

namespace moebius {

// What a router may know of a prompt on a replica's node, in blocks behind those in device memory.
struct BlocksBelow {
  std::int64_t dram = 0, ssd = 0, elsewhere = 0;
};

class TieredCache {
 public:
  explicit TieredCache(const TierRules& rules);
  ~TieredCache();

  TiersBelow& below(std::int32_t replica);
  // A prompt has come to a replica, which has `there` leading blocks: by policy, what is far away is sent
  // for. When it may be admitted, now or later.
  Time arrived(std::int32_t replica, const PromptAsk& ask);
  BlocksBelow find(std::int32_t replica, kv::Chain chain, std::int64_t there, Time now);

  // A replica's NIC, outwards, which other traffic uses too.
  Time sends_from(std::int32_t replica) const;
  void sent(std::int32_t replica, Time end);

  TierFigures figures() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace moebius
