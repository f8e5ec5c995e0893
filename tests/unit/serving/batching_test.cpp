// Which requests share an iteration, and on which pages they stand.
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "workloads/serving/batching.h"

namespace moebius {
namespace {

ServingPlan plan_of(int max_batch, std::int64_t token_budget, int block_tokens) {
  ServingPlan plan;
  plan.max_batch = max_batch;
  plan.token_budget = token_budget;
  plan.block_tokens = block_tokens;
  return plan;
}

std::deque<ServedRequest> requests(std::vector<std::pair<int, int>> lengths) {
  std::deque<ServedRequest> all;
  for (const auto& [prompt, output] : lengths)
    all.push_back({.id = static_cast<std::int32_t>(all.size()), .prompt = prompt, .output = output});
  return all;
}

std::vector<std::int32_t> ids(const Batch& batch) {
  std::vector<std::int32_t> ids;
  for (const BatchSequence& sequence : batch.sequences) ids.push_back(sequence.request);
  return ids;
}

}  // namespace

TEST_CASE("prompts are taken in order until the batch or the budget is full") {
  Batching batching(plan_of(3, 20, 4), requests({{8, 2}, {8, 2}, {8, 2}, {8, 2}}));
  const Batch first = batching.next();  // 8 + 8 fit into 20, a third does not
  CHECK(ids(first) == std::vector<std::int32_t>{0, 1});
  CHECK(first.rows() == 16);
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{2});        // the third sequence of three
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{0, 1, 2});  // full: all decode and are done
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{3});        // they have left
  CHECK_FALSE(batching.done());
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{3});
  CHECK(batching.done());
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{-1});  // padding, as long as others go on
}

TEST_CASE("a prompt longer than the budget is prefilled alone") {
  Batching batching(plan_of(4, 10, 4), requests({{30, 1}, {4, 1}}));
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{0});
  CHECK(ids(batching.next()) == std::vector<std::int32_t>{1});
}

// A prompt of 4 tokens on pages of 4 fills one; its first decode stands at position 4, on a second page.
TEST_CASE("a sequence gets a page when its next token has no place") {
  Batching batching(plan_of(1, 10, 4), requests({{4, 7}}));
  CHECK(batching.next().sequences[0].pages.size() == 1);
  for (int position = 4; position < 10; ++position) {
    const BatchSequence sequence = batching.next().sequences[0];
    CHECK(sequence.past == position);
    CHECK(sequence.count == 1);
    CHECK(sequence.pages.size() == (position < 8 ? 2u : 3u));
  }
  CHECK(batching.done());              // 6 decodes and the prefill gave 7 tokens
  CHECK(batching.pool().peak() == 4);  // three pages, and the one for padding
}

TEST_CASE("no page holds two sequences at a time and pages of the gone are used again") {
  Batching batching(plan_of(2, 100, 2), requests({{5, 3}, {3, 6}, {7, 2}, {4, 4}, {6, 1}, {2, 9}}));
  std::set<std::int32_t> used;
  while (!batching.done()) {
    const Batch batch = batching.next();
    CHECK(find_fault(batch) == "");
    for (const BatchSequence& sequence : batch.sequences)
      used.insert(sequence.pages.begin(), sequence.pages.end());
  }
  // Two sequences of at most 10 cached tokens (2 + 9 - 1) on pages of 2, and padding's.
  CHECK(batching.pool().size() == 2 * 5 + 1);
  CHECK(used.size() <= 10);
}

TEST_CASE("lengths are drawn evenly between both ends") {
  ServingWorkload work;
  work.requests = 4000;
  work.input = {5, 8};
  work.output = {3, 3};
  std::vector<int> count(9);
  for (int i = 0; i < work.requests; ++i) {
    const RequestLengths lengths = lengths_of(work, i);
    REQUIRE((lengths.input >= 5 && lengths.input <= 8));
    CHECK(lengths.output == 3);
    ++count[lengths.input];
  }
  for (int length = 5; length <= 8; ++length) CHECK(count[length] == Approx(1000).epsilon(0.1));  // sigma 27
}

TEST_CASE("a batch says what is wrong with it") {
  const Batch sound{4, {{0, 5, 0, 5, {2, 3}}}};
  CHECK(find_fault(sound) == "");
  CHECK(find_fault({4, {{0, 5, 0, 5, {2}}}}) == "request 0: 5 tokens on 1 pages");
  CHECK(find_fault({4, {{0, 5, 0, 5, {2, 2}}}}) == "request 0: page 2 is taken");
  CHECK(find_fault({4, {{0, 5, 5, 0, {2, 3}}}}) == "request 0: 0 tokens after 5");
  CHECK(find_fault({4, {}}) == "0 sequences, 4 tokens a page");
}

}  // namespace moebius
