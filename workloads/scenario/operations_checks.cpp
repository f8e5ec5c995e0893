// What keys of a cluster over weeks are to each other.
#include "workloads/scenario/operations_keys.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cluster/queue/queue_plan.h"
#include "workloads/scenario/new_names.h"
#include "workloads/scenario/queueing_keys.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

constexpr double kMostFaults = 1e7;  // of a course, that it takes seconds and not hours
constexpr std::int64_t kMostKept = 1'000'000;  // checkpoints of a job

// Faults at stated times on `nodes`.
void check_trace(const ClusterPlan& plan, int nodes, const Document& document) {
  for (std::size_t i = 0; i < plan.trace.size(); ++i) {
    const auto place = [&](const char* key) {
      return place_at(document, fmt::format("/operations/failures/trace/{}/{}", i, key));
    };
    if (plan.trace[i].node >= nodes)
      place("node").fail(
          fmt::format("expected a node from 0 to {}, found {}", nodes - 1, plan.trace[i].node));
    if (plan.trace[i].time >= plan.duration)
      place("time").fail(fmt::format("expected a time before the end after {}, found {}",
                                     to_text(plan.duration), to_text(plan.trace[i].time)));
  }
}

// Steps of `jobs` are those of their own scenarios, on clusters of their own.
void check_own_clusters(const Document& document) {
  const Value* cluster = document.root.find("cluster");
  for (const char* key : {"collectives", "copy_engines", "failed", "forwarding", "forwarding_chunk",
                          "forwarding_pairs", "kernels", "launch", "variation"})
    if (cluster != nullptr && cluster->find(key) != nullptr)
      place_at(document, fmt::format("/cluster/{}", key))
          .fail(fmt::format("\"{}\" counts only with queueing", key));
}

// The node cannot draw less than nothing, even while no job computes on it.
void check_cooling(const Scenario& scenario, const Document& document) {
  const ClusterPlan& plan = scenario.operations->plan;
  for (const Pool& pool : scenario.cluster->pools) {
    const double devices = pool.accelerator.power.value * pool.node.accelerators;
    const double idle = pool.node.overhead_power.value + plan.power.idle * devices;
    if (plan.cooling.saved.value > idle)
      place_at(document, "/operations/cooling/saved_watts")
          .fail(
              fmt::format("expected at most the {:.0f} that an idle node of pool \"{}\" draws, found {:.6g}",
                          idle, pool.name, plan.cooling.saved.value));
  }
}

// Every fault is an event of its own.
void check_fault_rate(const Scenario& scenario, const Document& document) {
  const ClusterPlan& plan = scenario.operations->plan;
  const auto& queueing = scenario.operations->queueing;
  const double jobs = queueing ? queueing->load.jobs : static_cast<double>(plan.jobs.size());
  double nodes = 0, devices = 0, rate = 0;
  for (const Pool& pool : scenario.cluster->pools) nodes += pool.nodes, devices += pool.devices();
  for (const FailureKind& kind : plan.faults) {
    const double units = kind.unit == FailureUnit::kJob    ? jobs
                         : kind.unit == FailureUnit::kNode ? nodes
                                                           : devices;
    rate += units * kind.per_hour;
  }
  const double faults = rate * plan.duration.seconds() / 3600;
  if (faults > kMostFaults)
    place_at(document, "/operations/failures")
        .fail(fmt::format("expected at most {:.3g} faults in {}, found rates that make {:.3g}", kMostFaults,
                          to_text(plan.duration), faults));
}

// Storage's list of them is walked and kept, also where intervals are of microseconds.
void check_kept(const ClusterPlan& plan, const Document& document) {
  if (plan.checkpoint.policy == CheckpointPolicy::kNone) return;
  const Time least{plan.duration.ns / kMostKept};
  if (plan.checkpoint.keep_every.ns > least.ns) return;
  place_at(document, "/operations/checkpoint/keep_every")
      .fail(fmt::format("expected more than {}, a millionth of the duration, found {}", to_text(least),
                        to_text(plan.checkpoint.keep_every)));
}

}  // namespace

void check_operations(const Scenario& scenario, const Document& document) {
  const ClusterPlan& plan = scenario.operations->plan;
  int nodes = 0;
  for (const Pool& pool : scenario.cluster->pools) nodes += pool.nodes;
  check_trace(plan, nodes, document);
  check_cooling(scenario, document);
  check_fault_rate(scenario, document);
  check_kept(plan, document);
  if (plan.checkpoint.policy == CheckpointPolicy::kNone && plan.checkpoint.triggered > 0)
    place_at(document, "/operations/checkpoint/triggered")
        .fail(fmt::format("expected 0 with policy \"none\", which saves nothing, found {}",
                          plan.checkpoint.triggered));
  if (scenario.operations->queueing) return check_queueing(scenario, document);
  check_own_clusters(document);
  if (scenario.cluster->pools.size() > 1)
    place_at(document, "/cluster/pools")
        .fail(
            fmt::format("expected one pool of equal nodes so far, found {}", scenario.cluster->pools.size()));
  if (plan.jobs.empty()) place_at(document, "/jobs").fail("expected at least one job, found none");
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    const ClusterJob& job = plan.jobs[i];
    const std::string pointer = fmt::format("/jobs/{}", i);
    if (job.nodes + plan.spares > plan.nodes)
      place_at(document, pointer + "/nodes")
          .fail(fmt::format("{} nodes and {} spares, but the cluster has {}", job.nodes, plan.spares,
                            plan.nodes));
    const bool simulated = !scenario.operations->job_scenarios[i].empty();
    if (job.state.value <= 0 && !simulated && plan.checkpoint.policy != CheckpointPolicy::kNone)
      place_at(document, pointer)
          .fail("expected \"model\", \"state\" or \"scenario\", that checkpoints have a size, found none");
    if (simulated && job.step.ns > 0)
      place_at(document, pointer + "/step_time").fail("expected \"scenario\" or \"step_time\", found both");
  }
}

}  // namespace moebius
