#include "models/weights/hf_config_text.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "models/constants.h"
#include "models/hf_config.h"
#include "models/weights/architecture_text.h"

namespace moebius {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMixtralLike[] = {"mixtral", "minimax_m2"};
constexpr std::string_view kOneShared[] = {"qwen2_moe"};
// Whose experts' width is written as that of an MLP.
constexpr std::string_view kOfExpertsAlone[] = {"mixtral", "minimax_m2", "olmoe"};
// Plain ones first; Llama's biases have one more, of the output map, than Qwen2's.
constexpr std::string_view kUsual[] = {"qwen2",       "llama",     "mistral",  "qwen3", "deepseek_v3",
                                       "deepseek_v2", "qwen3_moe", "glm4_moe", "olmoe", "smollm3"};

std::span<const std::string_view> families_of(WeightNaming naming) {
  switch (naming) {
    case WeightNaming::kMixtral:
      return kMixtralLike;
    case WeightNaming::kSharedOne:
      return kOneShared;
    case WeightNaming::kShared:
      return kUsual;
  }
  return {};
}

class ConfigText {
 public:
  void number(std::string_view key, double value) { row(key, fmt::format("{}", value)); }
  void flag(std::string_view key, bool value) { row(key, value ? "true" : "false"); }
  void row(std::string_view key, const std::string& value) {
    rows_.push_back(fmt::format("  \"{}\": {}", key, value));
  }
  // null where there is none, which no family takes for its own default.
  void number_or_null(std::string_view key, int value) {
    row(key, value > 0 ? std::to_string(value) : "null");
  }
  std::string str() const { return fmt::format("{{\n{}\n}}\n", fmt::join(rows_, ",\n")); }

 private:
  std::vector<std::string> rows_;
};

void write_attention(const Model& model, ConfigText& text) {
  text.number("num_attention_heads", model.heads);
  text.number("num_key_value_heads", model.kv_heads);
  text.flag("attention_bias", model.biases == Biases::kQkv);
  text.flag("qkv_bias", model.biases == Biases::kQkv);
  if (model.attention == AttentionKind::kMla) {
    text.number_or_null("q_lora_rank", model.mla.q_rank);
    text.number("kv_lora_rank", model.mla.kv_rank);
    text.number("qk_nope_head_dim", model.mla.nope_dim);
    text.number("qk_rope_head_dim", model.mla.rope_dim);
    text.number("v_head_dim", model.mla.v_dim);
    return;
  }
  text.number("head_dim", model.head_dim);
  const int rotated = model.rotary_dim > 0 ? model.rotary_dim : model.head_dim;
  text.number("rotary_dim", rotated);
  text.number("partial_rotary_factor", static_cast<double>(rotated) / model.head_dim);
  text.number_or_null("sliding_window", model.sliding_window);
  if (model.no_rotary_every > 0) text.number("no_rope_layer_interval", model.no_rotary_every);
  text.flag("use_qk_norm", model.qk_norm != QkNorm::kNone);
  if (model.qk_norm != QkNorm::kNone)
    text.row("qk_norm_type", model.qk_norm == QkNorm::kPerHead ? "\"per_head\"" : "\"per_layer\"");
}

// Families call the same by several names; each reads its own.
void write_experts(const Model& model, ConfigText& text) {
  const Experts& experts = model.experts;
  for (const auto key : {"n_routed_experts"sv, "num_experts"sv, "num_local_experts"sv})
    text.number_or_null(key, experts.routed);
  text.number_or_null("num_experts_per_tok", experts.active);
  text.number_or_null("moe_intermediate_size", experts.width);
  text.number("n_shared_experts", experts.shared);
  text.number("shared_expert_intermediate_size", experts.shared_width);
  text.row("scoring_func", experts.score == GateScore::kSigmoid ? "\"sigmoid\"" : "\"softmax\"");
  text.number("routed_scaling_factor", experts.scale);
  text.number("n_group", experts.groups);
  text.number("topk_group", experts.active_groups);
  text.number("first_k_dense_replace", model.first_dense);
  text.number("moe_layer_freq", model.moe_step);
  text.number("decoder_sparse_step", model.moe_step);
  std::vector<int> dense(model.moe_step == 1 ? static_cast<std::size_t>(model.first_dense) : 0);
  std::iota(dense.begin(), dense.end(), 0);
  text.row("mlp_only_layers", fmt::format("[{}]", fmt::join(dense, ", ")));
}

std::string config_of(const Model& model, std::string_view family) {
  const bool widths_of_experts =
      std::ranges::find(kOfExpertsAlone, family) != std::ranges::end(kOfExpertsAlone);
  ConfigText text;
  text.row("model_type", fmt::format("\"{}\"", family));
  text.number("num_hidden_layers", model.layers);
  text.number("hidden_size", model.hidden);
  text.number("vocab_size", model.vocabulary);
  text.number("intermediate_size", widths_of_experts ? model.experts.width : model.dense_width);
  text.flag("tie_word_embeddings", model.tied_embeddings);
  write_attention(model, text);
  if (model.experts.routed > 0) write_experts(model, text);
  text.number("num_nextn_predict_layers", model.mtp_layers);
  text.flag("use_mtp", model.mtp_layers > 0);
  text.number("num_mtp_modules", model.mtp_layers);
  const Constants constants;
  text.number("rms_norm_eps", constants.norm_epsilon);
  text.number("rope_theta", constants.rotary.base);
  return text.str();
}

std::string nameless(Model model) {
  model.id = "";
  return architecture_text(model);
}

bool says(const std::string& config, const Model& model) {
  try {
    const Model read = model_from_hf_config(parse_document(config, "config.json"));
    return read.unsupported.empty() && nameless(read) == nameless(model);
  } catch (const Error&) {
    return false;  // the family cannot have such sizes
  }
}

}  // namespace

std::string hf_config_text(const Model& model, WeightNaming naming) {
  for (const std::string_view family : families_of(naming)) {
    std::string config = config_of(model, family);
    if (says(config, model)) return config;
  }
  return "";
}

}  // namespace moebius
