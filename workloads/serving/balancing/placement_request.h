// What `moebius eplb` reads and writes: one placement of all layers from the loads of their experts.
//   in:  {"weights": [[load of each expert], of each layer], "num_replicas", "num_groups", "num_nodes",
//   "num_gpus"} out: {"phy2log": [layer][slot], "log2phy": [layer][expert][replica, -1 where there is none],
//         "logcnt": [layer][expert], "gpu_load": [layer][gpu]}
#pragma once

#include <string>
#include <vector>

#include "hw/document.h"
#include "workloads/serving/balancing/expert_placement.h"

namespace moebius {

struct PlacementRequest {
  std::vector<std::vector<double>> loads;  // by layer, expert
  PlacementShape shape;
};

// input_error for what is not of that form, or does not divide.
PlacementRequest read_placement_request(const Document& document);

struct PlacedLayers {
  PlacementRequest request;
  std::vector<LayerPlacement> layers;

  std::vector<double> gpu_loads(std::size_t layer) const;
  // Of one replica each, in the order of their numbers; nothing where experts do not divide over the gpus.
  std::vector<double> gpu_loads_before(std::size_t layer) const;
};
PlacedLayers place_layers(PlacementRequest request);

std::string placement_json(const PlacedLayers& placed);  // one line
// How even devices are before and after, layer by layer, and the devices of the least even one.
std::string placement_text(const PlacedLayers& placed);

}  // namespace moebius
