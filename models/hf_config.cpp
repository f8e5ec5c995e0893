#include "models/hf_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"
#include "models/hf_consistency.h"
#include "models/hf_families.h"

namespace moebius {
namespace {

constexpr std::string_view kOrigin = "Hugging Face configuration ";

// The distance between full-attention layers when `kinds` repeats "others, full" throughout; 0: no full
// layer; -1: neither.
int full_attention_period(const std::vector<std::string>& kinds) {
  const auto first = std::find(kinds.begin(), kinds.end(), "full_attention");
  if (first == kinds.end()) return 0;
  const int period = static_cast<int>(first - kinds.begin()) + 1;
  for (int layer = 0; layer < static_cast<int>(kinds.size()); ++layer) {
    if ((kinds[layer] == "full_attention") != ((layer + 1) % period == 0)) return -1;
  }
  return period;
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

// Newer configurations spell out the attention of every layer; that has the last word over the family's rule.
void apply_layer_types(HfKeys& keys, Model& model) {
  const std::vector<std::string> kinds = keys.texts("layer_types");
  if (kinds.empty() || !model.unsupported.empty()) return;
  if (static_cast<int>(kinds.size()) != model.layers)
    keys.place_of("layer_types")
        .fail(fmt::format("expected a kind for each of {} layers, found {}", model.layers, kinds.size()));
  for (const std::string& kind : kinds) {
    if (kind == "full_attention" || kind == "sliding_attention" || kind == "chunked_attention") continue;
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

const HfFamily* find_family(std::string_view model_type) {
  const auto families = hf_families();
  const auto found = std::find_if(families.begin(), families.end(),
                                  [&](const HfFamily& family) { return family.model_type == model_type; });
  return found == families.end() ? nullptr : &*found;
}

[[noreturn]] void unknown_type(const Place& place, const std::string& model_type) {
  std::vector<std::string> known;
  for (const HfFamily& family : hf_families()) known.emplace_back(family.model_type);
  place.fail(fmt::format("unknown model_type \"{}\"{}; known are {}", model_type,
                         suggestion(model_type, known), fmt::join(known, ", ")));
}

// NVIDIA's ModelOpt: a scale for a tensor, for a column of weights and a token, or for blocks of weights.
std::optional<Fp8Scales> modelopt_scales(const std::string& algorithm) {
  if (algorithm == "FP8" || algorithm == "FP8_PER_CHANNEL_PER_TOKEN") return Fp8Scales::kTensor;
  if (algorithm == "FP8_PB_WO") return Fp8Scales::kBlock;
  return {};
}

// The first group counts.
std::optional<Fp8Scales> compressed_scales(HfKeys groups) {
  if (!groups.has("group_0")) return {};
  HfKeys group = groups.object("group_0");
  if (!group.has("weights")) return {};
  HfKeys weights = group.object("weights");
  if (weights.text_or("type", "") != "float" || weights.size_or("num_bits", 64, 0) != 8) return {};
  const std::string strategy = weights.text_or("strategy", "");
  if (strategy == "group") return {};  // of some elements of a row, as MXFP8 has them
  return strategy == "block" ? Fp8Scales::kBlock : Fp8Scales::kTensor;
}

// The scales of a checkpoint of 8 bits, as four tools write them: DeepSeek's blocks or one for each tensor
// ("fp8"), a column and a token (FBGEMM: Llama 3.1 405B), compressed-tensors, and ModelOpt, whose older
// files have an object for it. Which modules stay in 16 bits is the plan's matter, not the model's.
std::optional<Fp8Scales> checkpoint_scales(HfKeys& keys) {
  if (!keys.has("quantization_config")) return {};
  HfKeys config = keys.object("quantization_config");
  const std::string method = config.text_or("quant_method", "");
  if (method == "fp8") return config.has("weight_block_size") ? Fp8Scales::kBlock : Fp8Scales::kTensor;
  if (method == "fbgemm_fp8") return Fp8Scales::kTensor;
  if (method == "modelopt") {
    const std::string algorithm = config.text_or("quant_algo", "");
    if (!algorithm.empty() || !config.has("quantization")) return modelopt_scales(algorithm);
    return modelopt_scales(config.object("quantization").text_or("quant_algo", ""));
  }
  if (method != "compressed-tensors" || !config.has("config_groups")) return {};
  return compressed_scales(config.object("config_groups"));
}

Model read(HfKeys keys) {
  const std::string model_type = keys.text("model_type");
  const HfFamily* family = find_family(model_type);
  // Multimodal models keep the language model under "text_config"; towers for images and sound are not read.
  if (keys.has("text_config") && (family == nullptr || !keys.has("num_hidden_layers"))) {
    Model model = read(keys.object("text_config"));
    if (const auto scales = checkpoint_scales(keys)) model.fp8_scales = scales;
    return model;
  }
  if (family == nullptr) unknown_type(keys.place_of("model_type"), model_type);
  Model model = family->read(keys);
  apply_layer_types(keys, model);
  model.fp8_scales = checkpoint_scales(keys);
  if (!model.fp8_scales) model.fp8_scales = family->scales;
  require_consistent(model, keys);
  return model;
}

}  // namespace

Model model_from_hf_config(const Document& config) {
  Model model = read(HfKeys(config.root, {.file = config.file, .pointer = "", .line = config.root.line}));
  model.id = config.file;
  model.source = std::string(kOrigin) + config.file;
  model.status = "as given";
  return model;
}

bool is_imported(const Model& model) {
  return model.source.starts_with(kOrigin);
}

}  // namespace moebius
