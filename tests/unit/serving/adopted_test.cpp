// Decoding what another replica prefilled, whose cache comes while an iteration goes on.
#include <catch2/catch.hpp>

#include "workloads/serving/system/replica.h"

namespace moebius {

TEST_CASE("what is adopted while an iteration goes on gets its next token in the one after it") {
  ReplicaRules rules;
  rules.page_tokens = 4;
  rules.pages = 20;
  Replica replica(rules);
  REQUIRE(replica.reserve(0, 8));
  replica.adopt({0, 8, 3}, {});
  CHECK(replica.plan().decode_sequences == 1);
  REQUIRE(replica.reserve(1, 8));
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

}  // namespace moebius
