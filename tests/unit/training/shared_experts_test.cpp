// Shared experts over the ranks that share attention: what is cut, what travels when, what is kept.
#include <catch2/catch.hpp>

#include "small_job.h"

using namespace moebius;

namespace {

constexpr int kMoeLayers = 3, kLayers = 4, kTokens = 32, kHidden = 64, kWidth = 32;

// On four ranks: a microbatch of 32 tokens for each `tp` of them.
TrainingJob job_on(int tp) {
  TrainingJob job = small_job();
  job.plan.tp = tp;
  job.plan.sequence_parallel = tp > 1;
  job.plan.dp = 4 / tp;
  return job;
}

FragmentPtr pass_of(const TrainingJob& job, Phase phase) {
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    if (submission.fragment->phase == phase) return submission.fragment;
  }
  FAIL("no such pass");
  return nullptr;
}

bool of_shared(Role role) {
  return role == Role::kSharedGateUp || role == Role::kSharedDown;
}

double shared_flops(const Fragment& fragment) {
  double flops = 0;
  for (const Op& op : fragment.ops) {
    const bool product =
        op.kind == OpKind::kGemm || op.kind == OpKind::kGemmDgrad || op.kind == OpKind::kGemmWgrad;
    if (product && of_shared(op.role)) flops += op_flops(op.kind, op.shape).value;
  }
  return flops;
}

double shared_weight_bytes(const Fragment& fragment) {
  double bytes = 0;
  for (const Tensor& tensor : fragment.tensors) {
    const bool weight = tensor.scope == Scope::kRank && tensor.memory == MemoryKind::kWeights;
    if (weight && of_shared(tensor.role)) bytes += tensor.bytes().value;
  }
  return bytes;
}

// Over the tensor group, of rows of this role.
int moves(const Fragment& fragment, OpKind kind, Role role) {
  int count = 0;
  for (const Op& op : fragment.ops) {
    if (op.kind != kind || op.group != GroupRole::kTensor || op.role != role) continue;
    CHECK(op.payload.value == kTokens * kHidden * 2);
    ++count;
  }
  return count;
}

// Whole rows that MLPs read and the reverse pass finds.
int kept_gathers(const TrainingJob& job) {
  int count = 0;
  const FragmentPtr forward = pass_of(job, Phase::kForward);
  for (const Tensor& tensor : forward->tensors)
    count += tensor.scope == Scope::kMicrobatch && tensor.role == Role::kMlpNorm && tensor.rows == kTokens;
  return count;
}

bool waits_for(const Fragment& fragment, const Op& op, OpKind kind) {
  for (int d = 0; d < op.num_dependencies; ++d)
    if (fragment.ops[fragment.dependencies[op.first_dependency + d]].kind == kind) return true;
  return false;
}

// Bytes that a rank has of the shared experts between two steps: of their widening.
double resident_of_shared(TrainingJob job) {
  const auto resident = [&] { return Training(job).memory({1e9}).classes[0].after_pass.back().value; };
  const double before = resident();
  job.model.experts.shared_width *= 2;
  return resident() - before;
}

}  // namespace

TEST_CASE("shared experts are cut by columns and then by rows over the ranks that share attention") {
  const FragmentPtr forward = pass_of(job_on(2), Phase::kForward);
  int products = 0;
  for (const Op& op : forward->ops) {
    if (op.kind != OpKind::kGemm || !of_shared(op.role)) continue;
    const bool up = op.role == Role::kSharedGateUp;
    CHECK(op.shape == (up ? Shape{kTokens, 2 * kWidth / 2, kHidden} : Shape{kTokens, kHidden, kWidth / 2}));
    CHECK(forward->tensors[forward->input(op, 1)].tensor_copies == 1);
    ++products;
  }
  CHECK(products == 2 * kMoeLayers);
}

// Two ranks do together what one did with these tokens.
TEST_CASE("of shared experts two ranks have half of the weights and of the FLOPs each") {
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const FragmentPtr whole = pass_of(job_on(1), phase), half = pass_of(job_on(2), phase);
    CHECK(shared_flops(*whole) > 0);
    CHECK(shared_flops(*half) == shared_flops(*whole) / 2);
    CHECK(shared_weight_bytes(*half) == shared_weight_bytes(*whole) / 2);
  }
}

// Two bytes of weight, four of gradient and twelve of states; these over the two replicas of a part.
TEST_CASE("gradients and states of shared experts are cut as their weights are") {
  constexpr double kElements = 3.0 * kMoeLayers * kWidth * kHidden;
  CHECK(resident_of_shared(job_on(1)) == Approx(18 * kElements));
  CHECK(resident_of_shared(job_on(2)) == Approx(18 * kElements / 2));
  TrainingJob sharded = job_on(2);
  sharded.plan.zero = 1;
  CHECK(resident_of_shared(sharded) == Approx((6 + 12.0 / 2) * kElements / 2));
}

// The dense layer's MLP gathers and sums for itself.
TEST_CASE("rows of shared experts are gathered before and summed after, and the other way round back") {
  TrainingJob job = job_on(2);
  for (const bool beside : {true, false}) {
    CAPTURE(beside);
    job.plan.overlap_dispatch_combine = beside;
    const FragmentPtr forward = pass_of(job, Phase::kForward), backward = pass_of(job, Phase::kBackward);
    CHECK(moves(*forward, OpKind::kAllGather, Role::kMlpNorm) == kLayers);
    CHECK(moves(*forward, OpKind::kReduceScatter, Role::kSharedDown) == kMoeLayers);
    CHECK(moves(*backward, OpKind::kAllGather, Role::kSharedDown) == kMoeLayers);
    CHECK(moves(*backward, OpKind::kReduceScatter, Role::kMlpNorm) == kLayers);
    CHECK(moves(*backward, OpKind::kAllGather, Role::kMlpNorm) == (beside ? kLayers - kMoeLayers : kLayers));
  }
}

TEST_CASE("beside exchanges shared experts keep what they gathered, in line they gather behind combine") {
  TrainingJob job = job_on(2);
  for (const bool beside : {true, false}) {
    CAPTURE(beside);
    job.plan.overlap_dispatch_combine = beside;
    CHECK(kept_gathers(job) == (beside ? kMoeLayers : 0));
    const FragmentPtr forward = pass_of(job, Phase::kForward);
    for (const Op& op : forward->ops) {
      if (op.kind != OpKind::kAllGather || op.role != Role::kMlpNorm || op.layer == 0) continue;
      CHECK(op.lane == Lane::kTensorComm);
      CHECK(waits_for(*forward, op, OpKind::kCombine) == !beside);
    }
  }
  job.plan.overlap_dispatch_combine = true;
  job.plan.recompute = RecomputePolicy::kFull;
  CHECK(kept_gathers(job) == 0);
}

// A number for each row of this rank, of a matrix that both have.
TEST_CASE("the gate of cut shared experts reads and weighs the rows of its rank") {
  TrainingJob job = job_on(2);
  job.model.experts.shared_gate = true;
  const FragmentPtr forward = pass_of(job, Phase::kForward);
  int scores = 0, gates = 0;
  for (const Op& op : forward->ops) {
    if (op.kind == OpKind::kGemm && op.role == Role::kSharedScore) {
      CHECK(op.shape == Shape{kTokens / 2, 1, kHidden});
      CHECK(forward->tensors[forward->input(op, 1)].tensor_copies == 2);
      ++scores;
    }
    if (op.kind != OpKind::kActivation || op.shape.k != kGateOfRows) continue;
    CHECK(op.shape.m == kTokens / 2);
    CHECK(op.shape.n == kHidden);
    ++gates;
  }
  CHECK(scores == kMoeLayers);
  CHECK(gates == kMoeLayers);
}

TEST_CASE("shared experts travel in pieces where attention does") {
  TrainingJob job = job_on(2);
  const FragmentPtr whole = pass_of(job, Phase::kForward);
  job.plan.tp_chunks = 4;
  const FragmentPtr pieces = pass_of(job, Phase::kForward);
  const auto products = [](const Fragment& fragment, Role role) {
    int count = 0;
    for (const Op& op : fragment.ops) count += op.kind == OpKind::kGemm && op.role == role ? 1 : 0;
    return count;
  };
  for (const Role role : {Role::kSharedGateUp, Role::kSharedDown}) {
    CHECK(products(*whole, role) == kMoeLayers);
    CHECK(products(*pieces, role) == 4 * kMoeLayers);
  }
  CHECK(shared_flops(*pieces) == Approx(shared_flops(*whole)));
}
