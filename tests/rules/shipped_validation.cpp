// What ships as validated is: a figure out of its tolerance fails here, a known miss stays visible.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "tests/process.h"
#include "tests/rules/source_root.h"

namespace {

using namespace moebius;

std::string figure(double value, const std::string& more) {
  return R"({"moebius": 1, "kind": "collective", "name": "one send",
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s", "oversubscription": 1}},
    "workload": {"operation": "all-reduce", "bytes": "1 GiB", "ranks": 8},
    "expect": [{"metric": "collective.algbw_bytes_per_s", "value": )" +
         std::to_string(value) + R"(, "source": "this test")" + more + "}]}";
}

// What the simulator says of that scenario, by a figure that is only shown.
double ours() {
  const test::Scratch scratch;
  const auto shown = test::run_moebius("validate --json " + scratch.write("a.json", figure(1e9, "")));
  REQUIRE(shown.exit_code == 0);
  return std::stod(shown.out.substr(shown.out.find("\"ours\": ") + 8));
}

test::Finished validated(double value, const std::string& more) {
  const test::Scratch scratch;
  return test::run_moebius("validate " + scratch.write("a.json", figure(value, more)));
}

}  // namespace

TEST_CASE("every figure that the shipped scenarios expect is met or a known miss") {
  const auto all = test::run("cd " + kRoot.string() + " && " + MOEBIUS_BINARY + " validate");
  INFO(all.out);
  INFO(all.err);
  CHECK(all.exit_code == 0);
}

TEST_CASE("a figure out of its tolerance fails and inside it passes") {
  const double measured = ours();
  CHECK(validated(measured * 1.04, R"(, "tolerance": 0.05)").exit_code == 0);
  const auto missed = validated(measured * 1.10, R"(, "tolerance": 0.05)");  // 1 / 1.10 - 1 = -9.1%
  CHECK(missed.exit_code == 1);
  CHECK(missed.out.find("miss") != std::string::npos);
}

TEST_CASE("a known miss fails only when it gets worse than it was by half a percentage point") {
  const double figure = ours() * 1.25;  // 1 / 1.25 - 1 = -20%
  const std::string known = R"(, "tolerance": 0.05, "known_miss": "told", "known_difference": )";
  const auto as_known = validated(figure, known + "-0.2");
  CHECK(as_known.exit_code == 0);
  CHECK(as_known.out.find("known miss: told") != std::string::npos);
  CHECK(validated(figure, known + "-0.196").exit_code == 0);
  CHECK(validated(figure, known + "-0.19").exit_code == 1);
}

TEST_CASE("rows of a table become scenarios by its mapping") {
  const test::Scratch scratch;
  const std::string mapping = scratch.write("m.mapping", R"({"name": "sends", "row": ["what", "gib"],
    "scenario": {"moebius": 1, "kind": "collective", "name": "rows",
      "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                  "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s", "oversubscription": 1}},
      "workload": {"operation": "all-reduce", "bytes": "1 GiB", "ranks": 8}},
    "set": {"/workload/ranks": "half * 2", "/workload/bytes": "size"},
    "choose": {"what": {"sum": {"/workload/operation": "all-reduce"}, "way": {"/workload/operation": "all-gather"}}},
    "expect": [{"metric": "collective.time_s", "value": "ms / 1000", "tolerance": 0.5, "source": "this test"}]})");
  const std::string rows = "what,gib,half,size,ms\nsum,1,4,1 GiB,4\nway,2,4,2 GiB,\n";
  const auto table = test::run_moebius("validate --mapping " + mapping + " " + scratch.write("t.csv", rows));
  INFO(table.out << table.err);
  CHECK(table.out.find("sum 1") != std::string::npos);
  CHECK(table.out.find("1 figures judged") != std::string::npos);  // the second row tells no time
  const auto unknown = test::run_moebius("validate --mapping " + mapping + " " +
                                         scratch.write("u.csv", "what,gib,half,size,ms\nsun,1,4,1 GiB,4\n"));
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("u.csv:2: what: expected \"sum\", \"way\", found \"sun\"\n") != std::string::npos);
  const auto refusal = [&](const std::string& row) {
    return test::run_moebius("validate --mapping " + mapping + " " +
                             scratch.write("w.csv", "what,gib,half,size,ms\n" + row))
        .err;
  };
  CHECK_THAT(refusal("sum,1,4,1 GiB,-4\n"),
             Catch::EndsWith("w.csv:2: ms / 1000: expected a figure above 0, found \"-0.004\"\n"));
  CHECK_THAT(refusal("sum,1,four,1 GiB,4\n"),
             Catch::EndsWith("w.csv:2: half: expected a number, found \"four\"\n"));
  CHECK_THAT(refusal("sum,1,4,big,4\n"), Catch::Contains("w.csv:2: size: --set /workload/bytes: expected "));
  CHECK_THAT(refusal(""), Catch::EndsWith("w.csv: expected rows of measured figures, found none\n"));
  const auto alone = test::run_moebius("validate " + scratch.path("t.csv"));
  CHECK(alone.exit_code == 2);
  CHECK(alone.err.find("expected --mapping FILE") != std::string::npos);
}

// The first row is off by far, but what it says was put into the mapping: it judges nothing.
TEST_CASE("rows that something is fitted to stand apart and judge nothing") {
  const test::Scratch scratch;
  const auto validated = [&](const std::string& fitted) {
    const std::string mapping =
        scratch.write("m.mapping", R"({"name": "sends", "row": ["gib"], "fitted": [)" + fitted + R"(],
    "scenario": {"moebius": 1, "kind": "collective", "name": "rows",
      "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                  "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s", "oversubscription": 1}},
      "workload": {"operation": "all-reduce", "bytes": "1 GiB", "ranks": 8}},
    "set": {"/workload/bytes": "size"},
    "expect": [{"metric": "collective.time_s", "value": "ms / 1000", "tolerance": 0.5, "source": "this test"}]})");
    return test::run_moebius("validate --mapping " + mapping + " " +
                             scratch.write("t.csv", "gib,size,ms\n1,1 GiB,400\n2,2 GiB,8\n"));
  };
  const auto apart = validated(R"("1")");
  INFO(apart.out << apart.err);
  CHECK(apart.exit_code == 0);
  CHECK(apart.out.find("sends (fitted)") != std::string::npos);
  CHECK(apart.out.find("1 figures judged: 0 failed") != std::string::npos);
  CHECK(validated("").exit_code == 1);
  const auto unknown = validated(R"("3")");
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("/fitted/0: expected the name of a row, found \"3\"") != std::string::npos);
}
