// Layers that look back only so far free their pages for others.
#include <array>

#include <catch2/catch.hpp>

#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

// Pages of 4 tokens; half of the layers see all of them, half the last eight: two pages and the one in which
// they begin.
ReplicaRules halves(std::int64_t pages) {
  ReplicaRules rules;
  rules.page_tokens = 4;
  rules.pages = pages;
  rules.parts = {.whole = 1, .windowed = 1, .window = 3, .prompt_window = 5};
  return rules;
}

}  // namespace

TEST_CASE("a layer with a window keeps more while its prompt is computed than afterwards") {
  Replica replica(halves(100));
  replica.enqueue({.id = 0, .prompt = 40, .output = 3, .chain = {}});
  StepOutcome outcome;
  replica.plan();
  CHECK(replica.load().pages == 10 + 5);
  replica.complete({}, outcome);
  CHECK(replica.load().pages == 10 + 3);
  replica.plan();  // the 41st token: one page of those that see all
  CHECK(replica.load().pages == 11 + 3);
  replica.complete({}, outcome);
  replica.plan();
  replica.complete({}, outcome);
  CHECK(replica.idle());
  CHECK(replica.load().pages == 0);
  CHECK(outcome.tokens == 3);
}

TEST_CASE("a sequence shorter than the window has pages in all layers alike") {
  Replica replica(halves(100));
  replica.enqueue({.id = 0, .prompt = 6, .output = 4, .chain = {}});
  replica.plan();
  CHECK(replica.load().pages == 2 * 2);
}

// 43 tokens in the cache at the end: 11 pages and 3, but 11 and 5 where they are a prompt again.
TEST_CASE("a sequence fits that could come back when it was driven out") {
  CHECK(Replica(halves(16)).fits(4, 40));
  CHECK_FALSE(Replica(halves(15)).fits(4, 40));
}

// 100 pages hold six sequences of 13 and one prompt of 15; if all layers kept all tokens, five of 20.
TEST_CASE("more sequences run where windows free their pages") {
  const auto most_running = [](const ReplicaRules& rules) {
    Replica replica(rules);
    for (int id = 0; id < 20; ++id) replica.enqueue({.id = id, .prompt = 40, .output = 1000, .chain = {}});
    StepOutcome outcome;
    std::int64_t most = 0;
    for (int i = 0; i < 4; ++i) {
      replica.plan();
      most = std::max(most, replica.load().running);
      replica.complete({}, outcome);
    }
    return most;
  };
  ReplicaRules all = halves(100);
  all.parts.window = all.parts.prompt_window = 1 << 20;
  CHECK(most_running(all) == 5);
  CHECK(most_running(halves(100)) == 7);
}

TEST_CASE("blocks that requests share hold the layers that see all tokens") {
  ReplicaRules rules = halves(100);
  rules.shared_tokens = 8;
  Replica replica(rules);
  constexpr std::array<kv::BlockHash, 4> kBlocks{1, 2, 3, 4};
  StepOutcome outcome;
  replica.enqueue({.id = 0, .prompt = 32, .output = 5, .chain = kBlocks});
  replica.plan();
  replica.complete({}, outcome);
  CHECK(replica.load().pages == 8 + 3);
  replica.enqueue({.id = 1, .prompt = 32, .output = 5, .chain = kBlocks});
  replica.plan();
  CHECK(replica.shape().prefill_tokens == 1);
  CHECK(replica.load().pages == 8 + 3 + 5);  // of the second one, its windows alone
  replica.complete({}, outcome);
  while (!replica.idle()) {
    replica.plan();
    replica.complete({}, outcome);
  }
  CHECK(replica.load().pages == 8);  // for whoever comes next
  CHECK(replica.free_pages() == 100);
}

TEST_CASE("what goes to the host's memory is what the layers keep") {
  ReplicaRules rules = halves(30);
  rules.host_pages = 13 + 3;
  Replica replica(rules);
  for (const int id : {0, 1}) replica.enqueue({.id = id, .prompt = 44, .output = 20, .chain = {}});
  StepOutcome outcome;
  std::int64_t out = 0, most = 0;
  for (int i = 0; i < 200 && !replica.idle(); ++i) {
    out += replica.plan().swapped_out;
    most = std::max(most, replica.load().pages);
    replica.complete({}, outcome);
  }
  CHECK(replica.idle());
  CHECK(replica.swaps().sequences > 0);
  CHECK(out < replica.swaps().out_tokens);
  CHECK(out > replica.swaps().out_tokens / 2);
  CHECK(most <= 30);
  CHECK(replica.load().pages == 0);
  CHECK(outcome.tokens == 40);
}

}  // namespace moebius
