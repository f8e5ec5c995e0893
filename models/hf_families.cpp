#include "models/hf_families.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"
#include "models/hf_dense.h"
#include "models/hf_ernie.h"
#include "models/hf_glm.h"
#include "models/hf_granite.h"
#include "models/hf_grok.h"
#include "models/hf_ling.h"
#include "models/hf_parallel.h"
#include "models/hf_post_norms.h"
#include "models/hf_qwen.h"
#include "models/hf_recurrent.h"

namespace moebius {
namespace {

Model llama(HfKeys& keys) {
  Model model = attention_decoder(keys);
  if (keys.flag_or("mlp_bias", false)) {
    if (model.biases == Biases::kNone) model.unsupported = "biases of MLPs without those of attention";
    model.biases = Biases::kAll;
  }
  return model;
}

Model mistral(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8});
  sliding_window(keys, model, 4096);
  return model;
}

Model mixtral(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8});
  sliding_window(keys, model);
  local_experts(keys, model);
  return model;
}

Model phimoe(HfKeys& keys) {
  Model model = mixtral(keys);
  model.layer_norm = true;
  return model;
}

Model olmoe(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.qk_norm = QkNorm::kPerLayer;
  model.experts.routed = keys.size("num_experts", kMaxExperts);
  model.experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  width_of_experts(keys, model);
  return model;
}

void sparse_attention(HfKeys& keys, Model& model) {
  if (!keys.has("index_topk")) return;
  model.indexer = {.heads = keys.size("index_n_heads", kMaxHeads),
                   .head_dim = keys.size("index_head_dim", kMaxHeadDim),
                   .top = keys.size("index_topk", kMaxLength)};
}

Model latent_decoder(HfKeys& keys, const ExpertDefaults& family) {
  Model model = decoder(keys);
  model.kv_heads = model.heads;
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = keys.size_or("q_lora_rank", kMaxHidden, 0),
               .kv_rank = keys.size("kv_lora_rank", kMaxHidden),
               .nope_dim = keys.size("qk_nope_head_dim", kMaxHeadDim),
               .rope_dim = keys.size("qk_rope_head_dim", kMaxHeadDim),
               .v_dim = keys.size("v_head_dim", kMaxHeadDim)};
  deepseek_experts(keys, model, family);
  sparse_attention(keys, model);
  return model;
}

Model deepseek_v2(HfKeys& keys) {
  return latent_decoder(keys, {.score = GateScore::kSoftmax, .shared = 2});
}
Model deepseek_v3(HfKeys& keys) {
  return latent_decoder(keys, {.first_dense = 3, .groups = 8, .active_groups = 4, .scale = 2.5});
}
Model glm_moe_dsa(HfKeys& keys) {
  return latent_decoder(keys, {.first_dense = 3, .scale = 2.5});
}

Model deepseek_v4(HfKeys& keys) {
  Model model = attention_decoder(keys);
  deepseek_experts(keys, model, {});
  model.dense_width = 0;
  model.unsupported =
      "compressed multi-query attention with an indexer, low-rank output projections and hash-routed layers";
  return model;
}

Model glm4_moe(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8});
  model.qk_norm = head_norm(keys);
  rotary_part(keys, model, 0.5);
  deepseek_experts(keys, model, {.first_dense = 1});
  return model;
}

Model gpt_oss(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8, .head_dim = 64});
  model.biases = Biases::kAll;
  sliding_window(keys, model, 128);
  model.full_attention_every = 2;
  local_experts(keys, model);
  return model;
}

// Rotary layers attend within chunks; every no_rope_layer_interval-th layer has neither rotation nor chunks.
Model llama4(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8, .head_dim = 128});
  model.attention_chunk =
      keys.size_or("attention_chunk_size", kMaxLength, keys.missing("attention_chunk_size") ? 8192 : 0);
  model.full_attention_every = keys.size_or("no_rope_layer_interval", kMaxLayers, 4);
  // A list of 0 for layers that do not turn takes the interval's place.
  const std::vector<int> turns = keys.sizes("no_rope_layers", 1);
  for (int layer = 0; layer < static_cast<int>(turns.size()); ++layer) {
    if ((turns[layer] == 0) !=
        (model.full_attention_every > 0 && (layer + 1) % model.full_attention_every == 0))
      model.unsupported = "layers that do not turn otherwise than every no_rope_layer_interval-th";
  }
  Experts& experts = model.experts;
  experts.routed = keys.size("num_local_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  width_of_experts(keys, model);
  shared_experts(model, 1);
  experts.score = GateScore::kSigmoid;
  model.moe_step = std::max(1, keys.size_or("interleave_moe_layer_step", kMaxLayers, 1));
  model.first_dense = model.moe_step - 1;
  model.dense_width = model.moe_step > 1 ? keys.size("intermediate_size_mlp", kMaxWidth) : 0;
  const std::vector<int> listed = keys.sizes("moe_layers", kMaxLayers);
  for (int layer = 0; !listed.empty() && layer < model.layers; ++layer) {
    if (model.is_moe_layer(layer) != (std::find(listed.begin(), listed.end(), layer) != listed.end()))
      model.unsupported = "experts in other layers than every interleave_moe_layer_step-th";
  }
  return model;
}

Model hunyuan(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.qk_norm = head_norm(keys);
  Experts& experts = model.experts;
  experts.routed = keys.uniform_or("num_experts", kMaxExperts, 0);
  if (experts.routed <= 1) experts.routed = 0;
  if (keys.flag_or("use_cla", false)) {
    model.kv_share = std::max(1, keys.size_or("cla_share_factor", kMaxLayers, 1));
  }
  if (model.kv_share > 1) {
    model.unsupported =
        fmt::format("cross-layer attention: each {} layers share one set of keys and values", model.kv_share);
  }
  if (experts.routed == 0) return model;
  experts.active =
      keys.has("moe_topk") ? keys.uniform_or("moe_topk", kMaxExperts, 0) : keys.size("moe_topk", kMaxExperts);
  model.dense_width = keys.size("intermediate_size", kMaxWidth);
  experts.width = keys.uniform_or("moe_intermediate_size", kMaxWidth, model.dense_width);
  if (keys.flag_or("use_mixed_mlp_moe", false)) {
    experts.shared = keys.uniform_or("num_shared_expert", kMaxShared, 0);
    experts.shared_width = experts.shared * model.dense_width;
  }
  model.first_dense = keys.uniform_or("moe_layer_num_skipped", kMaxLayers, 0);
  if (model.first_dense == 0) model.dense_width = 0;
  return model;
}

Model minimax_m2(HfKeys& keys) {
  Model model = attention_decoder(keys, {.kv_heads = 8, .head_dim = 128});
  local_experts(keys, model);
  all_heads_norm(keys, model);
  const int rotated = keys.size_or("rotary_dim", model.head_dim, 0);
  if (rotated < model.head_dim) model.rotary_dim = rotated;
  model.mtp_layers = keys.flag_or("use_mtp", false) ? keys.size_or("num_mtp_modules", 100, 0) : 0;
  gate_score(keys, model, "scoring_func", GateScore::kSigmoid);
  const std::vector<int> kinds = keys.sizes("attn_type_list", 1);
  const bool linear = std::any_of(kinds.begin(), kinds.end(), [](int kind) { return kind == 0; });
  if (linear) model.unsupported = "linear attention: some layers are lightning attention (attn_type_list)";
  return model;
}

Model gpt2(HfKeys& keys) {
  Model model;
  model.layers = keys.size("n_layer", kMaxLayers);
  model.hidden = keys.size("n_embd", kMaxHidden);
  model.heads = keys.size("n_head", kMaxHeads);
  model.vocabulary = keys.size("vocab_size", kMaxVocabulary);
  model.learned_positions = keys.size({"n_positions", "n_ctx"}, kMaxLength);
  model.dense_width = keys.size_or("n_inner", kMaxWidth, 4 * model.hidden);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  model.gated = false;
  model.biases = Biases::kAll;
  model.layer_norm = true;
  grouped_attention(keys, model);
  return model;
}

Model dbrx(HfKeys& keys) {
  Model model;
  model.layers = keys.size("n_layers", kMaxLayers);
  model.hidden = keys.size("d_model", kMaxHidden);
  model.heads = keys.size("n_heads", kMaxHeads);
  model.vocabulary = keys.size("vocab_size", kMaxVocabulary);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
  grouped_attention(keys, model);
  model.kv_heads = keys.object("attn_config").size_or("kv_n_heads", kMaxHeads, 1);
  model.attention = model.kv_heads == model.heads ? AttentionKind::kMha : AttentionKind::kGqa;
  HfKeys mlp = keys.object("ffn_config");
  model.experts.routed = mlp.size("moe_num_experts", kMaxExperts);
  model.experts.active = mlp.size("moe_top_k", kMaxExperts);
  model.experts.width = mlp.size("ffn_hidden_size", kMaxWidth);
  return model;
}

// Where a dense MLP as wide as the stream stands beside attention and experts, these read the layer's input
// (modeling_arctic.py: parallel_attn_mlp_res). Counted as a shared expert, without its norm.
Model arctic(HfKeys& keys) {
  Model model = attention_decoder(keys);
  Experts& experts = model.experts;
  experts.routed = keys.size("num_local_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  experts.width = model.dense_width = keys.size("intermediate_size", kMaxWidth);
  model.moe_step = keys.size_or("moe_layer_frequency", kMaxLayers, 2, 1);
  model.first_dense = model.moe_step - 1;
  if (model.moe_step == 1) model.dense_width = 0;
  if (!keys.flag_or("parallel_attn_mlp_res", false)) return model;
  experts.shared = 1;
  experts.shared_width = model.hidden;
  model.unsupported = "experts beside attention and a dense MLP of their own (parallel_attn_mlp_res)";
  return model;
}

// The first DeepSeek with experts, and dots.llm1, have grouped heads.
Model deepseek(HfKeys& keys) {
  Model model = attention_decoder(keys);
  deepseek_experts(keys, model, {.score = GateScore::kSoftmax, .shared = 2});
  return model;
}

Model dots1(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.qk_norm = QkNorm::kPerHead;
  deepseek_experts(keys, model, {});
  return model;
}

constexpr HfFamily kFamilies[] = {
    {"apertus", apertus},
    {"arctic", arctic},
    {"baichuan", baichuan},
    {"bailing_hybrid", bailing_linear},
    {"bailing_moe", bailing_moe},
    {"bailing_moe_linear", bailing_linear},
    {"bailing_moe_v2", bailing_moe_v2},
    {"bloom", bloom},
    {"chatglm", chatglm},
    {"cohere", cohere},
    {"cohere2", cohere2},
    {"dbrx", dbrx},
    {"deepseek", deepseek},
    {"deepseek_v2", deepseek_v2},
    {"deepseek_v3", deepseek_v3},
    {"deepseek_v32", deepseek_v3},
    {"deepseek_v4", deepseek_v4},
    {"dots1", dots1},
    {"ernie4_5", ernie4_5},
    {"ernie4_5_moe", ernie4_5_moe},
    {"exaone4", exaone4},
    {"falcon", falcon},
    {"gemma", gemma1},
    {"gemma2", gemma2},
    {"gemma3_text", gemma3},
    {"git", grok2},  // as xai-org/grok-2 has it
    {"glm", glm},
    {"glm4", glm4},
    {"glm4_moe", glm4_moe, Fp8Scales::kTensor},
    {"glm_moe_dsa", glm_moe_dsa},
    {"gpt2", gpt2},
    {"gpt_neox", gpt_neox},
    {"gpt_oss", gpt_oss},
    {"gptj", gptj},
    {"granite", granite},
    {"granitemoe", granitemoe},
    {"granitemoehybrid", granitemoehybrid},
    {"granitemoeshared", granitemoeshared},
    {"grok-1", grok1},
    {"hunyuan", hunyuan},
    {"hunyuan_v1_dense", hunyuan},
    {"hunyuan_v1_moe", hunyuan},
    {"internlm2", internlm2},
    {"internlm3", internlm3},
    {"jamba", jamba},
    {"kimi_k2", deepseek_v3},
    {"kimi_linear", kimi_linear},
    {"llama", llama},
    {"llama4_text", llama4, Fp8Scales::kTensor},
    {"mimo", mimo},
    {"mimo_v2_flash", mimo_v2},
    {"minimax", lightning_minimax},
    {"minimax_m1", lightning_minimax},
    {"minimax_m2", minimax_m2},
    {"minimax_text_01", lightning_minimax},
    {"mistral", mistral},
    {"mixtral", mixtral, Fp8Scales::kTensor},
    {"nemotron_h", nemotron_h},
    {"olmo2", olmo2},
    {"olmo3", olmo3},
    {"olmoe", olmoe},
    {"opt", opt},
    {"phi", phi},
    {"phi3", phi3},
    {"phimoe", phimoe},
    {"qwen2", qwen2},
    {"qwen2_5_vl", qwen2},
    {"qwen2_5_vl_text", qwen2},
    {"qwen2_moe", qwen2_moe},
    {"qwen2_vl", qwen2},
    {"qwen2_vl_text", qwen2},
    {"qwen3", qwen3},
    {"qwen3_5_moe_text", qwen3_next},
    {"qwen3_5_text", qwen3_5},
    {"qwen3_moe", qwen3_moe},
    {"qwen3_next", qwen3_next},
    {"qwen3_vl_moe_text", qwen3_moe},
    {"qwen3_vl_text", qwen3},
    {"seed_oss", seed_oss},
    {"smollm3", smollm3},
    {"stablelm", stablelm},
    {"starcoder2", starcoder2},
};

}  // namespace

std::span<const HfFamily> hf_families() {
  return kFamilies;
}

}  // namespace moebius
