// What admission leaves free for answers that are still to come: pages of one token, counted by hand.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/serving/system/instance.h"

namespace moebius {
namespace {

ReplicaRules rules_of(std::int64_t pages) {
  ReplicaRules rules;
  rules.page_tokens = 1;
  rules.pages = pages;
  rules.token_budget = 100000;
  return rules;
}

StepOutcome run(Replica& replica) {
  StepOutcome outcome;
  replica.plan();
  replica.complete({}, outcome);
  if (replica.idle()) replica.begin_reserve();
  return outcome;
}

bool admits_next(Replica& replica, std::int32_t id) {
  run(replica);
  return replica.admitted() == std::vector<std::int32_t>{id};
}

// From 0.5 to 0.1 in four iterations.
ReplicaRules falling() {
  ReplicaRules rules = rules_of(1000);
  rules.output_reserve = 0.1;
  rules.first_reserve = 0.5;
  rules.reserve_decay = 4;
  return rules;
}

}  // namespace

// The one that runs gets 400 tokens behind its prompt of 100. After a token of it 899 pages are free and
// 0.4 x 399 are kept: 740 are left; after another one 898 - 0.3 x 398 = 779.
TEST_CASE("the share that is kept free falls while sequences decode") {
  for (const int prompt : {740, 741}) {
    INFO(prompt);
    Replica replica(falling());
    replica.enqueue({.id = 0, .prompt = 100, .output = 401, .chain = {}});
    run(replica), run(replica);
    replica.enqueue({.id = 1, .prompt = prompt, .output = 1, .chain = {}});
    CHECK(admits_next(replica, 1) == (prompt == 740));
    if (prompt == 741) CHECK(admits_next(replica, 1));
  }
}

// 0.5 x 400 of 900 free ones leave 700, where the share has begun again; it would be 0.1 otherwise.
TEST_CASE("the share begins again when nobody is left") {
  Replica replica(falling());
  for (const std::int32_t id : {0, 1}) {
    replica.enqueue({.id = id, .prompt = 100, .output = 401, .chain = {}});
    run(replica);
    replica.enqueue({.id = 10 + id, .prompt = 701, .output = 1, .chain = {}});
    CHECK_FALSE(admits_next(replica, 10 + id));
    CHECK(admits_next(replica, 10 + id));  // 0.4 x 399 of 899: 740
    while (!replica.idle()) run(replica);
  }
}

// Of two replicas one has nobody left behind five iterations that decode. While the other goes on it keeps
// 0.1 x 400 of 900 free pages, and half of 400 where that has ended, too.
TEST_CASE("the share begins again when no replica that iterates with it has anybody left") {
  for (const int output : {6, 401}) {
    INFO(output);
    InstanceRules rules;
    rules.replica = falling();
    rules.replicas = 2;
    Instance instance(rules, nullptr);
    const auto step = [&] {
      REQUIRE(instance.start({}));
      instance.ended({});
      StepOutcome outcome;
      instance.end({}, outcome);
    };
    instance.replica(0).enqueue({.id = 0, .prompt = 100, .output = 6, .chain = {}});
    instance.replica(1).enqueue({.id = 1, .prompt = 100, .output = output, .chain = {}});
    for (int i = 0; i < 6; ++i) step();
    REQUIRE(instance.replica(0).idle());
    instance.replica(0).enqueue({.id = 2, .prompt = 100, .output = 401, .chain = {}});
    step();
    instance.replica(0).enqueue({.id = 3, .prompt = 860, .output = 1, .chain = {}});
    step();
    CHECK((instance.replica(0).admitted() == std::vector<std::int32_t>{3}) == (output == 401));
  }
}

TEST_CASE("without iterations of decay the share is constant") {
  ReplicaRules rules = falling();
  rules.reserve_decay = 0;
  Replica replica(rules);
  replica.enqueue({.id = 0, .prompt = 100, .output = 401, .chain = {}});
  run(replica);
  replica.enqueue({.id = 1, .prompt = 860, .output = 1, .chain = {}});  // 900 - 0.1 x 400
  CHECK(admits_next(replica, 1));
}

// 400, 200, 200 and 100 tokens to come, of which 300 count at most: 100 + 50 + 50 pages and 300 + 200 + 200
// whole leave the fourth 100, which needs 100 and 100. When those prompts are computed, half of 700 is kept.
TEST_CASE("what newcomers may generate is set aside whole until their prompts are computed") {
  for (const int whole : {0, 300}) {
    INFO(whole);
    ReplicaRules rules = rules_of(1000);
    rules.output_reserve = 0.5;
    rules.newcomer_reserve = whole;
    Replica replica(rules);
    replica.enqueue({.id = 0, .prompt = 100, .output = 401, .chain = {}});
    for (const std::int32_t id : {1, 2})
      replica.enqueue({.id = id, .prompt = 50, .output = 201, .chain = {}});
    replica.enqueue({.id = 3, .prompt = 100, .output = 101, .chain = {}});
    run(replica);
    CHECK(replica.admitted().size() == (whole > 0 ? 3 : 4));
    if (whole > 0) CHECK(admits_next(replica, 3));
  }
}

// Of 400 tokens to come 300 count, and 300 still when 50 are there: of 850 free pages half of that is kept.
TEST_CASE("of a long answer the next tokens count, however many there are already") {
  for (const int prompt : {700, 701}) {
    INFO(prompt);
    ReplicaRules rules = rules_of(1000);
    rules.output_reserve = 0.5;
    rules.newcomer_reserve = 300;
    Replica replica(rules);
    replica.enqueue({.id = 0, .prompt = 100, .output = 401, .chain = {}});
    for (int i = 0; i < 51; ++i) run(replica);
    REQUIRE(replica.free_pages() == 850);
    replica.enqueue({.id = 1, .prompt = prompt, .output = 1, .chain = {}});
    CHECK(admits_next(replica, 1) == (prompt == 700));
  }
}

// 200 pages: 140 of prompts and three more each iteration, of which the 21st has no room. The third goes with
// 21 tokens; the others have 21 each of 161 and 31, so that (42 + 40) / 193 is kept. When the second has
// ended it needs 41 pages and 0.42 x (130 + 139) of 150. A share of 0.05 lets it in.
TEST_CASE("who is driven out leaves a share behind by what the others have generated") {
  for (const int decay : {0, 1000}) {
    INFO(decay);
    ReplicaRules rules = rules_of(200);
    rules.output_reserve = 0.05;
    rules.first_reserve = 0.1;
    rules.reserve_decay = decay;
    Replica replica(rules);
    replica.enqueue({.id = 0, .prompt = 20, .output = 161, .chain = {}});
    replica.enqueue({.id = 1, .prompt = 100, .output = 31, .chain = {}});
    replica.enqueue({.id = 2, .prompt = 20, .output = 161, .chain = {}});
    run(replica);
    REQUIRE(replica.admitted().size() == 3);
    for (int i = 0; i < 20; ++i) {
      run(replica);
      REQUIRE(replica.preempted().empty());
    }
    run(replica);
    REQUIRE(replica.preempted() == std::vector<std::int32_t>{2});
    std::vector<std::int32_t> finished;
    while (true) {
      const StepOutcome outcome = run(replica);
      if (!replica.admitted().empty()) break;
      finished.insert(finished.end(), outcome.finished.begin(), outcome.finished.end());
    }
    CHECK(replica.admitted() == std::vector<std::int32_t>{2});
    CHECK(finished == (decay > 0 ? std::vector<std::int32_t>{1, 0} : std::vector<std::int32_t>{1}));
    while (!replica.idle()) run(replica);
    CHECK(replica.load().pages == 0);
  }
}

// Guesses are rows of a sequence, too: what is kept for it counts two beyond its last token. Of three that
// have gone nothing is left: beside one with a token and two guesses to come, of which half is kept, a
// newcomer with its own two has 990 - 3 pages.
TEST_CASE("guesses that do not hold leave the reserve as it was") {
  for (const int prompt : {987, 988}) {
    INFO(prompt);
    ReplicaRules rules = falling();
    rules.newcomer_reserve = 7;
    rules.speculation = {.drafts = 2, .acceptance = 0.5};
    Replica replica(rules);
    for (const std::int32_t id : {0, 1, 2})
      replica.enqueue({.id = id, .prompt = 9, .output = 20 + id, .chain = {}, .number = 3});
    while (!replica.idle()) run(replica);
    replica.enqueue({.id = 0, .prompt = 10, .output = 2, .chain = {}});
    run(replica);
    replica.enqueue({.id = 1, .prompt = prompt, .output = 1, .chain = {}});
    CHECK(admits_next(replica, 1) == (prompt == 987));
  }
}

}  // namespace moebius
