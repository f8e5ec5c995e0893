// "layer_types" of Hugging Face configurations: the attention of every layer, spelled out.
#pragma once

#include <string>
#include <vector>

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

// n when the marked layers are n-1, 2n-1, ... (from 0) and no others; 0: none is marked; -1: neither.
int period_of(const std::vector<bool>& marked);

// The same of those that attend to all tokens. Some families write "attention" for "full_attention".
int full_attention_period(const std::vector<std::string>& kinds);

// The names as the file has them; an error at their place where they are not one for each layer. Empty: the
// file leaves them out.
std::vector<std::string> layer_types(HfKeys& keys, const Model& model);

// Newer configurations spell out the attention of every layer; that has the last word over the family's rule.
void apply_layer_types(HfKeys& keys, Model& model);

}  // namespace moebius
