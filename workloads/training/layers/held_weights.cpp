// Fragments of passes between which gathered weights stand (zero 3, TrainingPlan::regather).
#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/state/away_state.h"

namespace moebius {
namespace {

// The half of a pass that runs as `kind`, if it has one on this chunk; pairs are two whole passes.
const HeldWeights* weights_of(const Pass& pass, PassKind kind, int chunk) {
  const bool pair = pass.kind == PassKind::kPair, behind = pair && kind == PassKind::kBackward;
  if (behind) return pass.backward.chunk == chunk ? &pass.backward_weights : nullptr;
  const bool runs = pass.kind == kind || (pair && kind == PassKind::kForward);
  return runs && pass.part.chunk == chunk ? &pass.weights : nullptr;
}

// With least to gather, and to copy, of all schedules: what a pass takes at least.
HeldWeights least_of(const TrainingPlan& plan, PassKind kind) {
  if (plan.regather == 1) return {WeightsStand::kWhole, WeightsStand::kWhole};
  if (kind == PassKind::kBackwardWeight) return {};
  return {WeightsStand::kPart, kind == PassKind::kForward ? WeightsStand::kPart : WeightsStand::kCut};
}

FragmentPtr& base_of(StageFragments& all, PassKind kind, bool last) {
  if (kind == PassKind::kForward) return all.forward;
  if (kind == PassKind::kBackwardInput) return all.inputs;
  if (kind == PassKind::kBackwardWeight) return last ? all.last_weights : all.weights;
  return last ? all.last_backward : all.backward;
}

}  // namespace

void FragmentStore::hold_weights(const StageSpec& stage, PassKind kind, bool last, const ForwardPass& forward,
                                 FragmentBuilder& builder, StageFragments& fragments) {
  if (!input_.plan->keeps_gathered()) return;
  const Model& model = *input_.model;
  const bool reverse = kind == PassKind::kBackward || kind == PassKind::kBackwardInput;
  // Those that reduce are fragments of their own where gradients gather whole.
  const bool apart = kind != PassKind::kForward && kind != PassKind::kBackwardInput;
  const auto hold = [&](const HeldWeights& weights) {
    FragmentPtr& held = fragments.held[{kind, weights, apart && last}];
    if (held) return held;
    AwayState away{.activations = away_of(forward), .weights = weights};
    away.shares_ends = placement_.chunks() > 1 && (model.tied_embeddings || model.mtp_layers > 0);
    if (reverse) away.forward = &forward.builder.fragment();
    return held = freeze_with_away_state(*input_.plan, away, builder);
  };
  base_of(fragments, kind, apart && last) = hold(least_of(*input_.plan, kind));
  for (const Pass& pass : passes_of(stage)) {
    const HeldWeights* weights = weights_of(pass, kind, stage.chunk);
    if (weights != nullptr && (!apart || pass.last == last)) hold(*weights);
  }
}

void FragmentStore::hold_reverse_weights(const StageSpec& stage, ForwardPass& forward, BackwardPass& pass,
                                         BackwardPass* last, StageFragments& fragments) {
  BackwardPass& reduces = last != nullptr ? *last : pass;
  if (pass.weights) {
    hold_weights(stage, PassKind::kBackwardInput, false, forward, pass.builder, fragments);
    hold_weights(stage, PassKind::kBackwardWeight, false, forward, *pass.weights, fragments);
    hold_weights(stage, PassKind::kBackwardWeight, true, forward, *reduces.weights, fragments);
    return;
  }
  hold_weights(stage, PassKind::kBackward, false, forward, pass.builder, fragments);
  hold_weights(stage, PassKind::kBackward, true, forward, reduces.builder, fragments);
}

}  // namespace moebius
