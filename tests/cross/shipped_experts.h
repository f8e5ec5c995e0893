// The scenario that ships with experts that move while it is carried out, and who simulates it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_executor.h"
#include "workloads/cost/cost_source.h"
#include "workloads/crosscheck/crosscheck.h"
#include "workloads/service/carried_job.h"

namespace moebius {

// Every rank by itself, with so many turns.
inline Job moving_job(std::vector<std::string> sets = {}, int turns = 40) {
  Changes changes;
  changes.unfold = true;
  changes.sets = std::move(sets);
  changes.sets.push_back("/workload/trace/requests=" + std::to_string(turns));
  const std::string file = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/serve-carried-eplb.json";
  Job job = read_job(file, changes, Library(""));
  if (job.is_service()) carry_out(job);
  return job;
}

inline StartedExecutor simulate_plainly(const Job& job, const Layout& layout, Recorder& recorder) {
  StartedExecutor engine;
  const std::shared_ptr<const CostSource> source =
      make_cost_source(job.scenario.cluster->pools.front().accelerator, "");
  engine.keepers.push_back(source);
  const std::vector<const CostSource*> sources(job.scenario.cluster->pools.size(), source.get());
  engine.executor = make_sim_executor(*job.scenario.cluster, layout, sources, recorder,
                                      {.detail = NetworkDetail::kFluid, .driver = Driver::kPlain});
  return engine;
}

// How often an op of this kind was joined.
inline std::int64_t joined(const Crosscheck& result, OpKind kind) {
  for (const KindError& of : result.comparison.kinds)
    if (of.kind == kind) return of.count;
  return 0;
}

}  // namespace moebius
