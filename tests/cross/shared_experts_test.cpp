// Shared experts that tensor-parallel ranks share: the losses of one rank that holds them whole, whatever is
// written anew.
#include <concepts>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

// Of the job on one rank.
class OneRank {
 public:
  explicit OneRank(const TrainingJob& job) : job_(job), losses_(losses_by_matrix(job)) {}

  template <std::invocable<TrainingPlan&> Change>
  void require_same(int tp, const Change& change) const {
    TrainingJob changed = job_;
    changed.plan.tp = tp;
    changed.plan.sequence_parallel = true;
    change(changed.plan);
    const std::vector<double> found = losses_by_matrix(changed);
    for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(losses_[step]).epsilon(1e-7));
  }

 private:
  TrainingJob job_;
  std::vector<double> losses_;
};

TrainingJob job_with(bool gate) {
  TrainingJob job = all_experts_job(AttentionKind::kMla);
  if (gate) job.model = with_shared_gate(job.model);
  return job;
}

}  // namespace

TEST_CASE("shared experts over two and four tensor-parallel ranks have the losses of one, with a gate too") {
  for (const bool gate : {false, true}) {
    const OneRank one(job_with(gate));
    for (const bool beside : {true, false}) {
      CAPTURE(gate, beside);
      for (const int tp : {2, 4}) {
        one.require_same(tp, [&](TrainingPlan& plan) { plan.overlap_dispatch_combine = beside; });
        one.require_same(tp, [&](TrainingPlan& plan) {
          plan.overlap_dispatch_combine = beside;
          plan.ep = 4;
          plan.dp = 4 / tp;
        });
      }
    }
  }
}

TEST_CASE("the same where passes compute again, travel in pieces or have late gradients") {
  const OneRank one(job_with(true));
  for (const bool beside : {true, false}) {
    CAPTURE(beside);
    one.require_same(2, [&](TrainingPlan& plan) {
      plan.overlap_dispatch_combine = beside;
      plan.recompute = RecomputePolicy::kFull;
    });
    one.require_same(2, [&](TrainingPlan& plan) {
      plan.overlap_dispatch_combine = beside;
      plan.recompute = RecomputePolicy::kSelective;
      plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kMlpUp, RecomputeOp::kActivation};
    });
    one.require_same(2, [&](TrainingPlan& plan) {
      plan.overlap_dispatch_combine = beside;
      plan.tp_chunks = 3;
    });
    one.require_same(2, [&](TrainingPlan& plan) {
      plan.overlap_dispatch_combine = beside;
      plan.pp = 2;
      plan.schedule = PipelineKind::kZbH1;
    });
  }
}

TEST_CASE("the same where state is cut over replicas or stands in host memory") {
  const OneRank one(job_with(true));
  for (const int zero : {1, 2, 3}) {
    one.require_same(2, [&](TrainingPlan& plan) {
      plan.dp = 2;
      plan.ep = 4;
      plan.zero = zero;
    });
  }
  one.require_same(2, [](TrainingPlan& plan) {
    plan.dp = 2;
    plan.zero = 2;
    plan.offload = {true, true, true, true};
  });
}

TEST_CASE("the same in pairs of passes, which gather again what shared experts read") {
  const OneRank one(deep_job());
  one.require_same(2, [](TrainingPlan& plan) {
    plan.pp = 2;
    plan.overlap_two_batch = true;
  });
}

TEST_CASE("dense MLPs of another degree leave shared experts to the ranks of attention") {
  const OneRank one(job_with(false));
  one.require_same(2, [](TrainingPlan& plan) {
    plan.dp = 2;
    plan.ep = 4;
    plan.dense_tp = 4;
  });
}

}  // namespace moebius
