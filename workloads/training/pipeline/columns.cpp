#include "workloads/training/pipeline/columns.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "hw/fabric/shared_places.h"

namespace moebius {
namespace {

using Kinds = std::vector<std::int32_t>;

// So many ranks of a column's part in one stage stand in a leaf, pod or region.
struct Use {
  std::int32_t column = 0, stage = 0, place = 0, ranks = 0;
};

constexpr std::array kPlaces{SharedPlace::kLeaf, SharedPlace::kPod, SharedPlace::kRegion};

// Index of the place that a device belongs to, and its capacity to the outside; regions have none of their
// own, but a link to each other, and are told apart.
std::pair<int, double> place_of(const Fabric& fabric, int device, SharedPlace level) {
  const Fabric::Standing standing = fabric.standing(device);
  switch (level) {
    case SharedPlace::kLeaf:
      return {standing.leaf, fabric.capacity({WireKind::kLeafUp, standing.leaf}).value};
    case SharedPlace::kPod:
      return {standing.pod, fabric.capacity({WireKind::kPodUp, standing.pod}).value};
    case SharedPlace::kRegion:
    case SharedPlace::kHost:
      break;
  }
  return {standing.region, -1.0 - standing.region};
}

// The same number for the same value, in the order of first use.
template <class Value>
class Numbers {
 public:
  std::int32_t of(Value value) {
    return known_.try_emplace(std::move(value), static_cast<std::int32_t>(known_.size())).first->second;
  }
  int size() const { return static_cast<int>(known_.size()); }

 private:
  std::map<Value, std::int32_t> known_;
};

class Refinement {
 public:
  Refinement(const TrainingPlan& plan, const Fabric& fabric, const std::vector<std::int32_t>& devices)
      : devices_(devices), columns_(plan.ranks() / plan.pp / ranks_of_column(plan)) {
    for (const SharedPlace level : kPlaces)
      if (can_bind(fabric, level)) add_uses(plan, fabric, level);
    of_place_.resize(places_.size());
    of_column_.resize(columns_);
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      of_place_[uses_[i].place].push_back(static_cast<std::int32_t>(i));
      of_column_[uses_[i].column].push_back(static_cast<std::int32_t>(i));
    }
  }

  // Places are alike when columns of the same kinds use them alike; columns, when they use like places.
  Kinds refined(const Kinds& kinds) const {
    using Signature = std::vector<std::array<std::int32_t, 3>>;
    Numbers<std::pair<double, Signature>> place_numbers;
    std::vector<std::int32_t> place_kinds;
    for (std::size_t place = 0; place < of_place_.size(); ++place) {
      Signature signature;
      for (const std::int32_t use : of_place_[place])
        signature.push_back({kinds[uses_[use].column], uses_[use].stage, uses_[use].ranks});
      std::sort(signature.begin(), signature.end());
      place_kinds.push_back(place_numbers.of({places_[place], std::move(signature)}));
    }
    Numbers<std::pair<std::int32_t, Signature>> numbers;
    Kinds next;
    for (int column = 0; column < columns_; ++column) {
      Signature signature;
      for (const std::int32_t use : of_column_[column])
        signature.push_back({uses_[use].stage, place_kinds[uses_[use].place], uses_[use].ranks});
      std::sort(signature.begin(), signature.end());
      next.push_back(numbers.of({kinds[column], std::move(signature)}));
    }
    return next;
  }

 private:
  void add_uses(const TrainingPlan& plan, const Fabric& fabric, SharedPlace level) {
    const int width = ranks_of_column(plan), stage_size = plan.ranks() / plan.pp;
    std::map<int, std::int32_t> places;  // index in the fabric, to that in places_
    std::map<std::array<std::int32_t, 3>, std::size_t> uses;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const auto [index, capacity] = place_of(fabric, devices_[rank], level);
      const auto [place, is_new] = places.try_emplace(index, static_cast<std::int32_t>(places_.size()));
      if (is_new) places_.push_back(capacity);
      const Use use{rank % stage_size / width, rank / stage_size, place->second, 0};
      const auto known = uses.try_emplace({use.column, use.stage, use.place}, uses_.size());
      if (known.second) uses_.push_back(use);
      ++uses_[known.first->second].ranks;
    }
  }

  const std::vector<std::int32_t>& devices_;  // by rank
  int columns_;
  std::vector<double> places_;  // leaves, pods and regions in use: capacity of their uplinks
  std::vector<Use> uses_;
  std::vector<std::vector<std::int32_t>> of_place_, of_column_;
};

int number_of(const Kinds& kinds) {
  return kinds.empty() ? 0 : 1 + *std::max_element(kinds.begin(), kinds.end());
}

// By where, in each stage, a column goes on in another scale-up domain.
Kinds kinds_by_domains(const TrainingPlan& plan, const Fabric& fabric,
                       const std::vector<std::int32_t>& devices) {
  const int width = ranks_of_column(plan), stage_size = plan.ranks() / plan.pp;
  Numbers<std::vector<std::int32_t>> numbers;
  Kinds kinds;
  for (int column = 0; column < stage_size / width; ++column) {
    std::vector<std::int32_t> borders;
    for (int stage = 0; stage < plan.pp; ++stage) {
      const int first = stage * stage_size + column * width;
      for (int i = 1, before = fabric.node_of(devices[first]); i < width; ++i) {
        const int domain = fabric.node_of(devices[first + i]);
        if (std::exchange(before, domain) != domain) borders.push_back(stage * width + i);
      }
    }
    kinds.push_back(numbers.of(std::move(borders)));
  }
  return kinds;
}

void refine(Kinds& kinds, const Refinement& refinement, int most_kinds) {
  while (true) {
    Kinds next = refinement.refined(kinds);
    if (number_of(next) > most_kinds || number_of(next) == number_of(kinds)) return;
    kinds = std::move(next);
  }
}

}  // namespace

int ranks_of_column(const TrainingPlan& plan) {
  return std::lcm(std::lcm(plan.expert_ranks(), plan.tp * plan.cp), plan.dense_degree());
}

std::vector<std::int32_t> column_kinds(const TrainingPlan& plan, const Fabric& fabric,
                                       const std::vector<std::int32_t>& placed, int most_kinds) {
  const int stage_size = plan.ranks() / plan.pp;
  if (!plan.fold || stage_size % ranks_of_column(plan) != 0) return {};
  if (plan.ranks() > fabric.num_devices()) return {};
  std::vector<std::int32_t> devices = placed;
  if (devices.empty()) {
    devices.resize(plan.ranks());
    std::iota(devices.begin(), devices.end(), 0);
  }
  Kinds kinds = kinds_by_domains(plan, fabric, devices);
  const bool any_binds =
      std::any_of(kPlaces.begin(), kPlaces.end(), [&](SharedPlace level) { return can_bind(fabric, level); });
  if (any_binds) refine(kinds, Refinement(plan, fabric, devices), most_kinds);
  return number_of(kinds) > 1 ? kinds : Kinds{};
}

bool fills_like_domains(const std::vector<std::int32_t>& devices, const Fabric& fabric) {
  if (!std::is_sorted(devices.begin(), devices.end())) return false;
  std::map<int, int> first;  // device, by domain
  for (int device = 0; device < fabric.num_devices(); ++device)
    first.try_emplace(fabric.node_of(device), device);
  std::map<int, std::vector<int>> places;  // by domain
  for (const std::int32_t device : devices) {
    const int domain = fabric.node_of(device);
    places[domain].push_back(device - first[domain]);
  }
  return std::all_of(places.begin(), places.end(),
                     [&](const auto& of) { return of.second == places.begin()->second; });
}

}  // namespace moebius
