// The keys of a cluster that say how messages between its pools travel: "forwarding", "forwarding_chunk",
// "forwarding_pairs".
#pragma once

#include <string>
#include <vector>

#include "hw/mixed_pools.h"
#include "workloads/scenario/section.h"

namespace moebius {

class ForwardingKeys {
 public:
  ForwardingKeys(Section& cluster, bool describing);
  // Sets spec.by_host and spec.forwarding_chunk. Errors: a pool of no such name, a pair said twice, a pair
  // that goes through host memory of no NIC.
  void set(const std::vector<Pool>& pools, FabricSpec& spec) const;

 private:
  struct Pair {
    std::string first, second;
    Forwarding forwarding = Forwarding::kRdma;
    Place at_first, at_second;
  };
  Forwarding between_vendors_ = Forwarding::kCpu;
  Bytes chunk_;
  std::vector<Pair> pairs_;
};

}  // namespace moebius
