// What a replica computes next, iteration by iteration.
#include <array>

#include <catch2/catch.hpp>

#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

// Pages of 4 tokens, blocks of 8 where prompts are shared.
ReplicaRules rules_of(std::int64_t pages, std::int64_t budget = 100) {
  ReplicaRules rules;
  rules.page_tokens = 4;
  rules.pages = pages;
  rules.token_budget = budget;
  return rules;
}

StepOutcome run(Replica& replica, Time end = {}) {
  StepOutcome outcome;
  replica.plan();
  replica.complete(end, outcome);
  return outcome;
}

// Seven pages: the first sequence has three of them and wants a fourth, the other's prompt has four and is
// not computed yet.
Replica crowded_replica() {
  ReplicaRules rules = rules_of(7, 4);
  rules.policy = BatchPolicy::kMixed;
  rules.host_pages = 10;
  Replica replica(rules);
  replica.enqueue({.id = 0, .prompt = 8, .output = 9, .chain = {}});
  for (int i = 0; i < 2; ++i) run(replica);
  replica.enqueue({.id = 1, .prompt = 16, .output = 2, .chain = {}});
  for (int i = 0; i < 4; ++i) run(replica);
  return replica;
}

}  // namespace

TEST_CASE("a prompt longer than the budget is computed in chunks, each with the keys before it") {
  Replica replica(rules_of(10, 4));
  replica.enqueue({.id = 7, .prompt = 6, .output = 2, .chain = {}});
  CHECK(replica.plan().prefill_tokens == 4);
  CHECK(replica.shape().prefill_pairs == 1 + 2 + 3 + 4);
  StepOutcome outcome;
  replica.complete({}, outcome);
  CHECK(outcome.prefilled.empty());
  CHECK(replica.plan().prefill_tokens == 2);
  CHECK(replica.shape().prefill_pairs == 5 + 6);
  replica.complete({}, outcome);
  CHECK(outcome.prefilled == std::vector<std::int32_t>{7});
  CHECK(replica.plan().decode_sequences == 1);
  CHECK(replica.shape().decode_context == 7);  // the six of the prompt, and its own
}

TEST_CASE("prompts go first, or share an iteration with those who decode") {
  for (const bool mixed : {false, true}) {
    ReplicaRules rules = rules_of(100, 10);
    rules.policy = mixed ? BatchPolicy::kMixed : BatchPolicy::kPrefillFirst;
    Replica replica(rules);
    replica.enqueue({.id = 0, .prompt = 3, .output = 5, .chain = {}});
    run(replica);
    replica.enqueue({.id = 1, .prompt = 20, .output = 5, .chain = {}});
    replica.plan();
    CHECK(replica.shape().decode_sequences == (mixed ? 1 : 0));
    CHECK(replica.shape().prefill_tokens == (mixed ? 9 : 10));
  }
}

// Ten pages of four tokens hold two sequences of 16 and their growth to 20; the second grows no further.
TEST_CASE(
    "when the cache is full the youngest sequence waits and is computed again, with what it generated") {
  Replica replica(rules_of(10));
  replica.enqueue({.id = 0, .prompt = 16, .output = 30, .chain = {}});
  replica.enqueue({.id = 1, .prompt = 16, .output = 30, .chain = {}});
  for (int i = 0; i < 5; ++i) run(replica);  // the prompts, then four tokens each: 20 in the cache
  CHECK(replica.load().pages == 10);
  replica.plan();
  CHECK(replica.preempted() == std::vector<std::int32_t>{1});
  CHECK(replica.shape().decode_sequences == 1);
  CHECK(replica.load().waiting == 1);
  CHECK(replica.load().prompt_tokens == 21);  // with the token that was sampled last
}

TEST_CASE("all tokens that were asked for come, one an iteration, and the cache is empty at the end") {
  Replica replica(rules_of(100));
  replica.enqueue({.id = 0, .prompt = 9, .output = 4, .chain = {}});
  replica.enqueue({.id = 1, .prompt = 5, .output = 1, .chain = {}});
  std::int64_t tokens = 0;
  std::vector<std::int32_t> finished;
  for (int i = 0; i < 10 && !replica.idle(); ++i) {
    const StepOutcome outcome = run(replica);
    tokens += outcome.tokens;
    finished.insert(finished.end(), outcome.finished.begin(), outcome.finished.end());
  }
  CHECK(tokens == 5);
  CHECK(finished == std::vector<std::int32_t>{1, 0});
  CHECK(replica.load().pages == 0);
}

TEST_CASE("a prompt whose first blocks are in the cache computes the rest only") {
  ReplicaRules rules = rules_of(100);
  rules.shared_tokens = 8;
  Replica replica(rules);
  const std::array<kv::BlockHash, 2> chain{11, 12};
  replica.enqueue({.id = 0, .prompt = 18, .output = 1, .chain = chain});
  run(replica);
  CHECK(replica.load().pages == 4);  // two blocks of two pages stay
  replica.enqueue({.id = 1, .prompt = 20, .output = 2, .chain = chain});
  CHECK(replica.plan().prefill_tokens == 4);
  CHECK(replica.shape().prefill_pairs == 17 + 18 + 19 + 20);
  CHECK(replica.prefixes().hit_blocks == 2);
  // One page beside the blocks.
  CHECK(replica.load().pages == 5);
}

// As where the youngest waits and is computed again, each prompt being two blocks of its own.
TEST_CASE("a sequence that was driven out counts no hit when it meets its own blocks") {
  ReplicaRules rules = rules_of(10);
  rules.shared_tokens = 8;
  Replica replica(rules);
  const std::array<kv::BlockHash, 2> one{1, 2}, other{3, 4};
  replica.enqueue({.id = 0, .prompt = 16, .output = 12, .chain = one});
  replica.enqueue({.id = 1, .prompt = 16, .output = 12, .chain = other});
  int preempted = 0;
  for (int i = 0; i < 100 && !replica.idle(); ++i) {
    run(replica);
    preempted += static_cast<int>(replica.preempted().size());
  }
  CHECK(preempted == 1);
  CHECK(replica.prefixes().prompt_tokens == 32);
  CHECK(replica.prefixes().asked_blocks == 4);
  CHECK(replica.prefixes().hit_blocks == 0);
}

TEST_CASE("blocks that nobody uses make room for prompts, the least recent first") {
  ReplicaRules rules = rules_of(8);
  rules.shared_tokens = 8;
  Replica replica(rules);
  const std::array<kv::BlockHash, 2> first{1, 2}, second{3, 4};
  for (const auto& [id, chain] : {std::pair(0, &first), std::pair(1, &second)}) {
    replica.enqueue({.id = id, .prompt = 16, .output = 1, .chain = *chain});
    run(replica);
  }
  CHECK(replica.load().pages == 8);
  replica.enqueue({.id = 2, .prompt = 8, .output = 1, .chain = {}});
  run(replica);
  replica.enqueue({.id = 3, .prompt = 16, .output = 1, .chain = second});
  run(replica);
  CHECK(replica.prefixes().hit_blocks == 2);
}

// One sequence runs on three of eight pages, and blocks that another left have four: what could not fit even
// without them leaves them there.
TEST_CASE("a prompt that has to wait takes no blocks from those that come after") {
  ReplicaRules rules = rules_of(8);
  rules.shared_tokens = 8;
  rules.policy = BatchPolicy::kMixed;
  Replica replica(rules);
  const std::array<kv::BlockHash, 2> known{1, 2};
  replica.enqueue({.id = 0, .prompt = 16, .output = 1, .chain = known});
  run(replica);
  replica.enqueue({.id = 1, .prompt = 12, .output = 3, .chain = {}});
  run(replica);
  CHECK(replica.load().pages == 7);
  replica.enqueue({.id = 2, .prompt = 24, .output = 1, .chain = {}});
  run(replica);
  run(replica);
  CHECK(replica.cached_blocks(known) == 2);
}

// The whole cache is a prompt's shared blocks: those stay when it goes, and as many pages are in use as
// before.
TEST_CASE("a prompt that did not fit beside another's blocks is tried again once those are free") {
  ReplicaRules rules = rules_of(4);
  rules.shared_tokens = 8;
  rules.hands_over = true;
  Replica replica(rules);
  const std::array<kv::BlockHash, 2> chain{1, 2};
  replica.enqueue({.id = 0, .prompt = 16, .output = 2, .chain = chain});
  CHECK(run(replica).prefilled == std::vector<std::int32_t>{0});
  replica.enqueue({.id = 1, .prompt = 12, .output = 2, .chain = {}});
  CHECK(replica.plan().empty());  // the first one's cache has not gone over
  CHECK(replica.load().pages == 4);
  replica.release(0);
  CHECK(replica.load().pages == 4);
  CHECK(replica.plan().prefill_tokens == 12);
}

// With guesses that always hold, three tokens come in each iteration, and rows are three a sequence.
TEST_CASE("a prompt that has to be computed whole is admitted to the iteration that computes it") {
  ReplicaRules rules = rules_of(100, 20);
  rules.chunked = false;
  Replica replica(rules);
  for (std::int32_t id = 0; id < 2; ++id) replica.enqueue({.id = id, .prompt = 15, .output = 1, .chain = {}});
  replica.plan();
  CHECK(replica.admitted() == std::vector<std::int32_t>{0});
  StepOutcome outcome;
  replica.complete({}, outcome);
  CHECK(replica.plan().prefill_tokens == 15);
  CHECK(replica.admitted() == std::vector<std::int32_t>{1});
}

TEST_CASE("rows that pad an iteration are no prompt tokens before others") {
  ReplicaRules rules = rules_of(100);
  rules.padded = true;
  Replica replica(rules);
  replica.enqueue({.id = 0, .prompt = 30, .output = 2, .chain = {}});
  replica.enqueue({.id = 1, .prompt = 3, .output = 2, .chain = {}});
  CHECK(replica.plan().prefill_tokens == 60);
  CHECK(replica.prompt_tokens_before(0) == 0);
}

TEST_CASE("prompts that wait for others are computed where those had to make room") {
  Replica replica = crowded_replica();
  CHECK(replica.plan({}, false).empty());
  CHECK(replica.preempted() == std::vector<std::int32_t>{0});
  CHECK(replica.plan_prompts().prefill_tokens == 4);
  CHECK(replica.preempted() == std::vector<std::int32_t>{0});
  CHECK(replica.shape().swapped_out == 12);
  StepOutcome outcome;
  replica.complete({}, outcome);
  CHECK(outcome.prefilled == std::vector<std::int32_t>{1});
}

TEST_CASE("what a decision without rows drives out moves in the iteration behind it") {
  Replica replica = crowded_replica();
  CHECK(replica.plan({}, false).empty());
  CHECK(replica.plan().swapped_out == 12);
  CHECK_FALSE(replica.shape().empty());
  StepOutcome outcome;
  replica.complete({}, outcome);
  CHECK(replica.plan().swapped_out == 0);
}

TEST_CASE("guesses that hold give as many tokens more an iteration") {
  ReplicaRules rules = rules_of(100);
  rules.speculation = {2, 1.0};
  Replica replica(rules);
  replica.enqueue({.id = 0, .prompt = 4, .output = 8, .chain = {}});
  run(replica);
  CHECK(replica.plan().decode_tokens == 3);
  StepOutcome outcome;
  replica.complete({}, outcome);
  CHECK(outcome.tokens == 3);
  CHECK(run(replica).tokens == 3);
  CHECK(run(replica).tokens == 1);  // eight in all, with that of the prompt
  CHECK(replica.load().pages == 0);
}

// Sequences of 4 tokens that grow to 20: five pages each.
TEST_CASE("where all that is to come is kept free nobody is driven out") {
  for (const int pages : {9, 10}) {
    ReplicaRules rules = rules_of(pages);
    rules.output_reserve = 1;
    Replica replica(rules);
    for (int id : {0, 1}) replica.enqueue({.id = id, .prompt = 4, .output = 17, .chain = {}});
    replica.plan();
    CHECK(replica.admitted().size() == (pages == 10 ? 2 : 1));
    StepOutcome outcome;
    replica.complete({}, outcome);
    for (int i = 0; i < 100 && !replica.idle(); ++i) {
      run(replica);
      CHECK(replica.preempted().empty());
    }
    Replica decoding(rules);
    REQUIRE(decoding.reserve(0, 4, 16));
    CHECK(decoding.reserve(1, 4, 16) == (pages == 10));
  }
}

TEST_CASE("answers that others give need no room where their prompts are computed") {
  ReplicaRules rules = rules_of(3);
  rules.output_reserve = 1;
  rules.hands_over = true;
  Replica replica(rules);
  for (int id : {0, 1}) replica.enqueue({.id = id, .prompt = 4, .output = 100, .chain = {}});
  replica.plan();
  CHECK(replica.admitted().size() == 2);
}

// Two chunks of a prompt, or the rest of one whose first block was there: 4 and 8 tokens stand before them.
TEST_CASE("prompts behind few cached tokens absorb, by the tokens before all of an iteration") {
  const auto absorbed = [](std::int64_t below) {
    ReplicaRules rules = rules_of(20, 4);
    rules.absorbed_below = below;
    Replica replica(rules);
    replica.enqueue({.id = 0, .prompt = 6, .output = 1, .chain = {}});
    CHECK_FALSE(replica.plan().absorbed);  // no token is before it
    StepOutcome outcome;
    replica.complete({}, outcome);
    CHECK(replica.plan().prefill_past == 4);
    return replica.shape().absorbed;
  };
  CHECK(absorbed(5));
  for (const std::int64_t below : {0, 1, 4}) CHECK_FALSE(absorbed(below));
  const auto shared = [](std::int64_t below) {
    ReplicaRules rules = rules_of(20);
    rules.shared_tokens = 8;
    rules.absorbed_below = below;
    Replica replica(rules);
    const std::array<kv::BlockHash, 1> chain{11};
    replica.enqueue({.id = 0, .prompt = 12, .output = 1, .chain = chain});
    run(replica);
    for (const std::int32_t id : {1, 2})
      replica.enqueue({.id = id, .prompt = 12, .output = 3, .chain = chain});
    replica.enqueue({.id = 3, .prompt = 12, .output = 3, .chain = {}});
    CHECK(replica.plan().prefill_past == 2 * 8);
    const bool of_prompts = replica.shape().absorbed;
    StepOutcome outcome;
    replica.complete({}, outcome);
    CHECK_FALSE(replica.plan().absorbed);  // they decode
    return of_prompts;
  };
  CHECK(shared(17));
  CHECK_FALSE(shared(16));
}

}  // namespace moebius
