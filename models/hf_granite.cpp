#include "models/hf_granite.h"

#include <algorithm>
#include <string>
#include <vector>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"
#include "models/hf_layer_types.h"

namespace moebius {
namespace {

constexpr const char* kMultipliers =
    "multipliers of its embedding, residuals, scores and logits are left out";

Model with_multipliers(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.note = kMultipliers;
  return model;
}

// `family`: when the file leaves it out.
void shared_mlp(HfKeys& keys, Model& model, int family) {
  const int width = keys.size_or("shared_intermediate_size", kMaxWidth,
                                 keys.missing("shared_intermediate_size") ? family : 0);
  model.experts.shared = width > 0 ? 1 : 0;
  model.experts.shared_width = width;
}

}  // namespace

Model granite(HfKeys& keys) {
  Model model = with_multipliers(keys);
  if (!keys.flag_or("mlp_bias", false)) return model;
  if (model.biases == Biases::kNone) model.unsupported = "biases of MLPs without those of attention";
  model.biases = Biases::kAll;
  return model;
}

Model granitemoe(HfKeys& keys) {
  Model model = with_multipliers(keys);
  local_experts(keys, model);
  return model;
}

Model granitemoeshared(HfKeys& keys) {
  Model model = granitemoe(keys);
  shared_mlp(keys, model, 0);
  return model;
}

// Without experts the shared MLP is the layer's own. Positions turn queries and keys where
// position_embedding_type says "rope".
Model granitemoehybrid(HfKeys& keys) {
  Model model = with_multipliers(keys);
  if (keys.text_or("position_embedding_type", "") != "rope") model.no_rotary_every = 1;
  shared_mlp(keys, model, 1024);
  model.experts.routed = keys.size_or("num_local_experts", kMaxExperts, 8);
  if (model.experts.routed > 0) {
    model.experts.active = keys.size_or("num_experts_per_tok", kMaxExperts, 2, 1);
    width_of_experts(keys, model);
  } else {
    model.dense_width = model.experts.shared_width;
    model.experts = {};
  }
  const std::vector<std::string> kinds = layer_types(keys, model);
  if (kinds.empty() || std::find(kinds.begin(), kinds.end(), "mamba") != kinds.end())
    model.unsupported = "state-space layers: some layers are Mamba-2";
  return model;
}

}  // namespace moebius
