#include "models/hf_grok.h"

#include "models/architecture_reader.h"
#include "models/hf_decoder.h"

namespace moebius {
namespace {

constexpr const char* kLeftOut = "two further norms a layer, caps of scores and multipliers are left out";

// Configuration classes for it differ in the number of key-value heads.
Model grok(HfKeys& keys, bool tied) {
  Model model = decoder(keys, tied);
  grouped_attention(keys, model, {.kv_heads = keys.size("num_key_value_heads", kMaxHeads)});
  model.note = kLeftOut;
  return model;
}

}  // namespace

Model grok1(HfKeys& keys) {
  Model model = grok(keys, true);
  model.experts.routed = keys.size("num_experts", kMaxExperts);
  model.experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  width_of_experts(keys, model);
  return model;
}

Model grok2(HfKeys& keys) {
  Model model = grok(keys, false);
  Experts& experts = model.experts;
  experts.routed = keys.size("num_local_experts", kMaxExperts);
  experts.active = keys.size("num_experts_per_tok", kMaxExperts);
  experts.width = keys.size("moe_intermediate_size", kMaxWidth);
  if (keys.flag_or("residual_moe", false)) {
    experts.shared = 1;
    experts.shared_width = keys.size("intermediate_size", kMaxWidth);
  }
  model.dense_width = 0;
  if (keys.size_or("sliding_window_size", kMaxLength, -1, -1) > 0)
    model.unsupported = "windows of some layers (sliding_window_size)";
  return model;
}

}  // namespace moebius
