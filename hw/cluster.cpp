#include "hw/cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

std::string problem_of_link(const Accelerator& accelerator, const Node& node) {
  const bool mesh = node.scale_up == ScaleUp::kFullMesh;
  if (node.scale_up == ScaleUp::kPcie || node.accelerators == 1) return {};
  if (accelerator.link_rate.value <= 0)
    return fmt::format(
        "node \"{}\" joins its accelerators by a {}, but \"{}\" has no scale-up link: choose a PCIe node "
        "such as \"pcie-8\"",
        node.id, mesh ? "full mesh" : "switch", accelerator.id);
  if (node.accelerators > accelerator.link_domain)
    return fmt::format("node \"{}\" joins {} accelerators, but the scale-up link of \"{}\" joins at most {}",
                       node.id, node.accelerators, accelerator.id, accelerator.link_domain);
  return {};
}

std::string problem_of_nics(const Node& node) {
  if (node.nics == 0) return {};
  const int more = std::max(node.nics, node.accelerators), fewer = std::min(node.nics, node.accelerators);
  if (more % fewer == 0) return {};
  return fmt::format("node \"{}\" has {} NICs for {} accelerators: expected one number to divide the other",
                     node.id, node.nics, node.accelerators);
}

std::string problem_of_boards(const Node& node) {
  if (node.board == 0) return {};
  if (node.accelerators % node.board != 0)
    return fmt::format("node \"{}\" has {} accelerators on boards of {}: expected whole boards", node.id,
                       node.accelerators, node.board);
  if (node.board < node.accelerators && node.scale_up != ScaleUp::kSwitch)
    return fmt::format(
        "node \"{}\" has boards of {} accelerators: expected \"scale_up\": \"switch\", which joins them",
        node.id, node.board);
  return {};
}

// Pools of one region stand together; all name one, or none does.
std::string problem_of_regions(const std::vector<Pool>& pools) {
  for (std::size_t i = 1; i < pools.size(); ++i) {
    const Pool &pool = pools[i], &before = pools[i - 1];
    if (pool.region.empty() != before.region.empty())
      return fmt::format("pool \"{}\" names no region, but pool \"{}\" does: expected one for each pool",
                         pool.region.empty() ? pool.name : before.name,
                         pool.region.empty() ? before.name : pool.name);
    const auto here = [&](const Pool& other) { return other.region == pool.region; };
    if (pool.region != before.region && std::any_of(pools.begin(), pools.begin() + i, here))
      return fmt::format(
          "pool \"{}\" stands in region \"{}\" after one in \"{}\": expected the pools of a "
          "region one after the other",
          pool.name, pool.region, before.region);
  }
  return {};
}

// The link of one device, per direction, as large transfers achieve it.
ByteRate achieved_link(const Accelerator& accelerator, const Node& node) {
  const ByteRate line = node.scale_up == ScaleUp::kPcie ? accelerator.host_rate : accelerator.link_rate;
  return line * accelerator.link_efficiency;
}

}  // namespace

const Pool& Cluster::pool_of(int device) const {
  int first = 0;
  for (const Pool& pool : pools) {
    if (device < first + pool.devices()) return pool;
    first += pool.devices();
  }
  CHECK(false, fmt::format("device={} of {}", device, first));
  return pools.back();
}

bool Cluster::by_ports() const {
  const FabricSpec& spec = fabric.spec();
  const bool has_choice = fabric.num_leaves() > 0 && spec.tiers > 0 && (spec.tiers > 1 || spec.nic_ports > 1);
  const bool by_flows = spec.routing == Routing::kEcmp || spec.routing == Routing::kStatic;
  return !damaged.empty() || ports_may_fail || (has_choice && by_flows);
}

std::string problem_of(const Pool& pool) {
  if (pool.nodes < 1) return fmt::format("{} nodes: expected at least 1", pool.nodes);
  if (auto problem = problem_of_link(pool.accelerator, pool.node); !problem.empty()) return problem;
  if (auto problem = problem_of_boards(pool.node); !problem.empty()) return problem;
  return problem_of_nics(pool.node);
}

std::vector<std::string> region_names(const std::vector<Pool>& pools) {
  std::vector<std::string> names;
  for (const Pool& pool : pools) {
    if (std::find(names.begin(), names.end(), pool.region) == names.end()) names.push_back(pool.region);
  }
  return names;
}

ByteRate nic_line_rate(const Pool& pool, const FabricSpec& spec) {
  if (spec.nic_given) return spec.nic;
  return pool.node.nic_rate.value > 0 ? pool.node.nic_rate : pool.accelerator.nic_rate;
}

FabricPool part_of_fabric(const Pool& pool, const FabricSpec& spec) {
  const Node& node = pool.node;
  FabricPool result;
  result.nodes = pool.nodes;
  result.devices_per_node = node.accelerators;
  result.link_rate = achieved_link(pool.accelerator, node);
  result.link_latency = node.scale_up_latency;
  result.host_rate = pool.accelerator.host_rate;
  result.host_memory_rate = node.host_memory_rate;
  result.copy_latency = pool.accelerator.kernel_floor;
  result.forwards = node.scale_up != ScaleUp::kPcie;
  result.reduces = node.scale_up == ScaleUp::kSwitch && pool.accelerator.link_reduces;
  result.board = node.board;
  result.board_latency = node.board_latency;
  result.board_rate = result.link_rate * node.board_efficiency;
  // A mesh is wired for all its peers: a link each, whoever is plugged in.
  if (node.scale_up == ScaleUp::kFullMesh && node.accelerators > 1)
    result.pair_rate = result.link_rate / (pool.accelerator.link_domain - 1);
  if (node.nics == 0) return result;
  const int per_device = std::max(1, node.nics / node.accelerators);
  result.nic_rate = nic_line_rate(pool, spec) * spec.transport_efficiency * per_device;
  result.devices_per_nic = std::max(1, node.accelerators / node.nics);
  result.rails = std::min({node.rails, node.nics, node.accelerators});
  return result;
}

std::string_view to_string(CollectiveSource source) {
  switch (source) {
    case CollectiveSource::kStructure:
      return "structure";
    case CollectiveSource::kLibrary:
      return "library";
    case CollectiveSource::kSglang:
      return "sglang";
    case CollectiveSource::kTrtllm:
      return "trtllm";
    case CollectiveSource::kVllm:
      return "vllm";
  }
  return "";
}

Cluster build_cluster(std::vector<Pool> pools, FabricSpec spec, const Place& place) {
  if (const std::string problem = problem_of_regions(pools); !problem.empty()) place.fail(problem);
  const std::vector<std::string> regions = region_names(pools);
  std::vector<FabricPool> fabric_pools;
  for (const Pool& pool : pools) {
    const auto same = [&](const Pool& other) { return other.name == pool.name; };
    if (std::count_if(pools.begin(), pools.end(), same) > 1)
      place.fail(fmt::format("two pools named \"{}\"", pool.name));
    if (const std::string problem = problem_of(pool); !problem.empty())
      place.fail(fmt::format("pool \"{}\": {}", pool.name, problem));
    fabric_pools.push_back(part_of_fabric(pool, spec));
    fabric_pools.back().region =
        static_cast<int>(std::find(regions.begin(), regions.end(), pool.region) - regions.begin());
  }
  if (const std::string problem = Fabric::problem(spec, fabric_pools); !problem.empty()) place.fail(problem);
  Fabric fabric(std::move(spec), std::move(fabric_pools));
  return {std::move(pools), std::move(fabric)};
}

}  // namespace moebius
