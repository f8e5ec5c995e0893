#include "workloads/listing/show_network.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/fabric/drawing.h"
#include "hw/fabric/figures.h"
#include "workloads/report/run_directory.h"

namespace moebius {
namespace {

constexpr ViewOption kViewOptions[] = {
    {"nodes", "a fabric: at how many nodes to show it", &NetworkView::nodes},
    {"node", "a fabric: of which kind; default hgx-8", &NetworkView::node},
    {"draw", "a fabric or scenario: file for a drawing of the network (SVG)", &NetworkView::draw},
};

using Out = std::back_insert_iterator<std::string>;

void line(Out out, std::string_view name, const std::string& words) {
  fmt::format_to(out, "  {:<20}{}\n", name, words);
}

std::string switches_text(const SwitchTier& tier) {
  std::string text =
      fmt::format("{} of {} ports down at {}", tier.switches, tier.down, to_text(tier.down_rate));
  if (tier.up > 0) text += fmt::format(", {} up at {}", tier.up, to_text(tier.up_rate));
  return text;
}

void ways_text(Out out, const std::vector<Way>& ways) {
  fmt::format_to(out, "\n  {:<34}{:>9}{:>12}{:>8}   {}\n", "two devices of", "switches", "latency", "paths",
                 "such as");
  for (const Way& way : ways) {
    fmt::format_to(out, "  {:<34}{:>9}{:>12}{:>8}   {} and {}\n",
                   fmt::format("{}{}", to_string(way.distance), way.changes_rail ? ", two rails" : ""),
                   way.switches, to_text(way.latency), way.paths, way.from, way.to);
  }
}

std::string sizes_text(const FabricSpec& spec, const FabricPool& pool) {
  std::string text;
  for (int tiers = 1; tiers <= 3; ++tiers) {
    const int nodes = most_nodes(spec, pool, tiers);
    if (nodes < 1) continue;
    text += fmt::format("{}{} in {} tier{}", text.empty() ? "" : ", ",
                        std::int64_t{nodes} * pool.devices_per_node, tiers, tiers > 1 ? "s" : "");
  }
  return text + fmt::format(" (devices, {} to a node)", pool.devices_per_node);
}

// `widest`: the fabric as it is specified, before its tiers are counted.
std::string body(const Fabric& fabric, const FabricSpec& widest, const std::string& node) {
  std::string text;
  const Out out = std::back_inserter(text);
  const FabricSpec& spec = fabric.spec();
  const FabricFigures figures = figures_of(fabric);
  line(out, "devices", fmt::format("{} in {} nodes", fabric.num_devices(), fabric.layout().nodes));
  line(out, "switch tiers",
       fmt::format("{}, {} plane{}{}", spec.tiers, spec.planes, spec.planes > 1 ? "s" : "",
                   spec.rail_optimised ? ", rail-optimised" : ""));
  for (const SwitchTier& tier : figures.tiers) line(out, tier.name + " switches", switches_text(tier));
  if (spec.nic_ports > 1)
    line(out, "ports of a NIC", fmt::format("{}, each into a leaf of its own", spec.nic_ports));
  if (fabric.num_regions() > 1)
    line(
        out, "regions",
        fmt::format("{}, {:.6g} km apart, {} from one to another", fabric.num_regions(),
                    spec.region_distance.value / 1000, to_text(fabric.capacity({WireKind::kRegionLink, 0}))));
  if (!figures.tiers.empty()) {
    line(out, "oversubscription",
         fmt::format("{:.6g} ({:.6g} at the leaves, {:.6g} at the core)", figures.oversubscription,
                     spec.oversubscription, spec.core_oversubscription));
    line(out, "bisection",
         fmt::format("{}, {:.3g} of what the NICs of one half send", to_text(figures.bisection),
                     figures.bisection / figures.half_nics));
    line(out, "largest", sizes_text(widest, fabric.pools().front()));
  }
  ways_text(out, figures.ways);
  return text + "\n" + text_drawing(sketch_of(fabric, node));
}

int whole_number(const std::string& text, std::string_view option) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > 1 << 20)
    throw input_error(
        fmt::format("--{}: expected an integer from 1 to {}, found \"{}\"", option, 1 << 20, text));
  return number;
}

// An accelerator for the node: h100-sxm where it fits, else the first that does and has a NIC.
Accelerator chip_for(const Node& node, const Catalog& catalog) {
  std::vector<std::string> ids = catalog.accelerator_ids();
  const auto usual = std::find(ids.begin(), ids.end(), "h100-sxm");
  if (usual != ids.end()) std::rotate(ids.begin(), usual, usual + 1);
  for (const std::string& id : ids) {
    Accelerator chip = catalog.accelerator(id);
    const bool has_nic = chip.nic_rate.value > 0 || node.nic_rate.value > 0;
    if (has_nic && problem_of(Pool{"", chip, node, 1}).empty()) return chip;
  }
  throw input_error(fmt::format("no accelerator of the catalog fits into node \"{}\"", node.id));
}

void draw(const Fabric& fabric, const std::string& node, const NetworkView& view) {
  if (!view.draw.empty()) write_file(view.draw, svg_drawing(sketch_of(fabric, node)));
}

}  // namespace

std::span<const ViewOption> view_options() {
  return kViewOptions;
}

std::string network_text(const FabricSpec& spec, const Catalog& catalog, const NetworkView& view) {
  const Node node = catalog.node(view.node.empty() ? "hgx-8" : view.node);
  Pool pool{"shown", chip_for(node, catalog), node, 1};
  const FabricPool part = part_of_fabric(pool, spec);
  const int tiers = spec.tiers != kAutomaticTiers ? spec.tiers : 2;
  pool.nodes =
      view.nodes.empty() ? std::max(1, most_nodes(spec, part, tiers)) : whole_number(view.nodes, "nodes");
  if (const std::string problem = Fabric::problem(spec, {part_of_fabric(pool, spec)}); !problem.empty())
    throw input_error(fmt::format("--nodes {}: {}", pool.nodes, problem));
  const Fabric fabric(spec, {part_of_fabric(pool, spec)});
  draw(fabric, node.id, view);
  return fmt::format("shown with {} x {} of {}{}\n", pool.nodes, node.id, pool.accelerator.id,
                     view.nodes.empty() ? fmt::format(", the most that {} tier{} hold{}", tiers,
                                                      tiers == 1 ? "" : "s", tiers == 1 ? "s" : "")
                                        : "") +
         body(fabric, spec, node.id);
}

std::string network_text(const Cluster& cluster, const NetworkView& view) {
  if (!view.nodes.empty() || !view.node.empty())
    throw input_error(fmt::format("--{}: expected the name of a fabric: a scenario says what nodes it has",
                                  view.nodes.empty() ? "node" : "nodes"));
  std::string nodes;
  for (const Pool& pool : cluster.pools) {
    if (nodes.find(pool.node.id) == std::string::npos) nodes += (nodes.empty() ? "" : ", ") + pool.node.id;
  }
  draw(cluster.fabric, nodes, view);
  return body(cluster.fabric, cluster.fabric.spec(), nodes);
}

}  // namespace moebius
