// A cost source that asks another one for each op but once: the fragments of a step hold the same few ops
// again and again, alone and beside others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/cost/cost_source.h"

namespace moebius {

// The other one must give the same answer to the same question. For one thread.
class RememberedCosts final : public CostSource {
 public:
  static constexpr std::size_t kMostKept = 1 << 14;  // then all are forgotten

  explicit RememberedCosts(const CostSource& source) : source_(source) {}

  Cost cost(const CostQuery& query) const override;
  std::string description() const override { return source_.description(); }

 private:
  struct Known {
    CostQuery query;                 // without rows
    std::vector<std::int32_t> rows;  // its rows
    Cost cost;
    bool answers(const CostQuery& other) const;
  };

  const CostSource& source_;
  mutable std::unordered_multimap<std::uint64_t, Known> known_;  // by hash of the query
};

}  // namespace moebius
