#include "models/hf_ling.h"

#include <algorithm>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"

namespace moebius {
namespace {

// Ling: DeepSeek's structure under other names. Its configuration class has no usable number of key-value
// heads.
Model ling(HfKeys& keys, const ExpertDefaults& family) {
  Model model = decoder(keys);
  grouped_attention(keys, model, {.kv_heads = keys.size("num_key_value_heads", kMaxHeads)});
  if (keys.flag_or("use_qkv_bias", false)) model.biases = Biases::kQkv;
  model.qk_norm = head_norm(keys);
  model.mtp_layers = keys.size_or("num_nextn_predict_layers", 100, 0);
  Experts& experts = model.experts;
  experts.routed = keys.size("num_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  experts.width = keys.size("moe_intermediate_size", kMaxWidth);
  shared_experts(model, keys.size_or("num_shared_experts", kMaxShared, 0));
  experts.groups = std::max(1, keys.size_or("n_group", kMaxExperts, family.groups));
  experts.active_groups = std::max(1, keys.size_or("topk_group", kMaxExperts, family.active_groups));
  gate_score(keys, model, "score_function", family.score);
  experts.scale = keys.number_or("routed_scaling_factor", 1);
  model.first_dense = keys.size_or("first_k_dense_replace", kMaxLayers, 0);
  return model;
}

}  // namespace

Model bailing_moe(HfKeys& keys) {
  Model model = ling(keys, {.score = GateScore::kSoftmax});
  rotary_part(keys, model, 1);
  return model;
}

// The second turns half of each head.
Model bailing_moe_v2(HfKeys& keys) {
  Model model = ling(keys, {.score = GateScore::kSigmoid, .groups = 8, .active_groups = 4});
  rotary_part(keys, model, 0.5);
  const int turned = keys.size_or("rotary_dim", kMaxHeadDim, 0);
  if (turned > 0) model.rotary_dim = turned < model.head_dim ? turned : 0;
  return model;
}

}  // namespace moebius
