#include "workloads/training/backward.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/reverse.h"

namespace moebius {

Tensor gradient_of(const Tensor& weight, const TrainingPlan& plan) {
  Tensor gradient = weight;
  gradient.memory = MemoryKind::kGradients;
  gradient.dtype = plan.gradients;
  gradient.init = 0;
  const auto part = static_cast<std::uint32_t>(Part::kGradient) - static_cast<std::uint32_t>(Part::kWeight);
  gradient.key = weight.key + part;
  return gradient;
}

BackwardPass lower_backward(const LoweringInput& input, const StageSpec& stage, ForwardPass& forward,
                            const std::string& name, const BackwardOptions& options) {
  BackwardPass pass{FragmentBuilder(name, Phase::kBackward), {}};
  pass.builder.scaling = input.plan->scaling;
  pass.builder.launch = input.plan->launch;
  Reverse(input, stage, forward, pass, options).run();
  return pass;
}

}  // namespace moebius
