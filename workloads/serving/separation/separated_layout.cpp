#include "workloads/serving/separation/separated_layout.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

Group group_of(int first, int count, int rank, int classes) {
  Group group;
  group.ranks.resize(count);
  std::iota(group.ranks.begin(), group.ranks.end(), first);
  group.my_index = rank - first;
  group.num_classes = classes;
  return group;
}

void add_groups(const ServingPlan& plan, RankClass& rank_class) {
  const int rank = rank_class.representative(), all = plan.ranks();
  const bool experts = holds_experts(plan, rank_class);
  const auto set = [&](GroupRole role, const Group& group) {
    rank_class.groups[static_cast<int>(role)] = group;
  };
  set(GroupRole::kExpert, group_of(0, all, rank, plan.fold ? 2 : all));
  set(GroupRole::kTensor, group_of(rank, 1, rank, 1));
  set(GroupRole::kExpertData, group_of(rank, 1, rank, 1));
  const int first = experts ? plan.dp : 0, alike = experts ? plan.apart.ranks : plan.dp;
  set(GroupRole::kData, group_of(first, alike, rank, plan.fold ? 1 : alike));
}

}  // namespace

Layout separated_layout(const ServingPlan& plan) {
  CHECK(plan.experts_apart() && plan.tp == 1,
        fmt::format("{} expert ranks, tp {}", plan.apart.ranks, plan.tp));
  Layout layout;
  layout.ranks = plan.ranks();
  layout.classes.resize(plan.fold ? 2 : layout.ranks);
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const bool experts = rank >= plan.dp;
    layout.class_of_rank.push_back(plan.fold ? experts : rank);
    layout.device_of_rank.push_back(experts ? plan.apart.first_device + rank - plan.dp : rank);
    layout.classes[layout.class_of_rank.back()].ranks.push_back(rank);
  }
  for (RankClass& rank_class : layout.classes) add_groups(plan, rank_class);
  return layout;
}

}  // namespace moebius
