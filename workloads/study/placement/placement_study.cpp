#include "workloads/study/placement/placement_study.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/mixed_pools.h"
#include "workloads/crew.h"
#include "workloads/scenario/placement_keys.h"
#include "workloads/study/placement/fragmented_clusters.h"
#include "workloads/study/placement/placed_job.h"

namespace moebius {
namespace {

constexpr const char* kOrder = "/plan/placement/order";
constexpr const char* kRanks = "/plan/placement/ranks";

double step_seconds(Document document, const std::vector<std::int32_t>& device_of_rank,
                    const PlacingRequest& request) {
  set_at_pointer(document, kOrder, "\"naive\"");
  set_at_pointer(document, kRanks, fmt::format("\"{}\"", device_ranges(device_of_rank)));
  Job job = read_job(std::move(document), {}, request.library);
  job.scenario.timeline.detail = Detail::kNone;
  require_fit(job);
  const Outcome outcome = perform(job, request.start, {.wants_spans = false, .quiet = true});
  return outcome.report.metrics.makespan.seconds() / job.scenario.training.num_steps();
}

// As it is without a placement of its own: what it sends does not depend on where it stands.
Job naive_job(Document document, const PlacingRequest& request) {
  // Other kinds have no plan to change.
  const Value* kind = document.root.kind == Value::Kind::kObject ? document.root.find("kind") : nullptr;
  if (kind != nullptr && kind->text != to_string(ScenarioKind::kTraining))
    throw input_error(
        fmt::format("{}: expected a training scenario to place, found {}", document.file, kind->excerpt()));
  set_at_pointer(document, kOrder, "\"naive\"");
  set_at_pointer(document, kRanks, "\"\"");
  Job job = read_job(std::move(document), {}, request.library);
  if (!job.training)
    throw input_error(fmt::format("{}: expected a training scenario to place, found {}", job.scenario.file,
                                  to_string(job.scenario.kind)));
  if (job.scenario.ranks() > kMostPlacedRanks)
    throw input_error(fmt::format("{}: expected at most {} ranks to place, found {}", job.scenario.file,
                                  kMostPlacedRanks, job.scenario.ranks()));
  return job;
}

std::vector<RankExchange> exchanges_of(const Job& job) {
  return exchanges_of(TrainingJob{.model = job.scenario.model,
                                  .plan = job.scenario.plan,
                                  .workload = job.scenario.training,
                                  .ranks_per_node = job.scenario.cluster->pools.front().node.accelerators});
}

}  // namespace

PlacementStudy study_placement(const PlacingRequest& request) {
  const Job job = naive_job(request.scenario, request);
  if (several_kinds(*job.scenario.cluster))
    throw input_error(
        fmt::format("{}: expected pools of one kind to place ranks on: `moebius split` is for several",
                    job.scenario.file));
  const std::vector<RankExchange> exchanges = exchanges_of(job);
  const Fabric& fabric = job.scenario.cluster->fabric;
  const PlacementProblem problem{.fabric = fabric,
                                 .exchanges = exchanges,
                                 .ranks = job.scenario.ranks(),
                                 .free = free_devices(placement_of(job.scenario), *job.scenario.cluster),
                                 .tp = job.scenario.plan.tp,
                                 .seed = job.scenario.seed};
  const Placements placements = find_placements(problem, request.finalists);
  PlacementStudy study{.scenario = job.scenario.file,
                       .name = job.scenario.name,
                       .ranks = problem.ranks,
                       .free = static_cast<int>(problem.free.size()),
                       .seed = job.scenario.seed,
                       .bytes = {},
                       .finalists = {},
                       .naive = {},
                       .tried = placements.tried,
                       .exact = placements.exact};
  for (const RankExchange& exchange : exchanges) study.bytes[exchange.role] += total_bytes(exchange);
  // From here the finalists stand; each is carried out.
  CommunicationLoads loads(fabric, exchanges, problem.ranks);
  const auto carried_out = [&](const PlacedRanks& placed) {
    loads.place(placed.device_of_rank);
    return PlacementStudy::Finalist{placed, step_seconds(request.scenario, placed.device_of_rank, request),
                                    loads.by_role()};
  };
  study.naive = carried_out(placements.naive);
  study.finalists.push_back(study.naive);
  for (const PlacedRanks& placed : placements.best)
    if (placed.device_of_rank != placements.naive.device_of_rank)
      study.finalists.push_back(carried_out(placed));
  std::stable_sort(study.finalists.begin(), study.finalists.end(),
                   [](const auto& a, const auto& b) { return a.step_seconds < b.step_seconds; });
  return study;
}

std::vector<FragmentedGain> study_fragmented(std::uint64_t first, int count, const Library& library,
                                             const StartExecutor& start) {
  std::vector<FragmentedGain> gains(count);
  work_side_by_side(count, [&](std::size_t i) {
    const FragmentedCluster cluster = fragmented_cluster(first + i);
    const PlacementStudy study = study_placement(
        {parse_document(cluster.scenario, fmt::format("<fragmented {}>", first + i)), library, start});
    gains[i] = {cluster.name,
                study.best().placed.how,
                cluster.whole_nodes,
                study.naive.step_seconds,
                study.best().step_seconds,
                study.naive.placed.cost.seconds,
                study.best().placed.cost.seconds};
  });
  return gains;
}

}  // namespace moebius
