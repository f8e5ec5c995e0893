// The machines of a scenario: pools of equal nodes and the fabric between them.
#include <array>

#include "workloads/scenario/forwarding_keys.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr std::array kCollectiveSources = {
    Named<CollectiveSource>{"structure", CollectiveSource::kStructure, "wires and their latency alone"},
    Named<CollectiveSource>{"library", CollectiveSource::kLibrary,
                            "launch, steps, protocol and tuner of the chip's library (NCCL; oneCCL in a node)"},
    Named<CollectiveSource>{"sglang", CollectiveSource::kSglang,
                            "as library, with SGLang's own all-reduce before it"},
    Named<CollectiveSource>{"trtllm", CollectiveSource::kTrtllm,
                            "as library, with TensorRT-LLM's own all-reduce before it"},
    Named<CollectiveSource>{"vllm", CollectiveSource::kVllm,
                            "as library, with vLLM's own all-reduce before it"},
};

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
  pool.region = section.text("region", "", "where it stands, if the pools stand in several places");
  if (catalog != nullptr) {
    pool.accelerator = catalog->accelerator(*accelerator, section.place_of("accelerator"));
    pool.node = catalog->node(*node, section.place_of("node"));
  }
  section.finish();
  return pool;
}

}  // namespace

void read_cluster(Section section, Scenario& scenario, const Catalog* catalog) {
  std::vector<Pool> pools;
  for (Section& pool : section.objects("pools", true, "groups of equal nodes")) {
    pools.push_back(read_pool(pool, catalog));
  }
  const Value* fabric = section.value(
      "fabric", true,
      description_of("object", "{\"type\": a name of `moebius list fabrics`, \"nic\": ..., changes}"));
  ForwardingKeys forwarding(section, catalog == nullptr);
  const std::vector<FailedPart> failed = read_failed(section, catalog == nullptr);
  const bool serving = scenario.kind == ScenarioKind::kServing;
  const auto collectives = section.choice<CollectiveSource>(
      "collectives", std::span<const Named<CollectiveSource>>(kCollectiveSources),
      serving ? CollectiveSource::kSglang : CollectiveSource::kLibrary,
      "what decides how long a collective takes, inside a scale-up domain and between nodes");
  section.finish();
  if (catalog == nullptr) return;
  const Place place = section.place_of("pools");
  if (pools.empty()) place.fail("expected at least one pool, found none");
  FabricSpec spec =
      catalog->fabric(*fabric, section.place_of("fabric"), pools.front().accelerator.nic_rate);
  forwarding.set(pools, spec);
  scenario.cluster = build_cluster(std::move(pools), spec, place);
  set_failed(failed, *scenario.cluster);
  scenario.cluster->collectives = collectives;
}

}  // namespace moebius
