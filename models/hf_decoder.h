// The parts of a Hugging Face configuration that families have in common.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

// Layers, sizes and tables, which nearly all decoders call the same. `tied` is what the family's own
// configuration class says when the file does not.
Model decoder(HfKeys& keys, bool tied = false);

// MHA or GQA; head_dim from its key, or hidden_size over heads.
void grouped_attention(HfKeys& keys, Model& model);

// decoder() with grouped_attention() and "attention_bias".
Model attention_decoder(HfKeys& keys, bool tied = false);

// A window no shorter than the longest sequence is none.
void sliding_window(HfKeys& keys, Model& model, bool in_use);

// "scoring_func"; one that a Model cannot say makes it unsupported.
void gate_score(HfKeys& keys, Model& model, GateScore otherwise);

// Shared experts of the routed width, as the DeepSeek line counts them.
void shared_experts(Model& model, int shared);

// Keys of DeepSeek and of those who follow it: leading dense layers, groups of experts, MTP modules.
void deepseek_experts(HfKeys& keys, Model& model, GateScore gate);

}  // namespace moebius
