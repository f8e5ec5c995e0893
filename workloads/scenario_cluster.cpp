// The machines of a scenario: pools of equal nodes and the fabric between them.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/scenario_parts.h"

namespace moebius {

namespace {

DescriptionPtr name_or_changes(std::string_view help) {
  const DescriptionPtr form = description_of("", help);
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("object")}));
  return form;
}

Pool read_pool(Section& section, const Catalog* catalog) {
  Pool pool;
  pool.name = section.text("name", std::nullopt, "how the plan calls it");
  const Value* accelerator =
      section.value("accelerator", true,
                    name_or_changes("a name of `moebius list accelerators`, or {\"base\": NAME, changes}"));
  const Value* node = section.value(
      "node", true, name_or_changes("a name of `moebius list nodes`, or {\"base\": NAME, changes}"));
  pool.nodes = static_cast<int>(section.integer("nodes", {1, 1 << 20}, std::nullopt, "how many"));
  if (catalog != nullptr) {
    pool.accelerator = catalog->accelerator(*accelerator, section.place_of("accelerator"));
    pool.node = catalog->node(*node, section.place_of("node"));
    if (pool.node.scale_up != ScaleUp::kPcie && pool.accelerator.link_rate.value == 0) {
      section.place_of("node").fail(
          fmt::format("{} has no scale-up link, but the accelerators of {} meet over one",
                      pool.accelerator.id, pool.node.id));
    }
  }
  section.finish();
  return pool;
}

// What the devices of a pool reach, as achieved rates: the fabric knows wires, not efficiencies.
FabricPool fabric_pool(const Pool& pool, const FabricSpec& spec) {
  const Accelerator& chip = pool.accelerator;
  const Node& node = pool.node;
  const bool pcie = node.scale_up == ScaleUp::kPcie;
  FabricPool part{.nodes = pool.nodes,
                  .devices_per_node = node.accelerators,
                  .link_rate = (pcie ? chip.host_rate : chip.link_rate) * chip.link_efficiency,
                  .link_latency = node.scale_up_latency,
                  .nic_rate = (spec.nic_given ? spec.nic : chip.nic_rate) * spec.transport_efficiency,
                  .devices_per_nic = 1,
                  .rails = node.rails,
                  .pair_rate = {},
                  .forwards = !pcie};
  if (node.nics == 0) part.nic_rate = {};
  if (node.nics > 0) part.devices_per_nic = std::max(1, node.accelerators / node.nics);
  if (node.scale_up == ScaleUp::kFullMesh) part.pair_rate = part.link_rate / std::max(1, node.accelerators - 1);
  return part;
}

Cluster make_cluster(std::vector<Pool> pools, const FabricSpec& spec, const Place& place) {
  std::vector<FabricPool> parts;
  for (const Pool& pool : pools) parts.push_back(fabric_pool(pool, spec));
  const std::string problem = Fabric::problem(spec, parts);
  if (!problem.empty()) place.fail(problem);
  return {std::move(pools), Fabric(spec, std::move(parts))};
}

}  // namespace

void read_cluster(Section section, Scenario& scenario, const Catalog* catalog) {
  std::vector<Pool> pools;
  for (Section& pool : section.objects("pools", true, "groups of equal nodes")) {
    pools.push_back(read_pool(pool, catalog));
    const auto same_name = [&](const Pool& other) { return other.name == pools.back().name; };
    if (std::count_if(pools.begin(), pools.end(), same_name) > 1) {
      pool.place_of("name").fail(fmt::format("pool \"{}\" stands here twice", pools.back().name));
    }
  }
  const Value* fabric = section.value(
      "fabric", true,
      description_of("object", "{\"type\": a name of `moebius list fabrics`, \"nic\": ..., changes}"));
  section.finish();
  if (catalog == nullptr) return;
  if (pools.empty()) section.place_of("pools").fail("expected at least one pool, found none");
  const Place place = section.place_of("fabric");
  const FabricSpec spec = catalog->fabric(*fabric, place, pools.front().accelerator.nic_rate);
  scenario.cluster = make_cluster(std::move(pools), spec, place);
}

}  // namespace moebius
