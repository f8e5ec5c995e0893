#include "workloads/training/state/hybrid_recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"

namespace moebius {
namespace {

double seconds_of(const Op& op, const TrainingPlan& plan) {
  if (is_communication(op.kind)) return 0;
  return std::max(op_flops(op.kind, op.shape) / plan.recompute_flops,
                  op_bytes(op.kind, op.shape, op.dtype) / plan.recompute_memory);
}

// The reverse pass, whole or in two parts.
std::vector<const Fragment*> reverse_parts(const StageFragments& fragments) {
  if (fragments.backward) return {fragments.backward.get()};
  return {fragments.inputs.get(), fragments.weights.get()};
}

double copy_seconds(Bytes bytes, const TrainingPlan& plan) {
  return plan.recompute_host.value > 0 ? bytes / plan.recompute_host : 0;
}

// By layer: what a microbatch keeps on the device and in host memory, and how long its reverse pass computes.
struct LayerSums {
  std::map<int, double> bytes, away, seconds;
};

LayerSums sums_of(const StageFragments& fragments, const TrainingPlan& plan) {
  LayerSums sums;
  for (const Tensor& tensor : fragments.forward->tensors) {
    if (tensor.scope == Scope::kMicrobatch)
      (tensor.on_host ? sums.away : sums.bytes)[tensor.layer] += tensor.bytes().value;
  }
  for (const Fragment* part : reverse_parts(fragments)) {
    for (const Op& op : part->ops) sums.seconds[op.layer] += seconds_of(op, plan);
  }
  return sums;
}

std::shared_ptr<RecomputeChoice> everywhere(const LayerSums& layers, RecomputeOp op) {
  auto choice = std::make_shared<RecomputeChoice>();
  for (const auto* kept : {&layers.bytes, &layers.away})
    for (const auto& [layer, bytes] : *kept) choice->ops.insert({layer, op});
  return choice;
}

}  // namespace

StageFragments HybridRecompute::lowered(const StageSpec& stage,
                                        const std::shared_ptr<const RecomputeChoice>& choice) {
  StageSpec with = stage;
  with.recompute = choice;
  return lower_(with);
}

HybridRecompute::Seconds HybridRecompute::seconds_of(const StageFragments& fragments) const {
  Seconds seconds;
  for (const Op& op : fragments.forward->ops) {
    seconds.forward += moebius::seconds_of(op, plan_);
    if (op.kind == OpKind::kCopyToHost) seconds.out += copy_seconds(op.payload, plan_);
  }
  for (const Fragment* part : reverse_parts(fragments)) {
    for (const Op& op : part->ops) {
      seconds.reverse += moebius::seconds_of(op, plan_);
      if (op.kind == OpKind::kCopyFromHost) seconds.in += copy_seconds(op.payload, plan_);
    }
  }
  return seconds;
}

double HybridRecompute::seconds_of(const StageSpec& stage,
                                   const std::shared_ptr<const RecomputeChoice>& choice) {
  return seconds_of(lowered(stage, choice)).total();
}

RecomputeCost HybridRecompute::cost_of(const StageSpec& stage,
                                       const std::shared_ptr<const RecomputeChoice>& choice) {
  const StageFragments fragments = lowered(stage, choice);
  const double kept = known_ ? known_->kept_seconds : 0;
  return {memory_(fragments).peak, seconds_of(fragments).total() - kept};
}

std::vector<HybridRecompute::Item> HybridRecompute::items_of(const StageSpec& stage) {
  const LayerSums kept = sums_of(lowered(stage, nullptr), plan_);
  std::vector<Item> items;
  for (int i = 0; i < kNumRecomputeOps; ++i) {
    const auto op = static_cast<RecomputeOp>(i);
    if (op == RecomputeOp::kDispatch) continue;
    // Streams that are not kept are added up from the layer before, which an item does not know of.
    if (op == RecomputeOp::kAttentionOut || op == RecomputeOp::kMlpDown) continue;
    LayerSums again = sums_of(lowered(stage, everywhere(kept, op)), plan_);
    // What is only handed on is not computed in reverse.
    for (const auto& [layer, computed] : kept.seconds) {
      const auto freed = [layer = layer](const std::map<int, double>& before,
                                         const std::map<int, double>& after) {
        const auto was = before.find(layer), is = after.find(layer);
        return (was == before.end() ? 0 : was->second) - (is == after.end() ? 0 : is->second);
      };
      const double here = freed(kept.bytes, again.bytes), away = freed(kept.away, again.away);
      const double longer = std::max(0.0, again.seconds[layer] - computed);
      if (here > 0 || away > 0)
        items.push_back({layer, op, std::max(0.0, here), longer, copy_seconds({std::max(0.0, away)}, plan_)});
    }
  }
  return items;
}

// least[u]: the fewest seconds that free u units or more. An item frees the whole units in its bytes.
std::shared_ptr<RecomputeChoice> HybridRecompute::pick(const std::vector<Item>& items, double bytes) {
  constexpr int kUnits = 4096;
  const double unit = bytes / kUnits;
  std::vector<double> least(kUnits + 1, std::numeric_limits<double>::infinity());
  std::vector<std::vector<bool>> taken(items.size(), std::vector<bool>(kUnits + 1, false));
  least[0] = 0;
  const auto units_of = [&](const Item& item) {
    return static_cast<int>(std::min<double>(kUnits, item.bytes / unit));
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (int u = kUnits; u > 0; --u) {
      const double with = least[std::max(0, u - units_of(items[i]))] + items[i].seconds;
      if (units_of(items[i]) > 0 && with < least[u]) least[u] = with, taken[i][u] = true;
    }
  }
  if (least[kUnits] == std::numeric_limits<double>::infinity()) return nullptr;
  auto choice = std::make_shared<RecomputeChoice>();
  int left = kUnits;
  for (std::size_t i = items.size(); i-- > 0;) {
    if (left == 0 || !taken[i][left]) continue;
    choice->ops.insert({items[i].layer, items[i].op});
    left = std::max(0, left - units_of(items[i]));
  }
  return choice;
}

const HybridRecompute::Known& HybridRecompute::known(const StageSpec& stage) {
  if (known_) return *known_;
  auto full = std::make_shared<RecomputeChoice>();
  full->full = true;
  known_.emplace();
  known_->kept_seconds = seconds_of(stage, nullptr);
  known_->full = full;
  known_->of_full = cost_of(stage, full);
  known_->items = items_of(stage);
  return *known_;
}

std::shared_ptr<const RecomputeChoice> HybridRecompute::choose(const StageSpec& stage) {
  const Bytes budget = plan_.recompute_budget;
  const auto choice = choose(stage, budget);
  const bool fits = !choice || known_->of_full.peak <= budget || cost_of(stage, choice).peak <= budget;
  if (fits) return choice;
  // What is computed again for a reverse pass in two parts stays for the second one: then it may fill more.
  if (!plan_.keeps_to_budget) return cost_of(stage, nullptr).peak <= known_->of_full.peak ? nullptr : choice;
  throw run_error(
      fmt::format("stage {} does not fit in its budget of {}: with all layers computed again it takes {}",
                  stage.stage, to_text(budget), to_text(known_->of_full.peak)));
}

std::shared_ptr<const RecomputeChoice> HybridRecompute::choose(const StageSpec& stage, Bytes budget) {
  return with_fewer_copies(stage, budget, fitting(stage, budget));
}

// What takes the fewest seconds for each second that is not copied first.
std::shared_ptr<const RecomputeChoice> HybridRecompute::with_fewer_copies(
    const StageSpec& stage, Bytes budget, std::shared_ptr<const RecomputeChoice> choice) {
  if (!plan_.offload.activations || (choice && choice->full)) return choice;
  Seconds best = seconds_of(lowered(stage, choice));
  if (best.out <= best.forward && best.in <= best.reverse) return choice;
  auto more = choice ? std::make_shared<RecomputeChoice>(*choice) : std::make_shared<RecomputeChoice>();
  std::vector<Item> items;
  for (const Item& item : known(stage).items)
    if (item.copied > 0 && more->ops.count({item.layer, item.op}) == 0) items.push_back(item);
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& x, const Item& y) { return x.seconds * y.copied < y.seconds * x.copied; });
  for (const Item& item : items) {
    Seconds with = best;
    with.out -= item.copied, with.in -= item.copied, with.reverse += item.seconds;
    if (with.total() >= best.total()) continue;
    best = with;
    more->ops.insert({item.layer, item.op});
  }
  const RecomputeCost cost = cost_of(stage, more);
  return cost.peak <= budget && cost.seconds < cost_of(stage, choice).seconds ? more : choice;
}

std::shared_ptr<const RecomputeChoice> HybridRecompute::fitting(const StageSpec& stage, Bytes budget) {
  if (!kept_) kept_ = memory_(lowered(stage, nullptr));
  if (kept_->peak <= budget) return nullptr;
  const Known& all = known(stage);
  std::shared_ptr<const RecomputeChoice> best;
  double best_seconds = std::numeric_limits<double>::infinity();
  if (all.of_full.peak <= budget) best = all.full, best_seconds = all.of_full.seconds;
  // Of choices that free so many bytes of a microbatch: what is still over the budget, nothing where none
  // frees as many.
  const auto over_budget = [&](double bytes) -> std::optional<double> {
    const std::shared_ptr<const RecomputeChoice> choice = pick(all.items, bytes);
    if (!choice) return std::nullopt;
    const RecomputeCost cost = cost_of(stage, choice);
    if (cost.peak > budget) return (cost.peak - budget).value;
    if (cost.seconds <= best_seconds) best = choice, best_seconds = cost.seconds;
    return 0;
  };
  // Mostly what is missing is a microbatch's part of what is too much; where another moment is the peak then,
  // more is, up to all that can be freed.
  const double alive = std::max(1, kept_->peak_microbatches);
  double low = (kept_->peak - budget).value / alive, high = 0;
  for (const Item& item : all.items) high += item.bytes;
  constexpr int kCorrections = 4, kHalvings = 6;
  for (int i = 0; i < kCorrections && low < high; ++i) {
    const std::optional<double> over = over_budget(low);
    if (!over || *over == 0) return best ? best : all.full;
    low += *over / alive;
  }
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = (low + high) / 2;
    const std::optional<double> over = over_budget(middle);
    (over && *over > 0 ? low : high) = middle;
  }
  return best ? best : all.full;
}

}  // namespace moebius
