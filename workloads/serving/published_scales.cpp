#include "workloads/serving/published_scales.h"

#include <algorithm>
#include <array>

namespace moebius {
namespace {

constexpr std::array<std::string_view, 6> kInBlocks{"deepseek", "kimi", "qwen3", "glm-5", "minimax", "ling"};
constexpr std::array<std::string_view, 3> kByTensor{"mixtral", "llama-4", "glm-4.5"};

bool begins_with_one(std::string_view id, const auto& families) {
  return std::any_of(families.begin(), families.end(),
                     [id](std::string_view family) { return id.starts_with(family); });
}

}  // namespace

Fp8Scales published_scales(const Model& model) {
  if (begins_with_one(model.id, kInBlocks)) return Fp8Scales::kBlock;
  const bool by_tensor = model.experts.routed == 0 || begins_with_one(model.id, kByTensor);
  return by_tensor ? Fp8Scales::kTensor : Fp8Scales::kBlock;
}

}  // namespace moebius
