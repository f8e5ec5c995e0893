#include "models/hf_post_norms.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"
#include "models/hf_layer_types.h"

namespace moebius {
namespace {

constexpr const char* kBehind = "its norms stand behind attention and MLP, where such before them stand in";

// "LLLG" and 4 are the same: every fourth layer sees all tokens. 0: no layer has a window.
int global_every(HfKeys& keys, Model& model) {
  constexpr std::string_view kKey = "sliding_window_pattern";
  if (!keys.has(kKey)) return keys.missing(kKey) ? 4 : 0;
  if (!keys.is_text(kKey)) return keys.size_or(kKey, kMaxLayers, 4, 1);
  const std::string pattern = keys.text_or(kKey, "");
  if (pattern.empty() || pattern != std::string(pattern.size() - 1, 'L') + "G")
    model.unsupported = fmt::format("sliding_window_pattern \"{}\"", pattern);
  return std::max(1, static_cast<int>(pattern.size()));
}

}  // namespace

// Where layers have windows at all, those without turn neither queries nor keys (modeling_exaone4.py).
Model exaone4(HfKeys& keys) {
  Model model = decoder(keys);
  grouped_attention(keys, model, {.kv_heads = 32});
  model.qk_norm = QkNorm::kPerHead;
  model.note = kBehind;
  const bool hybrid = keys.missing("sliding_window") || keys.has("sliding_window");
  const int every = hybrid ? global_every(keys, model) : 0;
  if (every == 0) return model;
  sliding_window(keys, model, 4096);
  if (model.sliding_window > 0) model.full_attention_every = every;
  const std::vector<std::string> kinds = layer_types(keys, model);
  model.no_rotary_every = kinds.empty() ? every : std::max(0, full_attention_period(kinds));
  return model;
}

Model olmo2(HfKeys& keys) {
  Model model = attention_decoder(keys);
  model.qk_norm = QkNorm::kPerLayer;
  model.note = kBehind;
  return model;
}

// Every fourth layer sees all tokens where layer_types does not say otherwise.
Model olmo3(HfKeys& keys) {
  Model model = olmo2(keys);
  sliding_window(keys, model, 4096);
  if (model.sliding_window > 0) model.full_attention_every = 4;
  return model;
}

}  // namespace moebius
