#include "models/hf_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

namespace {

// Of what families call a key, the name that was read.
std::string_view read_of(const HfKeys& keys, std::initializer_list<std::string_view> names) {
  return *std::ranges::find_if(names, [&](std::string_view name) { return keys.read_at(name) != nullptr; });
}

}  // namespace

void grouped_attention(HfKeys& keys, Model& model, const HeadDefaults& family) {
  model.kv_heads = keys.size_or(
      "num_key_value_heads", kMaxHeads,
      keys.missing("num_key_value_heads") && family.kv_heads > 0 ? family.kv_heads : model.heads);
  model.attention = model.kv_heads == model.heads ? AttentionKind::kMha : AttentionKind::kGqa;
  model.head_dim = keys.size_or(
      "head_dim", kMaxHeadDim,
      keys.size_or("attention_head_dim", kMaxHeadDim, keys.missing("head_dim") ? family.head_dim : 0));
  if (model.head_dim > 0) return;
  if (model.hidden % model.heads != 0)
    keys.read_at(read_of(keys, {"hidden_size", "d_model", "n_embd"}))
        ->fail(fmt::format("expected a multiple of {} {}, or a head_dim beside it, found {}",
                           read_of(keys, {"num_attention_heads", "n_heads", "n_head"}), model.heads,
                           model.hidden));
  model.head_dim = model.hidden / model.heads;
}

void sliding_window(HfKeys& keys, Model& model, int family) {
  const int window = keys.size_or("sliding_window", kMaxLength, keys.missing("sliding_window") ? family : 0);
  model.sliding_window = window < keys.size_or("max_position_embeddings", kMaxLength, 1 << 30) ? window : 0;
}

void upper_windows(HfKeys& keys, Model& model) {
  if (!keys.flag_or("use_sliding_window", false)) return;
  sliding_window(keys, model, 4096);
  if (model.sliding_window == 0 || keys.has("layer_types")) return;
  const int whole = keys.size_or("max_window_layers", kMaxLayers, 28);  // layers below that see all tokens
  if (whole >= model.layers) {
    model.sliding_window = 0;
  } else if (whole > 0) {
    model.unsupported = "sliding windows in the upper layers only";
  }
}

Model attention_decoder(HfKeys& keys, const HeadDefaults& family) {
  Model model = decoder(keys);
  grouped_attention(keys, model, family);
  if (keys.flag_or("attention_bias", false)) model.biases = Biases::kQkv;
  return model;
}

QkNorm head_norm(HfKeys& keys) {
  return keys.flag_or("use_qk_norm", false) ? QkNorm::kPerHead : QkNorm::kNone;
}

void all_heads_norm(HfKeys& keys, Model& model) {
  const std::string type = keys.text_or("qk_norm_type", "per_layer");
  if (!keys.flag_or("use_qk_norm", false)) return;
  model.qk_norm = type == "per_head" ? QkNorm::kPerHead : QkNorm::kPerLayer;
  if (type != "per_head" && type != "per_layer")
    model.unsupported = fmt::format("norms of queries and keys by \"{}\"", type);
}

void gate_score(HfKeys& keys, Model& model, std::string_view key, GateScore otherwise) {
  const std::string name = keys.text_or(key, "");
  const bool sigmoid = name == "sigmoid" || name == "noaux_tc";
  model.experts.score = name == "softmax" ? GateScore::kSoftmax : sigmoid ? GateScore::kSigmoid : otherwise;
  if (!name.empty() && name != "softmax" && !sigmoid) {
    model.unsupported = fmt::format("gate scores by \"{}\"", name);
  }
}

void rotary_part(HfKeys& keys, Model& model, double family) {
  double share = keys.number_or("partial_rotary_factor", family);
  if (keys.has("rope_parameters"))
    share = keys.object("rope_parameters").number_or("partial_rotary_factor", share);
  if (share < 1) model.rotary_dim = static_cast<int>(std::lround(share * model.head_dim));
}

void width_of_experts(HfKeys& keys, Model& model) {
  model.experts.width = keys.size("intermediate_size", kMaxWidth);
  model.dense_width = 0;
}

void local_experts(HfKeys& keys, Model& model) {
  model.experts.routed = keys.size("num_local_experts", kMaxExperts);
  model.experts.active = keys.size({"num_experts_per_tok", "experts_per_token"}, kMaxExperts);
  width_of_experts(keys, model);
}

void shared_experts(Model& model, int shared) {
  model.experts.shared = shared;
  model.experts.shared_width = shared * model.experts.width;
}

void deepseek_experts(HfKeys& keys, Model& model, const ExpertDefaults& family) {
  model.mtp_layers = keys.size_or("num_nextn_predict_layers", 100, 0);
  if (!keys.missing("n_routed_experts") && !keys.has("n_routed_experts")) return;
  const auto size_or = [&](std::string_view key, double high, int otherwise) {
    return keys.size_or(key, high, keys.missing(key) ? otherwise : 0);
  };
  Experts& experts = model.experts;
  experts.routed = keys.size("n_routed_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  experts.width = keys.size("moe_intermediate_size", kMaxWidth);
  shared_experts(model, size_or("n_shared_experts", kMaxShared, family.shared));
  gate_score(keys, model, "scoring_func", family.score);
  experts.scale = keys.number_or("routed_scaling_factor", family.scale);
  if (keys.text_or("topk_method", "") != "greedy") {
    experts.groups = std::max(1, size_or("n_group", kMaxExperts, family.groups));
    experts.active_groups = std::max(1, size_or("topk_group", kMaxExperts, family.active_groups));
  }
  // Experts stand in the layers from first_k_dense_replace on whose number is a multiple of moe_layer_freq.
  model.moe_step = std::max(1, keys.size_or("moe_layer_freq", kMaxLayers, 1));
  const int first = size_or("first_k_dense_replace", kMaxLayers, family.first_dense);
  model.first_dense = (first + model.moe_step - 1) / model.moe_step * model.moe_step;
}

}  // namespace moebius
