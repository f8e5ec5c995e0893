#include "models/hf_glm.h"

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"

namespace moebius {

// Half of each head turns (modeling_chatglm.py: RotaryEmbedding of rotary_dim // 2). ChatGLM-6B, the first
// one, shares the model_type but none of the keys of sizes.
Model chatglm(HfKeys& keys) {
  Model model;
  model.layers = keys.size({"num_layers", "num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size("hidden_size", kMaxHidden);
  model.heads = keys.size("num_attention_heads", kMaxHeads);
  model.dense_width = keys.size("ffn_hidden_size", kMaxWidth);
  model.vocabulary = keys.size({"padded_vocab_size", "vocab_size"}, kMaxVocabulary);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
  const bool grouped = keys.flag_or("multi_query_attention", false);
  model.kv_heads = grouped ? keys.size_or("multi_query_group_num", kMaxHeads, 1, 1) : model.heads;
  model.attention = model.kv_heads == model.heads ? AttentionKind::kMha : AttentionKind::kGqa;
  model.head_dim = keys.size_or("kv_channels", kMaxHeadDim, 128, 1);
  model.rotary_dim = model.head_dim / 2;
  if (keys.flag_or("add_qkv_bias", false)) model.biases = Biases::kQkv;
  if (keys.flag_or("add_bias_linear", false)) model.biases = Biases::kAll;
  model.layer_norm = !keys.flag_or("rmsnorm", true);
  if (!keys.flag_or("post_layer_norm", true)) model.unsupported = "no norm before the head (post_layer_norm)";
  if (keys.flag_or("apply_residual_connection_post_layernorm", false))
    model.unsupported = "residuals that begin behind norms (apply_residual_connection_post_layernorm)";
  return model;
}

Model glm(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model, {.kv_heads = 2, .head_dim = 128});
  if (keys.flag_or("attention_bias", true)) model.biases = Biases::kQkv;
  rotary_part(keys, model, 0.5);
  return model;
}

Model glm4(HfKeys& keys) {
  Model model = glm(keys);
  model.note = "two further norms a layer are left out";
  return model;
}

}  // namespace moebius
