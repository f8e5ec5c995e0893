#include "workloads/study/placement/placed_job.h"

#include <numeric>

#include <fmt/format.h>

#include "workloads/scenario/placement_keys.h"
#include "workloads/study/placement/placement.h"
#include "workloads/training/pipeline/columns.h"

namespace moebius {

std::vector<std::int32_t> free_devices(const RankPlacement& placement, const Cluster& cluster) {
  if (!placement.devices.empty()) return placement.devices;
  std::vector<std::int32_t> all(cluster.fabric.num_devices());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int32_t> devices_alike(const Scenario& scenario) {
  if (scenario.kind != ScenarioKind::kTraining) return {};
  RankPlacement placement = placement_of(scenario);
  if (placement.devices.empty() || !placement.ranks.empty() || placement.by_volume) return {};
  // Drawn speeds are told by device; those of a folded run, by rank.
  if (scenario.cluster->variation.any()) return {};
  placement.devices.resize(scenario.plan.ranks());
  const bool alike = fills_like_domains(placement.devices, scenario.cluster->fabric);
  return alike ? placement.devices : std::vector<std::int32_t>{};
}

std::vector<std::int32_t> devices_of_ranks(const TrainingJob& job, const Scenario& scenario,
                                           const Document& document) {
  const RankPlacement placement = placement_of(scenario);
  if (!placement.any()) return {};
  if (!placement.ranks.empty()) return placement.ranks;
  const int ranks = job.plan.ranks();
  std::vector<std::int32_t> free = free_devices(placement, *scenario.cluster);
  if (!placement.by_volume) {
    free.resize(ranks);
    return free;
  }
  if (ranks > kMostPlacedRanks)
    place_at(document, "/plan/placement/order")
        .fail(fmt::format("\"volume\" places at most {} ranks, found {}", kMostPlacedRanks, ranks));
  const std::vector<RankExchange> exchanges = exchanges_of(job);
  const PlacementProblem problem{.fabric = scenario.cluster->fabric,
                                 .exchanges = exchanges,
                                 .ranks = ranks,
                                 .free = free,
                                 .tp = job.plan.tp,
                                 .seed = scenario.seed};
  return find_placements(problem, 1).best.front().device_of_rank;
}

}  // namespace moebius
