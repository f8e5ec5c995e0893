#include "workloads/report/summary.h"

#include <fmt/format.h>

#include "hw/mixed_pools.h"
#include "workloads/listing/model_text.h"
#include "workloads/report/report.h"
#include "workloads/schedule/hash.h"
#include "workloads/training/pipeline/mixed_stages.h"
#include "workloads/training/pipeline/split_groups.h"

namespace moebius {

namespace {

std::string transport_text(const PacketTransport& transport) {
  if (transport.ideal) return "";
  return fmt::format(
      "transport: packets of {} with a header of {}, {} sent unasked, {} pulled every {} at line rate: "
      "{:.4f} of "
      "it payload; queues of {} packets, {} entropies\n",
      to_text(Bytes{transport.packet}), to_text(Bytes{transport.header}), transport.window,
      to_text(Bytes{transport.credit}), to_text(Bytes{transport.pull_spacing}), transport.efficiency(),
      transport.queue, transport.entropies);
}

std::string cluster_text(const Cluster& cluster) {
  std::string text;
  for (const Pool& pool : cluster.pools) {
    text += fmt::format("pool {}: {} x {} = {} x {}{}\n", pool.name, pool.nodes, pool.node.id, pool.devices(),
                        pool.accelerator.id, pool.region.empty() ? "" : " in region " + pool.region);
  }
  const FabricSpec& spec = cluster.fabric.spec();
  text += fmt::format("fabric: {}, {} planes, {} tiers, oversubscription {}\n", spec.type, spec.planes,
                      spec.tiers, spec.oversubscription);
  text += forwarding_text(cluster);
  text += transport_text(spec.transport);
  if (cluster.fabric.num_regions() < 2) return text;
  return text + fmt::format("regions: {}, {:.6g} km of fibre ({}) and {} from one to another\n",
                            fmt::join(region_names(cluster.pools), ", "), spec.region_distance.value / 1000,
                            to_text(time_from_seconds(spec.region_distance.value * kFibreSecondsPerMetre)),
                            to_text(spec.region_rate));
}

// Settings that decide nothing about the run.
bool is_label(const std::string& pointer) {
  return pointer == "/$schema" || pointer == "/name" || pointer == "/kind" ||
         pointer.rfind("/expect", 0) == 0;
}

// Of JSON: a space behind each comma that stands outside of text, so that long objects can go on below.
std::string spaced(const std::string& value) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    text += value[i];
    if (value[i] == '"' && (i == 0 || value[i - 1] != '\\')) quoted = !quoted;
    if (!quoted && value[i] == ',' && i + 1 < value.size() && value[i + 1] != ' ') text += ' ';
  }
  return text;
}

}  // namespace

std::string settings_text(const Scenario& scenario) {
  std::string text =
      fmt::format("{}\n{}: valid, {}\n\n{}\n", scenario.name, scenario.file, to_string(scenario.kind),
                  scenario.cluster ? cluster_text(*scenario.cluster) : "");
  if (scenario.kind == ScenarioKind::kTraining) {
    for (const std::string& sentence : groups_across_vendors(*scenario.cluster, scenario.plan))
      text += fmt::format("warning: {}\n", sentence);
  }
  for (const Setting& setting : scenario.settings) {
    if (is_label(setting.pointer)) continue;
    text += fmt::format("  {:<34} {:<32}{}\n", setting.pointer, spaced(setting.value),
                        setting.given ? "" : " (default)");
  }
  return text + imported_text(scenario.model);
}

std::string settings_text(const Job& job) {
  std::string text = settings_text(job.scenario);
  if (job.training) {
    text += fmt::format("\n{}", job.training->describe());
    for (const std::string& sentence : groups_over_domains(*job.scenario.cluster, job.training->layout()))
      text += fmt::format("warning: {}\n", sentence);
  }
  if (job.scenario.slices) text += describe(*job.scenario.slices);
  if (job.serving) text += fmt::format("\n{}", job.serving->describe());
  if (job.memory) text += fmt::format("\n{}", memory_text(*job.memory));
  return text;
}

std::string settings_hash(const Scenario& scenario) {
  Hash hash;
  hash.add(scenario.seed);
  for (const Setting& setting : scenario.settings)
    if (!is_label(setting.pointer) && !setting.pointer.starts_with("/timeline/"))
      hash.add(setting.pointer).add(setting.value);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace moebius
