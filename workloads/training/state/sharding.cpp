#include "workloads/training/state/sharding.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/training/layers/builder.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

GroupRole replicas(bool expert) {
  return expert ? GroupRole::kExpertData : GroupRole::kData;
}

int num_replicas(const TrainingPlan& plan, bool expert) {
  const int of_stage = expert ? plan.tp * plan.cp * plan.dp / plan.expert_ranks() : plan.cp * plan.dp;
  return of_stage * StagePlacement(plan).copies();
}

GroupRole shard_group(const TrainingPlan& plan, bool expert) {
  if (plan.shard == 0) return replicas(expert);
  return expert ? GroupRole::kExpertShard : GroupRole::kShard;
}

int num_shards(const TrainingPlan& plan, bool expert) {
  if (plan.zero == 0) return 1;
  const int all = num_replicas(plan, expert);
  return plan.shard > 0 ? std::min(plan.shard, all) : all;
}

GroupRole same_shard_group(const TrainingPlan& plan, bool expert) {
  if (num_shards(plan, expert) == num_replicas(plan, expert)) return GroupRole::kNone;
  return expert ? GroupRole::kExpertReplica : GroupRole::kReplica;
}

bool shards_gradients(const TrainingPlan& plan, bool expert) {
  return plan.zero >= 2 && num_shards(plan, expert) > 1;
}

bool shards_parameters(const TrainingPlan& plan, bool expert) {
  return plan.zero >= 3 && num_shards(plan, expert) > 1;
}

Tensor shard_of(const Tensor& whole, const TrainingPlan& plan) {
  const bool expert = whole.experts > 0;
  Tensor shard = whole;
  shard.shards = num_shards(plan, expert);
  shard.cut = shard_group(plan, expert);
  return shard;
}

bool accumulates_whole(const TrainingPlan& plan, bool expert) {
  return plan.accumulation != Accumulation::kShards && shards_gradients(plan, expert);
}

bool accumulates_whole(const TrainingPlan& plan) {
  return accumulates_whole(plan, false) || accumulates_whole(plan, true);
}

WeightsStand stands(const TrainingPlan& plan, bool expert, WeightsStand stand) {
  const bool few = stand == WeightsStand::kPart && num_shards(plan, expert) <= plan.regather;
  return few ? WeightsStand::kCut : stand;
}

GroupRole regather_group(bool expert) {
  return expert ? GroupRole::kExpertRegather : GroupRole::kRegather;
}

Tensor of_step(Tensor whole) {
  whole.scope = Scope::kStep;
  return whole;
}

Tensor part_of(const Tensor& whole, const TrainingPlan& plan) {
  Tensor part = of_step(whole);
  part.shards = plan.regather;
  part.cut = regather_group(whole.experts > 0);
  constexpr std::uint32_t kParts = 8;  // of a parameter: see parameter_key()
  part.key = whole.key / kParts * kParts + static_cast<std::uint32_t>(Part::kPartWeight);
  return part;
}

Tensor half_of(const Tensor& weight) {
  Tensor half = weight;
  half.dtype = DType::kBf16;
  half.scaling = Scaling::kBlock;
  half.key =
      weight.key + static_cast<std::uint32_t>(Part::kHalfWeight) - static_cast<std::uint32_t>(Part::kWeight);
  return half;
}

bool stands_in_half(const Tensor& weight, const TrainingPlan& plan) {
  return plan.half_weights && weight.dtype == DType::kFp8;
}

bool shares_scale(const Tensor& weight, const TrainingPlan& plan) {
  return weight.dtype == DType::kFp8 && plan.gathers_fp8() && plan.scaling == Scaling::kTensor &&
         shards_parameters(plan, weight.experts > 0);
}

namespace {

std::string shards_text(const TrainingPlan& plan, bool expert) {
  const int shards = num_shards(plan, expert), all = num_replicas(plan, expert);
  return shards == all ? fmt::format("over {}", shards)
                       : fmt::format("over {}, in {} copies", shards, all / shards);
}

const char* format_gathered(const TrainingPlan& plan) {
  if (plan.gemm != DType::kFp8) return "";
  return plan.gathers_fp8() ? ", in FP8" : ", in BF16, quantised where they are";
}

// Between passes.
std::string kept_text(const TrainingPlan& plan) {
  std::string text;
  if (plan.regather == 1)
    text += plan.free_after_backward ? "; whole until the backward pass" : "; gathered once a step";
  if (plan.regather > 1)
    text += fmt::format("; between passes in copies over {}, gathered again there", plan.regather);
  if (accumulates_whole(plan))
    text += fmt::format("; gradients whole{} until the last microbatch",
                        plan.accumulation == Accumulation::kWholeBf16 ? ", in BF16," : "");
  return text;
}

std::string sharding_line(const TrainingPlan& plan) {
  if (plan.zero == 0) return {};
  constexpr const char* kWhat[] = {"", "optimizer states", "optimizer states, gradients",
                                   "optimizer states, gradients, parameters"};
  std::string line = fmt::format("sharded        {}: dense {}, experts {}", kWhat[plan.zero],
                                 shards_text(plan, false), shards_text(plan, true));
  if (plan.zero == 3)
    line += fmt::format("; gathered {} layer{} at a time, {} ahead{}", plan.group_layers,
                        plan.group_layers == 1 ? "" : "s", plan.prefetch, format_gathered(plan));
  return line + kept_text(plan) + "\n";
}

std::string offload_line(const Offload& offload) {
  std::string line;
  const auto add = [&](bool away, const char* what) {
    if (away) line += fmt::format("{}{}", line.empty() ? "host memory    " : ", ", what);
  };
  add(offload.optimizer, "optimizer states (updated by the device, copied in and out)");
  add(offload.parameters, "parameters");
  add(offload.gradients, "gradients");
  add(offload.activations, "activations");
  return line.empty() ? line : line + "\n";
}

}  // namespace

bool sums_beside_passes(const TrainingPlan& plan) {
  const bool shared = plan.tp > 1 || num_replicas(plan, false) > 1 || num_replicas(plan, true) > 1;
  return plan.overlap_gradients && plan.zero < 2 && shared;
}

bool sums_with_last(const TrainingPlan& plan) {
  return sums_beside_passes(plan) || accumulates_whole(plan);
}

bool updates_as_summed(const TrainingPlan& plan) {
  return sums_beside_passes(plan) && plan.offload.of_update();
}

std::string describe_state(const TrainingPlan& plan) {
  std::string text = plan.zero >= 2 || plan.shard > 0 ? sharding_line(plan) : "";
  text += offload_line(plan.offload);
  if (plan.recompute == RecomputePolicy::kHybrid)
    text += fmt::format("recompute      what does not fit in {}\n", to_text(plan.recompute_budget));
  if (plan.recompute_every > 1)
    text += fmt::format("recompute      one of {} layers, whole\n", plan.recompute_every);
  if (plan.recompute_layers > 1)
    text += fmt::format("recompute      groups of {} layers, whole\n", plan.recompute_layers);
  return text;
}

}  // namespace moebius
