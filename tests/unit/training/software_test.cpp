// What older software did in kernels of its own, and the cores of tensor-parallel sums: which ops say so.
#include <catch2/catch.hpp>

#include "tests/unit/training/small_job.h"
#include "workloads/cost/separate_kernels.h"

using namespace moebius;

namespace {

TrainingJob job_of_software() {
  TrainingJob job = small_job();
  job.model.experts = {};
  job.plan.ep = 1;
  return job;
}

// Shape::heads of the ops of a kind, all of which must say the same.
int kernels_of(const TrainingJob& job, OpKind kind) {
  Training training(job);
  int found = -1;
  for (const Submission& submission : all_submissions(training)) {
    for (const Op& op : submission.fragment->ops) {
      if (op.kind != kind) continue;
      if (found >= 0) CHECK(op.shape.heads == found);
      found = op.shape.heads;
    }
  }
  return found;
}

double transient_peak(const TrainingJob& job) {
  const MemoryReport report = Training(job).memory({1e12});
  return report.peak().value;
}

}  // namespace

TEST_CASE("without the keys every op is fused and tensor-parallel sums hold no core") {
  TrainingJob job = job_of_software();
  job.plan.tp = 2, job.plan.dp = 2;
  for (const OpKind kind :
       {OpKind::kCrossEntropyStats, OpKind::kCrossEntropy, OpKind::kNormGrad, OpKind::kAdam})
    CHECK(kernels_of(job, kind) == 0);
  Training training(job);
  for (const Submission& submission : all_submissions(training))
    for (const Op& op : submission.fragment->ops) CHECK(op.units == 0);
}

// Of rows whose columns two ranks share, with their means there and back.
TEST_CASE("kernels of norms are those of queries and keys over all heads too") {
  TrainingJob job = job_of_software();
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 16;
  job.model.qk_norm = QkNorm::kPerLayer;
  job.plan.tp = 2;
  const auto all_say = [&](int kernels) {
    for (const OpKind kind : {OpKind::kRowMeans, OpKind::kNorm, OpKind::kNormGrad})
      CHECK(kernels_of(job, kind) == kernels);
  };
  all_say(0);
  job.plan.separate_norm_grad = true;
  all_say(kSeparateKernels);
  job.plan.eager_elementwise = true;
  all_say(kEagerKernels);
}

TEST_CASE("each key marks the ops that it is about and no others") {
  TrainingJob job = job_of_software();
  job.plan.loss = LossKernels::kSeparate;
  CHECK(kernels_of(job, OpKind::kCrossEntropyStats) == kSeparateKernels);
  CHECK(kernels_of(job, OpKind::kCrossEntropy) == kSeparateKernels);
  CHECK(kernels_of(job, OpKind::kNormGrad) == 0);
  job.plan.loss = LossKernels::kAutocast;
  CHECK(kernels_of(job, OpKind::kCrossEntropyStats) == kAutocastKernels);
  CHECK(kernels_of(job, OpKind::kCrossEntropy) == kAutocastKernels);
  job = job_of_software();
  job.plan.separate_norm_grad = true;
  CHECK(kernels_of(job, OpKind::kNormGrad) == kSeparateKernels);
  CHECK(kernels_of(job, OpKind::kCrossEntropy) == 0);
  job.plan.eager_elementwise = true;
  for (const OpKind kind : {OpKind::kNorm, OpKind::kNormGrad}) CHECK(kernels_of(job, kind) == kEagerKernels);
  for (const OpKind kind : {OpKind::kActivation, OpKind::kActivationGrad})
    CHECK(kernels_of(job, kind) == (job.model.gated ? kEagerKernels : 0));
  job.model.layer_norm = true;  // one kernel in PyTorch
  CHECK(kernels_of(job, OpKind::kNorm) == kSeparateKernels);
  job = job_of_software();
  job.plan.separate_update = true;
  CHECK(kernels_of(job, OpKind::kAdam) == kSeparateKernels);
  job.plan.gradients = DType::kBf16;
  CHECK(kernels_of(job, OpKind::kAdam) == kSeparateFromBf16);
}

TEST_CASE("routing in kernels of its own and products by expert mark the ops of experts forward and back") {
  TrainingJob job = small_job();
  for (const OpKind kind : {OpKind::kGate, OpKind::kPermute, OpKind::kGroupedGemmWgrad})
    CHECK(kernels_of(job, kind) == 0);
  job.plan.separate_routing = true;
  for (const OpKind kind : {OpKind::kGate, OpKind::kGateGrad})
    CHECK(kernels_of(job, kind) == kSeparateKernels);
  // 8 experts on 4 ranks: two on each.
  for (const OpKind kind :
       {OpKind::kPermute, OpKind::kPermuteGrad, OpKind::kUnpermute, OpKind::kUnpermuteGrad})
    CHECK(kernels_of(job, kind) == kSortedTwice);
  CHECK(kernels_of(job, OpKind::kGroupedGemm) == 0);
  job.model.experts.routed = 4;
  CHECK(kernels_of(job, OpKind::kPermute) == kSeparateKernels);
  job = small_job();
  job.plan.expert_by_expert = true;
  for (const OpKind kind : {OpKind::kGroupedGemm, OpKind::kGroupedGemmDgrad, OpKind::kGroupedGemmWgrad})
    CHECK(kernels_of(job, kind) == kSeparateKernels);
  CHECK(kernels_of(job, OpKind::kPermute) == 0);
  job.model.biases = Biases::kAll;
  Training biased(job);
  for (const Submission& submission : all_submissions(biased))
    for (const Op& op : submission.fragment->ops)
      if (op.kind == OpKind::kGroupedGemm)
        CHECK(op.shape.heads == (op.role == Role::kExpertDown ? kSeparateWithBias : kSeparateKernels));
}

// Of dense layers: the one behind the MLP's first map and those that join the stream, of which the last one
// of a stage has no sum of gradients behind it.
TEST_CASE("gradients of biases of all maps are sums of their own, forward nothing says so") {
  TrainingJob job = job_of_software();
  job.model.gated = false, job.model.layer_norm = true;
  const auto sums = [&](OpKind kind) {
    int marked = 0;
    Training training(job);
    for (const Submission& submission : all_submissions(training))
      for (const Op& op : submission.fragment->ops)
        marked += op.kind == kind && op.shape.k < 2 && op.shape.heads == kSumsBias;
    return marked / job.workload.num_microbatches(job.plan);
  };
  job.model.biases = Biases::kQkv;
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 16;
  CHECK(sums(OpKind::kAdd) == 0);
  CHECK(sums(OpKind::kActivationGrad) == 0);
  job.model.biases = Biases::kAll;
  CHECK(sums(OpKind::kActivationGrad) == job.model.layers);
  CHECK(sums(OpKind::kAdd) >= 2 * job.model.layers - 2);
  CHECK(sums(OpKind::kAdd) <= 2 * job.model.layers);
  CHECK(sums(OpKind::kActivation) == 0);
}

TEST_CASE("experts that are modules of their own say which product takes slices and which writes them") {
  TrainingJob job = small_job();
  job.plan.expert_by_expert = job.plan.expert_modules = true;
  Training training(job);
  for (const Submission& submission : all_submissions(training))
    for (const Op& op : submission.fragment->ops)
      if (op.kind == OpKind::kGroupedGemm || op.kind == OpKind::kGroupedGemmDgrad)
        CHECK(op.shape.heads == (op.role == Role::kExpertDown ? kWritesSlices : kTakesSlices));
}

TEST_CASE("rows that travel by the library's all-to-all are sorted again where a rank has several experts") {
  TrainingJob job = small_job();
  job.plan.exchange = Algorithm::kLibrary;
  for (const OpKind kind :
       {OpKind::kPermute, OpKind::kPermuteGrad, OpKind::kUnpermute, OpKind::kUnpermuteGrad})
    CHECK(kernels_of(job, kind) == kSortedTwiceFused);
  CHECK(kernels_of(job, OpKind::kGate) == 0);
  job.model.experts.routed = 4;
  CHECK(kernels_of(job, OpKind::kPermute) == 0);
}

// s b V elements of 4 bytes stand beside the logits while the loss is computed, which is where the small
// model of one layer needs most.
TEST_CASE("FP32 logits stand in memory") {
  TrainingJob job = job_of_software();
  job.model.layers = 1, job.model.vocabulary = 1 << 16, job.plan.dp = 1;
  const double fused = transient_peak(job);
  job.plan.loss = LossKernels::kSeparate;
  CHECK(transient_peak(job) - fused == 4.0 * 32 * (1 << 16));
}

TEST_CASE("tensor-parallel gathers and sums hold the cores that the plan gives them, forward and back") {
  for (const bool sequence_parallel : {false, true}) {
    TrainingJob job = job_of_software();
    job.plan.tp = 2, job.plan.dp = 2, job.plan.sequence_parallel = sequence_parallel;
    job.plan.tensor_sms = 24;
    Training training(job);
    int sums = 0;
    for (const Submission& submission : all_submissions(training)) {
      for (const Op& op : submission.fragment->ops) {
        if (op.phase == Phase::kGradients || op.phase == Phase::kOptimizer) continue;
        const bool tensor = op.group == GroupRole::kTensor;
        CHECK(op.units == (tensor ? 24 : 0));
        sums += tensor;
      }
    }
    CHECK(sums > 0);
  }
}
