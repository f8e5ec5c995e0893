// What a run costs. Counts are asserted; times and memory are recorded, never asserted: machines differ.
#include <catch2/catch.hpp>

#include <string>

#include "tests/process.h"
#include "workloads/report/report.h"

namespace {

using namespace moebius;

struct Cost {
  double ops = 0, cpu_s = 0, rss_bytes = 0;
};

Cost cost_of(const std::string& scenario, const std::string& options) {
  const auto run = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + scenario +
                                     " --json " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const Cost cost{*report_value(run.out, "ops"), *report_value(run.out, "cpu_s"),
                  *report_value(run.out, "max_rss_bytes")};
  WARN(scenario << " " << options << ": " << cost.ops << " ops, " << cost.cpu_s << " s of CPU, "
                << cost.rss_bytes * 1e-6 << " MB");
  return cost;
}

}  // namespace

TEST_CASE("a folded step of 2,048 devices simulates one rank of each of 16 stages") {
  // Twice the microbatches: the forward and backward ops double, the optimizer's stay. So the growth from 120
  // to 240 microbatches is that from 240 to 360.
  const std::string flagship = "study/deepseek-v3-train-2048-h800.json";
  const double one = cost_of(flagship, "").ops;
  const double two = cost_of(flagship, "--set /workload/global_batch=30720").ops;
  const double three = cost_of(flagship, "--set /workload/global_batch=46080").ops;
  CHECK(two - one == three - two);
  CHECK(two < 2 * one);
}

TEST_CASE("without a timeline, memory stays flat with the number of microbatches") {
  const std::string flagship = "study/deepseek-v3-train-2048-h800.json";
  const Cost one = cost_of(flagship, "--set /timeline/detail=none");
  const Cost four = cost_of(flagship, "--set /timeline/detail=none --set /workload/global_batch=61440");
  CHECK(four.ops > 3.9 * one.ops);
  CHECK(four.rss_bytes < 1.25 * one.rss_bytes);  // allocator noise, not four times the work
}

// 819,076 spans of 64 bytes are 52 MB.
TEST_CASE("spans that no one reads take no memory") {
  const std::string flagship = "study/deepseek-v3-train-2048-h800.json";
  const test::Scratch scratch;
  const Cost read = cost_of(flagship, "--out " + scratch.path("run"));
  const Cost unread = cost_of(flagship, "");
  CHECK(read.ops == unread.ops);
  CHECK(unread.rss_bytes + 40e6 < read.rss_bytes);
}

TEST_CASE("skewed experts cost their draws, not their ops") {
  const std::string flagship = "study/deepseek-v3-train-2048-h800.json";
  const Cost even = cost_of(flagship, "");
  const Cost skewed =
      cost_of(flagship, "--set '/workload/experts/popularity={\"zipf\":1.0}' --set /plan/memory=report");
  CHECK(skewed.ops == even.ops);
}

TEST_CASE("a collective over 1,024 ranks is one op of one rank when folded") {
  CHECK(cost_of("smoke/allreduce-1024.json", "").ops == 1);
  CHECK(cost_of("smoke/alltoall-256.json", "").ops == 1);
}

// The same plan on more and more cards of one fabric: 64-card expert groups, 16 stages, 120 microbatches, a
// core of a quarter of the pods' uplinks. What grows is the number of kinds of columns (pods and stages end at
// other places), three at most here, and what is counted once for each rank: places, not events.
TEST_CASE("a step on a hundred thousand cards costs what its kinds of columns cost") {
  const std::string hpn = "study/deepseek-v3-train-98304-hpn.json";
  double smallest = 0;
  for (const int cards : {1024, 4096, 16384, 65536, 98304}) {
    const Cost cost = cost_of(hpn, "--set /cluster/pools/0/nodes=" + std::to_string(cards / 8) +
                                       " --set /plan/memory=report --set /workload/global_batch=" +
                                       std::to_string(cards / 16 * 120));
    if (smallest == 0) smallest = cost.ops;
    CHECK(cost.ops < 3.5 * smallest);
  }
}
