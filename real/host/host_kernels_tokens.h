// Where tokens enter and leave a model, on the CPU: embedding, cross-entropy over a sharded vocabulary. Ids
// are kept as whole numbers in Real, exact below 2^24.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace moebius {

// The part of the vocabulary that this rank holds: ids [first, first + size).
struct VocabularyShard {
  std::int64_t first = 0, size = 0;
};

// table[size, width] -> x[tokens, width]; a token outside the shard gives zeros.
template <class Real>
void embed(const VocabularyShard& shard, std::span<const Real> tokens, std::span<const Real> table,
           std::span<Real> x);

// dtable += dx of the tokens inside the shard.
template <class Real>
void embed_grad(const VocabularyShard& shard, std::span<const Real> tokens, std::span<const Real> dx,
                std::span<Real> dtable);

// Per row of logits[rows, size]: maximum, sum of exp(x - maximum), the label's logit (0 when it is outside
// the shard).
template <class Real>
void cross_entropy_stats(const VocabularyShard& shard, std::span<const Real> logits,
                         std::span<const Real> labels, std::span<Real> stats);

template <class Real>
struct CrossEntropyInputs {
  std::span<const Real> logits, labels;
  std::span<const Real> stats;  // [shards * rows, 3], shard after shard
  double scale = 1;
  std::vector<bool> counted = {};  // rows; empty: all
};

// Returns the sum over rows that count of log(sum of exp) - label's logit over the whole vocabulary, times
// scale; dlogits is overwritten with its gradient in this shard's logits, zero where a row does not count.
template <class Real>
double cross_entropy(const VocabularyShard& shard, const CrossEntropyInputs<Real>& inputs,
                     std::span<Real> dlogits);

}  // namespace moebius
