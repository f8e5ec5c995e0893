#include "workloads/training/optimizer.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {
namespace {

std::int64_t elements(const Tensor& tensor) { return tensor.rows * tensor.columns * std::max(tensor.experts, 1); }

// The ranks that hold the same parameters.
GroupRole replicas(bool expert) { return expert ? GroupRole::kExpertData : GroupRole::kData; }

int num_replicas(const TrainingPlan& plan, bool expert) {
  return expert ? plan.tp * plan.cp * plan.dp / plan.ep : plan.cp * plan.dp;
}

bool sharded(const TrainingPlan& plan, bool expert) { return plan.zero >= 1 && num_replicas(plan, expert) > 1; }

// One collective over several tensors, in place.
void write_bucket(FragmentBuilder& builder, OpKind kind, GroupRole group, Role role, const std::vector<TensorId>& tensors) {
  if (tensors.empty()) return;
  Op op{.kind = kind, .dtype = builder.tensor(tensors.front()).dtype, .lane = Lane::kDataComm, .role = role, .group = group,
        .match = builder.next_match()};
  for (const TensorId id : tensors) {
    op.payload += builder.tensor(id).bytes();
    op.shape.m += elements(builder.tensor(id));
  }
  op.shape.n = 1;
  builder.emit(op, tensors, tensors);
}

std::vector<TensorId> gradients(FragmentBuilder& builder, const TrainingPlan& plan,
                                std::span<const StageParameter> parameters, bool expert) {
  std::vector<TensorId> tensors;
  for (const StageParameter& parameter : parameters) {
    if (parameter.expert == expert) tensors.push_back(builder.add(gradient_of(parameter.weight, plan)));
  }
  return tensors;
}

void write_tensor_parallel_sums(FragmentBuilder& builder, const TrainingPlan& plan,
                                std::span<const StageParameter> parameters) {
  std::vector<TensorId> tensors;
  for (const StageParameter& parameter : parameters) {
    if (parameter.sum_over_tensor) tensors.push_back(builder.add(gradient_of(parameter.weight, plan)));
  }
  write_bucket(builder, OpKind::kAllReduce, GroupRole::kTensor, Role::kDense, tensors);
}

class OptimizerWriter {
 public:
  OptimizerWriter(const LoweringInput& input, const StageSpec& stage, FragmentBuilder& builder)
      : input_(input), stage_(stage), builder_(builder) {}

  void write(std::span<const StageParameter> parameters, std::size_t reduced) {
    builder_.phase = Phase::kGradients;
    write_gradient_reduction(builder_, input_, parameters.subspan(reduced));
    write_tied_embedding(parameters);
    builder_.phase = Phase::kOptimizer;
    // Buckets keep the operand lists short and let a bucket's weights travel while the next is updated.
    constexpr std::size_t kBucket = 16;
    for (const bool expert : {false, true}) {
      std::vector<StageParameter> bucket;
      for (const StageParameter& parameter : parameters) {
        if (parameter.expert != expert) continue;
        bucket.push_back(parameter);
        if (bucket.size() == kBucket) write_update(bucket, expert), bucket.clear();
      }
      write_update(bucket, expert);
    }
  }

 private:
  const TrainingPlan& plan() const { return *input_.plan; }

  // The embedding that the first stage looks up and the last one uses as head, or for its MTP modules.
  void write_tied_embedding(std::span<const StageParameter> parameters) {
    const bool two_copies = input_.model->tied_embeddings || input_.model->mtp_layers > 0;
    const bool end_stage = stage_.slice.has_embedding || stage_.slice.has_head;
    if (plan().pp == 1 || !two_copies || !end_stage) return;
    for (const StageParameter& parameter : parameters) {
      if (parameter.weight.role != Role::kEmbedding) continue;
      const TensorId gradient = builder_.add(gradient_of(parameter.weight, plan()));
      Op op{.kind = OpKind::kAllReduce, .dtype = plan().gradients, .lane = Lane::kDataComm, .role = Role::kEmbedding,
            .group = GroupRole::kTied, .match = static_cast<std::uint32_t>(StageMatch::kTiedEmbedding),
            .shape = {.m = elements(parameter.weight), .n = 1}};
      op.payload = builder_.tensor(gradient).bytes();
      builder_.emit(op, {gradient}, {gradient});
    }
  }

  // Master weights and moments: of this rank's shard, flat.
  TensorId state(const Tensor& weight, Part part, std::int64_t shard) {
    Tensor tensor{.scope = Scope::kRank, .memory = MemoryKind::kOptimizer, .role = weight.role, .layer = weight.layer,
                  .rows = shard, .columns = 1};
    tensor.dtype = part == Part::kMaster ? DType::kFp32 : plan().optimizer_states;
    tensor.key = weight.key + static_cast<std::uint32_t>(part) - static_cast<std::uint32_t>(Part::kWeight);
    return builder_.add(tensor);
  }

  void write_update(const std::vector<StageParameter>& parameters, bool expert) {
    if (parameters.empty()) return;
    const bool cut = sharded(plan(), expert);
    const int shards = cut ? num_replicas(plan(), expert) : 1;
    std::vector<TensorId> operands, weights;
    Op adam{.kind = OpKind::kAdam, .dtype = plan().optimizer_states, .role = expert ? Role::kExperts : Role::kDense,
            .group = cut ? replicas(expert) : GroupRole::kNone, .shape = {.n = 1}};
    for (const StageParameter& parameter : parameters) {
      const std::int64_t shard = (elements(parameter.weight) + shards - 1) / shards;
      weights.push_back(builder_.add(parameter.weight));
      operands.push_back(builder_.add(gradient_of(parameter.weight, plan())));
      operands.push_back(weights.back());
      for (const Part part : {Part::kMaster, Part::kFirstMoment, Part::kSecondMoment}) {
        operands.push_back(state(parameter.weight, part, shard));
      }
      adam.shape.m += shard;
    }
    builder_.emit(adam, operands, operands);
    if (cut) write_bucket(builder_, OpKind::kAllGather, replicas(expert), adam.role, weights);
  }

  const LoweringInput& input_;
  const StageSpec& stage_;
  FragmentBuilder& builder_;
};

}  // namespace

void write_gradient_reduction(FragmentBuilder& builder, const LoweringInput& input,
                              std::span<const StageParameter> parameters) {
  const TrainingPlan& plan = *input.plan;
  const Phase phase = builder.phase;
  builder.phase = Phase::kGradients;
  write_tensor_parallel_sums(builder, plan, parameters);
  for (const bool expert : {false, true}) {
    if (num_replicas(plan, expert) == 1) continue;
    const OpKind kind = sharded(plan, expert) ? OpKind::kReduceScatter : OpKind::kAllReduce;
    write_bucket(builder, kind, replicas(expert), expert ? Role::kExperts : Role::kDense,
                 gradients(builder, plan, parameters, expert));
  }
  builder.phase = phase;
}

FragmentPtr lower_optimizer(const LoweringInput& input, const StageSpec& stage,
                            std::span<const StageParameter> parameters, std::size_t reduced) {
  FragmentBuilder builder(fmt::format("optimizer stage {}", stage.stage), Phase::kOptimizer);
  OptimizerWriter(input, stage, builder).write(parameters, reduced);
  return builder.freeze_it();
}

}  // namespace moebius
