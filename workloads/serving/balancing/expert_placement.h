// Where the experts of each layer stand, computed from how much each was loaded: the greedy algorithm of
// deepseek-ai/EPLB (commit d52c72d), step by step, ties and 32-bit sums included. A slot holds one expert;
// slot s of a layer is on device s / (slots / gpus), device g on node g / (gpus / nodes). Hierarchical, where
// the groups divide over the nodes: groups of experts are packed onto nodes, experts are repeated within a
// node, slots are packed onto its devices. Otherwise global: the same with one group and one node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moebius {

struct PlacementShape {
  std::int32_t experts = 0;   // of a layer
  std::int32_t replicas = 0;  // slots of a layer: at least `experts`
  std::int32_t groups = 1, nodes = 1, gpus = 1;

  bool hierarchical() const { return groups % nodes == 0; }
  std::int32_t slots_of_gpu() const { return replicas / gpus; }
};

// Experts divide into groups, slots over gpus, gpus over nodes: "" or what does not.
struct ShapeProblem {
  const char* key = "";  // the number at fault: "num_gpus"
  std::string sentence;
};
ShapeProblem problem_of(const PlacementShape& shape);

struct LayerPlacement {
  std::vector<std::int32_t> expert_of_slot;
  std::vector<std::int32_t> rank_of_slot;  // which replica of its expert, from 0
  std::vector<std::int32_t> replicas_of_expert;
};

// `loads`: of each expert, not negative. CHECKs the shape.
LayerPlacement place_experts(const std::vector<double>& loads, const PlacementShape& shape);

// Slots of each expert, by replica.
std::vector<std::vector<std::int32_t>> slots_of_experts(const LayerPlacement& placement);

// A replica takes an equal share of its expert's load.
std::vector<double> load_of_gpus(const std::vector<double>& loads, const LayerPlacement& placement,
                                 std::int32_t gpus);

// Mean over most, 1 where nothing is loaded: the share of time that devices in step would work.
double balancedness(const std::vector<double>& gpu_loads);

}  // namespace moebius
