// What ends a command with a sentence though its scenario can be read.
#include <string>

#include "tests/process.h"

#include "tests/catch.h"

namespace moebius {
namespace {

using Catch::Matchers::Contains;

test::Finished of_smoke(const std::string& command, const std::string& arguments) {
  return test::run_moebius(command + " " + std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/" + arguments);
}

}  // namespace

TEST_CASE("a run ends with an error when it does not have a figure that is expected") {
  const std::string expect =
      R"( --set '/expect=[{"metric": "METRIC", "value": 1, "tolerance": 0.1, "source": "none"}]')";
  const auto run = [&](const std::string& metric) {
    std::string with = expect;
    with.replace(with.find("METRIC"), 6, metric);
    return of_smoke("run", "serve-small.json" + with);
  };
  const test::Finished absent = run("step_time_s");
  CHECK(absent.exit_code == 1);
  CHECK_THAT(absent.err, Contains("\"expect\" names \"step_time_s\", which this run does not report"));
  CHECK(run("output_tokens_per_s").exit_code == 0);  // missed by far, which the report says
}

TEST_CASE("buffers of experts that are filled up are simulated, and executed by nobody") {
  const std::string filled = "moe-drop.json --set /plan/ep/dispatch=all-to-all --set /plan/ep/buffers=";
  const test::Finished came = of_smoke("run", "moe-drop.json --json");
  REQUIRE(came.exit_code == 0);
  CHECK_THAT(came.out, !Contains("padding_share"));
  for (const std::string buffers : {"padded", "one-hot"}) {
    const test::Finished simulated = of_smoke("run", filled + buffers + " --json");
    CHECK(simulated.exit_code == 0);
    CHECK_THAT(simulated.out, Contains("padding_share"));
    const test::Finished executed = of_smoke("run", filled + buffers + " --executor host");
    CHECK(executed.exit_code == 1);
    CHECK_THAT(executed.err, Contains("moe-drop.json: /plan/ep/buffers \"" + buffers +
                                      "\" is simulated only: executors compute the rows that came"));
  }
}

TEST_CASE("a service whose weights leave no room is not called valid") {
  CHECK(of_smoke("check", "serve-apart.json").exit_code == 0);
  const test::Finished full = of_smoke("check", "serve-apart.json --set /model=deepseek-v3");
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Contains("leave no room for a page of the cache"));
}

}  // namespace moebius
