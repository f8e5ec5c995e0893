#include "workloads/serving/left_out.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moebius {

std::string left_out(const Model& model) {
  std::vector<std::string> parts;
  if (model.biases != Biases::kNone && !model.adds_qkv_bias()) parts.push_back("biases");
  if (model.layer_norm) parts.push_back("means and biases of norms");
  if (model.learned_positions > 0) parts.push_back("learned positions (rotary ones stand in)");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace moebius
