// Laws of clipping by the norm over all gradients: every element counts once, and every update waits.
#include <catch2/catch.hpp>

#include "tests/laws/simulated_step.h"

using namespace moebius;

namespace {

// What a schedule's squares are of, summed over all its ranks: each op its elements times its scale.
double elements_of_norm(TrainingJob job) {
  job.plan.clip = 1;
  job.plan.fold = false;
  Training training(job);
  double elements = 0;
  for (const Submission& submission : all_submissions(training)) {
    for (const Op& op : submission.fragment->ops)
      if (op.kind == OpKind::kSumSquares) elements += static_cast<double>(op.shape.m) * op.scale;
  }
  return elements;
}

struct Kinds {
  int squares = 0, sums = 0, updates = 0;
};

Kinds kinds_of(const Fragment& fragment) {
  Kinds kinds;
  for (const Op& op : fragment.ops) {
    kinds.squares += op.kind == OpKind::kSumSquares;
    kinds.sums += op.kind == OpKind::kAllReduce && op.group == GroupRole::kWorld;
    kinds.updates += op.kind == OpKind::kAdam;
  }
  return kinds;
}

}  // namespace

// Sizes of the small model are multiples of all degrees: no shard is padded.
TEST_CASE("each parameter counts once in the norm, on however many ranks it stands") {
  TrainingJob job = small_job();
  job.plan.dp = job.plan.ep = 1;
  const double whole = elements_of_norm(job);
  CHECK(whole > 0);
  const auto same_with = [&](auto change) {
    TrainingJob changed = job;
    change(changed.plan);
    CHECK(elements_of_norm(changed) == Approx(whole).epsilon(1e-6));
  };
  same_with([](TrainingPlan& plan) { plan.dp = 4; });
  same_with([](TrainingPlan& plan) { plan.dp = 4, plan.ep = 2, plan.zero = 1; });
  for (const int zero : {1, 2})
    same_with([&](TrainingPlan& plan) { plan.dp = 4, plan.ep = 2, plan.zero = zero, plan.shard = 2; });
  same_with([](TrainingPlan& plan) { plan.dp = 2, plan.tp = 2, plan.ep = 4, plan.sequence_parallel = true; });
  same_with([](TrainingPlan& plan) { plan.dp = 2, plan.pp = 2; });
  same_with([](TrainingPlan& plan) { plan.pp = 2, plan.schedule = PipelineKind::kDualPipe; });
}

TEST_CASE("each stage sums squares, meets all ranks once, and updates") {
  TrainingJob job = small_job();
  job.plan.pp = 2;
  for (const double clip : {0.0, 1.0}) {
    job.plan.clip = clip;
    Training training(job);
    int optimizers = 0;
    for (const Submission& submission : all_submissions(training)) {
      const Kinds kinds = kinds_of(*submission.fragment);
      optimizers += kinds.updates > 0;
      CHECK((kinds.squares > 0) == (kinds.updates > 0 && clip > 0));
      CHECK(kinds.sums == (kinds.updates > 0 && clip > 0 ? 1 : 0));
    }
    CHECK(optimizers == 2);
  }
}

// Updates of stages that end early wait for the first stage, which ends last with the norm and without it.
TEST_CASE("a norm of no length costs a pipeline nothing where its first stage ends last") {
  const NamedCost cost(
      {{OpKind::kAttention, {1e-3}}, {OpKind::kAttentionGrad, {2e-3}}, {OpKind::kAdam, {5e-4}}});
  TrainingJob job = small_job();
  job.model.experts = {};
  job.model.first_dense = 0;
  job.model.vocabulary = 16;
  job.plan.dp = job.plan.ep = 1;
  job.plan.pp = 4;
  const World world = instant_network(4);
  const double free = simulate(job, world, cost).seconds;
  job.plan.clip = 1;
  CHECK(simulate(job, world, cost).seconds == Approx(free).epsilon(1e-3));
}

// Squares that take S on every stage lengthen the step by S.
TEST_CASE("the pass over the gradients lengthens the step by itself") {
  constexpr double kSquares = 1e-3;
  const auto of = [](double squares) {
    return NamedCost({{OpKind::kAttention, {1e-3}}, {OpKind::kSumSquares, {squares}}});
  };
  TrainingJob job = small_job();
  job.plan.dp = job.plan.ep = 1;
  job.plan.clip = 1;
  job.model.experts = {};
  job.model.first_dense = 0;
  const World world = instant_network(1);
  Training training(job);
  int ops = 0;
  for (const Submission& submission : all_submissions(training))
    ops += kinds_of(*submission.fragment).squares;
  const double longer = simulate(job, world, of(kSquares)).seconds - simulate(job, world, of(0)).seconds;
  CHECK(longer == Approx(ops * kSquares).epsilon(1e-3));
}
