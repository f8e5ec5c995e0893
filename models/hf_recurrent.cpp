#include "models/hf_recurrent.h"

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"
#include "models/hf_ling.h"

namespace moebius {
namespace {

constexpr const char* kLightning = "linear attention: most layers are lightning attention";

}  // namespace

Model bailing_linear(HfKeys& keys) {
  Model model = bailing_moe_v2(keys);
  model.unsupported = kLightning;
  return model;
}

Model jamba(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model, {.kv_heads = 8});
  Experts& experts = model.experts;
  experts.routed = keys.size_or("num_experts", kMaxExperts, 16, 1);
  if (experts.routed == 1) {
    experts.routed = 0;
  } else {
    experts.active = keys.size_or("num_experts_per_tok", kMaxExperts, 2, 1);
    experts.width = model.dense_width;
    model.moe_step = keys.size_or("expert_layer_period", kMaxLayers, 2, 1);
    model.first_dense = keys.size_or("expert_layer_offset", kMaxLayers, 1);
  }
  model.unsupported = "state-space layers: most layers are Mamba";
  return model;
}

Model kimi_linear(HfKeys& keys) {
  Model model = decoder(keys);
  model.kv_heads = model.heads;
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = keys.size_or("q_lora_rank", kMaxHidden, 0),
               .kv_rank = keys.size("kv_lora_rank", kMaxHidden),
               .nope_dim = keys.size("qk_nope_head_dim", kMaxHeadDim),
               .rope_dim = keys.size("qk_rope_head_dim", kMaxHeadDim),
               .v_dim = keys.size("v_head_dim", kMaxHeadDim)};
  Experts& experts = model.experts;
  experts.routed = keys.size("num_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_token", kMaxExperts);
  experts.width = keys.size("moe_intermediate_size", kMaxWidth);
  shared_experts(model, keys.size_or("num_shared_experts", kMaxShared, 0));
  gate_score(keys, model, "moe_router_activation_func", GateScore::kSigmoid);
  experts.scale = keys.number_or("routed_scaling_factor", 1);
  model.first_dense = keys.size_or("first_k_dense_replace", kMaxLayers, 0);
  model.unsupported = "linear attention: most layers are Kimi delta attention, others latent attention";
  return model;
}

Model lightning_minimax(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8});
  sliding_window(keys, model);
  local_experts(keys, model);
  model.unsupported = kLightning;
  return model;
}

Model mimo_v2(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.unsupported = "layers with windows have heads of other shapes than those without (swa_head_dim)";
  return model;
}

Model nemotron_h(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8});
  model.unsupported = "state-space layers: most layers are Mamba-2";
  return model;
}

}  // namespace moebius
