// Decoding what another replica prefilled, whose cache comes while an iteration goes on.
#include <catch2/catch.hpp>

#include "workloads/serving/system/replica.h"

namespace moebius {

TEST_CASE("what is adopted while an iteration goes on gets its next token in the one after it") {
  ReplicaRules rules;
  rules.page_tokens = 4;
  rules.pages = 20;
  Replica replica(rules);
  REQUIRE(replica.reserve(0, 8, 3));
  replica.adopt({0, 8, 3}, {});
  CHECK(replica.plan().decode_sequences == 1);
  REQUIRE(replica.reserve(1, 8, 3));
  replica.adopt({1, 8, 3}, Time{5});
  StepOutcome outcome;
  replica.complete(Time{10}, outcome);
  CHECK(outcome.tokens == 1);
  REQUIRE(outcome.gaps.size() == 1);
  CHECK(outcome.gaps[0].gap == Time{10});
  replica.plan();
  const std::vector<PlannedPart> parts = replica.parts();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].past == 9);
  CHECK(parts[1].past == 8);
}

// Two sequences of 16 tokens fill ten pages of four when each has 20. The younger one goes when both need a
// sixth page; it comes back when the other has its twelve tokens, and only then there is a page for a third
// one.
TEST_CASE("pages that become free are theirs who were driven out before anybody's who is new") {
  for (const std::int64_t host_pages : {0, 5}) {
    ReplicaRules rules;
    rules.page_tokens = 4;
    rules.pages = 10;
    rules.host_pages = host_pages;
    Replica replica(rules);
    for (const int id : {0, 1}) {
      REQUIRE(replica.reserve(id, 16, 12));
      replica.adopt({.id = id, .prompt = 16, .output = 12}, {});
    }
    StepOutcome outcome;
    const auto step = [&] {
      replica.plan();
      replica.complete({}, outcome);
    };
    for (int i = 0; i < 4; ++i) step();
    replica.plan();
    REQUIRE(replica.preempted() == std::vector<std::int32_t>{1});
    CHECK_FALSE(replica.reserve(2, 4, 1));
    replica.complete({}, outcome);
    while (outcome.finished.empty()) step();
    CHECK(replica.free_pages() == 10);
    CHECK_FALSE(replica.reserve(2, 4, 1));
    step();
    CHECK(replica.reserve(2, 4, 1));
  }
}

}  // namespace moebius
