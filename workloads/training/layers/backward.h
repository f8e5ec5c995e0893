// The reverse pass of a stage, derived from its forward fragment op by op. Input gradients come first,
// because the stage before waits for them; weight gradients of a block follow where they hide the block's
// communication.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/training/layers/lowering.h"

namespace moebius {

// A parameter of the stage, with its gradient, as the reverse pass found it.
struct StageParameter {
  Tensor weight;
  bool expert = false;  // cut over the expert-parallel group
  bool dense = false;   // cut over the ranks that share dense MLPs, where those are a group of their own
  bool sum_over_tensor =
      false;             // whole on every tensor-parallel rank, but each saw only its share of the tokens
  bool reduced = false;  // its gradient is summed over the replicas already
};

struct BackwardPass {
  FragmentBuilder builder;
  std::vector<StageParameter> parameters;  // in the order in which their gradients are finished
  std::optional<FragmentBuilder> weights;  // of a split pass: the gradients of matrices and tables
};

struct BackwardOptions {
  // Called when all gradients of a block are written; the last microbatch's reverse pass starts their
  // reduction here.
  std::function<void(FragmentBuilder&, std::vector<StageParameter>&)> after_block;
  // Of a split pass: called when its first part is written, with the parameters whose gradients are.
  std::function<void(FragmentBuilder&, std::vector<StageParameter>&)> after_inputs = {};
  // Gradients of inputs alone (and of norms, which come with them); `weights` has those of matrices and of
  // the embedding. What they need is kept for the microbatch.
  bool split = false;
};

// Tensors that the reverse pass reads are promoted to Scope::kMicrobatch in `forward`, which must not be
// frozen yet. Lowering the same forward twice promotes the same tensors.
BackwardPass lower_backward(const LoweringInput& input, const StageSpec& stage, ForwardPass& forward,
                            const std::string& name, const BackwardOptions& options = {});

// A sum of squares of gradients; of a rank whose parameters are all frozen, a number that stays zero.
Tensor squares();
Tensor no_squares();

// The gradient buffer that belongs to a weight.
Tensor gradient_of(const Tensor& weight, const TrainingPlan& plan);

}  // namespace moebius
