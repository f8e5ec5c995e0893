// The ranks of an instance whose experts stand apart from attention: first a rank for each replica of
// attention, then those of the experts. All meet in the expert group, in that order.
#pragma once

#include "workloads/schedule/layout.h"
#include "workloads/serving/plan.h"

namespace moebius {

// Folded: one class of each kind. Ranks of experts stand on devices of their own (SeparateExperts).
Layout separated_layout(const ServingPlan& plan);

inline bool holds_experts(const ServingPlan& plan, const RankClass& rank_class) {
  return rank_class.representative() >= plan.dp * plan.tp;
}

}  // namespace moebius
