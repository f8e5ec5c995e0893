#include "real/host/host_kernels_tokens.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/real/finite_difference.h"

namespace moebius {
namespace {

using Numbers = std::vector<double>;

constexpr std::int64_t kRows = 3, kVocabulary = 8;
const Numbers kLabels = {5, 0, 3};

// Columns [first, first+size) of whole logits.
Numbers columns(const Numbers& logits, const VocabularyShard& shard) {
  Numbers part;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t c = 0; c < shard.size; ++c) part.push_back(logits[row * kVocabulary + shard.first + c]);
  }
  return part;
}

double naive_loss(const Numbers& logits) {
  double loss = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (std::int64_t c = 0; c < kVocabulary; ++c) sum += std::exp(logits[row * kVocabulary + c]);
    loss += std::log(sum) - logits[row * kVocabulary + static_cast<int>(kLabels[row])];
  }
  return loss;
}

// Statistics of all shards, one after the other.
Numbers gathered_stats(const Numbers& logits, const std::vector<VocabularyShard>& shards) {
  Numbers all;
  for (const VocabularyShard& shard : shards) {
    Numbers stats(kRows * 3);
    cross_entropy_stats<double>(shard, columns(logits, shard), kLabels, stats);
    all.insert(all.end(), stats.begin(), stats.end());
  }
  return all;
}

}  // namespace

TEST_CASE("cross-entropy of shards is that of the whole vocabulary") {
  const Numbers logits = some_numbers(kRows * kVocabulary, 1);
  for (const auto& shards :
       {std::vector<VocabularyShard>{{0, 8}}, {{0, 4}, {4, 4}}, {{0, 2}, {2, 2}, {4, 2}, {6, 2}}}) {
    const Numbers stats = gathered_stats(logits, shards);
    for (const VocabularyShard& shard : shards) {
      const Numbers part = columns(logits, shard);
      Numbers dlogits(part.size());
      CHECK(cross_entropy<double>(shard, {part, kLabels, stats, 0.5}, dlogits) ==
            Approx(0.5 * naive_loss(logits)));
    }
  }
}

TEST_CASE("the gradient of sharded cross-entropy agrees with finite differences") {
  const Numbers logits = some_numbers(kRows * kVocabulary, 1);
  const std::vector<VocabularyShard> shards = {{0, 4}, {4, 4}};
  const Numbers stats = gathered_stats(logits, shards);
  Numbers gradient(logits.size());
  for (const VocabularyShard& shard : shards) {
    const Numbers part = columns(logits, shard);
    Numbers dlogits(part.size());
    cross_entropy<double>(shard, {part, kLabels, stats, 0.5}, dlogits);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t c = 0; c < shard.size; ++c) {
        gradient[row * kVocabulary + shard.first + c] = dlogits[row * shard.size + c];
      }
    }
  }
  require_gradient([](const Numbers& at) { return 0.5 * naive_loss(at); }, logits, gradient);
}

TEST_CASE("logits of thousands give a finite loss") {
  const Numbers logits = {5000, -5000}, labels = {1};
  Numbers stats(3), dlogits(2);
  cross_entropy_stats<double>({0, 2}, logits, labels, stats);
  CHECK(cross_entropy<double>({0, 2}, {logits, labels, stats, 1}, dlogits) == Approx(10000));
}

TEST_CASE("embedding copies rows of the shard and gives zeros for tokens outside it") {
  const Numbers table = {1, 2, 3, 4}, tokens = {3, 0, 2};  // ids 2 and 3, two columns
  Numbers x(6, 9.0);
  embed<double>({2, 2}, tokens, table, x);
  CHECK(x == Numbers{3, 4, 0, 0, 1, 2});
}

TEST_CASE("the embedding gradient adds the rows of equal tokens") {
  const Numbers tokens = {3, 3, 0}, dx = {1, 2, 10, 20, 100, 200};
  Numbers dtable = {5, 5, 5, 5};
  embed_grad<double>({2, 2}, tokens, dx, dtable);
  CHECK(dtable == Numbers{5, 5, 16, 27});
}

}  // namespace moebius
