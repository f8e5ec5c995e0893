#include "models/hf_dense.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"
#include "models/hf_layer_types.h"

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
  return model;
}

Model later_gemma(HfKeys& keys, const HeadDefaults& family, int vocabulary) {
  Model model = gemma(keys, family, vocabulary);
  sliding_window(keys, model, 4096);
  model.note = "two further norms a layer and caps of scores are left out";
  return model;
}

// Of a list of 1 for layers that turn queries and keys and of 0 for those that do not, or of the interval.
int no_rotary_every(HfKeys& keys, Model& model) {
  const std::vector<int> turns = keys.sizes("no_rope_layers", 1);
  if (turns.empty()) return keys.size_or("no_rope_layer_interval", kMaxLayers, 4, 1);
  if (static_cast<int>(turns.size()) < model.layers)
    keys.place_of("no_rope_layers")
        .fail(fmt::format("expected a number for each of {} layers, found {}", model.layers, turns.size()));
  std::vector<bool> still(model.layers);
  std::transform(turns.begin(), turns.begin() + model.layers, still.begin(),
                 [](int turn) { return turn == 0; });
  const int period = period_of(still);
  if (period < 0)
    model.unsupported = "layers that do not turn otherwise than every n-th, counted from the first";
  return std::max(0, period);
}

}  // namespace

Model apertus(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.gated = false;
  model.qk_norm = QkNorm::kPerHead;
  model.note = "two numbers a layer of its activation (xIELU) are left out";
  return model;
}

// Of one model_type: the one as wide as Llama has rotary positions, the other slopes on scores, which neither
// file says (vLLM tells them apart by hidden_size, too).
Model baichuan(HfKeys& keys) {
  constexpr int kWithRotary = 4096;
  Model model = attention_decoder(keys);
  if (model.hidden != kWithRotary) model.note = "slopes on scores (ALiBi), where rotary positions stand in";
  return model;
}

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

Model gemma1(HfKeys& keys) {
  Model model = gemma(keys, {.kv_heads = 16, .head_dim = 256}, 256000);
  if (keys.flag_or("attention_bias", false)) model.biases = Biases::kQkv;
  model.note = "the scale of its embedding is left out";
  return model;
}

// Every other layer looks back to the first token.
Model gemma2(HfKeys& keys) {
  Model model = later_gemma(keys, {.kv_heads = 4, .head_dim = 256}, 256000);
  model.full_attention_every = 2;
  return model;
}

Model gemma3(HfKeys& keys) {
  Model model = later_gemma(keys, {.kv_heads = 4, .head_dim = 256}, 262208);
  model.qk_norm = QkNorm::kPerHead;
  model.full_attention_every = keys.size_or("sliding_window_pattern", kMaxLayers,
                                            keys.size_or("_sliding_window_pattern", kMaxLayers, 6), 1);
  return model;
}

// "bias" is that of attention's maps alone.
Model internlm2(HfKeys& keys) {
  Model model = attention_decoder(keys);
  if (keys.flag_or("bias", true)) model.biases = Biases::kQkv;
  return model;
}

// "bias" is that of the output map and of MLPs.
Model internlm3(HfKeys& keys) {
  Model model = attention_decoder(keys);
  if (keys.flag_or("qkv_bias", false)) model.biases = Biases::kQkv;
  if (!keys.flag_or("bias", false)) return model;
  if (model.biases == Biases::kNone) model.unsupported = "biases of MLPs without those of attention";
  model.biases = Biases::kAll;
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

// Every fourth layer turns neither queries nor keys; where layers have windows, only those do.
Model smollm3(HfKeys& keys) {
  Model model = decoder(keys, true);
  grouped_attention(keys, model, {.kv_heads = 4});
  if (keys.flag_or("attention_bias", false)) model.biases = Biases::kQkv;
  if (keys.flag_or("mlp_bias", false)) {
    if (model.biases == Biases::kNone) model.unsupported = "biases of MLPs without those of attention";
    model.biases = Biases::kAll;
  }
  model.no_rotary_every = no_rotary_every(keys, model);
  if (keys.flag_or("use_sliding_window", false) && keys.has("sliding_window"))
    model.unsupported = "sliding windows in the layers alone that do not turn";
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
