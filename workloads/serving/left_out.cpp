#include "workloads/serving/left_out.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moebius {

namespace {

std::string parts_left_out(const Model& model, const char* biases) {
  std::vector<std::string> parts;
  if (model.biases != Biases::kNone && !model.adds_qkv_bias()) parts.push_back(biases);
  if (model.layer_norm) parts.push_back("means and biases of norms");
  if (model.learned_positions > 0) parts.push_back("learned positions");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string left_out(const Model& model) {
  return parts_left_out(model, "biases");
}

std::string left_out_of_training(const Model& model) {
  return parts_left_out(model, "biases but those of queries, keys and values");
}

}  // namespace moebius
