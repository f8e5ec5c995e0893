#include "models/hf_ernie.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"

namespace moebius {
namespace {

Model ernie(HfKeys& keys, const HeadDefaults& family) {
  Model model = decoder(keys, true);
  grouped_attention(keys, model, family);
  if (keys.flag_or("use_bias", false)) model.biases = Biases::kAll;
  return model;
}

// Layers above `end` have no experts; -1: there are none above it.
void dense_above(Model& model, int end) {
  for (int layer = end + 1; end >= 0 && layer < model.layers; ++layer) {
    if (!model.is_moe_layer(layer)) continue;
    model.unsupported = fmt::format(
        "dense layers above those with experts (moe_layer_end_index {} of {} layers)", end, model.layers);
    return;
  }
}

}  // namespace

Model ernie4_5(HfKeys& keys) {
  return ernie(keys, {.kv_heads = 2, .head_dim = 128});
}

Model ernie4_5_moe(HfKeys& keys) {
  Model model = ernie(keys, {.kv_heads = 4});
  model.mtp_layers = keys.size_or("num_nextn_predict_layers", 100, 0);
  model.experts.routed =
      keys.uniform_or("moe_num_experts", kMaxExperts, keys.missing("moe_num_experts") ? 64 : 0);
  if (model.experts.routed == 0) return model;
  model.experts.active = keys.size("moe_k", kMaxExperts);
  model.experts.width = keys.uniform_or("moe_intermediate_size", kMaxWidth, 0);
  shared_experts(model, keys.size_or("moe_num_shared_experts", kMaxShared,
                                     keys.missing("moe_num_shared_experts") ? 2 : 0));
  // Layer i has experts when start <= i <= end and i + 1 is a multiple of the interval.
  model.moe_step = std::max(1, keys.size_or("moe_layer_interval", kMaxLayers, 1));
  const int start =
      keys.size_or("moe_layer_start_index", kMaxLayers, keys.missing("moe_layer_start_index") ? 1 : 0);
  model.first_dense = (start + model.moe_step) / model.moe_step * model.moe_step - 1;
  dense_above(model, keys.size_or("moe_layer_end_index", kMaxLayers, -1, -1));
  return model;
}

}  // namespace moebius
