#include "workloads/serving/balancing/slot_loads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace moebius {
namespace {

using Slots = std::vector<std::int32_t>;

// Slots of the experts that have several.
std::vector<Slots> repeated(const SlotExperts& expert_of_slot, std::size_t experts) {
  std::vector<Slots> slots(experts);
  for (std::size_t s = 0; s < expert_of_slot.size(); ++s)
    slots[expert_of_slot[s]].push_back(static_cast<std::int32_t>(s));
  slots.erase(std::remove_if(slots.begin(), slots.end(), [](const Slots& of) { return of.size() < 2; }),
              slots.end());
  return slots;
}

class Leveller {
 public:
  Leveller(std::vector<double>& loads, int ranks)
      : loads_(loads),
        of_rank_(static_cast<std::int32_t>(loads.size()) / ranks),
        ranks_(loads_of_ranks(loads, ranks)) {}

  // Pours the load of an expert over its ranks up to one level; returns how much has moved. Slots of one rank
  // share its part equally.
  double pour(const Slots& slots) {
    double load = 0;
    others_.clear();
    for (const std::int32_t slot : slots) {
      load += loads_[slot];
      ranks_[slot / of_rank_] -= loads_[slot];
      others_.push_back(slot / of_rank_);
    }
    std::sort(others_.begin(), others_.end());
    const std::vector<std::int32_t> all = others_;
    others_.erase(std::unique(others_.begin(), others_.end()), others_.end());
    const double level = level_of(load);
    double moved = 0;
    for (const std::int32_t slot : slots) {
      const std::int32_t rank = slot / of_rank_;
      const auto same = static_cast<double>(std::count(all.begin(), all.end(), rank));
      const double part = std::max(0.0, level - ranks_[rank]) / same;
      moved += std::abs(part - loads_[slot]);
      loads_[slot] = part;
    }
    for (const std::int32_t slot : slots) ranks_[slot / of_rank_] += loads_[slot];
    return moved;
  }

 private:
  double level_of(double load) {
    std::sort(others_.begin(), others_.end(),
              [&](std::int32_t a, std::int32_t b) { return ranks_[a] < ranks_[b]; });
    double sum = load, level = 0;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      if (i > 0 && ranks_[others_[i]] >= level) break;
      sum += ranks_[others_[i]];
      level = sum / static_cast<double>(i + 1);
    }
    return level;
  }

  std::vector<double>& loads_;
  std::int32_t of_rank_;
  std::vector<double> ranks_;
  std::vector<std::int32_t> others_;
};

}  // namespace

std::vector<double> loads_of_slots(const SlotExperts& expert_of_slot, const std::vector<double>& expert_loads,
                                   int ranks, TokenSplit split) {
  std::vector<double> replicas(expert_loads.size(), 0.0), loads;
  for (const std::int32_t expert : expert_of_slot) ++replicas[expert];
  double all = 0;
  for (const std::int32_t expert : expert_of_slot) {
    loads.push_back(expert_loads[expert] / replicas[expert]);
    all += loads.back();
  }
  if (split == TokenSplit::kEven) return loads;
  const std::vector<Slots> several = repeated(expert_of_slot, expert_loads.size());
  Leveller leveller(loads, ranks);
  constexpr int kRounds = 64;
  for (int round = 0; round < kRounds; ++round) {
    double moved = 0;
    for (const Slots& slots : several) moved += leveller.pour(slots);
    if (moved <= 1e-6 * all) break;
  }
  return loads;
}

std::vector<double> loads_of_ranks(const std::vector<double>& slot_loads, int ranks) {
  std::vector<double> sums(ranks, 0.0);
  const std::size_t of_rank = slot_loads.size() / ranks;
  for (std::size_t s = 0; s < slot_loads.size(); ++s) sums[s / of_rank] += slot_loads[s];
  return sums;
}

double imbalance_of(const std::vector<double>& rank_loads) {
  const double most = *std::max_element(rank_loads.begin(), rank_loads.end());
  const double sum = std::accumulate(rank_loads.begin(), rank_loads.end(), 0.0);
  return sum > 0 ? most * static_cast<double>(rank_loads.size()) / sum : 1;
}

}  // namespace moebius
