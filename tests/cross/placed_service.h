// A small service whose experts stand in slots, several of them twice, and move while it answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "real/initial_values.h"
#include "tests/cross/small_serving.h"
#include "workloads/perform/observed_workload.h"
#include "workloads/service/experts.h"

namespace moebius {

// Eight experts in two layers, twelve slots a layer. Weights move whenever the clock lets them.
inline ExpertBalancePlan moving_experts(BalancePolicy policy = BalancePolicy::kGlobal) {
  ExpertBalancePlan plan;
  plan.policy = policy;
  plan.redundant = 4;
  plan.every = Time{50'000};
  plan.window = Time{400'000};
  plan.slice = 2;
  plan.known_start = false;
  return plan;
}

inline void place(CarriedPool& pool, const CarriedService& service) {
  const Experts& experts = service.model.experts;
  const int slots = service.experts.slots(experts.routed, pool.plan.ep);
  pool.plan.expert_slots = slots;
  pool.experts = {.ranks = pool.plan.ep,
                  .ranks_per_node = 2,
                  .slots = slots,
                  .groups = {experts.groups, experts.active_groups},
                  .expert_bytes = expert_bytes(service.model, pool.plan.gemm),
                  .seed = service.workload.seed};
}

// Of one pool with so many ranks, each with requests of its own; `experts` of every pool.
inline CarriedService placed_service(const ExpertBalancePlan& experts, int ranks = 4) {
  ServingJob job = small_service(full_model());
  job.model.mtp_layers = 0;
  job.plan.dp = job.plan.ep = ranks;
  job.workload.requests = 16;
  job.workload.popularity.exponent = 1.2;
  job.ranks_per_node = 2;
  CarriedService service = carried_alone(job);
  service.experts = experts;
  if (experts.policy != BalancePolicy::kNone) place(service.pools.front(), service);
  return service;
}

// What stands in the slots of every rank by the fragments that were issued: starting from what their weights
// say, and changed by what their transfers say, iteration after iteration.
class SlotLedger {
 public:
  explicit SlotLedger(const Layout& layout) : layout_(layout) {}

  void issued(const Submission& submission) {
    if (submission.step != step_) commit();
    step_ = submission.step;
    const Fragment& fragment = *submission.fragment;
    const RankClass& place = layout_.classes[submission.rank_class];
    for (const Op& op : fragment.ops)
      if (op.kind == OpKind::kGroupedGemm && fragment.routes[op.route]->spec().placed)
        computed(fragment, op, place);
    if (!fragment.transfer) return;
    for (const ExpertTransfer::Layer& layer : fragment.transfer->layers) moved(layer, place);
    sent_ += fragment.pair_bytes->sent(place.group(GroupRole::kExpert).my_index);
  }
  void commit() {
    for (const auto& [key, slots] : next_) held_[key] = slots;
    next_.clear();
  }

  std::int64_t wrong_tables() const { return wrong_; }  // of products whose route says otherwise
  double sent_bytes() const { return sent_; }
  std::int64_t changed_slots() const { return changed_; }
  std::int64_t remote_arrivals() const { return remote_; }

  // Calls check(rank, weight, slot, expert) for every slot of every weight that was computed with.
  template <class Check>
  void for_each_slot(const Check& check) const {
    for (const auto& [key, weight] : weights_) {
      const std::vector<std::int32_t>& slots = held_.at({key.first, weight.layer});
      for (std::size_t s = 0; s < slots.size(); ++s) check(key.first, weight, s, slots[s]);
    }
  }

 private:
  using Place = std::pair<int, int>;  // rank, layer

  void computed(const Fragment& fragment, const Op& op, const RankClass& place) {
    const int rank = place.representative(), member = place.group(GroupRole::kExpert).my_index;
    const Tensor& weight = fragment.tensors[fragment.input(op, 1)];
    weights_.try_emplace({rank, weight.key}, weight);
    const std::vector<std::int32_t>& slots =
        held_.try_emplace({rank, weight.layer}, *weight.slots).first->second;
    const std::vector<std::int32_t>& table = fragment.routes[op.route]->spec().placed->expert_of_slot;
    if (!std::equal(slots.begin(), slots.end(),
                    table.begin() + member * static_cast<std::ptrdiff_t>(slots.size())))
      ++wrong_;
  }

  void moved(const ExpertTransfer::Layer& layer, const RankClass& place) {
    const Group& group = place.group(GroupRole::kExpert);
    std::vector<std::int32_t> slots = held_.at({place.representative(), layer.number});
    for (const ExpertTransfer::Placing& placing : layer.placings_at(group.my_index)) {
      const ExpertTransfer::Arrival& arrival = layer.arrivals_at(group.my_index)[placing.arrival];
      slots[placing.slot] = held_.at({group.ranks[arrival.from], layer.number})[arrival.slot];
      ++changed_;
      remote_ += arrival.from != group.my_index;
    }
    next_[{place.representative(), layer.number}] = std::move(slots);
  }

  const Layout& layout_;
  int step_ = -1;
  std::map<Place, std::vector<std::int32_t>> held_, next_;
  std::map<std::pair<int, std::uint32_t>, Tensor> weights_;  // by rank, key
  std::int64_t wrong_ = 0, changed_ = 0, remote_ = 0;
  double sent_ = 0;
};

// The weight of one expert as every run starts with it.
inline std::vector<double> weight_of(Tensor weight, std::int32_t expert, std::uint64_t seed) {
  weight.slots = nullptr;
  weight.experts = 1;
  weight.first_expert = expert;
  return initial_values(weight, seed);
}

}  // namespace moebius
