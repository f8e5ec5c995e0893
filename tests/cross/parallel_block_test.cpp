// Layers whose attention and MLP stand side by side, in numbers: the loss and the answers do not depend on
// how the work is spread.
#include <functional>
#include <vector>

#include <catch2/catch.hpp>

#include "real/initial_values.h"
#include "tests/cross/exact_losses.h"
#include "tests/cross/small_serving.h"

namespace moebius {
namespace {

constexpr ParallelBlock kBlocks[] = {ParallelBlock::kOneNorm, ParallelBlock::kTwoNorms};

// Positions turn half of each head, as GPT-J's and GPT-NeoX's turn a quarter.
Model side_by_side(ParallelBlock block) {
  Model model = small_model(AttentionKind::kGqa);
  model.id = "small, side by side";
  model.experts = {};
  model.rotary_dim = 4;
  model.parallel_block = block;
  return model;
}

TrainingJob job_of(ParallelBlock block) {
  TrainingJob job = small_job(side_by_side(block));
  job.workload.steps = 3;
  job.workload.micro_batch = 2;
  return job;
}

StackedRowsOf stacked_of(const Model& model) {
  return [&model](const Tensor& of) { return stacked_rows(of, model); };
}

}  // namespace

TEST_CASE("side by side, of one norm or of two, and one after the other are three models") {
  const double after = losses_by_matrix(job_of(ParallelBlock::kNone))[0];
  const double one = losses_by_matrix(job_of(ParallelBlock::kOneNorm))[0];
  CHECK(one != after);
  // Both norms start from ones, so that only a step tells them apart.
  CHECK(losses_by_matrix(job_of(ParallelBlock::kTwoNorms))[0] == Approx(one).epsilon(1e-12));
  CHECK(losses_by_matrix(job_of(ParallelBlock::kTwoNorms))[2] !=
        losses_by_matrix(job_of(ParallelBlock::kOneNorm))[2]);
}

TEST_CASE("attention and MLP side by side have the same loss on tensor-parallel ranks") {
  for (const ParallelBlock block : kBlocks) {
    const TrainingJob job = job_of(block);
    for (const bool by_rows : {false, true}) {
      CAPTURE(static_cast<int>(block), by_rows);
      const auto cut = [by_rows](TrainingJob& changed) {
        changed.plan.tp = 2;
        changed.plan.sequence_parallel = by_rows;
      };
      require_losses_of_one_rank(job, cut);
      require_losses_of_one_rank(job, [&](TrainingJob& changed) { cut(changed), changed.plan.cp = 2; });
      require_losses_of_one_rank(job, [&](TrainingJob& changed) {
        cut(changed);
        changed.plan.recompute = RecomputePolicy::kFull;
        changed.plan.recompute_whole = true;
      });
      require_losses_of_one_rank(job, [&](TrainingJob& changed) {
        cut(changed);
        changed.plan.pp = 2;
        changed.plan.schedule = PipelineKind::kZbH1;
        changed.plan.recompute = RecomputePolicy::kSelective;
        changed.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kQkv, RecomputeOp::kMlpUp};
      });
    }
  }
}

// The sums of a row are the same sums in the same order: the same bits.
TEST_CASE("their sum in pieces has the loss of that in one") {
  for (const ParallelBlock block : kBlocks) {
    TrainingJob job = job_of(block);
    job.plan.tp = 2;
    job.plan.sequence_parallel = true;
    const std::vector<double> whole = losses_by_matrix(job);
    for (const int chunks : {2, 3}) {
      job.plan.tp_chunks = chunks;
      CHECK(losses_by_matrix(job) == whole);
    }
    job.plan.recompute = RecomputePolicy::kFull;
    CHECK(losses_by_matrix(job) == whole);
  }
}

TEST_CASE("an MLP over other ranks than the attention beside it has the same loss") {
  for (const ParallelBlock block : kBlocks) {
    const TrainingJob job = job_of(block);
    for (const int dense : {1, 4})
      require_losses_of_one_rank(job, [dense](TrainingJob& changed) {
        changed.workload.micro_batch = 1;
        changed.plan.tp = changed.plan.dp = 2;
        changed.plan.sequence_parallel = true;
        changed.plan.dense_tp = dense;
      });
  }
}

// Both maps that end a layer are cut by their inputs, and so are what their adapters read.
TEST_CASE("adapters beside both maps that a sum ends have the same loss on tensor-parallel ranks") {
  for (const ParallelBlock block : kBlocks) {
    TrainingJob job = job_of(block);
    job.workload.adapters = {.rank = 3, .targets = {AdapterTarget::kAttentionOut, AdapterTarget::kMlpDown}};
    for (const bool by_rows : {false, true})
      require_losses_of_one_rank(job, [by_rows](TrainingJob& changed) {
        changed.plan.tp = 2;
        changed.plan.sequence_parallel = by_rows;
      });
  }
}

TEST_CASE("state that is sharded or stands in host memory changes no loss") {
  for (const ParallelBlock block : kBlocks) {
    const TrainingJob job = job_of(block);
    require_losses_of_one_rank(job, [](TrainingJob& changed) {
      changed.plan.dp = 2;
      changed.plan.zero = 3;
      changed.plan.offload = {true, true, true, true};
      changed.plan.recompute = RecomputePolicy::kFull;
    });
  }
}

// Tokens of the language, through prefill and cache, by one rank and by two that share heads and columns.
TEST_CASE("attention and MLP side by side give the same answers however they are served") {
  for (const ParallelBlock block : kBlocks) {
    const Model model = side_by_side(block);
    ServingJob job = small_service(model);
    HostOptions options = exact_options(job.workload.seed);
    options.stacked = stacked_of(model);
    const Tokens expected = answers<double>(job, options);
    const auto same = [&](const std::function<void(ServingJob&)>& change) {
      ServingJob changed = job;
      change(changed);
      return answers<double>(changed, options) == expected;
    };
    CHECK(same([](ServingJob& changed) { changed.plan.tp = 2; }));
    CHECK(same([](ServingJob& changed) { changed.plan.block_tokens = 1; }));
    CHECK(same([](ServingJob& changed) { changed.plan.max_batch = 1; }));
    CHECK(same([](ServingJob& changed) { changed.plan.tp = changed.plan.dp = 2; }));
  }
}

}  // namespace moebius
