#include "workloads/training/state/away_rules.h"

#include <algorithm>
#include <map>

#include "workloads/training/state/sharding.h"

namespace moebius {

bool writes_shards(const Op& op, const Fragment& fragment) {
  return op.kind == OpKind::kReduceScatter && fragment.tensors[fragment.output(op, 0)].shards > 0;
}

std::set<TensorId> summed_into_shards(const Fragment& fragment) {
  std::set<TensorId> summed;
  for (const Op& op : fragment.ops) {
    const int sums = writes_shards(op, fragment) ? op.num_inputs : 0;
    for (int i = 0; i < sums; ++i) summed.insert(fragment.input(op, i));
  }
  return summed;
}

bool sums_tensor_parts(const Op& op) {
  const bool of_tensor_group = op.group == GroupRole::kTensor || op.group == GroupRole::kExpertTensor;
  return op.kind == OpKind::kAllReduce && op.lane == Lane::kDataComm && of_tensor_group;
}

bool AwayRules::offloaded(const Tensor& tensor) const {
  if (tensor.scope == Scope::kMicrobatch) return away_.activations.count(tensor.key) > 0;
  if (tensor.scope != Scope::kRank) return false;
  return (tensor.memory == MemoryKind::kWeights && plan_.offload.parameters) ||
         (tensor.memory == MemoryKind::kGradients && plan_.offload.gradients) ||
         (tensor.memory == MemoryKind::kOptimizer && plan_.offload.optimizer);
}

bool AwayRules::is_whole_weight(const Tensor& tensor) const {
  return tensor.scope == Scope::kRank && tensor.memory == MemoryKind::kWeights && tensor.shards == 0;
}

bool AwayRules::gathers(const Tensor& tensor) const {
  return is_whole_weight(tensor) && shards_parameters(plan_, tensor.experts > 0);
}

bool AwayRules::refreshes(const Tensor& tensor) const {
  return away_.first_of_step && plan_.overlap_weights && is_whole_weight(tensor) &&
         away_.refreshed.count(tensor.key) == 0 && (is_adapter(tensor) || !away_.adapters_alone) &&
         num_shards(plan_, tensor.experts > 0) > 1;
}

bool AwayRules::passes(const Tensor& tensor) const {
  return tensor.scope == Scope::kRank && tensor.memory == MemoryKind::kGradients && tensor.shards == 0 &&
         shards_gradients(plan_, tensor.experts > 0);
}

WeightsStand AwayRules::of(const Tensor& weight, WeightsStand stand) const {
  const bool end = weight.role == Role::kEmbedding || weight.role == Role::kHead;
  return end && away_.shares_ends ? WeightsStand::kCut : stands(plan_, weight.experts > 0, stand);
}

WeightsStand AwayRules::found(const Tensor& weight) const {
  return of(weight, away_.weights.found);
}

WeightsStand AwayRules::left(const Tensor& weight) const {
  return of(weight, away_.weights.left);
}

Tensor AwayRules::gathered_whole(const Tensor& weight) const {
  Tensor whole = weight;
  const bool found_so = found(weight) == WeightsStand::kWhole, left_so = left(weight) == WeightsStand::kWhole;
  whole.scope = found_so || left_so ? Scope::kStep : Scope::kFragment;
  if (whole.scope == Scope::kFragment) whole.key = 0;
  whole.freed = found_so && !left_so;
  return whole;
}

std::vector<Tensor> AwayRules::others_freed() const {
  std::vector<Tensor> others;
  if (away_.forward == nullptr || away_.weights.left != WeightsStand::kCut) return others;
  for (const Tensor& weight : away_.forward->tensors) {
    if (!gathers(weight) || found(weight) == WeightsStand::kCut) continue;
    const Tensor travels = stands_in_half(weight, plan_) ? half_of(weight) : weight;
    Tensor& other = others.emplace_back(
        found(weight) == WeightsStand::kPart ? part_of(travels, plan_) : of_step(travels));
    other.freed = true;
  }
  return others;
}

FragmentPtr freeze_without_ops(const TrainingPlan& plan, const AwayState& away, FragmentBuilder builder) {
  for (const Tensor& other : AwayRules(plan, away).others_freed()) builder.add(other);
  return builder.freeze_it();
}

namespace {

// Weights that a pass frees, or of which it leaves a part, and reverse passes that sum nothing behind what
// they compute: that comes before the gathers of the next pass, as FSDP2's streams wait for the current one
// when a pass begins.
bool ends_computing(const TrainingPlan& plan, const Fragment& fragment) {
  const bool reverse = fragment.phase == Phase::kBackward || fragment.phase == Phase::kWeight;
  if (plan.zero >= 3 && reverse && accumulates_whole(plan)) return true;
  return plan.keeps_gathered() &&
         std::any_of(fragment.tensors.begin(), fragment.tensors.end(), [](const Tensor& tensor) {
           return tensor.scope == Scope::kStep && tensor.memory == MemoryKind::kWeights &&
                  (tensor.freed || tensor.shards > 0);
         });
}

}  // namespace

std::vector<std::int32_t> leaving_ops(const TrainingPlan& plan, const Fragment& fragment) {
  std::map<Lane, std::int32_t> last;
  const bool ends = plan.zero >= 3 && ends_computing(plan, fragment);
  const auto all = static_cast<std::int32_t>(plan.zero < 2 && !plan.offload.any() ? 0 : fragment.ops.size());
  for (std::int32_t i = 0; i < all; ++i) {
    const Op& op = fragment.ops[i];
    const bool leaves = op.kind == OpKind::kCopyToHost || writes_shards(op, fragment);
    if (leaves || (ends && op.lane == Lane::kCompute)) last[op.lane] = i;
  }
  std::vector<std::int32_t> ops;
  for (const auto& [lane, op] : last) ops.push_back(op);
  return ops;
}

}  // namespace moebius
