// Through the binary: the levels of network detail beside each other, and folded ranks beside every rank by
// itself.
#include <catch2/catch.hpp>

#include <string>

#include "tests/process.h"
#include "tests/scenario_file.h"
#include "workloads/report/report.h"

namespace {

using namespace moebius;

double step_time(const std::string& scenario, const std::string& options) {
  const auto run = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + scenario +
                                     " --json " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return *report_value(run.out, "step_time_s");
}

}  // namespace

// All flows of this step are uncontended or evenly contended, so that max-min and SimGrid's sharing by
// latency must agree.
TEST_CASE("a step on 32 devices takes the same at fluid and native detail, and no longer at alpha-beta") {
  const std::string scenario = "smoke/moe-32-h800.json";
  const double fluid = step_time(scenario, "--detail fluid");
  CHECK(step_time(scenario, "--detail alpha-beta") <= fluid * (1 + 1e-9));
  const std::string version =
      test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + scenario + " --json").out;
  if (version.find("SimGrid") == std::string::npos) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  CHECK(step_time(scenario, "--detail native") == Approx(fluid).epsilon(0.01));
}

TEST_CASE("a step on 64 devices takes the same with one rank of each stage as with every rank") {
  const std::string scenario = "smoke/moe-64-h800.json";
  for (const std::string popularity : {"\"balanced\"", "{\"zipf\": 0.8}"}) {
    const std::string option = "--set '/workload/experts/popularity=" + popularity + "'";
    const double folded = step_time(scenario, option);
    CHECK(step_time(scenario, option + " --set /plan/fold=false") == Approx(folded).epsilon(0.005));
  }
}

TEST_CASE("parts that fail under way are refused by every network but the fluid one, in one sentence") {
  for (const std::string detail :
       {"native", "alpha-beta", "packet --set '/cluster/fabric/transport=\"eqds\"'"}) {
    INFO(detail);
    const auto run = test::run_moebius("run " + test::scenario_file("baige/fault-alltoall-down.json") +
                                       " --detail " + detail);
    CHECK(run.exit_code == 1);
    CHECK(run.err ==
          "moebius: parts of the network fail while messages are under way: only the fluid network knows "
          "how\n");
  }
}

TEST_CASE("a comparison names each fault of a run once") {
  const test::Scratch scratch;
  for (const std::string name : {"a", "b"})
    REQUIRE(test::run_moebius("run " + test::scenario_file("baige/link-flap-allreduce.json") + " --out " +
                              scratch.path(name))
                .exit_code == 0);
  const std::string text = test::run_moebius("compare " + scratch.path("a") + " " + scratch.path("b")).out;
  for (const std::string begin : {"  in a: ", "  in b: "}) {
    const std::size_t first = text.find(begin);
    INFO(text);
    REQUIRE(first != std::string::npos);
    const std::string line = text.substr(first, text.find('\n', first) + 1 - first);
    CHECK(text.find(line, first + 1) == std::string::npos);
  }
}

TEST_CASE("runs that have no ops are compared by their figures") {
  const test::Scratch scratch;
  for (const std::string blocks : {"1000", "2000"})
    REQUIRE(test::run_moebius("run " + test::scenario_file("smoke/kv-replay.json") +
                              " --set /cache/capacity_blocks=" + blocks + " --out " + scratch.path(blocks))
                .exit_code == 0);
  const std::string runs = scratch.path("1000") + " " + scratch.path("2000");
  const auto compared = test::run_moebius("compare " + runs);
  CHECK(compared.exit_code == 0);
  CHECK(compared.out.find("ops: not joined, a has none, b has none") != std::string::npos);
  CHECK(compared.out.find("kv.hit_blocks") != std::string::npos);
  CHECK(compared.out.find("structure") == std::string::npos);
  REQUIRE(test::run_moebius("report " + runs + " --html " + scratch.path("x.html")).exit_code == 0);
  const std::string page = test::text_of(scratch.path("x.html"));
  CHECK(page.find("kv.hit_blocks") != std::string::npos);
  CHECK(page.find("one schedule") == std::string::npos);
  CHECK(page.find("timeline/detail") == std::string::npos);
  const auto exported =
      test::run_moebius("export " + scratch.path("1000") + " --chrome " + scratch.path("x"));
  CHECK(exported.exit_code == 2);
  CHECK(exported.err.find("nothing to export") != std::string::npos);
}
