// Halves of an iteration that compute in turn.
#include <catch2/catch.hpp>

#include "workloads/serving/two_batches.h"

namespace moebius {
namespace {

BatchPtr batch_of_counts(const std::vector<std::int32_t>& counts) {
  Batch batch{64, {}};
  std::int32_t page = 0;
  for (const std::int32_t count : counts) batch.sequences.push_back({page, 1000, 10, count, {page++}});
  return std::make_shared<const Batch>(std::move(batch));
}

std::vector<std::int32_t> counts_of(const Batch& batch) {
  std::vector<std::int32_t> counts;
  for (const BatchSequence& s : batch.sequences) counts.push_back(s.count);
  return counts;
}

}  // namespace

TEST_CASE("a batch is cut between sequences where the halves come out nearly alike") {
  const auto halves = halves_of({batch_of_counts({20, 30, 50})});  // 50 and 50
  REQUIRE(halves);
  CHECK(counts_of(*halves->first[0]) == std::vector<std::int32_t>{20, 30});
  CHECK(counts_of(*halves->second[0]) == std::vector<std::int32_t>{50});
}

// The ends nearest to the middle leave 40 of 100, less than 48%: 50 and 50 through the second sequence, whose
// second part stands behind 10 + 10 tokens.
TEST_CASE("otherwise a sequence is cut and its second part stands behind its first") {
  const auto halves = halves_of({batch_of_counts({40, 60})});
  REQUIRE(halves);
  CHECK(counts_of(*halves->first[0]) == std::vector<std::int32_t>{40, 10});
  CHECK(counts_of(*halves->second[0]) == std::vector<std::int32_t>{50});
  CHECK(halves->second[0]->sequences[0].past == 20);
}

TEST_CASE("replicas with the same batch share its halves and one row alone has none") {
  const BatchPtr two = batch_of_counts({1, 1});
  const auto halves = halves_of({two, two, two});
  REQUIRE(halves);
  CHECK(halves->first.size() == 3);
  CHECK(halves->first[0] == halves->first[2]);
  CHECK_FALSE(halves_of({two, batch_of_counts({1})}));
}

}  // namespace moebius
