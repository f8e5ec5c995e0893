// Prompts that the ranks of a replica cut among themselves.
#include <catch2/catch.hpp>

#include <algorithm>

#include "workloads/serving/cut_prompts.h"

namespace moebius {
namespace {

BatchPtr prompts(const std::vector<std::pair<std::int32_t, std::int32_t>>& pasts_and_counts) {
  Batch batch{64, {}};
  std::int32_t request = 0, page = 0;
  for (const auto& [past, count] : pasts_and_counts) {
    BatchSequence s{request++, past + count, past, count, {}};
    for (std::int32_t covered = 0; covered < past + count; covered += 64) s.pages.push_back(page++);
    batch.sequences.push_back(std::move(s));
  }
  return std::make_shared<const Batch>(std::move(batch));
}

// Pairs of a query and a key that it sees.
std::int64_t pairs_of(const Batch& batch) {
  std::int64_t pairs = 0;
  for (const BatchSequence& s : batch.sequences)
    pairs += std::int64_t{s.count} * s.past + std::int64_t{s.count} * (s.count + 1) / 2;
  return pairs;
}

}  // namespace

TEST_CASE("every token of a prompt is computed once, whatever number of ranks cuts it") {
  const BatchPtr whole = prompts({{0, 1000}, {300, 77}, {0, 5}});
  for (const int cp : {2, 3, 8}) {
    INFO(cp << " ranks");
    const std::vector<BatchPtr> cut = cut_prompts({whole}, cp);
    REQUIRE(static_cast<int>(cut.size()) == cp);
    std::vector<std::vector<int>> seen(3, std::vector<int>(1000, 0));
    std::int64_t pairs = 0;
    for (const BatchPtr& of_rank : cut) {
      CHECK(find_fault(*of_rank).empty());
      CHECK(of_rank->cut_keys == 1000 + 377 + 5);
      pairs += pairs_of(*of_rank);
      for (const BatchSequence& s : of_rank->sequences)
        for (std::int32_t i = s.past; i < s.length(); ++i) ++seen[s.request][i];
    }
    CHECK(pairs == pairs_of(*whole));
    for (const BatchSequence& s : whole->sequences)
      for (std::int32_t i = 0; i < 1000; ++i)
        REQUIRE(seen[s.request][i] == (i >= s.past && i < s.length() ? 1 : 0));
  }
}

TEST_CASE("ranks that cut a prompt attend to as many keys, its first tokens and its last ones together") {
  const BatchPtr whole = prompts({{512, 4096}});
  const std::vector<BatchPtr> cut = cut_prompts({whole}, 8);
  for (const BatchPtr& of_rank : cut) CHECK(8 * pairs_of(*of_rank) == pairs_of(*whole));
}

TEST_CASE("ranks that attend by heads compute equal runs of all rows, one behind the other") {
  const BatchPtr whole = prompts({{0, 1000}, {300, 77}, {0, 5}});
  const std::vector<std::int32_t> positions = whole->positions();
  for (const int cp : {2, 3, 8}) {
    INFO(cp << " ranks");
    const std::vector<BatchPtr> cut = cut_prompts({whole}, cp, CutAttention::kHeads);
    REQUIRE(static_cast<int>(cut.size()) == cp);
    const std::int64_t share = (1082 + cp - 1) / cp;
    for (int rank = 0; rank < cp; ++rank) {
      CHECK(find_fault(*cut[rank]).empty());
      CHECK(cut[rank]->cut_keys == 1000 + 377 + 5);
      const auto first = positions.begin() + std::min(rank * share, 1082 - share);
      CHECK(cut[rank]->positions() == std::vector<std::int32_t>(first, first + share));
    }
  }
}

TEST_CASE("each replica's prompts are cut by its own ranks, and one rank cuts nothing") {
  const BatchPtr first = prompts({{0, 64}}), second = prompts({{0, 128}});
  const std::vector<BatchPtr> cut = cut_prompts({first, second}, 2);
  REQUIRE(cut.size() == 4);
  CHECK(cut[1]->rows() == 32);
  CHECK(cut[2]->rows() == 64);
  CHECK(cut_prompts({first, second}, 1) == std::vector<BatchPtr>{first, second});
}

TEST_CASE("a rank for which there is no token computes the first one along") {
  const std::vector<BatchPtr> cut = cut_prompts({prompts({{0, 2}})}, 4);
  for (const BatchPtr& of_rank : cut) {
    CHECK(find_fault(*of_rank).empty());
    CHECK(of_rank->rows() == 1);
  }
  for (const BatchPtr& of_rank : cut_prompts({prompts({{0, 2}})}, 4, CutAttention::kHeads))
    CHECK(of_rank->rows() == 1);
}

}  // namespace moebius
