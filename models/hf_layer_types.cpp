#include "models/hf_layer_types.h"

#include <fmt/format.h>

#include <algorithm>

namespace moebius {
namespace {

bool is_full(const std::string& kind) {
  return kind == "full_attention" || kind == "attention";
}

bool names_kind(const std::vector<std::string>& kinds, std::string_view kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// A window as long as the longest sequence was read too, but bounds nothing.
std::string unread_window(const HfKeys& keys, const Model& model, const std::vector<std::string>& kinds) {
  if (names_kind(kinds, "chunked_attention") && model.attention_chunk == 0)
    return "layer_types names \"chunked_attention\", of which no attention_chunk_size was read";
  const bool window = model.sliding_window > 0 || keys.read_at("sliding_window") != nullptr;
  if (names_kind(kinds, "sliding_attention") && !window)
    return "layer_types names \"sliding_attention\", of which no sliding_window was read";
  return "";
}

}  // namespace

int period_of(const std::vector<bool>& marked) {
  const auto first = std::find(marked.begin(), marked.end(), true);
  if (first == marked.end()) return 0;
  const int period = static_cast<int>(first - marked.begin()) + 1;
  for (int layer = 0; layer < static_cast<int>(marked.size()); ++layer) {
    if (marked[layer] != ((layer + 1) % period == 0)) return -1;
  }
  return period;
}

int full_attention_period(const std::vector<std::string>& kinds) {
  std::vector<bool> full(kinds.size());
  std::transform(kinds.begin(), kinds.end(), full.begin(), is_full);
  return period_of(full);
}

std::vector<std::string> layer_types(HfKeys& keys, const Model& model) {
  std::vector<std::string> kinds = keys.texts("layer_types");
  if (!kinds.empty() && static_cast<int>(kinds.size()) != model.layers)
    keys.place_of("layer_types")
        .fail(fmt::format("expected a kind for each of {} layers, found {}", model.layers, kinds.size()));
  return kinds;
}

void apply_layer_types(HfKeys& keys, Model& model) {
  if (!model.unsupported.empty()) return;
  const std::vector<std::string> kinds = layer_types(keys, model);
  if (kinds.empty()) return;
  for (const std::string& kind : kinds) {
    if (is_full(kind) || kind == "sliding_attention" || kind == "chunked_attention") continue;
    if (kind == "linear_attention" && model.delta.given()) continue;
    model.unsupported = fmt::format("layer_types names \"{}\"", kind);
    return;
  }
  model.unsupported = unread_window(keys, model, kinds);
  if (!model.unsupported.empty()) return;
  const int period = full_attention_period(kinds);
  if (period < 0) {
    model.unsupported =
        "layer_types has full_attention elsewhere than in every n-th layer, counted from the first";
    return;
  }
  model.full_attention_every = period;
  if (period == 1) model.sliding_window = model.attention_chunk = 0;
  if (model.sliding_window == 0 && model.attention_chunk == 0 && !model.delta.given())
    model.full_attention_every = 0;
}

}  // namespace moebius
