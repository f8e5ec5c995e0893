// Layers whose attention and MLP stand side by side: how many norms, sums and gathers they have, and what
// they keep.
#include <catch2/catch.hpp>

#include "small_job.h"
#include "workloads/schedule/row_window.h"

using namespace moebius;

namespace {

constexpr int kDeep = 4;  // of dense_job(), whose microbatches have 32 tokens

// Over two tensor-parallel ranks.
TrainingJob parallel_job(ParallelBlock block, bool sequence_parallel) {
  TrainingJob job = dense_job();
  job.model.parallel_block = block;
  job.plan.tp = job.plan.dp = 2;
  job.plan.sequence_parallel = sequence_parallel;
  return job;
}

FragmentPtr pass_of(const TrainingJob& job, Phase phase) {
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    if (submission.fragment->phase == phase) return submission.fragment;
  }
  FAIL("no such fragment");
  return nullptr;
}

int ops_of(const Fragment& fragment, OpKind kind) {
  return static_cast<int>(
      std::count_if(fragment.ops.begin(), fragment.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

// Of collectives, those of one kind of group.
int ops_of(const Fragment& fragment, OpKind kind, GroupRole group) {
  return static_cast<int>(std::count_if(fragment.ops.begin(), fragment.ops.end(),
                                        [&](const Op& op) { return op.kind == kind && op.group == group; }));
}

double flops_of_products(const Fragment& fragment) {
  double flops = 0;
  for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad, OpKind::kGemmWgrad})
    flops += matrix_flops(fragment, kind);
  return flops;
}

// What the forward pass keeps of the results of its layers' norms.
int kept_norms(const Fragment& forward) {
  return static_cast<int>(
      std::count_if(forward.tensors.begin(), forward.tensors.end(), [](const Tensor& tensor) {
        const bool of_norm = tensor.role == Role::kAttentionNorm || tensor.role == Role::kMlpNorm;
        return of_norm && tensor.scope == Scope::kMicrobatch;
      }));
}

struct SumsOfBlock {
  ParallelBlock block;
  int norms, forward, backward;  // of a layer: norms; sums, or what stands for them, of each pass
};

constexpr SumsOfBlock kBlocks[] = {
    {ParallelBlock::kNone, 2, 2, 2}, {ParallelBlock::kOneNorm, 1, 1, 1}, {ParallelBlock::kTwoNorms, 2, 1, 2}};

}  // namespace

// Beside the layers the embedding's sum, and of the head that of its input's gradient.
TEST_CASE("attention and MLP side by side are one sum over tensor-parallel ranks, with one norm each way") {
  for (const SumsOfBlock& of : kBlocks) {
    CAPTURE(static_cast<int>(of.block));
    const TrainingJob job = parallel_job(of.block, false);
    const FragmentPtr forward = pass_of(job, Phase::kForward);
    const FragmentPtr backward = pass_of(job, Phase::kBackward);
    CHECK(ops_of(*forward, OpKind::kNorm) == kDeep * of.norms + 1);
    CHECK(ops_of(*backward, OpKind::kNormGrad) == kDeep * of.norms + 1);
    CHECK(ops_of(*forward, OpKind::kAllReduce, GroupRole::kTensor) == kDeep * of.forward + 1);
    CHECK(ops_of(*backward, OpKind::kAllReduce, GroupRole::kTensor) == kDeep * of.backward + 1);
    CHECK(kept_norms(*forward) == kDeep * of.norms);
  }
}

// Forward a gather for each norm, the head's and that of its statistics. Backward a gather for each sum of
// the forward pass, the embedding's too, and one of each input again, which weight gradients read.
TEST_CASE("with sequence parallelism they are one reduce-scatter, and one gather for each norm") {
  for (const SumsOfBlock& of : kBlocks) {
    CAPTURE(static_cast<int>(of.block));
    const TrainingJob job = parallel_job(of.block, true);
    const FragmentPtr forward = pass_of(job, Phase::kForward);
    const FragmentPtr backward = pass_of(job, Phase::kBackward);
    CHECK(ops_of(*forward, OpKind::kAllGather, GroupRole::kTensor) == kDeep * of.norms + 2);
    CHECK(ops_of(*forward, OpKind::kReduceScatter, GroupRole::kTensor) == kDeep * of.forward + 1);
    CHECK(ops_of(*backward, OpKind::kAllGather, GroupRole::kTensor) == kDeep * (of.forward + of.norms) + 2);
    CHECK(ops_of(*backward, OpKind::kReduceScatter, GroupRole::kTensor) == kDeep * of.backward + 1);
  }
}

TEST_CASE("side by side or one after the other, products are the same") {
  for (const bool sequence_parallel : {false, true}) {
    const TrainingJob job = parallel_job(ParallelBlock::kNone, sequence_parallel);
    for (const ParallelBlock block : {ParallelBlock::kOneNorm, ParallelBlock::kTwoNorms}) {
      const TrainingJob other = parallel_job(block, sequence_parallel);
      for (const Phase phase : {Phase::kForward, Phase::kBackward})
        CHECK(flops_of_products(*pass_of(other, phase)) == flops_of_products(*pass_of(job, phase)));
    }
  }
}

// The MLP's weight gradients stand before attention's reverse pass, attention's beside the sum.
TEST_CASE("the sum of the one norm's gradient travels beside weight gradients") {
  const FragmentPtr backward = pass_of(parallel_job(ParallelBlock::kOneNorm, false), Phase::kBackward);
  const std::vector<Op>& ops = backward->ops;
  int beside = 0;
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
    if (ops[i].kind != OpKind::kAllReduce || ops[i].role != Role::kAttentionNorm) continue;
    CHECK(ops[i].lane == Lane::kTensorComm);
    CHECK(ops[i + 1].kind == OpKind::kGemmWgrad);
    CHECK(ops[i + 1].role == Role::kO);
    ++beside;
  }
  CHECK(beside == kDeep);
}

// A norm that two products read is computed again once; the final one is, too.
TEST_CASE("what is computed again of a layer is computed again once") {
  TrainingJob job = parallel_job(ParallelBlock::kOneNorm, false);
  job.plan.recompute = RecomputePolicy::kSelective;
  job.plan.recompute_ops = {RecomputeOp::kNorm};
  CHECK(ops_of(*pass_of(job, Phase::kBackward), OpKind::kNorm) == kDeep + 1);
  CHECK(kept_norms(*pass_of(job, Phase::kForward)) == 0);
  job.plan.recompute = RecomputePolicy::kFull;
  const FragmentPtr backward = pass_of(job, Phase::kBackward);
  CHECK(ops_of(*backward, OpKind::kNorm) == kDeep);
  CHECK(ops_of(*backward, OpKind::kAttention) == kDeep);
  const FragmentPtr forward = pass_of(job, Phase::kForward);
  int kept = 0;
  for (const Tensor& tensor : forward->tensors)
    kept += tensor.scope == Scope::kMicrobatch && tensor.layer >= 0 && tensor.layer + 1 < kDeep;
  CHECK(kept == kDeep - 1);  // the stream behind each layer
}

// 16 rows of a rank in four pieces. The later product, the addition of the earlier one's result and the
// reduce-scatter are cut alike; of the products that read a gather the first one is.
TEST_CASE("the sum of both results travels in pieces behind the later product") {
  constexpr int kChunks = 4;
  TrainingJob job = parallel_job(ParallelBlock::kOneNorm, true);
  const double whole = flops_of_products(*pass_of(job, Phase::kForward));
  job.plan.tp_chunks = kChunks;
  const FragmentPtr forward = pass_of(job, Phase::kForward);
  CHECK(ops_of(*forward, OpKind::kReduceScatter, GroupRole::kTensor) == kDeep * kChunks + 1);
  CHECK(ops_of(*forward, OpKind::kAllGather, GroupRole::kTensor) == kDeep * kChunks + kChunks + 1);
  CHECK(flops_of_products(*forward) == Approx(whole).epsilon(1e-12));
  std::vector<const Op*> sums;
  for (const Op& op : forward->ops)
    if (op.kind == OpKind::kAdd && op.layer == 0 && op.shape.groups > 0) sums.push_back(&op);
  REQUIRE(sums.size() == kChunks);
  for (int c = 0; c < kChunks; ++c) {
    CHECK(sums[c]->shape.m == 2 * 4);
    for (const int operand : {0, 1, 2}) {
      const auto window = row_window(*forward, *sums[c], operand);
      REQUIRE(window);
      CHECK(window->blocks == 2);
      CHECK(window->block_rows == 16);
      CHECK(window->first == 4 * c);
      CHECK(window->rows == 4);
    }
  }
  CHECK(ops_of(*pass_of(job, Phase::kBackward), OpKind::kAllGather, GroupRole::kTensor) ==
        kDeep * (kChunks + 1) + 2);
}

// Each gathers and sums over ranks of its own: their results are added up when both are sums.
TEST_CASE("an MLP over other ranks than attention has a gather and a sum of its own") {
  TrainingJob job = parallel_job(ParallelBlock::kOneNorm, false);
  job.plan.tp = 1;
  job.plan.dp = 4;
  job.plan.dense_tp = 4;
  const FragmentPtr forward = pass_of(job, Phase::kForward);
  CHECK(ops_of(*forward, OpKind::kNorm) == kDeep + 1);
  CHECK(ops_of(*forward, OpKind::kAllGather, GroupRole::kDenseTensor) == kDeep);
  CHECK(ops_of(*forward, OpKind::kReduceScatter, GroupRole::kDenseTensor) == kDeep);
}
