// Gradients that are scaled down to a norm over all parameters: the norm is the same however a step is
// spread.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

constexpr double kNeverReached = 1e6, kReached = 1e-3;

// Without clipping every step moves a weight by about the learning rate, for Adam divides by the gradients'
// own size: only that gradients of different steps are scaled by different factors shows.
std::vector<double> losses_clipped_to(TrainingJob job, double norm) {
  job.plan.clip = norm;
  return exact_losses(job);
}

template <class Change>
void require_same_norm(TrainingJob job, const Change& change) {
  const std::vector<double> free = exact_losses(job), expected = losses_clipped_to(job, kReached);
  CHECK(expected[2] != Approx(free[2]).epsilon(1e-6));
  change(job);
  const std::vector<double> found = losses_clipped_to(job, kReached);
  for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
}

}  // namespace

TEST_CASE("a norm that gradients do not reach changes no bit of the loss") {
  for (const int pp : {1, 2}) {
    TrainingJob job = all_experts_job(AttentionKind::kMla);
    job.plan.dp = 2;
    job.plan.ep = 2;
    job.plan.pp = pp;
    job.plan.zero = 1;
    CHECK(losses_clipped_to(job, kNeverReached) == exact_losses(job));
  }
}

TEST_CASE("gradients cut over replicas are clipped by the norm of the whole") {
  for (const int zero : {0, 1, 2, 3}) {
    require_same_norm(all_experts_job(AttentionKind::kMla), [&](TrainingJob& job) {
      job.plan.dp = 4;
      job.plan.ep = 2;
      job.plan.zero = zero;
    });
  }
}

TEST_CASE("tensor-parallel ranks clip alike, whatever rows lie between their blocks") {
  TrainingJob dense = dense_job();
  dense.plan.tp = 2;
  require_same_norm(dense, [](TrainingJob& job) { job.plan.sequence_parallel = true; });
  TrainingJob experts = all_experts_job(AttentionKind::kMla);
  experts.plan.tp = experts.plan.dp = 2;
  experts.plan.sequence_parallel = true;
  require_same_norm(experts, [](TrainingJob& job) { job.plan.ep = 4; });
}

TEST_CASE("the norm joins all stages, and an embedding that two of them hold counts once") {
  TrainingJob tied = all_experts_job(AttentionKind::kGqa);
  tied.model.tied_embeddings = true;
  tied.model.mtp_layers = 1;
  require_same_norm(tied, [](TrainingJob& job) { job.plan.pp = 2; });
}

TEST_CASE("updates in kernels of their own clip alike") {
  require_same_norm(dense_job(), [](TrainingJob& job) { job.plan.separate_update = true; });
}

}  // namespace moebius
