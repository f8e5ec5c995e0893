// The parts of a Hugging Face configuration that families have in common.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

// Layers, sizes and tables, which nearly all decoders call the same. `tied` is what the family's own
// configuration class says when the file does not.
Model decoder(HfKeys& keys, bool tied = false);

// What the family's own configuration class says of heads when the file leaves the key out.
struct HeadDefaults {
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: hidden_size over heads
};

// MHA or GQA. A key that is null means what 0 does in `family`, whatever the family.
void grouped_attention(HfKeys& keys, Model& model, const HeadDefaults& family = {});

// decoder() with grouped_attention() and "attention_bias".
Model attention_decoder(HfKeys& keys, const HeadDefaults& family = {});

// A window no shorter than the longest sequence is none. `family`: the window when the file leaves it out.
void sliding_window(HfKeys& keys, Model& model, int family = 0);

// Qwen: windows where use_sliding_window says so, in the layers from max_window_layers on unless layer_types
// names them.
void upper_windows(HfKeys& keys, Model& model);

// "use_qk_norm": of each head; or of all heads together, which "qk_norm_type" says too, a word that a Model
// has no way for makes it unsupported.
QkNorm head_norm(HfKeys& keys);
void all_heads_norm(HfKeys& keys, Model& model);

// What `key` says; scores that a Model cannot say make it unsupported. dots.llm1 writes "noaux_tc" for the
// sigmoid, after DeepSeek-V3's routing without an auxiliary loss.
void gate_score(HfKeys& keys, Model& model, std::string_view key, GateScore otherwise);

// Of each head so much turns, which newer configurations say among rope_parameters.
void rotary_part(HfKeys& keys, Model& model, double family);

// Shared experts of the routed width, as the DeepSeek line counts them.
void shared_experts(Model& model, int shared);

// All layers have experts, whose width stands where others have that of dense layers.
void width_of_experts(HfKeys& keys, Model& model);
void local_experts(HfKeys& keys, Model& model);  // Mixtral's keys, width_of_experts() among them

// What the family's own configuration class says when the file leaves the key out.
struct ExpertDefaults {
  GateScore score = GateScore::kSigmoid;
  int first_dense = 0;
  int shared = 1;
  int groups = 1, active_groups = 1;
  double scale = 1;
};

// Keys of DeepSeek and of those who follow it: leading dense layers, groups of experts, MTP modules. No
// experts where n_routed_experts is null.
void deepseek_experts(HfKeys& keys, Model& model, const ExpertDefaults& family);

}  // namespace moebius
