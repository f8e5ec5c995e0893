#include "workloads/training/optimizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/training/pipeline.h"

namespace moebius {
namespace {

std::int64_t elements(const Tensor& tensor) {
  return tensor.rows * tensor.columns * std::max(tensor.experts, 1);
}

// The ranks that hold the same parameters.
GroupRole replicas(bool expert) {
  return expert ? GroupRole::kExpertData : GroupRole::kData;
}

int num_replicas(const TrainingPlan& plan, bool expert) {
  const int of_stage = expert ? plan.tp * plan.cp * plan.dp / plan.ep : plan.cp * plan.dp;
  return of_stage * StagePlacement(plan).copies();
}

bool sharded(const TrainingPlan& plan, bool expert) {
  return plan.zero >= 1 && num_replicas(plan, expert) > 1;
}

// Collectives over several tensors each, in place.
void write_buckets(FragmentBuilder& builder, const Op& collective, const std::vector<TensorId>& tensors) {
  constexpr std::size_t kTensors = 64;
  for (std::size_t first = 0; first < tensors.size(); first += kTensors) {
    const std::vector<TensorId> bucket(tensors.begin() + first,
                                       tensors.begin() + std::min(first + kTensors, tensors.size()));
    Op op = collective;
    op.dtype = builder.tensor(bucket.front()).dtype;
    op.lane = Lane::kDataComm;
    op.match = builder.next_match();
    op.shape.n = 1;
    for (const TensorId id : bucket) {
      op.payload += builder.tensor(id).bytes();
      op.shape.m += elements(builder.tensor(id));
    }
    builder.emit(op, bucket, bucket);
  }
}

Op bucket_op(OpKind kind, GroupRole group, Role role) {
  return {.kind = kind, .role = role, .group = group, .shape = {}};
}

template <class Choose>
std::vector<TensorId> gradients(FragmentBuilder& builder, const TrainingPlan& plan,
                                const std::vector<StageParameter>& parameters, Choose choose) {
  std::vector<TensorId> tensors;
  for (const StageParameter& parameter : parameters) {
    if (choose(parameter)) tensors.push_back(builder.add(gradient_of(parameter.weight, plan)));
  }
  return tensors;
}

class OptimizerWriter {
 public:
  OptimizerWriter(const LoweringInput& input, const StageSpec& stage, FragmentBuilder& builder)
      : input_(input), stage_(stage), builder_(builder) {}

  void write(std::vector<StageParameter>& parameters) {
    builder_.phase = Phase::kGradients;
    write_gradient_reduction(builder_, input_, parameters, true);
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
  void write_tied_embedding(const std::vector<StageParameter>& parameters) {
    const bool two_copies = input_.model->tied_embeddings || input_.model->mtp_layers > 0;
    const bool end_stage = stage_.slice.has_embedding || stage_.slice.has_head;
    if (!StagePlacement(plan()).ends_apart() || !two_copies || !end_stage) return;
    for (const StageParameter& parameter : parameters) {
      if (parameter.weight.role != Role::kEmbedding) continue;
      const TensorId gradient = builder_.add(gradient_of(parameter.weight, plan()));
      Op op{.kind = OpKind::kAllReduce,
            .dtype = plan().gradients,
            .lane = Lane::kDataComm,
            .role = Role::kEmbedding,
            .group = GroupRole::kTied,
            .match = static_cast<std::uint32_t>(StageMatch::kTiedEmbedding),
            .shape = {.m = elements(parameter.weight), .n = 1}};
      op.payload = builder_.tensor(gradient).bytes();
      builder_.emit(op, {gradient}, {gradient});
    }
  }

  // Master weights and moments: of this rank's shard, flat.
  TensorId state(const Tensor& weight, Part part, std::int64_t shard) {
    Tensor tensor{.scope = Scope::kRank,
                  .memory = MemoryKind::kOptimizer,
                  .role = weight.role,
                  .layer = weight.layer,
                  .rows = shard,
                  .columns = 1};
    tensor.dtype = part == Part::kMaster ? DType::kFp32 : plan().optimizer_states;
    tensor.key = weight.key + static_cast<std::uint32_t>(part) - static_cast<std::uint32_t>(Part::kWeight);
    return builder_.add(tensor);
  }

  void write_update(const std::vector<StageParameter>& parameters, bool expert) {
    if (parameters.empty()) return;
    const bool cut = sharded(plan(), expert);
    const int shards = cut ? num_replicas(plan(), expert) : 1;
    std::vector<TensorId> operands, weights;
    Op adam{.kind = OpKind::kAdam,
            .dtype = plan().optimizer_states,
            .role = expert ? Role::kExperts : Role::kDense,
            .group = cut ? replicas(expert) : GroupRole::kNone,
            .shape = {.n = 1}};
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
    if (cut) write_buckets(builder_, bucket_op(OpKind::kAllGather, replicas(expert), adam.role), weights);
  }

  const LoweringInput& input_;
  const StageSpec& stage_;
  FragmentBuilder& builder_;
};

}  // namespace

void write_gradient_reduction(FragmentBuilder& builder, const LoweringInput& input,
                              std::vector<StageParameter>& parameters, bool all) {
  const TrainingPlan& plan = *input.plan;
  const auto due = [&](const StageParameter& parameter) {
    const Role role = parameter.weight.role;
    return !parameter.reduced && (all || (role != Role::kEmbedding && role != Role::kHead));
  };
  const Phase phase = builder.phase;
  builder.phase = Phase::kGradients;
  write_buckets(
      builder, bucket_op(OpKind::kAllReduce, GroupRole::kTensor, Role::kDense),
      gradients(builder, plan, parameters, [&](const auto& p) { return due(p) && p.sum_over_tensor; }));
  for (const bool expert : {false, true}) {
    if (num_replicas(plan, expert) == 1) continue;
    const OpKind kind = sharded(plan, expert) ? OpKind::kReduceScatter : OpKind::kAllReduce;
    write_buckets(
        builder, bucket_op(kind, replicas(expert), expert ? Role::kExperts : Role::kDense),
        gradients(builder, plan, parameters, [&](const auto& p) { return due(p) && p.expert == expert; }));
  }
  for (StageParameter& parameter : parameters) parameter.reduced = parameter.reduced || due(parameter);
  builder.phase = phase;
}

FragmentPtr lower_optimizer(const LoweringInput& input, const StageSpec& stage,
                            std::vector<StageParameter> parameters) {
  const bool several = StagePlacement(*input.plan).chunks() > 1;  // stages of this rank
  FragmentBuilder builder(fmt::format("optimizer {} {}", several ? "rank" : "stage", stage.stage),
                          Phase::kOptimizer);
  builder.launch = input.plan->launch;
  OptimizerWriter(input, stage, builder).write(parameters);
  return builder.freeze_it();
}

}  // namespace moebius
