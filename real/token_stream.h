// Synthetic text that a model can learn: a first-order Markov chain over the vocabulary, fixed by the seed,
// with a few likely successors for each token and some noise. The same key gives the same tokens, in any
// order.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius {

struct SequenceKey {
  std::uint64_t seed = 1;
  int step = 0;
  std::int64_t sequence = 0;  // in the global batch of the step
};

// `length` tokens from the start of the sequence, each below `vocabulary`.
std::vector<std::int32_t> token_sequence(const SequenceKey& key, std::int64_t length,
                                         std::int64_t vocabulary);

// Cross-entropy per token, in nats, of the best predictor that knows the chain: the floor of the loss (in the
// limit of a vocabulary much larger than the number of successors).
double token_entropy(std::int64_t vocabulary);

}  // namespace moebius
