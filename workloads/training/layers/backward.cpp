#include "workloads/training/layers/backward.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/layers/reverse.h"
#include "workloads/training/state/sharding.h"

namespace moebius {

Tensor gradient_of(const Tensor& weight, const TrainingPlan& plan) {
  Tensor gradient = weight;
  gradient.memory = MemoryKind::kGradients;
  gradient.dtype = plan.gradients == DType::kFp8 ? DType::kFp32 : plan.gradients;  // fp8: as it travels
  const bool half = plan.accumulation == Accumulation::kWholeBf16;
  if (half && shards_gradients(plan, weight.experts > 0)) gradient.dtype = DType::kBf16;
  gradient.init = 0;
  const auto part = static_cast<std::uint32_t>(Part::kGradient) - static_cast<std::uint32_t>(Part::kWeight);
  gradient.key = weight.key + part;
  return gradient;
}

Tensor squares() {
  return {.dtype = DType::kFp32, .role = Role::kDense, .rows = 1, .columns = 1};
}

Tensor no_squares() {
  Tensor none = squares();
  none.scope = Scope::kRank;
  none.key = parameter_key(Role::kDense, -1, Part::kGradient);
  return none;
}

BackwardPass lower_backward(const LoweringInput& input, const StageSpec& stage, ForwardPass& forward,
                            const std::string& name, const BackwardOptions& options) {
  const std::string whole = fmt::format("{} {}", name, stage.name());
  BackwardPass pass{FragmentBuilder(options.split ? name + " inputs " + stage.name() : whole,
                                    Phase::kBackward, stage.meetings),
                    {},
                    {}};
  pass.builder.scaling = input.plan->scaling;
  pass.builder.launch = input.plan->launch;
  pass.builder.tensor_chunks = input.plan->tp_chunks;
  pass.builder.fusions = input.plan->fusions;
  pass.builder.captured = input.plan->captured;
  if (options.split) {
    pass.weights.emplace(name + " weights " + stage.name(), Phase::kWeight, stage.meetings);
    pass.weights->launch = input.plan->launch;
    pass.weights->scaling = input.plan->scaling;
    pass.weights->fusions = input.plan->fusions;
    pass.weights->captured = input.plan->captured;
  }
  Reverse(input, stage, forward, pass, options).run();
  return pass;
}

}  // namespace moebius
