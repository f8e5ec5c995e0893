#include <algorithm>
#include <cstdint>
#include <vector>

#include "real/host/host_kernels_batch.h"
#include "tests/catch.h"
#include "tests/unit/real/finite_difference.h"

namespace moebius {
namespace {

// Two sequences in pages of four rows: the last three of nine tokens, and one of two.
Batch two_sequences() {
  Batch batch;
  batch.page_tokens = 4;
  batch.sequences = {{0, 1, 6, 3, {2, 0, 3}}, {1, 1, 1, 1, {1}}};
  return batch;
}

}  // namespace

TEST_CASE("an index score is the weighted sum of what the heads' products have above zero") {
  constexpr std::int64_t kHeads = 2, kDim = 3, kColumns = 5, kLongest = 9;
  const Batch batch = two_sequences();
  const std::vector<double> q = some_numbers(4 * kHeads * kDim, 1), weights = some_numbers(4 * kHeads, 2),
                            cache = some_numbers(16 * kColumns, 3);
  std::vector<double> scores(4 * kLongest, -100);
  index_scores<double>({kHeads, kDim, kColumns, kLongest}, batch, q, cache, weights, scores);
  // Row 1 stands at position 7 of the first sequence; its key 5 is in the second page, row 1.
  const double* key = &cache[(0 * 4 + 1) * kColumns + 2];
  double expected = 0;
  for (int head = 0; head < kHeads; ++head) {
    double product = 0;
    for (int d = 0; d < kDim; ++d) product += q[(kHeads + head) * kDim + d] * key[d];
    expected += weights[kHeads + head] * std::max(product, 0.0);
  }
  CHECK(scores[kLongest + 5] == Approx(expected));
  CHECK(scores[kLongest + 7] != -100);
  CHECK(scores[kLongest + 8] == -100);  // a later token's
}

TEST_CASE("the keys of a query are those of its largest scores, in order, the first of equals") {
  const Batch batch = two_sequences();
  const std::vector<double> scores{5, 1, 7, 7, 2, 7, 3, 99, 99,  // position 6: two keys of 7 of three
                                   0, 0, 0, 0, 0, 0, 0, 0,  99,  // all alike
                                   1, 2, 3, 4, 5, 6, 7, 8,  9,   // the last ones
                                   4, 3, 9, 9, 9, 9, 9, 9,  9};  // sees two
  std::vector<double> chosen(4 * 2);
  top_keys<double>(2, batch, 9, scores, chosen);
  CHECK(chosen == std::vector<double>{2, 3, 0, 1, 7, 8, 0, 1});
  chosen.resize(4 * 3);
  top_keys<double>(3, batch, 9, scores, chosen);
  CHECK(chosen == std::vector<double>{2, 3, 5, 0, 1, 2, 6, 7, 8, 0, 1, -1});
}

}  // namespace moebius
