// What the prompts of a run that computes numbers have in common: requests are numbered in the order of their
// arrival, and some begin alike. Which tokens those are is a matter of whoever computes; that they are the
// same is said here: every position of a sequence has a name, and equal names at equal positions are equal
// tokens, that choose equal experts.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/serving/traffic/traffic_request.h"

namespace moebius {

// Consecutive positions of a sequence under one name.
struct NamedPiece {
  std::int32_t name = 0, first = 0, count = 0;
};

class PromptBook {
 public:
  PromptBook() = default;  // nothing is known to be shared
  explicit PromptBook(const std::vector<TrafficRequest>& requests);

  // Names of the positions first .. first + count - 1 of a request: its own number, or that of a whole block
  // of its prompt. Padding (below 0) has its own.
  std::vector<NamedPiece> pieces(std::int32_t request, std::int32_t first, std::int32_t count) const;
  // Names at least so large belong to blocks.
  static constexpr std::int32_t kBlocks = 1 << 30;

 private:
  std::int32_t block_tokens_ = 0;
  std::vector<std::vector<std::int32_t>> blocks_;  // by request, names of whole blocks
};

}  // namespace moebius
