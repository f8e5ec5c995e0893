// Runs without ops beside each other, and what a report says of wires that are not shared.
#include "workloads/report/figure_differences.h"

#include "tests/catch.h"
#include "workloads/report/network_use.h"
#include "workloads/report/report_network.h"

using namespace moebius;
using Catch::Matchers::Contains;

namespace {

FigureDifferences differences(const char* a, const char* b) {
  return figure_differences(parse_document(a, "a").root, parse_document(b, "b").root);
}

// One NIC that is busy for three seconds.
NetworkUse three_seconds(bool shares_wires) {
  NetworkUse use;
  use.shares_wires = shares_wires;
  use.tiers = {{.tier = "NIC out", .ports = 1, .bytes = 3e9, .capacity = 1e9, .longest = 3}};
  return use;
}

}  // namespace

TEST_CASE("figures that differ stand by their relative difference, whichever run has more") {
  const FigureDifferences found =
      differences(R"({"x": 1, "part": {"y": 10, "list": [1, 2]}, "same": 5, "words": "a", "gone": 1})",
                  R"({"x": 2, "part": {"y": 1, "list": [1, 3]}, "same": 5, "words": "b"})");
  REQUIRE(found.rows.size() == 3);
  CHECK(found.rows[0].path == "part.y");  // 9 of 10
  CHECK(found.rows[1].path == "x");       // 1 of 2
  CHECK(found.rows[2].path == "part.list.1");
  CHECK(found.same == 2);
  CHECK(found.only_a == 1);
  CHECK(found.only_b == 0);
}

TEST_CASE("what a run took to compute and its seed are no figures of it") {
  const FigureDifferences found =
      differences(R"({"cpu_s": 1, "seed": 1, "expect": [{"ours": 1}], "kv": {"seed": 1}})",
                  R"({"cpu_s": 2, "seed": 2, "expect": [{"ours": 2}], "kv": {"seed": 2}})");
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].path == "kv.seed");
}

TEST_CASE("a difference is a share of the first run's figure") {
  CHECK(difference_text({"x", 4, 5}) == "+25%");
  CHECK(difference_text({"x", 4, 0}) == "-100%");
  CHECK(difference_text({"x", 1, 25}) == "x 25.0");
  CHECK(difference_text({"x", 0, 1}) == "-");
}

TEST_CASE("what cannot fit into a run is no binding port where transfers share no wires") {
  const std::string alone = network_text(three_seconds(false), 1);
  CHECK_THAT(alone, Contains("transfers do not share wires at this detail") && !Contains("binding"));
  CHECK_THAT(network_text(three_seconds(false), 4), Contains("in use 75.0% of the time"));
  CHECK_THAT(network_text(three_seconds(true), 3), Contains("in use 100.0% of the time"));
}

TEST_CASE("figures of the headline come first, samples over time and what is next to nothing last") {
  const FigureDifferences found = differences(
      R"({"series": {"decode": {"running": [1]}}, "tiny": 1e-9, "ttft_s": {"mean": 2, "p90": 2}, "run_time_s": 4})",
      R"({"series": {"decode": {"running": [9]}}, "tiny": 0, "ttft_s": {"mean": 3, "p90": 9}, "run_time_s": 5})");
  std::vector<std::string> order;
  for (const FigureDifference& row : found.rows) order.push_back(row.path);
  CHECK(order == std::vector<std::string>{"run_time_s", "ttft_s.mean", "ttft_s.p90", "tiny",
                                          "series.decode.running.0"});
}
