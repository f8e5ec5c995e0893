// Experts that several ranks share, and sequences whose keys go round a ring or whose heads are cut: where
// work stands changes, the loss does not.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

void require_alike(const std::vector<double>& found, const std::vector<double>& expected) {
  for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
}

// Plain experts, of which any cut has the same columns: gated ones are cut as dense MLPs are, gate and up
// columns of a rank side by side, which is a property of the degree.
TrainingJob plain_experts() {
  TrainingJob job = all_experts_job(AttentionKind::kMla);
  job.model.gated = false;
  job.plan.dp = 4;
  return job;
}

}  // namespace

TEST_CASE("experts that one or two or four ranks share have the same loss") {
  const std::vector<double> expected = exact_losses(plain_experts());
  const std::vector<std::pair<int, int>> degrees{{1, 2}, {2, 2}, {1, 4}};
  for (const auto& [ep, expert_tp] : degrees) {
    TrainingJob job = plain_experts();
    job.plan.ep = ep;
    job.plan.expert_tp = expert_tp;
    require_alike(exact_losses(job), expected);
  }
}

TEST_CASE(
    "shared experts have the same loss whatever attention is spread over and whatever is written anew") {
  TrainingJob job = all_experts_job(AttentionKind::kGqa);
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.expert_tp = 2;
  const std::vector<double> expected = exact_losses(job);
  TrainingJob halves = job;
  halves.plan.dp = 1;
  halves.plan.cp = 2;
  require_alike(exact_losses(halves), expected);
  TrainingJob sharded = job;
  sharded.plan.zero = 3;
  sharded.plan.overlap_gradients = true;
  require_alike(exact_losses(sharded), expected);
  TrainingJob again = job;
  again.plan.recompute = RecomputePolicy::kFull;
  require_alike(exact_losses(again), expected);
  again.plan.recompute = RecomputePolicy::kSelective;
  again.plan.recompute_ops = {RecomputeOp::kDispatch, RecomputeOp::kPermute};
  require_alike(exact_losses(again), expected);
  TrainingJob eight_bits = job;
  eight_bits.plan.dispatch = DType::kFp8;
  eight_bits.plan.overlap_dispatch_combine = false;
  require_alike(exact_losses(eight_bits), expected);
}

TEST_CASE("keys that go round a ring have the loss of whole sequences") {
  for (const AttentionKind attention : {AttentionKind::kMla, AttentionKind::kGqa}) {
    const std::vector<double> expected = exact_losses(all_experts_job(attention));
    for (const int cp : {2, 4}) {
      TrainingJob job = all_experts_job(attention);
      job.plan.cp = cp;
      job.plan.context = ContextKind::kRing;
      job.plan.ep = 2;
      job.workload.micro_batch = 2;
      require_alike(exact_losses(job), expected);
    }
  }
}

TEST_CASE("a ring beside tensor parallelism and pipelines and recomputing has the same loss") {
  TrainingJob job = all_experts_job(AttentionKind::kGqa);
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  const std::vector<double> expected = exact_losses(job);
  job.plan.cp = 2;
  job.plan.context = ContextKind::kRing;
  job.plan.pp = 2;
  require_alike(exact_losses(job), expected);
  job.plan.recompute = RecomputePolicy::kFull;
  require_alike(exact_losses(job), expected);
  job.plan.recompute = RecomputePolicy::kSelective;
  job.plan.recompute_ops = {RecomputeOp::kAttention, RecomputeOp::kQkv};
  job.plan.schedule = PipelineKind::kZbH1;
  require_alike(exact_losses(job), expected);
}

TEST_CASE("heads that are cut instead of tokens for attention have the loss of whole sequences") {
  for (const AttentionKind attention : {AttentionKind::kMla, AttentionKind::kGqa}) {
    const std::vector<double> expected = exact_losses(all_experts_job(attention));
    TrainingJob job = all_experts_job(attention);
    job.plan.cp = 2;
    job.plan.dp = 2;
    job.plan.context = ContextKind::kUlysses;
    job.workload.micro_batch = 2;
    require_alike(exact_losses(job), expected);
    job.plan.recompute = RecomputePolicy::kFull;
    require_alike(exact_losses(job), expected);
  }
}

}  // namespace moebius
