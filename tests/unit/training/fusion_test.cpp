// Which neighbours become one kernel.
#include <catch2/catch.hpp>

#include "small_job.h"
#include "workloads/training/layers/builder.h"

using namespace moebius;

namespace {

constexpr Fusion kAll[] = {Fusion::kResidual, Fusion::kRotary, Fusion::kRouter};

Op op_of(OpKind kind, Lane lane = Lane::kCompute) {
  return {.kind = kind, .lane = lane, .shape = {.m = 4, .n = 8}};
}

// x + y, and a norm of the sum; `between`: an op of the lane that stands between them.
FragmentPtr sum_and_norm(bool between, const std::vector<Fusion>& fusions) {
  FragmentBuilder builder("f", Phase::kForward);
  const auto fresh = [&] { return builder.transient(4, 8, DType::kBf16); };
  const TensorId x = fresh(), sum = fresh(), other = fresh(), normed = fresh();
  builder.emit(op_of(OpKind::kActivation), {}, {x});
  builder.emit(op_of(OpKind::kAdd), {x, x}, {sum});
  if (between) builder.emit(op_of(OpKind::kActivation), {x}, {other});
  builder.emit(op_of(OpKind::kNorm), {sum, x}, {normed});
  builder.fusions = fusions;
  return builder.freeze_it();
}

// A partial result, its sum over the ranks and onto the residual stream; `bytes` of the message.
FragmentPtr reduction_and_sum(double bytes, const std::vector<Fusion>& fusions) {
  FragmentBuilder builder("f", Phase::kForward);
  const auto fresh = [&] { return builder.transient(4, 8, DType::kBf16); };
  const TensorId partial = fresh(), whole = fresh(), sum = fresh();
  builder.emit(op_of(OpKind::kActivation), {}, {partial});
  Op reduction = op_of(OpKind::kAllReduce, Lane::kTensorComm);
  reduction.group = GroupRole::kTensor;
  reduction.payload = {bytes};
  builder.emit(reduction, {partial}, {whole});
  builder.emit(op_of(OpKind::kAdd), {partial, whole}, {sum});
  builder.fusions = fusions;
  return builder.freeze_it();
}

int fused_in_forward(const TrainingJob& job) {
  Training training(job);
  const FragmentPtr forward = all_submissions(training).front().fragment;
  return static_cast<int>(
      std::count_if(forward->ops.begin(), forward->ops.end(), [](const Op& op) { return op.fused; }));
}

}  // namespace

TEST_CASE("a norm joins the sum that it reads, when nothing stands between them and it is asked for") {
  CHECK(sum_and_norm(false, {Fusion::kResidual})->ops.back().fused);
  CHECK_FALSE(sum_and_norm(true, {Fusion::kResidual})->ops.back().fused);
  CHECK_FALSE(sum_and_norm(false, {Fusion::kRotary})->ops.back().fused);
  CHECK_FALSE(sum_and_norm(false, {})->ops.back().fused);
  CHECK(sum_and_norm(false, {Fusion::kResidual})->hash != sum_and_norm(false, {})->hash);
}

// The sum is sent away as soon as it stands: a fused kernel would keep the message until the norm is done.
TEST_CASE("what another lane waits for is not fused with what follows") {
  FragmentBuilder builder("f", Phase::kForward);
  const auto fresh = [&] { return builder.transient(4, 8, DType::kBf16); };
  const TensorId x = fresh(), sum = fresh(), sent = fresh(), normed = fresh();
  builder.emit(op_of(OpKind::kActivation), {}, {x});
  builder.emit(op_of(OpKind::kAdd), {x, x}, {sum});
  Op gather = op_of(OpKind::kAllReduce, Lane::kTensorComm);
  gather.group = GroupRole::kTensor;
  gather.payload = {64};
  builder.emit(gather, {sum}, {sent});
  builder.emit(op_of(OpKind::kNorm), {sum, x}, {normed});
  builder.fusions.assign(std::begin(kAll), std::end(kAll));
  CHECK_FALSE(builder.freeze_it()->ops.back().fused);
}

// Long messages are another library's, which sums alone.
TEST_CASE("a sum joins the short all-reduce whose result it adds to") {
  CHECK(reduction_and_sum(64, {Fusion::kReduced})->ops.back().fused);
  CHECK_FALSE(reduction_and_sum(64, {Fusion::kResidual})->ops.back().fused);
  CHECK_FALSE(reduction_and_sum(2 * kMostReduced, {Fusion::kReduced})->ops.back().fused);
}

// What waits for gathered weights, or is waited for by copies of others, joins nobody.
TEST_CASE("ops are fused whether state is whole, sharded or on the host") {
  TrainingJob job = small_job();
  job.plan.fusions.assign(std::begin(kAll), std::end(kAll));
  const int whole = fused_in_forward(job);
  CHECK(whole >= 2 * job.model.layers);
  job.plan.offload.optimizer = true;
  CHECK(fused_in_forward(job) == whole);
  job.plan.zero = 3;
  CHECK(fused_in_forward(job) >= job.model.layers);
}
