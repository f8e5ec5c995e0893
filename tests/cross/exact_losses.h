// What spreading a small model over ranks must not change.
#pragma once

#include <concepts>
#include <vector>

#include <catch2/catch.hpp>

#include "real/initial_values.h"
#include "tests/cross/small_training.h"

namespace moebius {

// Losses of three steps: the second and third also see the updates. Nothing of a microbatch is left.
template <class Real>
std::vector<double> three_losses(const TrainingJob& job, const HostOptions& options) {
  SmallRun<Real> run(job, options);
  const HostExecutor<Real>& executor = run.run();
  REQUIRE(executor.num_steps() == 3);
  for (int rank = 0; rank < run.ranks(); ++rank) CHECK(executor.num_microbatch_tensors(rank) == 0);
  return {executor.loss(0), executor.loss(1), executor.loss(2)};
}

template <class Real>
std::vector<double> three_losses(const TrainingJob& job, bool exact) {
  HostOptions options;
  options.exact = exact;
  return three_losses<Real>(job, options);
}

// In double precision: what differs is the order of sums.
inline std::vector<double> exact_losses(const TrainingJob& job) {
  return three_losses<double>(job, true);
}

inline void require_same_losses(const TrainingJob& job, const TrainingJob& changed) {
  const std::vector<double> expected = exact_losses(job), found = exact_losses(changed);
  for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
}

template <std::invocable<TrainingJob&> Change>
void require_same_losses(const TrainingJob& job, const Change& change) {
  TrainingJob changed = job;
  change(changed);
  require_same_losses(job, changed);
}

// Three steps in which every token uses all four experts, so that the choices do not depend on how tokens are
// spread; the gate still weighs them.
inline TrainingJob all_experts_job(AttentionKind attention) {
  TrainingJob job = small_job(all_experts(small_model(attention)));
  job.workload.steps = 3;
  return job;
}

// Four layers, enough for two stages on each of two ranks.
inline TrainingJob deep_job(bool tied = false) {
  TrainingJob job = small_job(all_experts(full_model()));
  job.model.layers = 4;
  job.model.experts.active_groups = 4;
  job.model.tied_embeddings = tied;
  job.workload.global_batch = 8;
  job.workload.steps = 3;
  return job;
}

// Without experts, whose ranks hold the same activations.
inline TrainingJob dense_job() {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.model.experts = {};
  job.workload.steps = 3;
  return job;
}

// From the same numbers whatever ranks share heads, columns of an MLP and rows of matrices.
inline std::vector<double> losses_by_matrix(const TrainingJob& job) {
  HostOptions options;
  options.exact = true;
  options.stacked = [&model = job.model](const Tensor& of) { return stacked_rows(of, model); };
  return three_losses<double>(job, options);
}

template <std::invocable<TrainingJob&> Change>
void require_losses_of_one_rank(const TrainingJob& job, const Change& change) {
  TrainingJob changed = job;
  change(changed);
  const std::vector<double> expected = losses_by_matrix(job), found = losses_by_matrix(changed);
  for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
}

template <std::invocable<TrainingPlan&> Change>
void require_losses_of_one_rank(const TrainingJob& job, const Change& change) {
  require_losses_of_one_rank(job, [&](TrainingJob& changed) { change(changed.plan); });
}

}  // namespace moebius
