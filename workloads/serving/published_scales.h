// How the 8-bit checkpoints of models are scaled: which kernels multiply them is a matter of that.
#pragma once

#include <string_view>

#include "models/model.h"

namespace moebius {

enum class Fp8Scales : std::uint8_t {
  kBlock,   // one for each 128 x 128 weights, and for each 128 activations of a token
  kTensor,  // one for a tensor, a column of weights or a token: cuBLAS's and CUTLASS's kernels
};

// Of the checkpoint that is published of a model: DeepSeek-V3 and those that followed it (Kimi K2, Qwen3,
// GLM-5, MiniMax M2, Ling) have blocks (weight_block_size of config.json), Llama, Mixtral, Nemotron and
// GLM-4.5 one scale a tensor or a column (ModelOpt's and compressed-tensors'). Of others: dense ones are
// scaled by tools, a tensor at a time; those with experts by blocks.
Fp8Scales published_scales(const Model& model);

}  // namespace moebius
