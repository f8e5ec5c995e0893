// Sequences that wait in the host's memory, and guesses that hold by their place.
#include <catch2/catch.hpp>

#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

// Ten pages of four tokens hold two sequences of 16 and their growth to 20; the second grows no further.
Replica full_replica(std::int64_t host_pages) {
  ReplicaRules rules;
  rules.page_tokens = 4;
  rules.pages = 10;
  rules.host_pages = host_pages;
  Replica replica(rules);
  for (const int id : {0, 1}) replica.enqueue({.id = id, .prompt = 16, .output = 12, .chain = {}});
  return replica;
}

struct Totals {
  std::int64_t prompts = 0, tokens = 0;
  std::vector<std::int32_t> finished;
};

Totals totals_of(Replica& replica) {
  Totals totals;
  StepOutcome outcome;
  for (int i = 0; i < 100 && !replica.idle(); ++i) {
    totals.prompts += replica.plan().prefill_tokens;
    replica.complete(Time{i}, outcome);
  }
  totals.tokens = outcome.tokens;
  totals.finished = outcome.finished;
  return totals;
}

}  // namespace

TEST_CASE("a sequence that waits in the host's memory goes on without being computed again") {
  Replica replica = full_replica(5);
  const Totals totals = totals_of(replica);
  CHECK(totals.prompts == 32);
  CHECK(totals.tokens == 24);
  CHECK(totals.finished == std::vector<std::int32_t>{0, 1});
  CHECK(replica.swaps().sequences == 1);
  CHECK(replica.swaps().out_tokens == 20);  // five pages
  CHECK(replica.swaps().in_tokens == 20);
  CHECK(replica.load().pages == 0);
}

TEST_CASE("what moves stands in the iteration that it delays") {
  Replica replica = full_replica(5);
  StepOutcome outcome;
  for (int i = 0; i < 5; ++i) {
    CHECK(replica.plan().swapped_out == 0);
    replica.complete({}, outcome);
  }
  CHECK(replica.plan().swapped_out == 20);
  CHECK(replica.preempted() == std::vector<std::int32_t>{1});
}

TEST_CASE("where the host's memory has no room a sequence is computed again") {
  Replica replica = full_replica(4);
  const Totals totals = totals_of(replica);
  CHECK(totals.prompts == 32 + 21);  // with the token that was sampled last
  CHECK(totals.tokens == 24);
  CHECK(replica.swaps().sequences == 0);
}

// Both have their first token at 0: the gaps of each add up to when it has its last.
TEST_CASE("what a sequence waits for while it is driven out is a gap between its tokens") {
  for (const std::int64_t host_pages : {0, 5}) {
    Replica replica = full_replica(host_pages);
    StepOutcome outcome;
    std::int64_t count = 0, gaps = 0, lasts = 0;
    for (int i = 0; !replica.idle(); ++i) {
      outcome.clear();
      replica.plan();
      replica.complete(Time{i}, outcome);
      lasts += i * static_cast<std::int64_t>(outcome.finished.size());
      for (const TokenGap& gap : outcome.gaps) count += gap.count, gaps += gap.count * gap.gap.ns;
    }
    CHECK(count == 2 * 11);
    CHECK(gaps == lasts);
  }
}

// The first guess always holds and the second never: two tokens an iteration after that of the prompt.
TEST_CASE("guesses hold by their place") {
  ReplicaRules rules;
  rules.pages = 100;
  rules.speculation = {.drafts = 2, .by_place = {1, 0}};
  Replica replica(rules);
  replica.enqueue({.id = 0, .prompt = 10, .output = 9, .chain = {}});
  StepOutcome outcome;
  int iterations = 0;
  for (; !replica.idle(); ++iterations) {
    replica.plan();
    replica.complete({}, outcome);
  }
  CHECK(iterations == 1 + 4);
  CHECK(replica.drafts().guessed == 8);
  CHECK(replica.drafts().held == 4);
}

// 20 tokens behind that of the prompt, one an iteration or, where a guess holds, two: m(n) = 1 + 0.3 m(n - 1)
// + 0.7 m(n - 2) iterations on average, 12.0 with a deviation of 0.93; the mean of 400 is within four of its
// own.
TEST_CASE("whether guesses hold is drawn for each request, whatever place it has in the system") {
  std::vector<double> mean{0, 1};
  for (int n = 2; n <= 20; ++n) mean.push_back(1 + 0.3 * mean[n - 1] + 0.7 * mean[n - 2]);
  ReplicaRules rules;
  rules.pages = 100;
  rules.speculation = {.drafts = 1, .acceptance = 0.7};
  Replica replica(rules);
  int iterations = 0;
  for (std::uint32_t number = 0; number < 400; ++number) {
    replica.enqueue({.id = 0, .prompt = 10, .output = 21, .chain = {}, .number = number});
    StepOutcome outcome;
    for (; !replica.idle(); ++iterations) {
      replica.plan();
      replica.complete({}, outcome);
    }
  }
  CHECK(iterations / 400.0 - 1 == Approx(mean[20]).margin(4 * 0.93 / 20));
}

}  // namespace moebius
