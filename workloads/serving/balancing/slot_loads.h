// What the slots and ranks of a layer have to compute, where its experts stand in slots.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/serving/balancing/balance_plan.h"

namespace moebius {

// expert_of_slot[s]; slot s is on rank s / (slots / ranks). Every expert has a slot.
using SlotExperts = std::vector<std::int32_t>;

// Loads of slots: those of their experts, divided over replicas. kLoad: such that the sum of squares of the
// ranks' loads is least, which also makes the largest one least (the split is a flow from experts to ranks);
// found by giving each repeated expert in turn its best split beside the others, at most 64 times round.
std::vector<double> loads_of_slots(const SlotExperts& expert_of_slot, const std::vector<double>& expert_loads,
                                   int ranks, TokenSplit split);

std::vector<double> loads_of_ranks(const std::vector<double>& slot_loads, int ranks);

// Most over mean, 1 where nothing is loaded: how much longer the fullest rank computes than the average one.
double imbalance_of(const std::vector<double>& rank_loads);

}  // namespace moebius
