#include "workloads/serving/shared_experts.h"

#include <utility>
#include <vector>

#include "workloads/serving/balancing/expert_placement.h"

namespace moebius {
namespace {

constexpr std::int32_t kRouted = -1;
using SharedOfSlot = std::vector<std::int32_t>;  // index of the shared expert there, or kRouted

// By the placement that balances, were those that tokens choose all as likely.
SharedOfSlot placed_by_load(const ServingPlan& plan, const Experts& experts) {
  const double chance = static_cast<double>(experts.active - experts.always) / experts.routed;
  std::vector<double> loads(experts.routed, chance);
  loads.insert(loads.end(), experts.always, 1.0);
  SharedOfSlot slots =
      place_experts(
          loads, {.experts = experts.routed + experts.always, .replicas = plan.expert_slots, .gpus = plan.ep})
          .expert_of_slot;
  for (std::int32_t& expert : slots) expert = expert < experts.routed ? kRouted : expert - experts.routed;
  return slots;
}

// Behind the routed experts of each rank.
SharedOfSlot copied_to_all_ranks(const ServingPlan& plan, const Experts& experts) {
  const int of_rank = plan.expert_slots / plan.ep, routed = of_rank - experts.always;
  SharedOfSlot slots;
  for (int slot = 0; slot < plan.expert_slots; ++slot)
    slots.push_back(slot % of_rank < routed ? kRouted : slot % of_rank - routed);
  return slots;
}

}  // namespace

Model served_model(const Model& model, const ServingPlan& plan) {
  return plan.shared_experts == SharedExperts::kSeparate ? model : shared_among_routed(model);
}

ExpertSlotsPtr even_slots(const ServingPlan& plan, const Experts& experts) {
  if (experts.always == 0 || plan.expert_slots == 0) return {};
  const SharedOfSlot shared = plan.shared_experts == SharedExperts::kFused
                                  ? copied_to_all_ranks(plan, experts)
                                  : placed_by_load(plan, experts);
  std::vector<int> copies(experts.always, 0);
  std::int32_t routed = 0;
  for (const std::int32_t which : shared) which == kRouted ? ++routed : ++copies[which];
  ExpertSlots places;
  std::int32_t next = 0;
  for (const std::int32_t which : shared) {
    places.expert_of_slot.push_back(which == kRouted ? next++ : routed + which);
    places.shares.push_back(which == kRouted ? 1.0 : 1.0 / copies[which]);
  }
  return ExpertSlotsPtr(std::move(places));
}

}  // namespace moebius
