#include "hw/fabric/drawing.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hw/fabric/figures.h"

namespace moebius {
namespace {

// What hangs in each pod of the first plane.
struct PodContents {
  int region = 0;
  std::set<int> leaves, nodes;
};

std::map<int, PodContents> first_plane(const Fabric& fabric) {
  std::map<int, PodContents> pods;
  for (int device = 0; device < fabric.num_devices(); ++device) {
    const Fabric::Standing at = fabric.standing(device);
    if (at.pod % fabric.spec().planes != 0) continue;
    PodContents& pod = pods[at.pod];
    pod.region = at.region;
    pod.leaves.insert(at.leaf);
    pod.nodes.insert(at.node);
  }
  return pods;
}

int cores_of_region(const FabricFigures& figures, const Sketch& sketch) {
  if (figures.tiers.size() < 3) return 0;
  return static_cast<int>(figures.tiers[2].switches / sketch.planes / sketch.regions);
}

// "[0] [1] [2] .. [63]"
std::string boxes(int count, int most) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (count > most && i == most - 1) {
      text += ".. ";
      i = count - 1;
    }
    text += fmt::format("[{}] ", i);
  }
  if (!text.empty()) text.pop_back();
  return text;
}

// Pods side by side, the last after a gap.
std::string by_pods(const Sketch& sketch, int Sketch::Pod::*count) {
  constexpr std::size_t kShown = 3;
  const std::size_t pods = sketch.pods.size();
  std::string text;
  for (std::size_t i = 0; i < pods; ++i) {
    if (pods > kShown && i == kShown - 1) {
      text += " ..";
      i = pods - 1;
    }
    if (!text.empty()) text += " | ";
    text += boxes(sketch.pods[i].*count, pods == 1 ? 8 : 3);
  }
  return text;
}

std::string row(const char* name, const std::string& drawn, const std::string& words) {
  return fmt::format("  {:<8}{:<58}  {}\n", name, drawn, words);
}

// Lines between two rows, under as many boxes as a row shows.
std::string strands(const std::string& words) {
  const std::string line = fmt::format("            {:<56}{}", "| \\/ | \\/ | \\/ |", words);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string of_planes(const Sketch& sketch) {
  return sketch.planes > 1 ? fmt::format(" in each of {} planes", sketch.planes) : "";
}

std::string of_pods(const Sketch& sketch) {
  if (sketch.pods.size() < 2) return of_planes(sketch);
  return fmt::format(" in each of {} {}{}", sketch.pods.size(), sketch.tiers == 3 ? "pods" : "regions",
                     sketch.planes > 1 ? fmt::format(" x {} planes", sketch.planes) : "");
}

// Pods at the end of a region, and regions, may be smaller than others.
std::string counts_text(const Sketch& sketch, int Sketch::Pod::*count) {
  int least = sketch.pods.front().*count, most = least;
  for (const Sketch::Pod& pod : sketch.pods)
    least = std::min(least, pod.*count), most = std::max(most, pod.*count);
  return fmt::format("{}{}{}", least < most ? fmt::format("{} to ", least) : "", most, of_pods(sketch));
}

std::string borders_text(const Sketch& sketch) {
  std::string drawn;
  for (int region = 0; region < sketch.regions; ++region)
    drawn += (region > 0 ? " ======= " : "") + fmt::format("[{}]", region);
  return row("border", drawn, fmt::format("{} each way", sketch.region_link)) + strands("");
}

}  // namespace

Sketch sketch_of(const Fabric& fabric, const std::string& node) {
  const FabricSpec& spec = fabric.spec();
  Sketch sketch;
  sketch.title = spec.type;
  sketch.node = node;
  sketch.planes = spec.planes;
  sketch.twins = spec.nic_ports;
  sketch.tiers = spec.tiers;
  sketch.regions = fabric.num_regions();
  sketch.nodes = fabric.layout().nodes;
  sketch.devices_per_node = fabric.pools().front().devices_per_node;
  if (sketch.nodes < 2) return sketch;
  const FabricFigures figures = figures_of(fabric);
  const std::map<int, PodContents> pods = first_plane(fabric);
  for (const auto& [index, pod] : pods) {
    sketch.pods.push_back({pod.region, static_cast<int>(pod.leaves.size()) * sketch.twins,
                           fabric.spines_of_pod(index), static_cast<int>(pod.nodes.size())});
  }
  const FabricLayout::PoolPlace& place = fabric.layout().pools.front();
  sketch.nodes_of_group = place.nodes_per_leaf;
  sketch.leaves_of_group =
      std::max(1, fabric.layout().columns / spec.planes) * place.leaves_per_node * sketch.twins;
  sketch.cores = cores_of_region(figures, sketch);
  sketch.nic = to_text(fabric.capacity({WireKind::kNicOutPort, 0}));
  if (sketch.tiers >= 2) sketch.leaf_link = to_text(figures.tiers[0].up_rate);
  if (sketch.tiers == 3) sketch.core_link = to_text(figures.tiers[1].up_rate);
  if (sketch.regions > 1) {
    sketch.region_link = fmt::format("{:.6g} km, {}", spec.region_distance.value / 1000,
                                     to_text(fabric.capacity({WireKind::kRegionLink, 0})));
  }
  return sketch;
}

std::string text_drawing(const Sketch& sketch) {
  std::string text;
  if (sketch.pods.empty()) return row("node", "[0]", fmt::format("{}, no network", sketch.node));
  if (sketch.regions > 1) text += borders_text(sketch);
  if (sketch.cores > 0) {
    text += row("core", boxes(sketch.cores, 8), fmt::format("{}{}", sketch.cores, of_planes(sketch)));
    text += strands("links of " + sketch.core_link);
  }
  if (sketch.tiers >= 2) {
    text += row("spine", by_pods(sketch, &Sketch::Pod::spines), counts_text(sketch, &Sketch::Pod::spines));
    text += strands("links of " + sketch.leaf_link);
  }
  text += row("leaf", by_pods(sketch, &Sketch::Pod::leaves), counts_text(sketch, &Sketch::Pod::leaves));
  const std::string ports =
      sketch.twins > 1 ? fmt::format("NIC ports of {}, one into each of {} twins", sketch.nic, sketch.twins)
                       : "NICs of " + sketch.nic;
  text += strands(ports);
  return text + row("node", by_pods(sketch, &Sketch::Pod::nodes),
                    fmt::format("{} x {} of {}", sketch.nodes, sketch.node, sketch.devices_per_node));
}

}  // namespace moebius
