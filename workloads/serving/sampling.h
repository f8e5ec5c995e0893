// Where the next token is chosen from the logits, of which each tensor-parallel rank has a part.
#pragma once

#include <cstdint>

namespace moebius {

enum class Sampling : std::uint8_t {
  kShards,    // each rank from its part, and of those the best: a few bytes travel
  kGathered,  // each rank from all parts, which are gathered first (vLLM, SGLang, TensorRT-LLM)
  kHost,      // the host, before the next iteration; simulated only
};

}  // namespace moebius
