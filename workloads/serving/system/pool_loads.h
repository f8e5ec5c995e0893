// What the instances of a pool have before them, kept as it changes: who looks asks only those that changed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/touched_set.h"

namespace moebius {

class PoolLoads {
 public:
  explicit PoolLoads(std::span<Instance> instances);  // outlive it, and stay where they are

  void refresh();  // before anything is asked for
  std::int64_t of(std::int32_t instance, ReplicaBalance by) const {
    return by == ReplicaBalance::kTokens ? tokens_[instance] : requests_[instance];
  }
  const ReplicaLoad& sum() const { return sum_; }  // of all

 private:
  std::span<Instance> instances_;
  TouchedSet changed_;
  std::vector<ReplicaLoad> loads_;
  std::vector<std::int64_t> requests_, tokens_;  // the same, as load_of() has them
  ReplicaLoad sum_;
};

}  // namespace moebius
