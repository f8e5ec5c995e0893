// Iterations of a serving system that cost by their rows, and pools that run them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "workloads/serving/system/serving_system.h"

namespace moebius {

// A millisecond an iteration, and seconds for each row of the fullest replica and for each pair of tokens
// that prompts attend to.
class RowCost : public StepCost {
 public:
  explicit RowCost(double row = 1e-6, double pair = 0) : row_(row), pair_(pair) {}
  double seconds(std::span<const StepShape> replicas) override {
    std::int64_t most = 0, pairs = 0;
    for (const StepShape& shape : replicas) {
      most = std::max(most, shape.rows());
      pairs = std::max(pairs, shape.prefill_pairs);
    }
    return 1e-3 + row_ * static_cast<double>(most) + pair_ * static_cast<double>(pairs);
  }

 private:
  double row_, pair_;
};

// Instances of a thousand pages of 64 tokens.
inline PoolRules paged_pool(PoolRole role, StepCost& cost, int instances = 1) {
  PoolRules pool;
  pool.role = role;
  pool.cost = &cost;
  pool.instances = instances;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 1000;
  return pool;
}

}  // namespace moebius
