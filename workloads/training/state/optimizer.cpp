#include "workloads/training/state/optimizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "workloads/cost/separate_kernels.h"
#include "workloads/training/pipeline/pipeline.h"
#include "workloads/training/state/sharding.h"
#include "workloads/training/state/shared_scales.h"
#include "workloads/training/state/stretches_of.h"

namespace moebius {
namespace {

// The ranks that hold the same parameters: those of attention and of what goes with it, dense MLPs cut by a
// degree of their own (shards of zero 1 at most), experts.
constexpr std::array kHolders{GroupRole::kData, GroupRole::kDenseData, GroupRole::kExpertData};

GroupRole holders_of(const StageParameter& parameter) {
  return parameter.dense ? GroupRole::kDenseData : replicas(parameter.expert);
}

bool are_experts(GroupRole holders) {
  return holders == GroupRole::kExpertData;
}

int num_holders(const TrainingPlan& plan, GroupRole holders) {
  if (holders != GroupRole::kDenseData) return num_replicas(plan, are_experts(holders));
  return plan.tp * plan.cp * plan.dp * StagePlacement(plan).copies() / plan.dense_degree();
}

int shards_among(const TrainingPlan& plan, GroupRole holders) {
  if (holders != GroupRole::kDenseData) return num_shards(plan, are_experts(holders));
  return plan.zero > 0 ? num_holders(plan, holders) : 1;
}

// Gradients that stay whole are summed as such where their shards stand in several copies.
bool sums_into_shards(const TrainingPlan& plan, GroupRole holders) {
  const int shards = shards_among(plan, holders);
  return shards > 1 && (plan.zero >= 2 || shards == num_holders(plan, holders));
}

GroupRole shard_group_of(const TrainingPlan& plan, GroupRole holders) {
  return holders == GroupRole::kDenseData ? holders : shard_group(plan, are_experts(holders));
}

// A collective over several tensors. Into shards: the outputs are others than the inputs.
struct Bucket {
  std::vector<TensorId> in, out;
};

// As few collectives as operand lists allow; `wire`: what the values travel in, where that is not their own
// format.
void write_buckets(FragmentBuilder& builder, const Op& collective, const Bucket& all,
                   std::optional<DType> wire = {}) {
  constexpr std::size_t kTensors = 64;
  for (std::size_t first = 0; first < all.in.size(); first += kTensors) {
    const std::size_t last = std::min(first + kTensors, all.in.size());
    const Bucket bucket{{all.in.begin() + first, all.in.begin() + last},
                        {all.out.begin() + first, all.out.begin() + last}};
    Op op = collective;
    op.dtype = wire.value_or(builder.tensor(bucket.in.front()).dtype);
    op.lane = Lane::kDataComm;
    op.match = builder.next_match();
    op.shape.n = 1;
    for (const TensorId id : bucket.in) {
      const Tensor& tensor = builder.tensor(id);
      const std::int64_t held = tensor.held_rows() * tensor.held_columns();
      op.payload += wire ? Bytes{static_cast<double>(held) * element_bytes(*wire)} : tensor.bytes();
      op.shape.m += held;
    }
    builder.emit(op, bucket.in, bucket.out);
  }
}

void write_buckets(FragmentBuilder& builder, const Op& collective, const std::vector<TensorId>& in_place,
                   std::optional<DType> wire = {}) {
  write_buckets(builder, collective, Bucket{in_place, in_place}, wire);
}

Op bucket_op(OpKind kind, GroupRole group, Role role) {
  return {.kind = kind, .role = role, .group = group, .shape = {}};
}

// What they travel in, where that is not what they stand in: 8 bits, or what BF16 ones are summed in.
std::optional<DType> wire_of_gradients(const TrainingPlan& plan) {
  const bool differs = plan.gradients == DType::kFp8 || plan.accumulation == Accumulation::kWholeBf16;
  return differs ? std::optional(plan.gradients) : std::nullopt;
}

Tensor gradient_shard_of(const Tensor& weight, const TrainingPlan& plan) {
  Tensor shard = shard_of(gradient_of(weight, plan), plan);
  if (plan.accumulation == Accumulation::kWholeBf16) shard.dtype = DType::kFp32;
  shard.key = weight.key + static_cast<std::uint32_t>(Part::kGradientShard) -
              static_cast<std::uint32_t>(Part::kWeight);
  return shard;
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
      : input_(input), stage_(stage), builder_(builder), scales_(*input.plan, builder) {}

  void write(std::vector<StageParameter>& parameters) {
    groups_.emplace(plan(), parameters);
    builder_.phase = Phase::kGradients;
    write_gradient_reduction(builder_, input_, parameters, true);
    write_sums_over_copies(parameters);
    write_tied_embedding(parameters);
    builder_.phase = Phase::kOptimizer;
    if (plan().clip > 0) write_norm(parameters);
    updates_as_summed(plan()) ? update_as_summed(parameters) : update_by_holders(parameters);
    scales_.write();
  }

 private:
  const TrainingPlan& plan() const { return *input_.plan; }

  // Buckets keep the operand lists short and let a bucket's weights travel while the next is updated.
  void update_by_holders(const std::vector<StageParameter>& parameters) {
    for (const GroupRole holders : kHolders) {
      std::vector<StageParameter> bucket;
      for (const StageParameter& parameter : parameters) {
        if (holders_of(parameter) != holders) continue;
        if (is_full(bucket, parameter)) write_update(bucket, holders), bucket.clear();
        bucket.push_back(parameter);
      }
      write_update(bucket, holders);
    }
  }

  // Block by block, experts before what else their layer has; what several blocks add to last.
  void update_as_summed(std::vector<StageParameter> parameters) {
    std::map<int, int> turn;  // by layer
    for (const StageParameter& of : parameters) turn.try_emplace(of.weight.layer, turn.size());
    const auto place = [&](const StageParameter& of) {
      const bool last = of.weight.role == Role::kEmbedding || of.weight.role == Role::kHead;
      return std::pair(last, turn[of.weight.layer]);
    };
    std::stable_sort(parameters.begin(), parameters.end(),
                     [&](const auto& x, const auto& y) { return place(x) < place(y); });
    std::map<GroupRole, std::vector<StageParameter>, std::greater<>> buckets;
    for (const StageParameter& parameter : parameters) {
      for (auto& [holders, bucket] : buckets) {
        if (is_full(bucket, parameter)) write_update(bucket, holders), bucket.clear();
      }
      buckets[holders_of(parameter)].push_back(parameter);
    }
    for (const auto& [holders, bucket] : buckets) write_update(bucket, holders);
  }

  // What comes from the host for an update takes room on the device: one group of layers at a time, the
  // embedding or the head.
  bool is_full(const std::vector<StageParameter>& bucket, const StageParameter& next) const {
    constexpr std::size_t kMost = 16;
    if (bucket.empty() || bucket.size() == kMost || !plan().offload.of_update())
      return bucket.size() == kMost;
    return groups_->of_layer(bucket.front().weight.layer) != groups_->of_layer(next.weight.layer) ||
           are_two_vocabularies(bucket.back().weight.role, next.weight.role);
  }

  // What this rank holds of a gradient when it is reduced.
  TensorId gradient(const StageParameter& parameter) {
    const bool shard = shards_gradients(plan(), parameter.expert);
    return builder_.add(shard ? gradient_shard_of(parameter.weight, plan())
                              : gradient_of(parameter.weight, plan()));
  }

  // Hybrid sharding: shards are summed over the copies once a step (MiCS: "2-hop" synchronisation).
  void write_sums_over_copies(const std::vector<StageParameter>& parameters) {
    for (const bool expert : {false, true}) {
      const GroupRole group = same_shard_group(plan(), expert);
      if (!shards_gradients(plan(), expert) || group == GroupRole::kNone) continue;
      std::vector<TensorId> shards;
      for (const StageParameter& parameter : parameters) {
        if (parameter.expert == expert) shards.push_back(gradient(parameter));
      }
      const Role role = expert ? Role::kExperts : Role::kDense;
      write_buckets(builder_, bucket_op(OpKind::kAllReduce, group, role), shards, wire_of_gradients(plan()));
    }
  }

  // The embedding that the first stage looks up and the last one uses as head, or for its MTP modules.
  bool stands_twice(const StageParameter& parameter) const {
    const bool two_copies = input_.model->tied_embeddings || input_.model->mtp_layers > 0;
    return parameter.weight.role == Role::kEmbedding && two_copies && StagePlacement(plan()).ends_apart();
  }

  void write_tied_embedding(const std::vector<StageParameter>& parameters) {
    for (const StageParameter& parameter : parameters) {
      if (!stands_twice(parameter)) continue;
      const TensorId sum = gradient(parameter);
      const Tensor& tensor = builder_.tensor(sum);
      Op op{.kind = OpKind::kAllReduce,
            .dtype = tensor.dtype,
            .lane = Lane::kDataComm,
            .role = Role::kEmbedding,
            .group = GroupRole::kTied,
            .match = static_cast<std::uint32_t>(StageMatch::kTiedEmbedding),
            .shape = {.m = tensor.held_rows() * tensor.held_columns(), .n = 1}};
      op.payload = tensor.bytes();
      builder_.emit(op, {sum}, {sum});
    }
  }

  // Ranks whose squares are of the same elements: each counts for its share of them.
  int same_elements(const StageParameter& parameter) const {
    const GroupRole holders = holders_of(parameter);
    const int copies = num_holders(plan(), holders) / shards_among(plan(), holders);
    const int in_tensor_group = holders == GroupRole::kData ? parameter.weight.tensor_copies : 1;
    return copies * in_tensor_group * (stands_twice(parameter) ? 2 : 1);
  }

  // The squares of all gradients of the model, a number that every rank waits for (Megatron-LM,
  // clip_grads.py).
  void write_norm(const std::vector<StageParameter>& parameters) {
    const TensorId own = builder_.add(parameters.empty() ? no_squares() : squares());
    std::map<std::pair<GroupRole, int>, std::vector<TensorId>> alike;
    for (const StageParameter& parameter : parameters)
      alike[{holders_of(parameter), same_elements(parameter)}].push_back(gradient(parameter));
    for (const auto& [key, tensors] : alike) write_squares(key.first, key.second, tensors, own);
    squares_ = builder_.add(squares());
    builder_.emit({.kind = OpKind::kAllReduce,
                   .dtype = DType::kFp32,
                   .lane = Lane::kDataComm,
                   .role = Role::kDense,
                   .group = GroupRole::kWorld,
                   .match = static_cast<std::uint32_t>(StageMatch::kGradientNorm),
                   .shape = {.m = 1, .n = 1},
                   .payload = {element_bytes(DType::kFp32)}},
                  {own}, {squares_});
  }

  void write_squares(GroupRole holders, int same, const std::vector<TensorId>& tensors, TensorId sum) {
    const int shards = shards_among(plan(), holders);
    constexpr std::size_t kTensors = 64;
    for (std::size_t first = 0; first < tensors.size(); first += kTensors) {
      const std::vector<TensorId> some(tensors.begin() + first,
                                       tensors.begin() + std::min(first + kTensors, tensors.size()));
      Op op{.kind = OpKind::kSumSquares,
            .dtype = builder_.tensor(some.front()).dtype,
            .role = Role::kDense,
            .group = shards > 1 ? shard_group_of(plan(), holders) : GroupRole::kNone,
            .scale = 1.0f / static_cast<float>(same),
            .shape = {.n = 1}};
      for (const TensorId id : some) op.shape.m += (builder_.tensor(id).elements() + shards - 1) / shards;
      builder_.emit(op, some, {sum});
    }
  }

  // The first moment may be kept in 8 bits with a scale for 128 elements, the second then in BF16: in 8 bits
  // its small values would become zero, and the update divides by its root (FP8-LM, Peng et al. 2023, keeps
  // it in 16).
  DType format_of(Part part) const {
    if (part == Part::kMaster) return plan().master;
    if (part == Part::kSecondMoment && plan().optimizer_states == DType::kFp8) return DType::kBf16;
    return plan().optimizer_states;
  }

  // Master weights and moments: of this rank's shard, flat.
  TensorId state(const Tensor& weight, Part part, std::int64_t shard) {
    constexpr std::int64_t kScaled = 128;  // elements of an 8-bit row
    const DType format = format_of(part);
    const std::int64_t columns = format == DType::kFp8 ? kScaled : 1;
    Tensor tensor{.scope = Scope::kRank,
                  .memory = MemoryKind::kOptimizer,
                  .dtype = format,
                  .role = weight.role,
                  .layer = weight.layer,
                  .rows = (shard + columns - 1) / columns,
                  .columns = columns};
    tensor.key = weight.key + static_cast<std::uint32_t>(part) - static_cast<std::uint32_t>(Part::kWeight);
    return builder_.add(tensor);
  }

  std::int32_t separate_kernels() const {
    const int from = element_bytes(plan().gradients) == 2 ? kSeparateFromBf16 : kSeparateKernels;
    return from + (plan().clip > 0 ? kScaledApart : 0);
  }

  void write_update(const std::vector<StageParameter>& parameters, GroupRole holders) {
    if (parameters.empty()) return;
    const bool expert = are_experts(holders);
    const int shards = shards_among(plan(), holders);
    const bool cut = shards > 1;
    std::vector<TensorId> operands, weights;
    Op adam{.kind = OpKind::kAdam,
            .dtype = plan().optimizer_states,
            .role = expert ? Role::kExperts : Role::kDense,
            .group = cut ? shard_group_of(plan(), holders) : GroupRole::kNone,
            .shape = {.n = 1, .k = plan().keeps_master ? 0 : 1}};
    if (plan().separate_update) adam.shape.heads = separate_kernels();
    for (const StageParameter& parameter : parameters) {
      const std::int64_t shard = (parameter.weight.elements() + shards - 1) / shards;
      const bool whole = !shards_parameters(plan(), expert);
      const Tensor weight = updated(parameter.weight);
      weights.push_back(builder_.add(whole ? weight : shard_of(weight, plan())));
      operands.push_back(gradient(parameter));
      operands.push_back(weights.back());
      if (plan().keeps_master) operands.push_back(state(parameter.weight, Part::kMaster, shard));
      for (const Part part : {Part::kFirstMoment, Part::kSecondMoment})
        operands.push_back(state(parameter.weight, part, shard));
      adam.shape.m += shard;
    }
    std::vector<TensorId> inputs = operands;
    if (plan().clip > 0) adam.scale = static_cast<float>(plan().clip), inputs.push_back(squares_);
    builder_.emit(adam, inputs, operands);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (shares_scale(parameters[i].weight, plan())) scales_.add(weights[i], parameters[i].weight);
    // From here on weights are what the next step multiplies by, where its passes do not bring them.
    if (shards_parameters(plan(), expert) || (cut && plan().overlap_weights)) return;
    if (cut) write_buckets(builder_, bucket_op(OpKind::kAllGather, adam.group, adam.role), weights);
    for (std::size_t i = 0; i < parameters.size(); ++i) quantise(weights[i], parameters[i].weight);
  }

  // What Adam writes: the weight, or what it is quantised from.
  Tensor updated(const Tensor& weight) const {
    const bool half = stands_in_half(weight, plan()) || shares_scale(weight, plan());
    return half ? half_of(weight) : weight;
  }

  // For the products of the next step, both ways (Transformer Engine: in the first microbatch, then kept).
  void quantise(TensorId half, const Tensor& weight) {
    if (stands_in_half(weight, plan())) quantise_weight(builder_, half, builder_.add(weight), kBothWays);
  }

  const LoweringInput& input_;
  const StageSpec& stage_;
  FragmentBuilder& builder_;
  SharedScales scales_;
  TensorId squares_ = kNoTensor;  // of all gradients, where they are clipped
  std::optional<LayerGroups> groups_;
};

}  // namespace

void write_gradient_reduction(FragmentBuilder& builder, const LoweringInput& input,
                              std::vector<StageParameter>& parameters, bool all) {
  const TrainingPlan& plan = *input.plan;
  // In every microbatch only what goes into shards; the rest is summed once.
  const bool shards_only = plan.zero >= 2 && builder.fragment().phase != Phase::kOptimizer;
  const auto due = [&](const StageParameter& parameter) {
    const Role role = parameter.weight.role;
    if (shards_only && !shards_gradients(plan, parameter.expert)) return false;
    return !parameter.reduced && (all || (role != Role::kEmbedding && role != Role::kHead));
  };
  const Phase phase = builder.phase;
  builder.phase = Phase::kGradients;
  write_buckets(
      builder, bucket_op(OpKind::kAllReduce, GroupRole::kTensor, Role::kDense),
      gradients(builder, plan, parameters, [&](const auto& p) { return due(p) && p.sum_over_tensor; }));
  for (const GroupRole holders : kHolders) {
    if (num_holders(plan, holders) == 1) continue;
    const bool expert = are_experts(holders);
    const Role role = expert ? Role::kExperts : Role::kDense;
    const auto of_group = [&](const StageParameter& p) { return due(p) && holders_of(p) == holders; };
    Bucket bucket{gradients(builder, plan, parameters, of_group), {}};
    bucket.out = bucket.in;
    if (shards_gradients(plan, expert)) {
      bucket.out.clear();
      for (const StageParameter& parameter : parameters) {
        if (of_group(parameter)) bucket.out.push_back(builder.add(gradient_shard_of(parameter.weight, plan)));
      }
    }
    const bool cut = sums_into_shards(plan, holders);
    const GroupRole group = cut ? shard_group_of(plan, holders) : holders;
    write_buckets(builder, bucket_op(cut ? OpKind::kReduceScatter : OpKind::kAllReduce, group, role), bucket,
                  wire_of_gradients(plan));
  }
  for (StageParameter& parameter : parameters) parameter.reduced = parameter.reduced || due(parameter);
  builder.phase = phase;
}

FragmentBuilder lower_optimizer(const LoweringInput& input, const StageSpec& stage,
                                std::vector<StageParameter> parameters) {
  const bool several = StagePlacement(*input.plan).chunks() > 1;  // stages of this rank
  FragmentBuilder builder(fmt::format("optimizer {} {}", several ? "rank" : "stage", stage.stage),
                          Phase::kOptimizer);
  builder.launch = input.plan->launch;
  OptimizerWriter(input, stage, builder).write(parameters);
  return builder;
}

}  // namespace moebius
