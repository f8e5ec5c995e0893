// What deciding an iteration takes on this machine: the line through the times at several numbers of running
// sequences. Recorded, never asserted; the values of workloads/serving/system/measured_host.cpp are from
// here.
#include <cstdio>
#include <ctime>

#include <catch2/catch.hpp>

#include "workloads/serving/system/replica.h"

namespace {

using namespace moebius;

double nanoseconds_an_iteration(int sequences) {
  ReplicaRules rules;
  rules.max_running = sequences;
  rules.token_budget = std::int64_t{1} << 40;
  rules.pages = std::int64_t{1} << 40;
  Replica replica(rules);
  for (int i = 0; i < sequences; ++i)
    replica.enqueue({.id = i, .prompt = 1000, .output = 1 << 30, .chain = {}});
  StepOutcome outcome;
  const int iterations = 2000000 / sequences;
  const std::clock_t started = std::clock();  // of this process: others may run beside it
  for (int i = 0; i < iterations; ++i) {
    outcome.clear();
    replica.plan();
    replica.complete(Time{i}, outcome);
  }
  return 1e9 * static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC / iterations;
}

}  // namespace

TEST_CASE("what deciding an iteration takes is recorded") {
  for (const int sequences : {1, 16, 64, 256, 1024})
    std::printf("%5d sequences: %8.0f ns an iteration\n", sequences, nanoseconds_an_iteration(sequences));
  SUCCEED();
}
