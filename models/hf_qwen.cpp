#include "models/hf_qwen.h"

#include <algorithm>
#include <vector>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"

namespace moebius {
namespace {

Model biased_qwen(HfKeys& keys, const HeadDefaults& family) {
  Model model = decoder(keys);
  grouped_attention(keys, model, family);
  model.biases = Biases::kQkv;
  upper_windows(keys, model);
  return model;
}

Model normed_qwen(HfKeys& keys, const HeadDefaults& family) {
  Model model = attention_decoder(keys, family);
  model.qk_norm = QkNorm::kPerHead;
  upper_windows(keys, model);
  return model;
}

// Experts in every decoder_sparse_step-th layer, but not in those of mlp_only_layers (which must lead).
// Shared experts of the family have a gate (transformers, modeling_qwen2_moe.py: shared_expert_gate);
// `shared`: their width when the file leaves it out.
void qwen_experts(HfKeys& keys, Model& model, int shared) {
  Experts& experts = model.experts;
  experts.routed = keys.size("num_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  experts.width = keys.size("moe_intermediate_size", kMaxWidth);
  if (!keys.missing("shared_expert_intermediate_size")) shared = 0;
  experts.shared_width = keys.size_or("shared_expert_intermediate_size", kMaxWidth, shared);
  experts.shared = experts.shared_width > 0 ? 1 : 0;
  experts.shared_gate = experts.shared > 0;
  model.moe_step = std::max(1, keys.size_or("decoder_sparse_step", kMaxLayers, 1));
  model.first_dense = model.moe_step - 1;
  const std::vector<int> dense = keys.sizes("mlp_only_layers", kMaxLayers);
  for (int i = 0; i < static_cast<int>(dense.size()); ++i) {
    if (dense[i] != i) model.unsupported = "dense layers between layers with experts (mlp_only_layers)";
  }
  while (model.first_dense < static_cast<int>(dense.size())) model.first_dense += model.moe_step;
  if (model.moe_step == 1 && model.first_dense == 0) model.dense_width = 0;
}

// Three of four layers are gated delta networks.
void delta_layers(HfKeys& keys, Model& model) {
  model.full_attention_every = keys.size_or("full_attention_interval", kMaxLayers, 4);
  model.output_gate = keys.flag_or("attn_output_gate", true);
  model.delta = {.key_heads = keys.size("linear_num_key_heads", kMaxHeads),
                 .value_heads = keys.size("linear_num_value_heads", kMaxHeads),
                 .key_dim = keys.size("linear_key_head_dim", kMaxHeadDim),
                 .value_dim = keys.size("linear_value_head_dim", kMaxHeadDim),
                 .convolution = keys.size_or("linear_conv_kernel_dim", kMaxConvolution, 4)};
  rotary_part(keys, model, 0.25);
  model.mtp_layers = keys.size_or("mtp_num_hidden_layers", 100, 0);
}

}  // namespace

Model qwen2(HfKeys& keys) {
  return biased_qwen(keys, {.kv_heads = 32});
}

Model qwen3(HfKeys& keys) {
  return normed_qwen(keys, {.kv_heads = 32, .head_dim = 128});
}

// Which layers have windows without layer_types differs between versions of its configuration class.
Model qwen2_moe(HfKeys& keys) {
  Model model = biased_qwen(keys, {.kv_heads = 16});
  if (model.sliding_window > 0 && !keys.has("layer_types"))
    model.unsupported = "sliding windows in some layers only";
  if (!keys.flag_or("qkv_bias", true)) model.biases = Biases::kNone;
  qwen_experts(keys, model, 5632);
  return model;
}

Model qwen3_moe(HfKeys& keys) {
  Model model = normed_qwen(keys, {.kv_heads = 4});
  qwen_experts(keys, model, 0);
  return model;
}

Model qwen3_next(HfKeys& keys) {
  Model model = normed_qwen(keys, {.kv_heads = 2, .head_dim = 256});
  qwen_experts(keys, model, 512);
  delta_layers(keys, model);
  return model;
}

Model qwen3_5(HfKeys& keys) {
  Model model = normed_qwen(keys, {.kv_heads = 4, .head_dim = 256});
  delta_layers(keys, model);
  return model;
}

Model mimo(HfKeys& keys) {
  Model model = biased_qwen(keys, {.kv_heads = 32});
  if (!keys.flag_or("attention_bias", true)) model.biases = Biases::kNone;
  model.mtp_layers = keys.size_or("num_nextn_predict_layers", 100, 0);
  return model;
}

}  // namespace moebius
