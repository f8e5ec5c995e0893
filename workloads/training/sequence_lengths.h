// How long the sequences are that are packed into rows of the training batch (supervised fine-tuning).
#pragma once

#include <cstdint>

namespace moebius {

enum class LengthLaw : std::uint8_t { kUniform, kLognormal };

// Whole tokens, at least one, at most the workload's sequence length.
struct SequenceLengths {
  LengthLaw law = LengthLaw::kUniform;
  double least = 1, most = 1;    // kUniform: both included
  double median = 1, sigma = 0;  // kLognormal: of the logarithm
  double prompt_share = 0;       // of each sequence, from its start: read, but no loss is taken on it

  bool operator==(const SequenceLengths&) const = default;
};

}  // namespace moebius
