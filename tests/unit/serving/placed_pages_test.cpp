// Which requests share an iteration of a replica, and on which pages they stand.
#include <set>

#include <catch2/catch.hpp>

#include "workloads/serving/kv/page_tables.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

ReplicaRules rules_of(int max_running, std::int64_t token_budget, int page_tokens, std::int64_t pages) {
  ReplicaRules rules;
  rules.max_running = max_running;
  rules.token_budget = token_budget;
  rules.page_tokens = page_tokens;
  rules.pages = pages;
  rules.chunked = false;
  return rules;
}

kv::PageTablesShape shape_of(const ReplicaRules& rules) {
  return {.pages = static_cast<std::int32_t>(rules.pages),
          .page_tokens = rules.page_tokens,
          .block_pages = rules.shared_tokens / rules.page_tokens,
          .host_pages = static_cast<std::int32_t>(rules.host_pages)};
}

// A replica whose iterations end as soon as they are decided.
struct Placed {
  Placed(const ReplicaRules& rules, const std::vector<std::pair<int, int>>& lengths)
      : replica(rules), tables(shape_of(rules)) {
    replica.place_pages(tables);
    for (const auto& [prompt, output] : lengths) replica.enqueue({next_id++, prompt, output});
  }

  const std::vector<PlannedPart>& next() {
    if (!parts.empty()) replica.complete({}, outcome);
    replica.plan();
    return parts = replica.parts();
  }
  std::vector<std::int32_t> ids() {
    std::vector<std::int32_t> ids;
    for (const PlannedPart& part : next()) ids.push_back(part.id);
    return ids;
  }

  Replica replica;
  kv::PageTables tables;
  std::int32_t next_id = 0;
  std::vector<PlannedPart> parts;
  StepOutcome outcome;
};

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("prompts are taken in order until the batch or the budget is full") {
  Placed placed(rules_of(3, 20, 4, 100), {{8, 2}, {8, 2}, {8, 2}, {8, 2}});
  CHECK(placed.ids() == Ids{0, 1});     // 8 + 8 fit into 20, a third does not
  CHECK(placed.ids() == Ids{2});        // the third sequence of three
  CHECK(placed.ids() == Ids{0, 1, 2});  // full: all decode and are done
  CHECK(placed.ids() == Ids{3});        // they have left
  CHECK(placed.ids() == Ids{3});
  CHECK(placed.ids().empty());
  CHECK(placed.replica.idle());
  CHECK(placed.tables.used() == 0);
}

TEST_CASE("a prompt longer than the budget is prefilled alone") {
  Placed placed(rules_of(4, 10, 4, 100), {{30, 1}, {4, 1}});
  CHECK(placed.ids() == Ids{0});
  CHECK(placed.ids() == Ids{1});
}

// A prompt of 4 tokens on pages of 4 fills one; its first decode stands at position 4, on a second page.
TEST_CASE("a sequence gets a page when its next token has no place") {
  Placed placed(rules_of(1, 10, 4, 100), {{4, 7}});
  placed.next();
  CHECK(placed.tables.of(0).size() == 1);
  for (int position = 4; position < 10; ++position) {
    const PlannedPart part = placed.next().front();
    CHECK(part.past == position);
    CHECK(part.count == 1);
    CHECK(placed.tables.of(0).size() == (position < 8 ? 2u : 3u));
  }
  CHECK(placed.ids().empty());  // 6 decodes and the prefill gave 7 tokens
  CHECK(placed.tables.peak() == 3);
}

TEST_CASE("no page holds two sequences at a time and pages of the gone are used again") {
  // Two sequences of at most 10 cached tokens (2 + 9 - 1) on pages of 2.
  Placed placed(rules_of(2, 100, 2, 10), {{5, 3}, {3, 6}, {7, 2}, {4, 4}, {6, 1}, {2, 9}});
  std::set<std::int32_t> used;
  while (!placed.next().empty()) {
    std::set<std::int32_t> now;
    for (const PlannedPart& part : placed.parts) {
      const std::vector<std::int32_t>& pages = placed.tables.of(part.id);
      CHECK(static_cast<int>(pages.size()) * 2 >= part.past + part.count);
      for (const std::int32_t page : pages) CHECK(now.insert(page).second);
    }
    used.insert(now.begin(), now.end());
  }
  CHECK(used.size() <= 10);
  CHECK(placed.tables.used() == 0);
}

// Blocks of 4 tokens on pages of 2. The second request finds both blocks of the first; the third, which came
// before they were there, computes its own and gives their pages back for the shared ones.
TEST_CASE("sequences that begin alike stand on the same pages") {
  ReplicaRules rules = rules_of(4, 11, 2, 100);
  rules.shared_tokens = 4;
  Placed placed(rules, {});
  const std::vector<kv::BlockHash> blocks{11, 12};
  placed.replica.enqueue({0, 11, 3, blocks});
  placed.next();
  placed.replica.enqueue({1, 10, 2, blocks});
  placed.next();
  CHECK(placed.parts.front().past == 8);
  const auto leading = [&](std::int32_t id) {
    const std::vector<std::int32_t>& pages = placed.tables.of(id);
    return Ids(pages.begin(), pages.begin() + 4);
  };
  CHECK(leading(0) == leading(1));
  // 4 shared ones, 2 of the first for its 11 tokens, 1 of the second for its 10.
  CHECK(placed.tables.used() == 7);
}

TEST_CASE("two prompts that begin alike and are computed together end on one copy") {
  ReplicaRules rules = rules_of(4, 100, 2, 100);
  rules.shared_tokens = 4;
  Placed placed(rules, {});
  const std::vector<kv::BlockHash> blocks{11, 12};
  for (const std::int32_t id : {0, 1}) placed.replica.enqueue({id, 9, 5, blocks});
  placed.next();
  CHECK(placed.tables.used() == 10);  // 5 each
  placed.next();
  CHECK(placed.tables.used() == 6);  // 4 of both, and one each
  while (!placed.next().empty()) {
  }
  CHECK(placed.tables.used() == 4);  // of blocks that wait for the next one
}

// 6 pages of 2 hold prompts of 4 and 4, and four tokens more: then the younger one has to go, to come back
// when the older one has left.
TEST_CASE("keys of a preempted sequence wait on the host and come back") {
  ReplicaRules rules = rules_of(2, 100, 2, 6);
  rules.host_pages = 10;
  Placed placed(rules, {{4, 6}, {4, 6}});
  std::vector<kv::SwappedKeys> swapped;
  while (!placed.next().empty()) {
    for (const kv::SwappedKeys& keys : placed.tables.swapped()) swapped.push_back(keys);
    placed.tables.forget_swapped();
  }
  REQUIRE(swapped.size() == 2);
  CHECK(swapped[0].out);
  CHECK(swapped[0].sequence == 1);
  CHECK(swapped[0].tokens == 6);
  CHECK(swapped[0].device.size() == 3);
  CHECK_FALSE(swapped[1].out);
  CHECK(swapped[1].host == swapped[0].host);
  CHECK(placed.tables.used() == 0);
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
  // Of sequences that begin alike, the leading pages.
  CHECK(find_fault({4, {{0, 5, 0, 5, {2, 3}}, {1, 7, 4, 3, {2, 5}}}}) == "");
  CHECK(find_fault({4, {{0, 5, 0, 5, {2, 3}}, {1, 5, 0, 5, {4, 2}}}}) == "request 1: page 2 is taken");
  CHECK(find_fault({4, {{0, 5, 0, 5, {2}}}}) == "request 0: 5 tokens on 1 pages");
  CHECK(find_fault({4, {{0, 5, 0, 5, {2, 2}}}}) == "request 0: page 2 is taken");
  CHECK(find_fault({4, {{0, 5, 5, 0, {2, 3}}}}) == "request 0: 0 tokens after 5");
  CHECK(find_fault({4, {}}) == "0 sequences, 4 tokens a page");
}

}  // namespace moebius
