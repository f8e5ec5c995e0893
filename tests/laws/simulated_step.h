// Training steps on the simulator.
#pragma once

#include <vector>

#include "tests/laws/small_world.h"
#include "tests/unit/training/small_job.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

struct StepResult {
  double seconds = 0;
  Metrics metrics;
};

// Every pool has the same costs.
inline StepResult simulate(const TrainingJob& job, const Cluster& cluster, const CostSource& cost,
                           const SimOptions& options = {}) {
  Training training(job);
  Recorder recorder(training.layout(), {});
  const std::vector<const CostSource*> costs(cluster.pools.size(), &cost);
  auto executor = make_sim_executor(cluster, training.layout(), costs, recorder, options);
  const Time end = execute(training, *executor, recorder);
  return {end.seconds(), recorder.finish(end)};
}

inline StepResult simulate(const TrainingJob& job, const World& world, const CostSource& cost,
                           const SimOptions& options = {}) {
  return simulate(job, make_cluster(world), cost, options);
}

// A layer a stage and a head of next to no work: attention alone costs something, the same in all.
inline TrainingJob equal_stages(int stages, int microbatches, int replicas = 1) {
  TrainingJob job;
  job.model = small_model();
  job.model.experts = {};
  job.model.first_dense = 0;
  job.model.layers = stages;
  job.model.vocabulary = 16;
  job.plan.pp = stages;
  job.plan.dp = replicas;
  job.workload.sequence_length = 32;
  job.workload.global_batch = microbatches * replicas;
  return job;
}

inline constexpr double kForward = 1e-3, kBackward = 2e-3;  // of a layer and microbatch

inline NamedCost cost_of_passes() {
  return NamedCost({{OpKind::kAttention, {kForward}}, {OpKind::kAttentionGrad, {kBackward}}});
}

}  // namespace moebius
