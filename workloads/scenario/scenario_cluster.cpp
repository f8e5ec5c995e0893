// The machines of a scenario: pools of equal nodes and the fabric between them.
#include <array>

#include <fmt/format.h>

#include "workloads/scenario/forwarding_keys.h"
#include "workloads/scenario/new_names.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {

namespace {

constexpr std::array kCollectiveSources = {
    Named<CollectiveSource>{"structure", CollectiveSource::kStructure, "wires and their latency alone"},
    Named<CollectiveSource>{
        "library", CollectiveSource::kLibrary,
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
  require_one_line(pool.name, section.place_of("name"));
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

constexpr std::array kSpeedLaws = {
    Named<SpeedLaw>{"normal", SpeedLaw::kNormal, "1 + sigma x a normal number"},
    Named<SpeedLaw>{"lognormal", SpeedLaw::kLogNormal, "exp(sigma x a normal number)"},
};

// A normal number of a RandomStream is above -8.6: with the largest sigma no speed comes below 0.
SpeedVariation read_variation(Section section) {
  SpeedVariation variation;
  variation.law = section.choice<SpeedLaw>("law", std::span<const Named<SpeedLaw>>(kSpeedLaws),
                                           SpeedLaw::kNormal, "of the speed of each device, drawn once");
  variation.sigma = section.number("sigma", {0, 0.11}, 0, "of the speeds; 0: all alike");
  section.allow_only("law", section.given("sigma"), "\"sigma\"");
  variation.power = section.number(
      "power", {0, 0.2}, variation.sigma > 0 ? 0 : SpeedVariation::kPower,
      "spread of what boards of one kind draw for the same work: at their power limit the "
      "hungriest of those that wait for each other sets the clock; 0: all alike; 0 where sigma "
      "says how fast they are");
  for (Section& row : section.objects("slow", false, "devices with a known speed")) {
    SlowDevice device;
    device.device =
        static_cast<std::int32_t>(row.integer("device", {0, 1 << 24}, std::nullopt, "counted from 0"));
    device.speed = row.number("speed", {0.01, 10}, std::nullopt, "against others of its kind");
    row.finish();
    variation.slow.push_back(device);
  }
  section.finish();
  return variation;
}

// Training alone spreads devices of unlike speed over its ranks.
void check_variation(const Scenario& scenario, const Place& place) {
  const SpeedVariation& variation = scenario.cluster->variation;
  if (!variation.any()) return;
  if (scenario.kind != ScenarioKind::kTraining)
    place.fail(fmt::format("expected no devices of unlike speed but for training, found them for {}",
                           to_string(scenario.kind)));
  std::int64_t devices = 0;
  for (const Pool& pool : scenario.cluster->pools) devices += pool.devices();
  for (const SlowDevice& slow : variation.slow) {
    if (slow.device >= devices)
      place.fail(fmt::format("expected a device from 0 to {}, found {}", devices - 1, slow.device));
  }
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
  const bool said = section.given("collectives");
  const auto collectives = section.choice<CollectiveSource>(
      "collectives", std::span<const Named<CollectiveSource>>(kCollectiveSources),
      serving ? CollectiveSource::kSglang : CollectiveSource::kLibrary,
      "what decides how long a collective takes, inside a scale-up domain and between nodes; a service's "
      "framework has its own unless this says another; algorithms that a workload names are the structure's "
      "unless this key is written");
  const bool copy_engines = section.boolean(
      "copy_engines", false,
      "all-gathers and all-to-alls inside a scale-up domain are copied by engines of their own and hold no "
      "cores (NCCL 2.28 on, symmetric memory and NCCL_CTA_POLICY_ZERO); else each channel holds one");
  const SpeedVariation variation =
      read_variation(section.object("variation", false, "devices of one kind that differ in speed"));
  // CUDA launch through the driver: 2 to 5 us (measured by many; NVIDIA's own latency tests). A framework
  // adds its own.
  const Time launch =
      section.time("launch", Time{4'000}, "of one kernel, or of a captured graph, by the host");
  scenario.kernels = section.text(
      "kernels", "",
      "the software whose measured kernels count, as profiles call it (\"sglang-0.5.10\"); empty: the first "
      "of each chip's profile that knows a kernel; after it, \"; KIND/DTYPE=STACK\" for kernels of another "
      "one; "
      "simulated only");
  scenario.kernels_at = section.place_of("kernels");
  section.finish();
  if (catalog == nullptr) return;
  const Place place = section.place_of("pools");
  if (pools.empty()) place.fail("expected at least one pool, found none");
  FabricSpec spec = catalog->fabric(*fabric, section.place_of("fabric"), nic_line_rate(pools.front(), {}));
  forwarding.set(pools, spec);
  scenario.cluster = build_cluster(std::move(pools), spec, place);
  set_failed(failed, *scenario.cluster);
  scenario.cluster->collectives = collectives;
  scenario.cluster->library_as_named = said && collectives != CollectiveSource::kStructure;
  scenario.cluster->copy_engines = copy_engines;
  scenario.cluster->launch = launch;
  scenario.cluster->variation = variation;
  check_variation(scenario, section.place_of("variation"));
}

}  // namespace moebius
