#include "models/hf_parallel.h"

#include <algorithm>
#include <string>
#include <vector>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"
#include "models/hf_layer_types.h"

namespace moebius {
namespace {

// Norms with a mean, MLPs of two matrices.
void with_plain_layers(Model& model) {
  model.layer_norm = true;
  model.gated = false;
}

// As many norms as ln_attn and ln_mlp or input_layernorm make (modeling_falcon.py).
ParallelBlock falcon_block(HfKeys& keys, bool new_layers) {
  if (!keys.flag_or("parallel_attn", true)) return ParallelBlock::kNone;
  const int norms = keys.size_or("num_ln_in_parallel_attn", 2, new_layers ? 2 : 1, 1);
  return new_layers && norms == 2 ? ParallelBlock::kTwoNorms : ParallelBlock::kOneNorm;
}

// "num_kv_heads" counts in the newer layers alone.
int falcon_kv_heads(HfKeys& keys, bool new_layers, int heads) {
  if (new_layers) return keys.size_or("num_kv_heads", kMaxHeads, heads, 1);
  return keys.flag_or("multi_query", true) ? 1 : heads;
}

}  // namespace

Model cohere(HfKeys& keys) {
  Model model = decoder(keys, true);
  grouped_attention(keys, model);
  model.layer_norm = true;
  model.parallel_block = ParallelBlock::kOneNorm;
  if (keys.flag_or("attention_bias", false)) model.biases = Biases::kQkv;
  if (keys.flag_or("use_qk_norm", false)) model.qk_norm = QkNorm::kPerHead;
  return model;
}

// Layers that see all tokens turn neither queries nor keys (modeling_cohere2.py).
Model cohere2(HfKeys& keys) {
  Model model = cohere(keys);
  model.qk_norm = QkNorm::kNone;
  sliding_window(keys, model, 4096);
  const int every = keys.size_or("sliding_window_pattern", kMaxLayers, 4, 1);
  if (model.sliding_window > 0) model.full_attention_every = every;
  const std::vector<std::string> kinds = layer_types(keys, model);
  model.no_rotary_every = kinds.empty() ? every : std::max(0, full_attention_period(kinds));
  model.note = "its norms have no bias, which is counted; the scale of its logits is left out";
  return model;
}

Model falcon(HfKeys& keys) {
  Model model;
  model.layers = keys.size({"num_hidden_layers", "n_layer"}, kMaxLayers);
  model.hidden = keys.size("hidden_size", kMaxHidden);
  model.heads = keys.size({"num_attention_heads", "n_head"}, kMaxHeads);
  model.vocabulary = keys.size_or("vocab_size", kMaxVocabulary, 65024, 1);
  model.dense_width = keys.size_or("ffn_hidden_size", kMaxWidth, 4 * model.hidden);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  grouped_attention(keys, model);
  const bool new_layers = keys.flag_or("new_decoder_architecture", false);
  model.kv_heads = falcon_kv_heads(keys, new_layers, model.heads);
  model.attention = model.kv_heads == model.heads ? AttentionKind::kMha : AttentionKind::kGqa;
  model.parallel_block = falcon_block(keys, new_layers);
  with_plain_layers(model);
  if (keys.flag_or("bias", false)) model.biases = Biases::kAll;
  if (keys.flag_or("alibi", false)) model.note = "slopes on scores (ALiBi), where rotary positions stand in";
  return model;
}

Model gpt_neox(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model);
  with_plain_layers(model);
  model.biases = keys.flag_or("attention_bias", true) ? Biases::kAll : Biases::kNone;
  if (keys.flag_or("use_parallel_residual", true)) model.parallel_block = ParallelBlock::kTwoNorms;
  double turning = keys.number_or("rotary_pct", 0.25);
  if (keys.has("rope_parameters"))
    turning = keys.object("rope_parameters").number_or("partial_rotary_factor", turning);
  if (turning < 1) model.rotary_dim = static_cast<int>(turning * model.head_dim);
  return model;
}

Model gptj(HfKeys& keys) {
  Model model;
  model.layers = keys.size({"n_layer", "num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"n_embd", "hidden_size"}, kMaxHidden);
  model.heads = keys.size({"n_head", "num_attention_heads"}, kMaxHeads);
  model.vocabulary = keys.size("vocab_size", kMaxVocabulary);
  model.dense_width = keys.size_or("n_inner", kMaxWidth, 4 * model.hidden);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
  grouped_attention(keys, model);
  with_plain_layers(model);
  model.parallel_block = ParallelBlock::kOneNorm;
  const int turning = keys.size_or("rotary_dim", kMaxHeadDim, keys.missing("rotary_dim") ? 64 : 0);
  if (turning != model.head_dim) model.rotary_dim = turning;
  model.note = "biases of MLPs and of the head are left out";
  return model;
}

Model phi(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model);
  with_plain_layers(model);
  model.biases = Biases::kAll;
  model.parallel_block = ParallelBlock::kOneNorm;
  if (keys.flag_or("qk_layernorm", false)) model.qk_norm = QkNorm::kPerHead;
  rotary_part(keys, model, 0.5);
  return model;
}

Model stablelm(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model, {.kv_heads = 32});
  model.layer_norm = true;
  if (keys.flag_or("use_qkv_bias", false)) model.biases = Biases::kQkv;
  if (keys.flag_or("use_parallel_residual", false)) model.parallel_block = ParallelBlock::kOneNorm;
  rotary_part(keys, model, 0.25);
  if (!keys.flag_or("qk_layernorm", false)) return model;
  model.qk_norm = QkNorm::kPerHead;
  model.note =
      "its norms of queries and keys have weights for each head, which are counted and computed once";
  return model;
}

}  // namespace moebius
