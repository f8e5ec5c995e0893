#include "models/hf_dense.h"

#include <cmath>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"

namespace moebius {
namespace {

// Layers of GPT-2's kind: norms with a mean, biases, two matrices.
void as_gpt2(Model& model) {
  model.biases = Biases::kAll;
  model.layer_norm = true;
  model.gated = false;
}

Model gemma(HfKeys& keys, const HeadDefaults& family, int vocabulary) {
  Model model;
  model.layers = keys.size("num_hidden_layers", kMaxLayers);
  model.hidden = keys.size("hidden_size", kMaxHidden);
  model.heads = keys.size("num_attention_heads", kMaxHeads);
  model.dense_width = keys.size("intermediate_size", kMaxWidth);
  model.vocabulary = keys.size_or("vocab_size", kMaxVocabulary, vocabulary);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  grouped_attention(keys, model, family);
  sliding_window(keys, model, 4096);
  model.note = "two further norms a layer and caps of scores are left out";
  return model;
}

}  // namespace

Model bloom(HfKeys& keys) {
  Model model;
  model.layers = keys.size({"n_layer", "num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"hidden_size", "n_embed"}, kMaxHidden);
  model.heads = keys.size({"n_head", "num_attention_heads"}, kMaxHeads);
  model.vocabulary = keys.size("vocab_size", kMaxVocabulary);
  model.dense_width = 4 * model.hidden;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  grouped_attention(keys, model);
  as_gpt2(model);
  model.note = "slopes on scores (ALiBi), where rotary positions stand in; without the norm of its embedding";
  return model;
}

// Every other layer looks back to the first token.
Model gemma2(HfKeys& keys) {
  Model model = gemma(keys, {.kv_heads = 4, .head_dim = 256}, 256000);
  model.full_attention_every = 2;
  return model;
}

Model gemma3(HfKeys& keys) {
  Model model = gemma(keys, {.kv_heads = 4, .head_dim = 256}, 262208);
  model.qk_norm = QkNorm::kPerHead;
  model.full_attention_every = keys.size_or("sliding_window_pattern", kMaxLayers,
                                            keys.size_or("_sliding_window_pattern", kMaxLayers, 6), 1);
  return model;
}

// Two rows of positions stand before the first one.
Model opt(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.dense_width = keys.size("ffn_dim", kMaxWidth);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  model.learned_positions = keys.size("max_position_embeddings", kMaxLength) + 2;
  as_gpt2(model);
  const int embedded = keys.size_or("word_embed_proj_dim", kMaxHidden, model.hidden);
  if (embedded != model.hidden)
    model.unsupported = "an embedding narrower than the layers (word_embed_proj_dim)";
  if (!keys.flag_or("do_layer_norm_before", true)) model.unsupported = "norms behind attention and MLP";
  return model;
}

Model phi3(HfKeys& keys) {
  Model model = attention_decoder(keys);
  sliding_window(keys, model);
  const double turning = keys.number_or("partial_rotary_factor", 1);
  if (turning < 1) model.rotary_dim = static_cast<int>(std::lround(turning * model.head_dim));
  return model;
}

Model seed_oss(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model, {.kv_heads = 8, .head_dim = 128});
  if (keys.flag_or("attention_bias", true)) model.biases = Biases::kQkv;
  return model;
}

Model starcoder2(HfKeys& keys) {
  Model model = decoder(keys, true);
  grouped_attention(keys, model, {.kv_heads = 2});
  sliding_window(keys, model);
  as_gpt2(model);
  if (!keys.flag_or("use_bias", true)) model.biases = Biases::kNone;
  return model;
}

}  // namespace moebius
