// What spreading a small model over ranks must not change.
#pragma once

#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/small_training.h"

namespace moebius {

// Losses of the first three steps in double precision: the second and third also see the updates.
inline std::vector<double> exact_losses(const TrainingJob& job) {
  HostOptions options;
  options.exact = true;
  SmallRun<double> run(job, options);
  const HostExecutor<double>& executor = run.run();
  REQUIRE(executor.num_steps() == 3);
  for (int rank = 0; rank < run.ranks(); ++rank) CHECK(executor.num_microbatch_tensors(rank) == 0);
  return {executor.loss(0), executor.loss(1), executor.loss(2)};
}

// Three steps in which every token uses all four experts, so that the choices do not depend on how tokens are
// spread; the gate still weighs them.
inline TrainingJob all_experts_job(AttentionKind attention) {
  TrainingJob job = small_job(small_model(attention));
  job.model.experts.active = 4;
  job.workload.steps = 3;
  return job;
}

}  // namespace moebius
