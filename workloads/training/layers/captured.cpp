#include "workloads/training/layers/captured.h"

#include <algorithm>
#include <vector>

#include "workloads/cost/host_calls.h"

namespace moebius {
namespace {

enum class LayerPart : std::uint8_t { kNone, kAttention, kMlp, kRouter, kExperts };

LayerPart part_of_role(Role role, bool routed) {
  switch (role) {
    case Role::kAttentionNorm:
    case Role::kQkv:
    case Role::kQ:
    case Role::kQA:
    case Role::kQNorm:
    case Role::kQB:
    case Role::kKvA:
    case Role::kKvNorm:
    case Role::kKvB:
    case Role::kRope:
    case Role::kAttention:
    case Role::kO:
    case Role::kDeltaGates:
    case Role::kConvolution:
    case Role::kDeltaRule:
    case Role::kDeltaNorm:
    case Role::kIndexer:
    case Role::kIndexerKey:
    case Role::kIndexerNorm:
    case Role::kIndexerHeads:
      return LayerPart::kAttention;
    case Role::kMlpNorm:
      return routed ? LayerPart::kRouter : LayerPart::kMlp;
    case Role::kGateUp:
    case Role::kDown:
      return LayerPart::kMlp;
    case Role::kRouter:
    case Role::kGate:
    case Role::kSharedGateUp:
    case Role::kSharedDown:
    case Role::kSharedScore:
      return LayerPart::kRouter;
    case Role::kExpertGateUp:
    case Role::kExpertDown:
    case Role::kExperts:
      return LayerPart::kExperts;
    case Role::kNone:
    case Role::kInput:
    case Role::kEmbedding:
    case Role::kHead:
    case Role::kLoss:
    case Role::kResidual:
    case Role::kFinalNorm:
    case Role::kMtpHiddenNorm:
    case Role::kMtpEmbeddingNorm:
    case Role::kMtpProjection:
    case Role::kPipeline:
    case Role::kDense:
    case Role::kCollective:
    case Role::kCache:
    case Role::kTokens:
      return LayerPart::kNone;
  }
  return LayerPart::kNone;
}

bool can_be_captured(const Op& op) {
  const bool lane = op.lane == Lane::kCompute || op.lane == Lane::kTensorComm || op.lane == Lane::kExpertComm;
  const bool phase =
      op.phase == Phase::kForward || op.phase == Phase::kBackward || op.phase == Phase::kWeight;
  return op.layer >= 0 && lane && phase;
}

class LayerParts {
 public:
  explicit LayerParts(const Fragment& fragment) : ops_(fragment.ops) {
    int layers = 0;
    for (const Op& op : ops_) layers = std::max(layers, op.layer + 1);
    routed_.assign(layers, false);
    for (const Op& op : ops_)
      if (op.layer >= 0 && part_of_role(op.role, false) >= LayerPart::kRouter) routed_[op.layer] = true;
    parts_.reserve(ops_.size());
    for (const Op& op : ops_)
      parts_.push_back(can_be_captured(op) ? part_of_role(op.role, routed_[op.layer]) : LayerPart::kNone);
    name_residuals();
  }

  int layers() const { return static_cast<int>(routed_.size()); }
  LayerPart operator[](std::size_t op) const { return parts_[op]; }

 private:
  // Of a layer, by what is named: the op before and the op behind each.
  void name_residuals() {
    const std::vector<LayerPart> before = nearest(false), behind = nearest(true);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (op.role != Role::kResidual || !can_be_captured(op)) continue;
      const bool forward = op.phase == Phase::kForward;
      const LayerPart first = forward ? before[i] : behind[i], second = forward ? behind[i] : before[i];
      parts_[i] = first != LayerPart::kNone ? first : second;
      if (op.kind == OpKind::kAdd && parts_[i] == LayerPart::kRouter) parts_[i] = LayerPart::kExperts;
    }
  }

  std::vector<LayerPart> nearest(bool from_the_end) const {
    std::vector<LayerPart> last(routed_.size(), LayerPart::kNone), found(ops_.size(), LayerPart::kNone);
    for (std::size_t n = 0; n < ops_.size(); ++n) {
      const std::size_t i = from_the_end ? ops_.size() - 1 - n : n;
      if (ops_[i].layer < 0) continue;
      found[i] = last[ops_[i].layer];
      if (parts_[i] != LayerPart::kNone) last[ops_[i].layer] = parts_[i];
    }
    return found;
  }

  const std::vector<Op>& ops_;
  std::vector<bool> routed_;  // layers with experts
  std::vector<LayerPart> parts_;
};

bool asked_for(LayerPart part, std::span<const GraphModule> modules) {
  const auto has = [&](GraphModule module) {
    return std::find(modules.begin(), modules.end(), module) != modules.end();
  };
  switch (part) {
    case LayerPart::kNone:
      return false;
    case LayerPart::kAttention:
      return has(GraphModule::kAttention);
    case LayerPart::kMlp:
      return has(GraphModule::kMlp);
    case LayerPart::kRouter:
      return has(GraphModule::kMoe) || has(GraphModule::kMoeRouter);
    case LayerPart::kExperts:
      return has(GraphModule::kMoe);
  }
  return false;
}

}  // namespace

void capture(Fragment& fragment, std::span<const GraphModule> modules) {
  if (modules.empty()) return;
  const bool prepares =
      std::find(modules.begin(), modules.end(), GraphModule::kMoePreprocess) != modules.end();
  const LayerParts parts(fragment);
  std::vector<std::int32_t> first_of_layer(parts.layers(), -1);
  std::vector<Captured> captured(fragment.ops.size());
  bool any = false;
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    if (op.fused) continue;  // of the kernel before it
    if (asked_for(parts[i], modules)) {
      std::int32_t& first = first_of_layer[op.layer];
      if (first < 0) first = static_cast<std::int32_t>(i);
      captured[i].first = first;
      captured[first].kernels += kernels_of(op);
    } else {
      captured[i].prepared = prepares && can_be_captured(op) && travels_with_weights(op);
    }
    any = any || captured[i].first >= 0 || captured[i].prepared;
  }
  if (!any) return;
  link_graphs(captured);
  fragment.captured = std::move(captured);
}

}  // namespace moebius
