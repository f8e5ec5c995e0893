#include "workloads/training/state/shared_scales.h"

#include <algorithm>

#include "workloads/training/state/sharding.h"

namespace moebius {
namespace {

// Input, weight and result forward; back the gradients of result and input.
std::int64_t magnitudes_of(const Op& op) {
  if (op.dtype != DType::kFp8) return 0;
  const std::int64_t matrices = std::max(1, op.shape.groups);
  if (op.kind == OpKind::kGemm || op.kind == OpKind::kGroupedGemm) return 3 * matrices;
  return op.kind == OpKind::kGemmDgrad || op.kind == OpKind::kGroupedGemmDgrad ? 2 * matrices : 0;
}

}  // namespace

std::int32_t quantise_weight(FragmentBuilder& builder, TensorId half, TensorId weight, std::int32_t ways,
                             const std::vector<std::int32_t>& after) {
  const Tensor whole = builder.tensor(weight);
  const Role role = whole.role;
  Op op{.kind = OpKind::kLargest,
        .role = role,
        .shape = {.m = whole.elements() / whole.columns, .n = whole.columns}};
  std::vector<TensorId> inputs{half};
  std::vector<std::int32_t> waits = after;
  if (whole.scaling == Scaling::kTensor) {
    inputs.push_back(builder.transient(1, 1, DType::kFp32, role));
    builder.emit(op, {half}, {inputs.back()}, waits);
    waits.clear();
  }
  op.kind = OpKind::kQuantise;
  op.dtype = DType::kFp8;
  op.shape.heads = ways;
  return builder.emit(op, inputs, {weight}, waits);
}

void SharedScales::add(TensorId half, const Tensor& weight) {
  shards_[weight.experts > 0].push_back({half, weight});
}

void SharedScales::write() {
  for (const bool expert : {false, true})
    if (!shards_[expert].empty()) write(shards_[expert], expert);
}

void SharedScales::write(const std::vector<Shard>& shards, bool expert) {
  const auto count = static_cast<std::int64_t>(shards.size());
  const Role role = expert ? Role::kExperts : Role::kDense;
  const TensorId largest = builder_.transient(count, 1, DType::kFp32, role);
  const auto pass = [&](const Shard& shard, OpKind kind) {
    const std::int64_t columns = shard.weight.columns, held = builder_.tensor(shard.half).held_rows();
    return Op{.kind = kind,
              .role = shard.weight.role,
              .shape = {.m = (held + columns - 1) / columns, .n = columns}};
  };
  for (const Shard& shard : shards) builder_.emit(pass(shard, OpKind::kLargest), {shard.half}, {largest});
  builder_.emit({.kind = OpKind::kAllReduce,
                 .dtype = DType::kFp32,
                 .lane = Lane::kDataComm,
                 .role = role,
                 .group = shard_group(plan_, expert),
                 .match = builder_.next_match(),
                 .shape = {.m = count, .n = 1},
                 .payload = builder_.tensor(largest).bytes()},
                {largest}, {largest});
  for (const Shard& shard : shards) {
    Op cast = pass(shard, OpKind::kQuantise);
    cast.dtype = DType::kFp8;
    builder_.emit(cast, {shard.half, largest}, {builder_.add(shard_of(shard.weight, plan_))});
  }
}

void share_magnitudes(const TrainingPlan& plan, Phase phase, FragmentBuilder& builder) {
  const int sharers = plan.tp * plan.cp * (plan.history_of_tensor_ranks ? 1 : plan.dp);
  if (!plan.keeps_history() || sharers == 1) return;
  std::int64_t count = 0;
  for (const Op& op : builder.fragment().ops) count += magnitudes_of(op);
  if (count == 0) return;
  builder.phase = phase;
  builder.layer = builder.fragment().ops.back().layer;  // of its stretch, where state is brought and put back
  const TensorId largest = builder.transient(count, 1, DType::kFp32, Role::kDense);
  // The call is not asynchronous: what computes next waits for it.
  builder.emit({.kind = OpKind::kAllReduce,
                .dtype = DType::kFp32,
                .lane = Lane::kCompute,
                .role = Role::kDense,
                .group = GroupRole::kScales,
                .match = builder.next_match(),
                .shape = {.m = count, .n = 1},
                .payload = builder.tensor(largest).bytes()},
               {}, {largest});
}

}  // namespace moebius
