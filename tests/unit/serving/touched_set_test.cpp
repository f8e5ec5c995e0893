// Replicas that note when they are touched.
#include "workloads/serving/system/touched_set.h"

#include <vector>

#include <catch2/catch.hpp>

#include "workloads/serving/system/instance.h"

using namespace moebius;

TEST_CASE("a set of touched ones is visited in order, and leaves out what is not kept") {
  TouchedSet set(130);
  const TouchMark last = set.mark(129);
  set.filter([](std::size_t i) { return i % 64 == 1; });
  last.set();
  std::vector<std::size_t> found;
  set.visit([&](std::size_t i) { found.push_back(i); });
  CHECK(found == std::vector<std::size_t>{1, 65, 129});
  TouchedSet moved = std::move(set);
  moved.filter([](std::size_t) { return false; });
  last.set();
  found.clear();
  moved.visit([&](std::size_t i) { found.push_back(i); });
  CHECK(found == std::vector<std::size_t>{129});
}

TEST_CASE("an instance knows what its replicas have before them, and who has nothing to do") {
  InstanceRules rules;
  rules.replicas = 3;
  rules.replica.pages = 100;
  Instance instance(rules, nullptr);
  CHECK(instance.choose() == 0);
  instance.replica(1).expect(10);
  CHECK(instance.choose() == 2);  // its turn was replica 1's, which is to get 10 tokens
  CHECK(instance.load(ReplicaBalance::kTokens) == 10);
  instance.replica(1).enqueue({.id = 7, .prompt = 10, .output = 2});
  CHECK(instance.load(ReplicaBalance::kRequests) == 1);
  REQUIRE(instance.start({}));
  int awake = 0;
  instance.visit_awake([&](const Replica& replica) {
    ++awake;
    CHECK(replica.admitted().size() == 1);
  });
  CHECK(awake == 1);
}
