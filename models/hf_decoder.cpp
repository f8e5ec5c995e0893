#include "models/hf_decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/architecture_reader.h"

namespace moebius {

// What nearly all decoders call the same. Tied tables default to what the family's own configuration class
// says.
Model decoder(HfKeys& keys, bool tied) {
  Model model;
  model.layers = keys.size("num_hidden_layers", kMaxLayers);
  model.hidden = keys.size("hidden_size", kMaxHidden);
  model.heads = keys.size("num_attention_heads", kMaxHeads);
  model.vocabulary = keys.size("vocab_size", kMaxVocabulary);
  model.dense_width = keys.size_or("intermediate_size", kMaxWidth, 0);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", tied);
  return model;
}

void grouped_attention(HfKeys& keys, Model& model) {
  model.kv_heads = keys.size_or("num_key_value_heads", kMaxHeads, model.heads);
  model.attention = model.kv_heads == model.heads ? AttentionKind::kMha : AttentionKind::kGqa;
  model.head_dim = keys.size_or("head_dim", kMaxHeadDim, keys.size_or("attention_head_dim", kMaxHeadDim, 0));
  if (model.head_dim > 0) return;
  if (model.hidden % model.heads != 0) {
    keys.fail(
        fmt::format("hidden_size {} is not divisible by num_attention_heads {}, and there is no head_dim",
                    model.hidden, model.heads));
  }
  model.head_dim = model.hidden / model.heads;
}

void sliding_window(HfKeys& keys, Model& model, bool in_use) {
  const int window = in_use ? keys.size_or("sliding_window", kMaxLength, 0) : 0;
  model.sliding_window = window < keys.size_or("max_position_embeddings", kMaxLength, 1 << 30) ? window : 0;
}

Model attention_decoder(HfKeys& keys, bool tied) {
  Model model = decoder(keys, tied);
  grouped_attention(keys, model);
  if (keys.flag_or("attention_bias", false)) model.biases = Biases::kQkv;
  return model;
}

void gate_score(HfKeys& keys, Model& model, GateScore otherwise) {
  const std::string name = keys.text_or("scoring_func", "");
  model.experts.score = name == "softmax"   ? GateScore::kSoftmax
                        : name == "sigmoid" ? GateScore::kSigmoid
                                            : otherwise;
  if (!name.empty() && name != "softmax" && name != "sigmoid") {
    model.unsupported = fmt::format("gate scores by \"{}\"", name);
  }
}

void shared_experts(Model& model, int shared) {
  model.experts.shared = shared;
  model.experts.shared_width = shared * model.experts.width;
}

void deepseek_experts(HfKeys& keys, Model& model, GateScore gate) {
  model.mtp_layers = keys.size_or("num_nextn_predict_layers", 100, 0);
  if (!keys.has("n_routed_experts")) return;
  Experts& experts = model.experts;
  experts.routed = keys.size("n_routed_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  experts.width = keys.size("moe_intermediate_size", kMaxWidth);
  shared_experts(model, keys.size_or("n_shared_experts", kMaxShared, 0));
  gate_score(keys, model, gate);
  experts.scale = keys.number_or("routed_scaling_factor", 1);
  if (keys.text_or("topk_method", "") != "greedy") {
    experts.groups = std::max(1, keys.size_or("n_group", kMaxExperts, 1));
    experts.active_groups = std::max(1, keys.size_or("topk_group", kMaxExperts, 1));
  }
  // Experts stand in the layers from first_k_dense_replace on whose number is a multiple of moe_layer_freq.
  model.moe_step = std::max(1, keys.size_or("moe_layer_freq", kMaxLayers, 1));
  const int first = keys.size_or("first_k_dense_replace", kMaxLayers, 0);
  model.first_dense = (first + model.moe_step - 1) / model.moe_step * model.moe_step;
}

}  // namespace moebius
