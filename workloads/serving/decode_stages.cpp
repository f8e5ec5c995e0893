#include "workloads/serving/decode_stages.h"

#include <algorithm>
#include <numeric>

namespace moebius {
namespace {

constexpr int kStages = 5;

// Where tokens travel in another format than shared experts read, these quantise them for themselves, behind
// dispatch.
bool is_shared_expert(const Op& op) {
  const bool quantises = op.kind == OpKind::kQuantise || op.kind == OpKind::kLargest;
  if (quantises && op.role == Role::kMlpNorm) return true;
  return op.role == Role::kSharedGateUp || op.role == Role::kSharedDown || op.role == Role::kSharedScore;
}

// Counts stages through the layers of an iteration, op by op.
class StageCounter {
 public:
  int stage_of(const Op& op) {
    if (op.layer != layer_) begin_layer(op.layer);
    if (op.fused) return last_;  // one kernel with the op before it
    const int stage = first_ + in_layer(op);
    if (op.lane == Lane::kCompute) last_ = stage;
    return stage;
  }

 private:
  void begin_layer(int layer) {
    if (layer_ >= 0) first_ += kStages;
    layer_ = layer;
    stage_ = 0;
    dispatched_ = false;
  }

  int in_layer(const Op& op) {
    if (op.kind == OpKind::kAttention || op.kind == OpKind::kPagedAttention || op.kind == OpKind::kDeltaRule)
      return stage_ = 1;
    if (op.kind == OpKind::kCombine) return stage_ = 3;
    if (op.kind == OpKind::kDispatch) {
      dispatched_ = true;
      return stage_ = 2;
    }
    if (!dispatched_) return stage_;
    if (is_shared_expert(op)) return 2;
    return stage_ >= 3 ? stage_ = 4 : 3;
  }

  int layer_ = -1, first_ = 0, stage_ = 0, last_ = 0;
  bool dispatched_ = false;
};

}  // namespace

Pieces decode_stages(const Fragment& iteration) {
  const auto num_ops = static_cast<std::int32_t>(iteration.ops.size());
  StageCounter counter;
  std::vector<int> stage;
  for (const Op& op : iteration.ops) stage.push_back(counter.stage_of(op));
  Pieces pieces;
  pieces.ops.resize(num_ops);
  std::iota(pieces.ops.begin(), pieces.ops.end(), 0);
  std::stable_sort(pieces.ops.begin(), pieces.ops.end(),
                   [&](std::int32_t a, std::int32_t b) { return stage[a] < stage[b]; });
  for (std::int32_t at = 0; at < num_ops; ++at)
    while (static_cast<int>(pieces.first.size()) <= stage[pieces.ops[at]]) pieces.first.push_back(at);
  pieces.first.push_back(num_ops);
  return pieces;
}

}  // namespace moebius
