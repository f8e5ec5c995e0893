// What layers see of a batch that attend in chunks.
#include "workloads/schedule/local_batch.h"

#include <memory>

#include <catch2/catch.hpp>

namespace moebius {
namespace {

BatchPtr batch_of(std::int32_t page_tokens, std::vector<BatchSequence> sequences) {
  return std::make_shared<const Batch>(Batch{page_tokens, std::move(sequences)});
}

}  // namespace

TEST_CASE("a batch whose sequences are within their first chunk is seen as it is") {
  const BatchPtr batch = batch_of(4, {{.request = 0, .past = 3, .count = 5, .pages = {7, 2}}});
  CHECK(local_batch(batch, 8) == batch);
  CHECK(local_batch(batch, 0) == batch);
}

// Position 21 stands in the third chunk of 8, which began at 16: page 4 of 4 tokens.
TEST_CASE("a token that decodes sees its own chunk alone") {
  const BatchPtr batch =
      batch_of(4, {{.request = 3, .past = 21, .count = 1, .pages = {9, 8, 7, 6, 5, 4, 3}}});
  const BatchPtr local = local_batch(batch, 8);
  REQUIRE(local->sequences.size() == 1);
  const BatchSequence& s = local->sequences[0];
  CHECK(s.request == 3);
  CHECK(s.past == 5);
  CHECK(s.count == 1);
  CHECK(s.pages == std::vector<std::int32_t>{5, 4});
  CHECK(local->slot(s, s.past) == batch->slot(batch->sequences[0], 21));
}

// Positions 6 .. 18 in chunks of 8: 6, 7; 8 .. 15; 16, 17, 18.
TEST_CASE("a part of a prompt becomes as many sequences as it has chunks, in the order of its rows") {
  const BatchPtr batch = batch_of(4, {{.request = 0, .past = 6, .count = 13, .pages = {0, 1, 2, 3, 4}},
                                      {.request = 1, .past = 0, .count = 2, .pages = {5}}});
  const BatchPtr local = local_batch(batch, 8);
  CHECK(find_fault(*local).empty());
  CHECK(local->rows() == batch->rows());
  CHECK(local->slots() == batch->slots());
  std::vector<std::int32_t> pasts, counts;
  for (const BatchSequence& s : local->sequences) pasts.push_back(s.past), counts.push_back(s.count);
  CHECK(pasts == std::vector<std::int32_t>{6, 0, 0, 0});
  CHECK(counts == std::vector<std::int32_t>{2, 8, 3, 2});
}

TEST_CASE("packed sequences, which have no pages, are cut alike") {
  const BatchPtr local = local_batch(batch_of(0, {{0, 9, 0, 9, {}}, {1, 4, 0, 4, {}}}), 4);
  CHECK(find_fault(*local).empty());
  CHECK(local->first_rows() == std::vector<std::int32_t>{0, 4, 8, 9, 13});
}

}  // namespace moebius
