// Hugging Face checkpoints of small models, filled at random: what the tests cut, put together and execute.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/weights/safetensors_writer.h"
#include "models/weights/weight_names.h"
#include "workloads/routing/routing.h"

namespace moebius::test {

// Three layers, the first dense; eight experts of which two are active, and a shared one; one module for
// multi-token prediction.
inline Model latent_model() {
  Model model;
  model.id = "small";
  model.layers = 3;
  model.hidden = 32;
  model.heads = model.kv_heads = 4;
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = 12, .kv_rank = 16, .nope_dim = 8, .rope_dim = 4, .v_dim = 6};
  model.dense_width = 48;
  model.experts = {
      .routed = 8, .active = 2, .shared = 1, .width = 16, .shared_width = 16, .score = GateScore::kSigmoid};
  model.first_dense = 1;
  model.vocabulary = 64;
  model.mtp_layers = 1;
  return model;
}

inline Model grouped_model() {
  Model model;
  model.id = "small";
  model.layers = 2;
  model.hidden = 32;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_dim = 8;
  model.attention = AttentionKind::kGqa;
  model.dense_width = 48;
  model.vocabulary = 64;
  return model;
}

// Attention and MLP side by side.
inline Model parallel_model(ParallelBlock block) {
  Model model = grouped_model();
  model.parallel_block = block;
  return model;
}

// Two layers of four experts, of which every token uses all, and a shared one with a gate.
inline Model gated_model() {
  Model model = grouped_model();
  model.dense_width = 0;
  model.experts = {
      .routed = 4, .active = 4, .shared = 1, .width = 16, .shared_width = 24, .shared_gate = true};
  return model;
}

// Queries, keys and values with a bias each, as Qwen2 and Qwen2-MoE have them.
inline Model biased(Model model) {
  model.biases = Biases::kQkv;
  return model;
}

using Bytes = std::vector<std::byte>;
using Tensors = std::map<std::string, std::pair<StoredTensor, Bytes>>;

// Numbers around zero as large as keeps sums at one; norms around one.
inline float random_weight(const Weight& weight, std::uint64_t seed, std::int64_t element) {
  const double unit = random_unit(random_bits(seed, std::hash<std::string>{}(weight.name), element));
  if (weight.shape.size() < 2) return static_cast<float>(0.5 + unit);
  return static_cast<float>((2 * unit - 1) * std::sqrt(3.0 / static_cast<double>(weight.shape[1])));
}

inline std::vector<float> random_values(const Weight& weight, std::uint64_t seed) {
  std::int64_t elements = 1;
  for (const std::int64_t size : weight.shape) elements *= size;
  std::vector<float> values(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) values[i] = random_weight(weight, seed, i);
  return values;
}

// All weights in BF16, or, `fp8`, matrices as random 8-bit codes with the factors of their blocks.
inline Tensors random_tensors(const Model& model, WeightNaming naming, std::uint64_t seed, bool fp8 = false) {
  Tensors tensors;
  for (const Weight& weight : weights_of(model, naming)) {
    const std::vector<float> values = random_values(weight, seed);
    StoredTensor tensor{.name = weight.name, .type = StoredType::kBf16, .shape = weight.shape};
    if (!fp8 || weight.shape.size() < 2) {
      tensors[weight.name] = {tensor, from_floats(tensor.type, values)};
      continue;
    }
    tensor.type = StoredType::kFp8E4m3;
    Bytes codes(values.size());
    // 0x00..0x77 and their negatives: every finite code up to 240.
    for (std::size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<std::byte>(random_bits(seed, i) % 0x78 | (values[i] < 0 ? 0x80 : 0));
    tensors[weight.name] = {tensor, codes};
    StoredTensor scale{
        .name = weight.name + kScaleSuffix, .type = StoredType::kF32, .shape = scale_shape(weight.shape)};
    std::vector<float> factors(static_cast<std::size_t>(scale.shape[0] * scale.shape[1]));
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = 0.001f * static_cast<float>(i + 1);
    tensors[scale.name] = {scale, from_floats(scale.type, factors)};
  }
  return tensors;
}

// Those that a run can start from: of maps with biases the output map has none.
inline Tensors executable_tensors(const Model& model, WeightNaming naming, std::uint64_t seed) {
  Tensors tensors = random_tensors(model, naming, seed);
  std::erase_if(tensors, [](const auto& tensor) { return tensor.first.ends_with("o_proj.bias"); });
  return tensors;
}

inline void write_tensors(const std::string& path, const Tensors& tensors) {
  std::vector<StoredTensor> announced;
  std::map<std::string, Bytes> bytes;
  for (const auto& [name, tensor] : tensors) {
    announced.push_back(tensor.first);
    bytes[name] = tensor.second;
  }
  write_safetensors(path, announced, bytes, {{"format", "pt"}});
}

}  // namespace moebius::test
