#include "workloads/serving/balancing/expert_placement.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

using Loads = std::vector<float>;
using Indices = std::vector<std::int32_t>;

std::int32_t count(std::size_t size) {
  return static_cast<std::int32_t>(size);
}

Indices by_falling_load(const Loads& loads) {
  Indices order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return loads[a] > loads[b]; });
  return order;
}

// What stands in each pack, in the order of arrival.
using Packs = std::vector<Indices>;

// As many items in each pack: the heaviest item left into the lightest pack that has room, the lowest of
// equal packs. One item a pack: as they come.
Packs pack(const Loads& loads, std::int32_t num_packs) {
  const std::size_t room = loads.size() / num_packs;
  Packs packs(num_packs);
  if (room == 1) {
    for (std::int32_t i = 0; i < num_packs; ++i) packs[i] = {i};
    return packs;
  }
  using Open = std::pair<float, std::int32_t>;  // sum, pack
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  for (std::int32_t i = 0; i < num_packs; ++i) open.emplace(0.0F, i);
  for (const std::int32_t item : by_falling_load(loads)) {
    const auto [sum, lightest] = open.top();
    open.pop();
    packs[lightest].push_back(item);
    if (packs[lightest].size() < room) open.emplace(sum + loads[item], lightest);
  }
  return packs;
}

struct Replicated {
  Indices item_of_slot, rank_of_slot, count_of_item;
};

// Slots beyond one an item go, one by one, to the item with most load for each of its replicas, the lowest of
// equal ones.
Replicated replicate(const Loads& loads, std::int32_t slots) {
  const std::int32_t items = count(loads.size());
  Replicated result{Indices(items), Indices(items, 0), Indices(items, 1)};
  std::iota(result.item_of_slot.begin(), result.item_of_slot.end(), 0);
  using Wanted = std::pair<float, std::int32_t>;  // load of a replica, minus the item
  std::priority_queue<Wanted> wanted;
  for (std::int32_t i = 0; i < items; ++i) wanted.emplace(loads[i], -i);
  for (std::int32_t slot = items; slot < slots; ++slot) {
    const std::int32_t item = -wanted.top().second;
    wanted.pop();
    result.item_of_slot.push_back(item);
    result.rank_of_slot.push_back(result.count_of_item[item]++);
    wanted.emplace(loads[item] / static_cast<float>(result.count_of_item[item]), -item);
  }
  return result;
}

// The experts of each node: groups in the order in which they came to it, experts in that of their group.
Packs experts_of_nodes(const Loads& loads, std::int32_t groups, std::int32_t nodes) {
  const std::int32_t of_group = count(loads.size()) / groups;
  Loads group_loads(groups, 0.0F);
  for (std::int32_t i = 0; i < count(loads.size()); ++i) group_loads[i / of_group] += loads[i];
  Packs experts(nodes);
  const Packs packed = pack(group_loads, nodes);
  for (std::int32_t node = 0; node < nodes; ++node) {
    for (const std::int32_t group : packed[node]) {
      for (std::int32_t i = 0; i < of_group; ++i) experts[node].push_back(group * of_group + i);
    }
  }
  return experts;
}

// Appends the slots of one node, device by device.
void place_on_node(const Loads& loads, const Indices& experts, std::int32_t slots, std::int32_t gpus,
                   LayerPlacement& placement) {
  Loads own;
  for (const std::int32_t expert : experts) own.push_back(loads[expert]);
  const Replicated replicas = replicate(own, slots);
  for (std::size_t i = 0; i < experts.size(); ++i)
    placement.replicas_of_expert[experts[i]] = replicas.count_of_item[i];
  Loads slot_loads;
  for (const std::int32_t item : replicas.item_of_slot)
    slot_loads.push_back(own[item] / static_cast<float>(replicas.count_of_item[item]));
  for (const Indices& gpu : pack(slot_loads, gpus)) {
    for (const std::int32_t slot : gpu) {
      placement.expert_of_slot.push_back(experts[replicas.item_of_slot[slot]]);
      placement.rank_of_slot.push_back(replicas.rank_of_slot[slot]);
    }
  }
}

}  // namespace

ShapeProblem problem_of(const PlacementShape& shape) {
  const auto [experts, replicas, groups, nodes, gpus] = shape;
  if (experts % groups != 0)
    return {"num_groups", fmt::format("{} groups do not divide the {} experts of a layer", groups, experts)};
  if (replicas < experts)
    return {"num_replicas", fmt::format("{} slots do not hold the {} experts of a layer", replicas, experts)};
  if (gpus % nodes != 0) return {"num_nodes", fmt::format("{} nodes do not divide the {} gpus", nodes, gpus)};
  if (replicas % gpus != 0)
    return {"num_gpus", fmt::format("{} gpus do not divide the {} slots", gpus, replicas)};
  return {};
}

LayerPlacement place_experts(const std::vector<double>& loads, const PlacementShape& shape) {
  const ShapeProblem problem = problem_of(shape);
  CHECK(problem.sentence.empty() && count(loads.size()) == shape.experts, problem.sentence);
  const Loads floats(loads.begin(), loads.end());
  const std::int32_t nodes = shape.hierarchical() ? shape.nodes : 1;
  const std::int32_t groups = shape.hierarchical() ? shape.groups : 1;
  LayerPlacement placement;
  placement.replicas_of_expert.resize(loads.size());
  for (const Indices& experts : experts_of_nodes(floats, groups, nodes))
    place_on_node(floats, experts, shape.replicas / nodes, shape.gpus / nodes, placement);
  return placement;
}

std::vector<std::vector<std::int32_t>> slots_of_experts(const LayerPlacement& placement) {
  std::vector<std::vector<std::int32_t>> slots;
  for (const std::int32_t replicas : placement.replicas_of_expert) slots.emplace_back(replicas);
  for (std::int32_t slot = 0; slot < count(placement.expert_of_slot.size()); ++slot)
    slots[placement.expert_of_slot[slot]][placement.rank_of_slot[slot]] = slot;
  return slots;
}

std::vector<double> load_of_gpus(const std::vector<double>& loads, const LayerPlacement& placement,
                                 std::int32_t gpus) {
  std::vector<double> sums(gpus, 0.0);
  const std::size_t of_gpu = placement.expert_of_slot.size() / gpus;
  for (std::size_t slot = 0; slot < placement.expert_of_slot.size(); ++slot) {
    const std::int32_t expert = placement.expert_of_slot[slot];
    sums[slot / of_gpu] += loads[expert] / placement.replicas_of_expert[expert];
  }
  return sums;
}

double balancedness(const std::vector<double>& gpu_loads) {
  const double most = *std::max_element(gpu_loads.begin(), gpu_loads.end());
  if (most <= 0) return 1;
  return std::accumulate(gpu_loads.begin(), gpu_loads.end(), 0.0) / static_cast<double>(gpu_loads.size()) /
         most;
}

}  // namespace moebius
