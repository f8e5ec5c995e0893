// Through the binary: the levels of network detail beside each other, and folded ranks beside every rank by
// itself.
#include <catch2/catch.hpp>

#include <string>

#include "tests/process.h"
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
