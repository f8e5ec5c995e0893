#include "models/hf_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"
#include "models/hf_consistency.h"
#include "models/hf_families.h"
#include "models/hf_layer_types.h"

namespace moebius {
namespace {

constexpr std::string_view kOrigin = "Hugging Face configuration ";

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
