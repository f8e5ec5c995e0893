// The text form of a schedule is read by people and kept beside runs: a change of it shows here.
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>

#include "tests/unit/workloads/small_schedule.h"
#include "workloads/collective.h"

using namespace moebius;

namespace {

std::string golden(const std::string& name) {
  std::ifstream file(std::string(MOEBIUS_SOURCE_DIR) + "/tests/golden/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the dump of a small expert layer") {
  const FragmentPtr fragment = freeze(small_fragment());
  std::string text = dump(*fragment);
  text += dump(Submission{.fragment = fragment, .sequence = 0, .rank_class = 0, .after = {}});
  text +=
      dump(Submission{.fragment = fragment, .sequence = 1, .rank_class = 1, .microbatch = 3, .after = {0}});
  REQUIRE(text == golden("small_schedule.txt"));
}

TEST_CASE("the dump of a ring all-reduce over 1024 ranks") {
  CollectiveRun run(
      {.operation = OpKind::kAllReduce, .algorithm = Algorithm::kRing, .bytes = {1e9}, .ranks = 1024});
  const Submission submission = *run.next({});
  REQUIRE(dump(*submission.fragment) + dump(submission) == golden("all_reduce.txt"));
}
