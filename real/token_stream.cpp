#include "real/token_stream.h"

#include <cmath>

#include "workloads/routing/routing.h"

namespace moebius {
namespace {

// Probabilities of a token's successors; the rest is noise, uniform over the vocabulary.
constexpr double kSuccessors[] = {0.6, 0.2, 0.1};
constexpr double kNoise = 0.1;

// What a random number is for, so that no two uses share a key.
enum Stream : std::uint64_t { kSuccessorStream = 0x73756363, kTokenStream = 0x746f6b65 };

std::int32_t uniform_token(std::uint64_t bits, std::int64_t vocabulary) {
  return static_cast<std::int32_t>(random_unit(bits) * static_cast<double>(vocabulary));
}

std::int32_t successor(std::uint64_t seed, std::int32_t token, int which, std::int64_t vocabulary) {
  return uniform_token(random_bits(seed, kSuccessorStream, token, which), vocabulary);
}

std::int32_t next_token(const SequenceKey& key, std::int32_t token, std::uint64_t bits,
                        std::int64_t vocabulary) {
  double u = random_unit(bits);
  for (int i = 0; i < static_cast<int>(std::size(kSuccessors)); ++i) {
    if (u < kSuccessors[i]) return successor(key.seed, token, i, vocabulary);
    u -= kSuccessors[i];
  }
  return uniform_token(random_bits(bits, kTokenStream), vocabulary);
}

}  // namespace

std::vector<std::int32_t> token_sequence(const SequenceKey& key, std::int64_t length,
                                         std::int64_t vocabulary) {
  const std::uint64_t stream = random_bits(key.seed, kTokenStream, key.step, key.sequence);
  std::vector<std::int32_t> tokens;
  std::int32_t token = uniform_token(stream, vocabulary);
  for (std::int64_t position = 0; position < length; ++position) {
    tokens.push_back(token);
    token = next_token(key, token, random_bits(stream, position), vocabulary);
  }
  return tokens;
}

double token_entropy(std::int64_t vocabulary) {
  const double spread = kNoise / static_cast<double>(vocabulary);
  double entropy = -kNoise * std::log(spread);
  for (const double p : kSuccessors) entropy -= p * std::log(p + spread);
  return entropy;
}

}  // namespace moebius
