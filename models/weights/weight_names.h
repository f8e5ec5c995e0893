// The weights of a model as Hugging Face checkpoints name and shape them: matrices are [out, in], norms and
// biases have one dimension. Names are those of the modelling code in Hugging Face transformers
// (models/llama, mixtral, qwen2_moe, qwen3_moe, deepseek_v3) and, for multi-token prediction, of
// DeepSeek-V3's published checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace moebius {

// How checkpoints of a family spell the experts of a layer.
enum class WeightNaming : std::uint8_t {
  kShared,     // mlp.experts.0.gate_proj, mlp.shared_experts.gate_proj: DeepSeek, Qwen3, GLM, dense models
  kSharedOne,  // the same with mlp.shared_expert.gate_proj: Qwen2-MoE
  kMixtral,    // block_sparse_moe.experts.0.w1: Mixtral, MiniMax
};

// What a weight is to its model.
enum class WeightPart : std::uint8_t {
  kEmbedding,
  kHead,
  kFinalNorm,
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kQueryDown,
  kQueryNorm,
  kQueryUp,
  kLatentDown,
  kLatentNorm,
  kLatentUp,  // multi-head latent attention
  kQueryBias,
  kKeyBias,
  kValueBias,
  kOutputBias,
  kQueryHeadNorm,
  kKeyHeadNorm,  // of each head
  kQueryRowNorm,
  kKeyRowNorm,  // of all heads together
  kRotaryFrequencies,
  kMlpNorm,
  kGate,
  kUp,
  kDown,
  kRouter,
  kRouterBias,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedScore,
  kMtpEmbeddingNorm,
  kMtpHiddenNorm,
  kMtpProjection,
  kMtpEmbedding,
  kMtpHead,
};

// How a tensor-parallel group cuts it: by rows (outputs), by columns (inputs), not at all.
enum class WeightCut : std::uint8_t { kNone, kRows, kColumns };
WeightCut cut_of(WeightPart part);

struct Weight {
  std::string name;
  WeightPart part = WeightPart::kEmbedding;
  int layer = -1;  // MTP modules count on from the last layer
  int expert = -1;
  std::vector<std::int64_t> shape;
  bool optional = false;  // checkpoints of the family may lack it
};

// Every weight of the model. CHECKs that unmapped_reason() is empty.
std::vector<Weight> weights_of(const Model& model, WeightNaming naming);

// Why checkpoints of this architecture cannot be read ("norms with a bias"); empty: they can.
std::string unmapped_reason(const Model& model);

// The name of one weight; `expert` counts for those of experts only.
std::string weight_name(WeightPart part, int layer, int expert, const Model& model, WeightNaming naming);

// The spelling of a new checkpoint: that of the families whose shared experts have a gate, or kShared.
WeightNaming usual_naming(const Model& model);

// The spelling that the names show; kShared when no name tells.
WeightNaming naming_of(const std::vector<std::string>& names);

// DeepSeek-V3's 8-bit weights have a companion "NAME_scale_inv" [ceil(out/128), ceil(in/128)] in FP32: the
// factor of each 128 x 128 block (config.json: "weight_block_size").
inline constexpr std::int64_t kScaleBlock = 128;
inline constexpr const char* kScaleSuffix = "_scale_inv";
std::vector<std::int64_t> scale_shape(const std::vector<std::int64_t>& weight);

}  // namespace moebius
